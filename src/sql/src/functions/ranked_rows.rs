//! Collects the rows of many groups until the ranking metric of each group is computed. The rows of a group are
//! usually adjacent, so a group is a few spans of rows in shared columns. Each span records the position of its
//! first row in the input, so that states that were spilled to disk can be merged in the order of their rows.

use crate::error::to_engine_error;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, ListArray, StringArray, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use planetree_base::error::Error;
use planetree_metric::{Judge, QueryRows, Unfit};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

/// Accumulator of a ranking metric for many groups.
#[derive(Debug)]
pub(super) struct RankedGroups {
    name: &'static str,
    judge: Judge,
    labels: Vec<f32>,
    scores: Vec<f64>,
    /// Document ids, if they are used to break ties.
    documents: Option<Vec<String>>,
    spans: Vec<GroupSpan>,
    /// Number of groups received so far.
    groups: usize,
    /// Number of rows received so far, including the rows of groups that were already emitted.
    seen: u64,
}

/// Index of the document id among the arguments.
const DOCUMENTS: usize = 4;

/// A range of adjacent rows of one group. It ends where the next span starts.
#[derive(Debug, Clone, Copy)]
struct GroupSpan {
    group: usize,
    /// Number of the first row, counted over all rows that the accumulator has received.
    position: u64,
    start: usize,
}

/// Returns the columns of a partial state.
pub(crate) fn state_fields(name: &str, has_documents: bool) -> Vec<FieldRef> {
    let list = |part: &str, kind: DataType| {
        let item = Arc::new(Field::new_list_field(kind, true));
        Arc::new(Field::new(format_state_name(name, part), DataType::List(item), true))
    };
    let mut fields = vec![list("labels", DataType::Float32), list("scores", DataType::Float64)];
    fields.extend(has_documents.then(|| list("documents", DataType::Utf8)));
    fields.push(Arc::new(Field::new(format_state_name(name, "position"), DataType::UInt64, true)));
    fields
}

impl RankedGroups {
    /// Creates an accumulator without rows.
    pub(super) fn new(name: &'static str, judge: Judge, has_documents: bool) -> Self {
        RankedGroups {
            name,
            judge,
            labels: Vec::new(),
            scores: Vec::new(),
            documents: has_documents.then(Vec::new),
            spans: Vec::new(),
            groups: 0,
            seen: 0,
        }
    }

