//! Hashes the query ids of datasets, to split a dataset by query and to detect queries that are in two datasets.

use arrow::array::{Array, AsArray, StringArray};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupId};
use rayon::prelude::*;
use std::collections::HashMap;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// Returns a hash of a query id and a seed.
pub(crate) fn hash_of(query: &str, seed: u64) -> u128 {
    xxh3_128_with_seed(query.as_bytes(), seed)
}

/// Applies a function to every query id of a dataset, in row order.
fn map_queries<T: Send>(reader: &DatasetReader, map: impl Fn(&str) -> T + Sync) -> Result<Vec<T>> {
    let of_group = |id: GroupId| -> Result<Vec<T>> {
        interrupt::check()?;
        let column = reader.open_group(id)?.read(0..1)?;
        let ids = column.column(0).as_string_opt::<i32>().ok_or_else(|| invalid_columns(reader))?;
        Ok(first_rows(ids).map(|row| map(ids.value(row))).collect())
    };
    let groups = reader.groups().into_par_iter().map(of_group).collect::<Result<Vec<_>>>()?;
    Ok(groups.into_iter().flatten().collect())
}

/// Returns the index of the first row of each query.
fn first_rows(ids: &StringArray) -> impl Iterator<Item = usize> {
    (0..ids.len()).filter(|row| *row == 0 || ids.value(*row) != ids.value(row - 1))
}

/// Returns the hashes of all query ids of a dataset, in row order.
pub(crate) fn hashes(reader: &DatasetReader, seed: u64) -> Result<Vec<u128>> {
    map_queries(reader, |query| hash_of(query, seed))
}

/// Checks that no query is in two of the datasets.
pub(super) fn check_disjoint(readers: &[DatasetReader]) -> Result<()> {
    let mut seen: HashMap<u128, usize> = HashMap::new();
    for (index, reader) in readers.iter().enumerate() {
        let queries = map_queries(reader, |query| (xxh3_128(query.as_bytes()), query.to_owned()))?;
        for (hash, query) in queries {
            if let Some(other) = seen.insert(hash, index).filter(|other| *other != index) {
                return Err(Error::place(
                    reader.location(),
                    format_args!("query {query:?} is also in {}", readers[other].location()),
                    "use datasets without common queries, and pass each dataset only once",
                ));
            }
        }
    }
    Ok(())
}

/// Creates the error for missing columns and for columns of the wrong type.
fn invalid_columns(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "malformed dataset: unexpected columns", "convert the data again")
}
