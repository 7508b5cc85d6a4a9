//! Models and rows for the tests of linear functions and nets.

use super::{Family, ModelRow, RowValues};
use crate::model::{Model, ModelFeature, Origin, Part};
use crate::predict::Scorer;
use arrow::array::Float32Array;
use fearless_simd::Level;
use planetree_base::random::Stream;

/// Returns the model of a part. Some features have no fill value.
pub(super) fn model_of(part: Part, features: usize) -> Model {
    let fill = |feature: usize| [None, Some(0.0), Some(-2.5)][feature % 3];
    let feature =
        |feature: usize| ModelFeature { fill: fill(feature), ..ModelFeature::new(format!("f{feature}")) };
    Model {
        intercept: 0.0,
        parts: vec![part],
        groups: Vec::new(),
        features: (0..features).map(feature).collect(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: 1,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns rows of random values. Some are missing or infinite.
pub(super) fn random_rows(seed: u64, rows: usize, width: usize) -> Vec<f32> {
    let mut stream = Stream::new(&[seed, 4]);
    let value = |_| match stream.bits() % 12 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => -0.0,
        bits => (bits as f32 - 6.0) * 0.75 + (stream.bits() % 3) as f32,
    };
    (0..rows * width).map(value).collect()
}

/// Returns the scores of rows. Asserts that they are the same by columns and without vector instructions.
pub(super) fn scores_in_all_ways(model: &Model, values: &[f32]) -> Vec<f64> {
    let width = model.features.len();
    let mut scores = vec![f64::NAN; values.len() / width];
    let mut others = scores.clone();
    let scorer = Scorer::new(model).unwrap();
    scorer.score(values, &mut scores);
    let column = |feature: usize| -> Float32Array {
        values.chunks(width).map(|row| Some(row[feature]).filter(|value| !value.is_nan())).collect()
    };
    let columns: Vec<Float32Array> = (0..width).map(column).collect();
    scorer.score_columns(&columns.iter().map(Some).collect::<Vec<_>>(), &mut others);
    assert_eq!(others, scores);
    let fallback = model.parts[0].family.scorer(&model.features, Level::baseline());
    fallback.score(RowValues::Matrix { values, width }, &mut others);
    assert_eq!(others, scores);
    scores
}

/// Returns the rows of a part in the model table.
pub(super) fn rows_of(family: &dyn Family) -> Vec<ModelRow> {
    let mut rows = Vec::new();
    family
        .write_rows(&mut |some| {
            rows.extend(some);
            Ok(())
        })
        .unwrap();
    assert_eq!(rows.len() as u64, family.row_count());
    rows
}

pub(super) fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-9 * (1.0 + one.abs()), "{one} is not {other}");
}
