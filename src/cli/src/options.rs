//! Defines the options that several commands share.

use super::help;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_train::config::{self, Choice, TrainingPlan};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;

/// Access to object stores.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Request credentials for object stores from the machine's metadata service
    #[arg(long)]
    instance_credentials: bool,
}

impl StoreOptions {
    /// Returns whether credentials may be requested from the metadata service.
    pub(crate) fn instance_credentials(&self) -> bool {
        self.instance_credentials
    }

    /// Returns the source of credentials for locations that the user names.
    pub(crate) fn access(&self) -> Access {
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

    /// Parses the values of an option that may be repeated.
    pub(crate) fn locate_all(&self, texts: &[String]) -> Result<Vec<Location>> {
        texts.iter().map(|text| self.locate(text)).collect()
    }
}

/// Number of threads.
#[derive(Debug, Args)]
pub(crate) struct ThreadOptions {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
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
        ThreadPoolBuilder::new().num_threads(self.requested()).build().map_err(|error| cannot_start(&error))
    }

    /// Starts the thread pool of the whole process.
    #[cfg(feature = "cluster")]
    pub(crate) fn start_global_pool(&self) -> Result<()> {
        let builder = ThreadPoolBuilder::new().num_threads(self.requested());
        builder.build_global().map_err(|error| cannot_start(&error))
    }
}

/// Returns the number of cores that this process may use.
pub(crate) fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn cannot_start(error: &rayon::ThreadPoolBuildError) -> Error {
    Error::usage(format_args!("cannot start threads: {error}"), "lower --threads")
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
    fn names_contain_no_separators() {
        assert_eq!(split_name("new=b.parquet"), (Some("new"), "b.parquet"));
        assert_eq!(split_name("new=s3://bucket/a=b"), (Some("new"), "s3://bucket/a=b"));
        for path in ["b.parquet", "s3://bucket/a=b", "runs/a=b", "=b", "a.b=c"] {
            assert_eq!(split_name(path), (None, path));
        }
        assert_eq!(file_name("runs/monday/"), "monday");
    }
}
