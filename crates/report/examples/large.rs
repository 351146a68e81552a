//! Makes a run directory of any size, to measure reports on: a ladder of eleven tiers on eight engines with a GPU each.
//!
//! Nothing is played: every call is drawn, scored and judged by the same code as a real one, so the files are those of a
//! real run in every respect but length. The same sizes give the same bytes.
//!
//! `cargo run --release -p tapedeck-report --example large -- /var/tmp/large 1000000 10000000`

#![allow(clippy::print_stdout, reason = "an example shows what it did")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use tapedeck_record::{
    CallMeta, CallRecord, Case, Evidence, FinalKind, GpuReading, Histogram, Interval, Message, MessageKind,
    Metric, Outcome, OutcomeDetail, Sample, SampleBody, Scrape, SpeechMap, StepId, Trace,
};
use tapedeck_rundir::{Event, RunDir, RunInfo, StepWriter};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{
    CacheSetting, Expected, InstanceFacts, Limits, StepBounds, TierEvidence, TtftBasis, capacity, judge,
};
use tapedeck_stats::rng::Draws;

/// Streams of the tiers; the last two are too many.
const TIERS: [u32; 11] = [8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48];
const ENGINES: u32 = 8;
/// A call of ten seconds, answered within two.
const PERIOD_S: u32 = 12;
const SECOND_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let usage = "give a folder, how many calls and how many samples, e.g. /var/tmp/large 1000000 10000000";
    let out = given.next().ok_or(usage)?;
    let calls = given.next().ok_or(usage)?.parse()?;
    let samples = given.next().ok_or(usage)?.parse()?;
    let path = make(Path::new(&out), calls, samples)?;
    println!("{}", path.display());
    Ok(())
}

/// Writes the run; every tier has its share of the samples, and of the calls one that goes with its streams.
pub(crate) fn make(out: &Path, calls: u32, samples: u32) -> Result<std::path::PathBuf, Box<dyn Error>> {
    let limits = Limits { bootstrap_resamples: 50, ttft_basis: TtftBasis::Window, ..Limits::default() };
    let config = "[server]\nwindow_ms = 2000\n\n[slo]\nttft_basis = \"window\"\nbootstrap_resamples = 50\n";
    let info = RunInfo {
        run_id: format!("large-{calls}-{samples}"),
        case: "tc03".into(),
        simulated: true,
        seed: 1,
        ..RunInfo::default()
    };
    let mut dir = RunDir::create(out, &info, config)?;
    let per_stream = calls / TIERS.iter().sum::<u32>();
    let seconds = samples / u32::try_from(TIERS.len())? / (2 * ENGINES + 1);
    let instances: Vec<InstanceFacts> = (1..=ENGINES)
        .map(|i| InstanceFacts {
            name: format!("inst{i}"),
            expected: Expected::ALL,
            prefix_cache: CacheSetting::Off,
            mm_cache: CacheSetting::Off,
        })
        .collect();
    let mut reports = Vec::new();
    let mut from_s = 0.0;
    for streams in TIERS {
        let id = StepId::new(Case::Ladder, streams);
        let mut writer = dir.begin(&id)?;
        let to_s = from_s + f64::from((per_stream * PERIOD_S).max(seconds));
        let calls = play(&mut writer, streams, per_stream, from_s)?;
        let samples = sample(&mut writer, streams, seconds, from_s)?;
        let bounds =
            StepBounds { ramp_from_s: from_s, window_from_s: from_s, window_to_s: to_s, drain_to_s: to_s };
        let evidence = TierEvidence {
            calls_expected: Some(u64::from(streams * per_stream)),
            samples: &samples,
            instances: &instances,
            window_ms: Some(2000),
            wake_late_p99_ms: writer.wake_late_p99_us().map(|us| f64::from(us) / 1e3),
            client_cpu_share: Some(0.1),
            drain_s: Some(2.0),
            drained: Some(true),
            simulated: true,
            ..TierEvidence::new(streams, "tape-a", &calls, bounds)
        };
        let report = judge(&evidence, &limits);
        println!("{id}: {} calls, {} samples, {:?}", calls.len(), samples.len(), report.verdict);
        dir.event(&Event { at_s: to_s, step: Some(id.to_string()), what: "drained".into(), detail: None })?;
        dir.commit(writer, report.clone(), evidence.kept(), false)?;
        reports.push(report);
        from_s = to_s + 60.0;
    }
    dir.write_file("capacity.json", &serde_json::to_vec(&capacity(&reports, &limits))?)?;
    dir.write_file("environment.toml", b"[server]\nevidence = \"position\"\n")?;
    Ok(dir.path().to_path_buf())
}

fn meta(call: u32) -> CallMeta {
    CallMeta {
        index: call,
        id: format!("call{call}"),
        duration_ms: 10_000,
        bucket_s: 10,
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(vec![Interval { start_ms: 500, end_ms: 9_500 }]),
    }
}

