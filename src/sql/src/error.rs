//! Engine errors as users should hear them: the place in the query, what was meant, and what to do.

use datafusion::common::{DataFusionError, SchemaError, Span};
use datafusion::sql::sqlparser::parser::ParserError;
use planetree_base::error::Error;
use planetree_base::suggest;

/// What a fault of a query is reported at when its place is not known.
const QUERY: &str = "query";

/// An error of ours on its way through the engine.
pub fn outward(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What names there are, for suggestions.
#[derive(Debug, Default)]
pub struct KnownNames {
    /// Tables that can be named.
    pub tables: Vec<String>,
    /// Functions of all kinds, ours first: of equally near names the first three are shown.
    pub functions: Vec<String>,
}

/// The engine's error as ours; `text` is the whole query, so that its line can be shown.
pub fn inward(error: &DataFusionError, text: &str, known: &KnownNames) -> Error {
    if let Some(error) = find_ours(error) {
        return failing(error);
    }
    let span = span_of(error);
    let root = error.find_root();
    if let Some(problem) = refused_types(root) {
        return with_span(span, &problem, text, "");
    }
    if let Some(error) = taken_for_map(root, text) {
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
        DataFusionError::IoError(error) => Error::io("temporary files", "write", error),
        DataFusionError::ObjectStore(error) => {
            Error::place(QUERY, store_problem(error), "check the place and the store's variables")
        }
        DataFusionError::ParquetError(error) => {
            Error::place(QUERY, format_args!("cannot read Parquet: {error}"), "check the file")
        }
        DataFusionError::Plan(problem) => planning(problem, span, text, known),
        DataFusionError::NotImplemented(problem) => Error::place(
            QUERY,
            format_args!("not supported: {}", first_line(problem)),
            "write it differently",
        ),
        DataFusionError::Internal(problem) => Error::place(
            QUERY,
            format_args!("the engine gave up: {}", first_line(problem)),
            "write the query differently, and report this: it is a fault of planetree",
        ),
        DataFusionError::Execution(problem) => Error::place(QUERY, first_line(problem), ""),
        DataFusionError::ArrowError(error, _) => Error::place(QUERY, first_line(&error.to_string()), ""),
        other => Error::place(QUERY, first_line(&other.strip_backtrace()), ""),
    }
}

/// A query that fails is a failure, even where the same fault on a command line would be misuse.
pub fn failing(error: Error) -> Error {
    match error {
        Error::Usage { problem, remedy } => Error::place(QUERY, problem, remedy),
        other => other,
    }
}

/// The error of ours that went in somewhere, as it was.
fn find_ours(error: &DataFusionError) -> Option<Error> {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        if let Some(ours) = error.downcast_ref::<Error>() {
            return Some(copy_of(ours));
        }
        let boxed = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(&**inner as &(dyn std::error::Error + 'static)),
            Some(DataFusionError::Collection(errors)) => return errors.iter().find_map(find_ours),
            Some(DataFusionError::Shared(inner)) => return find_ours(inner),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => {
                return find_ours(inner);
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
        Error::Place { place, problem, remedy } => Error::place(place, problem, remedy),
        other => Error::place(QUERY, other, other.remedy().unwrap_or_default()),
    }
}

fn span_of(error: &DataFusionError) -> Option<Span> {
    error.diagnostic().and_then(|diagnostic| diagnostic.span)
}

/// What a function of ours says of its arguments, out of what the engine makes of it.
fn refused_types(error: &DataFusionError) -> Option<String> {
    let (DataFusionError::Plan(text) | DataFusionError::Execution(text)) = error else { return None };
    let (_, problem) = text.split_once("user-defined coercion failed with: ")?;
    let problem = problem.split(" No function matches").next().unwrap_or_default();
    let problem = problem.strip_prefix("Error during planning: ").unwrap_or(problem);
    Some(problem.trim_end_matches('.').to_owned())
}

/// What the engine says of `map` where the metric was meant: it is no aggregate, and takes no depth.
fn taken_for_map(error: &DataFusionError, text: &str) -> Option<Error> {
    let problem = error.strip_backtrace();
    let refuses = ["make_map requires an even number", "must be in GROUP BY or an aggregate function"];
    refuses.iter().any(|part| problem.contains(part)).then(|| map_is_no_metric(text)).flatten()
}

/// `map` is the engine's, which makes a map of keys and values; many take it for the metric. `None` if no call is found.
pub fn map_is_no_metric(text: &str) -> Option<Error> {
    let (line, column) = call_of("map", text)?;
    let problem = "map makes a map of keys and values; it is not a metric";
    let remedy =
        "call ap(label, score) for average precision, which evaluate calls map; or make_map for a map";
    Some(at(line, column, problem, text, remedy))
}

/// Where a text calls a function: line and column, counted from 1.
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

/// A text that is no SQL. The parser tells the place at the end of its message.
fn syntax(error: &ParserError, text: &str) -> Error {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message.as_str(),
        ParserError::RecursionLimitExceeded => "it is nested too deeply",
    };
    let (problem, place) = match message.rsplit_once(" at Line: ") {
        Some((problem, place)) => (problem, position(place)),
        None => (message, None),
    };
    let problem = problem.replace("Expected: ", "expected ").replace("found: ", "found ");
    let (problem, place) = match problem.strip_suffix(", found EOF") {
        Some(problem) => {
            let last = text.trim_end().lines().last().unwrap_or_default();
            let end = (text.trim_end().lines().count().max(1) as u64, last.chars().count() as u64 + 1);
            (format!("{problem}, found the end of the query"), Some(end))
        }
        None => (problem, place),
    };
    match place {
        Some((line, column)) => {
            at(line, column, &format!("syntax error: {problem}"), text, "correct the query")
        }
        None => Error::place(QUERY, format_args!("syntax error: {problem}"), "correct the query"),
    }
}

fn position(text: &str) -> Option<(u64, u64)> {
    let (line, column) = text.split_once(", Column: ")?;
    let column: String = column.chars().take_while(char::is_ascii_digit).collect();
    Some((line.trim().parse().ok()?, column.parse().ok()?))
}

/// A fault at a place of the query: the line, and a mark below it.
pub fn at(line: u64, column: u64, problem: &str, text: &str, remedy: &str) -> Error {
    /// Letters of a long line that are shown before and after the place.
    const AROUND: usize = 60;
    let source: Vec<char> =
        text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().chars().collect();
    let place = (column.saturating_sub(1) as usize).min(source.len());
    let shown = place.saturating_sub(AROUND)..source.len().min(place + AROUND);
    let before = source[shown.start..place].iter().copied();
    // Tabs stay tabs, so that the mark stands below its letter however wide they are.
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

fn schema(error: &SchemaError, span: Option<Span>, text: &str) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut names: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
            names.dedup();
            let near = suggest::nearest(&field.name, names.iter().copied());
            let near: Vec<String> = near.into_iter().map(quoted).collect();
            let near: Vec<&str> = near.iter().map(String::as_str).collect();
            let remedy = suggest::did_you_mean(&near, &format!("there are {}", few(&names)));
            with_span(span, &format!("there is no column {}", field.flat_name()), text, &remedy)
        }
        SchemaError::AmbiguousReference { field } => with_span(
            span,
            &format!("several tables have a column {}", field.name),
            text,
            "write the table's name before it",
        ),
        other => with_span(span, &other.to_string(), text, "give the columns different names"),
    }
}

