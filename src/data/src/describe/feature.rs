//! Computes summary statistics of the values of a feature.

use super::distinct::DistinctCounter;
use arrow::array::{Array, Float32Array};
use serde::Serialize;

/// The type of a feature's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureKind {
    /// All values are missing.
    Empty,
    /// All rows have the same value.
    Constant,
    /// All values are 0 or 1.
    Binary,
    /// All values are whole numbers.
    Integer,
    /// Some values are not whole numbers.
    Real,
}

/// Summary statistics of a feature. Summaries of parts of the data can be merged.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureSummary {
    /// Number of rows with a value.
    pub present: u64,
    /// Number of rows without a value.
    pub missing: u64,
    /// Smallest value; infinity if there are no values.
    pub least: f32,
    /// Largest value; negative infinity if there are no values.
    pub most: f32,
    sum: f64,
    whole_numbers: bool,
    distinct: DistinctCounter,
}

impl Default for FeatureSummary {
    fn default() -> Self {
        FeatureSummary {
            present: 0,
            missing: 0,
            least: f32::INFINITY,
            most: f32::NEG_INFINITY,
            sum: 0.0,
            whole_numbers: true,
            distinct: DistinctCounter::default(),
        }
    }
}

impl FeatureSummary {
    /// Summarises a column, and adds each value to the hash of its row.
    pub fn of(column: &Float32Array, row_hashes: &mut [u64]) -> Self {
        let mut summary = FeatureSummary { missing: column.null_count() as u64, ..FeatureSummary::default() };
        summary.present = column.len() as u64 - summary.missing;
        let mut last = None;
        for (row, (value, hash)) in column.values().iter().zip(row_hashes).enumerate() {
            let is_present = column.is_valid(row);
            let cell = if is_present { u64::from(value.to_bits()) } else { 1 << 40 };
            *hash = (hash.rotate_left(7) ^ cell).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if !is_present {
                continue;
            }
            summary.sum += f64::from(*value);
            summary.least = summary.least.min(*value);
            summary.most = summary.most.max(*value);
            summary.whole_numbers &= value.fract() == 0.0;
            // Equal consecutive values, in particular zeros, are common, so only the first of them is passed to the
            // counter of distinct values.
            if last != Some(value.to_bits()) {
                last = Some(value.to_bits());
                summary.distinct.add(value.to_bits());
            }
        }
        summary
    }

    /// Merges the summary of another part of the data into this one.
    pub fn merge(&mut self, other: &FeatureSummary) {
        self.present += other.present;
        self.missing += other.missing;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum += other.sum;
        self.whole_numbers &= other.whole_numbers;
        self.distinct.merge(&other.distinct);
    }

    /// Returns the type of the values.
    pub fn kind(&self) -> FeatureKind {
        match self.distinct.count() {
            (0, _) => FeatureKind::Empty,
            _ if self.is_constant() => FeatureKind::Constant,
            (1 | 2, true) if self.whole_numbers && self.least >= 0.0 && self.most <= 1.0 => {
                FeatureKind::Binary
            }
            _ if self.whole_numbers => FeatureKind::Integer,
            _ => FeatureKind::Real,
        }
    }

    /// Checks whether all rows have the same value.
    pub fn is_constant(&self) -> bool {
        self.least == self.most && self.missing == 0
    }

    /// Returns the fraction of rows without a value.
    pub fn missing_share(&self) -> f64 {
        self.missing as f64 / (self.present + self.missing).max(1) as f64
    }

    /// Returns the mean of the values, or `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.present > 0).then(|| self.sum / self.present as f64)
    }

    /// Returns the number of distinct values, and whether it is exact.
    pub fn distinct(&self) -> (u64, bool) {
        self.distinct.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_the_whole_is_the_merge_of_its_parts() {
        let cells: Vec<Option<f32>> =
            (0..500).map(|row| (row % 7 != 0).then_some((row * 13 % 100) as f32 / 4.0)).collect();
        let of = |cells: &[Option<f32>]| {
            FeatureSummary::of(&Float32Array::from(cells.to_vec()), &mut vec![0; cells.len()])
        };
        let whole = of(&cells);
        let mut merged = FeatureSummary::default();
        for part in cells.chunks(99) {
            merged.merge(&of(part));
        }
        let present: Vec<f32> = cells.iter().flatten().copied().collect();
        assert_eq!((whole.present, whole.missing), (present.len() as u64, 500 - present.len() as u64));
        assert_eq!(
            merged.mean(),
            Some(present.iter().map(|value| f64::from(*value)).sum::<f64>() / present.len() as f64)
        );
        assert_eq!((merged.least, merged.most, merged.kind()), (0.0, 24.75, FeatureKind::Real));
        assert_eq!((merged.present, merged.distinct()), (whole.present, whole.distinct()));
    }

    #[test]
    fn kinds_are_detected() {
        let kind = |values: &[f32]| {
            FeatureSummary::of(&Float32Array::from(values.to_vec()), &mut vec![0; values.len()]).kind()
        };
        assert_eq!(kind(&[0.0, 1.0, 1.0]), FeatureKind::Binary);
        assert_eq!(kind(&[0.0, 2.0]), FeatureKind::Integer);
        assert_eq!(kind(&[0.5, 1.0]), FeatureKind::Real);
        assert_eq!(kind(&[0.5, 0.5]), FeatureKind::Constant);
        assert_eq!(kind(&[]), FeatureKind::Empty);
    }
}
