//! Rewrites or rejects statements that the engine would silently misinterpret.

use super::error::{QUERY, at, map_is_not_a_metric};
use super::other_engines::{PIVOT, SAMPLE, UNPIVOT};
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join, JoinOperator, ObjectName,
    ObjectNamePart, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement as Sql,
    TableFactor, Value, VisitMut, VisitorMut, WildcardAdditionalOptions, visit_expressions,
};
use planetree_base::error::{Error, Result};
use std::ops::ControlFlow;

/// Rewrites a statement. `text` is the whole query, for error messages.
///
/// - A column of the result without a name, such as `ndcg(label, score, 10)`, is named by its text. The engine would add
///   the tables of columns and the types of constants.
/// - `FROM t` without SELECT, at any depth, becomes `SELECT * FROM t`. The engine would return rows without columns.
/// - `SEMI JOIN` and `ANTI JOIN` become `LEFT SEMI JOIN` and `LEFT ANTI JOIN`, which mean the same.
/// - `read_csv('file', delim = ';')` becomes `read_csv('file', ';')`. The engine has no named arguments of tables.
/// - `TABLESAMPLE` is rejected. The engine would ignore it.
/// - `map(label, score)` is rejected. The engine would return one map per row, although a metric is meant.
pub(crate) fn rewrite_statement(statement: &mut Statement, text: &str) -> Result<()> {
    let mut rewriter = StatementRewriter { text, maps_labels: false, refusal: None };
    // The rewriter holds what it found, so there is no result to handle.
    let _ = match statement {
        Statement::Statement(sql) => sql.visit(&mut rewriter),
        Statement::CopyTo(CopyToStatement { source: CopyToSource::Query(query), .. }) => {
            query.visit(&mut rewriter)
        }
        Statement::Explain(explain) => return rewrite_statement(&mut explain.statement, text),
        _ => ControlFlow::Continue(()),
    };
    if let Some(refusal) = rewriter.refusal {
        return Err(refusal);
    }
    match rewriter.maps_labels {
        true => map_is_not_a_metric(text).map_or(Ok(()), Err::<(), Error>),
        false => {
            name_results(statement);
            Ok(())
        }
    }
}

/// Names the columns of the result of a statement.
fn name_results(statement: &mut Statement) {
    match statement {
        Statement::Statement(sql) => match &mut **sql {
            Sql::Query(query) => name_columns(query),
            Sql::CreateView(view) => name_columns(&mut view.query),
            Sql::CreateTable(table) => table.query.iter_mut().for_each(|query| name_columns(query)),
            Sql::Explain { statement, .. } => {
                if let Sql::Query(query) = &mut **statement {
                    name_columns(query);
                }
            }
            _ => {}
        },
        Statement::CopyTo(CopyToStatement { source: CopyToSource::Query(query), .. }) => name_columns(query),
        _ => {}
    }
}

/// Returns the SELECT that names the columns of a query: of a set operation, it is the first one.
fn naming_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => naming_select(&mut query.body),
        SetExpr::SetOperation { left, .. } => naming_select(left),
        _ => None,
    }
}

fn name_columns(query: &mut Query) {
    let Some(select) = naming_select(&mut query.body) else { return };
    let mut named = Vec::new();
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expression) = item
            && !matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', expression.to_string());
            named.push(alias.clone());
            *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
        }
    }
    // With DISTINCT, the engine sorts by columns of the result only, and finds them by their names.
    let sorted = query.order_by.as_mut().filter(|_| select.distinct.is_some());
    if let Some(OrderByKind::Expressions(keys)) = sorted.map(|order| &mut order.kind) {
        for key in keys {
            let text = key.expr.to_string();
            if let Some(alias) = named.iter().find(|alias| alias.value == text) {
                key.expr = Expr::Identifier(alias.clone());
            }
        }
    }
}

struct StatementRewriter<'t> {
    text: &'t str,
    /// Whether `map` was called on labels.
    maps_labels: bool,
    /// The error for a clause that is not supported.
    refusal: Option<Error>,
}

impl StatementRewriter<'_> {
    /// Rejects a clause. The error shows the table that it belongs to, if it has a name.
    fn refuse(&mut self, clause: (&str, &str), table: Option<&ObjectName>) -> ControlFlow<()> {
        let (problem, remedy) = clause;
        let name = table.and_then(|name| name.0.first()).and_then(ObjectNamePart::as_ident);
        self.refusal = Some(match name.map(|name| name.span.start) {
            Some(start) if start.line > 0 => at(start.line, start.column, problem, self.text, remedy),
            _ => Error::place(QUERY, problem, remedy),
        });
        ControlFlow::Break(())
    }
}

impl VisitorMut for StatementRewriter<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        select.from.iter_mut().flat_map(|table| &mut table.joins).for_each(name_side);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table { name, sample: Some(_), .. } => return self.refuse(SAMPLE, Some(&*name)),
            TableFactor::Table { name, args: Some(arguments), .. } => {
                if let Some(argument) = plain_arguments(name, &mut arguments.args) {
                    let problem = format!("not supported as an argument of {name}: {argument}");
                    let remedy = "remove it: read_csv('file', delim = ';') takes a path and a delimiter, and finds the types of \
                                  the columns by itself";
                    return self.refuse((problem.as_str(), remedy), Some(&*name));
                }
            }
            TableFactor::Derived { sample: Some(_), .. } => return self.refuse(SAMPLE, None),
            TableFactor::Pivot { table, .. } => return self.refuse(PIVOT, name_of(table)),
            TableFactor::Unpivot { table, .. } => return self.refuse(UNPIVOT, name_of(table)),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                table_with_joins.joins.iter_mut().for_each(name_side);
            }
            _ => {}
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

/// Replaces the named arguments that DuckDB's `read_csv` has by plain ones, and removes those that say what is so anyway.
/// Returns the first other one.
fn plain_arguments(function: &ObjectName, arguments: &mut Vec<FunctionArg>) -> Option<String> {
    let is_csv = function.to_string().eq_ignore_ascii_case("read_csv");
    let mut plain = Vec::new();
    for argument in arguments.iter() {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. } => (name.to_string(), arg),
            FunctionArg::ExprNamed { name, arg, .. } => (name.to_string(), arg),
            FunctionArg::Unnamed(_) => {
                plain.push(argument.clone());
                continue;
            }
        };
        let FunctionArgExpr::Expr(Expr::Value(literal)) = value else { return Some(argument.to_string()) };
        match (name.to_ascii_lowercase().as_str(), &literal.value) {
            ("delim" | "delimiter" | "sep", Value::SingleQuotedString(_)) if is_csv => {
                plain.push(FunctionArg::Unnamed(value.clone()));
            }
            ("header" | "auto_detect", Value::Boolean(true)) if is_csv => {}
            _ => return Some(argument.to_string()),
        }
    }
    *arguments = plain;
    None
}

/// Returns the name of a table, if it has one.
fn name_of(table: &TableFactor) -> Option<&ObjectName> {
    match table {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

/// Names the side whose rows a semi join or an anti join returns.
fn name_side(join: &mut Join) {
    let operator = std::mem::replace(&mut join.join_operator, JoinOperator::CrossApply);
    join.join_operator = match operator {
        JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
        JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
        other => other,
    };
}

/// Checks whether an expression is a label or is computed from one. A list of labels does not count, because a list
/// is a valid argument of `map`: the keys of the map.
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
