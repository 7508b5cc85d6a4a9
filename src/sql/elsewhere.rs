//! Statements on a cluster: what may go there, and what stays here. Tables are then plain Parquet, CSV and JSON files,
//! which every machine reads for itself.

use super::error::outward;
use super::functions::needs_model;
use super::scan::SourceTable;
use crate::error::{Error, Result};
use crate::storage::Location;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan};
use std::any::Any;
use std::sync::Arc;

/// Refuses places that the machines of a cluster do not have.
pub type PlaceCheck = Arc<dyn Fn(&Location) -> Result<()> + Send + Sync>;

/// Makes a session of this machine one whose queries run on a cluster.
pub type Upgrade = Box<dyn Fn(SessionState) -> EngineResult<SessionState> + Send + Sync>;

/// A cluster that queries run on.
pub struct Elsewhere {
    /// Makes a session one of the cluster.
    pub upgrade: Upgrade,
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
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    match stays {
        Some(name) if reads_files => Err(stays_here(&name, "it holds a model, or rows, of this machine")),
        _ => Ok(reads_files),
    }
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
