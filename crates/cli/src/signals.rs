//! Ctrl-C and SIGTERM, for runtimes with a real or a paused clock alike.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::Failure;

/// Turns true at the first Ctrl-C or SIGTERM; a second one ends the process at once.
///
/// Signals are awaited on a thread with a runtime of its own, because a paused clock must never wait for the
/// world outside.
///
/// # Errors
/// The system refuses the thread or the handlers.
pub fn interrupt() -> Result<watch::Receiver<bool>, Failure> {
    let system = |what| move |source| Failure::System { what, source };
    let (stop, stopped) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(system("set up signal handling"))?;
    let (mut int, mut term) = {
        let _inside = runtime.enter();
        let listen = |kind| signal(kind).map_err(system("listen for signals"));
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?)
    };
    let wait = async move {
        loop {
            tokio::select! {
                biased;
                _ = int.recv() => {}
                _ = term.recv() => {}
            }
            if stop.send_replace(true) {
                std::process::exit(tapedeck_record::ExitCode::Interrupted as i32);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(wait))
        .map_err(system("start the signal thread"))?;
    Ok(stopped)
}
