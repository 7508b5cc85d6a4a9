//! A dataset as the trainer reads it: features found by name, labels and queries checked.

use crate::dataset::{DatasetReader, FoundFeatures, GroupId, GroupReader, Manifest};
use crate::error::{Error, Result};
use crate::storage::Location;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Int32Type};
use std::ops::Range;

/// A dataset whose columns are known to fit.
pub struct Source {
    reader: DatasetReader,
    location: Location,
    /// The column of each feature; `None` for one that this dataset never has.
    columns: Vec<Option<usize>>,
    /// Row groups, and the number of the first row of each.
    groups: Vec<(GroupId, u64)>,
    /// What the user should know of it.
    pub warnings: Vec<String>,
}

/// What is known of a partition's rows beside their features.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The number of the first row in the dataset.
    pub first: u64,
    /// The number of the first query in the dataset.
    pub first_query: u64,
    /// The label of each row.
    pub labels: Vec<f32>,
    /// The weight of each row, when there are weights.
    pub weights: Option<Vec<f32>>,
    /// Where each document was shown, counted from 0, when that is known of every row.
    pub positions: Option<Vec<u32>>,
    /// Where each query starts, and the number of rows.
    pub query_bounds: Vec<u32>,
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The rows of each query.
    pub fn queries(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.query_bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
    }
}

impl Source {
    /// Opens a labelled dataset. `features` are the names wanted, `None` for all it has.
    pub fn open(location: &Location, features: Option<&[String]>) -> Result<Self> {
        let reader = DatasetReader::open(location)?;
        let manifest = reader.manifest();
        let refuse = |problem: String, remedy: &str| Err(Error::place(location, problem, remedy));
        if manifest.rows == 0 {
            return refuse("there are no rows".to_owned(), "name a dataset with rows");
        }
        if manifest.unlabelled > 0 {
            let (unlabelled, rows) = (manifest.unlabelled, manifest.rows);
            let problem = format!("{unlabelled} of {rows} rows have no label");
            return refuse(
                problem,
                "training and validation need a label in every row; convert labelled rows only",
            );
        }
        let mut warnings = Vec::new();
        let columns = match features {
            None if manifest.features.is_empty() => {
                return refuse("there are no features".to_owned(), "name a dataset with feature columns");
            }
            None => (0..manifest.features.len()).map(Some).collect(),
            Some(names) => {
                let found = FoundFeatures::find(names.iter().map(String::as_str), manifest, location)?;
                warnings.extend(found.warning().map(|warning| format!("{location}: {warning}")));
                found.places
            }
        };
        let mut first = 0;
        let mut groups = Vec::new();
        for id in reader.groups() {
            groups.push((id, first));
            first += manifest.files[id.file].row_groups[id.group].rows;
        }
        Ok(Source { location: location.clone(), columns, groups, warnings, reader })
    }

