//! Exposition text, the Prometheus text format and its OpenMetrics sibling, into plain series.
//!
//! The reader is lenient on purpose: one cut or foreign line must not cost the page. What it does not understand it
//! counts, so that a report can say how much of a page was lost.

use std::collections::BTreeMap;

/// A page of exposition text, read.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// Every sample of the page, in the page's order.
    pub series: Vec<Series>,
    /// What `# TYPE` lines declare, by family name.
    pub types: BTreeMap<String, Kind>,
    /// Lines that are neither blank, nor a comment, nor a sample.
    pub not_understood: u32,
    /// The first few of those lines, shortened, for a human to look at.
    pub examples: Vec<String>,
    /// Whether the page ends with OpenMetrics' `# EOF`.
    pub eof: bool,
    /// Whether the page starts like markup: an error page in disguise, whatever its status was.
    pub markup: bool,
}

/// One sample of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name as the page spells it, suffixes (`_total`, `_bucket`...) included.
    pub name: String,
    /// Labels in the page's order, values unescaped.
    pub labels: Vec<(String, String)>,
    /// Value; may be NaN or infinite.
    pub value: f64,
    /// The page's own time stamp, seconds since the epoch, where it has one.
    pub timestamp_s: Option<f64>,
}

impl Series {
    /// Value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What a family is declared to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, a count and a sum.
    Histogram,
    /// Quantiles, a count and a sum.
    Summary,
    /// Anything else: untyped, unknown, info, state set.
    Other,
}

impl Kind {
    /// The word after `# TYPE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Other => "untyped",
        }
    }
}

/// How many lines that gave nothing are kept to be shown.
const EXAMPLES: usize = 3;
/// How much of such a line is kept, characters.
const EXAMPLE_CHARS: usize = 80;

/// Reads a page. Never fails: what is not understood is counted in [`Page::not_understood`].
///
/// ```
/// let page = tapedeck_metrics::parse("# TYPE up gauge\nup{job=\"a,b\"} 1\n<oops>\n");
/// assert_eq!(page.series[0].label("job"), Some("a,b"));
/// assert_eq!(page.not_understood, 1);
/// ```
#[must_use]
pub fn parse(text: &str) -> Page {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut page = Page { markup: text.trim_start().starts_with('<'), ..Page::default() };
    // Whether a time stamp counts milliseconds or seconds depends on the format, which only the last line tells.
    let mut stamped = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            read_comment(comment, &mut page);
            continue;
        }
        match read_sample(line) {
            Some((series, stamp)) => {
                if let Some(stamp) = stamp {
                    stamped.push((page.series.len(), stamp));
                }
                page.series.push(series);
            }
            None => {
                page.not_understood = page.not_understood.saturating_add(1);
                if page.examples.len() < EXAMPLES {
                    page.examples.push(line.chars().take(EXAMPLE_CHARS).collect());
                }
            }
        }
    }
    let unit = if page.eof { 1.0 } else { 1000.0 };
    for (index, stamp) in stamped {
        if let Some(series) = page.series.get_mut(index) {
            series.timestamp_s = Some(stamp / unit);
        }
    }
    page
}

/// Reads what follows a `#`: only `TYPE` and `EOF` mean something to us.
fn read_comment(comment: &str, page: &mut Page) {
    let comment = comment.trim_start();
    if comment == "EOF" {
        page.eof = true;
        return;
    }
    let Some(declared) = comment.strip_prefix("TYPE").filter(|rest| rest.starts_with([' ', '\t'])) else {
        return;
    };
    let mut cursor = Cursor { rest: declared };
    cursor.skip_space();
    let Some(name) = cursor.quoted().or_else(|| cursor.bare(is_name)) else { return };
    let kind = match cursor.rest.trim() {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "summary" => Kind::Summary,
        _ => Kind::Other,
    };
    page.types.insert(name, kind);
}

