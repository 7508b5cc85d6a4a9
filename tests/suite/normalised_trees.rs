//! Trees on features that are normalised by query: the trees of a dataset whose values were normalised before, bytes
//! that depend only on rows and parameters, and all commands that use models.

use crate::support::sql::sql_in;
use crate::support::*;
use std::collections::BTreeMap;
use std::fs;

/// Short trainings of all kinds of trees, with all ways to handle missing values.
const VARIANTS: [&str; 9] = [
    "--preset lambdamart --set num_trees=6",
    "--preset lambdamart --set num_trees=4 --set missing=learned --set base_score=feature:f2",
    "--preset planet --set num_trees=6 --set missing=branch",
    "--preset gbrt --set num_trees=4 --set missing=low",
    "--preset pgbrt --set num_trees=4 --set missing=one",
    "--preset rankboost --set num_trees=6",
    "--preset rf --set num_trees=4 --set missing=high",
    "--preset rf-pair --set num_trees=3 --set missing=learned",
    "--preset rf-list --set num_trees=2",
];

/// Replaces missing values, and normalises every feature over the documents of each query.
fn normalised(examples: &[Example], fill: Option<f32>) -> Vec<Example> {
    let mut ranges: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    let filled = |value: Option<f32>| value.or(fill).map(f64::from);
    for example in examples {
        for (feature, value) in example.features.iter().enumerate() {
            let Some(value) = filled(*value) else { continue };
            let range = ranges.entry((example.query, feature)).or_insert((value, value));
            *range = (range.0.min(value), range.1.max(value));
        }
    }
    let scaled = |example: &Example, feature: usize, value: Option<f32>| {
        let value = filled(value)?;
        let (least, most) = ranges[&(example.query, feature)];
        Some(if least < most { ((value - least) / (most - least)) as f32 } else { 0.0 })
    };
    let of_example = |example: &Example| Example {
        features: (0..).zip(&example.features).map(|(place, value)| scaled(example, place, *value)).collect(),
        ..example.clone()
    };
    examples.iter().map(of_example).collect()
}

fn fill_of(variant: &str) -> Option<f32> {
    match variant.split_once("missing=").map(|(_, missing)| missing.split(' ').next().unwrap()) {
        None => Some(0.0),
        Some("one") => Some(1.0),
        Some(_) => None,
    }
}

#[test]
fn trees_are_those_of_values_normalised_before() {
    let room = room();
    let (training, validation) = (graded(71, 60, 15), graded(72, 20, 12));
    for (data, examples) in [("train", &training), ("vali", &validation)] {
        dataset(room.path(), data, examples, "--partition-rows 100");
    }
    for fill in [None, Some(0.0), Some(1.0)] {
        let name =
            |data: &str| format!("{data}-{}", fill.map_or("kept".to_owned(), |fill: f32| fill.to_string()));
        for (data, examples) in [("train", &training), ("vali", &validation)] {
            dataset(room.path(), &name(data), &normalised(examples, fill), "--partition-rows 100");
        }
    }
    for variant in VARIANTS {
        let kept = fill_of(variant).map_or("kept".to_owned(), |fill| fill.to_string());
        let outcome = |data: [&str; 2], model: &str, settings: &str| {
            let files = format!("--data {} --valid {} --model {model} --rounds rounds", data[0], data[1]);
            train(room.path(), &format!("{variant} {files} --set metric=ndcg@10,rmse {settings}"));
            run(room.path(), &format!("--quiet predict --model {model} --data {} --scores s.txt", data[1]))
                .ok();
            let columns = "tree, node, feature, threshold, missing, \"left\", \"right\", value, gain, cover";
            let trees = sql_in(room.path(), "--format csv", &format!("select {columns} from '{model}'"), &[]);
            let log = rounds_of(&room.path().join("rounds"));
            (fs::read_to_string(room.path().join("s.txt")).unwrap(), trees.ok().stdout, log)
        };
        let before = outcome([&format!("train-{kept}"), &format!("vali-{kept}")], "plain", "");
        let found = outcome(["train", "vali"], "m", "--set normalise_features=query");
        assert!(found == before, "{variant}");
        assert!(found.0.lines().collect::<std::collections::BTreeSet<_>>().len() > 2, "{variant}: no trees");
        // They differ from those of the values as they are.
        let plain = outcome(["train", "vali"], "m", "");
        assert!(plain.1 != found.1, "{variant}");
    }
}

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    let normalised = VARIANTS.map(|variant| format!("{variant} --set normalise_features=query"));
    let variants: Vec<&str> = normalised.iter().map(String::as_str).collect();
    assert_models_depend_only_on_rows(&variants, &[""]);
    assert_models_depend_only_on_rows(&variants[..1], &["weighted-"]);
}

