//! `tape-wer`: what it reads, prints and answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::Path;

use clap::Parser;
use serde_json::Value;
use tapedeck_calculators::tape_wer::{Cli, run};
use tapedeck_record::ExitCode;
use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn said(args: &[&str]) -> Result<(String, ExitCode), String> {
    let cli =
        Cli::try_parse_from(std::iter::once(&"tape-wer").chain(args)).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    match run(&cli, &mut out) {
        Ok(code) => Ok((String::from_utf8(out).unwrap(), code)),
        Err(failure) => {
            assert_eq!(failure.exit_code(), ExitCode::Usage);
            Err(failure.to_string())
        }
    }
}

fn lines(args: &[&str]) -> Vec<Value> {
    let (text, code) = said(&[args, &["--json"]].concat()).unwrap();
    assert_eq!(code, ExitCode::Ok);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn known_pairs_are_answered_line_by_line_and_pooled() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wer/pairs.jsonl");
    let expected: Vec<Value> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found = lines(&["--jsonl", path.to_str().unwrap()]);
    assert_eq!(found.len(), expected.len() + 1);
    for (found, expected) in found.iter().zip(&expected) {
        for key in ["id", "ref_tokens", "errors", "sub", "del", "ins", "rate"] {
            assert_eq!(found[key], expected[key], "{key} of {}", expected["id"]);
        }
    }
    let pooled = found.last().unwrap();
    let sum = |key: &str| expected.iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((pooled["id"].as_str(), pooled["pooled"].as_bool()), (Some("pooled"), Some(true)));
    assert_eq!(pooled["errors"].as_u64(), Some(sum("errors")));
    assert_eq!(pooled["ref_tokens"].as_u64(), Some(sum("ref_tokens")));
    let han = pooled["han"]["errors"].as_u64().unwrap() + pooled["other"]["errors"].as_u64().unwrap();
    assert_eq!(han, sum("errors"));
}

#[test]
fn tables_may_have_a_mark_windows_line_ends_a_head_and_any_order() {
    let desk = Desk::new();
    let reference = desk.put("ref.tsv", "\u{feff}file\ttext\r\ncall-1.wav\thello there\r\ncall-2.wav\t\r\n");
    let hypothesis = desk.put("hyp.tsv", "call-2.wav\t\n\ncall-1.wav\thello\n");
    let found = lines(&[&reference, &hypothesis]);
    assert_eq!(found[0]["id"], "call-1.wav");
    assert_eq!((found[0]["del"].as_u64(), found[1]["rate"].as_f64()), (Some(1), Some(0.0)));
    assert_eq!((found[2]["calls"].as_u64(), found[2]["rate"].as_f64()), (Some(2), Some(0.5)));
}

#[test]
fn a_line_is_split_at_its_first_tab_and_quotes_mean_nothing() {
    let desk = Desk::new();
    let reference = desk.put("ref.tsv", "a\t\"he said\thello\"\n");
    let hypothesis = desk.put("hyp.tsv", "a\the said hello\n");
    let found = lines(&[&reference, &hypothesis]);
    assert_eq!((found[0]["ref_tokens"].as_u64(), found[0]["errors"].as_u64()), (Some(3), Some(0)));
}

