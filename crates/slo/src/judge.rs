//! From everything known of a tier to its report.

use tapedeck_record::{CallFigure, Outcome, OutcomeClass};

use crate::evidence::TierEvidence;
use crate::figures::{Counted, age_slope, rtf_applies};
use crate::limits::{Limits, TtftBasis};
use crate::live::Abort;
use crate::measure::measure;
use crate::reason::{Cache, Latency, Reason};
use crate::report::{Estimate, Limit, LimitResult, LimitVerdict, Summary, TierReport, Verdict};
use crate::stationarity;

/// Judges a tier: a pure function of what was recorded, so a later run over the same records gives the same report.
///
/// The order is fixed: our own client (`invalid`), the preemption hard limit, errored streams and the three latencies
/// (`fail`), what could not be read (`unknown`), stationarity (`unstable`), caches (`suspect`). A limit that is known
/// to be broken outweighs one that could not be read; what could not be read never passes. In a rehearsal the
/// client's health is not judged.
#[must_use]
pub fn judge(evidence: &TierEvidence<'_>, limits: &Limits) -> TierReport {
    let counted = Counted::of(evidence.calls);
    let mut report = measure(evidence, &counted, limits);
    let mut grounds = Grounds::default();
    client_health(evidence, &report, limits, &mut grounds);
    hard_limit(evidence, &report, limits, &mut grounds);
    errors(&report, &mut grounds);
    latency(evidence, &report, &counted, limits, &mut grounds);
    aborted(evidence, &mut grounds);
    completeness(evidence, &report, &counted, &mut grounds);
    steadiness(&report, &counted, limits, &mut grounds);
    caches(evidence, &report, limits, &mut grounds);
    remarks(evidence, &report, &counted, &mut grounds);
    grounds.decide(&mut report);
    report
}

/// What speaks for each verdict.
#[derive(Default)]
struct Grounds {
    invalid: Vec<Reason>,
    fail: Vec<Reason>,
    unknown: Vec<Reason>,
    unstable: Vec<Reason>,
    suspect: Vec<Reason>,
    point: Vec<Reason>,
    notes: Vec<Reason>,
    limits: Vec<LimitResult>,
}

impl Grounds {
    fn decide(self, report: &mut TierReport) {
        let point = self.limits.iter().any(|l| l.verdict.is_point());
        let ranked = [
            (Verdict::Invalid, self.invalid),
            (Verdict::Fail, self.fail),
            (Verdict::Unknown, self.unknown),
            (Verdict::Unstable, self.unstable),
            (Verdict::Suspect, self.suspect),
        ];
        let verdict = ranked.iter().find(|(_, why)| !why.is_empty()).map(|(v, _)| *v);
        report.verdict = verdict.unwrap_or(Verdict::Pass);
        // A sure failure stays sure whatever else is a point verdict; a pass is as weak as its weakest limit.
        let sure_fail = self.limits.iter().any(|l| l.verdict == LimitVerdict::Fail);
        report.point_only = point && !(report.verdict == Verdict::Fail && sure_fail);
        report.reasons = ranked.into_iter().flat_map(|(_, why)| why).collect();
        report.notes = self.notes;
        // That a limit is kept by its estimate alone matters for a pass; beside a failure it is only a note.
        if report.verdict == Verdict::Fail {
            report.notes.extend(self.point);
        } else {
            report.reasons.extend(self.point);
        }
        report.limits = self.limits;
    }
}

/// Rule 1: were we ourselves in time?
fn client_health(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Grounds) {
    if evidence.paused {
        out.notes.push(Reason::ClientNotJudged);
        return;
    }
    match report.wake_late_p99_ms {
        Some(late_ms) if late_ms > limits.wake_late_p99_ms => {
            out.invalid.push(Reason::ClientLate { late_ms, limit_ms: limits.wake_late_p99_ms });
        }
        Some(_) => {}
        None if report.calls_counted > 0 => out.unknown.push(Reason::ClientLatenessUnknown),
        None => {}
    }
    match report.client_cpu_share {
        Some(share) if share >= limits.loadgen_cpu_share => {
            out.invalid.push(Reason::ClientBusy { share, limit: limits.loadgen_cpu_share });
        }
        Some(_) => {}
        None => out.notes.push(Reason::ClientCpuUnknown),
    }
}

