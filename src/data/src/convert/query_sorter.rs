//! Brings together the rows of each query with an external sort. Rows are collected up to a memory budget, sorted by
//! the first appearance of their query, and appended to a temporary file. Each such part of the file is called a run. At
//! the end, the runs are merged. There is one file, so that any number of runs needs one file descriptor.

use crate::dataset::Layout;
use crate::rows::BlockBuilder;
use crate::rows::{Block, RowMajorBlock};
use planetree_base::error::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Sorts rows by query. Queries are in order of first appearance, and the rows of a query keep their order.
pub(super) struct QuerySorter {
    layout: Layout,
    budget: u64,
    /// Maps the hash of each query id to the number of the query, in order of first appearance.
    numbers: HashMap<u128, u64>,
    /// Serialised rows that have not been written to a file yet.
    records: Vec<u8>,
    /// For each row in `records`, the number of its query and the offset of the row.
    order: Vec<(u64, usize)>,
    /// The temporary file, once there is a run.
    file: Option<Arc<File>>,
    /// The bytes of each run in the file.
    runs: Vec<Range<u64>>,
}

impl QuerySorter {
    /// Creates a sorter that uses about `budget` bytes of memory.
    pub(super) fn new(layout: Layout, budget: u64) -> Self {
        QuerySorter {
            layout,
            budget,
            numbers: HashMap::new(),
            records: Vec::new(),
            order: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds rows. They must be added in the order of the input.
    pub(super) fn add(&mut self, rows: &RowMajorBlock) -> Result<()> {
        let block = &rows.block;
        for run in 0..block.runs.len() {
            let name = block.run_name(run);
            let next = self.numbers.len() as u64;
            let number = *self.numbers.entry(xxh3_128(name)).or_insert(next);
            for row in block.runs[run].first_row as usize..block.run_end(run) {
                self.order.push((number, self.records.len()));
                write_record(&mut self.records, rows, row, name);
            }
        }
        if self.numbers.len() as u64 * 64 > self.budget {
            return Err(Error::place(
                "--sort-queries",
                format_args!("the ids of {} queries do not fit in memory", self.numbers.len()),
                "raise --memory-limit, or sort the input by query first",
            ));
        }
        if (self.records.len() + 16 * self.order.len()) as u64 > self.budget {
            self.spill().map_err(temporary_file_error)?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.order.sort_unstable(); // rows of the same query are ordered by offset, which is the input order
        let file = match self.file.take() {
            Some(file) => file,
            None => Arc::new(tempfile::tempfile()?),
        };
        let start = self.runs.last().map_or(0, |run| run.end);
        let mut end = start;
        let mut output = BufWriter::with_capacity(1 << 18, &*file);
        for (number, start) in self.order.drain(..) {
            let length = u32_at(&self.records, start) as usize;
            output.write_all(&number.to_le_bytes())?;
            output.write_all(&self.records[start..start + 4 + length])?;
            end += 12 + length as u64;
        }
        output.flush()?;
        drop(output);
        self.records.clear();
        self.file = Some(file);
        self.runs.push(start..end);
        Ok(())
    }

    /// Passes all rows to `each`, query by query, in blocks of about 1 MiB.
    pub(super) fn finish(mut self, each: &mut dyn FnMut(Block) -> Result<()>) -> Result<()> {
        self.spill().map_err(temporary_file_error)?;
        self.records = Vec::new();
        let mut runs = Vec::new();
        let buffer = (self.budget as usize / self.runs.len().max(1)).clamp(1 << 12, 1 << 17);
        for range in self.runs {
            let Some(file) = self.file.clone() else { break };
            let bytes = BufReader::with_capacity(buffer, FileRange { file, range });
            let mut run = RecordRun { bytes, number: None, record: Vec::new() };
            run.advance().map_err(temporary_file_error)?;
            runs.push(run);
        }
        const BLOCK_BYTES: usize = 1 << 20;
        let mut builder = BlockBuilder::default();
        let mut bytes = 0;
        // The runs are in input order, so among rows of the same query, the first run has the earliest rows.
        while let Some(run) = (0..runs.len())
            .filter(|run| runs[*run].number.is_some())
            .min_by_key(|run| (runs[*run].number, *run))
        {
            read_record(&runs[run].record, &self.layout, &mut builder);
            bytes += runs[run].record.len();
            runs[run].advance().map_err(temporary_file_error)?;
            if bytes >= BLOCK_BYTES {
                each(builder.finish())?;
                bytes = 0;
            }
        }
        each(builder.finish())
    }
}

fn temporary_file_error(error: io::Error) -> Error {
    Error::io(std::env::temp_dir().display(), "use a temporary file", error)
}

/// Reads a range of a file without moving the position that its other readers see.
struct FileRange {
    file: Arc<File>,
    range: Range<u64>,
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..wanted], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}

struct RecordRun {
    bytes: BufReader<FileRange>,
    number: Option<u64>,
    record: Vec<u8>,
}

impl RecordRun {
    fn advance(&mut self) -> io::Result<()> {
        let mut head = [0; 12];
        match self.bytes.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.number = None;
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let number = u64::from(u32_at(&head, 0)) | u64::from(u32_at(&head, 4)) << 32;
        self.number = Some(number);
        self.record.resize(u32_at(&head, 8) as usize, 0);
        self.bytes.read_exact(&mut self.record)
    }
}

const NONE: u32 = u32::MAX;

/// Serialises a row. The record starts with its length, followed by the label, weight and position, the lengths of
/// the query id and document id, the entries, and the two ids.
fn write_record(out: &mut Vec<u8>, rows: &RowMajorBlock, row: usize, query: &[u8]) {
    let start = out.len();
    let block = &rows.block;
    let mut put = |number: u32| out.extend_from_slice(&number.to_le_bytes());
    put(0);
    put(block.labels[row].to_bits());
    put(block.weights.as_ref().map_or(f32::NAN, |weights| weights[row]).to_bits());
    // The minimum of `i32` marks a missing position.
    put(block.positions.as_ref().and_then(|positions| positions[row]).unwrap_or(i32::MIN) as u32);
    let document = block.documents.get(row);
    put(query.len() as u32);
    put(document.map_or(NONE, |id| id.len() as u32));
    for (index, value) in rows.entries(row) {
        put(*index);
        put(value.to_bits());
    }
    out.extend_from_slice(query);
    out.extend_from_slice(document.unwrap_or_default());
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn read_record(record: &[u8], layout: &Layout, builder: &mut BlockBuilder) {
    let number = |place: usize| u32_at(record, 4 * place);
    let (query_length, document) = (number(3) as usize, number(4));
    let document_length = if document == NONE { 0 } else { document as usize };
    let entries = (record.len() - 20 - query_length - document_length) / 8;
    let text = &record[20 + 8 * entries..];
    builder.query(&text[..query_length], 0);
    for entry in 0..entries {
        let (index, value) = (number(5 + 2 * entry), f32::from_bits(number(6 + 2 * entry)));
        if value.is_nan() {
            builder.push_missing(index);
        } else {
            builder.push_entry(index, value);
        }
    }
    builder.finish_row(f32::from_bits(number(0)), (document != NONE).then(|| &text[query_length..]));
    if layout.weight {
        builder.weight(f32::from_bits(number(1)));
    }
    if layout.position {
        builder.position(Some(number(2) as i32).filter(|position| *position != i32::MIN));
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::FeatureNames;

    /// Compares the result with a stable sort in memory.
    #[test]
    fn queries_are_sorted_by_first_appearance_with_any_budget() {
        let layout = Layout { features: FeatureNames::Numbered, weight: true, position: true };
        let queries: Vec<u32> = (0..500u32).map(|row| row * 7919 % 23).collect();
        let mut first: Vec<u32> = Vec::new();
        for query in &queries {
            if !first.contains(query) {
                first.push(*query);
            }
        }
        let mut expected: Vec<(u32, u32)> = queries.iter().copied().zip(0..).collect();
        expected.sort_by_key(|(query, _)| first.iter().position(|known| known == query));
        for budget in [2_000, 10_000, 1 << 30] {
            let mut sorter = QuerySorter::new(layout.clone(), budget);
            for chunk in expected_rows(&queries).chunks(60) {
                let mut builder = BlockBuilder::default();
                for (query, row) in chunk {
                    builder.query(query.to_string().as_bytes(), 1);
                    builder.push_entry(row % 5, *row as f32);
                    builder.push_missing(7);
                    builder.finish_row(*row as f32, (row % 2 == 0).then_some(b"even"));
                    builder.weight(*row as f32 + 0.5);
                    builder.position((row % 3 != 0).then_some(-(*row as i32)));
                }
                sorter.add(&builder.finish_rows()).unwrap();
            }
            let mut got = Vec::new();
            sorter
                .finish(&mut |block| {
                    for run in 0..block.runs.len() {
                        let query: u32 = std::str::from_utf8(block.run_name(run)).unwrap().parse().unwrap();
                        for row in block.runs[run].first_row as usize..block.run_end(run) {
                            let number = block.labels[row] as u32;
                            assert_eq!(block.weights.as_ref().unwrap()[row], number as f32 + 0.5);
                            let position = (!number.is_multiple_of(3)).then_some(-(number as i32));
                            assert_eq!(block.positions.as_ref().unwrap()[row], position);
                            assert_eq!(block.documents.get(row).is_some(), number.is_multiple_of(2));
                            got.push((query, number));
                        }
                    }
                    Ok(())
                })
                .unwrap();
            assert_eq!(got, expected, "budget {budget}");
        }
    }

    fn expected_rows(queries: &[u32]) -> Vec<(u32, u32)> {
        queries.iter().copied().zip(0..).collect()
    }
}
