//! The shipped pipelines, each run on suitable data.

use crate::support::object_stores::{environment, moto, put, with_client};
use crate::support::pipelines::{manifest, prepared};
use crate::support::*;
use planetree_run::pipeline::{RunStatus, StepStatus};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(crate::support::ROOT)
}

/// Options that make a pipeline fast, and words that its output contains. The data are `sample_data`, also under other
/// names.
const SHIPPED: [(&str, &str, &[&str]); 20] = [
    ("bins_sensitivity", "--set bins=5,20 --set trees=5", &["5", "20", "rmse"]),
    (
        "compare_rankers",
        "--set presets=mart,lambdamart --set trees=5 --set stop_after=3 --jobs 2",
        &["mart", "lambdamart", "p"],
    ),
    (
        "forest_comparison",
        "--set trees=3 --set boosted_trees=3",
        &["rf-rand", "rf-list", "lambdamart", "Holm"],
    ),
    (
        "forest_features",
        "--set trees=2 --set counts=1,99 --set presets=rf-point,rf-list",
        &["features_per_node", "rf-list"],
    ),
    (
        "forest_learning_curve",
        "--set trees=2 --set shares=0.3,1.0 --set presets=rf-point,lambdamart",
        &["share of the training queries", "lambdamart"],
    ),
    ("forest_min_rows", "--set trees=2 --set min_rows=2,20 --set presets=rf-hybrid", &["min_data_to_split"]),
    ("forest_size", "--set trees=3 --set presets=rf-point,rf-list", &["test.tree", "oob"]),
    ("forest_strength", "--set trees=2 --set presets=rf-point,rf-list", &["expected ndcg", "train"]),
    ("forest_subsample", "--set trees=2 --set fractions=0.05,0.63 --set presets=rf-list", &["0.05", "0.63"]),
    ("lambdamart", "--set trees=5", &["ndcg@10", "splits"]),
    ("letor_cv", "--set data=parts --set trees=5", &["ndcg@10", "mean"]),
    ("nightly_s3", "", &[]), // tested below, with a bucket
    (
        "pgbrt_vs_exact",
        "--set trees=5 --set exact_depths=2 --set pgbrt_depths=2,3",
        &["exact-2", "pgbrt-2", "pgbrt-3"],
    ),
    ("quickstart", "--set trees=5", &["mart", "lambdamart", "ndcg@10", "rows"]),
    ("yahoo", "--set data=yahoo --set trees=5", &["err", "ndcg@10"]),
    (
        "papers/all_rankers",
        "--set presets=rankboost,adarank,coordinate-ascent",
        &["rotation-rankboost", "rotation-adarank", "rotation-coordinate-ascent", "random-expected"],
    ),
    (
        "papers/challenge",
        "--set trees=4 --set stop_after=2",
        &["M1", "M8", "M12", "blend", "unit_variance", "equal weights", "Holm"],
    ),
    (
        "papers/thesis_cost",
        "--set trees=6 --set forest_trees=6 --set every=3",
        &["prec@5", "tree cost", "p@5"],
    ),
    (
        "papers/thesis_missing",
        "--set trees=3 --set filling_trees=3 --set sweeps=1",
        &["zero", "high", "median", "predicted", "rmse"],
    ),
    (
        "papers/thesis_transfer",
        "--set trees=3 --set forest_trees=5 --set shares=1,50",
        &["baseline", "top-1", "top-50", "with-score", "with-cumulative", "with-all", "err"],
    ),
];

/// The titles of charts in the reports of some pipelines.
const CHARTS: [(&str, &str); 15] = [
    ("bins_sensitivity", "ndcg@10 by bins"),
    ("bins_sensitivity", "rmse by bins"),
    ("forest_comparison", "Difference of the mean ndcg@10"),
    ("forest_features", "ndcg@10 by features_per_node"),
    ("forest_learning_curve", "ndcg@10 by share of the training queries"),
    ("forest_min_rows", "map by min_data_to_split"),
    ("forest_size", "ndcg@10 of all trainings"),
    ("forest_size", "ndcg@10 of rounds-rf-list"),
    ("forest_strength", "Mean tree of each forest on test"),
    ("forest_strength", "Mean tree of strength-rf-list"),
    ("forest_subsample", "ndcg@10 by query_fraction"),
    ("pgbrt_vs_exact", "err by depth"),
    ("pgbrt_vs_exact", "ndcg@10 by depth"),
    ("thesis_cost", "prec@5 against cost"),
    ("thesis_cost", "Cost by tree of forest-1"),
];

