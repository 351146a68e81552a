//! The one source of chance: ChaCha with 8 rounds, so that a seed means the same draws on every machine and in
//! every version.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The seed of a part of a run, by the part's name: what is random in it then follows from the run's seed and that name
/// alone, whatever was drawn before. FNV-1a over the name, so that it never changes with a library.
#[must_use]
pub fn seed_of(seed: u64, name: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    name.bytes()
        .chain(seed.to_le_bytes())
        .fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A seeded stream of draws.
#[derive(Debug, Clone)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// `stream` separates uses of one seed: draws of different streams are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// A whole number below `n` (0 where `n` is 0), every one equally likely.
    pub fn below(&mut self, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        // The high word of draw x n is the number; draws whose low word falls into the incomplete part are refused.
        let refused = n.wrapping_neg() % n;
        loop {
            let product = u64::from(self.0.next_u32()) * u64::from(n);
            let [high, low] = [product >> 32, product & u64::from(u32::MAX)];
            if low >= u64::from(refused) {
                return u32::try_from(high).unwrap_or(0);
            }
        }
    }

    /// A place among `n`, as the upper half of a 128-bit product: uneven by less than 1 in 2^64 / `n`, and always one
    /// draw.
    pub fn index(&mut self, n: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * n as u128;
        #[expect(clippy::cast_possible_truncation, reason = "the upper half is below `n`")]
        let index = (product >> 64) as usize;
        index
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let bits = (self.0.next_u64() >> 11) as f64;
        bits / 9_007_199_254_740_992.0
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let Ok(n) = u32::try_from(last + 1) else { return };
            items.swap(last, self.below(n) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_parts_follow_from_seed_and_name_for_ever() {
        // FNV-1a of no bytes but the seed's eight zeros.
        assert_eq!(seed_of(0, ""), 0xa8c7_f832_281a_39c5);
        let all = [(1, "N012"), (2, "N012"), (1, "N018"), (1, "N012 inst1")]
            .map(|(seed, name)| seed_of(seed, name));
        let distinct: std::collections::BTreeSet<u64> = all.into();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_seed_means_the_same_draws_for_ever() {
        let mut draws = Draws::new(42, 0);
        let first: Vec<u32> = (0..8).map(|_| draws.below(1000)).collect();
        let mut again = Draws::new(42, 0);
        assert_eq!(first, (0..8).map(|_| again.below(1000)).collect::<Vec<_>>());
        let mut other = Draws::new(42, 1);
        assert_ne!(first, (0..8).map(|_| other.below(1000)).collect::<Vec<_>>());
        assert_eq!(first, [224, 681, 146, 950, 772, 427, 344, 627]);
    }

    #[test]
    fn small_ranges_are_even() {
        let mut draws = Draws::new(7, 0);
        let mut counts = [0_u32; 6];
        (0..60_000).for_each(|_| counts[draws.below(6) as usize] += 1);
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!(draws.below(0), 0);
    }

    #[test]
    fn normal_draws_have_mean_0_and_deviation_1() {
        let mut draws = Draws::new(3, 0);
        let sample: Vec<f64> = (0..20_000).map(|_| draws.normal()).collect();
        let moments = crate::moments::Moments::of(&sample).unwrap();
        assert!(moments.mean.abs() < 0.03 && (moments.sd.unwrap() - 1.0).abs() < 0.03, "{moments:?}");
    }
}
