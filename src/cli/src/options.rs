//! Defines the options that several commands share.

use super::help;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_size;
use planetree_base::storage::{Access, Location, border};
use planetree_base::threads::thread_pool;
use planetree_train::config::{self, Choice, TrainingPlan};
use rayon::ThreadPool;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

/// Access to object stores.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Request credentials for object stores from the machine's metadata service
    #[arg(long)]
    instance_credentials: bool,

    /// Maximum time of a request to an object store or web server, including all retries [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_deadline)]
    deadline: Option<Duration>,
}

impl StoreOptions {
    /// Returns whether credentials may be requested from the metadata service.
    pub(crate) fn instance_credentials(&self) -> bool {
        self.instance_credentials
    }

    /// Returns the source of credentials for locations that the user names.
    pub(crate) fn access(&self) -> Access {
        border::set_deadline(self.deadline.unwrap_or(border::DEFAULT_DEADLINE));
        if self.instance_credentials { Access::InstanceCredentials } else { Access::Explicit }
    }

    /// Parses a path or a URL.
    pub(crate) fn locate(&self, text: &str) -> Result<Location> {
        Location::parse(text, self.access())
    }

    /// Parses the value of an option that may be absent.
    pub(crate) fn locate_optional(&self, text: Option<&String>) -> Result<Option<Location>> {
        text.map(|text| self.locate(text)).transpose()
    }

    /// Parses the location of a dataset to write. Fails if it is one of the datasets that are read.
    pub(crate) fn locate_output(&self, output: &str, inputs: &[&Location]) -> Result<Location> {
        let output = self.locate(output)?;
        match inputs.iter().any(|input| input.is_same_place(&output)) {
            false => Ok(output),
            true => Err(Error::usage(
                format_args!("{output} is both the input and the output"),
                "name another dataset with --output",
            )),
        }
    }
}

/// Fails if a file to write, which `option` names, is one of those that are read.
pub(crate) fn check_is_not_read<'l>(
    output: &Location,
    option: &str,
    read: impl IntoIterator<Item = &'l Location>,
) -> Result<()> {
    match read.into_iter().any(|input| input.is_same_place(output)) {
        false => Ok(()),
        true => Err(Error::usage(
            format_args!("{output} is both an input and the output"),
            format_args!("name another file with {option}"),
        )),
    }
}

/// Parses a time such as `90s` or `5m`. A number without a unit is in seconds.
fn parse_deadline(text: &str) -> Result<Duration, String> {
    let (number, unit) =
        text.split_at(text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.trim().parse::<f64>().map_or(f64::NAN, |number| number * factor);
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time > Duration::ZERO => Ok(time),
        _ => Err(format!("{text:?} is not a time; write for example 90s or 5m")),
    }
}

/// Parses a number of things, of which there must be one at least.
pub(crate) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<usize>() {
        Ok(count) => NonZeroUsize::new(count).ok_or_else(|| "must be at least 1".to_owned()),
        Err(_) if text.strip_prefix('-').is_some_and(|number| number.parse::<u64>().is_ok()) => {
            Err("must be at least 1".to_owned())
        }
        Err(_) => Err("expected a whole number, such as 4".to_owned()),
    }
}

/// Parses a whole number that may be 0, such as a seed.
pub(crate) fn parse_whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse::<T>().map_err(|_| "expected a whole number, 0 or greater".to_owned())
}

/// Parses a number of repetitions, of which there must be one at least.
pub(crate) fn parse_repetitions(text: &str) -> Result<NonZeroU64, String> {
    let count = parse_count(text)?.get() as u64;
    NonZeroU64::new(count).ok_or_else(|| "must be at least 1".to_owned())
}

/// How a dataset is written.
#[derive(Debug, Args)]
pub(crate) struct DatasetOutputOptions {
    /// Rows per output file; a file ends with the first query that reaches this number [default: four row groups of
    /// 65,536 rows or 8,388,608 values]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    partition_rows: Option<NonZeroUsize>,

    /// Replace an existing dataset
    #[arg(long)]
    overwrite: bool,
}

impl DatasetOutputOptions {
    /// Returns the rows per file that the user passed.
    pub(crate) fn partition_rows(&self) -> Option<usize> {
        self.partition_rows.map(NonZeroUsize::get)
    }

    /// Returns whether an existing dataset may be replaced.
    pub(crate) fn overwrite(&self) -> bool {
        self.overwrite
    }
}

/// Number of threads.
#[derive(Debug, Args)]
pub(crate) struct ThreadOptions {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,
}

impl ThreadOptions {
    /// Returns the number that the user passed, or 0 for all cores.
    pub(crate) fn requested(&self) -> usize {
        self.threads.map_or(0, NonZeroUsize::get)
    }

