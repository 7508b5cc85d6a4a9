//! Optimizer rules that make plans keep the order of rows.

use super::in_order::{ConcatPartitions, InOrderExec};
use super::position::{AddPosition, POSITION, PositionExec};
use super::runs::{Aggregation, RunAggregateExec};
use crate::error::to_engine_error;
use crate::functions::{MetricFunction, RankInQuery};
use crate::scan::ScanExec;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use planetree_base::error::Error;
use std::sync::Arc;

/// Optimizer rule for functions that depend on the order of rows. It makes them read the rows in the order of the
/// table or of their ORDER BY. It runs first, before rows are distributed over partitions.
#[derive(Debug)]
pub(crate) struct KeepOrder;

/// Optimizer rule that merges partitions in their order, so that a query returns a table's rows in the table's order.
/// It runs last.
#[derive(Debug)]
pub(crate) struct MergeInOrder;

/// Functions of the engine whose results have the order of their input. They are evaluated in order only if the input
/// is a subquery with ORDER BY.
const ORDERED_RESULTS: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Checks whether the concatenated partitions of a plan have their rows in a definite order.
fn is_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // Files are cut into adjacent ranges, but batches in memory are distributed by size and lose their order.
    let is_file = |scan: &DataSourceExec| scan.data_source().is::<FileScanConfig>();
    let is_leaf = plan.is::<ScanExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<EmptyExec>()
        || plan
            .downcast_ref::<DataSourceExec>()
            .is_some_and(|scan| is_file(scan) || plan.output_partitioning().partition_count() == 1);
    // Later rules may drop a sort that no operator requires, unless it has a limit.
    let sets_order = plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some())
        || plan.is::<InOrderExec>()
        || plan.is::<RunAggregateExec>();
    let keeps = keeps_order(plan) || plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>();
    is_leaf || sets_order || (keeps && plan.children().into_iter().all(is_in_order))
}

/// Checks whether an operator returns rows in the order of its input.
fn keeps_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>()
        || plan.is::<PositionExec>()
}

/// Checks whether the rows of a plan are sorted by the ORDER BY of a subquery.
fn is_sorted_below(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children().as_slice() {
        [child] => plan.is::<SortExec>() || (keeps_order(plan) && is_sorted_below(child)),
        _ => false,
    }
}

impl PhysicalOptimizerRule for KeepOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let changed = match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) => ordered_aggregate(aggregate)?,
                None => ordered_window(&plan)?,
            };
            Ok(changed.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "keep_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the aggregation as an operator that reads its rows in order. Returns `None` if no function depends on the
/// order of the rows, or if the input has no order.
fn ordered_aggregate(last: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // The planner splits an aggregation into a partial one, which reads the rows, and a final one.
    let first = match last.mode() {
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            match last.input().downcast_ref::<AggregateExec>() {
                Some(first) if *first.mode() == AggregateMode::Partial => first,
                _ => return Ok(None),
            }
        }
        AggregateMode::Single | AggregateMode::SinglePartitioned => last,
        AggregateMode::Partial | AggregateMode::PartialReduce => return Ok(None),
    };
    let depends_on_order = |aggregate: &Arc<AggregateFunctionExpr>| -> Result<bool> {
        match aggregate.fun().inner().downcast_ref::<MetricFunction>() {
            Some(function) => function.depends_on_order(aggregate),
            None => Ok(false),
        }
    };
    let mut needs_order = false;
    for aggregate in first.aggr_expr() {
        needs_order |= depends_on_order(aggregate)?;
    }
    let has_ordered_result =
        |aggregate: &Arc<AggregateFunctionExpr>| ORDERED_RESULTS.contains(&aggregate.fun().name());
    let input_is_sorted = first.aggr_expr().iter().any(has_ordered_result) && is_sorted_below(first.input());
    if !needs_order && !input_is_sorted {
        return Ok(None);
    }
    let order = requested_order(first.aggr_expr())?;
    if order.is_empty() && needs_order && !is_in_order(first.input()) {
        return Ok(None);
    }
    let input = if order.is_empty() { with_sorts_kept(first.input())? } else { first.input().clone() };
    let aggregation = Aggregation {
        keys: Arc::new(first.group_expr().clone()),
        aggregates: first
            .aggr_expr()
            .iter()
            .map(|aggregate| in_order(aggregate, first))
            .collect::<Result<_>>()?,
        filters: first.filter_expr().to_vec(),
        order,
        input_schema: first.input_schema(),
        schema: last.schema(),
    };
    if first.group_expr().is_single() && !first.group_expr().is_empty() {
        return Ok(Some(Arc::new(RunAggregateExec::new(aggregation, input))));
    }
    let single = aggregation.single_stream(input)?;
    let is_same = single.schema().fields() == last.schema().fields();
    Ok(is_same.then(|| Arc::new(single) as Arc<dyn ExecutionPlan>))
}

