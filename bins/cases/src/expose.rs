//! What the client measures, for Prometheus, while a case runs.
//!
//! The page is made and served on a thread of its own, so that no scrape ever delays a chunk of audio.

mod page;
mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, StatusCode};
use tapedeck_cases::Progress;
use tapedeck_server::{Incoming, Reply, Upgrade, metrics_page, plain};
use tokio::net::TcpListener;

use state::State;
use tapedeck_cli::Failure;
use tapedeck_cli::serving;

/// A page that follows a case.
#[derive(Debug)]
pub(crate) struct Exposed {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
}

impl Exposed {
    /// Begins to serve.
    ///
    /// # Errors
    /// An address that cannot be had.
    pub(crate) fn serve(at: SocketAddr, case: &str) -> Result<Self, Failure> {
        let refused = |error: std::io::Error| {
            Failure::Usage(format!("--listen {at}: {error}; take another address, or port 0 for a free one"))
        };
        let listener = std::net::TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let state = Arc::new(Mutex::new(State::new(case)));
        let shown = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        std::thread::Builder::new()
            .name("metrics-page".into())
            .spawn(move || runtime.block_on(accept(listener, shown)))
            .map_err(refused)?;
        Ok(Self { state, address })
    }

    /// Where the page is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Takes notice.
    pub(crate) fn on(&self, progress: &Progress<'_>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).on(progress);
    }
}

async fn accept(listener: std::net::TcpListener, state: Arc<Mutex<State>>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let serve = |stream| {
        let state = Arc::clone(&state);
        async move {
            tapedeck_server::serve(stream, |request| {
                std::future::ready((answer(&request, &state), None::<Upgrade<()>>))
            })
            .await;
        }
    };
    serving::accept(listener, serve).await;
}

fn answer(request: &Request<Incoming>, state: &Mutex<State>) -> Reply {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            // The page is written from a copy, so that the case never waits for it.
            let state = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
            metrics_page(page::write(&state))
        }
        (&Method::GET | &Method::HEAD, _) => plain(StatusCode::NOT_FOUND, "the page is at /metrics\n"),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "this page can only be read\n"),
    }
}

#[cfg(test)]
mod tests;
