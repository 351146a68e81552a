//! Answers as text, as a table and as JSON.

use std::io::{Result, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shown {
    /// A whole number.
    Whole(u64),
    /// A number with a unit, perhaps an empty one.
    Number(f64, &'static str),
    /// A share of 1, also shown in percent.
    Share(f64),
    /// A logarithm to the base 10 of a share below the smallest float.
    Log10(f64),
}

/// A figure with its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    /// Its key in JSON and its column in tables.
    pub(super) key: &'static str,
    /// Its value.
    pub(super) shown: Shown,
    /// What it is, for somebody who has never heard of it.
    pub(super) meaning: &'static str,
}

pub(super) const fn whole(key: &'static str, n: u64, meaning: &'static str) -> Figure {
    Figure { key, shown: Shown::Whole(n), meaning }
}

pub(super) const fn number(key: &'static str, x: f64, unit: &'static str, meaning: &'static str) -> Figure {
    Figure { key, shown: Shown::Number(x, unit), meaning }
}

pub(super) const fn share(key: &'static str, x: f64, meaning: &'static str) -> Figure {
    Figure { key, shown: Shown::Share(x), meaning }
}

/// The figures of one answer.
pub(super) type Row = Vec<Figure>;

/// One figure a line, with its meaning.
pub(super) fn explained(out: &mut dyn Write, rows: &[Row]) -> Result<()> {
    for row in rows {
        let key = row.iter().map(|figure| figure.key.len()).max().unwrap_or_default();
        let values: Vec<String> = row.iter().map(|figure| figure.shown.text()).collect();
        let value = values.iter().map(String::len).max().unwrap_or_default();
        for (figure, shown) in row.iter().zip(&values) {
            writeln!(out, "{:key$}  {shown:<value$}  {}", figure.key, figure.meaning)?;
        }
    }
    Ok(())
}

/// One answer a line under a head of keys, the one that was asked for marked.
pub(super) fn table(out: &mut dyn Write, rows: &[Row], asked: usize) -> Result<()> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|figure| figure.shown.text()).collect()).collect();
    let heads: Vec<&str> =
        rows.first().map(|row| row.iter().map(|figure| figure.key).collect()).unwrap_or_default();
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(at, head)| {
            cells.iter().filter_map(|row| row.get(at)).map(String::len).fold(head.len(), usize::max)
        })
        .collect();
    write!(out, " ")?;
    for (head, width) in heads.iter().zip(&widths) {
        write!(out, " {head:>width$}")?;
    }
    writeln!(out)?;
    for (at, row) in cells.iter().enumerate() {
        write!(out, "{}", if at == asked { ">" } else { " " })?;
        for (cell, width) in row.iter().zip(&widths) {
            write!(out, " {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    for figure in rows.first().into_iter().flatten() {
        writeln!(out, "{}: {}", figure.key, figure.meaning)?;
    }
    Ok(())
}

/// One object per answer.
pub(super) fn json(out: &mut dyn Write, rows: &[Row]) -> Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, &Object(row))?;
        writeln!(out)?;
    }
    Ok(())
}

/// An answer as a JSON object whose keys stand in the order of the figures.
struct Object<'a>(&'a Row);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for figure in self.0 {
            match figure.shown {
                Shown::Whole(n) => map.serialize_entry(figure.key, &n)?,
                Shown::Number(x, _) | Shown::Share(x) => map.serialize_entry(figure.key, &x)?,
                // What no float can hold is given by its logarithm.
                Shown::Log10(x) => map.serialize_entry(&format!("log10_{}", figure.key), &x)?,
            }
        }
        map.end()
    }
}

impl Shown {
    fn text(self) -> String {
        match self {
            Self::Whole(n) => n.to_string(),
            Self::Number(x, "") => digits(x),
            Self::Number(x, unit) => format!("{} {unit}", digits(x)),
            Self::Share(x) => format!("{} ({} %)", digits(x), digits(100.0 * x)),
            Self::Log10(x) => format!("10^{x:.3}"),
        }
    }
}

/// Five significant digits, in the plain form where that is readable.
fn digits(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    if !(1e-5..1e9).contains(&x.abs()) {
        return format!("{x:.4e}");
    }
    let magnitude = x.abs().log10().floor();
    let places = (0..10).rev().find(|&places| f64::from(places) + magnitude <= 4.0).unwrap_or(0);
    let text = format!("{x:.0$}", usize::try_from(places).unwrap_or_default());
    match text.split_once('.') {
        Some((whole, "")) => whole.to_owned(),
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_few_and_plain() {
        for (x, text) in [
            (0.0, "0"),
            (2.5, "2.5"),
            (0.009_983_1, "0.0099831"),
            (1234.567, "1234.6"),
            (123_456.7, "123457"),
            (1e-9, "1.0000e-9"),
            (100.0, "100"),
        ] {
            assert_eq!(digits(x), text);
        }
    }
}
