//! Writing the Prometheus text format: what every page of this workspace is written with, and [`parse`](crate::parse)
//! reads back.

use std::fmt::Write as _;

use crate::parse::Kind;

/// How values are printed. Both are read alike; a page that stands for another program's is printed as that one does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberStyle {
    /// As short as can be: `12`, `0.25`.
    #[default]
    Short,
    /// As Python prints floats: `12.0`, `0.25`.
    Python,
}

/// A page being written: families, each with its samples.
///
/// ```
/// use tapedeck_metrics::{Exposition, Kind};
///
/// let mut page = Exposition::default();
/// page.family("calls_total", Kind::Counter, "Calls that ended.");
/// page.sample("calls_total", &[("outcome", "ok")], 3.0);
/// page.sample("calls_total", &[], 0.5);
/// assert_eq!(
///     page.finish(),
///     "# HELP calls_total Calls that ended.\n# TYPE calls_total counter\ncalls_total{outcome=\"ok\"} 3\ncalls_total 0.5\n"
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Exposition {
    text: String,
    numbers: NumberStyle,
}

impl Exposition {
    /// An empty page whose values are printed in this style.
    #[must_use]
    pub fn new(numbers: NumberStyle) -> Self {
        Self { text: String::with_capacity(4 * 1024), numbers }
    }

    /// Begins a family: its help and its type.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let help = Escaped { text: help, quotes: false };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    }

    /// One sample, with its labels in this order.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (n, (label, value)) in labels.iter().enumerate() {
            let open = if n == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{open}{label}=\"{}\"", Escaped { text: value, quotes: true });
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = match (self.numbers, value.is_infinite()) {
            (_, true) => writeln!(self.text, " {}Inf", if value > 0.0 { '+' } else { '-' }),
            (NumberStyle::Short, _) => writeln!(self.text, " {value}"),
            (NumberStyle::Python, _) => writeln!(self.text, " {value:?}"),
        };
    }

    /// A line that is no sample.
    pub fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "# {}", Escaped { text, quotes: false });
    }

    /// The page.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

/// A count as a page shows it: pages carry doubles, which are exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "a metrics page carries doubles")]
#[must_use]
pub const fn count(n: u64) -> f64 {
    n as f64
}

/// Backslash and line feed escaped, in label values the quote as well.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.text.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn whatever_a_label_holds_is_read_back() {
        let odd = "a \"b\"\\c\nd,{}=🙂";
        let mut page = Exposition::new(NumberStyle::Python);
        page.family("up", Kind::Gauge, "Says \"up\"\nor \\not.");
        let values = [1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300, -0.25];
        values.iter().for_each(|value| page.sample("up", &[("odd", odd), ("b", "")], *value));
        page.comment("two\nlines");
        let text = page.finish();
        assert!(text.contains("} 1.0\n") && text.contains("} +Inf\n"), "{text}");
        assert!(text.starts_with("# HELP up Says \"up\"\\nor \\\\not.\n# TYPE up gauge\n"), "{text}");
        let read = parse(&text);
        assert_eq!((read.not_understood, read.types.get("up")), (0, Some(&Kind::Gauge)));
        assert_eq!(read.series.len(), values.len());
        for (series, value) in read.series.iter().zip(values) {
            assert_eq!((series.label("odd"), series.label("b")), (Some(odd), Some("")));
            assert!(series.value.total_cmp(&value).is_eq(), "{} for {value}", series.value);
        }
    }
}
