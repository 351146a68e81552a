//! Real pages and the small ones that break parsers, figure by figure.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall stop")]

use std::path::PathBuf;

use tapedeck_metrics::gpu::from_smi_csv;
use tapedeck_metrics::{
    Buckets, EngineKind, Normalised, Page, normalise, parse, pool_from_log, why_not_metrics,
};
use tapedeck_record::Metric;
use tapedeck_stats::counter_delta;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/metrics").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// A page of which every line must be understood.
fn vllm(name: &str) -> Normalised {
    let text = fixture(name);
    let page = parse(&text);
    assert_eq!(page.not_understood, 0, "{name}: {:?}", page.examples);
    let samples = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    assert_eq!(page.series.len(), samples, "{name}");
    assert_eq!(why_not_metrics(&page), None);
    normalise(&page, EngineKind::Vllm)
}

/// Every value of a page, in the order of `Metric::ALL` without the rate of the V0 engine and the process's own memory.
fn values(normalised: &Normalised) -> Vec<Option<f64>> {
    let others = [Metric::PrefixHitRate, Metric::ResidentBytes];
    let known = Metric::ALL.into_iter().filter(|metric| !others.contains(metric));
    known.map(|metric| normalised.scrape.values.get(&metric).copied()).collect()
}

/// kv_pool, preemptions, running, waiting, waiting_capacity, open_sessions, prefix queries and hits, mm queries and
/// hits, prompt tokens, generation tokens, finished, refused.
#[test]
fn every_figure_of_every_real_page_is_found() {
    let pages: [(&str, [f64; 14]); 6] = [
        ("vllm-metrics-idle.txt", [0.0; 14]),
        (
            "vllm-metrics-caches-off.txt",
            [0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0, 546.0, 16.0, 2.0, 0.0],
        ),
        (
            "vllm-metrics-api-server-count-2.txt",
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 450.0, 0.0, 0.0, 0.0, 450.0, 768.0, 6.0, 0.0],
        ),
        (
            "vllm-metrics-realtime-load.txt",
            [
                0.070_450_097_847_358_12,
                0.0,
                5.0,
                7.0,
                0.0,
                12.0,
                1105.0,
                0.0,
                0.0,
                0.0,
                1105.0,
                1685.0,
                3.0,
                0.0,
            ],
        ),
        (
            "vllm-metrics-realtime-preempted.txt",
            [1.0, 3.0, 0.0, 8.0, 3.0, 8.0, 7152.0, 0.0, 0.0, 0.0, 7152.0, 5707.0, 24.0, 0.0],
        ),
        (
            "vllm-metrics-after-preemption.txt",
            [0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 6552.0, 0.0, 0.0, 0.0, 6552.0, 4800.0, 24.0, 0.0],
        ),
    ];
    for (name, wanted) in pages {
        let wanted: Vec<_> = wanted.iter().map(|value| (!value.is_nan()).then_some(*value)).collect();
        assert_eq!(values(&vllm(name)), wanted, "{name}");
    }
}

#[test]
fn what_a_real_page_lacks_is_named() {
    let missing =
        |name| -> Vec<String> { vllm(name).missing.into_iter().map(|missing| missing.what).collect() };
    assert_eq!(missing("vllm-metrics-realtime-load.txt"), Vec::<String>::new());
    // This model class has no realtime route, so there are no sockets to count.
    assert_eq!(missing("vllm-metrics-caches-off.txt"), ["open_sessions"]);
}

#[test]
fn pools_and_settings_come_from_the_page() {
    for (name, size_tokens, blocks, concurrency, bytes) in [
        ("vllm-metrics-idle.txt", 65_536, 512, 16.0, 67_108_864),
        ("vllm-metrics-api-server-count-2.txt", 65_536, 512, 16.0, 67_108_864),
        ("vllm-metrics-realtime-preempted.txt", 2_048, 16, 4.0, 2_097_152),
    ] {
        let pool = vllm(name).pool.unwrap();
        assert_eq!((pool.size_tokens, pool.num_gpu_blocks), (Some(size_tokens), Some(blocks)), "{name}");
        assert_eq!((pool.block_size, pool.max_concurrency), (Some(128), Some(concurrency)));
        assert_eq!((pool.kv_cache_memory_bytes, pool.gpu_memory_utilization), (Some(bytes), Some(0.92)));
        assert_eq!((pool.prefix_caching, pool.engines), (Some(true), 1));
        assert_eq!(pool.usable_tokens(), Some(size_tokens - 128));
    }
    assert_eq!(vllm("vllm-metrics-caches-off.txt").pool.unwrap().prefix_caching, Some(false));
    let log = pool_from_log(&fixture("vllm-startup-excerpt.log")).unwrap();
    assert_eq!(
        (log.size_tokens, log.max_model_len, log.max_concurrency),
        (Some(65_536), Some(4_096), Some(16.0))
    );
}

