//! What every feature contributes to the score of every row.

use super::models::{read_model, text};
use super::{Function, Make};
use crate::error::outward;
use crate::open::blocking;
use crate::scan::{ExplainedSource, SourceTable};
use crate::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;
use planetree_base::error::Error;
use planetree_data::dataset::DatasetReader;
use std::sync::Arc;

pub const FUNCTION: Function = Function {
    name: "explain_score",
    usage: "explain_score('model', 'dataset')",
    help: "query_id, doc_id, label, score, expected, feature, value, contribution: score = expected + sum(contribution)",
    make: Make::Table(|tables| Arc::new(ExplainScore(tables))),
};

#[derive(Debug)]
struct ExplainScore(Arc<Tables>);

impl TableFunctionImpl for ExplainScore {
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
            ExplainedSource::new(reader, &read, model.clone())
        })?;
        Ok(Arc::new(SourceTable(Arc::new(source))))
    }
}
