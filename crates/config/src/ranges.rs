//! The range of every number of the config, stated once.
//!
//! [`Config::check`] holds a config against it before a run begins; refusals and `docs/config.md` say it in the same
//! words. A number without a range here fails a test, and one whose key does not exist does not compile.

use std::fmt;

use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized};

use crate::Config;
use crate::error::ConfigError;

/// One end of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The number itself belongs to it.
    In(f64),
    /// It does not.
    Out(f64),
}
use End::{In, Out};

/// What a number of the config may be. Infinite numbers and NaN belong to no range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: End,
    high: End,
    unit: StaticText,
}

impl Range {
    const fn new(low: End, high: End, unit: StaticText) -> Self {
        Self { low, high, unit }
    }

    /// Whether a number belongs to it.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        let above = match self.low {
            In(low) => number >= low,
            Out(low) => number > low,
        };
        let below = match self.high {
            In(high) => number <= high,
            Out(high) => number < high,
        };
        above && below
    }
}

impl Localize for Range {
    fn text(&self) -> LocalizedText {
        let range = match (self.low, self.high) {
            (In(low), In(high)) => localized!("{low} to {high}", "{low} 至 {high}"),
            (Out(low), In(high)) => {
                localized!("a number above {low} and up to {high}", "大于 {low} 且不超过 {high}")
            }
            (In(low), Out(high)) => {
                localized!("a number from {low} to below {high}", "不小于 {low} 且小于 {high}")
            }
            (Out(low), Out(high)) => {
                localized!("a number above {low} and below {high}", "大于 {low} 且小于 {high}")
            }
        };
        match self.unit.en {
            "" => range,
            _ => localized!("{} {}", "{} {}"; range, self.unit),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().en)
    }
}

/// A numeric key with its range.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// The key, dotted.
    pub key: &'static str,
    /// What it may be; of a list, what each of its numbers may be.
    pub range: Range,
    values: fn(&Config) -> Vec<f64>,
}

/// What holds numbers: one, a list of them, or perhaps none.
trait Numbers {
    fn numbers(&self) -> Vec<f64>;
}

impl Numbers for f64 {
    fn numbers(&self) -> Vec<f64> {
        vec![*self]
    }
}

impl Numbers for u32 {
    fn numbers(&self) -> Vec<f64> {
        vec![f64::from(*self)]
    }
}

impl Numbers for u64 {
    #[expect(clippy::cast_precision_loss, reason = "only compared with the ends of a range")]
    fn numbers(&self) -> Vec<f64> {
        vec![*self as f64]
    }
}

