//! For a tier that does not pass: which part of the wait grew, what the engines said, and what to try next.

use std::collections::BTreeMap;

use tapedeck_record::{CallFigure, CallRecord, Case, Outcome};
use tapedeck_slo::{Figure, Limit, TierReport, Verdict};
use tapedeck_stats::percentile;

use crate::html::verdict_name;
use crate::latency_breakdown::{Growth, Part, growth};
use crate::messages::{LocalizedText, MessageId, message, number};
use crate::read::{Run, Step};
use crate::symptoms::{Diagnosed, Facts, symptoms};

/// A tier that does not pass, looked into.
#[derive(Debug)]
pub struct Diagnosis<'a> {
    /// The tier.
    pub step: &'a Step,
    /// What it is held against, the least disturbed by load: a passing step below it, else the lowest there is; empty
    /// where there is no other.
    pub calm: Option<&'a Step>,
    /// Every part of the wait at both.
    pub parts: Vec<Growth>,
    /// The one that grew most.
    pub grew: Option<Part>,
    /// What the engines' counters message, a sentence each.
    pub counters: Vec<LocalizedText>,
    /// Symptoms with what to try.
    pub findings: Vec<Diagnosed>,
}

impl Diagnosis<'_> {
    /// The tier, its verdict, and what it is held against.
    #[must_use]
    pub fn heading(&self) -> LocalizedText {
        let (step, verdict) = (self.step.name.as_str(), verdict_name(self.step.report.verdict));
        match self.calm {
            Some(calm) => message!(MessageId::DiagnosisOf, step, calm.name.as_str(), verdict),
            None => message!(MessageId::DiagnosisAlone, step, verdict),
        }
    }
}

/// Looks into every tier of the ladder that does not pass, then into such steps of other cases. What proves nothing
/// (our sender was late, a cache answered, the tier was still getting worse) is looked into as well: it has a cause, too.
#[must_use]
pub fn diagnose(run: &Run) -> Vec<Diagnosis<'_>> {
    let mut failing: Vec<&Step> =
        run.steps.iter().filter(|s| !s.partial && s.report.verdict != Verdict::Pass).collect();
    failing.sort_by_key(|s| !s.of_ladder());
    failing
        .into_iter()
        .map(|step| {
            let calm = calm(run, step);
            let (parts, grew) = growth(calm, step);
            let facts = facts(run, calm, step);
            Diagnosis { step, calm, parts, grew, counters: counters(step), findings: symptoms(&facts) }
        })
        .collect()
}

/// What a step is held against, the least disturbed by load: the lowest passing step on the same tape below it, else the
/// lowest passing tier of the ladder, else the lowest step there is.
fn calm<'a>(run: &'a Run, step: &Step) -> Option<&'a Step> {
    let whole = || run.steps.iter().filter(|s| !s.partial && s.name != step.name);
    let passing = || whole().filter(|s| s.report.verdict == Verdict::Pass);
    let same_tape =
        passing().filter(|s| s.report.tape == step.report.tape && s.report.streams < step.report.streams);
    same_tape
        .min_by_key(|s| (!s.of_ladder(), s.report.streams))
        .or_else(|| passing().filter(|s| s.of_ladder()).min_by_key(|s| s.report.streams))
        .or_else(|| whole().min_by_key(|s| s.report.streams))
}

/// The next lower load on the same tape: calls of another tape have other lengths, so that fewer of them an hour say
/// nothing.
fn below<'a>(run: &'a Run, step: &Step) -> Option<&'a Step> {
    let (tape, streams) = (&step.report.tape, step.report.streams);
    let lower =
        run.steps.iter().filter(|s| !s.partial && s.report.tape == *tape && s.report.streams < streams);
    lower.max_by_key(|s| (s.report.streams, s.of_ladder() == step.of_ladder()))
}

