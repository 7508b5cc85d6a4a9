//! Files of others: Parquet, CSV and JSON, read by the engine's own readers. Nobody can check them.

use super::error::outward;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::sync::Arc;
use url::Url;

/// What a file of somebody else's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKind {
    /// Columns.
    Parquet,
    /// Text with a header, values separated by this.
    Delimited(u8),
    /// An object a line.
    JsonLines,
    /// One array of objects.
    JsonArray,
}

/// Endings and what they mean. A `.json` may also be one array, which its first byte shows.
const ENDINGS: [(&str, ForeignKind); 8] = [
    (".parquet", ForeignKind::Parquet),
    (".pq", ForeignKind::Parquet),
    (".csv", ForeignKind::Delimited(b',')),
    (".tsv", ForeignKind::Delimited(b'\t')),
    (".tab", ForeignKind::Delimited(b'\t')),
    (".json", ForeignKind::JsonLines),
    (".ndjson", ForeignKind::JsonLines),
    (".jsonl", ForeignKind::JsonLines),
];

impl ForeignKind {
    /// What a name's ending says.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| *kind)
    }

    /// What a file is, by its name and its first bytes.
    pub fn of_file(location: &Location) -> Result<Option<Self>> {
        let size = location.size()?.unwrap_or(0);
        let start = if size == 0 { Default::default() } else { location.read_range(0, size.min(64))? };
        if start.starts_with(b"PAR1") {
            return Ok(Some(ForeignKind::Parquet));
        }
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
        Ok(Self::of_name(&location.name()).map(|kind| match (kind, first) {
            (ForeignKind::JsonLines, Some(b'[')) => ForeignKind::JsonArray,
            (kind, _) => kind,
        }))
    }

    fn format(self) -> Arc<dyn FileFormat> {
        match self {
            ForeignKind::Parquet => Arc::new(ParquetFormat::default()),
            // Line breaks within quotes are rare, but cutting a file at them would be wrong rows.
            ForeignKind::Delimited(byte) => Arc::new(
                CsvFormat::default().with_has_header(true).with_delimiter(byte).with_newlines_in_values(true),
            ),
            ForeignKind::JsonLines => Arc::new(JsonFormat::default()),
            ForeignKind::JsonArray => Arc::new(JsonFormat::default().with_newline_delimited(false)),
        }
    }
}

/// Files of one kind as one table, in the order given.
pub async fn open_foreign(
    state: &dyn Session,
    kind: ForeignKind,
    locations: &[Location],
) -> EngineResult<Arc<dyn TableProvider>> {
    let mut urls = Vec::with_capacity(locations.len());
    for location in locations {
        let url = url_of(location).map_err(outward)?;
        if let Some((store, _)) = location.object() {
            state.runtime_env().register_object_store(&url, store.clone());
        }
        urls.push(ListingTableUrl::try_new(url, None)?);
    }
    let options = ListingOptions::new(kind.format()).with_file_extension("");
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let config = config.infer_schema(state).await?;
    Ok(Arc::new(ListingTable::try_new(config)?))
}

fn url_of(location: &Location) -> Result<Url> {
    let url = match location {
        Location::Local(path) => {
            let path = path.canonicalize().map_err(|error| Error::io(location, "open", &error))?;
            Url::from_file_path(path).ok()
        }
        Location::Remote(_) => Url::parse(&location.to_string()).ok(),
    };
    url.ok_or_else(|| Error::place(location, "its name is no URL", "rename the file"))
}
