//! Implements the internal function `within_query`, which returns the value of a metric if its rows belong to one
//! query and fails otherwise. The rule in `one_query.rs` adds a call of this function to metrics. Users do not call
//! it.

use crate::error::to_engine_error;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::cmp::neq;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use planetree_base::error::Error;
use std::sync::{Arc, LazyLock};

/// Returns the function. Its arguments are the value of the metric, the lowest and the highest query id, and the names
/// of the metric and of the pooled metric.
pub fn within_query() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::new_from_impl(WithinQuery {
            signature: Signature::any(5, Volatility::Immutable),
        }))
    });
    FUNCTION.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithinQuery {
    signature: Signature,
}

impl ScalarUDFImpl for WithinQuery {
    fn name(&self) -> &str {
        "within_query"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let (value, lowest, highest) = (&columns[0], &columns[1], &columns[2]);
        let differ = neq(lowest, highest)?;
        // Both bounds are NULL for a group without rows.
        if let Some(row) = (0..differ.len()).find(|row| differ.is_valid(*row) && differ.value(*row)) {
            return Err(several_queries(&columns, row)?);
        }
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(value, 0)?)),
            false => Ok(ColumnarValue::Array(value.clone())),
        }
    }
}

fn several_queries(columns: &[ArrayRef], row: usize) -> Result<datafusion::error::DataFusionError> {
    let shown = |column: usize| array_value_to_string(&columns[column], row);
    let (metric, pooled) =
        (columns[3].as_string::<i32>().value(row), columns[4].as_string::<i32>().value(row));
    Ok(to_engine_error(Error::place(
        metric,
        format_args!(
            "rows of several queries, such as {:?} and {:?}, are not one ranking",
            shown(1)?,
            shown(2)?
        ),
        format_args!("add GROUP BY query_id, or call {pooled} to treat all rows as one ranking"),
    )))
}
