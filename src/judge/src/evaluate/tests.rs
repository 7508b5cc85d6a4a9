//! Tests that results computed from predictions equal the results read back from the metrics table.

use super::*;
use arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use planetree_data::table::{TableKind, TableWriter};
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
    let found = per_query_metrics(&predictions(root.path()), &metrics("ndcg@3,mrr"), None).unwrap();
    let results = &found.results;
    assert_eq!(results.names().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!((&results.documents, &results.relevant), (&vec![3, 2, 1], &vec![2, 0, 1]));
    assert!((results.value(0, 0).unwrap() - 0.5869).abs() < 5e-5);
    assert_eq!(results.column(1).collect::<Vec<_>>(), [Some(0.5), Some(0.0), Some(1.0)]);
    let letor: Convention = "letor4".parse().unwrap();
    let found = per_query_metrics(&predictions(root.path()), &metrics("ndcg@3"), Some(&letor)).unwrap();
    assert!((found.results.value(0, 0).unwrap() - 0.7232).abs() < 5e-5);
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
    let table = |name: &str, systems: bool| {
        let location = Location::Local(root.path().join(name));
        let (metrics, convention) = (wanted.as_slice(), &convention);
        let layout =
            MetricsLayout { metrics, convention, segments: false, systems, folds: false, curve: None };
        let mut table = MetricsTable::create(&location, layout).unwrap();
        table.write(&results, RowOrigin { system: "one", fold: 0 }).unwrap();
        table.finish().unwrap();
        location
    };
    let location = table("metrics", false);
    let all = per_query_metrics(&location, &[], None).unwrap();
    assert_eq!((&all.metrics, &all.convention), (&wanted, &convention));
    assert!(all.results.names().eq(results.names()));
    for metric in 0..3 {
        assert!(all.results.column(metric).eq(results.column(metric)));
    }
    let some = per_query_metrics(&location, &metrics("map"), Some(&convention)).unwrap();
    assert!(some.results.column(0).eq(results.column(2)));
    let problem = |location: &Location, names: &str, convention: Option<&Convention>| {
        let error = per_query_metrics(location, &metrics(names), convention).err().unwrap();
        format!("{error} / {}", error.remedy().unwrap_or_default())
    };
    let found = problem(&location, "ndcg@10", None);
    assert!(found.contains("no metric ndcg@10 / "), "{found}");
    let found = problem(&location, "map", Some(&Convention::default()));
    assert!(found.contains("follow convention planetree,empty=skip, not planetree"), "{found}");
    let found = problem(&table("several", true), "map", None);
    assert!(found.contains("several systems"), "{found}");
}
