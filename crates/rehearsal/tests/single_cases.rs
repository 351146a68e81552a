//! The cases around the ladder against the built-in engine: each finds the fault it exists for, and stays quiet
//! without it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use common::{fixtures, tenth};
use tapedeck_answers::{
    AnswerFile, Decision, FootprintAnswer, LadderAnswer, Level, LongCallsAnswer, NStar, QualityAnswer,
    RepeatabilityAnswer, SingleStreamAnswer,
};
use tapedeck_cases::{
    CaseError, Quiet, Role, World, footprint, ladder, long_calls, quality, repeatability, single_stream,
};
use tapedeck_config::{Config, LadderContent, Pace};
use tapedeck_l10n::Localize;
use tapedeck_protocol::{Dialect, Frame, Ready, Session, SessionStart, Upgrade};
use tapedeck_record::Evidence;
use tapedeck_rehearsal::{run, world_with};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::{CapacityState, TtftBasis, Verdict};
use tapedeck_transport::{BoxFuture, ConnectError, Connector, Endpoint, Io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

/// The tenth-length demo with all its tapes, and an engine with these settings.
fn config(engine: &str) -> Config {
    let mut config = tenth(1, &[3, 6, 12]);
    config.tape_b.manifest = fixtures().join("tapes/tape-b-tenth.json");
    config.tape_b.pool = fixtures().join("pool-longer-tenth");
    config.labelled.manifest = fixtures().join("tapes/labelled-tenth.json");
    config.labelled.pool = fixtures().join("pool-longer-tenth");
    config.pool.folder = fixtures().join("pool-longer-tenth");
    config.rehearsal = toml::from_str(engine).unwrap();
    config
}

/// Plays a case in the run `out/run`, which is made where it is not there.
fn play<A>(
    config: Config,
    needs: &[Role],
    case: &str,
    out: &Path,
    script: impl AsyncFnOnce(&World, &mut RunDir) -> A,
) -> A {
    play_in(config, needs, case, out, async |world, dir| script(world, dir).await)
}

/// The same with a world that the script may change first.
fn play_in<A>(
    config: Config,
    needs: &[Role],
    case: &str,
    out: &Path,
    script: impl AsyncFnOnce(&mut World, &mut RunDir) -> A,
) -> A {
    run(async move {
        let (_keep, interrupt) = watch::channel(false);
        let mut world = world_with(config, needs, interrupt).unwrap();
        let info = RunInfo {
            run_id: "run".into(),
            case: case.into(),
            simulated: true,
            seed: world.config.run.seed,
            tapes: world.tape_digests(),
            ..RunInfo::default()
        };
        let toml = world.config.to_toml().unwrap();
        let path = out.join("run");
        let mut dir = if path.exists() {
            let config = world.config.clone();
            RunDir::join(&path, &info, &toml, |was| config.differs(was)).unwrap()
        } else {
            RunDir::create(out, &info, &toml).unwrap()
        };
        world.resume_clock(&dir).await;
        script(&mut world, &mut dir).await
    })
    .unwrap()
}

fn single(config: Config) -> SingleStreamAnswer {
    let out = tempfile::tempdir().unwrap();
    play(config, &[], "tc01", out.path(), async |w, d| single_stream::run(w, d, &Quiet).await.unwrap())
}

#[test]
fn one_stream_on_a_healthy_engine_is_within_every_limit() {
    let answer = single(config(""));
    assert_eq!(answer.decision, Decision::Yes, "{:?}", answer.reasons);
    // Three lengths, three passes; the first pass is the cold one.
    assert_eq!(answer.calls.len(), 9);
    assert_eq!(answer.calls.iter().filter(|c| c.cold).count(), 3);
    let lengths: Vec<f64> = answer.calls[..3].iter().map(|c| c.audio_s.round()).collect();
    assert!(lengths.windows(2).all(|w| w[0] < w[1]), "{lengths:?}");
    assert_eq!(answer.warm.rtf.unwrap().n, 6);
    assert!(answer.warm.words.unwrap().ref_tokens > 50);
    assert!(answer.simulated && answer.violations == 0);
    let window = answer.floors.iter().find(|f| f.basis == TtftBasis::Window).unwrap();
    assert!(window.reachable && window.max_s.abs() < 1e-6);
}

#[test]
fn a_basis_that_no_server_can_meet_is_told_apart_from_a_slow_one() {
    let mut from_the_wire = config("");
    from_the_wire.slo.ttft_basis = TtftBasis::Wire;
    let answer = single(from_the_wire);
    assert_eq!(answer.decision, Decision::No);
    assert!(
        answer.reasons.iter().any(|r| r.to_string().contains("cannot be met from `wire`")),
        "{:?}",
        answer.reasons
    );

    let slow = single(config("[engine.step]\nbase_ns = 400000000\n"));
    assert_eq!(slow.decision, Decision::No);
    assert!(!slow.reasons.iter().any(|r| r.to_string().contains("cannot be met")), "{:?}", slow.reasons);
}

#[test]
fn one_stream_shows_lost_tails_and_mute_sessions() {
    // A tail that is never said is no protocol error: the words show it.
    let wer = |engine: &str| single(config(engine)).warm.words.unwrap().rate;
    let (healthy, lost) = (wer(""), wer("[engine.faults]\ntail_lost_share = 1.0\n"));
    assert!(lost > healthy + 0.05, "{healthy} {lost}");
    let no_response = single(config("[engine.faults]\nmute_share = 1.0\n"));
    assert_eq!(no_response.decision, Decision::No);
    assert!(no_response.reasons.iter().any(|r| r.to_string().contains("mute")), "{:?}", no_response.reasons);
}

fn footprint(engine: &str) -> FootprintAnswer {
    let mut config = config(engine);
    config.footprint.levels = vec![3, 6, 12];
    config.footprint.steady_s = 90.0;
    config.sizing.session = "vllm-realtime".into();
    config.sizing.window_s = Some(2.0);
    let out = tempfile::tempdir().unwrap();
    play(config, &[], "tc02", out.path(), async |w, d| footprint::run(w, d, &Quiet).await.unwrap())
}

#[test]
fn what_a_stream_costs_is_found_on_the_line() {
    let answer = footprint("");
    assert_eq!(answer.decision, Decision::Yes, "{answer:?}");
    assert_eq!(answer.levels.iter().map(|l| l.streams).collect::<Vec<_>>(), [0, 3, 6, 12]);
    assert!(answer.levels[1..].iter().all(|l| l.fit), "{:?}", answer.levels);
    assert_eq!(answer.pools.len(), 3);
    assert!(answer.pools.iter().all(|p| p.tokens == Some(5901 * 16)), "{:?}", answer.pools);
    let row = answer.row("stream_tokens").unwrap();
    let (measured, theory) = (row.measured.unwrap(), row.theory.unwrap());
    assert!((measured / theory - 1.0).abs() < 0.5, "measured {measured}, theory {theory}");
    assert!(row.low.unwrap() < measured && measured < row.high.unwrap());
    // An idle engine holds nothing, so the line begins near nothing.
    assert_eq!(answer.levels[0].kv_mean, Some(0.0));
}

#[test]
fn a_level_with_preemptions_says_nothing_of_what_streams_want() {
    let answer = footprint("[engine]\nkv_blocks = 40\n");
    let spoilt = |l: &&Level| l.preempt_delta.is_some_and(|n| n > 0.0);
    assert!(answer.levels.iter().any(|l| spoilt(&l)), "{:?}", answer.levels);
    assert!(answer.levels.iter().filter(spoilt).all(|l| !l.fit));
}

fn long_calls(engine: &str, n_star: u32) -> (LongCallsAnswer, PathBuf, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let mut config = config(engine);
    config.sizing.session = "vllm-realtime".into();
    config.sizing.window_s = Some(2.0);
    let answer = play(config, &[Role::B], "tc03b", out.path(), async |w, d| {
        long_calls::run(w, d, &Quiet, Some(NStar::new(n_star, "the test"))).await.unwrap()
    });
    let run = answer.run.clone();
    (answer, run, out)
}

#[test]
fn a_large_pool_holds_long_calls_too() {
    let (answer, run, _keep) = long_calls("", 12);
    assert_eq!(answer.decision, Decision::Yes, "{}", answer.text());
    assert_eq!(answer.correction, Some(1.0));
    assert_eq!(answer.tiers.iter().map(|t| t.streams).collect::<Vec<_>>(), [6, 12]);
    assert!(answer.predicted.iter().all(|p| p.share.unwrap() < 0.1), "{:?}", answer.predicted);
    let rows = fs::read_to_string(run.join("ladder.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().starts_with("6,tape-b-tenth,"), "{rows}");
    let kept = fs::read_to_string(run.join(LongCallsAnswer::FILE)).unwrap();
    assert!(kept.contains("\"correction\": 1.0"), "{kept}");
}

#[test]
fn a_small_pool_fills_up_with_long_calls_and_the_correction_says_how_far() {
    // 60 blocks of 16 tokens an instance: room for two streams, not for the long calls of four.
    let (answer, _, _keep) = long_calls("[engine]\nkv_blocks = 60\n", 12);
    assert_eq!(answer.decision, Decision::No, "{}", answer.text());
    assert_eq!(answer.capacity.state, CapacityState::Exact, "{:?}", answer.capacity);
    assert!(answer.correction.unwrap() < 1.0);
    assert!(answer.predicted.last().unwrap().share.unwrap() > 0.3, "{:?}", answer.predicted);
}

fn quality(engine: &str) -> QualityAnswer {
    let out = tempfile::tempdir().unwrap();
    let mut config = config(engine);
    // The tape is short: played once, half of its calls have no error to show for the load.
    config.quality.loops = 4;
    play(config, &[Role::Labelled], "tc04", out.path(), async |w, d| {
        quality::run(w, d, &Quiet, Some(NStar::new(24, "the test"))).await.unwrap()
    })
}

/// Steps so slow that 24 streams wait for each other and one does not.
const CROWDED: &str = "[engine.step]\nbase_ns = 25000000\nper_stream_ns = 6000000\n";

#[test]
fn words_that_suffer_under_load_raise_the_alarm() {
    let engine = format!(
        "{CROWDED}[engine.degradation]\nbase = 0.0\nworst = 0.3\nfrom_lag_ms = 400\nfull_lag_ms = 1500\n"
    );
    let answer = quality(&engine);
    assert_eq!(answer.decision, Decision::No, "{answer:#?}");
    let last = answer.points.last().unwrap();
    assert!(last.alarm && last.wer_rise.unwrap().points > 1.0, "{last:?}");
    assert_eq!((last.streams, last.labelled_streams), (24, 3));
    assert!(answer.published < 16, "{}", answer.published);
}

#[test]
fn words_that_do_not_suffer_raise_none() {
    let engine = format!(
        "{CROWDED}[engine.degradation]\nbase = 0.0\nworst = 0.0\nfrom_lag_ms = 400\nfull_lag_ms = 1500\n"
    );
    let answer = quality(&engine);
    assert_eq!(answer.decision, Decision::Yes, "{answer:#?}");
    assert_eq!(answer.points.iter().map(|p| p.streams).collect::<Vec<_>>(), [12, 18, 24]);
    assert_eq!(answer.baseline.unwrap().wer.unwrap().calls, 8);
    assert_eq!((answer.clean_up_to, answer.published), (None, 16));
}

/// The alarm of the only tier of a ladder of 24 streams, after one stream alone in the same run.
fn alarm_after_one_stream(worst: f64) -> Option<bool> {
    let mut config = config(&format!(
        "{CROWDED}[engine.degradation]\nbase = 0.0\nworst = {worst:?}\nfrom_lag_ms = 400\nfull_lag_ms = 1500\n"
    ));
    config.ladder.tiers = vec![24];
    config.ladder.refine = false;
    // Fewer than six calls cannot be sure of anything.
    config.single.calls = 9;
    let out = tempfile::tempdir().unwrap();
    play(config.clone(), &[], "tc01", out.path(), async |w, d| {
        single_stream::run(w, d, &Quiet).await.unwrap()
    });
    let ladder = play(config, &[], "tc03", out.path(), async |w, d| ladder::run(w, d, &Quiet).await.unwrap());
    ladder.tiers[0].quality.as_ref().unwrap().alarm
}

#[test]
fn the_words_of_a_tier_are_held_against_the_single_stream_of_the_run() {
    // Only some of these short calls lag: whether they suffice for an alarm is open, but words are not called clean.
    assert_ne!(alarm_after_one_stream(0.3), Some(false));
    assert_eq!(alarm_after_one_stream(0.0), Some(false));
}

/// The rehearsed dialect of a server whose requests are work from their first instant to their last.
#[derive(Debug)]
struct Work(Arc<dyn Dialect>);

impl Dialect for Work {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn evidence(&self) -> Evidence {
        self.0.evidence()
    }

    fn ready(&self) -> Ready {
        self.0.ready()
    }

    fn requests_are_work(&self) -> bool {
        true
    }

    fn upgrade(&self) -> Upgrade {
        self.0.upgrade()
    }

    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        self.0.prepare(pcm, chunk_bytes)
    }

    fn session(&self, start: &SessionStart) -> Box<dyn Session> {
        self.0.session(start)
    }
}

/// The rehearsed connections, but for the pages: each instance has computed a tenth of the time.
#[derive(Debug)]
struct Pages {
    pipes: Arc<dyn Connector>,
    from: Instant,
}

impl Connector for Pages {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Io, ConnectError>> {
        if endpoint.path_and_query() != "/metrics" {
            return self.pipes.connect(endpoint);
        }
        let sum_s = self.from.elapsed().as_secs_f64() / 10.0;
        let name = "vllm:e2e_request_latency_seconds";
        let body = format!(
            "vllm:kv_cache_usage_perc 0.1\nvllm:num_preemptions_total 0\nvllm:num_requests_running 1\n\
             vllm:num_requests_waiting 0\n{name}_bucket{{le=\"+Inf\"}} 9\n{name}_count 9\n{name}_sum {sum_s}\n"
        );
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n", body.len());
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") && theirs.read_buf(&mut asked).await.is_ok_and(|n| n > 0) {}
            let _ = theirs.write_all((head + &body).as_bytes()).await;
        });
        Box::pin(std::future::ready(Ok(Io::Pipe(ours))))
    }
}

