//! The parser against anything: it never panics, loses no line silently, and reads back what it would print.

use proptest::prelude::*;
use tapedeck_metrics::{Buckets, EngineKind, Series, normalise, parse};
use tapedeck_record::Histogram;

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Prints series as an exporter would; names that are no plain ones in quotes, as the UTF-8 form wants it.
fn print(series: &[Series]) -> String {
    let mut text = String::new();
    for one in series {
        let plain = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|other| other.is_ascii_alphanumeric() || "_:".contains(other))
        };
        let mut inside: Vec<String> = one
            .labels
            .iter()
            .map(|(key, value)| {
                let key = if plain(key) { key.clone() } else { format!("\"{}\"", escaped(key)) };
                format!("{key}=\"{}\"", escaped(value))
            })
            .collect();
        if plain(&one.name) {
            text.push_str(&one.name);
        } else {
            inside.insert(0, format!("\"{}\"", escaped(&one.name)));
        }
        if !inside.is_empty() {
            text.push_str(&format!("{{{}}}", inside.join(",")));
        }
        text.push_str(&format!(" {:?}", one.value));
        if let Some(stamp_s) = one.timestamp_s {
            text.push_str(&format!(" {stamp_s:?}"));
        }
        text.push('\n');
    }
    text + "# EOF\n"
}

fn any_series() -> impl Strategy<Value = Series> {
    let name = prop_oneof!["[a-zA-Z_][a-zA-Z0-9_:]{0,20}", "vllm:[a-z_]{1,20}", "[^\\r\\x00]{1,12}"];
    let labels = prop::collection::vec(
        (prop_oneof!["[a-z_]{1,8}", "[^\\r]{0,6}"], ".{0,12}|[,={}\"\\\\\n #]{0,8}"),
        0..4,
    );
    let stamp = prop::option::of((0_u32..2_000_000_000).prop_map(|stamp| f64::from(stamp) + 0.5));
    (name, labels, prop::num::f64::ANY, stamp).prop_map(|(name, labels, value, timestamp_s)| Series {
        name,
        labels,
        value,
        timestamp_s,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_makes_it_panic_and_no_line_is_lost(text in "(?s).{0,400}") {
        let page = parse(&text);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        prop_assert_eq!(page.series.len() + usize::try_from(page.not_understood).unwrap(), lines);
    }

    #[test]
    fn lines_that_nearly_fit_make_nothing_panic(
        text in "(vllm:|sglang:)?(num_requests_running|token_usage|x_bucket)?[ {}\",=#\\\\\n\te0-9.+naNInf:_\u{fc}-]{0,60}"
    ) {
        let page = parse(&text);
        for kind in [EngineKind::Vllm, EngineKind::Sglang, EngineKind::None] {
            let normalised = normalise(&page, kind);
            prop_assert!(normalised.scrape.values.values().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn what_is_printed_is_read_back(series in prop::collection::vec(any_series(), 0..6)) {
        let text = print(&series);
        let page = parse(&text);
        prop_assert_eq!(page.not_understood, 0, "{}\n{:?}", text, page.examples);
        prop_assert_eq!(page.series.len(), series.len());
        for (read, printed) in page.series.iter().zip(&series) {
            prop_assert_eq!(&read.name, &printed.name);
            prop_assert_eq!(&read.labels, &printed.labels);
            prop_assert_eq!(read.timestamp_s, printed.timestamp_s);
            let same = read.value.is_nan() && printed.value.is_nan() || read.value.to_bits() == printed.value.to_bits();
            prop_assert!(same, "{} {}", read.value, printed.value);
        }
    }

    #[test]
    fn the_bucket_of_a_quantile_holds_the_quantile(
        seen in prop::collection::vec(0.0_f64..20.0, 1..60), q in 0.0_f64..=1.0
    ) {
        let bounds = vec![0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
        let count = |bound: f64| f64::from(u32::try_from(seen.iter().filter(|one| **one <= bound).count()).unwrap());
        let mut counts: Vec<f64> = bounds.iter().map(|bound| count(*bound)).collect();
        counts.push(count(f64::INFINITY));
        let all = Buckets::of(&Histogram { bounds, counts, sum: None });
        let bucket = all.quantile(q).unwrap();
        let mut sorted = seen.clone();
        sorted.sort_by(f64::total_cmp);
        let mut rank = 1;
        while f64::from(u32::try_from(rank).unwrap()) < q * all.total() {
            rank += 1;
        }
        let exact = sorted[rank - 1];
        prop_assert!(bucket.lower <= exact && exact <= bucket.upper, "{} not in {:?}", exact, bucket);
    }
}