/// A name as SQL has to write it.
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
    let between = |before: &str, after: &str| {
        let (_, rest) = problem.split_once(before)?;
        rest.split_once(after).map(|(name, _)| name)
    };
    if let Some(name) =
        between("Invalid function '", "'").or_else(|| between("table function '", "' not found"))
    {
        let near = suggest::nearest(name, known.functions.iter().map(String::as_str));
        let remedy =
            suggest::did_you_mean(&near, "docs/sql.md lists our functions, SHOW FUNCTIONS all of them");
        return with_span(span, &format!("there is no function {name}"), text, &remedy);
    }
    if let Some(name) = between("table '", "' not found").or_else(|| between("No table named '", "'")) {
        let name = name.strip_prefix("planetree.run.").unwrap_or(name);
        let near = suggest::nearest(name, known.tables.iter().map(String::as_str));
        let otherwise = match known.tables.is_empty() {
            true => "name a file in quotes, FROM 'predictions.parquet', or pass --table name=PATH".to_owned(),
            false => {
                let names: Vec<&str> = known.tables.iter().map(String::as_str).collect();
                format!("there are {}; a file is named in quotes, FROM 'predictions.parquet'", few(&names))
            }
        };
        return with_span(
            span,
            &format!("there is no table {name}"),
            text,
            &suggest::did_you_mean(&near, &otherwise),
        );
    }
    with_span(span, first_line(problem), text, "")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A store's error without URLs, which may hold secrets.
fn store_problem(error: &object_store::Error) -> String {
    match error {
        object_store::Error::NotFound { path, .. } => format!("there is no {path}"),
        other => {
            let text = other.to_string();
            let words = first_line(&text).split_whitespace();
            words.map(|word| if word.contains("://") { "(URL)" } else { word }).collect::<Vec<_>>().join(" ")
        }
    }
}