    fn update(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total);
        let labels = values[0].as_primitive::<Float32Type>();
        let scores = values[1].as_primitive::<Float64Type>();
        let documents = self.documents.is_some().then(|| values[DOCUMENTS].as_string::<i32>());
        let is_kept = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let first = self.seen;
        self.seen += groups.len() as u64;
        let is_whole = filter.is_none() && labels.null_count() == 0 && scores.null_count() == 0;
        let mut last = None;
        for (row, group) in groups.iter().enumerate() {
            if !is_whole {
                if !is_kept(row) {
                    last = None;
                    continue;
                }
                self.refuse_nulls(labels.is_null(row), scores.is_null(row))?;
            }
            if last != Some(*group) {
                let start = if is_whole { self.labels.len() + row } else { self.labels.len() };
                self.spans.push(GroupSpan { group: *group, position: first + row as u64, start });
                last = Some(*group);
            }
            if !is_whole {
                self.labels.push(labels.value(row));
                self.scores.push(scores.value(row));
            }
            if let (Some(kept), Some(documents)) = (&mut self.documents, documents) {
                if documents.is_null(row) {
                    return Err(fault(
                        self.name,
                        "a doc_id is NULL",
                        "omit the doc_id argument, or fill in the missing ids",
                    ));
                }
                kept.push(documents.value(row).to_owned());
            }
        }
        if is_whole {
            self.labels.extend_from_slice(labels.values());
            self.scores.extend_from_slice(scores.values());
        }
        Ok(())
    }

    fn refuse_nulls(&self, label: bool, score: bool) -> Result<()> {
        match (label, score) {
            (true, _) => Err(fault(
                self.name,
                "a label is NULL",
                "write coalesce(label, 0) to treat it as not relevant, or add FILTER (WHERE label IS NOT NULL)",
            )),
            (_, true) => Err(fault(self.name, "a score is NULL", "filter out the row, or give it a score")),
            _ => Ok(()),
        }
    }

    /// Returns the row ranges of each of the first `groups` groups, in the order of the rows.
    fn by_group(&self, groups: usize) -> Vec<Vec<Range<usize>>> {
        let mut all: Vec<Vec<(u64, Range<usize>)>> = vec![Vec::new(); groups];
        for (index, span) in self.spans.iter().enumerate() {
            let end = self.spans.get(index + 1).map_or(self.labels.len(), |next| next.start);
            if span.group < groups {
                all[span.group].push((span.position, span.start..end));
            }
        }
        let in_order = |mut spans: Vec<(u64, Range<usize>)>| {
            spans.sort_by_key(|(position, _)| *position);
            spans.into_iter().map(|(_, range)| range).collect()
        };
        all.into_iter().map(in_order).collect()
    }

    /// Returns the number of groups to emit.
    fn emitted(&self, emit: EmitTo) -> usize {
        match emit {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups,
        }
    }

    /// Drops the first groups and renumbers the rest.
    fn drop_first(&mut self, groups: usize) {
        if groups >= self.groups {
            (self.labels, self.scores, self.spans) = Default::default();
            self.documents = self.documents.take().map(|_| Vec::new());
            self.groups = 0;
            return;
        }
        let (mut labels, mut scores, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut documents = self.documents.as_ref().map(|_| Vec::new());
        for (index, span) in self.spans.iter().enumerate() {
            let end = self.spans.get(index + 1).map_or(self.labels.len(), |next| next.start);
            if span.group >= groups {
                let start = labels.len();
                spans.push(GroupSpan { group: span.group - groups, start, ..*span });
                labels.extend_from_slice(&self.labels[span.start..end]);
                scores.extend_from_slice(&self.scores[span.start..end]);
                if let (Some(kept), Some(all)) = (&mut documents, &self.documents) {
                    kept.extend_from_slice(&all[span.start..end]);
                }
            }
        }
        self.groups -= groups;
        (self.labels, self.scores, self.spans, self.documents) = (labels, scores, spans, documents);
    }

    fn judge(&mut self, spans: &[Range<usize>]) -> Result<Option<f64>> {
        let (labels, scores): (Vec<f32>, Vec<f64>);
        let (labels, scores) = match spans {
            [] => return Ok(None),
            [one] => (&self.labels[one.clone()], &self.scores[one.clone()]),
            several => {
                labels = several.iter().flat_map(|range| &self.labels[range.clone()]).copied().collect();
                scores = several.iter().flat_map(|range| &self.scores[range.clone()]).copied().collect();
                (labels.as_slice(), scores.as_slice())
            }
        };
        let documents: Option<Vec<&str>> = self.documents.as_ref().map(|documents| {
            spans.iter().flat_map(|range| &documents[range.clone()]).map(String::as_str).collect()
        });
        if labels.iter().any(|label| label.is_nan()) || scores.iter().any(|score| score.is_nan()) {
            let problem = "a label or score is NaN";
            return Err(fault(self.name, problem, "filter out the row, or replace the value"));
        }
        let rows = QueryRows { labels, scores, documents: documents.as_deref(), judged: None };
        let unfit = |unfit: Unfit| to_engine_error(unfit.at(self.name));
        let values = self.judge.query(&rows).map_err(unfit)?;
        Ok(values.first().copied().flatten())
    }

    fn merge(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.groups = self.groups.max(total);
        let (labels, scores) = (values[0].as_list::<i32>(), values[1].as_list::<i32>());
        let positions = values[values.len() - 1].as_primitive::<UInt64Type>();
        let documents = self.documents.is_some().then(|| values[2].as_list::<i32>());
        for (row, group) in groups.iter().enumerate() {
            let these = labels.value(row);
            if labels.is_null(row) || these.is_empty() {
                continue;
            }
            let start = self.labels.len();
            self.spans.push(GroupSpan { group: *group, position: positions.value(row), start });
            self.labels.extend_from_slice(these.as_primitive::<Float32Type>().values());
            self.scores.extend_from_slice(scores.value(row).as_primitive::<Float64Type>().values());
            if let (Some(kept), Some(documents)) = (&mut self.documents, documents) {
                let documents = documents.value(row);
                kept.extend(documents.as_string::<i32>().iter().flatten().map(str::to_owned));
            }
        }
        Ok(())
    }

    fn take_state(&mut self, emit: EmitTo) -> Vec<ArrayRef> {
        let groups = self.emitted(emit);
        let spans = self.by_group(groups);
        let all = || spans.iter().flatten().cloned();
        let lengths = spans.iter().map(|ranges| ranges.iter().map(Range::len).sum());
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        let list = |values: ArrayRef| -> ArrayRef {
            let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            Arc::new(ListArray::new(item, offsets.clone(), values, None))
        };
        let labels: Vec<f32> = all().flat_map(|range| &self.labels[range]).copied().collect();
        let scores: Vec<f64> = all().flat_map(|range| &self.scores[range]).copied().collect();
        let mut state =
            vec![list(Arc::new(Float32Array::from(labels))), list(Arc::new(Float64Array::from(scores)))];
        if let Some(documents) = &self.documents {
            let documents: Vec<&String> = all().flat_map(|range| &documents[range]).collect();
            state.push(list(Arc::new(StringArray::from_iter_values(documents))));
        }
        let mut positions = vec![u64::MAX; groups];
        for span in self.spans.iter().filter(|span| span.group < groups) {
            positions[span.group] = positions[span.group].min(span.position);
        }
        state.push(Arc::new(UInt64Array::from(positions)));
        self.drop_first(groups);
        state
    }

    fn bytes(&self) -> usize {
        let documents = self
            .documents
            .as_ref()
            .map_or(0, |documents| documents.iter().map(|name| name.capacity() + size_of::<String>()).sum());
        self.labels.capacity() * size_of::<f32>()
            + self.scores.capacity() * size_of::<f64>()
            + self.spans.capacity() * size_of::<GroupSpan>()
            + documents
    }
}