impl<T: Numbers> Numbers for Option<T> {
    fn numbers(&self) -> Vec<f64> {
        self.iter().flat_map(Numbers::numbers).collect()
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn numbers(&self) -> Vec<f64> {
        self.iter().flat_map(Numbers::numbers).collect()
    }
}

// Units.
const SECOND: StaticText = StaticText::new("seconds", "秒");
const STREAM: StaticText = StaticText::new("streams", "路");
const LOOP: StaticText = StaticText::new("loops", "遍");
const OF_N: StaticText = StaticText::new("(share of N*)", "（N* 的比例）");
const BYTE: StaticText = StaticText::new("bytes", "字节");
const DEGREE: StaticText = StaticText::new("degrees Celsius", "摄氏度");
const GB: StaticText = StaticText::new("GB", "GB");
const MS: StaticText = StaticText::new("milliseconds", "毫秒");
const PASS: StaticText = StaticText::new("(the first is the cold one)", "（第一遍为冷启动）");
const TOKEN_RATE: StaticText = StaticText::new("tokens a second", "token / 秒");
const TOKEN: StaticText = StaticText::new("tokens", "token");
const CALL_RATE: StaticText = StaticText::new("calls an hour", "通 / 小时");
const POINT: StaticText = StaticText::new("points", "百分点");
const HOUR: StaticText = StaticText::new("hours", "小时");
const NO_UNIT: StaticText = StaticText::new("", "");

/// A length of time that may be nothing.
const SECONDS: Range = Range::new(In(0.0), In(1e6), SECOND);
/// A length of time that divides something or has to hold something.
const SOME_SECONDS: Range = Range::new(Out(0.0), In(1e6), SECOND);
/// How many there are, one at least.
const COUNT: Range = count(NO_UNIT);
const STREAMS: Range = count(STREAM);
const LOOPS: Range = count(LOOP);
/// A share of a whole.
const SHARE: Range = Range::new(In(0.0), In(1.0), NO_UNIT);
/// A share that is more than nothing.
const SOME_SHARE: Range = Range::new(Out(0.0), In(1.0), NO_UNIT);
/// A share that is neither nothing nor everything: confidence, chance, grade of service.
const INNER_SHARE: Range = Range::new(Out(0.0), Out(1.0), NO_UNIT);
/// A load as a share of N*, up to ten times as much.
const SHARE_OF_N: Range = Range::new(Out(0.0), In(10.0), OF_N);
/// A load as a share of N*, no more than it.
const UP_TO_N: Range = Range::new(Out(0.0), In(1.0), OF_N);
/// A ratio of times, or a change of one.
const RATIO: Range = Range::new(Out(0.0), In(1e6), NO_UNIT);
const CHANGE: Range = Range::new(In(0.0), In(1e6), NO_UNIT);
const BYTES: Range = Range::new(In(0.0), In(1e15), BYTE);
const CELSIUS: Range = Range::new(Out(0.0), In(200.0), DEGREE);
const GIGABYTES: Range = Range::new(Out(0.0), In(1e6), GB);

const fn count(unit: StaticText) -> Range {
    Range::new(In(1.0), In(1e6), unit)
}

macro_rules! ranges {
    ($($section:ident $(.$key:ident)+ : $range:expr;)*) => {
        /// Every numeric key, in the order of the sections.
        pub const ALL: &[Number] = &[$(Number {
            key: concat!(stringify!($section) $(, ".", stringify!($key))+),
            range: $range,
            values: |config| config.$section$(.$key)+.numbers(),
        }),*];
    };
}

ranges! {
    server.window_ms: Range::new(In(1.0), In(3.6e6), MS);
    environment.timeout_s: SECONDS;
    pool.draw_s: SECONDS;
    load.ramp_s: SECONDS;
    load.warm_up_s: SECONDS;
    load.loops: LOOPS;
    load.loops_small: LOOPS;
    load.small_up_to: Range::new(In(0.0), In(1e6), STREAM);
    load.chunk_ms: Range::new(In(1.0), In(1e4), MS);
    load.tail_silence_ms: Range::new(In(0.0), In(3.6e6), MS);
    load.finish_s: SECONDS;
    load.drain_s: SECONDS;
    load.cool_down_s: SECONDS;
    load.ping_s: SECONDS;
    load.sample_s: Range::new(In(0.05), In(1e6), SECOND);
    load.timeouts.connect_s: SECONDS;
    load.timeouts.mute_s: SECONDS;
    load.timeouts.idle_s: SECONDS;
    load.timeouts.final_s: SECONDS;
    ladder.tiers: STREAMS;
    ladder.repeat: COUNT;
    ladder.max_loops: LOOPS;
    single.calls: COUNT;
    single.passes: Range::new(In(2.0), In(1e6), PASS);
    footprint.levels: STREAMS;
    footprint.steady_s: Range::new(In(1.0), In(1e6), SECOND);
    long_calls.shares: UP_TO_N;
    quality.shares: UP_TO_N;
    quality.baseline_loops: LOOPS;
    quality.loops: LOOPS;
    quality.draws: COUNT;
    repeat.middle: STREAMS;
    repeat.rules.share: CHANGE;
    repeat.rules.ttft_floor_s: SECONDS;
    repeat.rules.rtf_floor: CHANGE;
    repeat.rules.kv_pool_floor: SHARE;
    sizing.layers: Range::new(In(1.0), In(1e5), NO_UNIT);
    sizing.kv_heads: Range::new(In(1.0), In(1e5), NO_UNIT);
    sizing.head_dim: Range::new(In(1.0), In(1e5), NO_UNIT);
    sizing.window_s: Range::new(In(0.1), In(86_400.0), SECOND);
    sizing.text_tokens_per_s: Range::new(In(0.0), In(1e6), TOKEN_RATE);
    sizing.answer_s: Range::new(In(0.0), In(86_400.0), SECOND);
    sizing.card_gb: GIGABYTES;
    sizing.weights_gb: GIGABYTES;
    sizing.overhead_gb: Range::new(In(0.0), In(1e6), GB);
    sizing.share: SOME_SHARE;
    sizing.max_model_len: Range::new(In(1.0), In(1e9), TOKEN);
    sizing.promise.blocking: INNER_SHARE;
    sizing.promise.service_level: INNER_SHARE;
    sizing.promise.within_s: Range::new(In(0.0), In(1e9), SECOND);
    sizing.promise.calls_per_hour: Range::new(Out(0.0), In(1e12), CALL_RATE);
    sizing.promise.mean_s: Range::new(Out(0.0), In(86_400.0), SECOND);
    sizing.promise.hard_ceiling: Range::new(In(1.0), In(1e9), STREAM);
    slo.ttft_p95_s: SOME_SECONDS;
    slo.rtf_p95: RATIO;
    slo.final_p95_s: SOME_SECONDS;
    slo.kv_pool_p95: SHARE;
    slo.wake_late_p99_ms: Range::new(Out(0.0), In(1e6), MS);
    slo.loadgen_cpu_share: SHARE;
    slo.cache_hit_rate: SHARE;
    slo.error_abort_share: SHARE;
    slo.quality_points: Range::new(Out(0.0), In(100.0), POINT);
    slo.safety_factor: SHARE;
    slo.confidence: INNER_SHARE;
    slo.bootstrap_resamples: COUNT;
    slo.stationarity.alpha: INNER_SHARE;
    slo.stationarity.block_s: SOME_SECONDS;
    slo.stationarity.resamples: COUNT;
    slo.stationarity.min_rise_share: CHANGE;
    slo.stationarity.min_rise_s: SECONDS;
    slo.live.window_s: SOME_SECONDS;
    slo.live.min_calls: COUNT;
    slo.live.ttft_p95_s: SOME_SECONDS;
    slo.live.error_share: SHARE;
    slo.live.vram_over_baseline_bytes: BYTES;
    slo.live.vram_free_bytes: BYTES;
    slo.live.gpu_pause_c: CELSIUS;
    slo.live.gpu_resume_c: CELSIUS;
    slo.live.silent_scrapes: COUNT;
    soak.share: SHARE_OF_N;
    soak.hours: Range::new(Out(0.0), In(1e6), HOUR);
    soak.period_s: SOME_SECONDS;
    soak.leak.settle_share: Range::new(In(0.0), Out(1.0), NO_UNIT);
    soak.leak.min_share_per_h: CHANGE;
    soak.leak.confidence: INNER_SHARE;
    soak.leak.points: COUNT;
    soak.leak.resamples: COUNT;
    fault.shares: SHARE_OF_N;
    fault.steady_s: SECONDS;
    fault.down_s: SECONDS;
    fault.after_s: SECONDS;
    fault.well_s: SECONDS;
    fault.recovery.step_s: SOME_SECONDS;
    fault.recovery.lag_p95_s: SECONDS;
    fault.recovery.hold_steps: COUNT;
    fault.recovery.within_s: SECONDS;
    topology.shares: SHARE_OF_N;
    topology.lag_share: CHANGE;
    topology.lag_floor_s: SECONDS;
    topology.kv_room: SHARE;
    run.seed: Range::new(In(0.0), In(9_007_199_254_740_992.0), NO_UNIT);
}

/// The numeric key of this name.
#[must_use]
pub fn of(key: &str) -> Option<&'static Number> {
    ALL.iter().find(|number| number.key == key)
}

