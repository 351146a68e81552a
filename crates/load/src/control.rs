//! How a run is ended.

use std::sync::Arc;

use tokio::sync::watch;

/// How far a run has got towards its end. Only ever moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Streams play call after call.
    Playing,
    /// Streams finish the call they are in.
    Stopping,
    /// Calls end now.
    Cut,
}

/// A handle that ends a run. Clones end the same run; one control serves one run.
#[derive(Debug, Clone)]
pub struct Control {
    phase: Arc<watch::Sender<Phase>>,
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

impl Control {
    /// A handle for a run that is about to begin.
    #[must_use]
    pub fn new() -> Self {
        Self { phase: Arc::new(watch::Sender::new(Phase::Playing)) }
    }

    /// Streams finish the call they are in and place no other; what still goes on after the plan's drain
    /// limit is cut.
    pub fn stop(&self) {
        self.advance(Phase::Stopping);
    }

    /// All calls end now, as `cancelled`.
    pub fn cut(&self) {
        self.advance(Phase::Cut);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            if forward {
                *phase = to;
            }
            forward
        });
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }
}

/// Waits until the run has reached a phase.
pub(crate) async fn reached(mut watch: watch::Receiver<Phase>, phase: Phase) {
    if watch.wait_for(|now| *now >= phase).await.is_err() {
        // Nobody is left who could end the run: it ends by itself.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_only_moves_towards_its_end() {
        let control = Control::new();
        assert_eq!(control.phase(), Phase::Playing);
        control.clone().cut();
        control.stop();
        assert_eq!(control.phase(), Phase::Cut);
    }
}
