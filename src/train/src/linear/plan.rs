//! Describes how features are standardised for training, and the points at which sums are computed.
//!
//! Training works with *standardised* features: the normalised features of the model, shifted and scaled to mean 0 and
//! standard deviation 1 over the training rows. The model is the same for any such scaling, but the equations are
//! solved with the least loss of precision. A point has the weights of the standardised features; [`StandardPlan`]
//! converts it to the weights of the normalised features.

use super::rows::FeatureRange;
use super::sums::{FixedSums, SumScale};
use crate::config::LinearLoss;
use planetree_base::symmetric::{entries, entry};
use planetree_model::family::linear::FeatureNormaliser;
use planetree_model::model::{FeatureNormalisation, LinearFunction, LinearTerm};
use serde::{Deserialize, Serialize};

/// A feature with a weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFeature {
    /// Index of the feature.
    pub feature: u32,
    /// The value that replaces missing values.
    pub fill: Option<f32>,
    /// The smallest value; 0 if features are normalised by query.
    pub least: f64,
    /// The largest value; 1 if features are normalised by query.
    pub most: f64,
    /// Whether values are missing and not replaced.
    pub has_missing: bool,
    /// Constants of the normalisation; see [`LinearTerm`].
    pub centre: f64,
    /// Constants of the normalisation; see [`LinearTerm`].
    pub spread: f64,
    /// Mean of the normalised feature over the training rows.
    pub mean: f64,
    /// Standard deviation of the normalised feature over the training rows.
    pub deviation: f64,
}

impl PlannedFeature {
    /// Creates a feature whose range and moments are not known yet.
    pub fn new(feature: u32, fill: Option<f32>) -> Self {
        PlannedFeature {
            feature,
            fill,
            least: 0.0,
            most: 1.0,
            has_missing: false,
            centre: 0.0,
            spread: 1.0,
            mean: 0.0,
            deviation: 1.0,
        }
    }

    /// Sets the range of the feature. Returns false if the feature is constant.
    pub fn set_range(&mut self, range: FeatureRange) -> bool {
        (self.least, self.most) = (f64::from(range.least), f64::from(range.most));
        self.has_missing = range.has_missing;
        self.least < self.most
    }

    /// Returns the normaliser that scales the range of the feature to 0 to 1, or normalises by query.
    pub fn moment_normaliser(&self, normalisation: FeatureNormalisation) -> FeatureNormaliser {
        let scaling = match normalisation {
            FeatureNormalisation::Query => FeatureNormalisation::Query,
            _ => FeatureNormalisation::Minmax,
        };
        FeatureNormaliser::new(scaling, self.fill, self.least, self.most - self.least)
    }

    /// Sets the constants of the normalisation, the mean and the deviation. `moments` are the total weight of the rows
    /// with a value and the sums of the scaled values and of their squares; `weight` is the total weight of all rows.
    /// Returns false if the normalised feature is constant.
    pub fn set_moments(
        &mut self,
        normalisation: FeatureNormalisation,
        moments: [f64; 3],
        weight: f64,
    ) -> bool {
        let [present, sum, squares] = moments;
        /// Features with less variation, relative to their range, are constant within the precision of the sums.
        const LEAST: f64 = 1e-8;
        if present <= 0.0 || weight <= 0.0 {
            return false;
        }
        let (mean, range) = (sum / present, self.most - self.least);
        let deviation = (squares / present - mean * mean).max(0.0).sqrt();
        (self.centre, self.spread) = match normalisation {
            FeatureNormalisation::None | FeatureNormalisation::Query => (0.0, 1.0),
            FeatureNormalisation::Z => (self.least + range * mean, range * deviation),
            FeatureNormalisation::Minmax => (self.least, range),
        };
        // The mean and the deviation of the normalised values that are not missing.
        let (mean, deviation) = match normalisation {
            FeatureNormalisation::None => (self.least + range * mean, range * deviation),
            FeatureNormalisation::Query | FeatureNormalisation::Minmax => (mean, deviation),
            FeatureNormalisation::Z => (0.0, if deviation > 0.0 { 1.0 } else { 0.0 }),
        };
        // Missing values are 0 after normalisation.
        let share = present / weight;
        self.mean = share * mean;
        let variance = share * (deviation * deviation + mean * mean) - self.mean * self.mean;
        self.deviation = if share < 1.0 { variance.max(0.0).sqrt() } else { deviation };
        let unit = if normalisation == FeatureNormalisation::None { range } else { 1.0 };
        self.deviation > LEAST * unit && self.deviation.is_finite()
    }

    /// Returns the largest absolute value of the standardised feature.
    fn most_standardised(&self, normalisation: FeatureNormalisation) -> f64 {
        let normalised = |value: f64| match normalisation {
            FeatureNormalisation::None | FeatureNormalisation::Query => value,
            FeatureNormalisation::Z | FeatureNormalisation::Minmax => (value - self.centre) / self.spread,
        };
        let missing = if self.has_missing { 0.0 } else { self.mean };
        let values = [normalised(self.least), normalised(self.most), missing];
        let largest = values.iter().fold(0f64, |most, value| most.max((value - self.mean).abs()));
        // The factor covers rounding errors.
        1.001 * largest / self.deviation
    }
}

