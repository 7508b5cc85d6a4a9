//! Kills and errors at exact system calls, full disks and read-only directories.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands with an output called `out`.
const COMMANDS: [(&str, &str); 5] = [
    ("convert", "convert in.txt --output out --partition-rows 200 --threads 1"),
    (
        "train",
        "train --data data --model out --set num_trees=3 --threads 1 --checkpoint c --checkpoint-every 1 --resume",
    ),
    ("predict", "predict --model model --data data --output out --threads 1"),
    ("evaluate", "evaluate --predictions predictions --output out --threads 1"),
    ("sql", "sql -o out.parquet --threads 1 -f query.sql"),
];

/// System calls, and the error that each of them is made to return.
const CALLS: [(&str, &str); 10] = [
    ("openat", "EMFILE"),
    ("read", "EIO"),
    ("pread64", "EIO"),
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("write", "EDQUOT"),
    ("fsync", "EIO"),
    ("mkdir", "ENOSPC"),
    ("renameat2", "EIO"),
    ("rename", "ENOSPC"),
];

fn make_files(room: &Path) {
    fs::write(room.join("in.txt"), some_text(30, 15)).unwrap();
    fs::write(room.join("query.sql"), "SELECT * FROM 'predictions' ORDER BY score, doc_id").unwrap();
    for line in [
        "convert in.txt --output data --partition-rows 200",
        "train --data data --model model --set num_trees=3 --set min_data_in_leaf=5",
        "predict --model model --data data --output predictions",
    ] {
        run(room, line).ok();
    }
}

/// The output of a command, as a file or as the files of a dataset; `None` if there is none.
fn output_of(room: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    let name = if room.join("out.parquet").exists() { "out.parquet" } else { "out" };
    let path = room.join(name);
    match path.is_dir() {
        true => Some(files_of(&path)),
        false => fs::read(&path).ok().map(|bytes| vec![(name.to_owned(), bytes)]),
    }
}

fn clean(room: &Path) {
    clean_output(room);
    let _ = fs::remove_file(room.join("c"));
}

