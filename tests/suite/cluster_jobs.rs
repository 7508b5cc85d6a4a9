//! Commands other than training on a cluster give the same bytes as on one machine.

use crate::support::cluster::Cluster;
use crate::support::object_stores::{environment, moto};
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

fn bytes(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).unwrap()
}

/// A dataset `data` of several row groups, and a model `m` trained on it.
fn with_model(directory: &Path, queries: usize, trees: usize) {
    dataset(directory, "data", &graded(21, queries, 25), "--partition-rows 300");
    train(directory, &format!("--data data --set num_trees={trees} --set learning_rate=0.3 --model m"));
}

#[test]
fn predictions_by_a_cluster_have_the_same_bytes() {
    let room = room();
    let at = room.path();
    with_model(at, 120, 5);
    train(at, "--preset rf-pair --data data --set num_trees=3 --model pairs");
    let cluster = Cluster::start(2, &[]);
    for model in ["m", "pairs"] {
        let predict = |rest: &str| run(at, &format!("predict --model {model} --data data {rest}")).ok();
        predict("--output expected --scores expected.txt");
        let shares = format!("{}?shares=5", cluster.url());
        for address in [cluster.url().as_str(), shares.as_str(), "local:2"] {
            let ran = predict(&format!(
                "--output p --scores p.txt --stats stats.json --cluster {address} --threads 2"
            ));
            assert!(bytes(at, "p") == bytes(at, "expected"), "{model} {address}");
            assert!(bytes(at, "p.txt") == bytes(at, "expected.txt"), "{model} {address}");
            assert!(ran.stderr.contains("3,000 rows scored"), "{}", ran.stderr);
            let stats = json_of(&at.join("stats.json"));
            assert_eq!(stats["rows"], 3000);
            assert!(stats["predict_s"].as_f64().unwrap() > 0.0, "{stats}");
            assert!(stats["cluster"]["received_bytes"].as_u64().unwrap() > 10_000, "{stats}");
        }
    }
}

#[test]
fn an_evaluation_by_a_cluster_prints_and_writes_the_same() {
    let room = room();
    let at = room.path();
    with_model(at, 120, 5);
    run(at, "predict --model m --data data --output p").ok();
    // The same rows with a column to group by: in row groups that end within queries, and shuffled.
    let cut = "import pyarrow.parquet as p; t = p.read_table('p').replace_schema_metadata(None); \
               t = t.append_column('market', [[str(int(q) % 3) for q in t['query_id'].to_pylist()]]); \
               t = t.set_column(1, 'doc_id', [['d%d' % i for i in range(t.num_rows)]]); \
               p.write_table(t, 'cut.parquet', row_group_size=70); \
               p.write_table(t.take([(i * 7) % t.num_rows for i in range(t.num_rows)]), 'mixed.parquet', \
               row_group_size=500)";
    if !run_python(at, cut) {
        return;
    }
    let cluster = Cluster::start(2, &[]);
    for (file, rest) in [
        ("p", "--metrics ndcg@10,err,map,mrr,p@5,auc"),
        ("p", "--convention letor4,ties=worst"),
        ("cut.parquet", "--by market --write-run run"),
        ("mixed.parquet", "--metrics ndcg@10"),
    ] {
        let evaluate = |cluster: &str| {
            let arguments = format!("evaluate --predictions {file} {rest} --json --output metrics {cluster}");
            let printed = run(at, &arguments).ok().stdout;
            let run_file = rest.contains("--write-run").then(|| bytes(at, "run"));
            (printed, bytes(at, "metrics"), run_file)
        };
        let expected = evaluate("");
        for address in [cluster.url().as_str(), "local:2"] {
            assert!(evaluate(&format!("--cluster {address}")) == expected, "{file} {rest} {address}");
        }
    }
}

