//! From a line to a limit, with a finger on what is wrong.

use std::fmt;
use std::str::FromStr;

use super::{Assertion, Comparison, Part, Statistic};
use crate::figure::Figure;

/// A limit that cannot be read: what is wrong, where, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionError {
    /// The line that was given.
    pub text: String,
    /// First wrong character, from 0.
    pub at: usize,
    /// Wrong characters; at least 1.
    pub length: usize,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for AssertionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A control character would move the line away from under its marker.
        let shown: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let (before, marker) = (" ".repeat(self.at), "^".repeat(self.length.max(1)));
        write!(
            f,
            "{}\n  {shown}\n  {before}{marker}\na limit reads FIGURE:STATISTIC <= NUMBER [by PART], \
             e.g. 'final_s:p95<=2 by instance'; docs/figures.md lists every figure",
            self.why
        )
    }
}

impl std::error::Error for AssertionError {}

/// The line, and how far it has been read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes as long as `wanted` says so.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// An error about what was taken last.
    fn wrong(&self, taken: &str, why: impl Into<String>) -> AssertionError {
        let at = self.text.get(..self.at - taken.len()).unwrap_or("").chars().count();
        AssertionError { text: self.text.into(), at, length: taken.chars().count().max(1), why: why.into() }
    }
}

fn word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.' || c == '-'
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let mut reader = Reader { text, at: 0 };
        let figure = figure(&mut reader)?;
        let statistic = statistic(&mut reader, figure)?;
        let comparison = comparison(&mut reader)?;
        let bound = bound(&mut reader, figure)?;
        let by = part(&mut reader, figure)?;
        Ok(Self { figure, statistic, comparison, bound, by })
    }
}

fn figure(reader: &mut Reader<'_>) -> Result<Figure, AssertionError> {
    let name = reader.take(word);
    if name.is_empty() {
        let next: String = reader.rest().chars().take(1).collect();
        return Err(AssertionError { length: 1, ..reader.wrong("", found("a figure", &next)) });
    }
    if let Some(figure) = Figure::named().find(|f| f.spec().id == name) {
        return Ok(figure);
    }
    let near = nearest(name, Figure::named().map(|f| f.spec().id));
    Err(reader.wrong(name, format!("unknown figure `{name}`; did you mean `{near}`?")))
}

fn statistic(reader: &mut Reader<'_>, figure: Figure) -> Result<Option<Statistic>, AssertionError> {
    reader.skip_spaces();
    if !reader.rest().starts_with(':') {
        if figure.of_calls() {
            let why = format!(
                "`{0}` has a value for every call: name a statistic, e.g. `{0}:p95` (or mean, min, max)",
                figure.spec().id
            );
            return Err(reader.wrong("", why));
        }
        return Ok(None);
    }
    reader.at += 1;
    let name = reader.take(word);
    if !figure.of_calls() {
        let why = format!("`{0}` is one figure already: write `{0}` without `:{name}`", figure.spec().id);
        return Err(reader.wrong(name, why));
    }
    let quantile = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
    match (name, quantile) {
        ("mean", _) => Ok(Some(Statistic::Mean)),
        ("min", _) => Ok(Some(Statistic::Min)),
        ("max", _) => Ok(Some(Statistic::Max)),
        (_, Some(p)) if (0.0..=100.0).contains(&p) => Ok(Some(Statistic::Quantile(p / 100.0))),
        (_, Some(_)) => Err(reader.wrong(name, format!("`{name}`: percentiles go from p0 to p100"))),
        ("", None) => Err(reader.wrong(name, "a statistic is missing: p50, p95, p99.9, mean, min, max")),
        _ => {
            let near = nearest(name, ["p50", "p95", "p99", "mean", "min", "max"].into_iter());
            Err(reader.wrong(name, format!("unknown statistic `{name}`; did you mean `{near}`?")))
        }
    }
}

fn comparison(reader: &mut Reader<'_>) -> Result<Comparison, AssertionError> {
    let sign = reader.take(|c| matches!(c, '<' | '>' | '=' | '!' | '≤' | '≥'));
    match sign {
        "<" => Ok(Comparison::Below),
        "<=" | "≤" => Ok(Comparison::AtMost),
        ">" => Ok(Comparison::Above),
        ">=" | "≥" => Ok(Comparison::AtLeast),
        "" => {
            let next: String = reader.rest().chars().take_while(|c| !c.is_whitespace()).collect();
            let length = next.chars().count().max(1);
            Err(AssertionError { length, ..reader.wrong("", found("one of < <= > >=", &next)) })
        }
        _ => Err(reader.wrong(sign, format!("`{sign}` is no comparison; there are < <= > >="))),
    }
}

fn bound(reader: &mut Reader<'_>, figure: Figure) -> Result<f64, AssertionError> {
    let number = reader.take(|c| word(c) || c == '+' || c == '%');
    match number.parse::<f64>() {
        Ok(bound) if bound.is_finite() => Ok(bound),
        _ if number.is_empty() => Err(reader.wrong(number, "a number is missing")),
        _ => {
            let unit = if figure.spec().unit.symbol().is_empty() {
                "it has no unit and shares go from 0 to 1".into()
            } else {
                format!("`{}` is in {}, write the bare number", figure.spec().id, figure.spec().unit.symbol())
            };
            Err(reader.wrong(number, format!("`{number}` is no number; {unit}")))
        }
    }
}