fn fault(name: &str, problem: &str, remedy: &str) -> datafusion::error::DataFusionError {
    to_engine_error(Error::place(name, problem, remedy))
}

impl GroupsAccumulator for RankedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.update(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let groups = self.emitted(emit);
        let spans = self.by_group(groups);
        let values: Result<Float64Array> = spans.iter().map(|ranges| self.judge(ranges)).collect();
        self.drop_first(groups);
        Ok(Arc::new(values?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.take_state(emit))
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.merge(values, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let judge = Judge::new(self.judge.metrics(), self.judge.convention());
        let mut rows = RankedGroups::new(self.name, judge, self.documents.is_some());
        let count = values[0].len();
        rows.update(values, &(0..count).collect::<Vec<_>>(), filter, count)?;
        Ok(rows.take_state(EmitTo::All))
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

/// Accumulator of a ranking metric for a single group, used in windows and in queries without GROUP BY.
#[derive(Debug)]
pub(super) struct RankedAccumulator(RankedGroups);

impl RankedAccumulator {
    /// Wraps an accumulator without rows.
    pub(super) fn new(mut rows: RankedGroups) -> Self {
        rows.groups = 1;
        RankedAccumulator(rows)
    }
}

impl Accumulator for RankedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update(values, &vec![0; values[0].len()], None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A window evaluates its accumulator repeatedly, so the rows are kept.
        let spans = self.0.by_group(1);
        Ok(ScalarValue::Float64(self.0.judge(&spans[0])?))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.0.take_state(EmitTo::All);
        self.0.groups = 1;
        state.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge(states, &vec![0; states[0].len()], 1)
    }
}
