//! Wilcoxon's signed-rank test (Wilcoxon 1945). The test ranks the differences by absolute value, and replaces every
//! difference by its rank, so that a few large differences do not dominate. Differences of zero are excluded.
//!
//! The choice between an exact and an approximate p-value follows `scipy.stats.wilcoxon`, so that the results agree.

use super::alternative::Alternative;
use super::tails;

/// Maximum number of queries for an exact p-value if all differences are nonzero and have distinct absolute values.
const MAX_EXACT: usize = 50;
/// Maximum number of queries for an exact p-value if there are differences of zero or with equal absolute values.
const MAX_EXACT_TIED: usize = 13;

/// The result of the signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wilcoxon {
    /// Rank sum of the positive differences. Differences with equal absolute values share their mean rank.
    pub positive: f64,
    /// Rank sum of the negative differences.
    pub negative: f64,
    /// Number of nonzero differences.
    pub count: u64,
    /// The z statistic of the normal approximation; `None` if the p-value is exact.
    pub z: Option<f64>,
    /// The p-value.
    pub p: f64,
}

impl Wilcoxon {
    /// Returns the test statistic W, which is the smaller of the two rank sums.
    pub fn statistic(&self) -> f64 {
        self.positive.min(self.negative)
    }
}

/// Runs the test on the differences of all queries.
pub fn wilcoxon(differences: &[f64], alternative: Alternative) -> Wilcoxon {
    let mut nonzero: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    nonzero.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let ranks = SignedRanks::of(&nonzero);
    let has_ties = ranks.tied > 0.0 || nonzero.len() < differences.len();
    let max_exact = if has_ties { MAX_EXACT_TIED } else { MAX_EXACT };
    let (z, p) = if differences.len() <= max_exact {
        (None, ranks.exact_p(alternative))
    } else {
        let z = ranks.z();
        let p = match alternative {
            _ if nonzero.is_empty() => 1.0,
            Alternative::TwoSided => tails::normal(z),
            Alternative::Greater => tails::normal_above(z),
            Alternative::Less => tails::normal_above(-z),
        };
        (Some(z), p)
    };
    let (positive, negative) = (ranks.positive as f64 / 2.0, ranks.negative as f64 / 2.0);
    Wilcoxon { positive, negative, count: nonzero.len() as u64, z, p }
}

/// Ranks of the differences. Differences with equal absolute values have their mean rank. All ranks are doubled, so
/// that mean ranks are integers.
struct SignedRanks {
    doubled: Vec<u64>,
    positive: u64,
    negative: u64,
    /// Sum of t³ - t over all groups of differences with equal absolute values, where t is the size of the group.
    tied: f64,
}

impl SignedRanks {
    /// Ranks nonzero differences, which must be sorted by absolute value.
    fn of(sorted: &[f64]) -> Self {
        let mut ranks = SignedRanks { doubled: Vec::new(), positive: 0, negative: 0, tied: 0.0 };
        for equal in sorted.chunk_by(|one, other| one.abs() == other.abs()) {
            let before = ranks.doubled.len() as u64;
            let count = equal.len() as u64;
            let doubled = 2 * before + count + 1; // first plus last rank
            let positive = equal.iter().filter(|difference| **difference > 0.0).count() as u64;
            ranks.positive += positive * doubled;
            ranks.negative += (count - positive) * doubled;
            let t = count as f64;
            ranks.tied += t * t * t - t;
            ranks.doubled.extend(equal.iter().map(|_| doubled));
        }
        ranks
    }

    /// Returns the z statistic: the positive rank sum minus its expectation, divided by its standard deviation.
    fn z(&self) -> f64 {
        let n = self.doubled.len() as f64;
        let expected = n * (n + 1.0) / 4.0;
        let variance = (n * (n + 1.0) * (2.0 * n + 1.0) - self.tied / 2.0) / 24.0;
        if variance > 0.0 { (self.positive as f64 / 2.0 - expected) / variance.sqrt() } else { 0.0 }
    }

    /// Returns the exact p-value. The rank sums of both signs have the same distribution, so a positive rank sum that
    /// is at least the observed one is as likely as a sum that is at most the observed negative one.
    fn exact_p(&self, alternative: Alternative) -> f64 {
        let at_most = |sum: u64| share_at_most(&self.doubled, sum);
        match alternative {
            Alternative::TwoSided => (2.0 * at_most(self.positive.min(self.negative))).min(1.0),
            Alternative::Greater => at_most(self.negative),
            Alternative::Less => at_most(self.positive),
        }
    }
}

