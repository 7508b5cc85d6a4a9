//! Limits of memory, threads, open files and statements are kept, or refused before the work begins.

use crate::support::sql::{sql_in, tables};
use crate::support::*;
use arrow::array::{ArrayRef, DictionaryArray, Float32Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn long_statements_do_not_end_the_process() {
    let joins = |count: usize| -> String {
        (1..=count).map(|number| format!(" JOIN (SELECT 1 AS a) t{number} ON t0.a = t{number}.a")).collect()
    };
    for (query, rows) in [
        (format!("SELECT 1 AS a{}", " UNION ALL SELECT 1".repeat(250)), 251),
        (format!("SELECT 1{} AS a", " + 1".repeat(600)), 1),
        (format!("SELECT {}1{} AS a", "(".repeat(15), ")".repeat(15)), 1),
        (format!("SELECT t0.a FROM (SELECT 1 AS a) t0{}", joins(40)), 1),
    ] {
        let ran = sql_in(tables(), "--format csv", &query, &[]).ok();
        assert_eq!(ran.stdout.lines().count(), rows + 1, "{}", &query[..60]);
    }
    let doubled: String = (1..40)
        .map(|number| format!(", t{number} AS (SELECT * FROM t{0} UNION ALL SELECT * FROM t{0})", number - 1))
        .collect();
    for query in [
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(500)),
        format!("SELECT t0.a FROM (SELECT 1 AS a) t0{}", joins(500)),
        format!("SELECT 1{}", " + 1".repeat(1_500)),
        format!("SELECT 1{}", " + 1".repeat(20_000)),
        format!("SELECT 1{}", "::int".repeat(20_000)),
        format!("SELECT {}1", "NOT ".repeat(20_000)),
        format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000)),
        format!("WITH t0 AS (SELECT 1 AS a){doubled} SELECT count(*) FROM t39"),
    ] {
        let ran = sql_in(tables(), "", &query, &[]).failed();
        let is_named =
            ran.stderr.contains("the statement is too large") || ran.stderr.contains("nested too deeply");
        assert!(is_named, "{}: {}", &query[..60], ran.stderr);
    }
}

#[test]
fn an_interrupt_ends_a_cross_join_at_once() {
    let query = "SELECT count(*) FROM generate_series(1, 3000000) a CROSS JOIN generate_series(1, 3000000) b WHERE a.value * b.value = 7";
    let mut child = command(tables(), "sql --threads 1 -c")
        .arg(query)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_signal_handlers(&child);
    std::thread::sleep(Duration::from_secs(2)); // the join runs by then
    assert!(child.try_wait().unwrap().is_none(), "the query ended by itself");
    signal(&child, "-INT");
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.contains("error: interrupted"), "{stderr}");
}

/// Peak memory in MiB of a query, which succeeds or fails.
fn peak_of_query(directory: &Path, options: &str, query: &str) -> (Ran, u64) {
    let mut child = command(directory, &format!("--quiet sql {options} -c"))
        .arg(query)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let peak = peak_until_exit(&mut child);
    (Ran::of(child.wait_with_output().unwrap()), peak)
}

#[test]
fn constants_of_sql_stay_within_the_memory_limit() {
    for query in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 500000000))",
        "SELECT array_length(range(0, 1000000000))",
        "SELECT array_length(array_repeat('abc', 1000000000))",
        "SELECT length(replace(repeat('x', 10000000), 'x', repeat('y', 1000)))",
    ] {
        let (ran, peak) = peak_of_query(tables(), "--memory-limit 256MiB", query);
        let ran = ran.failed();
        assert!(ran.stderr.contains("the memory limit is too small"), "{query}: {}", ran.stderr);
        assert!(peak <= 256, "{query}: {peak} MiB");
    }
    let query =
        "SELECT length(repeat('x', 1000000)), lpad('7', 3, '0'), range(1, 4), replace('aXb', 'X', '--')";
    let ran = sql_in(tables(), "--memory-limit 256MiB --format csv", query, &[]).ok();
    assert!(ran.stdout.contains("1000000,007,") && ran.stdout.contains("a--b"), "{}", ran.stdout);
}

#[test]
fn wide_rows_are_sorted_within_the_least_memory() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 30000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 5000").ok();
    let query = "SELECT * FROM 'data' ORDER BY f3, f1, query_id";
    let mut results = Vec::new();
    for threads in [1, 2, 4] {
        let options = format!("--memory-limit 256MiB --threads {threads} -o out.parquet --overwrite");
        let (ran, peak) = peak_of_query(room.path(), &options, query);
        ran.ok();
        assert!(peak <= 256, "{threads} threads: {peak} MiB");
        let bytes = "SELECT count(*), min(f3), max(f3), sum(label) FROM 'out.parquet'";
        results.push(sql_in(room.path(), "--format csv", bytes, &[]).ok().stdout);
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
}

