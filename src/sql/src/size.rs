//! Limits the size of statements. The engine recurses to the depth of plans and expressions and copies them many
//! times, so a statement of a few kilobytes could exhaust the stack or the memory of the process.

use super::error::to_engine_error;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::{Query, Statement as Sql, visit_relations};
use datafusion::sql::sqlparser::dialect::DuckDbDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use planetree_base::error::{Error, Result};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Maximum number of operators that are applied to each other, as in `a + b + c`.
const MAX_OPERATORS: usize = 1_000;
/// Maximum number of joins and set operations of one statement.
const MAX_RELATIONS: usize = 250;
/// Maximum number of operators and expressions of a plan, after views and common table expressions are expanded.
const MAX_PLAN_NODES: usize = 100_000;
/// Maximum number of tables that a common table expression reads, directly or through others.
const MAX_REFERENCES: usize = 4 * MAX_RELATIONS;
/// Maximum depth of a plan.
const MAX_PLAN_DEPTH: usize = 3 * MAX_RELATIONS;

/// Counts of one level of parentheses.
#[derive(Default, Clone, Copy)]
struct NestingLevel {
    /// Operators of the current item of a list.
    operators: usize,
    /// Most operators of any expression in parentheses within the current item.
    inner: usize,
    /// Most operators of the previous items.
    most: usize,
    /// Whether the current item is in a FROM clause, where a comma is a join.
    in_from: bool,
}

impl NestingLevel {
    fn end_item(&mut self) {
        self.most = self.most.max(self.operators + self.inner);
        (self.operators, self.inner) = (0, 0);
    }
}

