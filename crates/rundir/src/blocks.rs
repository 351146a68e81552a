//! A growing file of a run (`calls.jsonl`, `series.jsonl`), read in blocks of whole lines by several threads.

use std::fs::File;
use std::io::{BufRead, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread::available_parallelism;

use crate::ordered_pool::in_order;
use crate::step::CommittedStep;

/// How a run is read; nothing that is found depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Threads that take lines apart.
    pub workers: NonZeroUsize,
    /// Bytes of the blocks in which they get them.
    pub block_bytes: NonZeroUsize,
}

impl Default for Reading {
    /// A worker for every core, up to eight: more would wait for the thread that keeps what they found. Blocks of
    /// 8 MiB make good parts of Parquet files (tens of thousands of rows), and dozens of them fit into memory.
    fn default() -> Self {
        const EIGHT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);
        const BLOCK: NonZeroUsize = NonZeroUsize::MIN.saturating_add((8 << 20) - 1);
        Self { workers: available_parallelism().unwrap_or(NonZeroUsize::MIN).min(EIGHT), block_bytes: BLOCK }
    }
}

/// Steps that nothing replaced, with their place in the journal.
pub fn current(committed: &[Option<CommittedStep>]) -> impl Iterator<Item = (usize, &CommittedStep)> {
    committed
        .iter()
        .enumerate()
        .filter_map(|(at, step)| Some((at, step.as_ref()?)))
        .filter(|(at, step)| !committed.iter().skip(at + 1).flatten().any(|later| later.step == step.step))
}

/// Which current step a line belongs to, going by the bytes that the journal remembers.
#[derive(Debug)]
pub struct Owners {
    /// (end of the part in bytes, index among the current steps).
    parts: Vec<(u64, Option<usize>)>,
}

impl Owners {
    /// `end` is the length of the file when a step was committed.
    #[must_use]
    pub fn new(committed: &[Option<CommittedStep>], end: fn(&CommittedStep) -> u64) -> Self {
        let current: Vec<usize> = current(committed).map(|(at, _)| at).collect();
        let parts = committed
            .iter()
            .enumerate()
            .filter_map(|(at, step)| Some((end(step.as_ref()?), current.iter().position(|s| *s == at))))
            .collect();
        Self { parts }
    }
}

/// Lines that could not be read.
#[derive(Debug, Default)]
pub struct Bad {
    /// How many.
    pub count: usize,
    /// The first of them, counted from 1, and what is wrong with it.
    pub first: Option<(usize, String)>,
}

impl Bad {
    /// Adds a line, counted from 1.
    pub fn add(&mut self, line: usize, why: &dyn std::fmt::Display) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, why.to_string()));
    }
}

/// What was odd about the lines of a file.
#[derive(Debug, Default)]
pub struct Odd {
    lines: usize,
    /// Lines that could not be read.
    pub bad: Bad,
    /// Lines that stand among those of another step.
    pub strays: usize,
    /// Lines after the last commit.
    pub uncommitted: usize,
}

impl Odd {
    /// With what was odd about the lines that follow.
    fn and(&mut self, next: Self) {
        self.bad.count += next.bad.count;
        let first = next.bad.first.map(|(line, why)| (self.lines + line, why));
        self.bad.first = self.bad.first.take().or(first);
        self.lines += next.lines;
        self.strays += next.strays;
        self.uncommitted += next.uncommitted;
    }
}

/// The lines of a block, to go through once.
#[derive(Debug)]
pub struct Lines<'a> {
    owners: &'a Owners,
    /// Bytes of the file before the block.
    start: u64,
    text: &'a [u8],
    counts: Odd,
}

impl Lines<'_> {
    /// Hands out every line of a current step with the step's place; `take` says whether the line is that step's.
    pub fn each(&mut self, mut take: impl FnMut(usize, &str) -> Result<bool, String>) {
        let mut owners = self.owners.parts.iter();
        let mut owner = owners.next();
        let mut end = self.start;
        let mut rest = self.text;
        while !rest.is_empty() {
            let mut behind = rest;
            // Reading from memory cannot fail.
            let (line, after) = rest.split_at(behind.skip_until(b'\n').unwrap_or(rest.len()));
            rest = after;
            end += line.len() as u64;
            self.counts.lines += 1;
            while owner.is_some_and(|part| end > part.0) {
                owner = owners.next();
            }
            let Some((_, owner)) = owner else {
                self.counts.uncommitted += 1;
                continue;
            };
            let taken = match std::str::from_utf8(line) {
                Err(e) => Err(e.to_string()),
                Ok(text) => match owner {
                    Some(step) if !text.trim_ascii().is_empty() => take(*step, text),
                    _ => Ok(true),
                },
            };
            match taken {
                Ok(true) => {}
                Ok(false) => self.counts.strays += 1,
                Err(why) => self.counts.bad.add(self.counts.lines, &why),
            }
        }
    }
}

