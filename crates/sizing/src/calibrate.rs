//! Theory beside measurement: what a run says of the pool and of a stream's share of it.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized, reason};

use crate::error::{SizingError, positive};
use crate::kv::{TapeKv, token_cost};
use crate::supply::{Card, Topology};
use crate::units::GB;

/// What a run knows of one instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InstanceSeen {
    /// Its name.
    pub name: String,
    /// Tokens that its pool holds.
    pub pool_tokens: Option<u64>,
    /// Where that figure comes from.
    pub pool_source: Option<PoolSource>,
}

/// One load level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Streams on all instances.
    pub streams: f64,
    /// Mean use of the pool over instances and time within the window, 0..1.
    pub kv_mean: f64,
    /// Samples behind it.
    pub n: u64,
}

/// Everything that a run knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Seen {
    /// Its instances.
    pub instances: Vec<InstanceSeen>,
    /// Its load levels: those without preemptions, for a full pool says nothing of demand.
    pub points: Vec<LoadPoint>,
    /// Memory used on all cards, bytes, at the lowest load.
    pub used_bytes: Option<f64>,
}

/// What theory has to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Theory {
    /// The card, with its estimate of the overhead.
    pub card: Card,
    /// How it is cut up, where that is known.
    pub topology: Option<Topology>,
    /// Bytes of a token.
    pub token_bytes: u64,
    /// The tape that was played.
    pub tape: TapeKv,
}

/// One figure, by theory and by measurement. What cannot be known is empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which figure.
    pub figure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What theory says.
    pub theory: Option<f64>,
    /// What was measured.
    pub measured: Option<f64>,
    /// 95 % interval of the measurement.
    pub interval: Option<(f64, f64)>,
    /// Observations behind the measurement.
    pub n: Option<u64>,
    /// Where the measurement comes from, or why there is none.
    pub note: CalibrationNote,
}

