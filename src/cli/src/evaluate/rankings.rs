//! Finds the rankings to evaluate, with their names.

use super::EvaluateArguments;
use crate::options::{check_is_not_read, file_name, split_name};
use crate::tables::InputData;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, redacted};
use planetree_data::table::{TableKind, TableReader};
use planetree_judge::evaluate::Ranking;
use planetree_metric::Metric;
use std::collections::HashSet;

impl EvaluateArguments {
    /// Describes a ranking. The data of a baseline are shown as given, not as the temporary dataset of a table.
    pub(super) fn shown(&self, ranking: &Ranking) -> Result<String> {
        match (ranking, &self.data) {
            (Ranking::Baseline { baseline, .. }, Some(data)) => {
                Ok(format!("{baseline} of {}", self.locate(data)?))
            }
            _ => Ok(ranking.to_string()),
        }
    }

    /// Fails if an output would replace an input.
    pub(super) fn check_outputs(&self, input: &InputData<'_>, rankings: &[(String, Ranking)]) -> Result<()> {
        let mut read = self.data.as_deref().map_or(Ok(Vec::new()), |data| input.files(data))?;
        read.extend(rankings.iter().map(|(_, ranking)| ranking.location().clone()));
        for text in [&self.labels, &self.qrels, &self.join].into_iter().flatten() {
            read.push(self.locate(text)?);
        }
        for (option, file) in [("--output", &self.output), ("--write-run", &self.write_run)] {
            if let Some(file) = file {
                check_is_not_read(&self.locate(file)?, option, &read)?;
            }
        }
        Ok(())
    }

    /// Returns the rankings with their names: first predictions, then scores, then run files, then
    /// baselines. Their data are as given: a table is not converted yet.
    pub(super) fn rankings(&self) -> Result<Vec<(String, Ranking)>> {
        let mut rankings = Vec::new();
        let baselines = self.baselines.named(self.seed)?;
        if let (Some(data), true) = (&self.data, baselines.is_empty() && self.scores.is_empty()) {
            for text in self.files.iter().chain(&self.predictions) {
                let path = split_name(text).1;
                if matches!(TableReader::kind_of(&self.locate(path)?), Ok(Some(TableKind::Model))) {
                    return Err(Error::usage(
                        format_args!("{path} is a model, and evaluate reads predictions"),
                        format_args!(
                            "score the data first: planetree predict --model {path} --data {data} --output PREDICTIONS, then \
                             planetree evaluate PREDICTIONS"
                        ),
                    ));
                }
            }
            return Err(Error::usage(
                format_args!("--data {data}: there is nothing to rank its rows by"),
                match self.files.is_empty() && self.predictions.is_empty() && self.run.is_empty() {
                    true => "pass --scores FILE, --feature NAME or --random",
                    false => {
                        "remove --data, or pass --feature NAME or --random; to take the labels from it, pass --labels in its place"
                    }
                },
            ));
        }
        let data = self.data.as_ref().map(|text| self.locate(text)).transpose()?;
        for text in self.files.iter().chain(&self.predictions) {
            let (name, path) = system_name(text);
            let location = self.locate(path)?;
            if path.parse::<Metric>().is_ok() && location.size()?.is_none() {
                return Err(Error::usage(
                    format_args!("{path} is a metric, not a file"),
                    format_args!("separate metrics by commas: --metrics {},{path}", self.metrics),
                ));
            }
            rankings.push((name, Ranking::Predictions(location)));
        }
        for text in &self.scores {
            let (name, path) = system_name(text);
            if let Some(data) = &data {
                rankings.push((name, Ranking::Scores { scores: self.locate(path)?, data: data.clone() }));
            }
        }
        for text in &self.run {
            let (name, path) = system_name(text);
            rankings.push((name, Ranking::Run(self.locate(path)?)));
        }
        for (name, baseline) in baselines {
            if let Some(data) = &data {
                rankings.push((name, Ranking::Baseline { data: data.clone(), baseline }));
            }
        }
        let mut names = HashSet::new();
        match rankings.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, ranking)) => Err(Error::usage(
                format_args!("two rankings have the same name: {name}"),
                match ranking {
                    Ranking::Predictions(_) => "pass names: --predictions NAME=FILE",
                    Ranking::Scores { .. } => "pass names: --scores NAME=FILE",
                    Ranking::Run(_) => "pass names: --run NAME=FILE",
                    Ranking::Baseline { .. } => "choose another name: --feature NAME=FEATURE",
                },
            )),
            None => Ok(rankings),
        }
    }
}

/// Replaces the data of rankings by a dataset.
pub(super) fn set_data(rankings: &mut [(String, Ranking)], dataset: &Location) {
    for (_, ranking) in rankings {
        if let Ranking::Scores { data, .. } | Ranking::Baseline { data, .. } = ranking {
            data.clone_from(dataset);
        }
    }
}

/// Returns the name and path of a ranking. Without a given name, the file name is used.
fn system_name(text: &str) -> (String, &str) {
    let (name, path) = split_name(text);
    let shown = redacted(path);
    (name.unwrap_or(file_name(&shown)).to_owned(), path)
}