#[test]
fn a_prediction_survives_the_loss_of_an_executor() {
    let room = room();
    let at = room.path();
    dataset(at, "small", &graded(22, 60, 25), "");
    train(at, "--data small --set num_trees=200 --set num_leaves=31 --set max_depth=-1 --model m");
    dataset(at, "data", &graded(21, 4000, 50), "--partition-rows 10000");
    run(at, "predict --model m --data data --output expected").ok();
    let mut cluster = Cluster::start(2, &[]);
    let arguments = format!("predict --model m --data data --output p --cluster {}", cluster.url());
    // A prediction in progress: the first job lists the executors, the second scores some rows. `None` if it ended
    // before it was observed, as it may on a busy machine.
    let in_progress = || -> Option<Child> {
        let jobs = cluster.jobs_of(1) + 2;
        let mut prediction = command(at, &arguments).stderr(Stdio::piped()).spawn().unwrap();
        cluster.wait_for_jobs(1, jobs, &mut prediction).then_some(prediction)
    };
    let before = names_in(at);
    let interrupted = || {
        let prediction = in_progress()?;
        signal(&prediction, "-INT");
        Some(Ran::of(prediction.wait_with_output().unwrap())).filter(|ran| ran.code != 0)
    };
    let ran = (0..10).find_map(|_| {
        let ran = interrupted();
        if ran.is_none() {
            fs::remove_file(at.join("p")).unwrap();
        }
        ran
    });
    let ran = ran.expect("all ten predictions ended before the interrupt").failed();
    assert!(ran.stderr.contains("error: interrupted"), "{}", ran.stderr);
    assert_eq!(names_in(at), before);
    let prediction =
        (0..10).find_map(|_| in_progress()).expect("all ten predictions ended before they were observed");
    cluster.executors[1].kill().unwrap(); // SIGKILL
    Ran::of(prediction.wait_with_output().unwrap()).ok();
    assert_same_bytes(at, "p", "expected", "an executor was lost");
    // The remaining executor suffices.
    fs::remove_file(at.join("p")).unwrap();
    run(at, &arguments).ok();
    assert_same_bytes(at, "p", "expected", "one executor");
}

#[test]
fn datasets_and_predictions_in_an_object_store_need_no_shared_disk() {
    let Some(server) = moto() else { return };
    let environment = environment(server.port);
    let room = room();
    let at = room.path();
    with_model(at, 60, 5);
    run(at, "predict --model m --data data --output expected").ok();
    let expected = run(at, "evaluate --predictions p=expected --json").ok().stdout;
    run_with(at, "convert data.txt --output s3://bucket/data --partition-rows 300", &environment).ok();
    let cluster = Cluster::start(2, &environment);
    // The model is a local file of the driver, which executors cannot read.
    let predict = "--quiet predict --model m --data s3://bucket/data --output s3://bucket/p";
    run_with(at, &format!("{predict} --cluster {}", cluster.url()), &environment).ok();
    let evaluate = format!("evaluate --predictions p=s3://bucket/p --json --cluster {}", cluster.url());
    let printed = run_with(at, &evaluate, &environment).ok().stdout;
    let without_location = |text: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["systems"][0]["ranking"] = serde_json::Value::Null;
        value
    };
    assert_eq!(without_location(&printed), without_location(&expected));
    let query = |text: &str, rest: &str| {
        let mut command = command(at, &format!("sql --format csv {rest}"));
        command.envs(environment.iter().cloned());
        Ran::of(command.args(["-c", text]).output().unwrap()).ok().stdout
    };
    let text = "SELECT label, count(*), max(score) AS most FROM 'PLACE' GROUP BY label ORDER BY label";
    let there = format!("--allow-path s3://bucket --cluster {}", cluster.url());
    let expected = query(&text.replace("PLACE", "expected"), "");
    assert_eq!(query(&text.replace("PLACE", "s3://bucket/p"), &there), expected);
}

#[test]
fn errors_of_other_commands_name_the_problem_and_a_remedy() {
    let room = room();
    let at = room.path();
    with_model(at, 20, 2);
    run(at, "predict --model m --data data --output p --scores s.txt").ok();
    let fails = |arguments: &str, code: i32, messages: &[&str]| {
        assert_refused(arguments, &run(at, arguments), code, messages);
    };
    let unused = free_port();
    for command in ["predict --model m --data data --output q", "evaluate --predictions p"] {
        let none = ["no scheduler", "planetree scheduler"];
        fails(&format!("{command} --cluster df://127.0.0.1:{unused}"), 1, &none);
        let elsewhere = ["executors cannot read a local path", "s3://"];
        fails(&format!("{command} --cluster df://10.99.99.99:1"), 1, &elsewhere);
        fails(&format!("{command} --cluster http://host"), 2, &["df://host:port"]);
    }
    let own = ["a local cluster uses neither certificates nor a token", "df://HOST:PORT"];
    fails("predict --model m --data data --output q --cluster local:2 --token-file token", 2, &own);
    assert!(!at.join("q").exists());
    let alone = ["cannot be evaluated on a cluster", "remove --cluster"];
    fails("evaluate --scores s.txt --data data --cluster local:1", 2, &alone);
    fails("evaluate --predictions p --labels data --cluster local:1", 2, &alone);
    // Damage that only executors notice: the driver does not read rows.
    let cluster = Cluster::start(1, &[]);
    damage_dataset(&at.join("data"));
    let predict = format!("predict --model m --data data --output q --cluster {}", cluster.url());
    fails(&predict, 1, &["executor ", "damaged", "help: "]);
    assert!(!at.join("q").exists());
}

