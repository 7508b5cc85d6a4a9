//! Object stores: real S3-compatible servers on loopback, and what may go wrong on the way to them.

use crate::support::*;
use std::path::Path;
use std::process::{Command, Stdio};

const SECRET: &str = "sentinel-secret-5f1c";

/// moto: creates objects atomically, accepts any secret.
pub fn moto() -> Option<Server> {
    let port = free_port();
    let mut command = Command::new(python()?);
    command.args([
        "-c",
        "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])",
        &port.to_string(),
    ]);
    let server = Server::start(command, port);
    make_bucket(port, "bucket");
    Some(server)
}

/// SeaweedFS: checks secrets.
pub fn seaweed(directory: &Path) -> Option<Server> {
    let weed = python()?.with_file_name("weed");
    if !weed.exists() {
        skipped("SeaweedFS is not among the test packages: run `make venv`");
        return None;
    }
    let port = free_port();
    let identities = format!(
        r#"{{"identities":[{{"name":"t","credentials":[{{"accessKey":"key","secretKey":"{SECRET}"}}],"actions":["Admin","Read","Write","List"]}}]}}"#
    );
    std::fs::write(directory.join("s3.json"), identities).unwrap();
    let mut command = Command::new(weed);
    command.current_dir(directory).args([
        "server",
        &format!("-dir={}", directory.display()),
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        &format!("-master.port={}", free_port()),
        &format!("-volume.port={}", free_port()),
        &format!("-filer.port={}", free_port()),
        "-s3",
        &format!("-s3.port={port}"),
        "-s3.config=s3.json",
    ]);
    let server = Server::start(command, port);
    make_bucket(port, "bucket");
    Some(server)
}

fn proxy(upstream: u16, mode: &str, rate: f64) -> Option<Server> {
    let script = shared("faults/faultproxy.py")?;
    let port = free_port();
    let mut command = Command::new(python()?);
    command.arg(script).args([
        port.to_string(),
        upstream.to_string(),
        mode.to_owned(),
        rate.to_string(),
        "7".to_owned(),
    ]);
    Some(Server::start(command, port))
}

pub fn environment(port: u16) -> Vec<(String, String)> {
    [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}")),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// Runs a few lines of Python with an S3 client called `s3`.
pub fn with_client(port: u16, script: &str) -> String {
    let head = "import boto3, sys, time\nfrom botocore.config import Config\ns3 = boto3.client('s3', config=Config(retries={'max_attempts': 10}))\n";
    let output = Command::new(python().unwrap())
        .args(["-c", &format!("{head}{script}")])
        .envs(environment(port))
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn make_bucket(port: u16, name: &str) {
    with_client(
        port,
        &format!(
            "for _ in range(60):\n  try:\n    s3.create_bucket(Bucket='{name}'); break\n  except Exception as e:\n    time.sleep(0.5)\nelse:\n  raise SystemExit('no bucket')\n"
        ),
    );
}

/// Names and hashes of all objects below a prefix.
fn objects(port: u16, prefix: &str) -> String {
    with_client(
        port,
        &format!(
            "import hashlib\nfor o in s3.list_objects_v2(Bucket='bucket', Prefix='{prefix}/').get('Contents', []):\n  body = s3.get_object(Bucket='bucket', Key=o['Key'])['Body'].read()\n  print(o['Key'][len('{prefix}'):], hashlib.sha256(body).hexdigest())\n"
        ),
    )
}

pub fn put(port: u16, file: &Path, key: &str) {
    with_client(port, &format!("s3.upload_file('{}', 'bucket', '{key}')", file.display()));
}

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
        // Read back through the bucket, every checksum verified on the way.
        let described = go("describe s3://bucket/out").ok().stdout.replace("s3://bucket/out", "local");
        assert_eq!(described, run(room.path(), "describe local").ok().stdout);
        let names: Vec<String> = objects(server.port, "out")
            .lines()
            .map(|line| line[1..].split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, names_in(&room.path().join("local")));
        let stderr = go("convert a.txt --output s3://bucket/out").failed().stderr;
        assert_eq!(
            stderr,
            "error: s3://bucket/out: output already exists\n  help: choose another --output, or pass --overwrite to replace it\n"
        );
        go("convert a.txt --output s3://bucket/out --overwrite").ok();
        go("convert a.txt --output s3://bucket/fresh").ok();
        // What was replaced stays for those who read it; what is new is what a fresh one would be.
        let (replaced, fresh) = (objects(server.port, "out"), objects(server.port, "fresh"));
        assert!(fresh.lines().all(|line| replaced.lines().any(|other| other == line)), "{replaced}{fresh}");
        assert_eq!(replaced.lines().filter(|line| line.starts_with("/_manifest-")).count(), 1, "{replaced}");
        // Features that show up late widen files that are uploaded already.
        let late = format!("{}1 qid:late 40:2\n", some_text(100, 20));
        std::fs::write(room.path().join("late.txt"), late).unwrap();
        go("convert late.txt --output s3://bucket/late --partition-rows 500").ok();
        go("describe s3://bucket/late").ok();
        // A fault leaves nothing.
        std::fs::write(room.path().join("bad.txt"), format!("{}x\n", some_text(100, 20))).unwrap();
        go("convert bad.txt --output s3://bucket/bad --partition-rows 100").failed();
        assert_eq!(objects(server.port, "bad"), "");
        let stderr = go("convert a.txt --output s3://nowhere/out").failed().stderr;
        assert!(stderr.contains("there is no such object or bucket"), "{stderr}");
    }
}

