//! Implements the table functions that read files. They have the same names as in DuckDB:
//! `read_parquet('x.parquet')`.

use super::models::string_literal;
use super::{FunctionKind, SqlFunction};
use crate::error::to_engine_error;
use crate::foreign::ForeignFormat;
use crate::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use planetree_base::error::Error;
use std::sync::Arc;

pub(super) const PARQUET: SqlFunction = SqlFunction {
    name: "read_parquet",
    usage: "read_parquet('path')",
    help: "rows of Parquet files, written by planetree or not",
    kind: FunctionKind::Table(|tables| {
        Arc::new(ReadFunction { tables, kind: Some(ForeignFormat::Parquet), name: "read_parquet" })
    }),
};

pub(super) const CSV: SqlFunction = SqlFunction {
    name: "read_csv",
    usage: "read_csv('path' [, delim = ';'])",
    help: "rows of comma-separated text with a header, regardless of the file name, or with another delimiter",
    kind: FunctionKind::Table(|tables| {
        Arc::new(ReadFunction { tables, kind: Some(ForeignFormat::Delimited(b',')), name: "read_csv" })
    }),
};

pub(super) const JSON: SqlFunction = SqlFunction {
    name: "read_json",
    usage: "read_json('path')",
    help: "rows of JSON with one object per line, regardless of the file name",
    kind: FunctionKind::Table(|tables| {
        Arc::new(ReadFunction { tables, kind: Some(ForeignFormat::JsonLines), name: "read_json" })
    }),
};

pub(super) const TABLE: SqlFunction = SqlFunction {
    name: "read_table",
    usage: "read_table('path')",
    help: "rows of a dataset, table or file; the same as FROM 'path'",
    kind: FunctionKind::Table(|tables| Arc::new(ReadFunction { tables, kind: None, name: "read_table" })),
};

#[derive(Debug)]
struct ReadFunction {
    tables: Arc<Tables>,
    kind: Option<ForeignFormat>,
    name: &'static str,
}

impl TableFunctionImpl for ReadFunction {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let takes_delimiter = matches!(self.kind, Some(ForeignFormat::Delimited(_)));
        let found = match arguments.exprs() {
            [path] => string_literal(path).map(|path| (path, None)),
            [path, delimiter] if takes_delimiter => {
                string_literal(path).zip(string_literal(delimiter).map(Some))
            }
            _ => None,
        };
        let Some((path, delimiter)) = found else {
            let usage = format!("write {}('path')", self.name);
            return Err(to_engine_error(Error::place(
                self.name,
                "expected one path as a string literal",
                usage,
            )));
        };
        let kind = match &delimiter {
            Some(delimiter) => Some(ForeignFormat::Delimited(delimiter_byte(delimiter)?)),
            None => self.kind,
        };
        let is_delimiter_given = delimiter.is_some();
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(self.tables.read(&path, kind, is_delimiter_given)))
    }
}

/// Returns the delimiter that a query writes as a text.
fn delimiter_byte(text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(to_engine_error(Error::place(
            "read_csv",
            format_args!("the delimiter must be one ASCII character, not {text:?}"),
            "write, for example, delim = ';' or, for tabs, delim = '\\t'",
        ))),
    }
}
