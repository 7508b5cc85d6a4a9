//! `planetree sql`

use super::remote::ClusterOptions;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::parse_size;
use planetree_base::storage::{Access, Location};
use planetree_sql::{Destination, Done, Elsewhere, Format, Options, Printer, Replace, Roots, Session, Shell};
use std::io::{IsTerminal, Read};
use std::num::NonZeroUsize;

/// Ask datasets, models, predictions and all other tables in SQL
///
/// Tables are named by path, FROM 'predictions.parquet', by --table, or by the directory of a run, whose tables
/// all get names. Datasets and tables of planetree's are read with their checksums verified; Parquet, CSV and JSON
/// files of others are read, too. Metrics of rankings (ndcg, err, average_precision, ...) are aggregate functions
/// whose values are those of `planetree evaluate`; score('model', 'dataset') scores a dataset within a query.
/// Without a query, on a terminal, this is a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree sql -c \"SELECT * FROM 'predictions.parquet' LIMIT 5\"
  planetree sql -c \"SELECT query_id, ndcg(label, score, 10) FROM 'predictions.parquet' GROUP BY query_id\"
  planetree sql -c \"SELECT feature, sum(gain) FROM 'model.parquet' GROUP BY feature\" --format csv
  planetree sql -c \"COPY (SELECT query_id, doc_id, score FROM score('model.parquet', 'test')) TO 'out/scores.csv'\" --allow-write out
  planetree sql --table a=s3://runs/a.parquet --table b=b.parquet -f compare.sql -o differences.parquet
  planetree sql runs/2026-11-17
  planetree sql -c \"SELECT count(*) FROM 's3://bucket/train'\" --allow-path s3://bucket --cluster df://10.0.0.1:50050
  echo 'SELECT 1' | planetree sql --format json

SQL reads only below the current directory, the run's directory, --allow-path and --allow-write; COPY writes only
below --allow-write, and never a hidden file.")]
pub struct SqlArguments {
    /// A run's directory or a URL: every dataset and table in it gets a name
    #[arg(value_name = "RUN_DIRECTORY")]
    run: Option<String>,

    /// A query, or several separated by `;`; repeat it to run more
    #[arg(short = 'c', long = "command", value_name = "QUERY", allow_hyphen_values = true)]
    command: Vec<String>,

    /// A file of queries, run after those of -c; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,

    /// Give a name to a dataset, a table, a file or a directory of them, wherever it is
    #[arg(long, value_name = "NAME=PATH")]
    table: Vec<String>,

    /// How results are written [default: table; what --output's extension says, which it must not contradict]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::names()))]
    format: Option<String>,

    /// Write results to a file or a URL instead of standard output; the extension decides: .csv, .tsv, .json,
    /// .ndjson, .md, .parquet, .txt (or none) for boxes, text also with .gz or .zst
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,

    /// Let --output and COPY replace files that planetree may not have written: text does not say. Tables,
    /// datasets and hidden files are never replaced
    #[arg(long)]
    overwrite: bool,

    /// Let SQL read below this directory or URL, too
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<String>,

    /// Let COPY write below this directory or URL, which may be read, too
    #[arg(long, value_name = "DIR")]
    allow_write: Vec<String>,

    /// Memory that queries may take before they go on in temporary files [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Say how long each statement took
    #[arg(long)]
    timing: bool,

    /// Threads that work on a query [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Runs the command.
pub fn run(arguments: &SqlArguments, quiet: bool) -> Result<()> {
    let texts = arguments.texts()?;
    let session = arguments.session()?;
    let format = arguments.format.as_deref().and_then(Format::named);
    if texts.is_empty() {
        if arguments.output.is_some() {
            return Err(Error::usage(
                "--output needs a query",
                "pass -c QUERY, or write .output FILE in the shell",
            ));
        }
        return Shell::new(session, format.unwrap_or(Format::Table), arguments.timing, arguments.access())
            .run();
    }
    let (format, destination) = match &arguments.output {
        Some(output) => {
            let location = Location::parse(output, arguments.access())?;
            let (format, compression) = Format::of_file(&location, format)?;
            (format, Destination::file(&location, compression, arguments.replace())?)
        }
        None if format == Some(Format::Parquet) && std::io::stdout().is_terminal() => {
            return Err(Error::usage("Parquet is not for terminals", "pass --output FILE"));
        }
        None => (format, Destination::stdout()),
    };
    let format = format.unwrap_or(Format::Table);
    let mut printer = Printer { format, destination, results: 0 };
    for text in &texts {
        session.run(text, &mut printer, &mut |done| arguments.tell(done, quiet))?;
    }
    printer.destination.commit()
}

impl SqlArguments {
    fn access(&self) -> Access {
        if self.instance_credentials { Access::InstanceCredentials } else { Access::Explicit }
    }

