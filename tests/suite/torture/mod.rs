//! Injects faults into everything that the program reads, writes and connects to, and counts how it ends: refused with
//! an error, survived with the right result, or one of the outcomes that must not occur. `make torture` runs many cases
//! until a deadline and prints a table; `make test` runs a few of each kind. The cases follow from a seed.

#[cfg(feature = "cluster")]
mod clusters;
mod damage;
mod endpoints;
mod memory;
mod races;
mod system;

use crate::support::*;
use planetree::random::Stream;
use std::fmt::Write;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// An error with a message.
    Refused,
    /// The right result.
    Survived,
    /// A wrong result, an exceeded limit or a leaked secret, without an error.
    Silent,
    /// A panic, a signal, an internal error, or no end.
    Panicked,
    /// An incomplete output, or leftovers that prevent the next run.
    Partial,
}

/// A run of cases: how many, how long, and what happened.
pub(super) struct Torture {
    seed: u64,
    /// Number of cases of each kind.
    pub cases: usize,
    begun: Instant,
    seconds: u64,
    /// When the kind at hand ends.
    until: Instant,
    kinds: Vec<(String, [u64; 5])>,
    faults: Vec<String>,
}

impl Torture {
    fn new(seed: u64, cases: usize, seconds: u64) -> Self {
        let begun = Instant::now();
        Torture { seed, cases, begun, seconds, until: begun, kinds: Vec::new(), faults: Vec::new() }
    }

    /// Gives the next kind its part of the time, up to a share of all the time in percent. So a slow machine has fewer cases of
    /// each kind, rather than none of the last ones.
    pub(super) fn take_time_until(&mut self, percent: f64) {
        self.until = self.begun + Duration::from_secs(self.seconds).mul_f64(percent / 100.0);
    }

    /// Random numbers for a kind of case.
    pub(super) fn draw(&self, kind: &str) -> Stream {
        let name = kind.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Stream::new(&[self.seed, name])
    }

    /// Whether there is time for another case.
    pub(super) fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    /// Counts a case.
    pub(super) fn count(&mut self, kind: &str, outcome: Outcome, what: impl FnOnce() -> String) {
        let place = self.kinds.iter().position(|(name, _)| name == kind).unwrap_or_else(|| {
            self.kinds.push((kind.to_owned(), [0; 5]));
            self.kinds.len() - 1
        });
        self.kinds[place].1[outcome as usize] += 1;
        if !matches!(outcome, Outcome::Refused | Outcome::Survived) {
            self.faults.push(format!("{kind}: {outcome:?}: {}", what()));
        }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "seed {}\n{:<41}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}\n",
            self.seed, "kind", "injected", "refused", "survived", "silent", "panics", "partial"
        );
        let mut row = |name: &str, counts: &[u64; 5]| {
            let injected: u64 = counts.iter().sum();
            let [refused, survived, silent, panics, partial] = counts;
            writeln!(
                text,
                "{name:<41}{injected:>9}{refused:>9}{survived:>9}{silent:>8}{panics:>8}{partial:>9}"
            )
            .unwrap();
        };
        let mut all = [0; 5];
        for (name, counts) in &self.kinds {
            row(name, counts);
            all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        row("all", &all);
        text
    }

    fn run(mut self) {
        damage::inject(&mut self);
        system::inject(&mut self);
        races::inject(&mut self);
        self.take_time_until(73.0);
        endpoints::inject(&mut self);
        self.take_time_until(80.0);
        #[cfg(feature = "cluster")]
        clusters::inject(&mut self);
        self.take_time_until(100.0);
        memory::inject(&mut self);
        println!("{}", self.table());
        assert!(self.faults.is_empty(), "{}\n{}", self.table(), self.faults.join("\n"));
        assert!(self.kinds.iter().map(|(_, counts)| counts.iter().sum::<u64>()).sum::<u64>() > 100);
    }
}

/// Runs the program with a time limit. A run that does not end is killed, and has the exit code of that. Time in which
/// this process itself is paused does not count.
pub(super) fn run_words(directory: &Path, words: &[&str], environment: &[(String, String)]) -> Ran {
    const POLL: Duration = Duration::from_millis(2);
    let outputs = [(); 2].map(|()| tempfile::tempfile().unwrap());
    let [stdout, stderr] = outputs.each_ref().map(|file| file.try_clone().unwrap());
    let mut child = command(directory, "")
        .args(words)
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut polls = 0..Duration::from_secs(60).as_millis() / POLL.as_millis();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if polls.next().is_none() => child.kill().unwrap(),
            None => std::thread::sleep(POLL),
        }
    };
    let [stdout, stderr] = outputs.map(|mut file| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    });
    Ran::of(Output { status, stdout, stderr })
}

/// How a run ended, if any result is right.
pub(super) fn outcome_of(ran: &Ran) -> Outcome {
    match ran.code {
        _ if ran.stderr.contains("panicked") || ran.stderr.contains("internal error") => Outcome::Panicked,
        0 => Outcome::Survived,
        1 | 2 if ran.stderr.contains("error: ") => Outcome::Refused,
        _ => Outcome::Panicked,
    }
}

/// The end of a run in a few words, for the list of faults.
pub(super) fn ending(ran: &Ran) -> String {
    let start: String = ran.stderr.chars().take(400).collect();
    format!("exit code {}: {start}", ran.code)
}

#[test]
fn a_few_faults_of_each_kind_are_survived_or_refused() {
    Torture::new(1, 6, 300).run();
}

/// `make torture`. `TORTURE_SEED` selects the cases, `TORTURE_SECONDS` bounds the time.
#[test]
#[ignore = "takes up to half an hour"]
fn many_faults_of_each_kind_are_survived_or_refused() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    Torture::new(number("TORTURE_SEED", 1), 400, number("TORTURE_SECONDS", 1500)).run();
}
