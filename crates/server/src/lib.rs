//! The HTTP/1.1 front of what serves here: one connection, its routes, and the upgrade to a WebSocket.
//!
//! The built-in engine, the gateway and the metrics pages answer through it. Nothing that measures uses this crate, so
//! that a mistake in it cannot hide one of the client's; what is said over an upgraded connection is each server's own.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use http::StatusCode;
//! use tapedeck_server::{plain, serve};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let (mut client, server) = tokio::io::duplex(1024);
//! let serving = serve::<_, (), _, _>(server, |_| async { (plain(StatusCode::OK, "well\n"), None) });
//! let asking = async {
//!     client.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer).await.map(|_| answer)
//! };
//! let (_, answer) = tokio::join!(serving, asking);
//! assert!(answer?.ends_with("well\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Limits: no TLS, no HTTP/2, no bodies in requests.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
pub use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// How long a connection may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that a WebSocket reads at once: a chunk of 100 ms and its header fit. The buffer is wiped before every read and
/// one is held per session, so larger is not better.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// What a client may make us queue before its socket takes it: bounds the memory of a session that does not read.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// A response with its whole body.
pub type Reply = Response<Full<Bytes>>;

/// An upgrade that was granted, and what the caller gets behind it.
#[derive(Debug)]
pub struct Upgrade<S> {
    socket: OnUpgrade,
    session: S,
}

/// What a request to a server of calls asks for.
#[derive(Debug)]
pub enum Route {
    /// `GET /health`.
    Health,
    /// `GET /metrics`.
    Metrics,
    /// The upgrade to a WebSocket at `/asr` or `/`.
    Call,
    /// Nothing that there is: this is the response.
    Other(Reply),
}

/// Finds out what a request to a server of calls asks for.
#[must_use]
pub fn route(request: &Request<Incoming>) -> Route {
    let upgrade = request.headers().contains_key(header::UPGRADE);
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => Route::Health,
        (&Method::GET, "/metrics") => Route::Metrics,
        (&Method::GET, "/asr" | "/") if upgrade => Route::Call,
        (&Method::GET, "/asr" | "/") => Route::Other(plain(
            StatusCode::UPGRADE_REQUIRED,
            "This is a WebSocket endpoint: send binary s16le 16 kHz audio, end with {\"type\":\"end\"}.\n",
        )),
        (_, "/health" | "/metrics" | "/asr" | "/") => Route::Other(plain(StatusCode::METHOD_NOT_ALLOWED, "")),
        _ => Route::Other(plain(StatusCode::NOT_FOUND, "Nothing here; try /asr, /health or /metrics.\n")),
    }
}

/// A response with a status and a body.
#[must_use]
pub fn plain(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply
}

/// A page in the text format of Prometheus.
#[must_use]
pub fn metrics_page(text: String) -> Reply {
    let mut reply = plain(StatusCode::OK, text);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    reply.headers_mut().insert(header::CONTENT_TYPE, kind);
    reply
}

/// The first half of an upgrade: whether the request is a WebSocket handshake. What comes back answers it.
///
/// # Errors
/// The response to a request that is none.
pub fn handshake(request: &Request<Incoming>) -> Result<Reply, Box<Reply>> {
    let mut bare = Request::new(());
    bare.method_mut().clone_from(request.method());
    *bare.version_mut() = request.version();
    bare.headers_mut().clone_from(request.headers());
    let switch = create_response(&bare).map_err(|error| {
        Box::new(plain(StatusCode::BAD_REQUEST, format!("No WebSocket handshake: {error}\n")))
    })?;
    let mut reply = plain(StatusCode::SWITCHING_PROTOCOLS, "");
    reply.headers_mut().extend(switch.into_parts().0.headers);
    Ok(reply)
}

/// The second half: what the caller gets once the connection is a WebSocket.
#[must_use]
pub fn grant<S>(request: &mut Request<Incoming>, session: S) -> Upgrade<S> {
    Upgrade { socket: hyper::upgrade::on(request), session }
}

/// A connection that is to become a WebSocket.
#[derive(Debug)]
pub struct Upgraded<IO, S> {
    io: IO,
    read: Bytes,
    /// What the caller was granted.
    pub session: S,
}

impl<IO, S> Upgraded<IO, S>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    /// The WebSocket, and what the caller was granted. `max_message_bytes` bounds what is read, `largest_sent` is the
    /// longest message that will be written, bytes.
    pub async fn websocket(self, max_message_bytes: usize, largest_sent: usize) -> (WebSocketStream<IO>, S) {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_BYTES.max(largest_sent))
            .max_message_size(Some(max_message_bytes))
            .max_frame_size(Some(max_message_bytes));
        let read = self.read.to_vec();
        let socket = WebSocketStream::from_partially_read(self.io, read, Role::Server, Some(config)).await;
        (socket, self.session)
    }
}

/// Serves one connection until it ends or is upgraded: HTTP/1.1 with keep-alive. Responses carry no date: the wall clock
/// has no place in a simulation.
pub async fn serve<IO, S, A, F>(io: IO, answer: A) -> Option<Upgraded<IO, S>>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = (Reply, Option<Upgrade<S>>)>,
{
    let granted = Arc::new(Mutex::new(None));
    let service = service_fn(|request| {
        let (answer, granted) = (answer(request), Arc::clone(&granted));
        async move {
            let (reply, upgrade) = answer.await;
            if upgrade.is_some() {
                *granted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
            }
            Ok::<_, Infallible>(reply)
        }
    });
    // An error here is a client that spoke no HTTP or went away: there is nobody left to tell.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades()
        .await;
    let Upgrade { socket, session } = granted.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    // Without hyper's wrapping, every read and write is one dynamic call less.
    let parts = socket.await.ok()?.downcast::<TokioIo<IO>>().ok()?;
    Some(Upgraded { io: parts.io.into_inner(), read: parts.read_buf, session })
}
