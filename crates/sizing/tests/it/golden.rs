//! The tables of the load-test plan, figure by figure.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use tapedeck_l10n::Localize;
use tapedeck_sizing::kv::{TAPE_A_S, TAPE_B_S, call, tape};
use tapedeck_sizing::units::{GB, plan_mb};
use tapedeck_sizing::{Architecture, Card, Dtype, Need, Session, SizingError, Topology, how_many, supply};

const TOKEN: u64 = 114_688;

fn near(value: f64, wanted: f64, within: f64) {
    assert!((value - wanted).abs() <= within, "{value} is not {wanted}");
}

#[test]
fn a_token_of_the_0_6b_model_costs_112_kib() {
    let architecture = Architecture::qwen3_asr_0_6b();
    assert_eq!(architecture.kv_bytes_per_token().unwrap(), TOKEN);
    assert_eq!(TOKEN, 112 * 1024);
}

#[test]
fn a_call_s_peak_in_the_plan_s_units_and_in_true_bytes() {
    // Length, the plan's "MB" (112 KiB a token / 1000), true MB.
    for (call_s, plan, mb) in [
        (30.0, 62.16, 63.65),
        (60.0, 120.96, 123.86),
        (180.0, 356.16, 364.71),
        (300.0, 591.36, 605.55),
        (600.0, 1_179.36, 1_207.66),
    ] {
        let kv = call(&Session::plan(), TOKEN, call_s).unwrap();
        near(plan_mb(kv.peak_bytes), plan, 0.005);
        near(kv.peak_bytes / 1e6, mb, 0.006);
        // It grows evenly from the template to the peak.
        near(kv.mean_bytes, f64::midpoint(30.0 * 114_688.0, kv.peak_bytes), 1.0);
    }
    let ten_minutes = call(&Session::plan(), TOKEN, 600.0).unwrap();
    near(ten_minutes.tokens.peak, 10_530.0, 1e-9);
}

#[test]
fn a_tape_s_mean_of_peaks_is_an_upper_bound_of_its_mean() {
    let (a, b) = (
        tape(&Session::plan(), TOKEN, &TAPE_A_S).unwrap(),
        tape(&Session::plan(), TOKEN, &TAPE_B_S).unwrap(),
    );
    assert_eq!((a.calls, b.calls), (9, 6));
    near(a.audio_s, 480.0, 1e-9);
    near(b.audio_s, 660.0, 1e-9);
    near(plan_mb(a.mean_of_peaks_bytes), 187.0, 0.5);
    // The plan rounds every share and says 393.
    near(plan_mb(b.mean_of_peaks_bytes), 393.0, 0.7);
    for tape in [&a, &b] {
        let half = tape.mean_bytes / tape.mean_of_peaks_bytes;
        assert!((0.5..0.53).contains(&half), "about half: {half}");
    }
    near(plan_mb(a.mean_bytes), 95.2, 0.1);
    near(plan_mb(b.mean_bytes), 198.5, 0.1);
}

#[test]
fn the_supply_table_of_a_48_gb_card() {
    let card = Card::a40_qwen3_asr_0_6b();
    let peak = |s| call(&Session::plan(), TOKEN, s).unwrap().peak_bytes;
    // Instances, pool of one, calls of 5 and of 10 minutes as the plan counts, calls of 5 minutes in true bytes.
    for (n, pool, five, ten, true_five) in
        [(1, 40.36, 68, 34, 66), (2, 18.28, 30, 15, 30), (3, 10.92, 18, 9, 18), (4, 7.24, 12, 6, 11)]
    {
        let topology = Topology::split(0.92, n);
        let row = supply(&card, topology, peak(300.0)).unwrap();
        near(row.pool_gb.unwrap(), pool, 1e-9);
        near(row.pool_all_gb.unwrap(), pool * f64::from(n), 1e-9);
        assert_eq!((row.calls_each_plan, row.calls_each), (five, true_five), "{n} instances");
        assert_eq!(supply(&card, topology, peak(600.0)).unwrap().calls_each_plan, ten, "{n} instances");
    }
    // The plan's own start command rounds the share down to 0.30.
    let plan: Topology = "3x0.30".parse().unwrap();
    near(plan.pool_gb(&card).unwrap(), 10.6, 1e-9);
    let all = supply(&card, Topology::split(0.92, 3), peak(300.0)).unwrap().pool_all_gb.unwrap();
    near(all, 33.0, 0.3);
}

