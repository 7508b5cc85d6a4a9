//! A metric is that of one query's ranking. Where rows of several queries meet, by a forgotten GROUP BY, its value
//! would look like any other, so it is an error; `ndcg_pooled` and its like say that it is meant.
//!
//! ```text
//! Aggregate: ndcg(label, score)        Projection: within_query(ndcg(...), lowest, highest) AS ndcg(...)
//!   Projection: label, score    ──►      Aggregate: ndcg(label, score), min(query) AS lowest, max(query) AS highest
//!     TableScan                            Projection: label, score, query_id AS query
//!                                            TableScan
//! ```
//!
//! The plan tells where the query's id is, through subqueries, views and CTEs that leave it out; the rows tell whether
//! there are several. So whatever picks one query (WHERE, a join, a group that belongs to one query) is fine. Groups by
//! the id itself need no such look, and tables without one get none.

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

/// See the module.
#[derive(Debug)]
pub struct OneQuery;

/// What a column of queries is called: in our tables, and in LETOR's words.
const QUERY_NAMES: [&str; 2] = ["query_id", "qid"];
/// What it is called where a subquery leaves it out.
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

/// A metric of one query among the expressions of a node.
struct Metric {
    /// Its place among them.
    place: usize,
    name: String,
    pooled: &'static str,
}

fn metric_of(place: usize, function: &AggregateUDF) -> Option<Metric> {
    let metric = function.inner().downcast_ref::<MetricFunction>()?;
    Some(Metric { place, name: function.name().to_owned(), pooled: metric.pooled_name()? })
}

fn guarded_aggregate(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let calls = aggregate.aggr_expr.iter().enumerate();
    let metrics: Vec<(Metric, &AggregateFunctionParams)> = calls
        .filter_map(|(place, call)| match bare(call) {
            Expr::AggregateFunction(call) => Some((metric_of(place, &call.func)?, &call.params)),
            _ => None,
        })
        .collect();
    if metrics.is_empty() || names_query(&aggregate.group_expr) || is_guarded(&aggregate.schema) {
        return Ok(None);
    }
    let Some((input, query)) = with_query(&aggregate.input)? else { return Ok(None) };
    let mut calls = aggregate.aggr_expr.clone();
    for (metric, params) in &metrics {
        calls.extend(ends(metric.place).into_iter().map(|(function, name)| {
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
    checked(LogicalPlan::Aggregate(plan), &aggregate.schema, aggregate.aggr_expr.len(), metrics).map(Some)
}

fn guarded_window(window: &Window) -> Result<Option<LogicalPlan>> {
    let calls = window.window_expr.iter().enumerate();
    let metrics: Vec<(Metric, &WindowFunctionParams)> = calls
        .filter_map(|(place, call)| match bare(call) {
            Expr::WindowFunction(call) if !names_query(&call.params.partition_by) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => {
                    Some((metric_of(place, function)?, &call.params))
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
        calls.extend(ends(metric.place).into_iter().map(|(function, name)| {
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
    checked(LogicalPlan::Window(plan), &window.schema, window.window_expr.len(), metrics).map(Some)
}

/// The functions that tell whether a metric saw one query, and what they are called.
fn ends(place: usize) -> [(Arc<AggregateUDF>, String); 2] {
    [(min_udaf(), format!("{LOWEST}{place}")), (max_udaf(), format!("{HIGHEST}{place}"))]
}

/// The columns that a node had, the last ones being its calls, with a look at the queries of metrics.
fn checked(
    plan: LogicalPlan,
    before: &DFSchema,
    calls: usize,
    metrics: impl Iterator<Item = Metric>,
) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = before.columns().into_iter().map(Expr::Column).collect();
    let first = columns.len() - calls;
    for Metric { place, name, pooled } in metrics {
        let column = &mut columns[first + place];
        let (relation, shown) = before.qualified_field(first + place);
        let end = |name: &str| Expr::Column(Column::new_unqualified(format!("{name}{place}")));
        let arguments = vec![column.clone(), end(LOWEST), end(HIGHEST), lit(name), lit(pooled)];
        *column = Expr::ScalarFunction(ScalarFunction::new_udf(within_query(), arguments))
            .alias_qualified(relation.cloned(), shown.name());
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// Whether a plan came here before.
fn is_guarded(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| field.name().starts_with(LOWEST))
}

fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => bare(&alias.expr),
        other => other,
    }
}

/// Whether one of the keys is a query's id. Grouping sets are not: some of their groups may be of all queries.
fn names_query(keys: &[Expr]) -> bool {
    let is_query =
        |key: &Expr| matches!(bare(key), Expr::Column(column) if QUERY_NAMES.contains(&column.name.as_str()));
    keys.iter().any(is_query) && !keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
}

fn query_column(schema: &DFSchema) -> Option<Column> {
    let called = |name: &str| schema.columns().into_iter().find(|column| column.name == name);
    QUERY_NAMES.into_iter().chain([CARRIED]).find_map(called)
}

/// The plan with the id of the query that each row is of, if there is one; columns are at most added at the end.
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
            for (place, input) in inputs.iter().enumerate() {
                let Some((carrying, _)) = with_query(input)? else { continue };
                let mut inputs: Vec<LogicalPlan> = inputs.iter().map(|input| (*input).clone()).collect();
                inputs[place] = carrying;
                let plan = plan.with_new_exprs(plan.expressions(), inputs)?;
                // Of a semi join only one side comes out.
                if let Some(column) = query_column(plan.schema()) {
                    return Ok(Some((plan, column)));
                }
            }
            Ok(None)
        }
        LogicalPlan::Union(union) => {
            let mut inputs = Vec::new();
            let mut kinds = Vec::new();
            for input in &union.inputs {
                let Some((carrying, column)) = with_query(input)? else { return Ok(None) };
                kinds.push(carrying.schema().data_type(&column)?.clone());
                let columns = input.schema().columns().into_iter().map(Expr::Column);
                let columns = columns.chain([Expr::Column(column).alias(CARRIED)]).collect();
                inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(
                    columns,
                    Arc::new(carrying),
                )?)));
            }
            if kinds.windows(2).any(|kinds| kinds[0] != kinds[1]) {
                return Ok(None);
            }
            let plan = LogicalPlan::Union(Union::try_new(inputs)?);
            Ok(query_column(plan.schema()).map(|column| (plan, column)))
        }
        _ => Ok(None),
    }
}
