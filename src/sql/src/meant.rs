//! Statements as they are meant, where the engine would take them for something else without a word.

use super::error::map_is_no_metric;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Select, SelectFlavor, SelectItem, VisitMut,
    VisitorMut, WildcardAdditionalOptions, visit_expressions,
};
use planetree_base::error::{Error, Result};
use std::ops::ControlFlow;

/// Puts a statement as it is meant; `text` is all of the query, for errors.
///
/// - `FROM t` without SELECT, at any depth, is `SELECT * FROM t`; the engine would give rows without columns.
/// - `map(label, score)` is refused: the engine would give a map for every row, where a metric is meant.
pub fn as_meant(statement: &mut Statement, text: &str) -> Result<()> {
    let mut meant = Meant { maps_labels: false };
    // The visitor never breaks off.
    let _ = match statement {
        Statement::Statement(sql) => sql.visit(&mut meant),
        Statement::CopyTo(CopyToStatement { source: CopyToSource::Query(query), .. }) => {
            query.visit(&mut meant)
        }
        Statement::Explain(explain) => return as_meant(&mut explain.statement, text),
        _ => ControlFlow::Continue(()),
    };
    match meant.maps_labels {
        true => map_is_no_metric(text).map_or(Ok(()), Err::<(), Error>),
        false => Ok(()),
    }
}

struct Meant {
    maps_labels: bool,
}

impl VisitorMut for Meant {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expression
            && call.name.to_string().eq_ignore_ascii_case("map")
            && let FunctionArguments::List(arguments) = &call.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(first)), _, ..] = arguments.args.as_slice()
        {
            self.maps_labels |= is_label(first);
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression is a label, or made of one; a list of labels is one of keys.
fn is_label(expression: &Expr) -> bool {
    if matches!(expression, Expr::Array(_)) {
        return false;
    }
    let found = visit_expressions(expression, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        match name.is_some_and(|name| name.value.eq_ignore_ascii_case("label")) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}
