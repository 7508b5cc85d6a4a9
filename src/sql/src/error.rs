//! Translates errors of the SQL engine into planetree's errors, with the position in the query, the problem and a
//! remedy.

use super::misuse::{Misuse, RENAME, misuse, not_supported};
use super::other_engines::call_in_place_of;
use super::syntax::syntax;
use super::text_errors::text_problem;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError, Span};
use planetree_base::error::Error;
use planetree_base::storage::without_urls;
use planetree_base::suggest;

/// Location shown in errors whose position in the query is unknown.
pub(crate) const QUERY: &str = "query";

/// Wraps a planetree error so that it can pass through the engine. `from_engine_error` unwraps it.
pub fn to_engine_error(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Names that a query may use. If a query contains an unknown name, the most similar of these names are suggested.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    /// Names of tables.
    pub tables: Vec<String>,
    /// Names of functions of all kinds, planetree's own functions first. If more than three names are equally similar,
    /// the first three are suggested.
    pub functions: Vec<String>,
}

/// Translates an error of the engine. `text` is the whole query; the message shows its faulty line.
pub(crate) fn from_engine_error(error: &DataFusionError, text: &str, known: &KnownNames) -> Error {
    if let Some(error) = find_planetree_error(error) {
        return as_failure(error);
    }
    let span = span_of(error);
    let root = error.find_root();
    if let Some(problem) = argument_type_error(root) {
        return with_span(span, &problem, text, "");
    }
    if let Some(error) = map_misuse(root, text) {
        return error;
    }
    match root {
        DataFusionError::SQL(error, _) => syntax(error, text),
        DataFusionError::SchemaError(error, _) => schema(error, span, text),
        DataFusionError::ResourcesExhausted(problem) => Error::place(
            QUERY,
            format_args!("the memory limit is too small: {}", first_line(problem)),
            "raise --memory-limit",
        ),
        DataFusionError::IoError(error) => {
            Error::io("temporary files", "write", planetree_base::error::copy_of(error))
        }
        DataFusionError::ObjectStore(error) => Error::place(
            QUERY,
            store_problem(error),
            "check the location and the environment variables of the store",
        ),
        DataFusionError::ParquetError(error) => Error::place(
            QUERY,
            format_args!("cannot read Parquet: {error}"),
            "check that the file is a complete Parquet file",
        ),
        DataFusionError::ArrowError(error, _) if matches!(**error, ArrowError::ParquetError(_)) => {
            Error::place(
                QUERY,
                format_args!("cannot read Parquet: {}", first_line(&error.to_string())),
                "restore the file from a copy, or write it again",
            )
        }
        DataFusionError::Plan(problem) => planning(problem, span, text, known),
        DataFusionError::NotImplemented(problem) => {
            let (problem, remedy) = not_supported(problem);
            Error::place(QUERY, format_args!("not supported: {problem}"), remedy)
        }
        DataFusionError::Internal(problem) => Error::place(
            QUERY,
            format_args!("the engine failed: {}", first_line(problem)),
            "rewrite the query, and report this error",
        ),
        DataFusionError::Execution(problem) => Error::place(QUERY, first_line(problem), ""),
        DataFusionError::ArrowError(error, _) => {
            if let Some(problem) = text_problem(error) {
                return problem.at(QUERY);
            }
            let problem = error.to_string();
            let is_format = problem.contains("parsing timestamp from '%");
            let remedy =
                if is_format { "the time comes before the format: strftime(time, '%Y-%m-%d')" } else { "" };
            Error::place(QUERY, first_line(&problem), remedy)
        }
        other => Error::place(QUERY, first_line(&other.strip_backtrace()), ""),
    }
}

/// Turns a usage error within a query into a failure, so that the exit code says that a query failed and not that the
/// command line is wrong.
pub(crate) fn as_failure(error: Error) -> Error {
    match error {
        Error::Usage { problem, remedy } => Error::place(QUERY, problem, remedy),
        other => other,
    }
}

/// Returns the planetree error that an engine error wraps, if there is one.
fn find_planetree_error(error: &DataFusionError) -> Option<Error> {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        if let Some(ours) = error.downcast_ref::<Error>() {
            return Some(copy_of(ours));
        }
        let boxed = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(&**inner as &(dyn std::error::Error + 'static)),
            Some(DataFusionError::Collection(errors)) => return errors.iter().find_map(find_planetree_error),
            Some(DataFusionError::Shared(inner)) => return find_planetree_error(inner),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => {
                return find_planetree_error(inner);
            }
            Some(DataFusionError::ArrowError(inner, _)) => match &**inner {
                arrow::error::ArrowError::ExternalError(inner) => Some(&**inner as _),
                _ => None,
            },
            _ => None,
        };
        current = boxed.or_else(|| error.source());
    }
    None
}

