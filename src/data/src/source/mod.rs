//! Reads labelled data for training: one dataset, or several datasets that are read as if they were concatenated.
//! Here, a *part* is one of these datasets, and a *partition* is one row group of a part. Features are matched by
//! name, and a category has the same code in all datasets. A query must not occur in more than one dataset.

mod job_data;
mod part;
mod row_hashes;

use crate::dataset::{DatasetReader, FeatureMapping, GroupId, GroupReader, KnownFeature, Manifest};
use crate::label_map::LabelMap;
use arrow::array::{Array, StringArray};
use part::SourcePart;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_base::storage::Location;
use row_hashes::RowHashes;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Mutex;
use xxhash_rust::xxh3::xxh3_128;

/// One or more labelled datasets with compatible columns.
pub struct LabelledData {
    parts: Vec<SourcePart>,
    known: Vec<KnownFeature>,
    names: Vec<String>,
    groups: Vec<SourceGroup>,
    /// Maps the hash of each query id to the index of the part that contains the query. Empty if there is only one
    /// part.
    queries: Mutex<HashMap<u128, usize>>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Receives the number of values that were read or decoded.
    meter: SharedMeter,
    /// Hashes of the rows; `None` unless [`LabelledData::hash_rows`] was called.
    hashes: Option<RowHashes>,
    /// Map of the labels that are read; `None` if they are used as they are.
    label_map: Option<LabelMap>,
}

/// A row group of one of the parts.
struct SourceGroup {
    part: usize,
    id: GroupId,
    /// Number of the group's first row, counted over all parts from 0.
    first: u64,
    /// Number of the group's first row, counted within the part from 0.
    first_here: u64,
}

/// A partition whose encoded bytes have been verified.
pub struct OpenPartition {
    number: usize,
    part: usize,
    group: GroupReader,
}

impl OpenPartition {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.group.rows()
    }
}

/// The rows of a partition without their features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledRows {
    /// Number of the partition's first row in the data, counted from 0.
    pub first: u64,
    /// Number of the partition's first query in the data, counted from 0.
    pub first_query: u64,
    /// Label of each row.
    pub labels: Vec<f32>,
    /// Weight of each row; `None` if the data have no weights.
    pub weights: Option<Vec<f32>>,
    /// Position at which each document was shown, counted from 0; `None` unless all rows have a valid position.
    pub positions: Option<Vec<u32>>,
    /// First row of each query, followed by the total number of rows.
    #[serde(with = "planetree_base::compact::ascending")]
    pub query_bounds: Vec<u32>,
    /// Hash of the id of each query. Cleared when it is no longer needed.
    pub query_keys: Vec<u64>,
}

impl LabelledRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Checks whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Checks whether the query bounds are valid and the lengths of all lists match.
    pub fn is_valid(&self) -> bool {
        let (bounds, rows) = (&self.query_bounds, self.len());
        let fits = |count: Option<usize>| count.is_none_or(|count| count == rows);
        bounds.first() == Some(&0)
            && bounds.is_sorted()
            && bounds.last().copied() == u32::try_from(rows).ok()
            && fits(self.weights.as_ref().map(Vec::len))
            && fits(self.positions.as_ref().map(Vec::len))
    }

    /// Replaces the labels by those of a map. `place` is where the rows come from, for messages.
    pub fn map_labels(&mut self, map: &LabelMap, place: &str) -> Result<()> {
        map.apply(&mut self.labels)
            .map_err(|row| map.unlisted(place, self.first + row as u64 + 1, self.labels[row]))
    }

    /// Returns the range of rows of each query.
    pub fn queries(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.query_bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
    }
}

impl LabelledData {
    /// Opens a labelled dataset with the given `features`, or with all its features if `None`.
    pub fn open(location: &Location, features: Option<&[KnownFeature]>) -> Result<Self> {
        Self::open_all(std::slice::from_ref(location), features)
    }

    /// Opens several labelled datasets, which are read as if they were concatenated in the given order. If `features`
    /// is `None`, uses all features that occur in any of the datasets, with all their categories.
    pub fn open_all(locations: &[Location], features: Option<&[KnownFeature]>) -> Result<Self> {
        let readers = locations.iter().map(SourcePart::open_reader).collect::<Result<Vec<_>>>()?;
        let known = features.map_or_else(|| all_features(&readers), <[KnownFeature]>::to_vec);
        let names: Vec<String> = known.iter().map(|feature| feature.name.clone()).collect();
        if let (true, Some(first)) = (names.is_empty(), readers.first()) {
            return Err(Error::place(
                first.location(),
                "the dataset has no features",
                "use a dataset with feature columns",
            ));
        }
        check_agreement(&readers)?;
        if features.is_none() {
            let check = |reader: &DatasetReader| {
                FeatureMapping::check_same(&known, reader.manifest(), reader.location())
            };
            readers.iter().try_for_each(check)?;
        }
        let (mut groups, mut first) = (Vec::new(), 0);
        for (part, reader) in readers.iter().enumerate() {
            let begin = first;
            for id in reader.groups() {
                groups.push(SourceGroup { part, id, first, first_here: first - begin });
                first += reader.manifest().files[id.file].row_groups[id.group].rows;
            }
        }
        let (mut parts, mut warnings) = (Vec::new(), Vec::new());
        for reader in readers {
            let (part, warning) = SourcePart::new(reader, &known)?;
            parts.push(part);
            warnings.extend(warning);
        }
        let queries = Mutex::default();
        Ok(LabelledData {
            parts,
            known,
            names,
            groups,
            queries,
            warnings,
            meter: unwatched(),
            hashes: None,
            label_map: None,
        })
    }

