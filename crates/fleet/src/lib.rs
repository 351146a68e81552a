//! Instances under test: health, readiness, drain, control commands.
//!
//! A load point starts with a fleet that is well ([`wait_healthy`]) and ends with one that has nothing left to do
//! ([`drain`]); between them an instance may be killed or frozen ([`Control`]).
//!
//! ```
//! use tapedeck_fleet::{Action, Control, ShellControl};
//!
//! let commands = [(Action::Kill, "systemctl kill -s KILL asr2".to_owned())].into();
//! let control = ShellControl { commands: [("asr2".to_owned(), commands)].into(), timeout: None };
//! assert!(control.can("asr2", Action::Kill));
//! // An instance without commands is never touched.
//! assert!(!control.can("asr1", Action::Kill));
//! ```
//!
//! Read on in `instance`, `drain`, `control` and [`crash_cause()`]. Limits: balancers are not asked anything; what a kind of engine does not
//! tell cannot be waited for, and [`Drain::unchecked`] says what that was.

mod control;
mod crash;
mod drain;
mod instance;

pub use control::{Action, Control, ControlError, Output, ShellControl, pool_from};
pub use crash::crash_cause;
pub use drain::{Drain, DrainRules, DrainStep, drain};
pub use instance::{Health, Instance, NotHealthy, WaitRules, health, wait_healthy};
pub use tapedeck_metrics::{PoolInfo, pool_from_log};
