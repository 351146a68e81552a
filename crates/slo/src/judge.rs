//! From everything known of a tier to its report.

use tapedeck_record::Outcome;

use crate::evidence::TierEvidence;
use crate::figures::{Counted, age_slope, rtf_applies};
use crate::limits::{Limits, TtftBasis};
use crate::live::Abort;
use crate::measure::measure;
use crate::report::{Estimate, FinalBasis, Limit, LimitResult, LimitVerdict, Spread, TierReport, Verdict};
use crate::stationarity;

/// Judges a tier: a pure function of what was recorded, so a later run over the same records gives the same report.
///
/// The order is fixed: our own client (`invalid`), the preemption red line, errored streams and the three latencies
/// (`fail`), what could not be read (`unknown`), stationarity (`unstable`), caches (`suspect`). A limit that is known
/// to be broken outweighs one that could not be read; what could not be read never passes. In a rehearsal the
/// client's health is not judged.
#[must_use]
pub fn judge(evidence: &TierEvidence<'_>, limits: &Limits) -> TierReport {
    let counted = Counted::of(evidence.calls);
    let mut report = measure(evidence, &counted, limits);
    let mut findings = Findings::default();
    client_health(evidence, &report, limits, &mut findings);
    red_line(evidence, &report, limits, &mut findings);
    errors(&report, &mut findings);
    latency(evidence, &report, &counted, limits, &mut findings);
    given_up(evidence, &mut findings);
    completeness(evidence, &report, &counted, &mut findings);
    steadiness(&report, &counted, limits, &mut findings);
    caches(evidence, &report, limits, &mut findings);
    remarks(evidence, &report, &counted, &mut findings);
    findings.decide(&mut report);
    report
}

/// What speaks for each verdict, in plain sentences.
#[derive(Default)]
struct Findings {
    invalid: Vec<String>,
    fail: Vec<String>,
    unknown: Vec<String>,
    unstable: Vec<String>,
    suspect: Vec<String>,
    point: Vec<String>,
    notes: Vec<String>,
    limits: Vec<LimitResult>,
}

