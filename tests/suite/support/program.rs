//! Running the program and checking how it ended.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The root of the checkout.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program under test.
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

    /// Asserts success.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Asserts an error that is reported, not a panic.
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
    // No request may leave this machine, whatever credentials its environment has.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9").env("GCE_METADATA_HOST", "127.0.0.1:9");
    command
}

/// Runs the program to its end.
pub fn run(directory: &Path, arguments: &str) -> Ran {
    Ran::of(command(directory, arguments).output().unwrap())
}

/// Runs the program with extra environment variables.
pub fn run_with(directory: &Path, arguments: &str, environment: &[(String, String)]) -> Ran {
    Ran::of(command(directory, arguments).envs(environment.iter().cloned()).output().unwrap())
}

/// Runs the program with bytes on its standard input.
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
        let _ = stdin.write_all(&input); // the program may stop reading at an error
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran::of(output)
}

/// Asserts that a run failed with an exit code, without a panic and with all of these texts on standard error.
pub fn assert_refused(arguments: &str, ran: &Ran, code: i32, texts: &[&str]) {
    assert_eq!(ran.code, code, "{arguments}: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{arguments}: {}", ran.stderr);
    for text in texts {
        assert!(ran.stderr.contains(text), "{arguments}: {text:?} is not in\n{}", ran.stderr);
    }
}

/// Runs a command; its standard error and its peak memory in MiB.
pub fn peak_of(directory: &Path, arguments: &str) -> (String, u64) {
    let mut child =
        command(directory, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let peak = peak_until_exit(&mut child);
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), peak)
}

/// Waits for a process to end; its peak memory in MiB.
pub fn peak_until_exit(child: &mut std::process::Child) -> u64 {
    let peak = sampled_peak(child);
    assert!(peak > 0, "the process ended before its memory was sampled");
    peak
}

/// Like [`peak_until_exit`]; 0 if the process ended before its memory was sampled.
pub fn sampled_peak(child: &mut std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_in(&std::fs::read_to_string(&status).unwrap_or_default()));
        std::thread::sleep(Duration::from_millis(2)); // the interval at which memory is sampled
    }
    peak
}

/// The peak memory in MiB according to the text of `/proc/PID/status`.
fn peak_in(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
