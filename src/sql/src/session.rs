//! Runs SQL statements in a session, which holds the tables, functions, threads and memory that the statements share.

use super::context::{pool_of, reserve_of, session_config, session_context};
use super::engine::{EngineThreads, RunningStream, on_large_stack};
use super::error::{KnownNames, as_failure, from_engine_error};
use super::float32::compare_as_float32;
use super::functions::{OneQuery, all_function_names, register_bounded};
use super::memory_watch::MemoryWatch;
use super::on_cluster::{SqlCluster, refuse_memory_tables, refuse_order_dependence, runs_on_cluster};
use super::output::{Destination, ReplacePolicy, ResultFormat, ResultWriter, TextResult, at_output, failed};
use super::plan_check::{read_only, refuse_explained_writes, refuse_list_lengths, refuse_stored};
use super::roots::Roots;
use super::scan::ScanMemory;
use super::size::check_plan;
use super::statement::{AllowedStatement, CopyStatement, parse};
use super::summary::summarize;
use super::table_list::{TableSummary, table_list};
use super::tables::Tables;
use super::text_errors::{name_text_files, with_text_files};
use datafusion::catalog::SchemaProvider;
use datafusion::common::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use planetree_data::catalog::catalog_entries;
use planetree_data::dataset::MANIFEST;
use planetree_data::table::TextRows;
use planetree_engine::ReservingPool;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Minimum memory limit of the program in bytes.
pub const MIN_MEMORY: u64 = 256 << 20;

/// Options of a session.
#[derive(Debug)]
pub struct SessionOptions {
    /// Number of threads, which is also the number of partitions.
    pub threads: usize,
    /// Memory limit of queries in bytes. Sorts and aggregations use a part of it, and then temporary files.
    pub memory_limit: u64,
    /// Whether the process does nothing but run the statements. Queries that would exceed the limit then fail; otherwise,
    /// the memory of the process tells nothing about a query.
    pub owns_process: bool,
    /// The directories and URLs that SQL may access.
    pub roots: Roots,
    /// Which files COPY may replace.
    pub replace: ReplacePolicy,
    /// The cluster to run queries on; `None` to run them locally.
    pub cluster: Option<SqlCluster>,
}

/// Runs statements.
pub struct Session {
    threads: EngineThreads,
    context: SessionContext,
    pub(super) tables: Arc<Tables>,
    replace: ReplacePolicy,
    /// Bytes that the writer of a Parquet result may use.
    writer_memory: usize,
    /// The session state for planning queries on the cluster, and the cluster; `None` to run queries locally.
    cluster: Option<Arc<(SessionState, SqlCluster)>>,
}

/// Outcome of a statement.
#[derive(Debug, Clone)]
pub struct StatementSummary {
    /// Number of rows returned or written.
    pub rows: u64,
    /// Elapsed time in seconds.
    pub seconds: f64,
    /// The file written by COPY; `None` for other statements.
    pub written: Option<String>,
}

/// Destination and format of results.
pub struct Printer {
    /// Format of results.
    pub format: ResultFormat,
    /// Destination of results.
    pub destination: Destination,
    /// Number of results written so far.
    pub results: usize,
    /// Whether tables and delimited text have a header.
    pub headers: bool,
}

