//! Fisher's randomisation test: if the two systems were equal, every difference might as well have had
//! the other sign. How often is the sum of the differences, with signs dealt out anew, as far from zero
//! as it is? (Fisher 1935; for retrieval, Smucker, Allan and Carterette 2007.)

use super::whole::WholeNumbers;
use planetree_base::random::Stream;
use rayon::prelude::*;

/// With so many differences or fewer all ways to deal out signs are tried.
pub const MOST_EXACT: usize = 20;
const KEY: u64 = 0x7265_6873_6946;

/// What the test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Randomisation {
    /// The probability of a sum at least as far from zero, in either direction, by chance.
    pub p: f64,
    /// How many ways to deal out signs were tried.
    pub permutations: u64,
    /// Whether these were all there are.
    pub is_exact: bool,
}

/// Takes the test, with that many random ways to deal out signs unless all can be tried.
pub fn randomisation(differences: &[f64], permutations: u64, seed: u64) -> Randomisation {
    // The sign of zero does not matter.
    let changed: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let whole = WholeNumbers::of(&changed);
    let far = whole.values.iter().sum::<i64>().abs() - whole.slack();
    if changed.len() <= MOST_EXACT {
        let (found, tried) = enumerated(&whole.values, far);
        let permutations = 1 << changed.len();
        return Randomisation { p: found as f64 / tried as f64, permutations, is_exact: true };
    }
    let found = sampled(&whole.values, far, permutations, seed);
    // What was observed is one of the ways, too: an estimate of zero would promise too much
    // (Phipson and Smyth 2010).
    let p = (found + 1) as f64 / (permutations + 1) as f64;
    Randomisation { p, permutations, is_exact: false }
}

/// How many sums are that far from zero, and of how many. All signs the other way round give the same
/// distance, so the first stays as it is. Neighbours in Gray's code differ in one sign.
fn enumerated(values: &[i64], far: i64) -> (u64, u64) {
    let free = values.get(1..).unwrap_or_default();
    let tried = 1_u64 << free.len();
    let mut sum: i64 = values.iter().sum();
    let mut turned = 0_u64;
    let mut found = u64::from(sum.abs() >= far);
    for step in 1..tried {
        let place = step.trailing_zeros();
        turned ^= 1 << place;
        let twice = 2 * free[place as usize];
        sum += if turned >> place & 1 == 1 { -twice } else { twice };
        found += u64::from(sum.abs() >= far);
    }
    (found, tried)
}

