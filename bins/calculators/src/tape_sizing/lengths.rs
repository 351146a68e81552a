//! Where call lengths come from.

use std::path::PathBuf;

use clap::Args;
use tapedeck_sizing::kv::{TAPE_A_S, TAPE_B_S};
use tapedeck_sizing::{Durations, PromisePlan};
use tapedeck_tape::{Manifest, lengths_s};

use super::read;
use tapedeck_cli::Failure;
use tapedeck_cli::usage;

/// Call lengths: of a tape, a list, a histogram or a pool; give one. Without any, Tape-A and Tape-B of the plan.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct Lengths {
    /// A tape of the load-test plan: a (30 s x6, 60 s x2, 180 s) or b (300 s, 180 s, 60 s x2, 30 s x2)
    #[arg(long, value_name = "a|b")]
    pub tape: Option<String>,
    /// A frozen tape's manifest
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Lengths in seconds, parted by commas
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', allow_negative_numbers = true)]
    pub durations: Option<Vec<f64>>,
    /// Histogram (CSV) with the columns duration_s and calls
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,
    /// A folder of recordings, whose lengths are read
    #[arg(long, value_name = "DIR")]
    pub pool: Option<PathBuf>,
    /// Only the mean length is known, seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub mean_s: Option<f64>,
}

/// Named call lengths, s.
pub(super) type Named = (String, Vec<f64>);

impl Lengths {
    /// The distribution that was asked for, if any.
    pub(super) fn durations(&self) -> Result<Option<Durations>, Failure> {
        if let Some(path) = &self.histogram {
            let name = path.display().to_string();
            return Durations::histogram(name, &read(path)?)
                .map(Some)
                .map_err(|e| Failure::Usage(format!("{}: {e}", path.display())));
        }
        if let Some(mean_s) = self.mean_s {
            return Durations::of_mean(Durations::OF_MEAN, mean_s).map(Some).map_err(usage);
        }
        self.calls()?.map(|(name, calls)| Durations::of_calls(name, &calls).map_err(usage)).transpose()
    }

    /// The same, or what the plan says of the business's own calls.
    pub(super) fn own(&self, plan: &PromisePlan) -> Result<Option<Durations>, Failure> {
        if let Some(asked) = self.durations()? {
            return Ok(Some(asked));
        }
        let planned = Self {
            histogram: plan.histogram.clone(),
            pool: plan.pool.clone(),
            mean_s: plan.mean_s,
            ..Self::default()
        };
        planned.durations()
    }

    /// The lengths one by one, if any were asked for.
    pub(super) fn calls(&self) -> Result<Option<Named>, Failure> {
        if let Some(tape) = &self.tape {
            return Ok(Some(match tape.to_ascii_lowercase().as_str() {
                "a" => ("Tape-A".into(), TAPE_A_S.to_vec()),
                "b" => ("Tape-B".into(), TAPE_B_S.to_vec()),
                _ => return Err(Failure::Usage(format!("--tape {tape}: give a or b, or --manifest FILE"))),
            }));
        }
        if let Some(path) = &self.manifest {
            let manifest = Manifest::read(path).map_err(usage)?;
            let calls = manifest.calls.iter().map(|call| f64::from(call.duration_ms) / 1e3).collect();
            return Ok(Some((manifest.name, calls)));
        }
        if let Some(durations) = &self.durations {
            return Ok(Some(("the given lengths".into(), durations.clone())));
        }
        if let Some(folder) = &self.pool {
            let calls = lengths_s(folder).map_err(usage)?;
            if calls.is_empty() {
                return Err(Failure::Usage(format!("{}: no recording in it can be read", folder.display())));
            }
            return Ok(Some((folder.display().to_string(), calls)));
        }
        Ok(None)
    }

    /// The lengths one by one, or both tapes of the plan.
    pub(super) fn tapes(&self) -> Result<Vec<Named>, Failure> {
        if self.histogram.is_some() || self.mean_s.is_some() {
            return Err(Failure::Usage(
                "a tape has single calls: give --tape, --manifest, --durations or --pool, no histogram or mean".into(),
            ));
        }
        Ok(match self.calls()? {
            Some(one) => vec![one],
            None => vec![("Tape-A".into(), TAPE_A_S.to_vec()), ("Tape-B".into(), TAPE_B_S.to_vec())],
        })
    }
}
