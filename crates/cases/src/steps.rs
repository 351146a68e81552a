//! The load points of a case, one after the other.

use tapedeck_rundir::RunDir;
use tapedeck_slo::{CutShort, TierReport};
use tokio::time::sleep;

use crate::error::CaseError;
use crate::point::{Point, play};
use crate::progress::{Observer, Phase, Progress};
use crate::runner::{hot_gpus, note};
use crate::world::{World, seconds};

/// How often a step may be cut because a GPU is too hot, before the case gives up.
const MOST_TOO_HOT: u32 = 3;

/// Plays steps: takes over what the run directory already holds whole, rests between two, plays a step again after an
/// instance went down or a GPU was too hot, and stops when the user wants to.
pub struct Steps<'a> {
    /// The seams.
    pub world: &'a World,
    /// Where everything is written down.
    pub dir: &'a mut RunDir,
    /// Who watches.
    pub watch: &'a dyn Observer,
    /// Whether the user stopped it.
    pub interrupted: bool,
    begun: bool,
}

impl<'a> Steps<'a> {
    /// Nothing played yet.
    pub fn new(world: &'a World, dir: &'a mut RunDir, watch: &'a dyn Observer) -> Self {
        let steps = Self { world, dir, watch, interrupted: false, begun: false };
        let dialect = &world.target.dialect;
        if !dialect.answers_during_call() {
            steps.say(&format!(
                "{} is store and forward: every figure and N* are of whole utterances, not to be compared with \
                 streaming ones",
                dialect.name()
            ));
        }
        steps
    }

    /// Plays a point, or takes it over from the run directory; nothing when the user stopped it.
    ///
    /// # Errors
    /// As `play`, and an instance that went down twice in the same point.
    pub async fn play(&mut self, point: &Point) -> Result<Option<TierReport>, CaseError> {
        if self.interrupted {
            return Ok(None);
        }
        if let Some(done) = self.dir.finished(&point.step) {
            self.begun = true;
            self.watch.on(&Progress::StepDone { step: &point.step, report: &done.report, resumed: true });
            return Ok(Some(done.report.clone()));
        }
        self.until_whole(&point.step, async |world, dir, watch| play(world, dir, point, watch).await).await
    }

    /// Takes over a step that is already answered: the next one is not the first.
    pub(crate) const fn taken_over(&mut self) {
        self.begun = true;
    }

    /// Plays a step until it came to its own end, after a rest where it is not the first; nothing when the user stopped it.
    ///
    /// # Errors
    /// As `once`, an instance that went down twice, GPUs that were too hot three times.
    pub(crate) async fn until_whole<T>(
        &mut self,
        step: &str,
        mut once: impl AsyncFnMut(&World, &mut RunDir, &dyn Observer) -> Result<(Option<CutShort>, T), CaseError>,
    ) -> Result<Option<T>, CaseError> {
        if std::mem::replace(&mut self.begun, true) {
            self.cool_down(step).await;
        }
        let (mut down, mut hot) = (false, 0);
        while !self.interrupted && !self.world.interrupted() {
            let (cut, left) = once(self.world, self.dir, self.watch).await?;
            match cut {
                Some(CutShort::Interrupted) => break,
                // An instance that went down spoils the step; it is played once more when all are back.
                Some(why @ CutShort::InstanceDown { .. }) => {
                    if std::mem::replace(&mut down, true) {
                        return Err(CaseError::InstanceDown { why: why.to_string() });
                    }
                    self.say(&format!("{why}: the step is played again when all instances are back"));
                    self.cool_down(step).await;
                }
                Some(CutShort::TooHot { gpu, celsius }) => {
                    hot += 1;
                    if hot == MOST_TOO_HOT {
                        return Err(CaseError::TooHot { gpu, celsius, times: hot });
                    }
                    self.until_cool(step).await?;
                }
                _ => return Ok(Some(left)),
            }
        }
        self.interrupted = true;
        Ok(None)
    }

    /// The rest between two steps; ends early when the user wants to stop.
    async fn cool_down(&self, step: &str) {
        self.watch.on(&Progress::Phase { step, phase: Phase::CoolDown });
        tokio::select! {
            biased;
            () = self.world.until_interrupted() => {}
            () = sleep(seconds(self.world.config.load.cool_down_s)) => {}
        }
    }

    /// Waits until all GPUs are below `slo.live.gpu_resume_c`, or the user wants to stop.
    async fn until_cool(&mut self, step: &str) -> Result<(), CaseError> {
        let resume_c = self.world.config.slo.live.gpu_resume_c;
        let mut said = false;
        loop {
            let hot = hot_gpus(self.world).await;
            if hot.is_empty() {
                return note(self.world, self.dir, step, "gpu_cool", None);
            }
            if !std::mem::replace(&mut said, true) {
                let gpus: Vec<String> = hot.iter().map(|(gpu, c)| format!("{gpu} ({c:.0} C)")).collect();
                self.say(&format!(
                    "waiting for {} to fall below {resume_c} C; then {step} is played again",
                    gpus.join(", ")
                ));
            }
            tokio::select! {
                biased;
                () = self.world.until_interrupted() => return Ok(()),
                () = sleep(seconds(self.world.config.load.sample_s)) => {}
            }
        }
    }

    /// Says something to whoever watches.
    pub fn say(&self, text: &str) {
        self.watch.on(&Progress::Note { text });
    }
}

impl std::fmt::Debug for Steps<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steps")
            .field("dir", &self.dir.path())
            .field("interrupted", &self.interrupted)
            .finish()
    }
}
