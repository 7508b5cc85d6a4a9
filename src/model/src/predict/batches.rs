//! Scores record batches, such as those of a data frame. Features are matched by name and categories by their text, and
//! values mean the same as in a dataset that the rows would be converted to.

use super::group::NOT_FINITE;
use super::scorer::Scorer;
use crate::model::Model;
use arrow::array::{ArrayRef, AsArray, Float32Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Schema};
use planetree_base::error::{Error, Result};
use planetree_data::ingest::is_number;
use rayon::prelude::*;
use std::collections::HashMap;

/// Number of rows that a thread scores at a time.
const PIECE_ROWS: usize = 4096;

/// A model prepared for record batches of one schema.
pub struct BatchScorer {
    scorer: Scorer,
    /// Name of the rows, for messages.
    place: String,
    /// Number of features of the model.
    width: usize,
    used: Vec<UsedColumn>,
}

/// A column that scores depend on.
struct UsedColumn {
    name: String,
    column: usize,
    feature: usize,
    /// Codes of the categories; `None` for a numeric feature.
    codes: Option<HashMap<String, f32>>,
}

impl BatchScorer {
    /// Finds the features of a model among the columns. `place` is the name of the rows in messages.
    pub fn new(model: &Model, schema: &Schema, place: &str) -> Result<Self> {
        model.check_complete(&model.origin)?;
        let scorer = Scorer::new(model)?;
        let absent: Vec<&str> = model
            .features
            .iter()
            .map(|feature| feature.name.as_str())
            .filter(|name| schema.column_with_name(name).is_none())
            .collect();
        if !absent.is_empty() {
            let (count, all) = (absent.len(), model.features.len());
            let few = absent[..count.min(8)].join(", ");
            let more = if count > 8 { ", ..." } else { "" };
            return Err(Error::place(
                place,
                format_args!("lacks {count} of {all} features: {few}{more}"),
                "pass rows with the columns that the model was trained on",
            ));
        }
        let mut used = Vec::new();
        for feature in scorer.used_features().map(|feature| feature as usize) {
            let known = &model.features[feature];
            let Some((column, field)) = schema.column_with_name(&known.name) else { continue };
            if schema.fields()[column + 1..].iter().any(|other| *other.name() == known.name) {
                return Err(Error::place(
                    format_args!("{place}: column {}", known.name),
                    "there are several columns of this name",
                    "rename or remove all but one of them",
                ));
            }
            let is_category = !known.words.is_empty();
            match (is_category, is_text(field.data_type()), is_number(field.data_type())) {
                (true, true, _) | (false, _, true) => {}
                (true, false, _) if field.data_type().is_null() => {}
                (true, ..) => {
                    return Err(Error::place(
                        format_args!("{place}: column {}", known.name),
                        format_args!(
                            "found {}, but the feature is categorical in the model",
                            field.data_type()
                        ),
                        "pass the categories as strings",
                    ));
                }
                (false, ..) => {
                    return Err(Error::place(
                        format_args!("{place}: column {}", known.name),
                        format_args!("found {}, expected numbers as in training", field.data_type()),
                        "convert the column to numbers",
                    ));
                }
            }
            let code = |(code, word): (usize, &String)| (word.clone(), code as f32);
            let codes = is_category.then(|| known.words.iter().enumerate().map(code).collect());
            used.push(UsedColumn { name: known.name.clone(), column, feature, codes });
        }
        Ok(BatchScorer { scorer, place: place.to_owned(), width: model.features.len(), used })
    }

    /// Returns whether the score of a row depends on the other rows of its query.
    pub fn needs_queries(&self) -> bool {
        self.scorer.needs_queries()
    }