    /// Returns the number of threads to use.
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or_else(available_cores, NonZeroUsize::get)
    }

    /// Starts a thread pool.
    pub(crate) fn pool(&self) -> Result<ThreadPool> {
        thread_pool(self.requested())
    }

    /// Starts the thread pool of the whole process.
    #[cfg(feature = "cluster")]
    pub(crate) fn start_global_pool(&self) -> Result<()> {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(self.requested());
        builder.build_global().map_err(Error::threads)
    }
}

/// Fails if a memory limit is below the minimum of a command.
pub(crate) fn check_memory(limit: Option<u64>, least: u64) -> Result<()> {
    match limit {
        Some(limit) if limit < least => Err(Error::usage(
            format_args!("--memory-limit {} is too small", shown_size(limit)),
            format_args!("raise it to at least {} MiB", least >> 20),
        )),
        _ => Ok(()),
    }
}

/// Returns the number of cores that this process may use.
pub(crate) fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Output in a format for other programs.
#[derive(Debug, Args)]
pub(crate) struct JsonOptions {
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

impl JsonOptions {
    /// Returns whether JSON is requested.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Prints a result as text or as JSON.
    pub(crate) fn print(
        &self,
        text: impl FnOnce() -> String,
        json: impl FnOnce() -> serde_json::Value,
    ) -> Result<()> {
        super::print(&if self.json { format!("{}\n", json()) } else { text() })
    }
}

/// Training parameters from a preset, a file and single values. Each source overrides the previous one.
#[derive(Debug, Args)]
pub(crate) struct ParameterOptions {
    #[arg(long, value_name = "NAME", help = help::preset_names())]
    preset: Option<String>,

    /// TOML file with parameters
    #[arg(long, value_name = "FILE.toml")]
    config: Option<String>,

    /// Set one parameter; may be repeated. `planetree train --help` lists all parameters
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl ParameterOptions {
    /// Returns whether the user chose what is optimised: by a preset, a file, or a parameter that implies it.
    pub(crate) fn chooses_objective(&self) -> bool {
        let is_choice = |setting: &String| {
            let name = setting.split('=').next().unwrap_or_default();
            config::chooses_objective(name)
        };
        self.preset.is_some() || self.config.is_some() || self.set.iter().any(is_choice)
    }

    /// Returns the names of the parameters that are set one by one.
    pub(crate) fn set_names(&self) -> impl Iterator<Item = &str> {
        self.set.iter().map(|setting| setting.split('=').next().unwrap_or_default().trim())
    }

    /// Loads and checks the parameters. `choices` override all other sources.
    pub(crate) fn load(&self, store: &StoreOptions, choices: &[Choice]) -> Result<TrainingPlan> {
        let file = store.locate_optional(self.config.as_ref())?;
        config::load_with(self.preset.as_deref(), file.as_ref(), &self.set, choices)
    }
}

/// Splits `[NAME=]PATH`. A name contains no `/`, `:` or `.`, so `s3://bucket/a=b` is a path without a name.
pub(crate) fn split_name(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !name.contains(['/', ':', '.']) => (Some(name), path),
        _ => (None, text),
    }
}

/// Returns the last component of a path or a URL.
pub(crate) fn file_name(text: &str) -> &str {
    text.trim_end_matches('/').rsplit('/').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_have_units() {
        assert_eq!(parse_deadline("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_deadline("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_deadline("7"), Ok(Duration::from_secs(7)));
        for text in ["", "0", "-1s", "5 parsecs", "1e99h"] {
            assert!(parse_deadline(text).is_err(), "{text}");
        }
    }

    #[test]
    fn negative_numbers_are_answered_with_the_range() {
        assert_eq!(parse_count("-2"), Err("must be at least 1".to_owned()));
        assert_eq!(parse_count("-x"), Err("expected a whole number, such as 4".to_owned()));
        assert_eq!(parse_whole::<u64>("0"), Ok(0));
        assert_eq!(parse_whole::<u64>("-1"), Err("expected a whole number, 0 or greater".to_owned()));
    }

    #[test]
    fn names_contain_no_separators() {
        assert_eq!(split_name("new=b.parquet"), (Some("new"), "b.parquet"));
        assert_eq!(split_name("new=s3://bucket/a=b"), (Some("new"), "s3://bucket/a=b"));
        for path in ["b.parquet", "s3://bucket/a=b", "runs/a=b", "=b", "a.b=c"] {
            assert_eq!(split_name(path), (None, path));
        }
        assert_eq!(file_name("runs/monday/"), "monday");
    }
}
