//! The paged KV pool: who holds how many blocks, and none that is not there.

/// A pool of equal blocks. Which block is whose does not matter to anything that can be seen, so only numbers are kept.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    total: u32,
    free: u32,
    block_tokens: u32,
}

/// Blocks that one request holds. Not `Clone`: blocks move, they are not copied, and they go back through
/// [`Pool::release`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(u32);

impl Held {
    pub(crate) const fn blocks(&self) -> u32 {
        self.0
    }
}

impl Pool {
    pub(crate) const fn new(total: u32, block_tokens: u32) -> Self {
        Self { total, free: total, block_tokens }
    }

    pub(crate) const fn used(&self) -> u32 {
        self.total - self.free
    }

    pub(crate) const fn free_tokens(&self) -> u64 {
        self.free as u64 * self.block_tokens as u64
    }

    pub(crate) fn usage(&self) -> f64 {
        f64::from(self.used()) / f64::from(self.total)
    }

    /// Whether `held` could grow until it has room for `tokens`.
    pub(crate) const fn fits(&self, held: &Held, tokens: u32) -> bool {
        tokens.div_ceil(self.block_tokens).saturating_sub(held.0) <= self.free
    }

    /// Lets `held` grow until it has room for `tokens`. All or nothing: `false` when the pool cannot give that much.
    pub(crate) fn grow(&mut self, held: &mut Held, tokens: u32) -> bool {
        // Most tokens find room in a block that is there already, and every step asks for every request.
        if u64::from(tokens) <= u64::from(held.0) * u64::from(self.block_tokens) {
            return true;
        }
        let wanted = tokens.div_ceil(self.block_tokens).saturating_sub(held.0);
        if wanted > self.free {
            return false;
        }
        self.free -= wanted;
        held.0 += wanted;
        true
    }

    /// Takes all blocks back.
    pub(crate) fn release(&mut self, held: &mut Held) {
        self.free += std::mem::take(&mut held.0);
        debug_assert!(self.free <= self.total, "more blocks came back than there are");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_by_whole_blocks_or_not_at_all() {
        let mut pool = Pool::new(3, 16);
        let (mut a, mut b) = (Held::default(), Held::default());
        assert!(pool.grow(&mut a, 17));
        assert_eq!((a.blocks(), pool.used()), (2, 2));
        assert!(pool.grow(&mut a, 32), "the second block has room for it");
        assert!(!pool.grow(&mut b, 17));
        assert_eq!((b.blocks(), pool.used()), (0, 2), "a refusal takes nothing");
        pool.release(&mut a);
        assert!(pool.grow(&mut b, 48));
        assert!((pool.usage() - 1.0).abs() < 1e-12);
        assert_eq!(pool.free_tokens(), 0);
    }
}
