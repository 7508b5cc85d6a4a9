//! After kills, interrupts, full disks and races, the target is either absent or complete.

use crate::support::*;
use std::fs;
use std::process::Stdio;
use std::time::Instant;

#[test]
fn after_a_kill_the_target_is_absent_or_complete_and_a_rerun_succeeds() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(6000, 40)).unwrap();
    let begun = Instant::now();
    run(temporary.path(), "convert in.txt --output whole --partition-rows 40000").ok();
    let mut usual = begun.elapsed();
    let expected = files_of(&temporary.path().join("whole"));
    let (mut absent, mut complete) = (0, 0);
    for number in 0..50u32 {
        let mut child = command(temporary.path(), "convert in.txt --output out --partition-rows 40000")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(usual * (number % 10) / 9); // kill at various times
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        if temporary.path().join("out").exists() {
            assert!(files_of(&temporary.path().join("out")) == expected, "after kill {number}");
            complete += 1;
            usual = usual * 3 / 4; // it was killed too late: the machine is less busy than before
            fs::remove_dir_all(temporary.path().join("out")).unwrap();
        } else {
            absent += 1;
        }
    }
    run(temporary.path(), "convert in.txt --output out --partition-rows 40000").ok();
    assert!(files_of(&temporary.path().join("out")) == expected);
    assert_eq!(
        names_in(temporary.path()),
        ["in.txt", "out", "whole"],
        "leftovers of killed runs are removed"
    );
    assert!(absent > 10, "{absent} absent, {complete} complete");
}

#[test]
fn an_interrupt_stops_cleanly_and_leaves_nothing() {
    let temporary = room();
    for name in ["-INT", "-TERM"] {
        // Standard input stays open, so the program would wait forever.
        let mut child = command(temporary.path(), "convert - --output out")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write;
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(some_text(2000, 40).as_bytes()).unwrap();
        // The text exceeds the pipe's buffer, so the program is reading it and has started its output.
        wait_for("a staging directory", || !names_in(temporary.path()).is_empty());
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted; nothing was written\n");
        assert_eq!(names_in(temporary.path()), Vec::<String>::new());
        drop(stdin);
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing() {
    let temporary = room();
    run(temporary.path(), "sample --shape mslr --rows 5000 --output data").ok();
    let small = temporary.path().join("small");
    fs::create_dir(&small).unwrap();
    let mount = |words: &[&str]| {
        std::process::Command::new(words[0]).args(&words[1..]).status().is_ok_and(|status| status.success())
    };
    if !is_root() || !mount(&["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small.to_str().unwrap()]) {
        impossible_here("a small file system cannot be mounted here: this needs root and mount");
        return;
    }
    let ran = run(temporary.path(), "convert data/train.txt --output small/out");
    let left = names_in(&small);
    assert!(mount(&["umount", small.to_str().unwrap()]));
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "error: small/out: cannot write: No space left on device\n  help: free some disk space or choose another location; no incomplete output was left behind\n"
    );
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn exactly_one_of_eight_concurrent_writers_wins() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(200, 20)).unwrap();
    run(temporary.path(), "convert in.txt --output whole").ok();
    for _ in 0..20 {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                command(temporary.path(), "convert in.txt --output out")
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
        assert_same_files(&temporary.path().join("out"), &temporary.path().join("whole"));
        fs::remove_dir_all(temporary.path().join("out")).unwrap();
        assert_eq!(names_in(temporary.path()), ["in.txt", "whole"]);
    }
}

#[test]
fn many_small_files_are_synced_a_few_at_a_time() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(3000, 2)).unwrap();
    run(temporary.path(), "convert in.txt --output out --partition-rows 1").ok();
    assert_eq!(names_in(&temporary.path().join("out")).len(), 3001);
}

#[test]
fn an_interrupt_before_the_first_byte_stops_at_once() {
    let temporary = room();
    let mut child = command(temporary.path(), "convert - --output out")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    wait_for_signal_handlers(&child);
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted; nothing was written\n");
    drop(stdin);
}

#[test]
fn a_closed_stderr_is_not_a_failure() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(10, 5)).unwrap();
    let script = format!("{BINARY} convert in.txt --output out 2>&1 | true; exit ${{PIPESTATUS[0]}}");
    let status = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(temporary.path())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    rows_of(&temporary.path().join("out"));
}
