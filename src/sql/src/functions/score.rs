//! Predictions without a file of them: a dataset's rows, scored as they are read.

use super::models::{read_model, text};
use super::{Function, Make};
use crate::error::outward;
use crate::open::blocking;
use crate::scan::{ScoredSource, SourceTable};
use crate::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use planetree_base::error::Error;
use planetree_data::dataset::DatasetReader;
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
