//! Computes the fingerprint of a dataset: a hash of its rows that does not depend on how the rows are divided into
//! row groups and files.
//!
//! Every row has a key derived from its number. Each present value of a column is multiplied by the key of its row,
//! and the *sum* of the column is the 128-bit sum of these products. The sums of row groups can be added in any order
//! and on any number of threads to get the sum of the dataset, and absent values cost nothing. Two different columns
//! have the same sum with probability 2^-64 (multilinear hashing: Lemire and Kaser 2014, "Strongly universal string
//! hashing is fast"). The fingerprint is the hash of the numbers of rows and queries, the names, the categories and
//! the sums.

use super::manifest::Manifest;
use super::read::{DatasetReader, GroupReader, unexpected_columns};
use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder};
use arrow::datatypes::{Float32Type, Int32Type};
use arrow::util::bit_iterator::BitIndexIterator;
use planetree_base::error::Result;
use planetree_base::random::mix;
use planetree_base::storage::{Digest, RunningDigest, interrupt};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// Version of the definition of fingerprints.
const VERSION: u32 = 1;

/// The keys of consecutive rows.
pub(super) struct RowKeys {
    keys: Vec<u64>,
    /// Sum of all keys.
    total: u128,
}

impl RowKeys {
    /// Computes the keys of `rows` rows, starting at row `first_row` of the dataset.
    pub(super) fn new(first_row: u64, rows: usize) -> Self {
        let keys: Vec<u64> = (first_row..first_row + rows as u64).map(mix).collect();
        RowKeys { total: keys.iter().map(|key| u128::from(*key)).sum(), keys }
    }

    /// Computes the sum of a float column, given its present values and a bitmap of the rows that have a value.
    pub(crate) fn sum_of_floats(&self, values: &[f32], present: &BooleanBufferBuilder) -> u128 {
        if values.len() == self.keys.len() {
            return self.sum_of_all(values);
        }
        let rows = BitIndexIterator::new(present.as_slice(), 0, present.len());
        rows.zip(values).map(|(row, value)| product(self.keys[row], value.to_bits())).sum()
    }

    /// Computes the sum of a float column without missing values. Keys are split into two halves, because all
    /// processors can multiply vectors of 32-bit numbers. Nothing overflows with fewer than 2^31 rows. The wrapping
    /// operations only avoid overflow checks in the loop.
    fn sum_of_all(&self, values: &[f32]) -> u128 {
        const HALF: u64 = 0xFFFF_FFFF;
        let (mut low, mut middle, mut high) = (0u64, 0u64, 0u64);
        for (key, value) in self.keys.iter().zip(values) {
            let bits = u64::from(value.to_bits());
            let (lower, upper) = ((key & HALF).wrapping_mul(bits), (key >> 32).wrapping_mul(bits));
            low = low.wrapping_add(lower & HALF);
            middle = middle.wrapping_add((lower >> 32).wrapping_add(upper & HALF));
            high = high.wrapping_add(upper >> 32);
        }
        self.total + u128::from(low) + (u128::from(middle) << 32) + (u128::from(high) << 64)
    }

    /// Computes the sum of a column of positions.
    pub(crate) fn sum_of_positions(&self, positions: impl Iterator<Item = Option<i32>>) -> u128 {
        let present = self.keys.iter().zip(positions);
        present.filter_map(|(key, position)| Some(product(*key, position? as u32))).sum()
    }

    /// Computes the sum of a column of strings, given as pairs of a row index and a string. A query id is passed only
    /// for the first row of each query.
    pub(crate) fn sum_of_texts<'t>(&self, texts: impl Iterator<Item = (usize, &'t [u8])>) -> u128 {
        texts.fold(0, |sum: u128, (row, text)| {
            sum.wrapping_add(u128::from(self.keys[row]) * u128::from(xxh3_64(text)))
        })
    }
}

/// Computes the contribution of a value to the sum of its column. One is added to the bits, so that 0 differs from an
/// absent value. The sum of 2^28 contributions is far below 2^128.
#[inline]
fn product(key: u64, bits: u32) -> u128 {
    u128::from(key).wrapping_mul(u128::from(bits) + 1)
}

/// The sums of all columns of a dataset, or of some of its rows, in column order. Trailing features that do not occur
/// in these rows have no element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnSums(pub Vec<u128>);