    /// What the dataset says of itself.
    pub fn manifest(&self) -> &Manifest {
        self.reader.manifest()
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// How many features there are.
    pub fn features(&self) -> usize {
        self.columns.len()
    }

    /// The column of each feature among the dataset's; `None` for one that it never has.
    pub fn columns(&self) -> &[Option<usize>] {
        &self.columns
    }

    /// How many partitions there are: the dataset's row groups.
    pub fn partitions(&self) -> usize {
        self.groups.len()
    }

    /// The number of a partition's first row.
    pub fn first_row(&self, partition: usize) -> u64 {
        self.groups[partition].1
    }

    /// Reads a partition's bytes and checks them.
    pub fn open_partition(&self, partition: usize) -> Result<GroupReader> {
        let group = self.reader.open_group(self.groups[partition].0)?;
        let names = group.names();
        let features = &self.manifest().features;
        let odd = names.len() < features.len() || names[names.len() - features.len()..] != features[..];
        if odd { Err(self.odd_columns()) } else { Ok(group) }
    }

    /// Decodes one feature of a partition; what is missing or not finite is NaN.
    pub fn values(&self, group: &GroupReader, feature: usize) -> Result<Vec<f32>> {
        Ok(self.values_of(group, feature..feature + 1)?.remove(0))
    }

    /// Decodes neighbouring features, which for a wide dataset is quicker than one by one.
    pub fn values_of(&self, group: &GroupReader, features: Range<usize>) -> Result<Vec<Vec<f32>>> {
        let columns = &self.columns[features.clone()];
        let (Some(first), Some(last)) = (columns[0], columns[columns.len() - 1]) else {
            return features.map(|feature| self.one_by_one(group, feature)).collect();
        };
        if last.checked_sub(first) != Some(columns.len() - 1) || columns.len() == 1 {
            return features.map(|feature| self.one_by_one(group, feature)).collect();
        }
        let start = group.columns() - self.manifest().features.len() + first;
        let batch = group.read(start..start + columns.len())?;
        batch.columns().iter().map(|column| self.as_values(column)).collect()
    }

    fn one_by_one(&self, group: &GroupReader, feature: usize) -> Result<Vec<f32>> {
        let Some(column) = self.columns[feature] else { return Ok(vec![f32::NAN; group.rows()]) };
        let place = group.columns() - self.manifest().features.len() + column;
        self.as_values(group.read(place..place + 1)?.column(0))
    }

    fn as_values(&self, column: &ArrayRef) -> Result<Vec<f32>> {
        let array = column.as_primitive_opt::<Float32Type>().ok_or_else(|| self.odd_columns())?;
        let mut values: Vec<f32> = array.values().to_vec();
        if let Some(present) = array.nulls() {
            for (value, present) in values.iter_mut().zip(present.iter()) {
                *value = if present { *value } else { f32::NAN };
            }
        }
        for value in &mut values {
            *value = if value.is_finite() { *value } else { f32::NAN };
        }
        Ok(values)
    }

    /// Reads labels, weights and queries of a partition. `first_query` is set by the caller, who
    /// knows what came before.
    pub fn rows(&self, partition: usize, group: &GroupReader) -> Result<Rows> {
        let names = group.names();
        let read = |name: &str| match names.iter().position(|column| *column == name) {
            Some(place) => Ok(Some(group.read(place..place + 1)?.column(0).clone())),
            None => Ok(None),
        };
        let queries = read("query_id")?.ok_or_else(|| self.odd_columns())?;
        let queries = queries.as_string_opt::<i32>().ok_or_else(|| self.odd_columns())?;
        let mut query_bounds = vec![0];
        for row in 1..queries.len() {
            if queries.value(row) != queries.value(row - 1) {
                query_bounds.push(row as u32);
            }
        }
        query_bounds.push(queries.len() as u32);
        let numbers = |name: &str| -> Result<Option<Vec<f32>>> {
            let Some(column) = read(name)? else { return Ok(None) };
            let column = column.as_primitive_opt::<Float32Type>().ok_or_else(|| self.odd_columns())?;
            let values = column.values();
            let bad = (0..column.len()).find(|row| column.is_null(*row) || !values[*row].is_finite());
            if let Some(place) = bad {
                let (row, query) = (self.first_row(partition) + place as u64, queries.value(place));
                return Err(Error::place(
                    &self.location,
                    format_args!("the {name} of row {row} (query {query}) is missing or not finite"),
                    "convert the data again with finite numbers",
                ));
            }
            Ok(Some(values.to_vec()))
        };
        let labels = numbers("label")?.ok_or_else(|| self.odd_columns())?;
        let weights = numbers("weight")?;
        if weights.as_ref().is_some_and(|weights| weights.iter().any(|weight| *weight < 0.0)) {
            return Err(Error::place(&self.location, "a weight is negative", "weights are 0 or more"));
        }
        let positions = match read("position")? {
            None => None,
            Some(column) => {
                let column = column.as_primitive_opt::<Int32Type>().ok_or_else(|| self.odd_columns())?;
                // The first is 1 in data and 0 here.
                let known = column.null_count() == 0;
                known.then(|| column.values().iter().map(|at| (at - 1).max(0) as u32).collect())
            }
        };
        let first = self.first_row(partition);
        Ok(Rows { first, first_query: 0, labels, weights, positions, query_bounds })
    }

    fn odd_columns(&self) -> Error {
        Error::place(&self.location, "its columns are not those of a dataset", "convert the data again")
    }
}