#[test]
fn three_answers_to_how_many_instances() {
    let card = Card::a40_qwen3_asr_0_6b();
    let call_bytes = call(&Session::plan(), TOKEN, 300.0).unwrap().peak_bytes;
    let ask = |calls, latency_calls| {
        how_many(&card, &Need { calls, call_bytes, share: 0.92, latency_calls }).unwrap()
    };
    let answer = ask(45, Some(15.0));
    // 0.92 x 48 / 3.8 = 11.6; four instances hold 44 calls of five minutes; three carry 45 in time.
    assert_eq!((answer.by_memory, answer.by_kv, answer.by_latency), (11, Some((1, 3)), Some(3)));
    assert_eq!(answer.all, Some((3, 3)));
    assert_eq!(ask(60, Some(15.0)).all, None, "memory wants few, latency many");
    assert_eq!(ask(60, None).by_latency, None);
    assert_eq!(ask(60, None).all, None, "nobody knows the third");
    assert_eq!(ask(70, None).by_kv, None);
    let small = Card { memory_gb: 4.0, ..card };
    let none = how_many(&small, &Need { calls: 1, call_bytes, share: 0.92, latency_calls: None }).unwrap();
    assert_eq!((none.by_memory, none.by_kv), (0, None));
}

#[test]
fn a_resident_realtime_session_takes_steps_and_has_an_end() {
    let session = Session::vllm_realtime();
    // Two windows of 65 + 10 + 25 tokens and half of one.
    let tokens = session.tokens(12.5).unwrap();
    near(tokens.peak, 2.0 * 100.0 + 2.5 * 13.0 + 10.0 + 12.5, 1e-9);
    near(tokens.most, 2.0 * 139.0 + 2.5 * 13.0 + 10.0 + 64.0, 1e-9);
    // Nothing for 5 s, 100 tokens for 5 s, 200 for 2.5 s.
    near(tokens.mean, (5.0 * 100.0 + 2.5 * 200.0) / 12.5, 1e-9);
    for (length, minutes) in [(65_536, 39.3), (24_000, 14.4), (4_096, 2.456)] {
        let bound = session.longest_s(length).unwrap();
        near(bound.safe_s / 60.0, minutes, 0.05);
        assert!(bound.expected_s > bound.safe_s);
    }
}

#[test]
fn a_rolling_session_peaks_like_the_others_but_holds_nothing_between() {
    let rolling = Session { answer_s: Some(0.5), ..Session::official_streaming() };
    let tokens = rolling.tokens(6.0).unwrap();
    near(tokens.peak, 30.0 + 17.5 * 6.0, 1e-9);
    near(tokens.mean, 0.5 * (65.0 + 100.0 + 135.0) / 6.0, 1e-9);
    let unknown = Session::official_streaming().tokens(6.0).unwrap();
    assert!(unknown.mean_is_bound && unknown.mean > tokens.mean);
    let whole = Session { answer_s: Some(3.0), ..Session::whole_utterance() }.tokens(6.0).unwrap();
    near(whole.mean, whole.peak / 2.0, 1e-9);
}

#[test]
fn a_config_json_is_read_where_the_text_stack_is() {
    let nested = r#"{"architectures": ["Qwen3ASRForConditionalGeneration"], "thinker_config": {"dtype": "bfloat16",
        "audio_config": {"num_hidden_layers": 18}, "text_config": {"num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 1024}}}"#;
    assert_eq!(Architecture::from_config_json(nested, None).unwrap(), Architecture::qwen3_asr_0_6b());
    let flat = r#"{"num_hidden_layers": 2, "num_key_value_heads": 4, "hidden_size": 512, "num_attention_heads": 8,
        "torch_dtype": "float32"}"#;
    let flat = Architecture::from_config_json(flat, None).unwrap();
    assert_eq!((flat.head_dim, flat.kv_bytes_per_token().unwrap()), (64, 2 * 2 * 4 * 64 * 4));
    let fp8 = Architecture::from_config_json(nested, Some(Dtype::Fp8)).unwrap();
    assert_eq!(fp8.kv_bytes_per_token().unwrap(), TOKEN / 2);
}

