//! TC-04: words under load. Do more streams cost accuracy?

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, Outcome, OutcomeClass, WordCounts};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{QualityBaseline, TierReport, Verdict};
use tapedeck_wer::{Counts, Resampling, paired_difference};

use crate::content::Content;
use crate::decision::Decision;
use crate::earlier::NStar;
use crate::error::{CaseError, ConfigError};
use crate::point::Point;
use crate::progress::Observer;
use crate::reel::Role;
use crate::steps::Steps;
use crate::tc01::Rate;
use crate::world::World;
use crate::{earlier, environment};

/// The file that the answer is kept in.
pub const FILE: &str = "tc04.json";

/// What words under load answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Yes: no point is worse than the baseline by more than the limit.
    pub decision: Decision,
    /// N*, and where it comes from.
    pub n_star: NStar,
    /// Name of the labelled tape.
    pub tape: String,
    /// Rise of an error rate that raises the alarm, percentage points.
    pub limit_points: f64,
    /// One stream on the labelled tape; empty where it did not come to its end.
    pub baseline: Option<Rates>,
    /// The points, by streams.
    pub points: Vec<QualityPoint>,
    /// The largest point below the first alarm; empty without an alarm, 0 where no point is below it.
    pub clean_up_to: Option<u32>,
    /// floor(safety factor x N*), not above `clean_up_to`.
    pub published: u32,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

/// Error rates of the labelled calls that succeeded. Words: Han characters with English words; finals + tail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Word error rate.
    pub wer: Option<Rate>,
    /// Word error rate of the finals alone.
    pub wer_finals: Option<Rate>,
    /// Character error rate.
    pub cer: Option<Rate>,
}

/// Words at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualityPoint {
    /// Streams in all.
    pub streams: u32,
    /// Streams on the labelled tape.
    pub labelled_streams: u32,
    /// Verdict on the whole tier.
    pub verdict: Verdict,
    /// Error rates of the labelled calls that succeeded.
    pub rates: Rates,
    /// Rise of the word error rate over the baseline.
    pub wer_rise: Option<Rise>,
    /// Rise of the character error rate over the baseline.
    pub cer_rise: Option<Rise>,
    /// Rise of the word error rate where a call that failed counts as all of its words deleted.
    pub wer_rise_with_lost: Option<Rise>,
    /// Labelled calls that failed.
    pub lost_calls: u64,
    /// Labelled calls whose last segment was never made final.
    pub tails_lost: u64,
    /// Whether a rise is beyond the limit.
    pub alarm: bool,
    /// Whether the whole interval of such a rise is.
    pub sure: bool,
}

/// A difference of two pooled rates, call by call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rise {
    /// The difference, percentage points.
    pub points: f64,
    /// Lower bound of its interval: bootstrap by call, the same calls drawn on both sides.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Calls on both sides.
    pub calls: u64,
}

/// Plays the labelled tape alone, then among the streams of each load.
///
/// # Errors
/// [`CaseError::Missing`] where N* is not known, a labelled tape without words, and whatever keeps a point from being
/// played.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    n_star: Option<u32>,
) -> Result<Answer, CaseError> {
    let n_star = earlier::n_star(dir, n_star)?;
    let labelled = world.reel(Role::Labelled)?;
    if !labelled.tape.calls.iter().any(|c| c.reference.is_some()) {
        let why = "no call has a reference: put a transcripts.tsv with their words beside the recordings";
        return Err(ConfigError::Value { key: "labelled.pool".into(), why: why.into() }.into());
    }
    environment::record(world, dir).await?;
    let config = &world.config;
    let mut steps = Steps::new(world, dir, watch);

    let alone = Point {
        content: Content::Tape(Role::Labelled),
        labels: vec!["baseline".into()],
        ..Point::new("tc04-N001", 1, config.quality.baseline_loops)
    };
    let mut baseline = None;
    let mut points = Vec::new();
    if let Some(report) = steps.play(&alone).await? {
        let calls = Calls::of(&steps.dir.calls_of(&alone.step)?, None);
        let mut loads: Vec<u32> =
            config.quality.shares.iter().map(|&s| n_star.share(s, world.instances.len())).collect();
        loads.dedup();
        for streams in loads {
            let point = Point {
                content: Content::Labelled,
                labels: vec!["labelled".into()],
                points_planned: u32::try_from(config.quality.shares.len()).unwrap_or(u32::MAX),
                baseline: before(&report),
                ..Point::new(format!("tc04-N{streams:03}"), streams, Point::loops(&config.load, streams))
            };
            let Some(report) = steps.play(&point).await? else { break };
            let loaded = Calls::of(&steps.dir.calls_of(&point.step)?, Some(labelled.name()));
            points.push(quality_point(world, &report, &calls, &loaded));
        }
        baseline = Some(calls.rates());
    }
    let interrupted = steps.interrupted;
    let clean_up_to = clean_up_to(&points);
    let answer = Answer {
        decision: decide(&points),
        tape: labelled.name().to_string(),
        limit_points: config.slo.quality_points,
        baseline,
        published: published(config.slo.safety_factor, n_star.streams, clean_up_to),
        points,
        clean_up_to,
        n_star,
        simulated: world.simulated,
        interrupted,
        run: dir.path().to_path_buf(),
    };
    if !interrupted {
        earlier::write(dir, FILE, &answer)?;
    }
    Ok(answer)
}

