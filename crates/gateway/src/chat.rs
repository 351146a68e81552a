//! One request to `/v1/chat/completions`: this audio, and the text so far to go on from.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use tapedeck_transport::{Connector, Endpoint, HttpError, Request, Secret};
use tokio::time::timeout;

use crate::audio::AudioBuffer;
use crate::error::UpstreamError;

/// Largest answer that is read, bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Most of an engine's own words that are passed on, bytes.
const MAX_WORDS_BYTES: usize = 300;

/// A request that can be sent without borrowing from its session.
pub(crate) struct ChatRequest {
    endpoint: Endpoint,
    bearer: Option<Secret>,
    body: Vec<Bytes>,
}

/// What the engine found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recognised {
    /// Text that follows the prefix.
    pub(crate) text: String,
    /// The same in the engine's tokens, where it told them and they add up to the text.
    pub(crate) tokens: Option<Vec<String>>,
}

impl ChatRequest {
    /// Asks what `audio` says, given that it begins with `prefix`.
    pub(crate) fn new(
        server: &Endpoint,
        bearer: Option<&Secret>,
        model: &str,
        audio: &AudioBuffer,
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
        let body =
            std::iter::once(Bytes::from(head)).chain(audio.base64()).chain([Bytes::from(tail)]).collect();
        Self { endpoint: server.with_path("/v1/chat/completions"), bearer: bearer.cloned(), body }
    }

    /// Sends it over a connection of its own and reads the answer. Dropping the future closes the connection,
    /// upon which vLLM stops working on it.
    pub(crate) async fn send(
        self,
        connector: Arc<dyn Connector>,
        limit: Duration,
    ) -> Result<Recognised, UpstreamError> {
        timeout(limit, self.exchange(&*connector)).await.unwrap_or(Err(UpstreamError::Silent(limit)))
    }

    async fn exchange(self, connector: &dyn Connector) -> Result<Recognised, UpstreamError> {
        let request = Request {
            bearer: self.bearer.as_ref(),
            headers: vec![("content-type".into(), "application/json".into())],
            max_bytes: MAX_ANSWER_BYTES,
            ..Request::post(&self.endpoint, self.body)
        };
        let mut response = request.send(connector).await?;
        let body = response.rest().await?;
        read(response.status, &body)
    }
}

impl From<HttpError> for UpstreamError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Connect(gone) => Self::Connect(gone),
            HttpError::TimedOut { limit, .. } => Self::Silent(limit),
            HttpError::TooLarge { .. } => Self::Nonsense("it is larger than 4 MiB"),
            HttpError::Request { why, .. } | HttpError::Broken { why, .. } => Self::Broken(why),
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
fn read(status: StatusCode, body: &[u8]) -> Result<Recognised, UpstreamError> {
    if status != StatusCode::OK {
        return Err(UpstreamError::Refused { status: status.as_u16(), words: words(body) });
    }
    let completion: Completion =
        serde_json::from_slice(body).map_err(|_| UpstreamError::Nonsense("it is not a chat completion"))?;
    let choice = completion.choices.into_iter().next().ok_or(UpstreamError::Nonsense("it has no choices"))?;
    let text = choice.message.content.unwrap_or_default();
    let tokens = choice.logprobs.and_then(|l| l.content).and_then(|tokens| whole(&text, tokens));
    Ok(Recognised { text, tokens })
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

    fn ok(body: &str) -> Result<Recognised, UpstreamError> {
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
