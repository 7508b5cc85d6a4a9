//! Implements `planetree cv`.

mod report;

use super::baselines::BaselineOptions;
use super::columns::{ColumnOptions, UnlabelledOptions};
use super::options::{JsonOptions, ParameterOptions, StoreOptions, ThreadOptions, parse_whole};
use super::progress::is_live;
use super::tables::InputData;
use super::train::TrainingProgress;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::progress::SharedMeter;
use planetree_base::size::parse_size;
use planetree_base::storage::Location;
use planetree_metric::{Convention, Metric};
use planetree_run::cv::{
    CrossValidation, CvRequest, FoldResources, SearchSpace, Trial, ValidationPart, check_trials, search,
};
use planetree_train::config::{TrainingPlan, kind_of};
use planetree_train::{LogEntry, Observer};
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  planetree cv --data S1 S2 S3 S4 S5 --preset planet --output mq2008-cv
  planetree cv --data judgments --folds 10 --set num_trees=500 --output cv
  planetree cv --data judgments.csv --preset lambdamart --ignore-columns 'raw_*' --output cv
  planetree cv --data judgments --search search.toml --output search --json

A search file, for --search:
  trials = 30
  seed = 1
  [search]
  learning_rate = { min = 0.02, max = 0.3, log = true }
  max_depth = [4, 6, 8]";

/// Cross-validate: train, validate and test on rotating parts of the data
///
/// One dataset is split into parts by query; several datasets are used as the parts. As in LETOR, each fold trains on
/// all parts but two. It validates on one of the two to select the best round, and tests on the other. Running the same
/// command again resumes an interrupted cross-validation.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CvArguments {
    /// Dataset to split into parts, or several datasets to use as the parts: directories or URLs. CSV, Parquet and LETOR
    /// files are converted to temporary datasets first
    #[arg(long, value_name = "DATASET", required = true, num_args = 1..)]
    data: Vec<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    #[command(flatten)]
    unlabelled: UnlabelledOptions,

    /// Number of folds; a single dataset is split into as many parts [default: 5]
    #[arg(long, value_name = "K", value_parser = parse_folds)]
    folds: Option<usize>,

    /// Random seed for assigning queries to parts
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_whole::<u64>)]
    fold_seed: u64,

    /// Use no validation part: train on all parts but the test part, and keep all trees
    #[arg(long)]
    no_valid: bool,

    /// Leave the validation part unused: train on all parts but two, as with validation, and keep all trees. Forests
    /// then train on the same rows as boosted models that need validation
    #[arg(long, conflicts_with = "no_valid")]
    unused_valid: bool,

    /// Choose the round for each of the metrics by itself, on the validation part. The predictions are those of the
    /// first metric
    #[arg(long, conflicts_with_all = ["no_valid", "unused_valid", "search"])]
    each_metric: bool,

    /// Do not keep the models of the folds
    #[arg(long, conflicts_with = "search")]
    no_models: bool,

    /// Output directory: a path or a URL
    #[arg(long, short, value_name = "DIR")]
    output: String,

    #[command(flatten)]
    parameters: ParameterOptions,

    /// TOML file with parameters to search: lists and ranges of values. Trials are ranked on the validation parts by
    /// the first metric of the parameter `metric`
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["no_valid", "unused_valid"])]
    search: Option<String>,

    /// Metrics to compute on the test parts [default: the first metric of the parameter `metric`, ndcg@1,3,5,10, err,
    /// map]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    metrics: Vec<String>,

    /// Metric convention for validation and test: a preset such as letor4, optionally followed by switches [default: the
    /// parameter `convention`]
    #[arg(long, value_name = "NAME[,SWITCH=VALUE]...")]
    convention: Option<String>,

    #[command(flatten)]
    baselines: BaselineOptions,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    /// Memory limit of each training run, such as 2GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Directory for binned data that exceed the memory limit [default: bins in the output directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    #[command(flatten)]
    store: StoreOptions,
}

/// Parses the number of folds. How many are needed depends on the other options.
fn parse_folds(text: &str) -> std::result::Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number, such as 5".to_owned())
}

/// Runs the command.
pub(crate) fn run(arguments: &CvArguments, quiet: bool) -> Result<()> {
    InputData::new(&arguments.columns, &arguments.store, &arguments.threads, quiet)
        .with_labels(&arguments.unlabelled)
        .with_memory_limit(arguments.memory_limit)
        .run("cv", |input| cross_validate(arguments, input, quiet))
}

