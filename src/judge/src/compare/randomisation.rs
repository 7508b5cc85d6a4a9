//! Fisher's randomisation test (Fisher 1935; for information retrieval, Smucker, Allan and Carterette 2007). Under
//! the null hypothesis, every difference is equally likely to have the opposite sign. The p-value is the fraction of
//! sign assignments for which the sum of the differences is at least as far from zero as the observed sum, or, in a
//! one-sided test, at least as far in the direction of the alternative.

use super::alternative::Alternative;
use super::scaled::ScaledIntegers;
use planetree_base::random::Stream;
use rayon::prelude::*;

/// Maximum number of nonzero differences for which all sign assignments are enumerated.
pub const MAX_ENUMERATED: usize = 20;
const KEY: u64 = 0x7265_6873_6946;

/// The result of the randomisation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Randomisation {
    /// The p-value.
    pub p: f64,
    /// Number of sign assignments that the p-value is based on.
    pub permutations: u64,
    /// Whether all sign assignments were enumerated.
    pub is_exact: bool,
}

/// Runs the test. If there are at most [`MAX_ENUMERATED`] nonzero differences, all sign assignments are enumerated.
/// Otherwise, `permutations` random sign assignments are drawn.
pub fn randomisation(
    differences: &[f64],
    permutations: u64,
    seed: u64,
    alternative: Alternative,
) -> Randomisation {
    // Differences of zero do not change the sum, whatever their sign. A test for negative differences is a test for
    // positive ones with all signs flipped.
    let nonzero = differences.iter().copied().filter(|difference| *difference != 0.0);
    let nonzero: Vec<f64> = match alternative {
        Alternative::Less => nonzero.map(|difference| -difference).collect(),
        Alternative::TwoSided | Alternative::Greater => nonzero.collect(),
    };
    let is_two_sided = alternative == Alternative::TwoSided;
    let scaled = ScaledIntegers::of(&nonzero);
    let extreme = Extreme::of(&scaled, is_two_sided);
    if nonzero.len() <= MAX_ENUMERATED {
        let (found, tried) = enumerated(&scaled.values, extreme);
        let permutations = 1 << nonzero.len();
        return Randomisation { p: found as f64 / tried as f64, permutations, is_exact: true };
    }
    let found = sampled(&scaled.values, extreme, permutations, seed);
    // The observed assignment counts as one of the draws, so that p is never 0 (Phipson and Smyth 2010).
    let p = (found + 1) as f64 / (permutations + 1) as f64;
    Randomisation { p, permutations, is_exact: false }
}

/// Decides whether the sum of a sign assignment is at least as extreme as the observed sum.
#[derive(Clone, Copy)]
struct Extreme {
    least: i64,
    is_two_sided: bool,
}

impl Extreme {
    fn of(scaled: &ScaledIntegers, is_two_sided: bool) -> Self {
        let sum: i64 = scaled.values.iter().sum();
        let least = if is_two_sided { sum.abs() } else { sum } - scaled.tolerance();
        Extreme { least, is_two_sided }
    }

    fn contains(self, sum: i64) -> bool {
        (if self.is_two_sided { sum.abs() } else { sum }) >= self.least
    }
}

/// Returns the number of sign assignments whose sum is extreme, and the number of sign assignments tried. In a
/// two-sided test, flipping all signs changes nothing, so the first sign is fixed. Assignments are visited in Gray
/// code order, in which successive assignments differ in a single sign.
fn enumerated(values: &[i64], extreme: Extreme) -> (u64, u64) {
    let fixed = usize::from(extreme.is_two_sided);
    let free = values.get(fixed..).unwrap_or_default();
    let tried = 1_u64 << free.len();
    let mut sum: i64 = values.iter().sum();
    let mut flipped = 0_u64;
    let mut found = u64::from(extreme.contains(sum));
    for step in 1..tried {
        let index = step.trailing_zeros();
        flipped ^= 1 << index;
        let twice = 2 * free[index as usize];
        sum += if flipped >> index & 1 == 1 { -twice } else { twice };
        found += u64::from(extreme.contains(sum));
    }
    (found, tried)
}

