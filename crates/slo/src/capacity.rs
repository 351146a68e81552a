//! N*: the highest passing tier below the first failing one, and how far that can be trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};

use crate::limits::Limits;
use crate::report::{Limit, TierReport, Verdict};

/// How firmly the ladder bounds N* from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityState {
    /// The next tier up failed.
    Exact,
    /// Even the lowest tier failed.
    None,
    /// A tier between the highest pass and the first failure proves nothing.
    AtLeastUnproven,
    /// Nothing failed: the ladder ended before the deployment did.
    Censored,
    /// No tier proves anything that bounds N* from below.
    Undecided,
}

impl CapacityState {
    /// N* as it is displayed in this state: `30`, `none`, `>= 30, unproven above`, `>= 90, censored` or `undecided`.
    #[must_use]
    pub fn n_star(self, n_star: Option<u32>) -> LocalizedText {
        match (self, n_star) {
            (Self::Exact, Some(n)) => n.into(),
            (Self::AtLeastUnproven, Some(n)) => localized!(">= {n}, unproven above", ">= {n}，其上未证实"),
            (Self::Censored, Some(n)) => localized!(">= {n}, censored", ">= {n}，未测到上限"),
            (Self::None, _) => localized!("none", "无"),
            _ => localized!("undecided", "无法判定"),
        }
    }

    /// `N* = 48`, or `N* >= 48, censored` where it is only a bound, with another name for `N*` where it has one.
    #[must_use]
    pub fn stated(self, name: LocalizedText, n_star: Option<u32>) -> LocalizedText {
        let shown = self.n_star(n_star);
        let between = if shown.en.starts_with('>') { " " } else { " = " };
        LocalizedText::join(&[name, shown], between, between)
    }
}

impl Localize for CapacityState {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Exact => localized!("exact", "确切"),
            Self::None => localized!("none", "无"),
            Self::AtLeastUnproven => localized!("unproven above", "其上未证实"),
            Self::Censored => localized!("censored", "未测到上限"),
            Self::Undecided => localized!("undecided", "无法判定"),
        }
    }
}

/// What a ladder says about a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The highest passing tier below the first failing one.
    pub n_star: Option<u32>,
    /// How firmly it is bounded from above.
    pub state: CapacityState,
    /// floor(safety factor x N*), capped at the largest tier without a quality alarm.
    pub published: Option<u32>,
    /// The safety factor that was used.
    pub safety_factor: f64,
    /// The first failing tier.
    pub first_fail: Option<u32>,
    /// The limits that it broke.
    pub limited_by: Vec<Limit>,
    /// Tiers that passed or failed by an estimate alone.
    pub point_verdict_tiers: Vec<u32>,
    /// Tiers that passed above the first failing one: they do not count.
    pub non_monotonic: Vec<u32>,
    /// Tiers between N* and the first failure that prove nothing, with why.
    pub undecided: Vec<(u32, Verdict)>,
    /// The largest tier up to N* without a quality alarm, where a higher one has one.
    pub quality_cap: Option<u32>,
    /// Whether the figures come from the built-in engine.
    pub simulated: bool,
}

impl Capacity {
    /// N* as it is displayed: `30`, `none`, `>= 30, unproven above`, `>= 90, censored` or `undecided`.
    #[must_use]
    pub fn display(&self) -> String {
        self.state.n_star(self.n_star).en
    }
}

