//! Does the same load give the same figures again?

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_record::CallFigure;
use tapedeck_stats::Moments;

use crate::figure::Figure;
use crate::report::TierReport;
use crate::step_figure::StepFigure;

/// Relative change below which a figure counts as the same.
pub const SAME_SHARE: f64 = 0.15;

/// How far a figure may be off before it counts as drift: by more than the share *and* by more than the floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatRules {
    /// Relative change. Default 0.15.
    pub share: f64,
    /// Floor for first-text p95, seconds. Default 0.05.
    pub ttft_floor_s: f64,
    /// Floor for the real-time factor p95. Default 0.02.
    pub rtf_floor: f64,
    /// Floor for the KV pool p95. Default 0.02.
    pub kv_pool_floor: f64,
}

impl Default for RepeatRules {
    fn default() -> Self {
        let [ttft, rtf, kv_pool] = REPEATED.map(|figure| figure.spec().floor);
        Self { share: SAME_SHARE, ttft_floor_s: ttft, rtf_floor: rtf, kv_pool_floor: kv_pool }
    }
}

/// The figures by which a repeated tier is held against the first.
const REPEATED: [Figure; 3] =
    [Figure::Ttft, Figure::Call(CallFigure::Rtf), Figure::Step(StepFigure::KvPoolP95)];

/// One figure of a repeated tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigure {
    /// `ttft_p95`, `rtf_p95` or `kv_pool_p95`.
    pub figure: String,
    /// First time; empty where unknown.
    pub before: Option<f64>,
    /// Second time; empty where unknown.
    pub after: Option<f64>,
    /// (after - before) / before; empty where unknown or where it was 0 before.
    pub change: Option<f64>,
    /// Whether it drifted; empty where either figure is unknown.
    pub drift: Option<bool>,
}

/// Whether a tier that was run again drifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeatability {
    /// Each figure.
    pub figures: Vec<RepeatedFigure>,
    /// Whether any drifted; empty where none is known both times.
    pub drift: Option<bool>,
}

impl Localize for Repeatability {
    fn text(&self) -> LocalizedText {
        let moved: Vec<LocalizedText> = self
            .figures
            .iter()
            .filter(|f| f.drift == Some(true))
            .map(|RepeatedFigure { figure, change, .. }| match change {
                Some(change) => {
                    localized!("{figure} by {:+.0} %", "{figure} 变化 {:+.0} %", change * 100.0)
                }
                None => LocalizedText::same(figure),
            })
            .collect();
        match self.drift {
            Some(true) => {
                localized!("drift: {}", "有漂移：{}"; LocalizedText::join(&moved, " and ", "、"))
            }
            Some(false) => {
                localized!("no drift: draining between tiers is enough", "无漂移：档间排空即可，不必重启")
            }
            None => {
                localized!("not decidable: no figure is known both times", "无法判定：没有一个指标两次都已知")
            }
        }
    }
}

/// Compares a tier with its repetition under the same protocol.
#[must_use]
pub fn repeatability(before: &TierReport, after: &TierReport, rules: &RepeatRules) -> Repeatability {
    let floors = [rules.ttft_floor_s, rules.rtf_floor, rules.kv_pool_floor];
    let figures: Vec<RepeatedFigure> = REPEATED
        .into_iter()
        .zip(floors)
        .map(|(figure, floor)| {
            let [before, after] = [before, after].map(|report| figure.estimate(report).map(|e| e.value));
            let off = before.zip(after).map(|(b, a)| (b, (a - b).abs()));
            RepeatedFigure {
                figure: figure.of_step().into_owned(),
                before,
                after,
                change: before.zip(after).filter(|(b, _)| *b != 0.0).map(|(b, a)| (a - b) / b.abs()),
                drift: off.map(|(b, off)| off > rules.share * b.abs() && off > floor),
            }
        })
        .collect();
    let drift = figures.iter().filter_map(|f| f.drift).reduce(|a, b| a || b);
    Repeatability { figures, drift }
}

/// Spread of a figure over repetitions of one tier: mean and coefficient of variation; empty below two known values.
#[must_use]
pub fn spread_between(
    reports: &[TierReport],
    figure: impl Fn(&TierReport) -> Option<f64>,
) -> Option<Moments> {
    let values: Vec<f64> = reports.iter().filter_map(figure).collect();
    Moments::of(&values).filter(|m| m.n >= 2)
}
