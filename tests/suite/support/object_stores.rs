//! Object stores: S3-compatible servers on the loopback interface, and clients of them.

use super::processes::{Server, free_port};
use super::tools::{python, shared, skipped};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

/// The secret key of all test servers, which must never be printed.
pub const SECRET: &str = "sentinel-secret-5f1c";

/// Starts moto, which creates objects atomically and accepts any secret.
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

/// Starts SeaweedFS, which checks secrets.
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

/// Starts a proxy that makes a share of the requests fail in some mode.
pub fn fault_proxy(upstream: u16, mode: &str, rate: f64) -> Option<Server> {
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

/// Starts a web server that serves the files of a directory.
pub fn web_server(directory: &Path) -> Option<Server> {
    let port = free_port();
    let mut command = Command::new(python()?);
    command.current_dir(directory).args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    Some(Server::start(command, port))
}

/// Environment variables with the credentials and endpoint of a server.
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

/// Runs lines of Python with an S3 client called `s3`; what they print.
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

/// Names and hashes of all objects below a prefix, one per line.
pub fn objects(port: u16, prefix: &str) -> String {
    with_client(
        port,
        &format!(
            "import hashlib\nfor o in s3.list_objects_v2(Bucket='bucket', Prefix='{prefix}/').get('Contents', []):\n  body = s3.get_object(Bucket='bucket', Key=o['Key'])['Body'].read()\n  print(o['Key'][len('{prefix}'):], hashlib.sha256(body).hexdigest())\n"
        ),
    )
}

/// Names of all objects below a prefix.
pub fn object_names(port: u16, prefix: &str) -> Vec<String> {
    let name = |line: &str| line[1..].split(' ').next().unwrap().to_owned();
    objects(port, prefix).lines().map(name).collect()
}

/// Uploads a file into the bucket.
pub fn put(port: u16, file: &Path, key: &str) {
    with_client(port, &format!("s3.upload_file('{}', 'bucket', '{key}')", file.display()));
}

/// What a hostile server does with a connection after it has read a request.
pub type Answer = fn(&mut TcpStream);

/// Starts a server on the loopback interface that treats every connection in the same way. Returns its port, and the
/// requests that it receives.
pub fn hostile_server(answer: Answer) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut request = vec![0; 1 << 16];
                let count = stream.read(&mut request).unwrap_or(0);
                let _ = sender.send(String::from_utf8_lossy(&request[..count]).into_owned());
                answer(&mut stream);
            });
        }
    });
    (port, received)
}

/// Answers a request with a status line with headers, and a body.
pub fn reply(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(body);
}
