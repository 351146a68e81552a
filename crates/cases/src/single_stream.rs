//! TC-01: one stream. What does a call cost when nobody else is there, and can the limits be met at all?

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tapedeck_answers::{
    Decision, ErrorRate, Few, Floor, SingleStreamAnswer, SingleStreamCall, SingleStreamFigures,
    SingleStreamReason,
};
use tapedeck_record::{
    CallMeta, CallRecord, Case, Evidence, Message, MessageKind, Outcome, OutcomeClass, OutcomeDetail, Schema,
    StepId, Trace, WordCounts,
};
use tapedeck_rundir::RunDir;
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Limits, TtftBasis};
use tapedeck_stats::percentile;
use tapedeck_wer::Counts;

use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::Point;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::workload::Workload;
use crate::world::World;
use crate::{environment, prior_results};

/// Plays the single stream.
///
/// # Errors
/// A failed preflight, an instance that went down twice, a run directory that cannot be written.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
) -> Result<SingleStreamAnswer, CaseError> {
    environment::record(world, dir).await?;
    let single = &world.config.single;
    let metas: Vec<&CallMeta> = world.tape.calls.iter().map(|c| &c.meta).collect();
    let picked = of_different_length(&metas, usize::try_from(single.calls).unwrap_or(usize::MAX));
    let passes = picked.len();
    let point = Point {
        workload: Workload::Calls(Role::A, picked),
        at_once: true,
        labels: vec!["single stream".into()],
        ..Point::new(StepId::new(Case::SingleStream, 1), single.passes)
    };
    let mut steps = Steps::new(world, dir, watch);
    let played = steps.play(&point).await?;
    let interrupted = steps.interrupted || played.is_none();
    let calls: Vec<CallRecord> = dir.calls_of(&point.step)?.into_iter().filter(|c| c.counted).collect();
    let answer =
        SingleStreamAnswer { interrupted, run: dir.path().to_path_buf(), ..answer(world, &calls, passes) };
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// Indices of up to `wanted` calls of different length: one per nominal duration, from the shortest to the longest;
/// of more durations than wanted, the outer ones and those evenly between.
fn of_different_length(calls: &[&CallMeta], wanted: usize) -> Vec<usize> {
    let mut by_length: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, call) in calls.iter().enumerate() {
        by_length.entry(call.bucket_s).or_insert(index);
    }
    let all: Vec<usize> = by_length.into_values().collect();
    if all.len() <= wanted {
        return all;
    }
    let last = all.len() - 1;
    (0..wanted).filter_map(|i| all.get(i * last / wanted.saturating_sub(1).max(1)).copied()).collect()
}

fn answer(world: &World, calls: &[CallRecord], calls_a_pass: usize) -> SingleStreamAnswer {
    let limits = &world.config.slo;
    let rules = Rules::new(world.target.dialect.evidence(), world.config.server.window_ms);
    let cold = |c: &CallRecord| usize::try_from(c.seq).is_ok_and(|seq| seq < calls_a_pass);
    let id = |c: &CallRecord| {
        let call = usize::try_from(c.call).ok().and_then(|i| world.tape.calls.get(i));
        call.map_or_else(|| c.call.to_string(), |call| call.meta.id.clone())
    };
    let floors = floors(
        world.tape.calls.iter().map(|c| &c.meta),
        Duration::from_millis(world.config.load.chunk_ms.into()),
        &rules,
        limits,
    );
    let mut answer = SingleStreamAnswer {
        schema: Schema::CURRENT,
        decision: Decision::Yes,
        reasons: Vec::new(),
        simulated: world.simulated,
        interrupted: false,
        tape: world.tape.manifest.name.clone(),
        evidence: rules.evidence,
        calls: calls.iter().map(|c| line(c, id(c), cold(c))).collect(),
        warm: figures(calls.iter().filter(|c| !cold(c))),
        cold: figures(calls.iter().filter(|c| cold(c))),
        floors,
        ttft_basis: limits.ttft_basis,
        violations: calls.iter().map(|c| u64::from(c.violations)).sum(),
        run: PathBuf::new(),
    };
    decide(&mut answer, calls, limits);
    answer.reasons.extend(chunk_by_chunk(&rules, answer.warm.rtf, limits));
    answer
}

