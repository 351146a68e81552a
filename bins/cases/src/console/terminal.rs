//! The terminal under a bar that redraws itself.

use std::io::stderr;

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr};

/// Keeps the terminal from echoing `^C` while something is drawn over, and puts it back when it is dropped.
///
/// What is drawn fills the last line to its end, so that two characters more begin a new line, and whatever then clears
/// the drawing clears one line too few: the top one would stay for good. Nothing else is changed, so a terminal that is
/// left behind by a kill only misses that echo.
#[derive(Debug)]
pub(crate) struct NoEcho {
    /// Whether it was echoed before; nothing is put back otherwise.
    echoed: bool,
}

/// Whether this process may change the terminal: the system stops one in the background that tries.
fn in_front() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|front| front == getpgrp())
}

fn set(on: bool) -> Option<bool> {
    if !in_front() {
        return None;
    }
    let mut modes = tcgetattr(stderr()).ok()?;
    let was = modes.local_modes.contains(LocalModes::ECHOCTL);
    modes.local_modes.set(LocalModes::ECHOCTL, on);
    tcsetattr(stderr(), OptionalActions::Now, &modes).ok()?;
    Some(was)
}

impl NoEcho {
    /// From now on; does nothing where standard error is no terminal, or not ours.
    pub(crate) fn begin() -> Self {
        Self { echoed: set(false) == Some(true) }
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        if self.echoed {
            set(true);
        }
    }
}
