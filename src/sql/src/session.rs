//! Runs SQL statements in a session, which holds the tables, functions, threads and memory that the statements share.

use super::engine::{EngineThreads, RunningStream, on_large_stack};
use super::error::{KnownNames, as_failure, from_engine_error};
use super::functions::{OneQuery, ResolveModels, all_function_names, register, register_bounded};
use super::on_cluster::{SqlCluster, refuse_memory_tables, refuse_order_dependence, runs_on_cluster};
use super::order::{KeepOrder, MergeInOrder};
use super::output::{Destination, ReplacePolicy, ResultFormat, ResultWriter, TextResult};
use super::pool::ReservingPool;
use super::roots::Roots;
use super::size::check_plan;
use super::statement::{AllowedStatement, CopyStatement, parse};
use super::summary::summarize;
use super::table_list::{TableSummary, table_list};
use super::tables::{CATALOG, Catalog, SCHEMA, Tables};
use super::yielding::YieldAfterJoins;
use datafusion::catalog::SchemaProvider;
use datafusion::common::DataFusionError;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::execution::context::{SQLOptions, SessionConfig, SessionContext};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use planetree_data::catalog::catalog_entries;
use planetree_data::dataset::MANIFEST;
use planetree_data::table::TextRows;
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
    /// Memory limit of queries in bytes, beyond which they spill to temporary files.
    pub memory_limit: u64,
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
        let SessionOptions { threads, memory_limit, roots, replace, cluster } = options;
        let engine = EngineThreads::start(threads)?;
        let pool = pool_of(memory_limit);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(ReservingPool::new(pool)))
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
        let output = Box::new(&mut printer.destination);
        let writer = format.writer(&schema, output, self.writer_memory, printer.headers)?;
        let rows = self.write_all(stream, writer, text, &|| closed.load(Ordering::Relaxed))?;
        printer.destination.flush().map_err(|error| Error::io("the output", "write", error))?;
        Ok(rows)
    }

    fn copy(&self, copy: &CopyStatement, text: &str) -> Result<(u64, String)> {
        let location = self.tables.roots().resolve_to_write(&copy.target).map_err(as_failure)?;
        let mut destination = Destination::file(&location, copy.compression, self.replace)?;
        let stream = self.start(&copy.query, text)?;
        let (schema, output) = (stream.schema(), Box::new(&mut destination));
        let writer: Box<dyn ResultWriter> = match (copy.format, copy.delimiter) {
            (ResultFormat::Csv | ResultFormat::Tsv, delimiter) => {
                let default = if copy.format == ResultFormat::Csv { ',' } else { '\t' };
                let rows = TextRows::delimited(delimiter.unwrap_or(default), copy.header);
                Box::new(TextResult::new(&schema, output, rows)?)
            }
            (format, _) => format.writer(&schema, output, self.writer_memory, true)?,
        };
        let rows = self.write_all(stream, writer, text, &|| false)?;
        destination.commit()?;
        Ok((rows, location.to_string()))
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
            summarize(&context, plan).await
        });
        stream.map(|stream| self.threads.stream(stream)).map_err(|error| self.user_error(&error, text))
    }

    fn define(&self, statement: Statement, text: &str) -> Result<u64> {
        let (context, tables) = (self.context.clone(), self.tables.clone());
        let on_cluster = self.cluster.is_some();
        let outcome = self.threads.run(async move {
            let plan = context.state().statement_to_plan(statement).await?;
            check_plan(&plan)?;
            refuse_stored(&tables, &plan)?;
            if on_cluster {
                refuse_memory_tables(&plan)?;
            }
            context.execute_logical_plan(plan).await.map(drop)
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
            if let Some((state, cluster)) = cluster.as_deref()
                && runs_on_cluster(&plan)?
            {
                let plan = state.create_physical_plan(&plan).await?;
                refuse_order_dependence(&plan)?;
                return (cluster.run)(plan, state.config().clone()).await;
            }
            let plan = state.create_physical_plan(&plan).await?;
            execute_stream(plan, context.task_ctx())
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

/// Fails if a definition would replace or drop a table on disk.
fn refuse_stored(tables: &Tables, plan: &LogicalPlan) -> Result<(), DataFusionError> {
    let LogicalPlan::Ddl(definition) = plan else { return Ok(()) };
    let name = match definition {
        DdlStatement::CreateMemoryTable(table) => &table.name,
        DdlStatement::CreateView(view) => &view.name,
        DdlStatement::DropTable(table) => &table.name,
        DdlStatement::DropView(view) => &view.name,
        _ => return Ok(()),
    };
    match tables.location_of(name.table()) {
        Some(location) => Err(super::error::to_engine_error(Error::place(
            location,
            format_args!("cannot change {}: it is a table on disk", name.table()),
            "choose another name",
        ))),
        None => Ok(()),
    }
}

fn read_only() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

/// Fails if the plan that EXPLAIN shows would write. The check of the outer plan does not look into EXPLAIN.
fn refuse_explained_writes(plan: &LogicalPlan) -> Result<(), DataFusionError> {
    match plan {
        LogicalPlan::Explain(explain) => read_only().verify_plan(&explain.plan),
        LogicalPlan::Analyze(analyze) => read_only().verify_plan(&analyze.input),
        _ => Ok(()),
    }
}

/// Bytes for the program, its libraries and what it reads and writes.
const PROGRAM: u64 = 192 << 20;
/// Minimum bytes of the pool of memory, if the limit has as much. With less, a sort cannot merge what it has spilled.
const MIN_POOL: u64 = 8 << 20;
/// Size of the pool below which batches are small, because a merge holds two batches of each of its inputs.
const SMALL_POOL: usize = 128 << 20;

/// Returns the bytes that sorts, joins and aggregations may use before they spill. The engine does not count the
/// batches that pass through it, and a sort copies its rows when it spills them.
fn pool_of(memory_limit: u64) -> usize {
    let pool = (memory_limit.saturating_sub(PROGRAM) / 3).max(MIN_POOL.min(memory_limit / 2));
    usize::try_from(pool).unwrap_or(usize::MAX)
}

fn session_config(threads: usize, pool: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let ConfigOptions { sql_parser, optimizer, execution, .. } = config.options_mut();
    sql_parser.dialect = Dialect::DuckDB;
    sql_parser.collect_spans = true;
    // The ORDER BY of subqueries, views and CTEs is kept, because LIMIT, metrics and the output use its order.
    sql_parser.enable_subquery_sort_elimination = false;
    // The next two options would move rows between partitions depending on timing, and so lose the order of a table.
    optimizer.enable_round_robin_repartition = false;
    execution.enable_file_stream_work_stealing = false;
    // A sort reserves memory for merging its sorted runs. This must not be most of the memory that the sort has.
    let share = pool / (4 * threads.max(1));
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(share);
    if pool < SMALL_POOL { config.with_batch_size(1024) } else { config }
}

fn session_context(
    config: SessionConfig,
    environment: Arc<RuntimeEnv>,
    tables: &Arc<Tables>,
) -> SessionContext {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(KeepOrder));
    rules.push(Arc::new(MergeInOrder));
    rules.push(Arc::new(YieldAfterJoins));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment)
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .with_analyzer_rule(Arc::new(ResolveModels(tables.clone())))
        .with_analyzer_rule(Arc::new(OneQuery))
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(CATALOG, Arc::new(Catalog(tables.clone())));
    register(&context, tables);
    context
}
