//! From symptoms to the next experiment: each rule reads figures, says what it saw, and names one thing to try.
//!
//! A rule never blames a cause. It says where to look and which single change would tell more.

use crate::words::{Said, Word, number, say};

/// What the rules look at: a failing tier beside a calm one. Empty means unknown, and a rule that needs it is silent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Median first text of the very first calls of the run, seconds.
    pub cold_ttft_s: Option<f64>,
    /// Median first text of the same calls of the tape later on, seconds.
    pub warm_ttft_s: Option<f64>,
    /// First text p95 at the calm tier, on the limit's basis, seconds.
    pub calm_ttft_s: Option<f64>,
    /// The same at the failing tier.
    pub ttft_s: Option<f64>,
    /// Its limit.
    pub ttft_limit_s: Option<f64>,
    /// Longest gap within speech, p95, at the calm tier, seconds.
    pub calm_stall_s: Option<f64>,
    /// The same at the failing tier.
    pub stall_s: Option<f64>,
    /// Real-time factor p95 at the failing tier.
    pub rtf: Option<f64>,
    /// Its limit.
    pub rtf_limit: Option<f64>,
    /// Calls per hour at the tier below the failing one.
    pub throughput_below_per_h: Option<f64>,
    /// Calls per hour at the failing tier.
    pub throughput_per_h: Option<f64>,
    /// Final p95 at the calm tier, seconds.
    pub calm_final_s: Option<f64>,
    /// Final p95 at the failing tier.
    pub final_s: Option<f64>,
    /// Its limit.
    pub final_limit_s: Option<f64>,
    /// Fullest KV pool, p95, 0..1.
    pub kv_pool: Option<f64>,
    /// Preempted requests.
    pub preempted: Option<f64>,
    /// Most requests that waited for room at once, one instance.
    pub waiting: Option<f64>,
    /// Broken rules of the dialect, and calls that ended in a protocol or server error.
    pub broken_output: u64,
    /// Calls that were refused because the server was full.
    pub refused: u64,
    /// Our own lateness p99, milliseconds.
    pub wake_late_ms: Option<f64>,
    /// Its limit.
    pub wake_late_limit_ms: Option<f64>,
    /// Connect p95, seconds.
    pub connect_s: Option<f64>,
    /// The same at the calm tier.
    pub calm_connect_s: Option<f64>,
    /// First text p95 of the slowest instance / of the fastest.
    pub uneven: Option<f64>,
    /// Reasons for which a GPU held its clocks down.
    pub throttle: Vec<String>,
    /// Lag gained over the longest call, seconds.
    pub age_lag_s: Option<f64>,
    /// Whether error rates rose beyond the limit.
    pub quality_alarm: Option<bool>,
    /// GPU utilisation, mean, 0..1.
    pub gpu_utilisation: Option<f64>,
}

/// A symptom; the first eight are the rows of the usual table, the others are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symptom {
    /// Slow at first, then normal.
    ColdStart,
    /// First text is late while the rest keeps up.
    LateFirstText,
    /// Text stops in the middle of speech.
    MidStall,
    /// More streams, fewer calls done.
    ThroughputFalls,
    /// A smaller number format made it slower (two runs).
    QuantisedSlower,
    /// More GPUs made it slower (two runs).
    MoreGpusSlower,
    /// Output breaks its own rules.
    BrokenOutput,
    /// The end of a call takes too long for the person who waits.
    SlowTail,
    /// Processing takes too large a share of real time.
    ComputeBound,
    /// The KV pool is the wall.
    MemoryBound,
    /// The server turns calls away.
    Refusing,
    /// Our own machine is late.
    ClientLate,
    /// Connecting got slow.
    SlowConnect,
    /// One instance is much slower than another.
    Uneven,
    /// A GPU holds its clocks down.
    Throttled,
    /// Long calls fall behind.
    GrowsWithAge,
    /// Words get worse under load.
    WorseWords,
}

