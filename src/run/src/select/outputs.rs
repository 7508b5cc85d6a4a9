//! Writes the datasets of a selection: the rows that are most like the other dataset, all rows weighted by their density
//! ratio, and the other dataset with the common features.

use super::common::CommonFeatures;
use super::{Likeness, SelectRequest, SelectedDataset};
use crate::cv::{hash_of, hashes};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of};
use planetree_data::dataset::{DatasetReader, GroupReader, Manifest};
use planetree_data::rewrite::{RewriteRequest, RewrittenQuery, RowChange, RowValues, WeightColumn, rewrite};
use std::collections::HashSet;
use std::ops::Range;

/// Name of the dataset that all rows are like, with the common features.
const LIKE: &str = "like";
/// Name of the dataset of all rows with weights.
const WEIGHTED: &str = "weighted";
/// What the ids of queries end with that the other dataset has, too.
const SUFFIX: &str = ":source";

fn share_name(share: f64) -> String {
    format!("top-{share}")
}

/// Returns the names of all datasets that are written.
fn names(request: &SelectRequest<'_>) -> Vec<String> {
    let mut names: Vec<String> = request.shares.iter().map(|share| share_name(*share)).collect();
    names.push(LIKE.to_owned());
    names.extend(request.as_weights.then(|| WEIGHTED.to_owned()));
    names
}

/// Returns the datasets of an earlier selection that this one does not replace, because it has other shares or no
/// weights. They are removed, as they would be taken for those of this selection.
fn older(request: &SelectRequest<'_>) -> Vec<Location> {
    let names = names(request);
    let folders = request.output.contents().map(|(_, folders)| folders).unwrap_or_default(); // no directory yet
    let is_older = |name: &&String| {
        let share = name.strip_prefix("top-").and_then(|share| share.parse::<f64>().ok());
        (share.is_some() || *name == WEIGHTED) && !names.contains(name)
    };
    let found = folders.iter().filter(is_older).map(|name| request.output.join(name));
    found.filter(|location| request.overwrite && Manifest::read(location).is_ok()).collect()
}

/// Checks that no output is an input, and that none exists yet unless it may be replaced.
pub(super) fn check_targets(inputs: [&DatasetReader; 2], request: &SelectRequest<'_>) -> Result<()> {
    let names = names(request);
    let repeated = |(index, name): &(usize, &String)| names[..*index].contains(name);
    if let Some((index, share)) = names.iter().enumerate().find(repeated) {
        return Err(Error::usage(
            format_args!("--share lists {} twice", &share["top-".len()..]),
            format_args!("remove value {} of the list", index + 1),
        ));
    }
    let targets: Vec<Location> = names.iter().map(|name| request.output.join(name)).collect();
    for target in targets.iter().chain(&older(request)) {
        if inputs.iter().any(|input| input.location().is_same_place(target)) {
            return Err(Error::usage(
                format_args!("{target} is both an input and an output"),
                "name another directory with --output",
            ));
        }
    }
    match targets.into_iter().find(|target| !request.overwrite && Manifest::read(target).is_ok()) {
        Some(target) => {
            Err(Error::place(target, "the dataset exists already", "pass --overwrite, or another --output"))
        }
        None => Ok(()),
    }
}

/// Writes all datasets.
pub(super) fn write(
    source: &DatasetReader,
    like: &DatasetReader,
    features: &CommonFeatures,
    (likeness, counts): (&Likeness, &[usize]),
    request: &SelectRequest<'_>,
) -> Result<Vec<SelectedDataset>> {
    older(request).iter().try_for_each(Location::remove_tree)?;
    let known: HashSet<u128> = hashes(like, 0)?.into_iter().collect();
    let origin = |what: &str| -> Result<Digest> {
        let (ours, theirs, folds) = (source.fingerprint()?, like.fingerprint()?, request.folds);
        let forest = request.plan.to_toml();
        Ok(digest_of(format!("{ours} like {theirs} {what} {folds} {} {forest}", request.seed).as_bytes()))
    };
    let weights = if request.as_weights { WeightColumn::Always } else { WeightColumn::AsBefore };
    let written = |name: &str, reader: &DatasetReader, change: &dyn RowChange, kept: &[usize]| {
        let rewritten = RewriteRequest {
            target: &request.output.join(name),
            overwrite: request.overwrite,
            partition_rows: request.partition_rows,
            features: Some(kept),
            new_features: &[],
            weights,
            origin: origin(name)?,
        };
        let manifest = rewrite(reader, &rewritten, change)?;
        let (rows, queries) = (manifest.rows, manifest.queries);
        Ok::<_, Error>(SelectedDataset { name: name.to_owned(), share: None, rows, queries, least: None })
    };
    let mut datasets = vec![written(LIKE, like, &AllRows, &features.in_like)?];
    let order = best_first(&likeness.values);
    for (share, count) in request.shares.iter().zip(counts) {
        let mut chosen = vec![false; order.len()];
        order[..*count].iter().for_each(|row| chosen[*row] = true);
        let change = ChosenRows { chosen: Some(&chosen), weights: None, known: &known };
        let dataset = written(&share_name(*share), source, &change, &features.in_source)?;
        let least = order[..*count].last().map(|row| likeness.values[*row]);
        datasets.push(SelectedDataset { share: Some(*share), least, ..dataset });
    }
    if request.as_weights {
        let weights = density_ratios(likeness);
        let change = ChosenRows { chosen: None, weights: Some((&weights, source)), known: &known };
        datasets.push(written(WEIGHTED, source, &change, &features.in_source)?);
    }
    Ok(datasets)
}

