//! Fault injection: what a broken server does to its callers, for tests of the load side.

use std::fmt;
use std::str::FromStr;

/// One kind of trouble, and how often it strikes.
///
/// Written as `kind[:argument...][/every]`, e.g. `close:2000:1011` (every call is closed with code 1011
/// after two seconds of audio) or `mute:500/4` (every fourth call falls silent).
///
/// ```
/// use tapedeck_engine::{FaultInjection, InjectedFault};
///
/// let injection: FaultInjection = "mute:500/4".parse()?;
/// assert_eq!(injection, FaultInjection { fault: InjectedFault::Mute { after_ms: 500 }, every: 4 });
/// assert_eq!(injection.to_string(), "mute:500/4");
/// # Ok::<(), tapedeck_engine::FaultInjectionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultInjection {
    /// What goes wrong.
    pub fault: InjectedFault,
    /// Strikes the first of every so many calls; 1 strikes all.
    pub every: u32,
}

/// What can go wrong with a call. Times are milliseconds of audio that the engine has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// The upgrade is answered with this HTTP status instead.
    Handshake {
        /// HTTP status, 400 to 599.
        status: u16,
    },
    /// The socket is closed in mid-call with this code.
    Close {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
        /// WebSocket close code.
        code: u16,
    },
    /// The connection is dropped without a close frame.
    Reset {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
    },
    /// Nothing is sent any more, not even the final; audio is still taken and pings are answered.
    Mute {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
    },
    /// A text frame that is no JSON.
    Garbage {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
    },
    /// A text frame of valid JSON far above any sensible size.
    Giant {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
        /// Size of the frame, bytes.
        bytes: usize,
    },
    /// An error message of the server's own, in words.
    Error {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
    },
    /// Partials come, but after end-of-audio nothing more.
    NeverFinal,
    /// The server closes normally after the last partial, which it never makes final.
    TailLost,
    /// The server stops reading, so that the client's writes block.
    SlowReader {
        /// Audio before it happens, milliseconds.
        after_ms: u32,
    },
}

impl FaultInjection {
    /// This trouble for every call.
    #[must_use]
    pub const fn always(fault: InjectedFault) -> Self {
        Self { fault, every: 1 }
    }

    /// Whether call number `n`, counted from 0, is struck.
    #[must_use]
    pub const fn strikes(self, n: u64) -> bool {
        self.every > 0 && n.is_multiple_of(self.every as u64)
    }
}

/// A fault to inject that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no fault that can be injected; write one of handshake:STATUS (400-599), close:MS:CODE, reset:MS, mute:MS, \
     garbage:MS, giant:MS:BYTES, error:MS, never-final, tail-lost, slow-reader:MS, each with /N behind it \
     to strike one call in N"
)]
pub struct FaultInjectionError(
    /// What was written.
    pub String,
);

impl FromStr for FaultInjection {
    type Err = FaultInjectionError;

    fn from_str(text: &str) -> Result<Self, FaultInjectionError> {
        let wrong = || FaultInjectionError(text.to_owned());
        let (what, every) = match text.split_once('/') {
            Some((what, every)) => (what, every.parse().map_err(|_| wrong())?),
            None => (text, 1),
        };
        let mut parts = what.split(':');
        let kind = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|n| n.parse::<u32>().ok()).ok_or_else(wrong);
        let fault = match kind {
            "handshake" => {
                InjectedFault::Handshake { status: u16::try_from(number()?).map_err(|_| wrong())? }
            }
            "close" => InjectedFault::Close {
                after_ms: number()?,
                code: u16::try_from(number()?).map_err(|_| wrong())?,
            },
            "reset" => InjectedFault::Reset { after_ms: number()? },
            "mute" => InjectedFault::Mute { after_ms: number()? },
            "garbage" => InjectedFault::Garbage { after_ms: number()? },
            "giant" => InjectedFault::Giant {
                after_ms: number()?,
                bytes: usize::try_from(number()?).map_err(|_| wrong())?,
            },
            "error" => InjectedFault::Error { after_ms: number()? },
            "never-final" => InjectedFault::NeverFinal,
            "tail-lost" => InjectedFault::TailLost,
            "slow-reader" => InjectedFault::SlowReader { after_ms: number()? },
            _ => return Err(wrong()),
        };
        let sensible = match fault {
            InjectedFault::Handshake { status } => (400..600).contains(&status),
            InjectedFault::Close { code, .. } => (1_000..5_000).contains(&code),
            _ => true,
        };
        if parts.next().is_some() || every == 0 || !sensible {
            return Err(wrong());
        }
        Ok(Self { fault, every })
    }
}

impl fmt::Display for FaultInjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            InjectedFault::Handshake { status } => write!(f, "handshake:{status}"),
            InjectedFault::Close { after_ms, code } => write!(f, "close:{after_ms}:{code}"),
            InjectedFault::Reset { after_ms } => write!(f, "reset:{after_ms}"),
            InjectedFault::Mute { after_ms } => write!(f, "mute:{after_ms}"),
            InjectedFault::Garbage { after_ms } => write!(f, "garbage:{after_ms}"),
            InjectedFault::Giant { after_ms, bytes } => write!(f, "giant:{after_ms}:{bytes}"),
            InjectedFault::Error { after_ms } => write!(f, "error:{after_ms}"),
            InjectedFault::NeverFinal => f.write_str("never-final"),
            InjectedFault::TailLost => f.write_str("tail-lost"),
            InjectedFault::SlowReader { after_ms } => write!(f, "slow-reader:{after_ms}"),
        }?;
        if self.every == 1 { Ok(()) } else { write!(f, "/{}", self.every) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_a_round_trip() {
        for text in [
            "handshake:503",
            "close:2000:1011",
            "reset:10",
            "mute:0",
            "garbage:1",
            "giant:100:17000000",
            "error:100",
            "never-final",
            "tail-lost",
            "slow-reader:300/7",
        ] {
            assert_eq!(text.parse::<FaultInjection>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_answered_with_the_list() {
        for text in
            ["", "mute", "mute:x", "mute:1:2", "never-final/0", "handshake:200", "close:1:99", "sulk:1"]
        {
            let error = text.parse::<FaultInjection>().unwrap_err().to_string();
            assert!(error.contains("close:MS:CODE"), "{text}: {error}");
        }
    }

    #[test]
    fn strikes_one_in_so_many() {
        let m = FaultInjection { fault: InjectedFault::NeverFinal, every: 3 };
        assert_eq!((0..7).filter(|n| m.strikes(*n)).collect::<Vec<_>>(), [0, 3, 6]);
    }
}
