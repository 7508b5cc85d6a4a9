//! `planetree train`

use super::help;
use super::progress::{Bar, Unit, is_live};
use super::remote::ClusterOptions;
use super::stats::{check_stats, peak_memory_bytes, write_stats};
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_base::size::{parse_size, shown_count};
use planetree_base::storage::{Access, Location};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::model::Model;
use planetree_model::predict::{PredictionsTable, with_scores};
use planetree_train::config::{self, EnsembleName};
use planetree_train::{
    CheckpointPlan, Every, LogEntry, NamedData, Observer, Outcome, TrainRequest, train, write_rounds,
    write_strength,
};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "Examples:
  planetree train --data train --valid vali --model model.parquet
  planetree train --preset pgbrt --data train --model model.parquet --set max_bin=25 --set num_trees=500
  planetree train --data s3://bucket/train --valid vali=s3://bucket/vali --model s3://bucket/model.parquet \\
      --set early_stopping_rounds=50 --rounds rounds.parquet
  planetree train --data S1 --data S2 --data S3 --valid S4 --model fold1.parquet
  planetree train --data train --model model.parquet --checkpoint-every 60s --resume";

/// Train a model on a dataset, or on several
///
/// Each round scans the data, adds integer gradients into histograms, and grows one tree. The
/// model is the same to the byte for any number of threads, any partitioning of the rows, in
/// memory or not, interrupted or not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = format!(
    "{EXAMPLES}\n\nPresets, for --preset:\n{}\nParameters, for --set and --config:\n{}",
    help::presets(),
    config::help_table()
))]
pub struct TrainArguments {
    /// The dataset to train on: a directory or a URL; repeat it to train on several as if they were one
    #[arg(long, value_name = "DATASET", required = true, num_args = 1..)]
    data: Vec<String>,

    /// A dataset to take metrics on each round; the first decides on early stopping
    #[arg(long, value_name = "[NAME=]DATASET")]
    valid: Vec<String>,

    /// The model file to write
    #[arg(long, value_name = "FILE")]
    model: String,

    #[arg(long, value_name = "NAME", help = help::preset_names())]
    preset: Option<String>,

    /// Parameters as a TOML file
    #[arg(long, value_name = "FILE.toml")]
    config: Option<String>,

    /// One parameter; repeat as needed. `planetree train --help` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// A model to start from; its trees become the first of the new model
    #[arg(long, value_name = "FILE")]
    start_model: Option<String>,

    /// Write the training log: a row per round, split and metric; .parquet (or no extension), .csv, .tsv, .json, .ndjson
    #[arg(long, value_name = "FILE")]
    rounds: Option<String>,

    /// Forests: write predictions of the training rows by the trees that did not see them
    #[arg(long, value_name = "FILE")]
    oob: Option<String>,

    /// Forests: write how well each tree ranks while it grows: one row per tree and split
    #[arg(long, value_name = "FILE")]
    strength: Option<String>,

    /// Write seconds per phase and peak memory as JSON
    #[arg(long, value_name = "FILE.json")]
    stats: Option<String>,

    /// Write a checkpoint every so many rounds (100) or seconds (60s) [default: 60s with --checkpoint or --resume]
    #[arg(long, value_name = "N|Ns", value_parser = parse_every)]
    checkpoint_every: Option<Every>,

    /// Where checkpoints go [default: the model's name with .checkpoint behind it]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<String>,

