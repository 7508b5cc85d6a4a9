//! What the trainer reads: one dataset, or several as if they were one, their rows end to end. Features
//! are found by name, words are mapped to one code each; a query is in one dataset only.

mod part;
mod row_hashes;

use crate::dataset::{DatasetReader, GroupId, GroupReader, KnownFeature, Manifest};
use arrow::array::{Array, StringArray};
use part::SourcePart;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_base::storage::Location;
use row_hashes::RowHashes;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Mutex;
use xxhash_rust::xxh3::xxh3_128;

/// Datasets whose columns are known to fit.
pub struct Source {
    parts: Vec<SourcePart>,
    known: Vec<KnownFeature>,
    names: Vec<String>,
    groups: Vec<SourceGroup>,
    /// The part that each query was met in, by the hash of its id; empty when there is one part.
    queries: Mutex<HashMap<u128, usize>>,
    /// What the user should know of it.
    pub warnings: Vec<String>,
    /// Told of every value that is read or decoded.
    meter: SharedMeter,
    /// Hashes of rows, if they are wanted.
    hashes: Option<RowHashes>,
}

/// A row group of one of the parts.
struct SourceGroup {
    part: usize,
    id: GroupId,
    /// The number of its first row in all parts.
    first: u64,
    /// The number of its first row in its own part.
    first_here: u64,
}

/// A partition whose bytes are in memory.
pub struct OpenPartition {
    number: usize,
    part: usize,
    group: GroupReader,
}

impl OpenPartition {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.group.rows()
    }
}

/// What is known of a partition's rows beside their features.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The number of the first row in the dataset.
    pub first: u64,
    /// The number of the first query in the dataset.
    pub first_query: u64,
    /// The label of each row.
    pub labels: Vec<f32>,
    /// The weight of each row, when there are weights.
    pub weights: Option<Vec<f32>>,
    /// Where each document was shown, counted from 0, when that is known of every row.
    pub positions: Option<Vec<u32>>,
    /// Where each query starts, and the number of rows.
    pub query_bounds: Vec<u32>,
    /// The hash of each query's id, until nobody needs it any more.
    pub query_keys: Vec<u64>,
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The rows of each query.
    pub fn queries(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.query_bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
    }
}

impl Source {
    /// Opens a labelled dataset. `features` are those wanted, `None` for all it has.
    pub fn open(location: &Location, features: Option<&[KnownFeature]>) -> Result<Self> {
        Self::open_all(std::slice::from_ref(location), features)
    }