fn before(report: &TierReport) -> Option<QualityBaseline> {
    let quality = report.quality.as_ref()?;
    Some(QualityBaseline { cer: quality.cer.map(|e| e.value), wer: quality.wer.map(|e| e.value) })
}

/// The labelled calls of a step, by their index on the tape.
#[derive(Debug, Default)]
struct Calls {
    heard: BTreeMap<u32, Vec<CallRecord>>,
    lost: BTreeMap<u32, u64>,
}

impl Calls {
    /// Those that count, of the tape of this name where tapes are mixed.
    fn of(calls: &[CallRecord], tape: Option<&str>) -> Self {
        let mut all = Self::default();
        for call in calls.iter().filter(|c| c.counted && c.tape.as_deref() == tape) {
            match call.class {
                OutcomeClass::Ok | OutcomeClass::Quality if call.words.is_some() => {
                    all.heard.entry(call.call).or_default().push(call.clone());
                }
                OutcomeClass::Error => *all.lost.entry(call.call).or_default() += 1,
                _ => {}
            }
        }
        all
    }

    fn rates(&self) -> Rates {
        let of = |counts: fn(&CallRecord) -> Option<WordCounts>| {
            Rate::of(self.heard.values().flatten().filter_map(counts))
        };
        Rates { wer: of(|c| c.words), wer_finals: of(|c| c.words_finals), cer: of(|c| c.chars) }
    }

    /// Errors of a call over all of its repetitions, and how many those are.
    fn sum(&self, call: u32, counts: fn(&CallRecord) -> Option<WordCounts>) -> Option<(Counts, u64)> {
        let heard: Vec<Counts> = self.heard.get(&call)?.iter().filter_map(counts).map(whole).collect();
        (!heard.is_empty()).then(|| (heard.iter().sum(), heard.len() as u64))
    }
}

fn whole(counts: WordCounts) -> Counts {
    Counts {
        ref_tokens: counts.ref_tokens.into(),
        sub: counts.sub.into(),
        del: counts.del.into(),
        ins: counts.ins.into(),
    }
}

/// So many repetitions of the same counts.
fn times(counts: Counts, n: u64) -> Counts {
    Counts {
        ref_tokens: counts.ref_tokens * n,
        sub: counts.sub * n,
        del: counts.del * n,
        ins: counts.ins * n,
    }
}

/// The rise of a rate between two loads, paired by call: over calls heard at both, each with the same weight on both
/// sides. With `lost`, every repetition that failed counts as all of its tokens deleted.
fn rise(
    alone: &Calls,
    loaded: &Calls,
    counts: fn(&CallRecord) -> Option<WordCounts>,
    lost: bool,
    how: Resampling,
) -> Option<Rise> {
    let mut sides = (Vec::new(), Vec::new());
    for &call in alone.heard.keys() {
        let Some((before, n_before)) = alone.sum(call, counts) else { continue };
        let missing = if lost { loaded.lost.get(&call).copied().unwrap_or(0) } else { 0 };
        let (heard, n_heard) = loaded.sum(call, counts).unwrap_or_default();
        let n_after = n_heard + missing;
        if n_after == 0 {
            continue;
        }
        // A repetition of a call has as many tokens on either side: both become n_before x n_after repetitions.
        let deleted = Counts {
            ref_tokens: before.ref_tokens * missing,
            del: before.ref_tokens * missing,
            ..Counts::default()
        };
        sides.0.push(times(before, n_after));
        sides.1.push(times(heard, n_before) + deleted);
    }
    let found = paired_difference(&sides.0, &sides.1, how).ok()?;
    Some(Rise {
        points: found.value * 100.0,
        low: found.low * 100.0,
        high: found.high * 100.0,
        calls: sides.0.len() as u64,
    })
}

fn quality_point(world: &World, report: &TierReport, alone: &Calls, loaded: &Calls) -> QualityPoint {
    let config = &world.config;
    let how = Resampling { draws: config.quality.draws, seed: config.run.seed, level: config.slo.confidence };
    let wer_rise = rise(alone, loaded, |c| c.words, false, how);
    let cer_rise = rise(alone, loaded, |c| c.chars, false, how);
    let limit = config.slo.quality_points + 1e-9;
    let beyond =
        |figure: fn(&Rise) -> f64| [&wer_rise, &cer_rise].into_iter().flatten().any(|r| figure(r) > limit);
    let labelled = (0..report.streams).filter(|&k| Content::Labelled.role(k) == Role::Labelled).count();
    let tails = loaded.heard.values().flatten().filter(|c| c.outcome.outcome == Outcome::TailLost).count();
    QualityPoint {
        streams: report.streams,
        labelled_streams: u32::try_from(labelled).unwrap_or(u32::MAX),
        verdict: report.verdict,
        rates: loaded.rates(),
        wer_rise_with_lost: rise(alone, loaded, |c| c.words, true, how),
        lost_calls: loaded.lost.values().sum(),
        tails_lost: tails as u64,
        alarm: beyond(|r| r.points),
        sure: beyond(|r| r.low),
        wer_rise,
        cer_rise,
    }
}

