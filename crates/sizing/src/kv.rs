//! From tokens to bytes: a call, and a tape of calls.

use serde::Serialize;
use tapedeck_l10n::StaticText;

use crate::error::{SizingError, positive};
use crate::session::{CallTokens, Session};

/// Memory of one call in the KV pool.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CallKv {
    /// Its tokens.
    #[serde(flatten)]
    pub tokens: CallTokens,
    /// Bytes at the end of the call, when it holds most.
    pub peak_bytes: f64,
    /// The same if every window said as much as it may.
    pub most_bytes: f64,
    /// Mean over the time of the call, bytes.
    pub mean_bytes: f64,
}

/// Memory of one call.
///
/// # Errors
/// As [`Session::tokens`], or a token that costs nothing.
pub fn call(session: &Session, token_bytes: u64, call_s: f64) -> Result<CallKv, SizingError> {
    let tokens = session.tokens(call_s)?;
    let each = token_cost(token_bytes)?;
    Ok(CallKv {
        tokens,
        peak_bytes: tokens.peak * each,
        most_bytes: tokens.most * each,
        mean_bytes: tokens.mean * each,
    })
}

/// Memory of a stream that plays a tape for ever.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TapeKv {
    /// Calls on the tape.
    pub calls: usize,
    /// Audio of one pass, s.
    pub audio_s: f64,
    /// The largest call at its end, bytes.
    pub peak_bytes: f64,
    /// Mean of the calls' peaks, each weighted by its length: what the plan calls the tape's mean. An upper bound, for
    /// no call holds its peak for its whole length. Bytes.
    pub mean_of_peaks_bytes: f64,
    /// Mean over time: what a stream holds on average. Bytes.
    pub mean_bytes: f64,
    /// Whether `mean_bytes` is only an upper bound.
    pub mean_is_bound: bool,
}

/// Memory of a tape of calls of these lengths, s.
///
/// # Errors
/// No call, or as [`call`].
pub fn tape(session: &Session, token_bytes: u64, calls_s: &[f64]) -> Result<TapeKv, SizingError> {
    if calls_s.is_empty() {
        return Err(SizingError::Nothing {
            what: StaticText::new("the tape holds no call", "带里没有通话"),
            hint: StaticText::new("give at least one call length", "请至少给出一个通话时长"),
        });
    }
    let calls =
        calls_s.iter().map(|&call_s| call(session, token_bytes, call_s)).collect::<Result<Vec<_>, _>>()?;
    let audio_s: f64 = calls_s.iter().sum();
    let weighted =
        |bytes: fn(&CallKv) -> f64| calls.iter().map(|c| bytes(c) * c.tokens.call_s).sum::<f64>() / audio_s;
    Ok(TapeKv {
        calls: calls.len(),
        audio_s,
        peak_bytes: calls.iter().map(|c| c.peak_bytes).fold(0.0, f64::max),
        mean_of_peaks_bytes: weighted(|c| c.peak_bytes),
        mean_bytes: weighted(|c| c.mean_bytes),
        mean_is_bound: calls.iter().any(|c| c.tokens.mean_is_bound),
    })
}

/// Tape-A of the plan, s: six calls of 30 s, two of 60 s, one of 180 s.
pub const TAPE_A_S: [f64; 9] = [30.0, 60.0, 30.0, 180.0, 30.0, 30.0, 60.0, 30.0, 30.0];
/// Tape-B of the plan, s: one call each of 300 and 180 s, two each of 60 and 30 s.
pub const TAPE_B_S: [f64; 6] = [30.0, 300.0, 60.0, 180.0, 60.0, 30.0];

pub(crate) fn token_cost(token_bytes: u64) -> Result<f64, SizingError> {
    #[expect(clippy::cast_precision_loss, reason = "checked to be far below 2^53")]
    positive(StaticText::new("bytes of a token", "每 token 字节数"), token_bytes as f64, 1e12)
}
