//! Which statements there are, and which of them SQL may run here: queries, views and tables of the session,
//! and COPY. Nothing that would change a file behind planetree's back, or a setting.

use super::error::{KnownNames, failing, inward};
use super::meant::as_meant;
use super::output::Format;
use datafusion::common::DataFusionError;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Sql, Value};
use datafusion::sql::sqlparser::dialect::DuckDbDialect;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, Location};
use planetree_base::suggest;

/// A statement that may run.
#[derive(Debug)]
pub enum Allowed {
    /// Gives rows.
    Query(Box<Statement>),
    /// Makes or drops a view or a table of the session.
    Definition(Box<Statement>),
    /// Writes rows to a file.
    Copy(Copy),
}

/// Rows to a file.
#[derive(Debug)]
pub struct Copy {
    /// The query whose rows are written.
    pub query: Box<Statement>,
    /// Where to, as the query has it.
    pub target: String,
    /// How.
    pub format: Format,
    /// How it is compressed.
    pub compression: Compression,
    /// Whether delimited text has a header.
    pub header: bool,
    /// What separates the values of delimited text, if not what the format says.
    pub delimiter: Option<char>,
}

/// All statements of a text.
pub fn parse(text: &str) -> Result<Vec<Allowed>> {
    let fault = |error: DataFusionError| inward(&error, text, &KnownNames::default());
    let dialect = DuckDbDialect {};
    let mut parser = DFParserBuilder::new(text).with_dialect(&dialect).build().map_err(fault)?;
    let mut statements = parser.parse_statements().map_err(fault)?;
    statements.iter_mut().try_for_each(|statement| as_meant(statement, text))?;
    statements.into_iter().map(allowed).collect()
}

fn allowed(statement: Statement) -> Result<Allowed> {
    match statement {
        Statement::CopyTo(copy) => copy_of(copy).map(Allowed::Copy),
        Statement::Explain(explain) => match allowed((*explain.statement).clone())? {
            Allowed::Query(_) => Ok(Allowed::Query(Box::new(Statement::Explain(explain)))),
            _ => Err(refused("EXPLAIN of anything but a query", "explain the query itself")),
        },
        Statement::CreateExternalTable(_) => Err(refused(
            "CREATE EXTERNAL TABLE",
            "name the file in the query, FROM 'file.csv', or pass --table name=PATH",
        )),
        Statement::Reset(_) => Err(refused("RESET", "settings are options of the command line")),
        Statement::Statement(sql) => match &*sql {
            Sql::Query(_)
            | Sql::ExplainTable { .. }
            | Sql::ShowTables { .. }
            | Sql::ShowColumns { .. }
            | Sql::ShowFunctions { .. }
            | Sql::ShowVariable { .. } => Ok(Allowed::Query(Box::new(Statement::Statement(sql)))),
            Sql::CreateView { .. } => Ok(Allowed::Definition(Box::new(Statement::Statement(sql)))),
            Sql::CreateTable(table) if table.query.is_some() => {
                Ok(Allowed::Definition(Box::new(Statement::Statement(sql))))
            }
            Sql::CreateTable(_) => {
                Err(refused("CREATE TABLE without AS", "write CREATE TABLE name AS SELECT ..."))
            }
            Sql::Drop { object_type: ObjectType::Table | ObjectType::View, .. } => {
                Ok(Allowed::Definition(Box::new(Statement::Statement(sql))))
            }
            Sql::Insert(_)
            | Sql::Update { .. }
            | Sql::Delete(_)
            | Sql::Merge { .. }
            | Sql::Truncate { .. } => Err(refused(
                &first_words(&sql),
                "tables are read only; COPY (SELECT ...) TO 'file' writes new ones",
            )),
            Sql::Set(_) => {
                Err(refused("SET", "settings are options of the command line: --threads, --memory-limit"))
            }
            other => Err(refused(
                &first_words(other),
                "SELECT, EXPLAIN, DESCRIBE, SHOW, CREATE VIEW, CREATE TABLE AS, DROP and COPY TO are",
            )),
        },
    }
}

fn first_words(statement: &Sql) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.first().copied().unwrap_or("this statement").to_ascii_uppercase()
}

fn refused(what: &str, remedy: &str) -> Error {
    Error::place("query", format_args!("{what} is not allowed here"), remedy)
}

fn copy_of(copy: CopyToStatement) -> Result<Copy> {
    if !copy.partitioned_by.is_empty() {
        return Err(refused("PARTITIONED BY", "write one file: COPY (SELECT ...) TO 'file.parquet'"));
    }
    let named = match copy.stored_as.as_deref() {
        Some(name) => Some(known_format(name)?),
        None => None,
    };
    let mut written = Copy {
        query: Box::new(query_of(copy.source)?),
        format: Format::Parquet,
        compression: Compression::None,
        header: true,
        delimiter: None,
        target: copy.target,
    };
    let mut by_option = None;
    for (key, value) in copy.options {
        let value = plain(&value);
        let key = key.to_ascii_lowercase();
        match key.strip_prefix("format.").unwrap_or(&key) {
            "format" => by_option = Some(known_format(&value)?),
            "header" | "has_header" => {
                written.header = value.parse().map_err(|_| {
                    Error::place("COPY", format_args!("{key} is {value}"), "write true or false")
                })?;
            }
            "delimiter" => {
                let mut letters = value.chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => written.delimiter = Some(letter),
                    _ => {
                        return Err(Error::place(
                            "COPY",
                            "a delimiter is one letter",
                            "write for example ';'",
                        ));
                    }
                }
            }
            other => {
                let near = suggest::nearest(other, ["format", "header", "has_header", "delimiter"]);
                return Err(Error::place(
                    "COPY",
                    format_args!("unknown option {key}"),
                    suggest::did_you_mean(&near, "there are format, header and delimiter"),
                ));
            }
        }
    }
    // The name is enough here; where it leads is checked when it is written.
    let target = Location::Local(written.target.clone().into());
    let (format, compression) = Format::of_file(&target, named.or(by_option)).map_err(failing)?;
    written.compression = compression;
    written.format = format.ok_or_else(|| {
        Error::place(
            "COPY",
            format_args!("{:?} does not say the format", written.target),
            "name the file .parquet, .csv, .tsv, .json, .ndjson or .md, or write STORED AS PARQUET",
        )
    })?;
    Ok(written)
}

fn known_format(name: &str) -> Result<Format> {
    Format::named(name).ok_or_else(|| {
        let near = suggest::nearest(name, Format::names());
        let remedy = suggest::did_you_mean(&near, &format!("there are {}", Format::names().join(", ")));
        Error::place("COPY", format_args!("unknown format {name}"), remedy)
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
        other => other.to_string(),
    }
}

fn query_of(source: CopyToSource) -> Result<Statement> {
    match source {
        CopyToSource::Query(query) => Ok(Statement::Statement(Box::new(Sql::Query(query)))),
        CopyToSource::Relation(name) => {
            let text = format!("SELECT * FROM {name}");
            let fault = |error: DataFusionError| inward(&error, &text, &KnownNames::default());
            let dialect = DuckDbDialect {};
            let mut parser =
                DFParserBuilder::new(text.as_str()).with_dialect(&dialect).build().map_err(fault)?;
            parser.parse_statement().map_err(fault)
        }
    }
}
