//! Costs of features: training that avoids expensive features, early exits, and quality against cost.

use crate::support::*;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int32Type};
use std::fs;
use std::path::Path;

/// Writes costs of the features of [`same_rows`] that rise from group to group.
fn costs(directory: &Path) {
    let features = described(directory, "one")["features"].as_array().unwrap().len() as u64;
    let rows = (1..=features).map(|feature| format!("f{feature},{},\n", 1 << (2 * (feature % 5))));
    fs::write(directory.join("costs.csv"), format!("feature,cost,group\n{}", rows.collect::<String>()))
        .unwrap();
    let pair = (1..=features).map(|feature| {
        let group = if feature <= 2 { "pair" } else { "" };
        let cost = if feature <= 2 { 40 } else { feature };
        format!("f{feature},{cost},{group}\n")
    });
    fs::write(directory.join("groups.csv"), format!("feature,cost,group\n{}", pair.collect::<String>()))
        .unwrap();
}

/// The nodes of a model without its metadata.
fn nodes(directory: &Path, arguments: &str) -> arrow::array::RecordBatch {
    trained_bytes(directory, arguments);
    table_of(&directory.join("m"))
}

const LEARNERS: [&str; 5] = [
    "--preset planet --set num_trees=8 --set max_depth=3",
    "--preset pgbrt --set workers=3 --set num_trees=6 --set max_depth=3",
    "--preset gbrt --set num_trees=5 --set max_depth=3",
    "--preset rf-point --set num_trees=20 --cost-batch 3",
    "--preset rf-point --set criterion=variance --set num_trees=12 --set candidates=exact",
];

#[test]
fn costs_that_count_nothing_change_no_tree() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    for learner in LEARNERS {
        let learner = learner.replace("--cost-batch 3", "");
        let free = nodes(room.path(), &format!("{learner} --data many"));
        let zero = nodes(room.path(), &format!("{learner} --data many --costs costs.csv --cost-lambda 0"));
        assert!(free == zero, "{learner}");
        let priced =
            nodes(room.path(), &format!("{learner} --data many --costs costs.csv --cost-lambda 0.5"));
        assert!(free != priced, "{learner}: costs have no effect");
    }
}

#[test]
fn one_model_for_all_threads_partitions_and_interruptions() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    for learner in LEARNERS {
        for file in ["costs.csv", "groups.csv"] {
            let arguments = format!("{learner} --costs {file} --cost-lambda 0.3 --data ");
            let expected = trained_bytes(room.path(), &format!("{arguments}one --threads 1"));
            for (data, threads) in [("many", 1), ("few", 2), ("one", 4)] {
                let other = trained_bytes(room.path(), &format!("{arguments}{data} --threads {threads}"));
                assert!(other == expected, "{arguments}{data}, {threads} threads");
            }
        }
    }
    for learner in [LEARNERS[0], LEARNERS[3]] {
        let learner = learner.replace("--set num_trees=8", "").replace("--set num_trees=20", "");
        let arguments = format!("{learner} --costs costs.csv --cost-lambda 0.3 --data many --valid vali");
        assert_resumes_with_the_same_log(room.path(), &arguments);
    }
}

#[test]
fn binned_data_on_disk_change_nothing() {
    let room = room();
    mslr_dataset(room.path());
    let features = described(room.path(), "data")["features"].as_array().unwrap().len() as u64;
    let rows = (1..=features).map(|feature| format!("f{feature},{}\n", feature % 7));
    fs::write(room.path().join("costs.csv"), format!("feature,cost\n{}", rows.collect::<String>())).unwrap();
    for learner in ["--preset planet --set num_trees=3", "--preset rf-point --set num_trees=6 --cost-batch 2"]
    {
        let arguments = format!("{learner} --data data --costs costs.csv --cost-lambda 0.5");
        assert_same_outputs_from_disk(room.path(), &arguments, &[]);
        fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    }
}

#[cfg(feature = "cluster")]
#[test]
fn clusters_train_the_same_models() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    for learner in LEARNERS {
        let arguments = format!("{learner} --costs groups.csv --cost-lambda 0.3 --data many");
        let expected = trained_bytes(room.path(), &arguments);
        assert!(
            trained_bytes(room.path(), &format!("{arguments} --cluster local:2")) == expected,
            "{learner}"
        );
    }
}

