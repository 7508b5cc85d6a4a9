//! Implements `planetree sql`.

use super::execution::ExecutionOptions;
use crate::console;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, parse_size};
use planetree_base::storage::Location;
use planetree_sql::{
    Destination, MIN_MEMORY, Printer, ReplacePolicy, ResultFormat, Roots, Session, SessionOptions, Shell,
    SqlCluster, StatementSummary, is_shell_command,
};
use std::io::{IsTerminal, Read};

/// Query datasets, models, predictions and all other tables in SQL
///
/// Tables are referred to by path, as in FROM 'predictions.parquet', by the name given with --table, or by their names
/// in a run directory. Checksums of datasets and tables written by planetree are verified; other Parquet, CSV and JSON
/// files can be read, too. Ranking metrics (ndcg, err, average_precision, ...) are aggregate functions with the same
/// values as `planetree evaluate`; score('model', 'dataset') scores a dataset within a query. Without a query, on a
/// terminal, an interactive shell starts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree sql -c \"SELECT * FROM 'predictions.parquet' LIMIT 5\"
  planetree sql -c \"SELECT query_id, ndcg(label, score, 10) FROM 'p.parquet' GROUP BY query_id\"
  planetree sql -c \"SELECT feature, sum(gain) FROM 'model.parquet' GROUP BY feature\" --format csv
  planetree sql --allow-write out \\
      -c \"COPY (SELECT query_id, doc_id, score FROM score('m.parquet', 'test')) TO 'out/s.csv'\"
  planetree sql --table a=s3://runs/a.parquet --table b=b.parquet -f compare.sql -o both.parquet
  planetree sql runs/2026-11-17
  planetree sql -c \"SELECT count(*) FROM 's3://bucket/train'\" \\
      --allow-path s3://bucket --cluster df://10.0.0.1:50050
  echo 'SELECT 1' | planetree sql --format json

SQL reads only below the current directory, the run directory, --allow-path and --allow-write. COPY writes only
below --allow-write, and never to a hidden file.")]
pub(crate) struct SqlArguments {
    /// Run directory or URL whose datasets and tables can be used by name
    #[arg(value_name = "RUN_DIRECTORY")]
    run: Option<String>,

    /// Query to run, or several separated by `;`; may be repeated
    #[arg(short = 'c', long = "command", value_name = "QUERY", allow_hyphen_values = true)]
    command: Vec<String>,

    /// File with queries to run after the queries of -c; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,

    /// Give a name to a dataset, table, file or directory of files; may be repeated
    #[arg(long, value_name = "NAME=PATH")]
    table: Vec<String>,

    /// Format of results; must not contradict the extension of --output [default: the format of that extension, else
    /// table]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(ResultFormat::names()))]
    format: Option<String>,

    /// Write results to a file or a URL instead of standard output; the extension selects the format: .csv, .tsv,
    /// .json, .ndjson, .md, .parquet, .txt (or none) for tables with borders; text formats also with .gz or .zst
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,

    /// Allow --output and COPY to replace text files that planetree may not have written. Tables, datasets and hidden
    /// files are never replaced
    #[arg(long)]
    overwrite: bool,

    /// Allow SQL to read below this directory or URL; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<String>,

    /// Allow COPY to write, and SQL to read, below this directory or URL; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_write: Vec<String>,

    /// Memory limit, at least 256MiB; larger sorts, joins and aggregations use temporary files [default: half of the
    /// machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<u64>,

    /// Print the run time of each statement
    #[arg(long)]
    timing: bool,

    #[command(flatten)]
    execution: ExecutionOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &SqlArguments, quiet: bool) -> Result<()> {
    let texts = arguments.texts()?;
    let session = arguments.session()?;
    let format = arguments.format.as_deref().and_then(ResultFormat::named);
    if texts.is_empty() {
        if arguments.output.is_some() {
            return Err(Error::usage(
                "--output needs a query",
                "pass -c QUERY, or write .output FILE in the shell",
            ));
        }
        return Shell::new(
            session,
            format.unwrap_or(ResultFormat::Table),
            arguments.timing,
            arguments.execution.store.access(),
        )
        .run();
    }
    let (format, destination) = match &arguments.output {
        Some(output) => {
            let location = arguments.execution.store.locate(output)?;
            let (format, compression) = ResultFormat::of_file(&location, format)?;
            (format, Destination::file(&location, compression, arguments.replace())?)
        }
        None if format == Some(ResultFormat::Parquet) && std::io::stdout().is_terminal() => {
            return Err(Error::usage("refusing to print Parquet on a terminal", "pass --output FILE"));
        }
        None => (format, Destination::stdout()),
    };
    let format = format.unwrap_or(ResultFormat::Table);
    let mut printer = Printer { format, destination, results: 0, headers: true };
    for text in &texts {
        let ran = session.run(text, &mut printer, &mut |done| arguments.print_statement(done, quiet));
        ran.map_err(|error| explain_shell_commands(error, text))?;
    }
    printer.destination.commit()
}

impl SqlArguments {
    fn replace(&self) -> ReplacePolicy {
        if self.overwrite { ReplacePolicy::Anything } else { ReplacePolicy::Results }
    }

    /// Returns the SQL text of `-c`, `-f` and standard input; empty for an interactive shell.
    fn texts(&self) -> Result<Vec<String>> {
        let mut texts = self.command.clone();
        match self.file.as_deref() {
            Some("-") => texts.push(read_stdin()?),
            Some(file) => {
                let location = self.execution.store.locate(file)?;
                let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
                texts.push(String::from_utf8(bytes.to_vec()).map_err(|_| not_text(file))?);
            }
            None if texts.is_empty() && !std::io::stdin().is_terminal() => texts.push(read_stdin()?),
            None => {}
        }
        Ok(texts)
    }

