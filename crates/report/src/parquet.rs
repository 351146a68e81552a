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
                Values::Text(v) => Series::new(name, v.as_slice()),
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
