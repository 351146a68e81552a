//! From symptoms to the next experiment: each rule reads figures, says what it saw, and names one thing to try.
//!
//! A rule never blames a cause. It says where to look and which single change would tell more.

use serde::Serialize;

use crate::messages::{LocalizedText, MessageId, message, number};

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
    /// Calls whose connection failed or broke off, by how they ended.
    pub cut: Vec<(&'static str, u64)>,
    /// Calls that waited in vain for an answer, by how they ended.
    pub unanswered: Vec<(&'static str, u64)>,
    /// Series that still rose when the tier ended: name, rise from its beginning to its end in its own unit.
    pub rising: Vec<(String, f64)>,
    /// Most hits of a cache that should not have had any, 0..1: prefix or multimodal, whichever is higher.
    pub cache_hits: Option<f64>,
    /// Hits that are too many.
    pub cache_limit: Option<f64>,
}

/// A symptom; the first eight are the rows of the usual table, the others are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// Connections fail or break off.
    CutCalls,
    /// The connection lives, but nothing comes in time.
    Unanswered,
    /// The tier was still getting worse when it ended.
    StillRising,
    /// Caches answered instead of the engine.
    CachesAnswer,
}

/// A symptom that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosed {
    /// Which.
    pub symptom: Symptom,
    /// The figures that show it.
    pub seen: LocalizedText,
    /// What to take apart first.
    pub look: LocalizedText,
    /// One experiment that would tell more.
    pub next: LocalizedText,
}

fn finding(symptom: Symptom, seen: LocalizedText) -> Diagnosed {
    let (look, next) = match symptom {
        Symptom::ColdStart => (MessageId::LookCold, MessageId::NextCold),
        Symptom::LateFirstText => (MessageId::LookTtft, MessageId::NextTtft),
        Symptom::MidStall => (MessageId::LookStall, MessageId::NextStall),
        Symptom::ThroughputFalls => (MessageId::LookThroughput, MessageId::NextThroughput),
        Symptom::QuantisedSlower => (MessageId::LookQuant, MessageId::NextQuant),
        Symptom::MoreGpusSlower => (MessageId::LookGpus, MessageId::NextGpus),
        Symptom::BrokenOutput => (MessageId::LookBroken, MessageId::NextBroken),
        Symptom::SlowTail => (MessageId::LookTail, MessageId::NextTail),
        Symptom::ComputeBound => (MessageId::LookCompute, MessageId::NextCompute),
        Symptom::MemoryBound => (MessageId::LookMemory, MessageId::NextMemory),
        Symptom::Refusing => (MessageId::LookRefusing, MessageId::NextRefusing),
        Symptom::ClientLate => (MessageId::LookClient, MessageId::NextClient),
        Symptom::SlowConnect => (MessageId::LookConnect, MessageId::NextConnect),
        Symptom::Uneven => (MessageId::LookUneven, MessageId::NextUneven),
        Symptom::Throttled => (MessageId::LookThrottle, MessageId::NextThrottle),
        Symptom::GrowsWithAge => (MessageId::LookAge, MessageId::NextAge),
        Symptom::WorseWords => (MessageId::LookWords, MessageId::NextWords),
        Symptom::CutCalls => (MessageId::LookCut, MessageId::NextCut),
        Symptom::Unanswered => (MessageId::LookUnanswered, MessageId::NextUnanswered),
        Symptom::StillRising => (MessageId::LookRising, MessageId::NextRising),
        Symptom::CachesAnswer => (MessageId::LookCaches, MessageId::NextCaches),
    };
    Diagnosed { symptom, seen, look: look.said(), next: next.said() }
}

/// Whether a figure grew by half and by so much at least.
fn grew(before: Option<f64>, after: Option<f64>, at_least: f64) -> bool {
    before.zip(after).is_some_and(|(b, a)| a >= 1.5 * b && a - b >= at_least)
}

