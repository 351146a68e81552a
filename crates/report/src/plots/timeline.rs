//! What happened during a step, and the drains between steps.

use std::collections::BTreeSet;

use tapedeck_record::{Case, Unit};
use tapedeck_slo::StepFigure;

use super::{Named, file_name, short, t};
use crate::answer::Answer;
use crate::messages::{Lang, MessageId, number};
use crate::read::{Run, Step};
use crate::series::Bin;
use crate::svg::{BLUE, DASHES, GREY, Key, Legend, Mark, Plot, RED, SERIES, Shape, Size};

/// Steps whose time lines are worth a look: the highest passing, the first failing, soak, faults, and what was cut short.
pub(crate) fn timeline_steps<'a>(run: &'a Run, answer: &Answer) -> Vec<&'a Step> {
    let wanted: BTreeSet<u32> =
        answer.short.iter().flat_map(|c| [c.n_star, c.first_fail]).flatten().collect();
    let ladder = run.ladder();
    let mut steps: Vec<&Step> =
        ladder.iter().filter(|s| wanted.contains(&s.report.streams)).copied().collect();
    if steps.is_empty() {
        steps.extend(ladder.last().copied());
    }
    let worth = |s: &&Step| s.partial || matches!(s.id.case, Case::Soak | Case::Fault);
    let told = |s: &&Step| s.series.sources("kv_pool").next().is_some() || !s.calls.is_empty();
    steps.extend(run.steps.iter().filter(worth).filter(told));
    steps.truncate(12);
    steps
}

/// What happened during one step: open calls, KV pools, waiting requests, GPUs, with events.
pub(crate) fn timeline(run: &Run, step: &Step, lang: Lang) -> Vec<Named> {
    let origin = origin_s(step);
    let last = step.calls.iter().map(|c| c.done_s).fold(step.report.window_to_s, f64::max);
    let x_label = t(lang, MessageId::SecondsIntoStep, &[]);
    let frame = |title: MessageId, unit: &str| {
        let mut plot = Plot::new(&format!("{}: {}", step.name, t(lang, title, &[])), &x_label, unit);
        plot.marks.push(Mark::Stretch {
            from: step.report.window_from_s - origin,
            to: step.report.window_to_s - origin,
            title: t(lang, MessageId::CountedWindow, &[]),
        });
        plot.size = Size { width: 480.0, height: 220.0 };
        plot.x_range = (last > origin).then_some((0.0, last - origin));
        plot
    };
    let mut all = Vec::new();
    let mut open = frame(MessageId::TimeOpen, &t(lang, MessageId::Calls, &[]));
    open.marks.push(Mark::Line {
        points: open_calls(step, origin),
        colour: BLUE,
        width: 1.3,
        dash: "",
        title: t(lang, MessageId::TimeOpen, &[]),
    });
    all.push(("open", open));
    let [share, gigabytes] = [Unit::Share, Unit::Gigabytes].map(|unit| unit.axis().text(lang));
    let requests = t(lang, MessageId::Requests, &[]);
    for (name, title, unit, scalar) in [
        ("kv", MessageId::TimeKv, share, "kv_pool"),
        ("waiting", MessageId::TimeWaiting, requests.as_str(), "waiting_capacity"),
        ("running", MessageId::TimeRunning, requests.as_str(), "running"),
        ("gpu", MessageId::TimeGpu, share, "gpu_utilisation"),
        ("gpu-memory", MessageId::TimeGpuMemory, gigabytes, "gpu_memory_used_bytes"),
    ] {
        let scale = if name == "gpu-memory" { 1e-9 } else { 1.0 };
        let mut plot = frame(title, unit);
        let crowded = step.series.sources(scalar).count() > 1;
        for (at, source) in step.series.sources(scalar).enumerate() {
            let colour = SERIES.get(at % SERIES.len()).copied().unwrap_or(BLUE);
            let dash = DASHES.get(at % DASHES.len()).copied().unwrap_or("");
            let bins = step.series.of(source, scalar);
            let bins = if crowded { coarse(&bins) } else { bins };
            let points = with_gaps(&bins).map(|(at_s, mean)| (at_s - origin, mean * scale)).collect();
            for run in gapless(&bins) {
                let points = run.iter().map(|b| (b.at_s - origin, b.min * scale, b.max * scale)).collect();
                plot.marks.push(Mark::Band { points, colour });
            }
            plot.marks.push(Mark::Line { points, colour, width: 1.2, dash, title: source.to_string() });
            plot.legend.push(Legend { colour, key: Key::Line(dash), label: short(source) });
        }
        all.push((name, plot));
    }
    let mut said_at = f64::NEG_INFINITY;
    let events: Vec<Mark> = run
        .events
        .iter()
        .filter(|e| e.step.as_deref() == Some(&step.name) && e.at_s >= origin && e.at_s <= last)
        .filter(|e| e.what != "step_begins")
        .map(|e| {
            // Labels that would lie on each other are left to the table of events.
            let x = e.at_s - origin;
            let crowded = x - said_at < (last - origin) * 0.12;
            if !crowded {
                said_at = x;
            }
            Mark::Upright { x, colour: GREY, label: if crowded { String::new() } else { e.what.clone() } }
        })
        .collect();
    all.into_iter()
        .filter(|(_, plot)| plot.has_data())
        .map(|(name, mut plot)| {
            plot.marks.extend(events.iter().cloned());
            Named { name: format!("timeline-{}-{name}", file_name(&step.name)), plot }
        })
        .collect()
}

