//! Answers as text and as JSON.

use std::io::{Result, Write};

use serde::Serialize;
use serde_json::Value;
use tapedeck_record::ExitCode;

/// An answer: paragraphs and tables for people, one object for programs.
#[derive(Debug)]
pub(super) struct Answer {
    parts: Vec<Part>,
    value: Value,
    /// What the command answers.
    pub(super) code: ExitCode,
}

#[derive(Debug)]
enum Part {
    Line(String),
    Table(Vec<Vec<String>>),
}

impl Answer {
    /// An answer whose figures are `value`.
    pub(super) fn new(value: &impl Serialize) -> Self {
        // Plain structures of numbers and words always have a JSON form; numbers that are not finite become null.
        Self {
            parts: Vec::new(),
            value: serde_json::to_value(value).unwrap_or(Value::Null),
            code: ExitCode::Ok,
        }
    }

    pub(super) fn line(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Line(text.into()));
        self
    }

    pub(super) fn lines<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.parts.extend(texts.into_iter().map(|text| Part::Line(text.into())));
        self
    }

    /// The first row is the head.
    pub(super) fn table(mut self, rows: Vec<Vec<String>>) -> Self {
        self.parts.push(Part::Table(rows));
        self
    }

    pub(super) const fn code(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }

    pub(super) fn json(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", self.value)
    }

    pub(super) fn text(&self, out: &mut dyn Write) -> Result<()> {
        for part in &self.parts {
            match part {
                Part::Line(text) => writeln!(out, "{text}")?,
                Part::Table(rows) => {
                    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
                    let width = |column: usize| {
                        rows.iter()
                            .filter_map(|row| row.get(column))
                            .map(|cell| cell.chars().count())
                            .max()
                            .unwrap_or(0)
                    };
                    let widths: Vec<usize> = (0..columns).map(width).collect();
                    for row in rows {
                        let cells: Vec<String> = row
                            .iter()
                            .zip(&widths)
                            .enumerate()
                            .map(|(at, (cell, &width))| {
                                // The first column names its row; figures are read from the right.
                                if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                            })
                            .collect();
                        writeln!(out, "{}", cells.join("  ").trim_end())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A row of a table.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

/// A figure with so many places, or a dash where it is unknown.
pub(super) fn figure(value: Option<f64>, places: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| "-".to_owned(), |v| format!("{v:.places$}"))
}
