//! Runs SQL queries on a cluster. The engine's own operators, stages and shuffles execute them; this module adds
//! planetree's functions and object stores to the client, the scheduler and the executors. The client sends physical
//! plans, because a serialised logical plan would lose the table names, which are paths.

use super::client::{MESSAGE_BYTES, run_name};
use super::cluster::Cluster;
use super::codec::RoundCodec;
use super::security::Security;
use super::share::check_place;
use super::watch::watched;
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
use planetree_sql::{SqlCluster, distributed_functions, within_query};
use std::path::Path;
use std::sync::Arc;
use url::Url;

impl Cluster {
    /// Connects to the cluster and returns it as a backend for SQL queries.
    pub fn queries(&self) -> Result<SqlCluster> {
        let connection = self.reach()?;
        let client = connection.client.clone();
        let (url, security, address) =
            (client.url().to_owned(), self.security().clone(), self.address().clone());
        Ok(SqlCluster {
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
                let (url, client) = (url.clone(), client.clone());
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
                    let stream = watched(stream, || client.probe()).await.map_err(&tidy)?;
                    let schema = stream.schema();
                    let stream = stream.map_err(tidy);
                    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)) as SendableRecordBatchStream)
                })
            }),
            guard: Box::new(connection),
        })
    }
}

/// Extracts the cause of a remote error from the text that the engine wraps around it.
fn tidy(url: &str, error: &DataFusionError) -> DataFusionError {
    let text = error.find_root().to_string();
    let text = text.split("message: \"").last().unwrap_or(&text);
    let text = text.split("\", metadata").next().unwrap_or(text);
    // Failed tasks are nested; the last one is the innermost cause.
    let text = text.rsplit("Task failed due to runtime execution error: ").next().unwrap_or(text);
    planetree_sql::to_engine_error(ours(text).unwrap_or_else(|| {
        Error::place(
            format_args!("query on {url}"),
            text.lines().next().unwrap_or_default(),
            "if the query is right, check the scheduler and its executors, then run it again",
        )
    }))
}

/// Restores an error of our own functions, which arrives as its `Debug` output. Returns `None` for all other errors.
fn ours(text: &str) -> Option<Error> {
    if let Some((_, rest)) = text.split_once("Bug { at: \"") {
        let (at, rest) = rest.split_once("\", problem: \"")?;
        let (problem, _) = rest.split_once("\", source: ")?;
        return Some(Error::bug(at.replace("\\\"", "\""), problem.replace("\\\"", "\"")));
    }
    let (_, rest) = text.split_once("Place { place: \"")?;
    let (place, rest) = rest.split_once("\", problem: \"")?;
    let (problem, rest) = rest.split_once("\", remedy: \"")?;
    let (remedy, _) = rest.split_once("\", source: ")?;
    let [place, problem, remedy] = [place, problem, remedy].map(|part| part.replace("\\\"", "\""));
    Some(Error::place(place, problem, remedy))
}

/// Configures a session as a client of the cluster, with its certificates and token.
pub(crate) fn client_config(config: SessionConfig, security: &Security) -> SessionConfig {
    security.client(config.with_ballista_grpc_client_max_message_size(MESSAGE_BYTES))
}

/// Creates the session that the scheduler uses for a client. The scheduler neither plans queries nor reads data.
pub(crate) fn scheduler_session(config: SessionConfig) -> EngineResult<SessionState> {
    let environment = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(NoStores::default()));
    let state = SessionStateBuilder::new_from_existing(default_session_builder(config)?);
    let mut state = state.with_runtime_env(environment.build_arc()?).build();
    for function in distributed_functions() {
        state.register_udaf(Arc::new(function))?;
    }
    state.register_udf(within_query())?;
    Ok(state)
}

/// Returns the functions that executors need for our queries.
pub(crate) fn executor_functions() -> BallistaFunctionRegistry {
    let mut all = BallistaFunctionRegistry::default();
    let ours = distributed_functions().into_iter();
    all.aggregate_functions.extend(ours.map(|function| (function.name().to_owned(), Arc::new(function))));
    all.scalar_functions.insert(within_query().name().to_owned(), within_query());
    all
}

/// Creates the runtime environment of an executor, with its object stores and its directory for temporary files.
pub(crate) fn environment(folder: &Path) -> EngineResult<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new()
        .with_object_store_registry(Arc::new(LazyStores::default()))
        .with_temp_file_path(folder)
        .build_arc()
}

/// Object stores that are opened on first use, with the credentials of this process.
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
            Err(error) => Err(planetree_sql::to_engine_error(error)),
        }
    }
}

/// Object stores of the scheduler, all of which are empty. The scheduler only forwards plans, so it needs no
/// credentials.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_our_functions_come_back_as_they_were() {
        let cause = std::io::Error::from_raw_os_error(2);
        let place = Error::place("auc", "rows of \"1\" and \"9\"", "add GROUP BY query_id");
        for error in [place, Error::io("p.parquet", "open", cause), Error::bug("scan", "no \"rows\"")] {
            let text = format!("Shared(External(DataFusionError(External({error:?}))))");
            let found = ours(&text).unwrap();
            assert_eq!((found.to_string(), found.remedy()), (error.to_string(), error.remedy()));
        }
        assert!(ours("Cast error: Cannot cast string '1x'").is_none());
    }
}
