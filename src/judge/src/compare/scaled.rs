//! Scales differences to integers. Sums of integers are exact in any order, so a comparison of sums does not depend
//! on the order of addition.

/// Differences as integer multiples of a unit, which is a power of two. The unit is chosen as small as possible for
/// precision, but large enough that the sum of all differences cannot overflow an `i64`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaledIntegers {
    /// Differences as multiples of the unit.
    pub values: Vec<i64>,
    /// The unit is 2 to the power of `exponent`.
    exponent: i32,
}

impl ScaledIntegers {
    /// Scales finite differences, and rounds them to multiples of the unit.
    pub fn of(differences: &[f64]) -> Self {
        let largest = differences.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let bits_of_count = (usize::BITS - differences.len().leading_zeros()) as i32;
        // The largest difference is below 2^above. The exponent is chosen such that this is 2^(62 - bits_of_count)
        // units.
        let (_, above) = libm::frexp(largest);
        let exponent = above + bits_of_count - 62;
        let in_units = |value: &f64| libm::ldexp(*value, -exponent).round() as i64;
        ScaledIntegers { values: differences.iter().map(in_units).collect(), exponent }
    }

    /// Converts a sum of units back to a number.
    pub fn number(&self, units: i64) -> f64 {
        libm::ldexp(units as f64, self.exponent)
    }

    /// Returns the distance in units up to which two sums over all values count as equal. The rounding error of every
    /// value is up to half a unit, and metrics have rounding errors too, so mathematically equal sums may differ in
    /// their last digits.
    pub fn tolerance(&self) -> i64 {
        let size: i64 = self.values.iter().map(|value| value.abs()).sum();
        self.values.len() as i64 + (size >> 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_and_zero_differences_scale() {
        assert!(ScaledIntegers::of(&[]).values.is_empty());
        let zeros = ScaledIntegers::of(&[0.0, -0.0]);
        assert_eq!((zeros.values.as_slice(), zeros.number(0)), (&[0, 0][..], 0.0));
    }

    #[test]
    fn the_smallest_and_the_largest_numbers_fit() {
        for size in [f64::MIN_POSITIVE, 5e-324, 1e-10, 1.0, 0.5, 1e300, f64::MAX] {
            let scaled = ScaledIntegers::of(&[size, -size, size]);
            let sum = scaled.values.iter().map(|value| value.abs()).sum::<i64>();
            assert!(sum > 1 << 59 && sum < 1 << 62, "{size}: {sum}");
            assert_eq!(scaled.number(scaled.values[0]), size);
        }
    }

    proptest! {
        #[test]
        fn a_number_round_trips_within_a_unit(
            values in proptest::collection::vec(prop_oneof![-1.0..1.0, -1e-9..1e9, Just(0.0)], 1..300),
        ) {
            let scaled = ScaledIntegers::of(&values);
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            for (value, units) in values.iter().zip(&scaled.values) {
                prop_assert!((scaled.number(*units) - value).abs() <= largest * 2.0_f64.powi(-50));
            }
            let sum: i64 = scaled.values.iter().sum();
            let size: i64 = scaled.values.iter().map(|value| value.abs()).sum();
            prop_assert!(size >= 0 && sum.abs() <= size && scaled.tolerance() < (size >> 39).max(600));
        }
    }
}
