//! Tables as Parquet, through polars.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars_core::prelude::{Column, DataFrame, NamedFrom, PolarsError, Series};
use polars_io::parquet::write::{BatchedWriter, ParquetWriter, RowGroupIterColumns};

use crate::frame::{Frame, Values};
use crate::output::WriteError;

/// Rows as Parquet holds them.
pub(crate) struct Group(Vec<RowGroupIterColumns<'static, PolarsError>>);

/// A Parquet file that is written group of rows by group of rows, beside its name until it is whole.
pub(crate) struct Groups {
    writer: BatchedWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

fn failed(path: &Path) -> impl Fn(PolarsError) -> WriteError + '_ {
    |e| WriteError::io(path, std::io::Error::other(e.to_string()))
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("path", &self.path).finish_non_exhaustive()
    }
}

fn frame(frame: &Frame<'_>) -> Result<DataFrame, PolarsError> {
    let columns = frame
        .columns
        .iter()
        .map(|(name, values)| {
            let name = name.as_str().into();
            let series = match values {
                Values::Number(v) => Series::new(name, v.as_slice()),
                Values::Count(v) => Series::new(name, v.as_slice()),
                Values::Text(v) => {
                    let texts: Vec<Option<&str>> = v.iter().map(Option::as_deref).collect();
                    Series::new(name, texts.as_slice())
                }
                Values::Flag(v) => Series::new(name, v.as_slice()),
            };
            Column::from(series)
        })
        .collect();
    DataFrame::new_infer_height(columns)
}

impl Groups {
    /// Opens a file whose columns are those of a frame.
    pub(crate) fn create(path: &Path, like: &Frame<'_>) -> Result<Self, WriteError> {
        let part = path.with_extension("parquet.part");
        let file = File::create(&part).map_err(|e| WriteError::io(&part, e))?;
        let schema = Arc::clone(frame(like).map_err(failed(path))?.schema());
        let writer = ParquetWriter::new(file).batched(&schema).map_err(failed(path))?;
        Ok(Self { writer, part, path: path.to_path_buf() })
    }

    /// Makes rows ready, on whichever thread.
    pub(crate) fn encode(&self, rows: &Frame<'_>) -> Result<Group, WriteError> {
        let rows = frame(rows).map_err(failed(&self.path))?;
        let groups: Result<_, _> = self.writer.encode_and_compress(&rows).collect();
        groups.map(Group).map_err(failed(&self.path))
    }

    /// Adds rows.
    pub(crate) fn write(&self, Group(rows): Group) -> Result<(), WriteError> {
        self.writer.write_row_groups(rows).map_err(failed(&self.path))
    }

    /// Ends the file and gives it its name.
    pub(crate) fn finish(self) -> Result<PathBuf, WriteError> {
        self.writer.finish().map_err(failed(&self.path))?;
        drop(self.writer);
        std::fs::rename(&self.part, &self.path).map_err(|e| WriteError::io(&self.path, e))?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    use polars_core::prelude::AnyValue;
    use polars_io::SerReader;
    use polars_io::parquet::read::ParquetReader;

    use super::*;

    fn rows<'a>(names: &[&'a str]) -> Frame<'a> {
        Frame {
            columns: vec![
                ("name".into(), Values::Text(names.iter().map(|n| Some((*n).into())).collect())),
                ("wait_s".into(), Values::Number(names.iter().map(|n| (*n != "b").then_some(0.5)).collect())),
                ("n".into(), Values::Count(names.iter().map(|n| (*n != "c").then_some(7)).collect())),
                ("counted".into(), Values::Flag(names.iter().map(|n| Some(*n == "a")).collect())),
            ],
        }
    }

    #[test]
    fn what_was_written_in_groups_is_read_back_with_the_unknown_as_null() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("calls.parquet");
        let groups = Groups::create(&path, &rows(&[])).unwrap();
        let [last, first] = [["c"].as_slice(), &["a", "b"]].map(|names| groups.encode(&rows(names)).unwrap());
        groups.write(first).unwrap();
        assert!(!path.exists(), "half a file has no name");
        groups.write(last).unwrap();
        groups.finish().unwrap();
        let read = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
        assert_eq!(read.shape(), (3, 4));
        let cell = |column: &str, row: usize| read.column(column).unwrap().get(row).unwrap().into_static();
        assert_eq!(cell("name", 2), AnyValue::String("c"));
        assert_eq!([cell("wait_s", 0), cell("wait_s", 1)], [AnyValue::Float64(0.5), AnyValue::Null]);
        assert_eq!([cell("n", 1), cell("n", 2)], [AnyValue::UInt64(7), AnyValue::Null]);
        assert_eq!(
            [cell("counted", 0), cell("counted", 1)],
            [AnyValue::Boolean(true), AnyValue::Boolean(false)]
        );
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("none.parquet");
        let groups = Groups::create(&path, &rows(&[])).unwrap();
        groups.finish().unwrap();
        let read = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
        assert_eq!(read.shape(), (0, 4));
    }
}
