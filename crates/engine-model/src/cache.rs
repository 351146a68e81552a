//! A memory of digests that forgets the one unused for longest: the prefix cache and the multimodal cache.

use std::collections::BTreeMap;

/// Digests with a weight each, kept in the order of their last use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    by_use: BTreeMap<u64, (u64, u32)>,
    by_digest: BTreeMap<u64, u64>,
    weight: u64,
    clock: u64,
}

impl Recent {
    /// Whether the digest is known; if so it becomes the most recent one. 0 is never known.
    pub(crate) fn hit(&mut self, digest: u64) -> bool {
        let Some(used) = self.by_digest.get(&digest).copied() else { return false };
        if let Some(entry) = self.by_use.remove(&used) {
            self.clock += 1;
            self.by_use.insert(self.clock, entry);
            self.by_digest.insert(digest, self.clock);
        }
        true
    }

    /// Remembers the digest.
    pub(crate) fn learn(&mut self, digest: u64, weight: u32) {
        if digest == 0 || self.hit(digest) {
            return;
        }
        self.clock += 1;
        self.by_use.insert(self.clock, (digest, weight));
        self.by_digest.insert(digest, self.clock);
        self.weight += u64::from(weight);
    }

    /// Forgets until the rest weighs no more than `limit`.
    pub(crate) fn shrink(&mut self, limit: u64) {
        while self.weight > limit {
            let Some((_, (digest, weight))) = self.by_use.pop_first() else { return };
            self.by_digest.remove(&digest);
            self.weight -= u64::from(weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_what_was_unused_for_longest() {
        let mut cache = Recent::default();
        for digest in 1..=3 {
            cache.learn(digest, 10);
        }
        assert!(cache.hit(1));
        cache.shrink(20);
        assert_eq!([cache.hit(1), cache.hit(2), cache.hit(3)], [true, false, true]);
        cache.learn(0, 1);
        assert!(!cache.hit(0), "unknown audio is never known");
    }
}