/// A symptom that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub symptom: Symptom,
    /// The figures that show it.
    pub seen: Said,
    /// What to take apart first.
    pub look: Said,
    /// One experiment that would tell more.
    pub next: Said,
}

fn finding(symptom: Symptom, seen: Said) -> Finding {
    let (look, next) = match symptom {
        Symptom::ColdStart => (Word::LookCold, Word::NextCold),
        Symptom::LateFirstText => (Word::LookTtft, Word::NextTtft),
        Symptom::MidStall => (Word::LookStall, Word::NextStall),
        Symptom::ThroughputFalls => (Word::LookThroughput, Word::NextThroughput),
        Symptom::QuantisedSlower => (Word::LookQuant, Word::NextQuant),
        Symptom::MoreGpusSlower => (Word::LookGpus, Word::NextGpus),
        Symptom::BrokenOutput => (Word::LookBroken, Word::NextBroken),
        Symptom::SlowTail => (Word::LookTail, Word::NextTail),
        Symptom::ComputeBound => (Word::LookCompute, Word::NextCompute),
        Symptom::MemoryBound => (Word::LookMemory, Word::NextMemory),
        Symptom::Refusing => (Word::LookRefusing, Word::NextRefusing),
        Symptom::ClientLate => (Word::LookClient, Word::NextClient),
        Symptom::SlowConnect => (Word::LookConnect, Word::NextConnect),
        Symptom::Uneven => (Word::LookUneven, Word::NextUneven),
        Symptom::Throttled => (Word::LookThrottle, Word::NextThrottle),
        Symptom::GrowsWithAge => (Word::LookAge, Word::NextAge),
        Symptom::WorseWords => (Word::LookWords, Word::NextWords),
    };
    Finding { symptom, seen, look: look.said(), next: next.said() }
}

/// Whether a figure grew by half and by so much at least.
fn grew(before: Option<f64>, after: Option<f64>, at_least: f64) -> bool {
    before.zip(after).is_some_and(|(b, a)| a >= 1.5 * b && a - b >= at_least)
}

