//! Every plot of a report, by name.

use std::collections::BTreeSet;

use tapedeck_record::CallRecord;
use tapedeck_slo::{Estimate, Limit, TierReport, Verdict};

use crate::answer::Answer;
use crate::read::{Run, Step};
use crate::svg::{BLUE, GREEN, GREY, Legend, Mark, ORANGE, Plot, RED, SERIES, Size};
use crate::words::{Lang, Word, number};

/// A plot with the name that its files carry.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) plot: Plot,
}

/// Picks a sentence's language and fills its places.
fn t(lang: Lang, word: Word, values: &[String]) -> String {
    crate::words::fill(word.template(lang), &values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// One of the seed's five curves.
struct Curve {
    name: &'static str,
    title: Word,
    unit: Word,
    limit: Option<Limit>,
    value: fn(&TierReport) -> Option<Estimate>,
}

/// A figure of a whole tier, which has no interval.
fn bare(value: Option<f64>, n: u64) -> Option<Estimate> {
    value.map(|value| Estimate { value, n, low: None, high: None })
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^53")]
fn vram(r: &TierReport) -> Option<Estimate> {
    bare(r.gpu.as_ref()?.vram_used_bytes.map(|b| b as f64 / 1e9), u64::from(r.gpu.as_ref()?.gpus))
}

fn scrapes(r: &TierReport) -> u64 {
    r.instances.values().map(|i| i.scrapes).sum()
}

const CURVES: [Curve; 6] = [
    Curve {
        name: "curve-ttft",
        title: Word::CurveTtft,
        unit: Word::Seconds,
        limit: Some(Limit::Ttft),
        value: |r| r.ttft.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-rtf",
        title: Word::CurveRtf,
        unit: Word::Ratio,
        limit: Some(Limit::Rtf),
        value: |r| r.rtf.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-final",
        title: Word::CurveFinal,
        unit: Word::Seconds,
        limit: Some(Limit::Final),
        value: |r| r.final_latency.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-wer",
        title: Word::CurveWer,
        unit: Word::Ratio,
        limit: None,
        value: |r| r.quality.as_ref().and_then(|q| q.wer.or(q.cer)),
    },
    Curve { name: "curve-vram", title: Word::CurveVram, unit: Word::Gigabytes, limit: None, value: vram },
    Curve {
        name: "curve-kv",
        title: Word::CurveKv,
        unit: Word::Share,
        limit: Some(Limit::KvPool),
        value: |r| bare(r.kv_pool_p95, scrapes(r)),
    },
];

fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => GREEN,
        Verdict::Fail => RED,
        _ => ORANGE,
    }
}

/// Word errors come from the labelled steps of TC-04, all else from the ladder.
fn tiers_of<'a>(run: &'a Run, curve: &Curve) -> Vec<&'a Step> {
    let mut tiers = run.ladder();
    if curve.name == "curve-wer" {
        let labelled = run.steps.iter().filter(|s| s.name.starts_with("tc04") && !s.partial);
        // Where the labelled tape was played, its words alone stand: those of the ladder are of another tape.
        let labelled: Vec<&Step> = labelled.collect();
        if !labelled.is_empty() {
            tiers = labelled;
        }
    }
    tiers.retain(|s| (curve.value)(&s.report).is_some());
    tiers.sort_by_key(|s| s.report.streams);
    tiers
}

/// The five curves of the plan (and the final), with intervals, limits and the knee. A curve without data is not
/// drawn; its name is returned instead.
pub(crate) fn curves(run: &Run, answer: &Answer, lang: Lang) -> Vec<Result<Named, Word>> {
    CURVES.iter().map(|curve| curve_plot(run, answer, curve, lang).ok_or(curve.title)).collect()
}

