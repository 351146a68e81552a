//! What ends a step before its load does: the user, a live rule, an instance that is down, a GPU that is too hot.

use tapedeck_fleet::{Health, health};
use tapedeck_load::Control;
use tapedeck_rundir::{EventDetail, RunDir};
use tapedeck_slo::{Alert, CutShort};
use tapedeck_transport::HttpLimits;
use tokio::sync::mpsc;

use super::{LoadModel, note};
use crate::control::post_mortem;
use crate::error::CaseError;
use crate::world::World;

impl LoadModel {
    /// Whether an alert concerns a load of this kind.
    pub(super) const fn heeds(self, alert: &Alert) -> bool {
        match self {
            Self::Closed | Self::Open => true,
            // A fault breaks every other live rule, and the script alone decides when it is enough.
            Self::Scripted => matches!(alert, Alert::PauseForHeat { .. }),
        }
    }
}

/// Directs a running load: sees what happens, and ends it.
pub(crate) struct Director<'a> {
    pub(crate) world: &'a World,
    pub(crate) dir: &'a mut RunDir,
    pub(crate) step: &'a str,
    pub(super) control: Control,
    pub(super) alerts: mpsc::UnboundedReceiver<Alert>,
}

impl Director<'_> {
    /// Lets the load come to its own end, unless something has to end it earlier.
    pub(crate) async fn until_end(&mut self) -> Result<Option<CutShort>, CaseError> {
        let cut = self.until_cut().await;
        if !matches!(cut, Ok(None)) {
            self.control.cut();
        }
        cut
    }

    /// Waits for a reason to end the load; nothing where it ended first.
    pub(crate) async fn until_cut(&mut self) -> Result<Option<CutShort>, CaseError> {
        loop {
            let alert = tokio::select! {
                biased;
                () = self.world.until_interrupted() => return Ok(Some(CutShort::Interrupted)),
                alert = self.alerts.recv() => alert,
            };
            let Some(alert) = alert else { return Ok(None) };
            if let Some(cut) = self.heed(alert).await? {
                return Ok(Some(cut));
            }
        }
    }

    /// Streams finish the call they are in: the load was long enough.
    pub(crate) fn stop(&self) {
        self.control.stop();
    }

    /// All calls end now.
    pub(crate) fn cut(&self) {
        self.control.cut();
    }

    async fn heed(&mut self, alert: Alert) -> Result<Option<CutShort>, CaseError> {
        let Self { world, dir, step, .. } = self;
        Ok(match alert {
            Alert::Abort(abort) => Some(CutShort::Aborted { abort }),
            Alert::StopClimbing { why } => {
                note(world, dir, step, "red_line", Some(EventDetail::HardLimit { limit: why }))?;
                None
            }
            Alert::PauseForHeat { gpu, celsius } => {
                let detail = EventDetail::Temperature { gpu: gpu.clone(), celsius };
                note(world, dir, step, "gpu_hot", Some(detail))?;
                Some(CutShort::TooHot { gpu, celsius })
            }
            Alert::Silent { instance } => match why_down(world, &instance).await {
                Some(why) => {
                    let cause = post_mortem(world, dir, step, &instance).await?;
                    let down = CutShort::InstanceDown { instance, why, cause };
                    note(world, dir, step, "instance_down", Some(down.clone().into()))?;
                    Some(down)
                }
                None => None,
            },
        })
    }
}

async fn why_down(world: &World, name: &str) -> Option<String> {
    let instance = world.instances.iter().find(|i| i.name == name)?;
    match health(&*world.connector, instance, HttpLimits::default()).await {
        Health::Down { why } => Some(why),
        Health::Up | Health::Unknown => None,
    }
}
