//! Defines the schema that rows from all sources are converted to: query, document, label, score and row number. A
//! row without a score is a judgment, which gives the label of a document but not its position in the ranking.

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef, UInt64Type};
use planetree_base::error::{Error, Result};
use std::sync::{Arc, LazyLock};

/// Row number of the first judgment. It is so high that judgments sort after the rows of the ranking.
pub(crate) const FIRST_JUDGMENT_ROW: u64 = 1 << 62;

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

/// Returns the schema of all rows.
pub fn schema() -> &'static SchemaRef {
    &SCHEMA
}

/// The columns of a batch of rows.
pub struct RankingColumns {
    /// Query ids.
    pub query_ids: StringArray,
    /// Document ids; null if unknown.
    pub doc_ids: StringArray,
    /// Labels; null if unknown.
    pub labels: Float32Array,
    /// Scores; null for judgments.
    pub scores: Float64Array,
    /// Number of the first row in the input, counted from 0.
    pub first_row: u64,
    /// Segment (group of queries) to which each row's query belongs, if requested.
    pub segments: Option<StringArray>,
}

impl RankingColumns {
    /// Builds a batch whose rows are numbered consecutively from `first_row`.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let rows = self.query_ids.len();
        let numbers = UInt64Array::from_iter_values((self.first_row..).take(rows));
        self.with_numbers(numbers)
    }

    /// Builds a batch with the given row numbers.
    pub(crate) fn with_numbers(self, numbers: UInt64Array) -> Result<RecordBatch> {
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
            .map_err(|error| Error::bug("rows", &error).caused_by(error))
    }
}

/// The columns of a batch that was built by [`RankingColumns`].
pub struct RowView<'a> {
    /// Query ids.
    pub query_ids: &'a StringArray,
    /// Document ids; null if unknown.
    pub doc_ids: &'a StringArray,
    /// Labels; null if unknown.
    pub labels: &'a Float32Array,
    /// Scores; null for judgments.
    pub scores: &'a Float64Array,
    /// Row numbers in the input.
    pub rows: &'a UInt64Array,
    /// Segment (group of queries) to which each row's query belongs; null if unknown.
    pub segments: &'a StringArray,
}

impl<'a> RowView<'a> {
    /// Borrows the columns of a batch that was built by [`RankingColumns`].
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

    /// Returns the end of the consecutive rows that start at `start` and belong to the same query.
    pub(crate) fn query_end(&self, start: usize) -> usize {
        let name = self.query_ids.value(start);
        let rows = self.query_ids.len();
        (start + 1..rows).find(|row| self.query_ids.value(*row) != name).unwrap_or(rows)
    }
}
