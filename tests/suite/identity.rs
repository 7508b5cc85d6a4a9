//! The output depends only on the rows.

use crate::support::*;
use planetree::dataset::DatasetReader;
use planetree::storage::{Access, Location};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn threads_memory_and_standard_input_do_not_change_the_bytes() {
    let temporary = room();
    // Several chunks, several row groups, and features that first occur late.
    let mut text = some_text(4000, 40);
    text.push_str("3 qid:late 1:1 300:7\n");
    fs::write(temporary.path().join("in.txt"), &text).unwrap();
    run(temporary.path(), "convert in.txt --output one --threads 1").ok();
    let expected = files_of(&temporary.path().join("one"));
    assert_eq!(expected.len(), 2);
    for (name, options) in [
        ("two", "--threads 2"),
        ("four", "--threads 4 --memory-limit 2GiB"),
        ("low", "--memory-limit 192MiB"),
    ] {
        run(temporary.path(), &format!("convert in.txt --output {name} {options}")).ok();
        assert!(files_of(&temporary.path().join(name)) == expected, "{name}");
    }
    run_stdin(temporary.path(), "convert - --output stdin", text.as_bytes()).ok();
    assert!(files_of(&temporary.path().join("stdin")) == expected);
}

#[test]
fn late_features_get_a_column_in_every_file() {
    let temporary = room();
    let plain = some_text(60, 10);
    let late = "3 qid:late 1:1 9:7\n";
    fs::write(temporary.path().join("late.txt"), format!("{plain}{late}")).unwrap();
    // The same rows with all nine features present from the first row on.
    let known = plain.replacen(" 5:", " 9:NULL 5:", 1);
    fs::write(temporary.path().join("known.txt"), format!("{known}{late}")).unwrap();
    for options in ["", "--partition-rows 100", "--partition-rows 7"] {
        run(temporary.path(), &format!("convert late.txt --output late {options} --overwrite")).ok();
        run(temporary.path(), &format!("convert known.txt --output known {options} --overwrite")).ok();
        let parts = |name: &str| -> Vec<(String, Vec<u8>)> {
            files_of(&temporary.path().join(name))
                .into_iter()
                .filter(|(name, _)| name.ends_with(".parquet"))
                .collect()
        };
        assert!(parts("late") == parts("known"), "{options}");
        let rows = rows_of(&temporary.path().join("late"));
        assert!(rows.iter().all(|row| row.features.len() == 9));
        assert_eq!(rows.last().unwrap().features[8], Some(7.0));
    }
}

#[test]
fn whole_queries_stay_in_one_row_group_and_file() {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(500, 13)).unwrap();
    run(temporary.path(), "convert in.txt --output out --partition-rows 100").ok();
    let mut seen = std::collections::HashSet::new();
    let mut files = 0;
    for (name, bytes) in files_of(&temporary.path().join("out")) {
        if !name.ends_with(".parquet") {
            continue;
        }
        files += 1;
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        for group in 0..builder.metadata().num_row_groups() {
            assert!(builder.metadata().row_group(group).num_rows() >= 13);
        }
        use arrow::array::AsArray;
        let mut here = std::collections::HashSet::new();
        for batch in builder.build().unwrap() {
            let batch = batch.unwrap();
            for id in batch.column(0).as_string::<i32>() {
                here.insert(id.unwrap().to_owned());
            }
        }
        for id in here {
            assert!(seen.insert(id.clone()), "query {id} is in two files");
        }
    }
    assert_eq!((seen.len(), files), (500, 500 * 13 / 104 + 1));
}