/// Every symptom that the facts show, the table's order first.
#[must_use]
pub fn symptoms(f: &Facts) -> Vec<Diagnosed> {
    let mut all = Vec::new();
    let mut see = |symptom, seen: LocalizedText| all.push(finding(symptom, seen));
    let over = |value: Option<f64>, limit: Option<f64>| value.zip(limit).is_some_and(|(v, l)| v > l);
    let n = |v: Option<f64>| v.map_or_else(|| "?".to_string(), number);
    if f.cold_ttft_s.zip(f.warm_ttft_s).is_some_and(|(c, w)| c >= 2.0 * w && c - w >= 0.1) {
        see(Symptom::ColdStart, message!(MessageId::SeenCold, n(f.cold_ttft_s), n(f.warm_ttft_s)));
    }
    // Over a limit says enough where there is nothing to hold it against.
    let calm =
        |v: Option<f64>| v.map_or_else(|| message!(MessageId::NotKnown), |v| LocalizedText::same(number(v)));
    let late = over(f.ttft_s, f.ttft_limit_s) || grew(f.calm_ttft_s, f.ttft_s, 0.2);
    let stalls = grew(f.calm_stall_s, f.stall_s, 0.5);
    let tail = over(f.final_s, f.final_limit_s) || grew(f.calm_final_s, f.final_s, 0.5);
    if late && !stalls && !tail {
        see(Symptom::LateFirstText, message!(MessageId::SeenTtft, calm(f.calm_ttft_s), n(f.ttft_s)));
    }
    if stalls {
        see(Symptom::MidStall, message!(MessageId::SeenStall, n(f.calm_stall_s), n(f.stall_s)));
    }
    // Less than 5 % fewer calls is within what two windows differ by anyway.
    if f.throughput_below_per_h.zip(f.throughput_per_h).is_some_and(|(below, now)| now < 0.95 * below) {
        see(
            Symptom::ThroughputFalls,
            message!(MessageId::SeenThroughput, n(f.throughput_below_per_h), n(f.throughput_per_h)),
        );
    }
    if f.broken_output > 0 {
        see(Symptom::BrokenOutput, message!(MessageId::SeenBroken, f.broken_output));
    }
    if tail {
        see(Symptom::SlowTail, message!(MessageId::SeenTail, calm(f.calm_final_s), n(f.final_s)));
    }
    let memory = f.kv_pool.is_some_and(|kv| kv >= 0.9) || f.preempted.is_some_and(|p| p > 0.0);
    if over(f.rtf, f.rtf_limit) && !memory {
        let gpu = f.gpu_utilisation.map(|u| format!("{} %", number(u * 100.0)));
        let kv = f
            .kv_pool
            .map_or_else(|| message!(MessageId::NotKnown), |k| format!("{} %", number(k * 100.0)).into());
        let (rtf, limit) = (n(f.rtf), n(f.rtf_limit));
        let said = match gpu {
            Some(gpu) => message!(MessageId::SeenCompute, rtf, limit, kv, gpu),
            None => message!(MessageId::SeenComputeAlone, rtf, limit, kv),
        };
        see(Symptom::ComputeBound, said);
    }
    if memory {
        let kv = f.kv_pool.map(|k| k * 100.0);
        see(Symptom::MemoryBound, message!(MessageId::SeenMemory, n(kv), n(f.preempted), n(f.waiting)));
    }
    if f.refused > 0 {
        see(Symptom::Refusing, message!(MessageId::SeenRefusing, f.refused));
    }
    if over(f.wake_late_ms, f.wake_late_limit_ms) {
        see(Symptom::ClientLate, message!(MessageId::SeenClient, n(f.wake_late_ms), n(f.wake_late_limit_ms)));
    }
    if grew(f.calm_connect_s, f.connect_s, 0.1) {
        see(Symptom::SlowConnect, message!(MessageId::SeenConnect, n(f.calm_connect_s), n(f.connect_s)));
    }
    if f.uneven.is_some_and(|u| u >= 1.5) {
        see(Symptom::Uneven, message!(MessageId::SeenUneven, n(f.uneven)));
    }
    if !f.throttle.is_empty() {
        see(Symptom::Throttled, message!(MessageId::SeenThrottle, f.throttle.join(", ")));
    }
    if f.age_lag_s.is_some_and(|s| s >= 0.5) {
        see(Symptom::GrowsWithAge, message!(MessageId::SeenAge, n(f.age_lag_s)));
    }
    if f.quality_alarm == Some(true) {
        see(Symptom::WorseWords, message!(MessageId::SeenWords));
    }
    let listed = |calls: &[(&str, u64)]| {
        calls.iter().map(|(how, n)| format!("{how} {n}")).collect::<Vec<_>>().join(", ")
    };
    let sum = |calls: &[(&str, u64)]| calls.iter().map(|(_, n)| n).sum::<u64>();
    if sum(&f.cut) > 0 {
        see(Symptom::CutCalls, message!(MessageId::SeenCut, sum(&f.cut), listed(&f.cut)));
    }
    if sum(&f.unanswered) > 0 {
        see(
            Symptom::Unanswered,
            message!(MessageId::SeenUnanswered, sum(&f.unanswered), listed(&f.unanswered)),
        );
    }
    if !f.rising.is_empty() {
        let rising: Vec<_> =
            f.rising.iter().map(|(series, rise)| format!("{series} +{}", number(*rise))).collect();
        see(Symptom::StillRising, message!(MessageId::SeenRising, rising.join(", ")));
    }
    if over(f.cache_hits, f.cache_limit) {
        let percent = |v: Option<f64>| n(v.map(|v| v * 100.0));
        see(
            Symptom::CachesAnswer,
            message!(MessageId::SeenCaches, percent(f.cache_hits), percent(f.cache_limit)),
        );
    }
    all
}

