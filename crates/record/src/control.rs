//! Why something could not be done to an instance.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};

/// Why an instance, or the balancer, could not be started, stopped or hurt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum ControlRefusal {
    /// It cannot be restarted.
    NoRestart {
        /// Which.
        instance: String,
        /// The command that the config lacks.
        action: String,
    },
    /// It cannot be told to do this.
    NoCommand {
        /// Which.
        instance: String,
        /// The command that the config lacks.
        action: String,
    },
    /// It was tried and failed, or the config forbids it: the message says which.
    Error {
        /// What, to whom, and how to mend it.
        message: String,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(ControlRefusal);

impl Localize for ControlRefusal {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NoRestart { instance, action } => localized!(
                "{instance} cannot be restarted: the config gives no {action} command for it (or says managed = false)",
                "{instance} 无法重启：配置里没有它的 {action} 命令（或写了 managed = false）"
            ),
            Self::NoCommand { instance, action } => localized!(
                "{instance} cannot be told to {action}: give its commands in the config (and not managed = false)",
                "无法让 {instance} 执行 {action}：请在配置里给出命令（且不要 managed = false）"
            ),
            Self::Error { message } => LocalizedText::same(message),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
