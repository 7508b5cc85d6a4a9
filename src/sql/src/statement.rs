//! Parses statements and decides which of them may run: queries, COPY, and definitions of views and tables of the
//! session. Statements that would change existing tables or settings are rejected.

use super::error::{KnownNames, as_failure, from_engine_error};
use super::output::ResultFormat;
use super::rewrite::rewrite_statement;
use super::size::{check_references, check_text};
use datafusion::common::DataFusionError;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{DescribeAlias, ObjectName, ObjectType, Statement as Sql, Value};
use datafusion::sql::sqlparser::dialect::DuckDbDialect;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Token;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, Location};
use planetree_base::suggest;

/// A statement that may run.
#[derive(Debug)]
pub(crate) enum AllowedStatement {
    /// A statement that returns rows.
    Query(Box<Statement>),
    /// `SUMMARIZE` of the rows of a query.
    Summary(Box<Statement>),
    /// A statement that creates or drops a view or table of the session.
    Definition(Box<Statement>),
    /// A statement that writes rows to a file.
    Copy(CopyStatement),
}

/// `COPY (SELECT ...) TO 'file'`.
#[derive(Debug)]
pub(crate) struct CopyStatement {
    /// The query whose rows are written.
    pub query: Box<Statement>,
    /// Path of the output, as written in the statement.
    pub target: String,
    /// Format of the output.
    pub format: ResultFormat,
    /// Compression of the output.
    pub compression: Compression,
    /// Whether delimited text has a header.
    pub header: bool,
    /// Delimiter of delimited text; `None` for the default of the format.
    pub delimiter: Option<char>,
}

/// Parses all statements in `text`. Fails if one of them is not allowed.
pub(crate) fn parse(text: &str) -> Result<Vec<AllowedStatement>> {
    let user_error = |error: DataFusionError| from_engine_error(&error, text, &KnownNames::default());
    check_text(text)?;
    let dialect = DuckDbDialect {};
    let mut parser = DFParserBuilder::new(text).with_dialect(&dialect).build().map_err(user_error)?;
    let mut allowed_statements = Vec::new();
    while let Some((is_summary, mut statement)) = next_statement(&mut parser).map_err(user_error)? {
        check_references(&statement)?;
        rewrite_statement(&mut statement, text)?;
        allowed_statements.push(match (is_summary, allowed(statement)?) {
            (false, statement) => statement,
            (true, AllowedStatement::Query(query)) => AllowedStatement::Summary(query),
            (true, _) => {
                return Err(refused("SUMMARIZE of anything but a query", "write SUMMARIZE SELECT ..."));
            }
        });
    }
    Ok(allowed_statements)
}

/// Parses the next statement, which must be followed by a `;` or the end of the text. Returns whether SUMMARIZE, which
/// the parser does not know, precedes it; `None` at the end of the text.
fn next_statement(parser: &mut DFParser<'_>) -> Result<Option<(bool, Statement)>, DataFusionError> {
    while parser.parser.consume_token(&Token::SemiColon) {}
    if parser.parser.peek_token() == Token::EOF {
        return Ok(None);
    }
    let is_word = |token: &Token, words: &[&str]| match token {
        Token::Word(word) => words.iter().any(|other| word.value.eq_ignore_ascii_case(other)),
        _ => false,
    };
    let is_summary = is_word(&parser.parser.peek_token().token, &["summarize"]);
    let statement = if is_summary {
        parser.parser.next_token();
        let next = parser.parser.peek_token().token;
        match next == Token::LParen || is_word(&next, &["select", "with", "from", "values"]) {
            true => parser.parse_statement()?,
            false => {
                let table = parser.parser.parse_object_name(false).map_err(plain_error)?;
                all_rows_of(&table)?
            }
        }
    } else {
        match parser.parse_statement()? {
            Statement::Statement(sql) if is_plain_show_tables(&sql) => query(TABLES)?,
            statement => statement,
        }
    };
    match parser.parser.peek_token() {
        end if end == Token::SemiColon || end == Token::EOF => Ok(Some((is_summary, statement))),
        other => parser.parser.expected("end of statement", other).map_err(plain_error),
    }
}

fn plain_error(error: ParserError) -> DataFusionError {
    DataFusionError::SQL(Box::new(error), None)
}

/// Parses `SELECT * FROM name`.
fn all_rows_of(name: &ObjectName) -> Result<Statement, DataFusionError> {
    query(&format!("SELECT * FROM {name}"))
}

/// Parses one statement.
fn query(text: &str) -> Result<Statement, DataFusionError> {
    let dialect = DuckDbDialect {};
    DFParserBuilder::new(text).with_dialect(&dialect).build()?.parse_statement()
}

fn is_plain_show_tables(statement: &Sql) -> bool {
    matches!(statement, Sql::ShowTables { .. }) && statement.to_string() == "SHOW TABLES"
}

/// The query of `SHOW TABLES`. The engine would also list the views that describe the session itself.
const TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
     WHERE table_schema <> 'information_schema' ORDER BY table_name";

