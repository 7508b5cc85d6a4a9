//! Presents planetree's tables to the engine as row groups that can be read independently. A partition of a scan is a
//! range of adjacent row groups, so the concatenated partitions have the rows in the order of the table.

mod dataset;
mod exec;
mod explained;
mod file;
mod memory;
mod scored;

pub(crate) use dataset::DatasetSource;
pub(crate) use exec::{Scan, ScanExec, ScanMemory};
pub(crate) use explained::{ExplainedSource, RowExplainer};
pub(crate) use file::FileSource;
pub(crate) use memory::MemorySource;
pub(crate) use scored::ScoredSource;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Receives batches. If it returns an error, the scan ends.
pub(crate) type BatchSink<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// The columns that a scan requests from a source.
#[derive(Debug, Clone)]
pub(crate) struct ScanRequest {
    /// Column indices in any order. There is at least one.
    pub columns: Vec<usize>,
    /// The schema of the requested columns.
    pub schema: SchemaRef,
    /// Rows per batch.
    pub batch_rows: usize,
}

/// A table that is read by row groups.
pub(crate) trait ScanSource: Send + Sync {
    /// Returns the columns of the table.
    fn schema(&self) -> &SchemaRef;

    /// Returns the text that plans show for the table. It never contains secrets.
    fn description(&self) -> String;

    /// Returns the number of rows in each row group, as far as it is known without reading them.
    fn row_group_rows(&self) -> Vec<u64>;

    /// Returns the most bytes that a row group has as it is stored, if all of them are read before it is decoded.
    fn row_group_bytes(&self) -> u64 {
        0
    }

    /// Returns the dataset whose manifest the numbers of rows come from; `None` if they come from verified files. A manifest
    /// may claim any number.
    fn counted_by(&self) -> Option<&DatasetReader> {
        None
    }

    /// Reads some row groups in order. It runs in a thread that may block.
    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()>;
}

impl ScanRequest {
    /// Returns the requested columns in ascending order without duplicates, as readers return them.
    pub(crate) fn ascending(&self) -> Vec<usize> {
        let mut columns = self.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Brings the columns of a batch, which are in ascending order, into the requested order.
    pub(crate) fn reordered(&self, batch: &RecordBatch, ascending: &[usize]) -> Result<RecordBatch> {
        let columns = self.columns.iter().map(|column| {
            let index = ascending.partition_point(|other| other < column);
            batch.column(index).clone()
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns.collect(), &options)
            .map_err(|error| Error::bug("scan", &error).caused_by(error))
    }
}

/// Logs a warning about a dataset that a query reads with a model.
pub(crate) fn warn(reader: &DatasetReader, warning: Option<String>) {
    if let Some(warning) = warning {
        tracing::warn!("{}: {warning}", reader.location());
    }
}

/// A source that the engine uses as a table.
pub(crate) struct ScanTable(pub Arc<dyn ScanSource>);

impl fmt::Debug for ScanTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.description())
    }
}

#[async_trait]
impl TableProvider for ScanTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let options = state.config_options();
        let partitions = options.execution.target_partitions;
        let all = (0..self.0.schema().fields().len()).collect();
        let columns = projection.cloned().unwrap_or(all);
        let partitions = match state.config().get_extension::<ScanMemory>() {
            Some(memory) => memory.partitions(&*self.0, columns.len()).min(partitions),
            None => partitions,
        };
        Ok(Arc::new(ScanExec::new(Scan::new(self.0.clone(), columns, partitions, limit)?, ())))
    }
}
