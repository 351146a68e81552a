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
use tapedeck_engine_model::Refused;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::engine::{Core, EngineHandle, Expected, Seat, State};
use crate::mischief::{Mischief, Trouble};
use crate::options::Refusal;
use crate::page::page;
use crate::session;

/// How long a connection may take to say what it wants.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that the WebSocket reads at once, a chunk of 100 ms and its header fit. The buffer is wiped before
/// every read and one is held per session, so larger is not better.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// What a client may make us queue before its socket takes it: bounds the memory of a session that does not
/// read.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// An upgrade that was granted, and what to do with it.
struct Upgrade {
    socket: OnUpgrade,
    call: Call,
}

/// What awaits the caller behind the upgrade.
enum Call {
    /// A session.
    Seated(Seat),
    /// A polite refusal.
    Busy(Refused),
}

impl EngineHandle {
    /// Serves one connection until it ends: HTTP/1.1 with keep-alive, `GET /health`, `GET /metrics`, and the
    /// WebSocket upgrade at `/asr` and `/`. The future must be polled within a tokio runtime.
    pub fn serve<IO>(&self, io: IO) -> impl Future<Output = ()> + Send + 'static + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.expect().serve(io)
    }
}

impl Expected {
    /// Serves the connection that was dealt out.
    pub(crate) async fn serve<IO>(self, io: IO)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.core().until_thawed().await;
        if self.core().state() != State::Gone {
            serve(Arc::clone(self.core()), self, io).await;
        }
    }
}

async fn serve<IO>(core: Arc<Core>, expected: Expected, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let granted = Arc::new(Mutex::new(None));
    let expected = Mutex::new(Some(expected));
    let service = service_fn(|request| {
        let (response, upgrade) = answer(&core, request);
        if upgrade.is_some() {
            // From here on the call itself is counted.
            expected.lock().unwrap_or_else(PoisonError::into_inner).take();
            *granted.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
        }
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // An error here is a client that spoke no HTTP or went away: there is nobody left to tell.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .auto_date_header(false) // the wall clock has no place in a simulation
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades()
        .await;
    let upgrade = granted.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Upgrade { socket, call }) = upgrade else { return };
    let Ok(upgraded) = socket.await else { return };
    // Without hyper's wrapping, every read and write is one dynamic call less.
    let Ok(parts) = upgraded.downcast::<TokioIo<IO>>() else { return };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_BYTES.max(session::largest_message(&core.options)))
        .max_message_size(Some(core.options.max_message_bytes))
        .max_frame_size(Some(core.options.max_message_bytes));
    let socket = WebSocketStream::from_partially_read(
        parts.io.into_inner(),
        parts.read_buf.to_vec(),
        Role::Server,
        Some(config),
    )
    .await;
    let _counted = core.socket();
    match call {
        Call::Seated(seat) => session::converse(socket, seat).await,
        Call::Busy(refused) => session::turn_away(socket, &refused.to_string()).await,
    }
}

/// Decides on one request. Pure but for the seat it may take.
fn answer(core: &Arc<Core>, mut request: Request<Incoming>) -> (Response<Full<Bytes>>, Option<Upgrade>) {
    let path = request.uri().path();
    let wants_socket = request.headers().contains_key(header::UPGRADE);
    let response = match (request.method(), path) {
        (&Method::GET, "/health") => match core.state() {
            State::Up => say(StatusCode::OK, ""),
            _ => say(StatusCode::SERVICE_UNAVAILABLE, ""),
        },
        (&Method::GET, "/metrics") => {
            let mut response = say(StatusCode::OK, page(core));
            let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            response
        }
        (&Method::GET, "/asr" | "/") if wants_socket => return upgrade(core, &mut request),
        (&Method::GET, "/asr" | "/") => say(
            StatusCode::UPGRADE_REQUIRED,
            "This is a WebSocket endpoint: send binary s16le 16 kHz audio, end with {\"type\":\"end\"}.\n",
        ),
        (_, "/health" | "/metrics" | "/asr" | "/") => say(StatusCode::METHOD_NOT_ALLOWED, ""),
        _ => say(StatusCode::NOT_FOUND, "Nothing here; try /asr, /health or /metrics.\n"),
    };
    (response, None)
}

/// Grants an upgrade where the caller may have it and there is room.
fn upgrade(core: &Arc<Core>, request: &mut Request<Incoming>) -> (Response<Full<Bytes>>, Option<Upgrade>) {
    let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if core.options.bearer.as_ref().is_some_and(|bearer| !bearer.admits(shown)) {
        let mut response = say(StatusCode::UNAUTHORIZED, "A bearer token is needed.\n");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return (response, None);
    }
    if core.state() != State::Up {
        return (say(StatusCode::SERVICE_UNAVAILABLE, "This instance takes no new calls.\n"), None);
    }
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
    let call = match core.open() {
        Ok(seat) => {
            if let Some(Mischief { trouble: Trouble::Handshake { status }, .. }) =
                core.options.mischief.filter(|m| m.strikes(seat.session()))
            {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return (say(status, "Trouble on request.\n"), None);
            }
            Call::Seated(seat)
        }
        Err(refused) if core.options.refusal == Refusal::Message => Call::Busy(refused),
        Err(refused) => return (say(StatusCode::SERVICE_UNAVAILABLE, format!("{refused}\n")), None),
    };
    let socket = hyper::upgrade::on(request);
    let mut response = say(StatusCode::SWITCHING_PROTOCOLS, "");
    response.headers_mut().extend(switch.into_parts().0.headers);
    (response, Some(Upgrade { socket, call }))
}

/// A response that says that it is simulated.
fn say(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert("x-tapedeck-simulated", HeaderValue::from_static("1"));
    response
}