fn part(reader: &mut Reader<'_>, figure: Figure) -> Result<Option<Part>, AssertionError> {
    let by = reader.take(|c| !c.is_whitespace());
    if by.is_empty() {
        return Ok(None);
    }
    if by != "by" {
        return Err(reader.wrong(by, found("`by PART`, or the end", by)));
    }
    let name = reader.take(|c| !c.is_whitespace());
    let names = Part::ALL.map(Part::name);
    let Some(part) = Part::ALL.into_iter().find(|p| p.name() == name) else {
        let why = if name.is_empty() {
            format!("by what? There are {}", names.join(", "))
        } else {
            let near = nearest(name, names.into_iter());
            format!("unknown part `{name}`; did you mean `{near}`? There are {}", names.join(", "))
        };
        return Err(reader.wrong(name, why));
    };
    if !figure.has_parts() {
        let why = format!("`{}` is known for the whole step only: leave `by {name}` out", figure.spec().id);
        return Err(reader.wrong(name, why));
    }
    if figure.only_by_instance() && part != Part::Instance {
        let why =
            format!("`{}` is told by the instances' pages: only `by instance` is known", figure.spec().id);
        return Err(reader.wrong(name, why));
    }
    let more = reader.take(|_| true);
    if more.is_empty() { Ok(Some(part)) } else { Err(reader.wrong(more, "nothing may follow the part")) }
}

fn found(wanted: &str, next: &str) -> String {
    if next.is_empty() {
        format!("{wanted} is missing at the end")
    } else {
        format!("{wanted} is missing before `{}`", next.escape_debug())
    }
}

/// The nearest of some names: what begins alike counts as nearer than what merely has the same length.
fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> &'a str {
    let given = given.to_lowercase();
    let far = |name: &str| {
        let alike = given.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        (strsim::damerau_levenshtein(&given, name).saturating_sub(alike), name.len())
    };
    names.min_by_key(|name| far(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Assertion>().unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_what_is_understood() {
        for (text, shown) in [
            ("final_s:p95<=2 by instance", "final_s:p95 <= 2 by instance"),
            ("  ttft_s : p99.9  <  1.25  ", "ttft_s:p99.9 < 1.25"),
            ("rtf:mean≤0.5 by bucket", "rtf:mean <= 0.5 by bucket"),
            ("errors<=0", "errors <= 0"),
            ("pace:min>=0.99", "pace:min >= 0.99"),
            ("kv_pool_p95<0.9 by instance", "kv_pool_p95 < 0.9 by instance"),
            ("age_slope_ms_per_min:p50<=-1e-1", "age_slope_ms_per_min:p50 <= -0.1"),
        ] {
            assert_eq!(text.parse::<Assertion>().unwrap().to_string(), shown);
            assert_eq!(shown.parse::<Assertion>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        for (text, near) in [
            ("finals:p95<=2", "`final_s`"),
            ("ttft:p95<=1", "`ttft_s`"),
            ("Final_s:p95<=1", "`final_s`"),
            ("kv_pol_p95<1", "`kv_pool_p95`"),
            ("preempt<=0", "`preemptions`"),
            ("error<=0", "`errors`"),
            ("final_s:median<=1", "`mean`"),
            ("final_s:P95<=1", "`p95`"),
            ("final_s:p95<=1 by instanc", "`instance`"),
        ] {
            let why = refused(text);
            assert!(why.contains("did you mean") && why.contains(near), "{text}: {why}");
        }
    }

    #[test]
    fn the_marker_stands_under_what_is_wrong() {
        let at = |text: &str| {
            let e = text.parse::<Assertion>().unwrap_err();
            (e.at, e.length)
        };
        assert_eq!(at("finals:p95<=2"), (0, 6));
        assert_eq!(at("final_s:q95<=2"), (8, 3));
        assert_eq!(at("final_s:p95=<2"), (11, 2));
        assert_eq!(at("final_s:p95<=2s"), (13, 2));
        assert_eq!(at("final_s:p95<="), (13, 1));
        assert_eq!(at("final_s<=2"), (7, 1));
        assert_eq!(at("final_s:p95<=2 per instance"), (15, 3));
        assert_eq!(at("final_s:p95<=2 by"), (17, 1));
        assert_eq!(at("drain_s<=2 by instance"), (14, 8));
        assert_eq!(at("kv_pool_p95<=1 by bucket"), (18, 6));
        assert_eq!(at("errors:p95<=0"), (7, 3));
        assert_eq!(at("é:p95<=2"), (0, 1));
        assert_eq!(at(""), (0, 1));
        let shown = refused("final_s:q95<=2");
        assert!(shown.contains("\n  final_s:q95<=2\n          ^^^\n"), "{shown}");
        assert!(shown.contains("e.g. 'final_s:p95<=2 by instance'"), "{shown}");
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in
            ["rtf:p95<=nan", "rtf:p95<=inf", "rtf:p95<=50%", "rtf:p95<=0,5", "rtf:p101<=1", "rtf:p<=1"]
        {
            assert!(text.parse::<Assertion>().is_err(), "{text}");
        }
        assert!(refused("final_s:p95<=2s").contains("in s, write the bare number"));
    }
}