fn copy_of(error: &Error) -> Error {
    match error {
        Error::Interrupted => Error::Interrupted,
        Error::Usage { problem, remedy } => Error::usage(problem, remedy),
        Error::Place { place, problem, remedy, .. } => Error::place(place, problem, remedy),
        Error::Bug { at, problem, .. } => Error::bug(at, problem),
        other => Error::place(QUERY, other, other.remedy().unwrap_or_default()),
    }
}

fn span_of(error: &DataFusionError) -> Option<Span> {
    error.diagnostic().and_then(|diagnostic| diagnostic.span)
}

/// Returns the message of a planetree function about wrong argument types, without the text that the engine adds.
/// Returns `None` for other errors.
fn argument_type_error(error: &DataFusionError) -> Option<String> {
    let (DataFusionError::Plan(text) | DataFusionError::Execution(text)) = error else { return None };
    let (_, problem) = text.split_once("user-defined coercion failed with: ")?;
    let problem = problem.split(" No function matches").next().unwrap_or_default();
    let problem = problem.strip_prefix("Error during planning: ").unwrap_or(problem);
    Some(problem.trim_end_matches('.').to_owned())
}

/// Replaces an engine error about a call of `map` that was probably meant as the metric MAP (mean average precision).
/// In SQL, `map` is not an aggregate function and has no depth argument.
fn map_misuse(error: &DataFusionError, text: &str) -> Option<Error> {
    let problem = error.strip_backtrace();
    let signs = ["make_map requires an even number", "must be in GROUP BY or an aggregate function"];
    signs.iter().any(|part| problem.contains(part)).then(|| map_is_not_a_metric(text)).flatten()
}

/// Returns the error for a call of `map` that was meant as the metric MAP: in SQL, `map` builds a map of keys and
/// values. Returns `None` if the query does not call `map`.
pub(crate) fn map_is_not_a_metric(text: &str) -> Option<Error> {
    let (line, column) = call_of("map", text)?;
    let problem = "map creates a map of keys and values; it is not a metric";
    let remedy =
        "call ap(label, score) for average precision, which evaluate calls map, or make_map for a map";
    Some(at(line, column, problem, text, remedy))
}

/// Returns the line and column of the first call of a function, both counted from 1.
fn call_of(name: &str, text: &str) -> Option<(u64, u64)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '"';
    for (line, source) in (1..).zip(text.lines()) {
        let lower = source.to_ascii_lowercase();
        let found = lower.match_indices(name).find(|(start, _)| {
            let (before, after) = (&lower[..*start], &lower[start + name.len()..]);
            !before.ends_with(is_part) && after.trim_start().starts_with('(')
        });
        if let Some((start, _)) = found {
            return Some((line, source[..start].chars().count() as u64 + 1));
        }
    }
    None
}

/// Builds an error at a position in the query. The message shows the line with a marker below the position.
pub(crate) fn at(line: u64, column: u64, problem: &str, text: &str, remedy: &str) -> Error {
    /// Number of characters of a long line that are shown before and after the position.
    const AROUND: usize = 60;
    let source: Vec<char> =
        text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().chars().collect();
    let position = (column.saturating_sub(1) as usize).min(source.len());
    let shown = position.saturating_sub(AROUND)..source.len().min(position + AROUND);
    let before = source[shown.start..position].iter().copied();
    // Tabs are kept, so that the marker is aligned for any tab width.
    let indent: String = before.map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
    let source: String = source[shown].iter().collect();
    let at = format!("line {line}, column {column}");
    Error::place(at, format_args!("{problem}\n  | {source}\n  | {indent}^"), remedy)
}

fn with_span(span: Option<Span>, problem: &str, text: &str, remedy: &str) -> Error {
    match span {
        Some(span) if span.start.line > 0 => at(span.start.line, span.start.column, problem, text, remedy),
        _ => Error::place(QUERY, problem, remedy),
    }
}

/// Returns the part of a query at a span within one line.
fn text_at(span: Span, text: &str) -> Option<&str> {
    if span.start.line != span.end.line {
        return None;
    }
    let line = text.lines().nth((span.start.line as usize).checked_sub(1)?)?;
    let offset = |column: u64| {
        let mut offsets = line.char_indices().map(|(offset, _)| offset).chain([line.len()]);
        offsets.nth((column as usize).checked_sub(1)?)
    };
    line.get(offset(span.start.column)?..offset(span.end.column)?)
}