fn curve_plot(run: &Run, answer: &Answer, curve: &Curve, lang: Lang) -> Option<Named> {
    let tiers = tiers_of(run, curve);
    let mut plot =
        Plot::new(&t(lang, curve.title, &[]), &t(lang, Word::Streams, &[]), &t(lang, curve.unit, &[]));
    let at = |s: &Step| (f64::from(s.report.streams), (curve.value)(&s.report));
    let points: Vec<(f64, f64)> = tiers.iter().filter_map(|s| Some((at(s).0, at(s).1?.value))).collect();
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.5, title: String::new() });
    for step in &tiers {
        let (x, Some(e)) = at(step) else { continue };
        plot.marks.push(Mark::Point {
            x,
            y: e.value,
            low: e.low,
            high: e.high,
            colour: colour(step.report.verdict),
            hollow: step.report.point_only,
            title: estimate_title(step, &e, lang),
        });
    }
    let threshold = curve.limit.and_then(|limit| {
        tiers.iter().flat_map(|s| &s.report.limits).find(|l| l.limit == limit).map(|l| l.threshold)
    });
    if let Some(y) = threshold {
        plot.marks.push(Mark::Level { y, colour: RED, label: t(lang, Word::LimitAt, &[number(y)]) });
    }
    if let Some(n) = answer.short.as_ref().and_then(|c| c.n_star) {
        plot.marks.push(Mark::Upright { x: f64::from(n), colour: GREY, label: format!("N* {n}") });
    }
    plot.x_ticks = Some(tiers.iter().map(|s| f64::from(s.report.streams)).collect());
    plot.legend = vec![
        Legend { colour: GREEN, label: t(lang, Word::Pass, &[]) },
        Legend { colour: RED, label: t(lang, Word::Fail, &[]) },
    ];
    plot.has_data().then(|| Named { name: curve.name.into(), plot }).filter(|_| !tiers.is_empty())
}

fn estimate_title(step: &Step, e: &Estimate, lang: Lang) -> String {
    let bound = |b: Option<f64>| b.map_or_else(|| t(lang, Word::NoBound, &[]), number);
    let interval = if e.low.is_none() && e.high.is_none() {
        String::new()
    } else {
        t(lang, Word::HoverInterval, &[bound(e.low), bound(e.high)])
    };
    let n = t(lang, Word::HoverN, &[e.n.to_string()]);
    format!("{}: {}{interval}{n}", step.name, number(e.value))
}

/// The three judged figures of a call.
pub(crate) type Figure = (&'static str, Word, Limit, fn(&TierReport, &CallRecord) -> Option<f64>);

pub(crate) const FIGURES: [Figure; 3] = [
    ("ttft", Word::FigTtft, Limit::Ttft, |r, c| r.ttft_basis.of(c)),
    ("rtf", Word::FigRtf, Limit::Rtf, |_, c| c.rtf),
    ("final", Word::FigFinal, Limit::Final, |r, c| r.final_basis.of(c)),
];

/// What share of the calls is at or below a value: one plot a figure, one curve a tier.
pub(crate) fn cumulative(run: &Run, lang: Lang) -> Vec<Named> {
    FIGURES.iter().filter_map(|figure| cumulative_of(run, figure, lang)).collect()
}

fn cumulative_of(run: &Run, (name, title, limit, value): &Figure, lang: Lang) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, Word::CumulativeTitle, &[t(lang, *title, &[])]),
        &t(lang, *title, &[]),
        &t(lang, Word::ShareOfCalls, &[]),
    );
    let tiers: Vec<&Step> = run.ladder().into_iter().filter(|s| s.calls_agree).collect();
    let mut threshold = None;
    for step in &tiers {
        let mut values: Vec<f64> = step.figures().filter_map(|c| value(&step.report, c)).collect();
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
        if points.is_empty() {
            continue;
        }
        plot.marks.push(Mark::Line {
            points,
            colour: colour(step.report.verdict),
            width: 1.2,
            title: format!("{} (n = {n})", step.name),
        });
        threshold =
            threshold.or_else(|| step.report.limits.iter().find(|l| l.limit == *limit).map(|l| l.threshold));
    }
    if let Some(x) = threshold {
        plot.marks.push(Mark::Upright { x, colour: RED, label: t(lang, Word::LimitAt, &[number(x)]) });
    }
    plot.marks.push(Mark::Level { y: 0.95, colour: GREY, label: "p95".into() });
    plot.y_range = Some((0.0, 1.0));
    plot.legend = vec![
        Legend { colour: GREEN, label: t(lang, Word::Pass, &[]) },
        Legend { colour: RED, label: t(lang, Word::Fail, &[]) },
    ];
    plot.has_data().then(|| Named { name: format!("cumulative-{name}"), plot })
}

/// Histograms of the judged figures of one tier.
pub(crate) fn histograms(step: &Step, lang: Lang) -> Vec<Named> {
    if !step.calls_agree {
        return Vec::new();
    }
    FIGURES.iter().filter_map(|figure| histogram_of(step, figure, lang)).collect()
}