/// How features are standardised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandardPlan {
    /// How the model normalises features.
    pub normalisation: FeatureNormalisation,
    /// The features that are not constant.
    pub features: Vec<PlannedFeature>,
    /// Total weight of the training rows.
    pub weight: f64,
    /// The largest absolute label.
    pub label: f64,
    /// The largest absolute score that training started from.
    pub offset: f64,
    /// Number of features of the model.
    pub all_features: u32,
}

/// A point at which sums are computed: the weights of the standardised features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearPoint {
    /// The score of a row whose features have their means.
    pub intercept: f64,
    /// The weight of each feature of the plan.
    pub weights: Vec<f64>,
}

impl StandardPlan {
    /// Returns whether features are normalised by query.
    pub fn by_query(&self) -> bool {
        self.normalisation == FeatureNormalisation::Query
    }

    /// Returns the largest absolute value of each standardised feature.
    pub fn most_standardised(&self) -> impl Iterator<Item = f64> {
        let normalisation = self.normalisation;
        self.features.iter().map(move |planned| planned.most_standardised(normalisation))
    }

    /// Returns the normalisers of the features.
    pub fn normalisers(&self) -> Vec<FeatureNormaliser> {
        let normaliser = |planned: &PlannedFeature| {
            FeatureNormaliser::new(self.normalisation, planned.fill, planned.centre, planned.spread)
        };
        self.features.iter().map(normaliser).collect()
    }

    /// Returns the scales of the sums: the loss, the gradient, and the lower triangle of the hessian. In the gradient and
    /// the hessian, the intercept precedes the features.
    pub fn scales(&self, loss: &LinearLoss, point: &LinearPoint) -> Vec<SumScale> {
        let most: Vec<f64> = std::iter::once(1.0).chain(self.most_standardised()).collect();
        let terms = point.weights.iter().zip(&most[1..]).map(|(weight, most)| weight.abs() * most);
        let score = self.offset + point.intercept.abs() + terms.sum::<f64>();
        let [most_loss, most_gradient, most_hessian] = loss.bounds(self.label, score);
        let scale = |bound: f64| SumScale::of_bound(self.weight * bound);
        let mut scales = Vec::with_capacity(1 + most.len() + entries(most.len()));
        scales.push(scale(most_loss));
        scales.extend(most.iter().map(|most| scale(most_gradient * most)));
        for row in 0..most.len() {
            scales.extend(most[..=row].iter().map(|other| scale(most_hessian * most[row] * other)));
        }
        scales
    }

    /// Returns the linear function of a point.
    pub fn function(&self, point: &LinearPoint) -> LinearFunction {
        let planned = self.features.iter().zip(&point.weights);
        let weights: Vec<f64> = planned.map(|(planned, weight)| weight / planned.deviation).collect();
        let mut base_score = point.intercept;
        for (planned, weight) in self.features.iter().zip(&weights) {
            base_score -= weight * planned.mean;
        }
        self.weighted(base_score, &weights)
    }

    /// Returns the linear function with these weights of the normalised features. Features that are not in the plan have
    /// weight 0.
    pub fn weighted(&self, base_score: f64, weights: &[f64]) -> LinearFunction {
        let mut terms: Vec<LinearTerm> = (0..self.all_features)
            .map(|feature| LinearTerm {
                feature,
                weight: 0.0,
                centre: 0.0,
                spread: if self.normalisation.has_constants() { 0.0 } else { 1.0 },
                mean: 0.0,
                gain: 0.0,
                cover: self.weight,
            })
            .collect();
        for (planned, &weight) in self.features.iter().zip(weights) {
            let PlannedFeature { centre, spread, mean, deviation, .. } = *planned;
            let term = &mut terms[planned.feature as usize];
            *term =
                LinearTerm { weight, centre, spread, mean, gain: weight.abs() * deviation, ..term.clone() };
        }
        LinearFunction::new(base_score, self.normalisation, terms)
    }

    /// Returns the weights of the normalised features of a linear function that has a term for every feature.
    pub fn weights(&self, function: &LinearFunction) -> Vec<f64> {
        let weight = |planned: &PlannedFeature| function.terms[planned.feature as usize].weight;
        self.features.iter().map(weight).collect()
    }

    /// Returns the point of a linear function that has a term for every feature.
    pub fn point(&self, function: &LinearFunction) -> LinearPoint {
        let mut point = LinearPoint { intercept: function.base_score, weights: Vec::new() };
        for planned in &self.features {
            let weight = function.terms[planned.feature as usize].weight;
            point.intercept += weight * planned.mean;
            point.weights.push(weight * planned.deviation);
        }
        point
    }

    /// Returns the loss, the gradient and the lower triangle of the hessian.
    pub fn values(&self, sums: &FixedSums, scales: &[SumScale]) -> (f64, Vec<f64>, Vec<f64>) {
        let size = self.features.len() + 1;
        let mut values = scales.iter().enumerate().map(|(sum, scale)| sums.value(sum, *scale));
        let loss = values.next().unwrap_or_default();
        let gradient = values.by_ref().take(size).collect();
        let hessian: Vec<f64> = values.collect();
        debug_assert_eq!(hessian.len(), entry(size, 0));
        (loss, gradient, hessian)
    }
}