/// Writes 40 rows whose gains are known: the label is 4 if f1 is above 1, plus 2 if f1 is odd, plus f2. Of n rows, a
/// split on a term of size d gains n d^2 / 4. Also writes a file in which f1 has this cost, and f2 none.
fn factorial(directory: &Path, cost: f64) {
    let row = |row: usize| {
        let (first, second) = (row % 4, row / 4 % 2);
        format!("{},{},{first},{second}\n", row / 8, 4 * (first / 2) + 2 * (first % 2) + second)
    };
    let rows: String = (0..40).map(row).collect();
    fs::write(directory.join("factorial.csv"), format!("query_id,label,f1,f2\n{rows}")).unwrap();
    run(directory, "convert factorial.csv --output factorial --overwrite").ok();
    fs::write(directory.join("price.csv"), format!("feature,cost\nf1,{cost}\nf2,0\n")).unwrap();
}

/// The features of the splits of each tree of a model, in the order of the nodes.
fn features_by_tree(file: &Path) -> Vec<Vec<String>> {
    let nodes = table_of(file);
    let trees = nodes.column_by_name("tree").unwrap().as_primitive::<Int32Type>();
    let features = nodes.column_by_name("feature").unwrap().as_string::<i32>();
    let mut found: Vec<Vec<String>> = Vec::new();
    for row in 0..nodes.num_rows() {
        found.resize(found.len().max(trees.value(row) as usize + 1), Vec::new());
        if features.is_valid(row) {
            found[trees.value(row) as usize].push(features.value(row).to_owned());
        }
    }
    found
}

#[test]
fn a_feature_is_free_once_a_tree_uses_it() {
    let room = room();
    let used = |arguments: &str| {
        train(room.path(), &format!("{arguments} --data factorial --costs price.csv --model m"));
        features_by_tree(&room.path().join("m"))
    };
    // Stumps: f1 gains 160 and f2 gains 10. Scores move by a tenth, so f1 gains 129.6 in the second tree.
    let stumps = "--preset planet --set learning_rate=0.1 --set max_depth=1 --set min_data_in_leaf=1 --set num_trees=4";
    factorial(room.path(), 145.0);
    assert_eq!(used(stumps), [["f1"]; 4], "if f1 were not free, 129.6 - 145 would lose against f2");
    factorial(room.path(), 155.0);
    assert_eq!(used(stumps), [["f2"]; 4], "160 - 155 loses against f2");
    // Trees of depth 2 with f1 at the root: below it, f1 gains 20 and f2 gains 5.
    let forest = "--preset rf --set bootstrap=false --set features_per_node=all --set max_depth=2 \
                  --set min_data_in_leaf=1 --set num_trees=5 --set cost_batch=2";
    factorial(room.path(), 17.0);
    let (not_free, free) = (["f1", "f2", "f2"], ["f1", "f1", "f1"]);
    // Not free within the tree nor in other trees of the batch, but in all later batches.
    assert_eq!(used(forest), [not_free, not_free, free, free, free]);
    let costs = described(room.path(), "m");
    let so_far = |tree: usize| costs["costs"]["trees"][tree]["cumulative"].as_f64().unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(so_far), [18.0, 19.0, 20.0, 21.0, 22.0]);
    let text = run(room.path(), "describe m").ok().stdout;
    assert!(text.contains("cost of a document: 22") && text.contains("tree that adds costs"), "{text}");
}

#[test]
fn costs_that_outweigh_gains_are_warned_about() {
    let room = room();
    same_rows(room.path());
    let features = described(room.path(), "one")["features"].as_array().unwrap().len() as u64;
    // All features but the first cost more than any split gains: the first wins wherever it has a cut.
    let mut dear = (1..=features).map(|feature| (feature, if feature == 1 { 0 } else { 1_000_000 }));
    // All costs are far apart: the cheapest feature that has a cut wins.
    let mut ranked = (1..=features).map(|feature| (feature, 1_000_000 * feature));
    let write = |name: &str, costs: &mut dyn Iterator<Item = (u64, u64)>| {
        let rows: String = costs.map(|(feature, cost)| format!("f{feature},{cost}\n")).collect();
        fs::write(room.path().join(name), format!("feature,cost\n{rows}")).unwrap();
    };
    write("dear.csv", &mut dear);
    write("ranked.csv", &mut ranked);
    costs(room.path());
    let preamble = "costs outweigh gains: the largest gain in the first tree is ";
    for learner in [
        "--preset planet --set max_depth=5",
        "--preset pgbrt --set max_depth=5",
        "--preset lambdamart",
        "--preset rf --set features_per_node=all --set max_depth=5 --set min_data_in_leaf=20",
    ] {
        let learner = format!("{learner} --set num_trees=4 --data one --costs");
        for file in ["dear.csv", "ranked.csv"] {
            let ran = run(room.path(), &format!("train {learner} {file} --model m")).ok();
            let (_, text) = ran.stderr.split_once(preamble).expect(&ran.stderr);
            let first = &features_by_tree(&room.path().join("m"))[0];
            let cheapest = first.iter().filter(|feature| *feature == "f1").count();
            assert!(first.len() > 8 && 10 * cheapest >= 9 * first.len(), "{learner} {file}: {first:?}");
            // What the warning recommends is neither warned about nor without effect.
            let (_, advice) = text.split_once("try cost_lambda=").expect(text);
            let (lambda, _) = advice.split_once(',').expect(advice);
            let again =
                run(room.path(), &format!("train {learner} {file} --set cost_lambda={lambda} --model m"))
                    .ok();
            assert!(!again.stderr.contains("outweigh"), "{learner} {file}: {}", again.stderr);
            let first = &features_by_tree(&room.path().join("m"))[0];
            assert!(first.iter().any(|feature| feature != "f1"), "{learner} {file}: {first:?}");
        }
        for sensible in ["costs.csv --set cost_lambda=0.3", "groups.csv", "dear.csv --set cost_lambda=1e-7"] {
            let ran = run(room.path(), &format!("train {learner} {sensible} --model m")).ok();
            assert!(!ran.stderr.contains("outweigh"), "{learner} {sensible}: {}", ran.stderr);
        }
    }
}

