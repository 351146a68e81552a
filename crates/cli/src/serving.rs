//! What the programs that serve have in common: an address, connections, the line that says "ready", the end.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::Failure;

/// Binds an address and tells which one it got.
pub async fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bind = async {
        let listener = TcpListener::bind(at).await?;
        let address = listener.local_addr()?;
        Ok::<_, io::Error>((listener, address))
    };
    bind.await.map_err(|error| Failure::System {
        what: "listen (choose another address, or port 0)",
        source: io::Error::new(error.kind(), format!("{at}: {error}")),
    })
}

/// Takes connections for ever, each on a task of its own.
pub async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A message held back to fill a packet would read as the server's latency.
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream));
            }
            // Out of descriptors, most likely: some connection must end first.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Prints the one line of JSON that scripts wait for.
pub fn announce(ready: &impl Serialize) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(ready)?)?;
        out.flush()
    };
    write().map_err(|source| Failure::System { what: "print the address", source })
}

/// Waits for SIGTERM or Ctrl-C.
pub async fn wait(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone means that nobody will ever ask us to stop.
    if stopped.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
