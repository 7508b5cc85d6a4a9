//! Sums whose bits do not depend on the order of addition. Every term is rounded to a fixed-point number, and integers
//! are added. A number has 60 bits above the point and 32 bits below it, relative to a bound on the sum, so rounding
//! changes a sum less than floating-point addition would.

use serde::{Deserialize, Serialize};

/// Number of bits of a bound above the point.
const WHOLE_BITS: i32 = 60;
/// The value of the lowest bit above the point, in units of the lowest bit below it.
const FRACTION: f64 = (1u64 << 32) as f64;

/// Fixed-point sums, which are added to and merged in any order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FixedSums {
    whole: Vec<i64>,
    fraction: Vec<i64>,
}

/// The scale of a fixed-point sum: a power of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumScale(f64);

impl SumScale {
    /// Returns the scale of a sum of terms whose absolute values add up to at most `bound`. There may be at most 2^28
    /// terms.
    pub fn of_bound(bound: f64) -> Self {
        /// Beyond these exponents, the scale or its inverse would overflow.
        const MOST: i32 = 900;
        if bound <= 0.0 || !bound.is_finite() {
            return SumScale(1.0);
        }
        // The exponent of a power of two that is larger than the bound.
        let exponent = libm::frexp(bound).1;
        SumScale(libm::ldexp(1.0, (WHOLE_BITS - exponent).clamp(-MOST, MOST)))
    }
}

impl FixedSums {
    /// Creates sums that are 0.
    pub fn zero(count: usize) -> Self {
        FixedSums { whole: vec![0; count], fraction: vec![0; count] }
    }

    /// Concatenates lists of sums.
    pub fn concatenated(lists: Vec<FixedSums>) -> Self {
        let mut all = FixedSums::default();
        for list in lists {
            all.whole.extend(list.whole);
            all.fraction.extend(list.fraction);
        }
        all
    }

    /// Returns the number of sums.
    pub fn count(&self) -> usize {
        self.whole.len()
    }

    /// Adds a term to a sum. Sums beyond the bound of the scale wrap around: those who cannot rule them out check the bound
    /// afterwards and discard the sums.
    #[inline(always)]
    pub fn add(&mut self, sum: usize, term: f64, scale: SumScale) {
        let scaled = term * scale.0;
        let whole = scaled as i64;
        self.whole[sum] = self.whole[sum].wrapping_add(whole);
        // The subtraction is exact, because the two numbers have the same exponent or the difference is below 1.
        let fraction = ((scaled - whole as f64) * FRACTION) as i64;
        self.fraction[sum] = self.fraction[sum].wrapping_add(fraction);
    }

    /// Adds other sums to these. Returns false if their numbers differ.
    pub fn add_all(&mut self, other: &FixedSums) -> bool {
        if self.whole.len() != other.whole.len() || self.fraction.len() != other.fraction.len() {
            return false;
        }
        // A damaged message could overflow. Wrapping sums are as good as any then.
        let add = |sums: &mut [i64], others: &[i64]| {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum = sum.wrapping_add(*other));
        };
        add(&mut self.whole, &other.whole);
        add(&mut self.fraction, &other.fraction);
        true
    }

    /// Returns a sum.
    pub fn value(&self, sum: usize, scale: SumScale) -> f64 {
        (self.whole[sum] as f64 + self.fraction[sum] as f64 / FRACTION) / scale.0
    }

    /// Returns whether all lists have the same length.
    pub fn is_valid(&self) -> bool {
        self.whole.len() == self.fraction.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_of_terms_does_not_matter(
            terms in prop::collection::vec((-1e3..1e3f64, -40..40i32), 1..200), cut in 0..200usize,
        ) {
            let terms: Vec<f64> = terms.iter().map(|(value, exponent)| value * 2f64.powi(*exponent)).collect();
            let scale = SumScale::of_bound(terms.iter().map(|term| term.abs()).sum());
            let sum = |terms: &mut dyn Iterator<Item = &f64>| {
                let mut sums = FixedSums::zero(1);
                terms.for_each(|term| sums.add(0, *term, scale));
                sums
            };
            let all = sum(&mut terms.iter());
            prop_assert_eq!(&all, &sum(&mut terms.iter().rev()));
            let (left, right) = terms.split_at(cut.min(terms.len()));
            let mut merged = sum(&mut right.iter());
            prop_assert!(merged.add_all(&sum(&mut left.iter())));
            prop_assert_eq!(&all, &merged);
            let largest = terms.iter().fold(0f64, |most, term| most.max(term.abs()));
            let twin: f64 = terms.iter().sum();
            prop_assert!((all.value(0, scale) - twin).abs() <= 1e-13 * largest * terms.len() as f64);
        }
    }

    #[test]
    fn sums_of_different_numbers_are_not_merged() {
        assert!(!FixedSums::zero(2).add_all(&FixedSums::zero(3)));
        let scale = SumScale::of_bound(0.0);
        let mut sums = FixedSums::zero(1);
        sums.add(0, 0.0, scale);
        assert_eq!(sums.value(0, scale), 0.0);
    }
}
