//! Readers of a dataset that is replaced again and again, and writers that race for one output.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::*;
use std::fs;

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    for (name, queries) in [("a", 60), ("b", 90)] {
        fs::write(room.path().join(format!("{name}.txt")), some_text(queries, 10)).unwrap();
        run_words(room.path(), &["convert", &format!("{name}.txt"), "--output", name], &[]).ok();
    }
    let described: Vec<String> = ["a", "b"]
        .map(|name| {
            run_words(room.path(), &["describe", name, "--json"], &[])
                .ok()
                .stdout
                .replace(&format!("\"{name}\""), "\"out\"")
        })
        .to_vec();
    for _ in 0..torture.cases.div_ceil(4) {
        if !torture.has_time() {
            return;
        }
        let writers: Vec<_> = ["a", "b", "a", "b"]
            .map(|name| start_silent(room.path(), &format!("convert {name}.txt --output out --overwrite")))
            .into();
        for _ in 0..4 {
            let ran = run_words(room.path(), &["describe", "out", "--json"], &[]);
            let mut outcome = outcome_of(&ran);
            if outcome == Outcome::Survived && !described.contains(&ran.stdout) {
                outcome = Outcome::Silent;
            }
            torture.count("readers of replaced datasets", outcome, || ending(&ran));
        }
        for mut writer in writers {
            writer.wait().unwrap();
        }
        // A directory that was replaced while it was read is removed by the next writer.
        run_words(room.path(), &["convert", "a.txt", "--output", "out", "--overwrite"], &[]).ok();
        let ran = run_words(room.path(), &["describe", "out", "--json"], &[]);
        let left: Vec<String> =
            names_in(room.path()).into_iter().filter(|name| name.starts_with('.')).collect();
        let outcome = match outcome_of(&ran) {
            Outcome::Survived if !described.contains(&ran.stdout) => Outcome::Silent,
            Outcome::Survived if !left.is_empty() => Outcome::Partial,
            Outcome::Refused => Outcome::Partial,
            outcome => outcome,
        };
        torture.count("racing writers", outcome, || format!("left {left:?}: {}", ending(&ran)));
    }
}