/// Returns the fraction of sign assignments whose positive rank sum is at most `most`.
fn share_at_most(doubled: &[u64], most: u64) -> f64 {
    let total: u64 = doubled.iter().sum();
    let mut ways = vec![0.0_f64; total as usize + 1];
    ways[0] = 1.0;
    let mut reached = 0;
    for rank in doubled {
        let rank = *rank as usize;
        reached += rank;
        for sum in (rank..=reached).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    // All counts are integers below 2^53, so their floating-point sums are exact.
    let at_most: f64 = ways[..=most as usize].iter().sum();
    libm::ldexp(at_most, -(doubled.len() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;

    /// Computes the rank sums and the p-value by enumerating all sign assignments.
    fn naive(differences: &[f64], alternative: Alternative) -> (f64, f64, f64) {
        let sizes: Vec<f64> =
            differences.iter().map(|value| value.abs()).filter(|size| *size > 0.0).collect();
        let rank = |size: f64| -> f64 {
            let below = sizes.iter().filter(|other| **other < size).count() as f64;
            let equal = sizes.iter().filter(|other| **other == size).count() as f64;
            below + (equal + 1.0) / 2.0
        };
        let side = |sign: f64| -> f64 {
            differences.iter().filter(|value| sign * **value > 0.0).map(|value| rank(value.abs())).sum()
        };
        let (positive, negative) = (side(1.0), side(-1.0));
        let ranks: Vec<f64> = sizes.iter().map(|size| rank(*size)).collect();
        let ways = 1_u64 << ranks.len();
        let at_most = |signs: &u64| {
            let sum: f64 =
                (0..ranks.len()).filter(|index| signs >> index & 1 == 1).map(|index| ranks[index]).sum();
            match alternative {
                Alternative::TwoSided => sum.min(ranks.iter().sum::<f64>() - sum) <= positive.min(negative),
                Alternative::Greater => sum >= positive,
                Alternative::Less => sum <= positive,
            }
        };
        (positive, negative, (0..ways).filter(at_most).count() as f64 / ways as f64)
    }

    #[test]
    fn few_differences_have_an_exact_p_value() {
        let mut draw = Stream::new(&[3]);
        for count in 0..=13 {
            for coarse in [false, true] {
                let value =
                    |_| if coarse { (2.0 * draw.normal() + 0.7).round() } else { draw.normal() + 0.3 };
                let differences: Vec<f64> = (0..count).map(value).collect();
                for alternative in Alternative::ALL {
                    let found = wilcoxon(&differences, alternative);
                    let (positive, negative, p) = naive(&differences, alternative);
                    assert_eq!((found.positive, found.negative, found.z), (positive, negative, None));
                    assert_eq!(found.p, p, "{differences:?} {alternative:?}");
                }
            }
        }
    }

    /// Tests with Darwin's plant heights as analysed by Fisher. The data and the results are from scipy's
    /// documentation.
    #[test]
    fn matches_scipy_on_darwins_plants() {
        let plants =
            [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];
        let test = wilcoxon(&plants, Alternative::TwoSided);
        assert_eq!((test.statistic(), test.negative, test.positive, test.count), (24.0, 24.0, 96.0, 15));
        assert_eq!(test.p, 0.041259765625);
    }

    #[test]
    fn ties_zeros_and_many_queries_use_the_approximation() {
        let ramp: Vec<f64> = (1..=50).map(f64::from).collect();
        assert_eq!(wilcoxon(&ramp, Alternative::TwoSided).z, None);
        let with_zero = [&ramp[..20], &[0.0]].concat();
        let tied = [&ramp[..20], &[7.0]].concat();
        let many: Vec<f64> = (1..=51).map(f64::from).collect();
        for differences in [&with_zero, &tied, &many] {
            assert!(
                wilcoxon(differences, Alternative::TwoSided).z.is_some_and(|z| z > 3.0),
                "{differences:?}"
            );
        }
    }

    #[test]
    fn exact_and_approximate_p_values_agree_at_the_threshold() {
        let mut draw = Stream::new(&[8]);
        for shift in [0.0, 0.2, 0.4] {
            let differences: Vec<f64> = (0..50).map(|_| draw.normal() + shift).collect();
            let exact = wilcoxon(&differences, Alternative::TwoSided);
            let mut sorted = differences.clone();
            sorted.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
            let approximate = tails::normal(SignedRanks::of(&sorted).z());
            assert!((exact.p - approximate).abs() < 0.01, "{} {approximate}", exact.p);
        }
    }

    #[test]
    fn equal_systems_have_a_p_value_of_one() {
        for count in [0, 1, 13, 14, 200] {
            let test = wilcoxon(&vec![0.0; count], Alternative::TwoSided);
            assert_eq!((test.p, test.count, test.statistic()), (1.0, 0, 0.0), "{count}");
        }
    }
}
