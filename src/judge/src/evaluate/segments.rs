//! Reads from a separate table to which segment (group of queries) each query belongs. The table is a Parquet file or
//! a dataset. If it has several rows for a query, they must agree on the segment.

use super::predictions::no_such_column;
use super::results::Results;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::{AnyParquet, ParquetFile, TableReader};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The segment of each query, read from a column of a separate table.
pub struct SegmentJoin {
    by: String,
    location: Location,
    segments: HashMap<String, Option<String>>,
}

impl SegmentJoin {
    /// Reads the column `by`, which holds the segments, and the column `on`, which holds the query ids.
    pub fn read(location: &Location, on: &str, by: &str) -> Result<Self> {
        let mut join =
            SegmentJoin { by: by.to_owned(), location: location.clone(), segments: HashMap::new() };
        if location.join(MANIFEST).size()?.is_some() {
            let reader = DatasetReader::open(location)?;
            for id in reader.groups() {
                let group = reader.open_group(id)?;
                let names = group.names();
                let index = |name: &str| {
                    let index = names.iter().position(|other| *other == name);
                    index.ok_or_else(|| no_such_column(location, name, names.iter().copied()))
                };
                let mut columns = [index(on)?, index(by)?];
                columns.sort_unstable();
                group.read_batches(&columns, 1 << 16, &mut |batch| join.add(&batch, on))?;
            }
            return Ok(join);
        }
        let remedy = format!(
            "choose a Parquet file or a dataset; planetree sql -c \"FROM '{location}'\" -o FILE.parquet converts CSV"
        );
        let file = match TableReader::open_or_foreign(location, &remedy)? {
            AnyParquet::Ours(table) => table.file().clone(),
            AnyParquet::Foreign(file) => file,
        };
        let mut columns = [column_index(&file, on)?, column_index(&file, by)?];
        columns.sort_unstable();
        for group in 0..file.groups() {
            for batch in file.group_batches(group, Some(&columns), 1 << 16)? {
                join.add(&batch?, on)?;
            }
        }
        Ok(join)
    }

    fn add(&mut self, batch: &RecordBatch, on: &str) -> Result<()> {
        let text = |name: &str| {
            let column = batch.column_by_name(name).ok_or_else(|| {
                no_such_column(
                    &self.location,
                    name,
                    batch.schema_ref().fields().iter().map(|field| field.name().as_str()),
                )
            })?;
            cast(column, &DataType::Utf8).map_err(|error| {
                Error::place(&self.location, format_args!("column {name}: {error}"), "choose another column")
            })
        };
        let (queries, segments) = (text(on)?, text(&self.by)?);
        let (queries, segments) = (queries.as_string::<i32>(), segments.as_string::<i32>());
        for row in 0..batch.num_rows() {
            let segment = segments.is_valid(row).then(|| segments.value(row));
            match self.segments.entry(queries.value(row).to_owned()) {
                Entry::Vacant(entry) => {
                    entry.insert(segment.map(str::to_owned));
                }
                Entry::Occupied(entry) if entry.get().as_deref() == segment => {}
                Entry::Occupied(entry) => {
                    return Err(Error::place(
                        &self.location,
                        format_args!(
                            "query {:?} has both {} and {} in column {}",
                            entry.key(),
                            entry.get().as_deref().unwrap_or("null"),
                            segment.unwrap_or("null"),
                            self.by
                        ),
                        "group by a column that is the same for all rows of a query",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Assigns a segment to every query. Returns the number of queries that are not in the table, or an error if no
    /// query is in it.
    pub fn assign(&self, results: &mut Results) -> Result<usize> {
        let found: Vec<Option<&Option<String>>> =
            results.names().map(|name| self.segments.get(name)).collect();
        let absent = found.iter().filter(|segment| segment.is_none()).count();
        if absent == found.len() {
            let query = results.names().next().unwrap_or_default().to_owned();
            return Err(Error::place(
                &self.location,
                format_args!("contains none of the evaluated queries, such as {query:?}"),
                "choose a table that contains these queries, or name its column of query ids with --on",
            ));
        }
        results.segments = found.into_iter().map(|segment| segment.cloned().flatten()).collect();
        Ok(absent)
    }
}

fn column_index(file: &ParquetFile, name: &str) -> Result<usize> {
    let names = || file.schema().fields().iter().map(|field| field.name().as_str());
    names().position(|other| other == name).ok_or_else(|| no_such_column(file.location(), name, names()))
}
