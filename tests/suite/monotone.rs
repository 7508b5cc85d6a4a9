//! Monotone constraints: scores change with the values of a feature in one direction only.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Features of [`graded`] that rise with the grade, one of few values, one that is often missing, and one that must fall.
const CONSTRAINTS: &str = "f1=1,f2=-1,f7=1,f13=1";
const DIRECTIONS: [(usize, f64); 4] = [(0, 1.0), (1, -1.0), (6, 1.0), (12, 1.0)];

/// Labels that rise with f1 and fall with f2, with so much noise that trees follow them only if a constraint makes them.
fn noisy(seed: u64, queries: usize, documents: usize) -> Vec<Example> {
    let mut examples = graded(seed, queries, documents);
    for (row, example) in examples.iter_mut().enumerate() {
        let noise = ((row * 7919) % 13) as f64 / 4.0 - 1.5;
        let fall = f64::from(example.features[1].unwrap_or(0.0));
        example.label = (example.label + noise - 0.8 * fall).round().clamp(0.0, 4.0);
    }
    examples
}

/// Writes the dataset `sweep`: for rows of the data and every constrained feature a query, in which only this feature
/// changes, in ascending order. `missing` is where missing values are in this order, if they have a place.
fn sweep(directory: &Path, rows: &[Example], missing: Option<bool>) {
    let mut examples = Vec::new();
    for row in rows {
        for (feature, _) in DIRECTIONS {
            let mut values: Vec<Option<f32>> = (-40..=40).map(|step| Some(step as f32 / 8.0)).collect();
            values.extend([Some(-1e30), Some(1e30)]);
            values.sort_by(|one, other| one.partial_cmp(other).unwrap());
            match missing {
                None => {}
                Some(true) => values.insert(0, None),
                Some(false) => values.push(None),
            }
            let query = examples.last().map_or(0, |example: &Example| example.query + 1);
            examples.extend(values.into_iter().map(|value| {
                let mut features = row.features.clone();
                features[feature] = value;
                Example { query, label: 0.0, weight: 1.0, features }
            }));
        }
    }
    dataset(directory, "sweep", &examples, "--overwrite");
}

/// Queries of the dataset `sweep` whose scores are not in order.
fn violations(directory: &Path, model: &str) -> usize {
    let rows = predict(directory, model, "sweep");
    let queries = rows.chunk_by(|one, other| one.query == other.query).enumerate();
    let broken = queries.filter(|(number, of_query)| {
        let (_, direction) = DIRECTIONS[number % DIRECTIONS.len()];
        !of_query.windows(2).all(|pair| direction * (pair[1].score - pair[0].score) >= 0.0)
    });
    broken.count()
}

/// Every way to find candidates, score splits and value leaves, and every kind of model of several parts.
const VARIANTS: [&str; 16] = [
    "--set num_trees=40 --set min_data_in_leaf=5",
    "--set num_trees=40 --set min_data_in_leaf=5 --set num_leaves=20 --set feature_fraction=0.7",
    "--preset lambdamart --set num_trees=40 --set min_data_in_leaf=5",
    "--preset lambdamart-paper --set num_trees=30 --set min_data_in_leaf=5",
    "--preset lambdamart-paper --set num_trees=30 --set min_data_in_leaf=5 --set leaf=mean --set lambda_l2=0",
    "--preset pgbrt --set num_trees=30",
    "--preset pgbrt --set num_trees=20 --set workers=3",
    "--preset pgbrt-grouped --set num_trees=30",
    "--preset gbrt --set num_trees=40 --set max_depth=5",
    "--preset gbrt --set num_trees=20 --set objective=lambdarank --set leaf=mean",
    "--preset rankboost --set num_trees=60",
    "--preset rf --set num_trees=6 --set features_per_node=0.5",
    "--preset rf-point --set num_trees=6 --set criterion=gini",
    "--preset rf --set num_trees=6 --set candidates=random",
    "--set target=ordinal --set class_scores=exp2 --set num_trees=15 --set min_data_in_leaf=5",
    "--set runs=3 --set bagging_fraction=0.5 --set num_trees=15 --set min_data_in_leaf=5",
];

