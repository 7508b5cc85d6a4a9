//! Access rules, rejected statements and errors of SQL; sources of queries and destinations of results.

use crate::support::sql::{sql, sql_in, tables};
use crate::support::*;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn queries_come_from_options_files_and_pipes() {
    let room = room();
    std::fs::write(
        room.path().join("q.sql"),
        "-- a comment; with a semicolon\nSELECT 2 AS b;\nSELECT ';' AS c;",
    )
    .unwrap();
    let ran = sql_in(room.path(), "--format csv -f q.sql", "SELECT 1 AS a", &[]).ok();
    assert_eq!(ran.stdout, "a\n1\nb\n2\nc\n;\n");
    let ran = run_stdin(room.path(), "sql --format ndjson", b"SELECT 1 AS a").ok();
    assert_eq!(ran.stdout, "{\"a\":1}\n");
    let ran = run_stdin(room.path(), "sql --format ndjson -f -", b"SELECT 1 AS a;").ok();
    assert_eq!(ran.stdout, "{\"a\":1}\n");
    let ran = run(tables(), "sql --timing -c SELEC").failed();
    assert!(ran.stderr.contains("syntax error"), "{}", ran.stderr);
    let ran = sql("--timing --format csv", "SELECT 1 AS a").ok();
    assert!(ran.stderr.starts_with("1 row in "), "{}", ran.stderr);
    for misuse in [
        "sql --format xml -c x",
        "sql --table nameless -c x",
        "sql --threads 0 -c x",
        "sql --memory-limit many -c x",
    ] {
        assert_eq!(run(tables(), misuse).code, 2, "{misuse}");
    }
    let ran = run(room.path(), "sql nowhere -c x").failed();
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
    let help = run(room.path(), "sql --help").ok().stdout;
    assert!(help.contains("Examples:") && help.contains("--allow-path"));
}

#[test]
fn tables_get_names_from_options_and_directories() {
    let ran =
        sql("--format csv . ", "SELECT count(*) AS n FROM predictions; SELECT count(*) AS n FROM test").ok();
    assert_eq!(ran.stdout, "n\n600\nn\n600\n");
    let folder = tables().display().to_string();
    let elsewhere = room();
    let go =
        |options: &str, query: &str| sql_in(elsewhere.path(), &format!("--format csv {options}"), query, &[]);
    let query = "SELECT count(*) AS n FROM p";
    assert_eq!(go(&format!("--table p={folder}/predictions.parquet"), query).ok().stdout, "n\n600\n");
    assert_eq!(
        go(&format!("{folder}/predictions.parquet"), "SELECT count(*) AS n FROM predictions").ok().stdout,
        "n\n600\n"
    );
    let query = "SELECT count(*) AS n FROM \"run/cv/folds\"";
    assert_ne!(go(&format!("--table run={folder}"), query).ok().stdout, "n\n0\n");
    // The run directory is a root, too.
    let query = format!("SELECT count(*) AS n FROM '{folder}/predictions.parquet'");
    assert_eq!(go(&folder, &query).ok().stdout, "n\n600\n");
    assert!(go("", &query).failed().stderr.contains("--allow-path"));
    assert_eq!(go(&format!("--allow-path {folder}"), &query).ok().stdout, "n\n600\n");
    let ran = go(&elsewhere.path().display().to_string(), "SELECT 1").failed();
    assert!(ran.stderr.contains("no datasets or tables"), "{}", ran.stderr);
    assert!(go("--table x=absent.parquet", "SELECT 1").failed().stderr.contains("absent.parquet"));
}

