//! The bootstrap (Efron 1979): had other queries been asked, drawn from the same source, where would the
//! mean difference be? Queries are drawn from those at hand, again and again.

use super::whole::WholeNumbers;
use planetree_base::random::Stream;
use rayon::prelude::*;

const KEY: u64 = 0x7061_7274_7342;

/// Where the mean difference lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// From here,
    pub low: f64,
    /// to here,
    pub high: f64,
    /// with this share of the drawn means in between,
    pub level: f64,
    /// of so many.
    pub resamples: u64,
}

/// The interval between the percentiles of means over drawn queries; `None` without any differences.
pub fn bootstrap(differences: &[f64], resamples: u64, level: f64, seed: u64) -> Option<Interval> {
    let whole = WholeNumbers::of(differences);
    let count = differences.len() as u64;
    if count == 0 {
        return None;
    }
    let sum = |resample: u64| -> i64 {
        let mut draw = Stream::new(&[seed, KEY, resample]);
        // The high half of the product is a number below `count`.
        let mut place = || ((u128::from(draw.bits()) * u128::from(count)) >> 64) as usize;
        (0..count).map(|_| whole.values[place()]).sum()
    };
    let mut sums: Vec<i64> = (0..resamples).into_par_iter().map(sum).collect();
    sums.par_sort_unstable();
    let mean = |share: f64| percentile(&sums, share, |sum| whole.number(sum) / count as f64);
    let outside = (1.0 - level) / 2.0;
    Some(Interval { low: mean(outside), high: mean(1.0 - outside), level, resamples })
}

/// The value below which a share of the sorted ones is; between two of them on the straight line, as
/// numpy does it.
fn percentile(sorted: &[i64], share: f64, number: impl Fn(i64) -> f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let (low, high) = (number(sorted[below]), number(sorted[(below + 1).min(sorted.len() - 1)]));
    low + (high - low) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, count: usize) -> Vec<f64> {
        let mut draw = Stream::new(&[seed]);
        (0..count).map(|_| draw.normal() * 0.1 + 0.02).collect()
    }

    #[test]
    fn percentiles_lie_on_straight_lines() {
        let sorted = [0, 10, 20, 40];
        let at = |share| percentile(&sorted, share, |value| value as f64);
        assert_eq!([0.0, 0.5, 1.0, 2.0 / 3.0, 0.25].map(at), [0.0, 15.0, 40.0, 20.0, 7.5]);
        assert_eq!(percentile(&[3], 0.7, |value| value as f64), 3.0);
    }

    /// The same draws in floating point, sorted and read off.
    #[test]
    fn an_interval_is_where_the_drawn_means_are() {
        let differences = drawn(2, 40);
        let mut means: Vec<f64> = (0..199)
            .map(|resample| {
                let mut draw = Stream::new(&[9, KEY, resample]);
                let place = |bits: u64| (bits as f64 / 2.0_f64.powi(64) * 40.0) as usize;
                (0..40).map(|_| differences[place(draw.bits())]).sum::<f64>() / 40.0
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let found = bootstrap(&differences, 199, 0.9, 9).unwrap();
        // 198 steps between the first and the last: a twentieth of them is 9.9.
        let (low, high) = (means[9] * 0.1 + means[10] * 0.9, means[188] * 0.9 + means[189] * 0.1);
        assert!((found.low - low).abs() < 1e-12 && (found.high - high).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn many_queries_have_the_interval_of_the_normal_distribution() {
        let differences = drawn(5, 4000);
        let moments = super::super::moments::Moments::of(&differences);
        let error = moments.deviation.unwrap() / (4000.0_f64).sqrt();
        for (level, errors) in [(0.5, 0.6745), (0.9, 1.6449), (0.95, 1.96), (0.99, 2.5758)] {
            let found = bootstrap(&differences, 20_000, level, 3).unwrap();
            assert!((found.low - (moments.mean - errors * error)).abs() < 0.06 * error, "{found:?}");
            assert!((found.high - (moments.mean + errors * error)).abs() < 0.06 * error, "{found:?}");
        }
    }

    #[test]
    fn the_seed_decides_and_threads_do_not() {
        let differences = drawn(6, 100);
        let on = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap(&differences, 1000, 0.95, seed).unwrap())
        };
        assert_eq!(on(1, 1), on(4, 1));
        assert_ne!(on(1, 1), on(1, 2));
    }

    #[test]
    fn one_query_has_no_width() {
        assert_eq!(bootstrap(&[], 10, 0.95, 1), None);
        let one = bootstrap(&[0.125], 10, 0.95, 1).unwrap();
        assert_eq!((one.low, one.high), (0.125, 0.125));
    }
}
