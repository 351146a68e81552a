//! Flags of the capacity statement, over the `[sizing.promise]` of the run's config.

use std::path::PathBuf;

use clap::Args;
use tapedeck_sizing::PromisePlan;

/// What the capacity statement promises; what is left out is as the run's config has it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Capacity statement")]
pub struct PromiseArgs {
    /// At most this share of calls may find no free line (Erlang B) [default: the run's, else 0.01]
    #[arg(long, value_name = "SHARE", conflicts_with = "service_level", allow_negative_numbers = true)]
    pub blocking: Option<f64>,
    /// Instead: at least this share of calls is taken within --within-s (Erlang C)
    #[arg(long, value_name = "SHARE", requires = "within_s", allow_negative_numbers = true)]
    pub service_level: Option<f64>,
    /// Seconds for --service-level
    #[arg(long, value_name = "SECONDS", requires = "service_level", allow_negative_numbers = true)]
    pub within_s: Option<f64>,
    /// Calls per hour that are expected: are the lines enough?
    #[arg(long, value_name = "CALLS", allow_negative_numbers = true)]
    pub calls_per_hour: Option<f64>,
    /// The business's own calls: a CSV file with the columns duration_s and calls
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pool", "mean_s"])]
    pub histogram: Option<PathBuf>,
    /// The business's own calls: a folder of recordings, whose lengths are read
    #[arg(long, value_name = "DIR", conflicts_with = "mean_s")]
    pub pool: Option<PathBuf>,
    /// The business's own calls: only the mean length is known, seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub mean_s: Option<f64>,
    /// Streams at which nothing keeps up any more [default: from a ladder of the run with --pace off]
    #[arg(long, value_name = "STREAMS")]
    pub hard_ceiling: Option<u32>,
    /// The balancer is round-robin: connections go to instances in turn, whatever instance has room
    #[arg(long, alias = "dealt-in-turn")]
    pub round_robin: bool,
}

impl PromiseArgs {
    /// What the flags alone say.
    #[must_use]
    pub fn plan(&self) -> PromisePlan {
        PromisePlan {
            blocking: self.blocking,
            service_level: self.service_level,
            within_s: self.within_s,
            calls_per_hour: self.calls_per_hour,
            histogram: self.histogram.clone(),
            pool: self.pool.clone(),
            mean_s: self.mean_s,
            hard_ceiling: self.hard_ceiling,
            round_robin: self.round_robin,
        }
    }
}
