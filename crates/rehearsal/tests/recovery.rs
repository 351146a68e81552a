//! What a step does when an instance fails it: the restart after a crash, after memory that ran out, and after a drain
//! that did not end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::tenth;
use tapedeck_answers::LadderAnswer;
use tapedeck_cases::{CaseError, Observer, Phase, Progress, World, ladder};
use tapedeck_fleet::{Action, Control, ControlError, Output};
use tapedeck_metrics::gpu::{GpuDevice, GpuError, GpuSource};
use tapedeck_rehearsal::{run, world};
use tapedeck_rundir::{RunDir, RunInfo};
use tapedeck_slo::Verdict;
use tapedeck_transport::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

/// The hands of the rehearsal, on instances whose log tells of a death, or which may not be started.
#[derive(Debug)]
struct Told {
    instance_control: Arc<dyn Control>,
    log: &'static str,
    managed: bool,
}

impl Control for Told {
    fn can(&self, instance: &str, action: Action) -> bool {
        (self.managed || action == Action::Log) && self.instance_control.can(instance, action)
    }

    fn run<'a>(&'a self, instance: &'a str, action: Action) -> BoxFuture<'a, Result<Output, ControlError>> {
        match action {
            Action::Log => {
                let output = Output { stdout: self.log.into(), stderr: String::new() };
                Box::pin(std::future::ready(Ok(output)))
            }
            other => self.instance_control.run(instance, other),
        }
    }
}

/// The rehearsed card, which holds on to two gibibytes from the first drain to the next restart.
#[derive(Debug)]
struct Holding {
    card: Arc<dyn GpuSource>,
    held: Arc<AtomicBool>,
}

impl GpuSource for Holding {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async {
            let mut devices = self.card.read().await?;
            if self.held.load(Ordering::SeqCst) {
                for used in devices.iter_mut().filter_map(|d| d.reading.memory_used_bytes.as_mut()) {
                    *used += 2 << 30;
                }
            }
            Ok(devices)
        })
    }
}

