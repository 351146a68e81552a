//! How long calls are: a tape's, a pool's, or a business's own.

use serde::Serialize;
use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized};

use crate::error::{SizingError, not_negative, positive};

/// Lengths of calls with how often each occurs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Durations {
    /// What they are the lengths of, for sentences: `Tape-A`, a file's name.
    pub name: String,
    /// Mean, s.
    pub mean_s: f64,
    /// Standard deviation / mean: 1 for exponential lengths, 0 for equal ones.
    pub cv: f64,
    /// The length that 95 % of calls do not exceed, s.
    pub p95_s: f64,
    /// The longest, s.
    pub longest_s: f64,
    /// Calls behind it.
    pub calls: f64,
    #[serde(skip)]
    bins: Vec<(f64, f64)>,
}

const LONGEST_S: f64 = 86_400.0;

impl Durations {
    /// What lengths are called of which only the mean is known; see [`Durations::of_mean`].
    pub const OF_MEAN: &str = "the given mean (spread unknown: taken as exponential)";

    /// From a list of lengths, s.
    ///
    /// # Errors
    /// No call, or a length that is not above 0 and up to a day.
    pub fn of_calls(name: impl Into<String>, calls_s: &[f64]) -> Result<Self, SizingError> {
        Self::weighted(name, calls_s.iter().map(|&s| (s, 1.0)).collect())
    }

    /// From `(length in s, calls)` pairs.
    ///
    /// # Errors
    /// As [`Durations::of_calls`], and a number of calls that is negative or not a number.
    pub fn weighted(name: impl Into<String>, mut bins: Vec<(f64, f64)>) -> Result<Self, SizingError> {
        for &(seconds, calls) in &bins {
            positive(StaticText::new("call length (s)", "通话时长（s）"), seconds, LONGEST_S)?;
            not_negative(StaticText::new("number of calls", "通数"), calls, 1e12)?;
        }
        bins.retain(|&(_, calls)| calls > 0.0);
        bins.sort_by(|a, b| a.0.total_cmp(&b.0));
        let calls: f64 = bins.iter().map(|b| b.1).sum();
        let Some(&(longest_s, _)) = bins.last() else {
            return Err(SizingError::Nothing {
                what: StaticText::new("there is no call to take lengths from", "没有可取时长的通话"),
                hint: StaticText::new(
                    "give at least one line with a length and a number of calls above 0",
                    "请至少给出一行，含时长与大于 0 的通数",
                ),
            });
        };
        let mean_s = bins.iter().map(|b| b.0 * b.1).sum::<f64>() / calls;
        let variance = bins.iter().map(|b| (b.0 - mean_s).powi(2) * b.1).sum::<f64>() / calls;
        let mut durations = Self {
            name: name.into(),
            mean_s,
            cv: variance.sqrt() / mean_s,
            p95_s: longest_s,
            longest_s,
            calls,
            bins,
        };
        durations.p95_s = durations.at_share(0.95);
        Ok(durations)
    }

    /// From a histogram file: a first line that names the columns `duration_s` and `calls` (others are ignored), parted by
    /// commas, semicolons or tabs; each line is a length (the middle of its bin) and a number of calls.
    ///
    /// # Errors
    /// The first line that cannot be read, with its number.
    pub fn histogram(name: impl Into<String>, text: &str) -> Result<Self, SizingError> {
        let bad = |line: usize, why: LocalizedText| {
            SizingError::Inconsistent(localized!("histogram, line {line}: {}", "直方图第 {line} 行：{}"; why))
        };
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let head = lines.next().map(|(_, line)| line).unwrap_or_default();
        let separator = ['\t', ';', ','].into_iter().find(|&c| head.contains(c)).unwrap_or(',');
        let columns: Vec<&str> = head.split(separator).map(|c| c.trim().trim_matches('"')).collect();
        let column = |wanted: &str| {
            columns.iter().position(|c| *c == wanted).ok_or_else(|| {
                bad(
                    1,
                    localized!(
                        "no column `{wanted}`; the first line must name `duration_s` and `calls`",
                        "没有列 `{wanted}`；首行须写明 `duration_s` 与 `calls`"
                    ),
                )
            })
        };
        let (seconds, calls) = (column("duration_s")?, column("calls")?);
        let mut bins = Vec::new();
        for (n, line) in lines {
            let cells: Vec<&str> = line.split(separator).collect();
            let cell = |at: usize, what: &str| -> Result<f64, SizingError> {
                let text = cells.get(at).map(|c| c.trim().trim_matches('"')).unwrap_or_default();
                text.parse().map_err(|_| {
                    bad(
                        n + 1,
                        localized!("`{text}` is no number for `{what}`", "`{text}` 不是 `{what}` 的数值"),
                    )
                })
            };
            let bin = (cell(seconds, "duration_s")?, cell(calls, "calls")?);
            positive("duration_s", bin.0, LONGEST_S).map_err(|e| bad(n + 1, e.text()))?;
            not_negative("calls", bin.1, 1e12).map_err(|e| bad(n + 1, e.text()))?;
            bins.push(bin);
        }
        Self::weighted(name, bins)
    }

    /// What they are the lengths of, in both languages.
    #[must_use]
    pub fn label(&self) -> LocalizedText {
        // Where only a mean is known there is no distribution.
        if self.bins.is_empty() && self.name == Self::OF_MEAN {
            let zh = "给定的平均时长（离散程度未知，按指数分布）".to_owned();
            return LocalizedText { en: self.name.clone(), zh };
        }
        LocalizedText::same(&self.name)
    }

    /// Only a mean is known, so the rest is taken as exponential: `name` should say so.
    ///
    /// # Errors
    /// A mean that is not above 0 and up to a day.
    pub fn of_mean(name: impl Into<String>, mean_s: f64) -> Result<Self, SizingError> {
        let mean_s =
            positive(StaticText::new("mean call length (s)", "平均通话时长（s）"), mean_s, LONGEST_S)?;
        let p95_s = mean_s * 20.0_f64.ln();
        Ok(Self { name: name.into(), mean_s, cv: 1.0, p95_s, longest_s: p95_s, calls: 0.0, bins: Vec::new() })
    }

    /// The length that this share of calls does not exceed, s.
    #[must_use]
    pub fn at_share(&self, share: f64) -> f64 {
        let wanted = share * self.calls - 1e-9;
        let mut seen = 0.0;
        self.bins
            .iter()
            .find(|bin| {
                seen += bin.1;
                seen >= wanted
            })
            .map_or(self.longest_s, |bin| bin.0)
    }

    /// Share of calls that are longer than `seconds`.
    #[must_use]
    pub fn share_longer(&self, seconds: f64) -> f64 {
        if self.bins.is_empty() {
            return (-seconds / self.mean_s).exp();
        }
        self.bins.iter().filter(|bin| bin.0 > seconds).map(|bin| bin.1).sum::<f64>() / self.calls
    }
}