fn facts(run: &Run, calm: Option<&Step>, step: &Step) -> Facts {
    let (r, c) = (&step.report, calm.map(|calm| &calm.report));
    let p95 = |r: &TierReport, figure: Figure| figure.estimate(r).map(|e| e.value);
    let [connect, stall, rtf] =
        [CallFigure::ConnectS, CallFigure::StallMaxS, CallFigure::Rtf].map(Figure::Call);
    let threshold = |limit: Limit| r.limits.iter().find(|l| l.limit == limit).map(|l| l.threshold);
    let count = |o: Outcome| r.outcomes.get(&o).copied().unwrap_or(0);
    let counts =
        |of: &[Outcome]| of.iter().map(|o| (o.name(), count(*o))).filter(|(_, n)| *n > 0).collect::<Vec<_>>();
    let (cold_ttft_s, warm_ttft_s) = run.steps.first().map_or((None, None), cold_and_warm);
    let below = below(run, step);
    let longest_s = step.figures().map(|c| c.audio_s).fold(0.0, f64::max);
    Facts {
        cold_ttft_s,
        warm_ttft_s,
        calm_ttft_s: c.and_then(|c| p95(c, Figure::Ttft)),
        ttft_s: p95(r, Figure::Ttft),
        ttft_limit_s: threshold(Limit::Ttft),
        calm_stall_s: c.and_then(|c| p95(c, stall)),
        stall_s: p95(r, stall),
        rtf: p95(r, rtf),
        rtf_limit: threshold(Limit::Rtf),
        throughput_below_per_h: below.and_then(|s| s.report.throughput_per_h),
        throughput_per_h: r.throughput_per_h,
        calm_final_s: c.and_then(|c| p95(c, Figure::Final)),
        final_s: p95(r, Figure::Final),
        final_limit_s: threshold(Limit::Final),
        kv_pool: r.kv_pool_p95,
        preempted: r.preempt_delta,
        waiting: step.series.max_in_window("waiting_capacity"),
        broken_output: r.violations + count(Outcome::Protocol) + count(Outcome::ServerError),
        refused: count(Outcome::RefusedBusy),
        wake_late_ms: r.wake_late_p99_ms,
        wake_late_limit_ms: run.limits.as_ref().map(|l| l.wake_late_p99_ms),
        connect_s: p95(r, connect),
        calm_connect_s: c.and_then(|c| p95(c, connect)),
        uneven: uneven(step),
        throttle: r.gpu.as_ref().map(|g| g.throttle.clone()).unwrap_or_default(),
        age_lag_s: r.age_slope_ms_per_min.map(|ms| ms / 1e3 * longest_s / 60.0),
        quality_alarm: r.quality.as_ref().and_then(|q| q.alarm).or_else(|| words_alarm(run, step)),
        gpu_utilisation: r.gpu.as_ref().and_then(|g| g.utilisation_avg),
        cut: counts(&[
            Outcome::ConnectRefused,
            Outcome::ConnectTimeout,
            Outcome::Tls,
            Outcome::Handshake,
            Outcome::ClosedEarly,
        ]),
        unanswered: counts(&[Outcome::Mute, Outcome::IdleTimeout, Outcome::FinalTimeout]),
        rising: r.stationarity.iter().filter(|s| s.alarm).map(|s| (s.series.clone(), s.rise)).collect(),
        cache_hits: [r.prefix_hit_rate, r.mm_hit_rate].into_iter().flatten().reduce(f64::max),
        cache_limit: run.limits.as_ref().map(|l| l.cache_hit_rate),
    }
}

/// What the case that counts words says of a step of its own.
fn words_alarm(run: &Run, step: &Step) -> Option<bool> {
    if step.id.case != Case::Quality {
        return None;
    }
    let points = &run.answers.quality.as_ref()?.points;
    points.iter().find(|p| p.streams == step.report.streams).map(|p| p.alarm)
}

/// Median first text of each stream's first call, and of the same calls of the tape later, so that content does not
/// look like a cold start.
fn cold_and_warm(step: &Step) -> (Option<f64>, Option<f64>) {
    let figure = |c: &&CallRecord| step.report.ttft_basis.of(c);
    let (first, later): (Vec<&CallRecord>, Vec<&CallRecord>) = step.calls.iter().partition(|c| c.seq == 0);
    let ids: Vec<u32> = first.iter().map(|c| c.call).collect();
    let mut cold: Vec<f64> = first.iter().filter_map(figure).collect();
    let mut warm: Vec<f64> = later.iter().filter(|c| ids.contains(&c.call)).filter_map(figure).collect();
    (percentile(&mut cold, 0.5), percentile(&mut warm, 0.5))
}

/// First text p95 of the slowest instance / of the fastest, over instances with 20 calls at least.
fn uneven(step: &Step) -> Option<f64> {
    let mut by: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for call in step.figures() {
        if let (Some(name), Some(value)) = (&call.instance, step.report.ttft_basis.of(call)) {
            by.entry(name).or_default().push(value);
        }
    }
    let p95: Vec<f64> =
        by.into_values().filter(|v| v.len() >= 20).filter_map(|mut v| percentile(&mut v, 0.95)).collect();
    let slow = p95.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let fast = p95.iter().copied().fold(f64::INFINITY, f64::min);
    (p95.len() >= 2 && fast > 0.0).then(|| slow / fast)
}

fn counters(step: &Step) -> Vec<LocalizedText> {
    let r: &TierReport = &step.report;
    let mut all = Vec::new();
    if let Some(kv) = r.kv_pool_p95 {
        all.push(message!(MessageId::CounterKv, number(kv * 100.0)));
    }
    if let Some(preempted) = r.preempt_delta {
        all.push(message!(MessageId::CounterPreempted, number(preempted)));
    }
    if let Some(waiting) = step.series.max_in_window("waiting_capacity") {
        all.push(message!(MessageId::CounterWaiting, number(waiting)));
    }
    if let Some(running) = step.series.mean_in_window("running") {
        all.push(message!(MessageId::CounterRunning, number(running)));
    }
    for (name, word) in [
        ("ttft", MessageId::CounterTtft),
        ("queue", MessageId::CounterQueue),
        ("inference", MessageId::CounterInference),
    ] {
        if let Some((mean, count)) = step.series.gained(name).and_then(|g| Some((g.mean()?, g.count))) {
            all.push(message!(word, number(mean), number(count)));
        }
    }
    if let Some(utilisation) = r.gpu.as_ref().and_then(|g| g.utilisation_avg) {
        all.push(message!(MessageId::CounterGpu, number(utilisation * 100.0)));
    }
    if all.is_empty() {
        all.push(message!(MessageId::CounterNone));
    }
    all
}

/// A part of the wait by its name for people.
#[must_use]
pub fn part_name(part: Part) -> LocalizedText {
    match part {
        Part::Client => message!(MessageId::PartClient),
        Part::Connect => message!(MessageId::PartConnect),
        Part::BackPressure => message!(MessageId::PartBackPressure),
        Part::Queue => message!(MessageId::PartQueue),
        Part::Window => message!(MessageId::PartWindow),
        Part::Inference => message!(MessageId::PartInference),
        Part::Tail => message!(MessageId::PartTail),
    }
}