impl ColumnSums {
    /// Adds the sums of other rows of the same dataset.
    pub(crate) fn add(&mut self, other: &ColumnSums) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, other)| *sum = sum.wrapping_add(*other));
    }

    /// Computes the fingerprint of the rows that a manifest describes.
    pub(crate) fn fingerprint(&self, manifest: &Manifest) -> Digest {
        let mut digest = RunningDigest::new();
        let mut text = |text: &str| {
            digest.update(&(text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
        };
        let Manifest { rows, queries, weight, position, features, categories, .. } = manifest;
        text(&format!("planetree data {VERSION} {rows} {queries} {weight} {position} {}", features.len()));
        features.iter().for_each(|name| text(name));
        for column in categories {
            text(&format!("words {}", column.words.len()));
            text(&column.feature);
            column.words.iter().for_each(|word| text(word));
        }
        let columns = 3 + usize::from(*weight) + usize::from(*position) + features.len();
        for place in 0..columns {
            digest.update(&self.0.get(place).copied().unwrap_or(0).to_le_bytes());
        }
        digest.digest()
    }
}

impl DatasetReader {
    /// Returns the fingerprint of the dataset, which covers queries, documents, labels, weights, positions, features,
    /// names and categories. If the manifest has no fingerprint, because an earlier version wrote it, reads the
    /// dataset to compute it.
    pub fn fingerprint(&self) -> Result<Digest> {
        if let Some(known) = self.manifest().fingerprint.or_else(|| self.scanned.get().copied()) {
            return Ok(known);
        }
        let scanned = self.scan_fingerprint()?;
        Ok(*self.scanned.get_or_init(|| scanned))
    }

    /// Computes the fingerprint from the rows.
    fn scan_fingerprint(&self) -> Result<Digest> {
        let firsts = self.manifest().rows_of_groups().scan(0, |next, rows| {
            *next += rows;
            Some(*next - rows)
        });
        let groups: Vec<_> = self.groups().into_iter().zip(firsts).collect();
        let sums = groups.into_par_iter().map(|(id, first)| {
            interrupt::check()?;
            self.sums_of(&self.open_group(id)?, first)
        });
        let sums = sums.try_reduce(ColumnSums::default, |mut one, other| {
            one.add(&other);
            Ok(one)
        })?;
        Ok(sums.fingerprint(self.manifest()))
    }

    fn sums_of(&self, group: &GroupReader, first: u64) -> Result<ColumnSums> {
        let keys = RowKeys::new(first, group.rows());
        let sum = |place: usize| {
            let column = group.read(place..place + 1)?.column(0).clone();
            sum_of(&keys, &column, place == 0).ok_or_else(|| unexpected_columns(self.location()))
        };
        Ok(ColumnSums((0..group.columns()).map(sum).collect::<Result<_>>()?))
    }
}

/// Computes the sum of a column that was read from a dataset. `is_query` states whether it is the column of query
/// ids. Returns `None` if the column has an unexpected type.
fn sum_of(keys: &RowKeys, column: &ArrayRef, is_query: bool) -> Option<u128> {
    if let Some(texts) = column.as_string_opt::<i32>() {
        let counts = |row: &usize| match is_query {
            true => *row == 0 || texts.value(*row) != texts.value(*row - 1),
            false => texts.is_valid(*row),
        };
        let rows = (0..texts.len()).filter(counts);
        return Some(keys.sum_of_texts(rows.map(|row| (row, texts.value(row).as_bytes()))));
    }
    if let Some(positions) = column.as_primitive_opt::<Int32Type>() {
        return Some(keys.sum_of_positions(positions.iter()));
    }
    let values = column.as_primitive_opt::<Float32Type>()?;
    let present = keys.keys.iter().zip(values.iter());
    Some(present.filter_map(|(key, value)| Some(product(*key, value?.to_bits()))).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::manifest::{Categories, ManifestSource};
    use crate::dataset::{FeatureNames, Grouper, Layout, encode_group};
    use crate::rows::BlockBuilder;
    use planetree_base::storage::digest_of;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[derive(Debug, Clone, PartialEq)]
    struct Row {
        query: u32,
        document: Option<u32>,
        label: Option<f32>,
        weight: f32,
        position: Option<i32>,
        features: Vec<Option<f32>>,
    }

    /// Computes the fingerprint of rows that arrive in blocks of `block_rows` rows and are written to files of
    /// `partition_rows` rows.
    fn fingerprint(rows: &[Row], words: &[&str], block_rows: usize, partition_rows: usize) -> Digest {
        let layout = Layout { features: FeatureNames::Numbered, weight: true, position: true };
        let (mut sums, mut groups, mut width, mut queries) = (ColumnSums::default(), Vec::new(), 0, 0);
        let mut grouper = Grouper::new(partition_rows, usize::MAX);
        let mut emit = |group| {
            groups.push(encode_group(&group, &layout).unwrap());
            Ok(())
        };
        for rows in rows.chunks(block_rows) {
            let mut builder = BlockBuilder::default();
            for row in rows {
                builder.query(format!("q{}", row.query).as_bytes(), 1);
                for (feature, value) in (0..).zip(&row.features) {
                    value.iter().for_each(|value| builder.push_entry(feature, *value));
                }
                let document = row.document.map(|document| document.to_string());
                builder
                    .finish_row(row.label.unwrap_or(f32::NAN), document.as_ref().map(|text| text.as_bytes()));
                builder.weight(row.weight);
                builder.position(row.position);
            }
            grouper.push(Arc::new(builder.finish()), &mut |_, _| Ok(true), &mut emit).unwrap();
        }
        grouper.finish().map_or(Ok(()), &mut emit).unwrap();
        // The order is arbitrary, as it is if several threads finish groups in any order.
        for group in groups.iter().rev() {
            sums.add(&group.sums);
            (width, queries) = (width.max(group.width), queries + group.queries as u64);
        }
        let source = ManifestSource { format: "letor".into(), bytes: 0, fingerprint: digest_of(b"") };
        let manifest = Manifest {
            rows: rows.len() as u64,
            queries,
            weight: true,
            position: true,
            features: (0..width).map(|feature| layout.features.name(feature)).collect(),
            categories: vec![Categories {
                feature: "f1".into(),
                words: words.iter().map(|word| (*word).to_owned()).collect(),
            }],
            ..Manifest::new(source)
        };
        sums.fingerprint(&manifest)
    }

    fn some_rows() -> impl Strategy<Value = Vec<Row>> {
        let value = || prop_oneof![Just(0.0f32), Just(-0.0), Just(1.0), Just(0.5), -9f32..9.0];
        let features = prop::collection::vec(prop::option::weighted(0.6, value()), 1..6);
        let row = (
            prop::bool::weighted(0.3),
            prop::option::of(0u32..9),
            prop::option::weighted(0.9, value()),
            value(),
            prop::option::of(-3i32..9),
            features,
        );
        prop::collection::vec(row, 1..60).prop_map(|rows| {
            let mut number = 0;
            let row = |(begins, document, label, weight, position, features)| {
                number += u32::from(begins);
                Row { query: number, document, label, weight, position, features }
            };
            rows.into_iter().map(row).collect()
        })
    }

    fn bits(value: Option<f32>) -> Option<u32> {
        value.map(f32::to_bits)
    }

    proptest! {
        #[test]
        fn rows_have_one_fingerprint_however_they_are_cut(rows in some_rows(), block in 1usize..70, partition in 1usize..70) {
            prop_assert_eq!(fingerprint(&rows, &["a", "b"], block, partition), fingerprint(&rows, &["a", "b"], 1000, 1000));
        }

        #[test]
        fn any_change_is_another_fingerprint(
            rows in some_rows(), place in any::<prop::sample::Index>(), kind in 0..8,
            value in prop_oneof![Just(Some(0.0f32)), Just(None), Just(Some(-0.0)), (-9f32..9.0).prop_map(Some)], number in 0u32..9,
        ) {
            let place = place.index(rows.len());
            let mut changed = rows.clone();
            let row = &mut changed[place];
            let differs = match kind {
                0 => {
                    let (old, new) = (row.query, 1000 + number);
                    changed.iter_mut().filter(|row| row.query == old).for_each(|row| row.query = new);
                    true
                }
                1 => row.document.replace(number) != Some(number),
                2 => bits(std::mem::replace(&mut row.label, value)) != bits(value),
                3 => std::mem::replace(&mut row.weight, value.unwrap_or(7.5)).to_bits() != value.unwrap_or(7.5).to_bits(),
                4 => row.position.replace(number as i32) != Some(number as i32),
                5 => {
                    let feature = number as usize % row.features.len();
                    bits(std::mem::replace(&mut row.features[feature], value)) != bits(value)
                }
                6 => {
                    // This splits a query in two, or joins two queries.
                    let before = place > 0 && rows[place - 1].query == row.query;
                    let old = row.query;
                    changed[place..].iter_mut().for_each(|row| row.query += u32::from(row.query == old) * 500);
                    before
                }
                _ => {
                    let other = (place + 1) % rows.len();
                    changed.swap(place, other);
                    let query = changed[other].query;
                    changed[other].query = changed[place].query;
                    changed[place].query = query;
                    let shown = |rows: &[Row]| format!("{rows:?}");
                    shown(&changed) != shown(&rows)
                }
            };
            prop_assume!(differs);
            prop_assert_ne!(fingerprint(&changed, &["a", "b"], 7, 9), fingerprint(&rows, &["a", "b"], 7, 9));
            for words in [&["b", "a"][..], &["a"], &["a", "b", "c"], &["ab"]] {
                prop_assert_ne!(fingerprint(&rows, words, 7, 9), fingerprint(&rows, &["a", "b"], 7, 9));
            }
        }
    }
}
