//! Forests: the same bytes on any number of threads and partitions, honest out-of-bag scores, quality near
//! scikit-learn's, and clear errors.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::collections::BTreeMap;
use std::path::Path;

/// Every way to sample, weight, split and evaluate.
const VARIANTS: [&str; 9] = [
    "--preset rf-point",
    "--preset rf-point --set criterion=gini --set missing=learned --set feature_fraction=0.7",
    "--preset rf-point --set criterion=variance --set bagging_by=rows --set max_depth=6",
    "--preset rf-point --set candidates=exact --set queries_per_tree=20",
    "--preset rf-rand --set missing=learned",
    "--preset rf-rand --set features_per_node=4 --set max_bin=100",
    "--preset rf --set features_per_node=0.3",
    "--preset rf --set bagging_by=queries --set candidates=exact --set min_data_in_leaf=3",
    "--preset rf-pair --set pairs_per_document=4",
];

#[test]
fn neither_threads_nor_partitions_change_a_byte() {
    assert_same_forests(&VARIANTS, &[("one", 2), ("one", 4), ("many", 2), ("few", 1), ("few", 4)]);
}

#[test]
fn neither_threads_nor_partitions_change_the_log_or_the_out_of_bag_scores() {
    let room = room();
    same_rows(room.path());
    for variant in
        ["--preset rf-point", "--preset rf", "--preset rf-pair", "--preset rf-rand --set max_bin=0"]
    {
        let outputs = |data: &str, threads: u32| {
            let files = format!("--valid vali=vali --rounds rounds --oob oob --threads {threads} --model m");
            let settings = "--set tree_strength=true --set num_trees=5 --set seed=3";
            train(room.path(), &format!("{variant} --data {data} {files} {settings}"));
            let scores: Vec<u64> =
                predictions_of(&room.path().join("oob")).iter().map(|row| row.score.to_bits()).collect();
            (rounds_of(&room.path().join("rounds")), scores)
        };
        let (log, scores) = outputs("one", 1);
        for split in ["oob", "vali", "vali.tree"] {
            assert_eq!(course(&log, split, &log[0].metric).len(), 5, "{variant}");
        }
        for (data, threads) in [("one", 4), ("many", 2)] {
            // Compared as text: the mean of a metric over no queries is NaN, which is not equal to itself.
            let (other, other_scores) = outputs(data, threads);
            assert_eq!(format!("{other:?}"), format!("{log:?}"), "{variant} {data}");
            assert_eq!(other_scores, scores, "{variant} {data}");
        }
    }
}

/// The rows of a node are listed for as many features at a time as the limit allows.
#[test]
fn all_values_of_all_features_stay_within_the_memory_limit() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 60000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 4000").ok();
    let settings = "train --preset rf --set candidates=exact --set features_per_node=all --set max_depth=3 \
                    --set num_trees=2 --threads 2 --data data";
    let (stderr, free) = peak_of(room.path(), &format!("--quiet {settings} --model free"));
    assert_eq!(stderr, "");
    let limit = 160;
    let (stderr, peak) =
        peak_of(room.path(), &format!("--quiet {settings} --model limited --memory-limit {limit}MiB"));
    assert_eq!(stderr, "");
    assert!(peak <= limit && 4 * peak <= 3 * free, "{peak} MiB, {free} MiB without a limit");
    assert_same_bytes(room.path(), "limited", "free", "with a memory limit");
}

#[test]
fn binned_data_on_disk_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    for variant in ["--preset rf-point", "--preset rf --set missing=learned --set min_data_in_leaf=2"] {
        let arguments = format!("{variant} --data data --set num_trees=3");
        assert_same_outputs_from_disk(room.path(), &arguments, &[("--oob", "o")]);
        std::fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    }
}

