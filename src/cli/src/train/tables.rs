//! Opens the data of a training.

use super::TrainArguments;
use crate::options::split_name;
use crate::tables::InputData;
use planetree_base::error::Result;
use planetree_base::storage::Location;

/// The datasets of a training: those given, and temporary ones of the tables given, which `InputData` removes.
pub(super) struct TrainingTables {
    /// One dataset for each `--data`.
    pub data: Vec<Location>,
    /// One dataset for each `--valid`.
    pub validation: Vec<Location>,
}

impl TrainingTables {
    /// Locates the datasets, and converts what is not a dataset.
    pub(super) fn prepare(arguments: &TrainArguments, input: &mut InputData<'_>) -> Result<Self> {
        let data = arguments.data.iter().map(|path| input.dataset(path)).collect::<Result<_>>()?;
        let validation = arguments.valid.iter().map(|text| input.validation_set(split_name(text).1));
        let validation = validation.collect::<Result<_>>()?;
        Ok(TrainingTables { data, validation })
    }
}
