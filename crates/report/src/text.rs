//! What the command line prints.

use tapedeck_slo::Estimate;

use crate::answer::Answer;
use crate::compare::{Comparison, Direction};
use crate::diagnose::{Diagnosis, part_name};
use crate::integrity::Severity;
use crate::messages::{Lang, LocalizedText, MessageId, message, number};
use crate::read::Run;
use crate::symptoms::Diagnosed;

/// The answer in a few lines.
#[must_use]
pub fn answer(run: &Run, answer: &Answer, lang: Lang) -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |said: LocalizedText| lines.push(said.text(lang).to_string());
    for (title, capacity) in [(MessageId::ShortCalls, &answer.short), (MessageId::LongCalls, &answer.long)] {
        let Some(capacity) = capacity else { continue };
        let n = capacity.state.stated("N*".into(), capacity.n_star);
        put(LocalizedText {
            en: format!("{}: {}", title.template(Lang::En), n.en),
            zh: format!("{}：{}", title.template(Lang::Zh), n.zh),
        });
        if let Some(said) = answer.published(capacity) {
            put(said);
        }
        put(Answer::limited(capacity));
        if answer.unfinished && title == MessageId::ShortCalls {
            put(message!(MessageId::Unfinished));
        }
        for said in answer.sureness(capacity) {
            put(said);
        }
    }
    if !answer.withheld.is_empty() {
        put(message!(MessageId::Withheld));
        for why in &answer.withheld {
            put(LocalizedText { en: format!("- {}", why.en), zh: format!("- {}", why.zh) });
        }
    } else if answer.short.is_none() {
        put(message!(MessageId::NotMeasured));
    }
    put(match answer.simulated {
        Some(true) => message!(MessageId::IsSimulated),
        Some(false) => message!(MessageId::IsReal),
        None => message!(MessageId::IsUnknown),
    });
    for warning in run.warnings.iter().filter(|d| d.severity != Severity::Withhold) {
        put(warning.said.clone());
    }
    lines
}

/// Every tier that does not pass, looked into.
#[must_use]
pub fn diagnosis(run: &Run, all: &[Diagnosis<'_>], lang: Lang) -> Vec<String> {
    let mut lines = Vec::new();
    // Figures of a run that may have been changed are looked into all the same, but not without a word.
    for warning in run.warnings.iter().filter(|d| d.severity == Severity::Withhold) {
        lines.push(warning.said.text(lang).to_string());
    }
    if run.steps.is_empty() {
        lines.push(MessageId::DiagnosisNoSteps.template(lang).to_string());
    } else if all.is_empty() {
        lines.push(MessageId::DiagnosisNone.template(lang).to_string());
    }
    for d in all {
        let mut put = |indent: &str, said: LocalizedText| lines.push(format!("{indent}{}", said.text(lang)));
        put("", d.heading());
        match d.grew {
            Some(part) => put("  ", message!(MessageId::GrewMost, part_name(part))),
            None if d.calm.is_some() => put("  ", message!(MessageId::NothingGrew)),
            None => {}
        }
        let show = |v: Option<f64>| v.map_or_else(|| "-".to_string(), number);
        for part in &d.parts {
            let name = part_name(part.part);
            let figures = format!("{} -> {} s (n = {})", show(part.before_s), show(part.after_s), part.n);
            put(
                "    ",
                LocalizedText {
                    en: format!("{}: {figures}", name.en),
                    zh: format!("{}：{figures}", name.zh),
                },
            );
        }
        for said in &d.counters {
            put("  ", said.clone());
        }
        if d.findings.is_empty() {
            put("  ", message!(MessageId::NoSymptom));
        }
        d.findings.iter().flat_map(told).for_each(|(indent, said)| put(indent, said));
    }
    lines
}

/// A symptom in three lines: what was seen, what to take apart, what to try.
fn told(finding: &Diagnosed) -> [(&'static str, LocalizedText); 3] {
    let pair = |word: MessageId, said: &LocalizedText| LocalizedText {
        en: format!("{}: {}", word.template(Lang::En), said.en),
        zh: format!("{}：{}", word.template(Lang::Zh), said.zh),
    };
    [
        ("  * ", pair(MessageId::Seen, &finding.seen)),
        ("    ", pair(MessageId::TakeApart, &finding.look)),
        ("    ", pair(MessageId::NextExperiment, &finding.next)),
    ]
}

/// `0.48 [0.45, 0.53]`: a figure with its interval, where it has one.
fn estimate(e: &Estimate) -> String {
    let bound = |b: Option<f64>| b.map_or_else(|| "?".to_string(), number);
    match (e.low, e.high) {
        (None, None) => number(e.value),
        (low, high) => format!("{} [{}, {}]", number(e.value), bound(low), bound(high)),
    }
}

/// Two runs compared.
#[must_use]
pub fn comparison(c: &Comparison, lang: Lang) -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |indent: &str, said: LocalizedText| lines.push(format!("{indent}{}", said.text(lang)));
    put("", message!(MessageId::ComparedRuns, c.names[0].as_str(), c.names[1].as_str()));
    if !c.refused.is_empty() {
        put("", message!(MessageId::NotComparable));
        for why in &c.refused {
            put("  ", why.clone());
        }
    }
    if c.changes.is_empty() {
        put("", message!(MessageId::NoSettingDiffers));
    } else {
        put("", message!(MessageId::SettingsDiffer));
        for change in &c.changes {
            put("  ", LocalizedText::same(change.to_string()));
        }
    }
    if let [Some(a), Some(b)] = &c.n_star {
        put("", message!(MessageId::NStarLine, a.clone(), b.clone()));
    }
    let moved: Vec<_> = c.differences.iter().filter(|d| d.direction != Direction::Same).collect();
    if !moved.is_empty() {
        put("", message!(MessageId::FiguresDiffer));
        for d in &moved {
            let way = if d.direction == Direction::Worse { MessageId::Worse } else { MessageId::Better };
            let (before, after) = (estimate(&d.before), estimate(&d.after));
            put(
                "  ",
                message!(MessageId::FigureLine, d.step.as_str(), d.figure.as_str(), before, after, way),
            );
        }
    }
    if !c.differences.is_empty() {
        put("", message!(MessageId::FiguresSame, c.differences.len() - moved.len()));
    }
    put("", c.attribution.clone());
    c.findings.iter().flat_map(told).for_each(|(indent, said)| put(indent, said));
    lines
}
