//! How good is a ranker on queries it has not seen? Folds over parts of the data, each trained on most
//! parts, validated on one and tested on another; and a search for the parameters that do best.
//!
//! ```text
//! dataset ──deal──► parts ──rotate──► folds: train ──► best round on the validation part ──► test part
//! several datasets ──┘                                     │                                     │
//!                                         ranks the trials of a search              predictions, metrics
//! ```

mod deal;
mod fold;
mod measure;
mod plan;
mod queries;
mod rotation;
mod search;
mod space;
mod spread;
mod tables;
mod trials;

pub use fold::{FoldRecord, Means, MetricValue};
pub use search::{CheckedTrial, SearchOutcome, TrialResult, check_trials, search};
pub use space::{Space, Trial};
pub use spread::Spread;

use deal::{Dealing, check_count, deal};
use fold::Fold;
use plan::Plan;
use planetree_base::error::{Error, Result};
use planetree_base::progress::SharedMeter;
use planetree_base::storage::{Location, interrupt};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_train::config::Parameters;
use planetree_train::{LogEntry, Observer};
use rotation::{Rotation, rotations};
use tables::{Tested, write_folds, write_tested};

/// What to cross-validate.
#[derive(Debug, Clone)]
pub struct CvRequest {
    /// One dataset, whose queries are dealt to folds, or several, each a part.
    pub data: Vec<Location>,
    /// Into how many folds one dataset is dealt.
    pub folds: Option<usize>,
    /// The key of the dealing.
    pub fold_seed: u64,
    /// Whether a part is held back to choose the number of trees on.
    pub validate: bool,
    /// The directory of all outputs.
    pub output: Location,
    /// The metrics of the test parts.
    pub metrics: Vec<Metric>,
    /// The rules of all metrics: of the test parts, and of the validation parts, which choose the best round.
    pub convention: Convention,
    /// How folds are made.
    pub means: Means,
}

impl CvRequest {
    /// The parameters of every fold. With a validation part the best round of all is kept: a patience
    /// that no training outlasts, unless another one is given. Validation and test parts are judged by one convention.
    pub fn settled(&self, parameters: &Parameters) -> Result<Parameters> {
        let early_stopping_rounds = match (self.validate, parameters.early_stopping_rounds) {
            (true, given) => Some(given.unwrap_or(parameters.num_trees)),
            (false, None) => None,
            (false, Some(rounds)) => {
                return Err(Error::usage(
                    format_args!(
                        "early_stopping_rounds = {rounds}: with --no-valid there is no validation part"
                    ),
                    "leave out --no-valid, or set early_stopping_rounds=0",
                ));
            }
        };
        let convention = match (self.convention.needs_documents(), self.validate) {
            (false, _) => self.convention.clone(),
            (true, true) => {
                return Err(Error::usage(
                    format_args!(
                        "convention {}: ties=docid cannot be followed on validation parts: training knows no documents",
                        self.convention
                    ),
                    "choose other ties, such as ties=input, or pass --no-valid",
                ));
            }
            // Nothing but the logs of the trainings is judged by it.
            (true, false) => parameters.convention.clone(),
        };
        Ok(Parameters { early_stopping_rounds, convention, ..parameters.clone() })
    }
}

/// How many folds one dataset is dealt into when nobody says.
const DEFAULT_FOLDS: usize = 5;

/// What came out of a fold.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldResult {
    /// Counted from 1.
    pub number: usize,
    /// What is known of its training.
    pub record: FoldRecord,
    /// The metrics of the test part.
    pub test: Vec<MetricValue>,
    /// Queries of the validation part.
    pub valid_queries: u64,
    /// Queries of the test part.
    pub test_queries: u64,
}

/// Parts that are ready, and how folds rotate over them.
pub struct CrossValidation {
    request: CvRequest,
    parts: Vec<DatasetReader>,
    rotations: Vec<Rotation>,
}

impl CrossValidation {
    /// Opens or deals the parts and checks what can be checked before the work.
    pub fn prepare(request: CvRequest, observer: &mut dyn Observer) -> Result<Self> {
        if request.data.len() > 1
            && let Some(folds) = request.folds.filter(|folds| *folds != request.data.len())
        {
            return Err(Error::usage(
                format_args!("--folds {folds}, but there are {} datasets", request.data.len()),
                "leave --folds out: every dataset is a part; or name one dataset to be dealt into folds",
            ));
        }
        let count =
            if request.data.len() > 1 { request.data.len() } else { request.folds.unwrap_or(DEFAULT_FOLDS) };
        let rotations = rotations(count, request.validate)?;
        let readers = request.data.iter().map(DatasetReader::open).collect::<Result<Vec<_>>>()?;
        readers.iter().try_for_each(check_labelled)?;
        let output = &request.output;
        TableWriter::check(&output.join("folds.parquet"), TableKind::Folds)?;
        let plan = Plan::of(&request, count, &readers)?;
        plan.check(output)?;
        let parts = match &readers[..] {
            [one] => {
                check_count(one, count)?;
                plan.write(output)?;
                let dealing = Dealing { parts: count, seed: request.fold_seed };
                deal(one, dealing, &output.join("parts"), &mut |text| observer.note(text))?
            }
            _ => {
                queries::check_apart(&readers)?;
                plan.write(output)?;
                readers
            }
        };
        Ok(CrossValidation { request, parts, rotations })
    }

