//! Tests that models in files of format version 1, which have one part and the column `group`, still give the same
//! scores.
//!
//! The folder `tests/fixtures/models` has the headers and rows of such files as JSON, datasets as CSV, and the expected
//! scores, computed by a naive program that follows the documentation of version 1.

use super::stream::dataset;
use crate::model::{Combine, Model};
use crate::predict::scores_of;
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use planetree_base::storage::Location;
use planetree_data::ingest::InputFormat;
use planetree_data::table::{TableKind, TableWriter};
use serde_json::Value;
use std::sync::Arc;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/models");

fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{FIXTURES}/{name}")).unwrap()
}

/// Writes a model file of format version 1.
fn write_version_1(fixture: &Value, location: &Location) {
    let rows = fixture["rows"].as_array().unwrap();
    let integers = |name: &str| -> ArrayRef {
        let values = rows.iter().map(|row| row[name].as_i64().map(|value| value as i32));
        Arc::new(values.collect::<Int32Array>())
    };
    let floats = |name: &str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row[name].as_f64()).collect::<Float64Array>())
    };
    let words = |name: &str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row[name].as_str()).collect::<StringArray>())
    };
    let thresholds = rows.iter().map(|row| row["threshold"].as_f64().map(|value| value as f32));
    let columns: [(&str, ArrayRef, bool); 13] = [
        ("tree", integers("tree"), false),
        ("node", integers("node"), false),
        ("depth", integers("depth"), false),
        ("feature", words("feature"), true),
        ("threshold", Arc::new(thresholds.collect::<Float32Array>()), true),
        ("missing", words("missing"), true),
        ("left", integers("left"), true),
        ("right", integers("right"), true),
        ("middle", integers("middle"), true),
        ("value", floats("value"), false),
        ("gain", floats("gain"), true),
        ("cover", floats("cover"), false),
        ("group", integers("group"), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = TableWriter::create(location, TableKind::Model, batch.schema()).unwrap();
    writer.set_metadata("planetree.model", fixture["header"].to_string());
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn files_of_version_1_score_to_the_same_bits() {
    for (name, combine) in [
        ("boosted", Combine::Sum),
        ("forest", Combine::Mean),
        ("pairwise", Combine::Wins),
        ("words", Combine::Sum),
    ] {
        let room = tempfile::tempdir().unwrap();
        let location = Location::Local(room.path().join("model"));
        let content: Value = serde_json::from_str(&fixture(&format!("{name}.json"))).unwrap();
        write_version_1(&content, &location);
        let model = Model::read(&location).unwrap();
        assert_eq!(model.only_trees().unwrap().combine, combine);
        let reader = dataset(room.path(), &fixture(&format!("{name}.csv")), InputFormat::Csv);
        let expected: Vec<u64> = fixture(&format!("{name}.scores.txt"))
            .lines()
            .map(|score| score.parse::<f64>().unwrap().to_bits())
            .collect();
        let bits = |model: &Model| -> Vec<u64> {
            scores_of(&reader, model).unwrap().iter().map(|score| score.to_bits()).collect()
        };
        assert_eq!(bits(&model), expected, "{name}");
        // If the model is written again, the file has the current format version.
        model.write(&location).unwrap();
        let again = Model::read(&location).unwrap();
        assert_eq!(again, model);
        assert_eq!(bits(&again), expected, "{name}");
    }
}
