//! A measured ladder, as far as the fit needs to know it.

use serde::{Deserialize, Serialize};
use tapedeck_engine_model::Params;
use tapedeck_engine_model::reference_capacity::{Evidence, ReferenceRules, TapeCall};
use tapedeck_l10n::{StaticText, localized};

use crate::error::SizingError;

/// A figure that is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median of the first-text latency, s.
    TtftP50,
    /// Its 95th percentile, s.
    TtftP95,
    /// Median of the real-time factor.
    RtfP50,
    /// Its 95th percentile.
    RtfP95,
    /// Median of the final latency, s.
    FinalP50,
    /// Its 95th percentile, s.
    FinalP95,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Self; 6] =
        [Self::TtftP50, Self::TtftP95, Self::RtfP50, Self::RtfP95, Self::FinalP50, Self::FinalP95];

    /// Its name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TtftP50 => "TTFT p50",
            Self::TtftP95 => "TTFT p95",
            Self::RtfP50 => "RTF p50",
            Self::RtfP95 => "RTF p95",
            Self::FinalP50 => "final p50",
            Self::FinalP95 => "final p95",
        }
    }

    /// What the model says of it.
    pub(super) const fn of(self, tier: &Evidence) -> Option<f64> {
        match self {
            Self::TtftP50 => tier.ttft_p50_s,
            Self::TtftP95 => tier.ttft_p95_s,
            Self::RtfP50 => tier.rtf_p50,
            Self::RtfP95 => tier.rtf_p95,
            Self::FinalP50 => tier.final_p50_s,
            Self::FinalP95 => tier.final_p95_s,
        }
    }

    pub(super) const fn place(self) -> usize {
        self as usize
    }
}

/// One tier of a ladder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TierSeen {
    /// Streams.
    pub streams: u32,
    /// The figures in the order of [`Figure::ALL`]; empty where they were not measured.
    pub figures: [Option<f64>; 6],
    /// Standard error of each, relative to its value; empty where nobody knows.
    pub relative_se: [Option<f64>; 6],
    /// 95th percentile of the use of the KV pool on the worst instance, 0..1.
    pub kv_p95: Option<f64>,
    /// Preempted requests.
    pub preemptions: Option<f64>,
    /// Whether it was cut short, or streams failed: its figures are those of the calls that survived.
    pub broken: bool,
}

impl TierSeen {
    /// A tier as the model itself plays it: for tests, and for studies of the fit.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    pub fn played(tier: &Evidence) -> Self {
        Self {
            streams: tier.streams,
            figures: Figure::ALL.map(|figure| figure.of(tier)),
            relative_se: [None; 6],
            kv_p95: tier.kv_p95,
            preemptions: Some(tier.preemptions as f64),
            broken: tier.rtf_p95.is_none(),
        }
    }

    /// Whether its latencies are the cost law's, and not those of a pool that overflows, of callers that gave up, or of an
    /// overload in which lag grows for as long as the tier lasts.
    pub(super) fn fits(&self) -> bool {
        let overloaded =
            self.figures.get(Figure::RtfP95.place()).copied().flatten().is_some_and(|rtf| rtf > 1.0);
        let preempted = self.preemptions.is_some_and(|n| n > 0.0);
        !self.broken && !preempted && !overloaded && self.figures.iter().any(Option::is_some)
    }
}

/// What is known of the engine beforehand and not fitted: the session model, the window, rates of tokens, the seats. Its
/// step costs and intake are ignored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Known {
    /// Parameters of the engine.
    pub params: Params,
    /// Tokens that the pool of one instance holds; empty where the run does not tell, and it is then fitted.
    pub pool_tokens: Option<f64>,
}

/// A measured ladder with everything that it takes to play it again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ladder {
    /// The tiers.
    pub tiers: Vec<TierSeen>,
    /// What was played.
    pub tape: Vec<TapeCall>,
    /// How it was played and judged. `step` 0 = the number of instances.
    pub rules: ReferenceRules,
    /// Instances that carried it.
    pub instances: u32,
    /// What is known beforehand.
    pub known: Known,
    /// N* as it was measured; to be compared with.
    pub n_star: Option<u32>,
    /// Growth of lag with the age of a call at the lowest load, ms per minute; where it was measured.
    pub age_slope_ms_per_min: Option<f64>,
}

/// Fewer tiers say nothing about a law with five costs.
const FEWEST: usize = 4;

impl Ladder {
    /// The tiers that are fitted, by load.
    ///
    /// # Errors
    /// Fewer than four, or a figure that is no positive number.
    pub(super) fn usable(&self) -> Result<Vec<&TierSeen>, SizingError> {
        if self.tape.is_empty() {
            return Err(SizingError::Nothing {
                what: StaticText::new("the ladder has no tape", "阶梯没有带"),
                hint: StaticText::new("give the manifest that was played", "请给出所播放的清单"),
            });
        }
        crate::error::count(StaticText::new("instances", "实例数"), self.instances)?;
        if let Some(pool) = self.known.pool_tokens {
            crate::error::positive(StaticText::new("KV pool (tokens)", "KV 池（token）"), pool, 1e12)?;
        }
        let mut usable: Vec<&TierSeen> = self.tiers.iter().filter(|tier| tier.fits()).collect();
        usable.sort_by_key(|tier| tier.streams);
        for tier in &usable {
            crate::error::count(StaticText::new("streams of a tier", "一档的路数"), tier.streams)?;
            for value in tier.figures.iter().flatten() {
                crate::error::positive(StaticText::new("a figure of a tier", "一档的一个指标"), *value, 1e6)?;
            }
            if let Some(value) = tier.kv_p95 {
                crate::error::not_negative(StaticText::new("use of the KV pool", "KV 池占用"), value, 1.0)?;
            }
        }
        if usable.len() < FEWEST {
            return Err(SizingError::Inconsistent(localized!(
                "the ladder has {} tiers without preemptions, failed streams, early ends and overload (RTF above 1); a fit needs at least {FEWEST}: add lower tiers",
                "阶梯中只有 {} 档没有抢占、出错、提前结束与过载（RTF 大于 1）；拟合至少需要 {FEWEST} 档：请增加较低的档",
                usable.len()
            )));
        }
        Ok(usable)
    }
}
