//! Groups that cannot help each other: three groups of ten lines block more than one of thirty.

use crate::erlang_b;
use crate::error::{ErlangError, lines, traffic};

/// One group of lines beside the same lines in separate groups. Blocked calls are lost (Erlang B), and the
/// traffic is divided evenly and at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Share of calls blocked with separate groups.
    pub split: f64,
    /// Share of calls blocked if any call could take any line.
    pub pooled: f64,
    /// Fewest lines in each group at which separate groups block no more than the pool does now.
    pub lines_each_for_equal: u64,
}

/// Compares `groups` groups of `lines_each` lines with one group of all lines.
///
/// # Errors
///
/// Traffic that is not positive and finite, no groups, or no lines.
pub fn compare(traffic_erl: f64, groups: u64, lines_each: u64) -> Result<Split, ErlangError> {
    traffic(traffic_erl)?;
    lines(lines_each)?;
    if groups == 0 {
        return Err(ErlangError::NotPositive { what: "groups", given: 0.0 });
    }
    let all = groups.saturating_mul(lines_each);
    let each = traffic_erl / lines(groups)?;
    let split = erlang_b::blocking(each, lines_each)?;
    let pooled = erlang_b::blocking(traffic_erl, all)?;
    // A pool that blocks next to nothing is matched where the floats still tell the difference.
    let target = pooled.clamp(1e-300, 1.0 - f64::EPSILON);
    Ok(Split { split, pooled, lines_each_for_equal: erlang_b::lines(each, target)?.max(lines_each) })
}
