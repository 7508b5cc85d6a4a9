//! How good single trees rank while they grow, as a table: a value for each tree, split of the data and number of
//! splits made.

use crate::error::{Error, Result};
use crate::storage::Location;
use crate::table::{TableKind, TableWriter};
use arrow::array::{Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use std::sync::Arc;

/// The course of one tree on one split of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeStrength {
    /// Counted from 1.
    pub tree: u32,
    /// `train` for the rows that the tree saw, or the name of a validation set.
    pub split: String,
    /// The expected NDCG before the first split and after every one.
    pub values: Vec<f64>,
}

/// Writes the courses of some trees.
pub fn write_strength(courses: &[TreeStrength], location: &Location) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("tree", DataType::Int32, false),
        Field::new("splits", DataType::Int32, false),
        Field::new("split", DataType::Utf8, false),
        Field::new("expected_ndcg", DataType::Float64, false),
    ]));
    let mut table = TableWriter::create(location, TableKind::Strength, schema.clone())?;
    for course in courses {
        let count = course.values.len();
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new(Int32Array::from(vec![course.tree as i32; count])),
                Arc::new(Int32Array::from_iter_values(0..count as i32)),
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&course.split, count))),
                Arc::new(Float64Array::from(course.values.clone())),
            ],
        );
        table.write(&batch.map_err(|error| Error::place(location, error, "name another file"))?)?;
    }
    table.finish()
}
