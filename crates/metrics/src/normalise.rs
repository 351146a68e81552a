//! A page under our own names.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tapedeck_record::{EngineKind, Histogram, Metric, Scrape};

use crate::alias::{Combine, HistogramRow, Row, Source, histogram_rows, prefixes, rows};
use crate::parse::{Page, Series};
use crate::pool::{PoolInfo, from_cache_config, to_whole};

/// What a page says in our words, and what it does not say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Normalised {
    /// Values and histograms under our names.
    pub scrape: Scrape,
    /// For each value, the name on the page it came from.
    pub names: BTreeMap<Metric, String>,
    /// Size and settings of the KV pool, where the page tells.
    pub pool: Option<PoolInfo>,
    /// What an engine of this kind has in some version and this page has not.
    pub missing: Vec<Missing>,
    /// Lines of the page that are no sample and no comment.
    pub not_understood: u32,
    /// The first few of those lines.
    pub examples: Vec<String>,
}

/// One of our names that a page does not carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Missing {
    /// Our name: a metric's or a histogram's.
    pub what: String,
    /// The names on the page that would have been taken.
    pub looked_for: Vec<String>,
    /// Names on the page that are most like those; often empty.
    pub nearest: Vec<String>,
    /// Which versions carry it.
    pub note: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is missing: looked for {}", self.what, self.looked_for.join(" and "))?;
        if !self.note.is_empty() {
            write!(f, " ({})", self.note)?;
        }
        if !self.nearest.is_empty() {
            write!(f, "; the page has {}", self.nearest.join(", "))?;
        }
        Ok(())
    }
}

/// What Prometheus' clients for Python, Go and Rust call the resident memory of their own process. Several API processes
/// behind one page leave it out, so that a page without it lacks nothing.
const RESIDENT: &str = "process_resident_memory_bytes";

/// Puts a page under our names.
///
/// Several series of one instance combine by kind: counters, running and waiting add up, of KV use the largest counts
/// because a mean would hide a full engine. `*_created` series and values that are not finite are left out, of a series
/// that stands twice on the page the last counts, and a name with and without `_total` is one metric.
#[must_use]
pub fn normalise(page: &Page, kind: EngineKind) -> Normalised {
    let index = Index::new(page, kind);
    let mut normalised = Normalised {
        not_understood: page.not_understood,
        examples: page.examples.clone(),
        ..Normalised::default()
    };
    for row in rows(kind) {
        if let Some((value, name)) = index.scalar(row) {
            normalised.scrape.values.insert(row.metric, value);
            normalised.names.insert(row.metric, name);
        }
    }
    for row in rows(kind) {
        let known = |metric: &Metric| normalised.scrape.values.contains_key(metric);
        if !known(&row.metric) && !row.unless.iter().any(known) {
            let looked_for = row.sources.iter().map(|source| source.name);
            normalised.missing.push(index.missing(row.metric.name(), looked_for, row.note));
        }
    }
    for row in histogram_rows(kind) {
        match index.histogram(row) {
            Some(histogram) => {
                normalised.scrape.histograms.insert(row.name.to_owned(), histogram);
            }
            None => {
                normalised.missing.push(index.missing(row.name, row.sources.iter().copied(), "a histogram"))
            }
        }
    }
    if let Some(bytes) =
        page.series.iter().find(|s| s.name == RESIDENT).map(|s| s.value).filter(|v| v.is_finite())
    {
        normalised.scrape.values.insert(Metric::ResidentBytes, bytes);
        normalised.names.insert(Metric::ResidentBytes, RESIDENT.into());
    }
    normalised.pool = match kind {
        EngineKind::Vllm => from_cache_config(&index.distinct("cache_config_info")),
        EngineKind::Sglang => index.sglang_pool(),
        EngineKind::None => None,
    };
    normalised
}

/// Labels in order, so that two series with the same ones are seen as the same.
type Labels<'a> = Vec<(&'a str, &'a str)>;

/// A page by name, without prefix.
struct Index<'a> {
    page: &'a Page,
    kind: EngineKind,
    by_name: BTreeMap<&'a str, Vec<&'a Series>>,
}

impl<'a> Index<'a> {
    fn new(page: &'a Page, kind: EngineKind) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
        for series in &page.series {
            let bare = prefixes(kind).iter().find_map(|prefix| series.name.strip_prefix(prefix));
            if let Some(bare) = bare.filter(|bare| !bare.ends_with("_created")) {
                by_name.entry(bare).or_default().push(series);
            }
        }
        Self { page, kind, by_name }
    }