impl Localize for Capacity {
    /// The whole answer in one line of plain words.
    fn text(&self) -> LocalizedText {
        let stated = self.state.stated("N*".into(), self.n_star);
        let limits: Vec<LocalizedText> = self.limited_by.iter().map(|l| l.name().into()).collect();
        let limits = LocalizedText::join(&limits, " and ", "、");
        let why = match (self.state, self.first_fail) {
            (CapacityState::Exact, Some(fail)) => {
                Some(localized!("exact: {fail} streams broke {}", "确切：{fail} 路超出 {}"; limits))
            }
            (CapacityState::None, Some(fail)) => Some(localized!(
                "the lowest tier, {fail} streams, broke {}",
                "最低一档 {fail} 路就超出 {}"; limits
            )),
            (CapacityState::Censored, _) => Some(localized!("no tier failed", "没有一档未通过")),
            (CapacityState::AtLeastUnproven | CapacityState::Undecided, _) if !self.undecided.is_empty() => {
                let tier = |(n, v): &(u32, Verdict)| localized!("{n} is {}", "{n} 路为“{}”"; v.text());
                let tiers: Vec<LocalizedText> = self.undecided.iter().map(tier).collect();
                Some(LocalizedText::join(&tiers, ", ", "，"))
            }
            _ => None,
        };
        let mut parts = vec![match why {
            Some(why) => localized!("{} ({})", "{}（{}）"; stated, why),
            None => stated,
        }];
        let list = |tiers: &[u32]| tiers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        if let Some(published) = self.published {
            let factor = self.safety_factor;
            parts.push(localized!(
                "published capacity {published} ({factor} x N*, rounded down)",
                "发布容量 {published}（{factor} x N*，向下取整）"
            ));
        }
        if let Some(cap) = self.quality_cap {
            parts.push(localized!(
                "capped at {cap} streams by the word error alarm",
                "错误率告警把容量限制在 {cap} 路"
            ));
        }
        if !self.non_monotonic.is_empty() {
            let tiers = list(&self.non_monotonic);
            parts.push(localized!(
                "not monotonic: {tiers} passed above a failure",
                "不单调：{tiers} 在未通过档之上又通过"
            ));
        }
        if !self.point_verdict_tiers.is_empty() {
            let tiers = list(&self.point_verdict_tiers);
            parts.push(localized!("only point verdicts at {tiers}", "{tiers} 仅凭点估计判定"));
        }
        if self.simulated {
            parts.push(localized!("simulated", "模拟"));
        }
        LocalizedText::join(&parts, "; ", "；")
    }
}

/// One load level after its repetitions are put together.
#[derive(Debug, Clone)]
struct Level {
    verdict: Verdict,
    point: bool,
    quality_alarm: bool,
    broken: Vec<Limit>,
}

/// Repetitions of one load level count as one: a failure outweighs what proves nothing, that outweighs a pass.
fn levels(tiers: &[TierReport]) -> BTreeMap<u32, Level> {
    let weight = |verdict: Verdict| match verdict {
        Verdict::Pass => 0,
        Verdict::Fail => 2,
        _ => 1,
    };
    let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
    for tier in tiers {
        let alarm = tier.quality.as_ref().is_some_and(|q| q.alarm == Some(true));
        let level = levels.entry(tier.streams).or_insert_with(|| Level {
            verdict: tier.verdict,
            point: false,
            quality_alarm: false,
            broken: Vec::new(),
        });
        level.point |= tier.point_only;
        level.quality_alarm |= alarm;
        if weight(tier.verdict) > weight(level.verdict) {
            level.verdict = tier.verdict;
        }
        if tier.verdict == Verdict::Fail {
            for limit in tier.broken() {
                if !level.broken.contains(&limit) {
                    level.broken.push(limit);
                }
            }
        }
    }
    levels
}

/// The highest pass below the first failure, and that failure.
fn bracket(levels: &BTreeMap<u32, Level>) -> (Option<u32>, Option<u32>) {
    let fail = levels.iter().find(|(_, l)| l.verdict == Verdict::Fail).map(|(&n, _)| n);
    let pass = levels
        .iter()
        .filter(|&(&n, l)| l.verdict == Verdict::Pass && fail.is_none_or(|f| n < f))
        .map(|(&n, _)| n)
        .next_back();
    (pass, fail)
}

/// floor(factor x n), safe against products that fall just short of a whole number (0.7 x 90 = 62.999...).
fn share_of(factor: f64, n: u32) -> u32 {
    let product = (factor * f64::from(n) + 1e-9).floor().clamp(0.0, f64::from(u32::MAX));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the type's range"
    )]
    let whole = product as u32;
    whole
}

