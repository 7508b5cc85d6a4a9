//! Where plans keep the order of rows.

use super::in_order::InOrderExec;
use super::position::{POSITION, PositionExec};
use super::runs::{Aggregation, RunAggregateExec};
use crate::error::outward;
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

/// Gives the functions that look at the order of rows the order of the table, or the one that their ORDER BY
/// says. Runs first, before anything is distributed.
#[derive(Debug)]
pub struct KeepOrder;

/// Puts partitions together in their order, so that a table comes out as it is. Runs last.
#[derive(Debug)]
pub struct MergeInOrder;

/// Functions of the engine whose results have the order of the rows. They take rows as they come, unless a subquery
/// says how they come.
const LISTING: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Whether the partitions of a plan, one after another, are rows in a definite order.
fn is_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // Files are cut into stretches side by side; rows in memory would be dealt out by size.
    let is_file = |scan: &DataSourceExec| scan.data_source().is::<FileScanConfig>();
    let is_leaf = plan.is::<ScanExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<EmptyExec>()
        || plan
            .downcast_ref::<DataSourceExec>()
            .is_some_and(|scan| is_file(scan) || plan.output_partitioning().partition_count() == 1);
    // A sort that nobody asks for may be dropped, unless its first rows are wanted.
    let decides = plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some())
        || plan.is::<InOrderExec>()
        || plan.is::<RunAggregateExec>();
    let keeps = keeps_order(plan) || plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>();
    is_leaf || decides || (keeps && plan.children().into_iter().all(is_in_order))
}

/// Whether rows come out of an operator in the order in which they went in.
fn keeps_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>()
        || plan.is::<PositionExec>()
}

/// Whether rows have the order that a sort has given them, the ORDER BY of a subquery.
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

/// The aggregation over rows in order, if one of its functions looks at the order and there is one.
fn ordered_aggregate(last: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // The planner makes two of every aggregation; the first one sees the rows.
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
    let looks_at_order = |aggregate: &Arc<AggregateFunctionExpr>| -> Result<bool> {
        match aggregate.fun().inner().downcast_ref::<MetricFunction>() {
            Some(function) => function.looks_at_order(aggregate),
            None => Ok(false),
        }
    };
    let mut wants_order = false;
    for aggregate in first.aggr_expr() {
        wants_order |= looks_at_order(aggregate)?;
    }
    let lists = |aggregate: &Arc<AggregateFunctionExpr>| LISTING.contains(&aggregate.fun().name());
    let takes_sorted = first.aggr_expr().iter().any(lists) && is_sorted_below(first.input());
    if !wants_order && !takes_sorted {
        return Ok(None);
    }
    let order = wanted_order(first.aggr_expr())?;
    if order.is_empty() && wants_order && !is_in_order(first.input()) {
        return Ok(None);
    }
    let input = if order.is_empty() { with_sorts_kept(first.input())? } else { first.input().clone() };
    let aggregation = Aggregation {
        keys: Arc::new(first.group_expr().clone()),
        aggregates: first.aggr_expr().iter().map(|one| in_order(one, first)).collect::<Result<_>>()?,
        filters: first.filter_expr().to_vec(),
        order,
        input_schema: first.input_schema(),
        schema: last.schema(),
    };
    if first.group_expr().is_single() && !first.group_expr().is_empty() {
        return Ok(Some(Arc::new(RunAggregateExec::new(aggregation, input))));
    }
    let at_once = aggregation.at_once(input)?;
    let is_same = at_once.schema().fields() == last.schema().fields();
    Ok(is_same.then(|| Arc::new(at_once) as Arc<dyn ExecutionPlan>))
}

/// A plan whose sort, the ORDER BY of a subquery, stays. Later rules drop a sort that no operator above asks for, so
/// one that asks takes its place. Rows that are equal to it keep the order they had, if they had one.
fn with_sorts_kept(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let kept = plan.clone().transform_down(|plan| {
        let Some(sort) = plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else {
            // Below other operators rows have the order that these say.
            let next = if keeps_order(&plan) { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump };
            return Ok(Transformed::new(plan, false, next));
        };
        if !is_in_order(sort.input()) {
            let sorted = InOrderExec::with_order(sort.input().clone(), Some(sort.expr().clone()));
            return Ok(Transformed::new(Arc::new(sorted) as _, true, TreeNodeRecursion::Jump));
        }
        let columns = sort.input().schema().fields().len();
        let position: Arc<dyn PhysicalExpr> = Arc::new(Column::new(POSITION, columns));
        let order = sort.expr().iter().cloned().chain([PhysicalSortExpr::new_default(position)]);
        let numbered = Arc::new(PositionExec::new(sort.input().clone()));
        let sorted = InOrderExec::with_order(numbered, LexOrdering::new(order));
        let schema = sorted.schema();
        let unnumbered = schema.fields().iter().take(columns).enumerate().map(|(place, field)| {
            let column = Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>;
            (column, field.name().clone())
        });
        let plan = ProjectionExec::try_new(unnumbered.collect::<Vec<_>>(), Arc::new(sorted))?;
        Ok(Transformed::new(Arc::new(plan) as Arc<dyn ExecutionPlan>, true, TreeNodeRecursion::Jump))
    })?;
    Ok(kept.data)
}

