//! Samples of one step out of one block of `series.jsonl`, as one thread hands them to another.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::csv;
use crate::frame::{Frame, Values};
use crate::line::{End, Line, SCALARS, scalar_names};

/// Samples in the order of their lines; each name is held once.
#[derive(Debug, Default)]
pub struct Samples {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    rows: Vec<Row>,
    /// The scalars of all rows that are there, with their places.
    scalars: Vec<(usize, f64)>,
    /// The histograms of all rows, with the places of their names.
    ends: Vec<(usize, End)>,
}

#[derive(Debug)]
struct Row {
    at_s: f64,
    source: usize,
    kind: usize,
    /// How many scalars and histograms there are of this row and all before it.
    scalars: usize,
    ends: usize,
}

/// One of them. Names are places in [`Samples::names`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    pub(crate) at_s: f64,
    pub(crate) source: usize,
    pub(crate) kind: usize,
    /// Scalars by place, ascending.
    pub(crate) scalars: &'a [(usize, f64)],
    pub(crate) ends: &'a [(usize, End)],
}

impl Samples {
    /// Takes the sample that follows.
    pub fn add(&mut self, line: &Line<'_>) {
        let (source, kind) = (self.name(&line.source), self.name(&line.kind));
        self.scalars.extend(
            line.scalars().into_iter().enumerate().filter_map(|(place, value)| Some((place, value?))),
        );
        for (name, end) in &line.histograms.0 {
            let name = self.name(name);
            self.ends.push((name, *end));
        }
        let (scalars, ends) = (self.scalars.len(), self.ends.len());
        self.rows.push(Row { at_s: line.at_s, source, kind, scalars, ends });
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// Every name that occurs.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Sample<'_>> {
        let (mut scalars, mut ends) = (0, 0);
        self.rows.iter().map(move |row| Sample {
            at_s: row.at_s,
            source: row.source,
            kind: row.kind,
            scalars: self
                .scalars
                .get(std::mem::replace(&mut scalars, row.scalars)..row.scalars)
                .unwrap_or(&[]),
            ends: self.ends.get(std::mem::replace(&mut ends, row.ends)..row.ends).unwrap_or(&[]),
        })
    }

    /// Adds every sample as a line: step, time, source, kind, and a cell for each scalar.
    pub(crate) fn write_csv(&self, step: &str, out: &mut Vec<u8>) {
        let step = csv::quote(step);
        let names: Vec<Cow<'_, str>> = self.names.iter().map(|name| csv::quote(name)).collect();
        let name = |at: usize| names.get(at).map_or("", Cow::as_ref).as_bytes();
        for sample in self.iter() {
            out.extend_from_slice(step.as_bytes());
            out.push(b',');
            csv::number(out, sample.at_s);
            out.push(b',');
            out.extend_from_slice(name(sample.source));
            out.push(b',');
            out.extend_from_slice(name(sample.kind));
            let mut cells = 0;
            for (place, value) in sample.scalars {
                out.resize(out.len() + place + 1 - cells, b',');
                csv::number(out, *value);
                cells = place + 1;
            }
            out.resize(out.len() + SCALARS - cells, b',');
            out.push(b'\n');
        }
    }
}

/// Samples of a step by columns: those of [`Samples::write_csv`].
pub(crate) fn frame<'a>(step: &'a str, samples: &'a Samples) -> Frame<'a> {
    let rows: Vec<Sample<'a>> = samples.iter().collect();
    let name = |at: usize| samples.names.get(at).map(|name| Cow::Borrowed(name.as_str()));
    let mut scalars = vec![vec![None; rows.len()]; SCALARS];
    for (row, sample) in rows.iter().enumerate() {
        for (place, value) in sample.scalars {
            if let Some(cell) = scalars.get_mut(*place).and_then(|column| column.get_mut(row)) {
                *cell = Some(*value).filter(|v| v.is_finite());
            }
        }
    }
    let mut frame =
        Frame { columns: vec![("step".into(), Values::Text(vec![Some(step.into()); rows.len()]))] };
    frame.number("at_s", &rows, |s| Some(s.at_s));
    frame.columns.push(("source".into(), Values::Text(rows.iter().map(|s| name(s.source)).collect())));
    frame.columns.push(("kind".into(), Values::Text(rows.iter().map(|s| name(s.kind)).collect())));
    frame
        .columns
        .extend(scalar_names().zip(scalars).map(|(name, values)| (name.to_owned(), Values::Number(values))));
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_the_same_table() {
        let mut samples = Samples::default();
        for line in [
            r#"{"step":"N,3","at_s":1,"source":"=inst","kind":"engine","values":{"resident_bytes":9,"kv_pool":0.25}}"#,
            r#"{"step":"N,3","at_s":1.5,"source":"client","kind":"gap","why":"refused"}"#,
            r#"{"step":"N,3","at_s":2,"source":"client","kind":"client","cpu_share":0.1,"rss_bytes":null}"#,
            r#"{"step":"N,3","at_s":3,"source":"client","kind":"client","cpu_share":0.1,"rss_bytes":60000000}"#,
        ] {
            samples.add(&serde_json::from_str(line).unwrap());
        }
        let (mut lines, mut columns) = (Vec::new(), Vec::new());
        samples.write_csv("N,3", &mut lines);
        let frame = frame("N,3", &samples);
        frame.write_csv(&mut columns);
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(lines, String::from_utf8(columns).unwrap());
        let cells = frame.header().split(',').count();
        assert_eq!(lines.lines().map(|line| csv::cells(line)[0].len()).collect::<Vec<_>>(), [cells; 4]);
        assert!(lines.starts_with("\"N,3\",1,\"'=inst\",engine,0.25,"), "{lines}");
        assert!(lines.ends_with(",0.1,60000000\n"), "{lines}");
    }
}
