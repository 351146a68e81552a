//! A table by columns, as CSV and Parquet are made from it.

use std::borrow::Cow;

use crate::csv;

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values<'a> {
    Number(Vec<Option<f64>>),
    Count(Vec<Option<u64>>),
    Text(Vec<Option<Cow<'a, str>>>),
    Flag(Vec<Option<bool>>),
}

/// A table by columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Frame<'a> {
    pub(crate) columns: Vec<(String, Values<'a>)>,
}

impl<'a> Frame<'a> {
    pub(crate) fn number<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<f64>) {
        let values = rows.iter().map(|r| value(r).filter(|v| v.is_finite())).collect();
        self.columns.push((name.into(), Values::Number(values)));
    }

    pub(crate) fn count<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<u64>) {
        self.columns.push((name.into(), Values::Count(rows.iter().map(value).collect())));
    }

    pub(crate) fn text<T, S: Into<Cow<'a, str>>>(
        &mut self,
        name: &str,
        rows: &'a [T],
        value: impl Fn(&'a T) -> Option<S>,
    ) {
        let values = rows.iter().map(|r| value(r).map(Into::into)).collect();
        self.columns.push((name.into(), Values::Text(values)));
    }

    pub(crate) fn flag<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<bool>) {
        self.columns.push((name.into(), Values::Flag(rows.iter().map(value).collect())));
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, v)| match v {
            Values::Number(v) => v.len(),
            Values::Count(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Flag(v) => v.len(),
        })
    }

    pub(crate) fn header(&self) -> String {
        self.columns.iter().map(|(name, _)| csv::quote(name)).collect::<Vec<_>>().join(",")
    }

    /// Adds every row as a line.
    pub(crate) fn write_csv(&self, out: &mut Vec<u8>) {
        for row in 0..self.rows() {
            for (at, (_, values)) in self.columns.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                match values {
                    Values::Number(v) => {
                        v.get(row).copied().flatten().into_iter().for_each(|n| csv::number(out, n))
                    }
                    Values::Count(v) => {
                        v.get(row).copied().flatten().into_iter().for_each(|n| csv::whole(out, n))
                    }
                    Values::Flag(v) => {
                        let word =
                            v.get(row).copied().flatten().map(|flag| if flag { "true" } else { "false" });
                        out.extend_from_slice(word.unwrap_or_default().as_bytes());
                    }
                    Values::Text(v) => {
                        let text = v.get(row).and_then(Option::as_deref).unwrap_or_default();
                        out.extend_from_slice(csv::quote(text).as_bytes());
                    }
                }
            }
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_empty_when_unknown_and_no_formulas() {
        let rows = ["=HYPERLINK(1)", "a,\"b\"", "plain"];
        let mut f = Frame::default();
        f.text("t", &rows, |r| Some(*r));
        f.number("n", &rows, |r| (*r == "plain").then_some(0.5));
        f.number("x", &rows, |_| Some(f64::NAN));
        f.number("w", &rows, |_| Some(-0.0));
        f.number("z", &rows, |_| Some(31_072.0));
        f.count("most", &rows, |_| Some(u64::MAX));
        f.flag("flag", &rows, |r| (*r != "plain").then_some(true));
        let mut out = Vec::new();
        f.write_csv(&mut out);
        assert_eq!(f.header(), "t,n,x,w,z,most,flag");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"'=HYPERLINK(1)\",,,0,31072,18446744073709551615,true\n\
             \"a,\"\"b\"\"\",,,0,31072,18446744073709551615,true\nplain,0.5,,0,31072,18446744073709551615,\n"
        );
    }
}
