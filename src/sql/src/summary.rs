//! Implements `SUMMARIZE`, which computes statistics of each column of a table or query, with the columns of DuckDB.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Column, DataFusionError, Result as EngineResult, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::functions_aggregate::expr_fn::{
    approx_distinct, approx_percentile_cont, avg, count, max, min, stddev,
};
use datafusion::logical_expr::{Expr, LogicalPlan, cast as cast_expression, lit};
use datafusion::physical_plan::memory::MemoryStream;
use std::sync::Arc;

/// Number of columns whose statistics are computed together. Sources read only the columns that a plan uses, so many
/// small plans read no more than a large one, which the engine would take long to plan.
const COLUMNS: usize = 32;
/// The quantiles.
const QUANTILES: [f64; 3] = [0.25, 0.5, 0.75];

/// Statistics of one column.
struct ColumnSummary {
    name: String,
    kind: String,
    min: Option<String>,
    max: Option<String>,
    distinct: Option<i64>,
    mean: Option<f64>,
    deviation: Option<f64>,
    quantiles: [Option<f64>; 3],
    rows: i64,
    present: i64,
}

/// Computes the statistics of all columns of a plan.
pub(crate) async fn summarize(
    context: &SessionContext,
    plan: LogicalPlan,
) -> EngineResult<SendableRecordBatchStream> {
    let columns: Vec<(Column, DataType)> = plan
        .schema()
        .iter()
        .map(|(table, field)| (Column::from((table, field)), field.data_type().clone()))
        .collect();
    let mut summaries = Vec::new();
    for some in columns.chunks(COLUMNS) {
        let mut aggregates = vec![count(lit(1i64)).alias("rows")];
        for (place, (column, kind)) in some.iter().enumerate() {
            for (name, aggregate) in aggregates_of(column, kind) {
                aggregates.push(aggregate.alias(format!("{place} {name}")));
            }
        }
        let frame = DataFrame::new(context.state(), plan.clone());
        let batches = frame.aggregate(Vec::new(), aggregates)?.collect().await?;
        let row = batches
            .iter()
            .find(|batch| batch.num_rows() > 0)
            .ok_or_else(|| DataFusionError::Internal("an aggregate returned no row".to_owned()))?;
        for (place, (column, kind)) in some.iter().enumerate() {
            summaries.push(summary_of(row, place, column, kind)?);
        }
    }
    let batch = table_of(&summaries)?;
    Ok(Box::pin(MemoryStream::try_new(vec![batch.clone()], batch.schema(), None)?))
}

/// Returns the aggregates of a column that its type has.
fn aggregates_of(column: &Column, kind: &DataType) -> Vec<(&'static str, Expr)> {
    let value = || Expr::Column(column.clone());
    let text = |expression: Expr| cast_expression(expression, DataType::Utf8);
    let mut aggregates = vec![("present", count(value()))];
    if has_text(kind) {
        aggregates.push(("min", text(min(value()))));
        aggregates.push(("max", text(max(value()))));
        aggregates.push(("distinct", approx_distinct(text(value()))));
    }
    if kind.is_numeric() {
        let number = || cast_expression(value(), DataType::Float64);
        aggregates.push(("mean", avg(number())));
        aggregates.push(("deviation", stddev(number())));
        for (name, quantile) in ["q25", "q50", "q75"].into_iter().zip(QUANTILES) {
            aggregates.push((name, approx_percentile_cont(number().sort(true, false), lit(quantile), None)));
        }
    }
    aggregates
}

/// Checks whether all values of a type can be shown as text. Bytes, such as UUIDs and hashes, need not be UTF-8.
fn has_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, kind) => has_text(kind),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            false
        }
        _ => !kind.is_nested() && !kind.is_null(),
    }
}

fn summary_of(
    row: &RecordBatch,
    place: usize,
    column: &Column,
    kind: &DataType,
) -> EngineResult<ColumnSummary> {
    let value = |name: &str| row.column_by_name(&format!("{place} {name}")).filter(|value| value.is_valid(0));
    let number = |name: &str| -> EngineResult<Option<f64>> {
        let value = value(name).map(|value| cast(value, &DataType::Float64)).transpose()?;
        let value = value.filter(|value| value.is_valid(0));
        Ok(value.map(|value| significant(value.as_primitive::<Float64Type>().value(0))))
    };
    let whole = |value: Option<&ArrayRef>| -> EngineResult<Option<i64>> {
        let value = value.map(|value| cast(value, &DataType::Int64)).transpose()?;
        Ok(value.map(|value| value.as_primitive::<Int64Type>().value(0)))
    };
    let text = |name: &str| -> EngineResult<Option<String>> {
        value(name)
            .map(|value| ScalarValue::try_from_array(value, 0).map(|value| value.to_string()))
            .transpose()
    };
    let present = whole(value("present"))?.unwrap_or(0);
    Ok(ColumnSummary {
        name: column.name.clone(),
        kind: kind.to_string(),
        min: text("min")?,
        max: text("max")?,
        // An estimate may exceed the number of values.
        distinct: whole(value("distinct"))?.map(|distinct| distinct.min(present)),
        mean: number("mean")?,
        deviation: number("deviation")?,
        quantiles: [number("q25")?, number("q50")?, number("q75")?],
        rows: whole(row.column_by_name("rows"))?.unwrap_or(0),
        present,
    })
}

/// Rounds to six significant digits: quantiles are approximate, and the last digits of sums depend on the order of
/// addition.
fn significant(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn table_of(columns: &[ColumnSummary]) -> EngineResult<RecordBatch> {
    let texts = |of: fn(&ColumnSummary) -> Option<&str>| -> ArrayRef {
        Arc::new(columns.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&ColumnSummary) -> Option<f64>| -> ArrayRef {
        Arc::new(columns.iter().map(of).collect::<Float64Array>())
    };
    let counts = |of: fn(&ColumnSummary) -> Option<i64>| -> ArrayRef {
        Arc::new(columns.iter().map(of).collect::<Int64Array>())
    };
    let missing = |column: &ColumnSummary| {
        let share = (column.rows - column.present) as f64 / column.rows as f64;
        (column.rows > 0).then(|| (share * 1e4).round() / 100.0)
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("column_name", texts(|column| Some(&column.name)), false),
        ("column_type", texts(|column| Some(&column.kind)), false),
        ("min", texts(|column| column.min.as_deref()), true),
        ("max", texts(|column| column.max.as_deref()), true),
        ("approx_unique", counts(|column| column.distinct), true),
        ("avg", numbers(&|column| column.mean), true),
        ("std", numbers(&|column| column.deviation), true),
        ("q25", numbers(&|column| column.quantiles[0]), true),
        ("q50", numbers(&|column| column.quantiles[1]), true),
        ("q75", numbers(&|column| column.quantiles[2]), true),
        ("count", counts(|column| Some(column.rows)), false),
        ("null_percentage", numbers(&missing), true),
    ])?)
}
