//! Aggregates the runs of one partition, that is, its ranges of adjacent rows with the same key. The first and the
//! last run may continue in a neighbouring partition, so their rows are returned without being aggregated.

use arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat, partition, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Number of groups that are emitted from the accumulators at once.
const EMIT_GROUPS: usize = 1024;

/// Keys and aggregates to evaluate for each run.
#[derive(Debug)]
pub(super) struct RunSpec {
    /// The grouping keys.
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    /// The aggregate functions.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// The arguments of each aggregate.
    pub arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// The `FILTER` of each aggregate.
    pub filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// Columns of the result.
    pub schema: SchemaRef,
}

/// Rows of a batch with all expressions evaluated. The columns are the keys, followed by the arguments and the filter
/// of each aggregate.
#[derive(Clone)]
pub(super) struct EvaluatedRows {
    columns: Vec<ArrayRef>,
    count: usize,
}

impl EvaluatedRows {
    fn slice(&self, range: Range<usize>) -> EvaluatedRows {
        let columns = self.columns.iter().map(|column| column.slice(range.start, range.len())).collect();
        EvaluatedRows { columns, count: range.len() }
    }

    /// Concatenates pieces that have the same columns.
    fn concatenated(rows: &[EvaluatedRows]) -> Result<EvaluatedRows> {
        let column = |index: usize| -> Result<ArrayRef> {
            let pieces: Vec<&dyn Array> = rows.iter().map(|rows| &*rows.columns[index]).collect();
            Ok(concat(&pieces)?)
        };
        let width = rows.first().map_or(0, |rows| rows.columns.len());
        let columns = (0..width).map(column).collect::<Result<_>>()?;
        Ok(EvaluatedRows { columns, count: rows.iter().map(|rows| rows.count).sum() })
    }
}

impl RunSpec {
    /// Evaluates the expressions on a batch.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<EvaluatedRows> {
        let count = batch.num_rows();
        let mut columns = Vec::new();
        let mut add = |expression: &Arc<dyn PhysicalExpr>| -> Result<()> {
            columns.push(expression.evaluate(batch)?.into_array(count)?);
            Ok(())
        };
        self.keys.iter().try_for_each(&mut add)?;
        for (arguments, filter) in self.arguments.iter().zip(&self.filters) {
            arguments.iter().chain(filter).try_for_each(&mut add)?;
        }
        Ok(EvaluatedRows { columns, count })
    }

    /// Returns the ranges of adjacent rows with equal keys.
    fn runs(&self, rows: &EvaluatedRows) -> Result<Vec<Range<usize>>> {
        let keys = &rows.columns[..self.keys.len()];
        // The key is nearly always the query id, so a single string column has a faster loop of its own.
        let by_text = match keys {
            [key] if key.null_count() == 0 => match key.data_type() {
                DataType::Utf8 => Some(runs_of(key.as_string::<i32>())),
                DataType::Utf8View => Some(runs_of(key.as_string_view())),
                _ => None,
            },
            _ => None,
        };
        match by_text {
            Some(runs) => Ok(runs),
            None => Ok(partition(keys)?.ranges()),
        }
    }
}

/// Returns the ranges of adjacent equal strings.
fn runs_of<'a>(keys: impl ArrayAccessor<Item = &'a str>) -> Vec<Range<usize>> {
    let (mut runs, mut start) = (Vec::new(), 0);
    let rows = keys.len();
    while start < rows {
        let key = keys.value(start);
        let end = (start + 1..rows).find(|row| keys.value(*row) != key).unwrap_or(rows);
        runs.push(start..end);
        start = end;
    }
    runs
}

/// Checks whether the last row of `left` and the first row of `right` have the same key.
fn same_key(spec: &RunSpec, left: &EvaluatedRows, right: &EvaluatedRows) -> Result<bool> {
    let last = left.slice(left.count - 1..left.count);
    let joined = EvaluatedRows::concatenated(&[last, right.slice(0..1)])?;
    Ok(spec.runs(&joined)?.len() == 1)
}

/// Result of aggregating one partition.
#[derive(Default)]
pub(super) struct PartitionResult {
    /// Rows of the first run, not aggregated.
    pub first: Vec<EvaluatedRows>,
    /// Results of the runs between the first and the last one.
    pub inner: Vec<RecordBatch>,
    /// Rows of the last run, not aggregated; `None` if the partition has only one run.
    pub last: Option<Vec<EvaluatedRows>>,
}

/// Aggregates complete runs.
pub(super) struct RunAggregator<'w> {
    spec: &'w RunSpec,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// Keys of all runs in the accumulators.
    keys: Vec<EvaluatedRows>,
    results: Vec<RecordBatch>,
    seen: SeenKeys,
}

/// Hashes of the keys seen so far. A hash collision is mistaken for a key that occurs again, which costs time but does
/// not change the result.
#[derive(Default)]
pub(super) struct SeenKeys {
    hashes: HashSet<u64>,
    state: RandomState,
}

impl SeenKeys {
    /// Adds keys. Returns `false` if one of them was seen before.
    pub(super) fn add(&mut self, keys: &[ArrayRef]) -> Result<bool> {
        let mut hashes = vec![0; keys.first().map_or(0, |keys| keys.len())];
        create_hashes(keys, &self.state, &mut hashes)?;
        Ok(hashes.into_iter().all(|hash| self.hashes.insert(hash)))
    }
}

impl<'w> RunAggregator<'w> {
    /// Creates an aggregator without runs.
    pub(super) fn new(spec: &'w RunSpec) -> Result<Self> {
        let accumulators = spec.aggregates.iter().map(accumulator).collect::<Result<_>>()?;
        Ok(RunAggregator {
            spec,
            accumulators,
            keys: Vec::new(),
            results: Vec::new(),
            seen: SeenKeys::default(),
        })
    }