/// The order that the aggregates ask for by ORDER BY; none is empty.
fn wanted_order(aggregates: &[Arc<AggregateFunctionExpr>]) -> Result<Vec<PhysicalSortExpr>> {
    let orders = aggregates.iter().map(|aggregate| aggregate.order_bys());
    let longest = orders.max_by_key(|order| order.len()).unwrap_or_default();
    if aggregates.iter().any(|aggregate| !longest.starts_with(aggregate.order_bys())) {
        return Err(outward(Error::place(
            "query",
            "its aggregates ask for different orders of the rows",
            "give all of them the same ORDER BY, or take them in two queries",
        )));
    }
    Ok(longest.to_vec())
}

/// The function that trusts in the order of the rows it is given.
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

/// A window with `rank_in_query` and without an order of its own gets that of the table. Functions beside it
/// that do not look at the order stay as they are, in a window above.
fn ordered_window(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (windows, input) = if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        (window.window_expr(), window.input())
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        (window.window_expr(), window.input())
    } else {
        return Ok(None);
    };
    let is_open = |window: &Arc<dyn WindowExpr>| window.order_by().is_empty();
    if !windows.iter().any(ranks) || !windows.iter().all(is_open) || !is_in_order(input) {
        return Ok(None);
    }
    let place = input.schema().fields().len();
    let position: Arc<dyn PhysicalExpr> = Arc::new(Column::new(POSITION, place));
    let order = [PhysicalSortExpr::new_default(position)];
    let ranking = windows.iter().filter_map(|window| with_order(window, &order)).collect();
    let mut plan: Arc<dyn ExecutionPlan> = Arc::new(PositionExec::new(with_sorts_kept(input)?));
    plan = Arc::new(WindowAggExec::try_new(ranking, plan, true)?);
    let others: Vec<_> = windows.iter().filter(|window| !ranks(window)).cloned().collect();
    if !others.is_empty() {
        plan = Arc::new(WindowAggExec::try_new(others, plan, true)?);
    }
    // Ranks come first now, behind the position; the columns are put back into their places.
    let first_other = place + 1 + windows.iter().filter(|window| ranks(window)).count();
    let (mut next_rank, mut next_other) = (place + 1, first_other);
    let mut places: Vec<usize> = (0..place).collect();
    for window in windows {
        let next = if ranks(window) { &mut next_rank } else { &mut next_other };
        places.push(*next);
        *next += 1;
    }
    let schema = plan.schema();
    let columns = places.into_iter().map(|column| {
        let name = schema.field(column).name();
        (Arc::new(Column::new(name, column)) as Arc<dyn PhysicalExpr>, name.clone())
    });
    Ok(Some(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?)))
}

fn ranks(window: &Arc<dyn WindowExpr>) -> bool {
    let standard = window.as_any().downcast_ref::<StandardWindowExpr>();
    let function = standard
        .and_then(|standard| standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>());
    function.is_some_and(|function| function.fun().inner().is::<RankInQuery>())
}

/// A ranking window with an order; `None` for any other.
fn with_order(window: &Arc<dyn WindowExpr>, order: &[PhysicalSortExpr]) -> Option<Arc<dyn WindowExpr>> {
    let standard = window.as_any().downcast_ref::<StandardWindowExpr>().filter(|_| ranks(window))?;
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
                let merged: Arc<dyn ExecutionPlan> = Arc::new(InOrderExec::new(merge.input().clone()));
                Ok(Transformed::yes(match merge.fetch() {
                    Some(fetch) => Arc::new(GlobalLimitExec::new(merged, 0, Some(fetch))),
                    None => merged,
                }))
            })
            .data()?;
        if plan.output_partitioning().partition_count() > 1 && is_in_order(&plan) {
            return Ok(Arc::new(InOrderExec::new(plan)));
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

/// Partial results of rows in order are merged in order, too: sums then do not depend on who was first.
fn can_merge_in_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => is_in_order(aggregate.input()),
        _ => is_in_order(plan),
    }
}