    /// Opens labelled datasets as if they were one, their rows in the order given. `features` are those
    /// wanted, `None` for all that any of them has, with the words of all of them.
    pub fn open_all(locations: &[Location], features: Option<&[KnownFeature]>) -> Result<Self> {
        let readers = locations.iter().map(SourcePart::open_reader).collect::<Result<Vec<_>>>()?;
        let known = features.map_or_else(|| all_features(&readers), <[KnownFeature]>::to_vec);
        let names: Vec<String> = known.iter().map(|feature| feature.name.clone()).collect();
        if let (true, Some(first)) = (names.is_empty(), readers.first()) {
            return Err(Error::place(
                first.location(),
                "there are no features",
                "name a dataset with feature columns",
            ));
        }
        check_agreement(&readers)?;
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
            let (part, warning) = SourcePart::find(reader, &known)?;
            parts.push(part);
            warnings.extend(warning);
        }
        let queries = Mutex::default();
        Ok(Source { parts, known, names, groups, queries, warnings, meter: unwatched(), hashes: None })
    }

    /// The datasets in their order.
    pub fn readers(&self) -> impl Iterator<Item = &DatasetReader> {
        self.parts.iter().map(SourcePart::reader)
    }

    /// What each dataset says of itself.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.readers().map(DatasetReader::manifest)
    }

    /// Where the data are, as a message begins.
    pub fn place(&self) -> String {
        let places: Vec<String> = self.readers().map(|reader| reader.location().to_string()).collect();
        places.join(", ")
    }

    /// How many rows there are.
    pub fn row_count(&self) -> u64 {
        self.manifests().map(|manifest| manifest.rows).sum()
    }

    /// The features.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The features with their words, for whoever reads other data beside these.
    pub fn known(&self) -> &[KnownFeature] {
        &self.known
    }

    /// Whether the values of a feature are codes of words.
    pub fn has_words(&self, feature: usize) -> bool {
        self.known[feature].words.as_ref().is_some_and(|words| !words.is_empty())
    }

    /// How many features there are.
    pub fn features(&self) -> usize {
        self.names.len()
    }

    /// What tells the values apart from those of any other source: the content of every dataset, and
    /// the column and codes of each feature in it.
    pub fn identity(&self) -> String {
        self.parts.iter().map(SourcePart::identity).collect::<Vec<_>>().join(" ")
    }

    /// How many partitions there are: the row groups of all datasets.
    pub fn partitions(&self) -> usize {
        self.groups.len()
    }

    /// The number of a partition's first row.
    pub fn first_row(&self, partition: usize) -> u64 {
        self.groups[partition].first
    }

    /// The number of a partition's first query, as the manifests count them.
    pub fn first_query(&self, partition: usize) -> u64 {
        let queries = |group: &SourceGroup| {
            self.parts[group.part].reader().manifest().files[group.id.file].row_groups[group.id.group].queries
        };
        self.groups[..partition].iter().map(queries).sum()
    }

    /// The row group that a partition is, of the only dataset.
    pub fn group_id(&self, partition: usize) -> GroupId {
        self.groups[partition].id
    }

    /// Reads a partition's bytes and checks them.
    pub fn open_partition(&self, partition: usize) -> Result<OpenPartition> {
        let SourceGroup { part, id, .. } = self.groups[partition];
        let group = self.parts[part].open_group(id)?;
        self.meter.advance((group.rows() * self.features()) as u64);
        Ok(OpenPartition { number: partition, part, group })
    }

    /// Decodes one feature of a partition; what is missing or not finite is NaN.
    pub fn values(&self, partition: &OpenPartition, feature: usize) -> Result<Vec<f32>> {
        Ok(self.values_of(partition, feature..feature + 1)?.remove(0))
    }

    /// Decodes neighbouring features, which for a wide dataset is quicker than one by one.
    pub fn values_of(&self, partition: &OpenPartition, features: Range<usize>) -> Result<Vec<Vec<f32>>> {
        self.meter.advance((partition.rows() * features.len()) as u64);
        self.parts[partition.part].values_of(&partition.group, features)
    }

    /// From now on, rows are hashed by the features that are passed to [`Source::hash`].
    pub fn hash_rows(&mut self) {
        let rows = |group: &SourceGroup| {
            self.parts[group.part].reader().manifest().files[group.id.file].row_groups[group.id.group].rows
        };
        self.hashes = Some(RowHashes::new(self.groups.iter().map(|group| rows(group) as usize)));
    }

    /// Adds the values of a feature to the hashes of rows, if they are wanted.
    pub fn hash(&self, partition: &OpenPartition, feature: usize, values: &[f32]) {
        if let Some(hashes) = &self.hashes {
            hashes.add(partition.number, feature, values);
        }
    }

    /// The hashes of rows by partition, if they were wanted. Features that never vary are not in them.
    pub fn take_row_hashes(&mut self) -> Option<Vec<Vec<u64>>> {
        self.hashes.take().map(RowHashes::finish)
    }

    /// How many values there are, missing ones included.
    pub fn values_count(&self) -> u64 {
        self.row_count() * self.features() as u64
    }

    /// Says that every value will be read or decoded so many times.
    pub fn expect_passes(&self, times: u64) {
        self.meter.begin(Some(times * self.values_count()));
    }

    /// Tells a meter, from now on, of every value that is read and of every one that is decoded.
    pub fn watch(&mut self, meter: SharedMeter) {
        self.meter = meter;
    }

    /// Reads labels, weights and queries of a partition. `first_query` is set by the caller, who
    /// knows what came before.
    pub fn rows(&self, partition: usize, opened: &OpenPartition) -> Result<Rows> {
        let SourceGroup { part, first, first_here, .. } = self.groups[partition];
        let (rows, queries) = self.parts[part].rows(&opened.group, first, first_here)?;
        if let Some(hashes) = &self.hashes {
            hashes.set_labels(partition, &rows.labels);
        }
        if self.parts.len() > 1 {
            self.note_queries(part, &rows, &queries)?;
        }
        Ok(rows)
    }

    /// Notes which part the queries are in; an error if one was met in another part.
    fn note_queries(&self, part: usize, rows: &Rows, queries: &StringArray) -> Result<()> {
        let mut met = self.queries.lock().expect("no holder of this lock panics");
        for bound in &rows.query_bounds[..rows.query_bounds.len() - 1] {
            if *bound as usize >= queries.len() {
                continue; // no rows, no query
            }
            let query = queries.value(*bound as usize);
            let other = *met.entry(xxh3_128(query.as_bytes())).or_insert(part);
            if other != part {
                let (one, two) = (other.min(part), other.max(part));
                let place = |part: usize| self.parts[part].reader().location();
                return Err(Error::place(
                    place(two),
                    format_args!("query {query:?} is in {} as well", place(one)),
                    "name datasets that have no query in common, each of them once",
                ));
            }
        }
        Ok(())
    }
}

/// The features of all datasets, in the order in which they are first met; their words likewise.
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
            let met: HashSet<String> = words.iter().cloned().collect();
            words.extend(column.words.iter().filter(|word| !met.contains(*word)).cloned());
        }
    }
    known
}

/// Refuses datasets whose numbers do not mean the same: weights here and none there.
fn check_agreement(readers: &[DatasetReader]) -> Result<()> {
    let Some((first, others)) = readers.split_first() else {
        return Err(Error::usage("there is no dataset to train on", "name one with --data"));
    };
    for other in others {
        if first.manifest().weight != other.manifest().weight {
            let (with, without) = if first.manifest().weight { (first, other) } else { (other, first) };
            return Err(Error::place(
                without.location(),
                format_args!("it has no weights, but {} has", with.location()),
                "convert all of them with weights, or all without",
            ));
        }
    }
    Ok(())
}
