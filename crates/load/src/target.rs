//! Whom the callers call, and what they leave.

use std::sync::Arc;

use tapedeck_protocol::Dialect;
use tapedeck_record::{Texts, Trace};
use tapedeck_transport::{Connector, Endpoint, Secret};

/// The server under test, as a caller sees it.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to get there.
    pub connector: Arc<dyn Connector>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// What is spoken there.
    pub dialect: Arc<dyn Dialect>,
    /// Sent as `Authorization: Bearer`, where there is one.
    pub bearer: Option<Secret>,
}

/// One call that was played.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// What happened, and when.
    pub trace: Trace,
    /// The words; empty unless the plan keeps them.
    pub texts: Texts,
}
