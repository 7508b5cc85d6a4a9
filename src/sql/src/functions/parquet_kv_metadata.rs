//! Implements the table function `parquet_kv_metadata`, with the name and columns of DuckDB.

use super::models::string_literal;
use super::{FunctionKind, SqlFunction};
use crate::error::to_engine_error;
use crate::open::blocking;
use crate::tables::Tables;
use arrow::array::{RecordBatch, StringArray};
use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use planetree_base::error::Error;
use planetree_data::table::TableReader;
use std::sync::Arc;

pub(super) const FUNCTION: SqlFunction = SqlFunction {
    name: "parquet_kv_metadata",
    usage: "parquet_kv_metadata('path')",
    help: "keys and values of the metadata of a Parquet file, such as the parameters of a model",
    kind: FunctionKind::Table(|tables| Arc::new(KeyValues { tables })),
};

#[derive(Debug)]
struct KeyValues {
    tables: Arc<Tables>,
}

impl TableFunctionImpl for KeyValues {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let path = match arguments.exprs() {
            [path] => string_literal(path),
            _ => None,
        };
        let Some(path) = path else {
            return Err(to_engine_error(Error::place(
                FUNCTION.name,
                "expected one path as a string literal",
                "write parquet_kv_metadata('model.parquet')",
            )));
        };
        let (file, pairs) = blocking(|| {
            let location = self.tables.location(&path)?;
            Ok((location.to_string(), TableReader::open_checked(&location)?.key_values()))
        })?;
        let files: StringArray = pairs.iter().map(|_| Some(file.as_str())).collect();
        let keys: StringArray = pairs.iter().map(|(key, _)| Some(key.as_str())).collect();
        let values: StringArray = pairs.iter().map(|(_, value)| value.as_deref()).collect();
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("file_name", Arc::new(files) as _, false),
            ("key", Arc::new(keys) as _, false),
            ("value", Arc::new(values) as _, true),
        ])?;
        Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
    }
}
