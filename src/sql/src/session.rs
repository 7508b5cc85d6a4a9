//! What statements share: tables, functions, threads and memory.

use super::elsewhere::{Elsewhere, belongs_there, refuse_memory, refuse_order};
use super::error::{KnownNames, failing, inward};
use super::functions::{OneQuery, ResolveModels, all_names, register};
use super::order::{KeepOrder, MergeInOrder};
use super::output::{Destination, Format, Replace, RowWriter, Text};
use super::roots::Roots;
use super::statement::{Allowed, Copy, parse};
use super::tables::{CATALOG, Catalog, SCHEMA, Tables};
use arrow::array::RecordBatch;
use datafusion::catalog::SchemaProvider;
use datafusion::common::DataFusionError;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::{SQLOptions, SessionConfig, SessionContext};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use planetree_data::catalog::entries_of;
use planetree_data::dataset::MANIFEST;
use planetree_data::table::TextRows;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How a session works.
#[derive(Debug)]
pub struct Options {
    /// Threads, and so many partitions.
    pub threads: usize,
    /// Bytes that queries may take before they go on in temporary files.
    pub memory_limit: u64,
    /// Where paths may lie.
    pub roots: Roots,
    /// Which files COPY may replace.
    pub replace: Replace,
    /// A cluster that queries run on, if not here.
    pub elsewhere: Option<Elsewhere>,
}

/// See the module.
pub struct Session {
    runtime: Runtime,
    context: SessionContext,
    pub(super) tables: Arc<Tables>,
    replace: Replace,
    /// The same session on a cluster, and what keeps that there.
    cluster: Option<(SessionState, Elsewhere)>,
}

/// What a statement did.
#[derive(Debug, Clone)]
pub struct Done {
    /// Rows that came out, or were written.
    pub rows: u64,
    /// How long it took.
    pub seconds: f64,
    /// The file that was written.
    pub written: Option<String>,
}

/// Where rows go, and how.
pub struct Printer {
    /// How.
    pub format: Format,
    /// Where.
    pub destination: Destination,
    /// How many results went there.
    pub results: usize,
}

