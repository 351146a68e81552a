//! Every plot of a report, by name.

use std::collections::BTreeSet;

use tapedeck_record::{CallRecord, Case};
use tapedeck_slo::{Estimate, Limit, TierReport, Verdict};

use crate::answer::Answer;
use crate::messages::{Lang, MessageId, number};
use crate::read::{Run, Step};
use crate::series::Bin;
use crate::svg::{BLUE, DASHES, GREEN, GREY, Key, Legend, Mark, ORANGE, Plot, RED, SERIES, Shape, Size};

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

/// One of the seed's five curves.
struct Curve {
    name: &'static str,
    title: MessageId,
    unit: MessageId,
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
        title: MessageId::CurveTtft,
        unit: MessageId::Seconds,
        limit: Some(Limit::Ttft),
        value: |r| r.ttft.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-rtf",
        title: MessageId::CurveRtf,
        unit: MessageId::Ratio,
        limit: Some(Limit::Rtf),
        value: |r| r.rtf.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-final",
        title: MessageId::CurveFinal,
        unit: MessageId::Seconds,
        limit: Some(Limit::Final),
        value: |r| r.final_latency.as_ref().map(|s| s.p95),
    },
    Curve {
        name: "curve-wer",
        title: MessageId::CurveWer,
        unit: MessageId::Ratio,
        limit: None,
        value: |r| r.quality.as_ref().and_then(|q| q.wer.or(q.cer)),
    },
    Curve {
        name: "curve-vram",
        title: MessageId::CurveVram,
        unit: MessageId::Gigabytes,
        limit: None,
        value: vram,
    },
    Curve {
        name: "curve-kv",
        title: MessageId::CurveKv,
        unit: MessageId::Share,
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

/// Word errors come from the labelled steps of TC-04, all else from the ladder.
fn tiers_of<'a>(run: &'a Run, curve: &Curve) -> Vec<&'a Step> {
    let mut tiers = run.ladder();
    if curve.name == "curve-wer" {
        let labelled = run.steps.iter().filter(|s| s.id.case == Case::Quality && !s.partial);
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
pub(crate) fn curves(run: &Run, answer: &Answer, lang: Lang) -> Vec<Result<Named, MessageId>> {
    CURVES.iter().map(|curve| curve_plot(run, answer, curve, lang).ok_or(curve.title)).collect()
}

fn curve_plot(run: &Run, answer: &Answer, curve: &Curve, lang: Lang) -> Option<Named> {
    let tiers = tiers_of(run, curve);
    let mut plot =
        Plot::new(&t(lang, curve.title, &[]), &t(lang, MessageId::Streams, &[]), &t(lang, curve.unit, &[]));
    let at = |s: &Step| (f64::from(s.report.streams), (curve.value)(&s.report));
    let points: Vec<(f64, f64)> = tiers.iter().filter_map(|s| Some((at(s).0, at(s).1?.value))).collect();
    // Words are judged by their alarm, all else by the verdict of the tier.
    let of_words = curve.name == "curve-wer";
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
    let threshold = curve.limit.and_then(|limit| {
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
    plot.has_data().then(|| Named { name: curve.name.into(), plot }).filter(|_| !tiers.is_empty())
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

/// The three judged figures of a call.
pub(crate) type Figure = (&'static str, MessageId, Limit, fn(&TierReport, &CallRecord) -> Option<f64>);

pub(crate) const FIGURES: [Figure; 3] = [
    ("ttft", MessageId::FigTtft, Limit::Ttft, |r, c| r.ttft_basis.of(c)),
    ("rtf", MessageId::FigRtf, Limit::Rtf, |_, c| c.rtf),
    ("final", MessageId::FigFinal, Limit::Final, |r, c| r.final_basis.of(c)),
];

/// What share of the calls is at or below a value: one plot a figure, one curve a tier.
pub(crate) fn cumulative(run: &Run, lang: Lang) -> Vec<Named> {
    FIGURES.iter().filter_map(|figure| cumulative_of(run, figure, lang)).collect()
}

fn cumulative_of(run: &Run, (name, title, limit, value): &Figure, lang: Lang) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, MessageId::CumulativeTitle, &[t(lang, *title, &[])]),
        &t(lang, *title, &[]),
        &t(lang, MessageId::ShareOfCalls, &[]),
    );
    let tiers: Vec<&Step> = run.ladder().into_iter().filter(|s| s.calls_agree).collect();
    let mut threshold = None;
    let mut names = Vec::new();
    let all = tiers.len().max(2);
    for (at, step) in tiers.iter().enumerate() {
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
        threshold =
            threshold.or_else(|| step.report.limits.iter().find(|l| l.limit == *limit).map(|l| l.threshold));
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
    let head = format!("{} {}", step.name, t(lang, *title, &[]));
    let verdict = crate::html::verdict_name(step.report.verdict).text(lang).to_owned();
    let mut plot = Plot::new(&head, "", &t(lang, MessageId::CallsN, &[values.len().to_string(), verdict]));
    plot.size = Size { width: 300.0, height: 170.0 };
    plot.marks.push(Mark::Bars { bars, colour: colour(step.report.verdict) });
    let threshold = step.report.limits.iter().find(|l| l.limit == *limit).map(|l| l.threshold);
    // A limit far outside would squeeze the bars into a corner.
    if let Some(x) = threshold.filter(|x| *x < high + 2.0 * (high - low).max(width)) {
        plot.marks.push(Mark::Upright { x, colour: RED, label: t(lang, MessageId::LimitAt, &[number(x)]) });
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
    let frame = |title: MessageId, unit: MessageId| {
        let mut plot =
            Plot::new(&format!("{}: {}", step.name, t(lang, title, &[])), &x_label, &t(lang, unit, &[]));
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
    let mut open = frame(MessageId::TimeOpen, MessageId::Calls);
    open.marks.push(Mark::Line {
        points: open_calls(step, origin),
        colour: BLUE,
        width: 1.3,
        dash: "",
        title: t(lang, MessageId::TimeOpen, &[]),
    });
    all.push(("open", open));
    for (name, title, unit, scalar) in [
        ("kv", MessageId::TimeKv, MessageId::Share, "kv_pool"),
        ("waiting", MessageId::TimeWaiting, MessageId::Requests, "waiting_capacity"),
        ("running", MessageId::TimeRunning, MessageId::Requests, "running"),
        ("gpu", MessageId::TimeGpu, MessageId::Share, "gpu_utilisation"),
        ("gpu-memory", MessageId::TimeGpuMemory, MessageId::Gigabytes, "gpu_memory_used_bytes"),
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
        &t(lang, MessageId::Seconds, &[]),
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
        &t(lang, MessageId::Gigabytes, &[]),
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
    name: &str,
    title: MessageId,
    periods: &[(f64, f64, String)],
    limit: Option<f64>,
    lang: Lang,
) -> Option<Named> {
    let mut plot = Plot::new(
        &t(lang, MessageId::OverTheSoak, &[t(lang, title, &[])]),
        &t(lang, MessageId::Hours, &[]),
        &t(lang, if title == MessageId::CurveRtf { MessageId::Ratio } else { MessageId::Seconds }, &[]),
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
    (!periods.is_empty()).then(|| Named { name: format!("soak-{name}"), plot })
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