/// Every call of a tier, in the order of its ends.
fn play(
    writer: &mut StepWriter,
    streams: u32,
    per_stream: u32,
    from_s: f64,
) -> Result<Vec<CallRecord>, Box<dyn Error>> {
    let rules = Rules::new(Evidence::Position, Some(2000));
    let mut draws = Draws::new(1, u64::from(streams));
    let from_ns = ns(from_s);
    let mut all = Vec::new();
    for seq in 0..per_stream {
        for stream in 0..streams {
            // About 17 ms a stream, with a long tail.
            let late = f64::from(streams) * 0.017 * (0.35 * draws.normal()).exp();
            let stagger_ns = u64::from(stream) * SECOND_NS / 100;
            let trace = trace(stream, seq, from_ns + stagger_ns, ns(late.min(1.6)));
            let call = score(&trace, &meta(trace.call), &rules, &Words::default());
            writer.call(&call, &trace)?;
            all.push(call);
        }
    }
    Ok(all)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run, above 0")]
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// A call whose windows of two seconds are each answered after `late_ns`.
fn trace(stream: u32, seq: u32, from_ns: u64, late_ns: u64) -> Trace {
    let c1_ns = from_ns + u64::from(seq * PERIOD_S) * SECOND_NS;
    let message = |window: u32| Message {
        at_ns: c1_ns + u64::from(window + 1) * 2 * SECOND_NS + late_ns,
        kind: if window == 4 { MessageKind::End } else { MessageKind::Partial },
        bytes: 40,
        chars: 10,
        revised: 0,
        position_ms: Some((window + 1) * 2000),
        window: None,
    };
    let final_ns = c1_ns + 10 * SECOND_NS + late_ns;
    Trace {
        stream,
        seq,
        call: (stream + seq) % 9,
        tape: None,
        counted: true,
        c0_ns: c1_ns,
        c1_ns: Some(c1_ns),
        chunk_ns: SECOND_NS,
        audio_ns: 10 * SECOND_NS,
        tail_silence_ns: 0,
        wake_late_us: vec![100; 10],
        blocked_us: vec![0; 10],
        end_ns: Some(c1_ns + 10 * SECOND_NS),
        messages: (0..5).map(message).collect(),
        final_ns: Some(final_ns),
        final_kind: Some(FinalKind::Marker),
        kept_from_ns: None,
        done_ns: final_ns,
        rtt_us: vec![200],
        instance: Some(format!("inst{}", stream % ENGINES + 1)),
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Ok),
    }
}

/// Every sample of a tier: each second a page of every engine, a reading of every GPU, and ourselves.
fn sample(
    writer: &mut StepWriter,
    streams: u32,
    seconds: u32,
    from_s: f64,
) -> Result<Vec<Sample>, Box<dyn Error>> {
    let mut draws = Draws::new(2, u64::from(streams));
    let mut all = Vec::new();
    for second in 0..seconds {
        for engine in 1..=ENGINES {
            all.push((format!("inst{engine}"), SampleBody::Engine(page(streams, second, &mut draws))));
            all.push((format!("GPU-{engine:08}"), SampleBody::Gpu(gpu(streams, &mut draws))));
        }
        let ours = SampleBody::Client { cpu_share: Some(0.1), rss_bytes: Some(60_000_000) };
        all.push(("client".into(), ours));
    }
    let at_s = |n: usize| u32::try_from(n).map(|n| from_s + f64::from(n / (2 * ENGINES + 1)));
    let mut samples = Vec::with_capacity(all.len());
    for (n, (source, body)) in all.into_iter().enumerate() {
        let sample = Sample { at_s: at_s(n)?, source, body };
        writer.sample(&sample)?;
        samples.push(sample);
    }
    Ok(samples)
}

fn page(streams: u32, second: u32, draws: &mut Draws) -> Scrape {
    let done = f64::from(streams / ENGINES * second / PERIOD_S);
    let busy = f64::from(streams / ENGINES);
    let values = [
        (Metric::KvPool, (f64::from(streams) / 80.0 + 0.02 * draws.unit()).min(0.9)),
        (Metric::Preemptions, 0.0),
        (Metric::Running, (busy * draws.unit()).round()),
        (Metric::Waiting, busy),
        (Metric::WaitingCapacity, 0.0),
        (Metric::PrefixQueries, 0.0),
        (Metric::PrefixHits, 0.0),
        (Metric::MmQueries, 0.0),
        (Metric::MmHits, 0.0),
        (Metric::PromptTokens, done * 900.0),
        (Metric::GenerationTokens, done * 120.0),
        (Metric::Finished, done),
    ];
    // As many buckets as vLLM's first text has; most calls fall into a few of them.
    let bounds = [
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
        40.0, 80.0, 160.0, 640.0, 2560.0,
    ];
    let late = f64::from(streams) * 0.017;
    let counts =
        bounds.iter().map(|b: &f64| (done * (b / late).min(1.0)).floor()).chain([done]).collect::<Vec<_>>();
    let histogram =
        |sum: f64| Histogram { bounds: bounds.to_vec(), counts: counts.clone(), sum: Some(sum * done) };
    let histograms = [("ttft".to_string(), histogram(late)), ("queue".to_string(), histogram(0.01))].into();
    Scrape { values: values.into(), histograms }
}

fn gpu(streams: u32, draws: &mut Draws) -> GpuReading {
    GpuReading {
        utilisation: Some((f64::from(streams) / 50.0).min(1.0)),
        memory_used_bytes: Some(70_000_000_000),
        memory_total_bytes: Some(80_000_000_000),
        power_w: Some(300.0 + (100.0 * draws.unit()).round()),
        temperature_c: Some(60.0),
        sm_clock_mhz: Some(1755.0),
        throttle: Vec::new(),
    }
}
