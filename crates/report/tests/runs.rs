//! Runs as they are, and as they should not be: partial, edited, foreign, hostile.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tapedeck_record::{
    CallMeta, CallRecord, Evidence, FinalKind, Interval, Message, MessageKind, Metric, Outcome,
    OutcomeDetail, Sample, SampleBody, Scrape, SpeechMap, StepId, Trace,
};
use tapedeck_report::compare::{Direction, compare};
use tapedeck_report::data::Tables;
use tapedeck_report::diagnose::diagnose;
use tapedeck_report::latency_breakdown::Part;
use tapedeck_report::merge::{MergeError, merge};
use tapedeck_report::{Answer, Lang, ReadError, Reading, Run, Severity, text, write_html};
use tapedeck_rundir::{Event, RunDir, RunInfo};
use tapedeck_score::{Rules, Words, score};
use tapedeck_slo::{Expected, InstanceFacts, Limits, StepBounds, TierEvidence, capacity, judge};

const SECOND: u64 = 1_000_000_000;

/// How a made-up run differs from the usual one.
#[derive(Clone)]
struct Made {
    id: &'static str,
    simulated: bool,
    /// Milliseconds that an answer takes per stream.
    slow_ms: u64,
    tape_md5: &'static str,
    server_words: Option<&'static str>,
    extra_config: &'static str,
}

const USUAL: Made =
    Made { id: "made", simulated: true, slow_ms: 20, tape_md5: "abc", server_words: None, extra_config: "" };

fn meta(index: u32) -> CallMeta {
    CallMeta {
        index,
        id: format!("call{index}.wav"),
        duration_ms: 10_000,
        bucket_s: 10,
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(vec![Interval { start_ms: 500, end_ms: 9_500 }]),
    }
}

/// A call of ten seconds whose windows of two seconds are each answered after `late_ns`.
fn trace(stream: u32, seq: u32, late_ns: u64) -> Trace {
    let c1_ns = u64::from(seq) * 12 * SECOND;
    let message = |window: u64| Message {
        at_ns: c1_ns + (window + 1) * 2 * SECOND + late_ns,
        kind: if window == 4 { MessageKind::End } else { MessageKind::Partial },
        bytes: 40,
        chars: 10,
        revised: 0,
        position_ms: u32::try_from((window + 1) * 2000).ok(),
        window: None,
    };
    let final_ns = c1_ns + 10 * SECOND + late_ns;
    Trace {
        stream,
        seq,
        call: seq % 3,
        tape: None,
        counted: true,
        c0_ns: c1_ns,
        c1_ns: Some(c1_ns),
        chunk_ns: SECOND / 10,
        audio_ns: 10 * SECOND,
        tail_silence_ns: 0,
        wake_late_us: vec![100; 100],
        blocked_us: vec![0; 100],
        end_ns: Some(c1_ns + 10 * SECOND),
        messages: (0..5).map(message).collect(),
        final_ns: Some(final_ns),
        final_kind: Some(FinalKind::Marker),
        kept_from_ns: None,
        done_ns: final_ns,
        rtt_us: vec![200],
        instance: Some("inst1".into()),
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Ok),
    }
}

fn sample(at_s: f64, kv_pool: f64) -> Sample {
    let values =
        [(Metric::KvPool, kv_pool), (Metric::Preemptions, 0.0), (Metric::WaitingCapacity, 1.0)].into();
    Sample {
        at_s,
        source: "inst1".into(),
        body: SampleBody::Engine(Scrape { values, histograms: BTreeMap::new() }),
    }
}

