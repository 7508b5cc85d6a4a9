//! SQL on a cluster: the engine's own operators, stages and shuffles. Ours are the functions and the object stores, which
//! client, scheduler and executors all have. What travels is the physical plan: names of tables, which are paths here, do
//! not survive the way of a logical one.

use super::client::{MESSAGE_BYTES, run_name};
use super::cluster::Cluster;
use super::codec::RoundCodec;
use super::security::Security;
use super::share::check_place;
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{FunctionRegistry, SendableRecordBatchStream, SessionState};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_sql::{Elsewhere, travelling_functions};
use std::path::Path;
use std::sync::Arc;
use url::Url;

impl Cluster {
    /// The cluster as something that queries run on.
    pub fn queries(&self) -> Result<Elsewhere> {
        let connection = self.reach()?;
        let (url, security, address) =
            (connection.client.url().to_owned(), self.security().clone(), self.address().clone());
        Ok(Elsewhere {
            partitions: connection.threads(),
            check: Arc::new(move |place| check_place(place, &address)),
            upgrade: Box::new(move |state| {
                let config = client_config(state.config().clone().upgrade_for_ballista(), &security);
                let rules = with_ballista_optimizer_rules(state.optimizers());
                SessionStateBuilder::new_from_existing(state)
                    .with_config(config)
                    .with_optimizer_rules(rules)
                    .build()
            }),
            run: Box::new(move |plan, config| {
                let url = url.clone();
                let tidy = {
                    let url = url.clone();
                    move |error| tidy(&url, &error)
                };
                Box::pin(async move {
                    let (codec, ballista) = (RoundCodec::default(), config.ballista_config());
                    let session = format!("planetree-{}", run_name());
                    let stream = execute_physical_plan::<PhysicalPlanNode>(
                        url, &ballista, plan, &codec, session, config,
                    );
                    let stream = stream.await.map_err(&tidy)?;
                    let schema = stream.schema();
                    let stream = stream.map_err(tidy);
                    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)) as SendableRecordBatchStream)
                })
            }),
            guard: Box::new(connection),
        })
    }
}

/// What went wrong at the far end, without what it was wrapped in on the way.
fn tidy(url: &str, error: &DataFusionError) -> DataFusionError {
    let text = error.find_root().to_string();
    let text = text.split("message: \"").last().unwrap_or(&text);
    let text = text.split("\", metadata").next().unwrap_or(text);
    // Of tasks that failed, the innermost reason.
    let text = text.rsplit("Task failed due to runtime execution error: ").next().unwrap_or(text);
    planetree_sql::outward(Error::place(
        format_args!("query on {url}"),
        text.lines().next().unwrap_or_default(),
        "if the query is right, look at the scheduler and its executors, and ask again",
    ))
}

/// How sessions speak to the processes of a cluster.
pub fn client_config(config: SessionConfig, security: &Security) -> SessionConfig {
    security.client(config.with_ballista_grpc_client_max_message_size(MESSAGE_BYTES))
}

/// A session of the scheduler, for whoever asks it something. It plans nothing and reads nothing.
pub fn scheduler_session(config: SessionConfig) -> EngineResult<SessionState> {
    let environment = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(NoStores::default()));
    let state = SessionStateBuilder::new_from_existing(default_session_builder(config)?);
    let mut state = state.with_runtime_env(environment.build_arc()?).build();
    for function in travelling_functions() {
        state.register_udaf(Arc::new(function))?;
    }
    Ok(state)
}

/// The functions of an executor.
pub fn executor_functions() -> BallistaFunctionRegistry {
    let mut all = BallistaFunctionRegistry::default();
    let ours = travelling_functions().into_iter();
    all.aggregate_functions.extend(ours.map(|function| (function.name().to_owned(), Arc::new(function))));
    all
}

/// Temporary files and stores of an executor.
pub fn environment(folder: &Path) -> EngineResult<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new()
        .with_object_store_registry(Arc::new(LazyStores::default()))
        .with_temp_file_path(folder)
        .build_arc()
}

/// Object stores, opened when a plan names them, with the credentials of this process.
#[derive(Debug, Default)]
struct LazyStores {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for LazyStores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> EngineResult<Arc<dyn ObjectStore>> {
        let unknown = match self.known.get_store(url) {
            Ok(store) => return Ok(store),
            Err(unknown) => unknown,
        };
        match Location::parse(url.as_str(), Access::Explicit) {
            Ok(location) => match location.object() {
                Some((store, _)) => {
                    self.known.register_store(url, store.clone());
                    Ok(store.clone())
                }
                None => Err(unknown),
            },
            Err(error) => Err(planetree_sql::outward(error)),
        }
    }
}

/// Empty stores in place of all others: whoever only hands plans on needs no credentials.
#[derive(Debug, Default)]
struct NoStores {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for NoStores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> EngineResult<Arc<dyn ObjectStore>> {
        Ok(self.known.get_store(url).unwrap_or_else(|_| Arc::new(InMemory::new())))
    }
}
