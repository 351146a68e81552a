//! What topologies answer (TC-07).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{ExitCode, Schema};
use tapedeck_sizing::whatif::{FitNote, Supposition};
use tapedeck_slo::{Capacity, CapacityState, TierReport};

use crate::n_star::NStar;

/// What the comparison answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopologyAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// N* of the first topology, and where it comes from.
    pub n_star: NStar,
    /// Every topology, in the order of the config.
    pub candidates: Vec<Candidate>,
    /// The one to take; empty where nothing could be decided.
    pub recommended: Option<String>,
    /// Why.
    pub why: TopologyReason,
    /// How good the fit is that the predictions rest on, or why nothing was predicted.
    #[serde(default)]
    #[serde(alias = "foretold")]
    pub prediction_notes: Vec<FitNote>,
    /// Whether that is another one than the first.
    pub better: bool,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl TopologyAnswer {
    /// The exit code: 0 the first topology stands, 1 another is better, 4 not decidable.
    #[must_use]
    pub const fn exit_code(&self) -> ExitCode {
        match (self.interrupted, &self.recommended, self.better) {
            (true, ..) => ExitCode::Interrupted,
            (_, None, _) => ExitCode::Undecidable,
            (_, _, true) => ExitCode::No,
            (_, _, false) => ExitCode::Ok,
        }
    }
}

/// How one topology did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// How many instances it has.
    pub instances: u32,
    /// N* as far as three tiers tell.
    pub capacity: Capacity,
    /// Real-time factor p95 at the common load.
    pub rtf_p95: Option<f64>,
    /// p95 of each call's longest lag at the common load, seconds.
    pub lag_p95_s: Option<f64>,
    /// What is left of the fullest KV pool at the common load (1 - p95), 0..1.
    pub kv_room: Option<f64>,
    /// Errored streams at the common load.
    pub err_streams: u32,
    /// Its tiers.
    pub tiers: Vec<TierReport>,
    /// What had been predicted of it; empty where nothing was.
    #[serde(default)]
    pub predicted: Vec<Predicted>,
}

/// N* of a topology as it was predicted: a range that is meant to hold it 95 times in 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// On which supposition.
    pub given: Supposition,
    /// N* of the best fit.
    pub n_star: u32,
    /// Lowest.
    pub low: u32,
    /// Highest.
    pub high: u32,
    /// Whether what was measured lies in that range as far as the tiers tell; empty where they prove nothing.
    pub agrees: Option<bool>,
}

impl Predicted {
    /// Holds it against a measurement: N* lies from the highest tier that passed up to, but not at, the first that failed.
    pub fn hold_against(&mut self, measured: &Capacity) {
        self.agrees = match measured.state {
            CapacityState::Undecided => None,
            _ => {
                let passed = measured.n_star.unwrap_or(0);
                Some(self.high >= passed && measured.first_fail.is_none_or(|fail| self.low < fail))
            }
        };
    }
}

impl Localize for Predicted {
    fn text(&self) -> LocalizedText {
        let mut given = self.given.text();
        if !given.en.is_empty() {
            given = localized!(" {}", "，{}"; given);
        }
        let verdict = match self.agrees {
            Some(true) => localized!("; the measurement agrees", "；与实测相符"),
            Some(false) => localized!("; the measurement DIFFERS", "；与实测不符"),
            None => LocalizedText::default(),
        };
        let Self { n_star, low, high, .. } = self;
        let range = localized!("N* = {n_star} ({low} to {high})", "N* = {n_star}（{low} 至 {high}）");
        localized!("{}{}, predicted, not measured{}", "{}{}，预测，非实测{}"; range, given, verdict)
    }
}

