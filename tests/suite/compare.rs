//! Comparisons agree with scipy, and incomparable files are rejected.

use crate::support::*;
use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use planetree::random::Stream;
use planetree::storage::{Access, Location};
use planetree::table::{TableKind, TableWriter};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Writes a metrics table with one metric.
fn metrics(directory: &Path, name: &str, metric: &str, values: &[(String, Option<f64>)]) {
    metrics_under(directory, name, metric, "planetree", values);
}

fn metrics_under(
    directory: &Path,
    name: &str,
    metric: &str,
    convention: &str,
    values: &[(String, Option<f64>)],
) {
    let queries: StringArray = values.iter().map(|(query, _)| Some(query.as_str())).collect();
    let numbers: Float64Array = values.iter().map(|(_, value)| *value).collect();
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("query_id", Arc::new(queries), false),
        ("documents", Arc::new(Int32Array::from(vec![10; values.len()])), false),
        ("relevant", Arc::new(Int32Array::from(vec![2; values.len()])), false),
        (metric, Arc::new(numbers), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let location = Location::parse(directory.join(name).to_str().unwrap(), Access::Explicit).unwrap();
    let mut table = TableWriter::create(&location, TableKind::Metrics, batch.schema()).unwrap();
    table.set_metadata("planetree.convention", convention.to_owned());
    table.write(&batch).unwrap();
    table.finish().unwrap();
}

/// Values between 0 and 1 of several systems, correlated by query as those of rankers are. Coarse values give many ties and
/// zeros among the differences.
fn systems(seed: u64, queries: usize, lean: &[f64], coarse: bool) -> Vec<Vec<(String, Option<f64>)>> {
    let mut draw = Stream::new(&[seed]);
    let mut systems = vec![Vec::new(); lean.len()];
    for query in 0..queries {
        let ease = draw.uniform();
        for (system, lean) in systems.iter_mut().zip(lean) {
            let value = (ease + lean + 0.15 * draw.normal()).clamp(0.0, 1.0);
            let value = if coarse { (value * 8.0).round() / 8.0 } else { value };
            system.push((format!("q{query}"), Some(value)));
        }
    }
    systems
}

/// Compares files, keeps the JSON and the differences in files, and returns the JSON.
fn compared(directory: &Path, number: usize, arguments: &str) -> Value {
    let output = format!("--json --output differences-{number}");
    let json = run(directory, &format!("compare {arguments} {output}")).ok().stdout;
    fs::write(directory.join(format!("compared-{number}")), &json).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// Repeats the comparisons with these numbers in scipy; `false` without Python.
fn scipy_agrees(directory: &Path, numbers: std::ops::Range<usize>) -> bool {
    let Some(python) = python() else { return false };
    let script = Path::new(crate::support::ROOT).join("tests/suite/compare.py");
    let files = numbers.flat_map(|number| [format!("compared-{number}"), format!("differences-{number}")]);
    let output = Command::new(python).arg(script).args(files).current_dir(directory).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if stderr.contains("ModuleNotFoundError") {
        skipped(stderr.lines().last().unwrap_or_default());
        return false;
    }
    assert!(output.status.success(), "after {stdout}: {stderr}");
    eprintln!("{}", stdout.trim());
    true
}

/// Compares files, checks the result with scipy, and returns the JSON; `None` without Python.
fn agrees_with_scipy(directory: &Path, arguments: &str) -> Option<Value> {
    let printed = compared(directory, 0, arguments);
    scipy_agrees(directory, 0..1).then_some(printed)
}

#[test]
fn two_systems_agree_with_scipy() {
    let room = room();
    let mut number = 0;
    for queries in [2, 3, 7, 12, 13, 14, 20, 21, 50, 51, 200, 1500] {
        for coarse in [false, true] {
            let lean = 0.3 / f64::from(queries).sqrt();
            let made = systems(number as u64, queries as usize, &[0.0, lean], coarse);
            metrics(room.path(), &format!("a{number}"), "ndcg@10", &made[0]);
            metrics(room.path(), &format!("b{number}"), "ndcg@10", &made[1]);
            compared(room.path(), number, &format!("a{number} b{number} --seed 3"));
            number += 1;
        }
    }
    scipy_agrees(room.path(), 0..number);
}

#[test]
fn one_sided_tests_agree_with_scipy() {
    let room = room();
    let mut number = 0;
    for (queries, lean) in [(1, 0.1), (3, 0.1), (12, -0.1), (13, 0.1), (30, 0.05), (51, -0.05), (400, 0.01)] {
        for coarse in [false, true] {
            let made = systems(number as u64 + 100, queries, &[0.0, lean], coarse);
            metrics(room.path(), &format!("a{number}"), "ndcg@10", &made[0]);
            metrics(room.path(), &format!("b{number}"), "ndcg@10", &made[1]);
            let files = format!("a{number} b{number}");
            for alternative in ["greater", "less"] {
                let options = format!("{files} --seed 3 --alternative {alternative}");
                assert_eq!(compared(room.path(), number, &options)["alternative"], alternative);
                number += 1;
            }
        }
    }
    scipy_agrees(room.path(), 0..number);
    let text = run(room.path(), "compare a0 b0 --alternative less").ok().stdout;
    assert!(text.contains("alternative           less: B has smaller values than A"), "{text}");
    let text = run(room.path(), "compare a0 b0").ok().stdout;
    assert!(text.contains("alternative           two-sided"), "{text}");
}

#[test]
fn several_systems_are_corrected_and_lower_values_may_be_better() {
    let room = room();
    let made = systems(9, 120, &[0.0, 0.02, 0.15, 0.02, -0.05], true);
    for (name, values) in ["a", "b", "c", "d", "e"].iter().zip(&made) {
        metrics(room.path(), name, "rmse", values);
    }
    for test in ["randomisation", "t", "wilcoxon"] {
        let options = format!("a b c d e --metric rmse --alpha 0.01 --top 3 --level 0.9 --test {test}");
        let Some(compared) = agrees_with_scipy(room.path(), &options) else { return };
        assert_eq!(compared["pairs"].as_array().map(Vec::len), Some(10));
        assert_eq!((&compared["higher_is_better"], &compared["test"]), (&false.into(), &test.into()));
    }
    let text = run(room.path(), "compare a b c d e --metric rmse").ok().stdout;
    assert!(text.contains("corrected for 10 pairs (Holm)"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("3 - 1 ") && line.ends_with('*')), "{text}");
}

#[test]
fn rankers_on_mq2008_agree_with_scipy() {
    let Some(data) = shared("data/MQ2008") else { return };
    let room = room();
    real_dataset(room.path(), "train", &data, "S[12]");
    real_dataset(room.path(), "test", &data, "S[34]");
    for (model, settings) in
        [("stump", "num_trees=3 --set max_depth=1"), ("few", "num_trees=10"), ("many", "num_trees=60")]
    {
        train(room.path(), &format!("--data train --model {model} --set {settings}"));
        predict(room.path(), model, "test");
    }
    let files = "stump-of-test few-of-test many-of-test";
    let Some(compared) = agrees_with_scipy(room.path(), files) else { return };
    assert_eq!(compared["systems"][2]["name"], "many-of-test");
    // Predictions and their metrics give the same comparison, also one of each.
    for name in ["stump", "many"] {
        let files = format!("--predictions {name}-of-test --output {name}.parquet");
        run(room.path(), &format!("evaluate {files} --metrics ndcg@10")).ok();
    }
    let pair = |files: &str| -> Value {
        let json = run(room.path(), &format!("compare {files} --json")).ok().stdout;
        let compared: Value = serde_json::from_str(&json).unwrap();
        compared["pairs"][0].clone()
    };
    let expected = pair("a=stump-of-test b=many-of-test");
    assert_eq!(pair("a=stump.parquet b=many.parquet"), expected);
    assert_eq!(pair("a=stump.parquet b=many-of-test"), expected);
    let both = "--predictions a=stump-of-test --predictions b=many-of-test --output both.parquet";
    run(room.path(), &format!("evaluate {both} --metrics ndcg@10")).ok();
    assert_eq!(pair("both.parquet"), expected);
}

#[test]
fn threads_and_row_order_do_not_change_the_result() {
    let room = room();
    let made = systems(4, 300, &[0.0, 0.01], false);
    metrics(room.path(), "a", "ndcg@10", &made[0]);
    metrics(room.path(), "b", "ndcg@10", &made[1]);
    let printed = |options: &str| run(room.path(), &format!("compare a b --json {options}")).ok().stdout;
    let expected = printed("--threads 1 --output one");
    assert_eq!(printed("--threads 3 --output three"), expected);
    assert_eq!(fs::read(room.path().join("one")).unwrap(), fs::read(room.path().join("three")).unwrap());
    let backwards: Vec<_> = made[1].iter().rev().cloned().collect();
    metrics(room.path(), "b", "ndcg@10", &backwards);
    assert_eq!(printed(""), expected);
    assert_ne!(printed("--seed 2"), expected);
    let described = run(room.path(), "describe one --json").ok().stdout;
    let described: Value = serde_json::from_str(&described).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(described["pairs"][0]["mean"], expected["pairs"][0]["difference"]);
    assert_eq!((&described["metric"], &described["convention"]), (&"ndcg@10".into(), &"planetree".into()));
}

#[test]
fn a_file_compared_with_itself_is_all_ties() {
    let room = room();
    metrics(room.path(), "a", "ndcg@10", &systems(4, 30, &[0.0], false)[0]);
    let ran = run(room.path(), "compare a a").ok();
    assert!(ran.stderr.contains("note: both systems have the same value for every query"), "{}", ran.stderr);
    assert!(ran.stdout.contains("B better 0, same 30, A better 0"), "{}", ran.stdout);
    let Some(compared) = agrees_with_scipy(room.path(), "a a") else { return };
    assert_eq!((&compared["pairs"][0]["p"], &compared["pairs"][0]["differs"]), (&1.0.into(), &false.into()));
    assert_eq!(compared["pairs"][0]["t_test"], Value::Null);
    assert_eq!(compared["systems"][1]["name"], "a (2)");
}

#[test]
fn one_query_causes_a_note() {
    let room = room();
    for (name, value) in [("a", 0.25), ("b", 0.75)] {
        metrics(room.path(), name, "ndcg@10", &[("q".to_owned(), Some(value))]);
    }
    let ran = run(room.path(), "compare a b").ok();
    assert!(
        ran.stderr.contains("note: there is only one query: no test can show a difference"),
        "{}",
        ran.stderr
    );
    let Some(compared) = agrees_with_scipy(room.path(), "a b") else { return };
    assert_eq!((&compared["pairs"][0]["p"], &compared["pairs"][0]["t_test"]), (&1.0.into(), &Value::Null));
}

#[test]
fn queries_without_a_value_are_excluded() {
    let room = room();
    let mut made = systems(6, 40, &[0.0, 0.05], false);
    made.iter_mut().for_each(|system| system[7].1 = None);
    metrics(room.path(), "a", "map", &made[0]);
    metrics(room.path(), "b", "map", &made[1]);
    let Some(compared) = agrees_with_scipy(room.path(), "a b --metric map") else { return };
    assert_eq!((&compared["queries"], &compared["uncounted_queries"]), (&39.into(), &1.into()));
    assert!(run(room.path(), "compare a b --metric map").ok().stdout.contains("39, and 1 without a value"));
}

#[test]
fn incomparable_files_are_rejected() {
    let room = room();
    let made = systems(8, 30, &[0.0, 0.05], false);
    let (good, other) = (&made[0], &made[1]);
    metrics(room.path(), "good", "ndcg@10", good);
    metrics(room.path(), "short", "ndcg@10", &other[..28]);
    metrics(room.path(), "twice", "ndcg@10", &[&other[..], &other[3..4]].concat());
    metrics_under(room.path(), "letor", "ndcg@10", "letor4", other);
    metrics(room.path(), "err", "err", other);
    let with = |value: Option<f64>| {
        let mut changed = other.clone();
        changed[5].1 = value;
        changed
    };
    metrics(room.path(), "nan", "ndcg@10", &with(Some(f64::NAN)));
    metrics(room.path(), "null", "ndcg@10", &with(None));
    metrics(room.path(), "empty", "ndcg@10", &[]);
    fs::write(room.path().join("text"), "0.5\n0.25\n").unwrap();
    let mut damaged = fs::read(room.path().join("good")).unwrap();
    let middle = damaged.len() / 3;
    damaged[middle] ^= 1;
    fs::write(room.path().join("damaged"), damaged).unwrap();
    for (files, problem, remedy) in [
        (
            "good short",
            "good and short: queries differ; 2 missing from short: q28, q29",
            "evaluate all systems on the same queries",
        ),
        (
            "good twice",
            "twice: query \"q3\" appears more than once",
            "remove the duplicate rows: each query may appear only once per system",
        ),
        ("good nan", "nan: query \"q5\": ndcg@10 is NaN", "evaluate it again"),
        (
            "good null",
            "good and null: only one of the two has a value for q5",
            "the same labels and convention",
        ),
        ("good empty", "empty: no queries", "that contains queries"),
        (
            "good letor",
            "good and letor: conventions differ: planetree and letor4",
            "with the same --convention",
        ),
        (
            "good good --convention letor4",
            "--convention and good: conventions differ: letor4 and planetree",
            "with the same --convention",
        ),
        (
            "good err",
            "err: no column \"ndcg@10\"; available metrics: err",
            "evaluate again with --metrics ndcg@10",
        ),
        (
            "good good --metric ndgc@10",
            "good: no column \"ndgc@10\"; available metrics: ndcg@10",
            "did you mean ndcg@10?",
        ),
        ("good damaged", "damaged: damaged: ", "restore the file"),
        ("good absent", "absent: ", "check the spelling"),
        ("good text", "text: ", ""),
    ] {
        let ran = run(room.path(), &format!("compare {files} --output out")).failed();
        assert!(ran.stderr.contains(problem) && ran.stderr.contains(remedy), "{files}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !room.path().join("out").exists(), "{files}");
    }
    for misuse in [
        "good",
        "good good --alpha 0",
        "good good --level 1",
        "good good --permutations 0",
        "good good --convention letor5",
        "good good --test sign",
    ] {
        assert_eq!(run(room.path(), &format!("compare {misuse}")).code, 2, "{misuse}");
    }
    // Only an earlier table of differences is replaced.
    let ran = run(room.path(), "compare good good --output err").failed();
    assert!(ran.stderr.contains("refusing to overwrite: this is metrics, not differences"), "{}", ran.stderr);
    run(room.path(), "compare good good --output out").ok();
    run(room.path(), "compare good good --output out").ok();
}

#[test]
fn files_in_a_bucket_are_compared_like_local_files() {
    let Some(server) = crate::support::object_stores::moto() else { return };
    let room = room();
    let environment = crate::support::object_stores::environment(server.port);
    let made = systems(5, 60, &[0.0, 0.05], false);
    for (name, values) in ["a", "b"].iter().zip(&made) {
        metrics(room.path(), name, "ndcg@10", values);
        crate::support::object_stores::put(server.port, &room.path().join(name), name);
    }
    let local = run(room.path(), "compare a b --json --output d").ok().stdout;
    let remote = "compare s3://bucket/a s3://bucket/b --json --output s3://bucket/d";
    let remote = run_with(room.path(), remote, &environment).ok().stdout;
    assert_eq!(remote.replace("s3://bucket/", ""), local);
    let described = run_with(room.path(), "describe s3://bucket/d --json", &environment).ok().stdout;
    let expected = run(room.path(), "describe d --json").ok().stdout;
    assert_eq!(described.replace("s3://bucket/", ""), expected);
}

#[test]
fn runs_of_trec_eval_are_compared_by_their_judgments() {
    let room = room();
    let at = room.path();
    let (mut qrels, mut good, mut bad) = (String::new(), String::new(), String::new());
    for query in 0..40 {
        for document in 0..6 {
            let relevance = i32::from(document == query % 3);
            qrels += &format!("{query} 0 d{document} {relevance}\n");
            good += &format!(
                "{query} Q0 d{document} 1 {} good\n",
                f64::from(relevance) + 0.01 * f64::from(document)
            );
            bad += &format!("{query} Q0 d{document} 1 {} bad\n", -f64::from(relevance));
        }
    }
    for (name, text) in [("qrels.txt", qrels), ("good.run", good), ("bad.run", bad)] {
        fs::write(at.join(name), text).unwrap();
    }
    let options = "--run bad=bad.run --run good=good.run --qrels qrels.txt --metric map";
    let ran = run(at, &format!("--quiet compare {options} --json")).ok();
    let compared: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for (system, name) in ["bad.run", "good.run"].iter().enumerate() {
        let evaluated =
            run(at, &format!("--quiet evaluate --run {name} --qrels qrels.txt --metrics map --json")).ok();
        let evaluated: serde_json::Value = serde_json::from_str(&evaluated.stdout).unwrap();
        let [found, expected] =
            [&compared["systems"][system]["mean"], &evaluated["systems"][0]["means"]["map"]];
        assert_close(found.as_f64().unwrap(), expected.as_f64().unwrap(), 1e-12, name);
    }
    let table = run(at, &format!("--quiet compare {options} --format markdown")).ok().stdout;
    assert!(table.contains("| 2 | good | **1.0000** <sup>1</sup> |"), "{table}");
    let table = run(at, &format!("--quiet compare {options} --format latex")).ok().stdout;
    assert!(table.contains("2 & good & \\textbf{1.0000}$^{1}$ \\\\"), "{table}");
    let refused = "compare --run good.run --run bad.run";
    assert_refused(refused, &run(at, refused), 2, &["--qrels"]);
}

#[test]
fn metrics_in_text_are_answered_with_parquet() {
    let room = room();
    let at = room.path();
    fs::write(at.join("a.csv"), "query_id,documents,relevant,ndcg@10\n1,6,1,0.5\n").unwrap();
    fs::copy(at.join("a.csv"), at.join("b.csv")).unwrap();
    let ran = run(at, "compare a.csv b.csv");
    let remedy = "per-query metrics are compared from Parquet";
    assert_refused("compare a.csv b.csv", &ran, 1, &["not predictions: no column score", remedy]);
}

#[test]
fn a_run_before_a_file_is_the_one_that_the_file_is_compared_with() {
    let room = room();
    let at = room.path();
    let (mut qrels, mut run_text, mut table) =
        (String::new(), String::new(), "query_id,doc_id,score\n".to_owned());
    for query in 0..40 {
        for document in 0..6 {
            let relevance = i32::from(document == query % 3);
            qrels += &format!("{query} 0 d{document} {relevance}\n");
            run_text += &format!("{query} Q0 d{document} 1 {relevance} good\n");
            table += &format!("{query},d{document},{}\n", -relevance);
        }
    }
    for (name, text) in [("q.qrels", qrels), ("good.run", run_text), ("bad.csv", table)] {
        fs::write(at.join(name), text).unwrap();
    }
    let (good, bad) = ("--run good=good.run", "bad=bad.csv");
    let gate = "--qrels q.qrels --metric map --fail-if-worse";
    let worse = format!("compare {good} {bad} {gate}");
    assert_refused(&worse, &run(at, &worse), 3, &["bad is worse than good by map"]);
    run(at, &format!("compare {bad} {good} {gate}")).ok();
    // The order of a pipeline file holds, too.
    for (keys, code) in [
        ("run = { good = \"good.run\" }\nfiles = { bad = \"bad.csv\" }", 3),
        ("files = { bad = \"bad.csv\" }\nrun = { good = \"good.run\" }", 0),
    ] {
        let step = format!(
            "[step.gate]\nkind = \"compare\"\n{keys}\nqrels = \"q.qrels\"\nmetric = \"map\"\nfail_if_worse = true\n"
        );
        fs::write(at.join("p.toml"), step).unwrap();
        let ran = run(at, &format!("run p.toml --output run-{code}"));
        assert_eq!(ran.code, code, "{keys}: {}", ran.stderr);
    }
}
