//! Defines the columns of a dataset.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use std::sync::Arc;

/// Names of the feature columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureNames {
    /// The names `f1`, `f2` and so on, for as many features as occur in the data.
    Numbered,
    /// The names of some features of such data: their indices, counted from 0, in ascending order.
    Selected(Arc<[u32]>),
    /// A fixed list of names.
    Given(Vec<String>),
}

impl FeatureNames {
    /// Returns the name of a feature, given its index, counted from 0.
    pub fn name(&self, feature: usize) -> String {
        match self {
            FeatureNames::Given(names) if feature < names.len() => names[feature].clone(),
            FeatureNames::Selected(kept) if feature < kept.len() => format!("f{}", kept[feature] + 1),
            _ => format!("f{}", feature + 1),
        }
    }

    /// Returns the number of features if it is known in advance.
    pub fn given(&self) -> Option<usize> {
        match self {
            FeatureNames::Numbered | FeatureNames::Selected(_) => None,
            FeatureNames::Given(names) => Some(names.len()),
        }
    }
}

/// The columns of a dataset. The number of features is not included, because with LETOR text, it is known only after
/// all text has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Names of the features.
    pub features: FeatureNames,
    /// Whether there is a `weight` column.
    pub weight: bool,
    /// Whether there is a `position` column.
    pub position: bool,
}

/// A column of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetColumn {
    /// `query_id`.
    Query,
    /// `doc_id`.
    Document,
    /// `label`.
    Label,
    /// `weight`.
    Weight,
    /// `position`.
    Position,
    /// The feature with this index, counted from 0.
    Feature(usize),
}

impl Layout {
    /// Returns all columns in order, for the given number of features.
    pub fn columns(&self, features: usize) -> Vec<DatasetColumn> {
        let mut columns = vec![DatasetColumn::Query, DatasetColumn::Document, DatasetColumn::Label];
        columns.extend(self.weight.then_some(DatasetColumn::Weight));
        columns.extend(self.position.then_some(DatasetColumn::Position));
        columns.extend((0..features).map(DatasetColumn::Feature));
        columns
    }

    /// Returns the Parquet schema for the given number of features.
    pub fn schema(&self, features: usize) -> SchemaDescPtr {
        let fields = self.columns(features).iter().map(|column| Arc::new(self.field(*column))).collect();
        let root = Type::group_type_builder("dataset")
            .with_fields(fields)
            .build()
            .expect("a group of named fields is a valid schema");
        Arc::new(SchemaDescriptor::new(Arc::new(root)))
    }

    fn field(&self, column: DatasetColumn) -> Type {
        let name = match column {
            DatasetColumn::Query => "query_id".to_owned(),
            DatasetColumn::Document => "doc_id".to_owned(),
            DatasetColumn::Label => "label".to_owned(),
            DatasetColumn::Weight => "weight".to_owned(),
            DatasetColumn::Position => "position".to_owned(),
            DatasetColumn::Feature(feature) => self.features.name(feature),
        };
        let (physical, logical) = match column {
            DatasetColumn::Query | DatasetColumn::Document => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
            DatasetColumn::Position => (Physical::INT32, None),
            _ => (Physical::FLOAT, None),
        };
        let repetition =
            if column == DatasetColumn::Query { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        Type::primitive_type_builder(&name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .expect("string is a valid logical type of byte arrays")
    }
}
