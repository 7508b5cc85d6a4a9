//! Blends of models and of predictions: scores as composed by hand, weights as found by numpy, and refusals.

use crate::support::sql::sql_in;
use crate::support::*;
use planetree::model::{Model, Normalisation};
use planetree::storage::Location;
use serde_json::Value;
use std::fs;
use std::path::Path;

const QUICK: &str = "--set num_trees=8 --set min_data_in_leaf=5";

/// Makes the datasets `data`, `valid` and `test` and the models `mart`, `lambda`, `forest` and `pairs`.
fn models(directory: &Path) {
    for (seed, name) in [(31, "data"), (32, "valid"), (33, "test")] {
        dataset(directory, name, &graded(seed, 60, 9), "");
    }
    for (preset, name) in
        [("mart", "mart"), ("lambdamart", "lambda"), ("rf-point", "forest"), ("rf-pair", "pairs")]
    {
        train(directory, &format!("--preset {preset} --data data {QUICK} --model {name}"));
    }
}

fn blend(directory: &Path, arguments: &str) -> Value {
    let ran = run(directory, &format!("--quiet blend {arguments} --json")).ok();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn weights(json: &Value) -> Vec<f64> {
    json["models"].as_array().unwrap().iter().map(|model| model["weight"].as_f64().unwrap()).collect()
}

/// Normalises the scores of a model within queries.
fn normalised(rows: &[ScoredRow], normalisation: Normalisation) -> Vec<f64> {
    let mut all = Vec::new();
    for query in rows.chunk_by(|one, other| one.query == other.query) {
        let mut values: Vec<f64> = query.iter().map(|row| row.score).collect();
        normalisation.apply(&mut values);
        all.extend(values);
    }
    all
}

fn assert_scores(found: &[ScoredRow], expected: &[f64], context: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found.score - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
            "{context}: {found:?} {expected}"
        );
    }
}