fn clean_output(room: &Path) {
    for name in ["out", "out.parquet"] {
        let path = room.join(name);
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// Runs a command under strace.
fn traced(room: &Path, options: &[&str], arguments: &str) -> Ran {
    let mut strace = Command::new("timeout");
    strace.current_dir(room).args(["-s", "KILL", "60", "strace", "-f", "-qq", "-y", "-o", "trace.log"]);
    strace.args(options).arg(BINARY).args(arguments.split_whitespace()).stdin(Stdio::null());
    let ran = Ran::of(strace.output().unwrap());
    fs::rename(room.join("trace.log"), room.join(".trace")).unwrap();
    ran
}

pub(super) fn inject(torture: &mut Torture) {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        skipped("strace is missing or may not trace: install strace");
        return;
    }
    let room = room();
    make_files(room.path());
    for (place, (name, arguments)) in COMMANDS.into_iter().enumerate() {
        run_words(room.path(), &arguments.split(' ').collect::<Vec<_>>(), &[]).ok();
        let expected = output_of(room.path());
        assert!(expected.is_some(), "{arguments}");
        clean(room.path());
        let mut draw = torture.draw(name);
        for (number, (call, error)) in CALLS.into_iter().enumerate() {
            let done = (place * CALLS.len() + number + 1) as f64 / (COMMANDS.len() * CALLS.len()) as f64;
            torture.take_time_until(30.0 + 25.0 * done);
            traced(room.path(), &["-e", &format!("trace={call}")], arguments);
            clean(room.path());
            let calls = fs::read_to_string(room.path().join(".trace")).unwrap();
            let calls = calls.lines().filter(|line| line.contains(&format!("{call}("))).count() as u64;
            if calls == 0 {
                continue;
            }
            for _ in 0..torture.cases.div_ceil(6) {
                if !torture.has_time() {
                    break;
                }
                let when = 1 + draw.bits() % calls;
                let is_kill = draw.bits().is_multiple_of(2);
                let fault = if is_kill { "signal=SIGKILL".to_owned() } else { format!("error={error}") };
                let inject = format!("inject={call}:{fault}:when={when}");
                let trace = format!("trace={call}");
                let ran = traced(room.path(), &["-e", &trace, "-e", &inject], arguments);
                // Writes to an event counter of the runtime, which is no file, cannot fail in this way.
                let trace = fs::read_to_string(room.path().join(".trace")).unwrap();
                if trace.lines().any(|line| line.contains("eventfd") && line.contains("INJECTED")) {
                    clean(room.path());
                    continue;
                }
                let output = output_of(room.path());
                let mut outcome = match is_kill {
                    true => Outcome::Survived,
                    // The program had not started yet.
                    false if ran.stderr.contains("error while loading shared libraries") => Outcome::Refused,
                    false => outcome_of(&ran),
                };
                let is_wrong = output.is_some() && output != expected;
                if is_wrong || (output.is_none() && outcome == Outcome::Survived && !is_kill) {
                    outcome = if ran.code == 0 { Outcome::Silent } else { Outcome::Partial };
                }
                // The next run succeeds and removes whatever this one left.
                clean_output(room.path());
                let again = run_words(room.path(), &arguments.split(' ').collect::<Vec<_>>(), &[]);
                let hidden = names_in(room.path());
                let hidden: Vec<String> =
                    hidden.into_iter().filter(|name| name.starts_with('.') && name != ".trace").collect();
                if again.code != 0 || output_of(room.path()) != expected || !hidden.is_empty() {
                    outcome = Outcome::Partial;
                }
                let kind = if is_kill { "kills at system calls" } else { "errors of system calls" };
                torture.count(kind, outcome, || {
                    format!("{arguments}: {inject}: left {hidden:?}: {}", ending(&ran))
                });
                clean(room.path());
            }
        }
    }
    full_disks(torture, room.path());
    read_only(torture, room.path());
}

/// Outputs on a disk of some size, from almost nothing to enough.
fn full_disks(torture: &mut Torture, room: &Path) {
    let small = room.join("small");
    fs::create_dir(&small).unwrap();
    for size in [4, 16, 32, 48, 64, 96, 128, 4096].into_iter().take(torture.cases.max(3)) {
        for (name, arguments) in COMMANDS {
            let is_mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", &format!("size={size}k"), "tmpfs"])
                .arg(&small)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success());
            if !is_mounted {
                impossible_here("a small file system cannot be mounted here: this needs root and mount");
                return;
            }
            let arguments = arguments
                .replace("--output out", "--output small/out")
                .replace("--model out", "--model small/out")
                .replace("-o out", "-o small/out");
            let ran = run_words(room, &arguments.split(' ').collect::<Vec<_>>(), &[]);
            let left = names_in(&small);
            assert!(Command::new("umount").arg(&small).status().unwrap().success());
            let mut outcome = outcome_of(&ran);
            if outcome == Outcome::Refused && !left.is_empty() {
                outcome = Outcome::Partial;
            }
            let _ = fs::remove_file(room.join("c"));
            torture.count("full disks", outcome, || {
                format!("{name}: {size} KiB: left {left:?}: {}", ending(&ran))
            });
        }
    }
}

/// Outputs in a directory that cannot be written.
fn read_only(torture: &mut Torture, room: &Path) {
    let fixed = room.join("fixed");
    fs::create_dir(&fixed).unwrap();
    let mount = |words: &[&str]| {
        Command::new("mount").args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "ro", "tmpfs", fixed.to_str().unwrap()]) {
        return; // said by `full_disks`
    }
    for (name, arguments) in COMMANDS {
        let arguments = arguments
            .replace("--output out", "--output fixed/out")
            .replace("--model out", "--model fixed/out")
            .replace("-o out", "-o fixed/out");
        let ran = run_words(room, &arguments.split(' ').collect::<Vec<_>>(), &[]);
        let outcome = if ran.code == 0 { Outcome::Silent } else { outcome_of(&ran) };
        let _ = fs::remove_file(room.join("c"));
        torture.count("read-only directories", outcome, || format!("{name}: {}", ending(&ran)));
    }
    assert!(Command::new("umount").arg(&fixed).status().unwrap().success());
}
