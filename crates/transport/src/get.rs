//! One bounded HTTP GET.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::timeout;

use crate::{Connector, Endpoint, HttpError, Request, Secret};

/// Bounds of one exchange: nothing hangs, nothing fills the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// For everything together, connecting and the whole response included; 5 s by default.
    pub timeout: Duration,
    /// Largest body that is read, bytes; 16 MiB by default.
    pub max_bytes: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), max_bytes: 16 << 20 }
    }
}

/// A whole response, whatever the status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
    /// The `Content-Type` header, where there is a readable one.
    pub content_type: Option<String>,
}

/// Asks once, over a connection of its own, and reads the whole response. Redirects are responses, not orders.
///
/// # Errors
/// When there is no whole response within the limits. A status of 404 or 500 is a response.
pub async fn http_get(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    limits: HttpLimits,
) -> Result<Response, HttpError> {
    let request = Request { bearer, max_bytes: limits.max_bytes, ..Request::get(endpoint) };
    let asked = request.asked();
    let exchange = async {
        let mut response = request.send(connector).await?;
        let body = response.rest().await?;
        Ok(Response { status: response.status, body, content_type: response.content_type })
    };
    timeout(limits.timeout, exchange)
        .await
        .unwrap_or_else(|_| Err(HttpError::TimedOut { asked, limit: limits.timeout }))
}