impl Findings {
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
fn client_health(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Findings) {
    if evidence.paused {
        out.notes.push("client health is not judged in a rehearsal".into());
        return;
    }
    match report.wake_late_p99_ms {
        Some(late) if late > limits.wake_late_p99_ms => out.invalid.push(format!(
            "our own sender woke {late:.1} ms late at p99 and only {:.1} ms are allowed; use a machine with less to do",
            limits.wake_late_p99_ms
        )),
        Some(_) => {}
        None if report.calls_counted > 0 => out.unknown.push(
            "our own wake lateness was not measured so nothing shows that audio was sent in time".into(),
        ),
        None => {}
    }
    match report.client_cpu_share {
        Some(share) if share >= limits.loadgen_cpu_share => out.invalid.push(format!(
            "the load generator used {:.0} % of this machine's cores and {:.0} % is the limit",
            share * 100.0,
            limits.loadgen_cpu_share * 100.0
        )),
        Some(_) => {}
        None => out.notes.push("the load generator's CPU use was not measured".into()),
    }
}

/// Rule 2: did the KV pool fill up, was a request thrown out of it?
fn red_line(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Findings) {
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
        if facts.expected.preemptions {
            let verdict = match page.preempt_delta {
                Some(delta) if delta > 0.0 => {
                    out.fail.push(format!("{name} preempted {delta:.0} requests"));
                    LimitVerdict::Fail
                }
                Some(_) => LimitVerdict::Pass,
                None => {
                    out.unknown.push(format!("the preemption counter of {name} could not be read"));
                    LimitVerdict::Unknown
                }
            };
            weigh(&mut preemption, verdict);
        }
        if facts.expected.kv_pool {
            let verdict = match page.kv_pool_p95 {
                Some(kv) if kv >= limits.kv_pool_p95 => {
                    out.fail.push(format!(
                        "the KV pool of {name} was {:.1} % full at p95 and {:.0} % is the red line",
                        kv * 100.0,
                        limits.kv_pool_p95 * 100.0
                    ));
                    LimitVerdict::Fail
                }
                Some(_) if page.gaps > page.scrapes => {
                    out.unknown.push(format!(
                        "{} of {} pages of {name} could not be read so its KV pool is unknown",
                        page.gaps,
                        page.gaps + page.scrapes
                    ));
                    LimitVerdict::Unknown
                }
                Some(_) => LimitVerdict::Pass,
                None => {
                    out.unknown.push(format!("the KV pool of {name} could not be read"));
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
        out.notes
            .push("the preemption red line is not applicable: these engines tell nothing about it".into());
    }
}

/// Rule 3: no stream may error.
fn errors(report: &TierReport, out: &mut Findings) {
    let failed = report.err_streams > 0;
    if failed {
        let kinds: Vec<String> = report
            .outcomes
            .iter()
            .filter(|(o, _)| o.class(true) == tapedeck_record::OutcomeClass::Error)
            .map(|(o, n)| format!("{n} x {}", o.name()))
            .collect();
        out.fail.push(format!(
            "{} of {} streams errored: {}",
            report.err_streams,
            report.streams,
            kinds.join(" and ")
        ));
    }
    out.limits.push(LimitResult {
        limit: Limit::Errors,
        verdict: if failed { LimitVerdict::Fail } else { LimitVerdict::Pass },
        value: Some(f64::from(report.err_streams)),
        threshold: 0.0,
    });
}

/// One latency limit as it is held against its p95.
struct Latency<'a> {
    limit: Limit,
    words: String,
    spread: Option<&'a Spread>,
    threshold: f64,
    unit: &'static str,
    applies: bool,
    missing: String,
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

/// An interval in words; a bound that the sample cannot give is said to be missing.
fn interval(e: &Estimate, unit: &str) -> String {
    let bound = |b: Option<f64>| b.map_or_else(|| "no bound".into(), |v| format!("{v:.3}{unit}"));
    format!("interval {} to {} from {} calls", bound(e.low), bound(e.high), e.n)
}

/// Rule 4: the three latencies, all of which bind.
fn latency(
    evidence: &TierEvidence<'_>,
    report: &TierReport,
    counted: &Counted<'_>,
    limits: &Limits,
    out: &mut Findings,
) {
    let basis = limits.ttft_basis;
    let final_from = match report.final_basis {
        FinalBasis::Audio => "the end of the audio",
        FinalBasis::Speech => "the end of speech",
    };
    let no_window = basis == TtftBasis::Window && evidence.window_ms.is_none();
    let checks = [
        Latency {
            limit: Limit::Ttft,
            words: format!("first-text p95 (basis {})", basis.name()),
            spread: report.ttft.as_ref(),
            threshold: limits.ttft_p95_s,
            unit: " s",
            applies: true,
            missing: if no_window {
                "first-text latency on basis window is unknown: set server.window_ms or another slo.ttft_basis"
                    .into()
            } else {
                format!("no call has a first text on basis {}", basis.name())
            },
        },
        Latency {
            limit: Limit::Rtf,
            words: "real-time factor p95".into(),
            spread: report.rtf.as_ref(),
            threshold: limits.rtf_p95,
            unit: "",
            applies: rtf_applies(evidence),
            missing: "no call has a real-time factor".into(),
        },
        Latency {
            limit: Limit::Final,
            words: format!("final p95 (from {final_from})"),
            spread: report.final_latency.as_ref(),
            threshold: limits.final_p95_s,
            unit: " s",
            applies: true,
            missing: "no call has a final".into(),
        },
    ];
    for check in checks {
        let p95 = check.spread.map(|s| s.p95);
        let verdict = match &p95 {
            _ if !check.applies => LimitVerdict::NotApplicable,
            None => LimitVerdict::Unknown,
            Some(p95) => compare(p95, check.threshold),
        };
        let (words, unit, threshold) = (&check.words, check.unit, check.threshold);
        match (&p95, verdict) {
            (Some(p), LimitVerdict::Fail) => out.fail.push(format!(
                "{words} is {:.3}{unit} and {threshold}{unit} is the limit ({})",
                p.value,
                interval(p, unit)
            )),
            (Some(p), LimitVerdict::PointFail) => out.fail.push(format!(
                "{words} is {:.3}{unit} and {threshold}{unit} is the limit; by the estimate alone ({})",
                p.value,
                interval(p, unit)
            )),
            (Some(p), LimitVerdict::PointPass) => out.point.push(format!(
                "{words} is {:.3}{unit} and within {threshold}{unit} by the estimate alone ({})",
                p.value,
                interval(p, unit)
            )),
            (_, LimitVerdict::NotApplicable) => out.notes.push(format!(
                "the limit on {words} is not applicable: the dialect does not show which audio a message answers"
            )),
            (_, LimitVerdict::Unknown) => out.unknown.push(check.missing),
            _ => {}
        }
        let value = p95.filter(|_| check.applies).map(|p| p.value);
        out.limits.push(LimitResult { limit: check.limit, verdict, value, threshold: check.threshold });
    }
    let missing = counted.figures.len() as u64 - report.ttft.as_ref().map_or(0, |s| s.p95.n);
    if missing > 0 && report.ttft.is_some() {
        out.notes.push(format!("{missing} calls have no first text on basis {}", basis.name()));
    }
}

/// A tier that a live rule ended is a failure of the server, even where the calls it had are too few to show it.
fn given_up(evidence: &TierEvidence<'_>, out: &mut Findings) {
    let broken = evidence.abort.as_ref().map(|abort| {
        out.fail.push(format!("the tier was given up: {}", abort.sentence()));
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
fn completeness(evidence: &TierEvidence<'_>, report: &TierReport, counted: &Counted<'_>, out: &mut Findings) {
    if evidence.abort.is_some() {
        return;
    }
    if let Some(why) = evidence.cut_short {
        out.unknown.push(format!("the tier was cut short: {why}"));
    }
    match report.calls_expected {
        Some(expected) if report.calls_counted < expected => out
            .unknown
            .push(format!("only {} of {expected} counted calls were recorded", report.calls_counted)),
        None if report.calls_counted == 0 => out.unknown.push("no call was counted".into()),
        _ => {}
    }
    let cancelled = counted.with(Outcome::Cancelled);
    if cancelled > 0 {
        out.unknown.push(format!("{cancelled} counted calls were cut off before their final"));
    }
    if report.calls_counted > 0 && counted.figures.is_empty() && counted.errors.is_empty() {
        out.unknown.push("no counted call proves anything".into());
    }
}

/// Rule 5: did it keep getting worse?
fn steadiness(report: &TierReport, counted: &Counted<'_>, limits: &Limits, out: &mut Findings) {
    if report.stationarity.is_empty() && !counted.figures.is_empty() {
        out.notes.push(format!(
            "too short to tell whether it kept getting worse: that takes four blocks of {:.0} s",
            limits.stationarity.block_s
        ));
    }
    out.unstable.extend(report.stationarity.iter().filter(|s| s.alarm).map(stationarity::sentence));
    let (slope, longest_s) = age_slope(counted);
    if let Some(slope) = slope {
        let grown_s = slope / 1e3 * longest_s / 60.0;
        if grown_s >= limits.final_p95_s {
            out.unstable.push(format!(
                "lag grows by {slope:.0} ms per minute of a call's age which adds up to {grown_s:.1} s over the \
                 longest call of {longest_s:.0} s"
            ));
        }
    }
}

/// Rule 6: did caches answer instead of the engine?
fn caches(evidence: &TierEvidence<'_>, report: &TierReport, limits: &Limits, out: &mut Findings) {
    let mut unknown_mm: Vec<&str> = Vec::new();
    for facts in evidence.instances {
        let (name, Some(page)) = (&facts.name, report.instances.get(&facts.name)) else { continue };
        for (what, rate) in [("prefix cache", page.prefix_hit_rate), ("multimodal cache", page.mm_hit_rate)] {
            if let Some(rate) = rate.filter(|&r| r > limits.cache_hit_rate) {
                out.suspect.push(format!(
                    "the {what} of {name} answered {:.1} % of its look-ups and {:.1} % is the limit; turn it off or set \
                     tape.unique_per_session",
                    rate * 100.0,
                    limits.cache_hit_rate * 100.0
                ));
            }
        }
        if facts.expected.prefix_cache && page.prefix_hit_rate.is_none() {
            out.unknown.push(format!(
                "the prefix cache of {name} made no look-ups that could be read and its page does not say that it is off"
            ));
        }
        if facts.expected.mm_cache && page.mm_hit_rate.is_none() {
            unknown_mm.push(name);
        }
        if page.resets > 0 {
            out.notes.push(format!("{name} restarted {} times: its counters were bridged", page.resets));
        }
        if page.gaps > 0 {
            out.notes.push(format!("{} pages of {name} could not be read", page.gaps));
        }
    }
    if !unknown_mm.is_empty() {
        out.notes.push(format!("the multimodal cache's hit rate of {} is unknown", unknown_mm.join(" and ")));
    }
}

/// What a reader should know besides.
fn remarks(evidence: &TierEvidence<'_>, report: &TierReport, counted: &Counted<'_>, out: &mut Findings) {
    for (outcome, words) in [
        (Outcome::TailLost, "calls lost their last words: a segment was never made final"),
        (Outcome::EmptyFinal, "calls ended without a word"),
        (Outcome::ClientLate, "calls were left out because our own sender was late"),
    ] {
        let n = counted.with(outcome);
        if n > 0 {
            out.notes.push(format!("{n} {words}"));
        }
    }
    if let Some(quality) = report.quality.as_ref().filter(|q| q.alarm == Some(true)) {
        let rate =
            |e: Option<Estimate>| e.map_or_else(|| "unknown".into(), |e| format!("{:.1} %", e.value * 100.0));
        out.notes.push(format!(
            "quality alarm: CER {} and WER {} against the single-stream baseline",
            rate(quality.cer),
            rate(quality.wer)
        ));
    }
    if report.err_calls_outside > 0 {
        out.notes.push(format!("{} calls outside the counted window errored", report.err_calls_outside));
    }
    if report.violations > 0 {
        out.notes.push(format!("the server broke its dialect's rules {} times", report.violations));
    }
    if evidence.drained == Some(false) {
        out.notes.push("the instances did not come to rest after the tier".into());
    }
    let open: Option<Vec<f64>> = report.instances.values().map(|i| i.open_sessions_p50).collect();
    if let Some(open) = open.filter(|o| !o.is_empty()).map(|o| o.iter().sum::<f64>()) {
        let delivered = f64::from(report.delivered_streams);
        if !evidence.open_arrivals && (open - delivered).abs() > (0.1 * delivered).max(1.0) {
            out.notes.push(format!(
                "{} streams were delivered and the servers saw {open:.0} open sessions",
                report.delivered_streams
            ));
        }
    }
    let one_stream =
        counted.figures.iter().all(|c| Some(c.stream) == counted.figures.first().map(|f| f.stream));
    if one_stream && !counted.figures.is_empty() {
        out.notes.push("one stream only: intervals come from order statistics alone".into());
    }
}
