//! SQL over tables that the program created from the sample data.

use crate::support::sql::{sql, sql_in, tables};
use crate::support::*;
use planetree::metric::Convention;
use planetree::storage::Location;
use planetree::table::{TableKind, TableReader};
use sqllogictest::{DBOutput, DefaultColumnType};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program as a database for sqllogictest.
struct Planetree;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

impl sqllogictest::DB for Planetree {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, query: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let ran = sql("--format tsv . --threads 2 --allow-write .", query);
        if ran.code != 0 {
            assert_eq!(ran.code, 1, "{query}: {}", ran.stderr);
            return Err(Failed(ran.stderr));
        }
        let mut lines = ran.stdout.lines();
        let Some(header) = lines.next() else { return Ok(DBOutput::StatementComplete(0)) };
        let types = vec![DefaultColumnType::Any; header.split('\t').count()];
        let value = |text: &str| match text {
            "" => "NULL".to_owned(),
            "\"\"" => "(empty)".to_owned(),
            text => text.trim_matches('"').to_owned(),
        };
        let rows = lines.map(|line| line.split('\t').map(value).collect()).collect();
        Ok(DBOutput::Rows { types, rows })
    }
}

#[test]
fn sqllogictest_scripts_pass() {
    let folder = Path::new(crate::support::ROOT).join("tests/slt");
    let mut scripts: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 5);
    let mut statements = 0;
    for script in scripts {
        let text = std::fs::read_to_string(&script).unwrap();
        statements +=
            text.lines().filter(|line| line.starts_with("query") || line.starts_with("statement")).count();
        let mut runner = sqllogictest::Runner::new(|| async { Ok(Planetree) });
        if let Err(error) = runner.run_file(&script) {
            panic!("{}", error.display(false));
        }
    }
    assert!(statements >= 80, "{statements}");
}

const CALLS: [(&str, &str); 9] = [
    ("ndcg@10", "ndcg(label, score, 10, 'C', doc_id)"),
    ("ndcg", "ndcg(label, score, NULL, 'C', doc_id)"),
    ("dcg@5", "dcg(label, score, 5, 'C', doc_id)"),
    ("err", "err(label, score, NULL, 'C', doc_id)"),
    ("map", "average_precision(label, score, NULL, 'C', doc_id)"),
    ("mrr", "reciprocal_rank(label, score, NULL, 'C', doc_id)"),
    ("p@5", "precision_at(label, score, 5, 'C', doc_id)"),
    ("recall@5", "recall_at(label, score, 5, 'C', doc_id)"),
    ("auc", "auc(label, score, 'C')"),
];

/// The values of a metrics table as bits, by query.
fn evaluated(directory: &Path, predictions: &str, convention: &str) -> BTreeMap<String, Vec<Option<u64>>> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Float64Type;
    let names: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
    let output = format!("{convention}-metrics.parquet");
    let line = format!(
        "evaluate --predictions {predictions} --metrics {} --convention {convention} --output {output}",
        names.join(",")
    );
    run(directory, &line).ok();
    let location = Location::Local(directory.join(&output));
    let table = TableReader::open(&location, TableKind::Metrics).unwrap();
    let mut found = BTreeMap::new();
    for batch in table.batches() {
        let batch = batch.unwrap();
        let queries = batch.column_by_name("query_id").unwrap().as_string::<i32>();
        for row in 0..batch.num_rows() {
            let value = |name: &&str| {
                let column = batch.column_by_name(name).unwrap().as_primitive::<Float64Type>();
                column.is_valid(row).then(|| column.value(row).to_bits())
            };
            found.insert(queries.value(row).to_owned(), names.iter().map(value).collect());
        }
    }
    found
}

/// The same values, computed by SQL.
fn queried(
    directory: &Path,
    table: &str,
    convention: &str,
    threads: usize,
) -> BTreeMap<String, Vec<Option<u64>>> {
    let calls: Vec<String> =
        CALLS.iter().map(|(_, call)| call.replace("'C'", &format!("'{convention}'"))).collect();
    let query = format!("SELECT query_id, {} FROM {table} GROUP BY query_id", calls.join(", "));
    let ran = sql_in(directory, &format!("--format csv --threads {threads}"), &query, &[]).ok();
    let value = |text: &str| (!text.is_empty()).then(|| text.parse::<f64>().unwrap().to_bits());
    let row = |line: &str| {
        let mut words = line.split(',');
        let query = words.next().unwrap().to_owned();
        (query, words.map(value).collect())
    };
    ran.stdout.lines().skip(1).map(row).collect()
}

