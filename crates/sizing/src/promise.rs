//! What a config says of the promise: what callers may expect, who they are, and what else is known.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::localized;

use crate::error::{SizingError, count, positive};
use crate::statement::Promise;

/// Share of calls that may find no free line where nobody says otherwise: one in a hundred, the usual grade of
/// service of a telephone group.
pub const BLOCKING: f64 = 0.01;

/// `[sizing.promise]`: what the capacity statement promises. Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PromisePlan {
    /// At most this share of calls finds no free line (Erlang B). Default [`BLOCKING`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking: Option<f64>,
    /// Instead: at least this share of calls is taken within `within_s` (Erlang C).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_level: Option<f64>,
    /// Seconds for `service_level`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_s: Option<f64>,
    /// Calls per hour that are expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_hour: Option<f64>,
    /// Lengths of the business's own calls: a CSV file with the columns `duration_s` and `calls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<PathBuf>,
    /// The same from a folder of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PathBuf>,
    /// The same where only the mean is known, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_s: Option<f64>,
    /// Streams at which nothing keeps up any more, where a ladder without pace is not at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard_ceiling: Option<u32>,
    /// Whether the balancer is round-robin, whatever instance has room.
    #[serde(rename = "dealt_in_turn")]
    pub round_robin: bool,
}

impl PromisePlan {
    /// What is promised.
    ///
    /// # Errors
    /// Two promises at once, or half of one.
    pub fn promise(&self) -> Result<Promise, SizingError> {
        match (self.blocking, self.service_level, self.within_s) {
            (Some(_), Some(_), _) => Err(SizingError::Inconsistent(localized!(
                "blocking and service_level are two promises: give one of them",
                "blocking 与 service_level 是两种承诺：只给其中一个"
            ))),
            (_, Some(share), Some(within_s)) => Ok(Promise::ServiceLevel { share, within_s }),
            (_, Some(_), None) | (_, None, Some(_)) => Err(SizingError::Inconsistent(localized!(
                "service_level and within_s belong together: give both or neither",
                "service_level 与 within_s 须同时给出或都不给"
            ))),
            (blocking, None, None) => Ok(Promise::Blocking(blocking.unwrap_or(BLOCKING))),
        }
    }

    /// The same, with what `over` says put over it: another promise takes the place of this one, another source of call lengths
    /// that of this one's.
    #[must_use]
    pub fn with(&self, over: &Self) -> Self {
        let promises = over.blocking.is_some() || over.service_level.is_some() || over.within_s.is_some();
        let lengths = over.histogram.is_some() || over.pool.is_some() || over.mean_s.is_some();
        let (promise, calls) = (if promises { over } else { self }, if lengths { over } else { self });
        Self {
            blocking: promise.blocking,
            service_level: promise.service_level,
            within_s: promise.within_s,
            calls_per_hour: over.calls_per_hour.or(self.calls_per_hour),
            histogram: calls.histogram.clone(),
            pool: calls.pool.clone(),
            mean_s: calls.mean_s,
            hard_ceiling: over.hard_ceiling.or(self.hard_ceiling),
            round_robin: over.round_robin || self.round_robin,
        }
    }

    /// Checks everything that can be checked without the files.
    ///
    /// # Errors
    /// As [`PromisePlan::promise`]; more than one source of call lengths; a figure that is negative, not a number or absurd.
    pub fn check(&self) -> Result<(), SizingError> {
        match self.promise()? {
            Promise::Blocking(blocking) => inner_share("blocking", blocking)?,
            Promise::ServiceLevel { share, within_s } => {
                inner_share("service_level", share)?;
                crate::error::not_negative("within_s", within_s, 1e9)?;
            }
        }
        if usize::from(self.histogram.is_some())
            + usize::from(self.pool.is_some())
            + usize::from(self.mean_s.is_some())
            > 1
        {
            return Err(SizingError::Inconsistent(localized!(
                "histogram, pool and mean_s all say how long calls are: give one of them",
                "histogram、pool 与 mean_s 都给出通话时长：只给其中一个"
            )));
        }
        if let Some(calls) = self.calls_per_hour {
            positive("calls_per_hour", calls, 1e12)?;
        }
        if let Some(mean_s) = self.mean_s {
            positive("mean_s", mean_s, 86_400.0)?;
        }
        if let Some(ceiling) = self.hard_ceiling {
            count("hard_ceiling", ceiling)?;
        }
        Ok(())
    }
}

/// A share that is neither nothing nor everything.
fn inner_share(what: &'static str, given: f64) -> Result<(), SizingError> {
    if given > 0.0 && given < 1.0 { Ok(()) } else { Err(SizingError::NotAShare { what: what.into(), given }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PromisePlan {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn nothing_said_is_one_call_in_a_hundred() {
        assert_eq!(read("").promise().unwrap(), Promise::Blocking(0.01));
        read("").check().unwrap();
        let level = read("service_level = 0.8\nwithin_s = 20.0\ncalls_per_hour = 50.0\nmean_s = 180.0");
        assert_eq!(level.promise().unwrap(), Promise::ServiceLevel { share: 0.8, within_s: 20.0 });
        level.check().unwrap();
    }

    #[test]
    fn flags_replace_what_they_contradict_and_leave_the_rest() {
        let file = read("service_level = 0.8\nwithin_s = 20.0\nmean_s = 180.0\ncalls_per_hour = 50.0");
        let with = file.with(&read("blocking = 0.02\nhistogram = \"calls.csv\""));
        assert_eq!(with, read("blocking = 0.02\nhistogram = \"calls.csv\"\ncalls_per_hour = 50.0"));
        with.check().unwrap();
        assert_eq!(file.with(&PromisePlan::default()), file);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (text, word) in [
            ("blocking = 0.01\nservice_level = 0.8\nwithin_s = 20.0", "two promises"),
            ("service_level = 0.8", "belong together"),
            ("within_s = 20.0", "belong together"),
            ("blocking = 0.0", "blocking"),
            ("blocking = 1.0", "blocking"),
            ("blocking = nan", "blocking"),
            ("service_level = 1.5\nwithin_s = 20.0", "service_level"),
            ("service_level = 0.8\nwithin_s = -1.0", "within_s"),
            ("histogram = \"a.csv\"\nmean_s = 180.0", "give one of them"),
            ("calls_per_hour = -5.0", "calls_per_hour"),
            ("calls_per_hour = inf", "calls_per_hour"),
            ("mean_s = 0.0", "mean_s"),
            ("hard_ceiling = 0", "hard_ceiling"),
        ] {
            let said = read(text).check().unwrap_err().to_string();
            assert!(said.contains(word), "{text}: {said}");
        }
        assert!(toml::from_str::<PromisePlan>("bloking = 0.01").is_err());
    }
}