#[test]
fn an_unknown_rate_is_null_and_stays_in_the_pool() {
    let desk = Desk::new();
    let pairs = desk.put(
        "pairs.jsonl",
        "{\"id\":\"silent\",\"ref\":\"\",\"hyp\":\"um\"}\n{\"id\":\"spoken\",\"ref\":\"a b\",\"hyp\":\"a b c d e\"}\n",
    );
    let found = lines(&["--jsonl", &pairs]);
    assert_eq!(
        (&found[0]["rate"], &found[1]["rate"], &found[2]["rate"]),
        (&Value::Null, &1.5.into(), &2.0.into())
    );
    let (text, _) = said(&["--jsonl", &pairs]).unwrap();
    assert!(text.contains("unknown") && text.contains("150.00 %") && text.contains("200.00 %"), "{text}");
    let silent = desk.put("silent.jsonl", "{\"id\":\"silent\",\"ref\":\"\",\"hyp\":\"um\"}\n");
    let found = lines(&["--jsonl", &silent]);
    assert_eq!((&found[1]["rate"], &found[1]["rate_interval"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_traditions_are_printed_by_name() {
    let desk = Desk::new();
    let pairs = desk.put("pairs.jsonl", "{\"id\":\"1\",\"ref\":\"我要 refund\",\"hyp\":\"我要 refand\"}\n");
    let (text, _) = said(&["--jsonl", &pairs]).unwrap();
    let with = |start: &str, end: &str| {
        text.lines().any(|line| line.trim().starts_with(start) && line.contains(end))
    };
    assert!(with("WER (Han characters with words of other scripts)", "1 errors / 3 tokens"), "{text}");
    assert!(with("CER (per character throughout)", "1 errors / 8 tokens"), "{text}");
    assert!(with("of which Han and kana", "0 errors / 2 tokens"), "{text}");
}

#[test]
fn digit_rules_are_named_in_the_answer() {
    let desk = Desk::new();
    let pairs = desk.put("pairs.jsonl", "{\"id\":\"1\",\"ref\":\"电话 138\",\"hyp\":\"电话一 three 八\"}\n");
    assert_eq!(lines(&["--jsonl", &pairs])[1]["errors"], 3);
    let found = lines(&["--jsonl", &pairs, "--normalise", "digits-zh,digits-en"]);
    assert_eq!(found[1]["errors"], 0);
    assert_eq!(found[1]["normalise"], serde_json::json!(["digits-zh", "digits-en"]));
    assert!(said(&["--jsonl", &pairs, "--normalise", "digits-fr"]).unwrap_err().contains("digits-zh"));
}

#[test]
fn a_baseline_gives_the_paired_difference_and_an_alarm() {
    let desk = Desk::new();
    let rows = |text: &str| (0..30).map(|k| format!("call-{k}\t{text}\n")).collect::<String>();
    let reference = desk.put("ref.tsv", rows("one two three four five six seven eight nine ten"));
    let calm = desk.put("calm.tsv", rows("one two three four five six seven eight nine"));
    let loaded = desk.put("loaded.tsv", rows("one two three four five six seven eight"));
    let found = lines(&[&reference, &loaded, "--baseline", &calm]);
    let difference = &found.last().unwrap()["baseline"]["difference"];
    for key in ["value", "low", "high"] {
        assert!((difference[key].as_f64().unwrap() - 0.1).abs() < 1e-12, "{difference}");
    }
    let (text, code) =
        said(&[&reference, &loaded, "--baseline", &calm, "--alarm", "1.0", "--pooled-only"]).unwrap();
    assert!(code == ExitCode::No && text.contains("+10.00 points"), "{text}");
    let (_, code) = said(&[&reference, &loaded, "--baseline", &calm, "--alarm", "10.5"]).unwrap();
    assert_eq!(code, ExitCode::Ok);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let desk = Desk::new();
    let pairs: String = (0..20)
        .map(|k| {
            format!("{{\"id\":\"{k}\",\"ref\":\"a b c d\",\"hyp\":\"{}\"}}\n", &"a b c d"[..1 + k % 4 * 2])
        })
        .collect();
    let pairs = desk.put("pairs.jsonl", pairs);
    let once = said(&["--jsonl", &pairs, "--json"]).unwrap();
    assert_eq!(once, said(&["--jsonl", &pairs, "--json"]).unwrap());
    assert_ne!(once, said(&["--jsonl", &pairs, "--json", "--seed", "2"]).unwrap());
}

#[test]
fn broken_files_are_refused_by_file_line_and_reason() {
    let desk = Desk::new();
    let good = desk.put("good.tsv", "a\tx\nb\ty\n");
    for (name, content, words) in [
        ("twice.tsv", &b"a\tx\nb\ty\na\tz\n"[..], "twice.tsv:3: id \"a\" is already on line 1"),
        ("no-tab.tsv", b"a\tx\nb y\n", "no-tab.tsv:2: no tab"),
        ("no-id.tsv", b"a\tx\n\ty\n", "no-id.tsv:2: no id"),
        ("empty.tsv", b"\xef\xbb\xbfid\ttext\n\n", "empty.tsv: no calls in it"),
        ("latin.tsv", b"a\tx\nb\t\xe9\n", "latin.tsv:2: not UTF-8"),
        ("wide.tsv", b"\xff\xfea\0\t\0", "wide.tsv: UTF-16"),
        ("fewer.tsv", b"a\tx\n", "1 of its ids are not in"),
        ("more.tsv", b"a\tx\nb\ty\nc\tz\n", "more.tsv: 1 of its ids are not in"),
    ] {
        let bad = desk.put(name, content);
        let refusal = said(&[&good, &bad]).unwrap_err();
        assert!(refusal.contains(words), "{name}: {refusal}");
    }
    for (content, words) in [
        ("{\"id\":\"a\",\"ref\":\"x\",\"hyp\":\"y\"}\n{\"id\":\"b\"", "pairs.jsonl:2: "),
        ("{\"id\":\"a\",\"ref\":\"x\"}", "pairs.jsonl:1: missing field `hyp`"),
        ("{\"id\":\"a\",\"ref\":\"x\",\"hyp\":null}", "pairs.jsonl:1: invalid type: null"),
        ("[1, 2]", "pairs.jsonl:1: "),
        (
            "{\"id\":\"a\",\"ref\":\"\",\"hyp\":\"\"}\n{\"id\":\"a\",\"ref\":\"\",\"hyp\":\"\"}",
            "pairs.jsonl:2: id \"a\"",
        ),
        ("\n\n", "pairs.jsonl: no calls in it"),
    ] {
        let refusal = said(&["--jsonl", &desk.put("pairs.jsonl", content)]).unwrap_err();
        assert!(refusal.contains(words), "{content}: {refusal}");
    }
    assert!(said(&[&good, "/nowhere/at/all.tsv"]).unwrap_err().starts_with("/nowhere/at/all.tsv: "));
    assert!(said(&[&good, &good, "--level", "1.5"]).unwrap_err().contains("level between 0 and 1"));
    assert!(said(&[&good]).unwrap_err().contains("HYP.tsv"));
}

#[test]
fn missing_hypotheses_can_be_counted_as_deleted() {
    let desk = Desk::new();
    let reference = desk.put("ref.tsv", "a\tone two\nb\tthree\n");
    let hypothesis = desk.put("hyp.tsv", "b\tthree\n");
    assert!(said(&[&reference, &hypothesis]).unwrap_err().contains("--missing-as-deleted"));
    assert_eq!(lines(&[&reference, &hypothesis, "--missing-as-deleted"])[2]["del"], 2);
}

#[test]
fn the_program_itself_answers_with_its_exit_code() {
    let desk = Desk::new();
    let bad = desk.put("bad.jsonl", "nonsense\n");
    let run =
        assert_cmd::Command::new(env!("CARGO_BIN_EXE_tape-wer")).args(["--jsonl", &bad]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("bad.jsonl:1: "));
}

#[test]
fn the_page_shows_real_answers() {
    assert!(crate::pages::ask_again("docs/wer.md", "tape-wer", env!("CARGO_BIN_EXE_tape-wer")) >= 2);
}
