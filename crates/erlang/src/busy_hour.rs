//! Busy-hour arithmetic: from calls and seconds to Erlang.

use crate::error::{ErlangError, positive};

/// Traffic in Erlang of so many calls an hour of a mean length in seconds.
///
/// # Errors
///
/// A figure that is not positive and finite.
pub fn traffic(calls_per_hour: f64, mean_call_s: f64) -> Result<f64, ErlangError> {
    let (calls, seconds) = checked(calls_per_hour, mean_call_s)?;
    positive("traffic (Erlang)", calls * seconds / 3600.0)
}

/// Calls an hour that make so much traffic in Erlang, at a mean length in seconds.
///
/// # Errors
///
/// A figure that is not positive and finite.
pub fn calls_per_hour(traffic_erl: f64, mean_call_s: f64) -> Result<f64, ErlangError> {
    let traffic = positive("traffic (Erlang)", traffic_erl)?;
    Ok(traffic * 3600.0 / positive("mean call length (s)", mean_call_s)?)
}

/// Calls in the busiest hour of a day of so many calls, spread over `open_hours`, where the busiest hour has
/// `peak_to_mean` times the calls of the mean hour.
///
/// # Errors
///
/// A figure that is not positive and finite, more than 24 hours, or a peak below the mean.
pub fn busiest(calls_per_day: f64, open_hours: f64, peak_to_mean: f64) -> Result<f64, ErlangError> {
    let calls = positive("calls per day", calls_per_day)?;
    let hours = positive("open hours", open_hours)?;
    let peak = positive("peak-to-mean ratio", peak_to_mean)?;
    if hours > 24.0 {
        return Err(ErlangError::TooLarge { what: "open hours", given: hours, most: 24.0 });
    }
    if peak < 1.0 {
        return Err(ErlangError::OutOfReach {
            why: "the peak-to-mean ratio is below 1: no peak is below the mean",
        });
    }
    // More than the whole day's calls cannot fall into one of its hours.
    Ok((calls / hours * peak).min(calls))
}

fn checked(calls_per_hour: f64, mean_call_s: f64) -> Result<(f64, f64), ErlangError> {
    Ok((positive("calls per hour", calls_per_hour)?, positive("mean call length (s)", mean_call_s)?))
}