    /// Every series of a name once. The last of two with the same labels wins, and of series that differ only in the
    /// rank that reports them, the first rank's.
    fn distinct(&self, name: &str) -> Vec<&'a Series> {
        let mut kept: BTreeMap<Labels<'_>, ([u32; 3], &Series)> = BTreeMap::new();
        for &series in self.by_name.get(name).into_iter().flatten() {
            let mut ranks = [0; 3];
            let mut labels = Vec::with_capacity(series.labels.len());
            let mut part_of_another = false;
            for (key, value) in &series.labels {
                let rank = RANKS.iter().position(|rank| rank == key && self.kind == EngineKind::Sglang);
                match rank.and_then(|rank| ranks.get_mut(rank)) {
                    Some(slot) => *slot = value.parse().unwrap_or(u32::MAX),
                    None => labels.push((key.as_str(), value.as_str())),
                }
                // sglang repeats by priority what the series with the empty priority holds in all.
                part_of_another |= self.kind == EngineKind::Sglang && key == "priority" && !value.is_empty();
            }
            if part_of_another {
                continue;
            }
            labels.sort_unstable();
            let slot = kept.entry(labels).or_insert((ranks, series));
            if ranks <= slot.0 {
                *slot = (ranks, series);
            }
        }
        kept.into_values().map(|(_, series)| series).collect()
    }

    /// The value of a row and the name it came from.
    fn scalar(&self, row: &Row) -> Option<(f64, String)> {
        row.sources.iter().find_map(|source| self.one_source(source, row.combine))
    }

    fn one_source(&self, source: &Source, combine: Combine) -> Option<(f64, String)> {
        for name in [format!("{}_total", source.name), source.name.to_owned()] {
            let mut total: Option<f64> = None;
            let mut page_name = None;
            for series in self.distinct(&name) {
                let is = |(label, value): (&str, &str)| series.label(label) == Some(value);
                let wanted = source.only.is_none_or(is) && !source.without.is_some_and(is);
                // A negative value is vLLM's way to say that a rate does not exist.
                if !wanted || !series.value.is_finite() || series.value < 0.0 {
                    continue;
                }
                page_name.get_or_insert(&series.name);
                total = Some(match (total, combine) {
                    (None, _) => series.value,
                    (Some(so_far), Combine::Add) => so_far + series.value,
                    (Some(so_far), Combine::Max) => so_far.max(series.value),
                });
            }
            if let (Some(total), Some(page_name)) = (total, page_name) {
                let label =
                    source.only.map(|(key, value)| format!("{{{key}=\"{value}\"}}")).unwrap_or_default();
                return Some((total, format!("{page_name}{label}")));
            }
            if source.zero_when_declared {
                let mut full = prefixes(self.kind).iter().map(|prefix| format!("{prefix}{name}"));
                if let Some(declared) = full.find(|full| self.page.types.contains_key(full)) {
                    return Some((0.0, declared));
                }
            }
        }
        None
    }

    fn histogram(&self, row: &HistogramRow) -> Option<Histogram> {
        row.sources.iter().find_map(|name| {
            let mut groups: BTreeMap<Labels<'_>, Vec<(f64, f64)>> = BTreeMap::new();
            for series in self.distinct(&format!("{name}_bucket")) {
                let Some(bound) = series.label("le").and_then(|bound| bound.trim().parse::<f64>().ok())
                else {
                    continue;
                };
                let mut labels: Vec<_> = series
                    .labels
                    .iter()
                    .filter(|(key, _)| key != "le")
                    .map(|(key, value)| (key.as_str(), value.as_str()))
                    .collect();
                labels.sort_unstable();
                groups.entry(labels).or_default().push((bound, series.value));
            }
            let mut histogram = add_up(groups.into_values())?;
            if row.sum_is_sound {
                let sums = self.distinct(&format!("{name}_sum"));
                let sum: f64 = sums.iter().map(|series| series.value).sum();
                histogram.sum = (!sums.is_empty() && sum.is_finite() && sum >= 0.0).then_some(sum);
            }
            Some(histogram)
        })
    }

    /// sglang tells its pool by gauges, one series per scheduler.
    fn sglang_pool(&self) -> Option<PoolInfo> {
        let least = |name: &str| {
            let series = self.distinct(name);
            series.iter().filter_map(|series| to_whole(series.value)).min()
        };
        let info = PoolInfo {
            size_tokens: least("max_total_num_tokens"),
            num_gpu_blocks: least("num_pages"),
            block_size: least("page_size"),
            max_model_len: least("context_len"),
            engines: u32::try_from(self.distinct("token_usage").len()).unwrap_or(u32::MAX),
            source: "max_total_num_tokens".to_owned(),
            ..PoolInfo::default()
        };
        info.is_known().then_some(info)
    }

    fn missing(&self, what: &str, looked_for: impl Iterator<Item = &'static str>, note: &str) -> Missing {
        let looked_for: BTreeSet<&str> = looked_for.collect();
        let known: BTreeSet<&str> = rows(self.kind)
            .iter()
            .flat_map(|row| row.sources.iter().map(|source| source.name))
            .chain(histogram_rows(self.kind).iter().flat_map(|row| row.sources.iter().copied()))
            .collect();
        let families: BTreeSet<&str> = self.page.series.iter().map(|series| family(&series.name)).collect();
        let mut near: Vec<(f64, &str)> = families
            .into_iter()
            .filter_map(|family| {
                let bare = prefixes(self.kind)
                    .iter()
                    .find_map(|prefix| family.strip_prefix(prefix))
                    .unwrap_or(family);
                // What already has a place of its own is not what is missing here.
                if known.contains(bare) {
                    return None;
                }
                // Names whose lengths differ by more cannot be near, and a scrape comes every second.
                let alike = |wanted: &&&str| {
                    let (wanted, bare) = (wanted.chars().count(), bare.chars().count());
                    let (short, long) = (wanted.min(bare), wanted.max(bare));
                    short as f64 >= NEAR * long as f64
                };
                let score = looked_for
                    .iter()
                    .filter(alike)
                    .map(|wanted| strsim::normalized_damerau_levenshtein(wanted, bare))
                    .fold(0.0, f64::max);
                (score >= NEAR).then_some((score, family))
            })
            .collect();
        near.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
        let prefix = prefixes(self.kind).first().copied().unwrap_or_default();
        Missing {
            what: what.to_owned(),
            looked_for: looked_for.into_iter().map(|name| format!("{prefix}{name}")).collect(),
            nearest: near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect(),
            note: note.to_owned(),
        }
    }
}

