//! Refuses plans that would write, or change tables on disk.

use super::error::{QUERY, to_engine_error};
use super::tables::Tables;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{DdlStatement, Expr, ExprSchemable, LogicalPlan};
use planetree_base::error::{Error, Result};

/// Fails if a definition would replace or drop a table on disk, or hide one of the current directory.
pub(super) async fn refuse_stored(tables: &Tables, plan: &LogicalPlan) -> Result<(), DataFusionError> {
    let LogicalPlan::Ddl(definition) = plan else { return Ok(()) };
    let name = match definition {
        DdlStatement::CreateMemoryTable(table) => table.name.table(),
        DdlStatement::CreateView(view) => view.name.table(),
        DdlStatement::DropTable(table) => table.name.table(),
        DdlStatement::DropView(view) => view.name.table(),
        _ => return Ok(()),
    };
    match tables.stored_location(name).await {
        Some(location) => Err(to_engine_error(Error::place(
            location,
            format_args!("cannot change {name}: it is a table on disk"),
            "choose another name",
        ))),
        None => Ok(()),
    }
}

/// Fails if the length of a list is computed. The engine would convert the list to text, and count its characters.
pub(super) fn refuse_list_lengths(plan: &LogicalPlan) -> Result<(), DataFusionError> {
    plan.apply_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        plan.apply_expressions(|expression| {
            expression.apply(|part| match is_list_length(part, &schema) {
                true => Err(to_engine_error(Error::place(
                    QUERY,
                    "length counts the characters of a text, but its argument is a list",
                    "write array_length(list) for the number of elements",
                ))),
                false => Ok(TreeNodeRecursion::Continue),
            })
        })
    })
    .map(|_| ())
}

fn is_list_length(expression: &Expr, schema: &DFSchema) -> bool {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expression else { return false };
    let [argument] = args.as_slice() else { return false };
    let is_list = |kind: DataType| {
        matches!(
            kind,
            DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(..)
                | DataType::ListView(_)
                | DataType::LargeListView(_)
        )
    };
    func.name() == "character_length" && argument.get_type(schema).is_ok_and(is_list)
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