/// What the tiers of one tape say about the deployment's capacity; their order does not matter.
#[must_use]
pub fn capacity(tiers: &[TierReport], limits: &Limits) -> Capacity {
    let levels = levels(tiers);
    let (n_star, first_fail) = bracket(&levels);
    let above_pass = |n: u32| n_star.is_none_or(|p| n > p) && first_fail.is_none_or(|f| n < f);
    let undecided: Vec<(u32, Verdict)> = levels
        .iter()
        .filter(|&(&n, l)| l.verdict.undecided() && above_pass(n))
        .map(|(&n, l)| (n, l.verdict))
        .collect();
    let state = match (n_star, first_fail) {
        (Some(_), _) if !undecided.is_empty() => CapacityState::AtLeastUnproven,
        (Some(_), Some(_)) => CapacityState::Exact,
        (Some(_), None) => CapacityState::Censored,
        (None, Some(_)) if undecided.is_empty() => CapacityState::None,
        (None, _) => CapacityState::Undecided,
    };
    let clean = n_star.and_then(|n| levels.range(..=n).find(|(_, l)| l.quality_alarm)).map(|(&first, _)| {
        levels.range(..first).filter(|(_, l)| l.verdict == Verdict::Pass).map(|(&n, _)| n).next_back()
    });
    let published = n_star.map(|n| {
        let share = share_of(limits.safety_factor, n);
        clean.map_or(share, |cap| share.min(cap.unwrap_or(0)))
    });
    Capacity {
        n_star,
        state,
        published,
        safety_factor: limits.safety_factor,
        first_fail,
        limited_by: first_fail.and_then(|f| levels.get(&f)).map(|l| l.broken.clone()).unwrap_or_default(),
        point_verdict_tiers: levels
            .iter()
            .filter(|(_, l)| l.point && !l.verdict.undecided())
            .map(|(&n, _)| n)
            .collect(),
        non_monotonic: levels
            .iter()
            .filter(|&(&n, l)| l.verdict == Verdict::Pass && first_fail.is_some_and(|f| n > f))
            .map(|(&n, _)| n)
            .collect(),
        undecided,
        quality_cap: clean.map(|cap| cap.unwrap_or(0)),
        simulated: tiers.iter().any(|t| t.simulated),
    }
}

/// At most so many tiers are added after the ladder.
pub const REFINEMENTS: usize = 3;

/// The next tier that narrows the gap between the last pass and the first failure, if one is worth running.
///
/// Bisects in multiples of the instance count (so that every instance gets the same load) until the gap is the
/// instance count, with at most [`REFINEMENTS`] tiers marked `refinement`. A level that was tried and proved
/// nothing is not tried again: the nearest one takes its place. Where even the lowest tier failed, the search
/// goes on below it.
#[must_use]
pub fn next_refinement(tiers: &[TierReport], instances: u32) -> Option<u32> {
    if tiers.iter().filter(|t| t.refinement).count() >= REFINEMENTS {
        return None;
    }
    let step = instances.max(1);
    let levels = levels(tiers);
    let (pass, fail) = bracket(&levels);
    let (low, high) = (pass.unwrap_or(0), fail?);
    if high - low <= step {
        return None;
    }
    let middle = low + (high - low) / 2;
    let candidates = (low / step + 1)..high.div_ceil(step);
    candidates
        .map(|k| k * step)
        .filter(|n| *n > low && *n < high && !levels.contains_key(n))
        .min_by_key(|n| (n.abs_diff(middle), *n))
}

/// Why a ladder ends before its last tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LadderStop {
    /// One tier beyond the first failure has been run.
    OneBeyondFailure,
    /// A preemption or a full KV pool was seen.
    HardLimit,
    /// More streams errored than the ladder tolerates.
    Errors,
}

impl Localize for LadderStop {
    fn text(&self) -> LocalizedText {
        match self {
            Self::OneBeyondFailure => {
                localized!("one tier beyond the first failure has been run", "已在首个未通过档之上再跑了一档")
            }
            Self::HardLimit => localized!(
                "the KV pool filled up or a request was preempted, so nothing higher is worth trying",
                "KV 池已满或有请求被抢占，更高的档不值得再试"
            ),
            Self::Errors => {
                localized!("too many streams errored to climb higher", "出错的路数太多，不再往上")
            }
        }
    }
}

/// Whether the ladder has seen enough; `tiers` are those run so far, in any order.
#[must_use]
pub fn ladder_should_stop(tiers: &[TierReport], limits: &Limits) -> Option<LadderStop> {
    if tiers.iter().any(TierReport::hard_limit) {
        return Some(LadderStop::HardLimit);
    }
    if tiers.iter().any(|t| t.err_stream_share() > limits.error_abort_share) {
        return Some(LadderStop::Errors);
    }
    let first_fail = tiers.iter().filter(|t| t.verdict == Verdict::Fail).map(|t| t.streams).min()?;
    tiers.iter().any(|t| t.streams > first_fail && !t.refinement).then_some(LadderStop::OneBeyondFailure)
}
