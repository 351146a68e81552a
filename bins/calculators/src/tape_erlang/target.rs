//! Targets of the inverse questions, and which model each belongs to.

use clap::{ArgGroup, Args};
use tapedeck_erlang::engset::Source;
use tapedeck_erlang::erlang_a::Target;
use tapedeck_erlang::{ErlangError, engset, erlang_a, erlang_b, erlang_c, retries};

use super::figures::Unanswered;

/// A target, and what the model needs to know besides traffic and lines.
#[derive(Debug, Clone, Copy, Args)]
#[group(skip)]
#[command(group(
    ArgGroup::new("target")
        .required(true)
        .args(["blocking", "waiting", "service_level", "abandoning", "mean_wait_s"])
))]
pub struct Goal {
    /// At most this share of calls is lost (Erlang B; extended B with --recall, Engset with --sources)
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub blocking: Option<f64>,
    /// At most this share of calls waits (Erlang C; Erlang A with --patience-s)
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub waiting: Option<f64>,
    /// At least this share of calls is answered within --within-s (Erlang C; Erlang A with --patience-s)
    #[arg(long, value_name = "SHARE", requires = "within_s", allow_negative_numbers = true)]
    pub service_level: Option<f64>,
    /// At most this share of calls gives up (Erlang A; needs --patience-s)
    #[arg(long, value_name = "SHARE", requires = "patience_s", allow_negative_numbers = true)]
    pub abandoning: Option<f64>,
    /// The mean wait of all calls is at most this many seconds (Erlang C)
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "mean_s",
        conflicts_with = "patience_s",
        allow_negative_numbers = true
    )]
    pub mean_wait_s: Option<f64>,
    /// Seconds within which a call counts as answered in time
    #[arg(long, value_name = "SECONDS", requires_all = ["mean_s", "service_level"], allow_negative_numbers = true)]
    pub within_s: Option<f64>,
    /// Mean call length, seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub mean_s: Option<f64>,
    /// Mean patience, seconds
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "mean_s",
        conflicts_with = "blocking",
        allow_negative_numbers = true
    )]
    pub patience_s: Option<f64>,
    /// Share of blocked attempts that are repeated, 0 to 1
    #[arg(
        long,
        value_name = "SHARE",
        requires = "blocking",
        conflicts_with = "sources",
        allow_negative_numbers = true
    )]
    pub recall: Option<f64>,
    /// Callers that there are
    #[arg(long, requires = "blocking", allow_negative_numbers = true)]
    pub sources: Option<u64>,
}

/// The model that a target belongs to, with its figures in mean call lengths.
#[derive(Debug, Clone, Copy)]
pub(super) enum Model {
    /// Erlang B.
    B { target: f64 },
    /// Extended Erlang B.
    Retries { target: f64, recall: f64 },
    /// Engset.
    Engset { target: f64, sources: u64 },
    /// Erlang C, by the share that waits.
    Waiting { target: f64 },
    /// Erlang C, by service level.
    Level { target: f64, within: f64 },
    /// Erlang C, by mean wait.
    MeanWait { wait: f64 },
    /// Erlang A.
    A { target: Target, patience: f64 },
}

impl Goal {
    pub(super) fn model(&self) -> Result<Model, Unanswered> {
        let mean = match self.mean_s {
            Some(mean) if !(mean.is_finite() && mean > 0.0) => {
                return Err(Unanswered(format!(
                    "mean call length (s) is {mean}: it must be a finite number above zero"
                )));
            }
            other => other,
        };
        let calls = |seconds: f64| seconds / mean.unwrap_or(f64::NAN);
        let patience = self.patience_s.map(calls);
        let within = self.within_s.map_or(f64::NAN, calls);
        let model = if let Some(target) = self.blocking {
            match (self.recall, self.sources) {
                (Some(recall), _) => Model::Retries { target, recall },
                (None, Some(sources)) => Model::Engset { target, sources },
                (None, None) => Model::B { target },
            }
        } else if let Some(target) = self.waiting {
            match patience {
                Some(patience) => Model::A { target: Target::Waiting(target), patience },
                None => Model::Waiting { target },
            }
        } else if let Some(target) = self.service_level {
            match patience {
                Some(patience) => Model::A { target: Target::Answered { share: target, within }, patience },
                None => Model::Level { target, within },
            }
        } else if let (Some(target), Some(patience)) = (self.abandoning, patience) {
            Model::A { target: Target::Abandoning(target), patience }
        } else if let Some(wait) = self.mean_wait_s {
            Model::MeanWait { wait: calls(wait) }
        } else {
            return Err(Unanswered(
                "no target: give --blocking, --waiting, --service-level, --abandoning or --mean-wait-s"
                    .into(),
            ));
        };
        Ok(model)
    }
}

impl Model {
    /// Fewest lines; `traffic` is each source's share where there are finitely many.
    pub(super) fn lines(self, traffic: f64) -> Result<u64, ErlangError> {
        match self {
            Self::B { target } => erlang_b::lines(traffic, target),
            Self::Retries { target, recall } => retries::lines(traffic, target, recall),
            Self::Engset { target, sources } => engset::lines(sources, Source::Busy(traffic), target),
            Self::Waiting { target } => erlang_c::lines_for_waiting(traffic, target),
            Self::Level { target, within } => erlang_c::lines_for_service_level(traffic, target, within),
            Self::MeanWait { wait } => erlang_c::lines_for_mean_wait(traffic, wait),
            Self::A { target, patience } => erlang_a::lines(traffic, patience, target),
        }
    }

    /// Most traffic; each source's share where there are finitely many.
    pub(super) fn traffic(self, lines: u64) -> Result<f64, ErlangError> {
        match self {
            Self::B { target } => erlang_b::traffic(lines, target),
            Self::Retries { target, recall } => retries::traffic(lines, target, recall),
            Self::Engset { target, sources } => engset::traffic(sources, lines, target).map(Source::busy),
            Self::Waiting { target } => erlang_c::traffic_for_waiting(lines, target),
            Self::Level { target, within } => erlang_c::traffic_for_service_level(lines, target, within),
            Self::MeanWait { wait } => erlang_c::traffic_for_mean_wait(lines, wait),
            Self::A { target, patience } => erlang_a::traffic(lines, patience, target),
        }
    }

    /// What the target says.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::B { .. } => "at which no more than the target's share of calls is lost (Erlang B)",
            Self::Retries { .. } => {
                "at which no more than the target's share of attempts is blocked (extended Erlang B)"
            }
            Self::Engset { .. } => "at which no more than the target's share of calls is lost (Engset)",
            Self::Waiting { .. } => "at which no more than the target's share of calls waits (Erlang C)",
            Self::Level { .. } => "at which the target's share of calls is answered in time (Erlang C)",
            Self::MeanWait { .. } => "at which the mean wait of all calls is within the target (Erlang C)",
            Self::A { .. } => "at which the target is met by callers of limited patience (Erlang A)",
        }
    }
}
