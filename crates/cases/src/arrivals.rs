//! Open arrivals: what callers meet who come when they come.
//!
//! One step per rate. Each draws its schedule from the run's seed, lets the callers come, and holds blocking and
//! waiting against Erlang B and C; the steps go up until the number in the system keeps growing.

pub mod figures;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tapedeck_answers::{ArrivalRate, ArrivalsAnswer};
use tapedeck_config::ConfigError;
use tapedeck_load::arrivals::{
    ArrivalProcess, ArrivalScheduleError, Arrived, Caller, Disposition, Lengths, Offer, Trunks, arrive,
    schedule,
};
use tapedeck_load::{CallResult, PreparedCalls, shortened};
use tapedeck_record::{CallMeta, Case, Interval, Outcome, Schema, SpeechMap, StepId};
use tapedeck_rundir::RunDir;
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::CutShort;

use crate::environment;
use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::point::{Point, plan};
use crate::prior_results;
use crate::progress::Observer;
use crate::runner::{self, Director, LoadModel, Step, StepAccumulator};
use crate::steps::Steps;
use crate::world::World;

pub use figures::{Setting, figures};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// One law per step, by ascending rate.
    pub laws: Vec<ArrivalProcess>,
    /// How long the calls are.
    pub lengths: Lengths,
    /// The tape that they are drawn from.
    pub role: Role,
    /// How many at once, and what becomes of the next.
    pub lines: Trunks,
    /// Trunks of the server, where it is the one that refuses.
    pub server_lines: Option<u32>,
    /// Callers that count in each step.
    pub calls: u32,
    /// Arrivals before those.
    pub warm_up: Duration,
    /// Largest share of blocked callers that is still a yes.
    pub max_blocking: Option<f64>,
}

/// Lets callers come, rate by rate, until one is unstable.
///
/// # Errors
/// A question that cannot be played, a failed preflight, a run directory that cannot be written.
pub async fn run(
    world: &World,
    dir: &mut RunDir,
    asked: &Asked,
    watch: &dyn Observer,
) -> Result<ArrivalsAnswer, CaseError> {
    environment::record(world, dir).await?;
    let loaded_tape = world.loaded_tape(asked.role)?;
    let (prepared, metas) = match asked.lengths {
        Lengths::PreparedCalls => {
            (loaded_tape.prepared.clone(), loaded_tape.tape.calls.iter().map(|c| c.meta.clone()).collect())
        }
        Lengths::Exponential { mean } => long_call(world, asked.role, mean)?,
    };
    // Every schedule is drawn before the first caller comes: a question that cannot be played costs no time.
    let tables = asked.laws.iter().map(|law| {
        schedule(law, asked.lengths, &prepared, asked.calls, asked.warm_up, world.config.run.seed)
            .map_err(cannot)
    });
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let mut answer = ArrivalsAnswer {
        schema: Schema::CURRENT,
        rates: Vec::new(),
        unstable_from_per_h: None,
        max_blocking: asked.max_blocking,
        run: dir.path().to_path_buf(),
        simulated: world.simulated,
        interrupted: false,
    };
    let mut steps = Steps::new(world, dir, watch);
    for (law, table) in asked.laws.iter().zip(tables) {
        let offer = Offer { table, prepared: prepared.clone(), lines: asked.lines };
        let id = StepId::new(Case::Arrivals, about_at_once(law, &offer)).with_label(rate_of(law));
        let step = id.to_string();
        let earlier = match steps.dir.finished(&step) {
            Some(_) => steps.dir.read_json(&answer_file(&step))?,
            None => None,
        };
        let rate = match earlier {
            Some(rate) => {
                steps.taken_over();
                rate
            }
            None => {
                let once = async |world: &World, dir: &mut RunDir, watch: &dyn Observer| {
                    one(world, dir, (&id, law, asked), &offer, &metas, watch).await
                };
                let Some(rate) = steps.until_whole(&step, once).await?.flatten() else {
                    answer.interrupted = true;
                    break;
                };
                rate
            }
        };
        let unstable = rate.figures.growth.is_some_and(|g| g.unstable);
        let per_hour = rate.figures.per_hour;
        answer.rates.push(rate);
        if unstable {
            answer.unstable_from_per_h = Some(per_hour);
            break;
        }
    }
    if !answer.interrupted {
        prior_results::write(dir, &answer)?;
    }
    Ok(answer)
}

/// The file that a step's answer is kept in.
fn answer_file(step: &str) -> String {
    format!("arrivals-{step}.json")
}

/// `00120.000` for 120 calls an hour: sorts by rate.
fn rate_of(law: &ArrivalProcess) -> String {
    match law {
        ArrivalProcess::Replay { .. } => "-replay".into(),
        law => format!("{:09.3}", law.per_hour().unwrap_or_default()),
    }
}

fn cannot(error: ArrivalScheduleError) -> CaseError {
    ConfigError::value("arrivals", error.to_string()).into()
}

