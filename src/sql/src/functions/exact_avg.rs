//! Implements the SQL function `exact_avg`, which computes a mean as `planetree evaluate` does: from exact sums, so
//! that the result does not depend on the order of the rows.

use super::{FunctionKind, SqlFunction};
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use planetree_metric::{Mean, Metric};
use std::mem::size_of;
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "exact_avg",
    usage: "exact_avg(value)",
    help: "mean as evaluate computes it: bit-identical in any order of the rows",
    kind: FunctionKind::Aggregate(|| {
        AggregateUDF::new_from_impl(ExactAvg { signature: Signature::user_defined(Volatility::Immutable) })
    }),
};

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactAvg {
    signature: Signature,
}

impl AggregateUDFImpl for ExactAvg {
    fn name(&self) -> &str {
        FUNCTION.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [kind] if kind.is_numeric() || kind.is_null() => Ok(vec![DataType::Float64]),
            [kind] => plan_err!("exact_avg: value is of type {kind}, expected a number: {}", FUNCTION.usage),
            _ => plan_err!("exact_avg: wrong number of arguments ({}): {}", types.len(), FUNCTION.usage),
        }
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return exec_err!("exact_avg: DISTINCT is not supported; use avg(DISTINCT ...)");
        }
        Ok(Box::new(ExactMean(Mean::new(Metric::Ndcg(None)))))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(arguments.name, "mean");
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, false))])
    }
}

/// Accumulates an exact mean.
#[derive(Debug)]
struct ExactMean(Mean);

impl Accumulator for ExactMean {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values[0].as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.0.add(value));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.0.count() > 0).then(|| self.0.value())))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.0.to_bytes()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_binary::<i32>().iter().flatten() {
            match Mean::from_bytes(self.0.metric(), state) {
                Some(mean) => self.0.merge(&mean),
                None => return exec_err!("exact_avg: received a malformed partial mean"),
            }
        }
        Ok(())
    }
}