/// What to say beside a real-time factor over its limit that may be the config's doing.
fn chunk_by_chunk(rules: &Rules, rtf: Option<Few>, limits: &Limits) -> Option<SingleStreamReason> {
    let windows_unknown = rules.evidence == Evidence::Position && rules.window_ms.is_none();
    (windows_unknown && rtf?.p50 > limits.rtf_p95).then_some(SingleStreamReason::WindowUnknown)
}

fn decide(answer: &mut SingleStreamAnswer, calls: &[CallRecord], limits: &Limits) {
    let mut reasons = Vec::new();
    for c in calls.iter().filter(|c| matches!(c.class, OutcomeClass::Error | OutcomeClass::Quality)) {
        let OutcomeDetail { outcome, words, .. } = c.outcome.clone();
        reasons.push(SingleStreamReason::CallEnded { call: c.seq + 1, outcome, words });
    }
    if answer.violations > 0 {
        reasons.push(SingleStreamReason::Violations { times: answer.violations });
    }
    if let Some(floor) = answer.floors.iter().find(|f| f.basis == answer.ttft_basis && !f.reachable) {
        let (limit_s, basis, floor_s) = (limits.ttft_p95_s, floor.basis, floor.p95_s);
        reasons.push(SingleStreamReason::LimitBelowFloor { limit_s, basis, floor_s });
    }
    let beyond = |few: Option<Few>, limit: f64| few.map(|few| few.max).filter(|max| *max > limit);
    let limit_s = limits.ttft_p95_s;
    let beyond_ttft = beyond(answer.ttft(), limit_s);
    reasons.extend(beyond_ttft.map(|max_s| SingleStreamReason::FirstTextBeyond { max_s, limit_s }));
    let limit = limits.rtf_p95;
    let beyond_rtf = beyond(answer.warm.rtf, limit);
    reasons.extend(beyond_rtf.map(|max| SingleStreamReason::RealTimeFactorBeyond { max, limit }));
    let limit_s = limits.final_p95_s;
    let beyond_final = beyond(answer.warm.final_s, limit_s);
    reasons.extend(beyond_final.map(|max_s| SingleStreamReason::FinalBeyond { max_s, limit_s }));
    let measured = calls.iter().any(|c| c.class == OutcomeClass::Ok) && answer.ttft().is_some();
    answer.decision = match (reasons.is_empty(), measured) {
        (false, _) => Decision::No,
        (true, true) => Decision::Yes,
        (true, false) => Decision::Undecidable,
    };
    if answer.decision == Decision::Undecidable {
        reasons.push(SingleStreamReason::FirstTextUnknown { basis: answer.ttft_basis });
    }
    answer.reasons = reasons;
}

fn line(c: &CallRecord, id: String, cold: bool) -> SingleStreamCall {
    SingleStreamCall {
        id,
        cold,
        audio_s: c.audio_s,
        outcome: c.outcome.outcome,
        instance: c.instance.clone(),
        rtf: c.rtf,
        ttft_wire_s: c.ttft_wire_s,
        ttft_speech_s: c.ttft_speech_s,
        ttft_window_s: c.ttft_window_s,
        final_s: c.final_s,
        violations: c.violations,
    }
}

fn figures<'a>(calls: impl Iterator<Item = &'a CallRecord> + Clone) -> SingleStreamFigures {
    let few = |figure: fn(&CallRecord) -> Option<f64>| few(calls.clone().filter_map(figure).collect());
    let rate = |counts: fn(&CallRecord) -> Option<WordCounts>| rate_of(calls.clone().filter_map(counts));
    SingleStreamFigures {
        rtf: few(|c| c.rtf),
        ttft_wire_s: few(|c| c.ttft_wire_s),
        ttft_speech_s: few(|c| c.ttft_speech_s),
        ttft_window_s: few(|c| c.ttft_window_s),
        final_s: few(|c| c.final_s),
        connect_s: few(|c| c.connect_s),
        words: rate(|c| c.words),
        chars: rate(|c| c.chars),
    }
}