#[test]
fn parameters_of_costs_are_keys() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    let learner = "--preset rf-point --set num_trees=10 --data many --costs costs.csv";
    let expected = trained_bytes(room.path(), &format!("{learner} --cost-lambda 0.3 --cost-batch 3"));
    fs::write(
        room.path().join("train.toml"),
        "preset = \"rf-point\"\nnum_trees = 10\ncost_lambda = 0.3\ncost_batch = 3\n",
    )
    .unwrap();
    for same in [
        format!("{learner} --set cost_lambda=0.3 --set cost_batch=3"),
        "--config train.toml --data many --costs costs.csv".to_owned(),
        "--config train.toml --data many --costs costs.csv --set cost_lambda=7 --cost-lambda 0.3".to_owned(),
    ] {
        assert!(trained_bytes(room.path(), &same) == expected, "{same}");
    }
    // The values are recorded, also those that nobody set.
    let configuration = |arguments: &str| {
        train(room.path(), &format!("{arguments} --data many --model m"));
        described(room.path(), "m")["configuration"].as_str().unwrap().to_owned()
    };
    let of_forest = configuration("--preset rf-point --set num_trees=2 --costs costs.csv");
    assert!(of_forest.contains("\ncost_lambda = 1.0\ncost_batch = 8\n"), "{of_forest}");
    let of_boosting =
        configuration("--preset planet --set num_trees=2 --costs costs.csv --set cost_lambda=0.5");
    assert!(
        of_boosting.contains("\ncost_lambda = 0.5\n") && !of_boosting.contains("cost_batch"),
        "{of_boosting}"
    );
    assert!(!configuration("--preset planet --set num_trees=2").contains("cost_"));
}

#[test]
fn bad_costs_are_refused() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    let good = fs::read_to_string(room.path().join("costs.csv")).unwrap();
    for (name, text) in [
        ("unknown.csv", format!("{good}f9999,1,\n")),
        ("missing.csv", "feature,cost\nf1,1\n".to_owned()),
        ("negative.csv", good.replace("f1,4,", "f1,-4,")),
        ("repeated.csv", format!("{good}f1,4,\n")),
        ("words.csv", good.replace("f1,4,", "f1,dear,")),
        ("wrong.toml", "[prices]\nf1 = 1\n".to_owned()),
    ] {
        fs::write(room.path().join(name), text).unwrap();
    }
    let with = |file: &str, more: &str| format!("--data one --costs {file} {more}");
    let cases = [
        (with("unknown.csv", ""), "one has no feature \"f9999\""),
        (with("missing.csv", ""), "missing.csv: no cost for "),
        (with("negative.csv", ""), "the cost of f1 is -4"),
        (with("repeated.csv", ""), "feature f1 is listed twice"),
        (with("words.csv", ""), "the cost \"dear\" is not a number"),
        (with("wrong.toml", ""), "wrong.toml: unknown field `prices`"),
        (
            with("costs.csv", "--cost-lambda=-1"),
            "--cost-lambda: cost_lambda = -1: expected auto or a number from 0",
        ),
        (with("costs.csv", "--set cost_lambda=nan"), "cost_lambda=nan: expected auto or a number from 0"),
        (
            with("costs.csv", "--preset rf --cost-batch 0"),
            "--cost-batch: cost_batch = 0: expected auto or a whole number from 1",
        ),
        (
            with("costs.csv", "--set cost_batch=3"),
            "cost_batch=3: boosted trees know all earlier trees, so they have no batches",
        ),
        ("--data one --set cost_lambda=1".to_owned(), "cost_lambda = 1: the features have no costs"),
        (
            "--preset rf --data one --set cost_batch=4".to_owned(),
            "cost_batch = 4: the features have no costs",
        ),
        (with("costs.csv", "--preset rf-list"), "--costs: listwise trees do not know costs"),
        (
            with("costs.csv", "--set runs=2 --set bagging_fraction=0.5"),
            "--costs: a model of several stages, runs or classes",
        ),
    ];
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(arguments, text)| (arguments.as_str(), *text)).collect();
    assert_trainings_refused(room.path(), &cases);
}

