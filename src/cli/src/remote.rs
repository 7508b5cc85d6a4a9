//! `--cluster`, for all commands that have it.

use clap::Args;
use planetree_base::error::{Error, Result};
#[cfg(feature = "cluster")]
use planetree_cluster::{Address, Cluster, Traffic};
#[cfg(feature = "cluster")]
use std::sync::Arc;

/// Where the work is done, if not here.
#[derive(Debug, Args)]
pub struct ClusterOptions {
    /// Work on a cluster: df://HOST:PORT of its scheduler, or local:N for N executors on this machine; behind it
    /// ?shares=N&merge=N&overlap=N, see docs/cluster.md
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    certificates: super::cluster::Certificates,
}

impl ClusterOptions {
    /// The cluster that the user named. Executors that are started here share the threads; 0 is for all cores.
    #[cfg(feature = "cluster")]
    pub fn cluster(&self, threads: usize, instance_credentials: bool) -> Result<Option<Arc<Cluster>>> {
        let Some(text) = &self.cluster else { return Ok(None) };
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let address = Address::parse(text)?;
        if matches!(address, Address::Local { .. }) && self.certificates.are_given() {
            return Err(Error::usage(
                format_args!(
                    "--cluster {text} is of this machine alone and takes neither certificates nor a token"
                ),
                "leave --tls-... and --token-file out, or name a scheduler: --cluster df://HOST:PORT",
            ));
        }
        Ok(Some(Arc::new(Cluster::new(address, self.certificates.read()?, threads, instance_credentials))))
    }

    /// Says that there is no cluster in this build.
    #[cfg(not(feature = "cluster"))]
    pub fn refuse(&self) -> Result<()> {
        match &self.cluster {
            None => Ok(()),
            Some(_) => Err(Error::usage(
                "--cluster: this planetree was built without clusters",
                "build it with the feature `cluster`: cargo install planetree --features cluster",
            )),
        }
    }
}

/// What went over the line to a cluster, for `--stats`.
#[cfg(feature = "cluster")]
pub fn traffic_figures(traffic: &Traffic) -> serde_json::Value {
    serde_json::json!({
        "sent_bytes": traffic.sent,
        "received_bytes": traffic.received,
        "repeated": traffic.repeated,
        "rebuilt": traffic.rebuilt,
    })
}
