//! The number of streams that other cases start from.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_slo::CapacityState;

use crate::campaign::CampaignAnswer;
use crate::files::{AnswerFile, CAPACITY};

/// N*, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NStar {
    /// Streams.
    pub streams: u32,
    /// Where it comes from.
    pub source: NStarSource,
}

/// Where N* comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum NStarSource {
    /// The ladder of the run.
    Ladder {
        /// How firm it is.
        state: CapacityState,
    },
    /// The campaign, after a ladder was climbed anew perhaps.
    Campaign,
    /// Long calls, whose N* is the lower one.
    LongCalls,
    /// `--n-star`.
    Flag,
    /// Another name, or a sentence of an earlier version.
    #[serde(skip)]
    Recorded(String),
}

reason!(NStarSource);

impl From<&str> for NStarSource {
    fn from(name: &str) -> Self {
        Self::Recorded(name.into())
    }
}

impl Localize for NStarSource {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Ladder { state } => {
                localized!("{CAPACITY} ({})", "{CAPACITY}（{}）"; state.text())
            }
            Self::Campaign => CampaignAnswer::FILE.into(),
            Self::LongCalls => localized!("long calls", "长通话"),
            Self::Flag => "--n-star".into(),
            Self::Recorded(name) => LocalizedText::same(name),
        }
    }
}

impl NStar {
    /// So many streams, as `source` has it.
    #[must_use]
    pub fn new(streams: u32, source: impl Into<NStarSource>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_multiples_of_the_instances() {
        let n = NStar::new(39, NStarSource::Flag);
        assert_eq!((n.share(0.5, 3), n.share(0.8, 3), n.share(1.0, 3)), (21, 30, 39));
        assert_eq!((n.share(0.5, 1), n.share(0.01, 3), n.share(0.5, 0)), (20, 3, 20));
        let odd = NStar::new(40, NStarSource::Flag);
        assert_eq!((odd.share(1.0, 3), odd.share(0.5, 3)), (40, 21));
    }
}