/// What two runs tell of a change that should have made things faster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChangeFacts {
    /// Changed settings: what stood there before and after, as text; empty where a run does not have it.
    pub changed: Vec<(String, String)>,
    /// GPUs under the engines of the run before; empty where the run does not tell.
    pub gpus_before: Option<usize>,
    /// The same of the run after.
    pub gpus_after: Option<usize>,
    /// Whether a figure got worse beyond its intervals.
    pub slower: bool,
}

/// What two runs tell that differ in a setting: whether a change that should help made things slower.
///
/// Number formats and GPUs are read out of the values of the settings that changed (a model's name, a command line
/// that `[environment.commands]` recorded, a key of the config), so that a setting that merely has such a word in its
/// name blames nobody.
#[must_use]
pub fn symptoms_of_change(f: &ChangeFacts, seen: &LocalizedText) -> Vec<Diagnosed> {
    if !f.slower {
        return Vec::new();
    }
    let mut all = Vec::new();
    if f.changed.iter().any(|(before, after)| smaller_format(before, after)) {
        all.push(finding(Symptom::QuantisedSlower, seen.clone()));
    }
    let counted = f.gpus_before.zip(f.gpus_after).is_some_and(|(before, after)| after > before);
    if counted || f.changed.iter().any(|(before, after)| parallel(after) > parallel(before)) {
        all.push(finding(Symptom::MoreGpusSlower, seen.clone()));
    }
    all
}

/// Words and numbers of a text: what stands between anything else.
fn tokens(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect()
}

/// Bits of the smallest number format that a text names.
fn smallest_format(text: &str) -> Option<u32> {
    let bits = |token: &String| match token.as_str() {
        "fp32" | "float32" | "f32" => Some(32),
        "bf16" | "bfloat16" | "fp16" | "float16" | "f16" | "half" => Some(16),
        "fp8" | "float8" | "int8" | "e4m3" | "e5m2" | "w8a8" | "w8a16" => Some(8),
        "fp4" | "nvfp4" | "mxfp4" | "int4" | "w4a16" | "awq" | "gptq" => Some(4),
        _ => None,
    };
    tokens(text).iter().filter_map(bits).min()
}

/// Whether the text after names a smaller number format than the one before; a text that names none is taken for 16
/// bits, as models are published.
fn smaller_format(before: &str, after: &str) -> bool {
    smallest_format(after).is_some_and(|after| after < smallest_format(before).unwrap_or(16))
}

