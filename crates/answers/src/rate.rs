//! Word errors, pooled.

use serde::{Deserialize, Serialize};

/// Errors / tokens of the references, pooled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorRate {
    /// The rate; it may exceed 1.
    pub rate: f64,
    /// Errors.
    pub errors: u64,
    /// Tokens of the references.
    pub ref_tokens: u64,
    /// Calls.
    pub calls: u64,
}
