//! A session over `/v1/chat/completions`: with every window, all audio so far goes up again.
//!
//! The engine is asked to go on from the text so far less its unfixed tail, so that what it said about the
//! beginning stands and only the end can change. This is the scheme of the official package, with one
//! difference: a session that fell behind catches up with all the whole windows that have gathered, instead
//! of one request for each.
//!
//! The engine remembers nothing between two windows. So a session whose server is gone when the next window is due goes
//! on at another. Only where nobody took the connection: a request that broke midway may be what killed the engine, and
//! must not be taken to the next one.

use std::pin::Pin;
use std::sync::Arc;

use tapedeck_transport::ConnectError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;

use crate::audio::AudioBuffer;
use crate::caller::{Ended, Heard, Says, hear, say};
use crate::chat::{ChatRequest, Recognised};
use crate::core::{Core, Host};
use crate::counters::SessionCounters;
use crate::error::UpstreamError;
use crate::options::{BYTES_PER_MS, Rolling, audio_bytes, audio_ms};
use crate::text::{Transcript, pieces};

/// A call shorter than this is filled up with silence, as the official package does.
const LEAST_BYTES: usize = 500 * BYTES_PER_MS;

type Asked = Pin<Box<dyn Future<Output = Result<Recognised, UpstreamError>> + Send>>;

/// The raw text so far, in the tokens of the engine.
#[derive(Debug, Default)]
struct Text {
    tokens: Vec<String>,
    windows: u32,
}

impl Text {
    /// What the engine may no longer change: whole tokens, and nothing from the first character on that an answer
    /// was cut off in the middle of.
    fn fixed(&self, rolling: &Rolling) -> &[String] {
        if self.windows < rolling.unfixed_chunks {
            return &[];
        }
        let unfixed = usize::try_from(rolling.unfixed_tokens).unwrap_or(usize::MAX);
        let kept = self.tokens.len().saturating_sub(unfixed);
        let broken = self.tokens.iter().position(|token| token.contains(char::REPLACEMENT_CHARACTER));
        self.tokens.get(..broken.map_or(kept, |at| at.min(kept))).unwrap_or_default()
    }

    /// Takes what followed the fixed part.
    fn take(&mut self, rolling: &Rolling, answer: Recognised) {
        let kept = self.fixed(rolling).len();
        self.tokens.truncate(kept);
        self.tokens.extend(answer.tokens.unwrap_or_else(|| pieces(&answer.text)));
        self.windows += 1;
    }

    fn words(&self) -> String {
        Transcript::strip(&self.tokens.concat())
    }
}

/// What a session knows.
struct Session<'a> {
    core: &'a Core,
    rolling: &'a Rolling,
    host: &'a mut Host,
    audio: AudioBuffer,
    /// Audio that no request has carried.
    waiting: Vec<u8>,
    text: Text,
    ended: bool,
}

/// Leads a call from its first chunk to its final.
pub(crate) async fn converse<IO>(
    caller: &mut WebSocketStream<IO>,
    core: &Core,
    host: &mut Host,
    rolling: &Rolling,
    counts: &SessionCounters,
) -> Ended
where
    IO: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut session = Session {
        core,
        rolling,
        host,
        audio: AudioBuffer::default(),
        waiting: Vec::new(),
        text: Text::default(),
        ended: false,
    };
    match session.lead(caller, counts).await {
        Ok(()) => Ended::done(),
        Err(ended) => ended,
    }
}