#[test]
fn scores_keep_constraints_and_would_break_them() {
    let room = room();
    let at = room.path();
    let examples = noisy(61, 60, 20);
    dataset(at, "data", &examples, "");
    sweep(at, &examples[..12], None);
    for variant in VARIANTS {
        train(at, &format!("{variant} --data data --model free"));
        // Stumps of RankBoost choose the direction of a feature once, so only the opposite constraint changes them.
        match variant.contains("rankboost") {
            true => {
                train(at, &format!("{variant} --data data --model m --set monotone_constraints=f1=-1,f2=1"));
                assert!(predict(at, "m", "sweep") != predict(at, "free", "sweep"), "{variant}");
            }
            false => {
                assert!(violations(at, "free") > 0, "{variant}: nothing is learned that constraints forbid")
            }
        }
        train(at, &format!("{variant} --data data --model m --set monotone_constraints={CONSTRAINTS}"));
        assert_eq!(violations(at, "m"), 0, "{variant}");
    }
    let stages = "--preset igbrt --set stage.1.num_trees=3 --set stage.2.num_trees=20";
    train(at, &format!("{stages} --data data --model m --set monotone_constraints={CONSTRAINTS}"));
    assert_eq!(violations(at, "m"), 0, "stages");
    train(at, &format!("--data data --model first --set num_trees=10 --set mc={CONSTRAINTS}"));
    train(at, &format!("--data data --start-model first --model m --set num_trees=10 --mc {CONSTRAINTS}"));
    assert_eq!(violations(at, "m"), 0, "a start model with the same constraints");
}

#[test]
fn missing_values_break_no_constraint() {
    let room = room();
    let at = room.path();
    let mut examples = noisy(62, 60, 20);
    for (row, example) in examples.iter_mut().enumerate() {
        for (feature, _) in DIRECTIONS {
            if (row * 5 + feature * 3) % 7 < 2 {
                example.features[feature] = None;
            }
        }
    }
    dataset(at, "data", &examples, "");
    for (missing, place) in [("learned", None), ("branch", None), ("low", Some(true)), ("high", Some(false))]
    {
        sweep(at, &examples[..12], place);
        for variant in [VARIANTS[0], VARIANTS[2], VARIANTS[6], VARIANTS[8], VARIANTS[11], VARIANTS[13]] {
            let settings = format!("{variant} --set missing={missing} --data data");
            train(at, &format!("{settings} --model free"));
            assert!(violations(at, "free") > 0, "{settings}");
            train(at, &format!("{settings} --model m --set monotone_constraints={CONSTRAINTS}"));
            assert_eq!(violations(at, "m"), 0, "{settings}");
        }
    }
}

/// The score of a document among others depends on differences of values, which rise with its own values.
#[test]
fn forests_of_pairs_keep_constraints_among_the_same_documents() {
    let room = room();
    let at = room.path();
    let examples = noisy(66, 60, 12);
    dataset(at, "data", &examples, "");
    let mut queries = Vec::new();
    for (row, others) in examples.chunks_exact(6).take(20).enumerate() {
        for (feature, _) in DIRECTIONS {
            for step in -20..=20 {
                let query = queries.len();
                let mut changed = others.to_vec();
                changed[row % 6].features[feature] = Some(step as f32 / 4.0);
                changed.iter_mut().for_each(|example| example.query = query);
                queries.push((row % 6, changed));
            }
        }
    }
    let all: Vec<Example> = queries.iter().flat_map(|(_, of_query)| of_query.clone()).collect();
    dataset(at, "sweep", &all, "");
    let broken = |model: &str| {
        let rows = predict(at, model, "sweep");
        let scores: Vec<f64> = rows
            .chunks_exact(6)
            .zip(&queries)
            .map(|(of_query, (changed, _))| of_query[*changed].score)
            .collect();
        let sweeps = scores.chunks_exact(41).zip(DIRECTIONS.iter().cycle());
        let is_broken = |(scores, (_, direction)): &(&[f64], &(usize, f64))| {
            !scores.windows(2).all(|pair| direction * (pair[1] - pair[0]) >= 0.0)
        };
        sweeps.filter(is_broken).count()
    };
    let settings = "--preset rf-pair --set num_trees=6 --data data";
    train(at, &format!("{settings} --model free"));
    assert!(broken("free") > 0);
    train(at, &format!("{settings} --model m --set monotone_constraints={CONSTRAINTS}"));
    assert_eq!(broken("m"), 0);
}