fn histogram_of(step: &Step, (name, title, limit, value): &Figure, lang: Lang) -> Option<Named> {
    let values: Vec<f64> = step.figures().filter_map(|c| value(&step.report, c)).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() {
        return None;
    }
    const BINS: usize = 24;
    let width = ((high - low) / 24.0).max(1e-6);
    let mut counts = [0_u32; BINS];
    for v in &values {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "v >= low")]
        let bin = ((v - low) / width) as usize;
        if let Some(count) = counts.get_mut(bin.min(BINS - 1)) {
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
    let head = format!("{} {}", step.name, t(lang, *title, &[]));
    let mut plot = Plot::new(&head, "", &t(lang, Word::CallsN, &[values.len().to_string()]));
    plot.size = Size { width: 300.0, height: 170.0 };
    plot.marks.push(Mark::Bars { bars, colour: colour(step.report.verdict) });
    let threshold = step.report.limits.iter().find(|l| l.limit == *limit).map(|l| l.threshold);
    // A limit far outside would squeeze the bars into a corner.
    if let Some(x) = threshold.filter(|x| *x < high + 2.0 * (high - low).max(width)) {
        plot.marks.push(Mark::Upright { x, colour: RED, label: t(lang, Word::LimitAt, &[number(x)]) });
    }
    Some(Named { name: format!("histogram-{}-{name}", file_name(&step.name)), plot })
}

/// A step's name as part of a file's name.
pub(crate) fn file_name(step: &str) -> String {
    step.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

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
    let worth = |s: &&Step| s.partial || s.name.starts_with("tc05") || s.name.starts_with("tc06");
    let told = |s: &&Step| s.series.sources("kv_pool").next().is_some() || !s.calls.is_empty();
    steps.extend(run.steps.iter().filter(worth).filter(told));
    steps.truncate(12);
    steps
}

/// What happened during one step: open calls, KV pools, waiting requests, GPUs, with events.
pub(crate) fn timeline(run: &Run, step: &Step, lang: Lang) -> Vec<Named> {
    let origin = step.calls.iter().map(|c| c.start_s).fold(step.report.window_from_s, f64::min);
    let x_label = t(lang, Word::SecondsIntoStep, &[]);
    let frame = |title: Word, unit: Word| {
        let mut plot =
            Plot::new(&format!("{}: {}", step.name, t(lang, title, &[])), &x_label, &t(lang, unit, &[]));
        plot.marks.push(Mark::Stretch {
            from: step.report.window_from_s - origin,
            to: step.report.window_to_s - origin,
            title: t(lang, Word::CountedWindow, &[]),
        });
        plot.size = Size { width: 480.0, height: 220.0 };
        plot
    };
    let mut all = Vec::new();
    let mut open = frame(Word::TimeOpen, Word::Calls);
    open.marks.push(Mark::Line {
        points: open_calls(step, origin),
        colour: BLUE,
        width: 1.3,
        title: t(lang, Word::TimeOpen, &[]),
    });
    all.push(("open", open));
    for (name, title, unit, scalar) in [
        ("kv", Word::TimeKv, Word::Share, "kv_pool"),
        ("waiting", Word::TimeWaiting, Word::Requests, "waiting_capacity"),
        ("running", Word::TimeRunning, Word::Requests, "running"),
        ("gpu", Word::TimeGpu, Word::Share, "gpu_utilisation"),
        ("gpu-memory", Word::TimeGpuMemory, Word::Gigabytes, "gpu_memory_used_bytes"),
    ] {
        let scale = if name == "gpu-memory" { 1e-9 } else { 1.0 };
        let mut plot = frame(title, unit);
        for (at, source) in step.series.sources(scalar).enumerate() {
            let colour = SERIES.get(at % SERIES.len()).copied().unwrap_or(BLUE);
            let bins = step.series.of(source, scalar);
            let band = bins.iter().map(|b| (b.at_s - origin, b.min * scale, b.max * scale)).collect();
            let points = bins.iter().map(|b| (b.at_s - origin, b.mean * scale)).collect();
            plot.marks.push(Mark::Band { points: band, colour });
            plot.marks.push(Mark::Line { points, colour, width: 1.2, title: source.to_string() });
            plot.legend.push(Legend { colour, label: short(source) });
        }
        all.push((name, plot));
    }
    let last = step.calls.iter().map(|c| c.done_s).fold(step.report.window_to_s, f64::max);
    let mut said_at = f64::NEG_INFINITY;
    let events: Vec<Mark> = run
        .events
        .iter()
        .filter(|e| e.step.as_deref() == Some(&step.name) && e.at_s >= origin && e.at_s <= last + 600.0)
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

/// Long names (a GPU's uuid) end in dots.
fn short(name: &str) -> String {
    if name.chars().count() <= 12 {
        name.to_string()
    } else {
        format!("{}…", name.chars().take(10).collect::<String>())
    }
}

/// Calls open at each instant, thinned out.
fn open_calls(step: &Step, origin: f64) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> =
        step.calls.iter().flat_map(|c| [(c.start_s, 1.0), (c.done_s, -1.0)]).collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let every = (changes.len() / 400).max(1);
    let mut open = 0.0;
    let mut points = Vec::new();
    for (at, (time, change)) in changes.iter().enumerate() {
        open += change;
        if at % every == 0 || at + 1 == changes.len() {
            points.push((time - origin, open));
        }
    }
    points
}

