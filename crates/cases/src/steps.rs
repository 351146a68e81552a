//! The load points of a case, one after the other.

use tapedeck_rundir::RunDir;
use tapedeck_slo::TierReport;

use crate::error::CaseError;
use crate::point::{Ending, Point, cool_down, play};
use crate::progress::{Observer, Progress};
use crate::world::World;

/// Plays load points: takes over what the run directory already holds whole, rests between two, plays a point once
/// more after an instance went down, and stops when the user wants to.
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
        let dialect = &world.site.dialect;
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
    /// As [`play`], and an instance that went down twice in the same point.
    pub async fn play(&mut self, point: &Point) -> Result<Option<TierReport>, CaseError> {
        if self.interrupted {
            return Ok(None);
        }
        let rest = std::mem::replace(&mut self.begun, true);
        if let Some(done) = self.dir.finished(&point.step) {
            self.watch.on(&Progress::StepDone { step: &point.step, report: &done.report, resumed: true });
            return Ok(Some(done.report.clone()));
        }
        if rest {
            cool_down(self.world, &point.step, self.watch).await;
        }
        // An instance that went down spoils the point; it is played once more when all are back.
        for last_try in [false, true] {
            if self.world.interrupted() {
                self.interrupted = true;
                return Ok(None);
            }
            match play(self.world, self.dir, point, self.watch).await? {
                Ending::Done(report) => return Ok(Some(*report)),
                Ending::Interrupted => {
                    self.interrupted = true;
                    return Ok(None);
                }
                Ending::InstanceDown(why) if last_try => {
                    return Err(CaseError::InstanceDown { why: why.to_string() });
                }
                Ending::InstanceDown(why) => {
                    let text = format!("{why}: the step is played again when all instances are back");
                    self.watch.on(&Progress::Note { text: &text });
                    cool_down(self.world, &point.step, self.watch).await;
                }
            }
        }
        Ok(None)
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