#[test]
fn all_values_within_the_smallest_memory_limit_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    for variant in
        ["--preset rf-rand --set max_bin=0", "--preset rf-point --set candidates=exact --set max_depth=5"]
    {
        let arguments = format!("{variant} --data data --set num_trees=3");
        train(room.path(), &format!("{arguments} --model free"));
        let limit = least_memory(room.path(), &arguments);
        train(room.path(), &format!("{arguments} --model limited --memory-limit {limit}MiB"));
        assert_same_bytes(room.path(), "limited", "free", variant);
    }
}

#[test]
fn a_forest_that_was_killed_and_resumed_has_the_same_bytes_and_log() {
    let room = room();
    dataset(room.path(), "data", &graded(31, 150, 30), "--partition-rows 2000");
    dataset(room.path(), "vali", &graded(32, 40, 20), "");
    for arguments in [
        "--preset rf-point --data data --valid vali --set num_trees=60",
        "--preset rf --data data --set num_trees=60 --oob oob --rounds rounds",
    ] {
        killed_and_resumed(room.path(), arguments, 4);
    }
    let arguments = "--preset rf-point --data data --valid vali --set min_data_in_leaf=200";
    assert_resumes_with_the_same_log(room.path(), arguments);
}

#[test]
fn forests_learn_and_out_of_bag_scores_estimate_the_quality_on_unseen_queries() {
    let room = room();
    dataset(room.path(), "data", &graded(51, 150, 25), "");
    dataset(room.path(), "test", &graded(52, 60, 25), "");
    // scikit-learn has no forests of pairs; they should rank no worse than those of single rows.
    for (preset, kind) in [
        ("rf-point", "point"),
        ("rf-rand --set redraw_features=true", "rand"),
        ("rf", "variance"),
        ("rf-pair --set num_trees=40", "point"),
    ] {
        let outputs = "--valid test=test --rounds rounds --oob oob --model m";
        train(room.path(), &format!("--set num_trees=60 --preset {preset} --data data {outputs}"));
        let scored = predict(room.path(), "m", "test");
        let log = rounds_of(&room.path().join("rounds"));
        let last = *course(&log, "test", "ndcg@10").last().unwrap();
        assert_close(last, ndcg(&scored), 1e-9, preset);
        let peers = scikit_learn(room.path(), kind, "data.txt test.txt", 60, 3);
        if let Some(peers) = peers {
            // Two standard deviations between seeds, and 0.005 for different bins and sampling.
            let least = mean(&peers) - 2.0 * deviation(&peers) - 0.005;
            assert!(last > least, "{preset}: {last}, scikit-learn {peers:?}");
        }
        // Out of bag, the forest is about as good as on unseen data, and much worse than on its training data.
        let scored_out_of_bag = predictions_of(&room.path().join("oob"));
        assert_eq!(scored_out_of_bag.len(), 150 * 25);
        let out_of_bag = *course(&log, "oob", "ndcg@10").last().unwrap();
        assert_close(out_of_bag, ndcg(&scored_out_of_bag), 1e-9, preset);
        let context = format!("{preset}: {out_of_bag} out of bag, {last} on unseen queries");
        assert!((out_of_bag - last).abs() < 0.05, "{context}");
        assert!(ndcg(&predict(room.path(), "m", "data")) > out_of_bag + 0.02, "{preset}");
        let described = run(room.path(), "describe m").ok().stdout;
        assert!(
            described.contains(if preset.starts_with("rf-pair") { "trees: wins" } else { "trees: mean" }),
            "{described}"
        );
        let evaluated = run(room.path(), "evaluate --predictions oob --metrics ndcg@10 --json").ok().stdout;
        let evaluated: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
        let found = evaluated["systems"][0]["means"]["ndcg@10"].as_f64().unwrap();
        assert_close(found, out_of_bag, 1e-9, preset);
    }
}

