//! Damaged files of every kind, with and without checksums that fit.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::*;
use planetree::random::Stream;
use planetree::storage::digest_of;
use std::fs;
use std::path::Path;

/// How a damaged file is completed before it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksum {
    /// It has a checksum, which no longer fits.
    Broken,
    /// The checksum of a manifest is computed again.
    Manifest,
    /// The checksums of a dataset's file are computed again, in the manifest.
    Part,
    /// The checksum of a table is computed again.
    Table,
    /// It has none.
    None,
}

/// A kind of file: its name in the report, the file, its checksum, and the commands that read it.
struct FileKind {
    name: &'static str,
    file: &'static str,
    checksum: Checksum,
    commands: &'static [&'static [&'static str]],
}

const KINDS: &[FileKind] = &[
    FileKind {
        name: "LETOR text",
        file: "in.txt",
        checksum: Checksum::None,
        commands: &[
            &["convert", "in.txt", "--output", "out"],
            &["convert", "in.txt", "--lenient", "--output", "out"],
        ],
    },
    FileKind {
        name: "compressed text",
        file: "in.txt.gz",
        checksum: Checksum::None,
        commands: &[&["convert", "in.txt.gz", "--output", "out"]],
    },
    FileKind {
        name: "CSV",
        file: "in.csv",
        checksum: Checksum::None,
        commands: &[&["convert", "in.csv", "--output", "out"], &["sql", "-c", "SELECT * FROM 'in.csv'"]],
    },
    FileKind {
        name: "Parquet of others",
        file: "foreign.parquet",
        checksum: Checksum::None,
        commands: &[
            &["convert", "foreign.parquet", "--output", "out"],
            &["sql", "-c", "SELECT * FROM 'foreign.parquet'"],
            &["sql", "-c", "SELECT count(*), max(label) FROM 'foreign.parquet' WHERE label > 1"],
        ],
    },
    FileKind {
        name: "manifest",
        file: "data/_manifest.json",
        checksum: Checksum::Broken,
        commands: &[&["describe", "data"]],
    },
    FileKind {
        name: "manifest, checksum fits",
        file: "data/_manifest.json",
        checksum: Checksum::Manifest,
        commands: &[
            &["describe", "data"],
            &["train", "--data", "data", "--model", "out", "--set", "num_trees=1"],
            &["sql", "-c", "SELECT count(*) FROM 'data'"],
        ],
    },
    FileKind {
        name: "part of a dataset",
        file: "data/PART",
        checksum: Checksum::Broken,
        commands: &[&["describe", "data"], &["sql", "-c", "SELECT * FROM 'data'"]],
    },
    FileKind {
        name: "part of a dataset, checksums fit",
        file: "data/PART",
        checksum: Checksum::Part,
        commands: &[
            &["describe", "data"],
            &["sql", "-c", "SELECT * FROM 'data'"],
            &["predict", "--model", "model.parquet", "--data", "data", "--output", "out"],
            &["train", "--data", "data", "--model", "out", "--set", "num_trees=1"],
        ],
    },
    FileKind {
        name: "model",
        file: "model.parquet",
        checksum: Checksum::Broken,
        commands: &[
            &["describe", "model.parquet"],
            &["predict", "--model", "model.parquet", "--data", "data", "--output", "out"],
        ],
    },
    FileKind {
        name: "model, checksum fits",
        file: "model.parquet",
        checksum: Checksum::Table,
        commands: &[
            &["describe", "model.parquet"],
            &["predict", "--model", "model.parquet", "--data", "data", "--output", "out"],
            &["export", "model.parquet", "--format", "lightgbm", "--output", "out"],
        ],
    },
    FileKind {
        name: "predictions",
        file: "predictions.parquet",
        checksum: Checksum::Broken,
        commands: &[
            &["evaluate", "--predictions", "predictions.parquet"],
            &["sql", "-c", "SELECT * FROM 'predictions.parquet'"],
        ],
    },
    FileKind {
        name: "predictions, checksum fits",
        file: "predictions.parquet",
        checksum: Checksum::Table,
        commands: &[
            &["evaluate", "--predictions", "predictions.parquet"],
            &["describe", "predictions.parquet"],
        ],
    },
    FileKind {
        name: "metrics",
        file: "metrics.parquet",
        checksum: Checksum::Broken,
        commands: &[&["describe", "metrics.parquet"]],
    },
    FileKind {
        name: "metrics, checksum fits",
        file: "metrics.parquet",
        checksum: Checksum::Table,
        commands: &[
            &["describe", "metrics.parquet"],
            &["compare", "metrics.parquet", "metrics.parquet", "--metric", "ndcg@10"],
        ],
    },
    FileKind {
        name: "training log",
        file: "rounds.parquet",
        checksum: Checksum::Broken,
        commands: &[&["describe", "rounds.parquet"]],
    },
    FileKind {
        name: "training log, checksum fits",
        file: "rounds.parquet",
        checksum: Checksum::Table,
        commands: &[&["describe", "rounds.parquet"], &["sql", "-c", "SELECT * FROM 'rounds.parquet'"]],
    },
    FileKind {
        name: "model of LightGBM",
        file: "model.txt",
        checksum: Checksum::None,
        commands: &[&["import", "model.txt", "--output", "out"]],
    },
    FileKind {
        name: "model of XGBoost",
        file: "model.json",
        checksum: Checksum::None,
        commands: &[&["import", "model.json", "--output", "out"]],
    },
    FileKind {
        name: "parameters in TOML",
        file: "config.toml",
        checksum: Checksum::None,
        commands: &[&[
            "train",
            "--data",
            "data",
            "--config",
            "config.toml",
            "--set",
            "num_trees=1",
            "--model",
            "out",
        ]],
    },
    FileKind {
        name: "pipeline in TOML",
        file: "pipeline.toml",
        checksum: Checksum::None,
        commands: &[&["run", "pipeline.toml", "--dry-run", "--output", "out"]],
    },
    FileKind {
        name: "SQL text",
        file: "query.sql",
        checksum: Checksum::None,
        commands: &[&["sql", "-f", "query.sql", "."]],
    },
    FileKind {
        name: "TREC run",
        file: "scores.run",
        checksum: Checksum::None,
        commands: &[&["evaluate", "--run", "scores.run", "--qrels", "all.qrels"]],
    },
];

const QUERY: &str =
    "WITH best AS (SELECT query_id, max(score) AS s FROM 'predictions.parquet' GROUP BY query_id)
SELECT p.query_id, ndcg(p.label, p.score, 10) + 1.5 AS n, CASE WHEN count(*) > 3 THEN 'many' ELSE NULL END
FROM 'predictions.parquet' p JOIN best ON best.query_id = p.query_id AND p.label BETWEEN 0 AND 4
GROUP BY p.query_id HAVING count(*) > 1 ORDER BY n DESC, 1 LIMIT 20;
SELECT repeat('x', 3) || lpad('y', 4, '-'), [1, 2, 3][2], date '2020-01-01' + interval '1 month';";

const PIPELINE: &str = "[pipeline]
name = \"p\"
[parameters]
trees = 3
[step.data]
kind = \"convert\"
input = \"in.txt\"
[step.model]
kind = \"train\"
data = \"data\"
set = { num_trees = \"{trees}\" }
";

/// Makes one intact file of each kind. Returns the name of the dataset's file.
fn make_files(room: &Path) -> String {
    fs::write(room.join("in.txt"), some_text(20, 12)).unwrap();
    fs::write(room.join("in.csv"), as_csv(&graded(5, 20, 10))).unwrap();
    run(room, "convert in.txt --output data --partition-rows 100").ok();
    for line in [
        "train --data data --model model.parquet --rounds rounds.parquet --set num_trees=4 --set min_data_in_leaf=5",
        "predict --model model.parquet --data data --output predictions.parquet",
        "evaluate --predictions predictions.parquet --metrics ndcg@10,err --output metrics.parquet",
        "export model.parquet --format lightgbm --output model.txt",
        "export model.parquet --format xgboost --output model.json",
    ] {
        run(room, line).ok();
    }
    let mut gzip = std::process::Command::new("gzip");
    assert!(gzip.current_dir(room).args(["-k", "in.txt"]).status().unwrap().success());
    let copy = "COPY (SELECT query_id, doc_id, label, f1, f2, f5 FROM 'data') TO 'foreign.parquet'";
    sql::sql_in(room, "--allow-write .", copy, &[]).ok();
    fs::write(
        room.join("config.toml"),
        "preset = \"lambdamart\"\nlearning_rate = 0.1\nmax_depth = 4\nseed = 7\n",
    )
    .unwrap();
    fs::write(room.join("pipeline.toml"), PIPELINE).unwrap();
    fs::write(room.join("query.sql"), QUERY).unwrap();
    let lines = |line: fn(usize, usize) -> String| -> String {
        (0..20).flat_map(|query| (0..10).map(move |document| line(query, document))).collect()
    };
    fs::write(
        room.join("scores.run"),
        lines(|query, document| format!("{query} Q0 d{document} {} {}.5 tag\n", document + 1, 10 - document)),
    )
    .unwrap();
    fs::write(
        room.join("all.qrels"),
        lines(|query, document| format!("{query} 0 d{document} {}\n", (query + document) % 3)),
    )
    .unwrap();
    names_in(&room.join("data")).into_iter().find(|name| name.ends_with(".parquet")).unwrap()
}

/// Changes some bytes of a file without changing its length.
fn damaged_in_place(bytes: &[u8], draw: &mut Stream) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + draw.bits() % 3 {
        let start = (draw.bits() % bytes.len() as u64) as usize;
        let end = (start + 1 + (draw.bits() % 40) as usize).min(bytes.len());
        match draw.bits() % 4 {
            0 => bytes[start..end].fill(0),
            1 => bytes[start..end].fill(0xFF),
            _ => bytes[start] ^= 1 << (draw.bits() % 8),
        }
    }
    bytes
}

/// Computes the checksums of a file of a dataset again. Returns the manifest with them.
fn fitting_manifest(manifest: &str, name: &str, part: &[u8]) -> String {
    let parsed: serde_json::Value = serde_json::from_str(manifest).unwrap();
    let file = parsed["files"].as_array().unwrap().iter().find(|file| file["name"] == name).unwrap();
    let mut text = manifest.to_owned();
    for range in file["row_groups"].as_array().unwrap().iter().chain([&file["footer"]]) {
        let number = |key: &str| range[key].as_u64().unwrap() as usize;
        let bytes = &part[number("offset")..][..number("bytes")];
        text = text.replace(range["xxh3"].as_str().unwrap(), &digest_of(bytes).to_string());
    }
    let completed = completed(text.into_bytes(), Checksum::Manifest).expect("a manifest with a checksum");
    String::from_utf8(completed).unwrap()
}

/// Changes some bytes of a file: flips, cuts, repeats, insertions, zeros, numbers that are too large.
fn damaged(bytes: &[u8], draw: &mut Stream) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + draw.bits() % 3 {
        let length = bytes.len().max(1) as u64;
        let start = (draw.bits() % length) as usize;
        let end = (start + 1 + (draw.bits() % 40) as usize).min(bytes.len());
        match draw.bits() % 8 {
            0 | 1 if start < bytes.len() => bytes[start] ^= 1 << (draw.bits() % 8),
            2 => bytes.truncate(start),
            3 => {
                let repeated = bytes[start.min(end)..end].repeat(1 + (draw.bits() % 4) as usize);
                bytes.splice(start..start, repeated);
            }
            4 => {
                const ODD: &[u8] = b"\x00\xFF\x1b\n\r,;:\"'#";
                let count = draw.bits() % 9;
                let odd: Vec<u8> =
                    (0..count).map(|_| ODD[(draw.bits() % ODD.len() as u64) as usize]).collect();
                bytes.splice(start..end, odd);
            }
            5 => bytes[start.min(end)..end].fill(if draw.bits().is_multiple_of(2) { 0 } else { 0xFF }),
            6 => {
                bytes.drain(start..end);
            }
            _ => {
                // The first number from here on becomes a large one.
                let digits = |byte: &u8| byte.is_ascii_digit();
                if let Some(first) =
                    bytes[start.min(end)..].iter().position(digits).map(|place| place + start.min(end))
                {
                    let count = bytes[first..].iter().take_while(|byte| digits(byte)).count();
                    let large = ["18446744073709551615", "4294967296", "99999999", "-1", "1e309", "NaN"];
                    let number = large[(draw.bits() % large.len() as u64) as usize];
                    bytes.splice(first..first + count, number.bytes());
                }
            }
        }
    }
    bytes
}

