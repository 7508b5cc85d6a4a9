//! One sweep over all features with missing values.

use super::cells::{CellSummary, feature_values};
use super::copies::{FilledCells, FilledRows, LabelRange, LabelledByFeature};
use super::{FilledFeature, ImputeRequest, ImputeStep, no_value};
use crate::forest::{Scratch, train_forest};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, digest_of, interrupt};
use planetree_data::dataset::DatasetReader;
use planetree_data::rewrite::{RewriteRequest, WeightColumn, rewrite};
use planetree_model::model::Model;
use planetree_model::predict::scores_of;

/// A dataset whose missing values are filled.
struct Side<'a> {
    reader: &'a DatasetReader,
    summaries: Vec<CellSummary>,
    /// The cells of each imputed feature, in the same order in all datasets.
    cells: Vec<FilledCells>,
}

/// The state of an imputation.
pub(super) struct Imputation<'a> {
    /// The dataset to fill.
    target: Side<'a>,
    /// The dataset that forests learn from; `None` if it is the dataset to fill.
    learned: Option<Side<'a>>,
    /// What is known of each imputed feature.
    features: Vec<FilledFeature>,
    request: &'a ImputeRequest<'a>,
    scratch: Scratch,
}

/// What a forest predicts for a feature.
struct Prediction {
    /// For each dataset, the values of its missing cells.
    values: Vec<Vec<f32>>,
    error: Option<f64>,
    r2: Option<f64>,
}

impl<'a> Imputation<'a> {
    /// Finds the features to fill: those with a missing value in any of the datasets, in the order of the dataset.
    pub(super) fn new(
        target: (&'a DatasetReader, Vec<CellSummary>),
        learned: Option<(&'a DatasetReader, Vec<CellSummary>)>,
        request: &'a ImputeRequest<'a>,
    ) -> Result<Self> {
        let side = |(reader, summaries): (&'a DatasetReader, Vec<CellSummary>)| Side {
            reader,
            summaries,
            cells: Vec::new(),
        };
        let (mut target, mut learned) = (side(target), learned.map(side));
        let mut features = Vec::new();
        for (index, name) in target.reader.manifest().features.iter().enumerate() {
            let teacher = learned.as_ref().map(|side| side.feature(name)).transpose()?.unwrap_or(index);
            let teaching = learned.as_ref().unwrap_or(&target);
            let summary = &teaching.summaries[teacher];
            let is_complete = target.summaries[index].missing.is_empty() && summary.missing.is_empty();
            if is_complete || summary.categorical || target.summaries[index].categorical {
                continue;
            }
            if summary.present == 0 {
                return Err(no_value(teaching.reader, name));
            }
            features.push(FilledFeature {
                name: name.clone(),
                present: summary.present,
                missing: target.summaries[index].missing.len() as u64,
                mean: summary.mean,
                filled_mean: None,
                error: None,
                r2: None,
            });
            target.add(index);
            if let Some(learned) = &mut learned {
                learned.add(teacher);
            }
        }
        Ok(Imputation { target, learned, features, request, scratch: Scratch::new()? })
    }

    /// Returns whether any value is missing.
    pub(super) fn has_missing(&self) -> bool {
        !self.features.is_empty()
    }

    /// Returns the cells of the dataset to fill.
    pub(super) fn target_cells(&self) -> &[FilledCells] {
        &self.target.cells
    }

    /// Returns the features that were filled.
    pub(super) fn filled_features(&self) -> Vec<FilledFeature> {
        let filled = self.features.iter().zip(&self.target.cells);
        let filled = filled.map(|(feature, cells)| {
            let sum: f64 = cells.values.iter().map(|value| f64::from(*value)).sum();
            let filled_mean = (!cells.values.is_empty()).then(|| sum / cells.values.len() as f64);
            FilledFeature { filled_mean, ..feature.clone() }
        });
        filled.filter(|feature| feature.missing > 0).collect()
    }

    /// Fills every feature once. Returns the largest change of a feature, in standard deviations; infinite in the first
    /// sweep.
    pub(super) fn sweep(&mut self, sweep: u32, progress: &mut dyn FnMut(&ImputeStep<'_>)) -> Result<f64> {
        let mut largest: f64 = 0.0;
        for place in 0..self.features.len() {
            interrupt::check()?;
            let Prediction { values, error, r2 } = self.predict(place)?;
            let teaching = self.teaching();
            let deviation = teaching.summaries[teaching.cells[place].feature].deviation;
            let (mut squares, mut count) = (0.0, 0usize);
            for (side, values) in self.sides_mut().zip(values) {
                let cells = &mut side.cells[place];
                let moved =
                    cells.values.iter().zip(&values).map(|(old, new)| f64::from(*new) - f64::from(*old));
                squares += moved.map(|moved| moved * moved).sum::<f64>();
                count += values.len();
                cells.values = values;
            }
            let features = self.features.len();
            let feature = &mut self.features[place];
            (feature.error, feature.r2) = (error, r2);
            let change = match sweep {
                1 => f64::INFINITY,
                _ if deviation == 0.0 => 0.0,
                _ => (squares / count.max(1) as f64).sqrt() / deviation,
            };
            largest = largest.max(change);
            progress(&ImputeStep {
                sweep,
                feature: &feature.name,
                filled: place + 1,
                features,
                change: largest,
            });
        }
        Ok(largest)
    }

    fn teaching(&self) -> &Side<'a> {
        self.learned.as_ref().unwrap_or(&self.target)
    }

    fn sides(&self) -> impl Iterator<Item = &Side<'a>> {
        [Some(&self.target), self.learned.as_ref()].into_iter().flatten()
    }

    fn sides_mut(&mut self) -> impl Iterator<Item = &mut Side<'a>> {
        [Some(&mut self.target), self.learned.as_mut()].into_iter().flatten()
    }

