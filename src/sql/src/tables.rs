//! The tables of a session: those that have a name, and whatever lies at a path within the roots.

use super::elsewhere::PlaceCheck;
use super::error::outward;
use super::foreign::{ForeignKind, open_foreign};
use super::open::{blocking, open_files, open_table};
use super::roots::Roots;
use super::scan::{MemorySource, SourceTable};
use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result as EngineResult, exec_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::TableType;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::dataset::MANIFEST;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of our catalog.
pub const CATALOG: &str = "planetree";
/// The name of our schema.
pub const SCHEMA: &str = "run";

/// All tables; see the module.
pub struct Tables {
    roots: Roots,
    named: Mutex<BTreeMap<String, Named>>,
    /// What files of others are opened with: the session's memory and stores, and nothing else of it.
    state: SessionState,
    /// Which places the cluster has that queries run on.
    cluster: Option<PlaceCheck>,
}

/// A table that has a name.
#[derive(Clone)]
enum Named {
    /// At a place that nobody has looked at yet: a run has many tables, and a query few.
    Place(Location),
    /// Open, or made by a query.
    Open(Arc<dyn TableProvider>),
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}

impl Tables {
    /// No tables yet.
    pub fn new(roots: Roots, state: SessionState, cluster: Option<PlaceCheck>) -> Self {
        Tables { roots, named: Mutex::default(), state, cluster }
    }

    /// Where paths may lie.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Gives a name to what is at a place.
    pub fn name(&self, name: &str, location: Location) {
        self.lock().insert(name.to_owned(), Named::Place(location));
    }

    /// Where a named table is, if it has a place.
    pub fn place_of(&self, name: &str) -> Option<Location> {
        match self.find(name)?.1 {
            Named::Place(location) => Some(location),
            Named::Open(_) => None,
        }
    }

    /// The place of a model or a dataset that an argument of a function names: a table, or a path.
    pub fn place(&self, text: &str) -> Result<Location> {
        match self.place_of(text) {
            Some(location) => Ok(location),
            None => self.roots.resolve(text),
        }
    }

    /// The table at a path; a file of others is read as what `kind` says, whatever its name is.
    pub async fn read(&self, path: &str, kind: Option<ForeignKind>) -> EngineResult<Arc<dyn TableProvider>> {
        let location = self.place(path);
        if let (Some(kind), Ok(location)) = (kind, &location)
            && kind != ForeignKind::Parquet
            && blocking(|| location.size())?.is_some()
        {
            if let Some(cluster) = &self.cluster {
                cluster(location).map_err(outward)?;
            }
            return open_foreign(&self.state, kind, std::slice::from_ref(location)).await;
        }
        match self.at_path(path).await? {
            Some(table) => Ok(table),
            None => Err(outward(location.map_or_else(|error| error, |location| location.absent()))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Named>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table by name. SQL turns names without quotes into small letters, so case decides only between two.
    fn find(&self, name: &str) -> Option<(String, Named)> {
        let named = self.lock();
        if let Some(found) = named.get(name) {
            return Some((name.to_owned(), found.clone()));
        }
        let mut alike = named.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let found = alike.next().map(|(name, found)| (name.clone(), found.clone()));
        if alike.next().is_some() { None } else { found }
    }

    /// The table at a path; `None` if the name does not look like one.
    async fn at_path(&self, text: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let is_path = text.contains(['/', '.', '*', '?']) || text.contains("://");
        let check = |location: &Location| self.roots.resolve(&location.to_string()).map(drop);
        if text.contains(['*', '?', '[']) && !text.contains("://") {
            let files = self.roots.expand(text).map_err(outward)?;
            return open_files(&self.state, text, files, self.cluster.as_ref()).await.map(Some);
        }
        let location = match self.roots.resolve(text) {
            Ok(location) => location,
            Err(_) if !is_path => return Ok(None),
            Err(error) => return Err(outward(error)),
        };
        let table = open_table(&self.state, &location, &check, self.cluster.as_ref()).await;
        // A plain name may be a dataset or a directory beside us; if not, it is misspelt, or a function's.
        if !is_path && table.is_err() && blocking(|| location.join(MANIFEST).size())?.is_none() {
            return Ok(None);
        }
        table.map(Some)
    }
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        match self.find(name) {
            Some((_, Named::Open(table))) => Ok(Some(table)),
            Some((_, Named::Place(location))) => {
                // The user named it, so it may be anywhere, with all that is in it.
                Ok(Some(open_table(&self.state, &location, &|_| Ok(()), self.cluster.as_ref()).await?))
            }
            None => self.at_path(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> EngineResult<Option<TableType>> {
        Ok(self.find(name).map(|(_, named)| match named {
            Named::Place(_) => TableType::Base,
            Named::Open(table) => table.table_type(),
        }))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let table = kept_in_order(&table);
        let mut named = self.lock();
        if let Some(Named::Place(location)) = named.get(&name) {
            return exec_err!("{name} is the table at {location}");
        }
        Ok(match named.insert(name, Named::Open(table)) {
            Some(Named::Open(before)) => Some(before),
            _ => None,
        })
    }

    fn deregister_table(&self, name: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let mut named = self.lock();
        Ok(match named.remove(name) {
            Some(Named::Open(table)) => Some(table),
            Some(place) => {
                named.insert(name.to_owned(), place);
                return exec_err!("{name} is a table on disk, which SQL does not remove");
            }
            None => None,
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// Rows that a query left behind, as a table of ours, which keeps their order.
fn kept_in_order(table: &Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    let Some(memory) = table.downcast_ref::<MemTable>() else { return table.clone() };
    let mut batches: Vec<RecordBatch> = Vec::new();
    for partition in &memory.batches {
        match partition.try_read() {
            Ok(partition) => batches.extend(partition.iter().cloned()),
            Err(_) => return table.clone(), // somebody writes to it, so it is not one that was just made
        }
    }
    Arc::new(SourceTable(Arc::new(MemorySource::new(table.schema(), batches))))
}

/// The one schema as a catalog.
#[derive(Debug)]
pub struct Catalog(pub Arc<Tables>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| self.0.clone() as Arc<dyn SchemaProvider>)
    }
}