fn cross_validate(arguments: &CvArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let load = |trial: Option<&Trial>| -> Result<TrainingPlan> {
        let choices = trial.map_or(&[][..], |trial| &trial.choices);
        arguments.parameters.load(&arguments.store, choices)
    };
    let space = arguments
        .search
        .as_ref()
        .map(|text| SearchSpace::read(&arguments.store.locate(text)?))
        .transpose()?;
    if let Some(space) = &space {
        arguments.check_searched(space)?;
    }
    let trials = space.as_ref().map(|space| check_trials(space, &|trial| load(Some(trial)))).transpose()?;
    let plan = match trials.as_ref().and_then(|trials| trials.first()) {
        Some(first) => first.plan.clone(),
        None => load(None)?,
    };
    let baselines = arguments.baselines.named(arguments.fold_seed)?;
    if space.is_some() && !baselines.is_empty() {
        return Err(Error::usage(
            "--feature and --random do not work with --search",
            "evaluate them on the same data: planetree evaluate --data DATASET --feature NAME",
        ));
    }
    let mut request = arguments.request(&plan)?;
    let settled = request.fold_plan(&plan)?;
    request.check()?; // before tables are converted, which may take long
    request.data = arguments.data.iter().map(|path| input.dataset(path)).collect::<Result<_>>()?;
    let pool = arguments.threads.pool()?;
    let mut progress = CvProgress::new(quiet);
    let output = request.output.clone();
    let outcome = pool.install(|| -> Result<report::CvSummary> {
        let validation = CrossValidation::prepare(request, &mut progress)?;
        match (&space, &trials) {
            (Some(space), Some(trials)) => {
                Ok(report::of_search(&search(&validation, space, trials, &mut progress)?, &output))
            }
            _ => {
                let folds = validation.run(&settled, &output, &mut progress)?;
                let label_map = settled.first().label_map.as_ref();
                let baselines = validation.baselines(&baselines, label_map, &output)?;
                Ok(report::of_folds(&folds, &baselines, validation.convention(), &output))
            }
        }
    });
    drop(progress);
    let summary = outcome?;
    arguments.json.print(|| summary.text, || summary.json)
}

impl CvArguments {
    /// Fails if a parameter is both set and searched: its value would be ignored.
    fn check_searched(&self, space: &SearchSpace) -> Result<()> {
        for written in self.parameters.set_names() {
            let Ok((name, _)) = kind_of(written, "--set") else { continue }; // reported when parameters are loaded
            if space.keys().iter().any(|key| key.name == name) {
                return Err(Error::usage(
                    format_args!("--set {written}: the search varies {name}, too"),
                    "remove it from --set, or from the search file",
                ));
            }
        }
        Ok(())
    }

    /// Returns what to cross-validate. Its data are as given: tables are not converted yet.
    fn request(&self, plan: &TrainingPlan) -> Result<CvRequest> {
        let output = self.store.locate(&self.output)?;
        let (metrics, convention) = (self.test_metrics(plan)?, self.convention(plan)?);
        let data = self.data.iter().map(|path| self.store.locate(path)).collect::<Result<_>>()?;
        let cache = self.cache.clone().unwrap_or_else(|| match &output {
            Location::Local(path) => path.join("bins"),
            Location::Remote(_) => std::env::temp_dir().join("planetree-bins"),
        });
        Ok(CvRequest {
            data,
            folds: self.folds,
            fold_seed: self.fold_seed,
            validation: match (self.no_valid, self.unused_valid) {
                (false, false) => ValidationPart::Validate,
                (true, _) => ValidationPart::Train,
                (false, true) => ValidationPart::Unused,
            },
            output,
            metrics,
            convention,
            each_metric: self.each_metric,
            keep_models: !self.no_models,
            resources: FoldResources { memory_limit: self.memory_limit, cache },
        })
    }

    /// Returns the metric convention for validation and test, from the option or the parameter.
    fn convention(&self, plan: &TrainingPlan) -> Result<Convention> {
        let Some(text) = &self.convention else { return Ok(plan.convention().clone()) };
        let convention: Convention = text.parse()?;
        if *plan.convention() != Convention::default() && *plan.convention() != convention {
            return Err(Error::usage(
                format_args!(
                    "--convention is {convention}, but the parameter `convention` is {}",
                    plan.convention()
                ),
                "remove one of them: validation and test parts use the same convention",
            ));
        }
        Ok(convention)
    }

    /// Returns the metrics to compute on the test parts, without duplicates.
    fn test_metrics(&self, plan: &TrainingPlan) -> Result<Vec<Metric>> {
        const DEFAULT: [&str; 6] = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "err", "map"];
        let names: Vec<&str> = match &self.metrics[..] {
            [] => DEFAULT.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        let mut metrics: Vec<Metric> = Vec::new();
        if self.metrics.is_empty() || self.search.is_some() {
            metrics.extend(plan.selection_metric()); // the metric that selects rounds and trials, for comparison
        }
        for name in names {
            let metric = name.parse()?;
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        Ok(metrics)
    }
}

/// Shows the progress of a cross-validation. Rounds are shown only on a terminal, because there are many. They
/// disappear when the training run ends.
struct CvProgress {
    training: TrainingProgress,
    live: bool,
}

impl CvProgress {
    fn new(quiet: bool) -> Self {
        CvProgress { training: TrainingProgress::new(quiet), live: is_live(quiet) }
    }
}

impl Observer for CvProgress {
    fn phase(&mut self, name: &str) {
        self.training.restart();
        self.training.phase(name);
    }

    fn begin(&mut self, step: &str, total: u64, unit: &'static str) -> SharedMeter {
        self.training.begin(step, total, unit)
    }

    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]) {
        if self.live {
            self.training.round(round, rounds, values);
        }
    }

    fn note(&mut self, text: &str) {
        self.training.note(text);
    }
}