    /// Returns the features that all of the datasets have, with all their categories. There must be at least one.
    pub fn common_features(locations: &[Location]) -> Result<Vec<KnownFeature>> {
        let readers = locations.iter().map(SourcePart::open_reader).collect::<Result<Vec<_>>>()?;
        let mut known = all_features(&readers);
        known.retain(|feature| {
            readers.iter().all(|reader| reader.manifest().features.contains(&feature.name))
        });
        if known.is_empty() {
            let places: Vec<String> = readers.iter().map(|reader| reader.location().to_string()).collect();
            return Err(Error::place(
                places.join(", "),
                "the datasets have no common feature",
                "compare the names of their features (planetree describe), and convert with --names",
            ));
        }
        Ok(known)
    }

    /// Replaces the labels of all rows that are read from now on.
    pub fn set_label_map(&mut self, map: Option<LabelMap>) {
        self.label_map = map;
    }

    /// Returns the readers of the datasets, in the given order.
    pub fn readers(&self) -> impl Iterator<Item = &DatasetReader> {
        self.parts.iter().map(SourcePart::reader)
    }

    /// Returns the manifests of the datasets, in the given order.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.readers().map(DatasetReader::manifest)
    }

    /// Returns the locations of the datasets as a comma-separated list, for messages.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.readers().map(|reader| reader.location().to_string()).collect();
        places.join(", ")
    }

    /// Returns the number of rows in all datasets.
    pub fn row_count(&self) -> u64 {
        self.manifests().map(|manifest| manifest.rows).sum()
    }

    /// Returns the names of the features.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the features with their categories, for reading other data with the same category codes.
    pub fn known(&self) -> &[KnownFeature] {
        &self.known
    }

    /// Checks whether a feature is categorical.
    pub fn has_words(&self, feature: usize) -> bool {
        self.known[feature].words.as_ref().is_some_and(|words| !words.is_empty())
    }

    /// Returns the number of features.
    pub fn features(&self) -> usize {
        self.names.len()
    }

    /// Returns a string that identifies all feature values. It covers the content of every dataset, and the column
    /// and the category codes of each feature.
    pub fn identity(&self) -> String {
        self.parts.iter().map(SourcePart::identity).collect::<Vec<_>>().join(" ")
    }

    /// Returns the number of partitions. A partition is one row group of one of the datasets.
    pub fn partitions(&self) -> usize {
        self.groups.len()
    }

    /// Returns the number of a partition's first row, counted over all datasets from 0.
    pub fn first_row(&self, partition: usize) -> u64 {
        self.groups[partition].first
    }

    /// Returns the number of a partition's first query, counted over all datasets from 0, according to the manifests.
    pub fn first_query(&self, partition: usize) -> u64 {
        let queries = |group: &SourceGroup| {
            self.parts[group.part].reader().manifest().files[group.id.file].row_groups[group.id.group].queries
        };
        self.groups[..partition].iter().map(queries).sum()
    }

    /// Returns the row group of a partition within its dataset. Meaningful only if there is a single dataset.
    pub fn group_id(&self, partition: usize) -> GroupId {
        self.groups[partition].id
    }

    /// Returns the index of a partition's dataset, and the row group of the partition within it.
    pub fn place_of(&self, partition: usize) -> (usize, GroupId) {
        let SourceGroup { part, id, .. } = self.groups[partition];
        (part, id)
    }

    /// Reads and verifies the bytes of a partition.
    pub fn open_partition(&self, partition: usize) -> Result<OpenPartition> {
        self.opened(partition, DatasetReader::open_group)
    }

    /// Verifies the bytes of a partition. Those of a local dataset are not kept in memory: columns are read when they are
    /// decoded. It is meant for reading all partitions a few features at a time.
    pub fn open_partition_on_disk(&self, partition: usize) -> Result<OpenPartition> {
        self.opened(partition, DatasetReader::open_group_on_disk)
    }

    fn opened(
        &self,
        partition: usize,
        open: impl Fn(&DatasetReader, GroupId) -> Result<GroupReader>,
    ) -> Result<OpenPartition> {
        let SourceGroup { part, id, .. } = self.groups[partition];
        let group = self.parts[part].checked(open(self.parts[part].reader(), id)?)?;
        self.meter.advance((group.rows() * self.features()) as u64);
        Ok(OpenPartition { number: partition, part, group })
    }

    /// Decodes one feature of a partition. Missing and non-finite values are NaN.
    pub fn values(&self, partition: &OpenPartition, feature: usize) -> Result<Vec<f32>> {
        Ok(self.values_of(partition, feature..feature + 1)?.remove(0))
    }

    /// Decodes a range of features. For a wide dataset this is faster than decoding them one by one.
    pub fn values_of(&self, partition: &OpenPartition, features: Range<usize>) -> Result<Vec<Vec<f32>>> {
        self.meter.advance((partition.rows() * features.len()) as u64);
        self.parts[partition.part].values_of(&partition.group, features)
    }

    /// Enables hashing of rows. A hash covers the label and the features that are passed to [`LabelledData::hash`].
    pub fn hash_rows(&mut self) {
        let rows = |group: &SourceGroup| {
            self.parts[group.part].reader().manifest().files[group.id.file].row_groups[group.id.group].rows
        };
        self.hashes = Some(RowHashes::new(self.groups.iter().map(|group| rows(group) as usize)));
    }

    /// Adds the values of a feature to the row hashes of a partition, if hashing is enabled.
    pub fn hash(&self, partition: &OpenPartition, feature: usize, values: &[f32]) {
        if let Some(hashes) = &self.hashes {
            hashes.add(partition.number, feature, values);
        }
    }

    /// Returns the row hashes of each partition, if hashing is enabled. Features that were not passed to
    /// [`LabelledData::hash`], such as constant ones, do not contribute.
    pub fn take_row_hashes(&mut self) -> Option<Vec<Vec<u64>>> {
        self.hashes.take().map(RowHashes::finish)
    }

    /// Returns the number of feature values in all rows, including missing ones.
    pub fn values_count(&self) -> u64 {
        self.row_count() * self.features() as u64
    }

    /// Restarts the progress meter and announces that every value will be read or decoded `times` times.
    pub fn expect_passes(&self, times: u64) {
        self.meter.begin(Some(times * self.values_count()));
    }

    /// Sets the meter that receives progress from now on. Every value counts once when it is read and once when it is
    /// decoded.
    pub fn watch(&mut self, meter: SharedMeter) {
        self.meter = meter;
    }

    /// Reads the labels, weights, positions and queries of a partition. The caller must set `first_query`, which
    /// depends on the previous partitions.
    pub fn rows(&self, partition: usize, opened: &OpenPartition) -> Result<LabelledRows> {
        let SourceGroup { part, first, first_here, .. } = self.groups[partition];
        let (mut rows, queries) = self.parts[part].rows(&opened.group, first, first_here)?;
        if let Some(map) = &self.label_map {
            rows.map_labels(map, &self.place())?;
        }
        if let Some(hashes) = &self.hashes {
            hashes.set_labels(partition, &rows.labels);
        }
        if self.parts.len() > 1 {
            self.check_queries(part, &rows, &queries)?;
        }
        Ok(rows)
    }

    /// Records which part contains each query. Fails if a query also occurs in another part.
    fn check_queries(&self, part: usize, rows: &LabelledRows, queries: &StringArray) -> Result<()> {
        let mut seen = self.queries.lock().expect("no holder of this lock panics");
        for bound in &rows.query_bounds[..rows.query_bounds.len() - 1] {
            if *bound as usize >= queries.len() {
                continue; // a partition without rows has no query
            }
            let query = queries.value(*bound as usize);
            let other = *seen.entry(xxh3_128(query.as_bytes())).or_insert(part);
            if other != part {
                let (one, two) = (other.min(part), other.max(part));
                let place = |part: usize| self.parts[part].reader().location();
                return Err(Error::place(
                    place(two),
                    format_args!("query {query:?} is also in {}", place(one)),
                    "use datasets without common queries, and pass each dataset only once",
                ));
            }
        }
        Ok(())
    }
}

