//! TC-02: what streams cost. Memory without any, and what each one adds to the KV pools.

use std::path::PathBuf;
use std::time::Duration;

use tapedeck_answers::{Decision, FootprintAnswer, InstancePool, Level, NoGpu, TableRow};
use tapedeck_record::{Case, Metric, Sample, SampleBody, Schema, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_sizing::{InstanceSeen, LoadPoint, Seen, Theory, calibrate, kv};
use tapedeck_slo::TierReport;
use tapedeck_stats::Moments;

use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::Point;
use crate::pools::{of_sizing, pools, total_tokens};
use crate::progress::Observer;
use crate::steps::Steps;
use crate::world::World;
use crate::{environment, prior_results};

/// Holds every level for a while and draws the line through what the pools hold.
///
/// # Errors
/// Whatever keeps a level from being played, figures of `[sizing]` that cannot be used.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    watch: &dyn Observer,
) -> Result<FootprintAnswer, CaseError> {
    environment::record(world, dir).await?;
    let pools = pools(world).await;
    let mut steps = Steps::new(world, dir, watch);
    let mut levels = Vec::new();
    for streams in [0].iter().chain(&world.config.footprint.levels) {
        let point = point(world, *streams);
        let Some(report) = steps.play(&point).await? else { break };
        levels.push(level(&report, &steps.dir.series_of(&point.step)?));
    }
    let interrupted = steps.interrupted;
    let answer =
        FootprintAnswer { interrupted, run: dir.path().to_path_buf(), ..answer(world, pools, levels)? };
    if !interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

fn point(world: &World, streams: u32) -> Point {
    let steady_s = world.config.footprint.steady_s;
    let loop_s = world.prepared.audio().as_secs_f64();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a small number"
    )]
    let loops = (steady_s / loop_s).ceil().clamp(1.0, 1e6) as u32;
    Point {
        hold: Duration::try_from_secs_f64(steady_s).unwrap_or_default(),
        points_planned: u32::try_from(world.config.footprint.levels.len()).unwrap_or(u32::MAX),
        labels: vec![if streams == 0 { "no streams".into() } else { "footprint".into() }],
        ..Point::new(StepId::new(Case::Footprint, streams), loops)
    }
}

/// What a level's samples say of its window.
fn level(report: &TierReport, samples: &[Sample]) -> Level {
    let window = || samples.iter().filter(|s| s.at_s >= report.window_from_s && s.at_s <= report.window_to_s);
    let kv: Vec<f64> = window()
        .filter_map(|s| match &s.body {
            SampleBody::Engine(scrape) => scrape.values.get(&Metric::KvPool).copied(),
            _ => None,
        })
        .collect();
    let kv_mean = Moments::of(&kv).map(|m| m.mean);
    Level {
        streams: report.streams,
        verdict: (report.streams > 0).then_some(report.verdict),
        kv_mean,
        n: kv.len() as u64,
        preempt_delta: report.preempt_delta,
        err_streams: report.err_streams,
        vram_used_bytes: memory_used(window()),
        fit: kv_mean.is_some()
            && report.streams > 0
            && report.err_streams == 0
            && report.preempt_delta.is_none_or(|n| n == 0.0),
    }
}

/// Mean memory used over time, summed over the GPUs; each has one name, however many instances share it.
fn memory_used<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let mut by_gpu: std::collections::BTreeMap<&str, Vec<f64>> = std::collections::BTreeMap::new();
    for sample in samples {
        if let SampleBody::Gpu(gpu) = &sample.body
            && let Some(bytes) = gpu.memory_used_bytes
        {
            #[expect(clippy::cast_precision_loss, reason = "bytes of a card are far below 2^53")]
            by_gpu.entry(&sample.source).or_default().push(bytes as f64);
        }
    }
    let means: Option<Vec<f64>> = by_gpu.values().map(|v| Moments::of(v).map(|m| m.mean)).collect();
    means.filter(|m| !m.is_empty()).map(|m| m.iter().sum())
}