    /// Learns a feature and predicts its missing values.
    fn predict(&self, place: usize) -> Result<Prediction> {
        let teaching = self.teaching();
        let cells = &teaching.cells[place];
        let summary = &teaching.summaries[cells.feature];
        let known = self.known_features(place);
        let constant = |value: f64| Prediction {
            values: self.sides().map(|side| vec![value as f32; side.cells[place].rows.len()]).collect(),
            error: Some(summary.deviation),
            r2: (!summary.is_constant()).then_some(0.0),
        };
        if known.is_empty() || summary.is_constant() {
            return Ok(constant(summary.mean));
        }
        let range = LabelRange { least: summary.least, most: summary.most };
        let data = self.scratch.at("learn");
        teaching.copy(place, (&known, range), false, &data)?;
        let outcome = match train_forest(&self.scratch, vec![data], self.request.plan, true) {
            // Too few rows have a value of the feature.
            Err(Error::Untrainable(_)) => return Ok(constant(summary.mean)),
            outcome => outcome?,
        };
        let error = out_of_bag_error(teaching, place, range, outcome.out_of_bag.as_deref())?;
        let values = self.sides().map(|side| self.predict_side(side, (place, &known), range, &outcome.model));
        Ok(Prediction {
            values: values.collect::<Result<_>>()?,
            error,
            r2: error.map(|error| 1.0 - (error / summary.deviation).powi(2)),
        })
    }

    fn predict_side(
        &self,
        side: &Side<'_>,
        (place, known): (usize, &[String]),
        range: LabelRange,
        model: &Model,
    ) -> Result<Vec<f32>> {
        if side.cells[place].rows.is_empty() {
            return Ok(Vec::new());
        }
        let data = self.scratch.at("predict");
        side.copy(place, (known, range), true, &data)?;
        let scores = scores_of(&DatasetReader::open(&data)?, model)?;
        Ok(scores.into_iter().map(|score| range.value(score) as f32).collect())
    }

    /// Returns the names of the features that a forest may use: those that vary and have a value in all rows of all
    /// datasets, their own or filled.
    fn known_features(&self, place: usize) -> Vec<String> {
        let teaching = self.teaching();
        let names = &teaching.reader.manifest().features;
        let is_known = |side: &Side<'_>, name: &String| {
            side.feature(name).is_ok_and(|feature| {
                let cells = side.cells.iter().find(|cells| cells.feature == feature);
                side.summaries[feature].missing.is_empty()
                    || cells.is_some_and(|cells| !cells.values.is_empty())
            })
        };
        let own = teaching.cells[place].feature;
        let usable = names.iter().enumerate().filter(|(index, name)| {
            *index != own
                && !teaching.summaries[*index].is_constant()
                && self.sides().all(|side| is_known(side, name))
        });
        usable.map(|(_, name)| name.clone()).collect()
    }
}

impl Side<'_> {
    /// Returns the index of a feature.
    fn feature(&self, name: &str) -> Result<usize> {
        self.reader.manifest().features.iter().position(|other| other == name).ok_or_else(|| {
            Error::place(
                self.reader.location(),
                format_args!("there is no feature {name}, so its values cannot be learned"),
                "pass a dataset with the same features to --like",
            )
        })
    }

    fn add(&mut self, feature: usize) {
        let rows = self.summaries[feature].missing.clone();
        self.cells.push(FilledCells { feature, rows, values: Vec::new() });
    }

    /// Writes the rows with or without a feature, with the known features.
    fn copy(
        &self,
        place: usize,
        (known, range): (&[String], LabelRange),
        missing: bool,
        target: &Location,
    ) -> Result<()> {
        let features = known.iter().map(|name| self.feature(name)).collect::<Result<Vec<_>>>()?;
        let request = RewriteRequest {
            target,
            overwrite: true,
            partition_rows: None,
            features: Some(&features),
            new_features: &[],
            weights: WeightColumn::Never,
            origin: digest_of(b"scratch"),
        };
        let (filled, cells) = (FilledRows { cells: &self.cells }, &self.cells[place]);
        let change = LabelledByFeature { reader: self.reader, filled, cells, missing, range };
        rewrite(self.reader, &request, &change).map(drop)
    }
}

/// Returns the root mean square error of out-of-bag predictions. `None` if every row is in the samples of all trees.
fn out_of_bag_error(
    side: &Side<'_>,
    place: usize,
    range: LabelRange,
    predictions: Option<&[f64]>,
) -> Result<Option<f64>> {
    let mut predictions = predictions.unwrap_or_default().iter();
    let (mut squares, mut count) = (0.0, 0u64);
    for id in side.reader.groups() {
        let group = side.reader.open_group(id)?;
        let values = feature_values(side.reader, &group, side.cells[place].feature)?;
        for value in values.into_iter().filter(|value| !value.is_nan()) {
            // A row in the samples of all trees has no out-of-bag prediction.
            if let Some(prediction) = predictions.next().filter(|prediction| !prediction.is_nan()) {
                squares += (range.value(*prediction) - f64::from(value)).powi(2);
                count += 1;
            }
        }
    }
    Ok((count > 0).then(|| (squares / count as f64).sqrt()))
}
