//! How likely each row is to be from another dataset: the score of a forest that was trained on other rows.

use super::SelectRequest;
use super::common::CommonFeatures;
use crate::cv::{assign_parts, check_count, hash_of, hashes};
use crate::forest::{Scratch, train_forest};
use arrow::array::AsArray;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, digest_of, interrupt};
use planetree_data::dataset::{DatasetReader, GroupReader};
use planetree_data::rewrite::{RewriteRequest, RewrittenQuery, RowChange, RowValues, WeightColumn, rewrite};
use planetree_model::predict::scores_of;
use std::collections::HashMap;
use std::ops::Range;

/// The likeness of all rows of a dataset to those of another one.
#[derive(Debug)]
pub struct Likeness {
    /// Estimated probability that the row is from the other dataset, given its features.
    pub values: Vec<f64>,
    /// The fold of each row, counted from 0. Its forest was trained on the other folds and on the other dataset.
    pub folds: Vec<u32>,
    /// For each fold, the rows that its forest was trained on: of the dataset, and of the other dataset.
    pub trained: Vec<[u64; 2]>,
}

/// Trains a forest for every fold of `source`, on the other folds (label 0) and all rows of `like` (label 1), and scores
/// the rows of the fold.
pub(super) fn likeness(
    source: &DatasetReader,
    like: &DatasetReader,
    features: &CommonFeatures,
    request: &SelectRequest<'_>,
    step: &mut dyn FnMut(usize),
) -> Result<Likeness> {
    check_count(source, request.folds)?;
    let scratch = Scratch::new()?;
    let part_of = assign_parts(hashes(source, request.seed)?, request.folds);
    let fold_of = |query: &str| part_of.get(&hash_of(query, request.seed)).copied();
    let mut parts: Vec<DatasetReader> = Vec::with_capacity(request.folds);
    for fold in 0..request.folds {
        let is_selected = |query: &str| fold_of(query) == Some(fold);
        let copy = LabelledCopy { label: 0.0, prefix: "source", is_selected: &is_selected };
        parts.push(copy.write(source, &features.in_source, &scratch.at(&format!("part-{fold}")))?);
    }
    let all = LabelledCopy { label: 1.0, prefix: "like", is_selected: &|_| true };
    let like = all.write(like, &features.in_like, &scratch.at("like"))?;
    let rows = |reader: &DatasetReader| reader.manifest().rows;
    let mut scores = Vec::with_capacity(request.folds);
    let mut trained = Vec::with_capacity(request.folds);
    for fold in 0..request.folds {
        interrupt::check()?;
        step(fold);
        let others = || parts.iter().enumerate().filter(|(other, _)| *other != fold).map(|(_, part)| part);
        let data: Vec<Location> = others().chain([&like]).map(|reader| reader.location().clone()).collect();
        let outcome = train_forest(&scratch, data, request.plan, false)?;
        scores.push(scores_of(&parts[fold], &outcome.model)?.into_iter());
        trained.push([others().map(rows).sum(), rows(&like)]);
    }
    // The parts have the rows of the dataset in their order.
    let folds = row_folds(source, &part_of, request.seed)?;
    let values: Option<Vec<f64>> = folds.iter().map(|fold| scores[*fold as usize].next()).collect();
    let values = values.ok_or_else(|| Error::bug("select", "a fold has fewer rows than its queries"))?;
    Ok(Likeness { values, folds, trained })
}

/// Returns the fold of every row.
fn row_folds(source: &DatasetReader, part_of: &HashMap<u128, usize>, seed: u64) -> Result<Vec<u32>> {
    let mut folds = Vec::with_capacity(source.manifest().rows as usize);
    for id in source.groups() {
        let column = source.open_group(id)?.read(0..1)?;
        let invalid = || {
            Error::place(source.location(), "malformed dataset: unexpected columns", "convert the data again")
        };
        let ids = column.column(0).as_string_opt::<i32>().ok_or_else(invalid)?;
        let mut fold: Option<(&str, u32)> = None;
        for query in ids.iter().flatten() {
            let of_query = match fold {
                Some((last, fold)) if last == query => fold,
                _ => *part_of.get(&hash_of(query, seed)).ok_or_else(invalid)? as u32,
            };
            fold = Some((query, of_query));
            folds.push(of_query);
        }
    }
    Ok(folds)
}

/// Copies the selected queries of a dataset with a label of its own, without weights. Query ids get a prefix, because
/// both datasets may have the same ones.
struct LabelledCopy<'a> {
    label: f32,
    prefix: &'static str,
    is_selected: &'a (dyn Fn(&str) -> bool + Sync),
}

impl LabelledCopy<'_> {
    fn write(&self, reader: &DatasetReader, features: &[usize], target: &Location) -> Result<DatasetReader> {
        let request = RewriteRequest {
            target,
            overwrite: false,
            partition_rows: None,
            features: Some(features),
            new_features: &[],
            weights: WeightColumn::Never,
            origin: digest_of(b"scratch"),
        };
        rewrite(reader, &request, self)?;
        DatasetReader::open(target)
    }
}

impl RowChange for LabelledCopy<'_> {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        Ok(RowValues { labels: Some(vec![self.label; group.rows()]), ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let id = || format!("{}:{query}", self.prefix);
        Ok((self.is_selected)(query).then(|| RewrittenQuery::all(id(), rows)).into_iter().collect())
    }
}