#[test]
fn a_config_json_without_its_keys_is_told_all_of_them() {
    let error =
        Architecture::from_config_json(r#"{"text_config": {"num_hidden_layers": 28}}"#, None).unwrap_err();
    let words = error.to_string();
    for key in ["num_key_value_heads", "head_dim", "dtype", "text_config", "--kv-heads"] {
        assert!(words.contains(key), "{words}");
    }
    assert!(!words.contains("num_hidden_layers"), "{words}");
    for (text, word) in [
        ("{", "cannot be read"),
        ("[1]", "not a JSON object"),
        (r#"{"num_hidden_layers": -1}"#, "num_hidden_layers"),
        (r#"{"num_hidden_layers": 2.5}"#, "2.5"),
        (
            r#"{"num_hidden_layers": 2, "num_key_value_heads": 2, "hidden_size": 100, "num_attention_heads": 3}"#,
            "multiple",
        ),
        (r#"{"num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 8, "dtype": "int3"}"#, "int3"),
        (r#"{"num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 8, "dtype": 7}"#, "dtype"),
    ] {
        let words = Architecture::from_config_json(text, None).unwrap_err().to_string();
        assert!(words.contains(word), "{text}: {words}");
    }
}

#[test]
fn impossible_figures_are_refused_by_name() {
    let card = Card::a40_qwen3_asr_0_6b();
    let words = |error: SizingError| {
        let text = error.text();
        assert!(text.zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{text:?}");
        text.en
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(words(Session::plan().tokens(bad).unwrap_err()).contains("call length (s)"));
        let broken = Card { memory_gb: bad, ..card };
        assert!(words(broken.check().unwrap_err()).contains("memory of the card"));
        assert!(
            words(Topology { cards: 1, instances: 1, share: bad }.check().unwrap_err()).contains("share")
        );
        let need = Need { calls: 1, call_bytes: 1e6, share: 0.9, latency_calls: Some(bad) };
        assert!(words(how_many(&card, &need).unwrap_err()).contains("latency"));
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let session = Session { audio_tokens_per_s: bad, ..Session::plan() };
        assert!(words(session.tokens(1.0).unwrap_err()).contains("audio tokens"));
    }
    assert!(words("3x0.40".parse::<Topology>().unwrap_err()).contains("exceed 1"));
    assert!(words("0x0.40".parse::<Topology>().unwrap_err()).contains("instances"));
    for junk in ["", "3", "3x", "x0.3", "3x0.3x2", "-1x0.3", "3xnan"] {
        assert!(junk.parse::<Topology>().is_err(), "{junk}");
    }
    let heavy = Card { weights_gb: 50.0, ..card };
    assert!(words(heavy.check().unwrap_err()).contains("leave nothing"));
    let silent = Session { audio_tokens_per_s: 0.0, text_tokens_per_s: 0.0, ..Session::plan() };
    assert!(words(silent.check().unwrap_err()).contains("both 0"));
    let rolling = Session { window_s: None, ..Session::official_streaming() };
    assert!(words(rolling.check().unwrap_err()).contains("no window"));
    assert!(tape(&Session::plan(), TOKEN, &[]).is_err());
    assert!(call(&Session::plan(), 0, 30.0).is_err());
}

#[test]
fn a_topology_reads_back_as_itself() {
    for text in ["3x0.30", "2x0.46", "1x0.92", "2*3x0.30", "4x0.225"] {
        let topology: Topology = text.parse().unwrap();
        assert_eq!(topology.to_string(), text);
    }
    assert!(
        (supply(&Card::a40_qwen3_asr_0_6b(), "2*3x0.30".parse().unwrap(), GB).unwrap().pool_all_gb.unwrap()
            - 63.6)
            .abs()
            < 1e-9
    );
}