/// Fails if a statement of `text` is too large. Text that cannot be split into tokens is left to the parser, which
/// reports the position.
pub(crate) fn check_text(text: &str) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(&DuckDbDialect {}, text).tokenize() else { return Ok(()) };
    let mut levels = vec![NestingLevel::default()];
    let mut relations = 0;
    for token in &tokens {
        let is_within = levels.len() > 1;
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match token {
            Token::SemiColon => (levels, relations) = (vec![NestingLevel::default()], 0),
            Token::LParen | Token::LBracket | Token::LBrace => {
                level.operators += usize::from(matches!(token, Token::LBracket));
                levels.push(NestingLevel::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace if is_within => {
                let mut inner = levels.pop().unwrap_or_default();
                inner.end_item();
                let level = levels.last_mut().expect("there was more than one level");
                level.inner = level.inner.max(inner.most);
            }
            Token::Comma if level.in_from => relations += 1,
            Token::Comma => level.end_item(),
            Token::Word(word) => match word.keyword {
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::JOIN => relations += 1,
                Keyword::FROM => {
                    level.end_item();
                    level.in_from = true;
                }
                Keyword::SELECT | Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::HAVING => {
                    level.end_item();
                    level.in_from = false;
                }
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::WHEN => level.operators += 1,
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::EOF => {}
            // Every other token is an operator, or at least not frequent.
            _ => level.operators += 1,
        }
        let Some(level) = levels.last() else { return Ok(()) };
        if relations > MAX_RELATIONS {
            return Err(too_large(
                format_args!("more than {MAX_RELATIONS} joins and set operations"),
                "store intermediate results with CREATE TABLE name AS SELECT ...",
            ));
        }
        if level.operators + level.inner > MAX_OPERATORS {
            return Err(too_large(
                format_args!("an expression of more than {MAX_OPERATORS} operators"),
                "split it into several columns of subqueries, or write a list: x IN (1, 2, 3)",
            ));
        }
    }
    Ok(())
}

/// Fails if the common table expressions of a statement refer to each other too often. The engine plans each reference
/// separately, so a statement of a few lines, each of which doubles the one before, would be planned for hours.
pub(crate) fn check_references(statement: &Statement) -> Result<()> {
    let query = match statement {
        Statement::Explain(explain) => return check_references(&explain.statement),
        Statement::Statement(sql) => match &**sql {
            Sql::Query(query) => query,
            _ => return Ok(()),
        },
        Statement::CopyTo(CopyToStatement { source: CopyToSource::Query(query), .. }) => query,
        _ => return Ok(()),
    };
    let mut sizes = HashMap::new();
    for table in query.with.iter().flat_map(|with| &with.cte_tables) {
        let size = references(&table.query, &sizes);
        if size > MAX_REFERENCES {
            return Err(plan_too_large());
        }
        sizes.insert(table.alias.name.value.to_lowercase(), size.max(1));
    }
    Ok(())
}

/// Returns the number of tables that a query reads, given those of the common table expressions before it.
fn references(query: &Query, sizes: &HashMap<String, usize>) -> usize {
    let mut count = 0usize;
    let _ = visit_relations(query, |name| {
        let size = sizes.get(&name.to_string().to_lowercase()).copied().unwrap_or(1);
        count = count.saturating_add(size);
        ControlFlow::<()>::Continue(())
    });
    count
}

/// Fails if a plan is too large. Each view and common table expression is part of the plan wherever it is used, so a
/// short statement may have a plan of any size.
pub(crate) fn check_plan(plan: &LogicalPlan) -> EngineResult<()> {
    let mut nodes = 0;
    check_nodes(plan, 1, &mut nodes)
}

/// Counts the nodes of a plan whose root is at some depth.
fn check_nodes(plan: &LogicalPlan, depth: usize, nodes: &mut usize) -> EngineResult<()> {
    let mut pending = vec![(plan, depth)];
    while let Some((plan, depth)) = pending.pop() {
        *nodes += 1;
        plan.apply_expressions(|expression| {
            check_expression(expression, depth, nodes)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if *nodes > MAX_PLAN_NODES || depth > MAX_PLAN_DEPTH {
            return Err(to_engine_error(plan_too_large()));
        }
        // A view is a table with a plan of its own.
        if let LogicalPlan::TableScan(scan) = plan
            && let Some(view) = scan.source.get_logical_plan()
        {
            check_nodes(&view, depth + 1, nodes)?;
        }
        pending.extend(plan.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    Ok(())
}

/// Counts the nodes of an expression in a plan at some depth.
fn check_expression(expression: &Expr, plan_depth: usize, nodes: &mut usize) -> EngineResult<()> {
    let mut pending = vec![(expression, 1)];
    while let Some((expression, depth)) = pending.pop() {
        *nodes += 1;
        if *nodes > MAX_PLAN_NODES || depth > 2 * MAX_OPERATORS {
            return Err(to_engine_error(plan_too_large()));
        }
        expression.apply_children(|child| {
            pending.push((child, depth + 1));
            Ok(TreeNodeRecursion::Continue)
        })?;
        match expression {
            Expr::ScalarSubquery(subquery) => check_nodes(&subquery.subquery, plan_depth + 1, nodes)?,
            Expr::Exists(exists) => check_nodes(&exists.subquery.subquery, plan_depth + 1, nodes)?,
            Expr::InSubquery(within) => check_nodes(&within.subquery.subquery, plan_depth + 1, nodes)?,
            _ => {}
        }
    }
    Ok(())
}

fn plan_too_large() -> Error {
    too_large(
        format_args!("after views and WITH are expanded, the plan is too large"),
        "store intermediate results with CREATE TABLE name AS SELECT ...",
    )
}

fn too_large(problem: std::fmt::Arguments<'_>, remedy: &str) -> Error {
    Error::place("query", format_args!("the statement is too large: {problem}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        check_text(text).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn long_chains_are_refused_and_long_lists_are_not() {
        let chain = |link: &str, times: usize| format!("SELECT 1{}", link.repeat(times));
        assert!(problem(&chain(" + 1", 5_000)).contains("more than 1000 operators"));
        assert!(problem(&chain("::int", 5_000)).contains("more than 1000 operators"));
        assert!(problem(&chain(" IS NULL", 5_000)).contains("more than 1000 operators"));
        assert!(problem(&chain(" UNION ALL SELECT 1", 1_001)).contains("more than 250 joins"));
        assert!(problem(&chain(" FROM t", 1).replace("t", &vec!["t"; 1_002].join(", "))).contains("joins"));
        let nested = format!("SELECT ({}) * (2)", vec!["a"; 700].join(" + "));
        assert_eq!(problem(&nested), "");
        assert!(problem(&format!("{nested} - {}", vec!["b"; 500].join(" - "))).contains("operators"));
        let list = vec!["-1.5"; 100_000].join(", ");
        assert_eq!(problem(&format!("SELECT * FROM t WHERE x IN ({list})")), "");
        let rows = vec!["(1, -2, 'a')"; 50_000].join(", ");
        assert_eq!(problem(&format!("SELECT * FROM (VALUES {rows})")), "");
        assert_eq!(problem(&chain("; SELECT 1 + 1", 9_000)), "", "each statement counts alone");
        assert_eq!(problem("SELECT 'unclosed"), "", "the parser reports it");
        assert_eq!(problem(")))) ((("), "");
    }
}
