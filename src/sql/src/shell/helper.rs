//! Support for the line editor: detects complete input and suggests completions.

use crate::functions::function_help;
use crate::session::Session;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Keywords that the shell can complete.
const KEYWORDS: [&str; 38] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "JOIN",
    "LEFT JOIN",
    "INNER JOIN",
    "FULL JOIN",
    "USING",
    "ON",
    "AS",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "BETWEEN",
    "LIKE",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "UNION ALL",
    "WITH",
    "OVER",
    "PARTITION BY",
    "QUALIFY",
    "COPY",
    "EXPLAIN",
    "DESCRIBE",
    "SUMMARIZE",
];

/// Completes and validates input.
pub(super) struct ShellHelper {
    session: Arc<Session>,
    files: FilenameCompleter,
    functions: Vec<String>,
    /// Columns of the tables used so far, by table.
    columns: RefCell<HashMap<String, Vec<String>>>,
}

impl ShellHelper {
    /// Creates a helper for a session.
    pub(super) fn new(session: Arc<Session>) -> Self {
        let mut functions: Vec<String> = function_help().iter().map(|one| one.name.to_owned()).collect();
        functions.extend(session.function_names());
        functions.dedup();
        ShellHelper { session, files: FilenameCompleter::new(), functions, columns: RefCell::default() }
    }

    /// Returns the columns of the tables that a line names.
    fn columns_in(&self, line: &str) -> Vec<String> {
        let known = self.session.table_names();
        let words = line.split(|letter: char| letter.is_whitespace() || ",;()".contains(letter));
        let mut columns = Vec::new();
        for word in words {
            let name = word.trim_matches(['\'', '"']);
            let is_path = word.starts_with('\'') && word.len() > 2 && word.ends_with('\'');
            if is_path || known.iter().any(|table| table == name) {
                let mut seen = self.columns.borrow_mut();
                let found = seen.entry(name.to_owned()).or_insert_with(|| {
                    let columns = self.session.columns_of(name).unwrap_or_default();
                    columns.into_iter().map(|(column, _)| column).collect()
                });
                columns.extend(found.iter().cloned());
            }
        }
        columns
    }
}

/// Returns an identifier, in quotes if SQL requires them.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..cursor];
        if before.matches('\'').count() % 2 == 1 {
            return self.files.complete(line, cursor, context); // the cursor is within quotes, that is, in a path
        }
        let start = before
            .rfind(|letter: char| !(letter.is_alphanumeric() || "_\\.@\"".contains(letter)))
            .map_or(0, |separator| separator + before[separator..].chars().next().map_or(1, char::len_utf8));
        let word = before[start..].trim_start_matches('"').to_lowercase();
        let mut names: Vec<String> = Vec::new();
        if start == 0 && word.starts_with(['.', '\\']) {
            names.extend(super::commands::names().map(str::to_owned));
        } else {
            names.extend(
                self.columns_in(line).iter().chain(&self.session.table_names()).map(|name| quoted(name)),
            );
            names.extend(self.functions.iter().map(|name| format!("{name}(")));
            names.extend(KEYWORDS.map(str::to_owned));
        }
        let fits = |name: &String| name.trim_start_matches('"').to_lowercase().starts_with(&word);
        let mut seen = std::collections::HashSet::new();
        let pairs =
            names.into_iter().filter(|name| !word.is_empty() && fits(name) && seen.insert(name.clone()));
        Ok((start, pairs.map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Hinter for ShellHelper {
    type Hint = String;
}

impl Highlighter for ShellHelper {}

impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Helper for ShellHelper {}

/// Checks whether an input can be run: it is empty, a command, statements that end with a `;` outside of strings and
/// comments, or an unfinished statement with a command in a line of its own.
pub(super) fn is_complete(input: &str) -> bool {
    let trimmed = input.trim();
    if trimmed.is_empty()
        || super::commands::is_command(trimmed)
        || super::commands::last_command(trimmed).is_some()
    {
        return true;
    }
    let mut letters = input.chars().peekable();
    let mut ended = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                ended = false;
                // A doubled quote ends one string and starts another, which is equivalent here.
                if !letters.by_ref().any(|other| other == letter) {
                    return false;
                }
            }
            '-' if letters.peek() == Some(&'-') => {
                letters.by_ref().find(|other| *other == '\n');
            }
            '/' if letters.peek() == Some(&'*') => {
                let mut last = ' ';
                if !letters.by_ref().any(|other| std::mem::replace(&mut last, other) == '*' && other == '/') {
                    return false;
                }
            }
            ';' => ended = true,
            other if other.is_whitespace() => {}
            _ => ended = false,
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon_outside_strings_and_comments() {
        for input in [
            "",
            "  ",
            "SELECT 1;",
            "SELECT 1; -- done",
            "SELECT ';';",
            "\\d",
            ".tables",
            "SELECT 1;\n/* x */ ",
            "SELECT 'it''s';",
            "exit",
            "QUIT",
            "quit;",
            "SELECT 1\nexit",
            "SELECT 'open\n\\q",
        ] {
            assert!(is_complete(input), "{input:?}");
        }
        for input in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 1 -- ;",
            "SELECT 1 /* ; */",
            "SELECT \";\"",
            "SELECT 1; SELECT 2",
            "/* open ;",
            "exits",
        ] {
            assert!(!is_complete(input), "{input:?}");
        }
    }
}