fn answer(world: &World, pools: Vec<InstancePool>, levels: Vec<Level>) -> Result<FootprintAnswer, CaseError> {
    let plan = &world.config.sizing;
    let token_bytes = plan.architecture().and_then(|a| a.kv_bytes_per_token()).map_err(of_sizing)?;
    let loaded_tape = world.loaded_tape(Role::A)?;
    let lengths: Vec<f64> = loaded_tape.prepared.calls().iter().map(|c| c.audio().as_secs_f64()).collect();
    let session = plan.session().map_err(of_sizing)?;
    let theory = Theory {
        card: plan.card().map_err(of_sizing)?,
        topology: plan.topology().map_err(of_sizing)?,
        token_bytes,
        tape: kv::tape(&session, token_bytes, &lengths).map_err(of_sizing)?,
    };
    let seen = Seen {
        instances: pools
            .iter()
            .map(|p| InstanceSeen {
                name: p.name.clone(),
                pool_tokens: p.tokens,
                pool_source: p.tokens.map(|_| p.source.clone()),
            })
            .collect(),
        points: levels.iter().filter(|l| l.fit).filter_map(load_point).collect(),
        used_bytes: levels.first().and_then(|l| l.vram_used_bytes),
    };
    let table: Vec<TableRow> = if seen.instances.is_empty() {
        Vec::new()
    } else {
        let rows = calibrate(&theory, &seen).map_err(of_sizing)?.rows;
        rows.into_iter()
            .map(|r| TableRow {
                figure: r.figure.into(),
                unit: r.unit.into(),
                theory: r.theory,
                measured: r.measured,
                low: r.interval.map(|i| i.0),
                high: r.interval.map(|i| i.1),
                n: r.n,
                note: r.note,
            })
            .collect()
    };
    let measured = table.iter().find(|r| r.figure == "stream_tokens").and_then(|r| r.measured);
    #[expect(clippy::cast_precision_loss, reason = "tokens of a few pools are far below 2^53")]
    let streams_by_memory =
        total_tokens(&pools).zip(measured.filter(|m| *m > 0.0)).map(|(total, each)| total as f64 / each);
    let no_gpu = levels.iter().all(|l| l.vram_used_bytes.is_none()).then_some(match world.gpus.is_empty() {
        true => NoGpu::NoSource,
        false => NoGpu::NotTold,
    });
    Ok(FootprintAnswer {
        schema: Schema::CURRENT,
        decision: if measured.is_some() { Decision::Yes } else { Decision::Undecidable },
        plain_difference_bytes: plain_difference(&levels),
        pools,
        levels,
        table,
        token_bytes,
        streams_by_memory,
        no_gpu,
        simulated: world.simulated,
        interrupted: false,
        run: PathBuf::new(),
    })
}

fn load_point(level: &Level) -> Option<LoadPoint> {
    Some(LoadPoint { streams: level.streams.into(), kv_mean: level.kv_mean?, n: level.n })
}

/// (memory at the highest level - memory without streams) / streams.
fn plain_difference(levels: &[Level]) -> Option<f64> {
    let none = levels.iter().find(|l| l.streams == 0)?.vram_used_bytes?;
    let highest = levels.iter().filter(|l| l.streams > 0).max_by_key(|l| l.streams)?;
    Some((highest.vram_used_bytes? - none) / f64::from(highest.streams))
}

#[cfg(test)]
mod tests {
    use tapedeck_record::GpuReading;

    use super::*;

    fn gpu(at_s: f64, id: &str, bytes: u64) -> Sample {
        let reading = GpuReading { memory_used_bytes: Some(bytes), ..GpuReading::default() };
        Sample { at_s, source: id.into(), body: SampleBody::Gpu(reading) }
    }

    fn at(streams: u32, vram_used_bytes: Option<f64>) -> Level {
        Level {
            streams,
            verdict: None,
            kv_mean: None,
            n: 0,
            preempt_delta: None,
            err_streams: 0,
            vram_used_bytes,
            fit: false,
        }
    }

    #[test]
    fn memory_is_averaged_over_time_and_summed_over_cards() {
        let samples = [gpu(0.0, "a", 10), gpu(1.0, "a", 30), gpu(0.0, "b", 5)];
        assert_eq!(memory_used(samples.iter()), Some(25.0));
        assert_eq!(memory_used([].iter()), None);
    }

    #[test]
    fn the_plain_difference_is_from_none_to_the_highest() {
        assert_eq!(
            plain_difference(&[at(0, Some(100.0)), at(8, Some(108.0)), at(4, Some(500.0))]),
            Some(1.0)
        );
        assert_eq!(plain_difference(&[at(0, None), at(8, Some(108.0))]), None);
        assert_eq!(plain_difference(&[at(0, Some(100.0))]), None);
    }
}
