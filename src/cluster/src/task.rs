//! Requests to executors and their replies. A task travels inside a plan, so it is small: an executor that lacks the
//! state which it builds on reports that, and the task is sent again together with a snapshot.

use planetree_base::compact::{self, Bytes};
use planetree_base::error::{Error, Result};
use planetree_base::wire::malformed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Protocol version; driver and executors must agree on it. The last number changes with the messages and with
/// everything that must be computed alike on both sides: jobs, feature groups, gradients of objectives.
pub const BUILD: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"), " cluster 6");

/// What all tasks of a command have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Command {
    /// Unique name of the command.
    pub run: String,
    /// Location of the dataset or table.
    pub data: String,
    /// Whether credentials may come from the machine's metadata service.
    pub instance_credentials: bool,
    /// Identifies its content.
    pub fingerprint: String,
}

impl Command {
    /// A task of this command.
    pub fn task(&self, step: Step) -> Task {
        let Command { run, data, instance_credentials, fingerprint } = self.clone();
        Task { build: BUILD.to_owned(), run, data, instance_credentials, fingerprint, step }
    }
}

/// A task for all shares of some data. Executors of other builds must understand a probe, so it is sent as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`BUILD`] of the driver.
    pub build: String,
    /// See [`Command`].
    pub run: String,
    /// See [`Command`].
    pub data: String,
    /// See [`Command`].
    pub instance_credentials: bool,
    /// See [`Command`].
    pub fingerprint: String,
    /// The operation.
    pub step: Step,
}

/// The operation of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Identify the executor.
    Probe,
    /// Run a job.
    Run {
        /// Its name; see [`registry`](super::registry).
        job: String,
        /// Maximum number of blocks of the reply; see [`merge`](super::merge).
        blocks: usize,
    },
    /// Release all state of the command.
    Forget,
}

impl Task {
    /// Serialises the task.
    pub fn to_bytes(&self) -> Vec<u8> {
        compress(&serde_json::to_vec(self).expect("numbers and strings always serialise"))
    }

    /// Reads what [`Task::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(&decompress(bytes)?).map_err(|_| malformed())
    }
}

/// Serialises a job or a snapshot. The result is never empty.
pub fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    compress(&compact::to_bytes(value))
}

/// Reads what [`pack`] wrote.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    compact::from_bytes(&decompress(bytes)?)
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("compressing to memory cannot fail")
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>> {
    zstd::decode_all(bytes).map_err(|_| malformed())
}

/// The reply of a share. The first kind has the same bytes in all builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Name, threads and build of the executor.
    Identity(ExecutorIdentity),
    /// A block of the partial of a share.
    Block {
        /// Number of blocks of the share.
        of: u64,
        /// The serialised partial.
        partial: Bytes,
    },
    /// A block that an executor merged over several shares.
    Merged {
        /// Number of shares.
        shares: u64,
        /// Number of blocks of each share.
        of: u64,
        /// The serialised partial.
        partial: Bytes,
    },
    /// The executor is shutting down; retry elsewhere.
    Stopping,
    /// The state of the command was released.
    Released,
    /// The executor lacks the state that the task builds on.
    MissingState,
    /// A permanent failure.
    Failed {
        /// The cause.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

/// Identity of an executor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutorIdentity {
    /// Host and process id.
    pub name: String,
    /// Number of threads.
    pub threads: u64,
    /// [`BUILD`] of the executor.
    pub build: String,
}

impl Reply {
    /// Turns an error into a reply.
    pub fn failed(error: &Error) -> Self {
        Reply::Failed { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drivers and executors of different builds must understand each other's probes, to report the difference.
    #[test]
    fn probes_and_identities_are_the_same_in_all_builds() {
        let task = Command { run: "probe".to_owned(), ..Command::default() }.task(Step::Probe);
        let text = decompress(&task.to_bytes()).unwrap();
        let expected = format!(
            r#"{{"build":"{BUILD}","run":"probe","data":"","instance_credentials":false,"fingerprint":"","step":"Probe"}}"#
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        let identity = ExecutorIdentity { name: "a".to_owned(), threads: 300, build: "b".to_owned() };
        assert_eq!(compact::to_bytes(&Reply::Identity(identity)), [0, 1, b'a', 0xAC, 2, 1, b'b']);
    }
}
