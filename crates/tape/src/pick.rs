//! Seeded stratified sampling without a random number generator.
//!
//! Every recording has a rank: the MD5 of the seed and of the recording's own MD5. A bucket's calls are the first
//! of each stratum by rank. So the picks depend on content alone, never on names or on the order in which a disk
//! lists them; a file added elsewhere leaves them as they are; and no version of any generator is part of the
//! contract.

use std::collections::BTreeMap;

use crate::digest::md5_hex;

/// A recording that could be picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate<'a> {
    pub(crate) path: &'a str,
    pub(crate) md5: &'a str,
    /// Values of the tags that form strata.
    pub(crate) stratum: Vec<&'a str>,
}

/// The rank of a recording under a seed: lower comes first.
pub(crate) fn rank(seed: u64, md5: &str) -> String {
    md5_hex(format!("{seed}/{md5}").as_bytes())
}

/// The nominal duration, of those in `buckets_s`, that a call of `duration_ms` belongs to: the nearest relative to
/// its length, if it is within the `tolerance` (a share of the nominal duration).
#[must_use]
pub fn nominal_bucket(duration_ms: u64, buckets_s: &[u32], tolerance: f64) -> Option<u32> {
    bucket_of(duration_ms, buckets_s.iter().copied(), tolerance)
}

pub(crate) fn bucket_of(duration_ms: u64, buckets: impl Iterator<Item = u32>, tolerance: f64) -> Option<u32> {
    let off = |bucket: u32| {
        let nominal = u64::from(bucket) * 1000;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a day are far below 2^53")]
        let share = duration_ms.abs_diff(nominal) as f64 / nominal.max(1) as f64;
        share
    };
    buckets.filter(|&b| off(b) <= tolerance).min_by(|&a, &b| off(a).total_cmp(&off(b)).then(a.cmp(&b)))
}

/// Drops all but one of the candidates with the same bytes: the one whose path comes first.
pub(crate) fn collapse(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    candidates.sort_by(|a, b| (a.md5, a.path).cmp(&(b.md5, b.path)));
    candidates.dedup_by(|later, kept| later.md5 == kept.md5);
    candidates
}

