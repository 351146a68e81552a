//! What a reader should know of a fit.

use serde::{Deserialize, Serialize};
use tapedeck_engine_model::SessionModel;
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};

use super::fit::{Fit, Grade};
use super::ladder::{Figure, Ladder};

/// What a reader should know of a fit, or why there is none. Errors are relative, 0.1 is 10 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum FitNote {
    /// How good it is.
    Error {
        /// Tiers that it was fitted to.
        tiers: usize,
        /// How far to trust it.
        grade: Grade,
        /// On the tiers that it saw, root mean square.
        seen: f64,
        /// On tiers left out.
        left_out: f64,
        /// On the middle one of those.
        usual: f64,
    },
    /// A figure of the model lies on one side of what was measured.
    Bias {
        /// Which.
        figure: Figure,
        /// By how much on average over the tiers; above 0, the model is slower.
        by: f64,
    },
    /// It is too poor to be used.
    OtherLaw,
    /// A term for a call's age would explain what was measured.
    AgeLag {
        /// Growth of the lag, ms per minute.
        ms_per_min: f64,
        /// Error without the term.
        error: f64,
        /// Error with it.
        with_it: f64,
    },
    /// Lag grows with a call's age at the lowest load already.
    AgeSlope {
        /// Growth, ms per minute.
        ms_per_min: f64,
    },
    /// Calls take more or less KV than the model's.
    KvRatio {
        /// Measured / modelled.
        ratio: f64,
    },
    /// The pool was fitted as well.
    PoolFitted,
    /// There were no KV figures.
    NoKv,
    /// KV in use does not follow the model.
    KvSpread {
        /// Largest deviation.
        off: f64,
    },
    /// Nothing could be predicted.
    NotPredicted {
        /// Why.
        why: LocalizedText,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(FitNote);

impl Localize for FitNote {
    fn text(&self) -> LocalizedText {
        let percent = |x: &f64| format!("{:.0} %", 100.0 * x);
        match self {
            Self::Error { tiers, grade, seen, left_out, usual } => {
                let (seen, left_out, usual) = (percent(seen), percent(left_out), percent(usual));
                localized!(
                    "The fit to {tiers} tiers is {}: its figures are off by {seen} on the tiers it saw, by {left_out} on tiers left out (root mean square; {usual} for the middle one of them).",
                    "对 {tiers} 档的拟合{}：所用各档误差 {seen}，留出各档误差 {left_out}（均方根；其中位档为 {usual}）。";
                    grade.text()
                )
            }
            Self::Bias { figure, by } => {
                let (figure, off) = (figure.name(), percent(&by.abs()));
                match *by > 0.0 {
                    true => localized!(
                        "{figure} of the model lies {off} above what was measured, on average over the tiers.",
                        "模型的 {figure} 平均比实测高 {off}。"
                    ),
                    false => localized!(
                        "{figure} of the model lies {off} below what was measured, on average over the tiers.",
                        "模型的 {figure} 平均比实测低 {off}。"
                    ),
                }
            }
            Self::OtherLaw => localized!(
                "The engine's costs follow another law than the model's: do not use the predictions.",
                "引擎的开销不服从模型的规律：不要使用这些预测。"
            ),
            Self::AgeLag { ms_per_min, error, with_it } => {
                let (error, with_it) = (percent(error), percent(with_it));
                localized!(
                    "A lag that grows by about {ms_per_min:.0} ms with each minute of a call would explain it: the error falls from {error} to {with_it}. The plain law has no such term, so longer calls would be worse than predicted.",
                    "若欠账延迟随通话每分钟增长约 {ms_per_min:.0} ms 即可解释：误差由 {error} 降到 {with_it}。模型没有这一项，因此更长的通话会比预测更差。"
                )
            }
            Self::AgeSlope { ms_per_min } => localized!(
                "At the lowest load lag already grows by {ms_per_min:.0} ms with each minute of a call; the fitted law makes little of a call's age.",
                "最低负载下欠账延迟已随通话每分钟增长 {ms_per_min:.0} ms；拟合的规律几乎不计通话时长。"
            ),
            Self::KvRatio { ratio } => localized!(
                "Calls take {ratio:.2} x the KV that the model takes; predictions use the measured figure.",
                "通话占用的 KV 为模型的 {ratio:.2} 倍；预测采用实测值。"
            ),
            Self::PoolFitted => localized!(
                "The pool was not known; it was fitted to the measured use of it.",
                "KV 池大小未知，由实测占用拟合得到。"
            ),
            Self::NoKv => localized!(
                "No KV figures: predictions know no memory limit but the model's own reckoning.",
                "没有 KV 数据：除模型自身的估算外，预测不计显存限制。"
            ),
            Self::KvSpread { off } => {
                let off = percent(off);
                localized!(
                    "The KV in use does not follow the model over the tiers (up to {off} off).",
                    "各档的 KV 占用与模型不符（最多相差 {off}）。"
                )
            }
            Self::NotPredicted { why } => localized!("nothing was predicted: {}", "没有预测：{}"; why),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

pub(super) fn notes(fit: &Fit, ladder: &Ladder) -> Vec<FitNote> {
    let mut all = vec![FitNote::Error {
        tiers: fit.tiers,
        grade: fit.grade,
        seen: fit.error.exp_m1(),
        left_out: fit.error_left_out.exp_m1(),
        usual: fit.usual_error.exp_m1(),
    }];
    let biased = fit.bias.iter().filter(|(_, bias)| bias.abs() > 0.12);
    all.extend(
        biased
            .map(|(figure, bias)| FitNote::Bias { figure: *figure, by: bias.abs().exp_m1().copysign(*bias) }),
    );
    if fit.grade == Grade::Poor {
        all.push(FitNote::OtherLaw);
    }
    if let Some(alternative) = &fit.alternative {
        all.push(FitNote::AgeLag {
            ms_per_min: alternative.age_lag_ms_per_min,
            error: fit.error.exp_m1(),
            with_it: alternative.error.exp_m1(),
        });
    }
    if let Some(ms_per_min) = ladder.age_slope_ms_per_min.filter(|s| *s > 60.0)
        && ladder.known.params.session == SessionModel::Resident
    {
        all.push(FitNote::AgeSlope { ms_per_min });
    }
    match (fit.kv_ratio, ladder.known.pool_tokens) {
        (Some(ratio), Some(_)) if (ratio - 1.0).abs() > 0.15 => all.push(FitNote::KvRatio { ratio }),
        (Some(_), None) => all.push(FitNote::PoolFitted),
        (None, _) => all.push(FitNote::NoKv),
        _ => {}
    }
    all.extend(fit.kv_spread.filter(|s| *s > 0.35).map(|off| FitNote::KvSpread { off }));
    all
}
