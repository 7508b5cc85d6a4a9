//! Scans rows in memory: tables created by `CREATE TABLE name AS ...`, and small results of table functions.

use super::{BatchSink, ScanRequest, ScanSource};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use planetree_base::error::{Error, Result};
use std::ops::Range;

/// Batches in memory. Each batch is one row group.
pub(crate) struct MemorySource {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl MemorySource {
    /// Creates a source of these batches, in order.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        MemorySource { schema, batches }
    }
}

impl ScanSource for MemorySource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn description(&self) -> String {
        "rows in memory".to_owned()
    }

    fn row_group_rows(&self) -> Vec<u64> {
        self.batches.iter().map(|batch| batch.num_rows() as u64).collect()
    }

    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()> {
        for batch in &self.batches[row_groups] {
            let batch = batch.project(&request.columns);
            sink(batch.map_err(|error| Error::bug("scan", &error).caused_by(error))?)?;
        }
        Ok(())
    }
}