/// Labels that say which process reports a figure, not what the figure is about.
const RANKS: [&str; 3] = ["pp_rank", "tp_rank", "moe_ep_rank"];

/// How like two names must be to be shown as near, 0..1.
const NEAR: f64 = 0.6;

/// A family's name from one of its series' names.
fn family(name: &str) -> &str {
    ["_total", "_bucket", "_sum", "_count", "_created"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name)
}

/// Adds cumulative buckets of several series. Empty if there are none, or if their bounds differ: counts between
/// different bounds cannot be added honestly.
fn add_up(groups: impl Iterator<Item = Vec<(f64, f64)>>) -> Option<Histogram> {
    let mut total: Option<Histogram> = None;
    for mut buckets in groups {
        buckets.retain(|(bound, count)| !bound.is_nan() && count.is_finite());
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Without the last bucket the number of observations is unknown.
        let (last, finite) = buckets.split_last()?;
        if last.0 != f64::INFINITY {
            return None;
        }
        let bounds: Vec<f64> = finite.iter().map(|(bound, _)| *bound).collect();
        let counts: Vec<f64> = buckets.iter().map(|(_, count)| *count).collect();
        match &mut total {
            None => total = Some(Histogram { bounds, counts, sum: None }),
            Some(total) => {
                let same = total.bounds.len() == bounds.len()
                    && total.bounds.iter().zip(&bounds).all(|(a, b)| a.total_cmp(b).is_eq());
                if !same {
                    return None;
                }
                for (slot, count) in total.counts.iter_mut().zip(counts) {
                    *slot += count;
                }
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alias::carries;
    use crate::parse;

    fn vllm(text: &str) -> Normalised {
        normalise(&parse(text), EngineKind::Vllm)
    }

    fn value(normalised: &Normalised, metric: Metric) -> Option<f64> {
        normalised.scrape.values.get(&metric).copied()
    }

    #[test]
    fn series_combine_by_kind() {
        let page = vllm(
            "vllm:kv_cache_usage_perc{engine=\"0\"} 0.1\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.9\n\
             vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4\n\
             vllm:num_preemptions_total{engine=\"0\"} 5\nvllm:num_preemptions_total{engine=\"1\"} 6\n\
             vllm:num_preemptions_created{engine=\"0\"} 1.7e9\n",
        );
        assert_eq!(value(&page, Metric::KvPool), Some(0.9));
        assert_eq!(value(&page, Metric::Running), Some(7.0));
        assert_eq!(value(&page, Metric::Preemptions), Some(11.0));
        assert_eq!(page.names[&Metric::Preemptions], "vllm:num_preemptions_total");
    }

    #[test]
    fn with_and_without_total_is_one_metric() {
        for text in [
            "vllm:prompt_tokens 7",
            "vllm:prompt_tokens_total 7",
            "vllm:prompt_tokens 7\nvllm:prompt_tokens_total 7",
        ] {
            assert_eq!(value(&vllm(text), Metric::PromptTokens), Some(7.0), "{text}");
        }
    }

    #[test]
    fn a_series_that_stands_twice_counts_once() {
        let page = vllm(
            "vllm:num_requests_running{a=\"1\",b=\"2\"} 3\nvllm:num_requests_running{b=\"2\",a=\"1\"} 4\n",
        );
        assert_eq!(value(&page, Metric::Running), Some(4.0));
    }

    #[test]
    fn what_is_not_finite_is_not_known() {
        let page = vllm(
            "vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running{e=\"0\"} +Inf\nvllm:num_requests_running{e=\"1\"} 2",
        );
        assert_eq!(value(&page, Metric::KvPool), None);
        assert_eq!(value(&page, Metric::Running), Some(2.0));
        assert!(page.missing.iter().any(|missing| missing.what == "kv_pool"));
    }

    #[test]
    fn old_names_are_read_and_a_new_one_is_preferred() {
        let old = vllm(
            "vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_queries_total 10\nvllm:gpu_prefix_cache_hits_total 4\n",
        );
        assert_eq!(value(&old, Metric::KvPool), Some(0.5));
        assert_eq!(
            (value(&old, Metric::PrefixQueries), value(&old, Metric::PrefixHits)),
            (Some(10.0), Some(4.0))
        );
        let both = vllm("vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.6\n");
        assert_eq!(value(&both, Metric::KvPool), Some(0.6));
        let v0 = vllm("vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} 0.25\n");
        assert_eq!(value(&v0, Metric::PrefixHitRate), Some(0.25));
        // One way to tell is enough: the other is not missing then.
        let missing =
            |page: &Normalised| page.missing.iter().any(|missing| missing.what.starts_with("prefix_"));
        assert!(!missing(&v0) && !missing(&old));
        let off = vllm("vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} -1\n");
        assert_eq!(value(&off, Metric::PrefixHitRate), None);
    }

    #[test]
    fn only_capacity_counts_as_waiting_for_room() {
        let new = vllm(
            "vllm:num_requests_waiting 8\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 3\n\
             vllm:num_requests_waiting_by_reason{reason=\"deferred\"} 5\n",
        );
        assert_eq!(
            (value(&new, Metric::Waiting), value(&new, Metric::WaitingCapacity)),
            (Some(8.0), Some(3.0))
        );
        assert_eq!(
            new.names[&Metric::WaitingCapacity],
            "vllm:num_requests_waiting_by_reason{reason=\"capacity\"}"
        );
        assert_eq!(value(&vllm("vllm:num_requests_waiting 8"), Metric::WaitingCapacity), None);
    }

    #[test]
    fn counters_split_by_a_label_add_up() {
        let page = vllm(
            "vllm:request_success_total{finished_reason=\"stop\"} 2\nvllm:request_success_total{finished_reason=\"length\"} 3\n\
             vllm:admission_rejections_total{reason=\"max_num_queued_reqs\"} 1\n\
             vllm:admission_rejections_total{reason=\"max_num_queued_tokens\"} 2\n",
        );
        assert_eq!((value(&page, Metric::Finished), value(&page, Metric::Refused)), (Some(5.0), Some(3.0)));
    }

    #[test]
    fn what_is_missing_is_named_with_the_nearest_names_seen() {
        let page = vllm("vllm:kv_cache_use_perc 0.4\nvllm:num_requests_running 1\nhttp_requests_total 3\n");
        let missing = page.missing.iter().find(|missing| missing.what == "kv_pool").unwrap();
        assert_eq!(missing.nearest, ["vllm:kv_cache_use_perc"]);
        assert!(missing.to_string().contains("vllm:kv_cache_usage_perc"), "{missing}");
        // A name that already has a place is not offered for another.
        let waiting = page.missing.iter().find(|missing| missing.what == "waiting").unwrap();
        assert_eq!(waiting.nearest, Vec::<String>::new());
        assert!(!page.missing.iter().any(|missing| missing.what == "running"));
    }

    #[test]
    fn a_name_that_lost_its_colon_is_still_known() {
        assert_eq!(value(&vllm("vllm_num_requests_running 2"), Metric::Running), Some(2.0));
    }

    #[test]
    fn histograms_of_several_series_add_up_and_unsound_sums_are_dropped() {
        let page = vllm(
            "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.5\"} 1\n\
             vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 2\n\
             vllm:time_to_first_token_seconds_sum{engine=\"0\"} 1.5\n\
             vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\"} 5\n\
             vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.5\"} 4\n\
             vllm:time_to_first_token_seconds_sum{engine=\"1\"} 2.5\n\
             vllm:request_queue_time_seconds_bucket{le=\"+Inf\"} 5\nvllm:request_queue_time_seconds_sum -234\n",
        );
        let ttft = &page.scrape.histograms["ttft"];
        assert_eq!(
            (ttft.bounds.as_slice(), ttft.counts.as_slice(), ttft.sum),
            (&[0.5][..], &[5.0, 7.0][..], Some(4.0))
        );
        assert_eq!(page.scrape.histograms["queue"].sum, None);
    }

    #[test]
    fn histograms_that_cannot_be_added_are_not_known() {
        let differ = vllm(
            "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"1\"} 1\n\
             vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"+Inf\"} 1\n\
             vllm:e2e_request_latency_seconds_bucket{engine=\"1\",le=\"2\"} 1\n\
             vllm:e2e_request_latency_seconds_bucket{engine=\"1\",le=\"+Inf\"} 1\n",
        );
        assert!(!differ.scrape.histograms.contains_key("e2e"));
        let cut = vllm("vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"1\"} 1\n");
        assert!(!cut.scrape.histograms.contains_key("e2e"));
    }

    #[test]
    fn a_histogram_whose_name_ends_in_total_is_no_counter() {
        let page = vllm("vllm:iteration_tokens_total_count 5\nvllm:iteration_tokens_total_sum 9\n");
        assert!(page.scrape.values.is_empty());
    }

    #[test]
    fn sglang_counts_each_scheduler_once() {
        let page = normalise(
            &parse(
                "sglang:num_running_reqs{dp_rank=\"0\",priority=\"\",tp_rank=\"0\"} 3\n\
                 sglang:num_running_reqs{dp_rank=\"0\",priority=\"5\",tp_rank=\"0\"} 2\n\
                 sglang:num_running_reqs{dp_rank=\"0\",priority=\"\",tp_rank=\"1\"} 3\n\
                 sglang:num_running_reqs{dp_rank=\"1\",priority=\"\",tp_rank=\"2\"} 4\n\
                 sglang:token_usage{dp_rank=\"0\",tp_rank=\"0\"} 0.28\nsglang:token_usage{dp_rank=\"1\",tp_rank=\"2\"} 0.5\n\
                 sglang:num_queue_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1\n\
                 sglang:num_retracted_reqs 9\nsglang:num_retracted_requests_total 2\n\
                 sglang:prompt_tokens_total{is_streaming=\"true\"} 100\n# TYPE sglang:cached_tokens_total counter\n\
                 sglang:max_total_num_tokens{dp_rank=\"0\"} 1000\nsglang:max_total_num_tokens{dp_rank=\"1\"} 900\n",
            ),
            EngineKind::Sglang,
        );
        assert_eq!(value(&page, Metric::Running), Some(7.0));
        assert_eq!(value(&page, Metric::KvPool), Some(0.5));
        assert_eq!(
            (value(&page, Metric::Waiting), value(&page, Metric::WaitingCapacity)),
            (Some(1.0), Some(1.0))
        );
        assert_eq!(value(&page, Metric::Preemptions), Some(2.0));
        assert_eq!(
            (value(&page, Metric::PrefixQueries), value(&page, Metric::PrefixHits)),
            (Some(100.0), Some(0.0))
        );
        let pool = page.pool.unwrap();
        assert_eq!((pool.size_tokens, pool.engines), (Some(900), 2));
    }

    #[test]
    fn sglang_prefers_the_cache_counters_that_do_not_count_twice() {
        let page = normalise(
            &parse(
                "sglang:prefill_effective_tokens_total{mode=\"input\"} 60\nsglang:prefill_effective_tokens_total{mode=\"device_hit\"} 30\n\
                 sglang:prefill_effective_tokens_total{mode=\"host_hit\"} 10\nsglang:prompt_tokens_total 500\nsglang:cached_tokens_total 77\n",
            ),
            EngineKind::Sglang,
        );
        assert_eq!(
            (value(&page, Metric::PrefixQueries), value(&page, Metric::PrefixHits)),
            (Some(100.0), Some(40.0))
        );
    }

    #[test]
    fn a_kind_without_names_knows_nothing_and_misses_nothing() {
        let page = normalise(&parse("vllm:num_requests_running 1"), EngineKind::None);
        assert_eq!((page.scrape, page.missing), (Scrape::default(), vec![]));
        assert!(!carries(EngineKind::None, Metric::KvPool) && carries(EngineKind::Vllm, Metric::KvPool));
    }
}
