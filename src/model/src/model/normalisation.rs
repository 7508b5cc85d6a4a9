//! Normalises the values of a part over the documents of a query, so that parts of different scales can be added. A
//! part is a term of the sum that gives the score of a document.
//!
//! Let `v` be the value of a document in a query with `n` documents. `mean`, `min`, `max` and `deviation` are the mean,
//! minimum, maximum and standard deviation of all values of the query, where the standard deviation divides by `n`. A
//! query is *constant* if all its values are equal. A query with a single document is always constant.
//!
//! | name | value | constant query |
//! | --- | --- | --- |
//! | `none` | v | v |
//! | `unit_variance` | v / deviation | v |
//! | `z` | (v - mean) / deviation | 0 |
//! | `minmax` | (v - min) / (max - min) | 0 |
//! | `rank` | (n - rank) / (n - 1); 1 is the rank of the largest value, and equal values have the mean of their ranks | 0.5 |
//!
//! If a value is not finite, every normalisation except `none` turns all values of the query into NaN. Otherwise an
//! overflow could go unnoticed, because even the rank of an infinite value is finite.

use serde::{Deserialize, Serialize};

/// How the values of a query's documents are normalised before they are multiplied by the weight of the part. The
/// module documentation has the formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalisation {
    /// The values are not changed.
    #[default]
    None,
    /// The values are divided by their standard deviation. The mean is not subtracted.
    UnitVariance,
    /// The values are shifted and scaled to mean 0 and standard deviation 1.
    Z,
    /// The values are shifted and scaled so that the smallest becomes 0 and the largest becomes 1.
    Minmax,
    /// The values are replaced by their ranks, scaled so that the smallest value becomes 0 and the largest becomes 1.
    Rank,
}

impl Normalisation {
    /// All normalisations, in the order of the table in the module documentation.
    pub const ALL: [Normalisation; 5] = [
        Normalisation::None,
        Normalisation::UnitVariance,
        Normalisation::Z,
        Normalisation::Minmax,
        Normalisation::Rank,
    ];

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Normalisation::None => "none",
            Normalisation::UnitVariance => "unit_variance",
            Normalisation::Z => "z",
            Normalisation::Minmax => "minmax",
            Normalisation::Rank => "rank",
        }
    }

    /// Returns the normalisation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|normalisation| normalisation.name() == name)
    }

    /// Normalises the values of one query's documents in place.
    pub fn apply(self, values: &mut [f64]) {
        if self == Normalisation::None {
            return;
        }
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.iter() {
            if !value.is_finite() {
                return values.fill(f64::NAN);
            }
            range = (range.0.min(*value), range.1.max(*value));
        }
        match self {
            Normalisation::None => {}
            Normalisation::UnitVariance if range.0 < range.1 => {
                let deviation = ScaledMoments::of(values, range).deviation * (range.1 - range.0);
                values.iter_mut().for_each(|value| *value /= deviation);
            }
            Normalisation::UnitVariance => {}
            Normalisation::Z | Normalisation::Minmax if range.0 == range.1 => values.fill(0.0),
            Normalisation::Z => {
                let ScaledMoments { mean, deviation } = ScaledMoments::of(values, range);
                values.iter_mut().for_each(|value| *value = (scaled(*value, range) - mean) / deviation);
            }
            Normalisation::Minmax => values.iter_mut().for_each(|value| *value = scaled(*value, range)),
            Normalisation::Rank => to_ranks(values),
        }
    }
}

/// Scales a value so that `least` becomes 0 and `most` becomes 1.
fn scaled(value: f64, (least, most): (f64, f64)) -> f64 {
    (value - least) / (most - least)
}

/// Mean and standard deviation of the values after they are scaled to the range from 0 to 1. Without scaling, the
/// squares of very small differences would underflow to zero.
struct ScaledMoments {
    mean: f64,
    deviation: f64,
}

impl ScaledMoments {
    fn of(values: &[f64], range: (f64, f64)) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| scaled(*value, range)).sum::<f64>() / count;
        let squares = values.iter().map(|value| (scaled(*value, range) - mean).powi(2));
        ScaledMoments { mean, deviation: (squares.sum::<f64>() / count).sqrt() }
    }
}