    /// Go on from the checkpoint, if there is one
    #[arg(long)]
    resume: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory to stay within, such as 2GiB; binned data that do not fit are mapped from a cache
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Directory of that cache [default: beside the (first) dataset]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
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

/// Runs the command.
pub fn run(arguments: &TrainArguments, quiet: bool) -> Result<()> {
    let begun = Instant::now();
    #[cfg_attr(not(feature = "cluster"), allow(unused_mut))]
    let mut request = request(arguments)?;
    let model_file = locate(arguments, &arguments.model)?;
    let rounds = arguments.rounds.as_ref().map(|text| locate(arguments, text)).transpose()?;
    let oob = arguments.oob.as_ref().map(|text| locate(arguments, text)).transpose()?;
    let strength = arguments.strength.as_ref().map(|text| locate(arguments, text)).transpose()?;
    check_outputs(arguments, &request, &model_file, [rounds.as_ref(), oob.as_ref(), strength.as_ref()])?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.map_or(0, NonZeroUsize::get))
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let mut reporter = Reporter::new(quiet);
    #[cfg(feature = "cluster")]
    let cluster = arguments.cluster.cluster(pool.current_num_threads(), arguments.instance_credentials)?;
    #[cfg(feature = "cluster")]
    if let Some(cluster) = &cluster {
        request.backend = Some(cluster.clone());
    }
    #[cfg(not(feature = "cluster"))]
    arguments.cluster.refuse()?;
    let outcome = pool.install(|| train(&request, &mut reporter));
    reporter.finish();
    let outcome = outcome?;
    if outcome.written.is_none() {
        pool.install(|| outcome.model.write(&model_file))?;
    }
    if let Some(rounds) = &rounds {
        write_rounds(&outcome.log, &request.parameters.convention, rounds)?;
    }
    if let (Some(oob), Some(scores)) = (&oob, &outcome.out_of_bag) {
        let left_out = write_out_of_bag(oob, &request, scores, &model_file)?;
        if left_out > 0 && !quiet {
            super::say(format_args!("{oob}: {left_out} rows were seen by every tree and are left out"));
        }
    }
    if let (Some(strength), Some(courses)) = (&strength, &outcome.strength) {
        write_strength(courses, strength)?;
    }
    // The model is there: its checkpoint has served.
    if let Some(plan) = &request.checkpoint {
        plan.location.remove()?;
    }
    if let Some(stats) = &arguments.stats {
        #[cfg(feature = "cluster")]
        let traffic = cluster.map(|cluster| traffic_figures(&cluster.traffic()));
        #[cfg(not(feature = "cluster"))]
        let traffic: Option<serde_json::Value> = None;
        write_figures(&locate(arguments, stats)?, &outcome, begun, pool.current_num_threads(), traffic)?;
    }
    if !quiet {
        let size = outcome.size();
        super::say(format_args!(
            "{model_file}: {} trees, {} leaves, in {:.1} s",
            shown_count(size.trees),
            shown_count(size.leaves),
            begun.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}

/// What went over the line to a cluster: how long levels took and how many bytes they were.
#[cfg(feature = "cluster")]
fn traffic_figures(traffic: &planetree_cluster::Traffic) -> serde_json::Value {
    let sorted = |number: fn(&(f64, u64, u64)) -> f64| {
        let mut numbers: Vec<f64> = traffic.levels.iter().map(number).collect();
        numbers.sort_by(f64::total_cmp);
        move |share: f64| numbers.get((share * numbers.len() as f64) as usize).copied().unwrap_or_default()
    };
    let (time, bytes, most) =
        (sorted(|level| level.0), sorted(|level| level.1 as f64), sorted(|level| level.2 as f64));
    json!({
        "levels": traffic.levels.len(),
        "level_ms_p50": time(0.5),
        "level_ms_p95": time(0.95),
        "level_bytes_p50": bytes(0.5),
        "level_bytes_p95": bytes(0.95),
        "level_bytes_at_once_p95": most(0.95),
        "received_bytes": traffic.levels.iter().map(|level| level.1).sum::<u64>(),
        "sent_bytes": traffic.sent,
        "repeated": traffic.repeated,
        "rebuilt": traffic.rebuilt,
    })
}

/// Fails before the work where an output could not be written after it.
fn check_outputs(
    arguments: &TrainArguments,
    request: &TrainRequest,
    model: &Location,
    [rounds, oob, strength]: [Option<&Location>; 3],
) -> Result<()> {
    let stats = arguments.stats.as_ref().map(|text| locate(arguments, text)).transpose()?;
    let checkpoint = request.checkpoint.as_ref().map(|plan| &plan.location);
    let outputs = [Some(model), rounds, oob, strength, stats.as_ref(), checkpoint]
        .map(|output| output.map(Location::to_string));
    for (place, output) in outputs.iter().enumerate() {
        if let Some(output) = output
            && outputs[..place].contains(&Some(output.clone()))
        {
            return Err(Error::usage(
                format_args!("{output} is named for two outputs"),
                "give the model, the rounds, the predictions, the strength, the stats and the checkpoint a file each",
            ));
        }
    }
    TableWriter::check(model, TableKind::Model)?;
    if let Some(rounds) = rounds {
        TableWriter::check(rounds, TableKind::Rounds)?;
    }
    if let Some(oob) = oob {
        TableWriter::check(oob, TableKind::Predictions)?;
    }
    if let Some(strength) = strength {
        TableWriter::check(strength, TableKind::Strength)?;
    }
    stats.as_ref().map_or(Ok(()), check_stats)?;
    checkpoint.map_or(Ok(()), |checkpoint| TableWriter::check(checkpoint, TableKind::Model))
}

/// Writes the scores of the training rows; how many rows have none.
fn write_out_of_bag(
    file: &Location,
    request: &TrainRequest,
    scores: &[f64],
    model: &Location,
) -> Result<u64> {
    let readers = request.data.iter().map(DatasetReader::open).collect::<Result<Vec<_>>>()?;
    let mut table = PredictionsTable::create(file)?;
    let (mut rest, mut left_out) = (scores, 0);
    for reader in &readers {
        let (these, others) = rest.split_at(rest.len().min(reader.manifest().rows as usize));
        left_out += with_scores(reader, these, &mut |group| table.write(group))?;
        rest = others;
    }
    table.finish_unseen(model, &readers)?;
    Ok(left_out)
}

fn locate(arguments: &TrainArguments, text: &str) -> Result<Location> {
    let access = if arguments.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    Location::parse(text, access)
}

fn request(arguments: &TrainArguments) -> Result<TrainRequest> {
    let file = arguments.config.as_ref().map(|text| locate(arguments, text)).transpose()?;
    let parameters = config::load(arguments.preset.as_deref(), file.as_ref(), &arguments.set)?;
    let data = arguments.data.iter().map(|text| locate(arguments, text)).collect::<Result<Vec<_>>>()?;
    let mut validation = Vec::new();
    for text in &arguments.valid {
        // A name has no separators; `s3://bucket/a=b` is all path.
        let (name, path) = match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !name.contains(['/', ':', '.']) => {
                (name.to_owned(), path)
            }
            _ if arguments.valid.len() == 1 => ("valid".to_owned(), text.as_str()),
            _ => (file_name(text), text.as_str()),
        };
        validation.push(NamedData { name, location: locate(arguments, path)? });
    }
    let is_forest = parameters.ensemble == EnsembleName::Bag;
    if arguments.oob.is_some() && !is_forest {
        return Err(Error::usage(
            "--oob: boosting has nothing out of bag, for every tree builds on all those before",
            "choose a forest such as --preset rf-point, or leave --oob out",
        ));
    }
    if arguments.strength.is_some() && !is_forest {
        return Err(Error::usage(
            "--strength: a boosted tree ranks nothing by itself, for it builds on all those before",
            "choose a forest such as --preset rf-list, or leave --strength out",
        ));
    }
    let draws = parameters.bagging_fraction < 1.0
        || parameters.queries_per_tree.is_some()
        || parameters.forest.bootstrap;
    // Without a validation set the log says how good the forest is out of bag.
    let in_log = arguments.rounds.is_some() && validation.is_empty() && draws;
    let wants_checkpoints =
        arguments.checkpoint.is_some() || arguments.checkpoint_every.is_some() || arguments.resume;
    let checkpoint = if wants_checkpoints {
        let default = format!("{}.checkpoint", arguments.model);
        Some(CheckpointPlan {
            location: locate(arguments, arguments.checkpoint.as_ref().unwrap_or(&default))?,
            every: arguments.checkpoint_every.unwrap_or(Every::Time(Duration::from_secs(60))),
        })
    } else {
        None
    };
    let start =
        arguments.start_model.as_ref().map(|text| Model::read(&locate(arguments, text)?)).transpose()?;
    let cache = arguments.cache.clone().unwrap_or_else(|| match data.first() {
        Some(Location::Local(path)) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            path.with_file_name(format!("{name}.bins"))
        }
        _ => std::env::temp_dir().join("planetree-bins"),
    });
    Ok(TrainRequest {
        data,
        validation,
        parameters,
        start,
        out_of_bag: is_forest && (arguments.oob.is_some() || in_log),
        strength: arguments.strength.is_some(),
        stream_to: Some(locate(arguments, &arguments.model)?),
        memory_limit: arguments.memory_limit,
        cache,
        checkpoint,
        resume: arguments.resume,
        objective: None,
        backend: None,
    })
}

fn file_name(text: &str) -> String {
    text.trim_end_matches('/').rsplit('/').next().unwrap_or(text).to_owned()
}

fn write_figures(
    location: &Location,
    outcome: &Outcome,
    begun: Instant,
    threads: usize,
    traffic: Option<serde_json::Value>,
) -> Result<()> {
    let mut stats = json!({
        "load_s": outcome.seconds.load,
        "bin_s": outcome.seconds.bin,
        "train_s": outcome.seconds.train,
        "total_s": begun.elapsed().as_secs_f64(),
        "trees": outcome.size().trees,
        "rounds": outcome.model.rounds,
        "best_round": outcome.best.map(|best| best.round),
        "thread_count": threads,
        "peak_memory_bytes": peak_memory_bytes(),
    });
    if let (Some(traffic), Some(stats)) = (traffic, stats.as_object_mut()) {
        stats.insert("cluster".to_owned(), traffic);
    }
    write_stats(location, &stats)
}

/// Tells the user how it goes: a bar on a terminal, else a line now and then.
pub(super) struct Reporter {
    quiet: bool,
    live: bool,
    /// What is under way.
    step: String,
    bar: Option<Arc<Bar>>,
    /// Whether the bar counts rounds.
    in_rounds: bool,
    /// The last round, when it was not shown.
    unshown: Option<String>,
}

impl Reporter {
    pub(super) fn new(quiet: bool) -> Self {
        let step = "training".to_owned();
        Reporter { quiet, live: is_live(quiet), step, bar: None, in_rounds: false, unshown: None }
    }

