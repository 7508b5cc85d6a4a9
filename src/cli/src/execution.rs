//! Defines the options that decide where a command runs: on threads of this machine or on a cluster.

use super::options::{StoreOptions, ThreadOptions};
use super::remote::{RemoteCluster, SecurityOptions};
use clap::Args;
use planetree_base::error::Result;

/// Threads, cluster and access to object stores.
#[derive(Debug, Args)]
pub(crate) struct ExecutionOptions {
    #[command(flatten)]
    pub threads: ThreadOptions,

    /// Run on a cluster: df://HOST:PORT of its scheduler, or local:N for N executors on this machine, optionally
    /// followed by ?shares=N&merge=N&overlap=N (see docs/cluster.md)
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    #[command(flatten)]
    security: SecurityOptions,

    #[command(flatten)]
    pub store: StoreOptions,
}

impl ExecutionOptions {
    /// Checks whether the command runs on the executors of other machines, which do not see the files of this one.
    pub(crate) fn is_remote(&self) -> bool {
        self.cluster.as_ref().is_some_and(|address| !address.starts_with("local:"))
    }

    /// Returns the cluster, if one is requested. Executors that are started on this machine share `threads` threads; 0
    /// means all cores.
    pub(crate) fn cluster(&self, threads: usize) -> Result<Option<RemoteCluster>> {
        let Some(address) = &self.cluster else { return Ok(None) };
        let threads = if threads == 0 { super::options::available_cores() } else { threads };
        let credentials = self.store.instance_credentials();
        RemoteCluster::new(address, &self.security, threads, credentials).map(Some)
    }
}
