//! Rows of rankings in one form, whatever they were read from: which query, which document, its label,
//! its score, and its number in the input. A row without a score is a judgment: it says what a document's
//! label is, not where a ranking has it.

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef, UInt64Type};
use planetree_base::error::{Error, Result};
use std::sync::{Arc, LazyLock};

/// Judgments are numbered from here on, so that they come after the rows of a ranking.
pub const JUDGMENTS: u64 = 1 << 62;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("query_id", DataType::Utf8, false),
        Field::new("doc_id", DataType::Utf8, true),
        Field::new("label", DataType::Float32, true),
        Field::new("score", DataType::Float64, true),
        Field::new("row", DataType::UInt64, false),
        Field::new("segment", DataType::Utf8, true),
    ]))
});

/// The columns of all rows.
pub fn schema() -> &'static SchemaRef {
    &SCHEMA
}

/// Columns that are becoming a batch of rows.
pub struct RowColumns {
    /// Which query.
    pub query_ids: StringArray,
    /// Which document, where that is known.
    pub doc_ids: StringArray,
    /// The label, where there is one.
    pub labels: Float32Array,
    /// The score; null for a judgment.
    pub scores: Float64Array,
    /// The number of the first row in its input.
    pub first_row: u64,
    /// What the query is counted under, where that is asked for.
    pub segments: Option<StringArray>,
}

impl RowColumns {
    /// The rows as a batch, each numbered one more than the one before.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let rows = self.query_ids.len();
        let numbers = UInt64Array::from_iter_values((self.first_row..).take(rows));
        self.with_numbers(numbers)
    }

    /// The rows as a batch, with numbers of their own.
    pub fn with_numbers(self, numbers: UInt64Array) -> Result<RecordBatch> {
        let rows = self.query_ids.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.query_ids),
            Arc::new(self.doc_ids),
            Arc::new(self.labels),
            Arc::new(self.scores),
            Arc::new(numbers),
            Arc::new(self.segments.unwrap_or_else(|| StringArray::new_null(rows))),
        ];
        RecordBatch::try_new(schema().clone(), columns)
            .map_err(|error| Error::place("rows", error, "report this: it is a fault of planetree"))
    }
}

/// The columns of a batch of rows.
pub struct RowView<'a> {
    /// Which query.
    pub query_ids: &'a StringArray,
    /// Which document, where that is known.
    pub doc_ids: &'a StringArray,
    /// The label, where there is one.
    pub labels: &'a Float32Array,
    /// The score; null for a judgment.
    pub scores: &'a Float64Array,
    /// The number in the input.
    pub rows: &'a UInt64Array,
    /// What the query is counted under.
    pub segments: &'a StringArray,
}

impl<'a> RowView<'a> {
    /// Looks at a batch that [`RowColumns`] made.
    pub fn of(batch: &'a RecordBatch) -> Self {
        RowView {
            query_ids: batch.column(0).as_string(),
            doc_ids: batch.column(1).as_string(),
            labels: batch.column(2).as_primitive::<Float32Type>(),
            scores: batch.column(3).as_primitive::<Float64Type>(),
            rows: batch.column(4).as_primitive::<UInt64Type>(),
            segments: batch.column(5).as_string(),
        }
    }

    /// Where the stretch of rows of one query ends that begins at `start`.
    pub fn run_end(&self, start: usize) -> usize {
        let name = self.query_ids.value(start);
        let rows = self.query_ids.len();
        (start + 1..rows).find(|row| self.query_ids.value(*row) != name).unwrap_or(rows)
    }
}