#[test]
fn the_engines_own_sums_are_believed_where_the_dialect_says_that_they_are_work() {
    let rtf = |work: bool| {
        let out = tempfile::tempdir().unwrap();
        let mut config = config("");
        config.ladder.tiers = vec![6];
        config.ladder.refine = false;
        play_in(config, &[], "tc03", out.path(), async |world, dir| {
            world.connector = Arc::new(Pages { pipes: world.connector.clone(), from: Instant::now() });
            if work {
                world.target.dialect = Arc::new(Work(world.target.dialect.clone()));
            }
            ladder::run(world, dir, &Quiet).await.unwrap().tiers[0].server_rtf
        })
    };
    assert_eq!(rtf(false), None);
    // Three engines compute a tenth of the time each, while nearly six seconds a second are played.
    let told = rtf(true).unwrap();
    assert!((0.05..0.08).contains(&told), "{told}");
}

/// A ladder, then its middle tier again in the same run.
fn repeat(engine: &str) -> (RepeatabilityAnswer, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let config = config(engine);
    let ladder =
        play(config.clone(), &[], "tc03", out.path(), async |w, d| ladder::run(w, d, &Quiet).await.unwrap());
    assert_eq!(ladder.capacity.n_star, Some(12));
    let answer = play(config, &[], "tc08", out.path(), async |w, d| {
        repeatability::run(w, d, &Quiet, None).await.unwrap()
    });
    (answer, out)
}