#[test]
fn paths_outside_are_refused_for_reading_and_writing() {
    let room = room();
    let inside = room.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(room.path().join("secret.csv"), "a\n1\n").unwrap();
    std::os::unix::fs::symlink("../secret.csv", inside.join("link.csv")).unwrap();
    std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
    let secret = room.path().join("secret.csv").display().to_string();
    for path in [
        "../secret.csv",
        "link.csv",
        "up/secret.csv",
        "/etc/passwd",
        &secret,
        &format!("file://{secret}"),
        "up/*.csv",
    ] {
        for query in [
            format!("SELECT * FROM '{path}'"),
            format!("SELECT * FROM read_csv('{path}')"),
            format!("SELECT * FROM score('{path}', '{path}')"),
            format!("SELECT bin_of(1, '{path}', 'f1')"),
        ] {
            let ran = sql_in(&inside, "", &query, &[]).failed();
            assert!(ran.stderr.contains("SQL may not read this"), "{query}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("--allow-path /") || ran.stderr.contains("--allow-path"),
                "{}",
                ran.stderr
            );
            assert!(!ran.stderr.contains("root:"), "{}", ran.stderr);
        }
    }
    // A link may be named without a path.
    std::os::unix::fs::symlink("..", inside.join("linked")).unwrap();
    for query in ["SELECT * FROM 'linked'", "SELECT * FROM linked", "SUMMARIZE linked"] {
        let ran = sql_in(&inside, "", query, &[]).failed();
        assert!(ran.stderr.contains("linked: SQL may not read this"), "{query}: {}", ran.stderr);
    }
    for path in ["../new.csv", "up/new.csv", "/tmp/planetree-sql-new.csv", "s3://bucket/new.csv"] {
        for options in ["", "--allow-write ."] {
            let ran = sql_in(&inside, options, &format!("COPY (SELECT 1) TO '{path}'"), &[]).failed();
            assert!(ran.stderr.contains("SQL may not write here"), "{path}: {}", ran.stderr);
        }
    }
    sql_in(&inside, "--allow-write . --overwrite", "COPY (SELECT 1) TO 'link.csv'", &[]).failed();
    assert_eq!(std::fs::read_to_string(room.path().join("secret.csv")).unwrap(), "a\n1\n");
    assert_eq!(names_in(room.path()), ["in", "secret.csv"]);
    // The suggested option works.
    let root = room.path().display().to_string();
    let ran =
        sql_in(&inside, &format!("--format csv --allow-path {root}"), "SELECT * FROM '../secret.csv'", &[])
            .ok();
    assert_eq!(ran.stdout, "a\n1\n");
}

#[test]
fn copy_is_atomic_and_replaces_no_table() {
    let room = room();
    let go = |query: &str| sql_in(room.path(), "--allow-write . --overwrite", query, &[]);
    go("COPY (SELECT 1 AS a) TO 'new/deep/x.csv'").ok();
    assert_eq!(std::fs::read_to_string(room.path().join("new/deep/x.csv")).unwrap(), "a\n1\n");
    go("COPY (SELECT 2 AS a) TO 'new/deep/x.csv' OPTIONS (header false)").ok();
    assert_eq!(std::fs::read_to_string(room.path().join("new/deep/x.csv")).unwrap(), "2\n");
    // A query that fails midway leaves the old file.
    let failing =
        "COPY (SELECT 10 / (n - 90000) AS a FROM generate_series(1, 100000) AS t(n)) TO 'new/deep/x.csv'";
    go(failing).failed();
    assert_eq!(std::fs::read_to_string(room.path().join("new/deep/x.csv")).unwrap(), "2\n");
    assert_eq!(names_in(&room.path().join("new/deep")), ["x.csv"]);
    std::fs::copy(tables().join("predictions.parquet"), room.path().join("p.parquet")).unwrap();
    let ran = go("COPY (SELECT 1) TO 'p.parquet'").failed();
    assert!(ran.stderr.contains("refusing to overwrite: this is predictions"), "{}", ran.stderr);
    // Neither are datasets, their parts and the records of runs.
    std::fs::write(room.path().join("rows.txt"), some_text(3, 4)).unwrap();
    run(room.path(), "convert rows.txt --output ds").ok();
    for place in ["ds/_manifest.json", "ds/part.parquet", "run.json"] {
        let ran = go(&format!("COPY (SELECT 1) TO '{place}'")).failed();
        assert!(ran.stderr.contains("refusing to overwrite: this is"), "{}", ran.stderr);
    }
    go("COPY (SELECT 1) TO 'new'").failed();
    go("COPY 'p.parquet' TO 'copy.ndjson'; COPY (SELECT * FROM 'p.parquet') TO 'copy.dat' STORED AS PARQUET")
        .ok();
    let same = "SELECT count(*) AS n FROM (SELECT query_id, score FROM 'copy.dat' EXCEPT SELECT query_id, score FROM 'p.parquet')";
    assert_eq!(sql_in(room.path(), "--format csv", same, &[]).ok().stdout, "n\n0\n");
    assert_eq!(std::fs::read_to_string(room.path().join("copy.ndjson")).unwrap().lines().count(), 600);
}