/// Writes a run as a case would: two tiers, of which the second is too slow.
fn make(root: &Path, made: &Made) -> PathBuf {
    let limits = Limits { bootstrap_resamples: 50, ..Limits::default() };
    let config = format!(
        "[server]\nwindow_ms = 2000\n\n[slo]\nttft_basis = \"window\"\nbootstrap_resamples = 50\n{}",
        made.extra_config
    );
    let limits = Limits { ttft_basis: tapedeck_slo::TtftBasis::Window, ..limits };
    let info = RunInfo {
        schema: Default::default(),
        run_id: made.id.into(),
        case: "tc03".into(),
        simulated: made.simulated,
        seed: 1,
        origin_unix_s: (!made.simulated).then_some(1_770_000_000.0),
        tapes: [("tape-a".to_string(), made.tape_md5.to_string())].into(),
    };
    let mut dir = RunDir::create(root, &info, &config).unwrap();
    let rules = Rules::new(Evidence::Position, Some(2000));
    let mut reports = Vec::new();
    for streams in [3_u32, 60] {
        let step = format!("N{streams:03}");
        let mut writer = dir.begin(&StepId::parse(&step)).unwrap();
        let mut calls: Vec<CallRecord> = Vec::new();
        for stream in 0..streams {
            for seq in 0..(180 / streams) {
                let mut trace = trace(stream, seq, u64::from(streams) * made.slow_ms * 1_000_000);
                if let Some(words) = made.server_words.filter(|_| stream == 0 && seq == 1 && streams == 60) {
                    trace.outcome = OutcomeDetail::said(Outcome::ServerError, None, words);
                    trace.instance = Some(words.into());
                }
                let call = score(&trace, &meta(trace.call), &rules, &Words::default());
                writer.call(&call, &trace).unwrap();
                calls.push(call);
            }
        }
        let samples: Vec<Sample> =
            (0..60).map(|i| sample(f64::from(i), f64::from(streams) / 100.0)).collect();
        for sample in &samples {
            writer.sample(sample).unwrap();
        }
        let instances = [InstanceFacts {
            name: "inst1".into(),
            expected: Expected { prefix_cache: false, mm_cache: false, ..Expected::ALL },
            prefix_cache: Default::default(),
            mm_cache: Default::default(),
        }];
        let bounds = StepBounds { ramp_from_s: 0.0, window_from_s: 0.0, window_to_s: 60.0, drain_to_s: 60.0 };
        let evidence = TierEvidence {
            calls_expected: Some(180),
            samples: &samples,
            instances: &instances,
            window_ms: Some(2000),
            wake_late_p99_ms: Some(1.2),
            client_drift_ppm: Some(2.5),
            client_cpu_share: Some(0.1),
            drain_s: Some(2.0),
            drained: Some(true),
            simulated: made.simulated,
            ..TierEvidence::new(streams, "tape-a", &calls, bounds)
        };
        let report = judge(&evidence, &limits);
        dir.event(&Event { at_s: 60.0, step: Some(step), what: "drained".into(), detail: None }).unwrap();
        dir.commit(writer, report.clone(), evidence.kept(), false).unwrap();
        reports.push(report);
    }
    let capacity = serde_json::to_vec(&capacity(&reports, &limits)).unwrap();
    dir.write_file("capacity.json", &capacity).unwrap();
    dir.write_file("environment.toml", b"tapedeck = \"0.1.0\"\n\n[server]\nevidence = \"position\"\n")
        .unwrap();
    dir.path().to_path_buf()
}

