//! Which column of a dataset is which feature of a model: by name, in any order, and words by the model's codes.

use crate::model::Model;
use arrow::array::{ArrayRef, AsArray, Float32Array};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::{DatasetReader, FoundFeatures, KnownFeature};
use std::borrow::Cow;

/// Where the features are that a model's trees ask for.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Places among the dataset's features, ascending, each with the feature of the model.
    pub used: Vec<(usize, usize)>,
    /// Where all features are.
    pub found: FoundFeatures,
}

/// The values of the features that trees ask for, by the model's codes.
pub struct ColumnValues<'a>(Vec<(usize, Cow<'a, Float32Array>)>);

impl ColumnPlan {
    /// Finds a model's features, of which some are used, in a dataset.
    pub fn new(model: &Model, used: impl Iterator<Item = u32>, reader: &DatasetReader) -> Result<Self> {
        let used: Vec<u32> = used.collect();
        let known = known_features(model, Some(&used));
        let found = FoundFeatures::find(&known, reader.manifest(), reader.location())?;
        let place_of = |feature: u32| Some(((*found.places.get(feature as usize)?)?, feature as usize));
        let mut used: Vec<_> = used.into_iter().filter_map(place_of).collect();
        used.sort_unstable();
        Ok(ColumnPlan { used, found })
    }

    /// The values of the columns of [`ColumnPlan::used`], which are given in that order.
    pub fn values<'a>(&self, columns: &'a [ArrayRef], reader: &DatasetReader) -> Result<ColumnValues<'a>> {
        let values = self.used.iter().zip(columns).map(|((_, feature), column)| {
            let column = column.as_primitive_opt::<Float32Type>().ok_or_else(|| odd(reader))?;
            Ok((*feature, self.found.recoded(*feature, column)?))
        });
        Ok(ColumnValues(values.collect::<Result<_>>()?))
    }
}

impl ColumnValues<'_> {
    /// A column for each of so many features of the model, where there is one.
    pub fn by_feature(&self, features: usize) -> Vec<Option<&Float32Array>> {
        let mut columns = vec![None; features];
        for (feature, column) in &self.0 {
            columns[*feature] = Some(&**column);
        }
        columns
    }
}

/// The features of a model with their words; of all of them, or of those that are used.
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

/// What to say of a dataset whose columns are not as its manifest has them.
pub fn odd(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "its columns are not those of a dataset", "convert the data again")
}