#[test]
fn damage_is_an_error() {
    let room = room();
    for name in ["predictions.parquet", "model.parquet"] {
        let mut bytes = std::fs::read(tables().join(name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(room.path().join(name), bytes).unwrap();
    }
    for query in ["SELECT count(*) FROM 'predictions.parquet'", "SELECT bin_of(1, 'model.parquet', 'f1')"] {
        let ran = sql_in(room.path(), "", query, &[]).failed();
        assert!(ran.stderr.contains("damaged: its content does not match its checksum"), "{}", ran.stderr);
    }
    run(
        tables(),
        &format!(
            "convert {} --output {}/data",
            Path::new(crate::support::ROOT).join("sample_data/test.txt").display(),
            room.path().display()
        ),
    )
    .ok();
    let data = room.path().join("data");
    let part = names_in(&data).into_iter().find(|name| name.ends_with(".parquet")).unwrap();
    let mut bytes = std::fs::read(data.join(&part)).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(data.join(&part), bytes).unwrap();
    let ran = sql_in(room.path(), "", "SELECT sum(f1) FROM 'data'", &[]).failed();
    assert!(ran.stderr.contains("do not match their checksum"), "{}", ran.stderr);
    let ran = sql_in(room.path(), "", &format!("SELECT * FROM 'data/{part}'"), &[]).failed();
    assert!(ran.stderr.contains("part of a dataset"), "{}", ran.stderr);
}

#[test]
fn errors_show_the_position_and_a_suggestion() {
    let fails = |query: &str, parts: &[&str]| {
        let ran = sql(".", query).failed();
        for part in parts {
            assert!(ran.stderr.contains(part), "{query}: {}", ran.stderr);
        }
    };
    fails("SELECT *\nFRM predictions", &["line 2, column", "  | FRM predictions\n  | ", "^"]);
    fails("SELECT score, FROM 'predictions.parquet' WHERE (", &["syntax error"]);
    fails(
        "SELECT socre FROM predictions",
        &["no such column: socre", "did you mean score?", "  | SELECT socre FROM predictions\n  |        ^"],
    );
    fails("SELECT ndgc(label, score) FROM predictions", &["no such function: ndgc", "did you mean ndcg?"]);
    fails("SELECT * FROM predictons", &["no such table: predictons", "did you mean predictions?"]);
    fails(
        "SELECT * FROM scores('model.parquet', 'test')",
        &["no such function: scores", "did you mean score?"],
    );
    fails("SELECT * FROM 'absent.parquet'", &["absent.parquet", "No such file"]);
    fails(
        "SELECT ndcg(query_id, score) FROM predictions",
        &["ndcg: label is of type Utf8, expected a number: ndcg(label, score [, k"],
    );
    fails("SELECT ndcg(label) FROM predictions", &["ndcg: wrong number of arguments (1): ndcg(label, score"]);
    fails(
        "SELECT ndcg(label, score, 'ten') FROM predictions",
        &["ndcg: k is of type Utf8, expected a whole number"],
    );
    fails("SELECT ndcg(label, score, 0) FROM predictions", &["k must be at least 1, not 0"]);
    fails("SELECT ndcg(label, score, rank) FROM predictions GROUP BY query_id", &["k must be constant"]);
    fails(
        "SELECT precision_at(label, score) FROM predictions",
        &["precision_at: wrong number of arguments (2)"],
    );
    fails("SELECT precision_at(label, score, NULL) FROM predictions", &["k must not be NULL"]);
    fails(
        "SELECT ndcg(label, score, 10, 'trek') FROM predictions",
        &["unknown convention \"trek\"", "did you mean trec?"],
    );
    fails(
        "SELECT ndcg(label, score, 10, 'trec') FROM tied GROUP BY query_id",
        &["there are no document ids"],
    );
    fails("SELECT ndcg(DISTINCT label, score) FROM predictions", &["DISTINCT"]);
    fails(
        "SELECT ndcg(CASE WHEN rank > 2 THEN label END, score) FROM predictions GROUP BY query_id",
        &["a label is NULL", "coalesce(label, 0)"],
    );
    fails("SELECT ndcg(label, score / 0 - score / 0) FROM predictions", &["a label or score is NaN"]);
    fails(
        "SELECT ndcg(label, score ORDER BY rank), err(label, score ORDER BY score) FROM predictions",
        &["aggregates of one query have different ORDER BY clauses"],
    );
    fails("SELECT planetree_score('model.parquet', f1) FROM test", &["model.parquet also needs f"]);
    fails(
        "SELECT planetree_score('model.parquet', f1 + 1, 2) FROM test",
        &["has 46 features, but 2 arguments"],
    );
    fails(
        "SELECT planetree_score('predictions.parquet', f1) FROM test",
        &["this is predictions, not a model"],
    );
    fails("SELECT planetree_score(doc_id, f1) FROM test", &["the model must be a string literal"]);
    fails(
        "SELECT planetree_score('model.parquet', named_struct('f77', f1)) FROM test",
        &["has no feature f77"],
    );
    fails("SELECT bin_of(f1, 'model.parquet', 'f111') FROM test", &["has no feature f111", "did you mean"]);
    fails(
        "SELECT bin_of(doc_id, 'model.parquet', 'f1') FROM test",
        &["value is of type Utf8, expected a number"],
    );
    fails("SELECT * FROM score('model.parquet', 'predictions.parquet')", &["not a planetree dataset"]);
    fails("SELECT * FROM score('model.parquet')", &["expected a model and a dataset as string literals"]);
    fails(
        "SELECT rank_in_query(doc_id) OVER (PARTITION BY query_id) FROM test",
        &["rank_in_query: score is of type Utf8"],
    );
    fails("SELECT * FROM 'clicks.csv' JOIN 'clicks.csv' USING (nothing)", &["nothing"]);
    // Habits from other engines.
    for (query, parts) in [
        (
            "SELECT sum(query_id) FROM predictions",
            &["line 1, column 8: wrong arguments: sum(text)", "sum(number)", "CAST(x AS DOUBLE)"][..],
        ),
        (
            "SELECT string_agg(query_id) FROM predictions",
            &["wrong arguments: string_agg(text)", "call string_agg(text, text)"],
        ),
        ("SELECT date_part(1)", &["wrong arguments: date_part(whole number)", "call date_part(text, "]),
        (
            "SELECT query_id, avg(score) FROM predictions",
            &["line 1, column 8: query_id is neither in GROUP BY nor aggregated", "add query_id to GROUP BY"],
        ),
        ("SELECT score FROM predictions WHERE sum(score) > 1", &["not allowed in WHERE", "HAVING"]),
        (
            "SELECT query_id + 1 FROM predictions",
            &["types that do not fit: text + whole number", "CAST(x AS DOUBLE)"],
        ),
        ("SELECT rank() FROM predictions", &["rank cannot be called like this", "rank() OVER"]),
        (
            "SELECT count(*) FROM predictions TABLESAMPLE (10 ROWS)",
            &["line 1, column 22: TABLESAMPLE", "ORDER BY random() LIMIT 100", "WHERE random() < 0.1"],
        ),
        (
            "SELECT * FROM predictions USING SAMPLE 10",
            &["line 1, column 27: TABLESAMPLE and USING SAMPLE are not supported", "ORDER BY random()"],
        ),
        ("SELECT * FROM predictions TABLESAMPLE 10%", &["TABLESAMPLE and USING SAMPLE are not supported"]),
        (
            "SELECT avg(ndcg@10) FROM metrics",
            &["line 1, column 16: syntax error: unexpected @", "write \"ndcg@10\" in double quotes"],
        ),
        (
            "PIVOT predictions ON label USING count(*)",
            &["PIVOT is not supported", "FILTER (WHERE label = 0)"],
        ),
        (
            "SELECT * FROM predictions PIVOT (count(*) FOR label IN (0, 1))",
            &["line 1, column 15: PIVOT is not supported", "FILTER (WHERE label = 0)"],
        ),
        ("UNPIVOT test ON f1, f2", &["UNPIVOT is not supported", "UNION ALL"]),
        (
            "COPY (SELECT 1 AS a) TO 'x.csv' (HEADER, DELIMITER ',')",
            &["syntax error", "write options as OPTIONS (header true, delimiter ',')"],
        ),
        (
            "SELECT max(query_id), max(query_id::int) FROM predictions",
            &[
                "two expressions are called max(predictions.query_id): casts do not count",
                "cast in a subquery",
            ],
        ),
        (
            "SELECT count(*) FROM test JOIN test ON true",
            &["two columns are called test.query_id", "FROM x AS a JOIN y AS b"],
        ),
        ("SELECT label, label FROM predictions", &["two columns are called label", "with AS"]),
        (
            "SELECT * FROM test CROSS APPLY predictions",
            &["not supported: Unsupported JOIN operator CrossApply", "write JOIN, LEFT JOIN"],
        ),
    ] {
        fails(query, parts);
    }
    fails("SELECT list(label) FROM predictions", &["no such function: list", "write array_agg(x)"]);
    for (name, call) in [
        ("mrr", "reciprocal_rank(label, score)"),
        ("p", "precision_at(label, score, 10)"),
        ("recall", "recall_at(label, score, 10)"),
        ("hit_rate", "success_at(label, score, 10)"),
    ] {
        let query = format!("SELECT {name}(label, score, 10) FROM predictions GROUP BY query_id");
        fails(&query, &[&format!("no such function: {name}"), &format!("write {call}")]);
    }
    for (call, remedy) in [
        ("year(now())", "write date_part('year', x)"),
        ("mode(label)", "GROUP BY x ORDER BY count(*) DESC LIMIT 1"),
        ("len(query_id)", "write length(text), or array_length(list)"),
        ("date_diff('day', now(), now())", "write date_part('epoch', b) - date_part('epoch', a)"),
    ] {
        fails(&format!("SELECT {call} FROM predictions"), &["no such function: ", remedy]);
    }
    let between = "SELECT date_part('epoch', b) - date_part('epoch', a) AS s FROM (VALUES (date '2024-01-01', date '2024-01-03')) AS t(a, b)";
    assert_eq!(sql("--format csv", between).ok().stdout, "s\n172800.0\n");
    fails("SELECT count_if(label > 0) FROM predictions", &["count(*) FILTER (WHERE condition)"]);
    fails("SELECT strftime('%Y', now())", &["strftime(time, '%Y-%m-%d')"]);
    fails("SELECT * FROM predictions.parquet", &["no such table: predictions.parquet"]);
    fails("SELECT * FROM my-predictions", &["syntax error", "in double quotes"]);
    fails("SHOW DATABASES", &["SHOW DATABASES is not allowed here", "SHOW TABLES"]);
    fails("INSERT INTO predictions SELECT * FROM predictions", &["INSERT is not allowed here", "COPY"]);
    fails("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", &["not allowed here"]);
    fails("SET datafusion.execution.batch_size = 1", &["SET is not allowed here"]);
    fails("DROP TABLE predictions", &["a table on disk"]);
    fails("CREATE TABLE predictions AS SELECT 1", &["predictions"]);
    // The error for a model that does not match the dataset names the features.
    let room = room();
    std::fs::write(room.path().join("few.csv"), "query_id,label,a\nq,1,2\nq,0,3\n").unwrap();
    run(room.path(), "convert few.csv --output few").ok();
    let query = format!("SELECT * FROM score('{0}/model.parquet', 'few')", tables().display());
    let ran = sql_in(room.path(), &format!("--allow-path {}", tables().display()), &query, &[]).failed();
    assert!(ran.stderr.contains("lacks 46 of 46 features: f1, f2"), "{}", ran.stderr);
}

#[test]
fn several_files_have_all_columns_with_types_that_fit() {
    let room = room();
    let go = |query: &str| sql_in(room.path(), "--format csv --threads 1 --allow-write .", query, &[]);
    go("COPY (SELECT 1::bigint AS x) TO 'p/a.parquet'; COPY (SELECT 3.7::double AS x) TO 'p/b.parquet'").ok();
    // The second value was once shown as 3.
    for query in ["SELECT * FROM 'p/*.parquet'", "SELECT * FROM p"] {
        let ran = go(query).failed();
        for part in ["b.parquet: the column x is Float64, but Int64 in ", "p/a.parquet", "UNION ALL BY NAME"]
        {
            assert!(ran.stderr.contains(part), "{query}: {}", ran.stderr);
        }
    }
    let union = "SELECT * FROM 'p/a.parquet' UNION ALL BY NAME SELECT * FROM 'p/b.parquet' ORDER BY x";
    assert_eq!(go(union).ok().stdout, "x\n1.0\n3.7\n");
    go("COPY (SELECT 1::int AS x) TO 'w/a.parquet'; COPY (SELECT 3.7::double AS x, 'z' AS y) TO 'w/b.parquet'").ok();
    assert_eq!(go("SELECT * FROM 'w/*.parquet'").ok().stdout, "x,y\n1.0,\n3.7,z\n");
    assert_eq!(go("SELECT max(x) AS m, count(y) AS n FROM w").ok().stdout, "m,n\n3.7,1\n");
    assert_eq!(go("SELECT y, x FROM w WHERE x > 1.5").ok().stdout, "y,x\nz,3.7\n");
    let file = |name: &str, text: &str| {
        let path = room.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("c/a.csv", "x,y\n1,\n");
    file("c/b.csv", "x,y\n1.5,z\n");
    assert_eq!(go("SELECT * FROM c").ok().stdout, "x,y\n1.0,\n1.5,z\n");
    file("j/a.json", "{\"x\":1}\n");
    file("j/b.json", "{\"x\":1.5,\"y\":\"z\"}\n");
    assert_eq!(go("SELECT * FROM j").ok().stdout, "x,y\n1.0,\n1.5,z\n");
}

#[test]
fn errors_of_text_files_name_the_file_and_a_remedy() {
    let room = room();
    let go = |query: &str| sql_in(room.path(), "--format csv --threads 1", query, &[]);
    let fails = |query: &str, parts: &[&str]| {
        let ran = go(query).failed();
        for part in parts {
            assert!(ran.stderr.contains(part), "{query}: {}", ran.stderr);
        }
    };
    let file = |name: &str, text: &str| std::fs::write(room.path().join(name), text).unwrap();
    // All rows of a small file decide the types, and the first rows of a large one.
    let rows = |count: usize, pad: &str| -> String {
        let rows: String = (0..count).map(|row| format!("{row},{pad}\n")).collect();
        format!("x,y\n{rows}1.5,{pad}\n")
    };
    file("small.csv", &rows(3_000, "z"));
    assert_eq!(go("SELECT max(x) AS m, count(*) AS n FROM 'small.csv'").ok().stdout, "m,n\n2999.0,3001\n");
    file("large.csv", &rows(21_000, &"z".repeat(1_000)));
    for query in [
        "SELECT sum(x) FROM 'large.csv'",
        "SUMMARIZE 'large.csv'",
        "CREATE TABLE t AS SELECT x FROM 'large.csv'",
    ] {
        let parts = [
            "large.csv: column x: row 21001 has the value '1.5', but the first rows are Int64",
            "move the row",
        ];
        fails(query, &parts);
    }
    file("uneven.csv", "a,b\n1,2\n1,2,3\n");
    fails("SELECT * FROM 'uneven.csv'", &["uneven.csv: line 3 has 3 values, but the header has 2", "quotes"]);
    file("mixed.json", "{\"a\":1}\n{\"a\":[1]}\n");
    fails(
        "SELECT * FROM 'mixed.json'",
        &["mixed.json: cannot read JSON", "one complete JSON object per line"],
    );
    file("semicolons.csv", "a;b\n1;2\n");
    for query in ["SELECT * FROM 'semicolons.csv'", "SELECT * FROM read_csv('semicolons.csv')"] {
        let parts = ["the header has no comma, but a semicolon", "delim = ';')", "planetree convert"];
        fails(query, &parts);
    }
    for call in ["'semicolons.csv', delim = ';'", "'semicolons.csv', header = true, sep = ';'"] {
        assert_eq!(go(&format!("SELECT * FROM read_csv({call})")).ok().stdout, "a,b\n1,2\n", "{call}");
    }
    fails("SELECT * FROM read_csv('*.csv', delim = ';')", &["help: "]);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let mut child = command(tables(), "sql --format csv -c")
        .arg("SELECT * FROM generate_series(1, 5000000)")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Read;
    let mut start = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap(); // then the pipe is closed
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_bucket_is_queried_like_a_directory() {
    let Some(server) = crate::support::object_stores::moto() else { return };
    let variables = crate::support::object_stores::environment(server.port);
    let room = room();
    for name in ["predictions.parquet", "model.parquet", "clicks.csv"] {
        crate::support::object_stores::put(server.port, &tables().join(name), &format!("run/{name}"));
    }
    for name in names_in(&tables().join("test")) {
        crate::support::object_stores::put(
            server.port,
            &tables().join("test").join(&name),
            &format!("run/test/{name}"),
        );
    }
    let go = |options: &str, query: &str| {
        sql_in(room.path(), &format!("--format csv {options}"), query, &variables)
    };
    let allow = "--allow-path s3://bucket/run/";
    for (query, expected) in [
        ("SELECT count(*) AS n FROM 's3://bucket/run/predictions.parquet'", "n\n600\n"),
        ("SELECT count(*) AS n FROM 's3://bucket/run/test'", "n\n600\n"),
        ("SELECT sum(clicks) AS n FROM 's3://bucket/run/clicks.csv'", "n\n3\n"),
        (
            "SELECT count(*) AS n FROM score('s3://bucket/run/model.parquet', 's3://bucket/run/test') AS s JOIN \
          's3://bucket/run/predictions.parquet' AS p ON s.doc_id = p.doc_id AND s.query_id = p.query_id AND s.score = p.score",
            "n\n600\n",
        ),
    ] {
        assert_eq!(go(allow, query).ok().stdout, expected, "{query}");
    }
    assert_eq!(go("s3://bucket/run", "SELECT count(*) AS n FROM predictions").ok().stdout, "n\n600\n");
    assert_eq!(
        go("--table p=s3://bucket/run/predictions.parquet", "SELECT count(*) AS n FROM p").ok().stdout,
        "n\n600\n"
    );
    go("--allow-path s3://bucket/run/ --allow-write s3://bucket/run/out", "COPY (SELECT query_id, ndcg(label, score, 10) AS n FROM 's3://bucket/run/predictions.parquet' GROUP BY query_id) TO 's3://bucket/run/out/n.parquet'").ok();
    assert_eq!(go(allow, "SELECT count(*) AS n FROM 's3://bucket/run/out/n.parquet'").ok().stdout, "n\n33\n");
    let refused = go("", "SELECT * FROM 's3://bucket/run/predictions.parquet'").failed();
    assert!(refused.stderr.contains("pass --allow-path s3://bucket/run/"), "{}", refused.stderr);
    go("--allow-path s3://bucket/ru", "SELECT * FROM 's3://bucket/run/predictions.parquet'").failed();
    let absent = go(allow, "SELECT * FROM 's3://bucket/run/absent.parquet'").failed();
    let secret = &variables[1].1;
    for query in [
        "EXPLAIN VERBOSE SELECT * FROM 's3://bucket/run/clicks.csv'",
        "EXPLAIN SELECT * FROM 's3://bucket/run/test'",
        "SHOW ALL",
    ] {
        let plan = go(allow, query).ok();
        assert!(!plan.stdout.contains(secret) && !plan.stderr.contains(secret), "{}", plan.stdout);
    }
    assert!(!absent.stderr.contains(secret));
    drop(server);
    let gone = sql_in(room.path(), &format!("--format csv {allow}"), "SELECT 1", &variables).ok();
    assert_eq!(gone.stdout, "1\n1\n");
}

#[test]
fn the_shell_edits_completes_and_runs_commands() {
    let Some(python) = python() else { return };
    let script = Path::new(crate::support::ROOT).join("tests/suite/sql_shell.py");
    let output = Command::new(python).arg(script).arg(BINARY).current_dir(tables()).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}
