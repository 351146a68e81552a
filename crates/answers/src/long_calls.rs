//! What long calls answer (TC-03b).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::Schema;
use tapedeck_slo::{Capacity, TierReport};

use crate::decision::Decision;
use crate::n_star::NStar;
use crate::pools::Occupation;

/// What the tape with long calls answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LongCallsAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// Yes: N* holds with long calls too.
    pub decision: Decision,
    /// N* on short calls.
    pub n_star: NStar,
    /// Streams on Tape-B: the highest that passed below the first that failed.
    pub capacity: Capacity,
    /// Streams on Tape-B / N*, at most 1; empty where the first is not known.
    pub correction: Option<f64>,
    /// What the pool was expected to hold, before anything was played.
    pub predicted: Vec<Occupation>,
    /// What was played, in that order.
    pub tiers: Vec<TierReport>,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
    /// Where everything is written down.
    #[serde(skip)]
    pub run: PathBuf,
}

impl Localize for LongCallsAnswer {
    fn text(&self) -> LocalizedText {
        let NStar { streams, source } = &self.n_star;
        let n_star = localized!("N* = {streams} ({})", "N* = {streams}（{}）"; source.text());
        let shown = self.capacity.state.n_star(self.capacity.n_star);
        match (self.decision, self.correction) {
            (Decision::Yes, _) => localized!("{} holds with long calls", "{} 对长通话同样成立"; n_star),
            (Decision::No, correction) => {
                let correction = correction.map_or_else(LocalizedText::default, |c| {
                    localized!(", correction {c:.2}", "，修正系数 {c:.2}")
                });
                localized!(
                    "{} does not hold with long calls: {} with them{}",
                    "{} 对长通话不成立：长通话为 {}{}"; n_star, shown, correction
                )
            }
            (Decision::Undecidable, _) => localized!(
                "not decidable with long calls: {} of {}",
                "长通话无法判定：{}，对照 {}"; shown, n_star
            ),
        }
    }
}