#[test]
fn a_steady_engine_repeats_itself() {
    let (answer, out) = repeat("");
    assert_eq!((answer.streams, answer.first_step.as_str()), (12, "N012"));
    assert_eq!(answer.decision, Decision::Yes, "{:?}", answer.repeatability);
    let rows = fs::read_to_string(out.path().join("run/ladder.csv")).unwrap();
    assert!(rows.lines().last().unwrap().contains(",repeat; pass"), "{rows}");
    // The second case's clock goes on where the first one's ended.
    let again = answer.after.unwrap();
    assert!(again.window_from_s > answer.before.window_to_s);
    assert!(out.path().join("run/run-tc08.toml").exists());
}

#[test]
fn a_repetition_is_another_sample_of_the_same_noise() {
    // One tier, so that its repetition is the first thing that fresh engines are asked, as the tier itself was.
    let twice = || {
        let out = tempfile::tempdir().unwrap();
        let mut config = config("");
        config.ladder.tiers = vec![12];
        config.ladder.refine = false;
        play(config.clone(), &[], "tc03", out.path(), async |w, d| ladder::run(w, d, &Quiet).await.unwrap());
        play(config, &[], "tc08", out.path(), async |w, d| {
            repeatability::run(w, d, &Quiet, None).await.unwrap()
        })
    };
    let answer = twice();
    assert_eq!(answer.decision, Decision::Yes, "{:?}", answer.repeatability);
    for figure in &answer.repeatability.figures[..2] {
        let change = figure.change.unwrap().abs();
        assert!(change > 0.0 && change < 0.15, "{figure:?}");
    }
    // And the run's seed still decides all of it.
    assert_eq!(answer.repeatability, twice().repeatability);
}

