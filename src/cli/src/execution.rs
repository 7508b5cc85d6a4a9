//! Where a command runs: on threads of this machine or on a cluster.

use super::options::{StoreOptions, ThreadOptions};
use clap::Args;
use planetree_base::error::{Error, Result};
#[cfg(feature = "cluster")]
use planetree_cluster::{Address, Cluster, Traffic};
#[cfg(feature = "cluster")]
use std::sync::Arc;

/// Threads, cluster and access to object stores.
#[derive(Debug, Args)]
pub struct ExecutionOptions {
    #[command(flatten)]
    pub threads: ThreadOptions,

    /// Run on a cluster: df://HOST:PORT of its scheduler, or local:N for N executors on this machine, optionally
    /// followed by ?shares=N&merge=N&overlap=N (see docs/cluster.md)
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    security: super::cluster::SecurityOptions,

    #[command(flatten)]
    pub store: StoreOptions,
}

impl ExecutionOptions {
    /// The cluster, if one is requested. Executors started on this machine share `threads`; 0 stands for all cores.
    #[cfg(feature = "cluster")]
    pub fn cluster(&self, threads: usize) -> Result<Option<Arc<Cluster>>> {
        let Some(text) = &self.cluster else { return Ok(None) };
        let threads = if threads == 0 { super::options::available_cores() } else { threads };
        let address = Address::parse(text)?;
        if matches!(address, Address::Local { .. }) && self.security.is_given() {
            return Err(Error::usage(
                format_args!("--cluster {text}: a local cluster takes neither certificates nor a token"),
                "remove --tls-... and --token-file, or name a scheduler: --cluster df://HOST:PORT",
            ));
        }
        let credentials = self.store.instance_credentials();
        Ok(Some(Arc::new(Cluster::new(address, self.security.read()?, threads, credentials))))
    }

    /// An error if a cluster is requested: this build has no support for clusters.
    #[cfg(not(feature = "cluster"))]
    pub fn refuse_cluster(&self) -> Result<()> {
        match &self.cluster {
            None => Ok(()),
            Some(_) => Err(Error::usage(
                "--cluster: this planetree was built without cluster support",
                "build it with the feature `cluster`: cargo install planetree --features cluster",
            )),
        }
    }
}

/// Network traffic with a cluster, for `--stats`.
#[cfg(feature = "cluster")]
pub fn traffic_stats(traffic: &Traffic) -> serde_json::Value {
    serde_json::json!({
        "sent_bytes": traffic.sent,
        "received_bytes": traffic.received,
        "repeated": traffic.repeated,
        "rebuilt": traffic.rebuilt,
    })
}
