//! Implements the SQL function `rank_in_query`, which returns the rank of a document within its query, as the column
//! `rank` of a predictions table does.

use super::{FunctionKind, SqlFunction};
use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "rank_in_query",
    usage: "rank_in_query(score) OVER (PARTITION BY query_id [ORDER BY ...])",
    help: "1 for the highest score; ties in the order of the rows, or of ORDER BY",
    kind: FunctionKind::Window(|| WindowUDF::new_from_impl(RankInQuery::new())),
};

/// The window function `rank_in_query`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RankInQuery {
    signature: Signature,
}

impl RankInQuery {
    fn new() -> Self {
        RankInQuery { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl WindowUDFImpl for RankInQuery {
    fn name(&self) -> &str {
        FUNCTION.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [kind] if kind.is_numeric() || kind.is_null() => Ok(vec![DataType::Float64]),
            [kind] => {
                plan_err!("rank_in_query: score is of type {kind}, expected a number: {}", FUNCTION.usage)
            }
            _ => plan_err!("rank_in_query: wrong number of arguments ({}): {}", types.len(), FUNCTION.usage),
        }
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(arguments.name(), DataType::Int32, false)))
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(RankEvaluator))
    }
}

#[derive(Debug)]
struct RankEvaluator;

impl PartitionEvaluator for RankEvaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let scores = values[0].as_primitive::<Float64Type>();
        // Adding zero turns -0.0 into 0.0, so that the two are equal. NULL and NaN come last.
        let key = |row: &usize| match scores.is_valid(*row) && !scores.value(*row).is_nan() {
            true => Some(scores.value(*row) + 0.0),
            false => None,
        };
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|one, other| match (key(one), key(other)) {
            (Some(one), Some(other)) => other.total_cmp(&one),
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
        let mut ranks = vec![0; rows];
        for (rank, row) in (1..).zip(order) {
            ranks[row] = rank;
        }
        Ok(Arc::new(Int32Array::from(ranks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    #[test]
    fn ranks_are_those_of_predictions() {
        let scores: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(0.5),
            None,
            Some(2.0),
            Some(0.5),
            Some(f64::NAN),
            Some(f64::INFINITY),
            Some(-0.0),
            Some(0.0),
        ]));
        let ranks = RankEvaluator.evaluate_all(&[scores], 8).unwrap();
        assert_eq!(*ranks, Int32Array::from(vec![3, 7, 2, 4, 8, 1, 5, 6]));
    }
}
