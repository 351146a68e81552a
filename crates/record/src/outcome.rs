//! How a call ended: a closed list.

use serde::{Deserialize, Serialize};

/// How one call ended. The list is closed: whatever a server does is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The call was played whole and its final arrived.
    Ok,
    /// Nobody listens at the address, or the address cannot be resolved or reached.
    ConnectRefused,
    /// The connection or the dialect's ready handshake did not complete in time.
    ConnectTimeout,
    /// The TLS handshake failed: certificate, name or protocol version.
    Tls,
    /// The WebSocket upgrade was answered with something else than a switch of protocols.
    Handshake,
    /// The server said that it is full: 503, WAIT, "too many sessions".
    RefusedBusy,
    /// The server closed or reset the connection before the final.
    ClosedEarly,
    /// The socket lived, but no text came while speech was owed for longer than the limit.
    Mute,
    /// No byte of any kind arrived for longer than the limit.
    IdleTimeout,
    /// No final within the limit after end-of-audio.
    FinalTimeout,
    /// The server broke the dialect's rules: undecodable or oversized messages.
    Protocol,
    /// The server reported an error of its own, in its own words.
    ServerError,
    /// The final came, but the last segment was never made final.
    TailLost,
    /// The final came without any text.
    EmptyFinal,
    /// We cut the call: end of drain, abort or interruption.
    Cancelled,
    /// Our own sender was too late for this call to prove anything.
    ClientLate,
}

impl Outcome {
    /// Every outcome, in the order in which reports list them.
    pub const ALL: [Self; 16] = [
        Self::Ok,
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Handshake,
        Self::RefusedBusy,
        Self::ClosedEarly,
        Self::Mute,
        Self::IdleTimeout,
        Self::FinalTimeout,
        Self::Protocol,
        Self::ServerError,
        Self::TailLost,
        Self::EmptyFinal,
        Self::Cancelled,
        Self::ClientLate,
    ];

    /// The word used in files and reports, e.g. `refused_busy`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls => "tls",
            Self::Handshake => "handshake",
            Self::RefusedBusy => "refused_busy",
            Self::ClosedEarly => "closed_early",
            Self::Mute => "mute",
            Self::IdleTimeout => "idle_timeout",
            Self::FinalTimeout => "final_timeout",
            Self::Protocol => "protocol",
            Self::ServerError => "server_error",
            Self::TailLost => "tail_lost",
            Self::EmptyFinal => "empty_final",
            Self::Cancelled => "cancelled",
            Self::ClientLate => "client_late",
        }
    }

    /// What the outcome does to a tier; an empty final is nobody's fault where the call holds no speech.
    #[must_use]
    pub const fn class(self, has_speech: bool) -> OutcomeClass {
        match self {
            Self::Ok => OutcomeClass::Ok,
            Self::EmptyFinal if !has_speech => OutcomeClass::Excluded,
            Self::TailLost | Self::EmptyFinal => OutcomeClass::Quality,
            Self::Cancelled | Self::ClientLate => OutcomeClass::Excluded,
            _ => OutcomeClass::Error,
        }
    }
}

/// What an outcome does to the verdict on its tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// Counts, and its figures enter the percentiles.
    Ok,
    /// Fails the tier; stays in denominators.
    Error,
    /// Flagged; its latency figures still count.
    Quality,
    /// Takes no part in verdicts; kept in the data.
    Excluded,
}

/// An outcome with what the other side said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeDetail {
    /// How the call ended.
    pub outcome: Outcome,
    /// The HTTP status or WebSocket close code, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The server's own words (or the operating system's), cut to 200 characters; never a transcript. `said` in
    /// files, because a call's word errors stand beside it as `words`.
    #[serde(rename = "said", default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl OutcomeDetail {
    /// An outcome about which nothing more is known.
    #[must_use]
    pub const fn plain(outcome: Outcome) -> Self {
        Self { outcome, code: None, words: None }
    }

    /// An outcome in the other side's words, cut to 200 characters.
    #[must_use]
    pub fn said(outcome: Outcome, code: Option<u16>, words: &str) -> Self {
        let words = words.trim();
        let words = (!words.is_empty()).then(|| words.chars().take(200).collect());
        Self { outcome, code, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_the_serialised_name() {
        for outcome in Outcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{}\"", outcome.name()));
        }
    }

    #[test]
    fn words_are_cut_and_trimmed() {
        let detail = OutcomeDetail::said(Outcome::ServerError, None, &format!("  {}  ", "é".repeat(300)));
        assert_eq!(detail.words.unwrap().chars().count(), 200);
        assert_eq!(OutcomeDetail::said(Outcome::ServerError, None, "  ").words, None);
    }
}