/// When a step began, seconds from the run's origin: its time line counts from here.
pub(crate) fn origin_s(step: &Step) -> f64 {
    step.calls.iter().map(|c| c.start_s).fold(step.report.window_from_s, f64::min)
}

/// Bins of a time line: as many as several curves on one plot can still be told apart with.
const COARSE: usize = 72;

/// Neighbours joined until there are few enough.
fn coarse(bins: &[Bin]) -> Vec<Bin> {
    let every = bins.len().div_ceil(COARSE).max(1);
    let mean = |part: &[Bin], of: fn(&Bin) -> f64| {
        #[expect(clippy::cast_precision_loss, reason = "a few bins")]
        let n = part.len() as f64;
        part.iter().map(of).sum::<f64>() / n
    };
    let join = |part: &[Bin]| Bin {
        at_s: mean(part, |b| b.at_s),
        min: part.iter().map(|b| b.min).fold(f64::INFINITY, f64::min),
        mean: mean(part, |b| b.mean),
        max: part.iter().map(|b| b.max).fold(f64::NEG_INFINITY, f64::max),
    };
    // What lies on both sides of a gap is not joined.
    gapless(bins).into_iter().flat_map(|run| run.chunks(every).map(join).collect::<Vec<_>>()).collect()
}

/// Stretches without a gap: nothing is known of an instance while it does not answer.
fn gapless(bins: &[Bin]) -> Vec<&[Bin]> {
    let mut steps: Vec<f64> =
        bins.windows(2).filter_map(|w| Some(w.get(1)?.at_s - w.first()?.at_s)).collect();
    let usual_s = tapedeck_stats::percentile(&mut steps, 0.5).unwrap_or(f64::INFINITY);
    bins.chunk_by(|a, b| b.at_s - a.at_s <= 3.5 * usual_s).collect()
}

/// Times and means, with a point that is no number in every gap.
fn with_gaps(bins: &[Bin]) -> impl Iterator<Item = (f64, f64)> {
    gapless(bins).into_iter().flat_map(|run| {
        run.iter().map(|b| (b.at_s, b.mean)).chain([(f64::NAN, f64::NAN)]).collect::<Vec<_>>()
    })
}

/// Calls open at each instant, thinned out.
fn open_calls(step: &Step, origin: f64) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> =
        step.calls.iter().flat_map(|c| [(c.start_s, 1.0), (c.done_s, -1.0)]).collect();
    // A stream ends one call and begins the next in the same instant: it never has two.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let every = (changes.len() / 400).max(1);
    let mut open = 0.0;
    let mut points = vec![(0.0, 0.0)];
    let mut since = every;
    for (at, (time, change)) in changes.iter().enumerate() {
        open += change;
        since += 1;
        let whole = changes.get(at + 1).is_none_or(|next| next.0 > *time);
        if whole && (since >= every || at + 1 == changes.len()) {
            points.push((time - origin, open));
            since = 0;
        }
    }
    points
}

/// Seconds until every instance was empty, over the steps in order.
pub(crate) fn drains(run: &Run, lang: Lang) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, MessageId::DrainTitle, &[]),
        &t(lang, MessageId::StepOrder, &[]),
        StepFigure::DrainS.spec().unit.axis().text(lang),
    );
    let mut x = 0.0;
    let mut ticks = Vec::new();
    for step in run.steps.iter().filter(|s| !s.partial) {
        x += 1.0;
        ticks.push(x);
        plot.x_names.push(step.name.clone());
        let Some(drain_s) = step.report.drain_s else { continue };
        plot.marks.push(Mark::Point {
            x,
            y: drain_s,
            low: None,
            high: None,
            colour: if step.report.drained == Some(false) { RED } else { BLUE },
            shape: if step.report.drained == Some(false) { Shape::Square } else { Shape::Circle },
            hollow: false,
            title: format!("{}: {} s", step.name, number(drain_s)),
        });
    }
    plot.x_ticks = Some(ticks);
    plot.size.height = 360.0;
    plot.has_data().then(|| Named { name: "drain".into(), plot })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(at_s: f64, mean: f64) -> Bin {
        Bin { at_s, min: mean - 1.0, mean, max: mean + 1.0 }
    }

    #[test]
    fn nothing_is_drawn_across_a_gap() {
        // An instance that was away between 10 and 70 s.
        let bins: Vec<Bin> = (0..10).chain(70..80).map(|s| bin(f64::from(s), 5.0)).collect();
        let points: Vec<(f64, f64)> = with_gaps(&bins).collect();
        let mut plot = Plot::new("t", "x", "y");
        plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.0, dash: "", title: String::new() });
        let svg = plot.svg();
        let path = svg.split("class=\"data\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(gapless(&bins).iter().map(|run| run.len()).collect::<Vec<_>>(), [10, 10]);
    }

    #[test]
    fn many_bins_are_joined_with_their_extremes_and_never_across_a_gap() {
        let bins: Vec<Bin> = (0..500).chain(900..1400).map(|s| bin(f64::from(s), f64::from(s))).collect();
        let few = coarse(&bins);
        assert!(few.len() <= COARSE + 2, "{}", few.len());
        assert_eq!((few.first().unwrap().min, few.last().unwrap().max), (-1.0, 1400.0));
        assert!(few.iter().all(|b| !(500.0..900.0).contains(&b.at_s)), "{few:?}");
        assert_eq!(coarse(&bins[..50]), bins[..50]);
    }
}
