//! Computes rank discounts: the factors by which metrics multiply gains at each rank.
//!
//! Logarithms are computed by a Rust library rather than by the C library of the machine, so that all machines get
//! identical bits.

use std::fmt;
use std::sync::LazyLock;

/// The factor by which a gain is multiplied at a rank. Ranks in the formulas count from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Discount {
    /// 1 / log2(rank + 1).
    Log2,
    /// 1 at ranks 1 and 2, then 1 / log2(rank), as in LETOR's evaluation scripts.
    Letor,
    /// rank^-beta.
    Power(f64),
    /// 1 / log2(rank + 1)^alpha.
    LogPower(f64),
}

impl Discount {
    /// Returns the discount at a rank, counted from 0.
    #[inline]
    pub fn at(self, rank: usize) -> f64 {
        match self {
            Discount::Log2 => logarithmic(rank),
            Discount::Letor => logarithmic(rank.max(1) - 1),
            Discount::Power(beta) => libm::pow(rank as f64 + 1.0, -beta),
            Discount::LogPower(alpha) => libm::pow(logarithmic(rank), alpha),
        }
    }

    /// Parses `log2`, `letor`, `power:BETA` or `log2^ALPHA`; returns `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let exponent =
            |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        match text {
            "log2" => Some(Discount::Log2),
            "letor" => Some(Discount::Letor),
            _ => match text.strip_prefix("power:") {
                Some(beta) => exponent(beta).map(Discount::Power),
                None => text.strip_prefix("log2^").and_then(exponent).map(Discount::LogPower),
            },
        }
    }
}

impl fmt::Display for Discount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Discount::Log2 => f.write_str("log2"),
            Discount::Letor => f.write_str("letor"),
            Discount::Power(beta) => write!(f, "power:{beta}"),
            Discount::LogPower(alpha) => write!(f, "log2^{alpha}"),
        }
    }
}

#[inline]
fn logarithmic(rank: usize) -> f64 {
    match DISCOUNTS.get(rank) {
        Some(discount) => *discount,
        None => logarithmic_at(rank),
    }
}

static DISCOUNTS: LazyLock<Vec<f64>> = LazyLock::new(|| (0..4096).map(logarithmic_at).collect());

fn logarithmic_at(rank: usize) -> f64 {
    1.0 / libm::log2(rank as f64 + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discounts_go_on_where_the_table_ends() {
        assert_eq!(Discount::Log2.at(0), 1.0);
        assert_eq!(Discount::Log2.at(2), 0.5);
        for rank in [4094, 4095, 4096, 4097, 100_000] {
            let expected = 1.0 / (rank as f64 + 2.0).log2();
            assert!((Discount::Log2.at(rank) - expected).abs() < 1e-15, "{rank}");
        }
    }

    #[test]
    fn every_discount_follows_its_formula() {
        for rank in 1..100_usize {
            let r = rank as f64;
            for (text, expected) in [
                ("log2", 1.0 / (r + 1.0).log2()),
                ("letor", if rank <= 2 { 1.0 } else { 1.0 / r.log2() }),
                ("power:1", 1.0 / r),
                ("power:0.5", 1.0 / r.sqrt()),
                ("log2^2", 1.0 / (r + 1.0).log2().powi(2)),
                ("log2^0", 1.0),
            ] {
                let discount = Discount::parse(text).unwrap();
                assert!((discount.at(rank - 1) - expected).abs() < 1e-14, "{text} at {rank}");
                assert_eq!(discount.to_string(), text);
            }
        }
        for text in ["", "log", "power:", "power:-1", "power:nan", "log2^x"] {
            assert_eq!(Discount::parse(text), None, "{text}");
        }
    }
}
