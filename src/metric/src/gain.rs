//! Computes gains: the values that metrics assign to labels.
//!
//! Powers are computed by a Rust library rather than by the C library of the machine, so that all machines get
//! identical bits.

use super::expression::Expression;
use std::fmt;

/// How a label is converted to a gain.
#[derive(Debug, Clone, PartialEq)]
pub enum Gain {
    /// 2^label - 1 (Burges et al. 2005).
    Exp2,
    /// The label itself (Järvelin & Kekäläinen 2002).
    Linear,
    /// The label, or 0 if the label is negative.
    Positive,
    /// A table with one gain for each of the labels 0, 1, 2 and so on.
    Table(Vec<f64>),
    /// A formula that contains the label.
    Expression(Expression),
}

/// The largest allowed absolute value of a gain. In sums with larger gains, small gains would be lost to rounding,
/// and the sums could overflow. Moreover, 2^label is capped for huge labels, so that different labels would have the
/// same gain.
pub const MOST_GAIN: f64 = 1e30;

impl Gain {
    /// Returns the gain of a label. It is 0 for labels missing from a table and for NaN, but a formula may give a
    /// value that is not finite; see [`Gain::has`].
    #[inline]
    pub fn of(&self, label: f32) -> f64 {
        match self {
            Gain::Exp2 => gain(label),
            Gain::Linear if label.is_nan() => 0.0,
            Gain::Linear => f64::from(label),
            Gain::Positive => f64::from(label.max(0.0)),
            Gain::Table(gains) => whole(label).and_then(|place| gains.get(place)).copied().unwrap_or(0.0),
            Gain::Expression(expression) => expression.of(label),
        }
    }

    /// Whether the label has a gain: it is in the table, or the formula has a finite value for it.
    pub fn has(&self, label: f32) -> bool {
        match self {
            Gain::Table(gains) => whole(label).is_some_and(|place| place < gains.len()),
            Gain::Expression(expression) => expression.of(label).is_finite(),
            Gain::Exp2 | Gain::Linear | Gain::Positive => true,
        }
    }

    /// Whether the label has a gain whose absolute value is at most 1e30. Training, and metrics that add up
    /// gains, reject all other labels.
    pub fn fits(&self, label: f32) -> bool {
        self.has(label) && self.of(label).abs() <= MOST_GAIN
    }

    /// Parses a name, a table such as `0:1:3:7` or a formula such as `3^l-1`. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "exp2" => Ok(Gain::Exp2),
            "linear" => Ok(Gain::Linear),
            "positive" => Ok(Gain::Positive),
            _ if text.contains(':') => {
                let number = |gain: &str| gain.trim().parse().ok().filter(|gain: &f64| gain.is_finite());
                let gains: Option<Vec<f64>> = text.split(':').map(number).collect();
                gains.map(Gain::Table).ok_or_else(|| format!("{text:?} is not a table of gains"))
            }
            _ => Expression::parse(text).map(Gain::Expression),
        }
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gain::Exp2 => f.write_str("exp2"),
            Gain::Linear => f.write_str("linear"),
            Gain::Positive => f.write_str("positive"),
            Gain::Table(gains) => {
                let gains: Vec<String> = gains.iter().map(f64::to_string).collect();
                f.write_str(&gains.join(":"))
            }
            Gain::Expression(expression) => write!(f, "{expression}"),
        }
    }
}

/// Returns the label as an index into a gain table; `None` if it is negative or not an integer.
fn whole(label: f32) -> Option<usize> {
    let place = label as u32;
    (place as f32 == label).then_some(place as usize)
}

/// Returns 2^label - 1. Labels may be fractional or negative. The gain of NaN is 0.
#[inline]
pub(crate) fn gain(label: f32) -> f64 {
    // Fast path: nearly all labels are small integers, for which a shift gives the exact power.
    let whole = label as u8;
    if whole < 32 && f32::from(whole) == label { ((1_u64 << whole) - 1) as f64 } else { other_gain(label) }
}

#[cold]
fn other_gain(label: f32) -> f64 {
    /// Labels above this are treated as equal to it, because their gains or sums of these gains could overflow.
    const MOST: f64 = 512.0;
    if label.is_nan() { 0.0 } else { libm::exp2(f64::from(label).min(MOST)) - 1.0 }
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
    fn every_kind_of_gain_is_read_and_printed() {
        for (text, label, expected) in [
            ("exp2", 3.0, 7.0),
            ("linear", -1.5, -1.5),
            ("positive", -1.5, 0.0),
            ("positive", 2.5, 2.5),
            ("0:1:3.5:7", 2.0, 3.5),
            ("3^l-1", 2.0, 8.0),
        ] {
            let gain = Gain::parse(text).unwrap();
            assert_eq!(gain.of(label), expected, "{text}");
            assert_eq!(gain.to_string(), text);
            assert!(gain.has(label), "{text}");
        }
        for text in ["0:x", ":", "0:inf", "l+", ""] {
            assert!(Gain::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_whose_gains_are_too_large_do_not_fit() {
        let fits = |gain: &str, label: f32| Gain::parse(gain).unwrap().fits(label);
        assert!([0.0, 4.0, -7.5, 31.0, 99.0, 99.6].iter().all(|label| fits("exp2", *label)));
        assert!(![99.7, 100.0, 512.0, 513.0, f32::MAX].iter().any(|label| fits("exp2", *label)));
        for gain in ["linear", "positive"] {
            assert!([-1.0, 512.0, 513.0, 9.9e29].iter().all(|label| fits(gain, *label)), "{gain}");
            assert!(!fits(gain, 1.1e30), "{gain}");
        }
        assert!(!fits("linear", -1.1e30) && fits("positive", -1.1e30));
        assert!(!fits("0:1", 2.0) && !fits("0:1e31", 1.0) && !fits("1/l", 0.0) && !fits("9^l", 40.0));
    }

    #[test]
    fn a_table_has_whole_labels_up_to_its_end() {
        let table = Gain::parse("0:1:3").unwrap();
        assert!([0.0, 1.0, 2.0, -0.0].iter().all(|label| table.has(*label)));
        assert!(![3.0, 0.5, -1.0, f32::NAN, f32::INFINITY].iter().any(|label| table.has(*label)));
        assert!(!Gain::parse("1/l").unwrap().has(0.0));
    }
}