fn decide(points: &[QualityPoint]) -> Decision {
    if points.iter().any(|p| p.alarm) {
        return Decision::No;
    }
    let heard =
        |p: &QualityPoint| p.wer_rise.is_some() && !matches!(p.verdict, Verdict::Invalid | Verdict::Unknown);
    match !points.is_empty() && points.iter().all(heard) {
        true => Decision::Yes,
        false => Decision::Undecidable,
    }
}

/// The largest point below the first alarm, where there is an alarm at all.
fn clean_up_to(points: &[QualityPoint]) -> Option<u32> {
    let first = points.iter().filter(|p| p.alarm).map(|p| p.streams).min()?;
    Some(points.iter().map(|p| p.streams).filter(|&n| n < first).max().unwrap_or(0))
}

fn published(factor: f64, n_star: u32, clean_up_to: Option<u32>) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
    let safe = (factor * f64::from(n_star) + 1e-9).floor().max(0.0) as u32;
    clean_up_to.map_or(safe, |cap| safe.min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ref_tokens: u32, sub: u32) -> WordCounts {
        WordCounts { ref_tokens, sub, ..WordCounts::default() }
    }

    /// Calls with so many errors of 100 tokens each.
    fn calls(errors: &[(u32, u32)]) -> Calls {
        let mut all = Calls::default();
        for &(call, sub) in errors {
            all.heard.entry(call).or_default().push(record(call, counts(100, sub)));
        }
        all
    }

    fn record(call: u32, words: WordCounts) -> CallRecord {
        serde_json::from_value(serde_json::json!({
            "stream": 0, "seq": 0, "call": call, "bucket_s": 30, "counted": true, "start_s": 0.0, "done_s": 1.0,
            "audio_s": 1.0, "outcome": "ok", "class": "ok", "messages": 1, "violations": 0,
            "words": words, "chars": words,
        }))
        .unwrap()
    }

    const HOW: Resampling = Resampling { draws: 500, seed: 1, level: 0.95 };

    #[test]
    fn a_rise_is_that_of_the_same_calls() {
        // Call 2 was never heard under load, and call 3 never alone: neither takes part.
        let alone = calls(&[(0, 2), (1, 4), (2, 50)]);
        let loaded = calls(&[(0, 4), (1, 6), (3, 90)]);
        let found = rise(&alone, &loaded, |c| c.words, false, HOW).unwrap();
        assert!((found.points - 2.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.calls, 2);
        assert!((found.low - 2.0).abs() < 1e-9 && (found.high - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_call_heard_more_often_weighs_no_more() {
        let alone = calls(&[(0, 0), (1, 10)]);
        // The easy call three times, the hard one once: nothing got worse.
        let loaded = calls(&[(0, 0), (0, 0), (0, 0), (1, 10)]);
        let found = rise(&alone, &loaded, |c| c.words, false, HOW).unwrap();
        assert!(found.points.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_lost_call_is_all_deletions_where_that_is_asked() {
        let alone = calls(&[(0, 0), (1, 0)]);
        let mut loaded = calls(&[(0, 0), (1, 0)]);
        loaded.lost.insert(1, 1);
        assert!(rise(&alone, &loaded, |c| c.words, false, HOW).unwrap().points.abs() < 1e-9);
        // One of three repetitions is gone: call 1 is heard once and lost once.
        let with = rise(&alone, &loaded, |c| c.words, true, HOW).unwrap();
        assert!((with.points - 100.0 / 3.0).abs() < 1e-9, "{with:?}");
    }

    #[test]
    fn the_first_alarm_caps_what_may_be_published() {
        let point = |streams, alarm| QualityPoint {
            streams,
            labelled_streams: 1,
            verdict: Verdict::Pass,
            rates: Rates::default(),
            wer_rise: Some(Rise { points: 0.0, low: 0.0, high: 0.0, calls: 8 }),
            cer_rise: None,
            wer_rise_with_lost: None,
            lost_calls: 0,
            tails_lost: 0,
            alarm,
            sure: alarm,
        };
        let clean = [point(12, false), point(24, false)];
        assert_eq!((decide(&clean), clean_up_to(&clean)), (Decision::Yes, None));
        let worse = [point(12, false), point(18, true), point(24, false)];
        assert_eq!((decide(&worse), clean_up_to(&worse)), (Decision::No, Some(12)));
        assert_eq!(clean_up_to(&[point(12, true)]), Some(0));
        assert_eq!(
            (published(0.7, 30, None), published(0.7, 30, Some(12)), published(0.7, 90, None)),
            (21, 12, 63)
        );
        assert_eq!(decide(&[]), Decision::Undecidable);
    }
}
