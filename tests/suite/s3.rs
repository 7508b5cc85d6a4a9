//! Object stores: S3-compatible servers on the loopback interface, failing requests, races and secrets.

use crate::support::object_stores::*;
use crate::support::*;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_bucket_is_read_and_written_like_a_directory() {
    let room = room();
    std::fs::create_dir(room.path().join("weed")).unwrap();
    let servers = [moto(), seaweed(&room.path().join("weed"))];
    std::fs::write(room.path().join("a.txt"), some_text(600, 20)).unwrap();
    std::fs::write(room.path().join("b.txt"), some_text(700, 20).replace("qid:", "qid:b")).unwrap();
    run(room.path(), "convert a.txt b.txt --output local --partition-rows 5000").ok();
    for server in servers.into_iter().flatten() {
        let variables = environment(server.port);
        let go = |arguments: &str| run_with(room.path(), arguments, &variables);
        put(server.port, &room.path().join("a.txt"), "in/a.txt");
        put(server.port, &room.path().join("b.txt"), "in/b.txt");
        go("convert s3://bucket/in/ --output s3://bucket/out --partition-rows 5000").ok();
        go("convert s3://bucket/in/*.txt --output copy --partition-rows 5000").ok();
        assert_same_files(&room.path().join("copy"), &room.path().join("local"));
        std::fs::remove_dir_all(room.path().join("copy")).unwrap();
        // Reading back verifies every checksum.
        let described = go("describe s3://bucket/out").ok().stdout.replace("s3://bucket/out", "local");
        assert_eq!(described, run(room.path(), "describe local").ok().stdout);
        assert_eq!(object_names(server.port, "out"), names_in(&room.path().join("local")));
        let stderr = go("convert a.txt --output s3://bucket/out").failed().stderr;
        assert_eq!(
            stderr,
            "error: s3://bucket/out: output already exists\n  help: choose another --output, or pass --overwrite to replace it\n"
        );
        go("convert a.txt --output s3://bucket/out --overwrite").ok();
        go("convert a.txt --output s3://bucket/fresh").ok();
        // Replaced objects stay for their readers; the new ones are those of a fresh dataset.
        let (replaced, fresh) = (objects(server.port, "out"), objects(server.port, "fresh"));
        assert!(fresh.lines().count() > 1, "{fresh}");
        assert!(fresh.lines().all(|line| replaced.lines().any(|other| other == line)), "{replaced}{fresh}");
        assert_eq!(replaced.lines().filter(|line| line.starts_with("/_manifest-")).count(), 1, "{replaced}");
        // Features that first occur late widen files that are already uploaded.
        let late = format!("{}1 qid:late 40:2\n", some_text(100, 20));
        std::fs::write(room.path().join("late.txt"), late).unwrap();
        go("convert late.txt --output s3://bucket/late --partition-rows 500").ok();
        let described = go("describe s3://bucket/late --json").ok().stdout;
        let described: serde_json::Value = serde_json::from_str(&described).unwrap();
        assert_eq!(described["features"].as_array().unwrap().len(), 40);
        // A failed conversion leaves no objects.
        std::fs::write(room.path().join("bad.txt"), format!("{}x\n", some_text(100, 20))).unwrap();
        go("convert bad.txt --output s3://bucket/bad --partition-rows 100").failed();
        assert_eq!(objects(server.port, "bad"), "");
        let stderr = go("convert a.txt --output s3://nowhere/out").failed().stderr;
        assert!(stderr.contains("there is no such object or bucket"), "{stderr}");
    }
}

