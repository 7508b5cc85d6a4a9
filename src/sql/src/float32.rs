//! Compares float32 values with decimal literals as float32.
//!
//! The engine would compare as float64, where the float32 value that a result prints as `0.12213` differs from the
//! literal `0.12213`. A literal stands for a float32 if a result would print this float32 so. Other literals, which have
//! more digits than a float32, are compared exactly.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, Cast, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

/// Rewrites the comparisons of a plan. It must be the plan of a statement before the engine adds casts to it, because
/// values that the statement itself casts to float64 are compared as float64.
pub(crate) fn compare_as_float32(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let compared = expression.transform_up(|expression| Ok(comparison(expression, &schema)))?;
            Ok(compared.update_data(|expression| name.restore(expression)))
        })
    })
    .data()
}

fn comparison(mut expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_changed = match &mut expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            unite([&mut **left, &mut **right], schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            unite(std::iter::once(&mut **expr).chain(list.iter_mut()), schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            unite([&mut **expr, &mut **low, &mut **high], schema)
        }
        Expr::Case(Case { expr: Some(operand), when_then_expr, .. }) => {
            let values = when_then_expr.iter_mut().map(|(when, _)| &mut **when);
            unite(std::iter::once(&mut **operand).chain(values), schema)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "nullif" => unite(args, schema),
        _ => false,
    };
    Transformed::new_transformed(expression, is_changed)
}

/// Casts compared values to float32 if one of them has this type. Returns whether any was cast.
fn unite<'e>(values: impl IntoIterator<Item = &'e mut Expr>, schema: &DFSchema) -> bool {
    let values: Vec<&mut Expr> = values.into_iter().collect();
    let is_float32_then =
        |value: &Expr| is_float32(value, schema) || is_float32_but_for_literals(value, schema);
    if !values.iter().any(|value| is_float32_then(value)) {
        return false;
    }
    let all = values.iter().all(|value| is_float32_then(value) || is_float32_literal(value));
    let mut is_changed = false;
    for value in values {
        if is_float32_literal(value) || (all && !is_float32(value, schema)) {
            let wider = std::mem::take(value);
            *value = Expr::Cast(Cast::new(Box::new(wider), DataType::Float32));
            is_changed = true;
        }
    }
    is_changed
}

/// Checks whether a function returns one of its arguments, all of which are float32 or literals that stand for a float32.
/// The engine makes them float64.
fn is_float32_but_for_literals(expression: &Expr, schema: &DFSchema) -> bool {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expression else { return false };
    matches!(func.name(), "coalesce" | "nvl" | "greatest" | "least")
        && args.iter().any(|argument| is_float32(argument, schema))
        && args.iter().all(|argument| is_float32(argument, schema) || is_float32_literal(argument))
}

fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn is_float32(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Float32))
}

/// Checks whether an expression is a decimal literal that stands for a float32.
fn is_float32_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Float64(Some(value)), _) if is_printed_float32(*value))
}

fn is_printed_float32(value: f64) -> bool {
    (value as f32).to_string().parse::<f64>().is_ok_and(|printed| printed == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_with_the_digits_of_a_float32_stand_for_it() {
        for value in [0.12213, 0.1, -0.1, 0.0, 1.0, 0.5949105, 16_777_216.0, 1e-10, 3.4028235e38] {
            assert!(is_printed_float32(value), "{value}");
            let exact = f64::from(value as f32);
            assert!(exact == value || !is_printed_float32(exact), "{exact}");
        }
        for value in [0.1234567891, 1e300, 1e-300, 16_777_217.0, 0.100_000_001, f64::NAN] {
            assert!(!is_printed_float32(value), "{value}");
        }
    }
}
