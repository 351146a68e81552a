//! What an engine is told beside its model's parameters.

use std::fmt;

use crate::fault_injection::FaultInjection;

/// How an engine that is full turns a caller away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refusal {
    /// HTTP 503 instead of the upgrade.
    #[default]
    Handshake,
    /// The upgrade succeeds, then a message of type `busy` says "too many sessions" and the socket closes with
    /// 1013.
    Message,
}

/// A token that callers must show; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer(String);

impl Bearer {
    /// Asks for `Authorization: Bearer <token>`.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// Whether an `Authorization` header shows the token. Takes the same time wherever the two differ.
    pub(crate) fn admits(&self, header: Option<&[u8]>) -> bool {
        let Some(shown) = header.and_then(|h| h.strip_prefix(b"Bearer ")) else { return false };
        let wanted = self.0.as_bytes();
        let differ = (0..wanted.len())
            .fold(0_u8, |differ, n| differ | (wanted.get(n).unwrap_or(&0) ^ shown.get(n).unwrap_or(&0)));
        differ == 0 && shown.len() == wanted.len()
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(..)")
    }
}

/// How an engine presents itself and behaves at its door.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name in every message's `instance`.
    pub name: String,
    /// Seed of the model and of the errors made under overload.
    pub seed: u64,
    /// Value of the label `model_name` on the metrics page.
    pub model_name: String,
    /// Token asked of WebSocket callers; `/health` and `/metrics` stay open.
    pub bearer: Option<Bearer>,
    /// How callers are turned away when the engine is full.
    pub refusal: Refusal,
    /// Fault injection; none by default.
    pub fault_injection: Option<FaultInjection>,
    /// Largest message taken from a client, bytes; larger ones close the socket with 1009.
    pub max_message_bytes: usize,
}

impl Options {
    /// A well-behaved engine of this name and seed.
    #[must_use]
    pub fn new(name: impl Into<String>, seed: u64) -> Self {
        Self {
            name: name.into(),
            seed,
            model_name: "tapedeck/simulated-asr".into(),
            bearer: None,
            refusal: Refusal::default(),
            fault_injection: None,
            max_message_bytes: 1 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_admitted_and_it_is_never_printed() {
        let bearer = Bearer::new("open sesame");
        assert!(bearer.admits(Some(b"Bearer open sesame")));
        for header in [&b"Bearer open sesam"[..], b"Bearer open sesame!", b"open sesame", b"Bearer ", b""] {
            assert!(!bearer.admits(Some(header)));
        }
        assert!(!bearer.admits(None));
        assert!(!format!("{bearer:?}").contains("sesame"));
    }
}