#[test]
fn wrong_credentials_are_refused_and_never_printed() {
    let room = room();
    let Some(server) = seaweed(room.path()) else { return };
    std::fs::write(room.path().join("a.txt"), some_text(5, 5)).unwrap();
    let mut variables = environment(server.port);
    let ran = run_with(room.path(), "--log trace convert a.txt --output s3://bucket/out", &variables).ok();
    assert!(!ran.stderr.contains(SECRET) && !ran.stdout.contains(SECRET));
    variables[1].1 = "another-sentinel-9d2e".to_owned();
    for arguments in [
        "convert a.txt --output s3://bucket/two",
        "convert s3://bucket/out --output two",
        "describe s3://bucket/out",
    ] {
        let ran = run_with(room.path(), &format!("--log trace {arguments}"), &variables).failed();
        assert!(ran.stderr.contains("access denied with these credentials\n  help: check the credentials in the environment variables and their permissions\n"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("another-sentinel"), "{}", ran.stderr);
    }
    variables.remove(1);
    let ran = run_with(room.path(), "describe s3://bucket/out", &variables);
    assert!(ran.code == 2 && ran.stderr.contains("no credentials for this store"), "{}", ran.stderr);
}

#[test]
fn failing_requests_do_not_change_a_byte() {
    let room = room();
    let Some(server) = moto() else { return };
    std::fs::write(room.path().join("in.txt"), some_text(3000, 20)).unwrap();
    put(server.port, &room.path().join("in.txt"), "in.txt");
    run_with(
        room.path(),
        "convert s3://bucket/in.txt --output s3://bucket/calm --partition-rows 9000",
        &environment(server.port),
    )
    .ok();
    let expected = objects(server.port, "calm");
    assert!(expected.lines().count() > 4, "{expected}");
    for (mode, rate) in [("mix", 0.1), ("mix", 0.3), ("ack_lost_once", 1.0), ("truncate", 0.3)] {
        let Some(proxy) = fault_proxy(server.port, mode, rate) else { return };
        let output = format!("{mode}{rate}");
        let variables = environment(proxy.port);
        run_with(
            room.path(),
            &format!("convert s3://bucket/in.txt --output s3://bucket/{output} --partition-rows 9000"),
            &variables,
        )
        .ok();
        assert_eq!(objects(server.port, &output), expected, "{output}");
        run_with(room.path(), &format!("describe s3://bucket/{output}"), &variables).ok();
    }
}

#[test]
fn exactly_one_of_eight_concurrent_writers_of_a_prefix_wins() {
    let room = room();
    let Some(server) = moto() else { return };
    for number in 0..8 {
        // Pairs of writers have the same input, so that they write the same objects.
        std::fs::write(room.path().join(format!("in{number}.txt")), some_text(40 + number / 2, 10)).unwrap();
        run(room.path(), &format!("convert in{number}.txt --output local{number}")).ok();
    }
    for round in 0..20 {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                command(room.path(), &format!("convert in{number}.txt --output s3://bucket/race{round}"))
                    .envs(environment(server.port))
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut winners = Vec::new();
        for (number, writer) in writers.into_iter().enumerate() {
            let output = writer.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => winners.push(number),
                _ => assert!(stderr.contains("output already exists"), "{stderr}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        let names = object_names(server.port, &format!("race{round}"));
        assert_eq!(names, names_in(&room.path().join(format!("local{}", winners[0]))), "round {round}");
        run_with(room.path(), &format!("describe s3://bucket/race{round}"), &environment(server.port)).ok();
    }
}

#[test]
fn inputs_and_datasets_on_a_web_server_are_read() {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(50, 10)).unwrap();
    run(room.path(), "convert in.txt --output local").ok();
    let Some(server) = web_server(room.path()) else { return };
    let url = format!("http://127.0.0.1:{}", server.port);
    run(room.path(), &format!("convert {url}/in.txt --output copy")).ok();
    assert_same_files(&room.path().join("copy"), &room.path().join("local"));
    let described = run(room.path(), &format!("describe {url}/local")).ok().stdout;
    let expected = run(room.path(), "describe local").ok().stdout;
    assert_eq!(described.replace(&format!("{url}/local"), "local"), expected);
    let stderr = run(room.path(), &format!("convert {url}/none.txt --output none")).failed().stderr;
    assert!(stderr.contains("there is no such object or bucket"), "{stderr}");
    let stderr = run(room.path(), &format!("convert in.txt --output {url}/out")).failed().stderr;
    assert!(stderr.contains("http(s) URLs can be read but not written"), "{stderr}");
}

#[test]
fn a_failed_overwrite_keeps_the_old_dataset() {
    let room = room();
    let Some(server) = moto() else { return };
    let Some(python) = python() else { return };
    std::fs::write(room.path().join("in.txt"), some_text(400, 20)).unwrap();
    let variables = environment(server.port);
    run_with(room.path(), "convert in.txt --output s3://bucket/out --partition-rows 2000", &variables).ok();
    let before = objects(server.port, "out");
    // A proxy that refuses the manifest, which is uploaded last: the old dataset must survive.
    let script = r#"
import sys, http.client
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class H(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def go(self):
        n = int(self.headers.get('Content-Length') or 0); body = self.rfile.read(n)
        if self.command == 'PUT' and '_manifest.json' in self.path:
            self.send_response(403); self.send_header('Content-Length', '0'); self.end_headers(); return
        c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[2])); c.request(self.command, self.path, body, dict(self.headers.items()))
        r = c.getresponse(); data = r.read(); self.send_response(r.status)
        for k, v in r.getheaders():
            if k.lower() not in ('transfer-encoding', 'connection', 'content-length'): self.send_header(k, v)
        self.send_header('Content-Length', r.getheader('Content-Length') if self.command == 'HEAD' else str(len(data))); self.end_headers()
        if self.command != 'HEAD': self.wfile.write(data)
    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = go
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()
"#;
    let port = free_port();
    let mut command = Command::new(python);
    command.args(["-c", script, &port.to_string(), &server.port.to_string()]);
    let proxy = Server::start(command, port);
    let refused = environment(proxy.port);
    run_with(
        room.path(),
        "convert in.txt --output s3://bucket/out --partition-rows 2000 --overwrite",
        &refused,
    )
    .failed();
    std::fs::write(room.path().join("other.txt"), some_text(300, 20)).unwrap();
    run_with(
        room.path(),
        "convert other.txt --output s3://bucket/out --partition-rows 2000 --overwrite",
        &refused,
    )
    .failed();
    assert_eq!(objects(server.port, "out"), before);
    run_with(room.path(), "describe s3://bucket/out", &variables).ok();
}

#[test]
fn secrets_in_urls_are_never_printed() {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(5, 5)).unwrap();
    let Some(server) = web_server(room.path()) else { return };
    let port = server.port;
    for arguments in [
        format!("convert http://me:{SECRET}@127.0.0.1:{port}/none.txt --output out"),
        format!("convert http://127.0.0.1:{port}/none.txt?X-Amz-Signature={SECRET} --output out"),
        format!("describe http://127.0.0.1:{port}/none?sig={SECRET}"),
        format!("convert in.txt --output http://127.0.0.1:{port}/o?sig={SECRET}"),
        format!("convert http://127.0.0.1:{port}/*.txt?sig={SECRET} --output out"),
    ] {
        let ran = run(room.path(), &format!("--log trace {arguments}"));
        assert_ne!(ran.code, 0, "{arguments}");
        assert!(ran.stderr.contains("error: "), "{arguments}: {}", ran.stderr);
        assert!(!ran.stderr.contains(SECRET) && !ran.stdout.contains(SECRET), "{}", ran.stderr);
    }
    // A signed URL can be read.
    let signed = format!("--log trace convert http://127.0.0.1:{port}/in.txt?sig={SECRET} --output signed");
    let ran = run(room.path(), &signed).ok();
    assert!(!ran.stderr.contains(SECRET) && !ran.stdout.contains(SECRET), "{}", ran.stderr);
    assert_eq!(rows_of(&room.path().join("signed")).len(), 25);
}

