//! Wilcoxon's signed-rank test (Wilcoxon 1945): differences count by the rank of their size, so that a
//! few large ones do not outweigh the many. Queries without a difference are left out.
//!
//! When the probability is counted and when it is approximated follows `scipy.stats.wilcoxon`, so that
//! the numbers are the same.

use super::tails;

/// So many queries or fewer: counted, if no two differences are of the same size and none is zero.
const MOST_COUNTED: usize = 50;
/// So many or fewer: counted in any case.
const MOST_COUNTED_TIED: usize = 13;

/// What the test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wilcoxon {
    /// The sum of the ranks of positive differences. Equal sizes share their mean rank.
    pub positive: f64,
    /// The sum of the ranks of negative differences.
    pub negative: f64,
    /// How many differences are not zero.
    pub count: u64,
    /// How far `positive` is above what is expected, in standard deviations; `None` if counted.
    pub z: Option<f64>,
    /// The probability of rank sums at least as unequal by chance.
    pub p: f64,
}

impl Wilcoxon {
    /// What tables list: the smaller of the two sums.
    pub fn statistic(&self) -> f64 {
        self.positive.min(self.negative)
    }
}

/// Takes the test.
pub fn wilcoxon(differences: &[f64]) -> Wilcoxon {
    let mut changed: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    changed.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let ranks = Ranks::of(&changed);
    let has_ties = ranks.tied > 0.0 || changed.len() < differences.len();
    let most = if has_ties { MOST_COUNTED_TIED } else { MOST_COUNTED };
    let (z, p) = if differences.len() <= most {
        (None, counted(&ranks.doubled, ranks.positive.min(ranks.negative)))
    } else {
        let z = ranks.z();
        (Some(z), if changed.is_empty() { 1.0 } else { tails::normal(z) })
    };
    let (positive, negative) = (ranks.positive as f64 / 2.0, ranks.negative as f64 / 2.0);
    Wilcoxon { positive, negative, count: changed.len() as u64, z, p }
}

/// The ranks of differences, times two: mean ranks of equal sizes are whole numbers then.
struct Ranks {
    doubled: Vec<u64>,
    positive: u64,
    negative: u64,
    /// The sum of t³ - t over the numbers t of equal sizes.
    tied: f64,
}

impl Ranks {
    /// Of differences in ascending order of their sizes.
    fn of(sorted: &[f64]) -> Self {
        let mut ranks = Ranks { doubled: Vec::new(), positive: 0, negative: 0, tied: 0.0 };
        for equal in sorted.chunk_by(|one, other| one.abs() == other.abs()) {
            let before = ranks.doubled.len() as u64;
            let count = equal.len() as u64;
            let doubled = 2 * before + count + 1; // first and last rank together
            let up = equal.iter().filter(|difference| **difference > 0.0).count() as u64;
            ranks.positive += up * doubled;
            ranks.negative += (count - up) * doubled;
            let t = count as f64;
            ranks.tied += t * t * t - t;
            ranks.doubled.extend(equal.iter().map(|_| doubled));
        }
        ranks
    }

    /// How far the positive sum is above its expectation, in standard deviations.
    fn z(&self) -> f64 {
        let n = self.doubled.len() as f64;
        let expected = n * (n + 1.0) / 4.0;
        let variance = (n * (n + 1.0) * (2.0 * n + 1.0) - self.tied / 2.0) / 24.0;
        if variance > 0.0 { (self.positive as f64 / 2.0 - expected) / variance.sqrt() } else { 0.0 }
    }
}

/// The probability that the smaller sum is at most `least`, if every rank is positive or negative by
/// the toss of a coin: how many of all ways have a positive sum of at most that, times two.
fn counted(doubled: &[u64], least: u64) -> f64 {
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
    // Whole numbers below 2^53, all of them.
    let at_most: f64 = ways[..=least as usize].iter().sum();
    (2.0 * libm::ldexp(at_most, -(doubled.len() as i32))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;

    /// Ranks one by one, and every way to deal out signs.
    fn slow(differences: &[f64]) -> (f64, f64, f64) {
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
        let smaller = |signs: &u64| {
            let up: f64 =
                (0..ranks.len()).filter(|place| signs >> place & 1 == 1).map(|place| ranks[place]).sum();
            up.min(ranks.iter().sum::<f64>() - up) <= positive.min(negative)
        };
        (positive, negative, (0..ways).filter(smaller).count() as f64 / ways as f64)
    }

    #[test]
    fn few_differences_are_counted() {
        let mut draw = Stream::new(&[3]);
        for count in 0..=13 {
            for coarse in [false, true] {
                let value =
                    |_| if coarse { (2.0 * draw.normal() + 0.7).round() } else { draw.normal() + 0.3 };
                let differences: Vec<f64> = (0..count).map(value).collect();
                let found = wilcoxon(&differences);
                let (positive, negative, p) = slow(&differences);
                assert_eq!((found.positive, found.negative, found.z), (positive, negative, None));
                assert_eq!(found.p, p, "{differences:?}");
            }
        }
    }

    /// Fisher's data on Darwin's plants, as the documentation of scipy has them.
    #[test]
    fn the_plants_of_darwin() {
        let plants =
            [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];
        let test = wilcoxon(&plants);
        assert_eq!((test.statistic(), test.negative, test.positive, test.count), (24.0, 24.0, 96.0, 15));
        assert_eq!(test.p, 0.041259765625);
    }

    #[test]
    fn all_but_few_equal_sizes_are_approximated() {
        let ramp: Vec<f64> = (1..=50).map(f64::from).collect();
        assert_eq!(wilcoxon(&ramp).z, None);
        let with_zero = [&ramp[..20], &[0.0]].concat();
        let tied = [&ramp[..20], &[7.0]].concat();
        let many: Vec<f64> = (1..=51).map(f64::from).collect();
        for differences in [&with_zero, &tied, &many] {
            assert!(wilcoxon(differences).z.is_some_and(|z| z > 3.0), "{differences:?}");
        }
    }

    #[test]
    fn counting_and_approximating_agree_where_they_meet() {
        let mut draw = Stream::new(&[8]);
        for lean in [0.0, 0.2, 0.4] {
            let differences: Vec<f64> = (0..50).map(|_| draw.normal() + lean).collect();
            let exact = wilcoxon(&differences);
            let mut sorted = differences.clone();
            sorted.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
            let near = tails::normal(Ranks::of(&sorted).z());
            assert!((exact.p - near).abs() < 0.01, "{} {near}", exact.p);
        }
    }

    #[test]
    fn no_difference_is_no_evidence() {
        for count in [0, 1, 13, 14, 200] {
            let test = wilcoxon(&vec![0.0; count]);
            assert_eq!((test.p, test.count, test.statistic()), (1.0, 0, 0.0), "{count}");
        }
    }
}