#[test]
fn an_engine_that_grows_slower_drifts() {
    let (answer, _keep) = repeat("[engine.faults]\nslowdown_per_hour = 25.0\n");
    assert_eq!(answer.decision, Decision::No, "{:?}", answer.repeatability);
    assert!(answer.repeatability.text().en.starts_with("drift: "));
}

#[test]
fn what_is_missing_is_named_with_the_command_that_makes_it() {
    let out = tempfile::tempdir().unwrap();
    play(config(""), &[Role::B, Role::Labelled], "tc04", out.path(), async |w, d| {
        for error in [
            quality::run(w, d, &Quiet, None).await.unwrap_err(),
            long_calls::run(w, d, &Quiet, None).await.unwrap_err(),
            repeatability::run(w, d, &Quiet, None).await.unwrap_err(),
        ] {
            assert!(matches!(error, CaseError::Missing { .. }), "{error}");
            assert!(error.to_string().contains("tc03 --into RUN_DIR"), "{error}");
        }
    });
    let mut bare = config("");
    bare.tape_b.manifest = PathBuf::new();
    let (_keep, interrupt) = watch::channel(false);
    let error = run(async { world_with(bare, &[Role::B], interrupt).unwrap_err() }).unwrap();
    assert!(error.to_string().contains("tapectl freeze POOL --spec tape-b"), "{error}");
}

