//! The judged figures of single calls: what share of them is at or below a value, and how they are spread.

use tapedeck_slo::Figure;

use super::{Named, colour, dash, file_name, name_of, t, verdicts};
use crate::messages::{Lang, MessageId, number};
use crate::read::{Run, Step};
use crate::svg::{GREY, Key, Mark, Plot, RED, Size};

/// What share of the calls is at or below a value: one plot a figure, one curve a tier.
pub(crate) fn cumulative(run: &Run, lang: Lang) -> Vec<Named> {
    Figure::JUDGED.into_iter().filter_map(|figure| cumulative_of(run, figure, lang)).collect()
}

fn cumulative_of(run: &Run, figure: Figure, lang: Lang) -> Option<Named> {
    let label = figure.spec().label();
    let label = label.text(lang);
    let mut plot = Plot::new(
        &t(lang, MessageId::CumulativeTitle, &[label.into()]),
        label,
        &t(lang, MessageId::ShareOfCalls, &[]),
    );
    let tiers: Vec<&Step> = run.ladder().into_iter().filter(|s| s.calls_agree).collect();
    let mut threshold = None;
    let mut names = Vec::new();
    let all = tiers.len().max(2);
    for (at, step) in tiers.iter().enumerate() {
        let mut values: Vec<f64> = step.figures().filter_map(|c| figure.of_call(&step.report, c)).collect();
        tapedeck_stats::sort(&mut values);
        #[expect(clippy::cast_precision_loss, reason = "calls of a tier")]
        let n = values.len() as f64;
        // A few hundred points draw any curve; all of a large tier would only swell the file.
        let every = (values.len() / 300).max(1);
        let points: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .filter(|(i, _)| i % every == 0 || i + 1 == values.len())
            .map(|(i, v)| {
                #[expect(clippy::cast_precision_loss, reason = "calls of a tier")]
                let rank = (i + 1) as f64;
                (*v, rank / n)
            })
            .collect();
        // Each name a little higher than the one before, where its own curve passes, so that names do not meet.
        #[expect(clippy::cast_precision_loss, reason = "tiers of a ladder")]
        let height = 0.08 + 0.78 * at as f64 / (all - 1) as f64;
        let Some((x, y)) = points.iter().find(|p| p.1 >= height).copied() else { continue };
        names.push(Mark::Note { x, y, colour: colour(step.report.verdict), label: step.name.clone() });
        plot.marks.push(Mark::Line {
            points,
            colour: colour(step.report.verdict),
            width: 1.2,
            dash: dash(step.report.verdict),
            title: format!("{} (n = {n})", step.name),
        });
        threshold = threshold.or_else(|| {
            step.report.limits.iter().find(|l| Some(l.limit) == figure.limit()).map(|l| l.threshold)
        });
    }
    if let Some(x) = threshold {
        plot.marks.push(Mark::Upright { x, colour: RED, label: t(lang, MessageId::LimitAt, &[number(x)]) });
    }
    plot.marks.push(Mark::Level { y: 0.95, colour: GREY, label: String::new() });
    plot.marks.append(&mut names);
    let right = plot.marks.iter().filter_map(|mark| match mark {
        Mark::Line { points, .. } => points.last().map(|p| p.0),
        Mark::Upright { x, .. } => Some(*x),
        _ => None,
    });
    if let Some(x) = right.reduce(f64::max) {
        plot.marks.push(Mark::Note { x, y: 0.9, colour: GREY, label: "p95".into() });
    }
    // Room above for the label of the limit.
    plot.y_range = Some((0.0, 1.12));
    plot.legend = verdicts(&tiers, lang, |v| Key::Line(dash(v)));
    plot.has_data().then(|| Named { name: format!("cumulative-{}", name_of(figure)), plot })
}

/// Histograms of the judged figures of one tier.
pub(crate) fn histograms(step: &Step, lang: Lang) -> Vec<Named> {
    if !step.calls_agree {
        return Vec::new();
    }
    Figure::JUDGED.into_iter().filter_map(|figure| histogram_of(step, figure, lang)).collect()
}

fn histogram_of(step: &Step, figure: Figure, lang: Lang) -> Option<Named> {
    let values: Vec<f64> = step.figures().filter_map(|c| figure.of_call(&step.report, c)).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() {
        return None;
    }
    // Rice's rule: few calls do not give many bins.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few dozen"
    )]
    let bins = (2.0 * (values.len() as f64).cbrt()).ceil().clamp(5.0, 40.0) as usize;
    #[expect(clippy::cast_precision_loss, reason = "a few dozen")]
    let width = ((high - low) / bins as f64).max(1e-6);
    let mut counts = vec![0_u32; bins];
    for v in &values {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "v >= low")]
        let bin = ((v - low) / width) as usize;
        if let Some(count) = counts.get_mut(bin.min(bins - 1)) {
            *count += 1;
        }
    }
    let mut from = low;
    let bars = counts
        .iter()
        .map(|count| {
            let to = from + width;
            let bar = (from, to, f64::from(*count), format!("{} .. {}: {count}", number(from), number(to)));
            from = to;
            bar
        })
        .collect();
    let head = format!("{} {}", step.name, figure.spec().label().text(lang));
    let verdict = crate::html::verdict_name(step.report.verdict).text(lang).to_owned();
    let mut plot = Plot::new(&head, "", &t(lang, MessageId::CallsN, &[values.len().to_string(), verdict]));
    plot.size = Size { width: 300.0, height: 170.0 };
    plot.marks.push(Mark::Bars { bars, colour: colour(step.report.verdict) });
    let threshold = step.report.limits.iter().find(|l| Some(l.limit) == figure.limit()).map(|l| l.threshold);
    // A limit far outside would squeeze the bars into a corner.
    if let Some(x) = threshold.filter(|x| *x < high + 2.0 * (high - low).max(width)) {
        plot.marks.push(Mark::Upright { x, colour: RED, label: t(lang, MessageId::LimitAt, &[number(x)]) });
    }
    Some(Named { name: format!("histogram-{}-{}", file_name(&step.name), name_of(figure)), plot })
}