fn n_star(run: &Run) -> Option<u32> {
    Answer::of(run).short.and_then(|c| c.n_star)
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// What stands in the section of the capacity statement.
fn statement_of(html: &str) -> &str {
    let from = html.find("id=\"statement\"").unwrap();
    let rest = &html[from..];
    &rest[..rest.find("</section>").unwrap()]
}

#[test]
fn the_page_says_what_may_be_promised_in_both_languages() {
    let tmp = tempfile::tempdir().unwrap();
    let promise = "\n[sizing]\ntopology = \"1x0.92\"\n\n[sizing.promise]\nblocking = 0.05\nmean_s = 180.0\ncalls_per_hour = 5.0\n";
    let path = make(tmp.path(), &Made { extra_config: promise, ..USUAL });
    fs::write(path.join("offline.json"), r#"[{"streams": 60, "audio_s_per_s": 81.9, "rtf_p50": 0.5, "rtf_p95": 0.7, "calls": 540, "errors": 0}]"#).unwrap();
    let mut run = Run::read(&path).unwrap();
    assert_eq!(run.warnings, []);
    let answer = Answer::of(&run);
    let statement = answer.statement.clone().unwrap().unwrap();
    // N* is 3, and 0.7 x 3 leaves two lines; five calls an hour of three minutes are a quarter of an Erlang.
    let own = &statement.carried[1];
    assert_eq!((own.lines, own.demand_erl, own.lines_needed), (2, Some(0.25), Some(2)));
    assert_eq!(statement.enough, Some(true));
    let en = write_html(&run, &answer, Lang::En, false);
    for words in [
        "N* is 3 on tape-a; instances: 1 (1x0.92).",
        "2 lines (0.7 x N* of 3, rounded down)",
        "at most 5 % of calls find no free line",
        "there are enough",
        "What is uncertain",
        "at 81 streams (the hard ceiling)",
        "simulated, no promise about real servers",
    ] {
        assert!(statement_of(&en).contains(words), "{words} is not in {}", statement_of(&en));
    }
    let zh = write_html(&run, &answer, Lang::Zh, false);
    for words in ["容量声明", "2 条线路", "至多 5 % 的来电找不到空闲线路", "够用", "不确定之处"]
    {
        assert!(statement_of(&zh).contains(words), "{words} is not in {}", statement_of(&zh));
    }
    // A histogram that is not there withholds the statement, and the page says which.
    run.promise = run.promise.with(&tapedeck_sizing::PromisePlan {
        histogram: Some("/nowhere/calls.csv".into()),
        ..Default::default()
    });
    let answer = Answer::of(&run);
    assert!(answer.statement.as_ref().unwrap().is_err());
    assert!(statement_of(&write_html(&run, &answer, Lang::En, false)).contains("/nowhere/calls.csv"));
}

#[test]
fn a_promise_that_cannot_be_read_is_a_doubt() {
    let tmp = tempfile::tempdir().unwrap();
    let made = Made { extra_config: "\n[sizing.promise]\nbloking = 0.05\n", ..USUAL };
    let run = Run::read(&make(tmp.path(), &made)).unwrap();
    assert!(run.warnings.iter().any(|d| d.said.en.contains("sizing.promise")), "{:?}", run.warnings);
    assert_eq!(run.promise, Default::default());
}

#[test]
fn a_whole_run_is_read_without_doubt_and_says_its_answer_in_both_languages() {
    let tmp = tempfile::tempdir().unwrap();
    let run = Run::read(&make(tmp.path(), &USUAL)).unwrap();
    assert_eq!(run.warnings, []);
    assert_eq!(n_star(&run), Some(3));
    assert!(run.steps.iter().all(|s| s.calls_agree));
    let answer = Answer::of(&run);
    for lang in Lang::ALL {
        insta::assert_snapshot!(
            format!("answer-{}", lang.tag()),
            text::answer(&run, &answer, lang).join("\n")
        );
        insta::assert_snapshot!(
            format!("diagnosis-{}", lang.tag()),
            text::diagnosis(&run, &diagnose(&run), lang).join("\n")
        );
    }
    let [en, zh] = Lang::ALL.map(|lang| write_html(&run, &answer, lang, false));
    for tag in ["<section", "<svg", "<table", "<tr", "<figure", "<dt", "<li"] {
        assert_eq!(en.matches(tag).count(), zh.matches(tag).count(), "{tag} differs between the languages");
    }
    assert!(en.contains("lang=\"en\"") && zh.contains("lang=\"zh\""));
    for page in [&en, &zh] {
        assert!(
            !page.contains("<script") && !page.contains("http://") || page.contains("www.w3.org"),
            "no network"
        );
        assert!(!page.contains("src=\"http"));
        assert!(page.contains("client_drift_ppm") && page.contains("2.5 (N0"), "our own drift, and where");
    }
}

#[test]
fn the_part_that_grew_is_named() {
    let tmp = tempfile::tempdir().unwrap();
    let run = Run::read(&make(tmp.path(), &USUAL)).unwrap();
    let all = diagnose(&run);
    assert_eq!(all.len(), 1);
    // The window is the same at both tiers: only what comes after it grew.
    assert!(matches!(all[0].grew, Some(Part::Tail | Part::Inference)), "{:?}", all[0].parts);
    let window = all[0].parts.iter().find(|p| p.part == Part::Window).unwrap();
    assert!(window.grown_s().unwrap().abs() < 1e-9);
}

#[test]
fn fragments_of_html_in_a_servers_words_do_not_run() {
    let tmp = tempfile::tempdir().unwrap();
    let words = "<img src=x onerror=alert(1)></td>";
    let run = Run::read(&make(tmp.path(), &Made { server_words: Some(words), ..USUAL })).unwrap();
    // The call with those words is read like any other.
    assert!(run.steps.iter().all(|s| s.calls_agree), "{:?}", run.warnings);
    let said = run.steps[1].calls.iter().find_map(|c| c.outcome.words.clone());
    assert_eq!(said.as_deref(), Some(words));
    let page = write_html(&run, &Answer::of(&run), Lang::En, true);
    assert!(!page.contains("<img"), "a server's words became a tag");
}

#[test]
fn transcripts_are_shown_only_when_asked_for_and_escaped() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    let line =
        r#"{"step":"N003","stream":0,"seq":0,"call":0,"finals":"","finals_and_tail":"secret <b>words</b>"}"#;
    fs::write(path.join("texts-N003.jsonl"), line).unwrap();
    let run = Run::read(&path).unwrap();
    let answer = Answer::of(&run);
    assert!(!write_html(&run, &answer, Lang::En, false).contains("secret"));
    let page = write_html(&run, &answer, Lang::En, true);
    assert!(page.contains("secret &lt;b&gt;words"), "the text is there and harmless");
}

#[test]
fn edited_figures_and_verdicts_withhold_the_answer() {
    let edits: [(&str, &str, &str); 4] = [
        ("steps.jsonl", "\"verdict\":\"fail\"", "\"verdict\":\"pass\""),
        ("steps.jsonl", "\"p95\":{\"value\":0.06,", "\"p95\":{\"value\":0.05,"),
        ("run.toml", "bootstrap_resamples = 50", "bootstrap_resamples = 50\nrtf_p95 = 0.9"),
        ("steps.jsonl", "{\"step\":\"N003\",", "{\"step\":7,"),
    ];
    for (file, from, to) in edits {
        let tmp = tempfile::tempdir().unwrap();
        let path = make(tmp.path(), &USUAL);
        edit(&path.join(file), from, to);
        let run = Run::read(&path).unwrap();
        assert!(run.warnings.iter().any(|d| d.severity == Severity::Withhold), "{file}: {to} was believed");
        assert_eq!(n_star(&run), None, "{file}: {to}");
        let page = write_html(&run, &Answer::of(&run), Lang::En, false);
        assert!(page.contains("N* is not stated, because:"));
    }
}

#[test]
fn edited_tables_are_said_and_not_believed() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    edit(&path.join("ladder.csv"), "\n60,", "\n90,");
    edit(&path.join("capacity.json"), "\"n_star\":3", "\"n_star\":60");
    let run = Run::read(&path).unwrap();
    assert_eq!(run.warnings.len(), 2, "{:?}", run.warnings);
    assert_eq!(n_star(&run), Some(3));
}

