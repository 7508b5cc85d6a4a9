//! Configures the engine of a session: memory, options, rules of planning, tables and functions.

use super::functions::{OneQuery, ResolveModels, register};
use super::order::{KeepOrder, MergeInOrder};
use super::tables::{CATALOG, Catalog, SCHEMA, Tables};
use super::yielding::YieldAfterJoins;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::execution::context::{SessionConfig, SessionContext};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use std::sync::Arc;

/// Bytes for the program, its libraries and what it reads and writes.
const PROGRAM: u64 = 192 << 20;
/// Minimum bytes of the pool of memory, if the limit has as much. With less, a sort cannot merge what it has spilled.
const MIN_POOL: u64 = 8 << 20;
/// Size of the pool below which batches are small, because a merge holds two batches of each of its inputs.
const SMALL_POOL: usize = 128 << 20;

/// Returns the bytes that sorts, joins and aggregations may use before they spill. The engine does not count the
/// batches that pass through it, and a sort copies its rows when it spills them.
pub(super) fn pool_of(memory_limit: u64) -> usize {
    let pool = (memory_limit.saturating_sub(PROGRAM) / 3).max(MIN_POOL.min(memory_limit / 2));
    usize::try_from(pool).unwrap_or(usize::MAX)
}

/// Returns the bytes of a pool that sorts leave for merging what they have sorted.
pub(super) fn reserve_of(pool: usize) -> usize {
    pool / 4
}

/// Returns the options of the engine for a number of threads and a pool of this many bytes.
pub(super) fn session_config(threads: usize, pool: usize) -> SessionConfig {
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
    // A sort reserves memory for merging its sorted runs. All of them together fit in the reserve.
    let share = reserve_of(pool) / threads.max(1);
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(share);
    if pool < SMALL_POOL { config.with_batch_size(1024) } else { config }
}

/// Returns the engine's session, with planetree's tables, functions and rules of planning.
pub(super) fn session_context(
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
