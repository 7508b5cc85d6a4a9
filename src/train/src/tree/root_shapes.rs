//! Streaming histograms of roots. The bins of a histogram depend on the values and their counts, not on the targets. So
//! the roots of trees that are grown from the same rows without weights have the same bins, and only the sums of their
//! targets differ. A bin has neighbouring values, so its sum is that of a range of codes.

use super::cell::{Cell, GradientSums, Scale};
use super::centroids::Centroid;
use super::streaming_worker::{Units, WorkerHistogram};
use crate::bins::FeatureBins;
use std::sync::OnceLock;

/// The bins of the root for each feature, once they are known.
#[derive(Debug)]
pub(crate) struct RootShapes(Vec<OnceLock<Option<RootShape>>>);

/// The bins of one feature.
#[derive(Debug, PartialEq)]
struct RootShape {
    bins: Vec<Centroid>,
    /// For each bin, the code after its last one.
    ends: Vec<usize>,
}

impl RootShapes {
    /// Creates shapes that are not known yet.
    pub(crate) fn new(features: usize) -> Self {
        RootShapes(std::iter::repeat_with(OnceLock::new).take(features).collect())
    }

    /// Returns the histogram of a root on one feature, given the sums of all codes.
    pub(super) fn histogram<C: Cell>(
        &self,
        feature: u32,
        most: usize,
        bins: &FeatureBins,
        scale: &Scale,
        cells: &[C],
    ) -> WorkerHistogram {
        let whole = || WorkerHistogram::of_cells(most, bins, scale, cells);
        let Some(shape) = self.0.get(feature as usize) else { return whole() };
        match shape.get() {
            Some(Some(shape)) => shape.with_sums(bins, scale, cells),
            Some(None) => whole(),
            None => {
                let histogram = whole();
                shape.get_or_init(|| RootShape::of(&histogram, bins, scale, cells));
                histogram
            }
        }
    }
}

impl RootShape {
    /// Finds the codes of each bin by its count. Returns `None` if the counts of codes do not add up to those of bins.
    fn of<C: Cell>(
        histogram: &WorkerHistogram,
        bins: &FeatureBins,
        scale: &Scale,
        cells: &[C],
    ) -> Option<Self> {
        let (values, units) = (&cells[..bins.bins()], Units::of(scale));
        let mut ends = Vec::with_capacity(histogram.bins.len());
        let mut end = 0;
        for bin in &histogram.bins {
            let mut count = 0.0;
            while count < bin.count {
                count += units.count(*values.get(end)?);
                end += 1;
            }
            if count != bin.count {
                return None;
            }
            ends.push(end);
        }
        Some(RootShape { bins: histogram.bins.clone(), ends })
    }

    /// Returns the histogram with the sums of other targets.
    fn with_sums<C: Cell>(&self, bins: &FeatureBins, scale: &Scale, cells: &[C]) -> WorkerHistogram {
        let (values, missing) = cells.split_at(bins.bins());
        let units = Units::of(scale);
        let mut start = 0;
        let with_sum = |(bin, end): (&Centroid, &usize)| {
            let mut all = C::default();
            values[start..*end].iter().for_each(|cell| all.add(*cell));
            start = *end;
            // Sums of integers are exact, in whatever order they are added.
            Centroid { sum: units.sum(all), ..*bin }
        };
        let bins = self.bins.iter().zip(&self.ends).map(with_sum).collect();
        let missing = missing.first();
        let missing = missing.map_or_else(GradientSums::default, |cell| cell.sums(scale.count_bits));
        WorkerHistogram { bins, missing }
    }
}