#[test]
fn what_is_missing_is_said_and_the_rest_is_shown() {
    for file in ["calls.jsonl", "series.jsonl", "events.jsonl", "environment.toml", "run.toml", "run.json"] {
        let tmp = tempfile::tempdir().unwrap();
        let path = make(tmp.path(), &USUAL);
        fs::remove_file(path.join(file)).unwrap();
        let run = Run::read(&path).unwrap();
        assert!(run.warnings.iter().any(|d| d.said.en.starts_with(file)), "{file} was not missed");
        // Without the config, the case's own file says N*, as long as the tiers agree with it.
        assert_eq!(n_star(&run), Some(3), "without {file}");
        assert!(write_html(&run, &Answer::of(&run), Lang::Zh, false).contains("<table"));
    }
}

#[test]
fn a_killed_run_is_read_up_to_its_last_commit() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    let journal = fs::read_to_string(path.join("steps.jsonl")).unwrap();
    let first = journal.lines().next().unwrap();
    fs::write(path.join("steps.jsonl"), format!("{first}\n{{\"step\":\"N0")).unwrap();
    fs::remove_file(path.join("capacity.json")).unwrap();
    let run = Run::read(&path).unwrap();
    assert_eq!(run.steps.len(), 1);
    let answer = Answer::of(&run);
    assert_eq!(answer.short.unwrap().display(), ">= 3, censored");
    assert!(run.warnings.iter().any(|d| d.said.en.contains("half a line")));
    assert!(run.warnings.iter().any(|d| d.said.en.contains("after the last commit")));
}