/// Reads one sample line: the series without its time stamp, and the time stamp as written.
fn read_sample(line: &str) -> Option<(Series, Option<f64>)> {
    let mut cursor = Cursor { rest: line };
    let mut name = cursor.bare(is_name);
    cursor.skip_space();
    let mut labels = Vec::new();
    if cursor.eat('{') {
        read_labels(&mut cursor, &mut name, &mut labels)?;
    } else if line.len() == name.as_ref().map_or(0, String::len) + cursor.rest.len() {
        // No brace and no space: whatever this is, the name did not end where a name ends.
        return None;
    }
    cursor.skip_space();
    let value = read_value(cursor.word()?)?;
    cursor.skip_space();
    let mut stamp = None;
    // What follows a `#` is an exemplar: it belongs to one request, not to the series.
    if !cursor.rest.is_empty() && !cursor.rest.starts_with('#') {
        stamp = Some(cursor.word()?.parse::<f64>().ok().filter(|stamp| stamp.is_finite())?);
        cursor.skip_space();
        if !cursor.rest.is_empty() && !cursor.rest.starts_with('#') {
            return None;
        }
    }
    Some((Series { name: name?, labels, value, timestamp_s: None }, stamp))
}

/// Reads labels up to the closing brace. A quoted text without `=` is the metric's own name, in UTF-8 clothes.
fn read_labels(
    cursor: &mut Cursor<'_>,
    name: &mut Option<String>,
    labels: &mut Vec<(String, String)>,
) -> Option<()> {
    loop {
        cursor.skip_space();
        if cursor.eat('}') {
            return Some(());
        }
        let quoted = cursor.rest.starts_with('"');
        let key = if quoted { cursor.quoted()? } else { cursor.bare(is_name)? };
        cursor.skip_space();
        if cursor.eat('=') {
            cursor.skip_space();
            let value = cursor.quoted()?;
            labels.push((key, value));
        } else if quoted && name.is_none() && !key.is_empty() {
            *name = Some(key);
        } else {
            return None;
        }
        cursor.skip_space();
        if !cursor.eat(',') && !cursor.rest.starts_with('}') {
            return None;
        }
    }
}

/// A value as Go or Python prints it.
fn read_value(word: &str) -> Option<f64> {
    // Rust reads `nan`, `inf` and `infinity` in any case and with a sign, as both languages write them.
    word.parse().ok()
}

/// Whether a character may stand in an unquoted name.
fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '.' | '-')
}

/// What is left of a line.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A run of characters, not empty and not beginning like a number.
    fn bare(&mut self, accept: fn(char) -> bool) -> Option<String> {
        let end = self.rest.find(|character| !accept(character)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        if !word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | ':')) {
            return None;
        }
        self.rest = rest;
        Some(word.to_owned())
    }

    /// Everything up to the next space, not empty.
    fn word(&mut self) -> Option<&'a str> {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// A text in quotes, its escapes undone.
    fn quoted(&mut self) -> Option<String> {
        let body = self.rest.strip_prefix('"')?;
        let end = body.find(['"', '\\'])?;
        let (plain, rest) = body.split_at_checked(end)?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Some(plain.to_owned());
        }
        let mut text = plain.to_owned();
        let mut characters = rest.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => {
                    self.rest = characters.as_str();
                    return Some(text);
                }
                '\\' => match characters.next()? {
                    'n' => text.push('\n'),
                    escaped @ ('"' | '\\') => text.push(escaped),
                    // The format knows no other escape; what is unknown stays as it was written.
                    other => text.extend(['\\', other]),
                },
                plain => text.push(plain),
            }
        }
        None
    }
}

