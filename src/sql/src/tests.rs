//! Compares the SQL functions with direct calls of the code that computes metrics, for various partitions, row orders
//! and memory limits.

use super::functions::{all_function_names, function_help};
use super::output::{ReplacePolicy, ResultFormat};
use super::roots::Roots;
use super::scan::{MemorySource, ScanTable};
use super::session::{Session, SessionOptions};
use super::statement::{AllowedStatement, parse};
use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::Float64Type;
use datafusion::catalog::SchemaProvider;
use planetree_base::random::Stream;
use planetree_base::storage::Access;
use planetree_metric::{Convention, Judge, Mean, Metric, QueryRows};
use std::collections::BTreeMap;
use std::sync::Arc;

const METRICS: [(&str, &str); 11] = [
    ("ndcg@5", "ndcg(label, score, 5, 'C', doc_id)"),
    ("dcg@5", "dcg(label, score, 5, 'C', doc_id)"),
    ("err", "err(label, score, NULL, 'C', doc_id)"),
    ("map", "average_precision(label, score, NULL, 'C', doc_id)"),
    ("mrr@7", "reciprocal_rank(label, score, 7, 'C', doc_id)"),
    ("p@3", "precision_at(label, score, 3, 'C', doc_id)"),
    ("recall@4", "recall_at(label, score, 4, 'C', doc_id)"),
    ("success@2", "success_at(label, score, 2, 'C', doc_id)"),
    ("auc", "auc(label, score, 'C')"),
    ("pauc@10-60", "pauc(label, score, '10-60', 'C')"),
    ("rmse", "rmse(label, score)"),
];

/// Query id, document id, label, score and row number.
type RankedRow = (String, String, f32, f64, i64);

/// Generates queries with a few documents each and many equal scores.
fn some_rows(seed: u64, queries: usize) -> Vec<RankedRow> {
    let mut draw = Stream::new(&[seed]);
    let mut rows = Vec::new();
    for query in 0..queries {
        for document in 0..1 + draw.bits() % 12 {
            let label = (draw.bits() % 4) as f32;
            let score = (draw.bits() % 4) as f64 / 3.0;
            rows.push((
                format!("q{query}"),
                format!("d{}", (document * 7) % 13),
                label,
                score,
                rows.len() as i64,
            ));
        }
    }
    rows
}

fn batch_of(rows: &[RankedRow]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 5] = [
        ("query_id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0)))),
        ("doc_id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1)))),
        ("label", Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.2)))),
        ("score", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.3)))),
        ("place", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.4)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn session(threads: usize, memory_limit: u64) -> Session {
    let roots = Roots::new([], [], Access::Explicit).unwrap();
    Session::new(SessionOptions {
        threads,
        memory_limit,
        owns_process: false,
        roots,
        replace: ReplacePolicy::Results,
        cluster: None,
    })
    .unwrap()
}

/// Creates a session with a table of rows, cut into batches of `size` rows.
fn session_of(rows: &[RankedRow], threads: usize, size: usize) -> Session {
    let session = session(threads, 256 << 20);
    let batches = rows.chunks(size).map(batch_of).collect();
    let source = MemorySource::new(batch_of(&[]).schema(), batches);
    session.tables.register_table("rows".to_owned(), Arc::new(ScanTable(Arc::new(source)))).unwrap();
    session
}

fn collect(session: &Session, text: &str) -> Vec<RecordBatch> {
    let AllowedStatement::Query(query) = parse(text).unwrap().remove(0) else { panic!("no query") };
    let mut stream = session.start(&query, text).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().unwrap() {
        batches.push(batch.unwrap());
    }
    batches
}

