//! One question to `/v1/chat/completions`: this audio, and the text so far to go on from.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tapedeck_transport::{Connector, Endpoint, Secret};
use tokio::time::timeout;

use crate::audio::Growing;
use crate::error::UpstreamError;

/// Largest answer that is read, bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Most of an engine's own words that are passed on, bytes.
const MAX_WORDS_BYTES: usize = 300;

/// A request that can be sent without borrowing from its session.
pub(crate) struct Question {
    endpoint: Endpoint,
    bearer: Option<HeaderValue>,
    body: Pieces,
}

/// What the engine found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Text that follows the prefix.
    pub(crate) text: String,
    /// The same in the engine's tokens, where it told them and they add up to the text.
    pub(crate) tokens: Option<Vec<String>>,
}

/// A body of pieces whose length is known.
struct Pieces {
    pieces: std::vec::IntoIter<Bytes>,
    left_bytes: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let piece = this.pieces.next();
        this.left_bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

impl Question {
    /// Asks what `audio` says, given that it begins with `prefix`.
    pub(crate) fn new(
        server: &Endpoint,
        bearer: Option<&Secret>,
        model: &str,
        audio: &Growing,
        prefix: &str,
        max_tokens: u32,
    ) -> Self {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let head = format!(
            "{{\"model\":{},\"temperature\":0,\"max_tokens\":{max_tokens},\"logprobs\":true,\"messages\":[\
             {{\"role\":\"user\",\"content\":[{{\"type\":\"audio_url\",\"audio_url\":{{\"url\":\"data:audio/wav;base64,",
            text(model)
        );
        let tail = if prefix.is_empty() {
            "\"}}]}]}".to_owned()
        } else {
            format!(
                "\"}}}}]}},{{\"role\":\"assistant\",\"content\":{}}}],\
                 \"add_generation_prompt\":false,\"continue_final_message\":true}}",
                text(prefix)
            )
        };
        let pieces: Vec<Bytes> = std::iter::once(Bytes::from(head))
            .chain(audio.base64())
            .chain([Bytes::from(tail)])
            .filter(|piece| !piece.is_empty())
            .collect();
        let left_bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self {
            endpoint: server.with_path("/v1/chat/completions"),
            bearer: bearer.and_then(Secret::bearer),
            body: Pieces { pieces: pieces.into_iter(), left_bytes },
        }
    }

    /// Sends it over a connection of its own and reads the answer. Dropping the future closes the connection,
    /// upon which vLLM stops working on it.
    pub(crate) async fn ask(
        self,
        connector: Arc<dyn Connector>,
        patience: Duration,
    ) -> Result<Answer, UpstreamError> {
        timeout(patience, self.exchange(&*connector)).await.unwrap_or(Err(UpstreamError::Silent(patience)))
    }

    async fn exchange(self, connector: &dyn Connector) -> Result<Answer, UpstreamError> {
        let broken = |error: hyper::Error| UpstreamError::Broken(error.to_string());
        let mut request = Request::post(self.endpoint.path_and_query())
            .header(header::HOST, self.endpoint.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close");
        if let Some(bearer) = self.bearer {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        let request = request.body(self.body).map_err(|error| UpstreamError::Broken(error.to_string()))?;
        let io = connector.connect(&self.endpoint).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status();
            let mut body = response.into_body();
            let mut all = BytesMut::new();
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame.map_err(broken)?.into_data() {
                    if all.len() + data.len() > MAX_ANSWER_BYTES {
                        return Err(UpstreamError::Nonsense("it is larger than 4 MiB"));
                    }
                    all.extend_from_slice(&data);
                }
            }
            read(status, &all)
        };
        // The connection is driven here, beside the exchange, so that both end together.
        let mut connection = std::pin::pin!(connection);
        let mut exchange = std::pin::pin!(exchange);
        let mut connected = true;
        loop {
            tokio::select! {
                biased;
                answer = &mut exchange => return answer,
                _ = &mut connection, if connected => connected = false,
            }
        }
    }
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    logprobs: Option<LogProbs>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

#[derive(Deserialize)]
struct LogProbs {
    content: Option<Vec<Token>>,
}

#[derive(Deserialize)]
struct Token {
    token: String,
}

/// Makes sense of an answer.
fn read(status: StatusCode, body: &[u8]) -> Result<Answer, UpstreamError> {
    if status != StatusCode::OK {
        return Err(UpstreamError::Refused { status: status.as_u16(), words: words(body) });
    }
    let completion: Completion =
        serde_json::from_slice(body).map_err(|_| UpstreamError::Nonsense("it is not a chat completion"))?;
    let choice = completion.choices.into_iter().next().ok_or(UpstreamError::Nonsense("it has no choices"))?;
    let text = choice.message.content.unwrap_or_default();
    let tokens = choice.logprobs.and_then(|l| l.content).and_then(|tokens| whole(&text, tokens));
    Ok(Answer { text, tokens })
}

/// The tokens, if they add up to the text; what follows it (an end mark) does not count.
fn whole(text: &str, tokens: Vec<Token>) -> Option<Vec<String>> {
    let mut left = text;
    let mut whole = Vec::with_capacity(tokens.len());
    for Token { token } in tokens {
        if left.is_empty() {
            break;
        }
        left = left.strip_prefix(token.as_str())?;
        whole.push(token);
    }
    left.is_empty().then_some(whole)
}

/// The engine's own words about an error, cut to a bearable length.
pub(crate) fn words(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let said = [value.pointer("/error/message"), value.get("message"), value.get("detail")];
    let words = said.into_iter().flatten().find_map(|v| v.as_str().map(str::to_owned));
    shorten(&words.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()))
}

/// The first line or so.
pub(crate) fn shorten(words: &str) -> String {
    let words = words.trim();
    let mut end = words.len().min(MAX_WORDS_BYTES);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.get(..end).unwrap_or_default().replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(body: &str) -> Result<Answer, UpstreamError> {
        read(StatusCode::OK, body.as_bytes())
    }

    #[test]
    fn tokens_count_only_if_they_are_the_text() {
        let answer = |tokens: &str| {
            let body = format!(
                r#"{{"choices":[{{"message":{{"content":"good day"}},"logprobs":{{"content":[{tokens}]}}}}]}}"#
            );
            ok(&body).unwrap().tokens
        };
        let tokens = answer(r#"{"token":"good"},{"token":" day"},{"token":"<|im_end|>"}"#);
        assert_eq!(tokens.unwrap(), ["good", " day"]);
        assert_eq!(answer(r#"{"token":"good"}"#), None);
        assert_eq!(answer(r#"{"token":"good"},{"token":"day"}"#), None);
        assert_eq!(ok(r#"{"choices":[{"message":{"content":null}}]}"#).unwrap().text, "");
    }

    #[test]
    fn nonsense_is_named_and_refusals_keep_the_engines_words() {
        for body in ["", "<html>", "{}", r#"{"choices":[]}"#, r#"{"choices":[{}]}"#] {
            assert!(matches!(ok(body), Err(UpstreamError::Nonsense(_))), "{body}");
        }
        let said = |body: &str| read(StatusCode::BAD_REQUEST, body.as_bytes()).unwrap_err().to_string();
        assert!(
            said(r#"{"error":{"message":"too many tokens","code":400}}"#).ends_with("400: too many tokens")
        );
        assert!(said(r#"{"detail":"Not Found"}"#).ends_with("400: Not Found"));
        assert!(said(&"é".repeat(1_000)).len() < 400);
    }
}
