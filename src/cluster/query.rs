//! SQL on a cluster: the engine's own planner and stages. Ours are the functions and the object stores, which client,
//! scheduler and executors all have.

use super::fleet::Cluster;
use super::link::MESSAGE_BYTES;
use super::security::Security;
use super::share::check_place;
use crate::error::Result;
use crate::sql::{Elsewhere, travelling_functions};
use crate::storage::{Access, Location};
use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use datafusion::common::Result as EngineResult;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::prelude::SessionConfig;
use object_store::ObjectStore;
use std::path::Path;
use std::sync::Arc;
use url::Url;

impl Cluster {
    /// The cluster as something that queries run on.
    pub fn queries(&self) -> Result<Elsewhere> {
        let reached = self.reach()?;
        let (url, security, address) =
            (reached.link.url().to_owned(), self.security().clone(), self.address().clone());
        Ok(Elsewhere {
            partitions: reached.threads(),
            check: Arc::new(move |place| check_place(place, &address)),
            upgrade: Box::new(move |state| {
                let config = client_config(state.config().clone().upgrade_for_ballista(), &security);
                let state = SessionStateBuilder::new_from_existing(state).with_config(config).build();
                with_functions(state.upgrade_for_ballista(url.clone())?)
            }),
            guard: Box::new(reached),
        })
    }
}

/// How sessions speak to the processes of a cluster.
pub fn client_config(config: SessionConfig, security: &Security) -> SessionConfig {
    security.client(config.with_ballista_grpc_client_max_message_size(MESSAGE_BYTES))
}

/// A session of the scheduler, for whoever asks it something.
pub fn scheduler_session(config: SessionConfig) -> EngineResult<SessionState> {
    let state = default_session_builder(config)?;
    let state = SessionStateBuilder::new_from_existing(state).with_runtime_env(environment(None)?).build();
    with_functions(state)
}

/// The functions of an executor.
pub fn executor_functions() -> BallistaFunctionRegistry {
    let mut all = BallistaFunctionRegistry::default();
    let (aggregates, windows) = travelling_functions();
    all.aggregate_functions.extend(aggregates.into_iter().map(|it| (it.name().to_owned(), Arc::new(it))));
    all.window_functions.extend(windows.into_iter().map(|it| (it.name().to_owned(), Arc::new(it))));
    all
}

/// Memory, temporary files and stores of a scheduler or an executor.
pub fn environment(folder: Option<&Path>) -> EngineResult<Arc<RuntimeEnv>> {
    let mut builder = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Stores::default()));
    if let Some(folder) = folder {
        builder = builder.with_temp_file_path(folder);
    }
    builder.build_arc()
}

fn with_functions(mut state: SessionState) -> EngineResult<SessionState> {
    let (aggregates, windows) = travelling_functions();
    for function in aggregates {
        state.register_udaf(Arc::new(function))?;
    }
    for function in windows {
        state.register_udwf(Arc::new(function))?;
    }
    Ok(state)
}

/// Object stores, opened when a plan names them, with the credentials of this process.
#[derive(Debug, Default)]
struct Stores {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for Stores {
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
            Err(error) => Err(crate::sql::outward(error)),
        }
    }
}
