//! Tests results computed from predictions, and the metrics table that contains them.

use super::*;
use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::Float64Type;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use std::path::Path;
use std::sync::Arc;

fn predictions(root: &Path) -> Location {
    let location = Location::Local(root.join("predictions"));
    let columns: [(&str, ArrayRef); 3] = [
        ("query_id", Arc::new(StringArray::from(vec!["b", "b", "b", "a", "a", "c"]))),
        ("label", Arc::new(Float32Array::from(vec![0.0, 1.0, 2.0, 0.0, 0.0, 3.0]))),
        ("score", Arc::new(Float64Array::from(vec![3.0, 2.0, 1.0, 0.5, 0.25, -7.0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = TableWriter::create(&location, TableKind::Predictions, batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    location
}

fn metrics(names: &str) -> Vec<Metric> {
    names.split(',').map(|name| name.parse().unwrap()).collect()
}

#[test]
fn a_hand_checked_case() {
    let root = tempfile::tempdir().unwrap();
    let ranking = Ranking::Predictions(predictions(root.path()));
    let request = EvaluateRequest::new(metrics("ndcg@3,mrr"), Convention::default());
    let results = evaluate(&ranking, &request).unwrap();
    assert_eq!(results.names().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!((&results.documents, &results.relevant), (&vec![3, 2, 1], &vec![2, 0, 1]));
    assert!((results.value(0, 0).unwrap() - 0.5869).abs() < 5e-5);
    assert_eq!(results.column(1).collect::<Vec<_>>(), [Some(0.5), Some(0.0), Some(1.0)]);
    let request = EvaluateRequest::new(metrics("ndcg@3"), "letor4".parse().unwrap());
    assert!((evaluate(&ranking, &request).unwrap().value(0, 0).unwrap() - 0.7232).abs() < 5e-5);
}

#[test]
fn a_metrics_table_reads_back_as_the_same_results() {
    let root = tempfile::tempdir().unwrap();
    let location = predictions(root.path());
    let convention: Convention = "planetree,empty=skip".parse().unwrap();
    let wanted = metrics("err,ndcg@2,map");
    let mut request = EvaluateRequest::new(wanted.clone(), convention.clone());
    request.gains = true;
    let results = evaluate(&Ranking::Predictions(location), &request).unwrap();
    assert_eq!(results.value(1, 1), None, "a skipped query");
    let location = Location::Local(root.path().join("metrics"));
    let layout = MetricsLayout {
        metrics: &wanted,
        convention: &convention,
        label_map: None,
        segments: false,
        systems: false,
        folds: false,
        curve: None,
    };
    let mut table = MetricsTable::create(&location, layout).unwrap();
    table.write(&results, RowOrigin { system: "one", fold: 0 }).unwrap();
    table.finish().unwrap();
    let table = TableReader::open(&location, TableKind::Metrics).unwrap();
    assert_eq!(table.metadata(CONVENTION), Some(convention.to_string().as_str()));
    assert_eq!(table.metadata(METRICS), Some("err,ndcg@2,map"));
    let batches: Vec<RecordBatch> = table.batches().collect::<Result<_>>().unwrap();
    let [batch] = &batches[..] else { panic!("one batch") };
    let names = batch.column_by_name("query_id").unwrap().as_string::<i32>();
    assert!(names.iter().flatten().eq(results.names()));
    for (metric, name) in wanted.iter().enumerate() {
        let column = batch.column_by_name(&name.to_string()).unwrap().as_primitive::<Float64Type>();
        assert!(column.iter().eq(results.column(metric)), "{name}");
    }
}