/// Seconds until every instance was empty, over the steps in order.
pub(crate) fn drains(run: &Run, lang: Lang) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, Word::DrainTitle, &[]),
        &t(lang, Word::StepOrder, &[]),
        &t(lang, Word::Seconds, &[]),
    );
    let mut x = 0.0;
    let mut ticks = Vec::new();
    for step in run.steps.iter().filter(|s| !s.partial) {
        x += 1.0;
        ticks.push(x);
        let Some(drain_s) = step.report.drain_s else { continue };
        plot.marks.push(Mark::Point {
            x,
            y: drain_s,
            low: None,
            high: None,
            colour: if step.report.drained == Some(false) { RED } else { BLUE },
            hollow: false,
            title: format!("{}: {} s", step.name, number(drain_s)),
        });
    }
    plot.x_ticks = Some(ticks);
    plot.has_data().then(|| Named { name: "drain".into(), plot })
}

/// Memory of every GPU over a soak, with the fitted slope.
pub(crate) fn memory_over_time(step: &Step, slopes: &[(String, f64, f64)], lang: Lang) -> Vec<Named> {
    let origin = step.report.window_from_s;
    step.series
        .sources("gpu_memory_used_bytes")
        .enumerate()
        .map(|(at, source)| {
            let bins = step.series.of(source, "gpu_memory_used_bytes");
            let mut plot = Plot::new(
                &t(lang, Word::MemoryTitle, &[short(source)]),
                &t(lang, Word::Hours, &[]),
                &t(lang, Word::Gigabytes, &[]),
            );
            let points: Vec<(f64, f64)> =
                bins.iter().map(|b| ((b.at_s - origin) / 3600.0, b.mean / 1e9)).collect();
            let middle = points.get(points.len() / 2).copied();
            let low = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
            let high = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
            let room = ((high - low) * 0.2).max(0.05);
            if high >= low {
                plot.y_range = Some(((low - room).max(0.0), high + room));
            }
            let ends = points.first().zip(points.last()).map(|(a, b)| (a.0, b.0));
            plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.3, title: source.to_string() });
            let slope = slopes.iter().find(|(of, _, _)| of == source);
            if let (Some((_, per_h, threshold)), Some((mx, my)), Some((from, to))) = (slope, middle, ends) {
                let at = |x: f64| my + per_h / 1e9 * (x - mx);
                plot.marks.push(Mark::Line {
                    points: vec![(from, at(from)), (to, at(to))],
                    colour: if per_h > threshold { RED } else { GREEN },
                    width: 2.0,
                    title: format!("{} MiB/h", number(per_h / 1_048_576.0)),
                });
            }
            Named { name: format!("soak-memory-{at}"), plot }
        })
        .filter(|n| n.plot.has_data())
        .collect()
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
    let mut plot = Plot::new(title, &t(lang, Word::SecondsAfterFault, &[]), &t(lang, Word::LagP95, &[]));
    let points: Vec<(f64, f64)> = steps.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect();
    plot.marks.push(Mark::Line { points, colour: BLUE, width: 1.5, title: String::new() });
    if let Some(y) = limit_s {
        plot.marks.push(Mark::Level { y, colour: RED, label: t(lang, Word::LimitAt, &[number(y)]) });
    }
    for (x, label) in marks {
        plot.marks.push(Mark::Upright { x: *x, colour: GREY, label: label.clone() });
    }
    plot.has_data().then(|| Named { name: format!("fault-{index}"), plot })
}