/// Returns the values of each query as bits. The first column is the query id, and the others are numbers.
fn by_query(batches: &[RecordBatch]) -> BTreeMap<String, Vec<Option<u64>>> {
    let mut found = BTreeMap::new();
    for batch in batches {
        let names = batch.column(0).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let value = |column: &ArrayRef| {
                let column = column.as_primitive::<Float64Type>();
                column.is_valid(row).then(|| column.value(row).to_bits())
            };
            let values = batch.columns()[1..].iter().map(value).collect();
            assert!(
                found.insert(names.value(row).to_owned(), values).is_none(),
                "{} twice",
                names.value(row)
            );
        }
    }
    found
}

/// Computes the expected values naively, query by query.
fn judged(rows: &[RankedRow], convention: &Convention) -> BTreeMap<String, Vec<Option<u64>>> {
    let mut queries: BTreeMap<String, Vec<&RankedRow>> = BTreeMap::new();
    rows.iter().for_each(|row| queries.entry(row.0.clone()).or_default().push(row));
    let values = |rows: Vec<&RankedRow>| {
        let labels: Vec<f32> = rows.iter().map(|row| row.2).collect();
        let scores: Vec<f64> = rows.iter().map(|row| row.3).collect();
        let documents: Vec<&str> = rows.iter().map(|row| row.1.as_str()).collect();
        let rows = QueryRows { labels: &labels, scores: &scores, documents: Some(&documents), judged: None };
        let value = |(name, _): &(&str, &str)| {
            let metric: Metric = name.parse().unwrap();
            Judge::new(&[metric], convention).query(&rows).unwrap()[0].map(f64::to_bits)
        };
        METRICS.iter().map(value).collect()
    };
    queries.into_iter().map(|(query, rows)| (query, values(rows))).collect()
}

fn query_of(convention: &str, order: &str) -> String {
    let calls: Vec<String> = METRICS
        .iter()
        .map(|(_, call)| call.replace("'C'", &format!("'{convention}'")).replace(')', &format!("{order})")))
        .collect();
    format!("SELECT query_id, {} FROM rows GROUP BY query_id", calls.join(", "))
}

#[test]
fn metrics_match_the_judges_on_any_number_of_threads() {
    let rows = some_rows(1, 60);
    for preset in Convention::presets() {
        let convention = preset.convention().unwrap();
        let expected = judged(&rows, &convention);
        for (threads, size) in [(1, 1000), (2, 50), (4, 7), (3, 1)] {
            let session = session_of(&rows, threads, size);
            let found = by_query(&collect(&session, &query_of(preset.name, "")));
            assert_eq!(found, expected, "{} {threads} {size}", preset.name);
        }
    }
}

#[test]
fn scattered_queries_are_grouped_in_the_order_of_the_rows() {
    let mut rows = some_rows(2, 40);
    let mut draw = Stream::new(&[5]);
    for place in (1..rows.len()).rev() {
        rows.swap(place, (draw.bits() % (place as u64 + 1)) as usize);
    }
    let convention = Convention::default();
    let expected = judged(&rows, &convention);
    for (threads, size) in [(1, 1000), (2, 50), (4, 7)] {
        let session = session_of(&rows, threads, size);
        assert_eq!(by_query(&collect(&session, &query_of("planetree", ""))), expected, "{threads} {size}");
    }
    // With ORDER BY, metrics see the rows in the requested order.
    let mut sorted = rows.clone();
    sorted.sort_by_key(|row| row.4);
    let expected = judged(&sorted, &convention);
    let session = session_of(&rows, 4, 7);
    assert_eq!(by_query(&collect(&session, &query_of("planetree", " ORDER BY place"))), expected);
    let expected_backwards = judged(&sorted.iter().rev().cloned().collect::<Vec<_>>(), &convention);
    let found = by_query(&collect(&session, &query_of("planetree", " ORDER BY place DESC")));
    assert_eq!(found, expected_backwards);
    assert_ne!(expected, expected_backwards, "ties matter in these rows");
}

