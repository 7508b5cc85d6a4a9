//! `planetree cv`

mod report;

use super::help;
use super::progress::is_live;
use super::train::Reporter;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::progress::SharedMeter;
use planetree_base::size::parse_size;
use planetree_base::storage::{Access, Location};
use planetree_metric::{Convention, Metric};
use planetree_run::cv::{CrossValidation, CvRequest, Means, Space, Trial, check_trials, search};
use planetree_train::config::{self, Parameters};
use planetree_train::{LogEntry, Observer};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  planetree cv --data S1 S2 S3 S4 S5 --preset planet --output mq2008-cv
  planetree cv --data judgments --folds 10 --set num_trees=500 --output cv
  planetree cv --data judgments --search search.toml --output search --json

A search file, for --search:
  trials = 30
  seed = 1
  [search]
  learning_rate = { min = 0.02, max = 0.3, log = true }
  max_depth = [4, 6, 8]";

/// Cross-validate: train, validate and test on rotating parts of the data
///
/// One dataset is dealt into parts of whole queries; of several, each is a part. Every fold trains on all
/// parts but two, keeps the trees up to the best round on the next one, and is tested on the last, as the
/// folds of LETOR do. A run that was stopped goes on where it was when the same command is run again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CvArguments {
    /// The dataset to deal into parts, or several that are the parts: directories or URLs
    #[arg(long, value_name = "DATASET", required = true, num_args = 1..)]
    data: Vec<String>,

    /// Parts that one dataset is dealt into, and folds [default: 5]
    #[arg(long, value_name = "K")]
    folds: Option<usize>,

    /// Key by which queries are dealt to parts
    #[arg(long, value_name = "N", default_value_t = 0)]
    fold_seed: u64,

    /// Hold no part back to validate on: train on all but the test part, and keep all trees
    #[arg(long)]
    no_valid: bool,

    /// The directory of all outputs: a path or a URL
    #[arg(long, value_name = "DIR")]
    output: String,

    #[arg(long, value_name = "NAME", help = help::preset_names())]
    preset: Option<String>,

    /// Parameters as a TOML file
    #[arg(long, value_name = "FILE.toml")]
    config: Option<String>,

    /// One parameter; repeat as needed. `planetree train --help` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Parameters to try, as a TOML file: lists and ranges of values; ranked on the validation parts by
    /// the first of the parameter `metric`
    #[arg(long, value_name = "FILE.toml", conflicts_with = "no_valid")]
    search: Option<String>,

    /// Metrics of the test parts [default: the first of the parameter `metric`, ndcg@1,3,5,10, err, map]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    metrics: Vec<String>,

    /// The rules of all metrics, those that choose the best round included: a preset such as letor4, then
    /// switches [default: the parameter `convention`]
    #[arg(long, value_name = "NAME[,SWITCH=VALUE]...")]
    convention: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory for a training to stay within, such as 2GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Directory of binned data that do not fit [default: bins in the output]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: &CvArguments, quiet: bool) -> Result<()> {
    let file = arguments.config.as_ref().map(|text| arguments.locate(text)).transpose()?;
    let load = |trial: Option<&Trial>| -> Result<Parameters> {
        let choices = trial.map_or(&[][..], |trial| &trial.choices);
        config::load_with(arguments.preset.as_deref(), file.as_ref(), &arguments.set, choices)
    };
    let space = arguments.search.as_ref().map(|text| Space::read(&arguments.locate(text)?)).transpose()?;
    let trials = space.as_ref().map(|space| check_trials(space, &|trial| load(Some(trial)))).transpose()?;
    let parameters = match trials.as_ref().and_then(|trials| trials.first()) {
        Some(first) => first.parameters.clone(),
        None => load(None)?,
    };
    let request = arguments.request(&parameters)?;
    let settled = request.settled(&parameters)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.map_or(0, NonZeroUsize::get))
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let mut progress = Progress::new(quiet);
    let output = request.output.clone();
    let outcome = pool.install(|| -> Result<report::Report> {
        let validation = CrossValidation::prepare(request, &mut progress)?;
        match (&space, &trials) {
            (Some(space), Some(trials)) => {
                Ok(report::of_search(&search(&validation, space, trials, &mut progress)?, &output))
            }
            _ => {
                let folds = validation.run(&settled, &output, &mut progress)?;
                Ok(report::of_folds(&folds, validation.convention(), &output))
            }
        }
    });
    drop(progress);
    let report = outcome?;
    super::print(&if arguments.json { format!("{}\n", report.json) } else { report.text })
}

impl CvArguments {
    fn locate(&self, text: &str) -> Result<Location> {
        let access = if self.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
        Location::parse(text, access)
    }

    fn request(&self, parameters: &Parameters) -> Result<CvRequest> {
        let output = self.locate(&self.output)?;
        let cache = self.cache.clone().unwrap_or_else(|| match &output {
            Location::Local(path) => path.join("bins"),
            Location::Remote(_) => std::env::temp_dir().join("planetree-bins"),
        });
        Ok(CvRequest {
            data: self.data.iter().map(|text| self.locate(text)).collect::<Result<_>>()?,
            folds: self.folds,
            fold_seed: self.fold_seed,
            validate: !self.no_valid,
            output,
            metrics: self.test_metrics(parameters)?,
            convention: self.convention(parameters)?,
            means: Means { memory_limit: self.memory_limit, cache },
        })
    }

    /// The rules of all metrics, as the option or the parameter says.
    fn convention(&self, parameters: &Parameters) -> Result<Convention> {
        let Some(text) = &self.convention else { return Ok(parameters.convention.clone()) };
        let convention: Convention = text.parse()?;
        if parameters.convention != Convention::default() && parameters.convention != convention {
            return Err(Error::usage(
                format_args!(
                    "--convention {convention}, but the parameter convention is {}",
                    parameters.convention
                ),
                "leave one of them out: validation and test parts are judged by one convention",
            ));
        }
        Ok(convention)
    }

    /// The metrics of the test parts, none of them twice.
    fn test_metrics(&self, parameters: &Parameters) -> Result<Vec<Metric>> {
        const USUAL: [&str; 6] = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "err", "map"];
        let named: Vec<&str> = match &self.metrics[..] {
            [] => USUAL.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        let mut metrics: Vec<Metric> = Vec::new();
        if self.metrics.is_empty() || self.search.is_some() {
            metrics.extend(parameters.metrics.first()); // the one that decides, to compare with
        }
        for name in named {
            let metric = name.parse()?;
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        Ok(metrics)
    }
}

/// Tells the user how it goes: rounds on a terminal only, for there are many, and only as long as they go on.
struct Progress {
    reporter: Reporter,
    quiet: bool,
    live: bool,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        Progress { reporter: Reporter::new(quiet), quiet, live: is_live(quiet) }
    }
}

impl Observer for Progress {
    fn phase(&mut self, name: &str) {
        self.reporter = Reporter::new(self.quiet); // each training has a pace of its own
        self.reporter.phase(name);
    }

    fn begin(&mut self, step: &str, total: u64, unit: &'static str) -> SharedMeter {
        self.reporter.begin(step, total, unit)
    }

    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]) {
        if self.live {
            self.reporter.round(round, rounds, values);
        }
    }

    fn note(&mut self, text: &str) {
        self.reporter.note(text);
    }
}
