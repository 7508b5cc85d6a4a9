//! Implements the operator that scans a source, that is, one of planetree's tables. Each partition runs in its own
//! thread, which may block on disks and networks. The thread stops when its rows are no longer needed.

use super::{BatchSink, ScanRequest, ScanSource};
use crate::error::to_engine_error;
use crate::operator::{Operator, OperatorExec};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{Partitioning, PlanProperties};
use planetree_base::error::Error;
use planetree_base::storage::interrupt;
use planetree_engine::{BatchSender, read_on_thread};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Rows per batch: enough to amortise the transfer between threads, few enough to stay in the cache.
const BATCH_ROWS: usize = 8192;
/// Number of columns from which batches are as small as the session wants them if it has little memory. A sort holds at
/// least one batch of each partition, and cannot spill less. Narrow batches keep their size, and with it the rounding of
/// sums.
const WIDE: usize = 32;
/// Maximum number of values in a batch of such tables, unless it has few rows.
const WIDE_VALUES: usize = 1 << 17;
/// Minimum number of rows in a batch.
const LEAST_ROWS: usize = 128;

/// Plan node that scans a source.
pub(crate) type ScanExec = OperatorExec<Scan>;

/// The operator of [`ScanExec`].
#[derive(Clone)]
pub(crate) struct Scan {
    source: Arc<dyn ScanSource>,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// The range of row groups in each partition.
    partitions: Vec<Range<usize>>,
    /// Number of rows in each partition.
    rows: Vec<u64>,
    limit: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    /// Creates a scan of some columns in at most `max_partitions` partitions, with at most `limit` rows per partition.
    pub(crate) fn new(
        source: Arc<dyn ScanSource>,
        columns: Vec<usize>,
        max_partitions: usize,
        limit: Option<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(source.schema().project(&columns)?);
        let row_groups = source.row_group_rows();
        let partitions = partition_row_groups(&row_groups, max_partitions);
        let rows = partitions.iter().map(|range| row_groups[range.clone()].iter().sum()).collect();
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Scan { source, columns, schema, partitions, rows, limit, metrics })
    }
}

/// Memory for the row groups that scans read at the same time. It is an extension of the session's configuration; queries on
/// a cluster have none, because other machines read for them.
#[derive(Debug)]
pub(crate) struct ScanMemory {
    bytes: u64,
}

impl ScanMemory {
    /// Returns the memory that a session with a pool of this size has. The pool has a third of what a memory limit leaves
    /// besides the program, and sorts copy what they spill.
    pub(crate) fn of_pool(pool: usize) -> Self {
        /// Bytes that the share of the program includes.
        const INCLUDED: u64 = 16 << 20;
        let pool = pool as u64;
        ScanMemory { bytes: INCLUDED.saturating_add(pool).saturating_add(pool / 2) }
    }

    /// Returns how many partitions of this many columns can be read at the same time, at least one. Each needs a row group and
    /// an open page of each column. Few columns are always read by all threads, so that the rounding of their sums does not
    /// depend on memory.
    pub(super) fn partitions(&self, source: &dyn ScanSource, columns: usize) -> usize {
        /// Maximum bytes of an open page.
        const PAGE_BYTES: u64 = 1 << 20;
        if columns < WIDE {
            return usize::MAX;
        }
        let rows = source.row_group_rows().into_iter().max().unwrap_or(0);
        let pages = rows.saturating_mul(4).min(PAGE_BYTES).saturating_mul(columns as u64);
        let partition = source.row_group_bytes().saturating_add(pages).max(1);
        usize::try_from(self.bytes / partition).unwrap_or(usize::MAX).max(1)
    }
}

/// Splits row groups into adjacent ranges with about equal numbers of rows. There is always at least one range.
fn partition_row_groups(row_groups: &[u64], max_partitions: usize) -> Vec<Range<usize>> {
    let total: u64 = row_groups.iter().sum();
    let count = max_partitions.clamp(1, row_groups.len().max(1)) as u64;
    let mut partitions = Vec::new();
    let (mut start, mut rows_so_far) = (0, 0);
    for (group, rows) in row_groups.iter().enumerate() {
        rows_so_far += rows;
        let leaves_one_each =
            row_groups.len() - group > count as usize - partitions.len().min(count as usize);
        let is_full = rows_so_far * count >= total * (partitions.len() as u64 + 1);
        if (is_full || !leaves_one_each) && (partitions.len() as u64) < count - 1 {
            partitions.push(start..group + 1);
            start = group + 1;
        }
    }
    partitions.push(start..row_groups.len());
    partitions
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source.description())
    }
}