#[test]
fn foreign_folders_and_garbage_never_panic_and_never_give_a_number() {
    let tmp = tempfile::tempdir().unwrap();
    assert!(matches!(Run::read(tmp.path()), Err(ReadError::NoRun { .. })));
    assert!(matches!(Run::read(&tmp.path().join("none")), Err(ReadError::NoFolder { .. })));
    for name in ["run.json", "run.toml", "environment.toml", "capacity.json", "tc05.json", "tc06.json"] {
        fs::write(tmp.path().join(name), b"\xff\x00 {not this").unwrap();
    }
    for name in ["steps.jsonl", "calls.jsonl", "series.jsonl", "events.jsonl"] {
        fs::write(tmp.path().join(name), b"{\"a\":1}\n\xff\xfe\n[]\n").unwrap();
    }
    fs::write(tmp.path().join("ladder.csv"), "N,<script>alert(1)</script>\n3,4\n").unwrap();
    let run = Run::read(tmp.path()).unwrap();
    assert_eq!(n_star(&run), None);
    for lang in Lang::ALL {
        let page = write_html(&run, &Answer::of(&run), lang, true);
        assert!(
            !page.contains("<script") && page.contains("&lt;script&gt;"),
            "the foreign table is shown, harmless"
        );
    }
}

#[test]
fn answers_of_other_shapes_are_said_and_never_read() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    for name in ["tc01", "tc02", "tc03b", "tc04", "tc05", "tc06", "tc07", "tc08"] {
        let odd = r#"{"decision": 7, "soak": [], "incidents": {"a": 1}, "table": [1, {"figure": "<i>x"}], "capacity": "?"}"#;
        fs::write(path.join(format!("{name}.json")), odd).unwrap();
    }
    let run = Run::read(&path).unwrap();
    for name in ["tc01", "tc02", "tc03b", "tc04", "tc05", "tc06", "tc07", "tc08"] {
        let said = |d: &&tapedeck_report::IntegrityWarning| d.said.en.contains(&format!("{name}.json"));
        assert_eq!(run.warnings.iter().filter(said).count(), 1, "{name}: {:?}", run.warnings);
    }
    let page = write_html(&run, &Answer::of(&run), Lang::En, false);
    assert!(!page.contains("<section id=\"tc05\"") && !page.contains("<i>x"));
}

/// Puts the answers of a rehearsed campaign beside a run.
fn add_answers(run: &Path) {
    let answers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    for entry in fs::read_dir(answers).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), run.join(entry.file_name())).unwrap();
    }
}

/// What a reader of the page gets to see: text between tags and hover texts, without names, settings and foreign words.
fn visible(page: &str) -> Vec<String> {
    let body = &page[page.find("<body").unwrap()..];
    let hidden = [
        ("<code>", "</code>"),
        ("<table class=\"pairs names\">", "</table>"),
        ("<td class=\"foreign", "</td>"),
        ("<td class=\"reason foreign", "</td>"),
    ];
    let mut text = body.to_string();
    for (from, to) in hidden {
        while let Some(at) = text.find(from) {
            let end = at + text[at..].find(to).unwrap() + to.len();
            text.replace_range(at..end, " ");
        }
    }
    let between = text.split('<').filter_map(|part| part.split_once('>')).map(|(_, t)| t.to_string());
    let hovers =
        text.split(" title=\"").skip(1).filter_map(|part| part.split_once('"')).map(|(t, _)| t.to_string());
    between.chain(hovers).map(|t| t.trim().to_string()).filter(|t| !t.is_empty()).collect()
}

/// Four English words in a row.
fn is_english_sentence(text: &str) -> bool {
    let mut row = 0;
    text.split(' ').any(|word| {
        let bare = word.trim_end_matches([',', ':', ';', '.']);
        let is_word = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphabetic() || c == '\'');
        row = if is_word { row + 1 } else { 0 };
        row >= 4
    })
}

#[test]
fn no_english_sentence_is_left_in_the_chinese_page() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    add_answers(&path);
    let run = Run::read(&path).unwrap();
    assert_eq!(run.warnings, []);
    let answer = Answer::of(&run);
    let page = write_html(&run, &answer, Lang::Zh, false);
    let english: Vec<String> = visible(&page).into_iter().filter(|t| is_english_sentence(t)).collect();
    assert_eq!(english, Vec::<String>::new());
    // The same look at the English page finds plenty, so it can find something.
    let page = write_html(&run, &answer, Lang::En, false);
    assert!(visible(&page).iter().filter(|t| is_english_sentence(t)).count() > 100);
}

