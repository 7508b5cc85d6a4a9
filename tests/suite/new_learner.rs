//! A learner that is not part of the product is added to a copy of the workspace: two new files and a few lines in four
//! others. It trains, predicts and runs on a cluster like those of the product.

use crate::support::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that the learner touches; a file that exists gets lines, each after a line that starts with the given text.
const EDITS: &[(&str, &[(&str, &str)])] = &[
    (
        "src/train/src/config/learners/mod.rs",
        &[
            ("mod svm;", "mod votes;\npub(crate) use votes::{VotesOptions, VotesParameters, VotesSettings};"),
            ("    &net::NET,", "    &votes::VOTES,"),
            ("    Net(NetParameters),", "    /// Feature votes.\n    Votes(VotesParameters),"),
            (
                "            LearnerParameters::Net(net) => net,",
                "            LearnerParameters::Votes(votes) => votes,",
            ),
        ],
    ),
    (
        "src/train/src/compose/learners.rs",
        &[(
            "        LearnerParameters::Net(net) =>",
            "        LearnerParameters::Votes(votes) => Box::new(parameters.with(votes.clone())),",
        )],
    ),
    ("src/train/src/lib.rs", &[("pub mod tree;", "pub mod votes;")]),
    (
        "src/cluster/src/registry.rs",
        &[(
            "    RegisteredJob::of::<Survey>(),",
            "    RegisteredJob::of::<planetree_train::votes::VoteSums>(),",
        )],
    ),
];
const NEW_FILES: &[(&str, &str)] = &[
    ("tests/new_learner/config.rs", "src/train/src/config/learners/votes.rs"),
    ("tests/new_learner/learner.rs", "src/train/src/votes.rs"),
];

/// Copies the workspace, without builds and history.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name(), entry.path());
        if [".git", "target", "demo"].iter().any(|left_out| name == *left_out) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn insert_after(text: &str, anchor: &str, lines: &str) -> String {
    let mut found = 0;
    let mut edited = String::new();
    for line in text.lines() {
        edited.push_str(line);
        edited.push('\n');
        if line.starts_with(anchor) {
            found += 1;
            edited.push_str(lines);
            edited.push('\n');
        }
    }
    assert_eq!(found, 1, "{anchor}");
    edited
}

/// Returns the program with the learner.
fn build(workspace: &Path) -> PathBuf {
    let target = std::env::var("NEW_LEARNER_TARGET").map_or_else(|_| workspace.join("target"), PathBuf::from);
    let built = Command::new("cargo")
        .args(["build", "--locked", "--workspace", "--features", "planetree-cli/cluster"])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", &target)
        .status();
    assert!(built.unwrap().success());
    target.join("debug/planetree")
}

#[test]
#[ignore = "builds the workspace again: make test-all"]
fn a_new_learner_touches_six_files_and_trains_the_same_bytes_everywhere() {
    let room = room();
    let at = room.path();
    let workspace = at.join("workspace");
    copy(Path::new(ROOT), &workspace);
    for (from, to) in NEW_FILES {
        fs::copy(workspace.join(from), workspace.join(to)).unwrap();
    }
    for (file, edits) in EDITS {
        let mut text = fs::read_to_string(workspace.join(file)).unwrap();
        for (anchor, lines) in *edits {
            text = insert_after(&text, anchor, lines);
        }
        fs::write(workspace.join(file), text).unwrap();
    }
    assert!(EDITS.len() + NEW_FILES.len() <= 10);
    let program = build(&workspace);
    let planetree = |arguments: &str| {
        let output =
            Command::new(&program).args(arguments.split_whitespace()).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };

    same_rows(at);
    let bytes = |options: &str| {
        let set = "--set ensemble=votes --set train_metric=ndcg@5 --valid vali --model m";
        planetree(&format!("--quiet train {set} {options}"));
        fs::read(at.join("m")).unwrap()
    };
    let expected = bytes("--data one --threads 1");
    for options in ["--data one --threads 4", "--data many --threads 2", "--data many --cluster local:2"] {
        assert!(bytes(options) == expected, "{options}");
    }
    planetree("--quiet predict --model m --data vali --output predicted");
    // The weight of a feature is the metric that `evaluate` computes for it.
    let described: serde_json::Value = serde_json::from_str(&planetree("describe m --json")).unwrap();
    assert_eq!(described["parts"][0]["kind"], "linear");
    fs::write(at.join("weight.sql"), "select value from m where feature = 'f1'").unwrap();
    let weight: f64 = planetree("sql --format csv -f weight.sql").lines().last().unwrap().parse().unwrap();
    let evaluated = planetree("--quiet evaluate --data one --feature f1 --metrics ndcg@5 --json");
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated).unwrap();
    let mean = evaluated["systems"][0]["means"]["ndcg@5"].as_f64().unwrap();
    assert!((weight - mean).abs() < 1e-12, "{weight} {mean}");
}