/// Why a topology is recommended, or none is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum TopologyReason {
    /// Nothing was compared.
    NothingCompared,
    /// None beats the first.
    NoneBetter {
        /// The first.
        than: String,
    },
    /// One beats another.
    Better {
        /// The better one.
        name: String,
        /// The other.
        than: String,
        /// By what.
        by: Advantage,
    },
    /// One topology's tiers prove nothing.
    NothingProven {
        /// Which.
        name: String,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(TopologyReason);

/// What makes one topology better than another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "figure", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Advantage {
    /// It carries more streams.
    NStar {
        /// N*, where there is one.
        n_star: Option<u32>,
        /// How firm that is.
        state: CapacityState,
        /// N* of the other.
        other_n_star: Option<u32>,
        /// How firm that is.
        other_state: CapacityState,
    },
    /// As many streams, and answers lag less.
    Lag {
        /// Lag p95, seconds.
        lag_p95_s: f64,
        /// Of the other, seconds.
        other_lag_p95_s: f64,
    },
    /// As many streams, as much lag, and more room in the KV pool.
    KvRoom {
        /// Free share, 0..1.
        free: f64,
        /// Of the other, 0..1.
        other_free: f64,
    },
}

impl Localize for TopologyReason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NothingCompared => LocalizedText::default(),
            Self::NoneBetter { than } => localized!("none is better than {than}", "没有比 {than} 更好的"),
            Self::Better { name, than, by } => localized!(
                "{name} is better than {than}: {}",
                "{name} 优于 {than}：{}"; by.text()
            ),
            Self::NothingProven { name } => localized!(
                "nothing can be recommended: the tiers of {name} prove nothing",
                "无法推荐：{name} 的各档什么也证明不了"
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

impl Localize for Advantage {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NStar { n_star, state, other_n_star, other_state } => localized!(
                "N* {}; the other's {}",
                "N* 为 {}，而对方为 {}";
                state.n_star(*n_star), other_state.n_star(*other_n_star)
            ),
            Self::Lag { lag_p95_s, other_lag_p95_s } => localized!(
                "N* is alike, and lag p95 is {lag_p95_s:.2} s instead of {other_lag_p95_s:.2} s",
                "N* 相近，欠账延迟 p95 为 {lag_p95_s:.2} s，而对方为 {other_lag_p95_s:.2} s"
            ),
            Self::KvRoom { free, other_free } => localized!(
                "N* and lag are alike, and {:.0} % of the KV pool are free instead of {:.0} %",
                "N* 与欠账延迟相近，KV 池空闲 {:.0} %，而对方为 {:.0} %",
                free * 100.0,
                other_free * 100.0
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(n_star: Option<u32>, first_fail: Option<u32>, state: CapacityState) -> Capacity {
        Capacity {
            n_star,
            state,
            published: None,
            safety_factor: 0.7,
            first_fail,
            limited_by: Vec::new(),
            point_verdict_tiers: Vec::new(),
            non_monotonic: Vec::new(),
            undecided: Vec::new(),
            quality_cap: None,
            simulated: true,
        }
    }

    #[test]
    fn a_range_agrees_where_it_reaches_between_pass_and_failure() {
        use CapacityState::{Censored, Exact, None as Nothing, Undecided};
        for (low, high, n_star, fail, state, agrees) in [
            (30, 34, Some(36), Some(45), Exact, Some(false)),
            (30, 36, Some(36), Some(45), Exact, Some(true)),
            (38, 40, Some(36), Some(45), Exact, Some(true)),
            (45, 50, Some(36), Some(45), Exact, Some(false)),
            (60, 70, Some(54), None, Censored, Some(true)),
            (12, 20, None, Some(36), Nothing, Some(true)),
            (36, 40, None, Some(36), Nothing, Some(false)),
            (30, 40, None, None, Undecided, None),
        ] {
            let mut one = Predicted { given: Supposition::Nothing, n_star: low, low, high, agrees: None };
            one.hold_against(&measured(n_star, fail, state));
            assert_eq!(one.agrees, agrees, "{low} to {high} against {n_star:?}, {fail:?}");
            assert!(one.text().en.contains("predicted, not measured"));
        }
    }
}
