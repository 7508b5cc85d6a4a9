//! Our tables as the engine sees them: units of rows (row groups) that are read on their own. A partition of a
//! scan is some units side by side, so that partitions, one after another, are the rows in their order.

mod dataset;
mod exec;
mod explained;
mod file;
mod memory;
mod scored;

pub use dataset::DatasetSource;
pub use exec::ScanExec;
pub use explained::{ExplainedSource, RowExplainer};
pub use file::FileSource;
pub use memory::MemorySource;
pub use scored::ScoredSource;

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

/// Where batches go. An error ends the reading.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// What a scan wants of a source.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Columns by their places, in any order; there is at least one.
    pub columns: Vec<usize>,
    /// The columns' schema.
    pub schema: SchemaRef,
    /// Rows of a batch.
    pub batch_rows: usize,
}

/// Rows that are read by units.
pub trait Source: Send + Sync {
    /// Its columns.
    fn schema(&self) -> &SchemaRef;

    /// What plans show; nothing secret.
    fn shown(&self) -> String;

    /// How many rows each unit has.
    fn unit_rows(&self) -> Vec<u64>;

    /// Reads some units, in the order of their rows. Runs where it may wait.
    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()>;
}

impl Wanted {
    /// The columns in ascending order, each once: readers give them so.
    pub fn ascending(&self) -> Vec<usize> {
        let mut columns = self.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// A batch of the columns as they are wanted, out of one that has them in ascending order.
    pub fn arranged(&self, batch: &RecordBatch, ascending: &[usize]) -> Result<RecordBatch> {
        let columns = self.columns.iter().map(|column| {
            let place = ascending.partition_point(|other| other < column);
            batch.column(place).clone()
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns.collect(), &options)
            .map_err(|error| Error::place("scan", error, "report this: it is a fault of planetree"))
    }
}

/// Says what the user should know of a dataset that a query reads for a model.
pub fn warn(reader: &DatasetReader, warning: Option<String>) {
    if let Some(warning) = warning {
        tracing::warn!("{}: {warning}", reader.location());
    }
}

/// A source as a table.
pub struct SourceTable(pub Arc<dyn Source>);

impl fmt::Debug for SourceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.shown())
    }
}

#[async_trait]
impl TableProvider for SourceTable {
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
        Ok(Arc::new(ScanExec::new(self.0.clone(), columns, partitions, limit)?))
    }
}