/// Every symptom that the facts show, the table's order first.
#[must_use]
pub fn symptoms(f: &Facts) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut see = |symptom, seen: Said| all.push(finding(symptom, seen));
    let over = |value: Option<f64>, limit: Option<f64>| value.zip(limit).is_some_and(|(v, l)| v > l);
    let n = |v: Option<f64>| v.map_or_else(|| "?".to_string(), number);
    if f.cold_ttft_s.zip(f.warm_ttft_s).is_some_and(|(c, w)| c >= 2.0 * w && c - w >= 0.1) {
        see(Symptom::ColdStart, say!(Word::SeenCold, n(f.cold_ttft_s), n(f.warm_ttft_s)));
    }
    let late = over(f.ttft_s, f.ttft_limit_s) || grew(f.calm_ttft_s, f.ttft_s, 0.2);
    let stalls = grew(f.calm_stall_s, f.stall_s, 0.5);
    let tail = over(f.final_s, f.final_limit_s) || grew(f.calm_final_s, f.final_s, 0.5);
    if late && !stalls && !tail {
        see(Symptom::LateFirstText, say!(Word::SeenTtft, n(f.calm_ttft_s), n(f.ttft_s)));
    }
    if stalls {
        see(Symptom::MidStall, say!(Word::SeenStall, n(f.calm_stall_s), n(f.stall_s)));
    }
    // Less than 5 % fewer calls is within what two windows differ by anyway.
    if f.throughput_below_per_h.zip(f.throughput_per_h).is_some_and(|(below, now)| now < 0.95 * below) {
        see(
            Symptom::ThroughputFalls,
            say!(Word::SeenThroughput, n(f.throughput_below_per_h), n(f.throughput_per_h)),
        );
    }
    if f.broken_output > 0 {
        see(Symptom::BrokenOutput, say!(Word::SeenBroken, f.broken_output));
    }
    if tail {
        see(Symptom::SlowTail, say!(Word::SeenTail, n(f.calm_final_s), n(f.final_s)));
    }
    let memory = f.kv_pool.is_some_and(|kv| kv >= 0.9) || f.preempted.is_some_and(|p| p > 0.0);
    if over(f.rtf, f.rtf_limit) && !memory {
        let gpu = f.gpu_utilisation.map(|u| format!("{} %", number(u * 100.0)));
        let kv =
            f.kv_pool.map_or_else(|| say!(Word::NotKnown), |k| format!("{} %", number(k * 100.0)).into());
        let (rtf, limit) = (n(f.rtf), n(f.rtf_limit));
        let said = match gpu {
            Some(gpu) => say!(Word::SeenCompute, rtf, limit, kv, gpu),
            None => say!(Word::SeenComputeAlone, rtf, limit, kv),
        };
        see(Symptom::ComputeBound, said);
    }
    if memory {
        let kv = f.kv_pool.map(|k| k * 100.0);
        see(Symptom::MemoryBound, say!(Word::SeenMemory, n(kv), n(f.preempted), n(f.waiting)));
    }
    if f.refused > 0 {
        see(Symptom::Refusing, say!(Word::SeenRefusing, f.refused));
    }
    if over(f.wake_late_ms, f.wake_late_limit_ms) {
        see(Symptom::ClientLate, say!(Word::SeenClient, n(f.wake_late_ms), n(f.wake_late_limit_ms)));
    }
    if grew(f.calm_connect_s, f.connect_s, 0.1) {
        see(Symptom::SlowConnect, say!(Word::SeenConnect, n(f.calm_connect_s), n(f.connect_s)));
    }
    if f.uneven.is_some_and(|u| u >= 1.5) {
        see(Symptom::Uneven, say!(Word::SeenUneven, n(f.uneven)));
    }
    if !f.throttle.is_empty() {
        see(Symptom::Throttled, say!(Word::SeenThrottle, f.throttle.join(", ")));
    }
    if f.age_lag_s.is_some_and(|s| s >= 0.5) {
        see(Symptom::GrowsWithAge, say!(Word::SeenAge, n(f.age_lag_s)));
    }
    if f.quality_alarm == Some(true) {
        see(Symptom::WorseWords, say!(Word::SeenWords));
    }
    all
}

