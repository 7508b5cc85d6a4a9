//! Reads one of the datasets of [`LabelledData`](super::LabelledData), which is called a part. Matches the features
//! by name, and checks the labels and weights.

use super::LabelledRows;
use crate::dataset::{
    DatasetReader, FeatureMapping, GroupReader, KnownFeature, Manifest, unexpected_columns,
};
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{Float32Type, Int32Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum position of a document. Users do not look further down a ranking, and estimating an effect for every
/// larger position would need too much memory.
const MAX_POSITION: i32 = 10_000;

/// A labelled dataset whose features are mapped to those of the training data.
pub(super) struct SourcePart {
    reader: DatasetReader,
    /// Maps each feature to its column in this dataset, and the category codes of this dataset to the common codes.
    mapping: FeatureMapping,
}

impl SourcePart {
    /// Opens a dataset. Fails if it has no rows, or rows without a label.
    pub(crate) fn open_reader(location: &Location) -> Result<DatasetReader> {
        let reader = DatasetReader::open(location)?;
        let manifest = reader.manifest();
        let refuse = |problem: String, remedy: &str| Err(Error::place(location, problem, remedy));
        if manifest.rows == 0 {
            return refuse("the dataset has no rows".to_owned(), "use a dataset with rows");
        }
        if manifest.unlabelled > 0 {
            let (unlabelled, rows) = (manifest.unlabelled, manifest.rows);
            if unlabelled == rows {
                return refuse(
                    "no row has a label".to_owned(),
                    "convert the data again, and name the column of labels with --label-column",
                );
            }
            let problem = format!("{unlabelled} of {rows} rows have no label (-1 or empty)");
            return refuse(
                problem,
                "training and validation need a label in every row: leave out the rows without one with --unlabelled drop, or \
                 give them the label 0 with --unlabelled zero (train, cv and convert have the option)",
            );
        }
        Ok(reader)
    }

    /// Maps the features to the columns of a dataset. Also returns a warning for the user if features or categories
    /// are missing.
    pub(super) fn new(reader: DatasetReader, known: &[KnownFeature]) -> Result<(Self, Option<String>)> {
        let mapping = FeatureMapping::find(known, reader.manifest(), reader.location())?;
        let warning = mapping.warning().map(|warning| format!("{}: {warning}", reader.location()));
        Ok((SourcePart { mapping, reader }, warning))
    }

    /// Returns the reader of the dataset.
    pub(super) fn reader(&self) -> &DatasetReader {
        &self.reader
    }

    /// Returns a string that identifies all feature values of this part.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.manifest().files_digest(), self.mapping.identity())
    }

    fn manifest(&self) -> &Manifest {
        self.reader.manifest()
    }

    fn location(&self) -> &Location {
        self.reader.location()
    }

    /// Verifies the names of the columns of a row group.
    pub(super) fn checked(&self, group: GroupReader) -> Result<GroupReader> {
        let names = group.names();
        let features = &self.manifest().features;
        let is_malformed =
            names.len() < features.len() || names[names.len() - features.len()..] != features[..];
        if is_malformed { Err(self.malformed()) } else { Ok(group) }
    }

    /// Decodes a range of features at once, which is faster for a wide dataset than decoding them one by one. Missing
    /// and non-finite values become NaN.
    pub(super) fn values_of(&self, group: &GroupReader, features: Range<usize>) -> Result<Vec<Vec<f32>>> {
        let columns = &self.mapping.columns[features.clone()];
        let (Some(first), Some(last)) = (columns[0], columns[columns.len() - 1]) else {
            return features.map(|feature| self.values_of_one(group, feature)).collect();
        };
        if last.checked_sub(first) != Some(columns.len() - 1) || columns.len() == 1 {
            return features.map(|feature| self.values_of_one(group, feature)).collect();
        }
        let start = group.columns() - self.manifest().features.len() + first;
        let batch = group.read(start..start + columns.len())?;
        features.zip(batch.columns()).map(|(feature, column)| self.as_values(feature, column)).collect()
    }

    fn values_of_one(&self, group: &GroupReader, feature: usize) -> Result<Vec<f32>> {
        let Some(column) = self.mapping.columns[feature] else { return Ok(vec![f32::NAN; group.rows()]) };
        let place = group.columns() - self.manifest().features.len() + column;
        self.as_values(feature, group.read(place..place + 1)?.column(0))
    }

    fn as_values(&self, feature: usize, column: &ArrayRef) -> Result<Vec<f32>> {
        let array = column.as_primitive_opt::<Float32Type>().ok_or_else(|| self.malformed())?;
        let mut values: Vec<f32> = array.values().to_vec();
        if let Some(present) = array.nulls() {
            for (value, present) in values.iter_mut().zip(present.iter()) {
                *value = if present { *value } else { f32::NAN };
            }
        }
        for value in &mut values {
            *value = if value.is_finite() { *value } else { f32::NAN };
        }
        self.mapping.recode(feature, &mut values)?;
        Ok(values)
    }

    /// Reads the labels, weights, positions and queries of a row group, and also returns the query id of each row.
    /// `first` is the number of the group's first row counted over all parts, and `first_here` is its number within
    /// this part.
    pub(super) fn rows(
        &self,
        group: &GroupReader,
        first: u64,
        first_here: u64,
    ) -> Result<(LabelledRows, StringArray)> {
        let names = group.names();
        let read = |name: &str| match names.iter().position(|column| *column == name) {
            Some(place) => Ok(Some(group.read(place..place + 1)?.column(0).clone())),
            None => Ok(None),
        };
        let queries = read("query_id")?.ok_or_else(|| self.malformed())?;
        let queries = queries.as_string_opt::<i32>().ok_or_else(|| self.malformed())?;
        let mut query_bounds = vec![0];
        for row in 1..queries.len() {
            if queries.value(row) != queries.value(row - 1) {
                query_bounds.push(row as u32);
            }
        }
        query_bounds.push(queries.len() as u32);
        let begin =
            query_bounds.iter().take(query_bounds.len() - 1).filter(|row| (**row as usize) < queries.len());
        let query_keys = begin.map(|row| xxh3_64(queries.value(*row as usize).as_bytes())).collect();
        let numbers = |name: &str| -> Result<Option<Vec<f32>>> {
            let Some(column) = read(name)? else { return Ok(None) };
            let column = column.as_primitive_opt::<Float32Type>().ok_or_else(|| self.malformed())?;
            let values = column.values();
            let bad = (0..column.len()).find(|row| column.is_null(*row) || !values[*row].is_finite());
            if let Some(place) = bad {
                let (row, query) = (first_here + place as u64, queries.value(place));
                return Err(Error::place(
                    self.location(),
                    format_args!("the {name} of row {row} (query {query}) is missing or not finite"),
                    "convert the data again with finite numbers",
                ));
            }
            Ok(Some(values.to_vec()))
        };
        let labels = numbers("label")?.ok_or_else(|| self.malformed())?;
        let weights = numbers("weight")?;
        if weights.as_ref().is_some_and(|weights| weights.iter().any(|weight| *weight < 0.0)) {
            return Err(Error::place(
                self.location(),
                "a weight is negative",
                "convert the data again with weights of 0 or more",
            ));
        }
        let positions = match read("position")? {
            None => None,
            Some(column) => {
                let column = column.as_primitive_opt::<Int32Type>().ok_or_else(|| self.malformed())?;
                // Positions are counted from 1 in datasets, but from 0 in `LabelledRows`.
                let known = column.null_count() == 0
                    && column.values().iter().all(|at| (1..=MAX_POSITION).contains(at));
                known.then(|| column.values().iter().map(|at| (at - 1) as u32).collect())
            }
        };
        Ok((
            LabelledRows { first, first_query: 0, labels, weights, positions, query_bounds, query_keys },
            queries.clone(),
        ))
    }

    fn malformed(&self) -> Error {
        unexpected_columns(self.location())
    }
}
