//! Writes and reads the table of tree strengths. The strength of a tree is its ranking quality while it grows. The
//! table has one value for each tree, number of tree splits, and split of the data (the training data or a validation
//! set).

use arrow::array::{Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, TableWriter, float_column, string_column};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The strength curve of one tree on one split of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeStrength {
    /// The tree number, starting at 1.
    pub tree: u32,
    /// The split of the data, which is `train` for the rows of the tree, or the name of a validation set.
    pub split: String,
    /// Expected NDCG before the first split and after each split.
    pub values: Vec<f64>,
}

/// Writes strength curves as a table.
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
        table.write(
            &batch.map_err(|error| Error::place(location, &error, "name another file").caused_by(error))?,
        )?;
    }
    table.finish()
}

/// The strength curves of all trees on one split of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanStrength {
    /// The split of the data, which is `train` or the name of a validation set.
    pub split: String,
    courses: Vec<Vec<f64>>,
}

impl MeanStrength {
    /// Returns the number of trees.
    pub fn trees(&self) -> usize {
        self.courses.len()
    }

    /// Returns the number of splits of the tree with the most splits.
    pub fn longest(&self) -> usize {
        self.courses.iter().map(Vec::len).max().unwrap_or(1) - 1
    }

    /// Returns the mean expected NDCG of the trees after this many splits. Trees with fewer splits keep their final
    /// value.
    pub fn after(&self, splits: usize) -> f64 {
        let at = |values: &Vec<f64>| values[splits.min(values.len() - 1)];
        self.courses.iter().map(at).sum::<f64>() / self.courses.len() as f64
    }
}

/// Reads a table of tree strengths. Returns one mean curve per split of the data, `train` first.
pub fn mean_strengths(table: &TableReader) -> Result<Vec<MeanStrength>> {
    let mut courses: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
    for batch in table.batches() {
        let batch = batch?;
        let (tree, value) =
            (float_column(table, &batch, "tree")?, float_column(table, &batch, "expected_ndcg")?);
        let split = string_column(table, &batch, "split")?;
        for row in 0..batch.num_rows() {
            let key = (split.value(row).to_owned(), tree.value(row) as u64);
            courses.entry(key).or_default().push(value.value(row));
        }
    }
    let mut means: Vec<MeanStrength> = Vec::new();
    for ((split, _), values) in courses {
        match means.last_mut() {
            Some(last) if last.split == split => last.courses.push(values),
            _ => means.push(MeanStrength { split, courses: vec![values] }),
        }
    }
    means.sort_by_key(|mean| mean.split != "train");
    Ok(means)
}
