//! Plots as SVG: small, self-contained, with a title on everything that can be pointed at.

use std::fmt::Write as _;

use crate::messages::number;

/// Size of a plot in its own units; it scales with the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// What is drawn, in the coordinates of the data.
#[derive(Debug, Clone)]
pub(crate) enum Mark {
    /// Joined points, apart where one is not a number; `dash` as SVG has it, empty for a line without gaps.
    Line { points: Vec<(f64, f64)>, colour: &'static str, width: f64, dash: &'static str, title: String },
    /// A band between two curves: x, low, high.
    Band { points: Vec<(f64, f64, f64)>, colour: &'static str },
    /// A point with its interval (an open bound reaches the edge) and a title.
    Point {
        x: f64,
        y: f64,
        low: Option<f64>,
        high: Option<f64>,
        colour: &'static str,
        shape: Shape,
        hollow: bool,
        title: String,
    },
    /// Words beside a curve, on a white ground.
    Note { x: f64, y: f64, colour: &'static str, label: String },
    /// A horizontal line, labelled at its left end, where curves are low.
    Level { y: f64, colour: &'static str, label: String },
    /// A vertical line with a label at its top.
    Upright { x: f64, colour: &'static str, label: String },
    /// Bars from the bottom: from, to, height, title.
    Bars { bars: Vec<(f64, f64, f64, String)>, colour: &'static str },
    /// A grey stretch of x.
    Stretch { from: f64, to: f64, title: String },
}

/// The outline of a point, so that it means the same without its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
}

/// What a legend shows beside its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Line(&'static str),
    Point { shape: Shape, hollow: bool },
}

/// One entry of a legend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Legend {
    pub(crate) colour: &'static str,
    pub(crate) key: Key,
    pub(crate) label: String,
}

/// A plot.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) marks: Vec<Mark>,
    pub(crate) legend: Vec<Legend>,
    /// Ticks of the x axis, where they are not to be found.
    pub(crate) x_ticks: Option<Vec<f64>>,
    /// Names that stand at ticks instead of their numbers, read from below.
    pub(crate) x_names: Vec<String>,
    /// Ends of the x axis, where plots below each other share them.
    pub(crate) x_range: Option<(f64, f64)>,
    /// Ends of the y axis, where they are fixed.
    pub(crate) y_range: Option<(f64, f64)>,
    pub(crate) size: Size,
}

/// Colours that can be told apart by everybody and on paper.
pub(crate) const BLUE: &str = "#0b62a4";
pub(crate) const RED: &str = "#c0392b";
pub(crate) const GREEN: &str = "#1e7d4f";
pub(crate) const GREY: &str = "#667085";
pub(crate) const ORANGE: &str = "#b45f06";
pub(crate) const SERIES: [&str; 6] = [BLUE, ORANGE, GREEN, "#7a3e9d", "#00798c", "#8d5524"];
/// Dashes of lines that would else be told apart by their colours alone.
pub(crate) const DASHES: [&str; 6] = ["", "6 3", "2 3", "9 3 2 3", "12 4", "4 2"];

/// Text without what would end it in XML; control characters are not allowed there at all.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// About five round numbers between two ends.
pub(crate) fn ticks(from: f64, to: f64, about: f64) -> Vec<f64> {
    let span = to - from;
    if !(span.is_finite() && span > 0.0) {
        return vec![from];
    }
    let raw = span / about;
    let power = 10_f64.powf(raw.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= raw * 0.999).unwrap_or(raw);
    let mut at = (from / step).ceil();
    let mut all = Vec::new();
    while at * step <= to + step * 1e-6 && all.len() < 50 {
        all.push(at * step);
        at += 1.0;
    }
    all
}

/// Wide letters take about two narrow ones.
fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if c.is_ascii() { 0.56 } else { 1.0 }).sum::<f64>() * size
}

