//! Pairs with known counts, and agreement with jiwer on ties.

#![expect(clippy::unwrap_used, reason = "the fixtures are ours and a broken one should fail loudly")]

use serde::Deserialize;
use tapedeck_wer::{Counts, Digits, Measures, Rules, measure, measure_with};

#[derive(Deserialize)]
struct Pair {
    #[serde(default)]
    id: String,
    #[serde(rename = "ref")]
    reference: String,
    hyp: String,
    ref_tokens: u64,
    sub: u64,
    del: u64,
    ins: u64,
    #[serde(default)]
    rate: Option<f64>,
}

fn pairs(name: &str) -> Vec<Pair> {
    let path = format!("{}/../../fixtures/wer/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn known_pairs_have_their_counts() {
    let pairs = pairs("pairs.jsonl");
    assert!(pairs.len() > 30);
    for pair in pairs {
        let found = measure(&pair.reference, &pair.hyp).words;
        let expected = Counts { ref_tokens: pair.ref_tokens, sub: pair.sub, del: pair.del, ins: pair.ins };
        assert_eq!(found, expected, "{}", pair.id);
        match (found.rate(), pair.rate) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-15, "{}", pair.id),
            (found, expected) => assert_eq!(found, expected, "{}", pair.id),
        }
    }
}

#[test]
fn ties_are_decided_as_jiwer_decides_them() {
    let pairs = pairs("jiwer-counts.jsonl");
    assert_eq!(pairs.len(), 600);
    for pair in pairs {
        let found = measure(&pair.reference, &pair.hyp).words;
        let expected = Counts { ref_tokens: pair.ref_tokens, sub: pair.sub, del: pair.del, ins: pair.ins };
        assert_eq!(found, expected, "{} | {}", pair.reference, pair.hyp);
    }
}

#[test]
fn languages_add_up_and_keep_their_own_errors() {
    let m = measure("请打开 WiFi 设置，谢谢 Tom", "请打开wifi设置谢谢汤姆");
    assert_eq!(m.han + m.other, m.words);
    assert_eq!(m.han, Counts { ref_tokens: 7, sub: 0, del: 0, ins: 1 });
    assert_eq!(m.other, Counts { ref_tokens: 2, sub: 1, del: 0, ins: 0 });
}

#[test]
fn the_character_tradition_counts_letters_of_words_and_no_spaces() {
    let m = measure("我要 refund 吗", "我要 refand 吗");
    assert_eq!(m.words, Counts { ref_tokens: 4, sub: 1, del: 0, ins: 0 });
    assert_eq!(m.chars, Counts { ref_tokens: 9, sub: 1, del: 0, ins: 0 });
    assert_eq!(measure("hold on", "holdon").chars.errors(), 0);
}

#[test]
fn digit_rules_make_digits_equal_only_when_asked_for() {
    let (figures, chinese, english) = ("电话 １３８", "电话一三八", "电话 one three eight");
    assert_eq!(measure(figures, chinese).words.errors(), 3);
    let rules = |chinese, english| Rules { digits: Digits { chinese, english } };
    assert_eq!(
        measure_with(rules(true, false), figures, chinese).words,
        Counts { ref_tokens: 5, ..Counts::default() }
    );
    assert_eq!(measure_with(rules(false, true), figures, english).words.errors(), 0);
    assert_eq!(measure_with(rules(false, true), figures, chinese).words.errors(), 3);
    assert_eq!(measure_with(rules(true, true), chinese, english).words.errors(), 0);
    assert_eq!(measure_with(rules(true, false), "رقم ٤٥", "رقم 45").words.errors(), 0);
    // Values are not computed.
    assert_eq!(measure_with(rules(true, true), "twenty", "20").words.errors(), 2);
}

#[test]
fn a_digit_keeps_the_language_it_was_written_in() {
    let rules = Rules { digits: Digits { chinese: true, english: false } };
    let m = measure_with(rules, "一三 8", "");
    assert_eq!((m.han.ref_tokens, m.other.ref_tokens), (2, 1));
}

#[test]
fn swapping_the_sides_swaps_deletions_and_insertions_in_total() {
    let (a, b) = ("please hold the line for a moment", "hold line please for two more moments now");
    let (there, back) = (measure(a, b), measure(b, a));
    assert_eq!(there.words.errors(), back.words.errors());
    assert_eq!(Measures::default(), measure("", ""));
}

proptest::proptest! {
    #[test]
    fn any_text_against_itself_has_no_errors(text in "\\PC{0,60}") {
        let m = measure(&text, &text);
        proptest::prop_assert_eq!(m.words.errors() + m.chars.errors(), 0);
        proptest::prop_assert!(m.chars.ref_tokens >= m.words.ref_tokens);
    }

    #[test]
    fn normalising_twice_changes_nothing(text in "\\PC{0,60}") {
        let once = Rules::default().apply(&text);
        let again = Rules::default().apply(once.as_str());
        proptest::prop_assert_eq!(once.tokens().words, again.tokens().words);
    }
}
