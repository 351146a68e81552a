//! The number of streams that other cases start from.

use serde::{Deserialize, Serialize};

/// N*, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NStar {
    /// Streams.
    pub streams: u32,
    /// `capacity.json (exact)`, `campaign.json`, `--n-star`...
    pub source: String,
}

impl NStar {
    /// So many streams, as `source` has it.
    #[must_use]
    pub fn new(streams: u32, source: &str) -> Self {
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
        let n = NStar { streams: 39, source: String::new() };
        assert_eq!((n.share(0.5, 3), n.share(0.8, 3), n.share(1.0, 3)), (21, 30, 39));
        assert_eq!((n.share(0.5, 1), n.share(0.01, 3), n.share(0.5, 0)), (20, 3, 20));
        let odd = NStar { streams: 40, source: String::new() };
        assert_eq!((odd.share(1.0, 3), odd.share(0.5, 3)), (40, 21));
    }
}
