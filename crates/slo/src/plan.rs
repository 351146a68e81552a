//! Before a tier: how many calls its verdict needs, and how long that takes.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};
use tapedeck_stats::{observations_for_upper_bound, observations_needed};

use crate::limits::Limits;

/// What a tier is going to have, and what a verdict on its p95 limits needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallPlan {
    /// Calls the tier will count: N x C x loops.
    pub calls: u64,
    /// Calls that show a p95 limit to be kept, one-sided, when none breaks it (59 at 95 %).
    pub needed_without_violation: u64,
    /// The same when one call breaks it (93 at 95 %).
    pub needed_with_one_violation: u64,
    /// Calls from which a two-sided interval has an upper bound at all (72 at 95 %).
    pub needed_two_sided: u64,
    /// Whether the tier's calls reach the two-sided figure: below it the best verdict is a point verdict.
    pub enough: bool,
    /// Loops over the tape that would reach it.
    pub loops_needed: u32,
    /// Seconds of audio every stream plays for the counted calls as planned: the least the window takes.
    pub window_s: f64,
    /// The same with the loops that are needed.
    pub window_needed_s: f64,
}

/// Plans a tier of `streams` over a tape of `tape_calls` calls and `tape_s` seconds, `loops` times.
///
/// The time is that of the audio alone: finals, connects, ramp, warm-up and drain come on top.
#[must_use]
pub fn plan_calls(streams: u32, tape_calls: u32, tape_s: f64, loops: u32, limits: &Limits) -> CallPlan {
    let needed = |violations: u32| {
        observations_needed(0.95, limits.confidence, violations).map_or(u64::MAX, |n| n as u64)
    };
    let needed_two_sided =
        observations_for_upper_bound(0.95, limits.confidence).map_or(u64::MAX, |n| n as u64);
    let per_loop = u64::from(streams) * u64::from(tape_calls);
    let calls = per_loop * u64::from(loops);
    let loops_needed = if per_loop == 0 { 0 } else { needed_two_sided.div_ceil(per_loop) };
    let loops_needed = u32::try_from(loops_needed).unwrap_or(u32::MAX);
    CallPlan {
        calls,
        needed_without_violation: needed(0),
        needed_with_one_violation: needed(1),
        needed_two_sided,
        enough: calls >= needed_two_sided,
        loops_needed,
        window_s: tape_s * f64::from(loops),
        window_needed_s: tape_s * f64::from(loops_needed),
    }
}

impl Localize for CallPlan {
    fn text(&self) -> LocalizedText {
        let Self { calls, needed_two_sided: needed, loops_needed, .. } = self;
        let (min, min_needed) = (self.window_s / 60.0, self.window_needed_s / 60.0);
        if self.enough {
            localized!(
                "{calls} counted calls in at least {min:.0} min; a sure verdict needs {needed}",
                "至少 {min:.0} min 内计入 {calls} 通；可靠判定需要 {needed} 通"
            )
        } else {
            localized!(
                "{calls} counted calls in at least {min:.0} min; a sure verdict needs {needed}: {loops_needed} loops and {min_needed:.0} min",
                "至少 {min:.0} min 内计入 {calls} 通；可靠判定需要 {needed} 通：{loops_needed} 遍、{min_needed:.0} min"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_tier_of_the_usual_ladder_has_enough_with_three_loops() {
        let limits = Limits::default();
        let once = plan_calls(3, 9, 480.0, 1, &limits);
        assert_eq!((once.calls, once.enough, once.loops_needed), (27, false, 3));
        assert_eq!(
            once.text().en,
            "27 counted calls in at least 8 min; a sure verdict needs 72: 3 loops and 24 min"
        );
        let thrice = plan_calls(3, 9, 480.0, 3, &limits);
        assert_eq!((thrice.calls, thrice.enough), (81, true));
        assert_eq!(
            (thrice.needed_without_violation, thrice.needed_with_one_violation, thrice.needed_two_sided),
            (59, 93, 72)
        );
        assert_eq!(plan_calls(0, 9, 480.0, 1, &limits).loops_needed, 0);
    }
}
