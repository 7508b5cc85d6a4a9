//! Cross-validates models: the queries are divided into parts, and every fold trains on most parts, validates on one
//! part and tests on another. A search cross-validates several combinations of parameters and ranks them.
//!
//! ```text
//! dataset ─split──► parts ──rotate──► folds: train ──► best round on the validation part ──► test part
//! several datasets ──┘                                     │                                     │
//!                                         ranks the trials of a search              predictions, metrics
//! ```

mod baselines;
mod evaluator;
mod fold;
mod memory;
mod plan;
mod queries;
mod rotation;
mod search;
mod space;
mod split;
mod spread;
mod tables;
mod trials;

pub use baselines::BaselineResult;
pub(crate) use fold::FoldRecord;
pub use fold::{FoldResources, MetricValue};
pub use rotation::ValidationPart;
pub(crate) use rotation::check_folds;
pub use search::CheckedTrial;
pub use search::{SearchOutcome, TrialResult, check_trials, search};
pub use space::{SearchSpace, Trial};
pub use spread::Spread;

use evaluator::FoldRules;
use fold::Fold;
use plan::CvPlan;
use planetree_base::error::{Error, Result};
use planetree_base::progress::SharedMeter;
use planetree_base::storage::{Location, interrupt};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_train::config::{Parameters, TrainingPlan};
use planetree_train::{LogEntry, Observer};
pub(crate) use queries::{hash_of, hashes};
use rotation::{Rotation, rotations};
use split::{QuerySplit, split_dataset};
pub(crate) use split::{assign_parts, check_count};
use tables::{FoldPredictions, write_folds, write_predictions_and_metrics};

/// What to cross-validate.
#[derive(Debug, Clone)]
pub struct CvRequest {
    /// One dataset to split into parts, or several datasets, each of which is a part.
    pub data: Vec<Location>,
    /// Number of parts into which a single dataset is split; `None` for the default.
    pub folds: Option<usize>,
    /// Seed for the split.
    pub fold_seed: u64,
    /// What each fold does with the part that may determine the best round.
    pub validation: ValidationPart,
    /// Directory for all outputs.
    pub output: Location,
    /// Metrics to compute on the test parts.
    pub metrics: Vec<Metric>,
    /// Convention (set of rules) by which all metrics are computed, both on the test parts and on the validation
    /// parts.
    pub convention: Convention,
    /// Whether the round is chosen for each metric by itself.
    pub each_metric: bool,
    /// Whether to keep the models of the folds.
    pub keep_models: bool,
    /// Resources for each training run.
    pub resources: FoldResources,
}

impl CvRequest {
    /// Returns the training plan for every fold. If there is a validation part and `early_stopping_rounds` is not set
    /// in a stage, it is set to the number of trees, so that all rounds are trained and the best one is kept. The
    /// metrics on validation parts are computed by the same rules as those on test parts.
    pub fn fold_plan(&self, plan: &TrainingPlan) -> Result<TrainingPlan> {
        let stages = plan.stages.iter().map(|stage| self.fold_parameters(stage)).collect::<Result<_>>()?;
        Ok(TrainingPlan { stages, ..plan.clone() })
    }

    /// Checks what can be checked before the data are opened: the number of folds, and whether the output may be written.
    pub fn check(&self) -> Result<()> {
        self.rotations()?;
        TableWriter::check(&self.output.join("folds.parquet"), TableKind::Folds)
    }

    /// Returns one fold per part, with its parts.
    fn rotations(&self) -> Result<Vec<Rotation>> {
        let datasets = self.data.len();
        match self.folds {
            Some(folds) if datasets > 1 && folds != datasets => Err(Error::usage(
                format_args!("--folds {folds}, but {datasets} datasets are given"),
                "omit --folds, because each dataset is a part, or pass one dataset to split",
            )),
            _ if datasets > 1 => rotations(datasets, self.validation),
            folds => rotations(folds.unwrap_or(DEFAULT_FOLDS), self.validation),
        }
    }