#[test]
fn a_run_that_cannot_be_shared_is_refused() {
    let out = tempfile::tempdir().unwrap();
    play(config(""), &[], "tc01", out.path(), async |w, d| single_stream::run(w, d, &Quiet).await.unwrap());
    let path = out.path().join("run");
    let join = |info: &RunInfo, config: &Config| {
        RunDir::join(&path, info, "", |was| config.differs(was)).unwrap_err().to_string()
    };
    let info = RunInfo { case: "tc04".into(), simulated: true, ..RunInfo::default() };
    let made_with = fs::read_to_string(path.join("run.toml")).unwrap();
    let same = Config::parse(&made_with, "run.toml".as_ref()).unwrap();
    let mut slower = same.clone();
    slower.load.warm_up_s = 99.0;
    assert!(join(&info, &slower).contains("load.warm_up_s"));
    let real = RunInfo { simulated: false, ..info.clone() };
    assert!(join(&real, &same).contains("simulated"));
    let other = RunInfo { tapes: [("tape-a-tenth".into(), "0".into())].into(), ..info };
    assert!(join(&other, &same).contains("tape tape-a-tenth had MD5"));
}

#[test]
fn a_case_that_is_played_again_takes_over_what_is_there() {
    let out = tempfile::tempdir().unwrap();
    let once = || {
        play(config(""), &[Role::B], "tc03b", out.path(), async |w, d| {
            long_calls::run(w, d, &Quiet, Some(NStar::new(6, "the test"))).await.unwrap()
        })
    };
    let first = once();
    let steps = fs::read(out.path().join("run/steps.jsonl")).unwrap();
    let second = once();
    assert_eq!(fs::read(out.path().join("run/steps.jsonl")).unwrap(), steps);
    assert_eq!(first.tiers, second.tiers);
}

