//! Object stores that hang, drip, redirect, lie or send nonsense.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::object_stores::{Answer, SECRET, environment, hostile_server, reply};
use crate::support::*;
use std::io::Write;
use std::time::{Duration, Instant};

const SERVERS: [(&str, Answer); 8] = [
    ("hangs", |_| std::thread::sleep(Duration::from_secs(300))),
    ("drips", |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        for _ in 0..300 {
            let _ = stream.write_all(b"x");
            std::thread::sleep(Duration::from_secs(1));
        }
    }),
    ("closes", |_| {}),
    ("sends nonsense", |stream| drop(stream.write_all(&[0xFF; 4000]))),
    ("fails", |stream| reply(stream, "503 Slow Down", b"<Error><Code>SlowDown</Code></Error>")),
    ("sends a tag of many attributes", |stream| {
        let body = format!(
            "<?xml version=\"1.0\"?><ListBucketResult {}></ListBucketResult>",
            "a='1' ".repeat(300_000)
        );
        reply(stream, "200 OK", body.as_bytes());
    }),
    ("sends a list without end", |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult>");
        while stream.write_all(&b"<Contents><Key>a</Key></Contents>".repeat(1000)).is_ok() {}
    }),
    ("sends a wrong length", |stream| {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\nETag: \"a\"\r\n\r\nPAR1");
    }),
];

pub(super) fn inject(torture: &mut Torture) {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(3, 3)).unwrap();
    for (name, answer) in SERVERS {
        for words in [
            ["--quiet", "describe", "s3://bucket/data", "--deadline", "2s"].as_slice(),
            &["--quiet", "convert", "s3://bucket/*.txt", "--output", "out", "--deadline", "2s"],
            &["--quiet", "convert", "in.txt", "--output", "s3://bucket/out", "--deadline", "2s"],
            &[
                "--quiet",
                "sql",
                "-c",
                "SELECT * FROM 's3://bucket/a.parquet'",
                "--allow-path",
                "s3://bucket",
                "--deadline",
                "2s",
            ],
        ] {
            if !torture.has_time() {
                return;
            }
            let (port, _received) = hostile_server(answer);
            let begun = Instant::now();
            let ran = run_words(room.path(), words, &environment(port));
            let mut outcome = outcome_of(&ran);
            if outcome == Outcome::Survived || format!("{}{}", ran.stdout, ran.stderr).contains(SECRET) {
                outcome = Outcome::Silent;
            }
            let seconds = begun.elapsed().as_secs();
            if seconds > 40 {
                outcome = Outcome::Panicked;
            }
            torture.count("hostile endpoints", outcome, || {
                format!("a server that {name}: {words:?}: {seconds} s: {}", ending(&ran))
            });
            if words.contains(&"describe") && torture.cases < 100 && name == "hangs" {
                break; // the others take as long
            }
        }
    }
}