fn few(mut values: Vec<f64>) -> Option<Few> {
    let p50 = percentile(&mut values, 0.5)?;
    Some(Few { p50, max: values.iter().copied().fold(f64::MIN, f64::max), n: values.len() as u64 })
}

/// Errors of several calls over the tokens of their references; nothing where there are none.
fn rate_of(counts: impl Iterator<Item = WordCounts>) -> Option<ErrorRate> {
    let (pooled, calls) = counts.fold((Counts::default(), 0), |(sum, n), c| (sum + Counts::from(c), n + 1));
    pooled_rate(pooled, calls)
}

/// The same of counts that are pooled already, of so many calls.
pub(crate) fn pooled_rate(counts: Counts, calls: u64) -> Option<ErrorRate> {
    let rate = counts.rate().filter(|_| counts.ref_tokens > 0)?;
    Some(ErrorRate { rate, errors: counts.errors(), ref_tokens: counts.ref_tokens, calls })
}

/// The floor of each anchor: the figures of a server that answers the very instant it can.
fn floors<'a>(
    calls: impl Iterator<Item = &'a CallMeta>,
    chunk: Duration,
    rules: &Rules,
    limits: &Limits,
) -> Vec<Floor> {
    let ideal: Vec<[Option<f64>; 3]> = calls.map(|meta| floor_of(meta, chunk, rules)).collect();
    let anchors = [TtftBasis::Wire, TtftBasis::Speech, TtftBasis::Window];
    anchors
        .into_iter()
        .enumerate()
        .filter_map(|(i, basis)| {
            let mut values: Vec<f64> = ideal.iter().filter_map(|f| f.get(i).copied().flatten()).collect();
            let p95_s = percentile(&mut values, 0.95)?;
            let max_s = values.iter().copied().fold(f64::MIN, f64::max);
            let reachable = p95_s <= limits.ttft_p95_s;
            Some(Floor { basis, p95_s, max_s, n: values.len() as u64, reachable })
        })
        .collect()
}

/// First text from the wire, speech and window anchors, for a text that comes at the end of the first window with
/// speech, or with the speech itself where the server has no fixed windows.
fn floor_of(meta: &CallMeta, chunk: Duration, rules: &Rules) -> [Option<f64>; 3] {
    // All anchors are differences to one instant of text: take any, and move it to the earliest possible.
    let seen = score(&answered_at_the_end(meta, chunk), meta, rules, &Words::default());
    let late = seen.ttft_window_s.or(seen.ttft_speech_s);
    let moved = |figure: Option<f64>| Some((figure? - late?).max(0.0));
    [moved(seen.ttft_wire_s), moved(seen.ttft_speech_s), moved(seen.ttft_window_s)]
}

