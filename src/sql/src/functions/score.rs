//! Implements the SQL function `score`, which scores the rows of a dataset as they are read, without a file of
//! predictions.

use super::dataset_function::{DatasetFunction, ModelAndDataset};
use super::{FunctionKind, SqlFunction};
use crate::scan::{ScanSource, ScoredSource};
use planetree_base::error::Result;
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "score",
    usage: "score('model', 'dataset')",
    help: "query_id, doc_id, label, score, rank and the dataset's other columns",
    kind: FunctionKind::Table(|tables| {
        let arguments = "a model and a dataset";
        Arc::new(DatasetFunction { function: &FUNCTION, arguments, tables, build })
    }),
};

fn build(opened: ModelAndDataset, []: [&str; 0]) -> Result<Arc<dyn ScanSource>> {
    let ModelAndDataset { model, model_name, reader } = opened;
    Ok(Arc::new(ScoredSource::new(reader, &model, model_name)?))
}
