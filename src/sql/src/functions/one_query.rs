//! Rejects ranking metrics over the rows of several search queries. A metric is defined on the ranking of one search
//! query. If a statement lacks GROUP BY, the value over the rows of several search queries would look plausible, so
//! it is an error. `ndcg_pooled` and the other pooled metrics accept such rows.
//!
//! ```text
//! Aggregate: ndcg(label, score)        Projection: within_query(ndcg(...), lowest, highest) AS ndcg(...)
//!   Projection: label, score    ──►      Aggregate: ndcg(label, score), min(query) AS lowest, max(query) AS highest
//!     TableScan                            Projection: label, score, query_id AS query
//!                                            TableScan
//! ```
//!
//! The rule finds the query id column in the plan, even if subqueries, views and CTEs do not select it. Whether the
//! rows belong to several queries is decided at run time, so anything that selects one query (WHERE, a join, groups
//! within a query) is accepted. No check is added if the rows are grouped by the query id, or if the table has no
//! query id.

use super::ranking::MetricFunction;
use super::within_query::within_query;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, ExprSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, ScalarFunction, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, LogicalPlan, Projection, Union, Window, WindowFunctionDefinition, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule that makes a metric fail if its rows belong to several queries.
#[derive(Debug)]
pub(crate) struct OneQuery;

/// Names of the query id column in planetree's tables and in LETOR files.
const QUERY_NAMES: [&str; 2] = ["query_id", "qid"];
/// Name of the query id column that this rule adds to subqueries that do not select one.
const CARRIED: &str = "__query";
const LOWEST: &str = "__lowest_query";
const HIGHEST: &str = "__highest_query";

impl AnalyzerRule for OneQuery {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let guarded = match &plan {
                LogicalPlan::Aggregate(aggregate) => guarded_aggregate(aggregate)?,
                LogicalPlan::Window(window) => guarded_window(window)?,
                _ => None,
            };
            Ok(guarded.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "one_query"
    }
}

/// A metric that a plan node computes.
struct MetricCall {
    /// Index of the call among the expressions of the node.
    index: usize,
    name: String,
    pooled: &'static str,
}

fn metric_call(index: usize, function: &AggregateUDF) -> Option<MetricCall> {
    let metric = function.inner().downcast_ref::<MetricFunction>()?;
    Some(MetricCall { index, name: function.name().to_owned(), pooled: metric.pooled_name()? })
}

fn guarded_aggregate(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let calls = aggregate.aggr_expr.iter().enumerate();
    let metrics: Vec<(MetricCall, &AggregateFunctionParams)> = calls
        .filter_map(|(index, call)| match without_alias(call) {
            Expr::AggregateFunction(call) => Some((metric_call(index, &call.func)?, &call.params)),
            _ => None,
        })
        .collect();
    if metrics.is_empty() || groups_by_query(&aggregate.group_expr) || is_guarded(&aggregate.schema) {
        return Ok(None);
    }
    let Some((input, query)) = with_query(&aggregate.input)? else { return Ok(None) };
    let mut calls = aggregate.aggr_expr.clone();
    for (metric, params) in &metrics {
        calls.extend(query_bounds(metric.index).into_iter().map(|(function, name)| {
            let params = AggregateFunctionParams {
                args: vec![Expr::Column(query.clone())],
                distinct: false,
                filter: params.filter.clone(),
                order_by: Vec::new(),
                null_treatment: None,
            };
            Expr::AggregateFunction(AggregateFunction { func: function, params }).alias(name)
        }));
    }
    let plan = Aggregate::try_new(Arc::new(input), aggregate.group_expr.clone(), calls)?;
    let metrics = metrics.into_iter().map(|(metric, _)| metric);
    with_check(LogicalPlan::Aggregate(plan), &aggregate.schema, aggregate.aggr_expr.len(), metrics).map(Some)
}

fn guarded_window(window: &Window) -> Result<Option<LogicalPlan>> {
    let calls = window.window_expr.iter().enumerate();
    let metrics: Vec<(MetricCall, &WindowFunctionParams)> = calls
        .filter_map(|(index, call)| match without_alias(call) {
            Expr::WindowFunction(call) if !groups_by_query(&call.params.partition_by) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => {
                    Some((metric_call(index, function)?, &call.params))
                }
                WindowFunctionDefinition::WindowUDF(_) => None,
            },
            _ => None,
        })
        .collect();
    if metrics.is_empty() || is_guarded(&window.schema) {
        return Ok(None);
    }
    let Some((input, query)) = with_query(&window.input)? else { return Ok(None) };
    let mut calls = window.window_expr.clone();
    for (metric, params) in &metrics {
        calls.extend(query_bounds(metric.index).into_iter().map(|(function, name)| {
            let params = WindowFunctionParams {
                args: vec![Expr::Column(query.clone())],
                distinct: false,
                null_treatment: None,
                ..(*params).clone()
            };
            let fun = WindowFunctionDefinition::AggregateUDF(function);
            Expr::from(WindowFunction { fun, params }).alias(name)
        }));
    }
    let plan = Window::try_new(calls, Arc::new(input))?;
    let metrics = metrics.into_iter().map(|(metric, _)| metric);
    with_check(LogicalPlan::Window(plan), &window.schema, window.window_expr.len(), metrics).map(Some)
}

