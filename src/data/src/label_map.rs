//! Replaces labels by other ones, such as grades by relevant and not relevant.

use planetree_base::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A map of labels. The text form lists the old labels of every new one: `0,1,2=0;3,4=1`. A label that is not listed is
/// an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabelMap {
    /// New labels, each with the old ones, in the order of the text.
    groups: Vec<(f32, Vec<f32>)>,
}

impl LabelMap {
    /// Metadata key under which a table stores the map of its labels.
    pub const KEY: &'static str = "planetree.label_map";

    /// Returns the new label of an old one; `None` if it is not listed.
    pub fn get(&self, label: f32) -> Option<f32> {
        let (new, _) = self.groups.iter().find(|(_, old)| old.contains(&label))?;
        Some(*new)
    }

    /// Replaces labels. NaN is a missing label, which stays missing. Returns the index of the first label that is not
    /// listed as an error.
    pub fn apply(&self, labels: &mut [f32]) -> Result<(), usize> {
        for (row, label) in labels.iter_mut().enumerate().filter(|(_, label)| !label.is_nan()) {
            *label = self.get(*label).ok_or(row)?;
        }
        Ok(())
    }

    /// Returns the error for a label that is not listed.
    pub fn unlisted(&self, place: impl fmt::Display, row: u64, label: f32) -> Error {
        Error::place(
            place,
            format_args!("row {row} has the label {label}, which label_map {self} does not list"),
            format_args!("add the label to the map, for example {self};{label}={label}"),
        )
    }
}

impl FromStr for LabelMap {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |problem: String| {
            Error::usage(
                format_args!("label map {text:?}: {problem}"),
                "list the old labels of every new one, such as 0,1,2=0;3,4=1",
            )
        };
        let label = |word: &str| match word.trim().parse::<f32>() {
            Ok(label) if label.is_finite() => Ok(label + 0.0), // -0 is 0
            _ => Err(invalid(format!("{:?} is not a label", word.trim()))),
        };
        let mut groups: Vec<(f32, Vec<f32>)> = Vec::new();
        for group in text.split(';').map(str::trim).filter(|group| !group.is_empty()) {
            let Some((old, new)) = group.split_once('=') else {
                return Err(invalid(format!("{group:?} is not of the form OLD,OLD=NEW")));
            };
            let (new, old) = (label(new)?, old.split(',').map(label).collect::<Result<Vec<f32>>>()?);
            for (index, label) in old.iter().enumerate() {
                let is_listed = groups.iter().any(|(_, other)| other.contains(label));
                if is_listed || old[..index].contains(label) {
                    return Err(invalid(format!("label {label} is listed twice")));
                }
            }
            groups.push((new, old));
        }
        if groups.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        Ok(LabelMap { groups })
    }
}

impl fmt::Display for LabelMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (new, old)) in self.groups.iter().enumerate() {
            let old: Vec<String> = old.iter().map(f32::to_string).collect();
            write!(f, "{}{}={new}", if index > 0 { ";" } else { "" }, old.join(","))?;
        }
        Ok(())
    }
}

impl TryFrom<String> for LabelMap {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<LabelMap> for String {
    fn from(map: LabelMap) -> Self {
        map.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_parses_prints_and_maps() {
        let map: LabelMap = " 0, 1,2=0; 3,4 = 1 ;".parse().unwrap();
        assert_eq!(map.to_string(), "0,1,2=0;3,4=1");
        assert_eq!(map.to_string().parse::<LabelMap>().unwrap(), map);
        let mut labels = [0.0, 2.0, 3.0, 4.0, f32::NAN, -0.0];
        map.apply(&mut labels).unwrap();
        assert_eq!(labels[..4], [0.0, 0.0, 1.0, 1.0]);
        assert!(labels[4].is_nan() && labels[5] == 0.0);
        assert_eq!(map.apply(&mut [1.0, 5.0]), Err(1));
        let error = map.unlisted("data", 7, 5.0).to_string();
        assert!(
            error.contains("row 7 has the label 5, which label_map 0,1,2=0;3,4=1 does not list"),
            "{error}"
        );
        assert_eq!("0.5=-1".parse::<LabelMap>().unwrap().get(0.5), Some(-1.0));
    }

    #[test]
    fn invalid_maps_are_refused() {
        for (text, expected) in [
            ("", "it is empty"),
            ("0,1", "\"0,1\" is not of the form"),
            ("0=1;x=2", "\"x\" is not a label"),
            ("0=inf", "\"inf\" is not a label"),
            ("0,,1=1", "\"\" is not a label"),
            ("0,1=0;1=1", "label 1 is listed twice"),
            ("2,2=0", "label 2 is listed twice"),
        ] {
            let error = text.parse::<LabelMap>().unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
