//! Builds the training request from the arguments of `planetree train`.

use super::TrainArguments;
use crate::options::{file_name, split_name};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_metric::Metric;
use planetree_model::cost::CostTable;
use planetree_model::model::Model;
use planetree_train::config::Parameters;
use planetree_train::{CheckpointPlan, CostSettings, Every, NamedData, TrainRequest};
use std::path::PathBuf;
use std::time::Duration;

impl TrainArguments {
    /// Loads the parameters and locates all inputs.
    pub fn request(&self) -> Result<TrainRequest> {
        let store = &self.execution.store;
        let mut plan = self.parameters.load(store, &[])?;
        let best_for: Vec<Metric> = self.models_for()?.into_iter().map(|(metric, _)| metric).collect();
        if let Some(last) = plan.stages.last_mut() {
            for metric in &best_for {
                if !last.metrics.contains(metric) {
                    last.metrics.push(*metric);
                }
            }
        }
        let data = store.locate_all(&self.data)?;
        let validation = self.validation()?;
        let forest = plan.only().and_then(Parameters::forest);
        let samples_rows = forest.is_some_and(|forest| forest.bootstrap || forest.tree.sampling.leaves_out());
        // Without a validation set the log contains the out-of-bag metrics of the forest.
        let logs_out_of_bag = self.rounds.is_some() && validation.is_empty() && samples_rows;
        let start = self.start_model.as_ref().map(|text| Model::read(&store.locate(text)?)).transpose()?;
        let costs = self.costs.as_ref().map(|text| {
            let table = CostTable::read(&store.locate(text)?)?;
            CostSettings::new(self.cost_lambda, self.cost_batch, table)
        });
        let cache = self.cache.clone().unwrap_or_else(|| default_cache(data.first()));
        Ok(TrainRequest {
            data,
            validation,
            plan,
            start,
            out_of_bag: self.oob.is_some() || logs_out_of_bag,
            strength: self.strength.is_some(),
            stream_to: Some(store.locate(&self.model)?),
            memory_limit: self.memory_limit,
            cache,
            checkpoint: self.checkpoint_plan()?,
            resume: self.resume,
            objective: None,
            best_for,
            costs: costs.transpose()?,
            common_features: self.common_features,
            backend: None,
        })
    }

    /// Returns the metrics of `--model-for` with their files.
    pub fn models_for(&self) -> Result<Vec<(Metric, Location)>> {
        let model_for = |text: &String| match text.split_once('=') {
            Some((metric, file)) if !file.is_empty() => {
                Ok((metric.parse()?, self.execution.store.locate(file)?))
            }
            _ => Err(Error::usage(
                format_args!("--model-for {text}: expected METRIC=FILE"),
                "name a metric and a file, such as --model-for ndcg@10=ndcg.parquet",
            )),
        };
        self.model_for.iter().map(model_for).collect()
    }

    fn validation(&self) -> Result<Vec<NamedData>> {
        let named = |text: &String| {
            let (name, path) = split_name(text);
            let name = name.unwrap_or(if self.valid.len() == 1 { "valid" } else { file_name(text) });
            Ok(NamedData { name: name.to_owned(), location: self.execution.store.locate(path)? })
        };
        self.valid.iter().map(named).collect()
    }

    fn checkpoint_plan(&self) -> Result<Option<CheckpointPlan>> {
        if self.checkpoint.is_none() && self.checkpoint_every.is_none() && !self.resume {
            return Ok(None);
        }
        let default = format!("{}.checkpoint", self.model);
        Ok(Some(CheckpointPlan {
            location: self.execution.store.locate(self.checkpoint.as_ref().unwrap_or(&default))?,
            every: self.checkpoint_every.unwrap_or(Every::Time(Duration::from_secs(60))),
        }))
    }
}

/// Returns the default directory for binned data that exceed the memory limit: next to the first dataset if that is
/// local, otherwise in the temporary directory.
fn default_cache(first: Option<&Location>) -> PathBuf {
    match first {
        Some(Location::Local(path)) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            path.with_file_name(format!("{name}.bins"))
        }
        _ => std::env::temp_dir().join("planetree-bins"),
    }
}