#[test]
fn every_shipped_pipeline_runs_on_sample_data() {
    let room = room();
    let at = |name: &str| room.path().join(name);
    let sample = root().join("sample_data");
    std::os::unix::fs::symlink(&sample, at("sample_data")).unwrap();
    fs::create_dir(at("parts")).unwrap();
    for (number, name) in ["train", "vali", "test", "train", "vali"].into_iter().enumerate() {
        let text = fs::read_to_string(sample.join(format!("{name}.txt"))).unwrap();
        fs::write(
            at("parts").join(format!("S{}.txt", number + 1)),
            text.replace("qid:", &format!("qid:{number}-")),
        )
        .unwrap();
    }
    fs::create_dir(at("yahoo")).unwrap();
    for (from, to) in [("train", "train"), ("vali", "valid"), ("test", "test")] {
        fs::copy(sample.join(format!("{from}.txt")), at("yahoo").join(format!("set1.{to}.txt"))).unwrap();
    }
    let mut files: Vec<String> = names_in(&root().join("pipelines"));
    files.extend(names_in(&root().join("pipelines/papers")).iter().map(|name| format!("papers/{name}")));
    files.retain(|name| name.ends_with(".toml"));
    let names: Vec<String> = SHIPPED.iter().map(|(name, _, _)| format!("{name}.toml")).collect();
    assert_eq!(files, names, "every shipped pipeline is tested");
    for (name, options, words) in SHIPPED.iter().filter(|(name, _, _)| *name != "nightly_s3") {
        let file = root().join("pipelines").join(format!("{name}.toml"));
        let arguments = format!("run {} {options}", file.display());
        let ran = run(room.path(), &arguments).ok();
        for word in *words {
            assert!(ran.stdout.contains(word), "{name}: {word} is not in\n{}", ran.stdout);
        }
        let name = name.rsplit('/').next().unwrap();
        let record = manifest(&at("runs").join(name));
        assert_eq!(record.status, RunStatus::Complete, "{name}");
        assert_eq!(record.pipeline, name);
        assert!(!record.description.is_empty(), "{name}");
        // A report as a step of the run is complete and has the main chart.
        let pages =
            record.steps.iter().filter(|step| step.kind == "report").map(|step| &step.outputs["output"]);
        for page in pages {
            let page = fs::read_to_string(at("runs").join(name).join(page)).unwrap();
            assert!(page.contains("</html>") && !page.contains("not complete"), "{name}");
            for (_, chart) in CHARTS.iter().filter(|(pipeline, _)| *pipeline == name) {
                assert!(page.contains(&format!("\"label\":\"{chart}")), "{name}: no chart {chart}");
            }
        }
        run(room.path(), &arguments).ok();
        let record = manifest(&at("runs").join(name));
        assert!(record.steps.iter().all(|step| step.status == StepStatus::Skipped), "{name}: {record:?}");
    }
}