/// Writes a table with a text column whose rows all have the same long text.
fn write_long_text(file: &Path, bytes: usize) {
    let rows = 2_000;
    let text = StringArray::from_iter_values(["x".repeat(bytes)]);
    let keys = Int32Array::from_iter_values(std::iter::repeat_n(0, rows));
    let columns: [(&str, ArrayRef); 4] = [
        ("query_id", Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("q{}", row / 10))))),
        ("label", Arc::new(Float32Array::from_iter_values((0..rows).map(|row| (row % 3) as f32)))),
        ("f1", Arc::new(Float32Array::from_iter_values((0..rows).map(|row| row as f32)))),
        ("note", Arc::new(DictionaryArray::try_new(keys, Arc::new(text)).unwrap())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(1 << 30)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(file).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_long_text_in_a_parquet_dictionary_stays_within_the_memory_limit() {
    let room = room();
    write_long_text(&room.path().join("in.parquet"), 50 << 20);
    let limit = "--memory-limit 256MiB";
    let (stderr, peak) =
        peak_of(room.path(), &format!("convert in.parquet --output out --ignore-columns note {limit}"));
    assert!(room.path().join("out").exists() && peak <= 256, "{peak} MiB: {stderr}");
    let (stderr, peak) = peak_of(room.path(), &format!("convert in.parquet --output two {limit}"));
    assert!(stderr.contains("column note: found a text of 50.0 MiB, expected at most 1.0 MiB"), "{stderr}");
    assert!(!room.path().join("two").exists() && peak <= 256, "{peak} MiB: {stderr}");
    let (stderr, _) = peak_of(room.path(), "convert in.parquet --output two --memory-limit 192MiB");
    for words in
        ["column note: a page of ", "does not fit in --memory-limit 192.0 MiB", "raise it to at least 2"]
    {
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn texts_of_a_megabyte_in_many_rows_stay_within_the_memory_limit() {
    let room = room();
    write_long_text(&room.path().join("in.parquet"), 1 << 20);
    let (stderr, peak) =
        peak_of(room.path(), "convert in.parquet --doc-column note --output out --memory-limit 512MiB");
    // A row group ends after 32 MiB of ids, so they need not fit in memory.
    assert!(room.path().join("out").exists() && peak <= 512, "{peak} MiB: {stderr}");
    let described = described(room.path(), "out");
    assert_eq!(described["rows"], 2000, "{described}");
}

#[test]
fn exact_candidates_stay_within_the_memory_limit_that_they_ask_for() {
    let room = room();
    // Every value is distinct, so there are as many bins as values.
    dataset(room.path(), "data", &untied(9, 60_000, 40), "--partition-rows 10000");
    for (preset, settings) in [("gbrt", ""), ("pgbrt", "--set value_groups=0")] {
        for threads in [1, 2] {
            let arguments =
                format!("--preset {preset} {settings} --data data --set num_trees=1 --threads {threads}");
            let limit = least_memory(room.path(), &arguments);
            let (stderr, peak) =
                peak_of(room.path(), &format!("train {arguments} --model m --memory-limit {limit}MiB"));
            assert!(room.path().join("m").exists(), "{stderr}");
            assert!(peak <= limit, "{arguments}: {peak} MiB used, {limit} MiB allowed");
            fs::remove_file(room.path().join("m")).unwrap();
            let _ = fs::remove_dir_all(room.path().join("data.bins"));
        }
    }
}

#[test]
fn too_few_threads_and_open_files_are_said_without_a_panic() {
    let room = room();
    dataset(room.path(), "data", &graded(3, 20, 10), "");
    let limited = |limit: &str, arguments: &str| {
        let mut command = Command::new("prlimit");
        command
            .current_dir(room.path())
            .args([limit, "--", BINARY])
            .args(arguments.split(' '))
            .stdin(Stdio::null());
        Ran::of(command.output().unwrap())
    };
    for arguments in
        ["sql -c SELECT(1)", "evaluate --predictions p", "convert data.txt --output x --sort-queries"]
    {
        let ran = limited("--nofile=20:20", arguments);
        assert_ne!(ran.code, 101, "{arguments}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{arguments}: {}", ran.stderr);
    }
    let ran = limited("--nofile=20:20", "sql -c SELECT(1)");
    assert_refused(
        "sql",
        &ran,
        2,
        &["a query needs up to", "open files, and the limit of this process is 20", "ulimit -n"],
    );
    // A limit of threads does not apply to root.
    if is_root() {
        let user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
        let works = Command::new(user[0]).args(&user[1..]).arg("true").status();
        if !works.is_ok_and(|status| status.success()) {
            impossible_here("another user cannot be assumed here: this needs setpriv");
            return;
        }
        for (number, arguments) in
            [(1, "describe data"), (3, "describe data"), (4, "describe data --threads 8")]
        {
            let mut command = Command::new("prlimit");
            command.current_dir(room.path()).arg(format!("--nproc={number}:{number}")).args(user);
            let ran = Ran::of(
                command.arg(BINARY).args(arguments.split(' ')).stdin(Stdio::null()).output().unwrap(),
            );
            assert!(!ran.stderr.contains("panicked") && ran.code != 101, "{arguments}: {}", ran.stderr);
            assert!(ran.code == 0 || ran.stderr.contains("cannot start"), "{arguments}: {}", ran.stderr);
        }
    }
}

#[test]
fn names_and_ids_print_no_terminal_escapes() {
    let room = room();
    let text = "query_id,label,f1\nq\u{1b}]0;title\u{7}\u{1b}[31m,1,2\nq\u{1b}]0;title\u{7}\u{1b}[31m,0,3\n";
    fs::write(room.path().join("in.csv"), text).unwrap();
    run(room.path(), "convert in.csv --output data").ok();
    let shown = |ran: Ran| format!("{}{}", ran.stdout, ran.stderr);
    for text in [
        shown(sql_in(room.path(), "", "SELECT * FROM 'data'", &[]).ok()),
        shown(run(room.path(), "describe no\u{1b}[31msuch").failed()),
    ] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert!(text.contains("\\u001b["), "{text}");
    }
}
