//! Reads the costs of features from a file: CSV with the columns feature, cost and, optionally, group; or TOML.

use super::features::FeatureCosts;
use csv_core::{ReadRecordResult, Reader};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

/// The costs of features by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostTable {
    features: Vec<CostEntry>,
    /// Cost of each feature that is not listed, if the file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<f64>,
    /// The file, for messages.
    #[serde(skip)]
    place: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CostEntry {
    feature: String,
    cost: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

/// A cost file in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlCosts {
    #[serde(default)]
    costs: BTreeMap<String, f64>,
    #[serde(default)]
    groups: BTreeMap<String, TomlGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlGroup {
    cost: f64,
    features: Vec<String>,
}

/// Name that stands for all features that are not listed.
const OTHERS: &str = "*";

/// Prefix of the line in which the configuration of a model records its costs.
const RECORD: &str = "# feature_costs = ";

const FORM: &str = "write CSV with the columns feature, cost and, optionally, group, or TOML with tables [costs] and [groups.NAME]";

impl CostTable {
    /// Reads a file. TOML is recognised by the extension `.toml`; everything else is CSV.
    pub fn read(location: &Location) -> Result<Self> {
        let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
        let place = location.to_string();
        let text = std::str::from_utf8(&bytes).map_err(|_| Error::place(&place, "not UTF-8 text", FORM))?;
        if place.ends_with(".toml") { Self::parse_toml(text, place) } else { Self::parse_csv(text, place) }
    }

    fn parse_toml(text: &str, place: String) -> Result<Self> {
        let TomlCosts { costs, groups } =
            toml::from_str(text).map_err(|error| Error::place(&place, error.message(), FORM))?;
        let mut table = CostTable { features: Vec::new(), others: None, place };
        for (feature, cost) in costs {
            table.add(&format!("[costs] {feature}"), feature, cost, None)?;
        }
        for (name, group) in groups {
            for feature in group.features {
                table.add(&format!("[groups.{name}]"), feature, group.cost, Some(name.clone()))?;
            }
        }
        table.checked()
    }

    fn parse_csv(text: &str, place: String) -> Result<Self> {
        let mut table = CostTable { features: Vec::new(), others: None, place };
        let mut header: Option<Vec<String>> = None;
        for (line, fields) in records(text) {
            let fault =
                |problem: &dyn Display| Error::place(format_args!("{}:{line}", table.place), problem, FORM);
            let Some(header) = &header else {
                let known = ["feature", "cost", "group"];
                if let Some(unknown) = fields.iter().find(|name| !known.contains(&name.as_str())) {
                    return Err(fault(&format_args!("unknown column {unknown:?}")));
                }
                if let Some(absent) =
                    known[..2].iter().find(|name| !fields.iter().any(|field| field == *name))
                {
                    return Err(fault(&format_args!("the header has no column {absent:?}")));
                }
                header = Some(fields);
                continue;
            };
            if fields.len() != header.len() {
                let (found, wanted) = (fields.len(), header.len());
                return Err(fault(&format_args!("{found} fields, but the header has {wanted}")));
            }
            let field = |name: &str| {
                let index = header.iter().position(|column| column == name)?;
                Some(fields[index].clone()).filter(|text| !text.is_empty())
            };
            let feature = field("feature").ok_or_else(|| fault(&"no feature"))?;
            let cost =
                field("cost").ok_or_else(|| fault(&format_args!("feature {feature:?} has no cost")))?;
            let cost = cost.parse().map_err(|_| fault(&format_args!("the cost {cost:?} is not a number")))?;
            table.add(&format!("line {line}"), feature, cost, field("group"))?;
        }
        table.checked()
    }

    fn add(&mut self, at: &str, feature: String, cost: f64, group: Option<String>) -> Result<()> {
        let fault = |problem: &dyn Display, remedy: &str| {
            Error::place(&self.place, format_args!("{at}: {problem}"), remedy)
        };
        if !(cost >= 0.0 && cost.is_finite()) {
            return Err(fault(
                &format_args!("the cost of {feature} is {cost}"),
                "give a finite number of at least 0",
            ));
        }
        if feature == OTHERS {
            if self.others.replace(cost).is_some() || group.is_some() {
                return Err(fault(
                    &"* is given twice or has a group",
                    "give the other features one cost, without a group",
                ));
            }
            return Ok(());
        }
        if self.features.iter().any(|entry| entry.feature == feature) {
            return Err(fault(&format_args!("feature {feature} is listed twice"), "list every feature once"));
        }
        if let Some(other) = self.features.iter().find(|entry| group.is_some() && entry.group == group)
            && other.cost != cost
        {
            let name = group.as_deref().unwrap_or_default();
            let problem = format!("group {name} has two costs, {} and {cost}", other.cost);
            return Err(fault(
                &problem,
                "give all features of a group the same cost, which is paid once for the group",
            ));
        }
        self.features.push(CostEntry { feature, cost, group });
        Ok(())
    }

    fn checked(self) -> Result<Self> {
        match self.features.is_empty() && self.others.is_none() {
            true => Err(Error::place(&self.place, "no feature has a cost", FORM)),
            false => Ok(self),
        }
    }

    /// Assigns the costs to features by name. Every feature must be listed, unless the table has a cost for all others,
    /// and every listed feature must exist. `data` is the dataset or model, for messages.
    pub fn of_features(&self, names: &[&str], data: &str) -> Result<FeatureCosts> {
        let known: HashMap<&str, usize> =
            names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        let mut units = vec![None; names.len()];
        let (mut costs, mut groups) = (Vec::new(), HashMap::new());
        for CostEntry { feature, cost, group } in &self.features {
            let Some(index) = known.get(feature.as_str()) else {
                return Err(Error::place(
                    &self.place,
                    format_args!("{data} has no feature {feature:?}"),
                    suggest::did_you_mean(
                        &suggest::nearest(feature, names.iter().copied()),
                        "remove it, or use the costs of this data",
                    ),
                ));
            };
            let mut next = || {
                costs.push(*cost);
                costs.len() - 1
            };
            units[*index] = Some(match group {
                Some(group) => *groups.entry(group).or_insert_with(next),
                None => next(),
            });
        }
        let absent: Vec<&str> =
            names.iter().zip(&units).filter(|(_, unit)| unit.is_none()).map(|(name, _)| *name).collect();
        let units = units.into_iter().map(|unit| match (unit, self.others) {
            (Some(unit), _) => Some(unit),
            (None, Some(cost)) => {
                costs.push(cost);
                Some(costs.len() - 1)
            }
            (None, None) => None,
        });
        match units.collect::<Option<Vec<usize>>>() {
            Some(units) => Ok(FeatureCosts { units, costs }),
            None => {
                let (shown, more) =
                    (absent[..absent.len().min(5)].join(", "), if absent.len() > 5 { ", ..." } else { "" });
                Err(Error::place(
                    &self.place,
                    format_args!(
                        "no cost for {} of the {} features of {data}: {shown}{more}",
                        absent.len(),
                        names.len()
                    ),
                    "add them, or a row with the feature * for all others",
                ))
            }
        }
    }

    /// Returns the table as the comment line with which the configuration of a model records it.
    pub fn to_record(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default(); // cannot fail: names and finite numbers
        format!("{RECORD}{json}\n")
    }

    /// Returns the table that the configuration of a model records. `None` if it was trained without costs. `place` is
    /// the model, for messages.
    pub(super) fn of_record(configuration: &str, place: &str) -> Option<Self> {
        let record = configuration.lines().find_map(|line| line.strip_prefix(RECORD))?;
        let table: CostTable = serde_json::from_str(record).ok()?;
        Some(CostTable { place: place.to_owned(), ..table })
    }
}

/// Returns the records of a CSV text with the number of their line. Empty lines are skipped, and fields are trimmed.
fn records(text: &str) -> Vec<(u64, Vec<String>)> {
    let mut reader = Reader::new();
    // With a final line break, every record is complete.
    let text = format!("{text}\n");
    let (mut input, mut records) = (text.as_bytes(), Vec::new());
    let (mut output, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 1]);
    loop {
        let line = reader.line();
        let (result, read, _, fields) = reader.read_record(input, &mut output, &mut ends);
        input = &input[read..];
        match result {
            ReadRecordResult::End => return records,
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                let starts = [0].into_iter().chain(ends[..fields].iter().copied());
                let texts = starts
                    .zip(&ends[..fields])
                    .map(|(start, end)| String::from_utf8_lossy(&output[start..*end]).trim().to_owned());
                let texts: Vec<String> = texts.collect();
                if texts.iter().any(|text| !text.is_empty()) {
                    records.push((line, texts));
                }
            }
            // Both buffers are as long as the text.
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return records,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
