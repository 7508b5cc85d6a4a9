//! Readers of a dataset that is replaced again and again, and writers that race for one output, in a directory and in a
//! bucket.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::object_stores::{environment, moto};
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::Stdio;

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    for (name, queries) in [("a", 60), ("b", 90)] {
        fs::write(room.path().join(format!("{name}.txt")), some_text(queries, 10)).unwrap();
        run_words(room.path(), &["convert", &format!("{name}.txt"), "--output", name], &[]).ok();
    }
    torture.take_time_until(60.0);
    race(torture, room.path(), &Target { output: "out", environment: Vec::new(), place: "" });
    torture.take_time_until(66.0);
    if torture.has_time()
        && let Some(server) = moto()
    {
        let environment = environment(server.port);
        race(torture, room.path(), &Target { output: "s3://bucket/out", environment, place: " in a bucket" });
    }
}

/// The output that writers race for.
struct Target {
    output: &'static str,
    environment: Vec<(String, String)>,
    /// Where it is, for the report.
    place: &'static str,
}

fn race(torture: &mut Torture, room: &Path, target: &Target) {
    let Target { output, environment, place } = target;
    let described: Vec<String> = ["a", "b"]
        .map(|name| {
            let ran = run_words(room, &["describe", name, "--json"], &[]).ok();
            ran.stdout.replace(&format!("\"{name}\""), &format!("\"{output}\""))
        })
        .to_vec();
    for _ in 0..torture.cases.div_ceil(4) {
        if !torture.has_time() {
            return;
        }
        let writers: Vec<_> = ["a", "b", "a", "b"]
            .map(|name| {
                command(room, &format!("convert {name}.txt --output {output} --overwrite"))
                    .envs(environment.iter().cloned())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .into();
        for _ in 0..4 {
            let ran = run_words(room, &["describe", output, "--json"], environment);
            let mut outcome = outcome_of(&ran);
            if outcome == Outcome::Survived && !described.contains(&ran.stdout) {
                outcome = Outcome::Silent;
            }
            torture.count(&format!("readers of replaced datasets{place}"), outcome, || ending(&ran));
        }
        for mut writer in writers {
            writer.wait().unwrap();
        }
        // A directory that was replaced while it was read is removed by the next writer.
        run_words(room, &["convert", "a.txt", "--output", output, "--overwrite"], environment).ok();
        let ran = run_words(room, &["describe", output, "--json"], environment);
        let left: Vec<String> = names_in(room).into_iter().filter(|name| name.starts_with('.')).collect();
        let outcome = match outcome_of(&ran) {
            Outcome::Survived if ran.stdout != described[0] => Outcome::Silent,
            Outcome::Survived if !left.is_empty() => Outcome::Partial,
            Outcome::Refused => Outcome::Partial,
            outcome => outcome,
        };
        torture
            .count(&format!("racing writers{place}"), outcome, || format!("left {left:?}: {}", ending(&ran)));
    }
}