#[test]
fn a_cross_validation_in_a_bucket_has_the_same_files() {
    let room = room();
    let Some(server) = moto() else { return };
    let environment = environment(server.port);
    let at = |arguments: &str| run_with(room.path(), arguments, &environment).ok();
    std::fs::write(room.path().join("rows.txt"), some_text(30, 10)).unwrap();
    at("convert rows.txt --output data");
    at("convert rows.txt --output s3://bucket/data");
    let options = "--folds 3 --set num_trees=5 --set min_data_in_leaf=2";
    at(&format!("cv --data data --output here {options}"));
    at(&format!("cv --data s3://bucket/data --output s3://bucket/cv {options}"));
    for name in [
        "cv.json",
        "predictions.parquet",
        "metrics.parquet",
        "folds/2/model.parquet",
        "folds/2/predictions.parquet",
        "parts/3/_manifest.json",
    ] {
        let script = format!("s3.download_file('bucket', 'cv/{name}', '{}/there')", room.path().display());
        with_client(server.port, &script);
        let read = |path: &str| std::fs::read(room.path().join(path)).unwrap();
        assert!(read("there") == read(&format!("here/{name}")), "{name}");
    }
    let before = objects(server.port, "cv");
    let again = at(&format!("cv --data s3://bucket/data --output s3://bucket/cv {options}"));
    assert!(
        (1..=3).all(|fold| again.stderr.contains(&format!("fold {fold}: already complete"))),
        "{}",
        again.stderr
    );
    assert_eq!(objects(server.port, "cv"), before);
}

