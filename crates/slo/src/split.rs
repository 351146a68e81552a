//! Figures of a tier taken apart: by instance, duration bucket, channel, tag, age, or over time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_record::{CallRecord, OutcomeClass};
use tapedeck_stats::percentile;

use crate::figures::{Counted, Summariser};
use crate::limits::Limits;
use crate::report::{FinalBasis, Summary};

/// The three judged figures of one part of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Split {
    /// Counted calls, errored ones included.
    pub calls: u64,
    /// Errored calls.
    pub errors: u64,
    /// First-text latency on the limits' basis, seconds.
    pub ttft: Option<Summary>,
    /// Real-time factor.
    pub rtf: Option<Summary>,
    /// Final latency, seconds.
    pub final_latency: Option<Summary>,
}

/// Splits counted calls by a key; calls without one are left out.
///
/// The key sees the whole record: its `instance`, its `bucket_s`, its `call` (through which the manifest knows channel
/// and tags), its `start_s`.
///
/// ```
/// use tapedeck_slo::{FinalBasis, Limits, split};
/// # let calls: Vec<tapedeck_record::CallRecord> = vec![];
/// let by_instance = split(&calls, FinalBasis::Audio, &Limits::default(), 1, |call| call.instance.clone());
/// let by_bucket = split(&calls, FinalBasis::Audio, &Limits::default(), 1, |call| Some(call.bucket_s));
/// # assert!(by_instance.is_empty() && by_bucket.is_empty());
/// ```
#[must_use]
pub fn split<K: Ord>(
    calls: &[CallRecord],
    basis: FinalBasis,
    limits: &Limits,
    seed: u64,
    key: impl Fn(&CallRecord) -> Option<K>,
) -> BTreeMap<K, Split> {
    let mut parts: BTreeMap<K, Vec<CallRecord>> = BTreeMap::new();
    for call in calls.iter().filter(|c| c.counted) {
        if let Some(key) = key(call) {
            parts.entry(key).or_default().push(call.clone());
        }
    }
    parts
        .into_iter()
        .map(|(key, calls)| {
            let counted = Counted::of(&calls);
            let summariser = Summariser { counted: &counted, limits, seed };
            let part = Split {
                calls: counted.total(),
                errors: counted.errors.len() as u64,
                ttft: summariser.of(0, true, |c| limits.ttft_basis.of(c)),
                rtf: summariser.of(2, false, |c| c.rtf),
                final_latency: summariser.of(4, false, |c| basis.of(c)),
            };
            (key, part)
        })
        .collect()
}

/// One period of a long run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Period {
    /// Begin, seconds from the run's origin.
    pub from_s: f64,
    /// Calls that began in it and count, errored ones included.
    pub calls: u64,
    /// Errored calls.
    pub errors: u64,
    /// First-text p95 on the limits' basis, seconds; empty where no call has one.
    pub ttft_p95_s: Option<f64>,
    /// Real-time factor p95.
    pub rtf_p95: Option<f64>,
    /// Final p95, seconds.
    pub final_p95_s: Option<f64>,
}

/// Cuts a long run into periods of `period_s` (a quarter of an hour, say) from its first counted call on; a period in
/// which no call began is kept, empty.
#[must_use]
pub fn periods(calls: &[CallRecord], basis: FinalBasis, limits: &Limits, period_s: f64) -> Vec<Period> {
    let counted: Vec<&CallRecord> =
        calls.iter().filter(|c| c.counted && c.class != OutcomeClass::Excluded).collect();
    let first_s = counted.iter().map(|c| c.start_s).fold(f64::INFINITY, f64::min);
    let last_s = counted.iter().map(|c| c.start_s).fold(f64::NEG_INFINITY, f64::max);
    let mut out = Vec::new();
    let mut from_s = first_s;
    while from_s <= last_s && period_s > 0.0 {
        let inside: Vec<&&CallRecord> =
            counted.iter().filter(|c| c.start_s >= from_s && c.start_s < from_s + period_s).collect();
        let p95 = |figure: &dyn Fn(&CallRecord) -> Option<f64>| {
            let fine = inside.iter().filter(|c| c.class != OutcomeClass::Error);
            percentile(&mut fine.filter_map(|c| figure(c)).collect::<Vec<_>>(), 0.95)
        };
        out.push(Period {
            from_s,
            calls: inside.len() as u64,
            errors: inside.iter().filter(|c| c.class == OutcomeClass::Error).count() as u64,
            ttft_p95_s: p95(&|c| limits.ttft_basis.of(c)),
            rtf_p95: p95(&|c| c.rtf),
            final_p95_s: p95(&|c| basis.of(c)),
        });
        from_s += period_s;
    }
    out
}