    /// Takes the bar away; the last round stays.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        self.in_rounds = false;
        if let Some(text) = self.unshown.take() {
            super::say(format_args!("{text}"));
        }
    }

    /// Shows another bar, which is drawn when the one before is gone.
    fn show(&mut self, in_rounds: bool, draw: impl FnOnce() -> Bar) -> Arc<Bar> {
        if let Some(before) = self.bar.take() {
            before.clear();
        }
        self.in_rounds = in_rounds;
        self.bar.insert(Arc::new(draw())).clone()
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.bar.iter().for_each(|bar| bar.clear());
    }
}

impl Observer for Reporter {
    fn phase(&mut self, name: &str) {
        name.clone_into(&mut self.step);
        if self.live {
            self.show(false, || Bar::turning(name));
        }
    }

    fn begin(&mut self, step: &str, total: u64, unit: &'static str) -> SharedMeter {
        match self.live {
            true => self.show(false, || Bar::start(step, Some(total), Unit::Things(unit))),
            false => unwatched(),
        }
    }

    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]) {
        if self.quiet {
            return;
        }
        let values: Vec<String> = values
            .iter()
            .map(|entry| format!("{} {}: {:.6}", entry.split, entry.metric, entry.value))
            .collect();
        let values = values.join("  ");
        let text = format!("[{round}] {values}");
        if self.live {
            let bar = match &self.bar {
                Some(bar) if self.in_rounds => bar.clone(),
                _ => {
                    let step = self.step.clone();
                    let bar =
                        self.show(true, || Bar::start(&step, Some(rounds.into()), Unit::Things("trees")));
                    bar.resume(u64::from(round) - 1);
                    bar
                }
            };
            bar.set(round.into());
            bar.say(values);
            self.unshown = Some(text);
        } else if round.is_multiple_of(10) || round == 1 || round == rounds {
            super::say(format_args!("{text}"));
            self.unshown = None;
        } else {
            self.unshown = Some(text);
        }
    }

    fn note(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => bar.note(text),
            None => {
                self.finish();
                super::say(format_args!("{text}"));
            }
        }
    }
}
