//! Coordinate Ascent, AdaRank and RankBoost: bytes that depend only on rows and parameters, all commands that use models,
//! and other implementations.

use crate::support::*;
use serde_json::Value;
use std::fs;

/// Short trainings of every learner.
const VARIANTS: [&str; 5] = [
    "--preset coordinate-ascent --set num_trees=2 --set line_steps=8",
    "--preset coordinate-ascent --set num_trees=1 --set train_metric=map --set normalise_features=z --set missing=mean",
    "--preset adarank --set num_trees=12",
    "--preset adarank-map --set num_trees=8 --set normalise_features=minmax --set missing=learned",
    "--preset rankboost --set num_trees=15",
];

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    assert_bytes_depend_only_on_rows(&VARIANTS, &[""]);
}

#[test]
fn a_memory_limit_does_not_change_the_model() {
    let room = room();
    dataset(room.path(), "data", &graded(35, 100, 30), "--partition-rows 1000");
    for variant in ["--preset adarank --set num_trees=4", "--preset rankboost --set num_trees=5"] {
        assert_a_memory_limit_keeps_the_bytes(room.path(), &format!("{variant} --data data"));
    }
}

#[test]
fn a_resumed_training_has_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    assert_resumes_with_the_same_log(room.path(), "--preset rankboost --data many --valid vali");
}

/// AdaRank selects other features if it forgets the last ones, and Coordinate Ascent other weights if it forgets the best
/// restart; unit tests stop them after every round.
#[test]
fn killed_rankers_end_in_the_same_bytes() {
    let room = room();
    dataset(room.path(), "data", &graded(36, 60, 15), "");
    for arguments in [
        "--preset adarank --data data --set tolerance=1 --set max_repeats=2 --set num_trees=150",
        "--preset coordinate-ascent --data data --set num_trees=12",
    ] {
        killed_and_resumed(room.path(), arguments, 2);
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_trains_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    assert_a_cluster_trains_the_same_bytes(room.path(), &VARIANTS, "many", "local:2");
}

#[test]
fn all_commands_take_the_models() {
    let room = room();
    same_rows(room.path());
    let mut models = String::new();
    for (preset, settings) in
        [("coordinate-ascent", "num_trees=1"), ("adarank-map", "num_trees=6"), ("rankboost", "num_trees=10")]
    {
        train(room.path(), &format!("--preset {preset} --data many --model {preset} --set {settings}"));
        let json = described(room.path(), preset);
        let kind = if preset == "rankboost" { "trees" } else { "linear" };
        assert_eq!(json["parts"][0]["kind"], kind, "{preset}");
        run(
            room.path(),
            &format!("--quiet predict --model {preset} --data vali --output predicted-{preset}"),
        )
        .ok();
        run(room.path(), &format!("--quiet evaluate --predictions predicted-{preset}")).ok();
        run(room.path(), &format!("describe {preset} --permutation vali")).ok();
        let settings = format!("--set {settings} --folds 3 --output folds-{preset}");
        run(room.path(), &format!("--quiet cv --data many --preset {preset} {settings}")).ok();
        let sums = format!("select count(*) > 0 and max(abs(score)) >= 0 from score('{preset}', 'vali')");
        let ran = crate::support::sql::sql_in(room.path(), "--format csv", &sums, &[]);
        assert!(ran.ok().stdout.ends_with("true\n"), "{preset}");
        models.push_str(&format!(" {preset}"));
    }
    run(room.path(), &format!("--quiet blend{models} --data vali --normalise z --output blended")).ok();
    run(room.path(), "--quiet predict --model blended --data vali --output predicted-blended").ok();
    run(room.path(), "--quiet report . --output report.html").ok();
    // Two-leaf trees are exported like others; linear functions are refused by name.
    run(room.path(), "export rankboost --format lightgbm --output exported.txt").ok();
    let refused = run(room.path(), "export adarank-map --format lightgbm --output refused.txt");
    assert_refused("export", &refused, 1, &["part 0 (linear) has no trees"]);
}

#[test]
fn coordinate_ascent_is_at_least_as_good_as_fastrank() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(51, 60, 15), "");
    // Both end in local maxima, which depend on the random order of the features, so means over seeds are compared.
    const SEEDS: u32 = 3;
    for metric in ["ndcg@10", "map"] {
        let mut sums = [0.0; 2];
        for seed in 1..=SEEDS {
            let settings = format!("--set train_metric={metric} --set seed={seed}");
            train(at, &format!("--preset coordinate-ascent --data data --model m {settings}"));
            run(at, "--quiet predict --model m --data data --scores ours.txt").ok();
            let script = format!("data {metric} {seed} theirs.txt");
            let Some(_) = reference_script(at, "rankers.py", &script) else { return };
            let scores = "--data data --scores ours.txt --scores theirs.txt";
            let ran = run(at, &format!("--quiet evaluate {scores} --metrics {metric} --json"));
            let report: Value = serde_json::from_str(&ran.ok().stdout).unwrap();
            for (system, sum) in sums.iter_mut().enumerate() {
                *sum += report["systems"][system]["means"][metric].as_f64().unwrap() / f64::from(SEEDS);
            }
        }
        eprintln!("{metric}: {} by Coordinate Ascent, {} by fastrank", sums[0], sums[1]);
        assert!(sums[0] >= sums[1], "{metric}: {sums:?}");
    }
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    odd_datasets(room.path());
    for preset in ["adarank", "coordinate-ascent", "rankboost"] {
        assert_trainings_refused(
            room.path(),
            &[
                (&format!("--preset {preset} --data same"), "every label is 2"),
                (&format!("--preset {preset} --data flat"), "no query has documents with different labels"),
            ],
        );
    }
    assert_trainings_refused(
        room.path(),
        &[
            ("--preset adarank --data real --set train_metric=rmse", "rmse cannot be optimised"),
            ("--preset adarank --data real --set max_depth=3", "AdaRank does not use max_depth"),
            ("--preset rankboost --data real --set num_leaves=4", "needs trees with two leaves"),
            ("--preset adarank --data real --set line_steps=3", "AdaRank does not use line_steps"),
            ("--preset adarank --data real --set target=ordinal", "has no probabilities of classes"),
            (
                "--preset adarank --data real --set train_metric=map --set convention=relevant=1000,map_empty=skip",
                "map is undefined for all queries",
            ),
            (
                "--preset rankboost --data real --set max_depth=3",
                "leaf=weak_ranker needs trees with two leaves",
            ),
            ("--preset rankboost --data real --set lambda_l2=1", "has no regularisation"),
            (
                "--preset mart --data real --set split_by=sum",
                "split_by = sum is only for objective = rankboost",
            ),
            ("--preset mart --data real --set train_metric=map", "boosting does not use train_metric"),
        ],
    );
    // Queries with a single document have no pairs, but do no harm beside others.
    let alone = "1 qid:1 1:3\n0 qid:2 1:4\n2 qid:3 1:1\n";
    fs::write(room.path().join("alone.txt"), alone).unwrap();
    fs::write(room.path().join("mixed.txt"), format!("{alone}0 qid:4 1:1\n1 qid:4 1:2\n")).unwrap();
    for name in ["alone", "mixed"] {
        run(room.path(), &format!("convert {name}.txt --output {name}")).ok();
    }
    for preset in ["adarank", "coordinate-ascent", "rankboost"] {
        let refused = run(room.path(), &format!("train --preset {preset} --data alone --model m"));
        assert_refused(preset, &refused, 1, &["no query has documents with different labels"]);
        train(room.path(), &format!("--preset {preset} --data mixed --model m"));
    }
}
