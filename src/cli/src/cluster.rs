//! Implements `planetree scheduler` and `planetree executor`.

use super::options::ThreadOptions;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::parse_size;
use planetree_cluster::{ExecutorOptions, PORT, SchedulerOptions, Security, run_executor, run_scheduler};
use std::path::PathBuf;

/// Encryption and authentication between the processes of a cluster.
#[derive(Debug, Args)]
pub(crate) struct SecurityOptions {
    /// PEM file with the CA certificate that signed the certificates of all cluster processes
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_ca: Option<PathBuf>,

    /// PEM file with the certificate of this process, issued for the host name by which other processes reach it
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_certificate: Option<PathBuf>,

    /// PEM file with the private key of --tls-certificate
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_key: Option<PathBuf>,

    /// File with the token of the cluster, a single word; clients that do not present it are refused
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    token_file: Option<PathBuf>,
}

impl SecurityOptions {
    /// Returns whether any of the options is given.
    pub(crate) fn is_given(&self) -> bool {
        [&self.tls_ca, &self.tls_certificate, &self.tls_key, &self.token_file]
            .into_iter()
            .any(Option::is_some)
    }

    /// Reads the certificates, the key and the token.
    pub(crate) fn read(&self) -> Result<Security> {
        Security::read(self.tls_ca.as_deref(), self.tls_certificate.as_deref(), self.tls_key.as_deref())?
            .with_token(self.token_file.as_deref())
    }
}

/// Options for the address that a scheduler or executor listens on.
#[derive(Debug, Args)]
struct ListenOptions {
    /// Address to listen on; an address other than loopback requires certificates or --plaintext
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: String,

    /// Host name or address by which other processes reach this one [default: the value of --bind]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Listen without encryption; anyone who can reach the address can then run plans and read files
    #[arg(long)]
    plaintext: bool,

    #[command(flatten)]
    security: SecurityOptions,

    /// Exit when standard input closes, that is, together with the parent process
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// Run the scheduler of a cluster
///
/// A cluster has one scheduler, which is provided by Apache Ballista. It assigns tasks to executors and keeps each part
/// of the data on the same executor. Start the scheduler, then executors, then run train, predict, evaluate or sql with
/// --cluster df://HOST:PORT.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree scheduler
  planetree scheduler --bind 10.0.0.1 --plaintext")]
pub(crate) struct SchedulerArguments {
    #[command(flatten)]
    listen: ListenOptions,

    /// Port to listen on; 0 selects a free one
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// Seconds without a heartbeat after which an executor is considered lost
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(5..))]
    executor_timeout: u64,
}

/// Run an executor of a cluster
///
/// Executors hold binned parts of the data in memory and compute on them. This state is only a cache: an executor may
/// be killed at any time, and the other executors take over its work.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree executor
  planetree executor --scheduler 10.0.0.1:50050 --bind 10.0.0.2 --plaintext --cache-memory 32GiB")]
pub(crate) struct ExecutorArguments {
    /// Address of the scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: String,

    #[command(flatten)]
    listen: ListenOptions,

    /// Port from which results are fetched; tasks are sent to the next port. 0 selects free ports
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    #[command(flatten)]
    threads: ThreadOptions,

    /// Memory limit of cached data, such as 8GiB; the least recently used parts are evicted [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    cache_memory: Option<u64>,

    /// Directory that stores results until they are fetched [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

/// Runs the scheduler.
pub(crate) fn scheduler(arguments: &SchedulerArguments, quiet: bool) -> Result<()> {
    let options = SchedulerOptions {
        bind: arguments.listen.bind.clone(),
        port: arguments.port,
        host: arguments.listen.host.clone(),
        plaintext: arguments.listen.plaintext,
        security: arguments.listen.security.read()?,
        executor_timeout: arguments.executor_timeout,
        on_stdin_closed: arguments.listen.until_stdin_ends.then_some(|| std::process::exit(0)),
    };
    run_scheduler(&options, |address| {
        if !quiet {
            super::message(format_args!("scheduler listening on {address}; press Ctrl-C to stop"));
        }
    })
}

/// Runs an executor.
pub(crate) fn executor(arguments: &ExecutorArguments, quiet: bool) -> Result<()> {
    let invalid_address = || {
        Error::usage(
            format_args!("--scheduler {}: not an address", arguments.scheduler),
            "write HOST:PORT, such as 10.0.0.1:50050",
        )
    };
    let (host, port) = arguments.scheduler.rsplit_once(':').ok_or_else(invalid_address)?;
    arguments.threads.start_global_pool()?;
    let options = ExecutorOptions {
        scheduler_host: host.to_owned(),
        scheduler_port: port.parse().map_err(|_| invalid_address())?,
        bind: arguments.listen.bind.clone(),
        port: arguments.port,
        host: arguments.listen.host.clone(),
        plaintext: arguments.listen.plaintext,
        security: arguments.listen.security.read()?,
        cache_bytes: arguments.cache_memory,
        work_dir: arguments.work_dir.clone(),
        on_stdin_closed: arguments.listen.until_stdin_ends.then_some(|| std::process::exit(0)),
    };
    run_executor(&options, || {
        if !quiet {
            super::message(format_args!(
                "executor connected to {}; press Ctrl-C to stop",
                arguments.scheduler
            ));
        }
    })
}