const FONT: f64 = 12.0;
/// Names at ticks.
const SMALL: f64 = 10.0;

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn x(&self, v: f64) -> f64 {
        self.left + (v - self.x.0) / (self.x.1 - self.x.0) * (self.right - self.left)
    }

    fn y(&self, v: f64) -> f64 {
        let share = ((v - self.y.0) / (self.y.1 - self.y.0)).clamp(-0.02, 1.02);
        self.bottom - share * (self.bottom - self.top)
    }
}

fn widen((low, high): (f64, f64)) -> (f64, f64) {
    if high > low { (low, high) } else { (low - 0.5, high + 0.5) }
}

impl Plot {
    /// A plot of the usual size with nothing on it.
    pub(crate) fn new(title: &str, x_label: &str, y_label: &str) -> Self {
        Self {
            title: title.into(),
            x_label: x_label.into(),
            y_label: y_label.into(),
            marks: Vec::new(),
            legend: Vec::new(),
            x_ticks: None,
            x_names: Vec::new(),
            x_range: None,
            y_range: None,
            size: Size { width: 480.0, height: 300.0 },
        }
    }

    /// Whether there is any data on it: lines of limits alone are no plot.
    pub(crate) fn has_data(&self) -> bool {
        self.marks.iter().any(|m| match m {
            Mark::Line { points, .. } => !points.is_empty(),
            Mark::Band { points, .. } => !points.is_empty(),
            Mark::Bars { bars, .. } => !bars.is_empty(),
            Mark::Point { .. } => true,
            _ => false,
        })
    }

    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        for mark in &self.marks {
            match mark {
                Mark::Line { points, .. } => {
                    xs.extend(points.iter().map(|p| p.0));
                    ys.extend(points.iter().map(|p| p.1));
                }
                Mark::Band { points, .. } => {
                    xs.extend(points.iter().map(|p| p.0));
                    ys.extend(points.iter().flat_map(|p| [p.1, p.2]));
                }
                Mark::Point { x, y, low, high, .. } => {
                    xs.push(*x);
                    ys.extend([Some(*y), *low, *high].into_iter().flatten());
                }
                Mark::Level { y, .. } => ys.push(*y),
                Mark::Upright { x, .. } => xs.push(*x),
                Mark::Note { .. } => {}
                Mark::Bars { bars, .. } => {
                    xs.extend(bars.iter().flat_map(|b| [b.0, b.1]));
                    ys.extend(bars.iter().map(|b| b.2).chain([0.0]));
                }
                Mark::Stretch { from, to, .. } => xs.extend([*from, *to]),
            }
        }
        let ends = |values: &[f64]| {
            let finite = || values.iter().copied().filter(|v| v.is_finite());
            let low = finite().fold(f64::INFINITY, f64::min);
            let high = finite().fold(f64::NEG_INFINITY, f64::max);
            if low <= high { (low, high) } else { (0.0, 1.0) }
        };
        let x = self.x_range.unwrap_or_else(|| widen(ends(&xs)));
        let y = self.y_range.unwrap_or_else(|| {
            // Where all is zero, zero is the bottom and not the middle.
            let (low, high) = match ends(&ys) {
                (low, high) if low.total_cmp(&high).is_eq() && low.abs() < f64::EPSILON => (0.0, 1.0),
                // What is never negative begins at zero, however small it is.
                (low, high) if low >= 0.0 => (0.0, widen((low, high)).1),
                ends => widen(ends),
            };
            let low = low.min(0.0);
            // Labels of upright lines stand above what is drawn.
            let labelled =
                self.marks.iter().any(|m| matches!(m, Mark::Upright { label, .. } if !label.is_empty()));
            let room = if labelled { 18.0 / (self.size.height - 84.0) } else { 0.08 };
            (low, high + (high - low) * room)
        });
        (x, y)
    }

    /// The plot as an SVG element of its own.
    pub(crate) fn svg(&self) -> String {
        let Size { width, height } = self.size;
        let (x, y) = self.ranges();
        let y_ticks = ticks(y.0, y.1, if height < 200.0 { 3.0 } else { 5.0 });
        let widest = y_ticks.iter().map(|t| width_of(&number(*t), FONT)).fold(0.0, f64::max);
        let frame = Frame {
            left: widest + 14.0,
            right: width - 14.0,
            top: 44.0,
            bottom: height
                - if self.x_label.is_empty() { 24.0 } else { 42.0 }
                - self.x_names.iter().map(|n| width_of(n, SMALL)).fold(0.0, f64::max),
            x: {
                let pad = if self.x_ticks.is_some() { (x.1 - x.0) * 0.03 } else { 0.0 };
                (x.0 - pad, x.1 + pad)
            },
            y,
        };
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\" font-family=\"'DejaVu Sans','Noto Sans CJK SC','WenQuanYi Zen Hei',sans-serif\" \
             font-size=\"{FONT}\"><title>{}</title><rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
            escape(&self.title),
            escape(&self.title)
        );
        text(&mut out, (8.0, 17.0), "start", "#101828", &self.title, true);
        text(&mut out, (8.0, 33.0), "start", GREY, &self.y_label, false);
        self.axes(&mut out, &frame, &y_ticks, x);
        for mark in &self.marks {
            draw(&mut out, &frame, mark);
        }
        self.labels(&mut out, &frame);
        self.legend(&mut out, &frame);
        out.push_str("</svg>");
        out
    }

    fn axes(&self, out: &mut String, f: &Frame, y_ticks: &[f64], x: (f64, f64)) {
        for tick in y_ticks {
            let y = f.y(*tick);
            line(out, (f.left, y), (f.right, y), "#e4e7ec", 1.0, "");
            text(out, (f.left - 5.0, y + 4.0), "end", GREY, &number(*tick), false);
        }
        let x_ticks = self.x_ticks.clone().unwrap_or_else(|| ticks(x.0, x.1, 6.0));
        let mut free = f64::NEG_INFINITY;
        for (index, tick) in x_ticks.iter().enumerate() {
            let at = f.x(*tick);
            line(out, (at, f.bottom), (at, f.bottom + 4.0), GREY, 1.0, "");
            if let Some(name) = self.x_names.get(index) {
                if at > free + SMALL {
                    let (x, y) = (at + 3.5, f.bottom + 7.0);
                    let _ = write!(
                        out,
                        "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"end\" font-size=\"{SMALL}\" \
                         fill=\"{GREY}\">{}</text>",
                        escape(name)
                    );
                    free = at;
                }
                continue;
            }
            let label = number(*tick);
            let half = width_of(&label, FONT) / 2.0;
            if at - half > free + 4.0 && at + half < self.size.width {
                text(out, (at, f.bottom + 17.0), "middle", GREY, &label, false);
                free = at + half;
            }
        }
        line(out, (f.left, f.bottom), (f.right, f.bottom), GREY, 1.0, "");
        if !self.x_label.is_empty() {
            text(
                out,
                ((f.left + f.right) / 2.0, self.size.height - 8.0),
                "middle",
                GREY,
                &self.x_label,
                false,
            );
        }
    }

    /// What upright lines are called, each in the highest row where no other label is in its way.
    fn labels(&self, out: &mut String, f: &Frame) {
        let mut taken: Vec<(u32, f64, f64)> = Vec::new();
        for mark in &self.marks {
            let Mark::Upright { x, colour, label } = mark else { continue };
            if label.is_empty() {
                continue;
            }
            let (at, wide) = (f.x(*x), width_of(label, FONT));
            let (anchor, shift, from) = if f.right - at < wide + 8.0 {
                ("end", -4.0, at - 4.0 - wide)
            } else {
                ("start", 4.0, at + 4.0)
            };
            let free = |row: &u32| !taken.iter().any(|t| t.0 == *row && from < t.2 && from + wide > t.1);
            let Some(row) = (0..4).find(free) else { continue };
            taken.push((row, from, from + wide));
            let y = f.top + 10.0 + 13.0 * f64::from(row);
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"3\" \
                 paint-order=\"stroke\">{}</text>",
                at + shift,
                escape(label)
            );
        }
    }

    /// Entries from the left in a row that ends at the right; those without room are left out, which dots say.
    fn legend(&self, out: &mut String, f: &Frame) {
        let room_of = |key: Key| match key {
            Key::Line(_) => 26.0,
            Key::Point { .. } => 15.0,
        };
        let wide = |entry: &Legend| width_of(&entry.label, FONT) + room_of(entry.key) + 10.0;
        let from = 8.0 + width_of(&self.y_label, FONT) + 14.0;
        let all: f64 = self.legend.iter().map(wide).sum();
        let mut at = (f.right - all + 10.0).max(from);
        for entry in &self.legend {
            if at + wide(entry) - 10.0 > f.right + 1.0 {
                text(out, (at, 33.0), "start", "#344054", "…", false);
                break;
            }
            match entry.key {
                Key::Line(dash) => line(out, (at, 29.0), (at + 22.0, 29.0), entry.colour, 2.0, dash),
                Key::Point { shape, hollow } => outline(out, (at + 5.0, 29.0), shape, entry.colour, hollow),
            }
            text(out, (at + room_of(entry.key), 33.0), "start", "#344054", &entry.label, false);
            at += wide(entry);
        }
    }
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, words: &str, bold: bool) {
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{weight}>{}</text>",
        escape(words)
    );
}