impl Operator for Scan {
    const NAME: &'static str = "ScanExec";
    type Input = ();

    fn properties(&self, (): &()) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(self.schema.clone()),
            Partitioning::UnknownPartitioning(self.partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "ScanExec: {}, columns=[{}]", self.source.description(), names.join(", "))?;
        write!(f, ", partitions={}", self.partitions.len())?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", fetch={limit}"))
    }

    fn execute(
        &self,
        (): &(),
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let source = self.source.clone();
        let row_groups = self.partitions[partition].clone();
        let request = ScanRequest {
            columns: self.columns.clone(),
            schema: self.schema.clone(),
            batch_rows: match self.columns.len() {
                ..WIDE => BATCH_ROWS,
                columns => context.session_config().batch_size().min((WIDE_VALUES / columns).max(LEAST_ROWS)),
            },
        };
        let (rows, mut left) = (self.rows[partition], self.limit.unwrap_or(usize::MAX));
        let read = move |sender: &BatchSender| {
            let mut send = |batch: RecordBatch| {
                interrupt::check()?;
                let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
                left -= batch.num_rows();
                baseline.record_output(batch.num_rows());
                let is_needed = sender.send(batch) && left > 0;
                // This error ends the scan. It is not reported, unless the user has interrupted the program.
                if is_needed { Ok(()) } else { Err(Error::Interrupted) }
            };
            let outcome = if request.columns.is_empty() {
                check_rows(&*source, row_groups)
                    .and_then(|()| rows_without_columns(rows, &request, &mut send))
            } else {
                source.read(row_groups, &request, &mut send)
            };
            match outcome {
                Err(Error::Interrupted) if !interrupt::requested() => Ok(()),
                outcome => outcome.map_err(to_engine_error),
            }
        };
        read_on_thread(self.schema.clone(), read).map_err(to_engine_error)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics(&self, _: &[Arc<Statistics>], partition: Option<usize>) -> Option<Arc<Statistics>> {
        let rows = match partition {
            Some(partition) => self.rows.get(partition).copied().unwrap_or(0),
            None => self.rows.iter().sum(),
        };
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = match self.limit {
            None if self.source.counted_by().is_none() => Precision::Exact(rows as usize),
            None => Precision::Inexact(rows as usize),
            Some(limit) => Precision::Inexact((rows as usize).min(limit)),
        };
        Some(Arc::new(statistics))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Self> {
        Some(Scan { limit, ..self.clone() })
    }
}

/// Compares the numbers of rows that a manifest claims with the files.
fn check_rows(source: &dyn ScanSource, row_groups: Range<usize>) -> planetree_base::error::Result<()> {
    let Some(reader) = source.counted_by() else { return Ok(()) };
    reader.groups().drain(row_groups).try_for_each(|id| reader.check_rows(id))
}

/// Sends batches without columns, for queries such as `count(*)` that only need the number of rows.
fn rows_without_columns(
    mut rows: u64,
    request: &ScanRequest,
    send: &mut BatchSink<'_>,
) -> planetree_base::error::Result<()> {
    while rows > 0 {
        let count = rows.min(request.batch_rows as u64);
        let options = RecordBatchOptions::new().with_row_count(Some(count as usize));
        let batch = RecordBatch::try_new_with_options(request.schema.clone(), Vec::new(), &options)
            .map_err(|error| Error::bug("scan", &error).caused_by(error))?;
        send(batch)?;
        rows -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "lists of one range are intended")]
    fn partitions_are_adjacent_and_cover_all_row_groups() {
        for (row_groups, max_partitions, expected) in [
            (vec![], 4, vec![0..0]),
            (vec![10], 4, vec![0..1]),
            (vec![1, 1, 1, 1], 2, vec![0..2, 2..4]),
            (vec![1, 1, 1, 1, 1], 5, vec![0..1, 1..2, 2..3, 3..4, 4..5]),
            (vec![100, 1, 1], 2, vec![0..1, 1..3]),
            (vec![1, 1, 100], 2, vec![0..2, 2..3]),
            (vec![0, 0, 0], 2, vec![0..1, 1..3]),
        ] {
            let partitions = partition_row_groups(&row_groups, max_partitions);
            assert_eq!(partitions, expected, "{row_groups:?} {max_partitions}");
        }
    }
}