impl Observer for Holding {
    fn on(&self, progress: &Progress<'_>) {
        match progress {
            Progress::Phase { step: "N006", phase: Phase::Drain } => self.held.store(true, Ordering::SeqCst),
            Progress::Note { text } if text.starts_with("restarting") => {
                self.held.store(false, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

/// The rehearsed card, at 60 C but for some time.
#[derive(Debug)]
struct Heat {
    card: Arc<dyn GpuSource>,
    from: Instant,
    hot_s: std::ops::Range<f64>,
}

impl GpuSource for Heat {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async {
            let mut devices = self.card.read().await?;
            for device in &mut devices {
                let hot = self.hot_s.contains(&self.from.elapsed().as_secs_f64());
                device.reading.temperature_c = Some(if hot { 90.0 } else { 60.0 });
            }
            Ok(devices)
        })
    }
}

/// Keeps what is said, and stops the run once it waits for a GPU, where it is to.
struct Waiting {
    said: Arc<Mutex<Vec<String>>>,
    stop: Option<watch::Sender<bool>>,
}

impl Observer for Waiting {
    fn on(&self, progress: &Progress<'_>) {
        if let Progress::Note { text } = progress {
            self.said.lock().unwrap().push((*text).to_owned());
            if let Some(stop) = self.stop.as_ref().filter(|_| text.starts_with("waiting for GPU-simulated")) {
                let _ = stop.send(true);
            }
        }
    }
}

/// A ladder over a card that is hot for some time; `stop` ends it when it waits. What was said comes last.
fn under_heat(hot_s: std::ops::Range<f64>, stop: bool) -> (Went, Vec<String>) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let went = climb(|world, interrupt| {
        let card = world.gpus[0].clone();
        world.gpus = vec![Arc::new(Heat { card, from: Instant::now(), hot_s })];
        Waiting { said: said.clone(), stop: stop.then_some(interrupt) }
    });
    let said = said.lock().unwrap().clone();
    (went, said)
}

/// Does something to `inst2` once: at the tenth counted call, or when the drain begins.
struct Accident {
    instance_control: Arc<dyn Control>,
    action: Action,
    at_drain: bool,
    happened: AtomicBool,
}

impl Observer for Accident {
    fn on(&self, progress: &Progress<'_>) {
        let now = match progress {
            Progress::Call { counted, .. } => !self.at_drain && *counted == 10,
            Progress::Phase { phase, .. } => self.at_drain && *phase == Phase::Drain,
            _ => false,
        };
        if now && !self.happened.swap(true, Ordering::SeqCst) {
            let (instance_control, action) = (self.instance_control.clone(), self.action);
            tokio::spawn(async move { instance_control.run("inst2", action).await });
        }
    }
}

/// How a ladder went: its answer, and every event as `what: detail`.
type Went = (Result<LadderAnswer, CaseError>, Vec<String>);

/// A ladder of 6 and 12 streams in a world that `prepare` has changed, watched by what that gives back.
fn climb<O: Observer>(prepare: impl FnOnce(&mut World, watch::Sender<bool>) -> O) -> Went {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().to_path_buf();
    let answer = run(async move {
        let (keep, interrupt) = watch::channel(false);
        let mut config = tenth(1, &[6, 12]);
        config.ladder.refine = false;
        let mut world = world(config, interrupt).unwrap();
        let watch = prepare(&mut world, keep.clone());
        let info = RunInfo { run_id: "run".into(), case: "tc03".into(), ..RunInfo::default() };
        let mut dir = RunDir::create(&path, &info, &world.config.to_toml().unwrap()).unwrap();
        ladder::run(&world, &mut dir, &watch).await
    });
    let events = std::fs::read_to_string(out.path().join("run/events.jsonl")).unwrap();
    let told = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let detail = &event["detail"];
        let detail = detail.as_str().or(detail["text"].as_str());
        format!("{}: {}", event["what"].as_str().unwrap(), detail.unwrap_or_default())
    };
    (answer.unwrap(), events.lines().map(told).collect())
}

/// The same with an accident in its first tier, and instances whose log says so much.
fn with_accident(action: Action, at_drain: bool, log: &'static str, managed: bool) -> Went {
    climb(|world, _| {
        let instance_control = world.control.clone();
        world.control = Arc::new(Told { instance_control: instance_control.clone(), log, managed });
        Accident { instance_control, action, at_drain, happened: AtomicBool::new(false) }
    })
}

/// Where the first event that begins so stands.
fn at(events: &[String], begins: &str) -> usize {
    events.iter().position(|e| e.starts_with(begins)).unwrap_or_else(|| panic!("no {begins}: {events:#?}"))
}

#[test]
fn after_a_crash_all_are_restarted_and_the_step_is_played_again() {
    let (answer, events) = with_accident(Action::Kill, false, "", true);
    let tiers = answer.unwrap().tiers;
    assert_eq!(
        tiers.iter().map(|t| (t.streams, t.verdict)).collect::<Vec<_>>(),
        [(6, Verdict::Pass), (12, Verdict::Pass)]
    );
    let order = ["instance_down: inst2", "cut_short: inst2", "stop: inst1", "start: inst3", "restarted: "];
    assert!(order.map(|e| at(&events, e)).is_sorted(), "{events:#?}");
    assert_eq!(events.iter().filter(|e| e.starts_with("step_begins")).count(), 3, "{events:#?}");
}

#[test]
fn memory_that_ran_out_is_named_from_the_log() {
    let log = "(EngineCore pid=7) ERROR 11-29 16:29:59 [core.py:9] torch.OutOfMemoryError: CUDA out of memory. Tried \
               to allocate 20.00 MiB.\n";
    let (answer, events) = with_accident(Action::Kill, false, log, true);
    assert_eq!(answer.unwrap().tiers.len(), 2);
    let down = &events[at(&events, "instance_down")];
    assert!(down.contains("it ran out of memory: torch.OutOfMemoryError: CUDA out of memory"), "{down}");
    assert!(at(&events, "instance_down") < at(&events, "restarted"), "{events:#?}");
}

#[test]
fn after_a_drain_that_does_not_end_all_are_restarted_and_the_step_stands() {
    let (answer, events) = with_accident(Action::Freeze, true, "", true);
    let tiers = answer.unwrap().tiers;
    assert_eq!(tiers.len(), 2);
    assert_eq!(tiers[0].drain_s, None, "what did not drain has no time of draining");
    assert!(tiers[1].drain_s.is_some());
    let not_drained = at(&events, "not_drained: ");
    assert!(events[not_drained].contains("inst2"), "{}", events[not_drained]);
    assert!(not_drained < at(&events, "restarted"), "{events:#?}");
    assert_eq!(events.iter().filter(|e| e.starts_with("step_begins")).count(), 2, "{events:#?}");
}

#[test]
fn memory_that_is_not_given_back_is_no_drain() {
    let (answer, events) = climb(|world, _| {
        let held = Holding { card: world.gpus[0].clone(), held: Arc::default() };
        world.gpus = vec![Arc::new(Holding { card: held.card.clone(), held: held.held.clone() })];
        held
    });
    assert_eq!(answer.unwrap().tiers.len(), 2);
    let said = &events[at(&events, "not_drained: ")];
    assert!(said.contains("MiB more than without streams"), "{said}");
    assert!(at(&events, "not_drained") < at(&events, "restarted"), "{events:#?}");
    assert_eq!(events.iter().filter(|e| e.starts_with("drained")).count(), 1, "the tier after the restart");
}

#[test]
fn what_may_not_be_restarted_is_said_and_the_case_gives_up_on_it() {
    let (answer, events) = with_accident(Action::Kill, false, "", false);
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("inst2"), "{error}");
    let said = &events[at(&events, "restart_not_possible")];
    assert!(said.contains("no start command") && said.contains("managed = false"), "{said}");
}