#[test]
fn every_case_of_a_campaign_has_its_section_and_the_books_come_first() {
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    add_answers(&path);
    let run = Run::read(&path).unwrap();
    let answer = Answer::of(&run);
    for lang in Lang::ALL {
        let page = write_html(&run, &answer, lang, false);
        let at = |id: &str| {
            page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no section {id}"))
        };
        for id in ["tc01", "tc02", "tc03b", "tc04", "tc05", "tc06", "tc07", "tc08"] {
            assert!(at("campaign") < at(id));
            assert!(page.contains(&format!("href=\"#{id}\"")), "no way to {id}");
        }
        assert!(at("answer") < at("campaign") && at("campaign") < at("ladder"));
        assert!(!page.contains("<section id=\"missing\""));
    }
    let page = write_html(&run, &answer, Lang::En, false);
    insta::assert_snapshot!(
        "campaign-page",
        visible(&page[..page.find("<section id=\"ladder\"").unwrap()]).join("\n")
    );
}

#[test]
fn fragments_of_html_in_names_do_not_run_in_pages_or_plots() {
    let fragment = "<img src=x onerror=alert(1)>";
    let tmp = tempfile::tempdir().unwrap();
    let path = make(tmp.path(), &USUAL);
    add_answers(&path);
    edit(&path.join("run.json"), "\"made\"", &format!("\"{fragment}\""));
    edit(
        &path.join("environment.toml"),
        "\"position\"",
        &format!("\"{fragment}\"\n\"{fragment}\" = \"{fragment}\""),
    );
    edit(&path.join("run.toml"), "[slo]", &format!("[other]\n\"{fragment}\" = \"{fragment}\"\n\n[slo]"));
    edit(&path.join("events.jsonl"), "\"drained\"", &format!("\"{fragment}\",\"detail\":\"{fragment}\""));
    edit(&path.join("tc06.json"), "\"inst2\"", &format!("\"{fragment}\""));
    edit(&path.join("tc07.json"), "\"3x0.30\"", &format!("\"{fragment}\""));
    // A plain sentence, as earlier versions wrote it.
    let sentence = r#"{"kind":"single_stream","text":"a single stream meets every limit"}"#;
    edit(&path.join("campaign.json"), sentence, &format!("\"{fragment}\""));
    for name in ["series.jsonl", "tc05.json"] {
        let text = fs::read_to_string(path.join(name)).unwrap();
        fs::write(path.join(name), text.replace("inst1", fragment).replace("GPU-simulated", fragment))
            .unwrap();
    }
    let run = Run::read(&path).unwrap();
    let answer = Answer::of(&run);
    for lang in Lang::ALL {
        let page = write_html(&run, &answer, lang, true);
        assert!(!page.contains("<img") && page.matches("&lt;img").count() > 10, "a name became a tag");
        let wanted = tapedeck_report::Wanted { lang, plots: true, ..Default::default() };
        let written = tapedeck_report::write_report(&run, &answer, wanted, &tmp.path().join("out")).unwrap();
        for plot in written.plots.iter().filter(|p| p.extension().is_some_and(|e| e == "svg")) {
            assert!(!fs::read_to_string(plot).unwrap().contains("<img"), "{}", plot.display());
        }
    }
}

#[test]
fn other_versions_are_read_as_far_as_they_can_be_and_no_number_is_guessed() {
    let tmp = tempfile::tempdir().unwrap();
    // A later version tells more than we understand.
    let later = make(tmp.path(), &USUAL);
    for (file, from) in [("run.json", "{"), ("steps.jsonl", "{"), ("events.jsonl", "{")] {
        edit(&later.join(file), from, "{\"of_a_later_version\":{\"a\":[1]},");
    }
    let run = Run::read(&later).unwrap();
    assert_eq!((n_star(&run), run.steps.len()), (Some(3), 2), "{:?}", run.warnings);
    // An earlier one did not know a field that a verdict rests on.
    let earlier = make(tmp.path(), &Made { id: "earlier", ..USUAL });
    edit(&earlier.join("steps.jsonl"), "\"point_only\":", "\"point_was\":");
    let run = Run::read(&earlier).unwrap();
    assert_eq!((n_star(&run), run.steps_unread), (None, 1));
    let page = write_html(&run, &Answer::of(&run), Lang::En, false);
    assert!(page.contains("Line 1 of steps.jsonl cannot be read"));
}

