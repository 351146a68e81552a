//! One bounded HTTP GET.

use std::{ops::ControlFlow, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use tokio::time::timeout;

use crate::{
    Connector, Endpoint, HttpError, Secret,
    exchange::{Part, Question},
};

/// Bounds of one GET: nothing hangs, nothing fills the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetLimits {
    /// For everything together, connecting included; 5 s by default.
    pub timeout: Duration,
    /// Largest body that is read; 16 MiB by default.
    pub max_bytes: usize,
}

impl Default for GetLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), max_bytes: 16 << 20 }
    }
}

/// What a server answered, whatever the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
    /// The `Content-Type` header, where there is a readable one.
    pub content_type: Option<String>,
}

/// Asks once, over a connection of its own, and reads the whole answer. Redirects are answers, not orders.
///
/// # Errors
/// When there is no whole answer within the limits. A status of 404 or 500 is an answer.
pub async fn http_get(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    limits: GetLimits,
) -> Result<Response, HttpError> {
    let question = Question {
        method: Method::GET,
        endpoint,
        bearer,
        body: None,
        accept: "*/*",
        max_bytes: limits.max_bytes,
    };
    let (mut status, mut content_type) = (StatusCode::OK, None);
    let mut all = BytesMut::new();
    let asking = question.ask(connector, |part| {
        match part {
            Part::Head { status: s, content_type: t } => (status, content_type) = (s, t),
            Part::Body(data) => all.extend_from_slice(&data),
        }
        ControlFlow::Continue(())
    });
    timeout(limits.timeout, asking)
        .await
        .unwrap_or_else(|_| Err(HttpError::TimedOut { asked: question.asked(), limit: limits.timeout }))?;
    Ok(Response { status, body: all.freeze(), content_type })
}
