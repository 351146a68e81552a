//! What every command has in common: why it gave up, the exit code that says so, Ctrl-C, serving.
//!
//! ```
//! use tapedeck_cli::Failure;
//! use tapedeck_record::ExitCode;
//!
//! let failure = Failure::Usage("give --lines N".into());
//! assert_eq!(failure.exit_code(), ExitCode::Usage);
//! ```
//!
//! An error of a library becomes a [`Failure`] by `?` where it knows its exit code
//! ([`HasExitCode`]). Signals and serving need the feature `runtime`.

mod failure;
#[cfg(feature = "runtime")]
pub mod serving;
#[cfg(feature = "runtime")]
pub mod signals;

use std::net::SocketAddr;

pub use failure::{Failure, exit, usage};
pub use tapedeck_record::HasExitCode;

/// An address to serve at.
///
/// # Errors
/// What is wrong, and how one looks.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "give ADDRESS:PORT with a numeric address, e.g. 127.0.0.1:9464 or [::1]:9464".to_string()
    })
}
