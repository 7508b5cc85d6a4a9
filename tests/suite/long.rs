//! Long runs, for `make test-all`.

use crate::support::*;
use std::io::Write;
use std::process::Stdio;

/// Pipes copies of a text into a conversion, with different query ids in each; peak memory in MiB, and bytes piped.
fn peak_of_copies(directory: &std::path::Path, text: &str, copies: usize, options: &str) -> (u64, u64) {
    let arguments = format!("--quiet convert - --output out --overwrite {options}");
    let mut child =
        command(directory, &arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || {
        let mut bytes = 0;
        for copy in 0..copies {
            let copied = text.replace("qid:", &format!("qid:{copy}-"));
            bytes += copied.len() as u64;
            stdin.write_all(copied.as_bytes()).unwrap();
        }
        bytes
    });
    let peak = peak_until_exit(&mut child);
    assert!(child.wait().unwrap().success());
    (peak, writer.join().unwrap())
}

#[test]
#[ignore = "pipes eight gigabytes: make test-all"]
fn memory_stays_below_the_limit_for_eight_gigabytes() {
    let room = room();
    for (shape, rows) in [("mslr", 60_000), ("yahoo", 25_000)] {
        run(room.path(), &format!("sample --shape {shape} --rows {rows} --output {shape}")).ok();
        let text = std::fs::read_to_string(room.path().join(shape).join("train.txt")).unwrap();
        let copies = (8_000_000_000 / text.len()).max(1);
        let (peak, bytes) = peak_of_copies(room.path(), &text, copies, "");
        eprintln!("{shape}: {bytes} bytes of text in {peak} MiB");
        assert!(peak < 512, "{shape}: {peak} MiB");
    }
}

#[test]
#[ignore = "sorts a gigabyte: make test-all"]
fn scattered_queries_are_gathered_in_bounded_memory() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 60000 --output mslr").ok();
    let text = std::fs::read_to_string(room.path().join("mslr/train.txt")).unwrap();
    // The same queries in every copy, so that each is scattered over the whole input.
    let copies = 1_000_000_000 / text.len();
    std::fs::write(room.path().join("in.txt"), text.repeat(copies)).unwrap();
    let (stderr, peak) = peak_of(room.path(), "--quiet convert in.txt --output out --sort-queries");
    assert_eq!(stderr, "");
    eprintln!("{copies} copies of {} bytes gathered in {peak} MiB", text.len());
    assert!(peak < 512, "{peak} MiB");
    assert_eq!(described(room.path(), "out")["rows"].as_u64(), Some(36_000 * copies as u64));
}

#[test]
#[ignore = "twenty million queries: make test-all"]
fn memory_stays_below_the_limit_for_many_queries() {
    let room = room();
    let text: String = (0..1_000_000).map(|query| format!("1 qid:{query} 1:1\n")).collect();
    let (peak, _) = peak_of_copies(room.path(), &text, 20, "");
    eprintln!("20,000,000 queries in {peak} MiB");
    assert!(peak < 512, "{peak} MiB");
}
