//! The HTTP server of the gateway: health, metrics, and who gets a WebSocket.

use std::sync::Arc;

use http::{Request, StatusCode};
use tapedeck_server::{Incoming, Reply, Route, Upgrade, grant, handshake, metrics_page, plain, route};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::core::{Admission, Core};
use crate::counters::Refusal;
use crate::page::page;
use crate::session::converse;

/// Serves one connection until it ends.
pub(crate) async fn serve<IO>(core: Arc<Core>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upgraded = tapedeck_server::serve(io, |request| answer(Arc::clone(&core), request)).await;
    let Some(upgraded) = upgraded else { return };
    // Nothing that is sent to a caller is longer than the buffer that every socket has.
    let (caller, admission) = upgraded.websocket(core.options.max_message_bytes, 0).await;
    converse(&core, caller, admission).await;
}

/// Decides on one request.
async fn answer(core: Arc<Core>, mut request: Request<Incoming>) -> (Reply, Option<Upgrade<Admission>>) {
    let reply = match route(&request) {
        Route::Health => health(&core),
        Route::Metrics => metrics_page(page(&core)),
        Route::Call => match handshake(&request) {
            Ok(reply) => match admit(&core).await {
                Ok(admission) => return (reply, Some(grant(&mut request, admission))),
                Err(refused) => *refused,
            },
            Err(reply) => *reply,
        },
        Route::Other(reply) => reply,
    };
    (reply, None)
}

/// Well when a call that comes now would find an upstream.
fn health(core: &Core) -> Reply {
    if core.is_draining() {
        plain(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if core.servers.iter().any(|server| server.is_up()) {
        plain(StatusCode::OK, "")
    } else {
        plain(StatusCode::SERVICE_UNAVAILABLE, "no upstream is up\n")
    }
}

/// An admission, where there is room and an engine; else the response that says why not.
async fn admit(core: &Arc<Core>) -> Result<Admission, Box<Reply>> {
    core.admit().await.map_err(|(why, words)| {
        core.counters.refuse(why);
        let status = match why {
            Refusal::Upstream => StatusCode::BAD_GATEWAY,
            Refusal::Full | Refusal::Draining | Refusal::NoUpstream => StatusCode::SERVICE_UNAVAILABLE,
        };
        Box::new(plain(status, format!("{words}\n")))
    })
}
