//! Refuses plans that would write, or change tables on disk.

use super::error::to_engine_error;
use super::tables::Tables;
use datafusion::common::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use planetree_base::error::{Error, Result};

/// Fails if a definition would replace or drop a table on disk.
pub(super) fn refuse_stored(tables: &Tables, plan: &LogicalPlan) -> Result<(), DataFusionError> {
    let LogicalPlan::Ddl(definition) = plan else { return Ok(()) };
    let name = match definition {
        DdlStatement::CreateMemoryTable(table) => &table.name,
        DdlStatement::CreateView(view) => &view.name,
        DdlStatement::DropTable(table) => &table.name,
        DdlStatement::DropView(view) => &view.name,
        _ => return Ok(()),
    };
    match tables.location_of(name.table()) {
        Some(location) => Err(to_engine_error(Error::place(
            location,
            format_args!("cannot change {}: it is a table on disk", name.table()),
            "choose another name",
        ))),
        None => Ok(()),
    }
}

/// Returns options that allow only plans that read.
pub(super) fn read_only() -> SQLOptions {
    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false)
}

/// Fails if the plan that EXPLAIN shows would write. The check of the outer plan does not look into EXPLAIN.
pub(super) fn refuse_explained_writes(plan: &LogicalPlan) -> Result<(), DataFusionError> {
    match plan {
        LogicalPlan::Explain(explain) => read_only().verify_plan(&explain.plan),
        LogicalPlan::Analyze(analyze) => read_only().verify_plan(&analyze.input),
        _ => Ok(()),
    }
}