#[test]
fn out_of_bag_scores_are_those_of_trees_that_did_not_see_the_query() {
    let room = room();
    dataset(room.path(), "data", &graded(53, 30, 20), "--partition-rows 100");
    train(room.path(), "--preset rf-point --set num_trees=1 --data data --model one --oob oob-one");
    let all = predict(room.path(), "one", "data");
    let out_of_bag = predictions_of(&room.path().join("oob-one"));
    let mut queries: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    out_of_bag.iter().for_each(|row| queries.entry(&row.query).or_default().push(row.score));
    assert_eq!(queries.len(), 30 - 19, "63 % of 30 queries are 19");
    for (query, scores) in &queries {
        let expected: Vec<f64> = all.iter().filter(|row| row.query == *query).map(|row| row.score).collect();
        assert_eq!(scores, &expected, "{query}: a query is out of bag as a whole");
    }
    let rows = out_of_bag.len();
    let ran =
        run(room.path(), "train --preset rf-point --set num_trees=1 --data data --model one --oob oob-one")
            .ok();
    assert!(
        ran.stderr
            .contains(&format!("{} rows are omitted because every tree was trained on them", 600 - rows)),
        "{}",
        ran.stderr
    );
}

#[test]
fn every_sampling_option_draws_the_stated_number_of_rows() {
    let room = room();
    dataset(room.path(), "data", &graded(54, 40, 20), "");
    let cover = |arguments: &str| {
        train(room.path(), &format!("--preset rf-point --data data --set num_trees=1 --model m {arguments}"));
        let table = table_of(&room.path().join("m"));
        let cover = table.column_by_name("cover").unwrap();
        arrow::array::AsArray::as_primitive::<arrow::datatypes::Float64Type>(cover).value(0)
    };
    assert_eq!(cover(""), 25.0 * 20.0, "63 % of 40 queries are 25");
    assert_eq!(cover("--set queries_per_tree=7"), 140.0);
    assert_eq!(cover("--set queries_per_tree=700"), 800.0);
    assert_eq!(cover("--set query_fraction=1.0"), 800.0);
    assert_eq!(cover("--set bagging_by=rows --set bagging_fraction=0.5"), 400.0);
    assert_eq!(cover("--set bootstrap=true --set bagging_by=rows --set bagging_fraction=1.0"), 800.0);
    assert_eq!(cover("--set bootstrap=true --set query_fraction=0.5"), 400.0);
    let ran = run(
        room.path(),
        "train --preset rf-point --data data --set num_trees=1 --model m --set queries_per_tree=700",
    );
    assert!(ran.ok().stderr.contains("there are only 40 queries, so every tree uses all of them"));
}

#[test]
fn early_stopping_keeps_the_best_trees() {
    let room = room();
    dataset(room.path(), "data", &graded(55, 40, 20), "");
    dataset(room.path(), "vali", &graded(56, 20, 20), "");
    let settings = "--set num_trees=300 --set early_stopping_rounds=5 --set metric=ndcg@10";
    train(room.path(), &format!("--preset rf-rand --data data --valid vali {settings} --model m --rounds r"));
    let course = course(&rounds_of(&room.path().join("r")), "valid", "ndcg@10");
    let best =
        (0..course.len()).fold(0, |best, round| if course[round] > course[best] { round } else { best });
    assert_eq!(course.len(), best + 1 + 5, "training stops five rounds after the best one");
    assert_eq!(described(room.path(), "m")["trees"].as_u64(), Some(best as u64 + 1));
    assert_close(ndcg(&predict(room.path(), "m", "vali")), course[best], 1e-9, "the best round");
}

