//! One bounded HTTP GET.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::time::timeout;

use crate::{ConnectError, Connector, Endpoint, Secret};

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

/// Why there is no response.
#[derive(Debug, Error)]
pub enum HttpError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Not done within the limit.
    #[error("GET {url} was not answered within {limit:?}; is the server overloaded, or the limit too short?")]
    TimedOut {
        /// What was asked.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// The body is larger than the limit.
    #[error("GET {url} answers with more than {max_bytes} bytes; is this the right path?")]
    TooLarge {
        /// What was asked.
        url: String,
        /// The limit, bytes.
        max_bytes: usize,
    },
    /// The endpoint or the bearer token cannot be put into a request.
    #[error("GET {url} cannot be asked: {why}")]
    Request {
        /// What was to be asked.
        url: String,
        /// Why not.
        why: String,
    },
    /// The answer is not HTTP, or it broke off.
    #[error("GET {url} failed: {why}; does this port speak HTTP?")]
    Broken {
        /// What was asked.
        url: String,
        /// What the HTTP library says.
        why: String,
    },
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
    timeout(limits.timeout, get(connector, endpoint, bearer, limits.max_bytes))
        .await
        .unwrap_or_else(|_| Err(HttpError::TimedOut { url: endpoint.to_string(), limit: limits.timeout }))
}

async fn get(
    connector: &dyn Connector,
    endpoint: &Endpoint,
    bearer: Option<&Secret>,
    max_bytes: usize,
) -> Result<Response, HttpError> {
    let cannot = |why: String| HttpError::Request { url: endpoint.to_string(), why };
    let broken = |e: hyper::Error| HttpError::Broken { url: endpoint.to_string(), why: e.to_string() };

    let mut request = Request::get(endpoint.path_and_query())
        .header(HOST, endpoint.authority())
        .header(USER_AGENT, concat!("tapedeck/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .header(CONNECTION, "close");
    if let Some(secret) = bearer {
        let value =
            secret.bearer().ok_or_else(|| cannot("the token holds characters no header can carry".into()))?;
        request = request.header(AUTHORIZATION, value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|e| cannot(e.to_string()))?;

    let io = connector.connect(endpoint).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut body = response.into_body();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                if all.len() + data.len() > max_bytes {
                    return Err(HttpError::TooLarge { url: endpoint.to_string(), max_bytes });
                }
                all.extend_from_slice(&data);
            }
        }
        Ok(Response { status, body: all.freeze(), content_type })
    };
    // The connection is driven here, beside the exchange: no task is left behind whatever happens.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    let mut connected = true;
    loop {
        tokio::select! {
            biased;
            answer = &mut exchange => return answer,
            // Its error, if any, reaches the exchange as well.
            _ = &mut connection, if connected => connected = false,
        }
    }
}