/// Makes a plan keep its sort, which comes from the ORDER BY of a subquery. Later rules remove a sort that no
/// operator above it requires. Therefore the sort is replaced by an operator that requires the same order of its
/// input. Rows that compare equal keep their previous order, if they had one.
fn with_sorts_kept(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let kept = plan.clone().transform_down(|plan| {
        let Some(sort) = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else {
            // Below an operator that changes the order of its rows, sorts do not matter.
            let next = if keeps_order(&plan) { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump };
            return Ok(Transformed::new(plan, false, next));
        };
        if !is_in_order(sort.input()) {
            let sorted =
                InOrderExec::new(ConcatPartitions { order: Some(sort.expr().clone()) }, sort.input().clone());
            return Ok(Transformed::new(Arc::new(sorted) as _, true, TreeNodeRecursion::Jump));
        }
        let columns = sort.input().schema().fields().len();
        let position: Arc<dyn PhysicalExpr> = Arc::new(Column::new(POSITION, columns));
        let order = sort.expr().iter().cloned().chain([PhysicalSortExpr::new_default(position)]);
        let numbered = Arc::new(PositionExec::new(AddPosition, sort.input().clone()));
        let sorted = InOrderExec::new(ConcatPartitions { order: LexOrdering::new(order) }, numbered);
        let schema = sorted.schema();
        let unnumbered = schema.fields().iter().take(columns).enumerate().map(|(index, field)| {
            let column = Arc::new(Column::new(field.name(), index)) as Arc<dyn PhysicalExpr>;
            (column, field.name().clone())
        });
        let plan = ProjectionExec::try_new(unnumbered.collect::<Vec<_>>(), Arc::new(sorted))?;
        Ok(Transformed::new(Arc::new(plan) as Arc<dyn ExecutionPlan>, true, TreeNodeRecursion::Jump))
    })?;
    Ok(kept.data)
}

/// Returns the order that the ORDER BY clauses of the aggregates request; empty if there are none.
fn requested_order(aggregates: &[Arc<AggregateFunctionExpr>]) -> Result<Vec<PhysicalSortExpr>> {
    let orders = aggregates.iter().map(|aggregate| aggregate.order_bys());
    let longest = orders.max_by_key(|order| order.len()).unwrap_or_default();
    if aggregates.iter().any(|aggregate| !longest.starts_with(aggregate.order_bys())) {
        return Err(to_engine_error(Error::place(
            "query",
            "aggregates of one query have different ORDER BY clauses",
            "use the same ORDER BY in all of them, or split the query in two",
        )));
    }
    Ok(longest.to_vec())
}

/// Returns a metric function in the variant that relies on the order of its input. Other functions are returned
/// unchanged.
fn in_order(
    aggregate: &Arc<AggregateFunctionExpr>,
    exec: &AggregateExec,
) -> Result<Arc<AggregateFunctionExpr>> {
    let Some(function) = aggregate.fun().inner().downcast_ref::<MetricFunction>() else {
        return Ok(aggregate.clone());
    };
    let function = AggregateUDF::new_from_impl(function.in_order());
    let built = AggregateExprBuilder::new(Arc::new(function), aggregate.expressions())
        .schema(exec.input_schema())
        .alias(aggregate.name())
        .order_by(aggregate.order_bys().to_vec())
        .with_distinct(aggregate.is_distinct())
        .build()?;
    Ok(Arc::new(built))
}

