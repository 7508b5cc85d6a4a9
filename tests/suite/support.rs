//! Running the program, reading what it wrote, and the servers and tools that tests need.

use planetree::dataset::DatasetReader;
use planetree::storage::{Access, Location};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The top of the checkout.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub const BINARY: &str = env!("CARGO_BIN_EXE_planetree");

/// The outcome of a run.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    pub fn failed(self) -> Self {
        assert_eq!(self.code, 1, "{}{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// The program with arguments split at spaces, in a directory.
pub fn command(directory: &Path, arguments: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(directory).args(arguments.split_whitespace());
    // Nothing leaves this machine, whatever its environment says.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9").env("GCE_METADATA_HOST", "127.0.0.1:9");
    command
}

pub fn run(directory: &Path, arguments: &str) -> Ran {
    Ran::of(command(directory, arguments).output().unwrap())
}

pub fn run_with(directory: &Path, arguments: &str, environment: &[(String, String)]) -> Ran {
    Ran::of(command(directory, arguments).envs(environment.iter().cloned()).output().unwrap())
}

pub fn run_stdin(directory: &Path, arguments: &str, input: &[u8]) -> Ran {
    let mut child = command(directory, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input); // the program may stop reading at a fault
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran::of(output)
}

/// A directory of its own for a test.
pub fn room() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A row of a dataset: query, document, label, features.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub query: String,
    pub document: Option<String>,
    pub label: Option<f32>,
    pub features: Vec<Option<f32>>,
}

/// Reads a local dataset whole, checksums and all.
pub fn rows_of(dataset: &Path) -> Vec<Row> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Float32Type;
    let location = Location::parse(dataset.to_str().unwrap(), Access::Explicit).unwrap();
    let reader = DatasetReader::open(&location).unwrap();
    let mut rows = Vec::new();
    for id in reader.groups() {
        let batch = reader.open_group(id).unwrap().read_all().unwrap();
        let text = |name: &str, row: usize| {
            let column = batch.column_by_name(name).unwrap().as_string::<i32>();
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let number = |name: &str, row: usize| {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Float32Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            rows.push(Row {
                query: text("query_id", row).unwrap(),
                document: text("doc_id", row),
                label: number("label", row),
                features: reader.manifest().features.iter().map(|name| number(name, row)).collect(),
            });
        }
    }
    rows
}

/// Names and contents of all files below a directory, sorted.
pub fn files_of(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Fails unless two directories hold the same files; says which differs, not how.
pub fn assert_same_files(left: &Path, right: &Path) {
    assert!(files_of(left) == files_of(right), "{} and {} differ", left.display(), right.display());
}

/// Everything in a directory, also what is hidden.
pub fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// LETOR text with some variety, for tests that need no particular content.
pub fn some_text(queries: usize, documents: usize) -> String {
    let mut text = String::new();
    for query in 0..queries {
        for document in 0..documents {
            let value = (query * 31 + document * 17) % 101;
            text.push_str(&format!(
                "{} qid:{query} 1:{value} 2:{:.6} {}5:{} #docid = D{query}-{document}\n",
                value % 5,
                value as f64 / 7.0,
                if value % 3 == 0 { "3:-1.5e-3 " } else { "" },
                value % 2
            ));
        }
    }
    text
}

/// The folder with real data and faults beside the checkout, if it is there.
pub fn shared(part: &str) -> Option<PathBuf> {
    let path = Path::new(ROOT).join("../shared").join(part);
    if !path.exists() {
        // Not ours to ship.
        impossible_here(&format!("{} is not beside the checkout", path.display()));
        return None;
    }
    path.canonicalize().ok()
}

/// A tool that a test needs is missing. Where tools are required (`make test`, and always in CI) the test fails; where skips
/// are allowed they are counted and listed at the end.
pub fn skipped(why: &str) {
    let required = std::env::var_os("PLANETREE_TOOLS_REQUIRED").is_some_and(|value| !value.is_empty());
    assert!(!required && !in_ci(), "{why} (make test ALLOW_SKIPS=1 leaves out what needs it)");
    record_skip(why);
}

/// A test cannot run on this machine, whatever is installed: it fails in CI only.
pub fn impossible_here(why: &str) {
    assert!(!in_ci(), "{why}");
    record_skip(why);
}

fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn record_skip(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("PLANETREE_SKIPS") {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // One write a line, so that tests running side by side do not mix theirs.
        file.and_then(|mut file| file.write_all(format!("{name}\t{why}\n").as_bytes())).unwrap();
    }
}

/// A Python with the packages that tests need, as `make test` prepares it.
pub fn python() -> Option<PathBuf> {
    let home = std::env::var_os("PLANETREE_TEST_VENV").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .map(|cache| cache.join("planetree/venv"))
    })?;
    let python = home.join("bin/python");
    if !python.exists() {
        skipped("there is no Python with the test packages: install python3 with venv and run `make venv`");
        return None;
    }
    Some(python)
}

/// A port of the loopback interface that is free now, and the one 10,000 above it too, which some
/// servers take without asking. Below the ports that the system hands out by itself.
pub fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id() % 10_000) as u16;
    for _ in 0..10_000 {
        let port = 12_000 + (start + NEXT.fetch_add(7, Ordering::Relaxed) % 10_000) % 10_000;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
    panic!("no port is free");
}

/// A process that ends with the test.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    /// Starts a process and waits until it answers on the port.
    pub fn start(mut command: Command, port: u16) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Server { child, port };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{command:?} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs a command; its stderr and its peak memory in MiB.
pub fn peak_of(directory: &Path, arguments: &str) -> (String, u64) {
    let mut child =
        command(directory, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_in(&std::fs::read_to_string(&status).unwrap_or_default()));
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), peak)
}

/// The peak memory in MiB that a process's status tells.
pub fn peak_in(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
