//! Processes in the background: starting, waiting for a condition, signals, ports and servers.

use super::program::command;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a condition may take to become true, on a busy machine too.
const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until a condition holds; fails after a deadline.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts the program in the background, with its standard error in a file.
pub fn start(directory: &Path, arguments: &str, log: &Path) -> Child {
    let file = File::create(log).unwrap();
    command(directory, arguments).stdout(Stdio::null()).stderr(file).spawn().unwrap()
}

/// Starts the program in the background and discards its messages.
pub fn start_silent(directory: &Path, arguments: &str) -> Child {
    command(directory, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a process with SIGKILL and waits for its end; fails if it had ended by itself.
pub fn kill_running(mut child: Child) {
    assert!(child.try_wait().unwrap().is_none(), "the process ended before it was killed");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sends a signal, such as `-INT`.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits until a process handles SIGINT and SIGTERM itself: before that, they would just end it.
pub fn wait_for_signal_handlers(child: &Child) {
    let wanted = (1 << (2 - 1)) | (1 << (15 - 1));
    wait_for("signal handlers", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & wanted == wanted
    });
}

/// The processor time that a running process has used, in all its threads.
pub fn processor_time(child: &Child) -> Duration {
    /// Length of the unit in which Linux reports times to programs.
    const TICK: Duration = Duration::from_millis(10);
    let status = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // The second field is the program's name in parentheses. The 14th and 15th are the times in user and kernel mode.
    let fields: Vec<&str> = status.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<u32>().unwrap();
    TICK * (ticks(14) + ticks(15))
}

/// A free port of the loopback interface; the port 10,000 above, which some servers take without asking, is free too.
/// Below the range that the system assigns by itself.
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

/// A server process that ends with the test.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    /// Starts a process and waits until it accepts connections on the port.
    pub fn start(mut command: Command, port: u16) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = Server { child, port };
        wait_for(&format!("{command:?}: a connection"), || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    /// The process id.
    #[cfg(feature = "cluster")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
