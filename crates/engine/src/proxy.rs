//! The balancer as a process of its own: TCP in front of engines that run elsewhere.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::balancer::unavailable;

/// How long a backend may take to accept, or to answer a health check.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two health checks of a backend.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Sends every TCP connection to the backend with the fewest of them (among equals the first) and copies bytes
/// both ways until both sides are done.
///
/// A backend that refuses a connection is skipped at once and comes back with its next good health check, so
/// keep [`Proxy::watch`] running. When no backend is up, every request is answered with 503. Clones share
/// what is known of the backends.
#[derive(Debug, Clone)]
pub struct Proxy {
    backends: Arc<[Backend]>,
}

#[derive(Debug)]
struct Backend {
    address: String,
    up: AtomicBool,
    connections: AtomicUsize,
}

/// A connection that counts for its backend until it is dropped.
struct Counted<'a>(&'a Backend);

impl<'a> Counted<'a> {
    fn new(backend: &'a Backend) -> Self {
        backend.connections.fetch_add(1, Ordering::Relaxed);
        Self(backend)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Proxy {
    /// A proxy in front of these `host:port` addresses; all count as up until they prove otherwise.
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        let backends = addresses.into_iter().map(|address| Backend {
            address,
            up: AtomicBool::new(true),
            connections: AtomicUsize::new(0),
        });
        Self { backends: backends.collect() }
    }

    /// Serves one connection until both sides are done.
    pub async fn serve(&self, mut client: TcpStream) {
        match self.connect().await {
            Some((mut backend, _counted)) => {
                // An error here is one side gone; closing the other is all the answer there is.
                let _ = copy_bidirectional(&mut client, &mut backend).await;
            }
            None => unavailable(client).await,
        }
    }

    /// Checks every backend's `/health` once a second, for ever.
    pub async fn watch(&self) {
        loop {
            for backend in self.backends.iter() {
                let up = matches!(timeout(PATIENCE, healthy(&backend.address)).await, Ok(Ok(true)));
                backend.up.store(up, Ordering::Relaxed);
            }
            sleep(CHECK_EVERY).await;
        }
    }

    /// A connection to the least busy backend that is up and accepts.
    async fn connect(&self) -> Option<(TcpStream, Counted<'_>)> {
        loop {
            let up = self.backends.iter().filter(|b| b.up.load(Ordering::Relaxed));
            let backend = up.min_by_key(|b| b.connections.load(Ordering::Relaxed))?;
            let counted = Counted::new(backend);
            match timeout(PATIENCE, TcpStream::connect(&backend.address)).await {
                Ok(Ok(stream)) => {
                    // A message held back to fill a packet would read as the engine's latency.
                    let _ = stream.set_nodelay(true);
                    return Some((stream, counted));
                }
                _ => backend.up.store(false, Ordering::Relaxed),
            }
        }
    }
}

/// Whether `/health` answers 200.
async fn healthy(address: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok(status.ends_with(b" 200"))
}
