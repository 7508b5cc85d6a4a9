//! Finds and opens the tables of a session: named tables, and tables at paths below the roots, which are the
//! directories and URLs that SQL may access.

use super::error::to_engine_error;
use super::foreign::{ForeignFormat, open_foreign, refuse_other_delimiters};
use super::functions::all_function_names;
use super::on_cluster::LocationCheck;
use super::open::{blocking, open_files, open_table, seems_to_be_table};
use super::roots::Roots;
use super::scan::{MemorySource, ScanTable};
use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result as EngineResult, exec_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::TableType;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the engine's catalog that contains the tables.
pub(crate) const CATALOG: &str = "planetree";
/// Name of the only schema in the catalog.
pub(crate) const SCHEMA: &str = "run";

/// The tables of a session.
pub(crate) struct Tables {
    roots: Roots,
    named: Mutex<BTreeMap<String, TableEntry>>,
    /// State for opening files that planetree did not write. It has the session's memory and object stores, but not its
    /// tables and functions.
    state: SessionState,
    /// Rejects locations that the executors of the cluster cannot read; `None` without a cluster.
    cluster: Option<LocationCheck>,
}

/// A named table.
#[derive(Clone)]
enum TableEntry {
    /// A table on disk. It is opened when it is used, because a run has many tables and a query uses only a few.
    Stored(Location),
    /// A table or view that a statement created.
    Created(Arc<dyn TableProvider>),
}

/// A named table, as far as a list of tables shows it.
pub(crate) enum NamedTable {
    /// A table on disk.
    Stored(Location),
    /// A table or view that a statement created: `table` or `view`.
    Created(&'static str),
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}

impl Tables {
    /// Creates an empty set of tables.
    pub(crate) fn new(roots: Roots, state: SessionState, cluster: Option<LocationCheck>) -> Self {
        Tables { roots, named: Mutex::default(), state, cluster }
    }

    /// Returns the directories and URLs that SQL may access.
    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Gives a name to the table at a location.
    pub(crate) fn name(&self, name: &str, location: Location) {
        self.lock().insert(name.to_owned(), TableEntry::Stored(location));
    }

    /// Returns all named tables, sorted by name.
    pub(crate) fn list(&self) -> Vec<(String, NamedTable)> {
        let named = |entry: &TableEntry| match entry {
            TableEntry::Stored(location) => NamedTable::Stored(location.clone()),
            TableEntry::Created(table) if table.table_type() == TableType::View => {
                NamedTable::Created("view")
            }
            TableEntry::Created(_) => NamedTable::Created("table"),
        };
        self.lock().iter().map(|(name, entry)| (name.clone(), named(entry))).collect()
    }

    /// Returns the location of a named table, or `None` if there is no such table on disk.
    pub(crate) fn location_of(&self, name: &str) -> Option<Location> {
        match self.find(name)?.1 {
            TableEntry::Stored(location) => Some(location),
            TableEntry::Created(_) => None,
        }
    }

    /// Returns the location of the table on disk that a name has in the session or in the current directory, or `None` if
    /// there is none or a statement created the table.
    pub(crate) async fn stored_location(&self, name: &str) -> Option<Location> {
        match self.find(name) {
            Some((_, TableEntry::Stored(location))) => Some(location),
            Some((_, TableEntry::Created(_))) => None,
            None => match self.at_path(name).await {
                Ok(Some(_)) => self.roots.resolve(name).ok(),
                _ => None,
            },
        }
    }

    /// Returns the location of a model or dataset that a function argument names, either as a table or by its path.
    pub(crate) fn location(&self, text: &str) -> Result<Location> {
        match self.location_of(text) {
            Some(location) => Ok(location),
            None => self.roots.resolve(text),
        }
    }