#[test]
fn constraints_have_several_forms_and_are_recorded() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(63, 20, 10), "");
    let by_order = "1,-1,0,0,0,0,1,0,0,0,0,0,1,0";
    let model = |arguments: &str| trained_bytes(at, &format!("--data data --set num_trees=4 {arguments}"));
    let expected = model(&format!("--set monotone_constraints=({by_order})"));
    assert!(model(&format!("--monotone-constraints={by_order}")) == expected);
    let described = run(at, "describe m").ok().stdout;
    assert!(described.contains(by_order), "{described}");
    let table = "monotone_constraints = { f1 = 1, f2 = -1, f7 = 1, f13 = 1 }\n";
    let section = "[monotone_constraints]\nf1 = 1\nf2 = -1\nf7 = 1\nf13 = 1\n";
    let list = format!("monotonic_cst = [{by_order}]\n");
    fs::write(at.join("table.toml"), table).unwrap();
    fs::write(at.join("section.toml"), section).unwrap();
    fs::write(at.join("list.toml"), list).unwrap();
    assert!(model("--config list.toml") == expected);
    let named = model("--config table.toml");
    assert!(run(at, "describe m").ok().stdout.contains("f1=1,f13=1,f2=-1,f7=1"));
    assert!(model("--config section.toml") == named);
    assert!(model(&format!("--set mc={CONSTRAINTS}")) == named);
    let trees = |name: &str| sql_rows(at, &format!("select * from '{name}'"));
    model(&format!("--set mc={CONSTRAINTS}"));
    fs::rename(at.join("m"), at.join("named")).unwrap();
    model(&format!("--set mc={by_order}"));
    assert_eq!(trees("named"), trees("m"), "names and order mean the same");
    let accepted = "--set monotone_constraints_method=basic --set monotone_penalty=0";
    assert!(model(&format!("--set mc={CONSTRAINTS} {accepted}")) == named);
    assert!(model("--set monotone_constraints=none") == model(""), "no constraints leave no trace");
}

fn sql_rows(directory: &Path, query: &str) -> String {
    crate::support::sql::sql_in(directory, "--format csv", query, &[]).ok().stdout
}

#[test]
fn constraints_that_fit_no_features_or_are_not_kept_are_refused() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(64, 20, 10), "");
    fs::write(at.join("words.csv"), "query_id,label,word,x\n1,1,a,1\n1,0,b,2\n2,1,a,3\n2,0,c,4\n").unwrap();
    run(at, "convert words.csv --output words --categorical word").ok();
    fs::write(at.join("dotted.toml"), "monotone_constraints = { a.b = 1 }\n").unwrap();
    fs::write(at.join("number.toml"), "num_trees = { f1 = 1 }\n").unwrap();
    train(at, "--data data --model free --set num_trees=2");
    train(at, "--data data --model kept --set num_trees=2 --set mc=f1=1");
    let constrained = "--data data --set monotone_constraints=f1=1";
    let cases = [
        ("--data data --set mc=1,0,-1", "3 numbers, but there are 14 features"),
        ("--data data --set mc=f1=1,f99=1", "no such feature: f99"),
        ("--data data --set mc=f1=2", "found 2 for f1"),
        ("--data data --set mc=1,0,up", "found up"),
        ("--data data --set mc=1,f2=1", "some numbers have names"),
        ("--data data --config dotted.toml", "monotone_constraints has a table"),
        ("--data data --config number.toml", "num_trees is a table, not a value"),
        ("--data words --set min_data_in_leaf=1 --set mc=word=1", "word is categorical"),
        ("--data data --set monotone_constraints_method=advanced", "planetree uses the basic method"),
        ("--data data --set monotone_penalty=2", "no penalty on splits"),
        (&format!("{constrained} --preset mcrank"), "objective=softmax_classes"),
        (&format!("{constrained} --preset rf-list"), "listwise splits do not support constraints"),
        (&format!("{constrained} --preset rf-hybrid"), "listwise splits do not support constraints"),
        (&format!("{constrained} --preset rf-pair --set missing=low"), "no place in the order of pairs"),
        (&format!("{constrained} --preset linear"), "does not use monotone_constraints"),
        (
            &format!("{constrained} --set target=ordinal --set class_weights=ols:train"),
            "the signs of the weights",
        ),
        (
            "--data data --set mc=f1=-1 --set base_score=feature:f1",
            "scores rise with f1, but monotone_constraints lets them only fall",
        ),
        (
            &format!("{constrained} --set missing=high --set base_score=feature:f1"),
            "a missing value starts at 0, but with missing=high",
        ),
        (
            &format!("{constrained} --start-model free"),
            "trained with other constraints or another value of missing",
        ),
        (
            &format!("{constrained} --start-model kept --set missing=low"),
            "trained with other constraints or another value of missing",
        ),
        (
            "--preset igbrt --data data --set stage.2.monotone_constraints=f1=1",
            "all stages must have the same",
        ),
    ];
    for (arguments, message) in cases {
        let ran = run(at, &format!("train {arguments} --model m"));
        let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!((ran.code == 1 || ran.code == 2) && said.contains(message), "{arguments}: {}", ran.stderr);
        assert!(!at.join("m").exists(), "{arguments}");
    }
}

