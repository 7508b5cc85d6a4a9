//! Runs the processes of a cluster, which are the engine's scheduler and executor extended with planetree's plan
//! nodes.

use super::address::{MOST_OVERLAP, check_bind};
use super::affinity::ShareAffinity;
use super::client::MESSAGE_BYTES;
use super::codec::RoundCodec;
use super::executor::{drop_idle_shares, set_limit};
use super::local::free_ports;
use super::query::{client_config, environment, executor_functions, scheduler_session};
use super::security::Security;
use super::token::Token;
use super::work_folder::set_folder;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{border, interrupt};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Options of a scheduler.
#[derive(Clone)]
pub struct SchedulerOptions {
    /// The address to listen on.
    pub bind: String,
    /// The port to listen on, or 0 for any free port.
    pub port: u16,
    /// The host name at which executors reach the scheduler. `None` means the bind address.
    pub host: Option<String>,
    /// Whether a public address may be bound without encryption.
    pub plaintext: bool,
    /// Certificates and token.
    pub security: Security,
    /// Seconds without a heartbeat after which an executor is considered lost.
    pub executor_timeout: u64,
    /// Called when standard input closes. `None` means that standard input is ignored.
    pub on_stdin_closed: Option<fn()>,
}

/// Options of an executor.
#[derive(Clone)]
pub struct ExecutorOptions {
    /// The scheduler's host.
    pub scheduler_host: String,
    /// The scheduler's port.
    pub scheduler_port: u16,
    /// The address to listen on.
    pub bind: String,
    /// The port that serves results; the port after it receives tasks. 0 means any two free ports.
    pub port: u16,
    /// The host name at which other processes reach this executor. `None` means the bind address.
    pub host: Option<String>,
    /// Whether a public address may be bound without encryption.
    pub plaintext: bool,
    /// Certificates and token.
    pub security: Security,
    /// Maximum size of cached states in bytes. `None` means no limit.
    pub cache_bytes: Option<u64>,
    /// Directory for results waiting to be fetched. `None` means a temporary directory.
    pub work_dir: Option<PathBuf>,
    /// Called when standard input closes. `None` means that standard input is ignored.
    pub on_stdin_closed: Option<fn()>,
}

/// Seconds between heartbeats of an executor.
const HEARTBEAT: u64 = 2;

/// Runs a scheduler until it is stopped. Calls `ready` with the address that it listens on.
pub fn run_scheduler(options: &SchedulerOptions, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    check_bind(&options.bind, options.plaintext || options.security.uses_tls())?;
    options.on_stdin_closed.into_iter().for_each(when_stdin_closes);
    let place = format!("{}:{}", options.bind, options.port);
    let outer = address_of(&place)?;
    let inner = options.security.inner(outer)?;
    let serve = async {
        // Without TCP_NODELAY, each request would wait for the acknowledgement of the previous one.
        let incoming = TcpIncoming::bind(inner).map_err(|error| error.to_string())?.with_nodelay(Some(true));
        let inner = incoming.local_addr().map_err(|error| error.to_string())?;
        let outer = SocketAddr::new(outer.ip(), inner.port());
        options.security.start_proxy(outer, inner).await.map_err(|error| error.to_string())?;
        let config = Arc::new(SchedulerConfig {
            bind_host: options.bind.clone(),
            bind_port: outer.port(),
            external_host: options.host.clone().unwrap_or_else(|| options.bind.clone()),
            override_create_grpc_client_endpoint: Some(options.security.endpoint()),
            override_physical_codec: Some(Arc::new(RoundCodec::default())),
            override_session_builder: Some(Arc::new(scheduler_session)),
            task_distribution: TaskDistributionPolicy::Custom(Arc::new(ShareAffinity::default())),
            executor_timeout_seconds: options.executor_timeout,
            expire_dead_executor_interval_seconds: 1,
            no_executors_grace_period_seconds: options.executor_timeout.max(3 * HEARTBEAT),
            // Results must be kept for a while, because the results of a query are fetched partition by partition.
            // The results of a tree level are fetched once, immediately.
            finished_job_data_clean_up_interval_seconds: 300,
            finished_job_state_clean_up_interval_seconds: 360,
            grpc_server_max_decoding_message_size: MESSAGE_BYTES as u32,
            grpc_server_max_encoding_message_size: MESSAGE_BYTES as u32,
            grpc_client_max_message_size: MESSAGE_BYTES as u32,
            ..SchedulerConfig::default()
        });
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(|error| error.to_string())?;
        let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await;
        let scheduler = scheduler.map_err(|error| error.to_string())?;
        ready(outer);
        let service = SchedulerGrpcServer::new(scheduler)
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES);
        let service = InterceptedService::new(service, Token::interceptor(options.security.token().cloned()));
        let server = Server::builder().add_service(service).serve_with_incoming(incoming);
        server.await.map_err(|error| error.to_string())
    };
    border::wait_or_interrupt(serve)?.map_err(|problem| {
        Error::place(&place, format_args!("cannot run the scheduler: {problem}"), "choose another --port")
    })
}

