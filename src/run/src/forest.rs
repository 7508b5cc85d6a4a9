//! Trains forests on scratch copies of datasets.

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_train::config::{self, TrainingPlan};
use planetree_train::{Outcome, Silent, TrainRequest, train};
use std::path::Path;

/// A directory for scratch datasets, which is removed with everything in it when this value is dropped.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Creates the directory.
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("planetree-").tempdir();
        let directory = directory
            .map_err(|error| Error::io(std::env::temp_dir().display(), "create a directory in", error))?;
        Ok(Scratch(directory))
    }

    /// Returns the location of a dataset in the directory.
    pub(crate) fn at(&self, name: &str) -> Location {
        Location::Local(self.path().join(name))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Parameters of forests: those of the preset `rf`, then `defaults`, then `set`, which is a list of KEY=VALUE.
pub(crate) fn forest_plan(defaults: &[&str], set: &[String]) -> Result<TrainingPlan> {
    let all: Vec<String> =
        defaults.iter().map(|text| (*text).to_owned()).chain(set.iter().cloned()).collect();
    let plan = config::load(Some("rf"), None, &all)?;
    if plan.only().is_none_or(|parameters| parameters.forest().is_none()) {
        return Err(Error::usage(
            "--set: the model must be a forest alone",
            "remove settings of ensemble, stages, runs and targets",
        ));
    }
    Ok(plan)
}

/// Trains a forest on scratch datasets.
pub(crate) fn train_forest(
    scratch: &Scratch,
    data: Vec<Location>,
    plan: &TrainingPlan,
    out_of_bag: bool,
) -> Result<Outcome> {
    let Some(first) = data.first().cloned() else {
        return Err(Error::bug("forest", "there is no dataset to train on"));
    };
    let request = TrainRequest {
        data,
        out_of_bag,
        cache: scratch.path().join("bins"),
        ..TrainRequest::new(first, plan.clone())
    };
    train(&request, &mut Silent)
}
