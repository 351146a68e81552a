//! Open arrivals: what callers meet who come when they come.
//!
//! One step per rate. Each draws its timetable from the run's seed, lets the callers come, and holds blocking and
//! waiting against Erlang B and C; the steps go up until the number in the system keeps growing.

pub mod figures;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tapedeck_answers::{ArrivalRate, ArrivalsAnswer};
use tapedeck_config::ConfigError;
use tapedeck_fleet::{DrainRules, drain};
use tapedeck_load::arrivals::{
    Arrived, Caller, Fate, Law, Lengths, Lines, Offer, TimetableError, arrive, timetable,
};
use tapedeck_load::{Control, Deck, Played, shortened};
use tapedeck_record::{
    CallMeta, CallRecord, Case, Interval, Outcome, OutcomeClass, Sample, Schema, SpeechMap, StepId,
};
use tapedeck_rundir::{RunDir, StepWriter};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Bounds, CutShort, TierEvidence, TierReport, judge};
use tokio::sync::{mpsc, watch};

use crate::earlier;
use crate::environment;
use crate::error::CaseError;
use crate::point::{Point, cool_down, facts, note, plan, preflight, sampler};
use crate::progress::{Observer, Phase, Progress};
use crate::pulse::Pulse;
use crate::reel::Role;
use crate::world::{World, seconds};