/// Runs a query with CSV output.
fn ask(directory: &Path, query: &str, rest: &str) -> Ran {
    let mut command = command(directory, &format!("sql --format csv {rest}"));
    Ran::of(command.args(["-c", query]).output().unwrap())
}

#[test]
fn queries_on_a_cluster_give_the_same_rows() {
    let room = room();
    let at = room.path();
    with_model(at, 60, 5);
    run(at, "predict --model m --data data --output p.parquet").ok();
    fs::write(at.join("names.csv"), "label,name\n0,bad\n1,fair\n2,good\n3,fine\n4,best\n").unwrap();
    let cluster = Cluster::start(2, &[]);
    for query in [
        "SELECT count(*), min(f1), max(f1), count(DISTINCT query_id) FROM data",
        "SELECT label, count(*) AS rows, max(f2) FROM data GROUP BY label ORDER BY label",
        "SELECT query_id, ndcg(label, score, 10, 'planetree,ties=worst') AS it, auc(label, score) FROM 'p.parquet' \
         GROUP BY query_id ORDER BY query_id",
        "SELECT exact_avg(it) FROM (SELECT err(label, score, 5, 'planetree,ties=worst') AS it \
         FROM 'p.parquet' GROUP BY query_id)",
        "SELECT count(*), sum(CAST(d.label AS INT)) FROM data d JOIN (SELECT DISTINCT query_id FROM 'p.parquet' WHERE rank = 1) q \
         ON d.query_id = q.query_id WHERE d.f1 > 0",
        "SELECT query_id, label, row_number() OVER (PARTITION BY query_id ORDER BY rank) AS r FROM 'p.parquet' \
         ORDER BY query_id, r LIMIT 20",
        "SELECT name, count(*) FROM 'p.parquet' JOIN 'names.csv' USING (label) GROUP BY name ORDER BY name",
        "SELECT * FROM (SELECT DISTINCT query_id FROM 'p.parquet' ORDER BY query_id DESC) LIMIT 3",
        "WITH c AS (SELECT query_id, score FROM 'p.parquet' ORDER BY query_id DESC, score) SELECT * FROM c WHERE score > 0 LIMIT 7",
        "SELECT ndcg(l, s, 10, 'planetree,ties=worst') AS it FROM (SELECT label AS l, score AS s, query_id || 'x' AS q \
         FROM 'p.parquet') GROUP BY q ORDER BY it",
        "SELECT ndcg_pooled(label, score, 10, 'planetree,ties=worst') FROM 'p.parquet'",
        "SELECT 1 + 1",
        "SHOW TABLES",
    ] {
        let expected = ask(at, query, "").ok().stdout;
        let rest = format!("--cluster {}", cluster.url());
        assert_eq!(ask(at, query, &rest).ok().stdout, expected, "{query}");
    }
    let query = "SELECT label, count(*) FROM data GROUP BY label ORDER BY label";
    let expected = ask(at, query, "").ok().stdout;
    assert_eq!(ask(at, query, "--cluster local:2 --threads 2").ok().stdout, expected);
    let copy = "COPY (SELECT query_id, score FROM 'p.parquet' WHERE rank <= 3 ORDER BY query_id, score) TO 'top.csv'";
    ask(at, copy, "--allow-write .").ok();
    let expected = bytes(at, "top.csv");
    fs::remove_file(at.join("top.csv")).unwrap();
    ask(at, copy, &format!("--allow-write . --cluster {}", cluster.url())).ok();
    assert!(bytes(at, "top.csv") == expected);
}