#[test]
fn a_file_ends_with_the_query_that_reaches_partition_rows() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(3500, 40)).unwrap();
    run(temporary.path(), "convert in.txt --output out --partition-rows 70000").ok();
    let manifest = fs::read_to_string(temporary.path().join("out/_manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let rows: Vec<u64> =
        manifest["files"].as_array().unwrap().iter().map(|file| file["rows"].as_u64().unwrap()).collect();
    assert_eq!(rows, [70_000, 70_000]);
}

#[test]
fn wide_and_sparse_rows_take_little_memory() {
    let temporary = room();
    // Ten thousand features with one value per row: a dense block would take gigabytes.
    let mut text = String::new();
    for row in 0..200_000u32 {
        text.push_str(&format!("1 qid:{} {}:1\n", row / 50, row.wrapping_mul(2_654_435_761) % 10_000 + 1));
    }
    fs::write(temporary.path().join("in.txt"), &text).unwrap();
    let (stderr, peak) = peak_of(temporary.path(), "--quiet convert in.txt --output out");
    assert_eq!(stderr, "");
    assert!(peak < 400, "convert: {peak} MiB");
    let (stderr, peak) = peak_of(temporary.path(), "--quiet describe out");
    assert_eq!(stderr, "");
    assert!(peak < 400, "describe: {peak} MiB");
}

#[test]
fn sorting_scattered_queries_gives_the_same_rows_with_any_budget() {
    let temporary = room();
    // Rows are dealt out like cards, so that every query is scattered over the whole input.
    let sorted = some_text(300, 200);
    let lines: Vec<&str> = sorted.lines().collect();
    let mut dealt = String::new();
    for start in 0..200 {
        for query in 0..300 {
            dealt.push_str(lines[query * 200 + start]);
            dealt.push('\n');
        }
    }
    fs::write(temporary.path().join("sorted.txt"), &sorted).unwrap();
    fs::write(temporary.path().join("dealt.txt"), &dealt).unwrap();
    run(temporary.path(), "convert sorted.txt --output sorted").ok();
    run(temporary.path(), "convert dealt.txt --output dealt").failed();
    run(temporary.path(), "convert dealt.txt --output dealt --sort-queries").ok();
    assert_eq!(rows_of(&temporary.path().join("dealt")), rows_of(&temporary.path().join("sorted")));
    let parts = |name: &str| {
        files_of(&temporary.path().join(name))
            .into_iter()
            .filter(|(name, _)| name.ends_with(".parquet"))
            .collect::<Vec<_>>()
    };
    assert!(parts("dealt") == parts("sorted"));
}

#[test]
fn an_overwritten_dataset_is_replaced_atomically() {
    let temporary = room();
    fs::write(temporary.path().join("a.txt"), some_text(50, 10)).unwrap();
    fs::write(temporary.path().join("b.txt"), some_text(20, 10)).unwrap();
    run(temporary.path(), "convert a.txt --output out --partition-rows 20").ok();
    let stderr = run(temporary.path(), "convert b.txt --output out").failed().stderr;
    assert_eq!(
        stderr,
        "error: out: output already exists\n  help: choose another --output, or pass --overwrite to replace it\n"
    );
    run(temporary.path(), "convert b.txt --output out --overwrite").ok();
    run(temporary.path(), "convert b.txt --output fresh").ok();
    assert_same_files(&temporary.path().join("out"), &temporary.path().join("fresh"));
    assert_eq!(names_in(temporary.path()), ["a.txt", "b.txt", "fresh", "out"]);
}

#[test]
fn repeated_queries_are_found_beyond_memory() {
    let temporary = room();
    let mut text = String::new();
    for query in 0..1_200_000 {
        text.push_str(&format!("1 qid:{query} 1:1\n"));
    }
    fs::write(temporary.path().join("in.txt"), &text).unwrap();
    run(temporary.path(), "convert in.txt --output out").ok();
    text.push_str("1 qid:77 1:1\n");
    fs::write(temporary.path().join("in.txt"), &text).unwrap();
    let stderr = run(temporary.path(), "convert in.txt --output again").failed().stderr;
    assert!(stderr.starts_with("error: in.txt:1200001:1: found the query of this line again, expected all its rows to be consecutive: the first one is at in.txt:78\n"), "{stderr}");
}

#[test]
fn a_sample_of_queries_is_in_every_larger_one() {
    let temporary = room();
    fs::write(temporary.path().join("all.txt"), some_text(200, 7)).unwrap();
    let rows = |options: &str| {
        run(temporary.path(), &format!("convert all.txt --output part --overwrite {options}")).ok();
        let part = temporary.path().join("part");
        let location = Location::parse(part.to_str().unwrap(), Access::Explicit).unwrap();
        let fingerprint = DatasetReader::open(&location).unwrap().fingerprint().unwrap();
        (rows_of(&part), fingerprint)
    };
    let (all, _) = rows("");
    let (half, _) = rows("--query-fraction 0.5");
    let (few, _) = rows("--query-fraction 0.2");
    assert!(half.len() > 70 * 7 && half.len() < 130 * 7 && few.len() < 60 * 7 && !few.is_empty());
    let queries = |rows: &[DatasetRow]| rows.iter().map(|row| row.query.clone()).collect::<BTreeSet<_>>();
    assert!(queries(&few).is_subset(&queries(&half)) && queries(&half).is_subset(&queries(&all)));
    let kept: Vec<&DatasetRow> = all.iter().filter(|row| queries(&half).contains(&row.query)).collect();
    assert!(kept.iter().copied().eq(&half), "whole queries, in their order");
    let (other, _) = rows("--query-fraction 0.5 --query-seed 9");
    assert_ne!(queries(&other), queries(&half));
    // Threads, files and sorting do not matter; the fingerprint that a model records does change.
    let (again, fingerprint) = rows("--query-fraction 0.5 --threads 1 --partition-rows 100 --sort-queries");
    assert_eq!(again, half);
    assert_eq!(fingerprint, rows("--query-fraction 0.5").1);
    assert_ne!(fingerprint, rows("").1);
    assert_eq!(rows("--query-fraction 1.0"), rows(""));
    let before = names_in(temporary.path());
    for (fraction, problem) in
        [("0", "is out of range"), ("1.5", "is out of range"), ("0.000001", "selects no query")]
    {
        let ran =
            run(temporary.path(), &format!("convert all.txt --output none --query-fraction {fraction}"));
        assert!(ran.code == 2 && ran.stderr.contains(problem), "{}", ran.stderr);
        assert_eq!(names_in(temporary.path()), before);
    }
    // A repeated query is detected, whether or not it is kept.
    let text = some_text(200, 2);
    fs::write(temporary.path().join("back.txt"), format!("{text}{text}")).unwrap();
    for fraction in ["0.9", "0.1"] {
        let ran =
            run(temporary.path(), &format!("convert back.txt --output none --query-fraction {fraction}"));
        assert!(ran.failed().stderr.contains("--sort-queries"), "{fraction}");
    }
}
