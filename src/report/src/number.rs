//! Formats the numbers in a report.

use super::html::Html;
pub(crate) use planetree_base::size::{counted, shown_count, shown_size};

/// Formats the value of a metric.
pub(crate) fn value(value: f64) -> String {
    with_minus(format!("{value:.4}"))
}

/// Replaces a hyphen before a number by a minus sign.
fn with_minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(size) => format!("−{size}"),
        None => text,
    }
}

/// Formats the value of a metric, or a dash if it is missing or not finite.
pub(crate) fn or_dash(known: Option<f64>) -> Html {
    Html::text(known.filter(|value| value.is_finite()).map_or_else(|| "–".to_owned(), value))
}

/// Formats a number of any magnitude in few characters.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (value.fract() == 0.0 && size < 1e15) {
        let sign = if value < 0.0 { "−" } else { "" };
        format!("{sign}{}", shown_count(size as u64))
    } else if (1e-3..1e7).contains(&size) {
        with_minus(format!("{value:.4}"))
    } else {
        with_minus(format!("{value:.2e}"))
    }
}

/// Formats a difference with its sign.
pub(crate) fn signed(value: f64) -> String {
    format!("{value:+.4}").replace('-', "−")
}

/// Formats a probability.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Formats a count as a table cell.
pub(crate) fn count(count: u64) -> Html {
    Html::text(shown_count(count))
}

/// Formats a duration, in a unit that suits its length.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0} ms", seconds * 1000.0),
        ..120.0 => format!("{seconds:.1} s"),
        ..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(1_234_567.0), "1,234,567");
        assert_eq!([-12.0, -0.17, -1.5e-9].map(short), ["−12", "−0.1700", "−1.50e-9"]);
        assert_eq!(value(-0.25), "−0.2500");
        assert_eq!(short(0.12345), "0.1235");
        assert_eq!(short(1.5e-9), "1.50e-9");
        assert_eq!(signed(-0.25), "−0.2500");
        assert_eq!(probability(0.000_01), "< 0.0001");
        assert_eq!([0.0125, 3.25, 600.0, 9000.0].map(seconds), ["12 ms", "3.2 s", "10.0 min", "2.5 h"]);
    }
}
