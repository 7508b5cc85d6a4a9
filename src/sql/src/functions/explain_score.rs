//! Implements the SQL function `explain_score`, which returns the contribution of every feature to the score of every
//! row.

use super::dataset_function::{DatasetFunction, ModelAndDataset};
use super::{FunctionKind, SqlFunction};
use crate::scan::{ExplainedSource, ScanSource};
use planetree_base::error::Result;
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "explain_score",
    usage: "explain_score('model', 'dataset')",
    help: "query_id, doc_id, label, score, expected, feature, value, contribution: score = expected + sum(contribution)",
    kind: FunctionKind::Table(|tables| {
        let arguments = "a model and a dataset";
        Arc::new(DatasetFunction { function: &FUNCTION, arguments, tables, build })
    }),
};

fn build(opened: ModelAndDataset, []: [&str; 0]) -> Result<Arc<dyn ScanSource>> {
    let ModelAndDataset { model, model_name, reader } = opened;
    Ok(Arc::new(ExplainedSource::new(reader, &model, model_name)?))
}
