//! Summarises a dataset in one pass. Row groups are summarised independently, and the summaries are merged in row
//! order.

mod distinct;
mod feature;
mod queries;

pub use feature::FeatureKind;
pub use feature::FeatureSummary;
pub(crate) use queries::QuerySummary;

use crate::dataset::{DatasetReader, GroupId, Manifest, unexpected_columns};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float32Type;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use rayon::prelude::*;

/// Summary of a dataset.
pub struct Description {
    /// Summary of queries, labels and documents.
    pub queries: QuerySummary,
    /// Summary of each feature.
    pub features: Vec<FeatureSummary>,
}

/// Reads and summarises a dataset. `progress` receives the number of rows of each row group.
pub fn describe(reader: &DatasetReader, progress: &mut dyn FnMut(u64)) -> Result<Description> {
    let features = reader.manifest().features.len();
    let mut whole =
        Description { queries: QuerySummary::default(), features: vec![FeatureSummary::default(); features] };
    // As many row groups as there are threads are processed at a time, which limits the memory. Merging in order
    // makes floating-point sums reproducible on any machine.
    for wave in reader.groups().chunks(rayon::current_num_threads()) {
        interrupt::check()?;
        let parts: Vec<Result<(Description, u64)>> =
            wave.par_iter().map(|id| summarise(reader, *id)).collect();
        for part in parts {
            let (part, rows) = part?;
            whole.merge(part);
            progress(rows);
        }
    }
    Ok(whole)
}

impl Description {
    fn merge(&mut self, other: Description) {
        self.queries.merge(&other.queries);
        for (mine, theirs) in self.features.iter_mut().zip(&other.features) {
            mine.merge(theirs);
        }
    }

    /// Returns warnings about properties of the data that may harm training.
    pub fn warnings(&self, manifest: &Manifest) -> Vec<String> {
        let mut warnings = self.queries.warnings();
        let named = |pick: fn(&FeatureSummary) -> bool| -> Vec<&str> {
            self.features
                .iter()
                .zip(&manifest.features)
                .filter(|(feature, _)| pick(feature))
                .map(|(_, name)| name.as_str())
                .collect()
        };
        let absent = named(|feature| feature.present == 0);
        let constant = named(|feature| feature.present > 0 && feature.is_constant());
        for (names, problem) in [(absent, "no values"), (constant, "the same value in all rows")] {
            if !names.is_empty() {
                let features = if names.len() == 1 { "feature has" } else { "features have" };
                warnings.push(format!("{} {features} {problem}: {}", names.len(), first_few(&names)));
            }
        }
        warnings
    }
}

fn first_few(names: &[&str]) -> String {
    const FEW: usize = 8;
    let ellipsis = if names.len() > FEW { ", ..." } else { "" };
    format!("{}{ellipsis}", names[..names.len().min(FEW)].join(", "))
}

fn summarise(reader: &DatasetReader, id: GroupId) -> Result<(Description, u64)> {
    /// Number of columns that are decoded at a time, which limits the memory for wide row groups.
    const AT_A_TIME: usize = 32;
    let manifest = reader.manifest();
    let malformed = || unexpected_columns(&reader.location().join(&manifest.files[id.file].name));
    let group = reader.open_group(id)?;
    let names = group.names();
    let first = names.len().checked_sub(manifest.features.len()).ok_or_else(malformed)?;
    if names[first..] != manifest.features {
        return Err(malformed());
    }
    // The hash of a row covers all its features and serves to find duplicate rows.
    let mut row_hashes = vec![0u64; group.rows()];
    let mut features = Vec::with_capacity(manifest.features.len());
    for start in (first..names.len()).step_by(AT_A_TIME) {
        let batch = group.read(start..(start + AT_A_TIME).min(names.len()))?;
        for column in batch.columns() {
            let column = column.as_primitive_opt::<Float32Type>().ok_or_else(malformed)?;
            features.push(FeatureSummary::of(column, &mut row_hashes));
        }
    }
    let queries = query_summary(&group.read(0..first)?, &row_hashes).ok_or_else(malformed)?;
    Ok((Description { queries, features }, group.rows() as u64))
}

fn query_summary(batch: &RecordBatch, row_hashes: &[u64]) -> Option<QuerySummary> {
    let ids = batch.column_by_name("query_id")?.as_string_opt::<i32>()?;
    let documents = batch.column_by_name("doc_id")?.as_string_opt::<i32>()?;
    let labels = batch.column_by_name("label")?.as_primitive_opt::<Float32Type>()?;
    let mut summary = QuerySummary::default();
    let mut start = 0;
    while start < ids.len() {
        let mut end = start + 1;
        while end < ids.len() && ids.value(end) == ids.value(start) {
            end += 1;
        }
        summary.add_query(start..end, labels, documents, row_hashes);
        start = end;
    }
    Some(summary)
}