fn to_ranks(values: &mut [f64]) {
    if values.len() < 2 {
        return values.fill(0.5);
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Adding 0.0 turns -0.0 into 0.0, so that the two compare equal.
    order.sort_by(|one, other| (values[*one] + 0.0).total_cmp(&(values[*other] + 0.0)));
    let last = (values.len() - 1) as f64;
    let mut start = 0;
    while start < order.len() {
        let first = values[order[start]];
        let ties = order[start..].iter().take_while(|row| values[**row] == first).count();
        // Equal values share the mean of the positions `start ..= start + ties - 1`, counted from the smallest value.
        let position = start as f64 + (ties - 1) as f64 / 2.0;
        for row in &order[start..start + ties] {
            values[*row] = position / last;
        }
        start += ties;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Normalises one value of a query with the formulas in the module documentation.
    fn twin(normalisation: Normalisation, values: &[f64], value: f64) -> f64 {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation = (values.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / count).sqrt();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_constant = least == most;
        match normalisation {
            Normalisation::None => value,
            Normalisation::UnitVariance if is_constant => value,
            Normalisation::UnitVariance => value / deviation,
            Normalisation::Z | Normalisation::Minmax if is_constant => 0.0,
            Normalisation::Z => (value - mean) / deviation,
            Normalisation::Minmax => (value - least) / (most - least),
            Normalisation::Rank if is_constant => 0.5,
            Normalisation::Rank => {
                let above = values.iter().filter(|other| **other > value).count() as f64;
                let equal = values.iter().filter(|other| **other == value).count() as f64;
                let rank = above + (equal + 1.0) / 2.0;
                (count - rank) / (count - 1.0)
            }
        }
    }

    proptest! {
        #[test]
        fn every_normalisation_is_its_definition(
            values in prop::collection::vec(prop_oneof![-4..5i32, Just(0)], 1..40), scale in 1e-3..1e3f64,
        ) {
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value) * scale).collect();
            for normalisation in Normalisation::ALL {
                let mut normalised = values.clone();
                normalisation.apply(&mut normalised);
                for (value, found) in values.iter().zip(&normalised) {
                    let expected = twin(normalisation, &values, *value);
                    prop_assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
                        "{normalisation:?}: {found} is not {expected}: {values:?}");
                }
            }
        }
    }

    fn normalised(normalisation: Normalisation, values: &[f64]) -> Vec<f64> {
        let mut values = values.to_vec();
        normalisation.apply(&mut values);
        values
    }

    #[test]
    fn examples_by_hand() {
        let values = [1.0, 3.0, 1.0, 7.0];
        assert_eq!(normalised(Normalisation::None, &values), values);
        assert_eq!(normalised(Normalisation::Minmax, &values), [0.0, 1.0 / 3.0, 0.0, 1.0]);
        assert_eq!(normalised(Normalisation::Rank, &values), [0.5 / 3.0, 2.0 / 3.0, 0.5 / 3.0, 1.0]);
        assert_eq!(normalised(Normalisation::Z, &[2.0, 6.0]), [-1.0, 1.0]);
        assert_eq!(normalised(Normalisation::UnitVariance, &[2.0, 6.0]), [1.0, 3.0]);
        assert_eq!(normalised(Normalisation::Rank, &[0.0, -0.0, 1.0]), [0.25, 0.25, 1.0]);
    }

    #[test]
    fn constant_queries_have_fixed_values() {
        for values in [&[0.1][..], &[0.1; 3], &[-5.0; 7]] {
            for (normalisation, expected) in [
                (Normalisation::None, values[0]),
                (Normalisation::UnitVariance, values[0]),
                (Normalisation::Z, 0.0),
                (Normalisation::Minmax, 0.0),
                (Normalisation::Rank, 0.5),
            ] {
                assert_eq!(normalised(normalisation, values), vec![expected; values.len()]);
            }
        }
        Normalisation::ALL.into_iter().for_each(|normalisation| normalisation.apply(&mut []));
    }

    #[test]
    fn tiny_differences_count_and_overflows_do_not_disappear() {
        assert_eq!(normalised(Normalisation::Z, &[1e-300, 3e-300]), [-1.0, 1.0]);
        for normalisation in Normalisation::ALL.into_iter().skip(1) {
            assert!(normalised(normalisation, &[1.0, f64::INFINITY]).iter().all(|value| value.is_nan()));
        }
    }

    #[test]
    fn names_are_those_of_files() {
        for normalisation in Normalisation::ALL {
            let text = format!("\"{}\"", normalisation.name());
            assert_eq!(serde_json::to_string(&normalisation).unwrap(), text);
        }
    }
}