/// A call whose one text comes when its audio ends.
fn answered_at_the_end(meta: &CallMeta, chunk: Duration) -> Trace {
    let audio_ns = u64::from(meta.duration_ms) * 1_000_000;
    let text = Message {
        at_ns: audio_ns + 1,
        kind: MessageKind::Final,
        bytes: 1,
        chars: 1,
        revised: 0,
        position_ms: None,
        window: None,
    };
    Trace {
        stream: 0,
        seq: 0,
        call: meta.index,
        tape: None,
        counted: true,
        c0_ns: 0,
        c1_ns: Some(0),
        chunk_ns: u64::try_from(chunk.as_nanos()).unwrap_or(u64::MAX),
        audio_ns,
        tail_silence_ns: 0,
        wake_late_us: Vec::new(),
        blocked_us: Vec::new(),
        end_ns: Some(audio_ns),
        messages: vec![text],
        final_ns: Some(audio_ns + 1),
        final_kind: None,
        kept_from_ns: None,
        done_ns: audio_ns + 1,
        rtt_us: Vec::new(),
        instance: None,
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Ok),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tapedeck_record::{Interval, SpeechMap};

    use super::*;

    /// A call of 30 s that went well.
    pub(crate) fn call() -> CallRecord {
        let (meta, rules) = (meta(0, 30, 0), Rules::new(Evidence::Position, None));
        score(&answered_at_the_end(&meta, Duration::from_millis(100)), &meta, &rules, &Words::default())
    }

    fn meta(index: u32, bucket_s: u32, onset_ms: u32) -> CallMeta {
        CallMeta {
            index,
            id: format!("call-{index}"),
            duration_ms: bucket_s * 1000,
            bucket_s,
            channel: None,
            tags: BTreeMap::new(),
            speech: SpeechMap::new(vec![Interval { start_ms: onset_ms, end_ms: bucket_s * 1000 }]),
        }
    }

    #[test]
    fn the_outer_lengths_and_those_between_are_picked() {
        let calls: Vec<CallMeta> =
            [30, 60, 30, 180, 300, 600].iter().zip(0..).map(|(&s, i)| meta(i, s, 0)).collect();
        let all: Vec<&CallMeta> = calls.iter().collect();
        assert_eq!(of_different_length(&all, 3), [0, 3, 5]);
        assert_eq!(of_different_length(&all, 1), [0]);
        assert_eq!(of_different_length(&all[..3], 3), [0, 1]);
        assert!(of_different_length(&[], 3).is_empty());
    }

    #[test]
    fn a_window_makes_the_wire_unreachable_and_the_window_not() {
        let chunk = Duration::from_millis(100);
        let rules = Rules::new(Evidence::Position, Some(2000));
        let call = meta(0, 30, 500);
        // Speech from 0.5 s on: the first window ends at 2 s, 1.9 s after the first chunk was complete.
        let [wire, speech, window] = floor_of(&call, chunk, &rules).map(Option::unwrap);
        assert!((wire - 1.9).abs() < 1e-6 && (speech - 1.5).abs() < 1e-6 && window.abs() < 1e-6);
        let found = floors([&call].into_iter(), chunk, &rules, &Limits::default());
        let reachable: Vec<bool> = found.iter().map(|f| f.reachable).collect();
        assert_eq!(reachable, [false, false, true]);
    }

    #[test]
    fn without_windows_only_leading_silence_is_in_the_way() {
        let rules = Rules::new(Evidence::Position, None);
        let [wire, speech, window] = floor_of(&meta(0, 30, 700), Duration::from_millis(100), &rules);
        assert!((wire.unwrap() - 0.6).abs() < 1e-6 && speech.unwrap().abs() < 1e-6);
        assert_eq!(window, None);
        // Speech within the first chunk cannot be answered before that chunk is complete.
        let [wire, ..] = floor_of(&meta(0, 30, 20), Duration::from_millis(100), &rules);
        assert!(wire.unwrap().abs() < 1e-6);
    }

    #[test]
    fn a_factor_that_counts_chunks_as_windows_is_explained() {
        let limits = Limits::default();
        let few = |p50| Some(Few { p50, max: p50, n: 3 });
        let said = |evidence, window_ms, rtf| chunk_by_chunk(&Rules::new(evidence, window_ms), rtf, &limits);
        let why = said(Evidence::Position, None, few(0.98)).unwrap();
        assert!(why.to_string().contains("window_ms"));
        assert_eq!(said(Evidence::Position, Some(2000), few(0.98)), None);
        assert_eq!(said(Evidence::Position, None, few(0.1)), None);
        assert_eq!(said(Evidence::Position, None, None), None);
        assert_eq!(said(Evidence::Ack, None, few(0.98)), None);
    }

    #[test]
    fn silent_calls_have_no_floor() {
        let silent = CallMeta { speech: SpeechMap::default(), ..meta(0, 30, 0) };
        let rules = Rules::new(Evidence::Position, Some(2000));
        assert!(
            floors([&silent].into_iter(), Duration::from_millis(100), &rules, &Limits::default()).is_empty()
        );
    }
}
