//! Error rates as text and as JSON.

use std::io::{Result, Write};

use serde::Serialize;
use tapedeck_wer::{Counts, Measures, MetricVariant, RateEstimate};

use super::{Call, Pooled};

/// A line per call, then what holds for all, tradition by tradition.
pub(super) fn text(out: &mut dyn Write, calls: &[Call], pooled: &Pooled) -> Result<()> {
    if !calls.is_empty() {
        let id = calls.iter().map(|call| call.id.chars().count()).max().unwrap_or_default().max(4);
        writeln!(
            out,
            "{:id$} {:>10} {:>7} {:>6} {:>6} {:>6} {:>9} {:>9}",
            "call", "ref_tokens", "errors", "sub", "del", "ins", "WER", "CER"
        )?;
        for call in calls {
            let words = call.measures.words;
            writeln!(
                out,
                "{:id$} {:>10} {:>7} {:>6} {:>6} {:>6} {:>9} {:>9}",
                call.id,
                words.ref_tokens,
                words.errors(),
                words.sub,
                words.del,
                words.ins,
                percent(words.rate()),
                percent(call.measures.chars.rate()),
            )?;
        }
        writeln!(out)?;
    }
    let all = &pooled.measures;
    writeln!(out, "all {} calls together", pooled.calls)?;
    summary(out, MetricVariant::Mixed.name(), all.words, pooled.words)?;
    summary(out, "  of which Han and kana", all.han, None)?;
    summary(out, "  of which other scripts", all.other, None)?;
    summary(out, MetricVariant::Characters.name(), all.chars, pooled.chars)?;
    if let Some(baseline) = &pooled.baseline {
        writeln!(out, "the same calls in the baseline")?;
        summary(out, MetricVariant::Mixed.name(), baseline.measures.words, None)?;
        summary(out, MetricVariant::Characters.name(), baseline.measures.chars, None)?;
        writeln!(out, "difference to the baseline, paired by call")?;
        difference(out, MetricVariant::Mixed.name(), baseline.words)?;
        difference(out, MetricVariant::Characters.name(), baseline.chars)?;
    }
    let settings = &pooled.resampling;
    writeln!(
        out,
        "intervals: {} % of {} draws of whole calls, ChaCha8 seed {}; digit rules: {}",
        settings.level * 100.0,
        settings.draws,
        settings.seed,
        if pooled.rules.is_empty() { "none".to_owned() } else { pooled.rules.join(", ") },
    )
}

fn summary(out: &mut dyn Write, name: &str, counts: Counts, interval: Option<RateEstimate>) -> Result<()> {
    let interval = interval
        .map_or_else(String::new, |e| format!(" [{}, {}]", percent(Some(e.low)), percent(Some(e.high))));
    writeln!(
        out,
        "  {name:<50} {:>9}{interval}  {} errors / {} tokens: {} sub, {} del, {} ins",
        percent(counts.rate()),
        counts.errors(),
        counts.ref_tokens,
        counts.sub,
        counts.del,
        counts.ins,
    )
}

fn difference(out: &mut dyn Write, name: &str, estimate: Option<RateEstimate>) -> Result<()> {
    let points = |x: f64| format!("{:+.2}", 100.0 * x);
    match estimate {
        Some(e) => writeln!(
            out,
            "  {name:<50} {:>9} points [{}, {}]",
            points(e.value),
            points(e.low),
            points(e.high)
        ),
        None => writeln!(out, "  {name:<50} unknown: every reference is empty"),
    }
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "unknown".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

/// An object per call, then one for all.
pub(super) fn json(out: &mut dyn Write, calls: &[Call], pooled: &Pooled) -> Result<()> {
    for call in calls {
        line(out, &Figures::of(Some(&call.id), &call.measures))?;
    }
    let settings = &pooled.resampling;
    let all = All {
        figures: Figures::of(Some("pooled"), &pooled.measures),
        pooled: true,
        calls: pooled.calls,
        rate_interval: pooled.words.map(|e| [e.low, e.high]),
        chars_rate_interval: pooled.chars.map(|e| [e.low, e.high]),
        baseline: pooled.baseline.as_ref().map(|baseline| Compared {
            figures: Figures::of(None, &baseline.measures),
            difference: baseline.words,
            chars_difference: baseline.chars,
        }),
        level: settings.level,
        draws: settings.draws,
        seed: settings.seed,
        rng: "chacha8",
        normalise: &pooled.rules,
    };
    line(out, &all)
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Counts with what follows from them.
#[derive(Serialize)]
struct Counted {
    ref_tokens: u64,
    errors: u64,
    sub: u64,
    del: u64,
    ins: u64,
    rate: Option<f64>,
}

impl From<Counts> for Counted {
    fn from(counts: Counts) -> Self {
        let Counts { ref_tokens, sub, del, ins } = counts;
        Self { ref_tokens, errors: counts.errors(), sub, del, ins, rate: counts.rate() }
    }
}

#[derive(Serialize)]
struct Figures<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(flatten)]
    words: Counted,
    chars: Counted,
    han: Counted,
    other: Counted,
}

impl<'a> Figures<'a> {
    fn of(id: Option<&'a str>, measures: &Measures) -> Self {
        Self {
            id,
            words: measures.words.into(),
            chars: measures.chars.into(),
            han: measures.han.into(),
            other: measures.other.into(),
        }
    }
}

#[derive(Serialize)]
struct Compared<'a> {
    #[serde(flatten)]
    figures: Figures<'a>,
    difference: Option<RateEstimate>,
    chars_difference: Option<RateEstimate>,
}

#[derive(Serialize)]
struct All<'a> {
    #[serde(flatten)]
    figures: Figures<'a>,
    pooled: bool,
    calls: usize,
    rate_interval: Option<[f64; 2]>,
    chars_rate_interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Compared<'a>>,
    level: f64,
    draws: u32,
    seed: u64,
    rng: &'static str,
    normalise: &'a [&'static str],
}