impl Session {
    /// Starts a session without named tables.
    pub fn new(options: Options) -> Result<Self> {
        let Options { threads, memory_limit, roots, replace, elsewhere } = options;
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("planetree-sql")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::usage(format_args!("cannot start threads: {error}"), "lower --threads")
            })?;
        let pool = usize::try_from(memory_limit).unwrap_or(usize::MAX);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(pool)))
            .with_object_list_cache_limit(0)
            .build_arc()
            .map_err(|error| inward(&error, "", &KnownNames::default()))?;
        let mut config = configured(threads, pool);
        if elsewhere.is_some() {
            // Types that cannot travel; other machines would not have them.
            config.options_mut().execution.parquet.schema_force_view_types = false;
        }
        let opener = SessionStateBuilder::new()
            .with_config(config.clone())
            .with_runtime_env(environment.clone())
            .with_default_features()
            .build();
        let check = elsewhere.as_ref().map(|elsewhere| elsewhere.check.clone());
        let tables = Arc::new(Tables::new(roots, opener, check));
        let cluster = match elsewhere {
            None => None,
            Some(elsewhere) => {
                let state = SessionStateBuilder::new()
                    .with_config(config.clone().with_target_partitions(elsewhere.partitions))
                    .with_runtime_env(environment.clone())
                    .with_default_features()
                    .with_analyzer_rule(Arc::new(OneQuery))
                    .build();
                Some(((elsewhere.upgrade)(state), elsewhere))
            }
        };
        let context = context_of(config, environment, &tables);
        Ok(Session { runtime, context, tables, replace, cluster })
    }

    /// Gives a name to a dataset, a table or a file. A directory that is none of them gives its tables.
    pub fn name_table(&self, name: &str, location: Location) -> Result<()> {
        if location.join(MANIFEST).size()?.is_some() || location.size()?.is_some() {
            self.tables.name(name, location);
            return Ok(());
        }
        let entries = match &location {
            Location::Local(path) if !path.is_dir() => return Err(location.absent()),
            _ => entries_of(&location)?,
        };
        if entries.is_empty() {
            self.tables.name(name, location); // perhaps files of others
            return Ok(());
        }
        for entry in entries {
            self.tables.name(&format!("{name}/{}", entry.name), entry.location);
        }
        Ok(())
    }

    /// Makes tables of all that is in a run's directory; one of a single dataset or file.
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
        let entries = entries_of(location)?;
        if entries.is_empty() {
            return Err(Error::place(
                location,
                "there are no datasets or tables of planetree's in this directory",
                "name a run's directory, or a dataset or file with --table name=PATH",
            ));
        }
        entries.into_iter().for_each(|entry| self.tables.name(&entry.name, entry.location));
        Ok(())
    }

    /// Which files results may replace.
    pub fn replace(&self) -> Replace {
        self.replace
    }

    /// The names of all tables.
    pub fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    /// The columns of a table with their types.
    pub fn columns_of(&self, table: &str) -> Result<Vec<(String, String)>> {
        let columns = self.wait(async {
            let provider =
                self.context.table_provider(datafusion::common::TableReference::bare(table)).await?;
            let fields = provider.schema().fields().clone();
            Ok(fields.iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect())
        });
        columns.map_err(|error| self.fault(&error, table))
    }

    /// The names of all functions.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let scalars = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let mut names: Vec<String> = scalars.chain(state.window_functions().keys()).cloned().collect();
        names.extend(state.table_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// Runs the statements of a text one after another; `done` hears of each.
    pub fn run(&self, text: &str, printer: &mut Printer, done: &mut dyn FnMut(&Done)) -> Result<()> {
        interrupt::be_orderly();
        for statement in parse(text)? {
            let started = Instant::now();
            let (rows, written) = match statement {
                Allowed::Query(query) => (self.print(&query, text, printer)?, None),
                Allowed::Definition(statement) => (self.define(*statement, text)?, None),
                Allowed::Copy(copy) => {
                    let (rows, written) = self.copy(&copy, text)?;
                    (rows, Some(written))
                }
            };
            done(&Done { rows, seconds: started.elapsed().as_secs_f64(), written });
            if printer.destination.is_closed() {
                break;
            }
        }
        Ok(())
    }

    fn print(&self, query: &Statement, text: &str, printer: &mut Printer) -> Result<u64> {
        let stream = self.start(query, text)?;
        printer.results += 1;
        if printer.format == Format::Parquet && printer.results > 1 {
            return Err(Error::usage(
                "a Parquet file has room for one result",
                "give one query, or write several with COPY (SELECT ...) TO 'file.parquet'",
            ));
        }
        let schema = stream.schema();
        let format = printer.format;
        let closed = printer.destination.closed();
        let writer = format.writer(&schema, Box::new(&mut printer.destination))?;
        let rows = self.write_all(stream, writer, text, &|| closed.load(Ordering::Relaxed))?;
        printer.destination.flush().map_err(|error| Error::io("the output", "write", &error))?;
        Ok(rows)
    }

    fn copy(&self, copy: &Copy, text: &str) -> Result<(u64, String)> {
        let location = self.tables.roots().resolve_to_write(&copy.target).map_err(failing)?;
        let mut destination = Destination::file(&location, copy.compression, self.replace)?;
        let stream = self.start(&copy.query, text)?;
        let (schema, output) = (stream.schema(), Box::new(&mut destination));
        let writer: Box<dyn RowWriter> = match (copy.format, copy.delimiter) {
            (Format::Csv | Format::Tsv, delimiter) => {
                let usual = if copy.format == Format::Csv { ',' } else { '\t' };
                let rows = TextRows::delimited(delimiter.unwrap_or(usual), copy.header);
                Box::new(Text::new(&schema, output, rows)?)
            }
            (format, _) => format.writer(&schema, output)?,
        };
        let rows = self.write_all(stream, writer, text, &|| false)?;
        destination.commit()?;
        Ok((rows, location.to_string()))
    }

    fn define(&self, statement: Statement, text: &str) -> Result<u64> {
        let outcome = self.wait(async {
            let plan = self.context.state().statement_to_plan(statement).await?;
            self.refuse_named(&plan)?;
            if self.cluster.is_some() {
                refuse_memory(&plan)?;
            }
            self.context.execute_logical_plan(plan).await.map(drop)
        });
        outcome.map_err(|error| self.fault(&error, text))?;
        Ok(0)
    }

    /// An error if a definition would change a table that lies somewhere.
    fn refuse_named(&self, plan: &LogicalPlan) -> Result<(), DataFusionError> {
        let LogicalPlan::Ddl(definition) = plan else { return Ok(()) };
        let name = match definition {
            DdlStatement::CreateMemoryTable(table) => &table.name,
            DdlStatement::CreateView(view) => &view.name,
            DdlStatement::DropTable(table) => &table.name,
            DdlStatement::DropView(view) => &view.name,
            _ => return Ok(()),
        };
        match self.tables.place_of(name.table()) {
            Some(location) => Err(super::error::outward(Error::place(
                location,
                format_args!("{} is a table on disk, which SQL does not change", name.table()),
                "choose another name",
            ))),
            None => Ok(()),
        }
    }

    /// Plans a query and starts it.
    pub(super) fn start(&self, query: &Statement, text: &str) -> Result<SendableRecordBatchStream> {
        let stream = self.wait(async {
            let state = self.context.state();
            let plan = state.statement_to_plan(query.clone()).await?;
            // What the statement is was checked; so is what became of it.
            reading_only().verify_plan(&plan)?;
            refuse_writes(&plan)?;
            if let Some((cluster, elsewhere)) = &self.cluster
                && belongs_there(&plan)?
            {
                let plan = cluster.create_physical_plan(&plan).await?;
                refuse_order(&plan)?;
                return (elsewhere.run)(plan, cluster.config().clone()).await;
            }
            let plan = state.create_physical_plan(&plan).await?;
            execute_stream(plan, self.context.task_ctx())
        });
        stream.map_err(|error| self.fault(&error, text))
    }

    fn write_all(
        &self,
        mut stream: SendableRecordBatchStream,
        mut writer: Box<dyn RowWriter + '_>,
        text: &str,
        is_closed: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let mut rows = 0;
        while let Some(batch) =
            self.next(&mut stream)?.transpose().map_err(|error| self.fault(&error, text))?
        {
            rows += batch.num_rows() as u64;
            writer.write(&batch)?;
            if is_closed() {
                return Ok(rows);
            }
        }
        writer.finish()?;
        Ok(rows)
    }

    /// The next batch, or the user's wish to stop.
    pub(super) fn next(
        &self,
        stream: &mut SendableRecordBatchStream,
    ) -> Result<Option<Result<RecordBatch, DataFusionError>>> {
        self.runtime.block_on(async {
            tokio::select! {
                batch = stream.next() => Ok(batch),
                () = stopped() => Err(Error::Interrupted),
            }
        })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, DataFusionError>>) -> Result<T, DataFusionError> {
        self.runtime.block_on(async {
            tokio::select! {
                outcome = work => outcome,
                () = stopped() => Err(super::error::outward(Error::Interrupted)),
            }
        })
    }

    fn fault(&self, error: &DataFusionError, text: &str) -> Error {
        let ours = all_names().into_iter().map(str::to_owned);
        let functions = ours.chain(self.function_names()).collect();
        let known = KnownNames { tables: self.table_names(), functions };
        inward(error, text, &known)
    }
}

