//! What a chat completion says: the request's body, and the pieces of the answer.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How the answer is to be made; the `[generation]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Generation {
    /// Most tokens of the answer. Default 256.
    pub max_tokens: u32,
    /// Sampling temperature; 0 takes the likeliest token. Default 0.
    pub temperature: f64,
    /// Share of probability that is sampled from; left out, the server's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Whether the model may think aloud first; left out, nothing is said about it. Sent as
    /// `chat_template_kwargs.enable_thinking`, which vLLM and SGLang hand to the model's template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Ask for the server's own token counts at the end of the stream (`stream_options.include_usage`). Default true;
    /// a few old servers refuse the option.
    pub include_usage: bool,
    /// Further keys of the request body, sent as they stand.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub extra: toml::Table,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            max_tokens: 256,
            temperature: 0.0,
            top_p: None,
            stop: Vec::new(),
            thinking: None,
            include_usage: true,
            extra: toml::Table::new(),
        }
    }
}

/// The conversation that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The messages, as the API wants them.
    pub messages: Value,
    /// Most tokens of this answer, where the prompt has a limit of its own.
    pub max_tokens: Option<u32>,
}

impl Prompt {
    /// One message of a user.
    #[must_use]
    pub fn user(text: &str) -> Self {
        Self { messages: json!([{ "role": "user", "content": text }]), max_tokens: None }
    }

    /// Puts a text in front of the first message: a shared document, or a mark that makes the prompt new.
    pub fn put_in_front(&mut self, text: &str) {
        let first = self.messages.as_array_mut().and_then(|m| m.first_mut());
        if let Some(content) = first.and_then(|m| m.get_mut("content"))
            && let Some(old) = content.as_str()
        {
            *content = Value::String(format!("{text}{old}"));
        }
    }
}

/// The body of a streamed request.
#[must_use]
pub fn body(model: &str, prompt: &Prompt, generation: &Generation) -> Bytes {
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), prompt.messages.clone());
    body.insert("max_tokens".into(), json!(prompt.max_tokens.unwrap_or(generation.max_tokens)));
    body.insert("temperature".into(), json!(generation.temperature));
    body.insert("stream".into(), json!(true));
    if generation.include_usage {
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if let Some(top_p) = generation.top_p {
        body.insert("top_p".into(), json!(top_p));
    }
    if !generation.stop.is_empty() {
        body.insert("stop".into(), json!(generation.stop));
    }
    if let Some(thinking) = generation.thinking {
        body.insert("chat_template_kwargs".into(), json!({ "enable_thinking": thinking }));
    }
    for (key, value) in &generation.extra {
        // TOML knows no value that JSON cannot carry, dates apart, which become text.
        body.insert(key.clone(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
    Bytes::from(Value::Object(body).to_string())
}

/// Token counts as the server reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Tokens of the answer, thinking included.
    #[serde(default)]
    pub completion_tokens: u64,
    /// Tokens of the prompt that came from the prefix cache, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
}

/// One piece of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Text of the answer (`delta.content`); may be empty.
    pub content: String,
    /// Whether it carries thinking (`delta.reasoning_content` or `delta.reasoning`): not part of the answer.
    pub reasoning: bool,
    /// Why the answer ended, where it does.
    pub finish_reason: Option<String>,
    /// Token counts, where they come.
    pub usage: Option<Usage>,
    /// The server's complaint instead of a piece.
    pub error: Option<String>,
}

/// Reads a chunk of a stream, or a whole answer that was not streamed; the words say why not.
///
/// # Errors
/// What is no JSON object.
pub fn read(json: &str) -> Result<Delta, String> {
    let value: Value = serde_json::from_str(json).map_err(|e| format!("an event is no JSON: {e}"))?;
    if !value.is_object() {
        return Err("an event is no JSON object".into());
    }
    let error = value.get("error").filter(|e| !e.is_null()).map(complaint).or_else(|| {
        // vLLM's older way: the complaint is the object.
        let plain = value.get("object").and_then(Value::as_str) == Some("error");
        plain.then(|| complaint(&value))
    });
    let choice = value.get("choices").and_then(Value::as_array).and_then(|c| c.first());
    let message = choice.and_then(|c| c.get("delta").or_else(|| c.get("message")));
    let text = |key: &str| message.and_then(|m| m.get(key)).and_then(Value::as_str);
    let thought = ["reasoning_content", "reasoning"].into_iter().filter_map(text).any(|t| !t.is_empty());
    let usage = value.get("usage").filter(|u| u.is_object()).map(|u| {
        let count = |key: &str| u.get(key).and_then(Value::as_u64);
        let details = u.get("prompt_tokens_details");
        Usage {
            prompt_tokens: count("prompt_tokens").unwrap_or(0),
            completion_tokens: count("completion_tokens").unwrap_or(0),
            cached_tokens: details.and_then(|d| d.get("cached_tokens")).and_then(Value::as_u64),
        }
    });
    Ok(Delta {
        content: text("content").unwrap_or_default().to_owned(),
        reasoning: thought,
        finish_reason: choice.and_then(|c| c.get("finish_reason")).and_then(Value::as_str).map(str::to_owned),
        usage,
        error,
    })
}

fn complaint(error: &Value) -> String {
    let words =
        error.get("message").or(Some(error)).map(|m| m.as_str().map_or_else(|| m.to_string(), str::to_owned));
    words.unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_holds_what_was_asked_and_nothing_else() {
        let generation = Generation {
            thinking: Some(false),
            stop: vec!["\n".into()],
            extra: toml::from_str("seed = 7").unwrap(),
            ..Generation::default()
        };
        let mut prompt = Prompt::user("why?");
        prompt.put_in_front("doc. ");
        let sent: Value = serde_json::from_slice(&body("m", &prompt, &generation)).unwrap();
        let expected = json!({
            "model": "m", "messages": [{ "role": "user", "content": "doc. why?" }], "max_tokens": 256,
            "temperature": 0.0, "stream": true, "stream_options": { "include_usage": true }, "stop": ["\n"],
            "chat_template_kwargs": { "enable_thinking": false }, "seed": 7,
        });
        assert_eq!(sent, expected);
    }

    #[test]
    fn pieces_of_every_kind() {
        let piece = read(r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}"#).unwrap();
        assert_eq!((piece.content.as_str(), piece.finish_reason), ("hi", None));
        let piece = read(r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#).unwrap();
        assert!(piece.reasoning && piece.content.is_empty());
        let piece = read(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}}"#,
        );
        let usage = Usage { prompt_tokens: 9, completion_tokens: 4, cached_tokens: Some(8) };
        assert_eq!(piece.unwrap().usage, Some(usage));
        for error in [
            r#"{"error":{"message":"out of memory","code":500}}"#,
            r#"{"object":"error","message":"out of memory"}"#,
            r#"{"error":"out of memory"}"#,
        ] {
            assert_eq!(read(error).unwrap().error.as_deref(), Some("out of memory"), "{error}");
        }
        assert!(read("[1]").is_err() && read("{").is_err());
    }
}
