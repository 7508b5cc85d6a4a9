//! SQL over tables that the program made from the sample data.

use super::program::{ROOT, Ran, command, run};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Datasets, models, predictions and all other kinds of tables, made once per run of the tests.
static TABLES: LazyLock<PathBuf> = LazyLock::new(|| {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sql-tables");
    let _ = std::fs::remove_dir_all(&room); // from an earlier run
    std::fs::create_dir_all(&room).unwrap();
    let sample = Path::new(ROOT).join("sample_data");
    for part in ["train", "vali", "test"] {
        let text = sample.join(format!("{part}.txt"));
        run(&room, &format!("convert {} --output {part}", text.display())).ok();
    }
    for line in [
        "train --data train --valid vali --model model.parquet --rounds rounds.parquet --set num_trees=20",
        "train --data train --model other.parquet --set num_trees=3 --set max_depth=2",
        "predict --model model.parquet --data test --output predictions.parquet",
        "predict --model other.parquet --data test --output tied.parquet",
        "evaluate --predictions predictions.parquet --metrics ndcg@10,err,map --output metrics.parquet",
        "compare predictions.parquet tied.parquet --metric ndcg@10 --output differences.parquet",
        "cv --data train --folds 3 --set num_trees=2 --output cv",
    ] {
        run(&room, line).ok();
    }
    std::fs::create_dir(room.join("outside")).unwrap();
    std::fs::write(room.join("clicks.csv"), "query_id,doc_id,clicks,note\nq1,d1,3,\"a, b\"\nq1,d2,0,\n")
        .unwrap();
    std::fs::write(
        room.join("clicks.json"),
        "{\"query\":\"q1\",\"clicks\":3}\n{\"query\":\"q2\",\"clicks\":null}\n",
    )
    .unwrap();
    std::fs::write(room.join("array.json"), "[{\"a\":1},{\"a\":2}]").unwrap();
    std::fs::write(room.join("clicks.tsv"), "a\tb\n1\tx y\n").unwrap();
    std::fs::write(room.join("notes.txt"), "no rows").unwrap();
    std::fs::create_dir(room.join("many")).unwrap();
    for part in 0..3 {
        std::fs::write(room.join(format!("many/{part}.csv")), format!("n\n{part}\n")).unwrap();
    }
    room
});

/// The directory of the tables.
pub fn tables() -> &'static Path {
    &TABLES
}

/// Runs a query in the directory of the tables.
pub fn sql(options: &str, query: &str) -> Ran {
    sql_in(tables(), options, query, &[])
}

/// Runs a query in a directory.
pub fn sql_in(directory: &Path, options: &str, query: &str, environment: &[(String, String)]) -> Ran {
    let mut command = command(directory, &format!("--quiet sql {options}"));
    Ran::of(command.args(["-c", query]).envs(environment.iter().cloned()).output().unwrap())
}
