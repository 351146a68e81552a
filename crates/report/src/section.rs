//! A part of a report before it becomes HTML: sentences, tables, plots.

use crate::plots::Named;
use crate::words::Said;

/// A table; the first column names the row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) caption: Option<Said>,
    pub(crate) head: Vec<Said>,
    pub(crate) rows: Vec<Vec<Said>>,
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: Said,
    /// Files that its figures are read from.
    pub(crate) source: String,
    pub(crate) lead: Vec<Said>,
    pub(crate) tables: Vec<Table>,
    /// What is uncertain.
    pub(crate) doubts: Vec<Said>,
    pub(crate) plots: Vec<Named>,
}
