//! Defines histogram cells. A cell holds the sums over the rows of a bin. All sums are integers, so they do not
//! depend on the order of addition.
//!
//! A gradient is quantised to a fixed-point number, with one scale for all rows of a round. A cell for rows without
//! weights is one integer, with the sum of gradients in the high bits and the row count in the low bits, so that one
//! addition updates both. The scale is chosen so that sums over all rows of a dataset do not overflow.

use fearless_simd::{Level, SimdBase, dispatch, i64x2};
use serde::{Deserialize, Serialize};

/// Sums over some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GradientSums {
    /// Sum of gradients, in units of the scale.
    pub gradient: i64,
    /// Sum of weights or hessians, in units of the scale; equal to `count` if rows have no weights.
    pub weight: i64,
    /// Number of rows.
    pub count: i64,
}

impl std::ops::Add for GradientSums {
    type Output = GradientSums;

    fn add(self, other: GradientSums) -> GradientSums {
        GradientSums {
            gradient: self.gradient + other.gradient,
            weight: self.weight + other.weight,
            count: self.count + other.count,
        }
    }
}

impl std::ops::Sub for GradientSums {
    type Output = GradientSums;

    fn sub(self, other: GradientSums) -> GradientSums {
        GradientSums {
            gradient: self.gradient - other.gradient,
            weight: self.weight - other.weight,
            count: self.count - other.count,
        }
    }
}

/// Quantisation scale, and bit layout of packed cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Number of low bits of a packed cell, which hold the row count.
    pub count_bits: u32,
    /// Number of units that represent a gradient of 1.
    pub gradient: f64,
    /// Number of units that represent a weight of 1; 1 if rows have no weights.
    pub weight: f64,
}

impl Scale {
    /// Returns the number of bits needed to count this many rows.
    pub fn count_bits(rows: u64) -> u32 {
        u64::BITS - rows.leading_zeros()
    }

    /// Returns the number of bits for a single gradient, including the sign, so that the sum over this many rows fits
    /// next to their count.
    pub fn gradient_bits(rows: u64) -> u32 {
        (63 - (2 * Self::count_bits(rows)).min(55)).min(31)
    }

    /// Returns the maximum number of units that represent 1 if labels and scores have at most this magnitude. With
    /// this number, labels and scores in units fit in 47 bits and are exact.
    pub fn most_units(farthest: f64) -> f64 {
        Self::units(farthest, 31) * f64::from(1 << 17)
    }

    /// Returns the largest power of two by which numbers up to `most` can be multiplied without exceeding `bits` bits,
    /// including the sign.
    pub fn units(most: f64, bits: u32) -> f64 {
        if most == 0.0 {
            return 1.0;
        }
        let limit = f64::from((1i32 << (bits - 1)) - 1);
        let exponent = (limit / most).log2().floor() as i32;
        // At powers of two, log2 may have been rounded up.
        let exponent = if most * exp2(exponent) > limit { exponent.saturating_sub(1) } else { exponent };
        exp2(exponent)
    }
}

fn exp2(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent.clamp(-1022, 1023)) as u64) << 52)
}

/// 1.5 * 2^52. Adding it to a number shifts the fraction out of the mantissa, so that the low bits are an integer.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Rounds a number within 31 bits to the nearest integer, ties to even.
#[inline]
pub fn round(value: f64) -> i32 {
    (value + MAGIC).to_bits() as i32
}

/// Rounds a number within 50 bits to the nearest integer, halves up. Adding an integer before or after rounding gives
/// the same result.
#[inline(always)]
pub fn whole(value: f64) -> f64 {
    let value = value + 0.5;
    let near = (value + MAGIC) - MAGIC;
    if near > value { near - 1.0 } else { near }
}

/// Converts an integer within 52 bits, including the sign, to the equal float. Unlike `as f64`, this vectorises. Sums
/// over rows are within 47 bits, see [`Scale::gradient_bits`].
#[inline(always)]
pub(super) fn exact(whole: i64) -> f64 {
    f64::from_bits((whole.wrapping_add(MAGIC.to_bits() as i64)) as u64) - MAGIC
}

/// Sums over the rows in a histogram bin.
pub trait Cell: Copy + Default + Send + Sync + 'static {
    /// How many bytes of a row are added at a time: a whole or half block, so that the cells for these bytes fit in
    /// the L1 cache.
    const LANES_AT_A_TIME: usize;

    /// The quantised gradient of a row, together with the weight if rows have weights.
    type Target: Copy + Default + Send + Sync + 'static;

    /// Creates the cell of a single row.
    fn of(target: Self::Target, count_bits: u32) -> Self;

    /// Adds the rows of another cell.
    fn add(&mut self, other: Self);

    /// Removes the rows of another cell.
    fn subtract(&mut self, other: Self);

    /// Unpacks the sums.
    fn sums(self, count_bits: u32) -> GradientSums;

    /// Converts sums to a cell.
    fn of_sums(sums: GradientSums, count_bits: u32) -> Self;

    /// Creates a row's target from its fixed-point gradient and weight.
    fn target(gradient: i32, weight: i32) -> Self::Target;

    /// Returns the change of the gradient sum when the gradient of every row grows by `units`. Count and weight of the
    /// result are 0.
    fn moved(self, units: i64, count_bits: u32) -> Self;

    /// Returns the cell with the gradient sum only, without the count and weight.
    fn without_rows(self, count_bits: u32) -> Self;
}

/// Cell for rows without weights: the gradient sum in the high bits, and the row count in the low bits.
impl Cell for i64 {
    const LANES_AT_A_TIME: usize = 16;

    type Target = i32;