/// Runs an executor until it is stopped. Calls `ready` when it is about to serve.
pub fn run_executor(options: &ExecutorOptions, ready: impl FnOnce()) -> Result<()> {
    check_bind(&options.bind, options.plaintext || options.security.uses_tls())?;
    options.on_stdin_closed.into_iter().for_each(when_stdin_closes);
    if let Some(bytes) = options.cache_bytes {
        set_limit(bytes);
    }
    drop_idle_shares();
    let ports = match options.port {
        0 => free_ports()?,
        port => [port, port.saturating_add(1)],
    };
    let [port, grpc_port] = ports;
    let outer = ports.map(|port| address_of(&format!("{}:{port}", options.bind)));
    let [results, tasks] = outer;
    let (results, tasks) = (results?, tasks?);
    let inner = |outer| options.security.inner_of_executor(outer);
    let (inner_results, inner_tasks) = (inner(results)?, inner(tasks)?);
    let temporary;
    let folder = match &options.work_dir {
        Some(folder) => folder.clone(),
        None => {
            temporary = tempfile::Builder::new()
                .prefix("planetree-executor-")
                .tempdir()
                .map_err(|error| Error::io("temporary folder", "create", error))?;
            temporary.path().to_owned()
        }
    };
    set_folder(&folder);
    let (temporary_files, security) = (folder.clone(), options.security.clone());
    let config = ExecutorProcessConfig {
        bind_host: inner_results.ip().to_string(),
        external_host: Some(options.host.clone().unwrap_or_else(|| options.bind.clone())),
        port,
        grpc_port,
        scheduler_host: options.scheduler_host.clone(),
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: 10,
        // These are only task slots, because a share uses all threads by itself. There are enough of them that
        // no share has to wait, because the engine would give a waiting share to another executor. Queries take one
        // slot per thread, and leave one for probes.
        vcores: (rayon::current_num_threads() + 1).max(4 * MOST_OVERLAP),
        work_dir: Some(folder.to_string_lossy().into_owned()),
        job_data_ttl_seconds: 600,
        job_data_clean_up_interval_seconds: 300,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        grpc_max_decoding_message_size: MESSAGE_BYTES as u32,
        grpc_max_encoding_message_size: MESSAGE_BYTES as u32,
        override_create_grpc_client_endpoint: Some(options.security.endpoint()),
        override_physical_codec: Some(Arc::new(RoundCodec::default())),
        override_function_registry: Some(Arc::new(executor_functions())),
        override_runtime_producer: Some(Arc::new(move |_| environment(&temporary_files))),
        override_config_producer: Some(Arc::new(move || {
            client_config(SessionConfig::new_with_ballista(), &security)
        })),
        ..ExecutorProcessConfig::default()
    };
    interrupt::be_orderly(); // the engine handles signals itself and deregisters from the scheduler
    ready();
    let serve = async {
        for (outer, inner) in [(results, inner_results), (tasks, inner_tasks)] {
            let opened = options.security.start_executor_proxy(outer, inner).await;
            opened.map_err(|error| error.to_string())?;
        }
        start_executor_process(Arc::new(config)).await.map_err(|error| error.to_string())
    };
    border::wait(serve).map_err(|error| {
        Error::place(
            format_args!("{}:{}", options.scheduler_host, options.scheduler_port),
            format_args!("cannot run the executor: {error}"),
            "make sure that the scheduler is running with the same build and token, or choose another --port",
        )
    })
}

fn address_of(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(|_| {
        Error::usage(
            format_args!("--bind: not an IP address: {text}"),
            "use an address such as 127.0.0.1 or 0.0.0.0",
        )
    })
}

/// Calls `then` when standard input closes, which happens when the parent process ends.
fn when_stdin_closes(then: fn()) {
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while std::io::stdin().read(&mut bytes).is_ok_and(|count| count > 0) {}
        then();
    });
}
