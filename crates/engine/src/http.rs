//! The HTTP server of an instance: health, metrics, and who gets a WebSocket.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use tapedeck_engine_model::Refused;
use tapedeck_server::{Incoming, Reply, Route, Upgrade, grant, handshake, metrics_page, plain, route};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::{Core, EngineHandle, Expected, Permit, State};
use crate::fault_injection::{FaultInjection, InjectedFault};
use crate::options::Refusal;
use crate::page::page;
use crate::session;

/// What awaits the caller behind the upgrade.
enum Call {
    /// A session.
    Permitted(Permit),
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
    let expected = Mutex::new(Some(expected));
    let upgraded = tapedeck_server::serve(io, |request| {
        let (mut reply, upgrade) = answer(&core, request);
        reply.headers_mut().insert("x-tapedeck-simulated", HeaderValue::from_static("1"));
        if upgrade.is_some() {
            // From here on the call itself is counted.
            expected.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        std::future::ready((reply, upgrade))
    });
    let Some(upgraded) = upgraded.await else { return };
    let largest_sent = session::largest_message(&core.options);
    let (socket, call) = upgraded.websocket(core.options.max_message_bytes, largest_sent).await;
    let _counted = core.socket();
    match call {
        Call::Permitted(permit) => session::converse(socket, permit).await,
        Call::Busy(refused) => session::turn_away(socket, &refused.to_string()).await,
    }
}

/// Decides on one request. Pure but for the permit it may take.
fn answer(core: &Arc<Core>, mut request: Request<Incoming>) -> (Reply, Option<Upgrade<Call>>) {
    let reply = match route(&request) {
        Route::Health if core.state() == State::Up => plain(StatusCode::OK, ""),
        Route::Health => plain(StatusCode::SERVICE_UNAVAILABLE, ""),
        Route::Metrics => metrics_page(page(core)),
        Route::Call => match upgrade(core, &request) {
            Ok((reply, call)) => return (reply, Some(grant(&mut request, call))),
            Err(reply) => *reply,
        },
        Route::Other(reply) => reply,
    };
    (reply, None)
}

/// Grants an upgrade where the caller may have it and there is room.
fn upgrade(core: &Arc<Core>, request: &Request<Incoming>) -> Result<(Reply, Call), Box<Reply>> {
    let refuse = |status, body: Bytes| Err(Box::new(plain(status, body)));
    let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if core.options.bearer.as_ref().is_some_and(|bearer| !bearer.admits(shown)) {
        let mut reply = plain(StatusCode::UNAUTHORIZED, "A bearer token is needed.\n");
        reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Err(Box::new(reply));
    }
    if core.state() != State::Up {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "This instance takes no new calls.\n".into());
    }
    let reply = handshake(request)?;
    match core.open() {
        Ok(permit) => {
            if let Some(FaultInjection { fault: InjectedFault::Handshake { status }, .. }) =
                core.options.fault_injection.filter(|m| m.strikes(permit.session()))
            {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return refuse(status, "Fault injection.\n".into());
            }
            Ok((reply, Call::Permitted(permit)))
        }
        Err(refused) if core.options.refusal == Refusal::Message => Ok((reply, Call::Busy(refused))),
        Err(refused) => refuse(StatusCode::SERVICE_UNAVAILABLE, format!("{refused}\n").into()),
    }
}