impl Session {
    /// Starts a session without named tables.
    pub fn new(options: SessionOptions) -> Result<Self> {
        let SessionOptions { threads, memory_limit, owns_process, roots, replace, cluster } = options;
        let memory = if owns_process { MemoryWatch::new(memory_limit) } else { MemoryWatch::default() };
        let engine = EngineThreads::start(threads, memory)?;
        let pool = pool_of(memory_limit);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(ReservingPool::new(pool, reserve_of(pool))))
            .with_object_list_cache_limit(0)
            .build_arc()
            .map_err(|error| from_engine_error(&error, "", &KnownNames::default()))?;
        let mut config = session_config(threads, pool);
        if cluster.is_some() {
            // Arrow's view types cannot be sent to executors.
            config.options_mut().execution.parquet.schema_force_view_types = false;
        }
        let opener = SessionStateBuilder::new()
            .with_config(config.clone())
            .with_runtime_env(environment.clone())
            .with_default_features()
            .build();
        let check = cluster.as_ref().map(|cluster| cluster.check.clone());
        let tables = Arc::new(Tables::new(roots, opener, check));
        let cluster = match cluster {
            None => None,
            Some(cluster) => {
                let state = SessionStateBuilder::new()
                    .with_config(config.clone().with_target_partitions(cluster.partitions))
                    .with_runtime_env(environment.clone())
                    .with_default_features()
                    .with_analyzer_rule(Arc::new(OneQuery))
                    .build();
                Some(Arc::new(((cluster.upgrade)(state), cluster)))
            }
        };
        let config = config.with_extension(Arc::new(ScanMemory::of_pool(pool)));
        let context = session_context(config, environment, &tables);
        // The engine holds several copies of a constant while it plans and runs a query.
        register_bounded(&context, memory_limit / 8);
        Ok(Session {
            threads: engine,
            context,
            tables,
            replace,
            writer_memory: (pool / 4).clamp(2 << 20, 32 << 20),
            cluster,
        })
    }

    /// Names a dataset, table or file. If the location is any other directory, each table in it is named `name/...`.
    pub fn name_table(&self, name: &str, location: Location) -> Result<()> {
        if location.join(MANIFEST).size()?.is_some() || location.size()?.is_some() {
            self.tables.name(name, location);
            return Ok(());
        }
        let entries = match &location {
            Location::Local(path) if !path.is_dir() => return Err(location.absent()),
            _ => catalog_entries(&location)?,
        };
        if entries.is_empty() {
            self.tables.name(name, location); // it may be a directory of CSV or JSON files
            return Ok(());
        }
        for entry in entries {
            self.tables.name(&format!("{name}/{}", entry.name), entry.location);
        }
        Ok(())
    }

    /// Names all datasets and tables of a run directory, or a single dataset or file.
    pub fn open_run(&self, location: &Location) -> Result<()> {
        if location.join(MANIFEST).size()?.is_some() || location.size()?.is_some() {
            let name = location.name();
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            self.tables.name(stem, location.clone());
            return Ok(());
        }
        if matches!(location, Location::Local(path) if !path.is_dir()) {
            return Err(location.absent());
        }
        let entries = catalog_entries(location)?;
        if entries.is_empty() {
            return Err(Error::place(
                location,
                "no datasets or tables of planetree in this directory",
                "pass a run directory, or pass a dataset or file with --table name=PATH",
            ));
        }
        entries.into_iter().for_each(|entry| self.tables.name(&entry.name, entry.location));
        Ok(())
    }

    /// Returns which files results may replace.
    pub fn replace(&self) -> ReplacePolicy {
        self.replace
    }

    /// Returns the names of all tables.
    pub(crate) fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    /// Returns the kinds of all tables and their numbers of rows.
    pub(crate) fn table_list(&self) -> Vec<TableSummary> {
        table_list(&self.tables)
    }

    /// Returns the columns of a table with their types.
    pub fn columns_of(&self, table: &str) -> Result<Vec<(String, String)>> {
        let (context, name) = (self.context.clone(), table.to_owned());
        let columns = self.threads.run(async move {
            let provider = context.table_provider(datafusion::common::TableReference::bare(name)).await?;
            let fields = provider.schema().fields().clone();
            Ok(fields.iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect())
        });
        columns.map_err(|error| self.user_error(&error, table))
    }

    /// Returns the names of all functions, planetree's and the engine's.
    pub(crate) fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let scalars = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let mut names: Vec<String> = scalars.chain(state.window_functions().keys()).cloned().collect();
        names.extend(state.table_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// Runs the SQL statements in `text` in order, and calls `done` after each of them.
    pub fn run(
        &self,
        text: &str,
        printer: &mut Printer,
        done: &mut dyn FnMut(&StatementSummary),
    ) -> Result<()> {
        interrupt::be_orderly();
        on_large_stack(|| self.run_statements(text, printer, done))
    }

    fn run_statements(
        &self,
        text: &str,
        printer: &mut Printer,
        done: &mut dyn FnMut(&StatementSummary),
    ) -> Result<()> {
        for statement in parse(text)? {
            let started = Instant::now();
            let (rows, written) = match statement {
                AllowedStatement::Query(query) => {
                    (self.print(self.start(&query, text)?, text, printer)?, None)
                }
                AllowedStatement::Summary(query) => {
                    (self.print(self.summarize(*query, text)?, text, printer)?, None)
                }
                AllowedStatement::Definition(statement) => (self.define(*statement, text)?, None),
                AllowedStatement::Copy(copy) => {
                    let (rows, written) = self.copy(&copy, text)?;
                    (rows, Some(written))
                }
            };
            done(&StatementSummary { rows, seconds: started.elapsed().as_secs_f64(), written });
            if printer.destination.is_closed() {
                break;
            }
        }
        Ok(())
    }

    fn print(&self, stream: RunningStream, text: &str, printer: &mut Printer) -> Result<u64> {
        printer.results += 1;
        if printer.format == ResultFormat::Parquet && printer.results > 1 {
            return Err(Error::usage(
                "a Parquet file can hold only one result",
                "pass one query, or write each result with COPY (SELECT ...) TO 'file.parquet'",
            ));
        }
        let schema = stream.schema();
        let format = printer.format;
        let closed = printer.destination.closed();
        let name = printer.destination.name().to_owned();
        let named = |error: Error| at_output(error, &name);
        let output = Box::new(&mut printer.destination);
        let writer = format.writer(&schema, output, self.writer_memory, printer.headers).map_err(named)?;
        let is_closed = || closed.load(Ordering::Relaxed);
        let rows = self.write_all(stream, writer, text, &is_closed).map_err(named)?;
        printer.destination.flush().map_err(|error| named(failed(error)))?;
        Ok(rows)
    }

    fn copy(&self, copy: &CopyStatement, text: &str) -> Result<(u64, String)> {
        let location = self.tables.roots().resolve_to_write(&copy.target).map_err(as_failure)?;
        let mut destination = Destination::file(&location, copy.compression, self.replace)?;
        let name = location.to_string();
        let named = |error: Error| at_output(error, &name);
        let stream = self.start(&copy.query, text)?;
        let (schema, output) = (stream.schema(), Box::new(&mut destination));
        let writer: Box<dyn ResultWriter> = match (copy.format, copy.delimiter) {
            (ResultFormat::Csv | ResultFormat::Tsv, delimiter) => {
                let default = if copy.format == ResultFormat::Csv { ',' } else { '\t' };
                let rows = TextRows::delimited(delimiter.unwrap_or(default), copy.header);
                Box::new(TextResult::new(&schema, output, rows).map_err(named)?)
            }
            (format, _) => format.writer(&schema, output, self.writer_memory, true).map_err(named)?,
        };
        let rows = self.write_all(stream, writer, text, &|| false).map_err(named)?;
        destination.commit()?;
        Ok((rows, name))
    }

    /// Computes statistics of each column of a query.
    fn summarize(&self, query: Statement, text: &str) -> Result<RunningStream> {
        if self.cluster.is_some() {
            return Err(Error::place(
                "query",
                "SUMMARIZE does not run on a cluster",
                "run it without --cluster, or write the aggregates: SELECT min(label), max(label) FROM ...",
            ));
        }
        let context = self.context.clone();
        let stream = self.threads.run(async move {
            let plan = context.state().statement_to_plan(query).await?;
            check_plan(&plan)?;
            read_only().verify_plan(&plan)?;
            refuse_list_lengths(&plan)?;
            let plan = compare_as_float32(plan)?;
            match summarize(&context, plan.clone()).await {
                Ok(stream) => Ok(stream),
                Err(error) => Err(with_text_files(error, &context.state(), &plan).await),
            }
        });
        stream.map(|stream| self.threads.stream(stream)).map_err(|error| self.user_error(&error, text))
    }

    fn define(&self, statement: Statement, text: &str) -> Result<u64> {
        let (context, tables) = (self.context.clone(), self.tables.clone());
        let on_cluster = self.cluster.is_some();
        let outcome = self.threads.run(async move {
            let plan = context.state().statement_to_plan(statement).await?;
            check_plan(&plan)?;
            refuse_stored(&tables, &plan).await?;
            refuse_list_lengths(&plan)?;
            if on_cluster {
                refuse_memory_tables(&plan)?;
            }
            let plan = compare_as_float32(plan)?;
            match context.execute_logical_plan(plan.clone()).await {
                Ok(_) => Ok(()),
                Err(error) => Err(with_text_files(error, &context.state(), &plan).await),
            }
        });
        outcome.map_err(|error| self.user_error(&error, text))?;
        Ok(0)
    }

    /// Plans a query and starts it.
    pub(super) fn start(&self, query: &Statement, text: &str) -> Result<RunningStream> {
        let (context, cluster, query) = (self.context.clone(), self.cluster.clone(), query.clone());
        let stream = self.threads.run(async move {
            let state = context.state();
            let plan = state.statement_to_plan(query).await?;
            check_plan(&plan)?;
            // The statement was already checked. Its plan is checked as well, as a second line of defence.
            read_only().verify_plan(&plan)?;
            refuse_explained_writes(&plan)?;
            refuse_list_lengths(&plan)?;
            let plan = compare_as_float32(plan)?;
            if let Some((state, cluster)) = cluster.as_deref()
                && runs_on_cluster(&plan)?
            {
                let plan = state.create_physical_plan(&plan).await?;
                refuse_order_dependence(&plan)?;
                return (cluster.run)(plan, state.config().clone()).await;
            }
            let plan = state.create_physical_plan(&plan).await?;
            let stream = execute_stream(plan.clone(), context.task_ctx())?;
            Ok(name_text_files(&plan, stream))
        });
        stream.map(|stream| self.threads.stream(stream)).map_err(|error| self.user_error(&error, text))
    }

    fn write_all(
        &self,
        mut stream: RunningStream,
        mut writer: Box<dyn ResultWriter + '_>,
        text: &str,
        is_closed: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let mut rows = 0;
        while let Some(batch) = stream.next()?.transpose().map_err(|error| self.user_error(&error, text))? {
            rows += batch.num_rows() as u64;
            writer.write(&batch)?;
            if is_closed() {
                return Ok(rows);
            }
        }
        writer.finish()?;
        Ok(rows)
    }

    fn user_error(&self, error: &DataFusionError, text: &str) -> Error {
        let own = all_function_names().into_iter().map(str::to_owned);
        let functions = own.chain(self.function_names()).collect();
        let known = KnownNames { tables: self.table_names(), functions };
        from_engine_error(error, text, &known)
    }
}