#[test]
fn a_silent_endpoint_is_named_and_given_up_at_the_deadline() {
    let room = room();
    let (port, _received) = hostile_server(|_| std::thread::sleep(Duration::from_secs(600)));
    let begun = Instant::now();
    let ran = run_with(room.path(), "describe s3://bucket/data --deadline 12s", &environment(port)).failed();
    let seconds = begun.elapsed().as_secs_f64();
    assert!((11.0..30.0).contains(&seconds), "{seconds} s");
    assert!(ran.stderr.contains(&format!("no answer from 127.0.0.1:{port} yet")), "{}", ran.stderr);
    assert!(ran.stderr.contains("no answer from the server within 12 s\n  help: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("--deadline"), "{}", ran.stderr);
}

#[test]
fn a_server_that_fails_until_the_deadline_is_quoted() {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(3, 3)).unwrap();
    let (busy, _received) = hostile_server(|stream| reply(stream, "503 Service Unavailable", b""));
    let (limited, _received) = hostile_server(|stream| reply(stream, "429 Too Many Requests", b""));
    for (port, status) in [(busy, 503), (limited, 429)] {
        for arguments in ["describe s3://bucket/data", "convert in.txt --output s3://bucket/out"] {
            let ran =
                run_with(room.path(), &format!("{arguments} --deadline 3s"), &environment(port)).failed();
            let cause =
                format!("the server answered {status} until the deadline of 3 s\n  help: the server fails");
            assert!(ran.stderr.contains(&cause), "{arguments}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_refused_connection_fails_at_once_with_its_cause() {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(3, 3)).unwrap();
    let port = free_port();
    for arguments in ["describe s3://bucket/data", "convert in.txt --output s3://bucket/out"] {
        let begun = Instant::now();
        let ran = run_with(room.path(), arguments, &environment(port)).failed();
        assert!(begun.elapsed() < Duration::from_secs(8), "{arguments}: {:?}", begun.elapsed());
        let cause = format!("connection refused: 127.0.0.1:{port}\n  help: start the server");
        assert!(ran.stderr.contains(&cause), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn a_redirect_to_another_host_gets_no_credentials() {
    use std::sync::atomic::{AtomicU16, Ordering};
    static OTHER: AtomicU16 = AtomicU16::new(0);
    let room = room();
    let (other, leaked) = hostile_server(|stream| reply(stream, "200 OK", b"taken"));
    OTHER.store(other, Ordering::SeqCst);
    let (port, _received) = hostile_server(|stream| {
        // Another name of the same machine is another host.
        let head = format!(
            "307 Temporary Redirect\r\nLocation: http://localhost:{}/bucket/data",
            OTHER.load(Ordering::SeqCst)
        );
        reply(stream, &head, b"");
    });
    let mut variables = environment(port);
    variables.push(("AWS_SESSION_TOKEN".to_owned(), "sentinel-token-1".to_owned()));
    let ran = run_with(room.path(), "describe s3://bucket/data --deadline 5s", &variables).failed();
    let words = "refused redirect to another host: localhost, because the request carries credentials";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(leaked.try_recv().is_err(), "the other host received a request");
}

#[test]
fn an_answer_that_takes_long_to_parse_is_refused() {
    let room = room();
    let (port, _received) = hostile_server(|stream| {
        let attributes: String = (0..200_000).map(|number| format!("a{number}='' ")).collect();
        let body = format!("<?xml version='1.0'?><ListBucketResult {attributes}></ListBucketResult>");
        reply(stream, "200 OK\r\nContent-Type: application/xml", body.as_bytes());
    });
    let begun = Instant::now();
    let ran = run_with(room.path(), "convert s3://bucket/in/ --output out", &environment(port)).failed();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(ran.stderr.contains(&format!("refused answer from 127.0.0.1:{port}")), "{}", ran.stderr);
}

#[test]
fn lengths_that_a_server_claims_allocate_nothing() {
    let room = room();
    let (port, _received) = hostile_server(|stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\nETag: \"a\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
        );
        for _ in 0..20 {
            let _ = stream.write_all(&[b'x'; 1 << 20]);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    for arguments in ["describe s3://bucket/data", "import s3://bucket/model.txt --output out"] {
        let mut child = command(room.path(), &format!("{arguments} --deadline 3s"))
            .envs(environment(port))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let peak = peak_until_exit(&mut child);
        let ran = Ran::of(child.wait_with_output().unwrap()).failed();
        assert!(ran.stderr.contains("error: s3://bucket/") && peak < 300, "{peak} MiB: {}", ran.stderr);
    }
}

#[test]
fn a_range_that_is_longer_than_requested_is_refused() {
    let room = room();
    let (port, _received) = hostile_server(|stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/100\r\nContent-Length: 100000000000\r\nETag: \"a\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
        );
        while stream.write_all(&[b'x'; 1 << 20]).is_ok() {}
    });
    let mut child = command(room.path(), "convert s3://bucket/in.txt --output out --deadline 10s")
        .envs(environment(port))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let peak = peak_until_exit(&mut child);
    let ran = Ran::of(child.wait_with_output().unwrap()).failed();
    assert!(peak < 300, "{peak} MiB: {}", ran.stderr);
    assert!(ran.stderr.contains(&format!("refused answer from 127.0.0.1:{port}")), "{}", ran.stderr);
}

#[test]
fn a_list_of_endless_pages_ends() {
    let room = room();
    let (port, _received) = hostile_server(|stream| {
        let keys: String = (0..1000)
            .map(|key| format!("<Contents><Key>in/{key}{}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>", "k".repeat(5000)))
            .collect();
        let body = format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>{keys}</ListBucketResult>"
        );
        reply(stream, "200 OK\r\nContent-Type: application/xml", body.as_bytes());
    });
    let begun = Instant::now();
    let ran = run_with(room.path(), "convert s3://bucket/in/*.txt --output out", &environment(port)).failed();
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
    assert!(ran.stderr.contains(&format!("refused answer from 127.0.0.1:{port}")), "{}", ran.stderr);
}

#[test]
fn attributes_are_not_hidden_behind_quotes_outside_of_tags() {
    let room = room();
    let (port, _received) = hostile_server(|stream| {
        let attributes: String = (0..200_000).map(|number| format!("a{number}='' ")).collect();
        let body = format!(
            "<?xml version='1.0'?><!-- ' --><ListBucketResult y=\"' > \" {attributes}></ListBucketResult>"
        );
        reply(stream, "200 OK\r\nContent-Type: application/xml", body.as_bytes());
    });
    let begun = Instant::now();
    let ran = run_with(room.path(), "convert s3://bucket/in/ --output out", &environment(port)).failed();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(ran.stderr.contains(&format!("refused answer from 127.0.0.1:{port}")), "{}", ran.stderr);
}

#[test]
fn a_slow_download_may_take_longer_than_the_deadline() {
    for has_ranges in [false, true] {
        download_slowly(has_ranges);
    }
}

/// Converts a text from a web server that takes about 7 s to send it, with a deadline of 5 s.
fn download_slowly(has_ranges: bool) {
    let room = room();
    let text = some_text(300, 20).into_bytes();
    std::fs::write(room.path().join("in.txt"), &text).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = move |text: &[u8], mut stream: std::net::TcpStream| {
        let mut request = [0; 4096];
        let count = stream.read(&mut request).unwrap_or(0);
        let request = String::from_utf8_lossy(&request[..count]).into_owned();
        if !request.contains(" /in.txt ") {
            return reply(&mut stream, "404 Not Found", b"");
        }
        let range = request.lines().find_map(|line| line.strip_prefix("range: bytes=")?.split_once('-'));
        let range = range.filter(|_| has_ranges).map(|(first, last)| {
            let [first, last] = [first, last].map(|place| place.trim().parse::<usize>().unwrap());
            first..text.len().min(last + 1)
        });
        let status = match &range {
            Some(range) => {
                let last = range.end - 1;
                format!("206 Partial Content\r\nContent-Range: bytes {}-{last}/{}", range.start, text.len())
            }
            None => "200 OK".to_owned(),
        };
        let content = &text[range.unwrap_or(0..text.len())];
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nConnection: close\r\n\r\n",
            content.len()
        );
        for piece in content.chunks(text.len() / 8).take_while(|_| request.starts_with("GET")) {
            let _ = stream.write_all(piece);
            let is_last = piece.len() < text.len() / 8;
            std::thread::sleep(Duration::from_millis(if is_last { 0 } else { 900 }));
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let text = text.clone();
            std::thread::spawn(move || answer(&text, stream));
        }
    });
    let arguments = format!("convert http://127.0.0.1:{port}/in.txt --output out --deadline 5s");
    let ran = run(room.path(), &arguments);
    assert_eq!(ran.code, 0, "ranges: {has_ranges}: {}", ran.stderr);
    run(room.path(), "convert in.txt --output expected").ok();
    assert!(rows_of(&room.path().join("out")) == rows_of(&room.path().join("expected")));
}