    /// Scores the rows of a batch, each by itself. `first_row` is the number of its first row, counted from 1.
    pub fn scores(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<f64>> {
        let pieces: Vec<usize> = (0..batch.num_rows()).step_by(PIECE_ROWS).collect();
        let scored: Vec<Vec<f64>> = pieces
            .into_par_iter()
            .map(|first| {
                let piece = batch.slice(first, PIECE_ROWS.min(batch.num_rows() - first));
                self.score(&piece, &[0, piece.num_rows()], first_row + first as u64)
            })
            .collect::<Result<_>>()?;
        Ok(scored.concat())
    }

    /// Scores the rows of a batch, whose queries begin and end at `bounds`. The first bound is 0, and the last one is the
    /// number of rows.
    pub fn score(&self, batch: &RecordBatch, bounds: &[usize], first_row: u64) -> Result<Vec<f64>> {
        let mut values = vec![None; self.width];
        for used in &self.used {
            values[used.feature] = Some(self.values(used, batch.column(used.column), first_row)?);
        }
        let columns: Vec<Option<&Float32Array>> = values.iter().map(Option::as_ref).collect();
        let mut scores = vec![0.0; batch.num_rows()];
        self.scorer.score_queries(&columns, bounds, &mut scores)?;
        match scores.iter().position(|score| !score.is_finite()) {
            None => Ok(scores),
            Some(row) => Err(Error::place(
                format_args!("{}: row {}", self.place, first_row + row as u64),
                format_args!("the score {NOT_FINITE}"),
                "check the leaf values of the model, or train it with a lower learning_rate",
            )),
        }
    }

    /// Returns the values of a feature. As in datasets, infinity is a missing value, and so is an unknown category.
    fn values(&self, used: &UsedColumn, column: &ArrayRef, first_row: u64) -> Result<Float32Array> {
        let fault = |row: usize, problem: String, remedy: &str| {
            let row = first_row + row as u64;
            Error::place(format_args!("{}: row {row}, column {}", self.place, used.name), problem, remedy)
        };
        let cast_to = |kind: &DataType| {
            cast(column, kind).map_err(|error| fault(0, error.to_string(), "convert the column to numbers"))
        };
        if let Some(codes) = &used.codes {
            let words = cast_to(&DataType::Utf8)?;
            return Ok(words.as_string::<i32>().iter().map(|word| codes.get(word?).copied()).collect());
        }
        let wide = cast_to(&DataType::Float64)?;
        let narrow = |(row, value): (usize, Option<f64>)| match value {
            Some(value) if value.is_finite() && (value as f32).is_infinite() => {
                let problem = format!("found {value:e}, expected a number that fits in 32 bits");
                Err(fault(row, problem, "scale the feature, or replace the value"))
            }
            value => Ok(value.filter(|value| value.is_finite()).map(|value| value as f32)),
        };
        wide.as_primitive::<Float64Type>().iter().enumerate().map(narrow).collect()
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::example;
    use arrow::array::{Array, Float64Array, StringArray};
    use arrow::datatypes::Field;
    use std::sync::Arc;

    fn batch(names: &[&str], rows: usize) -> RecordBatch {
        let column = |place: usize| -> ArrayRef {
            let value = |row: usize| match (row * 7 + place * 3) % 11 {
                0 => None,
                1 => Some(f64::INFINITY),
                other => Some(other as f64 - 4.0),
            };
            Arc::new((0..rows).map(value).collect::<Float64Array>())
        };
        RecordBatch::try_from_iter(names.iter().enumerate().map(|(place, name)| (*name, column(place))))
            .unwrap()
    }

    #[test]
    fn batches_are_scored_like_rows() {
        let model = example();
        let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
        let rows = 10_000;
        let batch = batch(&names, rows);
        let scorer = BatchScorer::new(&model, &batch.schema(), "rows").unwrap();
        let mut matrix = Vec::new();
        for row in 0..rows {
            for column in batch.columns() {
                let column = column.as_primitive::<Float64Type>();
                let value = if column.is_null(row) { f64::NAN } else { column.value(row) };
                matrix.push(if value.is_finite() { value as f32 } else { f32::NAN });
            }
        }
        let mut expected = vec![0.0; rows];
        Scorer::new(&model).unwrap().score(&matrix, &mut expected);
        assert_eq!(scorer.scores(&batch, 1).unwrap(), expected);
        let reversed: Vec<usize> = (0..names.len()).rev().collect();
        let other_order = batch.project(&reversed).unwrap();
        let scorer = BatchScorer::new(&model, &other_order.schema(), "rows").unwrap();
        assert_eq!(scorer.scores(&other_order, 1).unwrap(), expected);
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let model = example();
        let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
        let few = batch(&names[1..], 3);
        let error = BatchScorer::new(&model, &few.schema(), "rows").err().unwrap().to_string();
        assert_eq!(error, format!("rows: lacks 1 of 3 features: {}", names[0]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"; 3]));
        let columns = names.iter().map(|name| (*name, text.clone()));
        let words = RecordBatch::try_from_iter(columns).unwrap();
        let error = BatchScorer::new(&model, &words.schema(), "rows").err().unwrap().to_string();
        assert_eq!(error, format!("rows: column {}: found Utf8, expected numbers as in training", names[0]));
        let fields = names.iter().chain([&names[0]]).map(|name| Field::new(*name, DataType::Float64, true));
        let twice = Schema::new(fields.collect::<Vec<_>>());
        let error = BatchScorer::new(&model, &twice, "rows").err().unwrap().to_string();
        assert_eq!(error, format!("rows: column {}: there are several columns of this name", names[0]));
        let large: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 1e300]));
        let columns = names.iter().map(|name| (*name, large.clone()));
        let large = RecordBatch::try_from_iter(columns).unwrap();
        let scorer = BatchScorer::new(&model, &large.schema(), "rows").unwrap();
        let error = scorer.scores(&large, 1).unwrap_err().to_string();
        assert!(error.starts_with("rows: row 2, column ") && error.contains("found 1e300,"), "{error}");
    }
}