/// Why a page that was read is no page of metrics, if it is none.
#[must_use]
pub fn why_not_metrics(page: &Page) -> Option<String> {
    if page.markup {
        return Some("it is markup".to_owned());
    }
    if !page.series.is_empty() {
        return None;
    }
    Some(match page.examples.first() {
        Some(line) => format!("it starts with {line:?}"),
        None => "it is empty".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Series {
        let page = parse(line);
        assert_eq!((page.series.len(), page.not_understood), (1, 0), "{line}: {page:?}");
        page.series.into_iter().next().unwrap()
    }

    fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn label_values_may_hold_anything() {
        let series = one(r#"vllm:x{a="1,2",b="k=v",c="{}",d="q\"\\\n\t",e="",f="a # b"} 3"#);
        assert_eq!(series.name, "vllm:x");
        let wanted =
            [("a", "1,2"), ("b", "k=v"), ("c", "{}"), ("d", "q\"\\\n\\t"), ("e", ""), ("f", "a # b")];
        assert_eq!(series.labels, labels(&wanted));
    }

    #[test]
    fn spaces_and_commas_in_odd_places_are_harmless() {
        for line in [
            "a{x=\"1\",} 2",
            "a { x=\"1\" } 2",
            "  a{ x = \"1\" , }\t2  ",
            "a{x=\"1\"} 2 \r\n",
            "a{x=\"1\"}2",
        ] {
            let series = one(line);
            assert_eq!((series.labels.as_slice(), series.value), (&labels(&[("x", "1")])[..], 2.0), "{line}");
        }
        assert_eq!(one("a{} 2").labels, []);
        assert_eq!(one("\u{feff}a 2").name, "a");
    }

    #[test]
    fn names_in_quotes_are_names() {
        let series = one(r#"{"my.name ü",region="eu"} 1"#);
        assert_eq!((series.name.as_str(), series.label("region")), ("my.name ü", Some("eu")));
        assert_eq!(one(r#"a{"label.with.dots"="1"} 1"#).label("label.with.dots"), Some("1"));
        assert_eq!(parse("# TYPE \"my.name\" counter").types.get("my.name"), Some(&Kind::Counter));
    }

    #[test]
    fn values_of_every_kind_are_read() {
        assert!(one("a NaN").value.is_nan());
        for (text, value) in [
            ("+Inf", f64::INFINITY),
            ("-Inf", f64::NEG_INFINITY),
            ("inf", f64::INFINITY),
            ("1.5e-3", 1.5e-3),
            ("+2", 2.0),
            (".5", 0.5),
            ("1.8446744073709552e+19", 1.844_674_407_370_955_2e19),
        ] {
            assert_eq!(one(&format!("a {text}")).value.to_bits(), value.to_bits(), "{text}");
        }
    }

    #[test]
    fn time_stamps_are_seconds_whatever_the_format_counts_in() {
        assert_eq!(one("a 1 1700000000123").timestamp_s, Some(1_700_000_000.123));
        assert_eq!(one("a 1 1700000000.123\n# EOF\n").timestamp_s, Some(1_700_000_000.123));
        assert_eq!(one("a 1").timestamp_s, None);
    }

    #[test]
    fn exemplars_are_left_aside() {
        let series = one("a_bucket{le=\"1\"} 5 # {trace_id=\"x\"} 0.67 1700000000.0\n# EOF");
        assert_eq!((series.value, series.timestamp_s), (5.0, None));
        assert_eq!(one("a_bucket{le=\"1\"} 5 1700000000 # {} 0.67\n# EOF").timestamp_s, Some(1.7e9));
    }

    #[test]
    fn what_is_no_sample_is_counted_and_shown() {
        for line in [
            "a",
            "a x",
            "a{b=\"1\"",
            "a{b=\"1} 2",
            "a{b=1} 2",
            "a{b} 2",
            "a{\"b\"} 2",
            "a 1 2 3",
            "a 1 soon",
            "9a 1",
            "{} 1",
            "{b=\"1\"} 1",
            "=1",
            "a{b=\"1\" c=\"2\"} 3",
            "a{,} 3",
            "a@b 1",
            "<html>",
            "ü 1",
        ] {
            let page = parse(&format!("good 1\n{line}\ngood 2\n"));
            assert_eq!((page.series.len(), page.not_understood), (2, 1), "{line}");
            assert_eq!(page.examples, [line.to_owned()]);
        }
        let long = "€".repeat(1000);
        assert_eq!(parse(&long).examples, ["€".repeat(EXAMPLE_CHARS)]);
    }

    #[test]
    fn comments_declare_types_and_nothing_else() {
        let page =
            parse("# TYPE a counter\n#TYPE b gauge\n# HELP a 1 2\n#\n# TYPE c\n# TYPED d gauge\n# TYPE\n");
        assert_eq!(page.types.get("a"), Some(&Kind::Counter));
        assert_eq!(page.types.get("b"), Some(&Kind::Gauge));
        assert_eq!(page.types.get("c"), Some(&Kind::Other));
        assert_eq!((page.types.len(), page.series.len(), page.not_understood), (3, 0, 0));
    }

    #[test]
    fn an_error_page_is_seen_for_what_it_is() {
        let page = parse("\n <!doctype html><html><body>502 Bad Gateway</body></html>");
        assert!(page.markup && page.series.is_empty());
        assert_eq!(page.not_understood, 1);
    }
}
