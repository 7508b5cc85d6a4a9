//! Opens tables in Parquet, CSV and JSON files that planetree did not write. The engine's own readers read these
//! files, and there are no checksums to verify.

use super::column_types::common_columns;
use super::error::to_engine_error;
use super::objects::{LOOKUPS, object_at, urls_of};
use super::partitioned_table::{PartitionedTable, TableFolder};
use super::partitions::PartitionedFiles;
use super::text_errors::with_place;
use arrow::csv::reader::Format;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use futures::stream::{StreamExt, TryStreamExt, iter};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::ingest::refuse_other_encodings;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Bytes of text files whose types are those of all rows.
const SMALL: u64 = 16 << 20;
/// Number of rows that decide the types of larger files together, and the minimum of one of them.
const TYPED_ROWS: usize = 20_480;
const MIN_TYPED_ROWS: usize = 1_000;
/// Bytes in which the header of a delimited file is looked for.
const HEADER_BYTES: u64 = 1 << 16;

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

/// Fails if the header of a delimited file has another delimiter. The file would be read as one column.
pub(crate) fn refuse_other_delimiters(kind: ForeignFormat, locations: &[Location]) -> Result<()> {
    let (ForeignFormat::Delimited(delimiter), Some(file)) = (kind, locations.first()) else { return Ok(()) };
    let size = file.size()?.unwrap_or(0);
    let start = if size == 0 { Default::default() } else { file.read_range(0, size.min(HEADER_BYTES))? };
    match other_delimiter(&start, delimiter) {
        None => Ok(()),
        Some(found) => {
            let name = |byte: u8| match byte {
                b',' => "comma",
                b'\t' => "tab",
                _ => "semicolon",
            };
            let written = if found == b'\t' { "\\t" } else { ";" };
            Err(Error::place(
                file,
                format_args!(
                    "the header has no {}, but a {}: the file would be one column",
                    name(delimiter),
                    name(found)
                ),
                format_args!(
                    "read it with read_csv('{file}', delim = '{written}'), or convert it with planetree convert, which \
                     detects the delimiter"
                ),
            ))
        }
    }
}

/// Returns the delimiter that a header has in place of the expected one.
fn other_delimiter(start: &[u8], expected: u8) -> Option<u8> {
    let mut is_quoted = false;
    let mut found = None;
    for byte in start.iter().copied() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'\n' | b'\r' => break,
            _ if byte == expected => return None,
            b';' | b'\t' => found = found.or(Some(byte)),
            _ => {}
        }
    }
    found
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
    let (schema, is_uniform) = common_schema(state, kind, locations, &urls).await?;
    if !is_uniform {
        // The engine's table would use the statistics of the files, whose types are not those of the table.
        let folder = TableFolder { values: Vec::new(), files: urls };
        return Ok(Arc::new(PartitionedTable::new(kind.format(), schema, &[], vec![folder])?));
    }
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options_of(kind));
    Ok(Arc::new(ListingTable::try_new(config.with_schema(schema))?))
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
    let (schema, _) = common_schema(state, kind, &locations, &urls).await?;
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

/// Returns the schema that has the columns of all files, and whether each file has these columns with these types.
async fn common_schema(
    state: &dyn Session,
    kind: ForeignFormat,
    locations: &[Location],
    urls: &[ListingTableUrl],
) -> EngineResult<(SchemaRef, bool)> {
    let count = locations.len();
    let files = locations.iter().zip(urls);
    let lookups: Vec<_> = files.map(|(location, url)| schema_of(state, kind, count, location, url)).collect();
    let found: Vec<Option<SchemaRef>> = iter(lookups).buffered(LOOKUPS).try_collect().await?;
    if let [Some(schema)] = found.as_slice() {
        return Ok((schema.clone(), true));
    }
    let files = locations.iter().zip(found);
    let files: Vec<(&Location, SchemaRef)> =
        files.filter_map(|(location, schema)| Some((location, schema?))).collect();
    let schema = common_columns(kind, &files).map_err(to_engine_error)?;
    let is_uniform = files.iter().all(|(_, file)| {
        let (file, all) = (file.fields(), schema.fields());
        file.len() == all.len()
            && file
                .iter()
                .zip(all)
                .all(|(one, other)| one.name() == other.name() && one.data_type() == other.data_type())
    });
    Ok((schema, is_uniform))
}

/// Returns the schema of one of `count` files, or `None` if it is empty.
async fn schema_of(
    state: &dyn Session,
    kind: ForeignFormat,
    count: usize,
    location: &Location,
    url: &ListingTableUrl,
) -> EngineResult<Option<SchemaRef>> {
    let Some((store, object)) = object_at(state, url).await? else { return Ok(None) };
    let is_small = object.size.saturating_mul(count as u64) <= SMALL;
    let rows = if is_small { usize::MAX } else { (TYPED_ROWS / count.max(1)).max(MIN_TYPED_ROWS) };
    let json = || JsonFormat::default().with_schema_infer_max_rec(rows);
    let found = match (kind, location) {
        (ForeignFormat::Delimited(delimiter), Location::Local(path)) => {
            tokio::task::block_in_place(|| local_schema(path, delimiter, rows))
                .map(Arc::new)
                .map_err(|error| DataFusionError::ArrowError(Box::new(error), None))
        }
        // The engine takes a backslash before a quote for an escape and may not find the end of a row, so it reads few rows.
        (ForeignFormat::Delimited(_) | ForeignFormat::Parquet, _) => {
            kind.format().infer_schema(state, &store, &[object]).await
        }
        (ForeignFormat::JsonLines, _) => json().infer_schema(state, &store, &[object]).await,
        (ForeignFormat::JsonArray, _) => {
            json().with_newline_delimited(false).infer_schema(state, &store, &[object]).await
        }
    };
    found.map(Some).map_err(|error| with_place(error, location))
}

/// Returns the schema of a local delimited file, whose types are those of its first rows.
fn local_schema(path: &Path, delimiter: u8, rows: usize) -> Result<Schema, ArrowError> {
    let format = Format::default().with_header(true).with_delimiter(delimiter);
    format.infer_schema(File::open(path)?, Some(rows)).map(|(schema, _)| schema)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_delimiters_of_headers_are_found_outside_of_quotes() {
        for (start, expected, found) in [
            ("a;b\n1,2\n", b',', Some(b';')),
            ("\"a\";\"b\"\n", b',', Some(b';')),
            ("a\tb\r\n", b',', Some(b'\t')),
            ("a;b", b'\t', Some(b';')),
            ("a;b,c\n", b',', None),
            ("\"a;b\"\n1;2\n", b',', None),
            ("a\n1;2\n", b',', None),
            ("", b',', None),
        ] {
            assert_eq!(other_delimiter(start.as_bytes(), expected), found, "{start}");
        }
    }
}
