//! The summary of one feature.

use super::distinct::Distinct;
use arrow::array::{Array, Float32Array};
use serde::Serialize;

/// What kind of numbers a feature has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureKind {
    /// No values.
    Empty,
    /// One value everywhere.
    Constant,
    /// Only 0 and 1.
    Binary,
    /// Whole numbers.
    Integer,
    /// Any numbers.
    Real,
}

/// What is known of a feature's values; summaries of parts of the data merge.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureSummary {
    /// Rows with a value.
    pub present: u64,
    /// Rows without.
    pub missing: u64,
    /// The least value.
    pub least: f32,
    /// The greatest value.
    pub most: f32,
    sum: f64,
    whole_numbers: bool,
    distinct: Distinct,
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
            distinct: Distinct::default(),
        }
    }
}

impl FeatureSummary {
    /// Summarises a column, and mixes each of its cells into the hash of the cell's row.
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
            // Runs of one value are common (zeros above all) and count once.
            if last != Some(value.to_bits()) {
                last = Some(value.to_bits());
                summary.distinct.add(value.to_bits());
            }
        }
        summary
    }

    /// Adds what another part of the data has.
    pub fn merge(&mut self, other: &FeatureSummary) {
        self.present += other.present;
        self.missing += other.missing;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum += other.sum;
        self.whole_numbers &= other.whole_numbers;
        self.distinct.merge(&other.distinct);
    }

    /// What kind of numbers they are.
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

    /// Whether all rows have the same value.
    pub fn is_constant(&self) -> bool {
        self.least == self.most && self.missing == 0
    }

    /// Share of rows without a value.
    pub fn missing_share(&self) -> f64 {
        self.missing as f64 / (self.present + self.missing).max(1) as f64
    }

    /// The mean of the values, if there are any.
    pub fn mean(&self) -> Option<f64> {
        (self.present > 0).then(|| self.sum / self.present as f64)
    }

    /// How many distinct values, and whether that is exact.
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
    fn kinds_are_told_apart() {
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