/// One call, long enough to cut exponential lengths from: the tape's calls one after the other, again and again.
fn long_call(
    world: &World,
    role: Role,
    mean: Duration,
) -> Result<(Arc<PreparedCalls>, Vec<CallMeta>), CaseError> {
    /// Lengths beyond this many means come once in 160,000 calls.
    const MEANS: u32 = 12;
    /// 4 hours of audio take 460 MB.
    const LONGEST: Duration = Duration::from_secs(4 * 3600);
    let length = mean.saturating_mul(MEANS);
    let refuse = |why: String| CaseError::from(ConfigError::value("arrivals", why));
    if mean.is_zero() || length > LONGEST {
        return Err(refuse(format!(
            "calls of {mean:?} on average: give more than 0 and at most {:?}",
            LONGEST / MEANS
        )));
    }
    let calls = world.loaded_tape(role)?.tape;
    let length_ms = u32::try_from(length.as_millis()).unwrap_or(u32::MAX);
    let mut pcm = BytesMut::new();
    let (mut at_ms, mut speech) = (0_u32, Vec::new());
    while at_ms < length_ms {
        let before = at_ms;
        for call in &calls.calls {
            // Whole milliseconds, so that the speech stays where it is.
            let ms = call.meta.duration_ms;
            let bytes = usize::try_from(ms).unwrap_or(usize::MAX).saturating_mul(32).min(call.pcm.len());
            pcm.extend_from_slice(call.pcm.get(..bytes).unwrap_or_default());
            let moved = |i: &Interval| Interval { start_ms: i.start_ms + at_ms, end_ms: i.end_ms + at_ms };
            speech.extend(call.meta.speech.intervals().iter().map(moved));
            at_ms += ms;
            if at_ms >= length_ms {
                break;
            }
        }
        if at_ms == before {
            return Err(refuse("the tape holds no audio to cut calls from".into()));
        }
    }
    let meta = CallMeta {
        index: 0,
        id: "cut".into(),
        duration_ms: at_ms,
        bucket_s: u32::try_from(mean.as_secs()).unwrap_or(u32::MAX),
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(speech),
    };
    let load = &world.config.load;
    let chunk = Duration::from_millis(load.chunk_ms.into());
    let prepared =
        PreparedCalls::new(&*world.target.dialect, chunk, Duration::ZERO, [(meta.clone(), pcm.freeze())])?;
    Ok((Arc::new(prepared), vec![meta]))
}

/// Plays one rate and writes it down; what it answers is missing where the load was cut.
async fn one(
    world: &World,
    dir: &mut RunDir,
    (id, law, asked): (&StepId, &ArrivalProcess, &Asked),
    offer: &Offer,
    metas: &[CallMeta],
    watch: &dyn Observer,
) -> Result<(Option<CutShort>, Option<ArrivalRate>), CaseError> {
    let point = Point { labels: vec!["open".into()], watch_vram: false, ..Point::new(id.clone(), 1) };
    let (step, table) = (point.step.as_str(), &offer.table);
    let described = Step {
        point: &point,
        model: LoadModel::Open,
        streams: point.streams,
        tape: world.loaded_tape(asked.role)?.name().to_string(),
        planned: table.arrivals.iter().filter(|a| a.counted).count() as u64,
        expected_s: table.to.as_secs_f64() + point_tail_s(offer),
    };
    let rules = Rules::new(world.target.dialect.evidence(), world.config.server.window_ms);
    let play = async |control, out| {
        let plan = plan(world, &point);
        let Arrived { mut summary, callers } =
            arrive(plan, offer, world.target.clone(), world.origin, control, out).await;
        // The schedule says when the window opens, and when it closes at the earliest.
        let at = |d: Duration| summary.start_ns + u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let (from_ns, to_ns) = (at(table.from), at(table.to));
        summary.window_from_ns = Some(from_ns);
        summary.window_to_ns = summary.window_to_ns.or(Some(to_ns));
        (summary, Callers { all: callers, window_ns: (from_ns, to_ns) })
    };
    let take =
        |measured: &mut StepAccumulator<'_>, played: &CallResult| take(&rules, metas, measured, played);
    let direct = async |director: &mut Director<'_>| director.until_end().await;
    let finished = runner::run(world, dir, &described, play, take, direct, watch).await?;

    let rate = (!finished.partial()).then(|| {
        let Callers { all, window_ns: (from_ns, to_ns) } = &finished.left;
        let s = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let setting = Setting {
            law,
            lengths: asked.lengths,
            lines: asked.lines,
            server_lines: asked.server_lines,
            window_s: (s(*from_ns), s(*to_ns)),
            paused: world.paused,
            seed: world.config.run.seed,
        };
        let report = &finished.report;
        ArrivalRate {
            step: step.into(),
            failed: finished.errors,
            verdict: report.verdict,
            reasons: report.reasons.clone(),
            throughput_per_h: report.throughput_per_h,
            goodput_per_h: report.goodput_per_h,
            ttft_p95_s: report.ttft().map(|s| s.p95.value),
            final_p95_s: report.final_latency().map(|s| s.p95.value),
            figures: figures(all, &setting),
        }
    });
    dir.write_file(&format!("arrivals-{step}.csv"), table_of(&finished.left.all).as_bytes())?;
    if let Some(rate) = &rate {
        dir.write_json(&answer_file(step), rate)?;
    }
    let (cut, _) = finished.commit(world, dir, watch).await?;
    Ok((cut, rate))
}

