//! Opens tables in Parquet, CSV and JSON files that planetree did not write. The engine's own readers read these
//! files, and there are no checksums to verify.

use super::error::to_engine_error;
use arrow::datatypes::DataType;
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

/// Format of a file that planetree did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignFormat {
    /// Parquet.
    Parquet,
    /// Delimited text with a header. The field is the delimiter.
    Delimited(u8),
    /// JSON with one object per line.
    JsonLines,
    /// JSON with one array of objects.
    JsonArray,
}

/// Formats by extension. A `.json` file whose first byte is `[` contains one array instead of one object per line.
const EXTENSIONS: [(&str, ForeignFormat); 8] = [
    (".parquet", ForeignFormat::Parquet),
    (".pq", ForeignFormat::Parquet),
    (".csv", ForeignFormat::Delimited(b',')),
    (".tsv", ForeignFormat::Delimited(b'\t')),
    (".tab", ForeignFormat::Delimited(b'\t')),
    (".json", ForeignFormat::JsonLines),
    (".ndjson", ForeignFormat::JsonLines),
    (".jsonl", ForeignFormat::JsonLines),
];

impl ForeignFormat {
    /// Returns the format that the extension of a file name implies.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(extension, _)| name.ends_with(extension)).map(|(_, kind)| *kind)
    }

    /// Detects the format of a file from its extension and its first bytes.
    pub(crate) fn of_file(location: &Location) -> Result<Option<Self>> {
        let size = location.size()?.unwrap_or(0);
        let start = if size == 0 { Default::default() } else { location.read_range(0, size.min(64))? };
        if start.starts_with(b"PAR1") {
            return Ok(Some(ForeignFormat::Parquet));
        }
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
        Ok(Self::of_name(&location.name()).map(|kind| match (kind, first) {
            (ForeignFormat::JsonLines, Some(b'[')) => ForeignFormat::JsonArray,
            (kind, _) => kind,
        }))
    }

    fn format(self) -> Arc<dyn FileFormat> {
        match self {
            ForeignFormat::Parquet => Arc::new(ParquetFormat::default()),
            // Quoted values may contain line breaks, and splitting a file at one of them would give wrong rows.
            ForeignFormat::Delimited(byte) => Arc::new(
                CsvFormat::default().with_has_header(true).with_delimiter(byte).with_newlines_in_values(true),
            ),
            ForeignFormat::JsonLines => Arc::new(JsonFormat::default()),
            ForeignFormat::JsonArray => Arc::new(JsonFormat::default().with_newline_delimited(false)),
        }
    }
}

/// Opens files of one format as one table. The rows are in the order in which the files are given.
pub(crate) async fn open_foreign(
    state: &dyn Session,
    kind: ForeignFormat,
    locations: &[Location],
) -> EngineResult<Arc<dyn TableProvider>> {
    let mut urls = Vec::with_capacity(locations.len());
    for location in locations {
        let url = url_of(location).map_err(to_engine_error)?;
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

/// Opens the files of one format below a directory as one table, with a column of text for each of the keys of its
/// folders.
pub(crate) async fn open_partitioned(
    state: &dyn Session,
    kind: ForeignFormat,
    directory: &Location,
    keys: &[String],
) -> EngineResult<Arc<dyn TableProvider>> {
    let url = url_of(directory).map_err(to_engine_error)?;
    if let Some((store, _)) = directory.object() {
        state.runtime_env().register_object_store(&url, store.clone());
    }
    let columns = keys.iter().map(|key| (key.clone(), DataType::Utf8)).collect();
    let options =
        ListingOptions::new(kind.format()).with_file_extension("").with_table_partition_cols(columns);
    let url = ListingTableUrl::parse(format!("{}/", url.as_str().trim_end_matches('/')))?;
    let config = ListingTableConfig::new(url).with_listing_options(options);
    let config = config.infer_schema(state).await?;
    Ok(Arc::new(ListingTable::try_new(config)?))
}

fn url_of(location: &Location) -> Result<Url> {
    let url = match location {
        Location::Local(path) => {
            let path = path.canonicalize().map_err(|error| Error::io(location, "open", error))?;
            Url::from_file_path(path).ok()
        }
        Location::Remote(_) => Url::parse(&location.to_string()).ok(),
    };
    url.ok_or_else(|| Error::place(location, "the name is not a valid URL", "rename the file"))
}