/// The points of a curve: percentage, trees, cost and the values of the given metrics.
fn points(file: &Path, metrics: &[&str]) -> Vec<(f64, i32, f64, Vec<f64>)> {
    let table = table_of(file);
    let number = |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().clone();
    let (percents, costs) = (number("exit_percent"), number("cost"));
    let trees = table.column_by_name("trees").unwrap().as_primitive::<Int32Type>().clone();
    let values: Vec<_> = metrics.iter().map(|name| number(name)).collect();
    let point = |row: usize| {
        let values = values.iter().map(|column| column.value(row)).collect();
        (percents.value(row), trees.value(row), costs.value(row), values)
    };
    (0..table.num_rows()).inspect(|row| assert!(percents.is_valid(*row))).map(point).collect()
}

#[test]
fn curves_agree_with_predictions_and_evaluations() {
    let room = room();
    same_rows(room.path());
    costs(room.path());
    let names = ["prec@5", "pauc@0-5", "auc"];
    for learner in ["--preset planet --set num_trees=20", "--preset rf-point --set num_trees=20"] {
        train(room.path(), &format!("{learner} --data many --model m"));
        let common = "--model m --data vali --exit-every 6";
        run(
            room.path(),
            &format!(
                "cost {common} --exit-percent 0,20 --costs costs.csv --metrics {} --convention mohan-cost,relevant=2 \
                 --output curve.parquet",
                names.join(",")
            ),
        )
        .ok();
        let curve = points(&room.path().join("curve.parquet"), &names);
        assert_eq!(curve.iter().map(|point| point.1).collect::<Vec<_>>(), [6, 12, 18, 20, 6, 12, 18, 20]);
        assert_eq!(curve[0].2, curve[4].2, "nothing exits before the first exit");
        assert!(curve[7].2 < curve[3].2, "exits make scoring cheaper");
        for (percent, end) in [("0", 3), ("20", 7)] {
            let exits = format!("--exit-percent {percent}");
            run(room.path(), &format!("predict {common} {exits} --output p.parquet")).ok();
            let evaluate = "evaluate --predictions p.parquet --convention mohan-cost,relevant=2 --json";
            let ran = run(room.path(), &format!("{evaluate} --metrics {}", names.join(","))).ok();
            let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let means = &report["systems"][0]["means"];
            for (index, name) in ["p@5", "pauc_pooled@0-5", "auc_pooled"].iter().enumerate() {
                assert_eq!(means[name].as_f64(), Some(curve[end].3[index]), "{learner} {percent} {name}");
            }
        }
        run(room.path(), &format!("predict {common} --exit-percent 0 --output p.parquet --scores exits.txt"))
            .ok();
        run(room.path(), "predict --model m --data vali --scores plain.txt").ok();
        assert_same_bytes(room.path(), "exits.txt", "plain.txt", "no document exits");
    }
    let exits = "--exit-every 5 --exit-percent 50 --exit-scope query";
    let ran = run(room.path(), &format!("predict --model m --data vali {exits} --scores s.txt")).ok();
    assert!(ran.stderr.contains("% of all tree evaluations were needed"), "{}", ran.stderr);
    // A model of several parts has no order of trees. Prediction does not speak of costs.
    train(room.path(), "--preset planet --set num_trees=3 --set max_depth=2 --data many --model other");
    run(room.path(), "blend m other --output several").ok();
    let ran = run(room.path(), &format!("predict --model several --data vali {exits} --scores none.txt"));
    let remedy = "score without --exit-every and --exit-percent";
    assert_refused(
        "exits",
        &ran,
        1,
        &["several: early exits need a model that is a single ensemble", remedy],
    );
    let ran = run(room.path(), "cost --model several --data vali --costs costs.csv --output none.parquet");
    assert_refused("costs", &ran, 1, &["several: costs are defined only for a model that is a single"]);
}