/// Picks up to `wanted` of the distinct `candidates`, in order of rank.
///
/// Strata take turns, each giving its next by rank, so that a rare kind of call is heard as well as a common one;
/// the turn that is left over when the quota does not divide goes to the strata first by their own rank.
pub(crate) fn pick<'a>(seed: u64, candidates: &[Candidate<'a>], wanted: usize) -> Vec<Candidate<'a>> {
    let mut strata: BTreeMap<&[&str], Vec<(String, &Candidate<'a>)>> = BTreeMap::new();
    for candidate in candidates {
        strata.entry(&candidate.stratum).or_default().push((rank(seed, candidate.md5), candidate));
    }
    let mut strata: Vec<(String, Vec<(String, &Candidate<'a>)>)> =
        strata.into_iter().map(|(names, members)| (rank(seed, &names.join("\u{1f}")), members)).collect();
    strata.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, members) in &mut strata {
        members.sort_by(|(a, x), (b, y)| (a, x.path).cmp(&(b, y.path)));
    }
    let longest = strata.iter().map(|(_, members)| members.len()).max().unwrap_or(0);
    let mut picks: Vec<&(String, &Candidate<'a>)> = (0..longest)
        .flat_map(|turn| strata.iter().filter_map(move |(_, members)| members.get(turn)))
        .take(wanted)
        .collect();
    picks.sort_by(|(a, x), (b, y)| (a, x.path).cmp(&(b, y.path)));
    picks.into_iter().map(|(_, candidate)| (*candidate).clone()).collect()
}

/// The play order of calls given per bucket: each bucket's calls are spread evenly over the tape, so that long
/// calls do not meet. Returns (bucket index, call index within it).
pub(crate) fn interleave(counts: &[usize]) -> Vec<(usize, usize)> {
    let mut slots: Vec<(u64, usize, usize)> = counts
        .iter()
        .enumerate()
        .flat_map(|(bucket, &count)| {
            // The middle of the i-th of `count` equal parts of the tape, in fixed point.
            (0..count).map(move |i| (((2 * i as u64 + 1) << 32) / (2 * count.max(1) as u64), bucket, i))
        })
        .collect();
    slots.sort_unstable();
    slots.into_iter().map(|(_, bucket, i)| (bucket, i)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_nominal_and_tolerant() {
        let buckets = [30, 60, 180];
        let of = |ms| bucket_of(ms, buckets.into_iter(), 0.1);
        assert_eq!(of(27_000), Some(30));
        assert_eq!(of(26_999), None);
        assert_eq!(of(33_000), Some(30));
        assert_eq!(of(33_001), None);
        assert_eq!(of(45_000), None);
        assert_eq!(bucket_of(44_000, [40, 50].into_iter(), 0.2), Some(40));
    }

    #[test]
    fn long_calls_are_interleaved() {
        // Tape-A: six of 30 s, two of 60 s, one of 180 s.
        let order: Vec<usize> = interleave(&[6, 2, 1]).into_iter().map(|(bucket, _)| bucket).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0, 1, 0]);
        assert!(interleave(&[]).is_empty());
    }

    fn pool() -> impl Strategy<Value = Vec<(String, String, u8)>> {
        prop::collection::btree_map("[a-f0-9]{8}", ("[a-z]{3}", 0_u8..3), 0..40).prop_map(|m| {
            m.into_iter()
                .enumerate()
                .map(|(i, (md5, (name, tag)))| (format!("{name}-{i}"), md5, tag))
                .collect()
        })
    }

    fn candidates(pool: &[(String, String, u8)]) -> Vec<Candidate<'_>> {
        const TAGS: [&str; 3] = ["car", "office", "street"];
        pool.iter()
            .map(|(path, md5, tag)| Candidate { path, md5, stratum: vec![TAGS[usize::from(*tag)]] })
            .collect()
    }

    proptest! {
        #[test]
        fn quotas_are_met_or_all_are_taken(pool in pool(), wanted in 0_usize..50, seed: u64) {
            let picks = pick(seed, &candidates(&pool), wanted);
            prop_assert_eq!(picks.len(), wanted.min(pool.len()));
            let mut md5s: Vec<_> = picks.iter().map(|p| p.md5).collect();
            md5s.sort_unstable();
            md5s.dedup();
            prop_assert_eq!(md5s.len(), picks.len());
        }

        #[test]
        fn the_order_of_the_pool_is_no_matter(pool in pool(), wanted in 0_usize..20, seed: u64, turn in 0_usize..40) {
            let straight = pick(seed, &candidates(&pool), wanted);
            let mut turned = pool.clone();
            turned.rotate_left(turn.min(pool.len()));
            turned.reverse();
            prop_assert_eq!(straight, pick(seed, &candidates(&turned), wanted));
        }

        #[test]
        fn strata_share_a_quota_evenly(pool in pool(), wanted in 0_usize..20, seed: u64) {
            let picks = pick(seed, &candidates(&pool), wanted);
            let count = |list: &[Candidate<'_>], tag: &str| list.iter().filter(|c| c.stratum == [tag]).count();
            for a in ["car", "office", "street"] {
                for b in ["car", "office", "street"] {
                    // A stratum may be behind another only when it has nothing left to give.
                    let behind = count(&picks, a) + 1 < count(&picks, b);
                    prop_assert!(!behind || count(&picks, a) == count(&candidates(&pool), a));
                }
            }
        }

        #[test]
        fn an_addition_changes_at_most_one_pick_of_its_own_stratum(
            pool in pool(), wanted in 1_usize..20, seed: u64, md5 in "[0-9]{12}", tag in 0_u8..3,
        ) {
            let before = pick(seed, &candidates(&pool), wanted);
            let mut more = pool.clone();
            more.push(("new".into(), md5, tag));
            let after = pick(seed, &candidates(&more), wanted);
            let lost = before.iter().filter(|b| !after.contains(b)).count();
            prop_assert!(lost <= 1, "{lost} picks lost");
        }

        #[test]
        fn interleaving_plays_every_call_once(counts in prop::collection::vec(0_usize..12, 0..5)) {
            let mut order = interleave(&counts);
            prop_assert_eq!(order.len(), counts.iter().sum::<usize>());
            order.sort_unstable();
            order.dedup();
            prop_assert_eq!(order.len(), counts.iter().sum::<usize>());
        }
    }
}