/// What every machine, partitioning and interruption must leave as it is.
const SAME: [&str; 4] = [
    "--set num_trees=8 --set monotone_constraints=f1=1,f2=-1,f7=1 --set missing=learned",
    "--preset lambdamart --set num_trees=6 --set monotone_constraints=f1=1,f2=-1,f7=1",
    "--preset pgbrt --set num_trees=4 --set workers=3 --set monotone_constraints=f1=1,f2=-1,f7=1",
    "--preset rf-point --set num_trees=6 --set monotone_constraints=f1=1,f2=-1,f7=1",
];

#[test]
fn constrained_models_do_not_depend_on_threads_and_partitions() {
    assert_models_depend_only_on_rows(&SAME, &["", "weighted-"]);
}

#[test]
fn constrained_trainings_keep_their_bytes_from_disk_and_after_a_kill() {
    let room = room();
    mslr_dataset(room.path());
    let constraints = "--set monotone_constraints=f1=1,f2=-1,f3=1,f108=1";
    let settings = format!("--data data --set num_trees=12 {constraints}");
    assert_a_memory_limit_keeps_the_bytes(room.path(), &settings);
    killed_and_resumed(room.path(), &format!("{settings} --set num_trees=60"), 2);
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_trains_the_same_constrained_models() {
    let room = room();
    same_rows(room.path());
    let exact = "--preset gbrt --set num_trees=4 --set monotone_constraints=f1=1,f2=-1,f7=1";
    let ordinal = "--set target=ordinal --set num_trees=3 --set monotone_constraints=f1=1,f2=-1,f7=1";
    let variants = [SAME[0], SAME[1], SAME[2], SAME[3], exact, ordinal];
    assert_a_cluster_trains_the_same_bytes(room.path(), &variants, "many", "local:2");
}

/// Constrained trees are those of XGBoost, and nearly those of LightGBM, whose gains of bounded nodes are smaller: it
/// subtracts the score that the node would have without bounds.
#[test]
fn constrained_boosting_agrees_with_xgboost_and_lightgbm() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &untied(65, 3000, 5), "");
    let settings = "--set num_trees=30 --set learning_rate=0.2 --set max_depth=5 --set min_data_in_leaf=20";
    let constraints = "1,1,-1,1,0";
    let ours =
        format!("{settings} --data data --set monotone_constraints={constraints} --rounds rounds --model m");
    train(at, &format!("--preset gbrt --set base_score=auto {ours}"));
    if let Some(said) =
        reference_script(at, "monotone.py", &format!("xgboost data rounds 1e-4 {constraints}"))
    {
        eprintln!("{said}");
    }
    train(at, &ours);
    if let Some(said) =
        reference_script(at, "monotone.py", &format!("lightgbm data rounds 0.02 {constraints}"))
    {
        eprintln!("{said}");
    }
}
