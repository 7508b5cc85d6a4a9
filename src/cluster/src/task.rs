//! Defines the requests to executors and their replies. Tasks are small, because they travel inside plans. If an
//! executor lacks the state that a task builds on, it reports this, and the task is sent again together with a
//! snapshot of the state.

use planetree_base::compact::{self, Bytes};
use planetree_base::error::{Error, Result};
use planetree_base::wire::malformed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Protocol version, which must be the same in the driver and all executors. The last number is raised whenever
/// messages change, or anything that both sides must compute identically, such as jobs, feature groups or gradients.
pub(crate) const BUILD: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"), " cluster 9");

/// The properties that all tasks of a command share.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ClusterCommand {
    /// Unique name of the command.
    pub run: String,
    /// Location of the dataset or table.
    pub data: String,
    /// Locations of further datasets, which are read as if they were concatenated.
    pub more_data: Vec<String>,
    /// Whether credentials may be obtained from the metadata service of the machine.
    pub instance_credentials: bool,
    /// Fingerprint of the data, which executors compare with the content that they find.
    pub fingerprint: String,
}

impl ClusterCommand {
    /// Creates a task of this command.
    pub(crate) fn task(&self, step: Step) -> Task {
        let ClusterCommand { run, data, more_data, instance_credentials, fingerprint } = self.clone();
        Task { build: BUILD.to_owned(), run, data, more_data, instance_credentials, fingerprint, step }
    }
}

/// A task for all shares of a dataset. It is sent as JSON, because executors of other builds must understand at least a
/// probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// [`BUILD`] of the driver.
    pub build: String,
    /// Same as [`ClusterCommand::run`].
    pub run: String,
    /// Same as [`ClusterCommand::data`].
    pub data: String,
    /// Same as [`ClusterCommand::more_data`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_data: Vec<String>,
    /// Same as [`ClusterCommand::instance_credentials`].
    pub instance_credentials: bool,
    /// Same as [`ClusterCommand::fingerprint`].
    pub fingerprint: String,
    /// The operation to execute.
    pub step: Step,
}

/// What an executor does for a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Identify the executor.
    Probe,
    /// Run a job.
    Run {
        /// The name of the job in the [`registry`](super::registry).
        job: String,
        /// Maximum number of blocks of the reply; see [`merge`](super::merge).
        blocks: usize,
        /// The index of the part that the state belongs to, or 0 if parts share the state.
        member: usize,
    },
    /// Release all state of the command.
    Forget,
}

impl Task {
    /// Serialises and compresses the task.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        compress(&serde_json::to_vec(self).expect("numbers and strings always serialise"))
    }

    /// Reads the output of [`Task::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(&decompress(bytes)?).map_err(|_| malformed())
    }
}

/// Serialises and compresses a job or a snapshot. The result is never empty, so empty bytes can stand for a missing
/// job or snapshot.
pub(crate) fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    compress(&compact::to_bytes(value))
}

/// Reads the output of [`pack`].
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    compact::from_bytes(&decompress(bytes)?)
}

/// Compresses an encoded job or snapshot. [`unpack`] reads the result.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("compressing to memory cannot fail")
}

/// Maximum size of a decompressed job or snapshot in bytes. A few bytes of a hostile message could claim any size.
const DECOMPRESSED_BYTES: u64 = 2 << 30;

fn decompress(bytes: &[u8]) -> Result<Vec<u8>> {
    decompress_within(bytes, DECOMPRESSED_BYTES)
}

fn decompress_within(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = zstd::Decoder::with_buffer(bytes).map_err(|_| malformed())?;
    let length = decoder.take(limit + 1).read_to_end(&mut content).map_err(|_| malformed())?;
    if length as u64 > limit { Err(malformed()) } else { Ok(content) }
}

/// The reply for a share, which is a range of row groups. The encoding of `Identity` never changes, so that all
/// builds can read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The identity of the executor, in reply to a probe.
    Identity(ExecutorIdentity),
    /// A block of the result (the partial) of a share.
    Block {
        /// Number of blocks that the partial of the share consists of.
        of: u64,
        /// The block as a serialised partial.
        partial: Bytes,
    },
    /// A block that an executor merged over several shares.
    Merged {
        /// Number of shares that were merged.
        shares: u64,
        /// Number of blocks that the partial of each share consists of.
        of: u64,
        /// The merged block as a serialised partial.
        partial: Bytes,
    },
    /// The executor is shutting down, so the request should be repeated.
    Stopping,
    /// The state of the command was released.
    Released,
    /// The executor lacks the state that the task builds on.
    MissingState,
    /// A failure that a repeated request would not fix.
    Failed {
        /// What is wrong.
        problem: String,
        /// What the user can do about it.
        remedy: String,
    },
}

/// What an executor reveals about itself when it is probed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ExecutorIdentity {
    /// Host and process id.
    pub name: String,
    /// Number of threads.
    pub threads: u64,
    /// [`BUILD`] of the executor.
    pub build: String,
}

impl Reply {
    /// Turns an error into a reply.
    pub(crate) fn failed(error: &Error) -> Self {
        Reply::Failed { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_expand_too_far_are_refused() {
        let bytes = compress(&vec![0; 1 << 20]);
        assert!(bytes.len() < 200);
        assert_eq!(decompress_within(&bytes, 1 << 20).unwrap().len(), 1 << 20);
        assert!(decompress_within(&bytes, (1 << 20) - 1).is_err());
        assert!(decompress(&bytes[..bytes.len() - 1]).is_err());
    }

    /// Drivers and executors of different builds must understand each other's probes, in order to report the version
    /// mismatch.
    #[test]
    fn probes_and_identities_are_the_same_in_all_builds() {
        let task = ClusterCommand { run: "probe".to_owned(), ..ClusterCommand::default() }.task(Step::Probe);
        let text = decompress(&task.to_bytes()).unwrap();
        let expected = format!(
            r#"{{"build":"{BUILD}","run":"probe","data":"","instance_credentials":false,"fingerprint":"","step":"Probe"}}"#
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        let identity = ExecutorIdentity { name: "a".to_owned(), threads: 300, build: "b".to_owned() };
        assert_eq!(compact::to_bytes(&Reply::Identity(identity)), [0, 1, b'a', 0xAC, 2, 1, b'b']);
    }
}
