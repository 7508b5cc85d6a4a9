//! A single file of ours, whose bytes were checked when it was opened.

use super::{Sink, Source, Wanted};
use crate::error::Result;
use crate::table::TableReader;
use arrow::datatypes::SchemaRef;
use std::ops::Range;

/// See the module.
pub struct FileSource(pub TableReader);

impl Source for FileSource {
    fn schema(&self) -> &SchemaRef {
        self.0.schema()
    }

    fn shown(&self) -> String {
        format!("{} {}", self.0.kind().name(), self.0.location())
    }

    fn unit_rows(&self) -> Vec<u64> {
        let file = self.0.file();
        let end = |group: usize| if group == file.groups() { file.rows() } else { file.first_row(group) };
        (0..file.groups()).map(|group| end(group + 1) - end(group)).collect()
    }

    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()> {
        let ascending = wanted.ascending();
        for group in units {
            for batch in self.0.file().group_batches(group, Some(&ascending), wanted.batch_rows)? {
                sink(wanted.arranged(&batch?, &ascending)?)?;
            }
        }
        Ok(())
    }
}
