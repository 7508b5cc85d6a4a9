//! Implements the SQL function `explain_difference`, which shows why one document of a query ranks above another.

use super::dataset_function::{DatasetFunction, ModelAndDataset};
use super::{FunctionKind, SqlFunction};
use crate::scan::{MemorySource, RowExplainer, ScanSource, warn};
use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray};
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "explain_difference",
    usage: "explain_difference('model', 'dataset', 'query_id', 'doc_a', 'doc_b')",
    help: "feature, value_a, value_b, contribution_a, contribution_b, difference; largest difference first",
    kind: FunctionKind::Table(|tables| {
        let arguments = "a model, a dataset, a query and two documents";
        Arc::new(DatasetFunction { function: &FUNCTION, arguments, tables, build })
    }),
};

fn build(opened: ModelAndDataset, [query, one, other]: [&str; 3]) -> Result<Arc<dyn ScanSource>> {
    let batch = difference(&opened, query, [one, other])?;
    Ok(Arc::new(MemorySource::new(batch.schema(), vec![batch])))
}

/// Contribution and value of each feature that the trees use, for one document. A missing value is `None`.
type FeatureEffects = Vec<(f64, Option<f32>)>;

fn difference(opened: &ModelAndDataset, query: &str, documents: [&str; 2]) -> Result<RecordBatch> {
    let ModelAndDataset { model, reader, .. } = opened;
    let explainer = RowExplainer::new(model, reader)?;
    warn(reader, explainer.warning());
    let features: Vec<&str> = explainer.features().collect();
    let [one, other] = explain_documents(&explainer, features.len(), reader, query, documents)?;
    let mut rows: Vec<usize> = (0..features.len()).filter(|row| one[*row].0 != other[*row].0).collect();
    let size = |row: &usize| (one[*row].0 - other[*row].0).abs();
    // The sort is stable, so features with equal differences keep their order.
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let values = |effects: &FeatureEffects| -> ArrayRef {
        Arc::new(rows.iter().map(|row| effects[*row].1).collect::<Float32Array>())
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
        .map_err(|error| Error::bug(FUNCTION.name, &error).caused_by(error))
}

/// Finds two documents of a query and computes the contributions of their features.
fn explain_documents(
    explainer: &RowExplainer,
    features: usize,
    reader: &DatasetReader,
    query: &str,
    documents: [&str; 2],
) -> Result<[FeatureEffects; 2]> {
    let mut found: [Option<FeatureEffects>; 2] = [None, None];
    let mut has_query = false;
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let queries = group.read(0..1)?;
        if !queries.column(0).as_string::<i32>().iter().any(|name| name == Some(query)) {
            continue; // all rows of a query are in one row group
        }
        has_query = true;
        explainer.explain(reader, &group, &mut |explained| {
            let (queries, names) =
                (explained.keys[0].as_string::<i32>(), explained.keys[1].as_string::<i32>());
            for row in (0..queries.len()).filter(|row| queries.value(*row) == query && names.is_valid(*row)) {
                for (found, document) in found.iter_mut().zip(documents) {
                    if names.value(row) == document {
                        let effects =
                            (0..features).map(|feature| explainer.contribution(&explained, row, feature));
                        *found = Some(effects.collect());
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
            format_args!("no such query: {query:?}"),
            "check the query id",
        ));
    }
    match found {
        [Some(one), Some(other)] => Ok([one, other]),
        [one, _] => {
            let document = documents[usize::from(one.is_some())];
            Err(Error::place(
                reader.location(),
                format_args!("no such document in query {query:?}: {document:?}"),
                "check the document id",
            ))
        }
    }
}