/// Whole lines of a file, and where they begin.
struct Block {
    start: u64,
    text: Vec<u8>,
}

/// A file in blocks.
struct Blocks {
    file: File,
    block_bytes: usize,
    /// Bytes that were handed out.
    start: u64,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    failed: Option<std::io::Error>,
}

impl Blocks {
    fn next(&mut self) -> Option<Block> {
        let mut text = Vec::with_capacity(self.rest.len() + self.block_bytes + 64);
        text.append(&mut self.rest);
        while self.failed.is_none() {
            let had = text.len();
            let read = self.file.by_ref().take(self.block_bytes as u64).read_to_end(&mut text);
            let ends = text.get(had..).and_then(|new| new.iter().rposition(|b| *b == b'\n'));
            match (read, ends) {
                (Ok(0), _) => break,
                (Ok(_), None) => {}
                (Ok(_), Some(end)) => {
                    self.rest = text.split_off(had + end + 1);
                    break;
                }
                // Of a line that could not be read to its end, nothing is known.
                (Err(e), ends) => {
                    text.truncate(ends.map_or(0, |end| had + end + 1));
                    self.failed = Some(e);
                }
            }
        }
        let block = Block { start: self.start, text };
        self.start += block.text.len() as u64;
        (!block.text.is_empty()).then_some(block)
    }
}

/// Goes through a growing file: workers turn blocks of lines into something, which is kept in the order of the file.
/// Gives what is odd about the file; nothing where it cannot be opened.
pub fn walk<R: Send>(
    file: &Path,
    reading: Reading,
    owners: &Owners,
    work: impl Fn(&mut Lines<'_>) -> R + Sync,
    mut keep: impl FnMut(R),
) -> Option<Odd> {
    let file = File::open(file).ok()?;
    let mut blocks =
        Blocks { file, block_bytes: reading.block_bytes.get(), start: 0, rest: Vec::new(), failed: None };
    let mut counts = Odd::default();
    in_order(
        reading.workers,
        || blocks.next(),
        |block| {
            let mut lines = Lines { owners, start: block.start, text: &block.text, counts: Odd::default() };
            let found = work(&mut lines);
            (lines.counts, found)
        },
        |(of_block, found)| {
            counts.and(of_block);
            keep(found);
        },
    );
    if let Some(e) = blocks.failed {
        counts.bad.add(counts.lines + 1, &e);
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_comes_once_and_whole_wherever_blocks_end() {
        let tmp = tempfile::tempdir().unwrap();
        let text = "a\n\nlonger than a block\nb\nhalf";
        std::fs::write(tmp.path().join("lines"), text).unwrap();
        let owners = Owners { parts: vec![(2, Some(7)), (3, None), (text.len() as u64 - 4, Some(8))] };
        for block_bytes in [1, 3, 1_000] {
            let size = NonZeroUsize::new(block_bytes).unwrap();
            let reading = Reading { workers: NonZeroUsize::new(2).unwrap(), block_bytes: size };
            let mut all = Vec::new();
            let work = |lines: &mut Lines<'_>| {
                let mut found = Vec::new();
                lines.each(|step, text| {
                    found.push((step, text.trim_end().to_owned()));
                    Ok(true)
                });
                found
            };
            let odd =
                walk(&tmp.path().join("lines"), reading, &owners, work, |found| all.extend(found)).unwrap();
            let lines = [(7, "a"), (8, "longer than a block"), (8, "b")];
            assert_eq!(all, lines.map(|(step, line)| (step, line.to_owned())), "{block_bytes}");
            // The half line was never committed.
            assert_eq!((odd.uncommitted, odd.strays, odd.bad.count), (1, 0, 0), "{odd:?}");
        }
    }
}
