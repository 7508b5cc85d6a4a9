//! Compares float32 values with decimal literals as float32.
//!
//! The engine would compare as float64, where the float32 value that a result prints as `0.12213` differs from the
//! literal `0.12213`. A literal stands for a float32 if a result would print this float32 so. Other literals, which have
//! more digits than a float32, are compared exactly.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Cast, InList};
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
            if is_float32_literal(right) && is_float32(left, schema) {
                cast_literal(right);
                true
            } else if is_float32_literal(left) && is_float32(right, schema) {
                cast_literal(left);
                true
            } else {
                false
            }
        }
        Expr::InList(InList { expr, list, .. }) => {
            let is_float32 = list.iter().any(is_float32_literal) && is_float32(expr, schema);
            if is_float32 {
                list.iter_mut().for_each(cast_literal);
            }
            is_float32
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            let is_float32 =
                (is_float32_literal(low) || is_float32_literal(high)) && is_float32(expr, schema);
            if is_float32 {
                cast_literal(low);
                cast_literal(high);
            }
            is_float32
        }
        _ => false,
    };
    Transformed::new_transformed(expression, is_changed)
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

/// Casts a literal that stands for a float32, and leaves other expressions as they are.
fn cast_literal(value: &mut Expr) {
    if is_float32_literal(value) {
        let literal = std::mem::take(value);
        *value = Expr::Cast(Cast::new(Box::new(literal), DataType::Float32));
    }
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