#[test]
fn models_and_validation_are_the_same_from_disk_and_resumed() {
    let room = room();
    dataset(room.path(), "data", &graded(73, 300, 40), "--partition-rows 1000");
    for variant in [VARIANTS[0], VARIANTS[6]] {
        let arguments = format!("{variant} --set normalise_features=query --data data");
        assert_a_memory_limit_keeps_the_bytes(room.path(), &arguments);
        // The data as they are have another cache.
        assert_a_memory_limit_keeps_the_bytes(room.path(), &format!("{variant} --data data"));
    }
    same_rows(room.path());
    let arguments = "--preset lambdamart --set normalise_features=query --data many --valid vali";
    assert_resumes_with_the_same_log(room.path(), arguments);
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_trains_the_same_bytes() {
    let room = room();
    same_rows(room.path());
    let cluster = crate::support::cluster::Cluster::start(2, &[]);
    let on_cluster =
        VARIANTS.iter().filter(|variant| !variant.contains("rf-pair") && !variant.contains("rf-list"));
    let normalised: Vec<String> =
        on_cluster.map(|variant| format!("{variant} --set normalise_features=query")).collect();
    let variants: Vec<&str> = normalised.iter().map(String::as_str).collect();
    assert_a_cluster_trains_the_same_bytes(room.path(), &variants, "many", &cluster.url());
}

#[test]
fn all_commands_take_them() {
    let room = room();
    let at = room.path();
    same_rows(at);
    train(at, "--preset lambdamart --data many --model m --set num_trees=12 --set normalise_features=query");
    let part = &described(at, "m")["parts"][0];
    assert_eq!((part["kind"].as_str(), part["normalise_features"].as_str()), (Some("trees"), Some("query")));
    assert!(run(at, "describe m").ok().stdout.contains("trees: sum, query"));
    assert!(run(at, "describe m --tree 0").ok().stdout.starts_with("features normalised by query\n"));
    run(at, "--quiet predict --model m --data vali --output p --scores s.txt").ok();
    assert_sql_scores_and_explains(at);
    run(at, "--quiet describe m --permutation vali").ok();
    run(at, "--quiet report . --output report.html").ok();

    // Without exits, the scores are the same to the bit.
    let scores = |file: &str| fs::read_to_string(at.join(file)).unwrap();
    let exits = "--exit-every 5 --exit-percent 0 --exit-scope query";
    run(at, &format!("--quiet predict --model m --data vali {exits} --scores exits.txt")).ok();
    assert_eq!(scores("exits.txt"), scores("s.txt"));
    let costs: String = (1..=14).map(|feature| format!("f{feature},2\n")).collect();
    fs::write(at.join("costs.csv"), format!("feature,cost\n{costs}")).unwrap();
    let points = "--exit-every 5 --exit-percent 0 --costs costs.csv --metrics prec@5 --output curve.parquet";
    run(at, &format!("--quiet cost --model m --data vali {points}")).ok();

    // Single rows have no scores, and thresholds are not values of features.
    let ask = |query: &str| sql_in(at, "--format csv", query, &[]);
    let refused = ask("select planetree_score('m', f1) from 'vali'");
    let reason = "normalises features over the documents";
    assert_refused("planetree_score", &refused, 1, &["part 0 (trees)", reason]);
    assert_refused("bin_of", &ask("select bin_of(1.0, 'm', 'f1')"), 1, &["part 0 (trees)", reason]);
    for format in ["lightgbm", "xgboost", "ranklib", "onnx", "pmml", "treelite", "solr", "vespa"] {
        let refused = run(at, &format!("export m --format {format} --output exported"));
        assert_refused(
            format,
            &refused,
            1,
            &["part 0 (trees)", reason, "train with normalise_features=none"],
        );
    }
    run(at, "--quiet export m --format json --output m.json --data vali").ok();
    run(at, "--quiet import m.json --output imported").ok();
    run(at, "--quiet predict --model imported --data vali --scores imported.txt").ok();
    assert_eq!(scores("imported.txt"), scores("s.txt"));

    // A blend of parts with different normalisations is the sum of their scores.
    train(at, "--preset lambdamart --data many --model plain --set num_trees=5");
    train(at, "--preset linear --data many --model linear");
    run(at, "--quiet blend m plain linear --data vali --normalise none --weights 1,2,3 --output blended")
        .ok();
    for model in ["plain", "linear", "blended"] {
        run(at, &format!("--quiet predict --model {model} --data vali --scores {model}.txt")).ok();
    }
    let numbers = |file: &str| scores(file).lines().map(|line| line.parse().unwrap()).collect::<Vec<f64>>();
    let sums = numbers("s.txt").into_iter().zip(numbers("plain.txt")).zip(numbers("linear.txt"));
    for (((one, two), three), blended) in sums.zip(numbers("blended.txt")) {
        assert_close(blended, one + 2.0 * two + 3.0 * three, 1e-9, "blend");
    }
    assert_eq!(described(at, "blended")["parts"].as_array().map(Vec::len), Some(3));
    run(at, "--quiet cv --data many --preset planet --set num_trees=3 --set normalise_features=query --folds 3 --output folds").ok();
}

#[test]
fn trees_continue_from_trees_with_the_same_normalisation() {
    let room = room();
    let at = room.path();
    same_rows(at);
    let base = "--preset planet --data many";
    let query = "--set normalise_features=query";
    train(at, &format!("{base} --model all --set num_trees=8 {query}"));
    train(at, &format!("{base} --model first --set num_trees=5 {query}"));
    train(at, &format!("{base} --model second --set num_trees=3 {query} --start-model first"));
    assert_eq!(described(at, "second")["parts"].as_array().map(Vec::len), Some(1));
    let scores = |model: &str| {
        run(at, &format!("--quiet predict --model {model} --data vali --scores s.txt")).ok();
        fs::read_to_string(at.join("s.txt")).unwrap()
    };
    let numbers = |text: String| text.lines().map(|line| line.parse().unwrap()).collect::<Vec<f64>>();
    for (one, other) in numbers(scores("second")).into_iter().zip(numbers(scores("all"))) {
        assert_close(one, other, 1e-6, "trees of the start model and new trees");
    }
    // Trees on the values as they are become a part of their own.
    train(at, &format!("{base} --model mixed --set num_trees=3 --start-model first"));
    let parts = described(at, "mixed")["parts"].clone();
    let normalisations: Vec<Option<&str>> =
        parts.as_array().unwrap().iter().map(|part| part["normalise_features"].as_str()).collect();
    assert_eq!(normalisations, [Some("query"), None]);
    // Stages with different normalisations, runs and classes.
    let stage = |normalise: &str| format!("[[stage]]\npreset = \"planet\"\nnum_trees = 3\n{normalise}");
    let plan = format!("{}{}", stage("normalise_features = \"query\"\n"), stage(""));
    fs::write(at.join("stages.toml"), plan).unwrap();
    train(
        at,
        "--config stages.toml --data many --valid vali --model staged --rounds rounds --set metric=rmse",
    );
    train(at, &format!("{base} --model query-only --set num_trees=3 {query}"));
    train(at, &format!("{base} --model both --set num_trees=3 --start-model query-only"));
    assert_eq!(scores("staged"), scores("both"));
    // Rounds are counted from the start of each stage.
    let log = rounds_of(&at.join("rounds"));
    let last = log.iter().rfind(|row| row.split == "valid" && row.metric == "rmse").unwrap().value;
    run(at, "--quiet predict --model staged --data vali --output p").ok();
    assert_close(rmse(&predictions_of(&at.join("p"))), last, 1e-9, "the log of the last stage");
    for options in ["--preset rf --set runs=2", "--preset mcrank", "--preset planet --set target=ordinal"] {
        train(at, &format!("{options} {query} --set num_trees=2 --data many --valid vali --model several"));
        let parts = described(at, "several")["parts"].clone();
        assert!(
            parts.as_array().unwrap().iter().all(|part| part["normalise_features"] == "query"),
            "{parts}"
        );
        scores("several");
    }
}

#[test]
fn normalisation_over_all_rows_keeps_the_trees() {
    let room = room();
    let at = room.path();
    same_rows(at);
    let trees = |settings: &str| {
        train(at, &format!("--preset lambdamart --data many --model m --set num_trees=3 {settings}"));
        let configuration = described(at, "m")["configuration"].as_str().unwrap().to_owned();
        let rows = sql_in(at, "--format csv", "select * from 'm'", &[]).ok().stdout;
        (rows, configuration.contains("normalise_features"))
    };
    let plain = trees("");
    assert!(!plain.1);
    for normalise in ["z", "minmax"] {
        let (rows, is_recorded) = trees(&format!("--set normalise_features={normalise}"));
        assert!(rows == plain.0 && is_recorded, "{normalise}");
    }
    assert!(trees("--set normalise_features=none") == plain);
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    odd_datasets(room.path());
    let alone = "1 qid:1 1:3\n0 qid:2 1:4\n2 qid:3 1:1\n";
    fs::write(room.path().join("alone.txt"), alone).unwrap();
    run(room.path(), "convert alone.txt --output alone").ok();
    assert_trainings_refused(
        room.path(),
        &[
            (
                "--preset planet --data real --set normalise_features=query --set missing=median",
                "missing=median: trees on features normalised by query cannot replace missing values",
            ),
            (
                "--preset planet --data real --set normalise_features=z --set base_score=feature:f1",
                "base_score is a feature, which normalise_features=z would not change",
            ),
            (
                "--preset planet --data alone --set normalise_features=query",
                "all features are constant within queries",
            ),
        ],
    );
}
