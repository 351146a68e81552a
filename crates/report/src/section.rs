//! A part of a report before it becomes HTML: sentences, tables, plots.

use crate::messages::LocalizedText;
use crate::plots::Named;

/// A table; the first column names the row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) caption: Option<LocalizedText>,
    pub(crate) head: Vec<LocalizedText>,
    pub(crate) rows: Vec<Vec<LocalizedText>>,
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: LocalizedText,
    /// Files that its figures are read from.
    pub(crate) source: String,
    pub(crate) lead: Vec<LocalizedText>,
    pub(crate) tables: Vec<Table>,
    /// What is uncertain.
    pub(crate) warnings: Vec<LocalizedText>,
    pub(crate) plots: Vec<Named>,
}