/// How many of the random sums are that far from zero. A way to deal out signs depends on its number
/// and the seed alone, so threads may take them in any order.
fn sampled(values: &[i64], far: i64, permutations: u64, seed: u64) -> u64 {
    let total: i64 = values.iter().sum();
    let is_far = |permutation: u64| {
        let mut signs = Stream::new(&[seed, KEY, permutation]);
        let mut turned = 0;
        for values in values.chunks(u64::BITS as usize) {
            let mut bits = signs.bits();
            for value in values {
                turned += value & -((bits & 1) as i64); // all of it or nothing, without a branch
                bits >>= 1;
            }
        }
        u64::from((total - 2 * turned).abs() >= far)
    };
    (0..permutations).into_par_iter().map(is_far).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, count: usize, lean: f64) -> Vec<f64> {
        let mut draw = Stream::new(&[seed]);
        (0..count).map(|_| draw.normal() + lean).collect()
    }

    /// All ways to deal out signs, each added up from the start.
    fn slow(differences: &[f64]) -> f64 {
        let sum = |signs: u64| -> f64 {
            let signed = differences.iter().enumerate();
            signed.map(|(place, value)| if signs >> place & 1 == 1 { -value } else { *value }).sum()
        };
        let (ways, observed) = (1_u64 << differences.len(), sum(0).abs());
        (0..ways).filter(|signs| sum(*signs).abs() >= observed - 1e-9).count() as f64 / ways as f64
    }

    #[test]
    fn trying_all_is_trying_all() {
        for count in 0..=13 {
            for lean in [0.0, 0.5, 2.0] {
                let differences = drawn(count as u64, count, lean);
                let test = randomisation(&differences, 10, 1);
                assert_eq!(test.p, slow(&differences), "{count} {lean}");
                assert_eq!((test.permutations, test.is_exact), (1 << count, true));
            }
        }
    }

    #[test]
    fn equal_on_paper_is_equal() {
        // 0.3 - 0.2 and 0.2 - 0.1 differ in their last digit; as tenths they are 1.
        let tenths: [f64; 7] = [0.3 - 0.2, 0.2 - 0.1, 0.8 - 0.7, 0.1, -(0.4 - 0.3), 0.5 - 0.3, -(0.9 - 0.7)];
        let whole = [1.0, 1.0, 1.0, 1.0, -1.0, 2.0, -2.0];
        assert_eq!(randomisation(&tenths, 10, 1).p, randomisation(&whole, 10, 1).p);
        assert_eq!(randomisation(&whole, 10, 1).p, slow(&whole));
    }

    #[test]
    fn zeros_change_nothing_and_nothing_is_certain() {
        let differences = drawn(4, 12, 0.4);
        let with_zeros: Vec<f64> = differences.iter().flat_map(|value| [0.0, *value, -0.0]).collect();
        assert_eq!(randomisation(&differences, 10, 1), randomisation(&with_zeros, 10, 1));
        assert_eq!(
            randomisation(&[0.0; 50], 10, 1),
            Randomisation { p: 1.0, permutations: 1, is_exact: true }
        );
        assert_eq!(randomisation(&[0.3], 10, 1).p, 1.0);
    }

    #[test]
    fn draws_come_near_to_trying_all() {
        for (seed, lean) in [(7, 0.0), (8, 0.3), (9, 0.6)] {
            let differences = drawn(seed, MOST_EXACT, lean);
            let exact = randomisation(&differences, 10, 1).p;
            let whole = WholeNumbers::of(&differences);
            let far = whole.values.iter().sum::<i64>().abs() - whole.slack();
            let tries = 200_000;
            let found = sampled(&whole.values, far, tries, seed) as f64 / tries as f64;
            let error = (exact * (1.0 - exact) / tries as f64).sqrt();
            assert!((found - exact).abs() < 4.0 * error, "{found}, expected {exact} +- {error}");
        }
    }

    #[test]
    fn draws_are_what_adding_up_sign_by_sign_gives() {
        let differences = drawn(3, 150, 0.1);
        let whole = WholeNumbers::of(&differences);
        let far = whole.values.iter().sum::<i64>().abs();
        let slow = (0..500)
            .filter(|permutation| {
                let mut signs = Stream::new(&[5, KEY, *permutation]);
                let words: Vec<u64> = (0..3).map(|_| signs.bits()).collect();
                let sign = |place: usize| if words[place / 64] >> (place % 64) & 1 == 1 { -1 } else { 1 };
                let sum: i64 =
                    whole.values.iter().enumerate().map(|(place, value)| sign(place) * value).sum();
                sum.abs() >= far
            })
            .count();
        assert!(slow > 0);
        assert_eq!(sampled(&whole.values, far, 500, 5), slow as u64);
    }

    #[test]
    fn the_seed_decides_and_threads_do_not() {
        let differences = drawn(11, 300, 0.1);
        let on = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| randomisation(&differences, 20_000, seed))
        };
        let one = on(1, 1);
        assert_eq!((one, one.is_exact), (on(5, 1), false));
        assert_ne!(one, on(1, 2));
        assert!((one.p - on(1, 2).p).abs() < 0.02);
        let turned: Vec<f64> = differences.iter().map(|difference| -difference).collect();
        assert_eq!(one, randomisation(&turned, 20_000, 1));
        let certain = randomisation(&[1.0; 100], 999, 1);
        assert_eq!(certain.p, 0.001);
    }
}
