//! Maps the columns of a dataset to the features of a model by name, so their order may differ. Converts the codes of
//! categories to the model's codes.

use crate::model::Model;
use arrow::array::{ArrayRef, AsArray, Float32Array};
use arrow::datatypes::Float32Type;
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, FeatureMapping, KnownFeature, unexpected_columns};
use std::borrow::Cow;

/// The columns of a dataset that a model needs.
#[derive(Debug)]
pub struct ColumnPlan {
    /// The features to read: pairs of the index in the dataset and the index in the model, in ascending order of the
    /// index in the dataset.
    pub used: Vec<(usize, usize)>,
    /// The columns of the dataset that match the features of the model, whether or not they are used.
    pub found: FeatureMapping,
}

/// The values of the features that a model needs. Categories are encoded with the model's codes.
pub struct ColumnValues<'a>(Vec<(usize, Cow<'a, Float32Array>)>);

impl ColumnPlan {
    /// Finds the features of a model in a dataset. Only the features in `used` will be read.
    pub fn new(model: &Model, used: impl Iterator<Item = u32>, reader: &DatasetReader) -> Result<Self> {
        let used: Vec<u32> = used.collect();
        let known = known_features(model, Some(&used));
        let found = FeatureMapping::find(&known, reader.manifest(), reader.location())?;
        let column_of = |feature: u32| Some(((*found.columns.get(feature as usize)?)?, feature as usize));
        let mut used: Vec<_> = used.into_iter().filter_map(column_of).collect();
        used.sort_unstable();
        Ok(ColumnPlan { used, found })
    }

    /// Returns the values of the features in [`ColumnPlan::used`]. `columns` has one column for each of them, in the
    /// same order.
    pub fn values<'a>(&self, columns: &'a [ArrayRef], reader: &DatasetReader) -> Result<ColumnValues<'a>> {
        let values = self.used.iter().zip(columns).map(|((_, feature), column)| {
            let column = column
                .as_primitive_opt::<Float32Type>()
                .ok_or_else(|| unexpected_columns(reader.location()))?;
            Ok((*feature, self.found.recoded(*feature, column)?))
        });
        Ok(ColumnValues(values.collect::<Result<_>>()?))
    }
}

impl ColumnValues<'_> {
    /// Returns one entry for each of the first `features` features of the model. The entry is `None` if the feature has
    /// no column.
    pub fn by_feature(&self, features: usize) -> Vec<Option<&Float32Array>> {
        let mut columns = vec![None; features];
        for (feature, column) in &self.0 {
            columns[*feature] = Some(&**column);
        }
        columns
    }
}

/// Returns the features of a model. If `used` is given, only the features in `used` have categories.
pub fn known_features(model: &Model, used: Option<&[u32]>) -> Vec<KnownFeature> {
    let mut is_used = vec![used.is_none(); model.features.len()];
    used.iter().copied().flatten().for_each(|feature| is_used[*feature as usize] = true);
    let features = model.features.iter().zip(is_used).map(|(feature, is_used)| KnownFeature {
        name: feature.name.clone(),
        words: is_used.then(|| feature.words.clone()),
        place: model.origin.to_string(),
    });
    features.collect()
}