#[test]
fn a_blend_scores_as_the_sum_of_separate_predictions() {
    let room = room();
    models(room.path());
    let names = ["mart", "lambda", "forest", "pairs"];
    let alone: Vec<Vec<ScoredRow>> = names.iter().map(|name| predict(room.path(), name, "test")).collect();
    for (number, (normalise, methods)) in [
        ("none", ["none"; 4]),
        ("z", ["z"; 4]),
        ("none,unit_variance,minmax,rank", ["none", "unit_variance", "minmax", "rank"]),
    ]
    .into_iter()
    .enumerate()
    {
        let output = format!("blend{number}");
        let options = format!("--normalise {normalise} --weights 0.5,-0.25,2,1 --output {output}");
        let json = blend(room.path(), &format!("mart lambda forest pairs --data valid {options}"));
        assert_eq!(weights(&json), [0.5, -0.25, 2.0, 1.0]);
        let mut expected = vec![0.0; alone[0].len()];
        for ((rows, method), weight) in alone.iter().zip(methods).zip([0.5, -0.25, 2.0, 1.0]) {
            let values = normalised(rows, Normalisation::named(method).unwrap());
            expected.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
        assert_scores(&predict(room.path(), &output, "test"), &expected, normalise);
    }
    // Threads and partitions change neither scores nor weights.
    dataset(room.path(), "pieces", &graded(32, 60, 9), "--partition-rows 20");
    let found = |options: &str, output: &str| {
        let json = blend(
            room.path(),
            &format!(
                "mart lambda forest pairs {options} --normalise z --weights ascent:ndcg@5 --output {output}"
            ),
        );
        (weights(&json), fs::read(room.path().join(output)).unwrap())
    };
    let one = found("--data valid --threads 1", "one");
    assert_eq!(one.0, found("--data valid --threads 4", "many").0);
    let pieces = found("--data pieces --threads 3", "cut");
    assert!(one.1 == pieces.1, "the model file does not depend on partitions");
}

#[test]
fn a_blend_of_a_sum_of_parts_multiplies_weights() {
    let room = room();
    models(room.path());
    blend(room.path(), "mart lambda --weights 0.25,4 --output pair");
    let json = blend(room.path(), "inner=pair forest --weights 2,-1 --output outer");
    assert!(json["blend"].is_null() && json["gains"].is_null(), "nothing is measured without data");
    let parts = &described(room.path(), "outer")["parts"];
    let part =
        |index: usize| (parts[index]["name"].as_str().unwrap().to_owned(), parts[index]["weight"].as_f64());
    assert_eq!(part(0), ("inner.mart".to_owned(), Some(0.5)));
    assert_eq!(part(1), ("inner.lambda".to_owned(), Some(8.0)));
    assert_eq!(part(2), ("forest".to_owned(), Some(-1.0)));
    let [mart, lambda, forest] = ["mart", "lambda", "forest"].map(|name| predict(room.path(), name, "test"));
    let rows = mart.iter().zip(&lambda).zip(&forest);
    let expected: Vec<f64> =
        rows.map(|((mart, lambda), forest)| 0.5 * mart.score + 8.0 * lambda.score - forest.score).collect();
    assert_scores(&predict(room.path(), "outer", "test"), &expected, "outer");
    // A normalised sum is a group of parts.
    blend(room.path(), "pair forest --normalise z,none --weights 3,1 --output grouped");
    assert_eq!(described(room.path(), "grouped")["groups"][0]["normalisation"], "z");
    let pair = normalised(&predict(room.path(), "pair", "test"), Normalisation::Z);
    let expected: Vec<f64> =
        pair.iter().zip(&forest).map(|(pair, forest)| 3.0 * pair + forest.score).collect();
    assert_scores(&predict(room.path(), "grouped", "test"), &expected, "grouped");
}

#[test]
fn least_squares_agree_with_numpy() {
    let room = room();
    models(room.path());
    for name in ["mart", "lambda", "forest", "pairs"] {
        predict(room.path(), name, "valid");
    }
    for (number, normalise) in
        ["none", "z", "minmax", "rank", "unit_variance", "none,unit_variance,z,rank"].into_iter().enumerate()
    {
        let options = format!("--normalise {normalise} --weights ols --output blend{number}");
        let json = blend(room.path(), &format!("mart lambda forest pairs --data valid {options}"));
        fs::write(room.path().join("blended.json"), json.to_string()).unwrap();
        let tables = "mart-of-valid lambda-of-valid forest-of-valid pairs-of-valid";
        let Some(printed) = reference_script(room.path(), "blend.py", &format!("{tables} blended.json"))
        else {
            return;
        };
        eprintln!("{normalise}: {printed}");
        // The model adds the intercept and the weighted values.
        let described = described(room.path(), &format!("blend{number}"));
        assert_eq!(described["intercept"], json["intercept"], "{normalise}");
        // The same from tables of predictions, and the same scores.
        let from_tables = blend(
            room.path(),
            &format!(
                "--predictions {tables} --normalise {normalise} --weights ols --output table{number}.parquet"
            ),
        );
        assert_eq!((weights(&from_tables), &from_tables["blend"]), (weights(&json), &json["blend"]));
        let table = predictions_of(&room.path().join(format!("table{number}.parquet")));
        let expected: Vec<f64> = table.iter().map(|row| row.score).collect();
        assert_scores(&predict(room.path(), &format!("blend{number}"), "valid"), &expected, normalise);
    }
}

#[test]
fn gains_are_those_of_evaluate_and_compare() {
    let room = room();
    models(room.path());
    let json = blend(room.path(), "mart lambda forest --data valid --weights ascent:ndcg@10 --output best");
    let evaluated = |model: &str| {
        let file = format!("{model}-of-valid");
        predict(room.path(), model, "valid");
        let ran = run(room.path(), &format!("evaluate --predictions {file} --metrics ndcg@10 --json")).ok();
        let json: Value = serde_json::from_str(&ran.stdout).unwrap();
        json["systems"][0]["means"]["ndcg@10"].as_f64().unwrap()
    };
    let alone: Vec<f64> = ["mart", "lambda", "forest"].map(&evaluated).to_vec();
    for (model, expected) in json["models"].as_array().unwrap().iter().zip(&alone) {
        assert_close(model["mean"].as_f64().unwrap(), *expected, 1e-12, "a model alone");
    }
    let found = json["blend"].as_f64().unwrap();
    assert_close(found, evaluated("best"), 1e-12, "the blend");
    blend(room.path(), "mart lambda forest --output equal");
    assert_close(json["equal"].as_f64().unwrap(), evaluated("equal"), 1e-12, "equal weights");
    assert!(alone.iter().all(|alone| found >= *alone) && found >= json["equal"].as_f64().unwrap(), "{json}");
    let best = json["gains"][0]["model"].as_str().unwrap();
    let ran = run(room.path(), &format!("compare {best}-of-valid best-of-valid --json")).ok();
    let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (pair, gain) = (&compared["pairs"][0], &json["gains"][0]);
    assert_eq!(gain["p"], pair["randomisation"]["p"]);
    assert_close(
        gain["difference"].as_f64().unwrap(),
        pair["difference"].as_f64().unwrap(),
        1e-9,
        "difference",
    );
    assert_eq!(gain["significant"], pair["differs"]);
    let text = run(room.path(), "blend mart lambda --data valid --weights ols --output text").ok();
    for expected in [
        "metric                ndcg@10, higher is better",
        "equal weights",
        "difference from",
        "model written to text",
    ] {
        assert!(text.stdout.contains(expected), "{}", text.stdout);
    }
    assert!(text.stderr.contains("note: the weights were found on these rows"), "{}", text.stderr);
}

#[test]
fn a_constant_model_gets_weight_0() {
    let room = room();
    models(room.path());
    let location = Location::Local(room.path().join("mart"));
    let mut constant = Model::read(&location).unwrap();
    constant.only_trees_mut().unwrap().trees.clear();
    constant.write(&Location::Local(room.path().join("constant"))).unwrap();
    for (method, normalise) in [("equal", "none"), ("ols", "none"), ("ascent:ndcg@10", "z"), ("ols", "rank")]
    {
        let options = format!("--weights {method} --normalise {normalise} --output out");
        let json = blend(room.path(), &format!("constant mart lambda --data valid {options}"));
        assert_eq!(weights(&json)[0], 0.0, "{method}");
        assert!(weights(&json)[1..].iter().any(|weight| *weight != 0.0));
        let note = json["notes"][0].as_str().unwrap();
        assert!(note.starts_with("constant gives all documents of a query the same score"), "{note}");
        assert_eq!(json["models"][0]["constant"], true);
    }
    // Two copies of a model: the second is redundant in least squares.
    let json = blend(room.path(), "mart copy=mart lambda --data valid --weights ols --output out");
    assert_eq!(weights(&json)[1], 0.0, "{json}");
    assert!(json["notes"][0].as_str().unwrap().contains("copy are a linear function"), "{json}");
    let ran = run(room.path(), "blend constant other=constant --data valid --weights ols --output out");
    assert_refused("constants", &ran, 1, &["every model gives all documents of a query the same score"]);
}

#[test]
fn a_blend_is_a_model_like_any_other() {
    let room = room();
    models(room.path());
    blend(room.path(), "mart lambda forest --data valid --weights ols --output plain.parquet");
    blend(room.path(), "mart lambda --data valid --normalise none,z --weights ols --output mixed.parquet");
    let described = described(room.path(), "plain.parquet");
    assert_eq!(described["parts"].as_array().map(Vec::len), Some(3));
    let configuration = described["configuration"].as_str().unwrap();
    assert!(
        configuration.contains("weights = \"ols\"") && configuration.contains("models = [\"mart\""),
        "{configuration}"
    );
    let data: Vec<&str> =
        described["data"].as_array().unwrap().iter().map(|data| data["name"].as_str().unwrap()).collect();
    assert_eq!(data, ["train", "blend"]);
    let parts = described["parts"].as_array().unwrap();
    assert!(parts.iter().all(|part| part["configuration"].as_str().unwrap().contains("num_trees = 8")));
    // SQL scores rows and explains them.
    let scored = sql_in(
        room.path(),
        "--format csv",
        "SELECT max(abs(s.score - p.score)) AS d FROM score('plain.parquet', 'test') s JOIN \
         score('plain.parquet', 'test') p USING (query_id, rank)",
        &[],
    )
    .ok();
    assert!(scored.stdout.contains("d\n0"), "{}", scored.stdout);
    let explained = sql_in(
        room.path(),
        "--format csv",
        "SELECT * FROM explain_score('plain.parquet', 'test') LIMIT 3",
        &[],
    );
    assert!(explained.ok().stdout.lines().count() == 4);
    let refused =
        sql_in(room.path(), "", "SELECT * FROM explain_score('mixed.parquet', 'test') LIMIT 3", &[]).failed();
    assert!(refused.stderr.contains("normalised over the documents of a query (z)"), "{}", refused.stderr);
    run(room.path(), "export plain.parquet --format lightgbm --output plain.txt").ok();
    run(room.path(), "import plain.txt --output back.parquet").ok();
    let [ours, back] = ["plain.parquet", "back.parquet"].map(|model| predict(room.path(), model, "test"));
    let expected: Vec<f64> = ours.iter().map(|row| row.score).collect();
    assert!(back.iter().zip(&expected).all(|(back, ours)| (back.score - ours).abs() < 1e-9));
    run(room.path(), "export mixed.parquet --format json --output mixed.json").ok();
    run(room.path(), "import mixed.json --output mixed-back.parquet").ok();
    let [ours, back] =
        ["mixed.parquet", "mixed-back.parquet"].map(|model| predict(room.path(), model, "test"));
    assert_eq!(ours, back);
    let refused = run(room.path(), "export mixed.parquet --format lightgbm --output no.txt").failed();
    assert!(refused.stderr.contains("lambda"), "{}", refused.stderr);
    run(room.path(), "report . --output page.html").ok();
    assert!(fs::read_to_string(room.path().join("page.html")).unwrap().contains("plain"));
    // A blend is a start model, too, and a member of another blend.
    train(
        room.path(),
        &format!("--preset mart --data data {QUICK} --start-model plain.parquet --model more"),
    );
    blend(room.path(), "plain.parquet mart --data valid --weights ols --output again");
}

#[test]
fn bad_input_is_refused() {
    let room = room();
    models(room.path());
    let other = "qid,label,f1,colour\n1,1,0.5,red\n1,0,0.25,blue\n2,1,3,red\n2,0,1,blue\n";
    fs::write(room.path().join("other.csv"), other).unwrap();
    run(room.path(), "convert other.csv --output other").ok();
    train(room.path(), "--preset mart --data other --set num_trees=2 --set min_data_in_leaf=1 --model words");
    train(room.path(), &format!("--preset mart --data data {QUICK} --set missing=learned --model learned"));
    let text: String = (0..6).map(|row| format!("{} qid:{} 1:0.{row}\n", -1, row / 3)).collect();
    fs::write(room.path().join("none.txt"), text).unwrap();
    run(room.path(), "convert none.txt --output none").ok();
    predict(room.path(), "mart", "valid");
    predict(room.path(), "mart", "test");
    dataset(room.path(), "short", &graded(33, 10, 9), "");
    predict(room.path(), "mart", "short");
    for (arguments, code, texts) in [
        ("mart", 2, &["nothing to blend"][..]),
        ("mart lambda --weights 0.5 --data valid", 2, &["--weights has 1 weights, but there are 2 models"]),
        ("mart lambda --weights 0.5,nan", 2, &["nan is not finite"]),
        ("mart lambda --weights 0.5,inf", 2, &["inf is not finite"]),
        ("mart lambda --weights 1,1e300", 2, &["1e300 is out of range", "from 1e-9 to 1e9"]),
        ("mart lambda --weights=-1e-12,1", 2, &["-1e-12 is out of range"]),
        ("mart lambda --weights 0,0", 2, &["all weights are 0"]),
        ("mart lambda --weights best", 2, &["\"best\" is neither a number nor a method", "ascent:METRIC"]),
        ("mart lambda --weights ascent:ndgc@10 --data valid", 2, &["unknown metric \"ndgc@10\"", "ndcg"]),
        ("mart lambda --weights ascent:rmse --data valid", 2, &["needs a metric of rankings", "ols"]),
        ("mart lambda --metric xyz --data valid", 2, &["unknown metric \"xyz\""]),
        ("mart lambda --weights ols", 2, &["--weights ols needs validation data", "--data"]),
        ("mart lambda --weights ols --data none", 1, &["none: no row has a label"]),
        ("mart lambda --normalise zscore --data valid", 2, &["unknown normalisation \"zscore\""]),
        (
            "mart lambda --normalise z,z,z --data valid",
            2,
            &["--normalise has 3 values, but there are 2 models"],
        ),
        ("mart words --data valid", 1, &["lacks", "colour"]),
        ("mart learned --data valid", 1, &["mart and learned: missing values of feature", "replaced by 0"]),
        ("mart nowhere --data valid", 1, &["nowhere"]),
        (
            "mart lambda --weights 0.2,0.8 --metric err",
            2,
            &["--metric err: nothing is measured without data"],
        ),
        ("mart lambda --convention trec --weights ascent:map --data valid", 2, &["ties=docid"]),
        ("mart lambda --label-map 0=0;1=1 --data valid", 1, &["which label_map 0=0;1=1 does not list"]),
        ("--predictions mart-of-valid mart-of-test", 1, &["the labels of row"]),
        ("--predictions mart-of-valid mart-of-short", 1, &["the numbers of rows differ: 540 and 90"]),
        ("--predictions mart-of-valid --data valid", 2, &["cannot be used with"]),
    ] {
        let ran = run(room.path(), &format!("blend {arguments} --output out"));
        assert_refused(arguments, &ran, code, texts);
        assert!(!room.path().join("out").exists(), "{arguments}: left something behind");
    }
    let ran = run(room.path(), "blend mart lambda --output mart");
    assert_refused("the output is an input", &ran, 2, &["mart is both an input and the output"]);
}

#[test]
fn models_without_common_features_are_said() {
    let room = room();
    for (name, feature) in [("prices", "price"), ("more", "price"), ("ages", "age")] {
        let rows: String = (0..40).map(|row| format!("{},{},{row}\n", row / 10, row % 10 / 4)).collect();
        fs::write(room.path().join("rows.csv"), format!("qid,label,{feature}\n{rows}")).unwrap();
        run(room.path(), &format!("convert rows.csv --output {name}-data")).ok();
        let settings = "--set num_trees=2 --set min_data_in_leaf=1";
        train(room.path(), &format!("--preset mart --data {name}-data {settings} --model {name}"));
    }
    for (members, said) in [
        ("prices ages", "note: prices and ages have no feature in common with any other model"),
        ("prices more ages", "note: ages has no feature in common with any other model"),
    ] {
        let ran = run(room.path(), &format!("blend {members} --output out")).ok();
        assert!(ran.stderr.contains(said), "{members}: {}", ran.stderr);
    }
    let ran = run(room.path(), "blend prices more --output out").ok();
    assert!(!ran.stderr.contains("in common"), "{}", ran.stderr);
}

#[test]
fn labels_are_mapped_before_weights_are_found() {
    let room = room();
    models(room.path());
    let mapped = blend(
        room.path(),
        "mart lambda --data valid --weights ols --metric map --label-map 0,1,2=0;3,4=1 --output mapped",
    );
    let examples: Vec<Example> = graded(32, 60, 9)
        .into_iter()
        .map(|example| Example { label: f64::from(u8::from(example.label > 2.0)), ..example })
        .collect();
    dataset(room.path(), "binary", &examples, "");
    let binary =
        blend(room.path(), "mart lambda --data binary --weights ols --metric map --output binary-blend");
    assert_eq!(weights(&mapped), weights(&binary));
    assert_eq!((&mapped["blend"], &mapped["label_map"]), (&binary["blend"], &"0,1,2=0;3,4=1".into()));
    // The model records how the weights were found.
    let recorded = described(room.path(), "mapped")["configuration"].as_str().unwrap().to_owned();
    for line in [
        "weights = \"ols\"",
        "metric = \"map\"",
        "convention = \"planetree\"",
        "label_map = \"0,1,2=0;3,4=1\"",
    ] {
        assert!(recorded.lines().any(|found| found == line), "{line}: {recorded}");
    }
}