#[test]
fn wrong_credentials_are_refused_and_never_shown() {
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
        assert!(ran.stderr.contains("access denied with these credentials\n  help: check the credentials in the environment and what they allow\n"), "{}", ran.stderr);
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
        let Some(proxy) = proxy(server.port, mode, rate) else { return };
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
fn of_eight_writers_that_race_for_one_prefix_exactly_one_wins() {
    let room = room();
    let Some(server) = moto() else { return };
    for number in 0..8 {
        // Half of them have the same input, so that they make the same objects.
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
        let names: Vec<String> = objects(server.port, &format!("race{round}"))
            .lines()
            .map(|line| line[1..].split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, names_in(&room.path().join(format!("local{}", winners[0]))), "round {round}");
        run_with(room.path(), &format!("describe s3://bucket/race{round}"), &environment(server.port)).ok();
    }
}

#[test]
fn a_web_server_can_be_read() {
    let room = room();
    let Some(python) = python() else { return };
    std::fs::write(room.path().join("in.txt"), some_text(50, 10)).unwrap();
    run(room.path(), "convert in.txt --output local").ok();
    let port = free_port();
    let mut command = Command::new(python);
    command.current_dir(room.path()).args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    let server = Server::start(command, port);
    let url = format!("http://127.0.0.1:{}", server.port);
    run(room.path(), &format!("convert {url}/in.txt --output copy")).ok();
    assert_same_files(&room.path().join("copy"), &room.path().join("local"));
    run(room.path(), &format!("describe {url}/local")).ok();
    let stderr = run(room.path(), &format!("convert {url}/none.txt --output none")).failed().stderr;
    assert!(stderr.contains("there is no such object or bucket"), "{stderr}");
    let stderr = run(room.path(), &format!("convert in.txt --output {url}/out")).failed().stderr;
    assert!(stderr.contains("http(s) URLs can be read but not written"), "{stderr}");
}

#[test]
fn a_failed_overwrite_leaves_the_old_dataset_whole() {
    let room = room();
    let Some(server) = moto() else { return };
    let Some(python) = python() else { return };
    std::fs::write(room.path().join("in.txt"), some_text(400, 20)).unwrap();
    let variables = environment(server.port);
    run_with(room.path(), "convert in.txt --output s3://bucket/out --partition-rows 2000", &variables).ok();
    let before = objects(server.port, "out");
    // A proxy that refuses the manifest: everything is uploaded, and then nothing may be lost.
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
fn what_is_secret_in_a_url_is_never_shown() {
    let room = room();
    std::fs::write(room.path().join("in.txt"), some_text(5, 5)).unwrap();
    let port = free_port();
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.current_dir(room.path()).args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    let _server = Server::start(command, port);
    for arguments in [
        format!("convert http://me:{SECRET}@127.0.0.1:{port}/none.txt --output out"),
        format!("convert http://127.0.0.1:{port}/none.txt?X-Amz-Signature={SECRET} --output out"),
        format!("describe http://127.0.0.1:{port}/none?sig={SECRET}"),
        format!("convert in.txt --output http://127.0.0.1:{port}/o?sig={SECRET}"),
        format!("convert http://127.0.0.1:{port}/*.txt?sig={SECRET} --output out"),
    ] {
        let ran = run(room.path(), &format!("--log trace {arguments}"));
        assert_ne!(ran.code, 0, "{arguments}");
        assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    }
    // A signed URL is read as it is.
    run(room.path(), &format!("convert http://127.0.0.1:{port}/in.txt?sig={SECRET} --output signed")).ok();
}

#[test]
fn a_cross_validation_lives_in_a_bucket() {
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
        (1..=3).all(|fold| again.stderr.contains(&format!("fold {fold}: done before"))),
        "{}",
        again.stderr
    );
    assert_eq!(objects(server.port, "cv"), before);
}
