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

/// Sends every TCP connection to one backend, in turn, and copies bytes both ways until both sides are done.
///
/// A backend that refuses a connection is skipped at once and comes back with its next good health check, so
/// keep [`Proxy::watch`] running. When no backend is up, every request is answered with 503. Clones share the
/// turn and what is known of the backends.
#[derive(Debug, Clone)]
pub struct Proxy {
    backends: Arc<[Backend]>,
    turn: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Backend {
    address: String,
    up: AtomicBool,
}

impl Proxy {
    /// A proxy in front of these `host:port` addresses; all count as up until they prove otherwise.
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        let backends = addresses.into_iter().map(|address| Backend { address, up: AtomicBool::new(true) });
        Self { backends: backends.collect(), turn: Arc::default() }
    }

    /// Serves one connection until both sides are done.
    pub async fn serve(&self, mut client: TcpStream) {
        match self.connect().await {
            Some(mut backend) => {
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

    /// A connection to the next backend in turn that is up and accepts.
    async fn connect(&self) -> Option<TcpStream> {
        for _ in 0..self.backends.len() {
            let n = self.turn.fetch_add(1, Ordering::Relaxed) % self.backends.len();
            let Some(backend) = self.backends.get(n).filter(|b| b.up.load(Ordering::Relaxed)) else {
                continue;
            };
            match timeout(PATIENCE, TcpStream::connect(&backend.address)).await {
                Ok(Ok(stream)) => {
                    // A message held back to fill a packet would read as the engine's latency.
                    let _ = stream.set_nodelay(true);
                    return Some(stream);
                }
                _ => backend.up.store(false, Ordering::Relaxed),
            }
        }
        None
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
