//! Starts a cluster on this machine, for tests and experiments. It consists of a scheduler and executors, each in its
//! own process. Their standard input is a pipe from the process that started them. The pipe closes when that process
//! ends, even if it is killed, and they then exit.

use super::client::SchedulerClient;
use super::task::ExecutorIdentity;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running cluster on this machine. Its processes are stopped when it is dropped.
pub(crate) struct LocalCluster {
    port: u16,
    executors: usize,
    children: Vec<Child>,
    /// Contains the working directories of the executors, and is deleted on drop.
    _folder: tempfile::TempDir,
}

/// Maximum time that the processes may take to start.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

impl LocalCluster {
    /// Starts a scheduler and executors, which share the given number of threads.
    pub(crate) fn start(executors: usize, threads: usize) -> Result<Self> {
        interrupt::be_orderly(); // from here on there are processes and a directory to clean up
        let program =
            planetree_base::program::program().map_err(|error| Error::io("planetree", "find", error))?;
        let folder = tempfile::Builder::new()
            .prefix("planetree-cluster-")
            .tempdir()
            .map_err(|error| Error::io("temporary folder", "create", error))?;
        let port = free_port()?;
        let mut cluster = LocalCluster { port, executors, children: Vec::new(), _folder: folder };
        let address = format!("127.0.0.1:{port}");
        cluster.spawn(&program, &["scheduler", "--port", &port.to_string()])?;
        cluster.wait_for_scheduler()?;
        let threads = (threads / executors).max(1).to_string();
        for number in 0..executors {
            let folder: PathBuf = cluster._folder.path().join(number.to_string());
            std::fs::create_dir(&folder).map_err(|error| Error::io(folder.display(), "create", error))?;
            let folder = folder.to_string_lossy().into_owned();
            let arguments = [
                "executor",
                "--scheduler",
                &address,
                "--port",
                "0",
                "--threads",
                &threads,
                "--work-dir",
                &folder,
            ];
            cluster.spawn(&program, &arguments)?;
        }
        Ok(cluster)
    }

    /// Returns the port of the scheduler.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn spawn(&mut self, program: &std::path::Path, arguments: &[&str]) -> Result<()> {
        let child = Command::new(program)
            .args(arguments)
            .args(["--until-stdin-ends", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Error::io(program.display(), "start", error))?;
        tracing::info!("started {}: process {}", arguments[0], child.id());
        self.children.push(child);
        Ok(())
    }

    fn wait_for_scheduler(&mut self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            interrupt::check()?;
            let ended = self.children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || begun.elapsed() > RETRY_TIMEOUT {
                return Err(Error::usage(
                    "--cluster: the scheduler did not start",
                    "check its messages on standard error",
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until all executors have registered.
    pub(crate) fn wait_for_executors(&mut self, client: &SchedulerClient) -> Result<Vec<ExecutorIdentity>> {
        let begun = Instant::now();
        let mut last_error = None;
        loop {
            let here = match client.executors() {
                Ok(executors) if executors.len() >= self.executors => return Ok(executors),
                Ok(executors) => executors.len(),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // On a busy machine, executors may start and answer late.
                Err(error) => {
                    last_error = Some(error);
                    0
                }
            };
            let ended = self.children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || begun.elapsed() > RETRY_TIMEOUT {
                if let (0, Some(error)) = (here, last_error) {
                    return Err(error);
                }
                return Err(Error::usage(
                    format_args!("--cluster: {here} of {} executors started", self.executors),
                    "check their messages on standard error",
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        // The processes exit when their standard input closes. Those that do not exit in time are killed.
        for child in &mut self.children {
            drop(child.stdin.take());
        }
        let begun = Instant::now();
        for child in &mut self.children {
            while begun.elapsed() < Duration::from_secs(5) && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Finds a free port.
pub(crate) fn free_port() -> Result<u16> {
    free_ports::<1>().map(|[port]| port)
}

/// Finds distinct free ports.
pub(crate) fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let failed = |error: std::io::Error| Error::io("127.0.0.1", "listen at", error);
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All listeners stay open until the last port is found, so that no port is returned twice.
    let listeners: Vec<TcpListener> =
        (0..COUNT).map(|_| listen()).collect::<std::io::Result<_>>().map_err(failed)?;
    let mut ports = [0; COUNT];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(failed)?.port();
    }
    Ok(ports)
}
