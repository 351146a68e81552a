//! The ladder of a run as the what-if model reads it.

use std::path::Path;

use tapedeck_config::key;
use tapedeck_engine_model::reference_capacity::{Balance, ReferenceRules, TapeCall};
use tapedeck_engine_model::{Params, SessionModel, StepCost};
use tapedeck_l10n::localized;
use tapedeck_record::CallFigure;
use tapedeck_rehearsal::Settings;
use tapedeck_rundir::ladder_of;
use tapedeck_sizing::whatif::{Known, Ladder, TierSeen};
use tapedeck_sizing::{Session, SizingPlan};
use tapedeck_slo::{Summary, TierReport};
use tapedeck_tape::Manifest;

use crate::error::{RunError, unusable};
use crate::run::Run;

/// What a run does not tell of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// Manifest of the tape, where the config's path no longer leads to it.
    pub manifest: Option<&'a Path>,
    /// The engine encodes all audio of a call anew in each window.
    pub rolling: bool,
    /// The balancer deals connections in turn, not to the least busy instance.
    pub round_robin: bool,
}

/// The measured ladder of a run: its own tiers, not those of other cases in the same run.
///
/// # Errors
/// A tape that cannot be read, a plan without a known session, an inference window that nobody knows.
pub fn ladder(plan: &SizingPlan, told: &Told<'_>, run: &Run) -> Result<Ladder, RunError> {
    let manifest = run.manifest(told.manifest)?;
    let mut reports: Vec<&TierReport> =
        ladder_of(&run.steps.iter().collect::<Vec<_>>()).into_iter().map(|s| &s.report).collect();
    reports.sort_by_key(|r| r.streams);
    let (load, slo) = (&run.config.load, &run.config.slo);
    let rules = ReferenceRules {
        ramp_ms: ms(load.ramp_s),
        warm_up_ms: ms(load.warm_up_s),
        loops: load.loops,
        loops_few: load.loops_small,
        few_streams: load.small_up_to,
        chunk_ms: load.chunk_ms,
        balance: if told.round_robin { Balance::RoundRobin } else { Balance::LeastConnections },
        step: 0,
        max_streams: reports.last().map_or(90, |r| r.streams),
        ttft_ms: ms(slo.ttft_p95_s),
        rtf: slo.rtf_p95,
        final_ms: ms(slo.final_p95_s),
        kv: slo.kv_pool_p95,
    };
    Ok(Ladder {
        tiers: reports.iter().map(|report| tier(report)).collect(),
        tape: calls(&manifest),
        rules,
        instances: run.instances(),
        known: Known { params: known(plan, told.rolling, run)?, pool_tokens: run.pool_tokens() },
        n_star: run.capacity.as_ref().and_then(|c| c.n_star),
        age_slope_ms_per_min: reports.first().and_then(|r| r.age_slope_ms_per_min),
    })
}

/// What is known of the engine: of a built-in one its settings (less what they say of costs), of a real one what the
/// session preset and the run's environment tell.
fn known(plan: &SizingPlan, rolling_too: bool, run: &Run) -> Result<Params, RunError> {
    let mut params = if run.info.simulated {
        let own = Settings::of(&run.config)?.engine;
        Params { step: StepCost::default(), intake_ns: Params::default().intake_ns, ..own }
    } else {
        let session: Session = plan.session()?;
        let rolling = session.model == tapedeck_sizing::SessionModel::Rolling;
        Params {
            session: if rolling { SessionModel::Rolling } else { SessionModel::Resident },
            audio_tokens_per_s_milli: milli(session.audio_tokens_per_s),
            text_tokens_per_s_milli: milli(session.text_tokens_per_s),
            template_tokens: if rolling { 30 } else { 10 },
            ..Params::default()
        }
    };
    if rolling_too {
        params.session = SessionModel::Rolling;
    }
    params.window_ms = run.window_ms().ok_or_else(|| {
        let (run, key) = (run.path.display(), key!(server.window_ms));
        unusable(localized!(
            "{run}: the run knows no inference window ({key}), and the model's law needs one",
            "{run}：该次运行没有推理窗口（{key}），而模型需要它"
        ))
    })?;
    params.block_tokens = run.block_tokens().unwrap_or(params.block_tokens);
    params.max_model_len = run.max_model_len().unwrap_or(params.max_model_len);
    Ok(params)
}

fn tier(report: &TierReport) -> TierSeen {
    let summaries =
        [report.summary(CallFigure::TtftWindowS), report.summary(CallFigure::Rtf), report.final_latency()];
    let mut figures = [None; 6];
    let mut relative_se = [None; 6];
    for (at, summary) in summaries.into_iter().enumerate() {
        let Some(Summary { p50, p95, .. }) = summary else { continue };
        for (place, estimate) in [(2 * at, p50), (2 * at + 1, p95)] {
            // Half of a 95 % interval is 1.96 standard errors.
            let se = estimate.low.zip(estimate.high).map(|(low, high)| (high - low) / 3.92 / estimate.value);
            if let (Some(figure), Some(relative)) = (figures.get_mut(place), relative_se.get_mut(place)) {
                *figure = Some(estimate.value).filter(|v| *v > 0.0);
                *relative = se;
            }
        }
    }
    TierSeen {
        streams: report.streams,
        figures,
        relative_se,
        kv_p95: report.kv_pool_p95,
        preemptions: report.preempt_delta,
        broken: report.cut_short.is_some() || report.err_streams > 0,
    }
}

/// Calls of a tape as the model plays them.
#[must_use]
pub fn calls(manifest: &Manifest) -> Vec<TapeCall> {
    let speech = |call: &tapedeck_tape::ManifestCall| {
        call.speech.intervals().iter().map(|i| (i.start_ms, i.end_ms)).collect()
    };
    manifest
        .calls
        .iter()
        .map(|call| TapeCall { duration_ms: call.duration_ms, speech: speech(call) })
        .collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
/// Whole milliseconds, limited to what fits.
#[must_use]
pub fn ms(seconds: f64) -> u32 {
    (seconds * 1e3).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

fn milli(tokens_per_s: f64) -> u32 {
    ms(tokens_per_s)
}