fn line(out: &mut String, a: (f64, f64), b: (f64, f64), colour: &str, width: f64, dash: &str) {
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    let _ = write!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>",
        a.0, a.1, b.0, b.1
    );
}

/// A point of a shape.
fn outline(out: &mut String, (x, y): (f64, f64), shape: Shape, colour: &str, hollow: bool) {
    let fill = if hollow { "#fff" } else { colour };
    let style = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.8\"/>");
    let _ = match shape {
        Shape::Circle => write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {style}"),
        Shape::Square => {
            let (left, top) = (x - 3.6, y - 3.6);
            write!(out, "<path class=\"mark\" d=\"M{left:.1} {top:.1}h7.2v7.2h-7.2Z\" {style}")
        }
        Shape::Triangle => {
            let top = y - 5.0;
            write!(out, "<path class=\"mark\" d=\"M{x:.1} {top:.1}l4.8 8.4h-9.6Z\" {style}")
        }
    };
}

fn draw(out: &mut String, f: &Frame, mark: &Mark) {
    match mark {
        Mark::Line { points, colour, width, dash, title } => {
            let mut d = String::new();
            let mut joined = false;
            for (x, y) in points {
                if x.is_finite() && y.is_finite() {
                    let _ = write!(d, "{}{:.1} {:.1}", if joined { "L" } else { "M" }, f.x(*x), f.y(*y));
                    joined = true;
                } else {
                    joined = false;
                }
            }
            let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
            let _ = write!(
                out,
                "<path class=\"data\" d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}><title>{}</title></path>",
                escape(title)
            );
        }
        Mark::Band { points, colour } => {
            let mut d = String::new();
            let there = points.iter().map(|p| (p.0, p.2));
            let back = points.iter().rev().map(|p| (p.0, p.1));
            for (x, y) in there.chain(back).filter(|p| p.0.is_finite() && p.1.is_finite()) {
                let _ = write!(d, "{}{:.1} {:.1}", if d.is_empty() { "M" } else { "L" }, f.x(x), f.y(y));
            }
            let _ = write!(out, "<path d=\"{d}Z\" fill=\"{colour}\" fill-opacity=\"0.15\"/>");
        }
        Mark::Point { x, y, low, high, colour, shape, hollow, title } => {
            let at = f.x(*x);
            let _ = write!(out, "<g class=\"data\"><title>{}</title>", escape(title));
            // An interval without a bound reaches the edge: the sample cannot tell how far.
            let top = high.map_or(f.top, |h| f.y(h));
            let bottom = low.map_or(f.bottom, |l| f.y(l));
            if low.is_some() || high.is_some() {
                let dash = if low.is_none() || high.is_none() { "3 3" } else { "" };
                line(out, (at, top), (at, bottom), colour, 1.5, dash);
                for end in [high.map(|_| top), low.map(|_| bottom)].into_iter().flatten() {
                    line(out, (at - 4.0, end), (at + 4.0, end), colour, 1.5, "");
                }
            }
            outline(out, (at, f.y(*y)), *shape, colour, *hollow);
            out.push_str("</g>");
        }
        Mark::Note { x, y, colour, label } => {
            let at = f.x(*x);
            let wide = width_of(label, FONT);
            let (anchor, shift) = if at + wide + 6.0 > f.right { ("end", -5.0) } else { ("start", 5.0) };
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"3\" \
                 paint-order=\"stroke\">{}</text>",
                at + shift,
                f.y(*y) + 4.0,
                escape(label)
            );
        }
        Mark::Level { y, colour, label } => {
            let at = f.y(*y);
            line(out, (f.left, at), (f.right, at), colour, 1.5, "6 4");
            text(out, (f.left + 4.0, at - 4.0), "start", colour, label, false);
        }
        Mark::Upright { x, colour, .. } => {
            let at = f.x(*x);
            line(out, (at, f.top), (at, f.bottom), colour, 1.5, "2 3");
        }
        Mark::Bars { bars, colour } => {
            for (from, to, height, title) in bars {
                let (a, b) = (f.x(*from), f.x(*to));
                let top = f.y(*height);
                let _ = write!(
                    out,
                    "<rect class=\"data\" x=\"{a:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"><title>{}</title></rect>",
                    (b - a - 0.6).max(0.8),
                    (f.bottom - top).max(0.0),
                    escape(title)
                );
            }
        }
        Mark::Stretch { from, to, title } => {
            let (a, b) = (f.x(*from), f.x(*to));
            let _ = write!(
                out,
                "<rect x=\"{a:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#eef2f6\"><title>{}</title></rect>",
                f.top,
                (b - a).max(0.0),
                f.bottom - f.top,
                escape(title)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_foreign_is_escaped_and_control_characters_go() {
        let mut plot = Plot::new("<b onload=x>\u{1}", "x", "y");
        plot.marks.push(Mark::Point {
            x: 1.0,
            y: 2.0,
            low: None,
            high: Some(3.0),
            colour: BLUE,
            shape: Shape::Square,
            hollow: false,
            title: "</title><script>".into(),
        });
        let svg = plot.svg();
        assert!(!svg.contains("<script") && !svg.contains("<b ") && !svg.contains('\u{1}'), "{svg}");
        assert!(plot.has_data());
    }

    #[test]
    fn what_is_never_negative_begins_at_zero() {
        for (value, bottom) in [(0.0, 0.0), (0.000_3, 0.0), (2.0, 0.0)] {
            let mut plot = Plot::new("drain", "x", "y");
            plot.marks.push(Mark::Level { y: value, label: String::new(), colour: BLUE });
            let (_, (low, high)) = plot.ranges();
            assert!(low.total_cmp(&bottom).is_eq() && high > value, "{value}: {low} to {high}");
        }
    }

    #[test]
    fn ticks_are_round_and_lie_inside() {
        assert_eq!(ticks(0.0, 1.0, 5.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(0.0, 97.0, 5.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ticks(3.0, 3.0, 5.0), [3.0]);
        assert_eq!(ticks(0.0, f64::NAN, 5.0), [0.0]);
    }

    #[test]
    fn nothing_finite_still_gives_a_drawing() {
        let mut plot = Plot::new("t", "x", "y");
        plot.marks.push(Mark::Line {
            points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
            colour: BLUE,
            width: 1.0,
            dash: "",
            title: String::new(),
        });
        let svg = plot.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
