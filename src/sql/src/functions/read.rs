//! Files by function, as DuckDB's users write it: `read_parquet('x.parquet')`.

use super::models::text;
use super::{Function, Make};
use crate::error::outward;
use crate::foreign::ForeignKind;
use crate::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use planetree_base::error::Error;
use std::sync::Arc;

pub const PARQUET: Function = Function {
    name: "read_parquet",
    usage: "read_parquet('path')",
    help: "the rows of Parquet files, ours or of others",
    make: Make::Table(|tables| {
        Arc::new(Read { tables, kind: Some(ForeignKind::Parquet), name: "read_parquet" })
    }),
};

pub const CSV: Function = Function {
    name: "read_csv",
    usage: "read_csv('path')",
    help: "the rows of text with a header, separated by commas, whatever the file is called",
    make: Make::Table(|tables| {
        Arc::new(Read { tables, kind: Some(ForeignKind::Delimited(b',')), name: "read_csv" })
    }),
};

pub const JSON: Function = Function {
    name: "read_json",
    usage: "read_json('path')",
    help: "the rows of JSON, an object a line, whatever the file is called",
    make: Make::Table(|tables| {
        Arc::new(Read { tables, kind: Some(ForeignKind::JsonLines), name: "read_json" })
    }),
};

pub const TABLE: Function = Function {
    name: "read_table",
    usage: "read_table('path')",
    help: "the rows of whatever is there, the same as FROM 'path'",
    make: Make::Table(|tables| Arc::new(Read { tables, kind: None, name: "read_table" })),
};

#[derive(Debug)]
struct Read {
    tables: Arc<Tables>,
    kind: Option<ForeignKind>,
    name: &'static str,
}

impl TableFunctionImpl for Read {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let path = match arguments.exprs() {
            [path] => text(path),
            _ => None,
        };
        let Some(path) = path else {
            let usage = format!("write {}('path')", self.name);
            return Err(outward(Error::place("query", "one path is needed, as a text", usage)));
        };
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(self.tables.read(&path, self.kind)))
    }
}
