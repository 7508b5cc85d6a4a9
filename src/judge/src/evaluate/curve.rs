//! Systems that differ in one number: the points of curves.

use planetree_base::error::{Error, Result};

/// The metadata key of what the systems of a metrics table differ in.
pub const CURVE: &str = "planetree.curve";

/// Where a system is on a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// Which curve; empty if there is one only.
    pub series: String,
    /// The number that was varied.
    pub value: f64,
}

impl CurvePoint {
    /// The point of a system by its name: `rf-list-0_05` is at 0.05 of the curve rf-list. A name has no points,
    /// so `_` stands for that of a number; `None` if the name does not end in a number.
    pub fn named(name: &str) -> Option<Self> {
        let (series, value) = name.rsplit_once('-').unwrap_or(("", name));
        let starts_as_number = value.starts_with(|letter: char| letter.is_ascii_digit());
        let value = value.replace('_', ".").parse().ok().filter(|_| starts_as_number)?;
        Some(CurvePoint { series: series.to_owned(), value })
    }

    /// The points of some systems, or an error that names the first without one.
    pub fn all<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>> {
        let point = |name: &str| {
            CurvePoint::named(name).ok_or_else(|| {
                Error::usage(
                    format_args!("--curve: the name {name} does not end in a number"),
                    "name systems by the value they were made with: --predictions list-0_3=FILE",
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
    fn the_end_of_a_name_is_the_number() {
        let point = |series: &str, value| Some(CurvePoint { series: series.to_owned(), value });
        assert_eq!(CurvePoint::named("rf-list-0_05"), point("rf-list", 0.05));
        assert_eq!(CurvePoint::named("rf-point-64"), point("rf-point", 64.0));
        assert_eq!(CurvePoint::named("100"), point("", 100.0));
        for odd in ["rf-list", "all", "", "-", "x-nan", "x-inf", "x-1-"] {
            assert_eq!(CurvePoint::named(odd), None, "{odd}");
        }
        let error = CurvePoint::all(["a-1", "log2"]).unwrap_err();
        assert_eq!(error.to_string(), "--curve: the name log2 does not end in a number");
    }
}