/// Waits until the user asks to stop.
async fn stopped() {
    while !interrupt::requested() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn reading_only() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

/// An error if a plan would write: EXPLAIN hides its plan from the check above.
fn refuse_writes(plan: &LogicalPlan) -> Result<(), DataFusionError> {
    match plan {
        LogicalPlan::Explain(explain) => reading_only().verify_plan(&explain.plan),
        LogicalPlan::Analyze(analyze) => reading_only().verify_plan(&analyze.input),
        _ => Ok(()),
    }
}

fn configured(threads: usize, pool: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let ConfigOptions { sql_parser, optimizer, execution, .. } = config.options_mut();
    sql_parser.dialect = Dialect::DuckDB;
    sql_parser.collect_spans = true;
    // An ORDER BY of a subquery, a view or a CTE counts: LIMIT, metrics and the output above see its order.
    sql_parser.enable_subquery_sort_elimination = false;
    // Both would move rows between partitions by who is idle, and the order of a table would be lost.
    optimizer.enable_round_robin_repartition = false;
    execution.enable_file_stream_work_stealing = false;
    // What a sort keeps for merging its runs; it must not be most of what it has.
    let share = pool / (4 * threads.max(1));
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(share);
    config
}

fn context_of(config: SessionConfig, environment: Arc<RuntimeEnv>, tables: &Arc<Tables>) -> SessionContext {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(KeepOrder));
    rules.push(Arc::new(MergeInOrder));
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