fn schema(error: &SchemaError, span: Option<Span>, text: &str) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut names: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
            names.dedup();
            let near = suggest::nearest(&field.name, names.iter().copied());
            let near: Vec<String> = near.into_iter().map(quoted).collect();
            let near: Vec<&str> = near.iter().map(String::as_str).collect();
            let remedy = suggest::did_you_mean(&near, &format!("columns: {}", few(&names)));
            with_span(span, &format!("no such column: {}", field.flat_name()), text, &remedy)
        }
        SchemaError::AmbiguousReference { field } => with_span(
            span,
            &format!("ambiguous column: several tables have {}", field.name),
            text,
            "qualify the column with the name of its table",
        ),
        SchemaError::DuplicateQualifiedField { qualifier, name } => with_span(
            span,
            &format!("two columns are called {}.{}", quoted(qualifier.table()), quoted(name)),
            text,
            "give each table a name of its own: FROM x AS a JOIN y AS b",
        ),
        SchemaError::DuplicateUnqualifiedField { name } if name.contains('(') => with_span(
            span,
            &format!("two expressions are called {name}: casts do not count"),
            text,
            "cast in a subquery, and name the result: FROM (SELECT x, x::INT AS y FROM t)",
        ),
        SchemaError::DuplicateUnqualifiedField { name } => {
            with_span(span, &format!("two columns are called {}", quoted(name)), text, RENAME)
        }
    }
}

/// Returns an identifier, in quotes if SQL requires them.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn few(names: &[&str]) -> String {
    const FEW: usize = 12;
    let shown: Vec<String> = names.iter().take(FEW).map(|name| quoted(name)).collect();
    format!("{}{}", shown.join(", "), if names.len() > FEW { ", ..." } else { "" })
}

fn planning(problem: &str, span: Option<Span>, text: &str, known: &KnownNames) -> Error {
    let written = span.and_then(|span| text_at(span, text));
    if let Some(Misuse { problem, remedy, function }) = misuse(problem, written) {
        return match function.and_then(|name| call_of(&name, text)) {
            Some((line, column)) => at(line, column, &problem, text, &remedy),
            None => with_span(span, &problem, text, &remedy),
        };
    }
    let between = |before: &str, after: &str| {
        let (_, rest) = problem.split_once(before)?;
        rest.split_once(after).map(|(name, _)| name)
    };
    if let Some(name) =
        between("Invalid function '", "'").or_else(|| between("table function '", "' not found"))
    {
        if known.functions.iter().any(|known| known == name) {
            let remedy = "window functions need OVER, as in rank() OVER (ORDER BY x); functions that return tables are called in \
                          FROM, and no others";
            return with_span(span, &format!("{name} cannot be called like this"), text, remedy);
        }
        let near = suggest::nearest(name, known.functions.iter().map(String::as_str));
        let remedy = match call_in_place_of(name) {
            Some(call) => format!("write {call}"),
            None => suggest::did_you_mean(
                &near,
                "docs/sql.md lists planetree's functions, SHOW FUNCTIONS lists all functions",
            ),
        };
        return with_span(span, &format!("no such function: {name}"), text, &remedy);
    }
    if let Some(written) = between("table '", "' not found").or_else(|| between("No table named '", "'")) {
        let name = ["planetree.run.", "planetree."].iter().find_map(|prefix| written.strip_prefix(prefix));
        let name = name.unwrap_or(written);
        let near: Vec<String> =
            suggest::nearest(name, known.tables.iter().map(String::as_str)).into_iter().map(quoted).collect();
        let near: Vec<&str> = near.iter().map(String::as_str).collect();
        let otherwise = match known.tables.is_empty() {
            true => "put the path of a file in single quotes, FROM 'predictions.parquet', or pass --table name=PATH".to_owned(),
            false => {
                let names: Vec<&str> = known.tables.iter().map(String::as_str).collect();
                format!("tables: {}; put the path of a file in single quotes, FROM 'predictions.parquet'", few(&names))
            }
        };
        return with_span(
            span,
            &format!("no such table: {name}"),
            text,
            &suggest::did_you_mean(&near, &otherwise),
        );
    }
    with_span(span, first_line(problem), text, "")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the message of an object store error without URLs, because they may contain secrets.
fn store_problem(error: &object_store::Error) -> String {
    match error {
        object_store::Error::NotFound { path, .. } => format!("no such object: {path}"),
        other => without_urls(first_line(&other.to_string())),
    }
}