/// Everybody who came.
struct Callers {
    all: Vec<Caller>,
    /// The window of the schedule, on the run's clock.
    window_ns: (u64, u64),
}

/// Scores a call; a refusal is what is being counted here, not an error of the calls that were taken.
fn take(
    rules: &Rules,
    metas: &[CallMeta],
    measured: &mut StepAccumulator<'_>,
    played: &CallResult,
) -> Result<(), CaseError> {
    let trace = &played.trace;
    let Some(meta) = usize::try_from(trace.call).ok().and_then(|i| metas.get(i)) else { return Ok(()) };
    let spoken = Duration::from_nanos(trace.audio_ns.saturating_sub(trace.tail_silence_ns));
    let record = score(trace, &shortened(meta, spoken), rules, &Words::default());
    match record.outcome.outcome {
        Outcome::RefusedBusy => measured.refused(&record, played),
        _ => measured.judged(record, played),
    }
}

/// About how many calls there will be at once: traffic and three deviations, or the lines.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a process can open"
)]
fn about_at_once(law: &ArrivalProcess, offer: &Offer) -> u32 {
    let arrivals = &offer.table.arrivals;
    let audio_s: f64 = arrivals.iter().map(|a| a.audio.as_secs_f64()).sum();
    let mean_s = audio_s / f64::from(u32::try_from(arrivals.len()).unwrap_or(u32::MAX)).max(1.0);
    let traffic = law.per_hour().unwrap_or_default() / 3600.0 * mean_s;
    let likely = 3.0f64.mul_add(traffic.sqrt(), traffic).ceil().clamp(1.0, 100_000.0) as u32;
    match offer.lines {
        Trunks::Server => likely,
        Trunks::Lose(lines) | Trunks::Wait(lines) => lines.min(likely).max(1),
    }
}

/// About how long the last counted call goes on after its arrival, seconds.
fn point_tail_s(offer: &Offer) -> f64 {
    let counted = offer.table.arrivals.iter().filter(|a| a.counted);
    counted.map(|a| (a.at + a.audio).as_secs_f64()).fold(0.0, f64::max) - offer.table.to.as_secs_f64()
}

/// One row per caller, whatever became of it; an unknown instant is an empty field.
fn table_of(callers: &[Caller]) -> String {
    let mut csv = String::from("caller,counted,planned_s,arrived_s,start_s,freed_s,waited_s,fate\n");
    let s = |ns: Option<u64>| {
        ns.map_or_else(String::new, |ns| format!("{:.6}", Duration::from_nanos(ns).as_secs_f64()))
    };
    for c in callers {
        let disposition = match c.disposition {
            Disposition::Carried => "carried",
            Disposition::Blocked => "blocked",
            Disposition::Refused => "refused",
            Disposition::Cut => "cut",
        };
        let waited = c.start_ns.map(|start| start.saturating_sub(c.arrived_ns));
        let (planned, arrived) = (s(Some(c.planned_ns)), s(Some(c.arrived_ns)));
        let (start, freed, waited) = (s(c.start_ns), s(c.freed_ns), s(waited));
        let _ =
            writeln!(csv, "{},{},{planned},{arrived},{start},{freed},{waited},{disposition}", c.n, c.counted);
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_sort_by_their_rate() {
        let steps = [9.5, 120.0, 1000.0].map(|per_hour| rate_of(&ArrivalProcess::Uniform { per_hour }));
        assert_eq!(steps, ["00009.500", "00120.000", "01000.000"]);
        assert_eq!(rate_of(&ArrivalProcess::Replay { starts: Vec::new() }), "-replay");
    }

    #[test]
    fn whoever_got_no_line_has_empty_fields() {
        let s = 1_000_000_000;
        let caller = |n, start_ns, freed_ns, disposition| Caller {
            n,
            counted: n > 0,
            planned_ns: s,
            arrived_ns: s + s / 2,
            start_ns,
            freed_ns,
            disposition,
        };
        let table = table_of(&[
            caller(0, None, None, Disposition::Blocked),
            caller(1, Some(2 * s), Some(32 * s), Disposition::Carried),
        ]);
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(
            rows,
            [
                "0,false,1.000000,1.500000,,,,blocked",
                "1,true,1.000000,1.500000,2.000000,32.000000,0.500000,carried"
            ]
        );
    }
}
