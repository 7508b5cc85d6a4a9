//! Statements on a cluster: what may go there, and what stays here. Tables are then plain Parquet, CSV and JSON files,
//! which every machine reads for itself.

use super::error::outward;
use super::functions::{MetricFunction, RANK_IN_QUERY, needs_model};
use super::scan::SourceTable;
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

/// Refuses places that the machines of a cluster do not have.
pub type PlaceCheck = Arc<dyn Fn(&Location) -> Result<()> + Send + Sync>;

/// Makes a session of this machine one that plans for a cluster.
pub type Upgrade = Box<dyn Fn(SessionState) -> SessionState + Send + Sync>;

/// Runs a plan of such a session on the cluster.
pub type RunThere = Box<
    dyn Fn(
            Arc<dyn ExecutionPlan>,
            SessionConfig,
        ) -> BoxFuture<'static, EngineResult<SendableRecordBatchStream>>
        + Send
        + Sync,
>;

/// A cluster that queries run on.
pub struct Elsewhere {
    /// Makes a session one that plans for it.
    pub upgrade: Upgrade,
    /// Runs what was planned.
    pub run: RunThere,
    /// Which places it has.
    pub check: PlaceCheck,
    /// Partitions that keep all its threads at work.
    pub partitions: usize,
    /// What must be there as long as queries run.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Elsewhere({} partitions)", self.partitions)
    }
}

/// Whether a query has something to do for a cluster: it reads files. An error if it also needs what cannot go there.
pub fn belongs_there(plan: &LogicalPlan) -> EngineResult<bool> {
    if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
        return Err(stays_here("EXPLAIN", "it tells how this machine would run a query"));
    }
    let (mut reads_files, mut stays) = (false, None);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.schema() != Some("information_schema")
        {
            reads_files = true;
            if source_as_provider(&scan.source)?.downcast_ref::<SourceTable>().is_some() {
                stays = Some(scan.table_name.table().trim_end_matches("()").to_owned());
            }
        }
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::ScalarFunction(call) = expression
                    && needs_model(call.func.name())
                {
                    stays = Some(call.func.name().to_owned());
                }
                if let Expr::WindowFunction(call) = expression
                    && call.fun.name() == RANK_IN_QUERY
                {
                    return Err(looks_at_order(RANK_IN_QUERY));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    match stays {
        Some(name) if reads_files => Err(stays_here(&name, "it holds a model, or rows, of this machine")),
        _ => Ok(reads_files),
    }
}

/// Refuses metrics whose value depends on the order of rows, which no cluster keeps.
pub fn refuse_order(plan: &Arc<dyn ExecutionPlan>) -> EngineResult<()> {
    plan.apply(|node| {
        for aggregate in node.downcast_ref::<AggregateExec>().into_iter().flat_map(AggregateExec::aggr_expr) {
            if let Some(function) = aggregate.fun().inner().downcast_ref::<MetricFunction>()
                && function.looks_at_order(aggregate)?
            {
                return Err(looks_at_order(aggregate.fun().name()));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map(drop)
}

fn looks_at_order(name: &str) -> datafusion::error::DataFusionError {
    outward(Error::place(
        "query",
        format_args!("{name} cannot go to a cluster: it looks at the order of rows, where scores are equal"),
        "leave --cluster out; or name a convention that does not, such as 'planetree,ties=worst'; or use \
         `planetree evaluate --cluster`",
    ))
}

/// Refuses tables that would be in this machine's memory.
pub fn refuse_memory(plan: &LogicalPlan) -> EngineResult<()> {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_)) => {
            Err(stays_here("CREATE TABLE", "its rows would be in the memory of this machine"))
        }
        _ => Ok(()),
    }
}

fn stays_here(what: &str, why: &str) -> datafusion::error::DataFusionError {
    outward(Error::place(
        "query",
        format_args!("{what} cannot go to a cluster: {why}"),
        "leave --cluster out; or score with `planetree predict --cluster` first, and keep rows with COPY or a view",
    ))
}
