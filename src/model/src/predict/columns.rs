//! Which column of a dataset is which feature of a model: by name, in any order.

use crate::model::Model;
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, FoundFeatures};

/// Where the features are that a model's trees ask for.
#[derive(Debug)]
pub struct ColumnPlan {
    /// Places among the dataset's features, ascending, each with the feature of the model.
    pub used: Vec<(usize, usize)>,
    /// Where all features are.
    pub found: FoundFeatures,
}

impl ColumnPlan {
    /// Finds a model's features, of which some are used, in a dataset.
    pub fn new(model: &Model, used: impl Iterator<Item = u32>, reader: &DatasetReader) -> Result<Self> {
        let names = model.features.iter().map(|feature| feature.name.as_str());
        let found = FoundFeatures::find(names, reader.manifest(), reader.location())?;
        let place_of = |feature: u32| Some(((*found.places.get(feature as usize)?)?, feature as usize));
        let mut used: Vec<_> = used.filter_map(place_of).collect();
        used.sort_unstable();
        Ok(ColumnPlan { used, found })
    }
}
