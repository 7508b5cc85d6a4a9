//! Why is one document of a query above another?

use super::models::{read_model, text};
use super::{Function, Make};
use crate::error::outward;
use crate::open::blocking;
use crate::scan::{MemorySource, RowExplainer, SourceTable, warn};
use crate::tables::Tables;
use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result as EngineResult;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use planetree_model::model::Model;
use std::sync::Arc;

pub const FUNCTION: Function = Function {
    name: "explain_difference",
    usage: "explain_difference('model', 'dataset', 'query_id', 'doc_a', 'doc_b')",
    help: "feature, value_a, value_b, contribution_a, contribution_b, difference: the largest difference first",
    make: Make::Table(|tables| Arc::new(ExplainDifference(tables))),
};

#[derive(Debug)]
struct ExplainDifference(Arc<Tables>);

impl TableFunctionImpl for ExplainDifference {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> EngineResult<Arc<dyn TableProvider>> {
        let texts: Option<Vec<String>> = arguments.exprs().iter().map(text).collect();
        let Some([model, dataset, query, one, other]) = texts.as_deref() else {
            return Err(outward(Error::place(
                FUNCTION.name,
                "it takes a model, a dataset, a query and two documents, all named by texts",
                format_args!("write {}", FUNCTION.usage),
            )));
        };
        let batch = blocking(|| {
            let model = read_model(&self.0, model)?;
            let reader = DatasetReader::open(&self.0.place(dataset)?)?;
            difference(&model, &reader, query, [one, other])
        })?;
        let source = MemorySource::new(batch.schema(), vec![batch]);
        Ok(Arc::new(SourceTable(Arc::new(source))))
    }
}

/// What a document's features contribute, and their values.
type Parts = Vec<(f64, Option<f32>)>;

fn difference(
    model: &Model,
    reader: &DatasetReader,
    query: &str,
    documents: [&String; 2],
) -> Result<RecordBatch> {
    let explainer = RowExplainer::new(model, reader)?;
    warn(reader, explainer.warning());
    let features: Vec<&str> = explainer.features().collect();
    let [one, other] = find(&explainer, features.len(), reader, query, documents)?;
    let mut rows: Vec<usize> = (0..features.len()).filter(|row| one[*row].0 != other[*row].0).collect();
    let size = |row: &usize| (one[*row].0 - other[*row].0).abs();
    // Stable, so that equals stay in the order of the features.
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let values = |parts: &Parts| -> ArrayRef {
        Arc::new(rows.iter().map(|row| parts[*row].1).collect::<Float32Array>())
    };
    let numbers = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| of(*row))))
    };
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| features[*row])));
    let columns = [
        ("feature", names, false),
        ("value_a", values(&one), true),
        ("value_b", values(&other), true),
        ("contribution_a", numbers(&|row| one[row].0), false),
        ("contribution_b", numbers(&|row| other[row].0), false),
        ("difference", numbers(&|row| one[row].0 - other[row].0), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::place(FUNCTION.name, error, "report this: it is a fault of planetree"))
}

/// Finds two documents of a query and explains them.
fn find(
    explainer: &RowExplainer,
    features: usize,
    reader: &DatasetReader,
    query: &str,
    documents: [&String; 2],
) -> Result<[Parts; 2]> {
    let mut found: [Option<Parts>; 2] = [None, None];
    let mut has_query = false;
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let queries = group.read(0..1)?;
        if !queries.column(0).as_string::<i32>().iter().any(|name| name == Some(query)) {
            continue; // rows of a query are all in one group
        }
        has_query = true;
        explainer.explain(reader, &group, &mut |explained| {
            let (queries, names) =
                (explained.names[0].as_string::<i32>(), explained.names[1].as_string::<i32>());
            for row in (0..queries.len()).filter(|row| queries.value(*row) == query && names.is_valid(*row)) {
                for (place, document) in documents.iter().enumerate() {
                    if names.value(row) == document.as_str() {
                        let parts = (0..features).map(|feature| explainer.of(&explained, row, feature));
                        found[place] = Some(parts.collect());
                    }
                }
            }
            Ok(())
        })?;
        break;
    }
    if !has_query {
        return Err(Error::place(
            reader.location(),
            format_args!("there is no query {query:?}"),
            "check its id",
        ));
    }
    match found {
        [Some(one), Some(other)] => Ok([one, other]),
        [one, _] => {
            let document = documents[usize::from(one.is_some())];
            Err(Error::place(
                reader.location(),
                format_args!("query {query:?} has no document {document:?}"),
                "check its id",
            ))
        }
    }
}
