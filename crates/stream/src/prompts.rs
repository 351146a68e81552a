//! The prompts of a run, out of a file.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tapedeck_stats::rng::Draws;

use crate::chat::Prompt;
use crate::config::{ConfigError, Prompts};

/// Stream of randomness that belongs to the order of prompts.
const ORDER: u64 = (1 << 33) + 3;

/// One line of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    messages: Option<Value>,
    #[serde(default)]
    max_tokens: Option<u32>,
}

/// Reads the prompts: a line that begins with `{` is JSON, any other is a prompt; empty lines are skipped.
///
/// # Errors
/// Files that cannot be read, hold no prompt, or a line that is none.
pub fn load(prompts: &Prompts) -> Result<Vec<Prompt>, ConfigError> {
    if prompts.file.as_os_str().is_empty() {
        let why = "missing: give a file with one prompt a line, or --prompt TEXT".into();
        return Err(ConfigError::Value { key: "prompts.file", why });
    }
    let mut all = parse(&prompts.file, &text_of(&prompts.file)?)?;
    if let Some(prefix) = &prompts.prefix_file {
        let prefix = text_of(prefix)?;
        all.iter_mut().for_each(|prompt| prompt.put_in_front(&prefix));
    }
    Ok(all)
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

fn parse(path: &Path, text: &str) -> Result<Vec<Prompt>, ConfigError> {
    let mut prompts = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad =
            |why: &str| ConfigError::Prompt { path: path.to_owned(), line: at + 1, why: why.to_owned() };
        if !line.trim_start().starts_with('{') {
            prompts.push(Prompt::user(line.trim()));
            continue;
        }
        let line: Line = serde_json::from_str(line).map_err(|e| bad(&e.to_string()))?;
        let mut prompt = match (line.prompt, line.messages) {
            (Some(text), None) => Prompt::user(&text),
            (None, Some(messages)) if messages.as_array().is_some_and(|m| !m.is_empty()) => {
                Prompt { messages, max_tokens: None }
            }
            _ => return Err(bad("give either `prompt` (a text) or `messages` (a list)")),
        };
        prompt.max_tokens = line.max_tokens;
        prompts.push(prompt);
    }
    if prompts.is_empty() {
        let why = "no prompt in it: write one a line".to_owned();
        return Err(ConfigError::Prompt { path: path.to_owned(), line: 1, why });
    }
    Ok(prompts)
}

/// Which prompt each of `n` requests takes: in the order of the file, or each once in an order of its own before any
/// comes again.
#[must_use]
pub fn order(prompts: usize, n: usize, shuffle: Option<u64>) -> Vec<usize> {
    let mut draws = shuffle.map(|seed| Draws::new(seed, ORDER));
    let mut order = Vec::with_capacity(n);
    let mut round: Vec<usize> = (0..prompts).collect();
    while order.len() < n && prompts > 0 {
        if let Some(draws) = &mut draws {
            draws.shuffle(&mut round);
        }
        order.extend(round.iter().take(n - order.len()));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Prompt>, String> {
        parse(Path::new("p.txt"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn lines_and_json_lines() {
        let text = "why?\n\n{\"prompt\": \"你好\", \"max_tokens\": 7}\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n";
        let prompts = parsed(text).unwrap();
        assert_eq!(prompts.len(), 3);
        assert_eq!((&prompts[0], prompts[1].max_tokens), (&Prompt::user("why?"), Some(7)));
        assert_eq!(prompts[2], Prompt::user("x"));
    }

    #[test]
    fn a_line_that_is_no_prompt_is_named() {
        assert!(parsed("a\n{\"promt\": \"x\"}").unwrap_err().starts_with("p.txt:2: unknown field `promt`"));
        assert!(parsed("{\"max_tokens\": 3}").unwrap_err().contains("p.txt:1: give either"));
        assert!(parsed("\n \n").unwrap_err().contains("no prompt"));
    }

    #[test]
    fn every_prompt_once_before_any_comes_again() {
        assert_eq!(order(3, 7, None), [0, 1, 2, 0, 1, 2, 0]);
        let mut first = order(5, 8, Some(2));
        assert_eq!(first, order(5, 8, Some(2)));
        first.truncate(5);
        assert_ne!(first, [0, 1, 2, 3, 4]);
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3, 4]);
        assert!(order(0, 3, None).is_empty());
    }
}