    /// The rules of all metrics.
    pub fn convention(&self) -> &Convention {
        &self.request.convention
    }

    /// Where everything goes.
    pub fn output(&self) -> &Location {
        &self.request.output
    }

    /// Makes all folds that are not there yet, and the tables over all of them, below `output`.
    pub fn run(
        &self,
        parameters: &Parameters,
        output: &Location,
        observer: &mut dyn Observer,
    ) -> Result<Vec<FoldResult>> {
        let parameters = self.request.settled(parameters)?;
        let mut records = Vec::new();
        let mut tested = Vec::new();
        for (place, rotation) in self.rotations.iter().enumerate() {
            interrupt::check().map_err(|error| going_on(error, output))?;
            let fold = self.fold(place + 1, rotation, &parameters, output);
            let record = match fold.find()? {
                Some(record) => {
                    observer.note(&format!("fold {}: done before", fold.number));
                    record
                }
                None => make(&fold, &self.request.means, self.rotations.len(), observer)
                    .map_err(|error| going_on(in_fold(error, fold.number), output))?,
            };
            tested.push((rotation.test, Tested { fold: fold.number, predictions: fold.predictions() }));
            records.push(record);
        }
        // In the order of the parts, so that rows come in the order of the data.
        tested.sort_by_key(|(part, _)| *part);
        let tested: Vec<Tested> = tested.into_iter().map(|(_, tested)| tested).collect();
        let means = write_tested(&tested, &self.request.metrics, &self.request.convention, output)
            .map_err(|error| going_on(error, output))?;
        let mut folds = Vec::new();
        for ((place, rotation), record) in self.rotations.iter().enumerate().zip(records) {
            let queries = |part: usize| self.parts[part].manifest().queries;
            let means = tested.iter().zip(&means).find(|(tested, _)| tested.fold == place + 1);
            let values = means.into_iter().flat_map(|(_, means)| means);
            folds.push(FoldResult {
                number: place + 1,
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

    fn fold(
        &self,
        number: usize,
        rotation: &Rotation,
        parameters: &Parameters,
        output: &Location,
    ) -> Fold<'_> {
        Fold {
            number,
            train: rotation.train.iter().map(|part| &self.parts[*part]).collect(),
            valid: rotation.valid.map(|part| &self.parts[part]),
            test: &self.parts[rotation.test],
            parameters: parameters.clone(),
            directory: output.join(&format!("folds/{number}")),
        }
    }
}

fn make(fold: &Fold<'_>, means: &Means, folds: usize, observer: &mut dyn Observer) -> Result<FoldRecord> {
    let number = fold.number;
    observer.phase(&format!("fold {number} of {folds}"));
    let record = fold.make(means, &mut InFold { number, observer })?;
    let first = record.valid.first().map_or(String::new(), |value| {
        format!(", {} {:.4} on the validation part", value.metric, value.value)
    });
    observer.note(&format!("fold {number} of {folds}: {:.1} s{first}", record.seconds));
    Ok(record)
}

/// Mean and deviation of every metric over the folds, in the order of the first.
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

/// Training needs labels everywhere, and every part is trained on in some fold.
fn check_labelled(reader: &DatasetReader) -> Result<()> {
    let (rows, unlabelled) = (reader.manifest().rows, reader.manifest().unlabelled);
    if rows == 0 || unlabelled > 0 {
        let problem = match rows {
            0 => "there are no rows".to_owned(),
            _ => format!("{unlabelled} of {rows} rows have no label"),
        };
        return Err(Error::place(reader.location(), problem, "name datasets with a label in every row"));
    }
    Ok(())
}

/// Says which fold a problem is of.
fn in_fold(error: Error, number: usize) -> Error {
    match error {
        Error::Usage { problem, remedy } => Error::usage(format_args!("fold {number}: {problem}"), remedy),
        Error::Place { place, problem, remedy } => {
            Error::place(format_args!("fold {number}: {place}"), problem, remedy)
        }
        Error::Untrainable(inner) => Error::Untrainable(Box::new(in_fold(*inner, number))),
        other => other,
    }
}

/// What is done stays done, which an interruption should say.
fn going_on(error: Error, output: &Location) -> Error {
    match error {
        Error::Interrupted | Error::Stopped { .. } => Error::place(
            output,
            "interrupted; what was complete stays",
            "run the same command again to go on",
        ),
        other => other,
    }
}

/// Passes on what a training says, under the number of its fold.
struct InFold<'a> {
    number: usize,
    observer: &'a mut dyn Observer,
}

impl Observer for InFold<'_> {
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
