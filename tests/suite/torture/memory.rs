//! Memory limits: each command stays within its limit, or refuses it before it works.

use super::{Outcome, Torture};
use crate::support::*;
use std::process::Stdio;

/// Commands that have a memory limit.
const COMMANDS: [(&str, &str); 10] = [
    ("convert", "convert text/train.txt --output out --overwrite"),
    ("convert, sorted", "convert text/train.txt --sort-queries --output out --overwrite"),
    ("train planet", "train --data data --model out.model --set num_trees=2"),
    ("train gbrt", "train --preset gbrt --data data --model out.model --set num_trees=1"),
    ("train pgbrt", "train --preset pgbrt --data data --model out.model --set num_trees=1"),
    ("train lambdamart", "train --preset lambdamart --data data --model out.model --set num_trees=2"),
    ("train rf", "train --preset rf --data data --model out.model --set num_trees=2"),
    ("evaluate", "evaluate --predictions shuffled.parquet --metrics ndcg@10"),
    ("sql order by", "sql -o out.parquet --overwrite -f order.sql"),
    ("sql group by", "sql -o out.parquet --overwrite -f group.sql"),
];

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    let rows = if torture.cases > 100 { 200_000 } else { 30_000 };
    run_setup(room.path(), rows);
    let (limits, threads): (&[u64], &[u32]) = match torture.cases > 100 {
        true => (&[32, 64, 96, 128, 192, 256, 384, 512, 1024], &[1, 2, 4]),
        false => (&[96, 256], &[2]),
    };
    for (name, arguments) in COMMANDS {
        for limit in limits {
            for threads in threads {
                if !torture.has_time() {
                    return;
                }
                let line = format!("{arguments} --memory-limit {limit}MiB --threads {threads}");
                let mut child =
                    command(room.path(), &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
                let peak = sampled_peak(&mut child);
                let ran = Ran::of(child.wait_with_output().unwrap());
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
        "train --data data --model model --set num_trees=2".to_owned(),
        "predict --model model --data data --output predictions.parquet".to_owned(),
    ] {
        run(room, &line).ok();
    }
    let shuffle = "COPY (SELECT query_id, doc_id, label, score FROM 'predictions.parquet' ORDER BY score, doc_id) TO 'shuffled.parquet'";
    sql::sql_in(room, "--allow-write .", shuffle, &[]).ok();
    std::fs::write(room.join("order.sql"), "SELECT * FROM 'data' ORDER BY f3, f1, query_id").unwrap();
    std::fs::write(room.join("group.sql"), "SELECT f1, f2, count(*), max(f3) FROM 'data' GROUP BY f1, f2")
        .unwrap();
}
