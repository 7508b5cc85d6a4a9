//! Implements `planetree train`.

mod outputs;
mod progress;
mod request;
mod tables;

pub(crate) use progress::TrainingProgress;

use super::columns::{ColumnOptions, UnlabelledOptions};
use super::execution::ExecutionOptions;
use super::help;
use super::options::{JsonOptions, ParameterOptions, check_is_not_read, split_name};
use super::remote::RemoteCluster;
use super::stats::{StatsOptions, write_stats};
use super::tables::InputData;
use clap::Args;
use outputs::{TrainOutputs, train_stats};
use planetree_base::error::Result;
use planetree_base::size::{counted, parse_size};
use planetree_train::{Every, Outcome, TrainRequest, config, train};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tables::TrainingTables;

const EXAMPLES: &str = "Examples:
  planetree train --data train --valid vali --model model.parquet
  planetree train --preset pgbrt --data train --model model.parquet --max-bin 25 --num-trees 500
  planetree train --data s3://bucket/train --valid vali=s3://bucket/vali \\
      --model s3://bucket/model.parquet --set early_stopping_rounds=50 --rounds rounds.parquet
  planetree train --data train --valid vali --model last.parquet --model-for err=err.parquet \\
      --model-for ndcg@10=ndcg.parquet
  planetree train --data judgments.csv --query-column session --ignore-columns 'raw_*' -o model
  planetree train --data S1 --data S2 --data S3 --valid S4 --model fold1.parquet
  planetree train --data train --model model.parquet --checkpoint-every 60s --resume";

/// Train a model on one or more datasets
///
/// Each round scans the data, adds integer gradients to histograms, and grows one tree. The model is
/// byte-identical for any number of threads and any partitioning of the rows, in memory or on disk,
/// interrupted or not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = format!(
    "{EXAMPLES}\n\nPresets, for --preset:\n{}\nParameters, for --set and --config:\n{}",
    help::presets(),
    config::help_table()
))]
pub(crate) struct TrainArguments {
    /// Dataset to train on: a directory or a URL; may be repeated to train on several as if they were one. CSV, Parquet
    /// and LETOR files are converted to a temporary dataset first
    #[arg(long, value_name = "DATASET", required = true, num_args = 1..)]
    data: Vec<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    #[command(flatten)]
    unlabelled: UnlabelledOptions,

    /// Train only on the features that all datasets of --data have
    #[arg(long)]
    common_features: bool,

    /// Validation dataset, evaluated after every round; may be repeated, and the first one controls early stopping
    #[arg(long, value_name = "[NAME=]DATASET")]
    valid: Vec<String>,

    /// Model file to write
    #[arg(long, short = 'o', alias = "output", value_name = "FILE")]
    model: String,

    /// Also write the model at the best round of a metric on the first validation set; may be repeated
    #[arg(long, value_name = "METRIC=FILE")]
    model_for: Vec<String>,

    #[command(flatten)]
    parameters: ParameterOptions,

    /// Model to start from. More trees are added to a boosted model; on top of any other model, boosted trees are trained as a separate part
    #[arg(long, value_name = "FILE")]
    start_model: Option<String>,

    /// Scores to start boosting from, as init_score in LightGBM: predictions of the training data, in any format that evaluate reads.
    /// May be repeated with the names of the validation sets, each of which needs start scores, too. They are not part of the
    /// model: predict adds them with the same option
    #[arg(long, value_name = "[NAME=]FILE")]
    start_scores: Vec<String>,

    /// Costs of features: CSV with the columns feature, cost and, optionally, group (its cost is paid once), or TOML. The
    /// split with the highest gain minus cost_lambda times the cost of its feature is chosen; features that earlier trees
    /// use are free
    #[arg(long, value_name = "FILE")]
    costs: Option<String>,

    /// Factor of the costs, in units of gain; 0 ignores them. Same as --set cost_lambda=NUMBER [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "costs")]
    cost_lambda: Option<String>,

    /// Forests: trees per batch; features that a batch uses are free from the next batch on. Same as --set
    /// cost_batch=TREES [default: 8]
    #[arg(long, value_name = "TREES", requires = "costs")]
    cost_batch: Option<String>,

    /// Write the training log, one row per round, split and metric: .parquet (or no extension), .csv, .tsv, .json, .ndjson
    #[arg(long, value_name = "FILE")]
    rounds: Option<String>,

    /// Forests: write out-of-bag predictions, in which each training row is scored by the trees that did not see it
    #[arg(long, value_name = "FILE")]
    oob: Option<String>,

    /// Forests: write how well each tree ranks while it grows, one row per tree and split
    #[arg(long, value_name = "FILE")]
    strength: Option<String>,

    #[command(flatten)]
    stats: StatsOptions,

    #[command(flatten)]
    json: JsonOptions,

    /// Interval between checkpoints, in rounds (100) or seconds (60s) [default: 60s with --checkpoint or --resume]
    #[arg(long, value_name = "N|Ns", value_parser = parse_every)]
    checkpoint_every: Option<Every>,

    /// Checkpoint file [default: the model file with the suffix .checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<String>,

    /// Resume from the checkpoint if there is one
    #[arg(long)]
    resume: bool,

