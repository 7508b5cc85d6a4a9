//! A cluster whose executors are killed and replaced or hang for a while, and whose ports receive hostile bytes, while it
//! predicts.

use super::{Outcome, Torture, ending, outcome_of};
use crate::support::cluster::Cluster;
use crate::support::hostile::{hostile_bytes, send};
use crate::support::*;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(21, 400, 25), "--partition-rows 500");
    train(at, "--data data --set num_trees=50 --model model");
    run(at, "predict --model model --data data --output expected").ok();
    let expected = fs::read(at.join("expected")).unwrap();
    let mut cluster = Cluster::start(2, &[]);
    let mut alive = [0, 1];
    let mut draw = torture.draw("cluster");
    for _ in 0..torture.cases.div_ceil(4) {
        if !torture.has_time() {
            return;
        }
        let line =
            format!("--quiet predict --model model --data data --output out --cluster {}", cluster.url());
        let command = command(at, &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(draw.bits() % 600));
        let (kind, victim) = (draw.bits() % 3, (draw.bits() % 2) as usize);
        let kind = match kind {
            0 => {
                let dead = &mut cluster.executors[alive[victim]];
                dead.kill().unwrap(); // SIGKILL
                dead.wait().unwrap();
                alive[victim] = cluster.executors.len();
                cluster.add_executor();
                "executors that are killed"
            }
            1 => {
                signal(&cluster.executors[alive[victim]], "-STOP");
                std::thread::sleep(Duration::from_millis(draw.bits() % 4000));
                signal(&cluster.executors[alive[victim]], "-CONT");
                "executors that hang"
            }
            _ => {
                let ports = cluster.ports();
                // Ports of executors that were killed are closed.
                let place = [0, 1 + 2 * alive[victim], 2 + 2 * alive[victim]][(draw.bits() % 3) as usize];
                let all = hostile_bytes(&mut draw);
                for _ in 0..5 {
                    let bytes = &all[(draw.bits() % all.len() as u64) as usize];
                    send(ports[place], bytes, Duration::from_millis(20));
                }
                "hostile bytes on ports"
            }
        };
        let ran = Ran::of(command.wait_with_output().unwrap());
        let output = fs::read(at.join("out")).ok();
        let outcome = match outcome_of(&ran) {
            Outcome::Survived if output.as_ref() != Some(&expected) => Outcome::Silent,
            Outcome::Refused if output.is_some() => Outcome::Partial,
            outcome => outcome,
        };
        let _ = fs::remove_file(at.join("out"));
        let has_ended =
            alive.iter().any(|executor| !matches!(cluster.executors[*executor].try_wait(), Ok(None)));
        let outcome = if has_ended { Outcome::Panicked } else { outcome };
        torture.count(kind, outcome, || ending(&ran));
    }
}