#[test]
fn a_table_beside_nvidias_is_made_from_the_traces() {
    let tmp = tempfile::tempdir().unwrap();
    let run = Run::read(&make(tmp.path(), &USUAL)).unwrap();
    let rows = tapedeck_report::riva::riva(&run).unwrap();
    insta::assert_snapshot!("riva", tapedeck_report::riva::table(&rows, run.simulated()));
}

#[test]
fn runs_are_compared_and_blame_is_refused_when_more_than_one_setting_changed() {
    let tmp = tempfile::tempdir().unwrap();
    let before = Run::read(&make(tmp.path(), &USUAL)).unwrap();
    let read = |made: Made| Run::read(&make(tmp.path(), &made)).unwrap();
    let same = compare(&before, &read(Made { id: "same", ..USUAL }));
    assert_eq!(same.exit_code() as u8, 0);
    let one =
        compare(&before, &read(Made { id: "one", slow_ms: 40, extra_config: "\n[a]\nx = 1\n", ..USUAL }));
    assert_eq!(one.exit_code() as u8, 1);
    assert!(one.differences.iter().any(|d| d.direction == Direction::Worse));
    insta::assert_snapshot!("compare-one", text::comparison(&one, Lang::En).join("\n"));
    let two = compare(
        &before,
        &read(Made { id: "two", slow_ms: 40, extra_config: "\n[a]\nx = 1\ny = 2\n", ..USUAL }),
    );
    assert!(two.attribution.en.starts_with("2 settings differ: the difference cannot be put down"));
    let better = compare(&before, &read(Made { id: "better", slow_ms: 10, ..USUAL }));
    assert_eq!(better.exit_code() as u8, 0);
    for made in [
        Made { id: "real", simulated: false, ..USUAL },
        Made { id: "tape", tape_md5: "other", ..USUAL },
        Made { id: "slo", extra_config: "final_p95_s = 3.0\n", ..USUAL },
    ] {
        let refused = compare(&before, &read(made));
        assert_eq!(refused.exit_code() as u8, 4);
        assert!(!refused.refused.is_empty() && refused.differences.is_empty());
    }
}

#[test]
fn rows_of_two_days_merge_and_what_must_not_be_mixed_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let monday = Run::read(&make(tmp.path(), &USUAL)).unwrap();
    let tuesday = Run::read(&make(tmp.path(), &Made { id: "tuesday", ..USUAL })).unwrap();
    let out = tmp.path().join("both");
    let merged = merge(&[monday, tuesday], &out).unwrap();
    assert_eq!((merged.tiers, merged.changes.len()), (4, 0));
    let both = Run::read(&out).unwrap();
    assert_eq!((both.ladder().len(), n_star(&both)), (4, Some(3)));
    assert_eq!(
        both.warnings.iter().map(|d| d.said.en.as_str()).collect::<Vec<_>>(),
        ["Not measured in one go: merged from made, tuesday."]
    );
    assert!(both.steps.iter().all(|s| s.calls_agree && s.series.samples == 60));
    for made in [
        Made { id: "real", simulated: false, ..USUAL },
        Made { id: "tape", tape_md5: "other", ..USUAL },
        Made { id: "slo", extra_config: "final_p95_s = 3.0\n", ..USUAL },
    ] {
        let other = Run::read(&make(tmp.path(), &made)).unwrap();
        let first = Run::read(&make(tmp.path(), &USUAL)).unwrap();
        assert!(matches!(merge(&[first, other], &tmp.path().join("no")), Err(MergeError::Refused { .. })));
    }
    assert!(!tmp.path().join("no").exists());
}

#[test]
fn tables_hold_every_call_once() {
    let tmp = tempfile::tempdir().unwrap();
    let tables = Tables::create(&tmp.path().join("data")).unwrap();
    let run = Run::read_with(&make(tmp.path(), &USUAL), Some(&tables), Reading::default()).unwrap();
    let files = tables.finish(&run).unwrap();
    let calls = fs::read_to_string(&files[0]).unwrap();
    assert_eq!(calls.lines().count(), 1 + 180 + 180);
    let width = calls.lines().next().unwrap().split(',').count();
    assert!(calls.lines().all(|l| l.split(',').count() == width));
}