/// Rule 2: did the KV pool fill up, was a request thrown out of it?
fn hard_limit(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Grounds) {
    let mut preemption = LimitVerdict::NotApplicable;
    let mut kv_pool = LimitVerdict::NotApplicable;
    // A failure outweighs what is unknown, and that a pass.
    let weigh = |now: &mut LimitVerdict, next: LimitVerdict| {
        let weight = |v: LimitVerdict| match v {
            LimitVerdict::Fail => 3,
            LimitVerdict::Unknown => 2,
            LimitVerdict::Pass => 1,
            _ => 0,
        };
        if weight(next) > weight(*now) {
            *now = next;
        }
    };
    for facts in evidence.instances {
        let (name, Some(page)) = (&facts.name, report.instances.get(&facts.name)) else { continue };
        let instance = || name.clone();
        if facts.expected.preemptions {
            let verdict = match page.preempt_delta {
                Some(requests) if requests > 0.0 => {
                    out.fail.push(Reason::Preempted { instance: instance(), requests });
                    LimitVerdict::Fail
                }
                Some(_) => LimitVerdict::Pass,
                None => {
                    out.unknown.push(Reason::PreemptionsUnknown { instance: instance() });
                    LimitVerdict::Unknown
                }
            };
            weigh(&mut preemption, verdict);
        }
        if facts.expected.kv_pool {
            let verdict = match page.kv_pool_p95 {
                Some(share) if share >= limits.kv_pool_p95 => {
                    let limit = limits.kv_pool_p95;
                    out.fail.push(Reason::KvPoolFull { instance: instance(), share, limit });
                    LimitVerdict::Fail
                }
                Some(_) if page.gaps > page.scrapes => {
                    let (gaps, pages) = (page.gaps, page.gaps + page.scrapes);
                    out.unknown.push(Reason::KvPoolGaps { instance: instance(), gaps, pages });
                    LimitVerdict::Unknown
                }
                Some(_) => LimitVerdict::Pass,
                None => {
                    out.unknown.push(Reason::KvPoolUnknown { instance: instance() });
                    LimitVerdict::Unknown
                }
            };
            weigh(&mut kv_pool, verdict);
        }
    }
    out.limits.push(LimitResult {
        limit: Limit::Preemption,
        verdict: preemption,
        value: report.preempt_delta,
        threshold: 0.0,
    });
    out.limits.push(LimitResult {
        limit: Limit::KvPool,
        verdict: kv_pool,
        value: report.kv_pool_p95,
        threshold: limits.kv_pool_p95,
    });
    if preemption == LimitVerdict::NotApplicable && kv_pool == LimitVerdict::NotApplicable {
        out.notes.push(Reason::HardLimitNotApplicable);
    }
}

/// Rule 3: no stream may error.
fn errors(report: &TierReport, out: &mut Grounds) {
    let failed = report.err_streams > 0;
    if failed {
        let errored = report.outcomes.iter().filter(|(o, _)| o.class(true) == OutcomeClass::Error);
        out.fail.push(Reason::StreamsErrored {
            streams: report.err_streams,
            of: report.streams,
            outcomes: errored.map(|(o, n)| (*o, *n)).collect(),
        });
    }
    out.limits.push(LimitResult {
        limit: Limit::Errors,
        verdict: if failed { LimitVerdict::Fail } else { LimitVerdict::Pass },
        value: Some(f64::from(report.err_streams)),
        threshold: 0.0,
    });
}

/// One latency limit as it is held against its p95.
struct LatencyLimit<'a> {
    limit: Limit,
    figure: Latency,
    summary: Option<&'a Summary>,
    threshold: f64,
    applies: bool,
}

fn compare(p95: &Estimate, threshold: f64) -> LimitVerdict {
    if p95.value <= threshold {
        if p95.high.is_some_and(|high| high <= threshold) {
            LimitVerdict::Pass
        } else {
            LimitVerdict::PointPass
        }
    } else if p95.low.is_some_and(|low| low > threshold) {
        LimitVerdict::Fail
    } else {
        LimitVerdict::PointFail
    }
}

