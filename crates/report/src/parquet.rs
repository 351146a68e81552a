//! Tables as Parquet, through polars.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars_core::prelude::{Column, DataFrame, NamedFrom, PolarsError, Series};
use polars_io::parquet::write::{BatchedWriter, ParquetWriter};

use crate::data::{Frame, Values};
use crate::output::WriteError;

/// A Parquet file that is written batch by batch, beside its name until it is whole.
pub(crate) struct Batches {
    writer: BatchedWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

fn failed(path: &Path) -> impl Fn(PolarsError) -> WriteError + '_ {
    |e| WriteError::io(path, std::io::Error::other(e.to_string()))
}

fn frame(frame: &Frame) -> Result<DataFrame, PolarsError> {
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

impl Batches {
    /// Opens a file whose columns are those of a frame.
    pub(crate) fn create(path: &Path, like: &Frame) -> Result<Self, WriteError> {
        let part = path.with_extension("parquet.part");
        let file = File::create(&part).map_err(|e| WriteError::io(&part, e))?;
        let schema = Arc::clone(frame(like).map_err(failed(path))?.schema());
        let writer = ParquetWriter::new(file).batched(&schema).map_err(failed(path))?;
        Ok(Self { writer, part, path: path.to_path_buf() })
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, rows: &Frame) -> Result<(), WriteError> {
        let rows = frame(rows).map_err(failed(&self.path))?;
        self.writer.write_batch(&rows).map_err(failed(&self.path))
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

    fn rows(names: &[&str]) -> Frame {
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
    fn what_was_written_in_batches_is_read_back_with_the_unknown_as_null() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("calls.parquet");
        let mut batches = Batches::create(&path, &rows(&[])).unwrap();
        batches.write(&rows(&["a", "b"])).unwrap();
        assert!(!path.exists(), "half a file has no name");
        batches.write(&rows(&["c"])).unwrap();
        batches.finish().unwrap();
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
        let batches = Batches::create(&path, &rows(&[])).unwrap();
        batches.finish().unwrap();
        let read = ParquetReader::new(File::open(&path).unwrap()).finish().unwrap();
        assert_eq!(read.shape(), (0, 4));
    }
}
