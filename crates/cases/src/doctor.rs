//! Can this machine and this config work? One line a check, a mend for each failure.
//!
//! [`examine`] looks at the machine first, then at the tapes, then at the servers, and tells each finding as it has it.
//! Nothing is started, stopped or loaded: the only call that is made is one second of silence to the server, over the
//! very code that plays the tapes.
//!
//! ```
//! use tapedeck_cases::doctor::{Check, State};
//!
//! let check = Check::fail("disk", "12 MiB are free under results", "free some room, or give --out another disk");
//! assert_eq!(check.state, State::Fail);
//! assert!(check.to_string().starts_with("FAIL  disk"));
//! ```

mod machine;
mod servers;
mod tapes;

use std::fmt;

use serde::Serialize;
use tapedeck_config::{Config, ConfigError, key};
use tapedeck_fleet::Instance;
use tapedeck_load::Target;

use crate::world::{Seams, bearer, endpoint, instance, seconds};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing stands in the way.
    Ok,
    /// A run is possible, and will prove less than it could.
    Warn,
    /// A run will fail, or prove nothing.
    Fail,
    /// There was nothing to check, or no way to.
    Skipped,
}

impl State {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Skipped => "-",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at; an instance's name follows it where there is one.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// What was found, in a sentence.
    pub says: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    /// Nothing stands in the way.
    #[must_use]
    pub fn ok(name: impl Into<String>, says: impl Into<String>) -> Self {
        Self { name: name.into(), state: State::Ok, says: says.into(), hint: None }
    }

    /// There was nothing to check, or no way to.
    #[must_use]
    pub fn skipped(name: impl Into<String>, says: impl Into<String>) -> Self {
        Self { state: State::Skipped, ..Self::ok(name, says) }
    }

    /// A run is possible, and will prove less than it could.
    #[must_use]
    pub fn warn(name: impl Into<String>, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: State::Warn, hint: Some(hint.into()), ..Self::ok(name, says) }
    }

    /// A run will fail, or prove nothing.
    #[must_use]
    pub fn fail(name: impl Into<String>, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { state: State::Fail, hint: Some(hint.into()), ..Self::ok(name, says) }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<5} {:<18} {}", self.state.name(), self.name, self.says)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// What is examined.
pub(crate) struct Patient<'a> {
    pub(crate) config: &'a Config,
    pub(crate) seams: &'a Seams,
    pub(crate) streams: u32,
    pub(crate) target: Target,
    pub(crate) instances: Vec<Instance>,
}

/// Looks at everything and hands each finding to `tell` as soon as it is known. `streams` is the load that shall be
/// possible; the largest tier of the ladder by default.
///
/// # Errors
/// [`ConfigError`] for a config that cannot work at all: then there is nothing to look at.
pub async fn examine(
    config: &Config,
    seams: &Seams,
    streams: Option<u32>,
    mut tell: impl FnMut(Check),
) -> Result<(), ConfigError> {
    config.check()?;
    let bearer = bearer(config)?;
    let instances = config.instances.iter().map(|i| instance(i, bearer.as_ref()));
    let patient = Patient {
        config,
        seams,
        streams: streams.or_else(|| config.ladder.tiers.iter().copied().max()).unwrap_or(1),
        instances: instances.collect::<Result<_, _>>()?,
        target: Target {
            connector: seams.connector.clone(),
            endpoint: endpoint(key!(server.url), &config.server.url)?,
            dialect: config.dialect()?,
            bearer,
        },
    };
    machine::examine(&patient, &mut tell).await;
    tapes::examine(&patient, &mut tell);
    servers::examine(&patient, &mut tell).await;
    Ok(())
}

/// A limit of the config in which one question should be answered.
pub(crate) fn patience(config: &Config) -> std::time::Duration {
    seconds(config.load.timeouts.connect_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_state_name_finding_and_mend() {
        let line = Check::warn("gpu", "none", "name one").to_string();
        assert_eq!(line, "warn  gpu                none; name one");
    }
}
