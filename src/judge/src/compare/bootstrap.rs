//! Computes a confidence interval for the mean difference between two systems with the percentile bootstrap (Efron
//! 1979): the queries are resampled with replacement many times, and the interval lies between two percentiles of the
//! resampled means.

use super::scaled::ScaledIntegers;
use planetree_base::random::Stream;
use rayon::prelude::*;

const KEY: u64 = 0x7061_7274_7342;

/// A confidence interval for the mean difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Confidence level: the fraction of resampled means that lie within the interval.
    pub level: f64,
    /// Number of resamples.
    pub resamples: u64,
}

/// Returns the interval between two percentiles of the resampled means; `None` if there are no differences.
pub fn bootstrap(differences: &[f64], resamples: u64, level: f64, seed: u64) -> Option<ConfidenceInterval> {
    let scaled = ScaledIntegers::of(differences);
    let count = differences.len() as u64;
    if count == 0 {
        return None;
    }
    let sum = |resample: u64| -> i64 {
        let mut draw = Stream::new(&[seed, KEY, resample]);
        // The high half of the product is a random index below `count`.
        let mut index = || ((u128::from(draw.bits()) * u128::from(count)) >> 64) as usize;
        (0..count).map(|_| scaled.values[index()]).sum()
    };
    let mut sums: Vec<i64> = (0..resamples).into_par_iter().map(sum).collect();
    sums.par_sort_unstable();
    let mean = |share: f64| percentile(&sums, share, |sum| scaled.number(sum) / count as f64);
    let outside = (1.0 - level) / 2.0;
    Some(ConfidenceInterval { low: mean(outside), high: mean(1.0 - outside), level, resamples })
}

/// Returns a percentile of sorted values, linearly interpolated as numpy does by default.
fn percentile(sorted: &[i64], share: f64, number: impl Fn(i64) -> f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, fraction) = (position.floor() as usize, position.fract());
    let (low, high) = (number(sorted[below]), number(sorted[(below + 1).min(sorted.len() - 1)]));
    low + (high - low) * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_differences(seed: u64, count: usize) -> Vec<f64> {
        let mut draw = Stream::new(&[seed]);
        (0..count).map(|_| draw.normal() * 0.1 + 0.02).collect()
    }

    #[test]
    fn percentiles_are_interpolated() {
        let sorted = [0, 10, 20, 40];
        let at = |share| percentile(&sorted, share, |value| value as f64);
        assert_eq!([0.0, 0.5, 1.0, 2.0 / 3.0, 0.25].map(at), [0.0, 15.0, 40.0, 20.0, 7.5]);
        assert_eq!(percentile(&[3], 0.7, |value| value as f64), 3.0);
    }

    /// Checks the interval against resampled means that are computed in floating point from the same random draws.
    #[test]
    fn an_interval_matches_the_resampled_means() {
        let differences = random_differences(2, 40);
        let mut means: Vec<f64> = (0..199)
            .map(|resample| {
                let mut draw = Stream::new(&[9, KEY, resample]);
                let index = |bits: u64| (bits as f64 / 2.0_f64.powi(64) * 40.0) as usize;
                (0..40).map(|_| differences[index(draw.bits())]).sum::<f64>() / 40.0
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let found = bootstrap(&differences, 199, 0.9, 9).unwrap();
        // From the first to the last of 199 means there are 198 steps, and 5 % of 198 is 9.9.
        let (low, high) = (means[9] * 0.1 + means[10] * 0.9, means[188] * 0.9 + means[189] * 0.1);
        assert!((found.low - low).abs() < 1e-12 && (found.high - high).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn many_queries_give_the_interval_of_the_normal_distribution() {
        let differences = random_differences(5, 4000);
        let moments = super::super::moments::Moments::of(&differences);
        let error = moments.deviation.unwrap() / (4000.0_f64).sqrt();
        for (level, errors) in [(0.5, 0.6745), (0.9, 1.6449), (0.95, 1.96), (0.99, 2.5758)] {
            let found = bootstrap(&differences, 20_000, level, 3).unwrap();
            assert!((found.low - (moments.mean - errors * error)).abs() < 0.06 * error, "{found:?}");
            assert!((found.high - (moments.mean + errors * error)).abs() < 0.06 * error, "{found:?}");
        }
    }

    #[test]
    fn the_result_depends_on_the_seed_and_not_on_threads() {
        let differences = random_differences(6, 100);
        let on = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap(&differences, 1000, 0.95, seed).unwrap())
        };
        assert_eq!(on(1, 1), on(4, 1));
        assert_ne!(on(1, 1), on(1, 2));
    }

    #[test]
    fn the_interval_of_one_query_has_no_width() {
        assert_eq!(bootstrap(&[], 10, 0.95, 1), None);
        let one = bootstrap(&[0.125], 10, 0.95, 1).unwrap();
        assert_eq!((one.low, one.high), (0.125, 0.125));
    }
}