/// Makes `rank_in_query` in a window without ORDER BY use the order of the table. The other functions of the window are
/// moved to a second window above.
fn ordered_window(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (windows, input) = if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        (window.window_expr(), window.input())
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        (window.window_expr(), window.input())
    } else {
        return Ok(None);
    };
    let is_unordered = |window: &Arc<dyn WindowExpr>| window.order_by().is_empty();
    if !windows.iter().any(is_ranking) || !windows.iter().all(is_unordered) || !is_in_order(input) {
        return Ok(None);
    }
    let input_columns = input.schema().fields().len();
    let position: Arc<dyn PhysicalExpr> = Arc::new(Column::new(POSITION, input_columns));
    let by_position = [PhysicalSortExpr::new_default(position)];
    let ranking = windows.iter().filter_map(|window| with_order(window, &by_position)).collect();
    let mut plan: Arc<dyn ExecutionPlan> = Arc::new(PositionExec::new(AddPosition, with_sorts_kept(input)?));
    plan = Arc::new(WindowAggExec::try_new(ranking, plan, true)?);
    let others: Vec<_> = windows.iter().filter(|window| !is_ranking(window)).cloned().collect();
    if !others.is_empty() {
        plan = Arc::new(WindowAggExec::try_new(others, plan, true)?);
    }
    // The ranks now precede the results of the other functions, so the original order of the columns is restored.
    let first_other = input_columns + 1 + windows.iter().filter(|window| is_ranking(window)).count();
    let (mut next_rank, mut next_other) = (input_columns + 1, first_other);
    let mut order: Vec<usize> = (0..input_columns).collect();
    for window in windows {
        let next = if is_ranking(window) { &mut next_rank } else { &mut next_other };
        order.push(*next);
        *next += 1;
    }
    let schema = plan.schema();
    let columns = order.into_iter().map(|column| {
        let name = schema.field(column).name();
        (Arc::new(Column::new(name, column)) as Arc<dyn PhysicalExpr>, name.clone())
    });
    Ok(Some(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?)))
}

fn is_ranking(window: &Arc<dyn WindowExpr>) -> bool {
    let standard = window.as_any().downcast_ref::<StandardWindowExpr>();
    let function = standard
        .and_then(|standard| standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>());
    function.is_some_and(|function| function.fun().inner().is::<RankInQuery>())
}

/// Returns a window of `rank_in_query` with the given order, or `None` for other windows.
fn with_order(window: &Arc<dyn WindowExpr>, order: &[PhysicalSortExpr]) -> Option<Arc<dyn WindowExpr>> {
    let standard = window.as_any().downcast_ref::<StandardWindowExpr>().filter(|_| is_ranking(window))?;
    let (keys, frame) = (window.partition_by(), window.get_window_frame().clone());
    let function = standard.get_standard_func_expr().clone();
    Some(Arc::new(StandardWindowExpr::new(function, keys, order, frame)))
}

impl PhysicalOptimizerRule for MergeInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan
            .transform_up(|plan| {
                let Some(merge) = plan.downcast_ref::<CoalescePartitionsExec>() else {
                    return Ok(Transformed::no(plan));
                };
                if !can_merge_in_order(merge.input()) {
                    return Ok(Transformed::no(plan));
                }
                let merged: Arc<dyn ExecutionPlan> =
                    Arc::new(InOrderExec::new(ConcatPartitions::default(), merge.input().clone()));
                Ok(Transformed::yes(match merge.fetch() {
                    Some(fetch) => Arc::new(GlobalLimitExec::new(merged, 0, Some(fetch))),
                    None => merged,
                }))
            })
            .data()?;
        if plan.output_partitioning().partition_count() > 1 && is_in_order(&plan) {
            return Ok(Arc::new(InOrderExec::new(ConcatPartitions::default(), plan)));
        }
        Ok(plan)
    }

    fn name(&self) -> &str {
        "merge_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Checks whether rows, or partial aggregates of rows, are in order. Partial aggregates are also merged in order, so
/// that sums do not depend on which partition finishes first.
fn can_merge_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => is_in_order(aggregate.input()),
        _ => is_in_order(plan),
    }
}
