//! The queries of datasets, by the hashes of their ids: enough to deal them out, and to notice one that
//! is in two datasets.

use arrow::array::{Array, AsArray, StringArray};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupId};
use rayon::prelude::*;
use std::collections::HashMap;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// The hash of a query's id under a seed.
pub fn hash_of(query: &str, seed: u64) -> u128 {
    xxh3_128_with_seed(query.as_bytes(), seed)
}

/// What a function makes of every query of a dataset, in the order of the rows.
fn each_query<T: Send>(reader: &DatasetReader, make: impl Fn(&str) -> T + Sync) -> Result<Vec<T>> {
    let of_group = |id: GroupId| -> Result<Vec<T>> {
        interrupt::check()?;
        let column = reader.open_group(id)?.read(0..1)?;
        let ids = column.column(0).as_string_opt::<i32>().ok_or_else(|| odd_columns(reader))?;
        Ok(first_rows(ids).map(|row| make(ids.value(row))).collect())
    };
    let groups = reader.groups().into_par_iter().map(of_group).collect::<Result<Vec<_>>>()?;
    Ok(groups.into_iter().flatten().collect())
}

/// The first row of each query.
pub fn first_rows(ids: &StringArray) -> impl Iterator<Item = usize> {
    (0..ids.len()).filter(|row| *row == 0 || ids.value(*row) != ids.value(row - 1))
}

/// The hashes of all queries of a dataset under a seed.
pub fn hashes(reader: &DatasetReader, seed: u64) -> Result<Vec<u128>> {
    each_query(reader, |query| hash_of(query, seed))
}

/// An error if a query is in two of the datasets; it names one.
pub fn check_apart(readers: &[DatasetReader]) -> Result<()> {
    let mut met: HashMap<u128, usize> = HashMap::new();
    for (place, reader) in readers.iter().enumerate() {
        let queries = each_query(reader, |query| (xxh3_128(query.as_bytes()), query.to_owned()))?;
        for (hash, query) in queries {
            if let Some(other) = met.insert(hash, place).filter(|other| *other != place) {
                return Err(Error::place(
                    reader.location(),
                    format_args!("query {query:?} is in {} as well", readers[other].location()),
                    "name datasets that have no query in common, each of them once",
                ));
            }
        }
    }
    Ok(())
}

/// The error of a dataset that lacks a column it must have.
pub fn odd_columns(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "its columns are not those of a dataset", "convert the data again")
}