/// Rule 4: the three latencies, all of which bind.
fn latency(
    evidence: &TierEvidence<'_>,
    report: &TierReport,
    counted: &Counted<'_>,
    limits: &Limits,
    out: &mut Grounds,
) {
    let basis = limits.ttft_basis;
    let no_window = basis == TtftBasis::Window && evidence.window_ms.is_none();
    let checks = [
        LatencyLimit {
            limit: Limit::Ttft,
            figure: Latency::FirstText { basis },
            summary: report.ttft(),
            threshold: limits.ttft_p95_s,
            applies: true,
        },
        LatencyLimit {
            limit: Limit::Rtf,
            figure: Latency::RealTimeFactor,
            summary: report.summary(CallFigure::Rtf),
            threshold: limits.rtf_p95,
            applies: rtf_applies(evidence),
        },
        LatencyLimit {
            limit: Limit::Final,
            figure: Latency::Final { basis: report.final_basis },
            summary: report.final_latency(),
            threshold: limits.final_p95_s,
            applies: true,
        },
    ];
    for LatencyLimit { limit, figure, summary, threshold, applies } in checks {
        let p95 = summary.map(|s| s.p95);
        let verdict = match &p95 {
            _ if !applies => LimitVerdict::NotApplicable,
            None => LimitVerdict::Unknown,
            Some(p95) => compare(p95, threshold),
        };
        match (p95, verdict) {
            (Some(p95), LimitVerdict::Fail | LimitVerdict::PointFail) => {
                let by_estimate = verdict.is_point();
                out.fail.push(Reason::LatencyBeyond { figure, p95, limit: threshold, by_estimate });
            }
            (Some(p95), LimitVerdict::PointPass) => {
                out.point.push(Reason::LatencyWithinByEstimate { figure, p95, limit: threshold });
            }
            (_, LimitVerdict::NotApplicable) => out.notes.push(Reason::LatencyNotApplicable { figure }),
            (_, LimitVerdict::Unknown) if limit == Limit::Ttft && no_window => {
                out.unknown.push(Reason::WindowUnknown);
            }
            (_, LimitVerdict::Unknown) => out.unknown.push(Reason::LatencyUnknown { figure }),
            _ => {}
        }
        let value = p95.filter(|_| applies).map(|p| p.value);
        out.limits.push(LimitResult { limit, verdict, value, threshold });
    }
    let calls = counted.figures.len() as u64 - report.ttft().map_or(0, |s| s.p95.n);
    if calls > 0 && report.ttft().is_some() {
        out.notes.push(Reason::FirstTextsMissing { calls, basis });
    }
}

/// A tier that a live rule ended is a failure of the server, even where the calls it had are too few to show it.
fn aborted(evidence: &TierEvidence<'_>, out: &mut Grounds) {
    let broken = evidence.abort.as_ref().map(|abort| {
        out.fail.push(Reason::Aborted { abort: abort.clone() });
        match abort {
            Abort::Ttft { .. } => Limit::Ttft,
            Abort::Errors { .. } => Limit::Errors,
            Abort::VramGrowth { .. } | Abort::VramFree { .. } => Limit::Vram,
        }
    });
    out.limits.push(LimitResult {
        limit: Limit::Vram,
        verdict: LimitVerdict::NotApplicable,
        value: None,
        threshold: 0.0,
    });
    for result in out.limits.iter_mut().filter(|r| Some(r.limit) == broken) {
        result.verdict = LimitVerdict::Fail;
    }
}

/// Did every call that was to count arrive?
fn completeness(evidence: &TierEvidence<'_>, report: &TierReport, counted: &Counted<'_>, out: &mut Grounds) {
    if evidence.abort.is_some() {
        return;
    }
    if let Some(why) = &evidence.cut_short {
        out.unknown.push(Reason::CutShort { why: why.clone() });
    }
    match report.calls_expected {
        Some(expected) if report.calls_counted < expected => {
            out.unknown.push(Reason::CallsMissing { counted: report.calls_counted, expected });
        }
        None if report.calls_counted == 0 => out.unknown.push(Reason::NoCalls),
        _ => {}
    }
    let calls = counted.with(Outcome::Cancelled);
    if calls > 0 {
        out.unknown.push(Reason::CallsCutOff { calls });
    }
    if report.calls_counted > 0 && counted.figures.is_empty() && counted.errors.is_empty() {
        out.unknown.push(Reason::NothingProven);
    }
}

