//! Killed, interrupted, out of space, raced: the target is absent or complete.

use crate::support::*;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn killed_at_fifty_moments_the_target_is_absent_or_complete_and_a_rerun_succeeds() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(6000, 40)).unwrap();
    let begun = Instant::now();
    run(room.path(), "convert in.txt --output whole --partition-rows 40000").ok();
    let usual = begun.elapsed();
    let expected = files_of(&room.path().join("whole"));
    let (mut absent, mut complete) = (0, 0);
    for number in 0..50u32 {
        let mut child = command(room.path(), "convert in.txt --output out --partition-rows 40000")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(usual * number / 45);
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        if room.path().join("out").exists() {
            assert!(files_of(&room.path().join("out")) == expected, "after kill {number}");
            complete += 1;
            fs::remove_dir_all(room.path().join("out")).unwrap();
        } else {
            absent += 1;
        }
    }
    run(room.path(), "convert in.txt --output out --partition-rows 40000").ok();
    assert!(files_of(&room.path().join("out")) == expected);
    assert_eq!(names_in(room.path()), ["in.txt", "out", "whole"], "what killed runs left is gone");
    assert!(absent > 10, "{absent} absent, {complete} complete");
}

#[test]
fn an_interrupt_ends_in_order_and_leaves_nothing() {
    let room = room();
    for signal in ["INT", "TERM"] {
        // Standard input stays open, so the program would wait for ever.
        let mut child = command(room.path(), "convert - --output out")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write;
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(some_text(2000, 40).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let killed = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted; nothing was written\n");
        assert_eq!(names_in(room.path()), Vec::<String>::new());
        drop(stdin);
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 5000 --output data").ok();
    let small = room.path().join("small");
    fs::create_dir(&small).unwrap();
    let mount = |words: &[&str]| {
        std::process::Command::new(words[0]).args(&words[1..]).status().is_ok_and(|status| status.success())
    };
    if !is_root() || !mount(&["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small.to_str().unwrap()]) {
        impossible_here("a small file system cannot be mounted here: this needs root and mount");
        return;
    }
    let ran = run(room.path(), "convert data/train.txt --output small/out");
    let left = names_in(&small);
    assert!(mount(&["umount", small.to_str().unwrap()]));
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "error: small/out: cannot write: No space left on device\n  help: free some space or choose another place; nothing was left behind\n"
    );
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn of_eight_writers_that_race_for_one_directory_exactly_one_wins() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(200, 20)).unwrap();
    run(room.path(), "convert in.txt --output whole").ok();
    for _ in 0..20 {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                command(room.path(), "convert in.txt --output out")
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut won = 0;
        for writer in writers {
            let output = writer.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => won += 1,
                _ => assert!(stderr.starts_with("error: out: output already exists\n"), "{stderr}"),
            }
        }
        assert_eq!(won, 1);
        assert_same_files(&room.path().join("out"), &room.path().join("whole"));
        fs::remove_dir_all(room.path().join("out")).unwrap();
        assert_eq!(names_in(room.path()), ["in.txt", "whole"]);
    }
}

#[test]
fn many_small_files_are_synced_a_few_at_a_time() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(3000, 2)).unwrap();
    run(room.path(), "convert in.txt --output out --partition-rows 1").ok();
    assert_eq!(names_in(&room.path().join("out")).len(), 3001);
}

#[test]
fn an_interrupt_before_the_first_byte_ends_at_once() {
    let room = room();
    let mut child = command(room.path(), "convert - --output out")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    std::thread::sleep(Duration::from_millis(300));
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted; nothing was written\n");
    drop(stdin);
}

#[test]
fn a_closed_stderr_is_no_failure() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(10, 5)).unwrap();
    let script = format!("{BINARY} convert in.txt --output out 2>&1 | true; exit ${{PIPESTATUS[0]}}");
    let status =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(room.path()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    rows_of(&room.path().join("out"));
}