/// GPUs that one engine is spread over, as its command line or config says: tensor x pipeline parallel; 1 where it
/// does not say.
fn parallel(text: &str) -> u64 {
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).filter(|n| *n > 0);
    let mut product = 1_u64;
    for (at, word) in words.iter().enumerate() {
        let named = match (*word, words.get(at + 1), words.get(at + 2)) {
            ("tensor" | "pipeline", Some(&"parallel"), Some(&"size")) => number(at + 3),
            ("tp" | "pp", Some(&"size"), _) => number(at + 2),
            ("tp" | "pp", ..) => number(at + 1),
            _ => None,
        };
        product = product.saturating_mul(named.unwrap_or(1));
    }
    product
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
            cut: vec![("closed_early", 0)],
            unanswered: vec![("mute", 0)],
            cache_hits: Some(0.004),
            cache_limit: Some(0.01),
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
        let cases: [(Symptom, Facts); 20] = [
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
            (Symptom::WorseWords, Facts { quality_alarm: Some(true), ..calm() }),
            (Symptom::CutCalls, Facts { cut: vec![("closed_early", 2)], ..calm() }),
            (Symptom::Unanswered, Facts { unanswered: vec![("mute", 1)], ..calm() }),
            (Symptom::StillRising, Facts { rising: vec![("ttft".into(), 0.4)], ..calm() }),
            (Symptom::CachesAnswer, Facts { cache_hits: Some(0.3), ..calm() }),
        ];
        for (symptom, facts) in cases {
            assert_eq!(seen(&facts), [symptom], "{facts:?}");
        }
    }

    #[test]
    fn each_rule_is_silent_just_below_what_it_looks_for() {
        let quiet: [Facts; 16] = [
            // Twice as slow, but within a tenth of a second; a tenth more, but not twice as slow.
            Facts { cold_ttft_s: Some(0.16), warm_ttft_s: Some(0.07), ..calm() },
            Facts { cold_ttft_s: Some(0.5), warm_ttft_s: Some(0.3), ..calm() },
            Facts { ttft_s: Some(0.39), ..calm() },
            Facts { calm_ttft_s: Some(0.8), ttft_s: Some(1.0), ..calm() },
            Facts { calm_stall_s: Some(0.4), stall_s: Some(0.85), ..calm() },
            Facts { throughput_per_h: Some(951.0), ..calm() },
            Facts { final_s: Some(0.69), ..calm() },
            Facts { rtf: Some(0.5), ..calm() },
            Facts { kv_pool: Some(0.89), ..calm() },
            Facts { wake_late_ms: Some(10.0), ..calm() },
            Facts { connect_s: Some(0.1), ..calm() },
            Facts { uneven: Some(1.4), ..calm() },
            Facts { age_lag_s: Some(0.4), ..calm() },
            Facts { quality_alarm: None, ..calm() },
            Facts { cache_hits: Some(0.01), ..calm() },
            // Fewer streams wait less: that is no symptom either.
            Facts { connect_s: Some(0.001), final_s: Some(0.1), stall_s: Some(1.0), ..calm() },
        ];
        for facts in quiet {
            assert_eq!(seen(&facts), [], "{facts:?}");
        }
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
        let change = |before: &str, after: &str, slower| {
            let facts = ChangeFacts {
                changed: vec![(before.into(), after.into())],
                slower,
                ..ChangeFacts::default()
            };
            symptoms_of_change(&facts, &LocalizedText::same("x"))
                .into_iter()
                .map(|f| f.symptom)
                .collect::<Vec<_>>()
        };
        let quantised = [Symptom::QuantisedSlower];
        assert_eq!(change("Qwen/Qwen3-ASR-1.7B", "Qwen/Qwen3-ASR-1.7B-FP8", true), quantised);
        assert_eq!(change("vllm serve m", "vllm serve m --quantization awq", true), quantised);
        assert_eq!(change("--kv-cache-dtype auto", "--kv-cache-dtype fp8_e5m2", true), quantised);
        assert_eq!(change("bfloat16", "int8", true), quantised);
        assert_eq!(change("fp8", "int4", true), quantised);
        let more = [Symptom::MoreGpusSlower];
        assert_eq!(change("vllm serve m", "vllm serve m --tensor-parallel-size 2", true), more);
        assert_eq!(change("tensor_parallel_size=2", "tensor_parallel_size=4", true), more);
        assert_eq!(change("-tp 2", "-tp 2 -pp 2", true), more);
        // The other way round, the same format, another word with a similar name, and faster: nobody is blamed.
        for (before, after) in [
            ("int8", "bfloat16"),
            ("fp16", "bf16"),
            ("Qwen3-ASR", "Qwen3-ASR-2"),
            ("--tensor-parallel-size 4", "--tensor-parallel-size 2"),
            ("quantization", "topology"),
            ("ws://gpu1:8000", "ws://gpu2:8000"),
        ] {
            assert_eq!(change(before, after, true), [], "{before} -> {after}");
        }
        assert_eq!(change("bfloat16", "int8", false), []);
        let counted = |before, after| {
            let facts = ChangeFacts {
                gpus_before: before,
                gpus_after: after,
                slower: true,
                ..ChangeFacts::default()
            };
            symptoms_of_change(&facts, &LocalizedText::same("x")).len()
        };
        assert_eq!([counted(Some(1), Some(2)), counted(Some(2), Some(1)), counted(None, Some(2))], [1, 0, 0]);
    }
}
