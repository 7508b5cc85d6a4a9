//! Divides a dataset into shares. A share is a range of neighbouring row groups. It is identified by the location of
//! the dataset and the numbers of the row groups, so executors need not know how many other shares there are.

use super::address::Address;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::ops::Range;

/// Returns an error if the data are on a local path but the cluster is on other machines.
pub(crate) fn check_place(place: &Location, address: &Address) -> Result<()> {
    match place {
        Location::Local(_) if !address.is_here() => Err(Error::place(
            place,
            "executors cannot read a local path",
            "use an object store, such as s3://bucket/name",
        )),
        _ => Ok(()),
    }
}

/// Divides partitions with the given numbers of rows into at most `most` ranges of about the same number of rows
/// each.
pub(crate) fn divide(rows: &[u64], most: usize) -> Vec<Range<usize>> {
    let shares = most.clamp(1, rows.len().max(1));
    let total: u64 = rows.iter().sum::<u64>().max(1);
    let mut bounds = vec![0];
    let mut before = 0;
    for (partition, rows) in rows.iter().enumerate() {
        // A partition belongs to the share in which its middle row lies, but each share gets at least one partition.
        let middle = before + rows / 2;
        let share = (u128::from(middle) * shares as u128 / u128::from(total)) as usize;
        if share >= bounds.len() && bounds.len() < shares && partition > bounds[bounds.len() - 1] {
            bounds.push(partition);
        }
        before += rows;
    }
    while bounds.len() < shares {
        // Halve the share with the most partitions.
        let ends = bounds.iter().copied().skip(1).chain([rows.len()]);
        let widest = bounds.iter().copied().zip(ends).max_by_key(|(start, end)| end - start);
        let (start, end) = widest.unwrap_or((0, rows.len()));
        bounds.push(start + (end - start) / 2);
        bounds.sort_unstable();
    }
    bounds.push(rows.len());
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Returns one file group per share, which represents the share in a plan. It has the location of the data, and
/// row-group numbers instead of byte ranges.
pub(crate) fn file_groups(place: &str, shares: &[Range<usize>]) -> Vec<FileGroup> {
    let path = place.trim_start_matches('/');
    let file = |part: usize| {
        PartitionedFile::new_with_range(path.to_owned(), part as u64 + 1, part as i64, part as i64 + 1)
    };
    shares.iter().map(|share| share.clone().map(file).collect()).collect()
}

/// Returns the row-group numbers that a file group represents.
pub(crate) fn parts_of(group: &FileGroup) -> Vec<usize> {
    group.iter().filter_map(|file| file.range.as_ref()).map(|range| range.start as usize).collect()
}

/// Returns the key of a share, made from its location and row-group numbers.
pub(crate) fn key_of(group: &FileGroup) -> String {
    let mut key = String::new();
    for file in group.iter() {
        let start = file.range.as_ref().map_or(0, |range| range.start);
        key.push_str(&format!("{}@{start} ", file.object_meta.location));
    }
    key
}

/// Returns the file groups of a scan, or `None` if the plan node is not a scan of files.
pub(crate) fn groups_of(scan: &dyn ExecutionPlan) -> Option<&[FileGroup]> {
    let source = scan.downcast_ref::<DataSourceExec>()?.data_source();
    Some(&source.downcast_ref::<FileScanConfig>()?.file_groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_cover_everything_once_and_none_is_empty(
            rows in prop::collection::vec(1u64..1000, 1..40), most in 1usize..12,
        ) {
            let shares = divide(&rows, most);
            prop_assert_eq!(shares.len(), most.min(rows.len()));
            prop_assert!(shares.iter().all(|share| !share.is_empty()));
            let all: Vec<usize> = shares.into_iter().flatten().collect();
            prop_assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shares_of_equal_partitions_are_equal() {
        assert_eq!(divide(&[10; 6], 3), [0..2, 2..4, 4..6]);
        assert_eq!(divide(&[10; 7], 2), [0..3, 3..7]);
        assert_eq!(divide(&[100, 1, 1, 1], 2), [0..1, 1..4]);
    }
}