/// Holds every number against its range.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    for number in ALL {
        if let Some(&given) = (number.values)(config).iter().find(|value| !number.range.contains(**value)) {
            return Err(ConfigError::Range { key: number.key, given, range: number.range });
        }
    }
    Ok(())
}

/// The ranges as `docs/config.md` shows them.
#[must_use]
pub fn table() -> String {
    let rows = ALL.iter().map(|number| format!("| `{}` | {} |\n", number.key, number.range));
    ["| key | range |\n|---|---|\n".to_owned()].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{self, Takes};

    /// A config where this key is this number, whatever its type.
    fn with(key: &str, number: f64) -> Result<Config, ConfigError> {
        let list = keys::find(key).unwrap().list;
        let text = if number.fract() == 0.0 { format!("{number:.0}") } else { number.to_string() };
        let text = text.replace("NaN", "nan");
        let (mut config, text) = (Config::default(), if list { format!("[{text}]") } else { text });
        config.set(key, &text)?;
        Ok(config)
    }

    #[test]
    fn every_number_of_the_types_has_a_range_and_nothing_else_does() {
        let numbers: Vec<String> =
            keys::all().into_iter().filter(|key| key.takes == Takes::Number).map(|key| key.name).collect();
        let mut missing = numbers.clone();
        missing.retain(|name| of(name).is_none());
        assert_eq!(missing, Vec::<String>::new(), "give them a range in ranges.rs");
        let mut names: Vec<&str> = ALL.iter().map(|number| number.key).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), numbers.len());
    }

    #[test]
    fn below_above_and_beside_all_numbers_is_refused_by_name() {
        check(&Config::default()).unwrap();
        for Number { key, range, .. } in ALL {
            let (In(low) | Out(low), In(high) | Out(high)) = (range.low, range.high);
            let outside = |end: End, by: f64| if let Out(at) = end { vec![at, at + by] } else { vec![] };
            let mut wrong = vec![low - 1.0, high * 2.0 + 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            wrong.extend(outside(range.low, -1.0));
            wrong.extend(outside(range.high, 1.0));
            for number in wrong {
                assert!(!range.contains(number), "{key}: {number}");
                // A type refuses what it cannot hold, the range whatever is left; both by name.
                let refused = with(key, number).and_then(|config| config.check()).unwrap_err().to_string();
                assert!(refused.starts_with(&format!("config key {key}")), "{key} = {number}: {refused}");
                assert!(refused.contains(&format!("give {range}")), "{key} = {number}: {refused}");
            }
        }
    }

    #[test]
    fn what_used_to_run_is_refused() {
        for (key, value) in [
            ("slo.confidence", 7.0),
            ("slo.rtf_p95", -1.0),
            ("slo.kv_pool_p95", f64::NAN),
            ("slo.safety_factor", 9.0),
            ("slo.bootstrap_resamples", 0.0),
            ("server.window_ms", 0.0),
            ("slo.rtf_p95", 0.0),
            ("slo.ttft_p95_s", f64::NAN),
            ("slo.safety_factor", 1.5),
            ("slo.stationarity.alpha", 1.0),
        ] {
            let refused = with(key, value).unwrap().check().unwrap_err();
            assert!(matches!(refused, ConfigError::Range { key: named, .. } if named == key), "{refused}");
        }
    }
}
