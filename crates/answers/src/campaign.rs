//! What a campaign answers: every part with its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_record::{ExitCode, Schema};

use crate::decision::Decision;

/// One case of the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The single stream.
    Tc01,
    /// What streams cost.
    Tc02,
    /// The ladder.
    Tc03,
    /// Long calls.
    Tc03b,
    /// The middle tier again.
    Tc08,
    /// Words under load.
    Tc04,
    /// The soak.
    Tc05,
    /// Faults.
    Tc06,
    /// Topologies.
    Tc07,
}

impl Part {
    /// All of them, in the order in which they are played.
    pub const ALL: [Self; 9] = [
        Self::Tc01,
        Self::Tc02,
        Self::Tc03,
        Self::Tc03b,
        Self::Tc08,
        Self::Tc04,
        Self::Tc05,
        Self::Tc06,
        Self::Tc07,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tc01 => "tc01",
            Self::Tc02 => "tc02",
            Self::Tc03 => "tc03",
            Self::Tc03b => "tc03b",
            Self::Tc08 => "tc08",
            Self::Tc04 => "tc04",
            Self::Tc05 => "tc05",
            Self::Tc06 => "tc06",
            Self::Tc07 => "tc07",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tc01 => "one stream",
            Self::Tc02 => "what a stream costs",
            Self::Tc03 => "the ladder: N*",
            Self::Tc03b => "long calls",
            Self::Tc08 => "the same tier again",
            Self::Tc04 => "words under load",
            Self::Tc05 => "soak",
            Self::Tc06 => "fault injection",
            Self::Tc07 => "topologies",
        }
    }

    /// Whether it needs N*.
    #[must_use]
    pub const fn needs_n_star(self) -> bool {
        matches!(self, Self::Tc03b | Self::Tc08 | Self::Tc04 | Self::Tc05 | Self::Tc06 | Self::Tc07)
    }
}

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartDone {
    /// Which.
    pub part: Part,
    /// Its answer; empty where it was left out.
    pub decision: Option<Decision>,
    /// The answer in one plain sentence, or why it was left out.
    pub sentence: String,
    /// How long it took, seconds on the run's clock.
    pub seconds: f64,
}

/// A ladder that was climbed anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// Why.
    pub why: String,
    /// N* that it found.
    pub n_star: Option<u32>,
    /// N* as it is displayed.
    pub capacity: String,
    /// Its run directory.
    pub run: PathBuf,
}

/// What a campaign answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Every part so far, in the order of play.
    pub parts: Vec<PartDone>,
    /// Ladders that were climbed anew.
    pub reruns: Vec<Rerun>,
    /// N* as it stands.
    pub n_star: Option<u32>,
    /// Why the campaign stopped before its end, and how to go on; empty where it did not.
    pub stopped: Option<String>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

impl CampaignAnswer {
    /// The exit code: 1 where a part's answer was no, 4 where one was not decidable or the campaign waits for a decision.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let any = |decision| self.parts.iter().any(|p| p.decision == Some(decision));
        if self.interrupted {
            ExitCode::Interrupted
        } else if self.stopped.is_some() {
            ExitCode::Undecidable
        } else if any(Decision::No) {
            ExitCode::No
        } else if any(Decision::Undecidable) {
            ExitCode::Undecidable
        } else {
            ExitCode::Ok
        }
    }

    /// How a part ended, if it did.
    #[must_use]
    pub fn done(&self, part: Part) -> Option<&PartDone> {
        self.parts.iter().find(|p| p.part == part)
    }
}