#[test]
fn undefined_areas_are_said() {
    let room = room();
    same_rows(room.path());
    let ran = run(
        room.path(),
        "train --preset planet --set num_trees=2 --set metric=auc_pooled,auc,ndcg@10 --set convention=relevant=99 \
         --data many --valid vali --model m --rounds rounds",
    )
    .ok();
    for said in [
        "warning: auc_pooled of valid is NaN in the log: it needs both relevant and irrelevant documents",
        "warning: auc of valid is NaN in the log: no query has both relevant and irrelevant documents",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("ndcg@10 of valid"), "{}", ran.stderr);
    costs(room.path());
    train(room.path(), "--preset planet --set num_trees=3 --data many --model m");
    predict(room.path(), "m", "vali");
    let ran = run(
        room.path(),
        "cost --model m --data vali --costs costs.csv --metrics auc --convention mohan-cost,relevant=99 --output c.parquet",
    )
    .ok();
    assert!(ran.stdout.contains("undefined"));
    assert!(ran.stderr.contains("auc (auc_pooled) is undefined: it needs both"), "{}", ran.stderr);
    run(room.path(), "predict --model m --data vali --output p.parquet").ok();
    let ran =
        run(room.path(), "evaluate --predictions p.parquet --metrics auc_pooled --convention relevant=99")
            .ok();
    assert!(ran.stdout.contains("auc_pooled is undefined: it needs both relevant and irrelevant documents"));
}

#[test]
fn data_that_differ_from_those_of_training_are_said() {
    let room = room();
    let row = |row: usize, third: &str| {
        format!("{} qid:{} 1:{} 2:{}{third}\n", row % 3, row / 10, row % 7, row % 5)
    };
    let text =
        |third: &dyn Fn(usize) -> String| -> String { (0..40).map(|at| row(at, &third(at))).collect() };
    fs::write(room.path().join("three.txt"), text(&|row| format!(" 3:{}", row % 4))).unwrap();
    fs::write(room.path().join("two.txt"), text(&|_| String::new())).unwrap();
    fs::write(room.path().join("costs.csv"), "feature,cost\n*,1\n").unwrap();
    for data in ["three", "two"] {
        run(room.path(), &format!("convert {data}.txt --output {data}")).ok();
    }
    train(room.path(), "--preset planet --set num_trees=3 --set min_data_in_leaf=2 --data three --model m");
    for (data, said) in [
        ("three", "note: three: the model was trained on these rows"),
        ("two", "warning: m: 1 feature is not in the data and treated as missing: f3"),
    ] {
        let command = format!("cost --model m --data {data} --costs costs.csv --output curve.parquet");
        let ran = run(room.path(), &command).ok();
        assert!(ran.stderr.contains(said), "{data}: {}", ran.stderr);
    }
}

#[test]
fn pooled_metrics_are_logged_recorded_and_not_compared() {
    let room = room();
    same_rows(room.path());
    let metrics = "--set metric=auc_pooled,pauc_pooled@0-20,auc,success@3";
    for learner in ["--preset planet --set num_trees=4", "--preset lambdamart --set num_trees=4"] {
        let arguments = format!("{learner} {metrics} --data many --valid vali --rounds rounds");
        train(room.path(), &format!("{arguments} --model m"));
        let log = rounds_of(&room.path().join("rounds"));
        run(room.path(), "predict --model m --data vali --output p.parquet").ok();
        let line = "evaluate --predictions p.parquet --metrics auc_pooled,pauc_pooled@0-20,success@3 --output e.parquet";
        let ran = run(room.path(), &format!("{line} --json")).ok();
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        for name in ["auc_pooled", "pauc_pooled@0-20", "success@3"] {
            let last = *course(&log, "valid", name).last().unwrap();
            assert_eq!(report["systems"][0]["means"][name].as_f64(), Some(last), "{learner} {name}");
        }
        let table = described(room.path(), "e.parquet");
        let recorded = &table["pooled"][""]["auc_pooled"];
        assert_eq!(recorded, &report["systems"][0]["means"]["auc_pooled"]);
        let sql = "sql --format csv -c";
        let query = "SELECT auc_pooled(label, score) AS a FROM 'p.parquet'";
        let ran = command(room.path(), sql).arg(query).output().unwrap();
        let found: f64 = String::from_utf8_lossy(&ran.stdout).lines().nth(1).unwrap().parse().unwrap();
        assert_eq!(Some(found), recorded.as_f64());
        let refused = run(room.path(), "compare p.parquet p.parquet --metric auc_pooled");
        assert_refused("pooled", &refused, 2, &["auc_pooled has no value per query"]);
    }
}