#[test]
fn the_order_of_a_subquery_holds_on_any_number_of_threads() {
    let rows = some_rows(6, 60);
    let convention = Convention::default();
    // Rows that compare equal keep the order of the table.
    let mut sorted = rows.clone();
    sorted.sort_by_key(|row| std::cmp::Reverse(row.2 as i64 % 2));
    let expected = judged(&sorted, &convention);
    assert_ne!(expected, judged(&rows, &convention), "the order matters to these rows");
    let within = "FROM (SELECT * FROM rows ORDER BY CAST(label AS BIGINT) % 2 DESC)";
    for (threads, size) in [(1, 1000), (2, 50), (4, 7), (3, 1)] {
        let session = session_of(&rows, threads, size);
        let text = query_of("planetree", "").replace("FROM rows", within);
        assert_eq!(by_query(&collect(&session, &text)), expected, "{threads} {size}");
        let first = collect(&session, &format!("SELECT CAST(label AS DOUBLE) {within} LIMIT 3"));
        let labels = first.iter().flat_map(|batch| batch.column(0).as_primitive::<Float64Type>().values());
        assert_eq!(labels.filter(|label| *label % 2.0 == 1.0).count(), 3);
    }
}

#[test]
fn rows_without_an_order_are_ranked_in_the_worst_order() {
    let rows = some_rows(3, 40);
    let mut expected = judged(&rows, &"planetree,ties=worst".parse().unwrap());
    // Areas do not depend on the order of equal scores.
    for (query, values) in judged(&rows, &Convention::default()) {
        let own = expected.get_mut(&query).unwrap().iter_mut().zip(values);
        let areas = own.zip(&METRICS).filter(|(_, (name, _))| name.contains("auc"));
        areas.for_each(|((expected, value), _)| *expected = value);
    }
    let rounded = |found: BTreeMap<String, Vec<Option<u64>>>| -> Vec<Option<i64>> {
        let round = |bits: u64| (f64::from_bits(bits) * 1e12).round() as i64;
        found.into_values().flatten().map(|value| value.map(round)).collect()
    };
    let joined = query_of("planetree", "")
        .replace("FROM rows", "FROM (SELECT a.* FROM rows AS a JOIN rows AS b ON a.place = b.place)");
    for threads in [1, 2, 4] {
        let found = by_query(&collect(&session_of(&rows, threads, 7), &joined));
        // RMSE may sum the rows in another order, which changes the last bits.
        assert_eq!(rounded(found), rounded(expected.clone()), "{threads}");
    }
}

#[test]
fn filters_unions_and_other_aggregates_keep_the_order() {
    let rows = some_rows(4, 50);
    let kept: Vec<RankedRow> = rows.iter().filter(|row| row.2 < 3.0).cloned().collect();
    let expected = judged(&kept, &Convention::default());
    for threads in [1, 3] {
        let session = session_of(&rows, threads, 9);
        let filtered = query_of("planetree", "").replace("GROUP", "WHERE label < 3 GROUP");
        assert_eq!(by_query(&collect(&session, &filtered)), expected);
        let halves =
            "FROM (SELECT * FROM rows WHERE place < 100 UNION ALL SELECT * FROM rows WHERE place >= 100)";
        let union = query_of("planetree", "").replace("FROM rows", halves);
        assert_eq!(by_query(&collect(&session, &union)), judged(&rows, &Convention::default()));
        let text = "SELECT query_id, ndcg(label, score, 5) FILTER (WHERE label < 3), CAST(count(*) AS DOUBLE), \
                    sum(score), CAST(count(DISTINCT label) AS DOUBLE) FROM rows GROUP BY query_id";
        let found = by_query(&collect(&session, text));
        for (query, values) in &found {
            let all = rows.iter().filter(|row| row.0 == *query);
            assert_eq!(values[0], expected.get(query).and_then(|values| values[0]));
            assert_eq!(values[1], Some((all.clone().count() as f64).to_bits()));
            let labels: std::collections::BTreeSet<u32> = all.map(|row| row.2 as u32).collect();
            assert_eq!(values[3], Some((labels.len() as f64).to_bits()));
        }
    }
}

