//! Why an instance went down, as far as its log tells.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized};

/// What the log of an instance that went down names as the cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CrashCause {
    /// Memory ran out, the card's or the machine's.
    OutOfMemory {
        /// The line of the log that says so, without what stands before the message.
        line: String,
    },
    /// An exception.
    Exception {
        /// The line of the log, likewise.
        line: String,
    },
}

impl Localize for CrashCause {
    fn text(&self) -> LocalizedText {
        match self {
            Self::OutOfMemory { line } => localized!("it ran out of memory: {line}", "内存耗尽：{line}"),
            Self::Exception { line } => localized!("its log says: {line}", "其日志称：{line}"),
        }
    }
}
