//! Computes permutation importance: how much worse a model gets when the values of one feature are permuted among the
//! rows (Breiman 2001).

use super::NOT_FINITE;
use super::columns::known_features;
use super::scorer::Scorer;
use crate::model::Model;
use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_base::random::Stream;
use planetree_base::storage::{Location, interrupt};
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_metric::{Mean, Metric, Prepared, evaluate};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Number of rows to use. Whole partitions are read until there are at least this many rows.
const ROWS: usize = 1 << 18;
const KEY: u64 = 0x6D72_6550;

/// The effect of permuting one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutedFeature {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Decrease of NDCG@10.
    pub ndcg_drop: f64,
    /// Increase of the RMSE.
    pub rmse_increase: f64,
}

/// Permutation importance of all features that the model uses.
#[derive(Debug, Clone, PartialEq)]
pub struct PermutationImportance {
    /// Number of rows used.
    pub rows: usize,
    /// NDCG@10 without permutation.
    pub ndcg: f64,
    /// RMSE without permutation.
    pub rmse: f64,
    /// The features, sorted by decrease of NDCG@10, largest first, then by increase of the RMSE.
    pub features: Vec<PermutedFeature>,
    /// Warnings about features or categories that the dataset or the model lacks.
    pub warnings: Vec<String>,
}

/// The labelled rows on which importance is measured, with the columns that the model uses.
struct PermutationSample {
    /// Where the rows come from, for error messages.
    place: String,
    labels: Vec<f32>,
    bounds: Vec<u32>,
    metrics: Vec<Prepared>,
    columns: Vec<Option<Float32Array>>,
}

/// Measures the importance of every feature that the model uses, by permuting its values once on a labelled dataset.
/// The same seed gives the same permutations.
pub fn permutation_importance(
    model: &Model,
    data: &Location,
    seed: u64,
    meter: &dyn Meter,
) -> Result<PermutationImportance> {
    let scorer = Scorer::new(model)?;
    let used: Vec<u32> = scorer.used_features().collect();
    let source = LabelledData::open(data, Some(&known_features(model, Some(&used))))?;
    let sample = PermutationSample::read(&source, &scorer)?;
    let unpermuted = sample.evaluate(&scorer, None)?;
    meter.begin(Some(used.len() as u64));
    let mut features = used
        .into_par_iter()
        .map(|feature| {
            interrupt::check()?;
            let permuted = sample.columns[feature as usize].as_ref().map(|column| {
                let mut values = column.values().to_vec();
                let mut stream = Stream::new(&[seed, KEY, u64::from(feature)]);
                for row in (1..values.len()).rev() {
                    values.swap(row, (stream.uniform() * (row + 1) as f64) as usize);
                }
                Float32Array::from(values)
            });
            let metrics = sample.evaluate(&scorer, Some((feature as usize, permuted.as_ref())))?;
            meter.advance(1);
            Ok(PermutedFeature {
                feature,
                ndcg_drop: unpermuted[0] - metrics[0],
                rmse_increase: metrics[1] - unpermuted[1],
            })
        })
        .collect::<Result<Vec<_>>>()?;
    features.sort_by(by_importance);
    let (rows, warnings) = (sample.labels.len(), source.warnings);
    Ok(PermutationImportance { rows, ndcg: unpermuted[0], rmse: unpermuted[1], features, warnings })
}

/// Orders the most important feature first. The RMSE decides only between features with the same effect on the ranking:
/// scores of ranking objectives do not estimate labels, so permuting an important feature can even decrease it.
fn by_importance(one: &PermutedFeature, other: &PermutedFeature) -> Ordering {
    let by_rmse = || other.rmse_increase.total_cmp(&one.rmse_increase);
    let by_ndcg = other.ndcg_drop.total_cmp(&one.ndcg_drop);
    by_ndcg.then_with(by_rmse).then(one.feature.cmp(&other.feature))
}

impl PermutationSample {
    fn read(source: &LabelledData, scorer: &Scorer) -> Result<Self> {
        let used: Vec<u32> = scorer.used_features().collect();
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); used.len()];
        let (mut labels, mut bounds) = (Vec::new(), vec![0u32]);
        for partition in 0..source.partitions() {
            let group = source.open_partition(partition)?;
            let rows: LabelledRows = source.rows(partition, &group)?;
            let before = labels.len() as u32;
            bounds.extend(rows.query_bounds[1..].iter().map(|bound| before + bound));
            labels.extend(rows.labels);
            values.par_iter_mut().zip(&used).try_for_each(|(values, feature)| {
                values.extend(source.values(&group, *feature as usize)?);
                Ok(())
            })?;
            if labels.len() >= ROWS {
                break;
            }
        }
        let mut columns = vec![None; source.features()];
        for (feature, values) in used.into_iter().zip(values) {
            columns[feature as usize] = Some(Float32Array::from(values));
        }
        let metrics = [Metric::Ndcg(Some(10)), Metric::Rmse].map(|metric| metric.prepare(&labels, &bounds));
        let metrics = metrics.into_iter().collect::<Result<_>>()?;
        Ok(PermutationSample { place: source.place(), labels, bounds, metrics, columns })
    }

    /// Returns NDCG@10 and RMSE. If `replacement` is given, the column of that feature is replaced first.
    fn evaluate(
        &self,
        scorer: &Scorer,
        replacement: Option<(usize, Option<&Float32Array>)>,
    ) -> Result<Vec<f64>> {
        let mut columns: Vec<Option<&Float32Array>> = self.columns.iter().map(Option::as_ref).collect();
        if let Some((feature, column)) = replacement {
            columns[feature] = column;
        }
        let mut scores = vec![0.0; self.labels.len()];
        let bounds: Vec<usize> = self.bounds.iter().map(|bound| *bound as usize).collect();
        scorer.score_queries(&columns, &bounds, &mut scores)?;
        if let Some(row) = scores.iter().position(|score| !score.is_finite()) {
            return Err(Error::place(
                &self.place,
                format_args!("the score of row {} {NOT_FINITE}", row + 1),
                "check the leaf values of the model, or train it with a lower learning_rate",
            ));
        }
        Ok(evaluate(&self.metrics, &self.labels, &scores, &self.bounds).iter().map(Mean::value).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranking_decides_about_importance() {
        let feature =
            |feature, ndcg_drop, rmse_increase| PermutedFeature { feature, ndcg_drop, rmse_increase };
        let mut features =
            [feature(0, 0.0, 0.3), feature(1, -0.1, 0.5), feature(2, 0.4, -0.7), feature(3, 0.0, 0.3)];
        features.sort_by(by_importance);
        assert_eq!(features.map(|feature| feature.feature), [2, 0, 3, 1]);
        let mut features = [feature(0, 0.0, 0.1), feature(1, 0.0, 0.2)];
        features.sort_by(by_importance);
        assert_eq!(features.map(|feature| feature.feature), [1, 0]);
    }
}
