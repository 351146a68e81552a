//! A metrics page under our own names: `cargo run -p tapedeck-metrics --example page -- FILE`. Without a file it reads a
//! few lines of its own.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use tapedeck_metrics::{guess_kind, normalise, parse, why_not_metrics};

const OWN: &str = "\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine=\"0\"} 5
vllm:num_requests_running{engine=\"1\"} 7
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine=\"0\"} 0.07
vllm:kv_cache_usage_perc{engine=\"1\"} 0.31
vllm:num_preemptions_totl 3
";

fn main() -> std::io::Result<()> {
    let text = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => OWN.to_owned(),
    };
    let page = parse(&text);
    if let Some(why) = why_not_metrics(&page) {
        println!("no metrics page: {why}");
        return Ok(());
    }
    let kind = guess_kind(&page);
    let normalised = normalise(&page, kind);
    println!("{} series of a {kind} engine, {} lines not understood", page.series.len(), page.not_understood);
    for (metric, value) in &normalised.scrape.values {
        println!("{:>20} {value}", metric.name());
    }
    normalised.missing.iter().for_each(|missing| println!("{missing}"));
    Ok(())
}