/// Returns all features that occur in any of the datasets, in order of first appearance. Each feature has all
/// categories that occur in any of the datasets.
fn all_features(readers: &[DatasetReader]) -> Vec<KnownFeature> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut known: Vec<KnownFeature> = Vec::new();
    for reader in readers {
        for name in &reader.manifest().features {
            places.entry(name).or_insert_with(|| {
                let (name, place) = (name.clone(), reader.location().to_string());
                known.push(KnownFeature { name, words: Some(Vec::new()), place });
                known.len() - 1
            });
        }
        for column in &reader.manifest().categories {
            let Some(place) = places.get(column.feature.as_str()) else { continue };
            let KnownFeature { words: Some(words), place, .. } = &mut known[*place] else { continue };
            if words.is_empty() {
                *place = reader.location().to_string();
            }
            let seen: HashSet<String> = words.iter().cloned().collect();
            words.extend(column.words.iter().filter(|word| !seen.contains(*word)).cloned());
        }
    }
    known
}

/// Checks that either all datasets have weights or none.
fn check_agreement(readers: &[DatasetReader]) -> Result<()> {
    let Some((first, others)) = readers.split_first() else {
        return Err(Error::usage("no training data", "pass a dataset with --data"));
    };
    for other in others {
        if first.manifest().weight != other.manifest().weight {
            let (with, without) = if first.manifest().weight { (first, other) } else { (other, first) };
            return Err(Error::place(
                without.location(),
                format_args!("no weights, but {} has weights", with.location()),
                "convert all datasets with weights, or all without",
            ));
        }
    }
    Ok(())
}
