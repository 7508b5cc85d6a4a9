//! Makes joins yield to the engine's scheduler, so that a query can be cancelled while it produces many rows from few.
//! The engine's scans yield, but a cross join of two small tables may compute for hours without reading any more rows.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;
use std::sync::Arc;

/// Optimizer rule that adds a point where the query yields after every operator that may multiply rows.
#[derive(Debug)]
pub(crate) struct YieldAfterJoins;

impl PhysicalOptimizerRule for YieldAfterJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let multiplies = plan.is::<CrossJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<HashJoinExec>()
                || plan.is::<SortMergeJoinExec>()
                || plan.is::<UnnestExec>();
            Ok(match multiplies {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan))),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "yield_after_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