/// Computes the checksum of a damaged file again; `None` if the file no longer has a place for it.
fn completed(bytes: Vec<u8>, checksum: Checksum) -> Option<Vec<u8>> {
    match checksum {
        Checksum::Broken | Checksum::Part | Checksum::None => Some(bytes),
        Checksum::Manifest => {
            let text = String::from_utf8(bytes).ok()?;
            let (body, _) = text.rsplit_once(",\n  \"xxh3\": \"")?;
            let digest = digest_of(format!("{body}\n}}").as_bytes());
            Some(format!("{body},\n  \"xxh3\": \"{digest}\"\n}}\n").into_bytes())
        }
        Checksum::Table => {
            let mut bytes = bytes;
            let key = b"planetree.xxh3\x18\x20";
            let start = bytes.windows(key.len()).rposition(|window| window == key)? + key.len();
            bytes.get_mut(start..start + 32)?.fill(b'0');
            let digest = digest_of(&bytes).to_string();
            bytes[start..start + 32].copy_from_slice(digest.as_bytes());
            Some(bytes)
        }
    }
}

/// Removes what a command wrote.
fn clean(room: &Path) {
    for name in names_in(room).iter().filter(|name| *name == "out" || name.starts_with("data.bins")) {
        let path = room.join(name);
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    let part = make_files(room.path());
    let manifest_file = room.path().join("data/_manifest.json");
    let manifest = fs::read_to_string(&manifest_file).unwrap();
    for (place, kind) in KINDS.iter().enumerate() {
        torture.take_time_until(30.0 * (place + 1) as f64 / KINDS.len() as f64);
        let file = room.path().join(kind.file.replace("PART", &part));
        let intact = fs::read(&file).unwrap();
        let mut draw = torture.draw(kind.name);
        let expected: Vec<String> = kind
            .commands
            .iter()
            .map(|command| {
                let ran = run_words(room.path(), command, &[]);
                assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
                clean(room.path());
                ran.stdout
            })
            .collect();
        let known = names_in(room.path());
        for case in 0..torture.cases {
            if !torture.has_time() {
                break;
            }
            let change = if kind.checksum == Checksum::Part { damaged_in_place } else { damaged };
            let Some(bytes) = completed(change(&intact, &mut draw), kind.checksum) else { continue };
            if bytes == intact {
                continue;
            }
            fs::write(&file, &bytes).unwrap();
            if kind.checksum == Checksum::Part {
                fs::write(&manifest_file, fitting_manifest(&manifest, &part, &bytes)).unwrap();
            }
            let which = case % kind.commands.len();
            let ran = run_words(room.path(), kind.commands[which], &[]);
            let mut outcome = outcome_of(&ran);
            if kind.checksum == Checksum::Broken
                && outcome == Outcome::Survived
                && ran.stdout != expected[which]
            {
                outcome = Outcome::Silent;
            }
            let has_output = room.path().join("out").exists();
            let left =
                || names_in(room.path()).into_iter().filter(|name| name != "out" && !name.ends_with(".bins"));
            if outcome == Outcome::Refused && (has_output || !left().eq(known.clone())) {
                outcome = Outcome::Partial;
            }
            torture.count(kind.name, outcome, || {
                let kept = std::env::temp_dir()
                    .join(format!("torture-{}-{case}", kind.name.replace([' ', ','], "-")));
                let _ = fs::write(&kept, &bytes); // to reproduce the case
                format!("{:?}, {}: {}", kind.commands[which], kept.display(), ending(&ran))
            });
            clean(room.path());
        }
        fs::write(&file, &intact).unwrap();
        fs::write(&manifest_file, &manifest).unwrap();
    }
}
