//! Figures over hours, and what follows a fault.

use tapedeck_record::Unit;
use tapedeck_slo::Figure;

use super::{Named, name_of, short, t, title_of};
use crate::messages::{Lang, MessageId, number};
use crate::read::Step;
use crate::svg::{BLUE, GREEN, GREY, Key, Legend, Mark, Plot, RED, Shape};

/// A fitted slope of memory: whose, bytes an hour, and from where on it is a leak.
#[derive(Debug, Clone)]
pub(crate) struct Slope {
    pub(crate) of: String,
    pub(crate) per_h: f64,
    pub(crate) threshold_per_h: f64,
}

const MIB: f64 = 1_048_576.0;

/// Memory of every GPU and of every engine's process over a soak, with the fitted slope.
pub(crate) fn memory_over_time(step: &Step, slopes: &[Slope], lang: Lang) -> Vec<Named> {
    ["gpu_memory_used_bytes", "resident_bytes"]
        .into_iter()
        .flat_map(|scalar| step.series.sources(scalar).map(move |source| (scalar, source)))
        .enumerate()
        .map(|(at, (scalar, source))| {
            let plot = memory_of(step, scalar, source, slopes, lang);
            Named { name: format!("soak-memory-{at}"), plot }
        })
        .filter(|n| n.plot.has_data())
        .collect()
}

fn memory_of(step: &Step, scalar: &str, source: &str, slopes: &[Slope], lang: Lang) -> Plot {
    let origin = step.report.window_from_s;
    let mut plot = Plot::new(
        &t(lang, MessageId::MemoryTitle, &[short(source)]),
        &t(lang, MessageId::Hours, &[]),
        Unit::Gigabytes.axis().text(lang),
    );
    let bins = step.series.of(source, scalar);
    let points: Vec<(f64, f64)> = bins.iter().map(|b| ((b.at_s - origin) / 3600.0, b.mean / 1e9)).collect();
    let low = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let room = ((high - low) * 0.2).max(0.05);
    if high >= low {
        plot.y_range = Some(((low - room).max(0.0), high + room));
    }
    if let Some(slope) = slopes.iter().find(|s| s.of == source) {
        let per_h = slope.per_h / 1e9;
        // A robust line goes through the median of what is left without its slope.
        let mut left: Vec<f64> = points.iter().map(|(x, y)| y - per_h * x).collect();
        let ends = points.first().zip(points.last()).map(|(a, b)| [a.0, b.0]);
        if let Some((ends, base)) = ends.zip(tapedeck_stats::percentile(&mut left, 0.5)) {
            let colour = if slope.per_h > slope.threshold_per_h { RED } else { GREEN };
            let label = t(
                lang,
                MessageId::SlopeIs,
                &[number(slope.per_h / MIB), number(slope.threshold_per_h / MIB)],
            );
            plot.marks.push(Mark::Line {
                points: ends.map(|x| (x, base + per_h * x)).to_vec(),
                colour,
                width: 2.5,
                dash: "7 3",
                title: label.clone(),
            });
            plot.legend.push(Legend { colour, key: Key::Line("7 3"), label });
        }
    }
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.3, dash: "", title: source.to_string() });
    plot
}

/// A p95 of a soak, stretch by stretch: hours, value, n.
pub(crate) fn over_time(
    figure: Figure,
    periods: &[(f64, f64, String)],
    limit: Option<f64>,
    lang: Lang,
) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, MessageId::OverTheSoak, &[title_of(figure).text(lang).into()]),
        &t(lang, MessageId::Hours, &[]),
        figure.spec().unit.axis().text(lang),
    );
    let points = periods.iter().map(|(hours, value, _)| (*hours, *value)).collect();
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.5, dash: "", title: String::new() });
    for (x, y, n) in periods {
        let title = format!("{}{}", number(*y), t(lang, MessageId::HoverN, std::slice::from_ref(n)));
        let (colour, shape) = (BLUE, Shape::Circle);
        plot.marks.push(Mark::Point {
            x: *x,
            y: *y,
            low: None,
            high: None,
            colour,
            shape,
            hollow: false,
            title,
        });
    }
    if let Some(y) = limit {
        plot.marks.push(Mark::Level { y, colour: RED, label: t(lang, MessageId::LimitAt, &[number(y)]) });
    }
    (!periods.is_empty()).then(|| Named { name: format!("soak-{}", name_of(figure)), plot })
}

/// Lag p95 in steps after a fault.
pub(crate) fn recovery(
    index: usize,
    title: &str,
    steps: &[(f64, Option<f64>)],
    marks: &[(f64, String)],
    limit_s: Option<f64>,
    lang: Lang,
) -> Option<Named> {
    let mut plot =
        Plot::new(title, &t(lang, MessageId::SecondsAfterFault, &[]), &t(lang, MessageId::LagP95, &[]));
    let points: Vec<(f64, f64)> = steps.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect();
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.5, dash: "", title: String::new() });
    if let Some(y) = limit_s {
        plot.marks.push(Mark::Level { y, colour: RED, label: t(lang, MessageId::LimitAt, &[number(y)]) });
    }
    for (x, label) in marks {
        plot.marks.push(Mark::Upright { x: *x, colour: GREY, label: label.clone() });
    }
    plot.has_data().then(|| Named { name: format!("fault-{index}"), plot })
}