    fn fold_parameters(&self, parameters: &Parameters) -> Result<Parameters> {
        let validate = self.validation == ValidationPart::Validate;
        if self.each_metric && !validate {
            return Err(Error::usage(
                "--each-metric chooses rounds on validation parts, but there are none",
                "omit --each-metric, --no-valid and --unused-valid",
            ));
        }
        let option = if self.validation == ValidationPart::Unused { "--unused-valid" } else { "--no-valid" };
        let early_stopping_rounds = match (validate, parameters.early_stopping_rounds) {
            (true, given) => Some(given.unwrap_or(parameters.num_trees)),
            (false, None) => None,
            (false, Some(rounds)) => {
                return Err(Error::usage(
                    format_args!(
                        "early_stopping_rounds = {rounds} needs a validation part, but {option} is given"
                    ),
                    format_args!("omit {option}, or set early_stopping_rounds=0"),
                ));
            }
        };
        let convention = match (self.convention.needs_documents(), validate) {
            (false, _) => self.convention.clone(),
            (true, true) => {
                return Err(Error::usage(
                    format_args!(
                        "convention {}: ties=docid is not supported on validation parts: training has no document ids",
                        self.convention
                    ),
                    "choose another rule for ties, such as ties=input, or pass --no-valid",
                ));
            }
            // Without a validation part, the rules for metrics affect only the training logs.
            (true, false) => parameters.convention.clone(),
        };
        let metrics = if self.each_metric { self.metrics.clone() } else { parameters.metrics.clone() };
        Ok(Parameters { early_stopping_rounds, convention, metrics, ..parameters.clone() })
    }
}

/// Default number of parts into which a single dataset is split.
const DEFAULT_FOLDS: usize = 5;

/// The result of a fold.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldResult {
    /// Number of the fold, counted from 1.
    pub number: usize,
    /// Record that the fold wrote when it finished.
    pub record: FoldRecord,
    /// Metrics on the test part.
    pub test: Vec<MetricValue>,
    /// Number of queries in the validation part; 0 if there is no validation part.
    pub valid_queries: u64,
    /// Number of queries in the test part.
    pub test_queries: u64,
}

/// A cross-validation that is ready to run: its parts, and their assignment to folds.
pub struct CrossValidation {
    request: CvRequest,
    parts: Vec<DatasetReader>,
    rotations: Vec<Rotation>,
}

impl CrossValidation {
    /// Checks everything that can be checked before training, and then opens the parts. If a single dataset is given,
    /// it is first split into parts.
    pub fn prepare(request: CvRequest, observer: &mut dyn Observer) -> Result<Self> {
        request.check()?;
        let rotations = request.rotations()?;
        let count = rotations.len();
        let readers = request.data.iter().map(DatasetReader::open).collect::<Result<Vec<_>>>()?;
        readers.iter().try_for_each(check_labelled)?;
        let output = &request.output;
        let plan = CvPlan::of(&request, count, &readers)?;
        plan.check(output)?;
        let parts = match &readers[..] {
            [one] => {
                check_count(one, count)?;
                let split = QuerySplit { parts: count, seed: request.fold_seed };
                let (limit, parts) = (request.resources.memory_limit, output.join("parts"));
                let begin = || plan.write(output);
                split_dataset(one, split, limit, &parts, &begin, &mut |text| observer.note(text))?
            }
            _ => {
                queries::check_disjoint(&readers)?;
                plan.write(output)?;
                readers
            }
        };
        Ok(CrossValidation { request, parts, rotations })
    }

    /// Returns the convention (set of rules) by which all metrics are computed.
    pub fn convention(&self) -> &Convention {
        &self.request.convention
    }

    /// Returns the directory for all outputs.
    pub fn output(&self) -> &Location {
        &self.request.output
    }

    /// Runs all folds that are not finished yet, and writes the tables that combine all folds to the directory
    /// `output`.
    pub fn run(
        &self,
        plan: &TrainingPlan,
        output: &Location,
        observer: &mut dyn Observer,
    ) -> Result<Vec<FoldResult>> {
        let plan = self.request.fold_plan(plan)?;
        let mut records = Vec::new();
        let mut tested = Vec::new();
        for (index, rotation) in self.rotations.iter().enumerate() {
            interrupt::check().map_err(|error| resumable(error, output))?;
            let fold = self.fold(index + 1, rotation, &plan, output);
            let record = match fold.finished()? {
                Some(record) => {
                    observer.note(&format!("fold {}: already complete", fold.number));
                    record
                }
                None => run_fold(&fold, &self.request.resources, self.rotations.len(), observer)
                    .map_err(|error| resumable(error.within(format_args!("fold {}", fold.number)), output))?,
            };
            tested.push((
                rotation.test,
                FoldPredictions {
                    fold: fold.number,
                    predictions: fold.predictions(),
                    of_metrics: fold.best_for.iter().map(|metric| fold.predictions_for(metric)).collect(),
                },
            ));
            records.push(record);
        }
        // Sort by part, so that the rows of the tables are in the order of the data.
        tested.sort_by_key(|(part, _)| *part);
        let tested: Vec<FoldPredictions> = tested.into_iter().map(|(_, tested)| tested).collect();
        let rules =
            FoldRules { convention: &self.request.convention, label_map: plan.first().label_map.as_ref() };
        let means = write_predictions_and_metrics(&tested, &self.request.metrics, rules, output)
            .map_err(|error| resumable(error, output))?;
        let mut folds = Vec::new();
        for ((index, rotation), record) in self.rotations.iter().enumerate().zip(records) {
            let queries = |part: usize| self.parts[part].manifest().queries;
            let means = tested.iter().zip(&means).find(|(tested, _)| tested.fold == index + 1);
            let values = means.into_iter().flat_map(|(_, means)| means);
            folds.push(FoldResult {
                number: index + 1,
                record,
                test: values
                    .map(|mean| MetricValue { metric: mean.metric().to_string(), value: mean.value() })
                    .collect(),
                valid_queries: rotation.valid.map_or(0, queries),
                test_queries: queries(rotation.test),
            });
        }
        write_folds(&folds, &self.request.convention, &output.join("folds.parquet"))?;
        Ok(folds)
    }

