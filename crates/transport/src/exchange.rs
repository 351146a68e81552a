//! One request and its answer over a connection of its own: what GET and POST share.

use std::ops::ControlFlow;

use bytes::Bytes;
use http::{
    Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use thiserror::Error;

use crate::{ConnectError, Connector, Endpoint, Secret};

/// Why there is no response.
#[derive(Debug, Error)]
pub enum HttpError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Not done within the limit.
    #[error("{asked} was not answered within {limit:?}; is the server overloaded, or the limit too short?")]
    TimedOut {
        /// Method and address.
        asked: String,
        /// The limit.
        limit: std::time::Duration,
    },
    /// The body is larger than the limit.
    #[error("{asked} answers with more than {max_bytes} bytes; is this the right path?")]
    TooLarge {
        /// Method and address.
        asked: String,
        /// The limit, bytes.
        max_bytes: usize,
    },
    /// The endpoint or the bearer token cannot be put into a request.
    #[error("{asked} cannot be asked: {why}")]
    Request {
        /// Method and address.
        asked: String,
        /// Why not.
        why: String,
    },
    /// The answer is not HTTP, or it broke off.
    #[error("{asked} failed: {why}; does this port speak HTTP?")]
    Broken {
        /// Method and address.
        asked: String,
        /// What the HTTP library says.
        why: String,
    },
}

/// Part of an answer, as it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Status and headers: always first, once.
    Head {
        /// The HTTP status.
        status: StatusCode,
        /// The `Content-Type` header, where there is a readable one.
        content_type: Option<String>,
    },
    /// The next bytes of the body, in the pieces in which they arrived.
    Body(Bytes),
}

/// What is asked.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) bearer: Option<&'a Secret>,
    /// A body and its type.
    pub(crate) body: Option<(Bytes, &'static str)>,
    pub(crate) accept: &'static str,
    pub(crate) max_bytes: usize,
}

impl Question<'_> {
    /// Method and address, for messages.
    pub(crate) fn asked(&self) -> String {
        format!("{} {}", self.method, self.endpoint)
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, HttpError> {
        let cannot = |why: String| HttpError::Request { asked: self.asked(), why };
        let mut request = Request::builder()
            .method(&self.method)
            .uri(self.endpoint.path_and_query())
            .header(HOST, self.endpoint.authority())
            .header(USER_AGENT, concat!("tapedeck/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, self.accept)
            .header(CONNECTION, "close");
        if let Some(secret) = self.bearer {
            let value = secret
                .bearer()
                .ok_or_else(|| cannot("the token holds characters no header can carry".into()))?;
            request = request.header(AUTHORIZATION, value);
        }
        let mut body = Bytes::new();
        if let Some((bytes, content_type)) = &self.body {
            request = request.header(CONTENT_TYPE, *content_type);
            body = bytes.clone();
        }
        request.body(Full::new(body)).map_err(|e| cannot(e.to_string()))
    }

    /// Asks, and hands each part of the answer to `hear` as it comes, until the body ends or `hear` has heard
    /// enough. Has no time-out of its own.
    pub(crate) async fn ask(
        &self,
        connector: &dyn Connector,
        mut hear: impl FnMut(Part) -> ControlFlow<()> + Send,
    ) -> Result<(), HttpError> {
        let broken = |e: hyper::Error| HttpError::Broken { asked: self.asked(), why: e.to_string() };
        let request = self.request()?;
        let io = connector.connect(self.endpoint).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status();
            let content_type =
                response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
            if hear(Part::Head { status, content_type }).is_break() {
                return Ok(());
            }
            let mut body = response.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
                bytes += data.len();
                if bytes > self.max_bytes {
                    return Err(HttpError::TooLarge { asked: self.asked(), max_bytes: self.max_bytes });
                }
                if hear(Part::Body(data)).is_break() {
                    return Ok(());
                }
            }
            Ok(())
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
}