/// Rule 5: did it keep getting worse?
fn steadiness(report: &TierReport, counted: &Counted<'_>, limits: &Limits, out: &mut Grounds) {
    if report.stationarity.is_empty() && !counted.figures.is_empty() {
        out.notes.push(Reason::TooShort { block_s: limits.stationarity.block_s });
    }
    out.unstable.extend(report.stationarity.iter().filter(|s| s.alarm).map(stationarity::kept_rising));
    let (slope, longest_s) = age_slope(counted);
    if let Some(ms_per_min) = slope {
        let rise_s = ms_per_min / 1e3 * longest_s / 60.0;
        if rise_s >= limits.final_p95_s {
            out.unstable.push(Reason::LagGrows { ms_per_min, rise_s, longest_s });
        }
    }
}

/// Rule 6: did caches answer instead of the engine?
fn caches(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Grounds) {
    let mut unknown_mm: Vec<String> = Vec::new();
    for facts in evidence.instances {
        let (name, Some(page)) = (&facts.name, report.instances.get(&facts.name)) else { continue };
        let instance = || name.clone();
        for (cache, share) in [(Cache::Prefix, page.prefix_hit_rate), (Cache::Multimodal, page.mm_hit_rate)] {
            let limit = limits.cache_hit_rate;
            if let Some(share) = share.filter(|&share| share > limit) {
                out.suspect.push(Reason::CacheHits { cache, instance: instance(), share, limit });
            }
        }
        if facts.expected.prefix_cache && page.prefix_hit_rate.is_none() {
            out.unknown.push(Reason::PrefixCacheUnknown { instance: instance() });
        }
        if facts.expected.mm_cache && page.mm_hit_rate.is_none() {
            unknown_mm.push(instance());
        }
        if page.resets > 0 {
            out.notes.push(Reason::Restarted { instance: instance(), times: page.resets });
        }
        if page.gaps > 0 {
            out.notes.push(Reason::PagesMissing { instance: instance(), pages: page.gaps });
        }
    }
    if !unknown_mm.is_empty() {
        out.notes.push(Reason::MultimodalCacheUnknown { instances: unknown_mm });
    }
}

/// What a reader should know besides.
fn remarks(evidence: &TierEvidence<'_>, report: &TierReport, counted: &Counted<'_>, out: &mut Grounds) {
    for outcome in [Outcome::TailLost, Outcome::EmptyFinal, Outcome::ClientLate] {
        let calls = counted.with(outcome);
        if calls > 0 {
            out.notes.push(Reason::CallsEnded { calls, outcome });
        }
    }
    if let Some(quality) = report.quality.as_ref().filter(|q| q.alarm == Some(true)) {
        let rate = |estimate: Option<Estimate>| estimate.map(|e| e.value);
        out.notes.push(Reason::QualityAlarm { cer: rate(quality.cer), wer: rate(quality.wer) });
    }
    if report.err_calls_outside > 0 {
        out.notes.push(Reason::ErrorsOutside { calls: report.err_calls_outside });
    }
    if report.violations > 0 {
        out.notes.push(Reason::Violations { times: report.violations });
    }
    if evidence.drained == Some(false) {
        out.notes.push(Reason::NotDrained);
    }
    let open: Option<Vec<f64>> = report.instances.values().map(|i| i.open_sessions_p50).collect();
    if let Some(sessions) = open.filter(|o| !o.is_empty()).map(|o| o.iter().sum::<f64>()) {
        let streams = report.delivered_streams;
        let delivered = f64::from(streams);
        if !evidence.open_arrivals && (sessions - delivered).abs() > (0.1 * delivered).max(1.0) {
            out.notes.push(Reason::OpenSessions { streams, sessions });
        }
    }
    let one_stream =
        counted.figures.iter().all(|c| Some(c.stream) == counted.figures.first().map(|f| f.stream));
    if one_stream && !counted.figures.is_empty() {
        out.notes.push(Reason::OneStream);
    }
}
