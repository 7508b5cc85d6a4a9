//! Decides which statements can run on a cluster. There, all tables are plain Parquet, CSV and JSON files, because
//! every executor reads them itself.

use super::error::to_engine_error;
use super::functions::{MetricFunction, RANK_IN_QUERY, needs_model};
use super::scan::ScanTable;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::prelude::SessionConfig;
use futures::future::BoxFuture;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::any::Any;
use std::sync::Arc;

/// Rejects locations that the executors of a cluster cannot read.
pub type LocationCheck = Arc<dyn Fn(&Location) -> Result<()> + Send + Sync>;

/// Turns a local session into one that plans for a cluster.
pub type SessionUpgrade = Box<dyn Fn(SessionState) -> SessionState + Send + Sync>;

/// Runs a physical plan on the cluster.
pub type RunOnCluster = Box<
    dyn Fn(
            Arc<dyn ExecutionPlan>,
            SessionConfig,
        ) -> BoxFuture<'static, EngineResult<SendableRecordBatchStream>>
        + Send
        + Sync,
>;

/// A cluster that queries run on.
pub struct SqlCluster {
    /// Turns a local session into one that plans for the cluster.
    pub upgrade: SessionUpgrade,
    /// Runs a physical plan on the cluster.
    pub run: RunOnCluster,
    /// Rejects locations that executors cannot read.
    pub check: LocationCheck,
    /// Number of partitions that keeps all threads of the cluster busy.
    pub partitions: usize,
    /// Keeps the cluster alive as long as queries may run.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for SqlCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SqlCluster({} partitions)", self.partitions)
    }
}

/// Checks whether a query runs on the cluster, which it does if it reads files. Fails if it also needs something that
/// is only available locally.
pub(crate) fn runs_on_cluster(plan: &LogicalPlan) -> EngineResult<bool> {
    if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
        return Err(local_only("EXPLAIN", "it shows the plan of the local machine"));
    }
    let (mut reads_files, mut local) = (false, None);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.schema() != Some("information_schema")
        {
            reads_files = true;
            if source_as_provider(&scan.source)?.downcast_ref::<ScanTable>().is_some() {
                local = Some(scan.table_name.table().trim_end_matches("()").to_owned());
            }
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::ScalarFunction(call) = expression
                    && needs_model(call.func.name())
                {
                    local = Some(call.func.name().to_owned());
                }
                if let Expr::WindowFunction(call) = expression
                    && call.fun.name() == RANK_IN_QUERY
                {
                    return Err(order_dependent(RANK_IN_QUERY));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    match local {
        Some(name) if reads_files => {
            Err(local_only(&name, "it needs a model or rows that only the local machine has"))
        }
        _ => Ok(reads_files),
    }
}

/// Rejects metrics whose value depends on the order of the rows, because a cluster does not keep that order.
pub(crate) fn refuse_order_dependence(plan: &Arc<dyn ExecutionPlan>) -> EngineResult<()> {
    plan.apply(|node| {
        for aggregate in node.downcast_ref::<AggregateExec>().into_iter().flat_map(AggregateExec::aggr_expr) {
            if let Some(function) = aggregate.fun().inner().downcast_ref::<MetricFunction>()
                && function.depends_on_order(aggregate)?
            {
                return Err(order_dependent(aggregate.fun().name()));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(drop)
}

fn order_dependent(name: &str) -> datafusion::error::DataFusionError {
    to_engine_error(Error::place(
        "query",
        format_args!("{name} cannot run on a cluster: its value depends on the order of rows"),
        "remove --cluster, choose a convention that does not depend on the order, such as 'planetree,ties=worst', or use \
         `planetree evaluate --cluster`",
    ))
}

/// Rejects statements that create a table in the memory of the local machine, because executors cannot read it.
pub(crate) fn refuse_memory_tables(plan: &LogicalPlan) -> EngineResult<()> {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_)) => {
            Err(local_only("CREATE TABLE", "its rows would be in the memory of the local machine"))
        }
        _ => Ok(()),
    }
}

fn local_only(what: &str, reason: &str) -> datafusion::error::DataFusionError {
    to_engine_error(Error::place(
        "query",
        format_args!("{what} cannot run on a cluster: {reason}"),
        "remove --cluster; or score the dataset first with `planetree predict --cluster`, and use a view or a file \
         written by COPY instead of a table in memory",
    ))
}
