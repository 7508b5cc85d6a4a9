//! Scans tables that planetree wrote: one file, or several files with the same columns. Checksums are verified when the
//! files are opened.

use super::{BatchSink, ScanRequest, ScanSource};
use arrow::datatypes::SchemaRef;
use planetree_base::error::{Error, Result};
use planetree_data::table::{ParquetFile, TableReader};
use std::ops::Range;
use std::sync::Arc;

/// Tables of one kind, concatenated.
pub(crate) struct FileSource {
    tables: Vec<TableReader>,
    schema: SchemaRef,
}

impl FileSource {
    /// Concatenates tables. `shown` is their path or pattern, for error messages.
    pub(crate) fn new(tables: Vec<TableReader>, shown: &str) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(Error::place(shown, "no such file", "check the spelling of the path"));
        };
        let schema = first.schema().clone();
        if let Some(other) = tables.iter().find(|table| *table.schema() != schema) {
            return Err(Error::place(
                shown,
                format_args!(
                    "{} and {} have different columns",
                    first.location().name(),
                    other.location().name()
                ),
                "select files with the same columns",
            ));
        }
        Ok(FileSource { tables, schema })
    }

    /// Returns the file that contains a row group, and the index of the row group within this file.
    fn find(&self, row_group: usize) -> Option<(&Arc<ParquetFile>, usize)> {
        let mut before = 0;
        for table in &self.tables {
            let groups = table.file().groups();
            if row_group < before + groups {
                return Some((table.file(), row_group - before));
            }
            before += groups;
        }
        None
    }
}

impl ScanSource for FileSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn description(&self) -> String {
        let more = match self.tables.len() {
            1 => String::new(),
            files => format!(" and {} more", files - 1),
        };
        let first = self.tables.first();
        first.map_or_else(String::new, |table| format!("{} {}{more}", table.kind().name(), table.location()))
    }

    fn row_group_rows(&self) -> Vec<u64> {
        let rows_of = |table: &TableReader| {
            let file = table.file();
            let end = |group: usize| if group == file.groups() { file.rows() } else { file.first_row(group) };
            (0..file.groups()).map(|group| end(group + 1) - end(group)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(rows_of).collect()
    }

    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()> {
        let ascending = request.ascending();
        for (file, group) in row_groups.filter_map(|row_group| self.find(row_group)) {
            for batch in file.group_batches(group, Some(&ascending), request.batch_rows)? {
                sink(request.reordered(&batch?, &ascending)?)?;
            }
        }
        Ok(())
    }
}