#[test]
fn forests_on_unsuitable_data_or_options_are_refused() {
    let room = room();
    dataset(room.path(), "data", &graded(57, 30, 10), "");
    odd_datasets(room.path());
    let refused = [
        ("--preset rf-point --data same", "every label is 2: there is nothing to learn"),
        ("--preset rf-point --data unlabelled", "20 of 60 rows have no label"),
        ("--preset rf-pair --data flat", "no query has documents with different labels"),
        (
            "--preset rf-point --data real",
            "there are 60 different labels; entropy and gini support at most 32",
        ),
        (
            "--preset rf-point --data data --set query_fraction=0.01",
            "bagging_fraction = 0.01 of 30 queries rounds to 0",
        ),
        ("--preset rf-rand --data single --set query_fraction=0.3", "0.3 of 1 queries rounds to 0"),
        ("--preset rf-point --data data --set min_data_in_leaf=200", "no split was possible"),
        ("--preset rf-point --data data --set query_fraction=1.0 --oob o", "no out-of-bag rows"),
        ("--preset planet --data data --oob o", "boosting has no out-of-bag rows"),
        ("--preset rf-point --data data --set early_stopping_rounds=3", "there is no validation set"),
        ("--preset rf-point --data data --oob m", "two outputs use the same file: m"),
        (
            "--preset rf-pair --data data --set bagging_by=rows --oob o",
            "out-of-bag scores of a forest trained on pairs need whole queries",
        ),
        ("--preset rf-point --data data --set learning_rate=0.1", "a forest does not use learning_rate"),
    ];
    assert_trainings_refused(room.path(), &refused);
    // One query is enough for trees that tell its documents apart.
    for preset in ["rf-point", "rf-rand", "rf-pair", "rf"] {
        train(room.path(), &format!("--preset {preset} --data single --set num_trees=3 --model m"));
        let scores = predict(room.path(), "m", "single");
        assert!(scores.iter().any(|row| row.score != scores[0].score), "{preset}");
    }
    train(room.path(), "--preset rf-point --data real --set criterion=variance --set num_trees=3 --model m");
    let ran = run(room.path(), "train --preset rf-point --data data --start-model m --model n");
    assert!(ran.code == 2 && ran.stderr.contains("a forest cannot continue from a model"), "{}", ran.stderr);
}

/// Boosting on top of a forest: the model is the forest plus a boosted part, on any number of threads, resumed or not.
#[test]
fn boosting_starts_from_a_forest() {
    let room = room();
    dataset(room.path(), "data", &graded(71, 60, 15), "");
    dataset(room.path(), "vali", &graded(72, 30, 15), "");
    train(room.path(), "--preset rf-point --data data --set num_trees=20 --model forest");
    let common =
        "--preset mart --data data --valid vali --set num_trees=15 --start-model forest --rounds rounds";
    let bytes = trained_bytes(room.path(), common);
    for threads in [1, 2] {
        assert!(
            trained_bytes(room.path(), &format!("{common} --threads {threads}")) == bytes,
            "{threads} threads"
        );
    }
    // Round 0 is the forest alone, the last round is the whole model.
    let log = rounds_of(&room.path().join("rounds"));
    for (split, data) in [("train", "data"), ("valid", "vali")] {
        let errors = course(&log, split, "rmse");
        assert_eq!(errors.len(), 16, "{split}");
        assert_close(errors[0], rmse(&predict(room.path(), "forest", data)), 1e-9, split);
        assert_close(errors[15], rmse(&predict(room.path(), "m", data)), 1e-9, split);
    }
    assert!(course(&log, "train", "rmse").is_sorted_by(|one, next| one > next));
    let model = described(room.path(), "m");
    let parts: Vec<(&str, &str)> = model["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (part["name"].as_str().unwrap(), part["combine"].as_str().unwrap()))
        .collect();
    assert_eq!(parts, [("trees", "mean"), ("boosting", "sum")]);
    // The score is the forest's plus the value of the boosted part.
    run(room.path(), "predict --model m --data vali --parts --output p.parquet").ok();
    let table = table_of(&room.path().join("p.parquet"));
    let column =
        |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec();
    let (score, forest, boosted) = (column("score"), column("part.trees"), column("part.boosting"));
    assert!((0..score.len()).all(|row| score[row] == forest[row] + boosted[row]));
    assert_resumes_with_the_same_log(
        room.path(),
        "--preset mart --data data --valid vali --start-model forest",
    );
}

#[test]
fn too_many_features_per_node_are_reported_once_and_clipped() {
    let room = room();
    dataset(room.path(), "data", &graded(58, 20, 10), "");
    let ran = run(
        room.path(),
        "train --preset rf-point --data data --set features_per_node=99 --set num_trees=4 --model m",
    );
    let stderr = ran.ok().stderr;
    assert_eq!(stderr.matches("features_per_node = 99: there are only 14").count(), 1, "{stderr}");
    for preset in ["rf-point", "rf-hybrid", "rf-list", "rf-rand"] {
        let [more, all] = ["99", "all"].map(|count| {
            let arguments = format!("--preset {preset} --data data --set features_per_node={count}");
            train(room.path(), &format!("{arguments} --set num_trees=4 --model m"));
            table_of(&room.path().join("m"))
        });
        assert_eq!(more, all, "{preset}");
    }
}

/// NDCG@10 of a scikit-learn forest per seed, trained and tested on two files.
fn scikit_learn(directory: &Path, kind: &str, files: &str, trees: u32, seeds: usize) -> Option<Vec<f64>> {
    let printed = reference_script(directory, "forest.py", &format!("{kind} {files} {trees} {seeds}"))?;
    let values: Vec<f64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), seeds);
    Some(values)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation between seeds.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Kinds of scikit-learn forests, and our parameters that choose rows, features and thresholds as they do: scikit-learn