/// Where the size of a pool comes from, or why it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum PoolSource {
    /// The metrics page.
    Page {
        /// The series, as the engine names it.
        series: String,
    },
    /// The start-up log.
    Log,
    /// There is no metrics page.
    NoPage,
    /// Neither page nor log tells.
    NotTold,
    /// The page cannot be read.
    Unreadable {
        /// Why.
        why: String,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(PoolSource);

impl Localize for PoolSource {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Page { series } => LocalizedText::same(series),
            Self::Log => localized!("start-up log", "启动日志"),
            Self::NoPage => localized!("it has no metrics page", "没有指标页"),
            Self::NotTold => localized!("neither its page nor its log tells", "指标页与日志都没有说明"),
            Self::Unreadable { why } => LocalizedText::same(why),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Where a measurement comes from, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum CalibrationNote {
    /// Instances told their pool.
    PoolFrom {
        /// Where.
        sources: Vec<PoolSource>,
    },
    /// Not all of them did.
    PoolUnknown,
    /// Theory lacks the topology.
    NeedsTopology,
    /// Computed from the tokens.
    TokensTimesBytes,
    /// Something that was given must be wrong.
    BelowZero,
    /// What remains of the memory.
    MemoryLeft,
    /// No GPU was read.
    NoGpu,
    /// Needs the pools.
    NeedsPools {
        /// Whether theory is an upper bound.
        upper_bound: bool,
    },
    /// The slope over the load levels.
    Slope {
        /// Whether theory is an upper bound.
        upper_bound: bool,
    },
    /// Too few load levels.
    NeedsLevels {
        /// Whether theory is an upper bound.
        upper_bound: bool,
    },
    /// Where the same line meets no load.
    Intercept,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(CalibrationNote);

impl Localize for CalibrationNote {
    fn text(&self) -> LocalizedText {
        let bound = |upper_bound: &bool| match upper_bound {
            true => localized!("; theory is an upper bound", "；理论值为上界"),
            false => LocalizedText::default(),
        };
        match self {
            Self::PoolFrom { sources } => {
                let sources: Vec<_> = sources.iter().map(Localize::text).collect();
                localized!("from {}", "来自 {}"; LocalizedText::join(&sources, ", ", "、"))
            }
            Self::PoolUnknown => localized!(
                "not every instance tells its pool (an engine before vLLM 0.24, or no metrics page)",
                "不是每个实例都报告 KV 池大小（vLLM 低于 0.24，或没有指标页）"
            ),
            Self::NeedsTopology => {
                localized!("theory needs the topology (--topology)", "理论值需要拓扑（--topology）")
            }
            Self::TokensTimesBytes => localized!("tokens x bytes of a token", "token 数 x 每 token 字节数"),
            Self::BelowZero => localized!(
                "below zero: weights, bytes of a token or the pool are not what was said",
                "小于零：权重、每 token 字节数或池的大小与所填不符"
            ),
            Self::MemoryLeft => localized!(
                "(memory used - pools) / instances - weights",
                "（已用显存 - KV 池）/ 实例数 - 权重"
            ),
            Self::NoGpu => localized!("no GPU was read in this run", "本次运行没有读到 GPU"),
            Self::NeedsPools { upper_bound } => localized!(
                "needs the pool of every instance{}",
                "需要每个实例的 KV 池大小{}"; bound(upper_bound)
            ),
            Self::Slope { upper_bound } => localized!(
                "slope of tokens in use over streams, by least squares over the load levels{}",
                "占用 token 数对路数的斜率，对各负载水平做最小二乘{}"; bound(upper_bound)
            ),
            Self::NeedsLevels { upper_bound } => localized!(
                "needs at least three load levels without preemption{}",
                "至少需要三个没有抢占的负载水平{}"; bound(upper_bound)
            ),
            Self::Intercept => localized!(
                "where the same line meets no load; far from 0 means that the line is bent",
                "同一直线在零负载处的值；远离 0 说明并非直线"
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// Theory and measurement side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The figures.
    pub rows: Vec<Row>,
}

impl Calibration {
    /// A row by its name.
    #[must_use]
    pub fn row(&self, figure: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.figure == figure)
    }
}

/// Puts theory and measurement side by side.
///
/// # Errors
/// Figures of theory that are out of range, or a run that saw nothing that could be compared.
pub fn calibrate(theory: &Theory, seen: &Seen) -> Result<Calibration, SizingError> {
    theory.card.check()?;
    let token = token_cost(theory.token_bytes)?;
    for point in &seen.points {
        positive(StaticText::new("streams of a load level", "一个负载水平的路数"), point.streams, 1e9)?;
        crate::error::not_negative(StaticText::new("use of the KV pool", "KV 池占用"), point.kv_mean, 1.0)?;
    }
    if seen.instances.is_empty() {
        return Err(SizingError::Nothing {
            what: StaticText::new("the run names no instance", "运行目录没有列出实例"),
            hint: StaticText::new(
                "list them under [[instances]] in the config of the run",
                "请在该次运行的配置中用 [[instances]] 列出",
            ),
        });
    }
    let n = as_float(seen.instances.len());
    let pools: Vec<f64> = seen.instances.iter().filter_map(|i| i.pool_tokens).map(as_f64).collect();
    // A mean of some pools is no mean of all.
    let all_pools = (pools.len() == seen.instances.len()).then(|| pools.iter().sum::<f64>());
    let source = || {
        let mut sources: Vec<_> = seen.instances.iter().filter_map(|i| i.pool_source.clone()).collect();
        sources.sort_unstable_by_key(ToString::to_string);
        sources.dedup();
        sources
    };
    let pool_theory = theory.topology.and_then(|t| t.pool_gb(&theory.card).ok()).filter(|gb| *gb > 0.0);
    let mut rows = vec![
        Row {
            figure: "pool_tokens",
            unit: "tokens an instance",
            theory: pool_theory.map(|gb| gb * GB / token),
            measured: all_pools.map(|all| all / n),
            interval: None,
            n: all_pools.map(|_| as_u64(seen.instances.len())),
            note: if all_pools.is_some() {
                CalibrationNote::PoolFrom { sources: source() }
            } else {
                CalibrationNote::PoolUnknown
            },
        },
        Row {
            figure: "pool_gb",
            unit: "GB an instance",
            theory: pool_theory,
            measured: all_pools.map(|all| all / n * token / GB),
            interval: None,
            n: all_pools.map(|_| as_u64(seen.instances.len())),
            note: if pool_theory.is_none() {
                CalibrationNote::NeedsTopology
            } else {
                CalibrationNote::TokensTimesBytes
            },
        },
    ];
    rows.extend(per_stream(theory, seen, token, all_pools, n));
    let overhead = seen
        .used_bytes
        .zip(all_pools)
        .map(|(used, all)| (used - all * token) / n / GB - theory.card.weights_gb);
    rows.push(Row {
        figure: "overhead_gb",
        unit: "GB an instance",
        theory: Some(theory.card.overhead_gb),
        measured: overhead,
        interval: None,
        n: overhead.map(|_| 1),
        note: match (overhead, seen.used_bytes) {
            (Some(x), _) if x < 0.0 => CalibrationNote::BelowZero,
            (Some(_), _) => CalibrationNote::MemoryLeft,
            (None, None) => CalibrationNote::NoGpu,
            (None, Some(_)) => CalibrationNote::NeedsPools { upper_bound: false },
        },
    });
    Ok(Calibration { rows })
}

/// The mean KV of a stream: slope of the tokens in use over the streams.
fn per_stream(theory: &Theory, seen: &Seen, token: f64, all_pools: Option<f64>, n: f64) -> Vec<Row> {
    let line = all_pools.and_then(|all| {
        let points: Vec<(f64, f64)> = seen.points.iter().map(|p| (p.streams, p.kv_mean * all)).collect();
        straight_line(&points)
    });
    let count = as_u64(seen.points.len());
    let upper_bound = theory.tape.mean_is_bound;
    let note = match (&line, all_pools) {
        (Some(_), _) => CalibrationNote::Slope { upper_bound },
        (None, None) => CalibrationNote::NeedsPools { upper_bound },
        (None, Some(_)) => CalibrationNote::NeedsLevels { upper_bound },
    };
    let row = |figure, unit, scale: f64, theory| Row {
        figure,
        unit,
        theory: Some(theory),
        measured: line.map(|l| l.slope * scale),
        interval: line.map(|l| (l.low * scale, l.high * scale)),
        n: line.map(|_| count),
        note: note.clone(),
    };
    let tokens = row("stream_tokens", "tokens, mean over time", 1.0, theory.tape.mean_bytes / token);
    let bytes = row("stream_mb", "MB, mean over time", token / 1e6, theory.tape.mean_bytes / 1e6);
    let base = Row {
        figure: "idle_tokens",
        unit: "tokens an instance without streams",
        theory: Some(0.0),
        measured: line.map(|l| l.intercept / n),
        interval: None,
        n: line.map(|_| count),
        note: CalibrationNote::Intercept,
    };
    vec![tokens, bytes, base]
}

#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    intercept: f64,
    low: f64,
    high: f64,
}

/// Least squares with the 95 % interval of the slope (Student's t); needs three points at different x.
fn straight_line(points: &[(f64, f64)]) -> Option<Line> {
    let n = as_float(points.len());
    if points.len() < 3 {
        return None;
    }
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    if sxx <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>() / sxx;
    let intercept = my - slope * mx;
    let rss: f64 = points.iter().map(|p| (p.1 - intercept - slope * p.0).powi(2)).sum();
    let reach = student_95(points.len() - 2) * (rss / (n - 2.0) / sxx).sqrt();
    Some(Line { slope, intercept, low: slope - reach, high: slope + reach })
}

/// Two-sided 95 % quantile of Student's t.
pub(crate) fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96 + 2.5 / as_float(freedom.max(1)))
}

#[expect(clippy::cast_precision_loss, reason = "counts, far below 2^53")]
pub(crate) const fn as_float(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a pool, far below 2^53")]
const fn as_f64(n: u64) -> f64 {
    n as f64
}

fn as_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
