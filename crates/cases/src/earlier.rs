//! What earlier cases left in the run directory.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tapedeck_rundir::{CommittedStep, RunDir, RunDirError};
use tapedeck_slo::{Capacity, CapacityState};

use crate::error::CaseError;

/// N*, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NStar {
    /// Streams.
    pub streams: u32,
    /// `capacity.json (exact)`, `campaign.json`, `--n-star`...
    pub source: String,
}

impl NStar {
    /// So many streams, as `source` has it.
    #[must_use]
    pub fn new(streams: u32, source: &str) -> Self {
        Self { streams, source: source.into() }
    }

    /// A share of it in whole streams: the nearest multiple of the instance count, at least one stream an instance;
    /// the whole of it is itself.
    #[must_use]
    pub fn share(&self, share: f64, instances: usize) -> u32 {
        if share >= 1.0 {
            return self.streams;
        }
        let step = u32::try_from(instances).unwrap_or(u32::MAX).max(1);
        let wanted = f64::from(self.streams) * share / f64::from(step);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
        let steps = (wanted + 1e-9).round().max(1.0) as u32;
        steps.saturating_mul(step)
    }
}

/// A JSON file that an earlier case left in the run directory; nothing where there is none.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn read<T: DeserializeOwned>(dir: &RunDir, file: &str) -> Result<Option<T>, CaseError> {
    let path = dir.path().join(file);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(RunDirError::BadLine { path, line: 1, why: e.to_string() }.into()),
    };
    let read = serde_json::from_str(&text);
    Ok(Some(read.map_err(|e| RunDirError::BadLine { path, line: e.line(), why: e.to_string() })?))
}

/// Writes a case's answer into the run directory as pretty JSON.
///
/// # Errors
/// What the run directory refuses.
pub fn write<T: Serialize>(dir: &RunDir, file: &str, answer: &T) -> Result<(), CaseError> {
    let mut json = serde_json::to_vec_pretty(answer).map_err(CaseError::answer)?;
    json.push(b'\n');
    Ok(dir.write_file(file, &json)?)
}

/// N* as the ladder of this run left it, unless another was given.
///
/// # Errors
/// [`CaseError::Missing`] where there is neither, or where the ladder found none.
pub fn n_star(dir: &RunDir, given: Option<NStar>) -> Result<NStar, CaseError> {
    if let Some(given) = given {
        return Ok(given);
    }
    let missing = |what: String| CaseError::Missing {
        what,
        run: dir.path().to_path_buf(),
        mend: "climb the ladder first with `tc03 --into RUN_DIR`, or give --n-star N".into(),
    };
    let capacity: Capacity = read(dir, "capacity.json")?
        .ok_or_else(|| missing("N* is not known: there is no capacity.json".into()))?;
    match (capacity.n_star, capacity.state) {
        (Some(streams), state) if state != CapacityState::Undecided => {
            Ok(NStar { streams, source: format!("capacity.json ({})", capacity.state_name()) })
        }
        _ => Err(missing(format!("the ladder of this run found no N* ({})", capacity.display()))),
    }
}

/// Whether a step is a tier of the ladder by its name, not a step of another case in the same run.
#[must_use]
pub fn is_tier(step: &str) -> bool {
    step.strip_prefix('N').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The whole tiers of the ladder (`N` and a number) in this run, by streams; repetitions are left out.
pub fn ladder(dir: &RunDir) -> impl Iterator<Item = &CommittedStep> {
    dir.standing().filter(|s| !s.partial && is_tier(&s.step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_multiples_of_the_instances() {
        let n = NStar { streams: 39, source: String::new() };
        assert_eq!((n.share(0.5, 3), n.share(0.8, 3), n.share(1.0, 3)), (21, 30, 39));
        assert_eq!((n.share(0.5, 1), n.share(0.01, 3), n.share(0.5, 0)), (20, 3, 20));
        let odd = NStar { streams: 40, source: String::new() };
        assert_eq!((odd.share(1.0, 3), odd.share(0.5, 3)), (40, 21));
    }
}