/// What two runs tell that differ in a setting: whether a change that should help made things slower.
#[must_use]
pub fn symptoms_of_change(changed_keys: &[String], slower: bool, seen: &Said) -> Vec<Finding> {
    if !slower {
        return Vec::new();
    }
    let any = |words: &[&str]| {
        changed_keys.iter().any(|key| {
            let key = key.to_lowercase();
            words.iter().any(|w| key.contains(w))
        })
    };
    let mut all = Vec::new();
    if any(&["quant", "dtype", "precision", "int8", "int4", "fp8", "awq", "gptq"]) {
        all.push(finding(Symptom::QuantisedSlower, seen.clone()));
    }
    if any(&["tensor_parallel", "pipeline_parallel", "gpus", "num_gpu", "instances", "topology"]) {
        all.push(finding(Symptom::MoreGpusSlower, seen.clone()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(facts: &Facts) -> Vec<Symptom> {
        symptoms(facts).into_iter().map(|f| f.symptom).collect()
    }

    /// A tier that is well; every rule must be silent.
    fn calm() -> Facts {
        Facts {
            cold_ttft_s: Some(0.16),
            warm_ttft_s: Some(0.15),
            calm_ttft_s: Some(0.2),
            ttft_s: Some(0.3),
            ttft_limit_s: Some(1.0),
            calm_stall_s: Some(2.0),
            stall_s: Some(2.1),
            rtf: Some(0.3),
            rtf_limit: Some(0.5),
            throughput_below_per_h: Some(1000.0),
            throughput_per_h: Some(1200.0),
            calm_final_s: Some(0.2),
            final_s: Some(0.4),
            final_limit_s: Some(2.0),
            kv_pool: Some(0.4),
            preempted: Some(0.0),
            waiting: Some(0.0),
            wake_late_ms: Some(1.3),
            wake_late_limit_ms: Some(10.0),
            connect_s: Some(0.01),
            calm_connect_s: Some(0.01),
            uneven: Some(1.05),
            age_lag_s: Some(0.0),
            quality_alarm: Some(false),
            gpu_utilisation: Some(0.9),
            ..Facts::default()
        }
    }

    #[test]
    fn a_tier_that_is_well_has_no_symptom_and_unknown_facts_have_none_either() {
        assert_eq!(seen(&calm()), []);
        assert_eq!(seen(&Facts::default()), []);
    }

    #[test]
    fn each_rule_fires_for_its_own_figures_alone() {
        let cases: [(Symptom, Facts); 15] = [
            (Symptom::ColdStart, Facts { cold_ttft_s: Some(1.9), ..calm() }),
            (Symptom::LateFirstText, Facts { ttft_s: Some(1.2), ..calm() }),
            (Symptom::MidStall, Facts { stall_s: Some(6.0), ..calm() }),
            (Symptom::ThroughputFalls, Facts { throughput_per_h: Some(900.0), ..calm() }),
            (Symptom::BrokenOutput, Facts { broken_output: 3, ..calm() }),
            (Symptom::SlowTail, Facts { final_s: Some(2.4), ..calm() }),
            (Symptom::ComputeBound, Facts { rtf: Some(0.6), ..calm() }),
            (Symptom::MemoryBound, Facts { kv_pool: Some(0.99), ..calm() }),
            (Symptom::MemoryBound, Facts { preempted: Some(2.0), ..calm() }),
            (Symptom::Refusing, Facts { refused: 1, ..calm() }),
            (Symptom::ClientLate, Facts { wake_late_ms: Some(30.0), ..calm() }),
            (Symptom::SlowConnect, Facts { connect_s: Some(0.5), ..calm() }),
            (Symptom::Uneven, Facts { uneven: Some(2.0), ..calm() }),
            (Symptom::Throttled, Facts { throttle: vec!["sw_thermal".into()], ..calm() }),
            (Symptom::GrowsWithAge, Facts { age_lag_s: Some(0.9), ..calm() }),
        ];
        for (symptom, facts) in cases {
            assert_eq!(seen(&facts), [symptom], "{facts:?}");
        }
        assert_eq!(seen(&Facts { quality_alarm: Some(true), ..calm() }), [Symptom::WorseWords]);
    }

    #[test]
    fn a_full_pool_takes_the_blame_from_computing() {
        let facts = Facts { rtf: Some(0.7), kv_pool: Some(0.99), ..calm() };
        assert_eq!(seen(&facts), [Symptom::MemoryBound]);
    }

    #[test]
    fn late_first_texts_with_late_finals_are_a_slow_tail() {
        let facts = Facts { ttft_s: Some(1.2), final_s: Some(2.5), ..calm() };
        assert_eq!(seen(&facts), [Symptom::SlowTail]);
    }

    #[test]
    fn changes_that_should_help_and_do_not_are_named() {
        let change = |keys: &[&str], slower| {
            let keys: Vec<String> = keys.iter().map(|k| (*k).to_string()).collect();
            symptoms_of_change(&keys, slower, &Said::same("x"))
                .into_iter()
                .map(|f| f.symptom)
                .collect::<Vec<_>>()
        };
        assert_eq!(change(&["environment.engine.quantization"], true), [Symptom::QuantisedSlower]);
        assert_eq!(change(&["environment.engine.tensor_parallel_size"], true), [Symptom::MoreGpusSlower]);
        assert_eq!(change(&["environment.engine.quantization"], false), []);
        assert_eq!(change(&["load.chunk_ms"], true), []);
    }
}
