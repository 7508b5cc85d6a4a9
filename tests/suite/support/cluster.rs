//! Clusters on this machine: a scheduler and executors, each its own process.

use super::files::room;
use super::processes::{Server, free_port, wait_for};
use super::program::{Ran, command};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A scheduler and its executors, which end with the test.
pub struct Cluster {
    scheduler: Server,
    pub executors: Vec<Child>,
    port: u16,
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
    /// Options of the scheduler, the executors and the commands that use them, such as certificates.
    options: String,
    /// The ports of each executor: results are fetched from the first, tasks are sent to the second.
    ports: Vec<[u16; 2]>,
}

impl Cluster {
    /// Starts a cluster without certificates or token.
    pub fn start(executors: usize, environment: &[(String, String)]) -> Self {
        Self::start_with(executors, environment, "")
    }

    /// Starts a cluster and waits until all executors have registered: a training assigns its shares to those that are
    /// registered when it begins.
    pub fn start_with(executors: usize, environment: &[(String, String)], options: &str) -> Self {
        let (port, folder) = (free_port(), room());
        let scheduler = command(folder.path(), &format!("--quiet scheduler --port {port} {options}"));
        let mut cluster = Cluster {
            scheduler: Server::start(scheduler, port),
            executors: Vec::new(),
            port,
            folder,
            environment: environment.to_vec(),
            options: options.to_owned(),
            ports: Vec::new(),
        };
        (0..executors).for_each(|_| cluster.add_executor());
        cluster.wait_until_registered(executors);
        cluster
    }

    /// Waits until commands find a number of executors.
    pub fn wait_until_registered(&self, executors: usize) {
        wait_for("registration of all executors", || self.registered() == executors);
    }

    /// Starts an executor in a folder of its own.
    pub fn add_executor(&mut self) {
        let number = self.executors.len();
        fs::create_dir_all(self.work_folder(number)).unwrap();
        let folder = self.folder.path().join(format!("executor{number}"));
        let port = free_port();
        self.ports.push([port, port + 1]);
        let arguments = format!(
            "--quiet executor --scheduler 127.0.0.1:{} --port {port} --threads 1 --work-dir work",
            self.port
        );
        let mut command = command(&folder, &format!("{arguments} {}", self.options));
        command.envs(self.environment.iter().cloned());
        self.executors.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    /// Number of executors that a command finds: it logs each of them when it connects.
    fn registered(&self) -> usize {
        let arguments = format!("--log info sql --format csv --cluster {} {}", self.url(), self.options);
        let mut command = command(self.folder.path(), &arguments);
        let ran = Ran::of(command.args(["-c", "SELECT 1"]).output().unwrap());
        ran.stderr.lines().filter(|line| line.contains("executor ") && line.ends_with(" threads")).count()
    }

    /// Number of jobs that an executor has results of.
    pub fn jobs_of(&self, executor: usize) -> usize {
        fs::read_dir(self.work_folder(executor)).unwrap().count()
    }

    /// The stages of jobs that an executor has results of.
    pub fn stages_of(&self, executor: usize) -> BTreeSet<usize> {
        let jobs = fs::read_dir(self.work_folder(executor)).unwrap();
        let stages = jobs.flat_map(|job| fs::read_dir(job.unwrap().path()).unwrap());
        stages.map(|stage| stage.unwrap().file_name().to_string_lossy().parse().unwrap()).collect()
    }

    /// The folder in which an executor keeps results, which the executor need not have been started for yet.
    pub fn work_folder(&self, executor: usize) -> PathBuf {
        self.folder.path().join(format!("executor{executor}/work"))
    }

    /// Waits until an executor has results of a number of jobs; false if the command ended before.
    pub fn wait_for_jobs(&self, executor: usize, jobs: usize, running: &mut Child) -> bool {
        let mut ended = false;
        wait_for(&format!("{jobs} jobs of executor {executor}"), || {
            ended = running.try_wait().unwrap().is_some();
            ended || self.jobs_of(executor) >= jobs
        });
        !ended
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The ports of the scheduler and of all executors that were started.
    pub fn ports(&self) -> Vec<u16> {
        std::iter::once(self.port).chain(self.ports.iter().flatten().copied()).collect()
    }

    /// The process ids of the scheduler and of all executors that were started.
    pub fn processes(&self) -> Vec<u32> {
        std::iter::once(self.scheduler.id()).chain(self.executors.iter().map(Child::id)).collect()
    }

    pub fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for executor in &mut self.executors {
            let _ = executor.kill();
            let _ = executor.wait();
        }
    }
}
