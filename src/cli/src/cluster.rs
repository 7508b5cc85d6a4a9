//! `planetree scheduler` and `planetree executor`

use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::parse_size;
use planetree_cluster::{ExecutorOptions, PORT, SchedulerOptions, Security, run_executor, run_scheduler};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Certificates that all processes of a cluster show each other, and the word that they know.
#[derive(Debug, Args)]
pub struct Certificates {
    /// Encrypt: the certificate of the authority that signed all others of the cluster, a PEM file
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_ca: Option<PathBuf>,

    /// Encrypt: the certificate of this process, a PEM file; it names the host by which others reach it
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_certificate: Option<PathBuf>,

    /// Encrypt: the key of that certificate, a PEM file
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    tls_key: Option<PathBuf>,

    /// A file with the token of the cluster, one word: clients without it are refused
    #[arg(long, value_name = "FILE", help_heading = "Encryption")]
    token_file: Option<PathBuf>,
}

impl Certificates {
    /// Whether any is named.
    pub fn are_given(&self) -> bool {
        [&self.tls_ca, &self.tls_certificate, &self.tls_key, &self.token_file]
            .into_iter()
            .any(Option::is_some)
    }

    /// Reads them.
    pub fn read(&self) -> Result<Security> {
        Security::read(self.tls_ca.as_deref(), self.tls_certificate.as_deref(), self.tls_key.as_deref())?
            .with_token(self.token_file.as_deref())
    }
}

/// How a process of a cluster is reached, and when it ends.
#[derive(Debug, Args)]
struct Listening {
    /// The address to listen on; anything but this machine's own needs certificates, or --plaintext
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: String,

    /// The name or address by which others reach it [default: the bound address]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Listen on a public address without encryption: whoever reaches it can run plans and read files
    #[arg(long)]
    plaintext: bool,

    #[command(flatten)]
    certificates: Certificates,

    /// End when standard input does: with whoever started it
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// Run the scheduler of a cluster
///
/// One process of a cluster hands out the work: Apache Ballista's scheduler, which keeps every part of the data on the
/// executor that has it. Then start executors, and train, predict, evaluate or query with --cluster df://HOST:PORT.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree scheduler
  planetree scheduler --bind 10.0.0.1 --plaintext")]
pub struct SchedulerArguments {
    #[command(flatten)]
    listening: Listening,

    /// The port to listen on; 0 for one that is free
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// Seconds without a sign of life after which an executor counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(5..))]
    executor_timeout: u64,
}

/// Run an executor of a cluster
///
/// Executors keep parts of the data, in codes, and add up their rows for whoever trains. What they hold is a cache: an
/// executor may be killed at any time, and the training goes on with the others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree executor
  planetree executor --scheduler 10.0.0.1:50050 --bind 10.0.0.2 --plaintext --cache-memory 32GiB")]
pub struct ExecutorArguments {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: String,

    #[command(flatten)]
    listening: Listening,

    /// The port to hand results over at, and the next one for tasks; 0 for any that are free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory for parts of the data that are kept, such as 8GiB; what was not used for longest is dropped [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    cache_memory: Option<u64>,

    /// Folder for results until they are fetched [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

/// Runs the scheduler.
pub fn scheduler(arguments: &SchedulerArguments, quiet: bool) -> Result<()> {
    let options = SchedulerOptions {
        bind: arguments.listening.bind.clone(),
        port: arguments.port,
        host: arguments.listening.host.clone(),
        plaintext: arguments.listening.plaintext,
        security: arguments.listening.certificates.read()?,
        executor_timeout: arguments.executor_timeout,
        until_stdin_ends: arguments.listening.until_stdin_ends,
    };
    run_scheduler(&options, |address| {
        if !quiet {
            super::say(format_args!("scheduler at {address}; stop it with Ctrl-C"));
        }
    })
}

/// Runs an executor.
pub fn executor(arguments: &ExecutorArguments, quiet: bool) -> Result<()> {
    let odd = || {
        Error::usage(
            format_args!("--scheduler {}: this is no address", arguments.scheduler),
            "write HOST:PORT, such as 10.0.0.1:50050",
        )
    };
    let (host, port) = arguments.scheduler.rsplit_once(':').ok_or_else(odd)?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.map_or(0, NonZeroUsize::get))
        .build_global()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let options = ExecutorOptions {
        scheduler_host: host.to_owned(),
        scheduler_port: port.parse().map_err(|_| odd())?,
        bind: arguments.listening.bind.clone(),
        port: arguments.port,
        host: arguments.listening.host.clone(),
        plaintext: arguments.listening.plaintext,
        security: arguments.listening.certificates.read()?,
        cache_bytes: arguments.cache_memory,
        work_dir: arguments.work_dir.clone(),
        until_stdin_ends: arguments.listening.until_stdin_ends,
    };
    run_executor(&options, || {
        if !quiet {
            super::say(format_args!("executor of {}; stop it with Ctrl-C", arguments.scheduler));
        }
    })
}
