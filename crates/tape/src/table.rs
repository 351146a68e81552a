//! Small tables beside a pool: tags, transcripts, segments.
//!
//! One rule for all: the first line names the columns; cells are parted by tabs if the first line has any, else
//! by commas; a cell that begins with a double quote runs to the closing one (two of them stand for one), so it
//! may hold the separator or a line break; a byte-order mark and CRLF are ignored.

use std::path::Path;

use crate::error::TapeError;

/// Larger tables are refused: a table names calls, it does not hold them.
const MAX_BYTES: u64 = 1 << 30;

/// A table in memory.
#[derive(Debug)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    /// Reads a table; `None` when there is no such file.
    pub(crate) fn read_if_there(path: &Path) -> Result<Option<Self>, TapeError> {
        match std::fs::metadata(path) {
            Ok(meta) if meta.len() > MAX_BYTES => Err(TapeError::Table {
                path: path.to_owned(),
                line: 1,
                why: format!("{} bytes are too much for a table", meta.len()),
            }),
            Ok(_) => {
                let bytes = std::fs::read(path).map_err(|e| TapeError::io(path, &e))?;
                Self::parse(&String::from_utf8_lossy(&bytes))
                    .map(Some)
                    .map_err(|(line, why)| TapeError::Table { path: path.to_owned(), line, why })
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(TapeError::io(path, &e)),
        }
    }

    /// Reads a table from its text.
    ///
    /// # Errors
    /// The line and what is wrong there: nothing in it, a quote that is never closed.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let separator = if text.lines().next().unwrap_or_default().contains('\t') { '\t' } else { ',' };
        let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
        let (mut cells, mut cell) = (Vec::new(), String::new());
        let (mut line, mut began) = (1, 1);
        let mut quoted = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            line += usize::from(c == '\n');
            if let Some(opened) = quoted {
                match c {
                    '"' if chars.peek() == Some(&'"') => {
                        cell.push('"');
                        chars.next();
                    }
                    '"' => quoted = None,
                    _ if chars.peek().is_none() => {
                        return Err((opened, "a quote is never closed".to_owned()));
                    }
                    c => cell.push(c),
                }
                continue;
            }
            match c {
                '"' if cell.is_empty() => quoted = Some(line),
                '\r' if chars.peek() == Some(&'\n') => {}
                '\n' => {
                    cells.push(std::mem::take(&mut cell));
                    rows.push((began, std::mem::take(&mut cells)));
                    began = line;
                }
                c if c == separator => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        if let Some(opened) = quoted {
            return Err((opened, "a quote is never closed".to_owned()));
        }
        cells.push(cell);
        rows.push((began, cells));
        rows.retain(|(_, cells)| cells.iter().any(|c| !c.is_empty()));
        if rows.is_empty() {
            return Err((1, "the table is empty: its first line names the columns".to_owned()));
        }
        let (_, columns) = rows.remove(0);
        Ok(Self { columns: columns.into_iter().map(|c| c.trim().to_owned()).collect(), rows })
    }

    /// The names of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Where a column is.
    pub(crate) fn column(&self, name: &str, path: &Path) -> Result<usize, TapeError> {
        self.columns.iter().position(|c| c == name).ok_or_else(|| TapeError::Table {
            path: path.to_owned(),
            line: 1,
            why: format!(
                "no column `{name}`; the first line must name the columns, it has: {}",
                self.columns.join(", ")
            ),
        })
    }

    /// Each row with its line number.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[String])> {
        self.rows.iter().map(|(line, cells)| (*line, cells.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        Table::parse(text).unwrap().rows().map(|(_, c)| c.to_vec()).collect()
    }

    #[test]
    fn marks_line_ends_and_quotes() {
        let rows = cells("\u{FEFF}file\ttext\r\na.wav\thello there\r\nb.wav\t\r\n");
        assert_eq!(rows, [["a.wav", "hello there"], ["b.wav", ""]]);
        assert_eq!(cells("file,text\na,\"b, \"\"c\"\"\"\n"), [["a", "b, \"c\""]]);
        assert_eq!(cells("file\ttext\na\t\"he said\thello\"\n"), [["a", "he said\thello"]]);
        assert_eq!(cells("file\ttext\na\tit's 5\" wide\n"), [["a", "it's 5\" wide"]]);
    }

    #[test]
    fn line_numbers_survive_quoted_breaks() {
        let table = Table::parse("f,t\na,\"x\ny\"\nb,z\n").unwrap();
        assert_eq!(table.rows().map(|(line, _)| line).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(Table::parse("f,t\na,\"x\n").unwrap_err().0, 2);
        assert!(Table::parse("").is_err());
    }
}
