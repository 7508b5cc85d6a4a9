//! Memory limits: each command stays within its limit, or refuses it before it works.

use super::{Outcome, Torture};
use crate::support::*;
use std::process::Stdio;

/// Commands that have a memory limit.
const COMMANDS: [(&str, &str); 34] = [
    ("convert", "convert text/train.txt --output out --overwrite"),
    ("convert, sorted", "convert text/train.txt --sort-queries --output out --overwrite"),
    ("train planet", "train --data data --model out.model --set num_trees=2"),
    ("train gbrt", "train --preset gbrt --data data --model out.model --set num_trees=1"),
    ("train pgbrt", "train --preset pgbrt --data data --model out.model --set num_trees=1"),
    ("train lambdamart", "train --preset lambdamart --data data --model out.model --set num_trees=2"),
    ("train rf", "train --preset rf --data data --model out.model --set num_trees=2"),
    ("train rf-rand", "train --preset rf-rand --data data --model out.model --set num_trees=2"),
    (
        "train igbrt",
        "train --preset igbrt --data data --model out.model --set stage.1.num_trees=2 --set stage.2.num_trees=2",
    ),
    ("train linear", "train --preset linear --data data --model out.model"),
    ("train ranksvm", "train --preset ranksvm --data data --model out.model --set svm_c=1"),
    ("train net", "train --preset ranknet-net --data data --model out.model --set num_trees=1"),
    ("train rf-list", "train --preset rf-list --data data --model out.model --set num_trees=2"),
    ("train rf-pair", "train --preset rf-pair --data data --model out.model --set num_trees=2"),
    ("train mcrank", "train --preset mcrank --data data --model out.model --set num_trees=1"),
    ("train rankboost", "train --preset rankboost --data data --model out.model --set num_trees=2"),
    ("train adarank", "train --preset adarank --data data --model out.model --set num_trees=2"),
    ("train svm", "train --preset svm --data data --model out.model --set svm_c=1"),
    (
        "train validated",
        "train --preset lambdamart --data data --valid data --model out.model --set num_trees=2",
    ),
    ("train planet, wide", "train --data wide --model out.model --set num_trees=1"),
    ("train lambdamart, wide", "train --preset lambdamart --data wide --model out.model --set num_trees=1"),
    ("train linear, wide", "train --preset linear --data wide --model out.model"),
    ("train ranksvm, wide", "train --preset ranksvm --data wide --model out.model --set svm_c=1"),
    ("train net, wide", "train --preset listnet --data wide --model out.model --set num_trees=1"),
    ("cv", "cv --preset planet --data data --folds 3 --set num_trees=1 --output out.cv"),
    ("cv, one row group", "cv --preset planet --data whole --folds 3 --set num_trees=1 --output out.cv"),
    ("train gbrt, one row group", "train --preset gbrt --data whole --model out.model --set num_trees=1"),
    ("evaluate", "evaluate --predictions shuffled.parquet --metrics ndcg@10"),
    ("evaluate, scattered", "evaluate --predictions scattered.parquet --metrics ndcg@10"),
    ("sql order by", "sql -o out.parquet --overwrite -f order.sql"),
    ("sql order by, one row group", "sql -o out.parquet --overwrite -f whole.sql"),
    ("sql group by", "sql -o out.parquet --overwrite -f group.sql"),
    ("sql window", "sql -o out.parquet --overwrite -f window.sql"),
    ("sql long values", "sql -o out.parquet --overwrite -f long.sql"),
];

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    let rows = if torture.cases > 100 { 60_000 } else { 30_000 };
    run_setup(room.path(), rows);
    let (limits, threads): (&[u64], &[u32]) = match torture.cases > 100 {
        true => (&[32, 64, 96, 128, 192, 256, 384, 512, 1024], &[1, 2, 8]),
        false => (&[96, 256], &[2]),
    };
    // Every command has its turn before the time is over.
    let is_short = torture.cases <= 100;
    for (turn, limit) in limits.iter().enumerate() {
        for threads in threads {
            for (place, (name, arguments)) in COMMANDS.into_iter().enumerate() {
                if !torture.has_time() {
                    return;
                }
                // A short run has every command once.
                if is_short && place % limits.len() != turn {
                    continue;
                }
                let line = format!("{arguments} --memory-limit {limit}MiB --threads {threads}");
                let mut child =
                    command(room.path(), &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
                let peak = sampled_peak(&mut child);
                let ran = Ran::of(child.wait_with_output().unwrap());
                let _ = std::fs::remove_dir_all(room.path().join("out.cv"));
                let outcome = match super::outcome_of(&ran) {
                    Outcome::Survived if peak > *limit => Outcome::Silent,
                    Outcome::Refused if !ran.stderr.contains("memory") => Outcome::Panicked,
                    outcome => outcome,
                };
                torture.count("memory limits", outcome, || {
                    format!(
                        "{name}: {limit} MiB, {threads} threads: peak {peak} MiB: {}",
                        super::ending(&ran)
                    )
                });
            }
        }
    }
}

fn run_setup(room: &std::path::Path, rows: usize) {
    for line in [
        format!("sample --shape mslr --rows {rows} --output text"),
        "convert text/train.txt --output data --partition-rows 5000".to_owned(),
        "sample --shape yahoo --rows 4000 --output text".to_owned(),
        "convert text/train.txt --output wide".to_owned(),
        format!("sample --shape mslr --rows {rows} --output text"),
        "convert text/train.txt --output whole".to_owned(),
        "train --data data --model model --set num_trees=2".to_owned(),
        "predict --model model --data data --output predictions.parquet".to_owned(),
    ] {
        run(room, &line).ok();
    }
    let shuffle = "COPY (SELECT query_id, doc_id, label, score FROM 'predictions.parquet' ORDER BY score, doc_id) TO 'shuffled.parquet'";
    sql::sql_in(room, "--allow-write .", shuffle, &[]).ok();
    let scatter = "COPY (SELECT 'query' || (value / 100)::varchar AS query_id, 'd' || value AS doc_id, value % 5 AS label, \
                   (value * 7919) % 1000003 AS score FROM generate_series(0, 399999) \
                   ORDER BY (value * 104729) % 2400007) TO 'scattered.parquet'";
    sql::sql_in(room, "--allow-write .", scatter, &[]).ok();
    std::fs::write(room.join("whole.sql"), "SELECT * FROM 'whole' ORDER BY f1").unwrap();
    std::fs::write(room.join("order.sql"), "SELECT * FROM 'data' ORDER BY f3, f1, query_id").unwrap();
    std::fs::write(
        room.join("window.sql"),
        "SELECT *, sum(f1) OVER (), rank() OVER (ORDER BY f2), max(f3) OVER (PARTITION BY query_id) FROM 'data'",
    )
    .unwrap();
    std::fs::write(
        room.join("long.sql"),
        "SELECT max(length(s || s || s || s)) FROM (SELECT repeat('x', 20000) || value AS s FROM generate_series(1, 20000))",
    )
    .unwrap();
    std::fs::write(room.join("group.sql"), "SELECT f1, f2, count(*), max(f3) FROM 'data' GROUP BY f1, f2")
        .unwrap();
}