#[test]
fn metrics_are_bit_identical_to_evaluate_under_every_convention() {
    for preset in Convention::presets() {
        // Areas over all documents have no values per query.
        let convention = format!("{},auc=query", preset.name);
        let expected = evaluated(tables(), "tied.parquet", &convention);
        assert_eq!(expected.len(), 33);
        for (table, threads) in
            [("'tied.parquet'", 1), ("'tied.parquet'", 4), ("score('other.parquet', 'test')", 2)]
        {
            assert_eq!(
                queried(tables(), table, &convention, threads),
                expected,
                "{convention} {table} {threads}"
            );
        }
    }
}

/// Writes predictions with two row groups, whose boundary is within a query. Many scores are tied.
fn large_predictions(path: &Path) {
    use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
    use std::sync::Arc;
    const ROWS: u64 = 1_300_000;
    let location = Location::Local(path.to_owned());
    let schema = planetree::predict::predictions_schema();
    let mut writer =
        planetree::table::TableWriter::create(&location, TableKind::Predictions, schema.clone()).unwrap();
    let hash = |row: u64| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as f64;
    for start in (0..ROWS).step_by(100_000) {
        let rows = start..(start + 100_000).min(ROWS);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("query-{}", row / 97)))),
            Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("doc-{}", row % 97)))),
            Arc::new(Float32Array::from_iter_values(rows.clone().map(|row| (hash(row) % 5.0) as f32))),
            Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| (hash(row + 7) % 13.0).floor()))),
            Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| (row % 97) as i32 + 1))),
        ];
        writer.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn large_tables_give_the_same_metrics_on_any_number_of_threads_and_with_little_memory() {
    let room = room();
    large_predictions(&room.path().join("ours.parquet"));
    let expected = evaluated(room.path(), "ours.parquet", "planetree");
    for threads in [1, 2, 4] {
        assert!(queried(room.path(), "'ours.parquet'", "planetree", threads) == expected, "{threads}");
    }
    // The same rows in plain Parquet files, in order and with scattered queries. evaluate reads those, too, and equal scores
    // keep the order of the rows.
    let copies = "COPY (SELECT query_id, doc_id, label, score FROM 'ours.parquet') TO 'foreign.parquet'; \
                  COPY (SELECT query_id, doc_id, label, score FROM 'ours.parquet' ORDER BY doc_id, reverse(query_id)) TO 'shuffled.parquet'; \
                  COPY (SELECT query_id, doc_id, label, score FROM 'ours.parquet' ORDER BY score, doc_id) TO 'sorted.parquet'";
    let ran = sql_in(room.path(), "--memory-limit 256MiB --allow-write .", copies, &[]).ok();
    assert_eq!(ran.stdout, "");
    for (file, threads) in [("foreign", 1), ("foreign", 4), ("shuffled", 1), ("shuffled", 4), ("sorted", 2)] {
        let expected = evaluated(room.path(), &format!("{file}.parquet"), "planetree");
        let found = queried(room.path(), &format!("'{file}.parquet'"), "planetree", threads);
        assert!(found == expected, "{file} {threads}");
    }
    let query = "EXPLAIN ANALYZE SELECT doc_id, query_id FROM 'ours.parquet' ORDER BY doc_id, query_id";
    let spilled = |limit: &str| {
        let plan =
            sql_in(room.path(), &format!("--memory-limit {limit} --threads 2"), query, &[]).ok().stdout;
        let counts = plan.split("spill_count=").skip(1);
        counts.map(|text| text.split([',', ']']).next().unwrap().trim().parse::<u64>().unwrap()).sum::<u64>()
    };
    assert!(spilled("256MiB") > 0);
    assert_eq!(spilled("4GB"), 0);
    let query = "SELECT query_id, ndcg(label, score, 10) AS n FROM 'shuffled.parquet' GROUP BY query_id ORDER BY query_id";
    let little = sql_in(room.path(), "--format csv --memory-limit 256MiB --threads 2", query, &[]).ok();
    let plenty = sql_in(room.path(), "--format csv --threads 2", query, &[]).ok();
    assert!(little.stdout == plenty.stdout);
    let ran = sql_in(room.path(), "--memory-limit 1MB", "SELECT 1", &[]);
    assert_refused("1MB", &ran, 2, &["--memory-limit 1.0 MiB is too small", "raise it to at least 256 MiB"]);
}