#[test]
fn a_hot_gpu_cuts_the_step_which_is_played_again_when_all_are_cool() {
    let ((answer, events), said) = under_heat(40.0..100.0, false);
    let tiers = answer.unwrap().tiers;
    assert_eq!(
        tiers.iter().map(|t| (t.streams, t.verdict)).collect::<Vec<_>>(),
        [(6, Verdict::Pass), (12, Verdict::Pass)]
    );
    let order = ["gpu_hot: GPU-simulated: 90 C", "cut_short: GPU GPU-simulated is at 90 C", "gpu_cool: "];
    assert!(order.map(|e| at(&events, e)).is_sorted(), "{events:#?}");
    assert_eq!(events.iter().filter(|e| e.starts_with("step_begins")).count(), 3, "{events:#?}");
    assert!(
        said.contains(
            &"waiting for GPU-simulated (90 C) to fall below 80 C; then N006 is played again".into()
        ),
        "{said:#?}"
    );
    assert!(tiers[0].window_from_s > 100.0, "played again only when it was cool: {}", tiers[0].window_from_s);
}

#[test]
fn waiting_for_a_hot_gpu_can_be_stopped() {
    let ((answer, events), _) = under_heat(40.0..1e9, true);
    let answer = answer.unwrap();
    assert!(answer.interrupted && answer.tiers.is_empty(), "{answer:?}");
    assert!(events.iter().all(|e| !e.starts_with("gpu_cool")), "{events:#?}");
}

/// Hot whenever streams play.
#[derive(Debug)]
struct HotUnderLoad {
    card: Arc<dyn GpuSource>,
    loaded: Arc<AtomicBool>,
}

impl GpuSource for HotUnderLoad {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        Box::pin(async {
            let mut devices = self.card.read().await?;
            for device in &mut devices {
                let loaded = self.loaded.load(Ordering::SeqCst);
                device.reading.temperature_c = Some(if loaded { 91.0 } else { 70.0 });
            }
            Ok(devices)
        })
    }
}

impl Observer for HotUnderLoad {
    fn on(&self, progress: &Progress<'_>) {
        if let Progress::Phase { phase, .. } = progress {
            self.loaded.store(*phase == Phase::Load, Ordering::SeqCst);
        }
    }
}

#[test]
fn a_gpu_that_is_hot_again_and_again_ends_the_case() {
    let (answer, events) = climb(|world, _| {
        let heat = HotUnderLoad { card: world.gpus[0].clone(), loaded: Arc::default() };
        world.gpus = vec![Arc::new(HotUnderLoad { card: heat.card.clone(), loaded: heat.loaded.clone() })];
        heat
    });
    let error = answer.unwrap_err();
    assert!(matches!(&error, CaseError::TooHot { gpu, times: 3, .. } if gpu == "GPU-simulated"), "{error}");
    assert!(error.to_string().contains("slo.live.gpu_pause_c"), "{error}");
    assert_eq!(events.iter().filter(|e| e.starts_with("gpu_hot")).count(), 3, "{events:#?}");
}
