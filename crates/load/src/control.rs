//! How a run is ended.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::sync::Notify;

/// How far a run has got towards its end; before either, streams play call after call. Only ever moves
/// forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Streams finish the call they are in.
    Stopping = 1,
    /// Calls end now.
    Cut = 2,
}

/// A handle that ends a run. Clones end the same run; one control serves one run.
#[derive(Debug, Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    phase: AtomicU8,
    /// Wakes whoever waits in the order in which they began to wait: a rehearsal must not depend on chance.
    changed: Notify,
}

impl Control {
    /// A handle for a run that is about to begin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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

    /// Completes when calls are to end now.
    pub async fn until_cut(&self) {
        self.reached(Phase::Cut).await;
    }

    fn advance(&self, to: Phase) {
        if self.shared.phase.fetch_max(to as u8, Ordering::AcqRel) < to as u8 {
            self.shared.changed.notify_waiters();
        }
    }

    pub(crate) fn is(&self, phase: Phase) -> bool {
        self.shared.phase.load(Ordering::Acquire) >= phase as u8
    }

    /// Waits until the run has reached a phase.
    pub(crate) async fn reached(&self, phase: Phase) {
        while !self.is(phase) {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Listen first, look again after: nothing can slip through in between.
            changed.as_mut().enable();
            if self.is(phase) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_run_only_moves_towards_its_end() {
        let control = Control::new();
        let mut stopping = std::pin::pin!(control.reached(Phase::Stopping));
        let mut cut = std::pin::pin!(control.reached(Phase::Cut));
        assert!(stopping.as_mut().now_or_never().is_none());
        assert!(cut.as_mut().now_or_never().is_none());
        control.clone().stop();
        assert!(stopping.as_mut().now_or_never().is_some());
        assert!(cut.as_mut().now_or_never().is_none());
        control.cut();
        control.stop();
        assert!(cut.as_mut().now_or_never().is_some());
        assert!(control.is(Phase::Cut));
        control.reached(Phase::Stopping).await;
    }
}