pub use figures::{Setting, figures};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// One law per step, by ascending rate.
    pub laws: Vec<Law>,
    /// How long the calls are.
    pub lengths: Lengths,
    /// The tape that they are drawn from.
    pub role: Role,
    /// How many at once, and what becomes of the next.
    pub lines: Lines,
    /// Lines of the server, where it is the one that refuses.
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
    let reel = world.reel(asked.role)?;
    let (deck, metas) = match asked.lengths {
        Lengths::Deck => (reel.deck.clone(), reel.tape.calls.iter().map(|c| c.meta.clone()).collect()),
        Lengths::Exponential { mean } => long_call(world, asked.role, mean)?,
    };
    // Every timetable is drawn before the first caller comes: a question that cannot be played costs no time.
    let tables = asked.laws.iter().map(|law| {
        timetable(law, asked.lengths, &deck, asked.calls, asked.warm_up, world.config.run.seed)
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
    for (law, table) in asked.laws.iter().zip(tables) {
        let offer = Offer { table, deck: deck.clone(), lines: asked.lines };
        let id = StepId::new(Case::Arrivals, about_at_once(law, &offer)).with_label(rate_of(law));
        let step = id.to_string();
        let file = format!("arrivals-{step}.json");
        let rate = match dir
            .finished(&step)
            .is_some()
            .then(|| earlier::read_file(dir, &file))
            .transpose()?
            .flatten()
        {
            Some(rate) => rate,
            None => {
                if !answer.rates.is_empty() {
                    cool_down(world, &step, watch).await;
                }
                let Some(rate) = one(world, dir, (&id, law, asked), &offer, &metas, watch).await? else {
                    answer.interrupted = true;
                    break;
                };
                earlier::write_file(dir, &file, &rate)?;
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
        earlier::write(dir, &answer)?;
    }
    Ok(answer)
}

/// `00120.000` for 120 calls an hour: sorts by rate.
fn rate_of(law: &Law) -> String {
    match law {
        Law::Replay { .. } => "-replay".into(),
        law => format!("{:09.3}", law.per_hour().unwrap_or_default()),
    }
}

fn cannot(error: TimetableError) -> CaseError {
    ConfigError::value("arrivals", error.to_string()).into()
}

/// One call, long enough to cut exponential lengths from: the tape's calls one after the other, again and again.
fn long_call(world: &World, role: Role, mean: Duration) -> Result<(Arc<Deck>, Vec<CallMeta>), CaseError> {
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
    let calls = world.reel(role)?.tape;
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
    let deck = Deck::new(&*world.site.dialect, chunk, Duration::ZERO, [(meta.clone(), pcm.freeze())])?;
    Ok((Arc::new(deck), vec![meta]))
}

/// What a step has left so far.
struct Kept<'a> {
    world: &'a World,
    pulse: Pulse<'a>,
    metas: &'a [CallMeta],
    writer: StepWriter,
    rules: Rules,
    calls: Vec<CallRecord>,
    samples: Vec<Sample>,
    errors: u64,
}

impl Kept<'_> {
    fn call(&mut self, played: &Played) -> Result<(), CaseError> {
        let trace = &played.trace;
        let meta = usize::try_from(trace.call).ok().and_then(|i| self.metas.get(i));
        let Some(meta) = meta else { return Ok(()) };
        let spoken = Duration::from_nanos(trace.audio_ns.saturating_sub(trace.tail_silence_ns));
        let record = score(trace, &shortened(meta, spoken), &self.rules, &Words::default());
        self.writer.call(&record, trace)?;
        let refused = record.outcome.outcome == Outcome::RefusedBusy;
        let error = record.class == OutcomeClass::Error && !refused;
        self.errors += u64::from(error && record.counted);
        self.pulse.call(&record, error);
        // A refusal is what is being counted here, not an error of the calls that were taken.
        if !refused {
            self.calls.push(record);
        }
        Ok(())
    }

    fn sample(&mut self, sample: Sample) -> Result<(), CaseError> {
        self.writer.sample(&sample)?;
        self.pulse.sample(&sample, &self.writer);
        self.samples.push(sample);
        Ok(())
    }
}

/// Plays one rate and writes it down; nothing when the user stopped it.
async fn one(
    world: &World,
    dir: &mut RunDir,
    (id, law, asked): (&StepId, &Law, &Asked),
    offer: &Offer,
    metas: &[CallMeta],
    watch: &dyn Observer,
) -> Result<Option<ArrivalRate>, CaseError> {
    let point = Point::new(id.clone(), 1);
    let (step, expected) = (point.step.as_str(), point.streams);
    let table = &offer.table;
    let planned = table.arrivals.iter().filter(|a| a.counted).count() as u64;
    let expected_s = table.to.as_secs_f64() + point_tail_s(offer);
    let at_s = world.now_s();
    watch.on(&Progress::StepBegins { step, streams: expected, counted_calls: planned, expected_s, at_s });
    watch.on(&Progress::Phase { step, phase: Phase::Preflight });
    preflight(world, dir.path(), &point).await?;
    note(world, dir, step, "step_begins", None)?;
    let mut kept = Kept {
        world,
        pulse: Pulse::new(world, step, planned, watch),
        metas,
        writer: dir.begin(id)?,
        rules: Rules::new(world.site.dialect.evidence(), world.config.server.window_ms),
        calls: Vec::new(),
        samples: Vec::new(),
        errors: 0,
    };
    let (stop_sampling, sampling) = watch::channel(false);
    let (sample_out, mut samples) = mpsc::unbounded_channel();
    let sampling = tokio::spawn(sampler(world).run(sampling, sample_out));
    watch.on(&Progress::Phase { step, phase: Phase::Load });
    let ramp_from_s = world.now_s();
    let (arrived, interrupted) = come(world, &point, offer, &mut kept, &mut samples).await?;

    watch.on(&Progress::Phase { step, phase: Phase::Drain });
    let rules = DrainRules { timeout: seconds(world.config.load.drain_s), ..DrainRules::default() };
    let drained = if interrupted {
        None
    } else {
        Some(drain(&*world.connector, &world.instances, rules, |_| {}).await)
    };
    let _ = stop_sampling.send(true);
    while let Some(sample) = samples.recv().await {
        kept.sample(sample)?;
    }
    let sources = sampling.await.unwrap_or_default();

    let window_s = (ramp_from_s + table.from.as_secs_f64(), ramp_from_s + table.to.as_secs_f64());
    let setting = Setting {
        law,
        lengths: asked.lengths,
        lines: asked.lines,
        server_lines: asked.server_lines,
        window_s,
        paused: world.paused,
        seed: world.config.run.seed,
    };
    let figures = figures(&arrived.callers, &setting);
    let bounds = Bounds {
        ramp_from_s,
        window_from_s: window_s.0,
        window_to_s: arrived
            .summary
            .window_to_ns
            .map_or(window_s.1, |ns| Duration::from_nanos(ns).as_secs_f64()),
        drain_to_s: world.now_s(),
    };
    let instances = facts(world, &sources);
    let tape = world.reel(asked.role)?.name().to_string();
    let wake_late_us = kept.writer.wake_late_p99_us().filter(|_| !world.paused);
    let evidence = TierEvidence {
        samples: &kept.samples,
        instances: &instances,
        evidence: world.site.dialect.evidence(),
        window_ms: world.config.server.window_ms,
        tail_silence_ms: world.config.load.tail_silence_ms,
        wake_late_p99_ms: wake_late_us.map(|us| f64::from(us) / 1e3),
        client_drift_ppm: (!world.paused).then(|| kept.writer.drift_ppm()).flatten(),
        drain_s: drained.as_ref().filter(|d| d.drained == Some(true)).map(|d| d.seconds),
        drained: drained.as_ref().and_then(|d| d.drained),
        simulated: world.simulated,
        paused: world.paused,
        open_arrivals: true,
        cut_short: interrupted.then_some(CutShort::Interrupted),
        seed: world.config.run.seed,
        ..TierEvidence::new(expected, &tape, &kept.calls, bounds)
    };
    let kept_evidence = evidence.kept();
    let report = TierReport { labels: vec!["open".into()], ..judge(&evidence, &world.config.slo) };
    dir.write_file(&format!("arrivals-{step}.csv"), table_of(&arrived.callers).as_bytes())?;
    let rate = ArrivalRate {
        step: step.into(),
        failed: kept.errors,
        verdict: report.verdict,
        reasons: report.reasons.clone(),
        throughput_per_h: report.throughput_per_h,
        goodput_per_h: report.goodput_per_h,
        ttft_p95_s: report.ttft().map(|s| s.p95.value),
        final_p95_s: report.final_latency().map(|s| s.p95.value),
        figures,
    };
    dir.commit(kept.writer, report.clone(), kept_evidence, interrupted)?;
    if interrupted {
        return Ok(None);
    }
    watch.on(&Progress::StepDone { step, report: &report, resumed: false });
    Ok(Some(rate))
}

/// Lets the callers come until the last of the counted ones has gone, or the user stops it.
async fn come(
    world: &World,
    point: &Point,
    offer: &Offer,
    kept: &mut Kept<'_>,
    samples: &mut mpsc::UnboundedReceiver<Sample>,
) -> Result<(Arrived, bool), CaseError> {
    let control = Control::new();
    let (out, mut calls) = mpsc::unbounded_channel();
    let arriving = arrive(plan(world, point), offer, world.site.clone(), world.origin, control.clone(), out);
    let (mut arriving, mut interrupt) = (pin!(arriving), pin!(kept.world.until_interrupted()));
    let mut interrupted = false;
    let arrived = loop {
        tokio::select! {
            biased;
            () = &mut interrupt, if !interrupted => {
                interrupted = true;
                control.cut();
            }
            Some(played) = calls.recv() => kept.call(&played)?,
            Some(sample) = samples.recv() => kept.sample(sample)?,
            arrived = &mut arriving => break arrived,
        }
    };
    // What ended in the last instant is still in the channel.
    while let Ok(played) = calls.try_recv() {
        kept.call(&played)?;
    }
    Ok((arrived, interrupted))
}

/// About how many calls there will be at once: traffic and three deviations, or the lines.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a process can open"
)]
fn about_at_once(law: &Law, offer: &Offer) -> u32 {
    let arrivals = &offer.table.arrivals;
    let audio_s: f64 = arrivals.iter().map(|a| a.audio.as_secs_f64()).sum();
    let mean_s = audio_s / f64::from(u32::try_from(arrivals.len()).unwrap_or(u32::MAX)).max(1.0);
    let traffic = law.per_hour().unwrap_or_default() / 3600.0 * mean_s;
    let likely = 3.0f64.mul_add(traffic.sqrt(), traffic).ceil().clamp(1.0, 100_000.0) as u32;
    match offer.lines {
        Lines::Server => likely,
        Lines::Lose(lines) | Lines::Wait(lines) => lines.min(likely).max(1),
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
        let fate = match c.fate {
            Fate::Carried => "carried",
            Fate::Blocked => "blocked",
            Fate::Refused => "refused",
            Fate::Cut => "cut",
        };
        let waited = c.start_ns.map(|start| start.saturating_sub(c.arrived_ns));
        let (planned, arrived) = (s(Some(c.planned_ns)), s(Some(c.arrived_ns)));
        let (start, freed, waited) = (s(c.start_ns), s(c.freed_ns), s(waited));
        let _ = writeln!(csv, "{},{},{planned},{arrived},{start},{freed},{waited},{fate}", c.n, c.counted);
    }
    csv
}