    fn replace(&self) -> Replace {
        if self.overwrite { Replace::Anything } else { Replace::Results }
    }

    /// All queries; none for a shell.
    fn texts(&self) -> Result<Vec<String>> {
        let mut texts = self.command.clone();
        match self.file.as_deref() {
            Some("-") => texts.push(from_stdin()?),
            Some(file) => {
                let location = Location::parse(file, self.access())?;
                let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
                texts.push(String::from_utf8(bytes.to_vec()).map_err(|_| not_text(file))?);
            }
            None if texts.is_empty() && !std::io::stdin().is_terminal() => texts.push(from_stdin()?),
            None => {}
        }
        Ok(texts)
    }

    fn session(&self) -> Result<Session> {
        let access = self.access();
        let run = self.run.as_deref().map(|text| Location::parse(text, access)).transpose()?;
        // Links to files are fine, but only a directory makes all that is in it readable.
        let run_root = match &run {
            Some(Location::Local(path)) if !path.is_dir() => None,
            _ => self.run.as_deref(),
        };
        let readable = self.allow_path.iter().map(String::as_str).chain(run_root);
        let writable = self.allow_write.iter().map(String::as_str);
        let threads = self.threads.map_or_else(cores, NonZeroUsize::get);
        let options = Options {
            threads,
            memory_limit: self.memory_limit.unwrap_or_else(half_of_memory),
            roots: Roots::new(readable, writable, access)?,
            replace: self.replace(),
            elsewhere: self.elsewhere(threads)?,
        };
        let session = Session::new(options)?;
        if let Some(run) = &run {
            session.open_run(run)?;
        }
        for table in &self.table {
            let Some((name, path)) = table.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(Error::usage(
                    format_args!("--table {table}: there is no name"),
                    "write --table name=PATH",
                ));
            };
            session.name_table(name, Location::parse(path, access)?)?;
        }
        Ok(session)
    }

    /// The cluster that queries run on.
    #[cfg(feature = "cluster")]
    fn elsewhere(&self, threads: usize) -> Result<Option<Elsewhere>> {
        let Some(cluster) = self.cluster.cluster(threads, self.instance_credentials)? else {
            return Ok(None);
        };
        if self.instance_credentials {
            return Err(Error::usage(
                "--instance-credentials: SQL on a cluster uses the credentials of its processes",
                "leave it out, and give executors the store's variables",
            ));
        }
        cluster.queries().map(Some)
    }

    #[cfg(not(feature = "cluster"))]
    fn elsewhere(&self, _threads: usize) -> Result<Option<Elsewhere>> {
        self.cluster.refuse().map(|()| None)
    }

    fn tell(&self, done: &Done, quiet: bool) {
        if let Some(file) = done.written.as_ref().filter(|_| !quiet) {
            super::say(format_args!("{file}: {} rows", done.rows));
        }
        if self.timing {
            super::say(format_args!("{} rows in {:.3} s", done.rows, done.seconds));
        }
    }
}

fn from_stdin() -> Result<String> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(not_text("<stdin>")),
        Err(error) => Err(Error::io("<stdin>", "read", &error)),
    }
}

fn not_text(place: &str) -> Error {
    Error::place(place, "this is no text in UTF-8", "name a file of SQL")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Half of the machine's memory; 4 GiB where the system does not say.
fn half_of_memory() -> u64 {
    let total = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    total().map_or(4 << 30, |kibibytes| kibibytes << 9)
}
