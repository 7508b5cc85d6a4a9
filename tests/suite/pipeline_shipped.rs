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
/// names. Pipelines of papers are fast by themselves on the sample data; see `pipeline_papers.rs`.
const SHIPPED: [(&str, &str, &[&str]); 6] = [
    (
        "compare_rankers",
        "--set presets=mart,lambdamart --set trees=5 --set stop_after=3 --jobs 2",
        &["mart", "lambdamart", "p"],
    ),
    ("lambdamart", "--set trees=5", &["ndcg@10", "splits"]),
    ("letor_cv", "--set data=parts --set trees=5", &["ndcg@10", "mean"]),
    ("nightly_s3", "", &[]), // tested below, with a bucket
    ("quickstart", "--set trees=5", &["mart", "lambdamart", "ndcg@10", "rows"]),
    ("yahoo", "--set data=yahoo --set trees=5", &["err", "ndcg@10"]),
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
        }
        run(room.path(), &arguments).ok();
        let record = manifest(&at("runs").join(name));
        assert!(record.steps.iter().all(|step| step.status == StepStatus::Skipped), "{name}: {record:?}");
    }
}

#[test]
fn the_readme_counts_the_shipped_pipelines() {
    let room = room();
    let listed = run(room.path(), "run --list").ok().stdout;
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let pipelines = listed.lines().filter(|line| !line.is_empty() && !line.starts_with("results of papers"));
    let said = format!("[pipelines/](pipelines) has {} pipelines", pipelines.count());
    assert!(readme.contains(&said), "{said}");
}

#[test]
fn each_metric_of_a_cross_validation_chooses_its_own_round() {
    let room = room();
    for name in ["train", "vali", "test"] {
        let file = root().join("sample_data").join(format!("{name}.txt"));
        run(room.path(), &format!("convert {} --output {name}", file.display())).ok();
    }
    let settings = "--preset mart --set num_trees=40 --set learning_rate=0.3";
    run(
        room.path(),
        &format!("cv --data train vali test {settings} --metrics err,ndcg@1,rmse --each-metric --output cv"),
    )
    .ok();
    run(
        room.path(),
        &format!(
            "train --data train --valid vali {settings} --set metric=err,ndcg@1,rmse --model all.parquet \
             --model-for err=err.parquet --model-for ndcg@1=ndcg@1.parquet --model-for rmse=rmse.parquet"
        ),
    )
    .ok();
    let mut rounds = Vec::new();
    for metric in ["err", "ndcg@1", "rmse"] {
        run(
            room.path(),
            &format!("predict --model {metric}.parquet --data test --output scores-{metric}.parquet"),
        )
        .ok();
        let query = |sql: String| {
            fs::write(room.path().join("query.sql"), sql).unwrap();
            run(room.path(), "sql --format csv -f query.sql").ok().stdout
        };
        let same = query(format!(
            "SELECT count(*) FROM (SELECT query_id, score FROM 'scores-{metric}.parquet' EXCEPT \
             SELECT query_id, score FROM 'cv/folds/1/predictions-{metric}.parquet')"
        ));
        assert_eq!(same.lines().last(), Some("0"), "{metric}: {same}");
        let judged = run(
            room.path(),
            &format!("evaluate --predictions scores-{metric}.parquet --metrics {metric} --json"),
        )
        .ok();
        let judged: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
        let folds = query(format!(
            "SELECT concat(value, '|', best_round, '|', trees) FROM 'cv/folds.parquet' \
             WHERE fold = 1 AND split = 'test' AND metric = '{metric}'"
        ));
        let fields: Vec<&str> = folds.lines().last().unwrap().split('|').collect();
        let [value, round, trees] = fields[..] else { panic!("{folds}") };
        assert_eq!(round, trees, "{metric}");
        assert!(judged.to_string().contains(&value[..8]), "{metric}: {value} is not in {judged}");
        rounds.push(round.to_owned());
    }
    rounds.dedup();
    assert!(rounds.len() > 1, "the metrics choose different rounds: {rounds:?}");
    let refused = run(room.path(), "cv --data train vali test --each-metric --no-valid --output other");
    assert!(refused.code == 2 && refused.stderr.contains("--no-valid"), "{}", refused.stderr);
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
    assert!(ran.stderr.contains("0 steps run, 9 skipped"), "{}", ran.stderr);
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
    assert!(ran.stderr.contains("2 steps run, 7 skipped"), "{}", ran.stderr);
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