impl Session<'_> {
    async fn lead<IO>(
        &mut self,
        caller: &mut WebSocketStream<IO>,
        counts: &SessionCounters,
    ) -> Result<(), Ended>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let backlog_bytes = audio_bytes(self.core.options.backlog);
        let mut asked: Option<Asked> = None;
        let mut idle_at = Instant::now() + self.core.options.idle;
        // Servers in a row that were not there for the window that is due.
        let mut lost = 0;
        loop {
            if asked.is_none() {
                asked = self.ask();
                if asked.is_none() && self.ended {
                    return self.say(caller, "final", counts).await;
                }
            }
            // A full session reads no more: the caller's own socket then holds it up.
            let listens = self.waiting.len() < backlog_bytes;
            tokio::select! {
                biased;
                answer = async { match &mut asked { Some(asked) => asked.await, None => std::future::pending().await } } => {
                    asked = None;
                    let answer = match answer {
                        Err(UpstreamError::Connect(gone)) if lost < self.core.servers.len() => {
                            lost += 1;
                            self.move_on(gone, counts).await?;
                            asked = Some(self.request());
                            continue;
                        }
                        answer => answer?,
                    };
                    lost = 0;
                    self.text.take(self.rolling, answer);
                    // The answer to the last piece is the final.
                    if !(self.ended && self.waiting.is_empty()) {
                        self.say(caller, "partial", counts).await?;
                    }
                    // A caller that was held up has its time to speak from now on.
                    idle_at = Instant::now() + self.core.options.idle;
                }
                heard = hear(caller), if listens => {
                    self.take(heard?, counts)?;
                    idle_at = Instant::now() + self.core.options.idle;
                }
                () = sleep_until(idle_at), if listens && !self.ended && asked.is_none() => {
                    return Err(Ended::silent(self.core.options.idle));
                }
            }
        }
    }

    /// Takes what the caller said.
    fn take(&mut self, heard: Heard, counts: &SessionCounters) -> Result<(), Ended> {
        match heard {
            _ if self.ended => Err(Ended::wrong("nothing may follow the end message")),
            Heard::End => {
                self.ended = true;
                Ok(())
            }
            Heard::Audio(chunk) => {
                counts.audio(chunk.len());
                self.waiting.extend_from_slice(&chunk);
                let total = self.audio.pcm_bytes() + self.waiting.len();
                if total > audio_bytes(self.core.options.max_audio) {
                    let why = format!("a call may last {:?} here", self.core.options.max_audio);
                    return Err(Ended::too_long(why));
                }
                Ok(())
            }
        }
    }

    /// The next request, if there is audio for one: all whole windows, and after the end whatever is left.
    fn ask(&mut self) -> Option<Asked> {
        let window = audio_bytes(self.rolling.window);
        let take = if self.ended { self.waiting.len() } else { self.waiting.len() / window * window };
        if take == 0 {
            return None;
        }
        self.audio.push(self.waiting.get(..take)?);
        self.waiting.drain(..take);
        if self.ended && self.audio.pcm_bytes() < LEAST_BYTES {
            self.audio.push(&vec![0; LEAST_BYTES - self.audio.pcm_bytes()]);
        }
        Some(self.request())
    }

    /// Asks what all the audio taken so far says.
    fn request(&self) -> Asked {
        let request = ChatRequest::new(
            &self.host.server().endpoint,
            self.core.options.bearer.as_ref(),
            &self.host.model.id,
            &self.audio,
            &self.text.fixed(self.rolling).concat(),
            self.rolling.max_tokens,
        );
        Box::pin(request.send(Arc::clone(&self.core.connector), self.core.options.timeout_after))
    }

    /// Leaves a server that is gone for the least busy of the others, or gives its loss as the reason why the call ends.
    async fn move_on(&mut self, gone: ConnectError, counts: &SessionCounters) -> Result<(), UpstreamError> {
        self.host.server().mark(false);
        let Ok(host) = self.core.host().await else { return Err(gone.into()) };
        counts.moved(&self.host.server().name, self.text.windows);
        *self.host = host;
        Ok(())
    }

    async fn say<IO>(
        &self,
        caller: &mut WebSocketStream<IO>,
        kind: &'static str,
        counts: &SessionCounters,
    ) -> Result<(), Ended>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let text = self.text.words();
        counts.said(&text, self.text.windows);
        // Silence that we added is not the caller's.
        let audio_ms = Some(audio_ms(self.audio.pcm_bytes().min(counts.audio_bytes())));
        say(caller, &Says { kind, text: &text, audio_ms, instance: &self.host.server().name }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Recognised {
        Recognised { text: text.into(), tokens: None }
    }

    #[test]
    fn the_first_chunks_are_not_built_upon_and_the_tail_stays_open() {
        let rolling = Rolling { unfixed_tokens: 2, ..Rolling::default() };
        let mut text = Text::default();
        text.take(&rolling, answer("one two"));
        assert!(text.fixed(&rolling).is_empty(), "one request, two are unfixed");
        text.take(&rolling, answer("one too three four"));
        assert_eq!(text.fixed(&rolling).concat(), "one too");
        text.take(&rolling, answer(" free for five"));
        assert_eq!(text.words(), "one too free for five");
        assert_eq!(text.fixed(&rolling).concat(), "one too free");
    }

    #[test]
    fn the_engines_tokens_count_where_it_tells_them() {
        let rolling = Rolling { unfixed_chunks: 0, unfixed_tokens: 1, ..Rolling::default() };
        let mut text = Text::default();
        let tokens = Some(vec!["un".to_owned(), "believ".to_owned(), "able".to_owned()]);
        text.take(&rolling, Recognised { text: "unbelievable".into(), tokens });
        assert_eq!(text.fixed(&rolling).concat(), "unbeliev");
    }

    #[test]
    fn a_character_cut_in_half_is_never_built_upon() {
        let rolling = Rolling { unfixed_chunks: 0, unfixed_tokens: 0, ..Rolling::default() };
        let mut text = Text::default();
        text.take(&rolling, answer("good \u{fffd} day"));
        assert_eq!(text.fixed(&rolling).concat(), "good");
    }
}
