//! Trees and training errors are those of scikit-learn, LightGBM, a worked example and brute force.

use crate::support::*;

#[test]
fn an_exact_tree_is_that_of_scikit_learn() {
    let room = room();
    dataset(room.path(), "data", &untied(11, 1500, 7), "--partition-rows 400");
    for (depth, leaf) in [(1, 1), (3, 1), (6, 1), (4, 25), (12, 3)] {
        let settings = format!("max_depth={depth} --set min_data_in_leaf={leaf} --set learning_rate=1");
        train(
            room.path(),
            &format!("--preset gbrt --data data --model m --set num_trees=1 --set {settings}"),
        );
        run(room.path(), "predict --model m --data data --scores scores.txt").ok();
        let check = format!("tree data m scores.txt max_depth={depth} min_samples_leaf={leaf}");
        let Some(found) = reference(room.path(), &check) else { return };
        eprintln!("depth {depth}, leaves of {leaf}: {found}");
    }
}

/// Asserts that the training error of every round is scikit-learn's.
fn boosts_like_scikit_learn(directory: &std::path::Path, data: &str, depth: u32, leaf: u32) {
    train(
        directory,
        &format!(
            "--preset gbrt --data {data} --model m --rounds rounds --set num_trees=30 --set learning_rate=0.1 \
             --set base_score=auto --set max_depth={depth} --set min_data_in_leaf={leaf}"
        ),
    );
    let check = format!(
        "boost {data} rounds 1e-6 n_estimators=30 learning_rate=0.1 max_depth={depth} min_samples_leaf={leaf}"
    );
    if let Some(found) = reference(directory, &check) {
        eprintln!("{data}: {found}");
    }
}

#[test]
fn boosted_exact_trees_have_the_training_error_of_scikit_learn() {
    let room = room();
    dataset(room.path(), "made", &untied(12, 2000, 6), "");
    boosts_like_scikit_learn(room.path(), "made", 4, 1);
    boosts_like_scikit_learn(room.path(), "made", 3, 10);
}

#[test]
fn boosted_exact_trees_have_the_training_error_of_scikit_learn_on_mq2008() {
    let Some(data) = shared("data/MQ2008") else { return };
    let room = room();
    real_dataset(room.path(), "mq2008", &data, "S1");
    // Leaves large enough that two features hardly ever split equally well: between those, either choice is right.
    boosts_like_scikit_learn(room.path(), "mq2008", 4, 40);
}

/// The training set of a lecture on gradient boosting: five targets of 1, four of 2, three of 3, five of 4.
fn lecture() -> Vec<Example> {
    let targets: [(f64, usize); 4] = [(1.0, 5), (2.0, 4), (3.0, 3), (4.0, 5)];
    let labels: Vec<f64> = targets.iter().flat_map(|(target, count)| vec![*target; *count]).collect();
    let example = |(row, label): (usize, &f64)| {
        let other = (row * 7 % 17) as f32;
        Example { query: row / 6, label: *label, weight: 1.0, features: vec![Some(row as f32), Some(other)] }
    };
    labels.iter().enumerate().map(example).collect()
}

/// The split of least squared error, by brute force: feature, threshold, mean residuals left and right.
fn best_stump(examples: &[Example], residuals: &[f64]) -> (usize, f32, f64, f64) {
    let mut best = (f64::INFINITY, (0, 0.0, 0.0, 0.0));
    for feature in 0..examples[0].features.len() {
        let value = |row: usize| examples[row].features[feature].unwrap();
        let mut values: Vec<f32> = (0..examples.len()).map(value).collect();
        values.sort_by(f32::total_cmp);
        for pair in values.windows(2) {
            let threshold = (pair[0] + pair[1]) / 2.0;
            let mean = |left: bool| {
                let rows = (0..examples.len()).filter(|row| (value(*row) <= threshold) == left);
                let side: Vec<f64> = rows.map(|row| residuals[row]).collect();
                side.iter().sum::<f64>() / side.len() as f64
            };
            let (left, right) = (mean(true), mean(false));
            let fitted = |row: usize| if value(row) <= threshold { left } else { right };
            let error: f64 = (0..examples.len()).map(|row| (residuals[row] - fitted(row)).powi(2)).sum();
            if error < best.0 - 1e-9 {
                best = (error, (feature, threshold, left, right));
            }
        }
    }
    best.1
}

