//! Predictions without a file of them: a dataset's rows, scored as they are read.

use super::models::{read_model, text};
use super::{Function, Make};
use crate::dataset::DatasetReader;
use crate::error::Error;
use crate::sql::error::outward;
use crate::sql::open::blocking;
use crate::sql::scan::{ScoredSource, SourceTable};
use crate::sql::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use std::sync::Arc;

pub const FUNCTION: Function = Function {
    name: "score",
    usage: "score('model', 'dataset')",
    help: "query_id, doc_id, label, score, rank and the dataset's other columns",
    make: Make::Table(|tables| Arc::new(Score(tables))),
};

#[derive(Debug)]
struct Score(Arc<Tables>);

impl TableFunctionImpl for Score {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let texts: Option<Vec<String>> = arguments.exprs().iter().map(text).collect();
        let Some([model, dataset]) = texts.as_deref() else {
            return Err(outward(Error::place(
                FUNCTION.name,
                "it takes a model and a dataset, named by texts",
                format_args!("write {}", FUNCTION.usage),
            )));
        };
        let source = blocking(|| {
            let read = read_model(&self.0, model)?;
            let reader = Arc::new(DatasetReader::open(&self.0.place(dataset)?)?);
            ScoredSource::new(reader, &read, model.clone())
        })?;
        Ok(Arc::new(SourceTable(Arc::new(source))))
    }
}
