//! Cells of CSV files, written and read.

use std::borrow::Cow;

/// A number in the fewest digits that give it back, without a point where it is whole; one that is none is unknown, and
/// an unknown cell is empty.
pub(crate) fn number(out: &mut Vec<u8>, value: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "only where nothing is lost")]
    match value {
        v if v.abs() < 1e15 && v.trunc().total_cmp(&v).is_eq() => whole(out, v as i64),
        v if v.is_finite() => out.extend_from_slice(zmij::Buffer::new().format_finite(v).as_bytes()),
        _ => {}
    }
}

/// A whole number.
pub(crate) fn whole(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Quotes a cell where CSV needs it, and takes the sting out of what a spreadsheet would run as a formula.
pub(crate) fn quote(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula || text.contains([',', '"', '\n', '\r']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// Cells of a file, row by row; what is no CSV is left out.
pub(crate) fn cells(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    reader.records().flatten().map(|row| row.iter().map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_exact_and_whole_ones_have_no_point() {
        let said = |value: f64| {
            let mut out = Vec::new();
            number(&mut out, value);
            String::from_utf8(out).unwrap()
        };
        let cells = [
            (0.0, "0"),
            (-0.0, "0"),
            (-7.0, "-7"),
            (31_072.0, "31072"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.000_25, "-0.00025"),
            (1e15, "1000000000000000.0"),
            (f64::NAN, ""),
            (f64::INFINITY, ""),
        ];
        for (value, cell) in cells {
            assert_eq!(said(value), cell);
        }
        for value in [1e-7, 1e300, f64::MAX, f64::MIN_POSITIVE, 123_456.789] {
            assert_eq!(said(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
