//! Object stores that hang, drip, redirect, lie or send nonsense.

use super::{Outcome, Torture, ending, outcome_of, run_words};
use crate::support::object_stores::{Answer, SECRET, environment, hostile_server, reply};
use crate::support::*;
use std::io::Write;
use std::time::{Duration, Instant};

const SERVERS: [(&str, Answer); 13] = [
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
    ("sends endless pages", |stream| {
        let keys = "<Contents><Key>data/a</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>".repeat(1000);
        let body = format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>{keys}</ListBucketResult>"
        );
        reply(stream, "200 OK", body.as_bytes());
    }),
    ("hides attributes behind a comment", |stream| {
        let body = format!(
            "<?xml version=\"1.0\"?><!-- ' --><ListBucketResult y=\"' > \" {}></ListBucketResult>",
            "a='1' ".repeat(300_000)
        );
        reply(stream, "200 OK", body.as_bytes());
    }),
    ("claims a terabyte", |stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\nETag: \"a\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\nPAR1",
        );
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }),
    ("redirects to another host", |stream| {
        reply(stream, "307 Temporary Redirect\r\nLocation: http://localhost:9/bucket/data", b"");
    }),
    ("redirects to itself", |stream| {
        let port = stream.local_addr().unwrap().port();
        let head = format!("307 Temporary Redirect\r\nLocation: http://127.0.0.1:{port}/bucket/data");
        reply(stream, &head, b"");
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
            &["--quiet", "convert", "s3://bucket/in/*.txt", "--output", "out", "--deadline", "2s"],
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
