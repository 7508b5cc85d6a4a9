//! Rows that a query left behind: `CREATE TABLE name AS ...`.

use super::{Sink, Source, Wanted};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::{Error, Result};
use std::ops::Range;

/// See the module.
pub struct MemorySource {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl MemorySource {
    /// Rows in their order.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        MemorySource { schema, batches }
    }
}

impl Source for MemorySource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn shown(&self) -> String {
        "rows in memory".to_owned()
    }

    fn unit_rows(&self) -> Vec<u64> {
        self.batches.iter().map(|batch| batch.num_rows() as u64).collect()
    }

    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()> {
        for batch in &self.batches[units] {
            let batch = batch.project(&wanted.columns);
            sink(
                batch.map_err(|error| {
                    Error::place("scan", error, "report this: it is a fault of planetree")
                })?,
            )?;
        }
        Ok(())
    }
}
