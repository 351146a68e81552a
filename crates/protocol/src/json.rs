//! Finding a value in somebody else's JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Incoming, Reading, Signal};

/// A way to a value: names joined by dots, list items by number, e.g. `channel.alternatives.0.transcript`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Path {
    text: String,
    steps: Vec<String>,
}

impl From<String> for Path {
    fn from(text: String) -> Self {
        let steps = text.split('.').map(str::to_owned).collect();
        Self { text, steps }
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.text
    }
}

impl Path {
    /// The value there; `null` counts as nothing.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut here = value;
        for step in &self.steps {
            here = match here {
                Value::Object(map) => map.get(step)?,
                Value::Array(list) => list.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        (!here.is_null()).then_some(here)
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// A message that must be a JSON object, or what it means that it is none. The words name the position of a
/// fault and never repeat the message: it may hold words of a call.
pub(crate) fn object(message: Incoming<'_>) -> Result<Value, Signal> {
    let parsed = match message {
        Incoming::Text(text) => serde_json::from_str::<Value>(text),
        Incoming::Binary(bytes) => serde_json::from_slice::<Value>(bytes),
    };
    match parsed {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Signal::Protocol("a JSON message that is no object".to_owned())),
        Err(e) => Err(Signal::Protocol(format!("a message that is no JSON ({e})"))),
    }
}

/// A field that is text.
pub(crate) fn text<'v>(message: &'v Value, field: &str) -> Option<&'v str> {
    message.get(field).and_then(Value::as_str)
}

/// A field that is true or false.
pub(crate) fn flag(message: &Value, field: &str) -> Option<bool> {
    message.get(field).and_then(Value::as_bool)
}

/// A number, or a text that is one: some servers quote their times.
pub(crate) fn number(value: &Value) -> Option<f64> {
    let n = match value {
        Value::Number(n) => n.as_f64()?,
        Value::String(s) => s.trim().parse().ok()?,
        _ => return None,
    };
    n.is_finite().then_some(n)
}

/// A server's complaint and its code, the code also behind the words: `{"error": "full"}`, `{"error": {"message": ..}}`.
pub(crate) fn complaint(message: &Value) -> Option<(String, Option<&str>)> {
    let error = message.get("error")?;
    let words = error.as_str().or_else(|| text(error, "message"))?;
    let code = text(message, "code").or_else(|| text(error, "code"));
    Some((code.map_or_else(|| words.to_owned(), |code| format!("{words} ({code})")), code))
}

/// What a message means that its protocol does not know: a complaint, or nothing.
pub(crate) fn unknown(message: &Value) -> Reading {
    complaint(message).map_or(Reading::EMPTY, |(words, _)| Reading::signal(Signal::ServerError(words)))
}

/// Rounds to a whole number of milliseconds that fits, or nothing.
pub(crate) fn whole_ms(ms: f64) -> Option<u32> {
    let ms = ms.round();
    if !(0.0..=f64::from(u32::MAX)).contains(&ms) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    let whole = ms as u32;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_walk_objects_and_lists() {
        let value = json!({ "a": { "b": [null, { "c": 7 }] }, "x.y": 1 });
        assert_eq!(Path::from("a.b.1.c").find(&value), Some(&json!(7)));
        assert_eq!(Path::from("a.b.0").find(&value), None, "null is nothing");
        assert_eq!(Path::from("a.b.9").find(&value), None);
        assert_eq!(Path::from("a.b.c").find(&value), None);
        assert_eq!(Path::from("").find(&value), None);
    }

    #[test]
    fn numbers_may_be_quoted_but_must_be_numbers() {
        assert_eq!(number(&json!(1.5)), Some(1.5));
        assert_eq!(number(&json!(" 1.5 ")), Some(1.5));
        assert_eq!(number(&json!("NaN")), None);
        assert_eq!(number(&json!(true)), None);
        assert_eq!(whole_ms(1.5), Some(2));
        assert_eq!(whole_ms(-1.0), None);
        assert_eq!(whole_ms(1e300), None);
    }
}