    /// Memory limit, such as 2GiB; binned data that do not fit are mapped from a cache on disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Boosting: store binned data once, by row, instead of by row and by column: half the memory, somewhat slower, the same
    /// model
    #[arg(long)]
    compact: bool,

    /// Directory for the cache of binned data [default: next to the first dataset]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    #[command(flatten)]
    execution: ExecutionOptions,
}

fn parse_every(text: &str) -> std::result::Result<Every, String> {
    let problem = || "expected rounds such as 100, or seconds such as 60s".to_owned();
    match text.strip_suffix('s') {
        Some(seconds) => {
            let seconds: f64 = seconds.parse().map_err(|_| problem())?;
            Duration::try_from_secs_f64(seconds).map(Every::Time).map_err(|_| problem())
        }
        None => match text.parse() {
            Ok(rounds) if rounds > 0 => Ok(Every::Rounds(rounds)),
            _ => Err(problem()),
        },
    }
}

impl TrainArguments {
    /// Fails if an output would replace an input.
    fn check_outputs(&self, input: &InputData<'_>) -> Result<()> {
        let store = &self.execution.store;
        let valid = self.valid.iter().map(|text| split_name(text).1);
        let mut read = Vec::new();
        for path in self.data.iter().map(String::as_str).chain(valid) {
            read.extend(input.files(path)?);
        }
        for text in &self.start_scores {
            read.push(store.locate(split_name(text).1)?);
        }
        let outputs = [("--rounds", &self.rounds), ("--oob", &self.oob), ("--strength", &self.strength)];
        for (option, file) in outputs {
            if let Some(file) = file {
                check_is_not_read(&store.locate(file)?, option, &read)?;
            }
        }
        Ok(())
    }
}

/// Logs what is about to be trained, and on what.
fn log_request(request: &TrainRequest, threads: usize) {
    for data in &request.data {
        tracing::info!("training data: {data}");
    }
    for set in &request.validation {
        tracing::info!("validation data: {} = {}", set.name, set.location);
    }
    tracing::info!("{}", counted(threads as u64, "thread", "threads"));
}

/// Returns the size of the model, with the leaves of its trees.
fn size_of(outcome: &Outcome) -> String {
    let size = outcome.size();
    let counts = [
        (size.trees, "tree", "trees"),
        (size.leaves, "leaf", "leaves"),
        (outcome.model.weight_count(), "weight", "weights"),
    ];
    let present = counts.into_iter().filter(|(count, ..)| *count > 0);
    let texts: Vec<String> = present.map(|(count, one, many)| counted(count, one, many)).collect();
    if texts.is_empty() { outcome.model.size_text() } else { texts.join(", ") }
}

/// Runs the command.
pub(crate) fn run(arguments: &TrainArguments, quiet: bool) -> Result<()> {
    InputData::of_execution(&arguments.columns, &arguments.execution, quiet)
        .with_labels(&arguments.unlabelled)
        .with_memory_limit(arguments.memory_limit)
        .run("train", |input| train_model(arguments, input, quiet))
}

fn train_model(arguments: &TrainArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let started = Instant::now();
    // Before tables are converted, which may take long.
    arguments.check_parameters()?;
    arguments.check_outputs(input)?;
    let tables = TrainingTables::prepare(arguments, input)?;
    let mut request = arguments.request(&tables)?;
    let outputs = TrainOutputs::check(arguments, &request)?;
    let pool = arguments.execution.threads.pool()?;
    let threads = pool.current_num_threads();
    let cluster = arguments.execution.cluster(threads)?;
    request.backend = cluster.as_ref().map(RemoteCluster::backend);
    if !quiet && !arguments.parameters.chooses_objective() {
        super::message(format_args!(
            "note: regression on the labels, since no preset or objective was chosen; --preset lambdamart optimises the ranking"
        ));
    }
    log_request(&request, threads);
    let mut progress = TrainingProgress::new(quiet);
    let outcome = pool.install(|| train(&request, &mut progress));
    progress.finish();
    let outcome = outcome?;
    outputs.write(&request, &outcome, &pool, quiet)?;
    // The model is complete, so its checkpoint is no longer needed.
    if let Some(plan) = &request.checkpoint {
        plan.location.remove()?;
    }
    let traffic = cluster.as_ref().map(RemoteCluster::level_traffic);
    let mut stats = train_stats(&outcome, started, threads, traffic);
    if let Some(file) = &outputs.stats {
        write_stats(file, &stats)?;
    }
    if arguments.json.json() {
        stats["model"] = outputs.model.to_string().into();
        super::print(&format!("{stats}\n"))?;
    }
    if !quiet {
        super::message(format_args!(
            "{}: {}, in {:.1} s",
            outputs.model,
            size_of(&outcome),
            started.elapsed().as_secs_f64()
        ));
        for (file, best) in outputs.best_models.iter().zip(&outcome.best_models) {
            let (metric, round, rounds) = (best.metric, best.best.round, best.rounds);
            let of_stage = match request.plan.stages.len() {
                1 => String::new(),
                stage => format!(" of stage {stage}"),
            };
            super::message(format_args!(
                "{file}: the best round{of_stage} for {metric} is {round} of {rounds}, with {:.6}",
                best.best.value
            ));
        }
    }
    Ok(())
}
