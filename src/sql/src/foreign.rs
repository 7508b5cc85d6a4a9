//! Opens tables in Parquet, CSV and JSON files that planetree did not write. The engine's own readers read these
//! files, and there are no checksums to verify.

use super::error::to_engine_error;
use super::objects::{LOOKUPS, object_at, objects_at, urls_of};
use super::partitioned_table::{PartitionedTable, TableFolder};
use super::partitions::PartitionedFiles;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use futures::stream::{StreamExt, TryStreamExt, iter};
use object_store::ObjectMeta;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::ingest::refuse_other_encodings;
use std::sync::Arc;

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
        let by_name = Self::of_name(&location.name());
        if by_name.is_some() {
            refuse_other_encodings(location, &start)?;
        }
        Ok(by_name.map(|kind| match (kind, first) {
            (ForeignFormat::JsonLines, Some(b'[')) => ForeignFormat::JsonArray,
            (kind, _) => kind,
        }))
    }

    fn format(self) -> Arc<dyn FileFormat> {
        match self {
            ForeignFormat::Parquet => Arc::new(ParquetFormat::default()),
            ForeignFormat::Delimited(byte) => Arc::new(delimited(byte)),
            ForeignFormat::JsonLines => Arc::new(JsonFormat::default()),
            ForeignFormat::JsonArray => Arc::new(JsonFormat::default().with_newline_delimited(false)),
        }
    }
}

/// Returns the format of delimited text with a header. Quoted values may contain line breaks, and splitting a file at
/// one of them would give wrong rows.
fn delimited(delimiter: u8) -> CsvFormat {
    CsvFormat::default().with_has_header(true).with_delimiter(delimiter).with_newlines_in_values(true)
}

/// Opens files of one format as one table. The rows are in the order in which the files are given.
pub(crate) async fn open_foreign(
    state: &dyn Session,
    kind: ForeignFormat,
    locations: &[Location],
) -> EngineResult<Arc<dyn TableProvider>> {
    let urls = urls_of(state, locations)?;
    if locations.len() > 1 {
        check_headers(state, kind, locations, &urls).await?;
    }
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options_of(kind));
    let config = config.infer_schema(state).await?;
    Ok(Arc::new(ListingTable::try_new(config)?))
}

/// Opens the files of one format in the folders of a partitioned table as one table, with a column of text for each of
/// the keys. Only the files that were found are read: the engine would also read hidden files of the folders.
pub(crate) async fn open_partitioned(
    state: &dyn Session,
    kind: ForeignFormat,
    table: &PartitionedFiles,
) -> EngineResult<Arc<dyn TableProvider>> {
    let locations = table.files();
    let urls = urls_of(state, &locations)?;
    check_headers(state, kind, &locations, &urls).await?;
    let schema = common_schema(state, kind, &urls).await?;
    if let Some(key) = table.keys.iter().find(|key| schema.field_with_name(key).is_ok()) {
        return Err(to_engine_error(Error::place(
            &locations[0],
            format_args!("{key} is both a column of the files and a key of their folders"),
            "query the files with a pattern such as 'clicks/day=*/*.parquet', which adds no columns",
        )));
    }
    let folders = table.folders.iter().map(|folder| {
        Ok(TableFolder { values: folder.values.clone(), files: urls_of(state, &folder.files)? })
    });
    let folders = folders.collect::<EngineResult<Vec<_>>>()?;
    Ok(Arc::new(PartitionedTable::new(kind.format(), schema, &table.keys, folders)?))
}

fn options_of(kind: ForeignFormat) -> ListingOptions {
    ListingOptions::new(kind.format()).with_file_extension("")
}

/// Returns the schema that has the columns of all files.
async fn common_schema(
    state: &dyn Session,
    kind: ForeignFormat,
    urls: &[ListingTableUrl],
) -> EngineResult<SchemaRef> {
    let objects: Vec<ObjectMeta> = objects_at(state, urls).await?.into_iter().flatten().collect();
    let store = state.runtime_env().object_store(&urls[0])?;
    kind.format().infer_schema(state, &store, &objects).await
}

/// Returns the names of the columns of a delimited file, or `None` if it is empty.
async fn columns_of(
    state: &dyn Session,
    format: &CsvFormat,
    url: &ListingTableUrl,
) -> EngineResult<Option<Vec<String>>> {
    let Some((store, object)) = object_at(state, url).await? else { return Ok(None) };
    let schema = format.infer_schema(state, &store, &[object]).await?;
    let name = |name: &String| name.trim_start_matches('\u{feff}').to_owned();
    Ok(Some(schema.fields().iter().map(|field| name(field.name())).collect()))
}

/// Fails if delimited files have different columns. The engine reads them by position, so values would be in the wrong
/// column. Columns of other formats are found by name.
async fn check_headers(
    state: &dyn Session,
    kind: ForeignFormat,
    locations: &[Location],
    urls: &[ListingTableUrl],
) -> EngineResult<()> {
    let ForeignFormat::Delimited(delimiter) = kind else { return Ok(()) };
    let format = delimited(delimiter).with_schema_infer_max_rec(1);
    let lookups: Vec<_> = urls.iter().map(|url| columns_of(state, &format, url)).collect();
    let found: Vec<_> = iter(lookups).buffered(LOOKUPS).try_collect().await?;
    let mut first: Option<(&Location, Vec<String>)> = None;
    for (location, names) in locations.iter().zip(found) {
        let Some(names) = names else { continue };
        match &first {
            None => first = Some((location, names)),
            Some((_, known)) if *known == names => {}
            Some((other, known)) => {
                return Err(to_engine_error(Error::place(
                    location,
                    format_args!("the columns are {}, but {} in {other}", names.join(", "), known.join(", ")),
                    "files of one table must have the same columns in the same order; combine others with UNION ALL BY \
                     NAME",
                )));
            }
        }
    }
    Ok(())
}
