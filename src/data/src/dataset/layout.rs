//! Which columns a dataset has.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use std::sync::Arc;

/// What the feature columns are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureNames {
    /// `f1`, `f2`, ... as many as the data turn out to have.
    Numbered,
    /// Given names, and no others.
    Given(Vec<String>),
}

impl FeatureNames {
    /// The name of a feature, counted from 0.
    pub fn name(&self, feature: usize) -> String {
        match self {
            FeatureNames::Given(names) if feature < names.len() => names[feature].clone(),
            _ => format!("f{}", feature + 1),
        }
    }

    /// The number of features, where it is known beforehand.
    pub fn given(&self) -> Option<usize> {
        match self {
            FeatureNames::Numbered => None,
            FeatureNames::Given(names) => Some(names.len()),
        }
    }
}

/// The columns of a dataset but for the number of features, which text shows only at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Feature names.
    pub features: FeatureNames,
    /// Whether there is a `weight` column.
    pub weight: bool,
    /// Whether there is a `position` column.
    pub position: bool,
}

/// One column of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `query_id`
    Query,
    /// `doc_id`
    Document,
    /// `label`
    Label,
    /// `weight`
    Weight,
    /// `position`
    Position,
    /// A feature, counted from 0.
    Feature(usize),
}

impl Layout {
    /// All columns in their order, for a number of features.
    pub fn roles(&self, features: usize) -> Vec<Role> {
        let mut roles = vec![Role::Query, Role::Document, Role::Label];
        roles.extend(self.weight.then_some(Role::Weight));
        roles.extend(self.position.then_some(Role::Position));
        roles.extend((0..features).map(Role::Feature));
        roles
    }

    /// The Parquet schema, for a number of features.
    pub fn schema(&self, features: usize) -> SchemaDescPtr {
        let fields = self.roles(features).iter().map(|role| Arc::new(self.field(*role))).collect();
        let root = Type::group_type_builder("dataset")
            .with_fields(fields)
            .build()
            .expect("a group of named fields is a valid schema");
        Arc::new(SchemaDescriptor::new(Arc::new(root)))
    }

    fn field(&self, role: Role) -> Type {
        let name = match role {
            Role::Query => "query_id".to_owned(),
            Role::Document => "doc_id".to_owned(),
            Role::Label => "label".to_owned(),
            Role::Weight => "weight".to_owned(),
            Role::Position => "position".to_owned(),
            Role::Feature(feature) => self.features.name(feature),
        };
        let (physical, logical) = match role {
            Role::Query | Role::Document => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Role::Position => (Physical::INT32, None),
            _ => (Physical::FLOAT, None),
        };
        let repetition = if role == Role::Query { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        Type::primitive_type_builder(&name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .expect("string is a valid logical type of byte arrays")
    }
}
