//! The CSV files, derived from committed steps: one header, one row a step, unknown cells empty.

use std::io;

use tapedeck_slo::table::{Cells, Column};
use tapedeck_slo::{LADDER_COLUMNS, TierReport, ladder_row, tier_columns};

use crate::step::CommittedStep;

/// `ladder.csv`: the fixed columns of a ladder and nothing else, a row for each step with what its notes begin with.
///
/// # Errors
/// None that is known: it is written to memory.
pub fn ladder_csv<'a>(
    rows: impl IntoIterator<Item = (&'a TierReport, &'static [&'static str])>,
) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(LADDER_COLUMNS)?;
    for (report, notes) in rows {
        csv.write_record(ladder_row(report, notes))?;
    }
    csv.into_inner().map_err(|e| e.into_error())
}

/// What the notes of a row begin with: whether the step was cut short, or was played again with more loops so that N*
/// does not follow from it.
#[must_use]
pub const fn notes(partial: bool, superseded: bool) -> &'static [&'static str] {
    match (partial, superseded) {
        (true, _) => &["partial"],
        (false, true) => &["superseded"],
        (false, false) => &[],
    }
}

/// `tiers.csv`: everything that is known of each tier.
pub(crate) fn tiers_csv(steps: &[&CommittedStep]) -> io::Result<Vec<u8>> {
    let columns = tier_columns();
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["step", "partial"].into_iter().chain(columns.iter().map(|c| c.name.as_str())))?;
    for step in steps {
        let own = [step.step.clone(), step.partial.to_string()];
        csv.write_record(own.into_iter().chain(columns.iter().map(|c| cell(c, &step.report))))?;
    }
    csv.into_inner().map_err(|e| e.into_error())
}

fn cell(column: &Column, report: &TierReport) -> String {
    let known = match &column.cells {
        Cells::Text(of) => of(report),
        Cells::Flag(of) => of(report).map(|flag| flag.to_string()),
        Cells::Count(of) => of(report).map(|n| n.to_string()),
        Cells::Number(of) => of(report).filter(|v| v.is_finite()).map(|v| v.to_string()),
    };
    known.unwrap_or_default()
}