#[test]
fn exact_avg_equals_the_means_of_evaluate() {
    let ran = run(tables(), "evaluate --predictions tied.parquet --metrics ndcg@10,rmse --json").ok();
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let query = "SELECT exact_avg(n) AS n FROM (SELECT ndcg(label, score, 10) AS n FROM 'tied.parquet' GROUP BY query_id)";
    for threads in [1, 2, 4] {
        let found = sql(&format!("--format ndjson --threads {threads}"), query).ok().stdout;
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["n"], report["systems"][0]["means"]["ndcg@10"]);
    }
}

#[test]
fn scores_equal_those_of_predict() {
    let both = "SELECT count(*) AS n FROM (SELECT query_id, doc_id, label, score, rank FROM score('model.parquet', 'test') \
                EXCEPT ALL SELECT * FROM 'predictions.parquet')";
    for threads in [1, 4] {
        assert_eq!(sql(&format!("--format csv --threads {threads}"), both).ok().stdout, "n\n0\n");
    }
    let features: Vec<String> = (1..=46).map(|feature| format!("f{feature}")).collect();
    let reversed: Vec<String> = features.iter().rev().cloned().collect();
    let doubled: Vec<String> = features.iter().map(|feature| format!("{feature} + 0")).collect();
    let named: Vec<String> = features.iter().map(|feature| format!("'{feature}', {feature}")).collect();
    for call in [
        features.join(", "),
        reversed.join(", "),
        doubled.join(", "),
        format!("named_struct({})", named.join(", ")),
    ] {
        let query = format!(
            "SELECT count(*) AS n, count(*) FILTER (WHERE planetree_score('model.parquet', {call}) = score) AS same \
             FROM score('model.parquet', 'test')"
        );
        assert_eq!(sql("--format csv", &query).ok().stdout, "n,same\n600,600\n", "{call}");
    }
}

#[test]
fn ranks_equal_those_of_predict() {
    let query = "SELECT count(*) FILTER (WHERE rank <> r) AS n FROM \
                 (SELECT rank, rank_in_query(score) OVER (PARTITION BY query_id) AS r FROM 'tied.parquet')";
    for threads in [1, 2, 4] {
        assert_eq!(sql(&format!("--format csv --threads {threads}"), query).ok().stdout, "n\n0\n");
    }
}