#[test]
fn queries_that_a_cluster_cannot_run_are_refused() {
    let room = room();
    let at = room.path();
    with_model(at, 20, 2);
    let cluster = Cluster::start(1, &[]);
    let fails = |query: &str, rest: &str, messages: &[&str]| {
        assert_refused(query, &ask(at, query, rest), 1, messages);
    };
    let here = format!("--cluster {}", cluster.url());
    fails("SELECT * FROM score('m', 'data')", &here, &["score cannot run on a cluster", "remove --cluster"]);
    fails(
        "SELECT planetree_score('m', f1, f2) FROM data",
        &here,
        &["planetree_score cannot run on a cluster"],
    );
    let order = ["its value depends on the order of rows", "remove --cluster", "ties=worst"];
    fails("SELECT rank_in_query(f1) OVER (PARTITION BY query_id) FROM data", &here, &order);
    fails("SELECT query_id, ndcg(label, f1, 10) FROM data GROUP BY query_id", &here, &order);
    fails("CREATE TABLE t AS SELECT * FROM data", &here, &["CREATE TABLE cannot run on a cluster"]);
    fails("EXPLAIN SELECT * FROM data", &here, &["EXPLAIN cannot run on a cluster"]);
    fails("SELECT nothing FROM data", &here, &["nothing"]);
    fails(
        "SELECT auc(label, f1) FROM (SELECT label, f1 FROM data)",
        &here,
        &[
            "error: auc: rows of several queries, such as \"",
            "help: add GROUP BY query_id, or call auc_pooled",
        ],
    );
    fails(
        "SELECT CAST(query_id || 'x' AS INT) FROM data",
        &here,
        &["error: query on http://127.0.0.1:", "if the query is right"],
    );
    let unused = free_port();
    fails(
        "SELECT 1",
        &format!("--cluster df://127.0.0.1:{unused}"),
        &["no scheduler", "planetree scheduler"],
    );
}

#[test]
fn a_pipeline_works_on_a_cluster() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(21, 60, 25), "--partition-rows 300");
    let pipeline = |cluster: &str| {
        format!(
            r#"
[pipeline]
name = "p"
[step.model]
kind = "train"
data = "data"
set = {{ num_trees = 3 }}
{cluster}
[step.scores]
kind = "predict"
model = "model"
data = "data"
{cluster}
[step.quality]
kind = "evaluate"
predictions = "scores"
{cluster}
[step.labels]
kind = "sql"
table = "s=scores"
command = "SELECT label, count(*) AS rows FROM s GROUP BY label ORDER BY label"
output = "labels.csv"
{cluster}
"#
        )
    };
    fs::write(at.join("here.toml"), pipeline("")).unwrap();
    fs::write(at.join("there.toml"), pipeline("cluster = \"local:2\"")).unwrap();
    for name in ["here", "there"] {
        run(at, &format!("run {name}.toml --output {name}")).ok();
    }
    for file in ["model.parquet", "scores.parquet", "quality.parquet", "labels.csv"] {
        assert!(bytes(&at.join("here"), file) == bytes(&at.join("there"), file), "{file}");
    }
}

#[test]
fn a_cluster_refuses_clients_without_its_token() {
    let room = room();
    let at = room.path();
    with_model(at, 20, 2);
    fs::write(at.join("token"), "a-secret-test-token\n").unwrap();
    fs::write(at.join("wrong"), "a-wrong-test-token\n").unwrap();
    fs::write(at.join("short"), "word").unwrap();
    let option = |name: &str| format!("--token-file {}", at.join(name).display());
    let mut cluster = Cluster::start_with(2, &[], &option("token"));
    run(at, "predict --model m --data data --output expected").ok();
    let predict = format!("predict --model m --data data --output p --cluster {}", cluster.url());
    run(at, &format!("{predict} {}", option("token"))).ok();
    assert!(bytes(at, "p") == bytes(at, "expected"));
    let query = "SELECT label, count(*) FROM data GROUP BY label ORDER BY label";
    let rest = format!("--cluster {} {}", cluster.url(), option("token"));
    assert_eq!(ask(at, query, &rest).ok().stdout, ask(at, query, "").ok().stdout);
    for options in [String::new(), option("wrong")] {
        let ran = run(at, &format!("{predict} {options}")).failed();
        assert!(ran.stderr.contains("the token is missing or wrong"), "{}", ran.stderr);
        assert!(ran.stderr.contains("--token-file"), "{}", ran.stderr);
        let executor = format!("--quiet executor --scheduler 127.0.0.1:{} {options}", cluster.port());
        let ran = run(at, &executor).failed();
        assert!(ran.stderr.contains("token"), "{}", ran.stderr);
    }
    let ran = run(at, &format!("{predict} {}", option("short"))).failed();
    assert!(ran.stderr.contains("a token is one word"), "{}", ran.stderr);
    assert_eq!(run(at, &format!("scheduler --bind 0.0.0.0 {}", option("token"))).code, 2);
    let is_running = |executor: &mut Child| executor.try_wait().unwrap().is_none();
    assert!(cluster.executors.iter_mut().all(is_running), "an executor ended");
}
