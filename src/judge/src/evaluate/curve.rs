//! Interprets evaluated systems as points on curves. The systems on one curve differ in the value of one quantity,
//! and the name of a system ends with this value.

use planetree_base::error::{Error, Result};

/// Metadata key for the name of the quantity that varies between the systems of a metrics table.
pub const CURVE: &str = "planetree.curve";

/// The position of a system on a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// Name of the curve; empty if there is only one curve.
    pub series: String,
    /// Value of the quantity that varies.
    pub value: f64,
}

impl CurvePoint {
    /// Parses the name of a system: `rf-list-0_05` is the point at 0.05 on the curve `rf-list`. Names contain no
    /// dots, so `_` stands for the decimal point. Returns `None` if the name does not end in a number.
    pub fn named(name: &str) -> Option<Self> {
        let (series, value) = name.rsplit_once('-').unwrap_or(("", name));
        let starts_as_number = value.starts_with(|letter: char| letter.is_ascii_digit());
        let value = value.replace('_', ".").parse().ok().filter(|_| starts_as_number)?;
        Some(CurvePoint { series: series.to_owned(), value })
    }

    /// Parses the names of several systems. Returns an error for the first name that does not end in a number.
    pub fn all<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>> {
        let point = |name: &str| {
            CurvePoint::named(name).ok_or_else(|| {
                Error::usage(
                    format_args!("--curve: the name {name} does not end in a number"),
                    "append the value to the system's name: --predictions list-0_3=FILE",
                )
            })
        };
        names.into_iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_parsed_from_the_end_of_the_name() {
        let point = |series: &str, value| Some(CurvePoint { series: series.to_owned(), value });
        assert_eq!(CurvePoint::named("rf-list-0_05"), point("rf-list", 0.05));
        assert_eq!(CurvePoint::named("rf-point-64"), point("rf-point", 64.0));
        assert_eq!(CurvePoint::named("100"), point("", 100.0));
        for name in ["rf-list", "all", "", "-", "x-nan", "x-inf", "x-1-"] {
            assert_eq!(CurvePoint::named(name), None, "{name}");
        }
        let error = CurvePoint::all(["a-1", "log2"]).unwrap_err();
        assert_eq!(error.to_string(), "--curve: the name log2 does not end in a number");
    }
}
