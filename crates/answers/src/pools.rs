//! KV pools: how large they are, and what a tape is expected to take of them.

use serde::{Deserialize, Serialize};

/// The pool of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePool {
    /// The instance.
    pub name: String,
    /// Tokens that its pool holds; empty where neither page nor log tells.
    pub tokens: Option<u64>,
    /// Where that figure comes from, or why there is none.
    pub source: String,
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
    pub source: String,
}

impl Occupation {
    /// The expectation in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { streams, stream_tokens, share, source } = self;
        let of = format!("{streams} streams of {stream_tokens:.0} tokens each ({source})");
        match share {
            Some(share) if *share >= 0.98 => {
                format!("expected: {of} take {:.0} % of the KV pools: more than there is", share * 100.0)
            }
            Some(share) => format!("expected: {of} take {:.0} % of the KV pools", share * 100.0),
            None => format!("expected: {of}; the KV pools are not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occupation_beyond_the_pool_is_called_so() {
        let expected = |share| {
            Occupation { streams: 48, stream_tokens: 3500.0, share, source: "theory".into() }.sentence()
        };
        assert!(expected(Some(1.2)).ends_with("120 % of the KV pools: more than there is"));
        assert!(expected(Some(0.5)).ends_with("take 50 % of the KV pools"));
        assert!(expected(None).ends_with("the KV pools are not known"));
    }
}