#[test]
fn a_single_query_needs_no_group_by() {
    let rows = some_rows(6, 30);
    let one: Vec<RankedRow> = rows.iter().filter(|row| row.0 == "q7").cloned().collect();
    let expected = &judged(&one, &Convention::default())["q7"];
    for threads in [1, 4] {
        let text = query_of("planetree", "").replace("GROUP BY query_id", "WHERE query_id = 'q7'");
        let text = text.replace("SELECT query_id", "SELECT max(query_id)");
        let found = by_query(&collect(&session_of(&rows, threads, 5), &text));
        assert_eq!(found["q7"], *expected);
        let nothing =
            collect(&session_of(&rows, threads, 5), "SELECT ndcg(label, score) FROM rows WHERE label > 9");
        assert_eq!(nothing.iter().map(|batch| batch.column(0).null_count()).sum::<usize>(), 1);
    }
}

#[test]
fn a_small_memory_limit_does_not_change_results() {
    let mut rows = some_rows(7, 4000);
    // The rows are scattered, so that all of them are aggregated as one stream and must spill.
    rows.sort_by_key(|row| (row.4 * 7919) % 26_003);
    let expected = judged(&rows, &Convention::default());
    for (threads, limit) in [(1, 1 << 20), (2, 1 << 20), (2, 256 << 20)] {
        let session = session(threads, limit);
        let batches = rows.chunks(300).map(batch_of).collect();
        let source = MemorySource::new(batch_of(&[]).schema(), batches);
        session.tables.register_table("rows".to_owned(), Arc::new(ScanTable(Arc::new(source)))).unwrap();
        let text = "SELECT query_id, ndcg(label, score, 5), dcg(label, score, 5) FROM rows GROUP BY query_id";
        let found = by_query(&collect(&session, text));
        assert_eq!(found.len(), expected.len());
        for (query, values) in found {
            assert_eq!(values, expected[&query][..2], "{query} {threads} {limit}");
        }
    }
}

#[test]
fn ranks_keep_the_order_of_equal_scores() {
    let rows = some_rows(8, 40);
    let mut expected: BTreeMap<i64, f64> = BTreeMap::new();
    for row in &rows {
        let better = rows
            .iter()
            .filter(|other| other.0 == row.0 && (other.3 > row.3 || (other.3 == row.3 && other.4 < row.4)));
        expected.insert(row.4, 1.0 + better.count() as f64);
    }
    for threads in [1, 2, 4] {
        let text = "SELECT CAST(place AS TEXT), CAST(count(*) OVER (PARTITION BY query_id) AS DOUBLE), \
                    CAST(rank_in_query(score) OVER (PARTITION BY query_id) AS DOUBLE) FROM rows";
        let found = collect(&session_of(&rows, threads, 11), text);
        for (place, values) in by_query(&found.iter().map(as_plain_text).collect::<Vec<_>>()) {
            let place: i64 = place.parse().unwrap();
            assert_eq!(values[1], Some(expected[&place].to_bits()), "{threads} {place}");
            let documents = rows.iter().filter(|row| row.0 == rows[place as usize].0).count();
            assert_eq!(values[0], Some((documents as f64).to_bits()));
        }
    }
}

/// Casts the first column to plain strings.
fn as_plain_text(batch: &RecordBatch) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    columns[0] = arrow::compute::cast(&columns[0], &arrow::datatypes::DataType::Utf8).unwrap();
    let names = (0..columns.len()).map(|column| format!("c{column}"));
    RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(name, column)| (name, column, true)))
        .unwrap()
}