/// samples more features as long as all are constant in a node.
const PEERS: [(&str, &str); 4] = [
    ("point", "--preset rf-point --set redraw_features=true"),
    ("gini", "--preset rf-point --set criterion=gini --set redraw_features=true"),
    ("rand", "--preset rf-rand --set redraw_features=true"),
    ("variance", "--preset rf"),
];

/// Mean NDCG@10 over some seeds, ours minus scikit-learn's, with two standard errors of that difference. Forests of 100
/// trees, trained on two parts of each real dataset and tested on another.
fn difference_from_scikit_learn(sampling: &str, seeds: usize) -> Vec<(String, f64, f64)> {
    let mut found = Vec::new();
    for set in ["data/MQ2008", "data/OHSUMED/QueryLevelNorm"] {
        let Some(folder) = shared(set) else { return found };
        let room = room();
        real_dataset(room.path(), "train", &folder, "S[12]");
        real_dataset(room.path(), "test", &folder, "S4");
        let part = |number: u32| format!("{}/S{number}.txt.gz", folder.display());
        let files = format!("{},{} {}", part(1), part(2), part(4));
        for (kind, ours) in PEERS {
            let Some(theirs) = scikit_learn(room.path(), kind, &files, 100, seeds) else { return found };
            let of_seed = |seed: usize| {
                let settings = format!("{sampling} --set num_trees=100 --set seed={seed}");
                train(room.path(), &format!("{ours} {settings} --data train --model m"));
                ndcg(&predict(room.path(), "m", "test"))
            };
            let ours: Vec<f64> = (0..seeds).map(of_seed).collect();
            let variance = (deviation(&ours).powi(2) + deviation(&theirs).powi(2)) / seeds as f64;
            let (ours, theirs, noise) = (mean(&ours), mean(&theirs), 2.0 * variance.sqrt());
            let context = format!("{set} {kind}, {seeds} seeds: {ours:.4}, scikit-learn {theirs:.4}");
            eprintln!("{context}, noise {noise:.4}");
            found.push((context, ours - theirs, noise));
        }
    }
    found
}

#[test]
fn forests_are_as_good_as_those_of_scikit_learn() {
    // Allow 0.01 because we sample whole queries and scikit-learn single rows.
    for (context, difference, noise) in difference_from_scikit_learn("", 3) {
        assert!(difference > -noise - 0.01, "{context}, noise {noise}");
    }
}

#[test]
#[ignore = "grows 160 forests: make test-all"]
fn forests_that_sample_like_scikit_learn_are_equally_good_over_ten_seeds() {
    let sampling = "--set bagging_by=rows --set bootstrap=true --set bagging_fraction=1.0";
    for (context, difference, noise) in difference_from_scikit_learn(sampling, 10) {
        assert!(difference.abs() <= 1.5 * noise + 0.002, "{context}, noise {noise}");
    }
}
