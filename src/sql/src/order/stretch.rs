//! Aggregates the runs of one partition. Its first and its last run may go on in the neighbours, so they are
//! handed back as rows.

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

/// Groups that are taken out of the accumulators at a time.
const EMIT_GROUPS: usize = 1024;

/// What is to be done with runs.
#[derive(Debug)]
pub struct Work {
    /// The keys.
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    /// The aggregates.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// The arguments of each aggregate.
    pub arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// Which rows each aggregate looks at.
    pub filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// The columns of the results.
    pub schema: SchemaRef,
}

/// Some rows, as the aggregates see them: keys, then arguments and filter of each.
#[derive(Clone)]
pub struct Rows {
    columns: Vec<ArrayRef>,
    count: usize,
}

impl Rows {
    fn slice(&self, range: Range<usize>) -> Rows {
        let columns = self.columns.iter().map(|column| column.slice(range.start, range.len())).collect();
        Rows { columns, count: range.len() }
    }

    /// Rows end to end.
    fn joined(rows: &[Rows]) -> Result<Rows> {
        let column = |place: usize| -> Result<ArrayRef> {
            let pieces: Vec<&dyn Array> = rows.iter().map(|rows| &*rows.columns[place]).collect();
            Ok(concat(&pieces)?)
        };
        let width = rows.first().map_or(0, |rows| rows.columns.len());
        let columns = (0..width).map(column).collect::<Result<_>>()?;
        Ok(Rows { columns, count: rows.iter().map(|rows| rows.count).sum() })
    }
}

impl Work {
    /// The rows of a batch.
    pub fn rows(&self, batch: &RecordBatch) -> Result<Rows> {
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
        Ok(Rows { columns, count })
    }

    /// Where runs are in some rows.
    fn runs(&self, rows: &Rows) -> Result<Vec<Range<usize>>> {
        let keys = &rows.columns[..self.keys.len()];
        // Names of queries nearly always, which deserve a loop of their own.
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

/// Where equal texts are side by side.
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

/// Whether two rows have the same key.
fn same_key(work: &Work, left: &Rows, right: &Rows) -> Result<bool> {
    let last = left.slice(left.count - 1..left.count);
    let joined = Rows::joined(&[last, right.slice(0..1)])?;
    Ok(work.runs(&joined)?.len() == 1)
}

/// One partition, aggregated.
#[derive(Default)]
pub struct Stretch {
    /// The rows of the first run.
    pub head: Vec<Rows>,
    /// The results of the runs between.
    pub between: Vec<RecordBatch>,
    /// The rows of the last run; `None` if there is only one.
    pub tail: Option<Vec<Rows>>,
}

/// Aggregates runs as they come.
pub struct Runs<'w> {
    work: &'w Work,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    /// The first row of every run in the accumulators.
    keys: Vec<Rows>,
    results: Vec<RecordBatch>,
    seen: SeenKeys,
}

/// Keys that have been met, by their hashes. Two keys of one hash count as one that returned, which costs
/// time and nothing else.
#[derive(Default)]
pub struct SeenKeys {
    hashes: HashSet<u64>,
    state: RandomState,
}

impl SeenKeys {
    /// Adds keys; `false` if one was there.
    pub fn add(&mut self, keys: &[ArrayRef]) -> Result<bool> {
        let mut hashes = vec![0; keys.first().map_or(0, |keys| keys.len())];
        create_hashes(keys, &self.state, &mut hashes)?;
        Ok(hashes.into_iter().all(|hash| self.hashes.insert(hash)))
    }
}

impl<'w> Runs<'w> {
    /// No runs yet.
    pub fn new(work: &'w Work) -> Result<Self> {
        let accumulators = work.aggregates.iter().map(accumulator).collect::<Result<_>>()?;
        Ok(Runs { work, accumulators, keys: Vec::new(), results: Vec::new(), seen: SeenKeys::default() })
    }