#[test]
fn the_example_of_the_lecture_starts_at_2_471_and_every_stump_fits_the_residuals() {
    let room = room();
    let examples = lecture();
    dataset(room.path(), "data", &examples, "");
    let settings = "--set num_trees=8 --set max_depth=1 --set learning_rate=0.5 --set base_score=auto";
    train(room.path(), &format!("--preset gbrt --data data --model m {settings}"));
    // F0 is the mean target: -84 + 34 x = 0.
    let base = described(room.path(), "m")["parts"][0]["base_score"].as_f64().unwrap();
    assert_close(base, 84.0 / 34.0, 1e-9, "base score");
    assert_eq!(format!("{base:.3}"), "2.471");
    let mut scores = vec![base; examples.len()];
    for number in 0..8 {
        let residuals: Vec<f64> =
            examples.iter().zip(&scores).map(|(example, score)| example.label - score).collect();
        if number == 0 {
            assert_close(residuals[0], 1.0 - 2.471, 1e-3, "the first pseudo-residual");
        }
        let (feature, threshold, left, right) = best_stump(&examples, &residuals);
        let tree = described(room.path(), &format!("m --tree {number}"));
        let nodes = &tree["nodes"];
        assert_eq!(nodes[0]["feature"], format!("f{}", feature + 1), "tree {number}: {tree}");
        assert_eq!(nodes[0]["threshold"].as_f64(), Some(f64::from(threshold)), "tree {number}: {tree}");
        let value = |child: &str| {
            let place = nodes[0][child].as_u64().unwrap() as usize;
            nodes[place]["value"].as_f64().unwrap()
        };
        for (found, expected) in [(value("left"), 0.5 * left), (value("right"), 0.5 * right)] {
            assert!((found - expected).abs() < 1e-6, "tree {number}: {found}, expected {expected}");
        }
        for (example, score) in examples.iter().zip(&mut scores) {
            *score += 0.5 * if example.features[feature].unwrap() <= threshold { left } else { right };
        }
    }
}

/// Asserts that the training error of every round is within 0.5 % of LightGBM's; `theirs` are settings for LightGBM only.
fn near_lightgbm(directory: &std::path::Path, data: &str, settings: &[&str], theirs: &str) {
    let set: String = settings.iter().map(|setting| format!(" --set {setting}")).collect();
    train(directory, &format!("--preset planet --data {data} --model m --rounds rounds{set}"));
    let check = format!("lightgbm {data} rounds 0.005 {} {theirs}", settings.join(" "));
    if let Some(found) = reference(directory, &check) {
        eprintln!("{data}: {found}");
    }
}

/// Settings that all comparisons with LightGBM share.
const COMMON: [&str; 4] = ["num_trees=50", "learning_rate=0.1", "min_data_in_leaf=20", "max_bin=255"];

#[test]
fn static_bins_have_the_training_error_of_lightgbm() {
    let Some(data) = shared("data") else { return };
    let room = room();
    for (set, name) in [("MQ2008", "mq2008"), ("MSLR-sample", "mslr")] {
        real_dataset(room.path(), name, &data.join(set), "S*");
        near_lightgbm(room.path(), name, &[&COMMON[..], &["max_depth=5"]].concat(), "num_leaves=32");
        let best_first = [&COMMON[..], &["num_leaves=31", "max_depth=-1"]].concat();
        near_lightgbm(room.path(), name, &best_first, "");
    }
    let coarse = ["num_trees=50", "learning_rate=0.1", "min_data_in_leaf=50", "max_bin=63", "max_depth=4"];
    near_lightgbm(room.path(), "mq2008", &coarse, "num_leaves=16");
}