#[test]
fn exact_means_are_the_same_in_any_order() {
    let rows = some_rows(9, 200);
    let mut mean = Mean::new(Metric::Ndcg(None));
    rows.iter().for_each(|row| mean.add(row.3));
    for (threads, size) in [(1, 1000), (4, 7)] {
        let text = "SELECT exact_avg(score) FROM rows";
        let batches = collect(&session_of(&rows, threads, size), text);
        let found = batches[0].column(0).as_primitive::<Float64Type>().value(0);
        assert_eq!(found.to_bits(), mean.value().to_bits());
    }
    let text = "SELECT query_id, exact_avg(score) FROM rows GROUP BY query_id";
    let found = by_query(&collect(&session_of(&rows, 3, 7), text));
    assert_eq!(found.len(), 200);
}

#[test]
fn a_query_returns_rows_in_the_order_of_the_table() {
    let rows = some_rows(10, 100);
    for threads in [1, 2, 4] {
        for (text, count) in [
            ("SELECT place FROM rows", rows.len()),
            ("SELECT place FROM rows WHERE label >= 0", rows.len()),
            ("SELECT place FROM rows LIMIT 30", 30),
            ("SELECT place FROM (SELECT * FROM rows) WHERE score >= 0 LIMIT 30", 30),
        ] {
            let batches = collect(&session_of(&rows, threads, 7), text);
            let places: Vec<i64> = batches
                .iter()
                .flat_map(|batch| {
                    batch.column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec()
                })
                .collect();
            assert_eq!(places, (0..count as i64).collect::<Vec<_>>(), "{text} {threads}");
        }
    }
}

#[test]
fn every_function_is_registered_and_in_the_manual() {
    let session = session(1, 64 << 20);
    let known = session.function_names();
    let manual = include_str!("../../../docs/sql.md");
    for help in function_help() {
        assert!(known.iter().any(|name| name == help.name), "{}", help.name);
        assert!(help.usage.starts_with(&format!("{}(", help.name)), "{}", help.name);
        assert!(manual.contains(&format!("`{}`", help.usage)), "the manual lacks `{}`", help.usage);
    }
    let mut names = all_function_names();
    assert!(function_help().iter().all(|help| names.contains(&help.name)));
    for name in &names {
        assert!(known.iter().any(|known| known == name), "{name}");
        assert!(manual.contains(&format!("`{name}")), "the manual lacks `{name}`");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn only_read_only_statements_are_allowed() {
    for text in [
        "SELECT 1",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "SHOW TABLES",
        "DESCRIBE t",
        "DESCRIBE SELECT 1",
        "SUMMARIZE t",
        "SUMMARIZE 'file.csv'; SUMMARIZE SELECT 1;",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE t",
        "DROP VIEW v",
        "COPY (SELECT 1) TO 'x.csv'",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
        "FROM t",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
    for text in [
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x.csv'",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "SET datafusion.execution.batch_size = 1",
        "TRUNCATE TABLE t",
        "CREATE TABLE t (a INT)",
        "EXPLAIN COPY (SELECT 1) TO 'x.csv'",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
        "PREPARE p AS SELECT 1",
        "CREATE FUNCTION f() RETURNS INT AS '1'",
        "CREATE SCHEMA s",
        "DROP SCHEMA s",
        "COPY (SELECT 1) TO 'x' PARTITIONED BY (a)",
        "COPY (SELECT 1) TO 'x'",
        "CREATE DATABASE d",
        "BEGIN",
        "ALTER TABLE t ADD COLUMN a INT",
        "COPY (SELECT 1) TO 'x.csv' OPTIONS (heeder true)",
        "RESET ALL",
        "SUMMARIZE",
        "SUMMARIZE a b",
        "SUMMARIZE (EXPLAIN SELECT 1)",
        "DESCRIBE INSERT INTO t VALUES (1)",
    ] {
        let error = parse(text).map(|_| text).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{text}: {error}");
    }
    let AllowedStatement::Copy(copy) =
        parse("COPY t TO 'x.tsv' OPTIONS (header false, delimiter ';')").unwrap().remove(0)
    else {
        panic!("not a COPY statement")
    };
    assert_eq!((copy.format, copy.header, copy.delimiter), (ResultFormat::Tsv, false, Some(';')));
}