/// Returns all rows, the most likely first. Rows that are equally likely keep their order.
pub(super) fn best_first(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*other].total_cmp(&values[*one]));
    order
}

/// Returns how many times as frequent a row is in the other dataset as in its own, divided by the mean of all rows. A
/// forest is never certain: likeness below 0.001 counts as 0.001, and above 0.999 as 0.999.
fn density_ratios(likeness: &Likeness) -> Vec<f32> {
    const LEAST: f64 = 0.001;
    let ratio = |(value, fold): (&f64, &u32)| {
        let [ours, theirs] = likeness.trained[*fold as usize].map(|rows| rows as f64);
        let value = value.clamp(LEAST, 1.0 - LEAST);
        value / (1.0 - value) * ours / theirs
    };
    let ratios: Vec<f64> = likeness.values.iter().zip(&likeness.folds).map(ratio).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    ratios.iter().map(|ratio| (ratio / mean) as f32).collect()
}

/// Keeps all rows as they are.
struct AllRows;

impl RowChange for AllRows {
    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        Ok(vec![RewrittenQuery::all(query.to_owned(), rows)])
    }
}

/// Keeps the chosen rows.
struct ChosenRows<'a> {
    /// Whether each row is chosen; `None` for all.
    chosen: Option<&'a [bool]>,
    /// What the weight of each row is multiplied by, with the dataset that has the weights.
    weights: Option<(&'a [f32], &'a DatasetReader)>,
    /// Hashes of the queries of the other dataset.
    known: &'a HashSet<u128>,
}

impl RowChange for ChosenRows<'_> {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        let Some((factors, reader)) = self.weights else { return Ok(RowValues::default()) };
        let first = group.first_row() as usize;
        let mut weights = factors[first..first + group.rows()].to_vec();
        if let Some(own) = own_weights(reader, group)? {
            weights.iter_mut().zip(own).for_each(|(weight, own)| *weight *= own);
        }
        Ok(RowValues { weights: Some(weights), ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let is_chosen = |row: u64| self.chosen.is_none_or(|chosen| chosen[row as usize]);
        let kept: Vec<usize> =
            (0..).zip(rows).filter(|(_, row)| is_chosen(*row)).map(|(place, _)| place).collect();
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let suffix = if self.known.contains(&hash_of(query, 0)) { SUFFIX } else { "" };
        Ok(vec![RewrittenQuery { id: format!("{query}{suffix}"), rows: kept }])
    }
}

/// Returns the weights of the rows of a group, if the dataset has any.
fn own_weights(reader: &DatasetReader, group: &GroupReader) -> Result<Option<Vec<f32>>> {
    use arrow::array::AsArray;
    use arrow::datatypes::Float32Type;
    if !reader.manifest().weight {
        return Ok(None);
    }
    /// Index of the column: it follows the query, the document and the label.
    const COLUMN: usize = 3;
    let batch = group.read(COLUMN..COLUMN + 1)?;
    let weights = batch.column(0).as_primitive_opt::<Float32Type>();
    let weights = weights.ok_or_else(|| planetree_data::dataset::unexpected_columns(reader.location()))?;
    Ok(Some(weights.values().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_likely_rows_come_first_and_ties_keep_their_order() {
        assert_eq!(best_first(&[0.25, 0.5, 0.25, 1.0, 0.5]), [3, 1, 4, 0, 2]);
    }

    #[test]
    fn weights_are_density_ratios_with_mean_1() {
        // Twice as many rows of the dataset as of the other: a likeness of 1/3 is a ratio of 1.
        let likeness = Likeness {
            values: vec![1.0 / 3.0, 0.5, 0.2, 1.0],
            folds: vec![0, 0, 1, 1],
            trained: vec![[200, 100], [200, 100]],
        };
        let ratios = density_ratios(&likeness);
        let expected = [1.0, 2.0, 0.5, 0.999 / 0.001 * 2.0];
        let mean = expected.iter().sum::<f64>() / 4.0;
        for (ratio, expected) in ratios.iter().zip(expected) {
            assert!(
                (f64::from(*ratio) - expected / mean).abs() < 1e-6 * expected / mean,
                "{ratio} {expected}"
            );
        }
        assert!((ratios.iter().sum::<f32>() / 4.0 - 1.0).abs() < 1e-6);
    }
}