/// Returns the minimum and the maximum of the query id as aggregates, with their names. They are equal if the rows of a
/// metric belong to one query.
fn query_bounds(index: usize) -> [(Arc<AggregateUDF>, String); 2] {
    [(min_udaf(), format!("{LOWEST}{index}")), (max_udaf(), format!("{HIGHEST}{index}"))]
}

/// Projects a node to its original columns and adds the check to each metric. The last `calls` columns are the node's
/// aggregate or window functions.
fn with_check(
    plan: LogicalPlan,
    before: &DFSchema,
    calls: usize,
    metrics: impl Iterator<Item = MetricCall>,
) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = before.columns().into_iter().map(Expr::Column).collect();
    let first = columns.len() - calls;
    for MetricCall { index, name, pooled } in metrics {
        let column = &mut columns[first + index];
        let (relation, shown) = before.qualified_field(first + index);
        let bound = |name: &str| Expr::Column(Column::new_unqualified(format!("{name}{index}")));
        let arguments = vec![column.clone(), bound(LOWEST), bound(HIGHEST), lit(name), lit(pooled)];
        *column = Expr::ScalarFunction(ScalarFunction::new_udf(within_query(), arguments))
            .alias_qualified(relation.cloned(), shown.name());
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// Checks whether the check was already added, because the rule may run twice on a plan.
fn is_guarded(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| field.name().starts_with(LOWEST))
}

fn without_alias(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

/// Checks whether one of the grouping keys is the query id. Grouping sets do not count, because some of their groups
/// span all queries.
fn groups_by_query(keys: &[Expr]) -> bool {
    let is_query = |key: &Expr| matches!(without_alias(key), Expr::Column(column) if QUERY_NAMES.contains(&column.name.as_str()));
    keys.iter().any(is_query) && !keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
}

fn query_column(schema: &DFSchema) -> Option<Column> {
    let find = |name: &str| schema.columns().into_iter().find(|column| column.name == name);
    QUERY_NAMES.into_iter().chain([CARRIED]).find_map(find)
}

/// Returns the plan, with a query id column added if it has none, and this column. Returns `None` if the plan reads
/// no query id. The column is added at the end, so that the indices of the other columns do not change.
fn with_query(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Column)>> {
    if let Some(column) = query_column(plan.schema()) {
        return Ok(Some((plan.clone(), column)));
    }
    match plan {
        LogicalPlan::Projection(projection) => {
            let Some((input, column)) = with_query(&projection.input)? else { return Ok(None) };
            let carried = Expr::Column(column).alias(CARRIED);
            let columns = projection.expr.iter().cloned().chain([carried]).collect();
            let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?);
            Ok(query_column(plan.schema()).map(|column| (plan, column)))
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Repartition(_) => {
            let inputs = plan.inputs();
            for (index, input) in inputs.iter().enumerate() {
                let Some((with_id, _)) = with_query(input)? else { continue };
                let mut inputs: Vec<LogicalPlan> = inputs.iter().map(|input| (*input).clone()).collect();
                inputs[index] = with_id;
                let plan = plan.with_new_exprs(plan.expressions(), inputs)?;
                // A semi join outputs only one side, which may not have the column.
                if let Some(column) = query_column(plan.schema()) {
                    return Ok(Some((plan, column)));
                }
            }
            Ok(None)
        }
        LogicalPlan::Union(union) => {
            let mut inputs = Vec::new();
            let mut types = Vec::new();
            for input in &union.inputs {
                let Some((with_id, column)) = with_query(input)? else { return Ok(None) };
                types.push(with_id.schema().data_type(&column)?.clone());
                let columns = input.schema().columns().into_iter().map(Expr::Column);
                let columns = columns.chain([Expr::Column(column).alias(CARRIED)]).collect();
                inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(
                    columns,
                    Arc::new(with_id),
                )?)));
            }
            if types.windows(2).any(|types| types[0] != types[1]) {
                return Ok(None);
            }
            let plan = LogicalPlan::Union(Union::try_new(inputs)?);
            Ok(query_column(plan.schema()).map(|column| (plan, column)))
        }
        _ => Ok(None),
    }
}
