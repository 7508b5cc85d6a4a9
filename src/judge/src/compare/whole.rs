//! Differences as whole numbers, so that sums of them are exact in any order: whether a sum is as
//! large as another is then a matter of fact, not of rounding.

/// Differences in units of a power of two, small enough that the largest keeps all its digits and any
/// sum of as many of them as there are fits.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeNumbers {
    /// The differences in units.
    pub values: Vec<i64>,
    /// The unit is two to the power of this.
    exponent: i32,
}

impl WholeNumbers {
    /// Rounds finite differences to units.
    pub fn of(differences: &[f64]) -> Self {
        let largest = differences.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let bits_of_count = (usize::BITS - differences.len().leading_zeros()) as i32;
        // The largest is below two to the power of `above`, and so in units below two to the power of
        // 62 less the bits of the count.
        let (_, above) = libm::frexp(largest);
        let exponent = above + bits_of_count - 62;
        let in_units = |value: &f64| libm::ldexp(*value, -exponent).round() as i64;
        WholeNumbers { values: differences.iter().map(in_units).collect(), exponent }
    }

    /// A sum of units as a number.
    pub fn number(&self, units: i64) -> f64 {
        libm::ldexp(units as f64, self.exponent)
    }

    /// How many units two sums over all values may be apart and still be taken for equal. Every value
    /// is off by half a unit at most; and metrics are rounded themselves, so that differences which
    /// are equal on paper differ in their last digits.
    pub fn slack(&self) -> i64 {
        let size: i64 = self.values.iter().map(|value| value.abs()).sum();
        self.values.len() as i64 + (size >> 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_and_zeros_are_fine() {
        assert!(WholeNumbers::of(&[]).values.is_empty());
        let zeros = WholeNumbers::of(&[0.0, -0.0]);
        assert_eq!((zeros.values.as_slice(), zeros.number(0)), (&[0, 0][..], 0.0));
    }

    #[test]
    fn the_smallest_and_the_largest_numbers_fit() {
        for size in [f64::MIN_POSITIVE, 5e-324, 1e-10, 1.0, 0.5, 1e300, f64::MAX] {
            let whole = WholeNumbers::of(&[size, -size, size]);
            let sum = whole.values.iter().map(|value| value.abs()).sum::<i64>();
            assert!(sum > 1 << 59 && sum < 1 << 62, "{size}: {sum}");
            assert_eq!(whole.number(whole.values[0]), size);
        }
    }

    proptest! {
        #[test]
        fn a_number_comes_back_to_within_a_unit(
            values in proptest::collection::vec(prop_oneof![-1.0..1.0, -1e-9..1e9, Just(0.0)], 1..300),
        ) {
            let whole = WholeNumbers::of(&values);
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            for (value, units) in values.iter().zip(&whole.values) {
                prop_assert!((whole.number(*units) - value).abs() <= largest * 2.0_f64.powi(-50));
            }
            let sum: i64 = whole.values.iter().sum();
            let size: i64 = whole.values.iter().map(|value| value.abs()).sum();
            prop_assert!(size >= 0 && sum.abs() <= size && whole.slack() < (size >> 39).max(600));
        }
    }
}