/// One tier of a ladder with these options.
fn ladder(engine: &str, streams: u32, change: impl FnOnce(&mut Config)) -> (LadderAnswer, tempfile::TempDir) {
    let mut config = config(engine);
    config.ladder.tiers = vec![streams];
    config.ladder.refine = false;
    change(&mut config);
    let needs: &[Role] = if config.ladder.content == LadderContent::Pool { &[Role::Pool] } else { &[] };
    let out = tempfile::tempdir().unwrap();
    let answer =
        play(config, needs, "tc03", out.path(), async |w, d| ladder::run(w, d, &Quiet).await.unwrap());
    (answer, out)
}

#[test]
fn streams_that_draw_from_the_pool_play_different_calls() {
    let (answer, out) = ladder("", 9, |config| {
        config.ladder.content = LadderContent::Pool;
        config.pool.draw_s = 40.0;
    });
    let tier = &answer.tiers[0];
    assert_eq!((tier.tape.as_str(), tier.verdict), ("pool", Verdict::Pass), "{:?}", tier.reasons);
    let dir = RunDir::resume(&answer.run, &fs::read_to_string(answer.run.join("run.toml")).unwrap()).unwrap();
    let calls = dir.calls_of("pool-N009").unwrap();
    let of = |stream: u32| -> Vec<u32> {
        calls.iter().filter(|c| c.counted && c.stream == stream).map(|c| c.call).collect()
    };
    let parts: std::collections::BTreeSet<Vec<u32>> = (0..9).map(of).collect();
    assert!(parts.len() > 4, "{parts:?}");
    // The run's N* is that of Tape-A; this ladder's stands beside it.
    assert!(out.path().join("run/capacity-pool.json").exists());
    assert!(!out.path().join("run/capacity.json").exists());
}

#[test]
fn the_hard_ceiling_is_faster_than_speech_and_no_capacity() {
    let (answer, out) = ladder("", 3, |config| config.ladder.pace = Pace::Off);
    let ceiling = &answer.offline[0];
    assert_eq!((ceiling.calls, ceiling.errors), (27, 0), "{ceiling:?}");
    // Three callers who speak give three seconds of audio a second; nobody waits for them here.
    assert!(ceiling.audio_s_per_s.unwrap() > 6.0, "{ceiling:?}");
    assert!(ceiling.rtf_p95.unwrap() < 0.5, "{ceiling:?}");
    assert_eq!(answer.capacity.n_star, None);
    assert!(out.path().join("run/offline.json").exists());
    assert!(!out.path().join("run/capacity.json").exists());
    let rows = fs::read_to_string(out.path().join("run/ladder.csv")).unwrap();
    assert!(rows.contains("offline: no pace"), "{rows}");
}

#[test]
fn repetitions_tell_how_far_they_lie_apart() {
    let (answer, _keep) = ladder("", 3, |config| config.ladder.repeat = 2);
    assert_eq!(answer.tiers.len(), 2);
    let rtf = answer.spread.iter().find(|s| s.figure == "rtf_p95").unwrap();
    assert_eq!((rtf.streams, rtf.n), (3, 2));
    assert!(rtf.cv.unwrap() < 0.2, "{rtf:?}");
}

#[test]
fn a_tier_that_only_its_estimate_decides_is_played_again_with_more_loops() {
    // Two loops of nine calls by three streams are too few for an interval to have an upper bound.
    let few = |config: &mut Config| (config.load.loops_small, config.ladder.until_sure) = (1, true);
    let (answer, _keep) = ladder("", 3, few);
    let [tier] = &answer.tiers[..] else { panic!("{} tiers", answer.tiers.len()) };
    assert!(!tier.point_only, "{:?}", tier.reasons);
    assert!(tier.calls_counted >= 72, "{}", tier.calls_counted);
    let (answer, _keep) = ladder("", 3, |config| {
        few(config);
        config.ladder.max_loops = 2;
    });
    assert!(answer.tiers[0].point_only && answer.tiers[0].calls_counted == 54);
}
