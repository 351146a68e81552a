//! Every plot of a report, by name.

mod curves;
mod distributions;
mod soak;
mod timeline;

use tapedeck_slo::{Figure, Verdict};

pub(crate) use curves::curves;
pub(crate) use distributions::{cumulative, histograms};
pub(crate) use soak::{Slope, memory_over_time, over_time, recovery};
pub(crate) use timeline::{drains, origin_s, timeline, timeline_steps};

use crate::messages::{Lang, LocalizedText, MessageId};
use crate::read::Step;
use crate::svg::{GREEN, Key, Legend, ORANGE, Plot, RED, Shape};

/// A plot with the name that its files carry.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) plot: Plot,
}

/// Picks a sentence's language and fills its places.
fn t(lang: Lang, word: MessageId, values: &[String]) -> String {
    crate::messages::fill(word.template(lang), &values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A figure in the name of a plot's files.
fn name_of(figure: Figure) -> &'static str {
    figure.spec().curve.unwrap_or(figure.spec().id)
}

/// A figure where a step has one value of it: p95 of a figure of single calls.
fn title_of(figure: Figure) -> LocalizedText {
    let name = LocalizedText::from(figure.spec().name);
    match figure {
        Figure::Step(_) => name,
        _ => LocalizedText { en: format!("{} p95", name.en), zh: format!("{} p95", name.zh) },
    }
}

fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => GREEN,
        Verdict::Fail => RED,
        _ => ORANGE,
    }
}

/// What a point looks like without its colour.
fn shape(verdict: Verdict) -> Shape {
    match verdict {
        Verdict::Pass => Shape::Circle,
        Verdict::Fail => Shape::Square,
        _ => Shape::Triangle,
    }
}

/// What a line looks like without its colour.
fn dash(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "",
        Verdict::Fail => "7 3",
        _ => "2 3",
    }
}

/// The verdicts that stand on a plot, best first, as its legend has them.
fn verdicts(tiers: &[&Step], lang: Lang, key: fn(Verdict) -> Key) -> Vec<Legend> {
    let word = |verdict| match verdict {
        Verdict::Pass => MessageId::Pass,
        Verdict::Fail => MessageId::Fail,
        _ => MessageId::ProvesNothing,
    };
    let mut all: Vec<Legend> = Vec::new();
    for of in [Some(Verdict::Pass), Some(Verdict::Fail), None] {
        let seen = tiers.iter().map(|s| s.report.verdict).find(|v| of.map_or(v.undecided(), |of| *v == of));
        all.extend(seen.map(|v| Legend { colour: colour(v), key: key(v), label: t(lang, word(v), &[]) }));
    }
    all
}

/// A step's name as part of a file's name.
pub(crate) fn file_name(step: &str) -> String {
    step.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// Long names (a GPU's uuid) end in dots.
fn short(name: &str) -> String {
    if name.chars().count() <= 12 {
        name.to_string()
    } else {
        format!("{}…", name.chars().take(10).collect::<String>())
    }
}
