//! Files of ours, whose bytes were checked when they were opened: one, or several of the same columns.

use super::{Sink, Source, Wanted};
use arrow::datatypes::SchemaRef;
use planetree_base::error::{Error, Result};
use planetree_data::table::{ParquetFile, TableReader};
use std::ops::Range;
use std::sync::Arc;

/// See the module.
pub struct FileSource {
    tables: Vec<TableReader>,
    schema: SchemaRef,
}

impl FileSource {
    /// Tables one after another; `shown` is what they are called together.
    pub fn new(tables: Vec<TableReader>, shown: &str) -> Result<Self> {
        let Some(first) = tables.first() else {
            return Err(Error::place(shown, "there is no such file", "check the spelling of the path"));
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
                "name files of one kind",
            ));
        }
        Ok(FileSource { tables, schema })
    }

    /// The file of a unit, and its row group there.
    fn find(&self, unit: usize) -> Option<(&Arc<ParquetFile>, usize)> {
        let mut before = 0;
        for table in &self.tables {
            let groups = table.file().groups();
            if unit < before + groups {
                return Some((table.file(), unit - before));
            }
            before += groups;
        }
        None
    }
}

impl Source for FileSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn shown(&self) -> String {
        let more = match self.tables.len() {
            1 => String::new(),
            files => format!(" and {} more", files - 1),
        };
        let first = self.tables.first();
        first.map_or_else(String::new, |table| format!("{} {}{more}", table.kind().name(), table.location()))
    }

    fn unit_rows(&self) -> Vec<u64> {
        let rows_of = |table: &TableReader| {
            let file = table.file();
            let end = |group: usize| if group == file.groups() { file.rows() } else { file.first_row(group) };
            (0..file.groups()).map(|group| end(group + 1) - end(group)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(rows_of).collect()
    }

    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()> {
        let ascending = wanted.ascending();
        for (file, group) in units.filter_map(|unit| self.find(unit)) {
            for batch in file.group_batches(group, Some(&ascending), wanted.batch_rows)? {
                sink(wanted.arranged(&batch?, &ascending)?)?;
            }
        }
        Ok(())
    }
}
