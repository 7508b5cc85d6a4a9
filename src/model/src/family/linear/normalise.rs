//! Normalises the features of a linear function. Training uses the same code, so that it sees the values that
//! prediction will see.
//!
//! | name | value of a feature |
//! | --- | --- |
//! | `none` | x |
//! | `query` | (x - min) / (max - min) over the documents of the query |
//! | `z` | (x - mean) / deviation over all training rows |
//! | `minmax` | (x - min) / (max - min) over all training rows |
//!
//! If the divisor is 0, that is, if the feature is constant in the query or in the training data, the normalised value
//! is 0. A missing value is first replaced by the model's fill value. If there is none, its normalised value is 0.
//! Infinite values count as missing, as they do when datasets are converted.

use serde::{Deserialize, Serialize};

/// How the features of a linear function are normalised. The module documentation has the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureNormalisation {
    /// The values are not changed.
    #[default]
    None,
    /// The smallest value of a query becomes 0, and the largest becomes 1, as in LETOR's QueryLevelNorm.
    Query,
    /// The training rows have mean 0 and standard deviation 1.
    Z,
    /// The smallest value of the training rows becomes 0, and the largest becomes 1.
    Minmax,
}

impl FeatureNormalisation {
    /// All normalisations.
    pub const ALL: [FeatureNormalisation; 4] = [
        FeatureNormalisation::None,
        FeatureNormalisation::Query,
        FeatureNormalisation::Z,
        FeatureNormalisation::Minmax,
    ];

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FeatureNormalisation::None => "none",
            FeatureNormalisation::Query => "query",
            FeatureNormalisation::Z => "z",
            FeatureNormalisation::Minmax => "minmax",
        }
    }

    /// Returns whether the normalised values depend on constants of the training data.
    pub fn has_constants(self) -> bool {
        matches!(self, FeatureNormalisation::Z | FeatureNormalisation::Minmax)
    }
}

/// Replaces the missing values of one feature and normalises the feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureNormaliser {
    by_query: bool,
    /// The value that replaces missing values before normalisation.
    fill: Option<f64>,
    centre: f64,
    /// 1 / spread, or 0 if the spread is 0.
    factor: f64,
}

impl FeatureNormaliser {
    /// Creates the normaliser of a feature. `centre` is subtracted from the values, which are then divided by `spread`.
    /// Both are used only if the normalisation has constants.
    pub fn new(normalisation: FeatureNormalisation, fill: Option<f32>, centre: f64, spread: f64) -> Self {
        let (centre, factor) = match normalisation {
            FeatureNormalisation::None | FeatureNormalisation::Query => (0.0, 1.0),
            FeatureNormalisation::Z | FeatureNormalisation::Minmax => (centre, factor_of(spread)),
        };
        let by_query = normalisation == FeatureNormalisation::Query;
        FeatureNormaliser { by_query, fill: fill.map(f64::from), centre, factor }
    }

    /// Writes the normalised values of some rows to `normalised`. If features are normalised by query, the rows must be
    /// all documents of one query.
    #[inline(always)]
    pub fn normalise(&self, values: &[f32], normalised: &mut [f64]) {
        match self.by_query {
            true => self.normalise_query(values, normalised),
            false => self.normalise_rows(values, normalised),
        }
    }

    #[inline(always)]
    fn normalise_rows(&self, values: &[f32], normalised: &mut [f64]) {
        // A value that equals the centre becomes 0.
        let fill = self.fill.unwrap_or(self.centre);
        for (value, normalised) in values.iter().zip(normalised) {
            let value = if value.is_finite() { f64::from(*value) } else { fill };
            *normalised = (value - self.centre) * self.factor;
        }
    }

    #[inline(always)]
    fn normalise_query(&self, values: &[f32], normalised: &mut [f64]) {
        let fill = self.fill.unwrap_or(f64::NAN);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for (value, normalised) in values.iter().zip(normalised.iter_mut()) {
            let value = if value.is_finite() { f64::from(*value) } else { fill };
            // Comparisons with NaN are false, so missing values do not count.
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
            *normalised = value;
        }
        // If all values are missing, the spread is negative.
        let factor = factor_of(most - least);
        for normalised in normalised {
            *normalised = if normalised.is_nan() { 0.0 } else { (*normalised - least) * factor };
        }
    }
}

fn factor_of(spread: f64) -> f64 {
    if spread > 0.0 { 1.0 / spread } else { 0.0 }
}
