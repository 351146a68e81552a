//! Sentences that a run directory holds, in both languages.
//!
//! A verdict's reasons are written down in English when they are found. A report says them in Chinese too, by
//! recognising the sentence; one that is not known stands as it was written.

use crate::messages::{LocalizedText, fill};
use crate::sentences::SENTENCES;

/// The sentence in both languages; unknown ones stay as they are.
pub(crate) fn recorded(sentence: &str) -> LocalizedText {
    LocalizedText { en: sentence.to_owned(), zh: chinese(sentence, 0).unwrap_or_else(|| sentence.to_owned()) }
}

/// How deep sentences stand in sentences.
const DEPTH: u8 = 6;

fn chinese(sentence: &str, depth: u8) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    // Several in a row first: otherwise a pattern could swallow the next sentence whole.
    listed(sentence, depth)
        .or_else(|| one(sentence, depth))
        .or_else(|| after_a_time(sentence, depth))
        .or_else(|| of_somebody(sentence, depth))
}

/// A name and a known sentence about it.
fn of_somebody(sentence: &str, depth: u8) -> Option<String> {
    let (name, about) = sentence.split_once(": ")?;
    Some(format!("{name}：{}", chinese(about, depth + 1)?))
}

/// A time and what is known of it: `2.0 s inst1: no metrics URL`.
fn after_a_time(sentence: &str, depth: u8) -> Option<String> {
    let (seconds, why) = sentence.split_once(" s ")?;
    seconds.parse::<f64>().ok()?;
    Some(format!("{seconds} s，{}", chinese(why, depth + 1)?))
}

/// Sentences in a row, each of which is known.
fn listed(sentence: &str, depth: u8) -> Option<String> {
    [("; ", "；"), (" and ", "、")].into_iter().find_map(|(between, chinese_between)| {
        if !sentence.contains(between) {
            return None;
        }
        let parts: Option<Vec<String>> =
            sentence.split(between).map(|part| chinese(part, depth + 1)).collect();
        parts.map(|parts| parts.join(chinese_between))
    })
}

/// Every sentence that is known.
fn sentences() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    crate::promise::SENTENCES.iter().chain(SENTENCES)
}

fn one(sentence: &str, depth: u8) -> Option<String> {
    sentences().find_map(|(english, chinese)| {
        let parts = matched(english, sentence)?;
        // What stands in a place may be a sentence of its own.
        let said: Vec<String> =
            parts.into_iter().map(|p| self::chinese(p, depth + 1).unwrap_or_else(|| p.to_owned())).collect();
        Some(fill(chinese, &said.iter().map(String::as_str).collect::<Vec<_>>()))
    })
}

/// What stands in the places of a pattern, if the text is such a sentence.
fn matched<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut literals = pattern.split("{}");
    let mut rest = text.strip_prefix(literals.next()?)?;
    let mut places = Vec::new();
    let mut literals = literals.peekable();
    while let Some(literal) = literals.next() {
        let at = if literals.peek().is_none() {
            // The last literal ends the text.
            rest.len().checked_sub(literal.len()).filter(|_| rest.ends_with(literal))?
        } else {
            rest.find(literal)?
        };
        let place = rest.get(..at)?;
        // A name and a colon before the sentence are no part of it.
        if text.starts_with(place) && pattern.starts_with("{}") && places.is_empty() && place.contains(": ") {
            return None;
        }
        places.push(place);
        rest = rest.get(at + literal.len()..)?;
    }
    (rest.is_empty() && places.iter().all(|p| !p.is_empty())).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_recognised_with_what_stands_in_them() {
        let said = recorded(
            "real-time factor p95 is 0.505 and 0.5 is the limit (interval 0.503 to no bound from 432 calls)",
        );
        assert_eq!(said.zh, "实时率 RTF p95 为 0.505，上限 0.5（区间 0.503 至 无界，432 通）");
        let said = recorded("the tier was given up: 3 of 60 streams errored within the last minute");
        assert_eq!(said.zh, "本档被提前放弃：最近一分钟 60 路中有 3 路出错");
        let said = recorded(
            "as a tier it is unstable: lag kept rising while the tier ran: by 0.210 over 9 blocks (p = 0.0010 after correction)",
        );
        assert_eq!(
            said.zh,
            "作为一档的判定为“不稳定”：lag 在本档运行期间持续上升：9 段内上升 0.210（校正后 p = 0.0010）"
        );
        let said = recorded("drift: ttft_p95 by +31 % and rtf_p95 by +12 %");
        assert_eq!(said.zh, "有漂移：ttft_p95 变化 +31 %、rtf_p95 变化 +12 %");
        let said = recorded("GPU-1: memory leaks: 9 MiB per hour (interval 5 to unknown) over 2.0 h");
        assert_eq!(said.zh, "GPU-1：存在内存泄漏：每小时 9 MiB（区间 5 至 未知），历时 2.0 h");
        for foreign in ["something else", "error: x; y and z", "too many sessions: 8"] {
            assert_eq!(recorded(foreign).zh, foreign, "the words of a server stay as they are");
        }
    }

    #[test]
    fn no_pattern_hides_another() {
        for (english, _) in sentences() {
            let sample = english.replace("{}", "7");
            let first = sentences().find(|(e, _)| matched(e, &sample).is_some()).unwrap();
            assert_eq!(first.0, *english, "{sample} is taken for another sentence");
            assert!(chinese(&sample, 0).is_some());
        }
    }
}
