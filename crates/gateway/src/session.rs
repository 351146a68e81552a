//! A whole call.

use std::sync::atomic::Ordering;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;

use crate::caller::{Ended, part};
use crate::core::{Admission, Core};
use crate::counters::SessionCounters;
use crate::log::{Outcome, SessionLog};
use crate::options::Backend;
use crate::{realtime, rolling};

/// Leads a whole call.
pub(crate) async fn converse<IO>(core: &Core, mut caller: WebSocketStream<IO>, admission: Admission)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send,
{
    let began = Instant::now();
    let session = core.numbers.fetch_add(1, Ordering::Relaxed) + 1;
    let Admission { mut host, place } = admission;
    let counts = SessionCounters::default();
    let ended = match (&core.options.backend, host.engine.take()) {
        (Backend::Realtime(realtime), Some(mut engine)) => {
            realtime::converse(
                &mut caller,
                &mut engine,
                &core.options,
                realtime,
                (&host.model, &host.server().name),
                &counts,
            )
            .await
        }
        (Backend::Rolling(rolling), _) => {
            rolling::converse(&mut caller, core, &mut host, rolling, &counts).await
        }
        (Backend::Realtime(_), None) => Ended {
            outcome: Outcome::UpstreamFailed,
            why: Some("the engine's connection was lost before the call".into()),
        },
    };
    let upstream = host.server().name.clone();
    core.counters.end(ended.outcome, &counts);
    // The place is free before the caller learns that the call is over.
    drop((host, place));
    (core.log)(&SessionLog {
        session,
        upstream: upstream.clone(),
        moves: counts.moves(),
        backend: core.options.backend.name(),
        outcome: ended.outcome,
        why: ended.why.clone(),
        wall_s: began.elapsed().as_secs_f64(),
        audio_s: f64::from(crate::options::audio_ms(counts.audio_bytes())) / 1_000.0,
        windows: counts.windows(),
        messages: counts.messages(),
        chars: counts.chars(),
    });
    part(&mut caller, &ended, &upstream).await;
}
