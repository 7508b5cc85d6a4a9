//! Lists the tables of a session with their kinds and numbers of rows.

use super::tables::{NamedTable, Tables};
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::TableReader;

/// A line of the list.
#[derive(Debug)]
pub(crate) struct TableSummary {
    /// Name in the session.
    pub name: String,
    /// Kind, such as `dataset`, `model` or `view`.
    pub kind: String,
    /// Number of rows; `None` if it is not known without reading the table.
    pub rows: Option<u64>,
}

/// Returns the kinds of all tables and their numbers of rows, sorted by name. Reads manifests and footers only.
pub(crate) fn table_list(tables: &Tables) -> Vec<TableSummary> {
    let summary = |(name, table): (String, NamedTable)| {
        let (kind, rows) = match table {
            NamedTable::Created(kind) => (kind.to_owned(), None),
            // A table that cannot be read is listed: a query on it says why.
            NamedTable::Stored(location) => {
                stored(&location).unwrap_or_else(|_| ("unreadable".to_owned(), None))
            }
        };
        TableSummary { name, kind, rows }
    };
    tables.list().into_iter().map(summary).collect()
}

fn stored(location: &Location) -> Result<(String, Option<u64>)> {
    if location.join(MANIFEST).size()?.is_some() {
        let rows = DatasetReader::open(location)?.manifest().rows;
        return Ok(("dataset".to_owned(), Some(rows)));
    }
    if location.size()?.is_none() {
        return Ok(("directory".to_owned(), None));
    }
    let name = location.name();
    let extension = name.rsplit_once('.').map_or("file", |(_, extension)| extension).to_lowercase();
    let kind = TableReader::kind_of(location)?.map(|kind| kind.name().to_owned());
    let rows = TableReader::open_checked(location).ok().map(|file| file.group_rows().iter().sum());
    Ok((kind.unwrap_or(extension), rows))
}
