//! The front door: HTTP/1.1 on any byte stream, and the upgrade to a WebSocket.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::gateway::{Core, Seat};
use crate::page::{Refusal, page};

/// How long a connection may take to say what it wants.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that the WebSocket reads at once; a chunk of 100 ms and its header fit.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// What a caller may make us queue before its socket takes it.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// An upgrade that was granted.
struct Upgrade {
    socket: OnUpgrade,
    seat: Seat,
}

/// Serves one connection until it ends.
pub(crate) async fn serve<IO>(core: Arc<Core>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let granted = Arc::new(Mutex::new(None));
    let service = service_fn(|request| {
        let (core, granted) = (Arc::clone(&core), Arc::clone(&granted));
        async move {
            let (response, upgrade) = answer(&core, request).await;
            if upgrade.is_some() {
                *granted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
            }
            Ok::<_, Infallible>(response)
        }
    });
    // An error here is a caller that spoke no HTTP or went away: there is nobody left to tell.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades()
        .await;
    let upgrade = granted.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Upgrade { socket, seat }) = upgrade else { return };
    let Ok(upgraded) = socket.await else { return };
    // Without hyper's wrapping, every read and write is one dynamic call less.
    let Ok(parts) = upgraded.downcast::<TokioIo<IO>>() else { return };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(core.options.max_message_bytes))
        .max_frame_size(Some(core.options.max_message_bytes));
    let caller = WebSocketStream::from_partially_read(
        parts.io.into_inner(),
        parts.read_buf.to_vec(),
        Role::Server,
        Some(config),
    )
    .await;
    core.converse(caller, seat).await;
}

/// Decides on one request.
async fn answer(
    core: &Arc<Core>,
    mut request: Request<Incoming>,
) -> (Response<Full<Bytes>>, Option<Upgrade>) {
    let wants_socket = request.headers().contains_key(header::UPGRADE);
    let response = match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => health(core),
        (&Method::GET, "/metrics") => {
            let mut response = say(StatusCode::OK, page(core));
            let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            response
        }
        (&Method::GET, "/asr" | "/") if wants_socket => return upgrade(core, &mut request).await,
        (&Method::GET, "/asr" | "/") => say(
            StatusCode::UPGRADE_REQUIRED,
            "This is a WebSocket endpoint: send binary s16le 16 kHz audio, end with {\"type\":\"end\"}.\n",
        ),
        (_, "/health" | "/metrics" | "/asr" | "/") => say(StatusCode::METHOD_NOT_ALLOWED, ""),
        _ => say(StatusCode::NOT_FOUND, "Nothing here; try /asr, /health or /metrics.\n"),
    };
    (response, None)
}

/// Well when a call that comes now would find somebody.
fn health(core: &Core) -> Response<Full<Bytes>> {
    if core.is_draining() {
        say(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if core.servers.iter().any(|server| server.is_up()) {
        say(StatusCode::OK, "")
    } else {
        say(StatusCode::SERVICE_UNAVAILABLE, "no upstream is up\n")
    }
}

/// Grants an upgrade where there is room and an engine.
async fn upgrade(
    core: &Arc<Core>,
    request: &mut Request<Incoming>,
) -> (Response<Full<Bytes>>, Option<Upgrade>) {
    let mut bare = Request::new(());
    bare.method_mut().clone_from(request.method());
    *bare.version_mut() = request.version();
    bare.headers_mut().clone_from(request.headers());
    let switch = match create_response(&bare) {
        Ok(switch) => switch,
        Err(error) => {
            return (say(StatusCode::BAD_REQUEST, format!("No WebSocket handshake: {error}\n")), None);
        }
    };
    let seat = match core.seat().await {
        Ok(seat) => seat,
        Err((why, words)) => {
            core.counters.refuse(why);
            let status = match why {
                Refusal::Upstream => StatusCode::BAD_GATEWAY,
                Refusal::Full | Refusal::Draining | Refusal::NoUpstream => StatusCode::SERVICE_UNAVAILABLE,
            };
            return (say(status, format!("{words}\n")), None);
        }
    };
    let socket = hyper::upgrade::on(request);
    let mut response = say(StatusCode::SWITCHING_PROTOCOLS, "");
    response.headers_mut().extend(switch.into_parts().0.headers);
    (response, Some(Upgrade { socket, seat }))
}

fn say(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}