    /// Opens the table at a path. If a format is given, files that planetree did not write are read in this format,
    /// regardless of their names. `is_delimiter_given` says that the query has the delimiter of this format.
    pub(crate) async fn read(
        &self,
        path: &str,
        kind: Option<ForeignFormat>,
        is_delimiter_given: bool,
    ) -> EngineResult<Arc<dyn TableProvider>> {
        let location = self.location(path);
        if let (Some(kind), Ok(location)) = (kind, &location)
            && kind != ForeignFormat::Parquet
            && blocking(|| location.size())?.is_some()
        {
            if let Some(cluster) = &self.cluster {
                cluster(location).map_err(to_engine_error)?;
            }
            let files = std::slice::from_ref(location);
            if !is_delimiter_given {
                blocking(|| refuse_other_delimiters(kind, files))?;
            }
            return open_foreign(&self.state, kind, files).await;
        }
        match self.at_path(path).await? {
            Some(_) if is_delimiter_given => Err(to_engine_error(Error::place(
                path,
                "delim is for a single file, and this is not one",
                "read each file with read_csv, and combine them with UNION ALL BY NAME",
            ))),
            Some(table) => Ok(table),
            None => Err(to_engine_error(location.map_or_else(|error| error, |location| location.absent()))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, TableEntry>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a table by name. SQL converts unquoted names to lower case, so case is ignored unless it is needed to tell
    /// two tables apart.
    fn find(&self, name: &str) -> Option<(String, TableEntry)> {
        let named = self.lock();
        if let Some(found) = named.get(name) {
            return Some((name.to_owned(), found.clone()));
        }
        let mut matching = named.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let found = matching.next().map(|(name, found)| (name.clone(), found.clone()));
        if matching.next().is_some() { None } else { found }
    }

    /// Checks whether a name that cannot be resolved is that of a link in the current directory, and not of a function.
    fn is_link(&self, name: &str) -> bool {
        self.roots.has_entry(name) && !all_function_names().contains(&name)
    }

    /// Opens the table at a path. Returns `None` if `text` does not look like a path and no table is found there.
    async fn at_path(&self, text: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let is_path = text.contains(['/', '.', '*', '?']) || text.contains("://");
        let check = |location: &Location| self.roots.resolve(&location.to_string()).map(drop);
        if text.contains(['*', '?', '[']) && !text.contains("://") {
            let files = self.roots.expand(text).map_err(to_engine_error)?;
            return open_files(&self.state, text, files, self.cluster.as_ref()).await.map(Some);
        }
        let location = match self.roots.resolve(text) {
            Ok(location) => location,
            // A name without path characters may be the name of a function, unless it is that of a link.
            Err(_) if !is_path && !self.is_link(text) => return Ok(None),
            Err(error) => return Err(to_engine_error(error)),
        };
        let table = open_table(&self.state, &location, &check, self.cluster.as_ref()).await;
        // A name without path characters may still be a dataset or a directory in the current directory. If it is
        // neither, it is misspelt or the name of a function.
        if !is_path && table.is_err() && !blocking(|| seems_to_be_table(&location))? {
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
            Some((_, TableEntry::Created(table))) => Ok(Some(table)),
            Some((_, TableEntry::Stored(location))) => {
                // The user named the table, so SQL may read it and all its files.
                Ok(Some(open_table(&self.state, &location, &|_| Ok(()), self.cluster.as_ref()).await?))
            }
            None => self.at_path(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> EngineResult<Option<TableType>> {
        Ok(self.find(name).map(|(_, named)| match named {
            TableEntry::Stored(_) => TableType::Base,
            TableEntry::Created(table) => table.table_type(),
        }))
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let table = in_order_table(&table);
        let mut named = self.lock();
        if let Some(TableEntry::Stored(location)) = named.get(&name) {
            return exec_err!("{name} is already the name of the table at {location}");
        }
        Ok(match named.insert(name, TableEntry::Created(table)) {
            Some(TableEntry::Created(previous)) => Some(previous),
            _ => None,
        })
    }

    fn deregister_table(&self, name: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let mut named = self.lock();
        Ok(match named.remove(name) {
            Some(TableEntry::Created(table)) => Some(table),
            Some(stored) => {
                named.insert(name.to_owned(), stored);
                return exec_err!("cannot drop {name}: it is a table on disk");
            }
            None => None,
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// Converts a new in-memory table to a source that keeps the order of its rows. Other tables are returned unchanged.
fn in_order_table(table: &Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    let Some(memory) = table.downcast_ref::<MemTable>() else { return table.clone() };
    let mut batches: Vec<RecordBatch> = Vec::new();
    for partition in &memory.batches {
        match partition.try_read() {
            Ok(partition) => batches.extend(partition.iter().cloned()),
            Err(_) => return table.clone(), // another thread writes to it, so it is not a new table
        }
    }
    Arc::new(ScanTable(Arc::new(MemorySource::new(table.schema(), batches))))
}

/// A catalog with one schema.
#[derive(Debug)]
pub(crate) struct Catalog(pub Arc<Tables>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| self.0.clone() as Arc<dyn SchemaProvider>)
    }
}
