//! TC-04: words under load. Do more streams cost accuracy?

mod rise;

use tapedeck_answers::{Decision, NStar, QualityAnswer, QualityPoint, Rates, RiseFinding};
use tapedeck_config::{ConfigError, key};
use tapedeck_l10n::localized;
use tapedeck_record::{CallRecord, Case, Outcome, Schema, StepId, WordCounts};
use tapedeck_rundir::RunDir;
use tapedeck_slo::{TierReport, Verdict};
use tapedeck_wer::BootstrapSettings;

use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::Point;
use crate::progress::Observer;
use crate::steps::Steps;
use crate::workload::Workload;
use crate::world::World;
use crate::{environment, prior_results};

pub use rise::Heard;

/// Plays the labelled tape alone, then among the streams of each load.
///
/// # Errors
/// [`CaseError::Missing`] where N* is not known, a labelled tape without words, and whatever keeps a point from being
/// played.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
    n_star: Option<NStar>,
) -> Result<QualityAnswer, CaseError> {
    let n_star = prior_results::n_star(dir, n_star)?;
    let labelled = world.loaded_tape(Role::Labelled)?;
    if !labelled.tape.calls.iter().any(|c| c.reference.is_some()) {
        let why = localized!(
            "no call has a reference: put a transcripts.tsv with their words beside the recordings",
            "没有一通有参考文本：请在录音旁放置含其文字的 transcripts.tsv"
        );
        return Err(ConfigError::value(key!(labelled.pool), why).into());
    }
    environment::record(world, dir).await?;
    let config = &world.config;
    let mut steps = Steps::new(world, dir, watch);

    let alone = Point {
        workload: Workload::Tape(Role::Labelled),
        labels: vec!["baseline".into()],
        ..Point::new(StepId::new(Case::Quality, 1), config.quality.baseline_loops)
    };
    let mut baseline = None;
    let mut points = Vec::new();
    if steps.play(&alone).await?.is_some() {
        let calls = Labelled::of(steps.dir, &alone.step, None)?;
        let mut loads: Vec<u32> =
            config.quality.shares.iter().map(|&s| n_star.share(s, world.instances.len())).collect();
        loads.dedup();
        for streams in loads {
            let loops = Point::loops(&config.load, streams).max(config.quality.loops);
            let point = Point {
                workload: Workload::Labelled,
                labels: vec!["labelled".into()],
                points_planned: u32::try_from(config.quality.shares.len()).unwrap_or(u32::MAX),
                ..Point::new(StepId::new(Case::Quality, streams), loops)
            };
            let Some(report) = steps.play(&point).await? else { break };
            let loaded = Labelled::of(steps.dir, &point.step, Some(labelled.name()))?;
            points.push(quality_point(world, &report, &calls, &loaded));
        }
        baseline = Some(calls.rates());
    }
    let interrupted = steps.interrupted;
    let clean_up_to = clean_up_to(&points);
    let answer = QualityAnswer {
        schema: Schema::CURRENT,
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
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// The counted calls of the labelled tape in a step, by what is counted in them.
struct Labelled {
    calls: Vec<CallRecord>,
    words: Heard,
    words_finals: Heard,
    chars: Heard,
}

impl Labelled {
    /// Those of the tape of this name where tapes are mixed.
    fn of(dir: &RunDir, step: &str, tape: Option<&str>) -> Result<Self, CaseError> {
        let mut calls = dir.calls_of(step)?;
        calls.retain(|c| c.counted && c.tape.as_deref() == tape);
        let heard = |counts: fn(&CallRecord) -> Option<WordCounts>| Heard::of(&calls, counts);
        let (words, words_finals, chars) =
            (heard(|c| c.words), heard(|c| c.words_finals), heard(|c| c.chars));
        Ok(Self { calls, words, words_finals, chars })
    }

    fn rates(&self) -> Rates {
        Rates { wer: self.words.rate(), wer_finals: self.words_finals.rate(), cer: self.chars.rate() }
    }
}

fn quality_point(world: &World, report: &TierReport, alone: &Labelled, loaded: &Labelled) -> QualityPoint {
    let config = &world.config;
    let how = BootstrapSettings {
        draws: config.quality.draws,
        seed: config.run.seed,
        level: config.slo.confidence,
    };
    let limit = config.slo.quality_points;
    let wer_rise = Heard::rise(&alone.words, &loaded.words, how);
    let cer_rise = Heard::rise(&alone.chars, &loaded.chars, how);
    let rises = || [&wer_rise, &cer_rise].into_iter().flatten();
    let worst = rises().map(|r| r.finding(limit)).max();
    let labelled = (0..report.streams).filter(|&k| Workload::Labelled.role(k) == Role::Labelled).count();
    let tails = loaded.calls.iter().filter(|c| c.outcome.outcome == Outcome::TailLost).count();
    QualityPoint {
        streams: report.streams,
        labelled_streams: u32::try_from(labelled).unwrap_or(u32::MAX),
        verdict: report.verdict,
        rates: loaded.rates(),
        wer_rise_with_lost: Heard::rise_with_lost(&alone.words, &loaded.words, how),
        lost_calls: loaded.words.lost_calls(),
        tails_lost: tails as u64,
        alarm: worst == Some(RiseFinding::Alarm),
        sure: rises().any(|r| r.low > limit),
        open: worst == Some(RiseFinding::Open),
        wer_rise,
        cer_rise,
    }
}

fn decide(points: &[QualityPoint]) -> Decision {
    if points.iter().any(|p| p.alarm) {
        return Decision::No;
    }
    let told = |p: &QualityPoint| {
        !p.open && p.wer_rise.is_some() && !matches!(p.verdict, Verdict::Invalid | Verdict::Unknown)
    };
    match !points.is_empty() && points.iter().all(told) {
        true => Decision::Yes,
        false => Decision::Undecidable,
    }
}

/// The largest point below the first that is not clean, where there is such a one at all.
fn clean_up_to(points: &[QualityPoint]) -> Option<u32> {
    let first = points.iter().filter(|p| p.alarm || p.open).map(|p| p.streams).min()?;
    Some(points.iter().map(|p| p.streams).filter(|&n| n < first).max().unwrap_or(0))
}

fn published(factor: f64, n_star: u32, clean_up_to: Option<u32>) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
    let safe = (factor * f64::from(n_star) + 1e-9).floor().max(0.0) as u32;
    clean_up_to.map_or(safe, |cap| safe.min(cap))
}

#[cfg(test)]
mod tests {
    use tapedeck_answers::Rise;

    use super::*;

    #[test]
    fn the_first_alarm_caps_what_may_be_published() {
        let judged = |streams, alarm, open| QualityPoint {
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
            open,
        };
        let point = |streams, alarm| judged(streams, alarm, false);
        let clean = [point(12, false), point(24, false)];
        assert_eq!((decide(&clean), clean_up_to(&clean)), (Decision::Yes, None));
        let worse = [point(12, false), point(18, true), point(24, false)];
        assert_eq!((decide(&worse), clean_up_to(&worse)), (Decision::No, Some(12)));
        assert_eq!(clean_up_to(&[point(12, true)]), Some(0));
        // What too few words leave open is neither clean nor an alarm.
        let open = [point(12, false), judged(18, false, true)];
        assert_eq!((decide(&open), clean_up_to(&open)), (Decision::Undecidable, Some(12)));
        assert_eq!(
            (published(0.7, 30, None), published(0.7, 30, Some(12)), published(0.7, 90, None)),
            (21, 12, 63)
        );
        assert_eq!(decide(&[]), Decision::Undecidable);
    }
}
