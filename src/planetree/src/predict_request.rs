//! Writes predictions for a dataset.

use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::dataset::DatasetReader;
use planetree_model::model::Model;
use planetree_model::predict::{PredictionsTable, predict};

/// Scores a dataset with a model file and writes the predictions as Parquet, like `planetree predict`.
pub fn write_predictions(model: &Location, data: &DatasetReader, output: &Location) -> Result<()> {
    let trees = Model::read(model)?;
    let mut table = PredictionsTable::create(output)?;
    let all_cores = 0;
    predict(data, &trees, all_cores, &mut |group| table.write(group))?;
    table.finish(model, &trees, data)
}
