//! How much a document of a label is worth, and how little at a rank far down.
//!
//! Powers and logarithms come from a Rust library rather than from the machine's C library, so
//! that all machines agree on every bit.

use std::sync::LazyLock;

/// 2^label - 1. Labels may be fractional; a negative one loses something, less than 1; one that is no
/// number is worth nothing.
#[inline]
pub fn gain(label: f32) -> f64 {
    // Nearly all labels are small whole numbers, whose powers are exact.
    let whole = label as u8;
    if whole < 32 && f32::from(whole) == label { ((1_u64 << whole) - 1) as f64 } else { other_gain(label) }
}

#[cold]
fn other_gain(label: f32) -> f64 {
    /// Beyond it a query's sum of gains could overflow.
    const MOST: f64 = 512.0;
    if label.is_nan() { 0.0 } else { libm::exp2(f64::from(label).min(MOST)) - 1.0 }
}

/// What a gain is multiplied by at a rank, counted from 0: 1 / log2(rank + 2).
#[inline]
pub fn discount(rank: usize) -> f64 {
    match DISCOUNTS.get(rank) {
        Some(discount) => *discount,
        None => discount_at(rank),
    }
}

static DISCOUNTS: LazyLock<Vec<f64>> = LazyLock::new(|| (0..4096).map(discount_at).collect());

fn discount_at(rank: usize) -> f64 {
    1.0 / libm::log2(rank as f64 + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_of_any_label_follow_the_formula() {
        for label in [0.0_f32, 1.0, 2.0, 4.0, 31.0, 32.0, 100.0, 0.5, 2.75, -1.0, -7.5, -0.0, 255.0, 256.0] {
            let expected = f64::from(label).exp2() - 1.0;
            assert!((gain(label) - expected).abs() <= expected.abs() * 1e-15, "{label}");
        }
        assert!(gain(f32::MAX).is_finite());
        assert_eq!(gain(f32::NEG_INFINITY), -1.0);
        assert_eq!(gain(f32::NAN), 0.0);
    }

    #[test]
    fn discounts_go_on_where_the_table_ends() {
        assert_eq!(discount(0), 1.0);
        assert_eq!(discount(2), 0.5);
        for rank in [4094, 4095, 4096, 4097, 100_000] {
            assert!((discount(rank) - 1.0 / (rank as f64 + 2.0).log2()).abs() < 1e-15, "{rank}");
        }
    }
}