#[test]
fn histograms_have_counts_and_only_sound_sums() {
    let loaded = vllm("vllm-metrics-realtime-load.txt").scrape.histograms;
    let names: Vec<_> = loaded.keys().map(String::as_str).collect();
    assert_eq!(names, ["decode", "e2e", "inference", "prefill", "queue", "ttft"]);
    let ttft = &loaded["ttft"];
    assert_eq!((ttft.counts.last(), ttft.sum), (Some(&29.0), Some(1.384_098_768_234_253)));
    assert_eq!(ttft.counts.len(), ttft.bounds.len() + 1);
    assert!(ttft.bounds.is_sorted() && ttft.counts.is_sorted());
    // This page's queue time in all is -7.7 s, and prefill and inference swell by as much.
    for unsound in ["queue", "prefill", "inference"] {
        assert_eq!((loaded[unsound].counts.last(), loaded[unsound].sum), (Some(&3.0), None), "{unsound}");
    }
    assert_eq!(loaded["e2e"].sum, Some(0.482_757_806_777_954_1));
}

#[test]
fn two_pages_make_a_window() {
    let (idle, loaded) = (vllm("vllm-metrics-idle.txt"), vllm("vllm-metrics-realtime-load.txt"));
    let tokens = |page: &Normalised| page.scrape.values[&Metric::GenerationTokens];
    let grown = counter_delta([tokens(&idle), tokens(&loaded)]).unwrap();
    assert_eq!((grown.delta, grown.resets), (1685.0, 0));
    let ttft = |page: &Normalised| page.scrape.histograms["ttft"].clone();
    let (before, after) = (ttft(&idle), ttft(&loaded));
    assert!((after.counts.last().unwrap() - before.counts.last().unwrap() - 29.0).abs() < 1e-9);
    assert!((after.sum.unwrap() - before.sum.unwrap() - 1.384_098_768_234_253).abs() < 1e-12);
    let p95 = Buckets::of(&after).quantile(0.95).unwrap();
    assert!(p95.lower < p95.upper && p95.upper.is_finite(), "{p95:?}");
}

fn series(page: &Page) -> Vec<(&str, f64)> {
    page.series.iter().map(|series| (series.name.as_str(), series.value)).collect()
}

#[test]
fn m02_values_that_are_no_numbers() {
    let page = parse(&fixture("m02-nan-inf.prom"));
    assert_eq!((page.series.len(), page.not_understood), (5, 0));
    assert!(page.series[0].value.is_nan());
    assert_eq!(page.series[1].label("x"), Some("1"));
    assert_eq!(
        series(&page)[1..],
        [
            ("b_ratio", f64::INFINITY),
            ("c_ratio", f64::NEG_INFINITY),
            ("d_seconds", 1.5e-3),
            ("e_total", 1.844_674_407_370_955_2e19)
        ]
    );
    // Under a name of ours they are unknown, so they reach no sum and no JSON.
    let text = fixture("m02-nan-inf.prom")
        .replace("a_ratio", "vllm:kv_cache_usage_perc")
        .replace("b_ratio", "vllm:num_requests_running");
    let normalised = normalise(&parse(&text), EngineKind::Vllm);
    assert!(normalised.scrape.values.is_empty());
}

#[test]
fn m06_one_counter_under_two_spellings() {
    for name in ["m06-counter-old-name.prom", "m06-counter-new-name.prom"] {
        let normalised = normalise(&parse(&fixture(name)), EngineKind::Vllm);
        assert_eq!(normalised.scrape.values, [(Metric::PromptTokens, 7.0)].into(), "{name}");
    }
}

#[test]
fn m07_a_counter_that_fell_was_restarted() {
    let value =
        |name| series(&parse(&fixture(name))).into_iter().find(|(name, _)| *name == "x_total").unwrap().1;
    let delta = counter_delta([value("m07-reset-1.prom"), value("m07-reset-2.prom")]).unwrap();
    assert_eq!((delta.delta, delta.resets), (40.0, 1));
}

#[test]
fn m09_an_error_page_with_status_200() {
    let page = parse(&fixture("m09-html-with-200.prom"));
    assert_eq!(why_not_metrics(&page).as_deref(), Some("it is markup"));
}

