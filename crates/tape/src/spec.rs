//! Which calls a tape asks for: presets and specs of one's own.

use crate::error::TapeError;
use crate::manifest::Quota;

/// Largest tape: more calls than any ladder has streams.
pub(crate) const MAX_CALLS: u32 = 100_000;
/// Longest nominal duration, seconds: a day.
pub(crate) const MAX_BUCKET_S: u32 = 86_400;

/// A tape to be frozen: quotas and the name that goes with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Name of the tape, e.g. `tape-a`.
    pub name: String,
    /// Calls per nominal duration, shortest first.
    pub quotas: Vec<Quota>,
}

impl Spec {
    /// The presets' names, with what they hold.
    pub const PRESETS: [(&'static str, &'static str); 4] = [
        ("tape-a", "30:6,60:2,180:1"),
        ("tape-b", "30:2,60:2,180:1,300:1"),
        ("labelled", "30:3,60:2,180:1,300:1,600:1"),
        ("fallback", "30:60,60:20,180:10"),
    ];

    /// Reads a preset's name or `seconds:calls,...`.
    ///
    /// Presets: `tape-a` (480 s, short calls), `tape-b` (660 s, with long calls), `labelled` (8 calls, at least
    /// one per bucket, for word errors) and `fallback` (90 calls, 80 minutes, for servers whose caches cannot be
    /// turned off).
    ///
    /// # Errors
    /// [`TapeError::Spec`] with what cannot be read.
    pub fn parse(text: &str) -> Result<Self, TapeError> {
        let wanted = text.trim();
        for (name, spec) in Self::PRESETS {
            if wanted.eq_ignore_ascii_case(name) {
                return Ok(Self { name: name.to_owned(), quotas: quotas(spec)? });
            }
        }
        Ok(Self { name: "tape".to_owned(), quotas: quotas(wanted)? })
    }

    /// Calls in all.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.quotas.iter().map(|q| q.calls).sum()
    }
}

fn quotas(text: &str) -> Result<Vec<Quota>, TapeError> {
    let wrong = |why: String| TapeError::Spec { spec: text.to_owned(), why };
    let mut out: Vec<Quota> = Vec::new();
    let mut total = 0_u32;
    for part in text.split(',') {
        let (seconds, calls) = part
            .split_once(':')
            .ok_or_else(|| wrong(format!("`{part}` is neither a preset nor seconds:calls")))?;
        let number =
            |s: &str| s.trim().parse::<u32>().map_err(|_| wrong(format!("`{s}` is no whole number")));
        let quota = Quota { bucket_s: number(seconds)?, calls: number(calls)? };
        if !(1..=MAX_BUCKET_S).contains(&quota.bucket_s) {
            return Err(wrong(format!("{} s is outside 1..={MAX_BUCKET_S}", quota.bucket_s)));
        }
        total = total.saturating_add(quota.calls);
        if quota.calls == 0 || total > MAX_CALLS {
            return Err(wrong(format!("a tape holds 1 to {MAX_CALLS} calls")));
        }
        if out.iter().any(|q| q.bucket_s == quota.bucket_s) {
            return Err(wrong(format!("bucket {} s is named twice", quota.bucket_s)));
        }
        out.push(quota);
    }
    out.sort_unstable();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_hold_what_they_promise() {
        let seconds = |name: &str| -> u32 {
            Spec::parse(name).unwrap().quotas.iter().map(|q| q.bucket_s * q.calls).sum()
        };
        assert_eq!((seconds("tape-a"), Spec::parse("tape-a").unwrap().calls()), (480, 9));
        assert_eq!((seconds("Tape-B"), Spec::parse("tape-b").unwrap().calls()), (660, 6));
        let labelled = Spec::parse("labelled").unwrap();
        assert_eq!((labelled.calls(), labelled.quotas.len()), (8, 5));
        assert!(Spec::parse("fallback").unwrap().calls() >= 90);
        assert_eq!(seconds("fallback"), 80 * 60);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, word) in [
            ("tape-c", "preset"),
            ("30:x", "`x`"),
            ("30:0", "1 to"),
            ("0:3", "outside"),
            ("30:1,30:2", "twice"),
            ("30:4294967295,60:4294967295", "1 to"),
        ] {
            let message = Spec::parse(text).unwrap_err().to_string();
            assert!(message.contains(word) && message.contains("30:6"), "{message}");
        }
    }
}
