//! Normalises the features of linear functions, nets and trees. Training uses the same code, so that it sees the values
//! that prediction will see.
//!
//! | name | value of a feature |
//! | --- | --- |
//! | `none` | x |
//! | `query` | (x - min) / (max - min) over the documents of the query |
//! | `z` | (x - mean) / deviation over all training rows |
//! | `minmax` | (x - min) / (max - min) over all training rows |
//!
//! If the divisor is 0, that is, if the feature is constant in the query or in the training data, the normalised value
//! is 0. A missing value is first replaced by the model's fill value. If there is none, its normalised value is 0; for
//! trees, it remains missing. Infinite values count as missing, as they do when datasets are converted.
//!
//! Trees are normalised by query only: `z` and `minmax` keep the order of all values, so the splits are the same without
//! them.

use crate::family::Comparison;
use serde::{Deserialize, Serialize};

/// How the features of a part are normalised. The module documentation has the formulas.
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

    /// Returns why normalised values depend on the other documents of a query, or `None` if they do not.
    pub(crate) fn comparison(self) -> Option<Comparison> {
        (self == FeatureNormalisation::Query).then_some(Comparison {
            reason: "normalises features over the documents of a query",
            remedy: "use `planetree predict` or score('model', 'dataset'), or train with normalise_features=z",
        })
    }

    /// Returns whether values are not changed.
    pub(crate) fn is_none(&self) -> bool {
        *self == FeatureNormalisation::None
    }

    /// Returns whether the normalised values depend on constants of the training data.
    pub fn has_constants(self) -> bool {
        matches!(self, FeatureNormalisation::Z | FeatureNormalisation::Minmax)
    }
}

/// Number of values of which the range is found at a time.
const LANES: usize = 8;

/// How the values of some rows are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Subtracted from values.
    pub centre: f64,
    /// Multiplies the differences.
    pub factor: f64,
    /// The normalised value of missing values.
    pub missing: f64,
}

impl Scaling {
    /// Returns the normalised value of a value.
    #[inline(always)]
    pub fn of(&self, value: f32) -> f64 {
        if value.is_finite() { (f64::from(value) - self.centre) * self.factor } else { self.missing }
    }

    /// Returns the scaling to normalised values that are multiplied by a number.
    #[inline(always)]
    pub fn times(self, number: f64) -> Self {
        Scaling { centre: self.centre, factor: self.factor * number, missing: self.missing * number }
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

    /// Creates the normaliser of a feature by query.
    pub fn by_query(fill: Option<f32>) -> Self {
        FeatureNormaliser::new(FeatureNormalisation::Query, fill, 0.0, 0.0)
    }

    /// Writes the normalised values of some rows to `normalised`. If features are normalised by query, the rows must be
    /// all documents of one query.
    #[inline(always)]
    pub fn normalise(&self, values: &[f32], normalised: &mut [f64]) {
        let scaling = self.scaling(values);
        for (value, normalised) in values.iter().zip(normalised) {
            *normalised = scaling.of(*value);
        }
    }

    /// Replaces the values of some rows by their normalised values, for trees: missing values without a fill value become
    /// NaN. If features are normalised by query, the rows must be all documents of one query.
    pub fn replace(&self, values: &mut [f32]) {
        let scaling = self.scaling(values);
        let missing = if self.fill.is_some() { scaling.missing as f32 } else { f32::NAN };
        for value in values {
            *value = if value.is_finite() { scaling.of(*value) as f32 } else { missing };
        }
    }

    /// Returns how the values of some rows are scaled. If features are normalised by query, the rows must be all
    /// documents of one query.
    #[inline(always)]
    pub fn scaling(&self, values: &[f32]) -> Scaling {
        let (centre, factor) = match self.by_query {
            true => self.range_of(values),
            false => (self.centre, self.factor),
        };
        // A missing value that is not replaced becomes 0.
        let missing = self.fill.map_or(0.0, |fill| (fill - centre) * factor);
        Scaling { centre, factor, missing }
    }

    /// Returns the smallest value of a query, and 1 / (largest value - smallest value) or 0.
    #[inline(always)]
    fn range_of(&self, values: &[f32]) -> (f64, f64) {
        let (mut least, mut most) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        let mut has_missing = false;
        let mut add = |lane: usize, value: f32| {
            // Infinite values count as missing. Comparisons with them and with NaN are false.
            let is_value = value.is_finite();
            has_missing |= !is_value;
            least[lane] = if is_value && value < least[lane] { value } else { least[lane] };
            most[lane] = if is_value && value > most[lane] { value } else { most[lane] };
        };
        let chunks = values.chunks_exact(LANES);
        chunks.remainder().iter().enumerate().for_each(|(lane, value)| add(lane, *value));
        chunks.for_each(|chunk| chunk.iter().enumerate().for_each(|(lane, value)| add(lane, *value)));
        let (mut least, mut most) = (
            f64::from(least.into_iter().fold(f32::INFINITY, f32::min)),
            f64::from(most.into_iter().fold(f32::NEG_INFINITY, f32::max)),
        );
        if let Some(fill) = self.fill.filter(|_| has_missing) {
            (least, most) = (least.min(fill), most.max(fill));
        }
        // If all values are missing and not replaced, there is no range.
        if least <= most { (least, factor_of(most - least)) } else { (0.0, 0.0) }
    }
}

fn factor_of(spread: f64) -> f64 {
    if spread > 0.0 { 1.0 / spread } else { 0.0 }
}