#[test]
fn m12_line_ends_and_spaces() {
    let page = parse(&fixture("m12-crlf-and-spaces.prom"));
    assert_eq!((series(&page), page.not_understood), (vec![("a_total", 5.0), ("b_total", 6.0)], 0));
    assert_eq!((page.series[1].label("x"), page.series[1].label("y")), (Some("1"), Some("2")));
}

#[test]
fn families_may_be_mixed_and_lines_cut() {
    let page = parse("a{x=\"1\"} 1\nb 2\na{x=\"2\"} 3\nvllm:cut{engine=\"0\",mod");
    assert_eq!((series(&page), page.not_understood), (vec![("a", 1.0), ("b", 2.0), ("a", 3.0)], 1));
}

#[test]
fn g01_what_a_gpu_does_not_tell_is_not_zero() {
    let gpus = from_smi_csv(&fixture("g01-nvidia-smi-mig.csv")).unwrap();
    let [gpu] = gpus.as_slice() else { panic!("{gpus:?}") };
    assert_eq!((gpu.id.as_str(), gpu.name.as_deref()), ("gpu0", Some("NVIDIA A100-SXM4-80GB")));
    assert_eq!((gpu.reading.utilisation, gpu.reading.power_w), (None, Some(61.2)));
    assert_eq!((gpu.reading.memory_used_bytes, gpu.reading.memory_total_bytes), (None, None));
    assert_eq!(gpu.not_available["utilisation"], "N/A");
    assert_eq!(gpu.not_available["memory_used_bytes"], "Insufficient Permissions");
}

/// The names that each era of vLLM prints, and what of ours is then missing.
#[test]
fn every_era_of_vllm_is_read() {
    let v0 = "num_requests_running num_requests_waiting gpu_cache_usage_perc gpu_prefix_cache_hit_rate \
              num_preemptions_total prompt_tokens_total generation_tokens_total request_success_total \
              cpu_cache_usage_perc num_requests_swapped cpu_prefix_cache_hit_rate";
    let v0_8 = "num_requests_running num_requests_waiting gpu_cache_usage_perc gpu_prefix_cache_queries_total \
                gpu_prefix_cache_hits_total num_preemptions_total prompt_tokens_total generation_tokens_total \
                request_success_total";
    let v0_9 = "num_requests_running num_requests_waiting kv_cache_usage_perc gpu_cache_usage_perc \
                prefix_cache_queries_total prefix_cache_hits_total gpu_prefix_cache_queries_total \
                gpu_prefix_cache_hits_total num_preemptions_total prompt_tokens_total generation_tokens_total \
                request_success_total";
    let v0_11 = "num_requests_running num_requests_waiting kv_cache_usage_perc prefix_cache_queries_total \
                 prefix_cache_hits_total mm_cache_queries_total mm_cache_hits_total num_preemptions_total \
                 prompt_tokens_total generation_tokens_total request_success_total";
    let v0_18 = format!("{v0_11} websocket_connections_active");
    let v0_20 = format!("{v0_18} num_requests_waiting_by_reason{{reason=\"capacity\"}}");
    let v0_32 = format!("{v0_20} admission_rejections_total");
    let none: [&str; 0] = [];
    let late = ["waiting_capacity", "open_sessions", "mm_queries", "mm_hits", "refused"];
    for (era, names, missing) in [
        ("V0", v0, &late[..]),
        ("0.8", v0_8, &late),
        ("0.9", v0_9, &late),
        ("0.11", v0_11, &["waiting_capacity", "open_sessions", "refused"]),
        ("0.18", &v0_18, &["waiting_capacity", "refused"]),
        ("0.20", &v0_20, &["refused"]),
        ("0.32", &v0_32, &none),
    ] {
        let page: String = names.split_whitespace().map(|name| format!("vllm:{name} 0.5\n")).collect();
        let normalised = normalise(&parse(&page), EngineKind::Vllm);
        let histograms = ["ttft", "e2e", "queue", "inference", "prefill", "decode"];
        let found: Vec<_> = normalised.missing.iter().map(|missing| missing.what.as_str()).collect();
        let found: Vec<_> = found.into_iter().filter(|what| !histograms.contains(what)).collect();
        assert_eq!(found, missing, "{era}");
        // An old and a new name side by side are one metric, not two.
        assert!(normalised.scrape.values.values().all(|value| (value - 0.5).abs() < 1e-12), "{era}");
    }
}

#[test]
fn the_memory_of_the_process_is_read_where_the_page_has_it() {
    let bytes = |name| vllm(name).scrape.values.get(&Metric::ResidentBytes).copied();
    assert_eq!(bytes("vllm-metrics-after-preemption.txt"), Some(1_398_996_992.0));
    assert_eq!(bytes("vllm-metrics-api-server-count-2.txt"), None);
}
