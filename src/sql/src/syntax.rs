//! Translates syntax errors, and names what to write in place of the syntax of other engines.

use super::error::{QUERY, at};
use super::other_engines::clause_of_other_engine;
use datafusion::sql::sqlparser::parser::ParserError;
use planetree_base::error::Error;

/// Translates a syntax error. The position is parsed from the end of the message, where the parser puts it.
pub(crate) fn syntax(error: &ParserError, text: &str) -> Error {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message.as_str(),
        ParserError::RecursionLimitExceeded => "nested too deeply",
    };
    let (problem, position) = match message.rsplit_once(" at Line: ") {
        Some((problem, position)) => (problem, parse_position(position)),
        None => (message, None),
    };
    let problem = problem.replace("Expected: ", "expected ").replace("found: ", "found ");
    let (problem, position) = match problem.strip_suffix(", found EOF") {
        Some(problem) => {
            let last = text.trim_end().lines().last().unwrap_or_default();
            let end = (text.trim_end().lines().count().max(1) as u64, last.chars().count() as u64 + 1);
            (format!("{problem}, found the end of the query"), Some(end))
        }
        None => (problem, position),
    };
    let Some((line, column)) = position else {
        return Error::place(QUERY, format_args!("syntax error: {problem}"), "correct the query");
    };
    let (before, after) = split_at(line, column, text);
    if let Some((problem, remedy)) = clause_of_other_engine(before, after) {
        return at(line, column, problem, text, remedy);
    }
    let problem = match (problem.starts_with("No infix parser for token "), after.chars().next()) {
        (true, Some(letter)) => format!("unexpected {letter}"),
        _ => problem,
    };
    at(line, column, &format!("syntax error: {problem}"), text, &remedy_for(&problem, before, after))
}

fn remedy_for(problem: &str, before: &str, after: &str) -> String {
    if let Some(name) = metric_at(before, after) {
        return format!("write \"{name}\" in double quotes");
    }
    let statement = before.rsplit(';').next().unwrap_or_default().trim_start();
    let is_copy = statement.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("copy"));
    let of_options = [
        "expected end of statement or ;, found (",
        "expected HEADER, found",
        "expected ROW, found",
        "expected string or numeric value, found",
    ];
    if is_copy && of_options.iter().any(|start| problem.starts_with(start)) {
        return "write options as OPTIONS (header true, delimiter ',')".to_owned();
    }
    // Such as a table that is named like a file: scores-mart, or runs/scores.
    let is_name = ["-", "/"].iter().any(|letter| problem.ends_with(&format!("found {letter}")));
    let remedy = if is_name {
        "put names of other characters than letters, digits and _ in double quotes, and paths in single quotes"
    } else {
        "correct the query"
    };
    remedy.to_owned()
}

/// Returns the name of a column such as `ndcg@10`, which is not in quotes, if the error is at its `@`.
fn metric_at(before: &str, after: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let metric = &before[before.trim_end_matches(is_part).len()..];
    let depth = after.strip_prefix('@')?;
    // Only the depth of a partial area is a range.
    let is_depth = |letter: char| letter.is_ascii_digit() || (letter == '-' && metric.starts_with("pauc"));
    let depth = &depth[..depth.len() - depth.trim_start_matches(is_depth).len()];
    let is_name = metric.starts_with(char::is_alphabetic) && !depth.is_empty();
    is_name.then(|| format!("{metric}@{depth}"))
}

/// Splits a text at a line and column, both counted from 1.
fn split_at(line: u64, column: u64, text: &str) -> (&str, &str) {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1) as usize);
    let start: usize = lines.map(str::len).sum();
    let within = text[start..].chars().take(column.saturating_sub(1) as usize);
    text.split_at(start + within.map(char::len_utf8).sum::<usize>())
}

fn parse_position(text: &str) -> Option<(u64, u64)> {
    let (line, column) = text.split_once(", Column: ")?;
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    Some((line.trim().parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_without_quotes_are_named() {
        for (before, after, expected) in [
            ("SELECT avg(ndcg", "@10) FROM t", Some("ndcg@10")),
            ("SELECT p.map", "@5", Some("map@5")),
            ("SELECT ndcg", "@10-map@5", Some("ndcg@10")),
            ("SELECT pauc_pooled", "@0-5", Some("pauc_pooled@0-5")),
            ("SELECT 5", "@3", None),
            ("SELECT ndcg", "@k", None),
            ("SELECT ndcg", "10", None),
        ] {
            assert_eq!(metric_at(before, after).as_deref(), expected, "{before}{after}");
        }
    }

    #[test]
    fn texts_are_split_at_lines_and_columns() {
        let text = "a\nbäc\nd";
        for (line, column, expected) in
            [(1, 1, "a\nbäc\nd"), (2, 3, "c\nd"), (3, 2, ""), (9, 9, ""), (2, 99, "")]
        {
            assert_eq!(split_at(line, column, text).1, expected, "{line} {column}");
        }
    }
}
