//! One bounded HTTP POST whose answer is heard as it comes.

use std::{ops::ControlFlow, time::Duration};

use bytes::Bytes;
use http::Method;
use tokio::time::timeout;

use crate::{
    Connector, Endpoint, HttpError, Secret,
    exchange::{Part, Question},
};

/// Bounds of one POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostLimits {
    /// For everything together, connecting and the whole answer included; 10 min by default.
    pub timeout: Duration,
    /// Largest answer that is heard; 64 MiB by default.
    pub max_bytes: usize,
}

impl Default for PostLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(600), max_bytes: 64 << 20 }
    }
}

/// Sends a JSON body over a connection of its own and hands the answer to `hear` piece by piece, at the moment at
/// which each arrives: the head first, then the body as the network cut it. `hear` ends the exchange by breaking.
///
/// # Errors
/// When the answer does not end within the limits; what was heard until then has been heard.
pub async fn http_post(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    json: Bytes,
    limits: PostLimits,
    hear: impl FnMut(Part) -> ControlFlow<()> + Send,
) -> Result<(), HttpError> {
    let question = Question {
        method: Method::POST,
        endpoint,
        bearer,
        body: Some((json, "application/json")),
        accept: "text/event-stream, application/json",
        max_bytes: limits.max_bytes,
    };
    timeout(limits.timeout, question.ask(connector, hear))
        .await
        .unwrap_or_else(|_| Err(HttpError::TimedOut { asked: question.asked(), limit: limits.timeout }))
}