/// Returns the number of random sign assignments whose sum is extreme. An assignment depends only on its number and the
/// seed, so threads may process assignments in any order.
fn sampled(values: &[i64], extreme: Extreme, permutations: u64, seed: u64) -> u64 {
    let total: i64 = values.iter().sum();
    let is_extreme = |permutation: u64| {
        let mut signs = Stream::new(&[seed, KEY, permutation]);
        let mut flipped = 0;
        for values in values.chunks(u64::BITS as usize) {
            let mut bits = signs.bits();
            for value in values {
                flipped += value & -((bits & 1) as i64); // value or 0, without a branch
                bits >>= 1;
            }
        }
        u64::from(extreme.contains(total - 2 * flipped))
    };
    (0..permutations).into_par_iter().map(is_extreme).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_differences(seed: u64, count: usize, shift: f64) -> Vec<f64> {
        let mut draw = Stream::new(&[seed]);
        (0..count).map(|_| draw.normal() + shift).collect()
    }

    /// Computes the p-value by enumerating all sign assignments and computing each sum from scratch.
    fn naive(differences: &[f64], alternative: Alternative) -> f64 {
        let sum = |signs: u64| -> f64 {
            let signed = differences.iter().enumerate();
            let sum: f64 =
                signed.map(|(place, value)| if signs >> place & 1 == 1 { -value } else { *value }).sum();
            match alternative {
                Alternative::TwoSided => sum.abs(),
                Alternative::Greater => sum,
                Alternative::Less => -sum,
            }
        };
        let (ways, observed) = (1_u64 << differences.len(), sum(0));
        (0..ways).filter(|signs| sum(*signs) >= observed - 1e-9).count() as f64 / ways as f64
    }

    fn two_sided(differences: &[f64], permutations: u64, seed: u64) -> Randomisation {
        randomisation(differences, permutations, seed, Alternative::TwoSided)
    }

    #[test]
    fn few_differences_are_enumerated() {
        for count in 0..=13 {
            for shift in [0.0, 0.5, 2.0] {
                let differences = random_differences(count as u64, count, shift);
                for alternative in Alternative::ALL {
                    let test = randomisation(&differences, 10, 1, alternative);
                    assert_eq!(test.p, naive(&differences, alternative), "{count} {shift} {alternative:?}");
                    assert_eq!((test.permutations, test.is_exact), (1 << count, true));
                }
            }
        }
    }

    #[test]
    fn rounding_errors_do_not_separate_equal_sums() {
        // In floating point, 0.3 - 0.2 and 0.2 - 0.1 differ in their last digit, although both are mathematically
        // 0.1.
        let tenths: [f64; 7] = [0.3 - 0.2, 0.2 - 0.1, 0.8 - 0.7, 0.1, -(0.4 - 0.3), 0.5 - 0.3, -(0.9 - 0.7)];
        let integers = [1.0, 1.0, 1.0, 1.0, -1.0, 2.0, -2.0];
        assert_eq!(two_sided(&tenths, 10, 1).p, two_sided(&integers, 10, 1).p);
        assert_eq!(two_sided(&integers, 10, 1).p, naive(&integers, Alternative::TwoSided));
    }

    #[test]
    fn zeros_do_not_affect_the_p_value() {
        let differences = random_differences(4, 12, 0.4);
        let with_zeros: Vec<f64> = differences.iter().flat_map(|value| [0.0, *value, -0.0]).collect();
        assert_eq!(two_sided(&differences, 10, 1), two_sided(&with_zeros, 10, 1));
        assert_eq!(two_sided(&[0.0; 50], 10, 1), Randomisation { p: 1.0, permutations: 1, is_exact: true });
        assert_eq!(two_sided(&[0.3], 10, 1).p, 1.0);
    }

    #[test]
    fn sampling_approximates_enumeration() {
        for (seed, shift) in [(7, 0.0), (8, 0.3), (9, 0.6)] {
            let differences = random_differences(seed, MAX_ENUMERATED, shift);
            for alternative in [Alternative::TwoSided, Alternative::Greater] {
                let exact = randomisation(&differences, 10, 1, alternative).p;
                let scaled = ScaledIntegers::of(&differences);
                let extreme = Extreme::of(&scaled, alternative == Alternative::TwoSided);
                let tries = 200_000;
                let found = sampled(&scaled.values, extreme, tries, seed) as f64 / tries as f64;
                let error = (exact * (1.0 - exact) / tries as f64).sqrt();
                assert!((found - exact).abs() < 4.0 * error, "{found}, expected {exact} +- {error}");
            }
        }
    }

    #[test]
    fn sampled_sums_match_a_naive_sum() {
        let differences = random_differences(3, 150, 0.1);
        let scaled = ScaledIntegers::of(&differences);
        let far = scaled.values.iter().sum::<i64>().abs();
        let naive = (0..500)
            .filter(|permutation| {
                let mut signs = Stream::new(&[5, KEY, *permutation]);
                let words: Vec<u64> = (0..3).map(|_| signs.bits()).collect();
                let sign = |place: usize| if words[place / 64] >> (place % 64) & 1 == 1 { -1 } else { 1 };
                let sum: i64 =
                    scaled.values.iter().enumerate().map(|(place, value)| sign(place) * value).sum();
                sum.abs() >= far
            })
            .count();
        assert!(naive > 0);
        let extreme = Extreme { least: far, is_two_sided: true };
        assert_eq!(sampled(&scaled.values, extreme, 500, 5), naive as u64);
    }

    #[test]
    fn the_result_depends_on_the_seed_and_not_on_threads() {
        let differences = random_differences(11, 300, 0.1);
        let on = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| two_sided(&differences, 20_000, seed))
        };
        let one = on(1, 1);
        assert_eq!((one, one.is_exact), (on(5, 1), false));
        assert_ne!(one, on(1, 2));
        assert!((one.p - on(1, 2).p).abs() < 0.02);
        let negated: Vec<f64> = differences.iter().map(|difference| -difference).collect();
        assert_eq!(one, two_sided(&negated, 20_000, 1));
        let certain = two_sided(&[1.0; 100], 999, 1);
        assert_eq!(certain.p, 0.001);
    }
}
