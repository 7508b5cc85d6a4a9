//! Models made of models are as good as those made of scikit-learn's and LightGBM's models.

use crate::support::*;

/// Mean and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

/// Compares NDCG@10 over several seeds. The models are trained on two parts of a real dataset and tested on another.
fn compare(kind: &str, set: &str, ours: &str, boosted: u32) {
    const TREES: u32 = 60;
    const SEEDS: usize = 4;
    let Some(folder) = shared(set) else { return };
    let room = room();
    real_dataset(room.path(), "train", &folder, "S[12]");
    real_dataset(room.path(), "test", &folder, "S4");
    let part = |number: u32| format!("{}/S{number}.txt.gz", folder.display());
    let files = format!("{},{} {}", part(1), part(2), part(4));
    let arguments = format!("{kind} {files} {TREES} {boosted} {SEEDS}");
    let Some(printed) = reference_script(room.path(), "plans.py", &arguments) else { return };
    let theirs: Vec<f64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), SEEDS);
    let of_seed = |seed: usize| {
        train(room.path(), &format!("{ours} --set seed={seed} --data train --model m"));
        ndcg(&predict(room.path(), "m", "test"))
    };
    let ours: Vec<f64> = (0..SEEDS).map(of_seed).collect();
    let ((ours, error), (theirs, their_error)) = (mean_and_error(&ours), mean_and_error(&theirs));
    let noise = 3.0 * (error * error + their_error * their_error).sqrt();
    let context = format!("{kind} on {set}: {ours:.4}, theirs {theirs:.4}, noise {noise:.4}");
    eprintln!("{context}");
    assert!((ours - theirs).abs() <= noise + 0.003, "{context}");
}

#[test]
fn classes_are_as_good_as_binary_forests_of_scikit_learn() {
    let settings = "--preset rf --set num_trees=60 --set target=ordinal";
    compare("ordinal", "data/MSLR-sample", settings, 0); // four thresholds
    compare("ordinal", "data/MQ2008", settings, 0);
}

/// LightGBM's `multiclass` has the same loss, Newton steps and trees; bins and seeds differ.
#[test]
fn classes_of_a_softmax_are_as_good_as_lightgbms() {
    let settings = "--preset mcrank --set num_trees=60 --set num_leaves=8 --set split_by=newton \
                    --set base_score=auto --set bagging_fraction=0.7";
    compare("softmax", "data/MSLR-sample", settings, 60);
    compare("softmax", "data/MQ2008", settings, 60);
}

#[test]
fn initialised_boosting_is_as_good_as_lightgbm_on_a_forest_of_scikit_learn() {
    let settings = "--preset igbrt --set stage.1.num_trees=60 --set stage.2.num_trees=40";
    compare("igbrt", "data/MQ2008", settings, 40);
}
