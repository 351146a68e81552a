//! Figures of steps over concurrency.

use tapedeck_record::Case;
use tapedeck_slo::{Estimate, Figure, StepFigure, TierReport, Verdict};

use super::{Named, colour, shape, t, title_of, verdicts};
use crate::answer::Answer;
use crate::messages::{Lang, LocalizedText, MessageId, number};
use crate::read::{Run, Step};
use crate::svg::{BLUE, GREY, Key, Legend, Mark, Plot, RED, Shape};

/// Words are judged by their alarm, all else by the verdict of the tier.
const WORDS: Figure = Figure::Step(StepFigure::Wer);

/// Where no words can be told apart, characters stand in for them.
fn value_of(figure: Figure, report: &TierReport) -> Option<Estimate> {
    let found = figure.estimate(report);
    if figure == WORDS { found.or_else(|| StepFigure::Cer.estimate(report)) } else { found }
}

/// Word errors come from the labelled steps of TC-04, all else from the ladder.
fn tiers_of(run: &Run, figure: Figure) -> Vec<&Step> {
    let mut tiers = run.ladder();
    if figure == WORDS {
        let labelled = run.steps.iter().filter(|s| s.id.case == Case::Quality && !s.partial);
        // Where the labelled tape was played, its words alone stand: those of the ladder are of another tape.
        let labelled: Vec<&Step> = labelled.collect();
        if !labelled.is_empty() {
            tiers = labelled;
        }
    }
    tiers.retain(|s| value_of(figure, &s.report).is_some());
    tiers.sort_by_key(|s| s.report.streams);
    tiers
}

/// A plot over concurrency for each figure that has one, with intervals, limits and the knee. A curve without data is
/// not drawn; its name is returned instead.
pub(crate) fn curves(run: &Run, answer: &Answer, lang: Lang) -> Vec<Result<Named, LocalizedText>> {
    Figure::all()
        .filter_map(|figure| Some((figure, figure.spec().curve?)))
        .map(|(figure, name)| curve_plot(run, answer, figure, name, lang).ok_or_else(|| title_of(figure)))
        .collect()
}

fn curve_plot(run: &Run, answer: &Answer, figure: Figure, name: &str, lang: Lang) -> Option<Named> {
    let tiers = tiers_of(run, figure);
    let unit = figure.spec().unit.axis().text(lang);
    let mut plot = Plot::new(title_of(figure).text(lang), &t(lang, MessageId::Streams, &[]), unit);
    let at = |s: &Step| (f64::from(s.report.streams), value_of(figure, &s.report));
    let points: Vec<(f64, f64)> = tiers.iter().filter_map(|s| Some((at(s).0, at(s).1?.value))).collect();
    let of_words = figure == WORDS;
    let verdict = |s: &Step| if of_words { words_verdict(run, s) } else { Some(s.report.verdict) };
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.5, dash: "", title: String::new() });
    for step in &tiers {
        let (x, Some(e)) = at(step) else { continue };
        plot.marks.push(Mark::Point {
            x,
            y: e.value,
            low: e.low,
            high: e.high,
            colour: verdict(step).map_or(GREY, colour),
            shape: verdict(step).map_or(Shape::Circle, shape),
            hollow: !of_words && step.report.point_only,
            title: estimate_title(step, &e, lang),
        });
    }
    let threshold = figure.limit().and_then(|limit| {
        tiers.iter().flat_map(|s| &s.report.limits).find(|l| l.limit == limit).map(|l| l.threshold)
    });
    if let Some(y) = threshold {
        plot.marks.push(Mark::Level { y, colour: RED, label: t(lang, MessageId::LimitAt, &[number(y)]) });
    }
    if let Some(n) = answer.short.as_ref().and_then(|c| c.n_star) {
        plot.marks.push(Mark::Upright { x: f64::from(n), colour: GREY, label: format!("N* {n}") });
    }
    plot.x_ticks = Some(tiers.iter().map(|s| f64::from(s.report.streams)).collect());
    plot.legend = verdicts(&tiers, lang, |v| Key::Point { shape: shape(v), hollow: false });
    if of_words {
        plot.legend = [(Verdict::Pass, MessageId::NoAlarm), (Verdict::Fail, MessageId::WordsAlarm)]
            .into_iter()
            .filter(|(v, _)| tiers.iter().any(|s| verdict(s) == Some(*v)))
            .map(|(v, word)| {
                let key = Key::Point { shape: shape(v), hollow: false };
                Legend { colour: colour(v), key, label: t(lang, word, &[]) }
            })
            .collect();
        if let Some((y, points)) = words_limit(run) {
            plot.marks.push(Mark::Level {
                y,
                colour: RED,
                label: t(lang, MessageId::WordsLimitAt, &[number(points)]),
            });
        }
    }
    plot.has_data().then(|| Named { name: format!("curve-{name}"), plot }).filter(|_| !tiers.is_empty())
}

/// Whether words of a labelled step are worse than those of a single stream; empty where that was not compared.
fn words_verdict(run: &Run, step: &Step) -> Option<Verdict> {
    let points = &run.answers.quality.as_ref()?.points;
    let point = points.iter().find(|p| p.streams == step.report.streams)?;
    Some(if point.alarm { Verdict::Fail } else { Verdict::Pass })
}

/// The word error rate at which the alarm goes off, where the same calls are compared, and the rise that it allows.
fn words_limit(run: &Run) -> Option<(f64, f64)> {
    let answer = run.answers.quality.as_ref()?;
    let (baseline, points) = (answer.baseline?.wer?.rate, answer.limit_points);
    Some((baseline + points / 100.0, points))
}

fn estimate_title(step: &Step, e: &Estimate, lang: Lang) -> String {
    let bound = |b: Option<f64>| b.map_or_else(|| t(lang, MessageId::NoBound, &[]), number);
    let interval = if e.low.is_none() && e.high.is_none() {
        String::new()
    } else {
        t(lang, MessageId::HoverInterval, &[bound(e.low), bound(e.high)])
    };
    let n = t(lang, MessageId::HoverN, &[e.n.to_string()]);
    format!("{}: {}{interval}{n}", step.name, number(e.value))
}
