//! Permutation importance: how much worse a model gets when one feature's values are dealt out anew
//! among the rows (Breiman 2001).

use super::NOT_FINITE;
use super::columns::known_features;
use super::scorer::Scorer;
use crate::model::{Ensemble, Model};
use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_base::random::Stream;
use planetree_base::storage::{Location, interrupt};
use planetree_data::source::{Rows, Source};
use planetree_metric::{Mean, Metric, Prepared, evaluate};
use rayon::prelude::*;

/// Rows that are looked at: whole partitions, until there are so many.
const ROWS: usize = 1 << 18;
const KEY: u64 = 0x6D72_6550;

/// What dealing out one feature does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutedFeature {
    /// The feature by its place in the model.
    pub feature: u32,
    /// By how much NDCG@10 falls.
    pub ndcg_drop: f64,
    /// By how much the error grows.
    pub rmse_increase: f64,
}

/// The importance of all features that the trees ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct PermutationImportance {
    /// Rows that were looked at.
    pub rows: usize,
    /// NDCG@10 as it is.
    pub ndcg: f64,
    /// The error as it is.
    pub rmse: f64,
    /// The most important first.
    pub features: Vec<PermutedFeature>,
    /// What the user should know of how model and dataset fit.
    pub warnings: Vec<String>,
}

/// The labelled rows and the columns that trees ask for.
struct Sample {
    /// Where they are, as a message begins.
    place: String,
    labels: Vec<f32>,
    bounds: Vec<u32>,
    metrics: Vec<Prepared>,
    columns: Vec<Option<Float32Array>>,
}

/// Deals out each feature once on a labelled dataset; the same draw for the same seed.
pub fn permutation_importance(
    model: &Model,
    data: &Location,
    seed: u64,
    meter: &dyn Meter,
) -> Result<PermutationImportance> {
    if model.ensemble == Ensemble::Wins {
        return Err(Error::usage(
            "a model of pairs has no importance by permutation: it scores differences of documents",
            "leave --permutation out: gain, cover and splits are there",
        ));
    }
    let scorer = Scorer::new(model);
    let used: Vec<u32> = scorer.used_features().collect();
    let source = Source::open(data, Some(&known_features(model, Some(&used))))?;
    let sample = Sample::read(&source, &scorer)?;
    let as_is = sample.evaluate(&scorer, None)?;
    meter.begin(Some(used.len() as u64));
    let mut features = used
        .into_par_iter()
        .map(|feature| {
            interrupt::check()?;
            let dealt = sample.columns[feature as usize].as_ref().map(|column| {
                let mut values = column.values().to_vec();
                let mut stream = Stream::new(&[seed, KEY, u64::from(feature)]);
                for place in (1..values.len()).rev() {
                    values.swap(place, (stream.uniform() * (place + 1) as f64) as usize);
                }
                Float32Array::from(values)
            });
            let now = sample.evaluate(&scorer, Some((feature as usize, dealt.as_ref())))?;
            meter.advance(1);
            Ok(PermutedFeature { feature, ndcg_drop: as_is[0] - now[0], rmse_increase: now[1] - as_is[1] })
        })
        .collect::<Result<Vec<_>>>()?;
    features.sort_by(|a, b| b.rmse_increase.total_cmp(&a.rmse_increase).then(a.feature.cmp(&b.feature)));
    let (rows, warnings) = (sample.labels.len(), source.warnings);
    Ok(PermutationImportance { rows, ndcg: as_is[0], rmse: as_is[1], features, warnings })
}

impl Sample {
    fn read(source: &Source, scorer: &Scorer) -> Result<Self> {
        let used: Vec<u32> = scorer.used_features().collect();
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); used.len()];
        let (mut labels, mut bounds) = (Vec::new(), vec![0u32]);
        for partition in 0..source.partitions() {
            let group = source.open_partition(partition)?;
            let rows: Rows = source.rows(partition, &group)?;
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
        Ok(Sample { place: source.place(), labels, bounds, metrics, columns })
    }

    /// NDCG@10 and the error, with another column in the place of one.
    fn evaluate(&self, scorer: &Scorer, instead: Option<(usize, Option<&Float32Array>)>) -> Result<Vec<f64>> {
        let mut columns: Vec<Option<&Float32Array>> = self.columns.iter().map(Option::as_ref).collect();
        if let Some((feature, column)) = instead {
            columns[feature] = column;
        }
        let mut scores = vec![0.0; self.labels.len()];
        scorer.score_columns(&columns, &mut scores);
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
