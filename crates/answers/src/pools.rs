//! KV pools: how large they are, and what a tape is expected to take of them.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_sizing::PoolSource;

/// The pool of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePool {
    /// The instance.
    pub name: String,
    /// Tokens that its pool holds; empty where neither page nor log tells.
    pub tokens: Option<u64>,
    /// Where that figure comes from, or why there is none.
    pub source: PoolSource,
}

/// What the pools are expected to hold at a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Occupation {
    /// Streams on all instances.
    pub streams: u32,
    /// Tokens of a stream, mean over time.
    pub stream_tokens: f64,
    /// Share of all pools, 0..1 and beyond; empty where a pool is not known.
    pub share: Option<f64>,
    /// Where the tokens of a stream come from.
    pub source: OccupationSource,
}

/// Where the tokens of a stream come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum OccupationSource {
    /// Theory of the tape, scaled by what TC-02 of the same run measured of it.
    Measured {
        /// Measured / theory.
        ratio: f64,
    },
    /// Theory alone.
    Theory {
        /// How the engine keeps sessions.
        session: String,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(OccupationSource);

impl Localize for OccupationSource {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Measured { ratio } => {
                localized!("theory x {ratio:.2}, as TC-02 measured", "理论值 x {ratio:.2}，由 TC-02 测得")
            }
            Self::Theory { session } => {
                localized!("theory of a `{session}` session", "`{session}` 会话的理论值")
            }
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

impl Localize for Occupation {
    fn text(&self) -> LocalizedText {
        let Self { streams, stream_tokens, share, source } = self;
        let of = localized!(
            "expected: {streams} streams of {stream_tokens:.0} tokens each ({})",
            "预计：{streams} 路，每路 {stream_tokens:.0} token（{}）"; source.text()
        );
        let percent = share.unwrap_or_default() * 100.0;
        match share {
            Some(share) if *share >= 0.98 => localized!(
                "{} take {percent:.0} % of the KV pools: more than there is",
                "{}，需占 KV 池的 {percent:.0} %：超出容量"; of
            ),
            Some(_) => localized!(
                "{} take {percent:.0} % of the KV pools",
                "{}，占 KV 池的 {percent:.0} %"; of
            ),
            None => localized!("{}; the KV pools are not known", "{}；KV 池大小未知"; of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occupation_beyond_the_pool_is_called_so() {
        let expected = |share| {
            let source = OccupationSource::Theory { session: "plan".into() };
            Occupation { streams: 48, stream_tokens: 3500.0, share, source }.text().en
        };
        assert!(expected(Some(1.2)).ends_with("120 % of the KV pools: more than there is"));
        assert!(expected(Some(0.5)).ends_with("take 50 % of the KV pools"));
        assert!(expected(None).ends_with("the KV pools are not known"));
    }
}