#[test]
fn a_nightly_run_uses_only_its_bucket() {
    let room = room();
    let Some(server) = moto() else { return };
    let mut variables = environment(server.port);
    let local = room.path().join("local");
    let temporary = room.path().join("temporary");
    for directory in [&local, &temporary] {
        fs::create_dir(directory).unwrap();
    }
    variables.push(("TMPDIR".to_owned(), temporary.display().to_string()));
    for name in ["train", "vali", "test"] {
        let file: PathBuf = root().join("sample_data").join(format!("{name}.txt"));
        put(server.port, &file, &format!("judgments/2026-11-07/{name}/part-1.txt"));
    }
    let file = root().join("pipelines/nightly_s3.toml");
    let arguments =
        format!("run {} --set bucket=s3://bucket --set date=2026-11-07 --set trees=5", file.display());
    let go = |options: &str| run_with(&local, &format!("{arguments} {options}"), &variables);
    let plan = go("--dry-run").ok().stdout;
    assert!(plan.contains("run directory s3://bucket/runs/2026-11-07\n"), "{plan}");
    let ran = go("").ok();
    let metrics: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(metrics.is_object(), "{}", ran.stdout);
    assert_eq!(names_in(&local), [""; 0], "no local files");
    let kept: Vec<String> =
        names_in(&temporary).into_iter().filter(|name| name != "planetree-locks").collect();
    assert!(kept.iter().all(|name| name == "planetree-bins"), "only caches: {kept:?}");
    let list = || {
        with_client(
            server.port,
            "for o in s3.list_objects_v2(Bucket='bucket')['Contents']:\n  print(o['Key'], o['ETag'], o['LastModified'])\n",
        )
    };
    let there = list();
    for name in [
        "models/2026-11-07.parquet",
        "runs/2026-11-07/run.json",
        "runs/2026-11-07/steps.parquet",
        "runs/2026-11-07/metrics.json",
        "runs/2026-11-07/report.html",
        "runs/2026-11-07/train/_manifest.json",
    ] {
        assert!(there.contains(name), "{name} is not in\n{there}");
    }
    assert!(!there.contains("run.lock"), "{there}");
    let described =
        run_with(&local, "describe s3://bucket/runs/2026-11-07/steps.parquet", &variables).ok().stdout;
    assert!(described.contains("ranker                   train     done"), "{described}");
    // The second run skips all steps and writes only the record.
    let ran = go("").ok();
    assert!(ran.stderr.contains("0 steps run, 7 skipped"), "{}", ran.stderr);
    let but_record = |list: &str| -> Vec<String> {
        list.lines()
            .filter(|line| !line.contains("run.json") && !line.contains("steps.parquet"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(but_record(&list()), but_record(&there));
    // A deleted model is trained again, and the report runs again because the log contains times; other steps are skipped.
    with_client(server.port, "s3.delete_object(Bucket='bucket', Key='models/2026-11-07.parquet')");
    let ran = go("").ok();
    assert!(ran.stderr.contains("2 steps run, 5 skipped"), "{}", ran.stderr);
    // A killed run can be repeated.
    let mut child = command(&local, &format!("{arguments} --set trees=6 --force *"))
        .envs(variables.iter().cloned())
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the lock of the run", || list().contains("run.lock"));
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "the run ended before it was killed");
    go("--set trees=6").ok();
    assert!(!list().contains("run.lock"));
    assert_eq!(names_in(&local), [""; 0]);
    let ran = go("--set date=2026-11-08").failed();
    assert!(ran.stderr.contains("s3://bucket/judgments/2026-11-08/train: no such file"), "{}", ran.stderr);
}

#[test]
fn sql_report_export_and_import_are_steps() {
    let room = prepared(
        r#"
[pipeline]
name = "others"
[step.train]
kind = "convert"
input = "train.txt"
[step.model]
kind = "train"
data = "train"
set = { num_trees = 3, min_data_in_leaf = 2 }
[step.nodes]
kind = "sql"
table = { model = "model", data = "train" }
command = ["SELECT count(*) AS nodes FROM model", "SELECT count(*) AS rows FROM data"]
format = "csv"
[step.best]
kind = "sql"
table = { model = "model" }
file = "best.sql"
output = "best.parquet"
[step.outside]
for_each = { format = ["lightgbm", "xgboost"] }
kind = "export"
model = "model"
format = "{format}"
[step.inside]
for_each = { format = ["lightgbm", "xgboost"] }
kind = "import"
file = "outside-{format}"
[step.scores]
for_each = { model = ["model", "inside-lightgbm"] }
kind = "predict"
model = "{model}"
data = "train"
[step.same]
kind = "compare"
files = "scores-*"
json = true
[step.page]
kind = "report"
"#,
    );
    let at = |name: &str| room.path().join("runs/others").join(name);
    fs::write(room.path().join("best.sql"), "SELECT feature, sum(gain) AS gain FROM model GROUP BY feature")
        .unwrap();
    let ran = run(room.path(), "run p.toml").ok();
    assert!(ran.stdout.contains("rows\n600"), "{}", ran.stdout);
    let same: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("same.json")).unwrap()).unwrap();
    assert_eq!(same["pairs"][0]["difference"], 0.0, "{same}");
    assert!(at("outside-lightgbm.txt").exists() && at("outside-xgboost.json").exists());
    assert!(fs::read_to_string(at("page.html")).unwrap().contains("</html>"));
    let record = manifest(&room.path().join("runs/others"));
    assert_eq!(record.steps.last().unwrap().name, "page", "a report comes last");
    assert!(record.step("best").unwrap().rows > Some(0));
    let done = || {
        let record = manifest(&room.path().join("runs/others"));
        let done = record.steps.iter().filter(|step| step.status == StepStatus::Done);
        done.map(|step| step.name.clone()).collect::<Vec<_>>()
    };
    run(room.path(), "run p.toml").ok();
    assert_eq!(done(), [""; 0]);
    fs::write(room.path().join("best.sql"), "SELECT feature, max(gain) AS gain FROM model GROUP BY feature")
        .unwrap();
    run(room.path(), "run p.toml").ok();
    assert_eq!(done(), ["best", "page"]);
    let text = fs::read_to_string(room.path().join("p.toml")).unwrap();
    fs::write(room.path().join("p.toml"), text.replace("file = \"best.sql\"\n", "")).unwrap();
    let ran = run(room.path(), "run p.toml");
    assert!(ran.code == 2 && ran.stderr.contains("step best has no query"), "{}", ran.stderr);
}