    /// Adds complete runs. Returns `false` if one of their keys was seen before.
    pub(super) fn add(&mut self, rows: &EvaluatedRows, runs: &[Range<usize>]) -> Result<bool> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(true) };
        let keys: UInt32Array = runs.iter().map(|run| Some(run.start as u32)).collect();
        let keys: Vec<ArrayRef> = rows.columns[..self.spec.keys.len()]
            .iter()
            .map(|column| take(column, &keys, None))
            .collect::<Result<_, _>>()?;
        if !self.seen.add(&keys)? {
            return Ok(false);
        }
        let groups = self.groups();
        self.keys.push(EvaluatedRows { columns: keys, count: runs.len() });
        let indices: Vec<usize> = runs
            .iter()
            .enumerate()
            .flat_map(|(group, run)| std::iter::repeat_n(groups + group, run.len()))
            .collect();
        self.update(&rows.slice(first.start..last.end), &indices, groups + runs.len())?;
        if self.groups() >= EMIT_GROUPS {
            self.emit()?;
        }
        Ok(true)
    }

    /// Adds one complete run, given in pieces. Returns `false` if its key was seen before.
    fn add_pieces(&mut self, pieces: &[EvaluatedRows]) -> Result<bool> {
        let joined = EvaluatedRows::concatenated(pieces)?;
        self.add(&joined, std::slice::from_ref(&(0..joined.count)))
    }

    fn groups(&self) -> usize {
        self.keys.iter().map(|keys| keys.count).sum()
    }

    fn update(&mut self, rows: &EvaluatedRows, indices: &[usize], groups: usize) -> Result<()> {
        let mut column = self.spec.keys.len();
        let aggregates = self.spec.arguments.iter().zip(&self.spec.filters);
        for (accumulator, (arguments, filter)) in self.accumulators.iter_mut().zip(aggregates) {
            let values = &rows.columns[column..column + arguments.len()];
            column += arguments.len();
            let filter: Option<&BooleanArray> = filter.as_ref().map(|_| {
                column += 1;
                rows.columns[column - 1].as_boolean()
            });
            accumulator.update_batch(values, indices, filter, groups)?;
        }
        Ok(())
    }

    fn emit(&mut self) -> Result<()> {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return Ok(());
        }
        let mut columns = EvaluatedRows::concatenated(&keys)?.columns;
        for accumulator in &mut self.accumulators {
            columns.push(accumulator.evaluate(EmitTo::All)?);
        }
        self.results.push(RecordBatch::try_new(self.spec.schema.clone(), columns)?);
        Ok(())
    }

    /// Returns the results so far and removes them from the aggregator.
    pub(super) fn take_results(&mut self) -> Result<Vec<RecordBatch>> {
        self.emit()?;
        Ok(std::mem::take(&mut self.results))
    }
}

fn accumulator(aggregate: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if aggregate.groups_accumulator_supported() {
        return aggregate.create_groups_accumulator();
    }
    let aggregate = aggregate.clone();
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || aggregate.create_accumulator())))
}

/// Aggregates the batches of one partition.
pub(super) struct PartitionAggregator<'w> {
    runs: RunAggregator<'w>,
    /// The rows of the first run, once it has ended.
    first: Option<Vec<EvaluatedRows>>,
    /// The rows of the current run, which may continue in the next batch.
    open: Vec<EvaluatedRows>,
}

impl<'w> PartitionAggregator<'w> {
    /// Creates an aggregator that has read nothing.
    pub(super) fn new(spec: &'w RunSpec) -> Result<Self> {
        Ok(PartitionAggregator { runs: RunAggregator::new(spec)?, first: None, open: Vec::new() })
    }

    /// Adds a batch. Returns `false` if a key occurs again after other keys.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        if batch.num_rows() == 0 {
            return Ok(true);
        }
        let spec = self.runs.spec;
        let rows = spec.rows(batch)?;
        let mut runs = spec.runs(&rows)?;
        if let Some(last) = self.open.last() {
            if same_key(spec, last, &rows)? {
                let first = runs.remove(0);
                self.open.push(rows.slice(first));
                if runs.is_empty() {
                    return Ok(true);
                }
            }
            let ended = std::mem::take(&mut self.open);
            if !self.close(ended)? {
                return Ok(false);
            }
        }
        let Some(last) = runs.pop() else { return Ok(true) };
        if self.first.is_none() && !runs.is_empty() {
            let first = runs.remove(0);
            self.first = Some(vec![rows.slice(first)]);
        }
        self.open = vec![rows.slice(last)];
        self.runs.add(&rows, &runs)
    }

    fn close(&mut self, ended: Vec<EvaluatedRows>) -> Result<bool> {
        if self.first.is_none() {
            self.first = Some(ended);
            return Ok(true);
        }
        self.runs.add_pieces(&ended)
    }

    /// Returns the result of the partition.
    pub(super) fn finish(mut self) -> Result<PartitionResult> {
        let inner = self.runs.take_results()?;
        Ok(match self.first {
            Some(first) => PartitionResult { first, inner, last: Some(self.open) },
            None => PartitionResult { first: self.open, inner, last: None },
        })
    }
}

/// Aggregates complete runs. Returns `None` if a key occurs again after other keys.
pub(crate) fn aggregate_rows(spec: &RunSpec, rows: &[EvaluatedRows]) -> Result<Option<Vec<RecordBatch>>> {
    if rows.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let rows = EvaluatedRows::concatenated(rows)?;
    let mut results = RunAggregator::new(spec)?;
    if !results.add(&rows, &spec.runs(&rows)?)? {
        return Ok(None);
    }
    results.take_results().map(Some)
}