    #[inline]
    fn of(target: i32, count_bits: u32) -> i64 {
        (i64::from(target) << count_bits) + 1
    }

    #[inline]
    fn add(&mut self, other: i64) {
        *self = self.wrapping_add(other);
    }

    #[inline]
    fn subtract(&mut self, other: i64) {
        *self = self.wrapping_sub(other);
    }

    #[inline]
    fn sums(self, count_bits: u32) -> GradientSums {
        let count = self & rows_of(count_bits);
        GradientSums { gradient: self >> count_bits, weight: count, count }
    }

    fn of_sums(sums: GradientSums, count_bits: u32) -> i64 {
        (sums.gradient << count_bits).wrapping_add(sums.count)
    }

    fn target(gradient: i32, _weight: i32) -> i32 {
        gradient
    }

    #[inline]
    fn moved(self, units: i64, count_bits: u32) -> i64 {
        (self & rows_of(count_bits)).wrapping_mul(units) << count_bits
    }

    #[inline]
    fn without_rows(self, count_bits: u32) -> i64 {
        self & !rows_of(count_bits)
    }
}

/// Returns the bit mask of the count.
fn rows_of(count_bits: u32) -> i64 {
    (1 << count_bits) - 1
}

/// Cell for rows with weights: gradient sum and row count packed into one integer, and the sum of weights.
impl Cell for [i64; 2] {
    const LANES_AT_A_TIME: usize = 8;

    type Target = [i32; 2];

    #[inline]
    fn of(target: [i32; 2], count_bits: u32) -> [i64; 2] {
        [(i64::from(target[0]) << count_bits) + 1, i64::from(target[1])]
    }

    #[inline]
    fn add(&mut self, other: [i64; 2]) {
        // Both numbers are added by one instruction, which every machine of a supported architecture has.
        dispatch!(Level::baseline(), simd => {
            *self = (i64x2::load_array(simd, *self) + i64x2::load_array(simd, other)).to_array();
        });
    }

    #[inline]
    fn subtract(&mut self, other: [i64; 2]) {
        self[0] = self[0].wrapping_sub(other[0]);
        self[1] = self[1].wrapping_sub(other[1]);
    }

    #[inline]
    fn sums(self, count_bits: u32) -> GradientSums {
        let count = self[0] & rows_of(count_bits);
        GradientSums { gradient: self[0] >> count_bits, weight: self[1], count }
    }

    fn of_sums(sums: GradientSums, count_bits: u32) -> [i64; 2] {
        [(sums.gradient << count_bits).wrapping_add(sums.count), sums.weight]
    }

    fn target(gradient: i32, weight: i32) -> [i32; 2] {
        [gradient, weight]
    }

    #[inline]
    fn moved(self, units: i64, count_bits: u32) -> [i64; 2] {
        [self[0].moved(units, count_bits), 0]
    }

    #[inline]
    fn without_rows(self, count_bits: u32) -> [i64; 2] {
        [self[0].without_rows(count_bits), 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_sums_can_be_unpacked(gradients in prop::collection::vec(-8_388_607i32..=8_388_607, 0..500)) {
            let bits = Scale::count_bits(1 << 18);
            let (mut forth, mut back) = (0i64, 0i64);
            gradients.iter().for_each(|g| forth.add(i64::of(*g, bits)));
            gradients.iter().rev().for_each(|g| back.add(i64::of(*g, bits)));
            let sum: i64 = gradients.iter().map(|g| i64::from(*g)).sum();
            let count = gradients.len() as i64;
            prop_assert_eq!(forth, back);
            prop_assert_eq!(forth.sums(bits), GradientSums { gradient: sum, weight: count, count });
        }

        #[test]
        fn units_fill_the_bits_and_never_overflow(most in 1e-300f64..1e300, bits in 8u32..=31) {
            let scaled = most * Scale::units(most, bits);
            let limit = f64::from((1i32 << (bits - 1)) - 1);
            prop_assert!(scaled <= limit && scaled * 2.0 > limit, "{} {}", scaled, limit);
        }

        #[test]
        fn exact_converts_integers(whole in -(1i64 << 51)..1i64 << 51) {
            prop_assert_eq!(exact(whole), whole as f64);
        }

        #[test]
        fn rounding_commutes_with_adding_integers(
            value in -1e6f64..1e6, halves in -1000i64..1000, more in -(1i64 << 46)..1i64 << 46,
        ) {
            for value in [value, halves as f64 / 2.0, more as f64] {
                prop_assert_eq!(whole(value), (value + 0.5).floor());
                let value = (value * 1024.0).round() / 1024.0 ; // so that the sum is exact
                prop_assert_eq!(whole(value + (more >> 10) as f64), whole(value) + (more >> 10) as f64);
            }
        }

        #[test]
        fn rounding_is_to_the_nearest_even(value in -1e9f64..1e9) {
            prop_assert_eq!(f64::from(round(value)), value.round_ties_even());
            prop_assert_eq!(f64::from(round(value.trunc() + 0.5)), (value.trunc() + 0.5).round_ties_even());
        }
    }

    #[test]
    fn sums_over_all_rows_of_any_dataset_fit() {
        for rows in [1u64, 3, 1000, 40_000, 1 << 18, 723_412, 1 << 24, (1 << 27) - 1] {
            let (count, gradient) = (Scale::count_bits(rows), Scale::gradient_bits(rows));
            assert!(gradient >= 8, "{rows}");
            let most = i128::from(rows) * ((1 << (gradient - 1)) - 1);
            assert!(most < 1i128 << (63 - count), "{rows}");
            assert!(most < 1i128 << 51, "{rows}: exact as floating-point numbers");
        }
    }
}