    fn fold(&self, number: usize, rotation: &Rotation, plan: &TrainingPlan, output: &Location) -> Fold<'_> {
        Fold {
            number,
            train: rotation.train.iter().map(|part| &self.parts[*part]).collect(),
            valid: rotation.valid.map(|part| &self.parts[part]),
            test: &self.parts[rotation.test],
            plan: plan.clone(),
            best_for: if self.request.each_metric { self.request.metrics.clone() } else { Vec::new() },
            keep_model: self.request.keep_models,
            directory: output.join(&format!("folds/{number}")),
        }
    }
}

fn run_fold(
    fold: &Fold<'_>,
    resources: &FoldResources,
    folds: usize,
    observer: &mut dyn Observer,
) -> Result<FoldRecord> {
    let number = fold.number;
    observer.phase(&format!("fold {number} of {folds}"));
    let record = fold.run(resources, &mut FoldObserver { number, observer })?;
    let first = record.valid.first().map_or(String::new(), |value| {
        format!(", {} {:.4} on the validation part", value.metric, value.value)
    });
    observer.note(&format!("fold {number} of {folds}: {:.1} s{first}", record.seconds));
    Ok(record)
}

/// Returns the mean and standard deviation of every metric over the folds. Metrics are in the order of the first
/// fold.
pub fn spreads<'a>(folds: impl Iterator<Item = &'a [MetricValue]> + Clone) -> Vec<(String, Spread)> {
    let names = folds.clone().next().into_iter().flatten().map(|value| value.metric.clone());
    names
        .map(|name| {
            let of_fold = |values: &'a [MetricValue]| values.iter().find(|value| value.metric == name);
            let values: Vec<f64> = folds.clone().filter_map(of_fold).map(|value| value.value).collect();
            let spread = Spread::of(&values);
            (name, spread)
        })
        .collect()
}

/// Checks that all rows have labels, because every part is used for training in some fold.
fn check_labelled(reader: &DatasetReader) -> Result<()> {
    let (rows, unlabelled) = (reader.manifest().rows, reader.manifest().unlabelled);
    if rows == 0 || unlabelled > 0 {
        let problem = match rows {
            0 => "no rows".to_owned(),
            _ => format!("{unlabelled} of {rows} rows have no label (-1 or empty)"),
        };
        return Err(Error::place(reader.location(), problem, "use datasets with a label in every row"));
    }
    Ok(())
}

/// Turns an interruption into an error which says that completed folds are kept.
fn resumable(error: Error, output: &Location) -> Error {
    match error {
        Error::Interrupted | Error::Stopped { .. } => Error::place(
            output,
            "interrupted; completed folds are kept",
            "run the same command again to resume",
        ),
        other => other,
    }
}

/// Forwards the progress of a training run to another observer, and adds the number of the fold to its messages.
struct FoldObserver<'a> {
    number: usize,
    observer: &'a mut dyn Observer,
}

impl Observer for FoldObserver<'_> {
    fn phase(&mut self, name: &str) {
        self.observer.phase(&format!("fold {}: {name}", self.number));
    }

    fn begin(&mut self, step: &str, total: u64, unit: &'static str) -> SharedMeter {
        self.observer.begin(&format!("fold {}: {step}", self.number), total, unit)
    }

    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]) {
        self.observer.round(round, rounds, values);
    }

    fn note(&mut self, text: &str) {
        self.observer.note(&format!("fold {}: {text}", self.number));
    }
}