    fn session(&self) -> Result<Session> {
        super::options::check_memory(self.memory_limit, MIN_MEMORY)?;
        let store = &self.execution.store;
        let run = store.locate_optional(self.run.as_ref())?;
        if let (Some(text), Some(run)) = (&self.run, &run) {
            refuse_query_as_run(text, run)?;
        }
        // Only a directory makes everything below it readable. A single file does not.
        let run_root = match &run {
            Some(Location::Local(path)) if !path.is_dir() => None,
            _ => self.run.as_deref(),
        };
        let readable = self.allow_path.iter().map(String::as_str).chain(run_root);
        let writable = self.allow_write.iter().map(String::as_str);
        let threads = self.execution.threads.count();
        let options = SessionOptions {
            threads,
            memory_limit: self.memory_limit.unwrap_or_else(half_of_memory),
            // In Python, the process also holds the data of the caller.
            owns_process: console::current().is_none(),
            roots: Roots::new(readable, writable, store.access())?,
            replace: self.replace(),
            cluster: self.sql_cluster(threads)?,
        };
        let session = Session::new(options)?;
        if let Some(run) = &run {
            session.open_run(run)?;
        }
        for table in &self.table {
            let Some((name, path)) = table.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(Error::usage(
                    format_args!("--table {table}: the name is missing"),
                    "write --table name=PATH",
                ));
            };
            session.name_table(name, store.locate(path)?)?;
        }
        Ok(session)
    }

    /// Returns the cluster that queries run on, if one is requested.
    fn sql_cluster(&self, threads: usize) -> Result<Option<SqlCluster>> {
        let Some(cluster) = self.execution.cluster(threads)? else { return Ok(None) };
        if self.execution.store.instance_credentials() {
            return Err(Error::usage(
                "--instance-credentials has no effect on SQL that runs on a cluster: the executors use their own credentials",
                "remove --instance-credentials, and set the environment variables of the object store for the executors",
            ));
        }
        cluster.queries().map(Some)
    }

    fn print_statement(&self, done: &StatementSummary, quiet: bool) {
        let rows = counted(done.rows, "row", "rows");
        if let Some(file) = done.written.as_ref().filter(|_| !quiet) {
            super::message(format_args!("{file}: {rows}"));
        }
        if self.timing {
            super::message(format_args!("{rows} in {:.3} s", done.seconds));
        }
    }
}

/// Says that commands of the shell are not SQL, if one is the cause of a syntax error.
fn explain_shell_commands(error: Error, text: &str) -> Error {
    let said = error.to_string();
    let number = said.strip_prefix("line ").and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
    let Some(number) = number.filter(|_| said.contains("syntax error")) else { return error };
    // Words such as help may be names, except where the error is. No line of SQL is like a command with a dot, after which
    // the parser may read on.
    let is_cause = |(index, line): &(usize, &str)| {
        (index + 1 == number || line.starts_with('.')) && is_shell_command(line)
    };
    let mut lines = text.lines().map(str::trim).take(number).enumerate();
    match lines.find(is_cause) {
        Some((_, line)) => error.map_remedy(|_| {
            format!("{line} is a command of the interactive shell; {}", in_place_of_command(line))
        }),
        None => error,
    }
}

/// Says what takes the place of a command of the shell in files and pipes.
fn in_place_of_command(line: &str) -> &'static str {
    let name = line.split([' ', ';']).next().unwrap_or_default();
    match name.trim_start_matches(['.', '\\']).to_ascii_lowercase().as_str() {
        "exit" | "quit" | "q" => "remove it: files and pipes end by themselves",
        "tables" | "dt" => "in files and pipes write SHOW TABLES",
        "d" | "schema" | "describe" => "in files and pipes write DESCRIBE and a table",
        "functions" | "df" => "in files and pipes write SHOW FUNCTIONS",
        "timer" | "timing" => "in files and pipes use the option --timing",
        "read" | "i" => "in files and pipes use the option -f FILE",
        "output" | "o" => "in files and pipes use the option --output FILE",
        "help" | "h" | "?" => "planetree sql --help lists the options",
        _ => "in files and pipes use options such as --format csv",
    }
}

/// Fails if the text in the place of the run directory is a query.
fn refuse_query_as_run(text: &str, run: &Location) -> Result<()> {
    const STARTS: [&str; 10] =
        ["SELECT", "WITH", "FROM", "DESCRIBE", "SUMMARIZE", "SHOW", "EXPLAIN", "COPY", "CREATE", "VALUES"];
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let is_query = STARTS.iter().any(|start| start.eq_ignore_ascii_case(first)) && words.next().is_some();
    if !is_query || matches!(run, Location::Local(path) if path.exists()) {
        return Ok(());
    }
    Err(Error::usage(
        format_args!("{text}: expected a run directory, found a query"),
        format_args!("pass it with -c: planetree sql -c {text:?}"),
    ))
}

fn read_stdin() -> Result<String> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(not_text("<stdin>")),
        Err(error) => Err(Error::io("<stdin>", "read", error)),
    }
}

fn not_text(file: &str) -> Error {
    Error::place(file, "not valid UTF-8", "pass a text file with SQL statements")
}

/// Returns half of the memory of the machine or container in bytes; 4 GiB on systems without `/proc`.
fn half_of_memory() -> u64 {
    /// The limit of a container, in both versions of control groups. Without a limit, they have a word or a huge number.
    const CONTAINER: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let machine = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kibibytes = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        Some(kibibytes << 10)
    };
    let container = |file| std::fs::read_to_string(file).ok()?.trim().parse().ok();
    let limits = CONTAINER.into_iter().filter_map(container);
    machine().into_iter().chain(limits).min().map_or(4 << 30, |bytes| bytes / 2)
}