fn allowed(statement: Statement) -> Result<AllowedStatement> {
    match statement {
        Statement::CopyTo(copy) => copy_of(copy).map(AllowedStatement::Copy),
        Statement::Explain(explain) => match allowed((*explain.statement).clone())? {
            AllowedStatement::Query(_) => Ok(AllowedStatement::Query(Box::new(Statement::Explain(explain)))),
            _ => Err(refused("EXPLAIN of anything but a query", "explain a query")),
        },
        Statement::CreateExternalTable(_) => Err(refused(
            "CREATE EXTERNAL TABLE",
            "put the path in the query, FROM 'file.csv', or pass --table name=PATH",
        )),
        Statement::Reset(_) => Err(refused("RESET", "use the options of the command line")),
        Statement::Statement(sql) => match &*sql {
            Sql::Query(_)
            | Sql::ExplainTable { .. }
            | Sql::ShowTables { .. }
            | Sql::ShowColumns { .. }
            | Sql::ShowFunctions { .. }
            | Sql::ShowVariable { .. } => Ok(AllowedStatement::Query(Box::new(Statement::Statement(sql)))),
            Sql::Explain {
                describe_alias: DescribeAlias::Describe | DescribeAlias::Desc, statement, ..
            } if matches!(**statement, Sql::Query(_)) => {
                Ok(AllowedStatement::Query(Box::new(Statement::Statement(sql))))
            }
            Sql::CreateView { .. } => Ok(AllowedStatement::Definition(Box::new(Statement::Statement(sql)))),
            Sql::CreateTable(table) if table.query.is_some() => {
                Ok(AllowedStatement::Definition(Box::new(Statement::Statement(sql))))
            }
            Sql::CreateTable(_) => {
                Err(refused("CREATE TABLE without AS", "write CREATE TABLE name AS SELECT ..."))
            }
            Sql::Drop { object_type: ObjectType::Table | ObjectType::View, .. } => {
                Ok(AllowedStatement::Definition(Box::new(Statement::Statement(sql))))
            }
            Sql::Insert(_)
            | Sql::Update { .. }
            | Sql::Delete(_)
            | Sql::Merge { .. }
            | Sql::Truncate { .. } => Err(refused(
                &first_word(&sql),
                "tables are read-only; write a new file with COPY (SELECT ...) TO 'file'",
            )),
            Sql::Set(_) => {
                Err(refused("SET", "use the options of the command line: --threads, --memory-limit"))
            }
            other => Err(refused(
                &first_word(other),
                "the allowed statements are SELECT, EXPLAIN, DESCRIBE, SUMMARIZE, SHOW TABLES, SHOW COLUMNS, SHOW FUNCTIONS, \
                 CREATE VIEW, CREATE TABLE AS, DROP and COPY TO",
            )),
        },
    }
}

/// Returns the word that a statement begins with. Some statements that begin with SHOW are allowed, so that two words
/// say which one is not.
fn first_word(statement: &Sql) -> String {
    let text = statement.to_string().to_ascii_uppercase();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    match words[..] {
        ["SHOW", second] => format!("SHOW {second}"),
        [first, ..] => first.to_owned(),
        [] => "this statement".to_owned(),
    }
}

fn refused(what: &str, remedy: &str) -> Error {
    Error::place("query", format_args!("{what} is not allowed here"), remedy)
}

fn copy_of(copy: CopyToStatement) -> Result<CopyStatement> {
    if !copy.partitioned_by.is_empty() {
        return Err(refused("PARTITIONED BY", "write one file: COPY (SELECT ...) TO 'file.parquet'"));
    }
    let named = match copy.stored_as.as_deref() {
        Some(name) => Some(known_format(name)?),
        None => None,
    };
    let mut statement = CopyStatement {
        query: Box::new(query_of(copy.source)?),
        format: ResultFormat::Parquet,
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
                statement.header = value.parse().map_err(|_| {
                    Error::place(
                        "COPY",
                        format_args!("{key} must be true or false, not {value}"),
                        "write true or false",
                    )
                })?;
            }
            "delimiter" => {
                let mut letters = value.chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => statement.delimiter = Some(letter),
                    _ => {
                        return Err(Error::place(
                            "COPY",
                            "the delimiter must be one character",
                            "write, for example, delimiter ';'",
                        ));
                    }
                }
            }
            other => {
                let near = suggest::nearest(other, ["format", "header", "has_header", "delimiter"]);
                return Err(Error::place(
                    "COPY",
                    format_args!("unknown option {key}"),
                    suggest::did_you_mean(&near, "options: format, header, delimiter"),
                ));
            }
        }
    }
    // Only the extension matters here; the path is checked when the file is written.
    let target = Location::Local(statement.target.clone().into());
    let (format, compression) = ResultFormat::of_file(&target, named.or(by_option)).map_err(as_failure)?;
    statement.compression = compression;
    statement.format = format.ok_or_else(|| {
        Error::place(
            "COPY",
            format_args!("cannot tell the format of {:?} from its name", statement.target),
            "name the file .parquet, .csv, .tsv, .json, .ndjson or .md, or write STORED AS PARQUET",
        )
    })?;
    Ok(statement)
}

fn known_format(name: &str) -> Result<ResultFormat> {
    ResultFormat::named(name).ok_or_else(|| {
        let near = suggest::nearest(name, ResultFormat::names());
        let remedy = suggest::did_you_mean(&near, &format!("formats: {}", ResultFormat::names().join(", ")));
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
            all_rows_of(&name).map_err(|error| from_engine_error(&error, &text, &KnownNames::default()))
        }
    }
}