    /// Adds runs that are complete; `false` if one of a key came before.
    pub fn add(&mut self, rows: &Rows, runs: &[Range<usize>]) -> Result<bool> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(true) };
        let keys: UInt32Array = runs.iter().map(|run| Some(run.start as u32)).collect();
        let keys: Vec<ArrayRef> = rows.columns[..self.work.keys.len()]
            .iter()
            .map(|column| take(column, &keys, None))
            .collect::<Result<_, _>>()?;
        if !self.seen.add(&keys)? {
            return Ok(false);
        }
        let groups = self.groups();
        self.keys.push(Rows { columns: keys, count: runs.len() });
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

    /// Adds one run that is complete, in pieces.
    fn add_pieces(&mut self, pieces: &[Rows]) -> Result<bool> {
        let joined = Rows::joined(pieces)?;
        self.add(&joined, std::slice::from_ref(&(0..joined.count)))
    }

    fn groups(&self) -> usize {
        self.keys.iter().map(|keys| keys.count).sum()
    }

    fn update(&mut self, rows: &Rows, indices: &[usize], groups: usize) -> Result<()> {
        let mut place = self.work.keys.len();
        let aggregates = self.work.arguments.iter().zip(&self.work.filters);
        for (accumulator, (arguments, filter)) in self.accumulators.iter_mut().zip(aggregates) {
            let values = &rows.columns[place..place + arguments.len()];
            place += arguments.len();
            let filter: Option<&BooleanArray> = filter.as_ref().map(|_| {
                place += 1;
                rows.columns[place - 1].as_boolean()
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
        let mut columns = Rows::joined(&keys)?.columns;
        for accumulator in &mut self.accumulators {
            columns.push(accumulator.evaluate(EmitTo::All)?);
        }
        self.results.push(RecordBatch::try_new(self.work.schema.clone(), columns)?);
        Ok(())
    }

    /// The results so far.
    pub fn take_results(&mut self) -> Result<Vec<RecordBatch>> {
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

/// Goes through the batches of one partition.
pub struct StretchMaker<'w> {
    runs: Runs<'w>,
    head: Option<Vec<Rows>>,
    /// The rows of the run that may go on.
    open: Vec<Rows>,
}

impl<'w> StretchMaker<'w> {
    /// Nothing read yet.
    pub fn new(work: &'w Work) -> Result<Self> {
        Ok(StretchMaker { runs: Runs::new(work)?, head: None, open: Vec::new() })
    }

    /// Adds a batch; `false` if a key returned after others.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        if batch.num_rows() == 0 {
            return Ok(true);
        }
        let work = self.runs.work;
        let rows = work.rows(batch)?;
        let mut runs = work.runs(&rows)?;
        if let Some(last) = self.open.last() {
            if same_key(work, last, &rows)? {
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
        if self.head.is_none() && !runs.is_empty() {
            let first = runs.remove(0);
            self.head = Some(vec![rows.slice(first)]);
        }
        self.open = vec![rows.slice(last)];
        self.runs.add(&rows, &runs)
    }

    fn close(&mut self, ended: Vec<Rows>) -> Result<bool> {
        if self.head.is_none() {
            self.head = Some(ended);
            return Ok(true);
        }
        self.runs.add_pieces(&ended)
    }

    /// What became of it all.
    pub fn finish(mut self) -> Result<Stretch> {
        let between = self.runs.take_results()?;
        Ok(match self.head {
            Some(head) => Stretch { head, between, tail: Some(self.open) },
            None => Stretch { head: self.open, between, tail: None },
        })
    }
}

/// Results of the runs of some rows, which are all of theirs; `None` if a key returned after others.
pub fn aggregate_rows(work: &Work, rows: &[Rows]) -> Result<Option<Vec<RecordBatch>>> {
    if rows.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let rows = Rows::joined(rows)?;
    let mut results = Runs::new(work)?;
    if !results.add(&rows, &work.runs(&rows)?)? {
        return Ok(None);
    }
    results.take_results().map(Some)
}
