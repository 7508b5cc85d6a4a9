//! Builds the training request from the arguments of `planetree train`.

use super::TrainArguments;
use super::tables::TrainingTables;
use crate::options::{file_name, split_name};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::DatasetReader;
use planetree_metric::Metric;
use planetree_model::cost::CostTable;
use planetree_model::model::Model;
use planetree_run::read_start_scores;
use planetree_train::config::{Choice, Parameters};
use planetree_train::{CheckpointPlan, Every, GivenScores, NamedData, TrainRequest};
use std::path::PathBuf;
use std::time::Duration;

impl TrainArguments {
    /// Fails if the parameters are invalid.
    pub(super) fn check_parameters(&self) -> Result<()> {
        self.parameters.load(&self.execution.store, &self.cost_choices()).map(drop)
    }

    /// Loads the parameters and locates all inputs.
    pub(super) fn request(&self, tables: &TrainingTables) -> Result<TrainRequest> {
        let store = &self.execution.store;
        let mut plan = self.parameters.load(store, &self.cost_choices())?;
        let best_for: Vec<Metric> = self.models_for()?.into_iter().map(|(metric, _)| metric).collect();
        if let Some(last) = plan.stages.last_mut() {
            for metric in &best_for {
                if !last.metrics.contains(metric) {
                    last.metrics.push(*metric);
                }
            }
        }
        let data = tables.data.clone();
        let validation = self.validation(tables);
        let forest = plan.only().and_then(Parameters::forest);
        let samples_rows = forest.is_some_and(|forest| forest.bootstrap || forest.tree.sampling.leaves_out());
        // Without a validation set the log contains the out-of-bag metrics of the forest.
        let logs_out_of_bag = self.rounds.is_some() && validation.is_empty() && samples_rows;
        let start = self.start_model.as_ref().map(|text| Model::read(&store.locate(text)?)).transpose()?;
        let start_scores = self.start_scores(&data, &validation)?;
        let costs = self.costs.as_ref().map(|text| CostTable::read(&store.locate(text)?));
        let cache = self.cache.clone().unwrap_or_else(|| default_cache(data.first()));
        Ok(TrainRequest {
            data,
            validation,
            plan,
            start,
            start_scores,
            out_of_bag: self.oob.is_some() || logs_out_of_bag,
            strength: self.strength.is_some(),
            stream_to: Some(store.locate(&self.model)?),
            memory_limit: self.memory_limit,
            compact: self.compact,
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

    /// Returns the parameters that `--cost-lambda` and `--cost-batch` set.
    fn cost_choices(&self) -> Vec<Choice> {
        let options = [
            ("--cost-lambda", "cost_lambda", &self.cost_lambda),
            ("--cost-batch", "cost_batch", &self.cost_batch),
        ];
        let choice = |(option, key, value): (&str, &str, &Option<String>)| {
            Some(Choice { key: key.to_owned(), value: value.clone()?, place: option.to_owned() })
        };
        options.into_iter().filter_map(choice).collect()
    }

    /// Returns the metrics of `--model-for` with their files.
    pub(crate) fn models_for(&self) -> Result<Vec<(Metric, Location)>> {
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

    /// Reads the start scores of the training data and of all validation sets.
    fn start_scores(&self, data: &[Location], validation: &[NamedData]) -> Result<Option<GivenScores>> {
        if self.start_scores.is_empty() {
            return Ok(None);
        }
        let named: Vec<(Option<&str>, &str)> =
            self.start_scores.iter().map(|text| split_name(text)).collect();
        let is_known = |name: &str| validation.iter().any(|set| set.name == name);
        let names = || named.iter().map(|(name, _)| *name);
        for (place, name) in names().enumerate() {
            let shown = &self.start_scores[place];
            if let Some(name) = name.filter(|name| !is_known(name)) {
                return Err(Error::usage(
                    format_args!("--start-scores {shown}: there is no validation set called {name}"),
                    "use the name of a --valid, or no name for the training data",
                ));
            }
            if names().take(place).any(|earlier| earlier == name) {
                return Err(Error::usage(
                    format_args!("--start-scores {shown}: the same data have start scores already"),
                    "pass one file per dataset",
                ));
            }
        }
        let read = |name: Option<&str>, data: &[Location]| {
            let Some((_, file)) = named.iter().find(|(given, _)| *given == name) else {
                return Err(match name {
                    None => Error::usage(
                        "--start-scores: the training data have none",
                        "add --start-scores FILE with the predictions of the training data",
                    ),
                    Some(name) => Error::usage(
                        format_args!("--start-scores: validation set {name} has none"),
                        format_args!("add --start-scores {name}=FILE with its predictions"),
                    ),
                });
            };
            let readers = data.iter().map(DatasetReader::open).collect::<Result<Vec<_>>>()?;
            read_start_scores(&self.execution.store.locate(file)?, &readers)
        };
        let of_set = |set: &NamedData| read(Some(&set.name), std::slice::from_ref(&set.location));
        Ok(Some(GivenScores {
            training: read(None, data)?,
            validation: validation.iter().map(of_set).collect::<Result<_>>()?,
        }))
    }

    fn validation(&self, tables: &TrainingTables) -> Vec<NamedData> {
        let named = |(text, location): (&String, &Location)| {
            let (name, _) = split_name(text);
            let name = name.unwrap_or(if self.valid.len() == 1 { "valid" } else { file_name(text) });
            NamedData { name: name.to_owned(), location: location.clone() }
        };
        self.valid.iter().zip(&tables.validation).map(named).collect()
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