#[test]
fn every_format_is_written() {
    let query = "SELECT 'a, \"b\"' AS text, 1 AS n, CAST(NULL AS DOUBLE) AS nothing, 0.5 AS half UNION ALL SELECT '|', 2, 0.1 + 0.2, -1.0 ORDER BY n";
    for (format, expected) in [
        ("csv", "text,n,nothing,half\n\"a, \"\"b\"\"\",1,,0.5\n|,2,0.30000000000000004,-1.0\n"),
        ("tsv", "text\tn\tnothing\thalf\n\"a, \"\"b\"\"\"\t1\t\t0.5\n|\t2\t0.30000000000000004\t-1.0\n"),
        (
            "json",
            "[{\"text\":\"a, \\\"b\\\"\",\"n\":1,\"nothing\":null,\"half\":0.5},{\"text\":\"|\",\"n\":2,\"nothing\":0.30000000000000004,\"half\":-1.0}]\n",
        ),
        (
            "ndjson",
            "{\"text\":\"a, \\\"b\\\"\",\"n\":1,\"nothing\":null,\"half\":0.5}\n{\"text\":\"|\",\"n\":2,\"nothing\":0.30000000000000004,\"half\":-1.0}\n",
        ),
        (
            "markdown",
            "| text | n | nothing | half |\n| --- | ---: | ---: | ---: |\n| a, \"b\" | 1 |  | 0.5 |\n| \\| | 2 | 0.30000000000000004 | -1.0 |\n",
        ),
        (
            "table",
            "┌────────┬───┬─────────────────────┬──────┐\n│ text   │ n │             nothing │ half │\n├────────┼───┼─────────────────────┼──────┤\n│ a, \"b\" │ 1 │                NULL │  0.5 │\n│ |      │ 2 │ 0.30000000000000004 │ -1.0 │\n└────────┴───┴─────────────────────┴──────┘\n",
        ),
    ] {
        assert_eq!(sql(&format!("--format {format}"), query).ok().stdout, expected, "{format}");
    }
    let room = room();
    sql_in(room.path(), "-o out.parquet", query, &[]).ok();
    assert_eq!(
        sql_in(room.path(), "--format csv", "SELECT sum(n) AS n FROM 'out.parquet'", &[]).ok().stdout,
        "n\n3\n"
    );
    sql_in(room.path(), "-o out.csv", query, &[]).ok();
    assert!(std::fs::read_to_string(room.path().join("out.csv")).unwrap().starts_with("text,n,"));
    // A Parquet file holds one result, and a failing query leaves no file.
    let ran = sql_in(room.path(), "-o two.parquet", "SELECT 1; SELECT 2", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    sql_in(room.path(), "-o half.csv", "SELECT 1; SELECT * FROM nowhere", &[]).failed();
    assert_eq!(names_in(room.path()), ["out.csv", "out.parquet"]);
}

#[test]
fn columns_are_summarised_and_named_by_their_text() {
    let csv = |query: &str| sql("--format csv", query).ok().stdout;
    let summary = csv(
        "SUMMARIZE 'predictions.parquet'; SUMMARIZE SELECT label FROM 'predictions.parquet' WHERE label > 0",
    );
    let lines: Vec<&str> = summary.lines().collect();
    assert_eq!(
        lines[0],
        "column_name,column_type,min,max,approx_unique,avg,std,q25,q50,q75,count,null_percentage"
    );
    let line = |name: &str| -> Vec<&str> {
        lines.iter().find(|line| line.starts_with(name)).unwrap().split(',').collect()
    };
    assert_eq!(line("query_id,")[1..4], ["Utf8", "140", "172"]);
    assert_eq!(line("query_id,")[5..], ["", "", "", "", "", "600", "0.0"]);
    let rank = line("rank,");
    assert_eq!((rank[2], rank[10]), ("1", "600"));
    let mean = csv("SELECT avg(rank), stddev(rank) FROM 'predictions.parquet'");
    assert_eq!(mean.lines().next(), Some("avg(rank),stddev(rank)"));
    let exact: Vec<f64> =
        mean.lines().nth(1).unwrap().split(',').map(|number| number.parse().unwrap()).collect();
    for (place, exact) in [(5, exact[0]), (6, exact[1])] {
        assert!((rank[place].parse::<f64>().unwrap() / exact - 1.0).abs() < 1e-5, "{rank:?}");
    }
    assert_eq!(lines.last().unwrap().split(',').nth(2), Some("1.0"), "{summary}");
    // A dataset has more columns than are summarised at a time, and missing values.
    let wide = csv("SUMMARIZE 'test'");
    assert_eq!(wide.lines().count(), 1 + 3 + 46, "{wide}");
    for (query, header) in [
        (
            "SELECT count(*), 1 + 1, upper(query_id) FROM 'predictions.parquet' GROUP BY query_id",
            "count(*),1 + 1,upper(query_id)",
        ),
        (
            "SELECT ndcg(label, score, 10) FROM 'predictions.parquet' WHERE query_id = '140'",
            "\"ndcg(label, score, 10)\"",
        ),
        ("SELECT DISTINCT label * 2 FROM 'predictions.parquet' ORDER BY label * 2", "label * 2"),
        (
            "SELECT label, sum(score) FROM 'predictions.parquet' GROUP BY ALL ORDER BY sum(score)",
            "label,sum(score)",
        ),
        ("SELECT max(label) FROM 'predictions.parquet' UNION ALL SELECT 3", "max(label)"),
        ("SELECT p.label, p.score * 2 FROM 'predictions.parquet' AS p LIMIT 1", "label,p.score * 2"),
    ] {
        assert_eq!(csv(query).lines().next(), Some(header), "{query}");
    }
    let lines = sql("--format line", "SELECT 1 AS one, NULL AS nothing UNION ALL SELECT 2, 'x'").ok().stdout;
    assert_eq!(lines, "    one = 1\nnothing = NULL\n\n    one = 2\nnothing = x\n");
}
