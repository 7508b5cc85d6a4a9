//! The operator that reads a source. Every partition has a thread of its own, which may wait for disks and
//! networks, and which stops when nobody wants its rows any more.

use super::{Source, Wanted};
use crate::error::outward;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use planetree_base::error::Error;
use planetree_base::storage::interrupt;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Batches that wait for whoever uses them.
const AHEAD: usize = 2;

/// See the module.
#[derive(Clone)]
pub struct ScanExec {
    source: Arc<dyn Source>,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// The units of every partition.
    partitions: Vec<Range<usize>>,
    /// Rows in every partition.
    rows: Vec<u64>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    /// A scan of some columns in at most so many partitions.
    pub fn new(
        source: Arc<dyn Source>,
        columns: Vec<usize>,
        partitions: usize,
        limit: Option<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(source.schema().project(&columns)?);
        let units = source.unit_rows();
        let partitions = shares(&units, partitions);
        let rows = partitions.iter().map(|range| units[range.clone()].iter().sum()).collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(ScanExec { source, columns, schema, partitions, rows, limit, properties, metrics })
    }
}

/// Units dealt out side by side, with about as many rows each; one share at least.
fn shares(units: &[u64], most: usize) -> Vec<Range<usize>> {
    let total: u64 = units.iter().sum();
    let count = most.clamp(1, units.len().max(1)) as u64;
    let mut shares = Vec::new();
    let (mut start, mut before) = (0, 0);
    for (unit, rows) in units.iter().enumerate() {
        before += rows;
        let left_for_others = units.len() - unit > count as usize - shares.len().min(count as usize);
        let is_full = before * count >= total * (shares.len() as u64 + 1);
        if (is_full || !left_for_others) && (shares.len() as u64) < count - 1 {
            shares.push(start..unit + 1);
            start = unit + 1;
        }
    }
    shares.push(start..units.len());
    shares
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanExec({})", self.source.shown())
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "ScanExec: {}, columns=[{}]", self.source.shown(), names.join(", "))?;
        write!(f, ", partitions={}", self.partitions.len())?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", fetch={limit}"))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        /// Rows of a batch: enough to be worth handing over, few enough to stay in the cache.
        const BATCH_ROWS: usize = 8192;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let mut stream = RecordBatchReceiverStream::builder(self.schema.clone(), AHEAD);
        let (sender, source, units) = (stream.tx(), self.source.clone(), self.partitions[partition].clone());
        let wanted =
            Wanted { columns: self.columns.clone(), schema: self.schema.clone(), batch_rows: BATCH_ROWS };
        let (rows, mut left) = (self.rows[partition], self.limit.unwrap_or(usize::MAX));
        stream.spawn_blocking(move || {
            let mut send = |batch: RecordBatch| {
                interrupt::check()?;
                let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
                left -= batch.num_rows();
                baseline.record_output(batch.num_rows());
                let is_wanted = sender.blocking_send(Ok(batch)).is_ok() && left > 0;
                // Whoever wants no more does not look at the error either.
                if is_wanted { Ok(()) } else { Err(Error::Interrupted) }
            };
            let read = if wanted.columns.is_empty() {
                rows_without_columns(rows, &wanted, &mut send)
            } else {
                source.read(units, &wanted, &mut send)
            };
            match read {
                Err(Error::Interrupted) if !interrupt::requested() => Ok(()),
                read => read.map_err(outward),
            }
        });
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows = match args.partition() {
            Some(partition) => self.rows.get(partition).copied().unwrap_or(0),
            None => self.rows.iter().sum(),
        };
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = match self.limit {
            None => Precision::Exact(rows as usize),
            Some(limit) => Precision::Inexact((rows as usize).min(limit)),
        };
        Ok(Arc::new(statistics))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(ScanExec { limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// Rows of which nobody wants a column: only their number counts.
fn rows_without_columns(
    mut rows: u64,
    wanted: &Wanted,
    send: &mut super::Sink<'_>,
) -> planetree_base::error::Result<()> {
    while rows > 0 {
        let count = rows.min(wanted.batch_rows as u64);
        let options = RecordBatchOptions::new().with_row_count(Some(count as usize));
        let batch = RecordBatch::try_new_with_options(wanted.schema.clone(), Vec::new(), &options)
            .map_err(|error| Error::place("scan", error, "report this: it is a fault of planetree"))?;
        send(batch)?;
        rows -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]
    fn shares_are_all_units_side_by_side() {
        for (units, most, expected) in [
            (vec![], 4, vec![0..0]),
            (vec![10], 4, vec![0..1]),
            (vec![1, 1, 1, 1], 2, vec![0..2, 2..4]),
            (vec![1, 1, 1, 1, 1], 5, vec![0..1, 1..2, 2..3, 3..4, 4..5]),
            (vec![100, 1, 1], 2, vec![0..1, 1..3]),
            (vec![1, 1, 100], 2, vec![0..2, 2..3]),
            (vec![0, 0, 0], 2, vec![0..1, 1..3]),
        ] {
            assert_eq!(shares(&units, most), expected, "{units:?} {most}");
        }
    }
}
