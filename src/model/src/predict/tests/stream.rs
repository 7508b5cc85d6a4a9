//! Tests the whole path of prediction, from the conversion of text to the scores.

use crate::model::{Branch, Combine, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble};
use crate::predict::{PredictReport, PredictedGroup, predict, scores_of};
use arrow::array::Array;
use planetree_data::convert::convert_text;
use planetree_data::dataset::DatasetReader;
use planetree_data::ingest::InputFormat;
use std::path::Path;

/// Converts text to a dataset with one file per query.
pub(crate) fn dataset(room: &Path, text: &str, format: InputFormat) -> DatasetReader {
    DatasetReader::open(&convert_text(room, "dataset", text, format, 1).unwrap()).unwrap()
}

/// Creates a model with one tree per used feature. Feature `i` adds 10^i for values above 0, 5 * 10^i for missing
/// values, and 0 otherwise. So the digits of a score show the branch taken in every tree.
pub(crate) fn model(features: &[&str], used: &[usize]) -> Model {
    let leaf = |value| Node { depth: 1, split: None, value, cover: 1.0 };
    let tree = |feature: usize| {
        let (missing, middle) = (Branch::Middle, Some(3));
        let feature = feature as u32;
        let split = Split { feature, threshold: 0.0, missing, left: 1, right: 2, middle, gain: 1.0 };
        let power = 10f64.powi(feature as i32);
        let root = Node { depth: 0, split: Some(split), value: 0.0, cover: 1.0 };
        Tree { nodes: vec![root, leaf(0.0), leaf(power), leaf(5.0 * power)] }
    };
    let trees = used.iter().map(|feature| tree(*feature)).collect();
    let (combine, base_score, base_feature) = (Combine::Sum, 0.0, None);
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(TreeEnsemble::new(combine, base_score, base_feature, trees))],
        groups: Vec::new(),
        features: features.iter().map(|name| ModelFeature::new(*name)).collect(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: used.len() as u32,
        start_scores: None,
        origin: Origin::default(),
    }
}

fn predicted(reader: &DatasetReader, model: &Model, threads: usize) -> (Vec<PredictedGroup>, PredictReport) {
    let mut groups = Vec::new();
    let report = predict(reader, model, threads, &mut |group| {
        groups.push(group);
        Ok(())
    });
    (groups, report.unwrap())
}

#[test]
fn columns_are_found_by_name_and_groups_come_in_order() {
    let room = tempfile::tempdir().unwrap();
    let mut text = "query_id,doc_id,label,c,extra,a,b\n".to_owned();
    for query in 0..20 {
        text.push_str(&format!("q{query},d1,0,1,7,-1,-1\nq{query},d2,,1,7,,1\nq{query},,2,-1,7,-1,1\n"));
    }
    let reader = dataset(room.path(), &text, InputFormat::Csv);
    let model = model(&["a", "b", "c"], &[2, 0, 1]);
    for threads in [1, 2, 5] {
        let (groups, report) = predicted(&reader, &model, threads);
        assert_eq!((report.rows, report.threads, report.warning), (60, threads, None));
        assert_eq!(groups.len(), 20);
        for (query, group) in groups.iter().enumerate() {
            assert_eq!(group.scores, [100.0, 115.0, 10.0]);
            assert_eq!(group.ranks, [2, 1, 3]);
            assert!(group.query_ids.iter().all(|id| id == Some(&format!("q{query}"))));
            assert_eq!(group.doc_ids.iter().collect::<Vec<_>>(), [Some("d1"), Some("d2"), None]);
            assert_eq!(group.labels.iter().collect::<Vec<_>>(), [Some(0.0), None, Some(2.0)]);
        }
    }
    assert_eq!(scores_of(&reader, &model).unwrap(), [100.0, 115.0, 10.0].repeat(20));
    // Fill values are applied, and an error of the sink ends the prediction.
    let mut filled = model.clone();
    filled.features[0].fill = Some(1.0);
    assert_eq!(scores_of(&reader, &filled).unwrap()[..3], [100.0, 111.0, 10.0]);
    let outcome = predict(&reader, &model, 2, &mut |_| Err(planetree_base::error::Error::Interrupted));
    assert_eq!(outcome.unwrap_err().to_string(), "interrupted; nothing was written");
}

#[test]
fn a_model_that_uses_no_feature_scores_every_row() {
    let room = tempfile::tempdir().unwrap();
    let reader = dataset(room.path(), "query_id,label,a\nq1,,1\nq1,,2\nq2,,3\n", InputFormat::Csv);
    let mut model = model(&["a"], &[]);
    model.only_trees_mut().unwrap().base_score = 0.25;
    let (groups, _) = predicted(&reader, &model, 1);
    assert_eq!(groups.iter().map(|group| group.labels.null_count()).sum::<usize>(), 3, "unlabelled");
    assert_eq!(groups[0].ranks, [1, 2]);
    assert_eq!(scores_of(&reader, &model).unwrap(), [0.25; 3]);
}

#[test]
fn features_that_a_dataset_lacks_are_listed() {
    let room = tempfile::tempdir().unwrap();
    let reader = dataset(room.path(), "query_id,label,a,f3\nq1,0,1,2\n", InputFormat::Csv);
    let names = ["f1", "f2", "f3", "f4", "f5", "f6", "f7"];
    let error = scores_of(&reader, &model(&names, &[2])).unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("lacks 6 of 7 features: f1, f2, f4, f5, f6, ..."), "{text}");
    assert!(error.remedy().is_some());
}

#[test]
fn an_index_that_never_occurs_in_letor_text_is_missing() {
    let room = tempfile::tempdir().unwrap();
    let reader = dataset(room.path(), "2 qid:1 1:0.5 2:1\n0 qid:1 2:-1\n", InputFormat::Letor);
    let (groups, report) = predicted(&reader, &model(&["f1", "f2", "f3"], &[0, 1, 2]), 1);
    assert_eq!(groups[0].scores, [511.0, 505.0]);
    let warning = report.warning.unwrap();
    assert_eq!(warning, "1 feature is not in the data and treated as missing: f3");
    // Only names of the form f<index> may be absent.
    assert!(scores_of(&reader, &model(&["f1", "f2", "bm25"], &[0])).is_err());
}
