//! The section `[paper]` of a pipeline: which tables of a paper it re-obtains, the paper's figures, and its findings.
//! Reports show the figures beside those of the run, and whether the findings hold.

use super::document::{LocatedValue, PipelineValue};
use planetree_base::error::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A paper whose tables a pipeline re-obtains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Authors, title and year, and which tables or figures.
    pub source: String,
    /// How the pipeline differs from the paper; may be empty.
    #[serde(default)]
    pub differences: String,
    /// Metrics, which are the columns of all tables that list none.
    pub metrics: Vec<String>,
    /// Differences of two systems, which are systems themselves.
    #[serde(default, rename = "difference")]
    pub system_differences: Vec<PaperDifference>,
    /// Tables, in the paper's layout.
    #[serde(default, rename = "table")]
    pub tables: Vec<PaperTable>,
    /// Tables of two systems by the part that a fold tests, with significance tests.
    #[serde(default, rename = "by_part")]
    pub by_part: Vec<PaperByPart>,
    /// Findings of the paper.
    #[serde(default, rename = "finding")]
    pub findings: Vec<PaperFinding>,
}

/// A table or figure of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// Number and title.
    pub title: String,
    /// Metrics of the columns; empty for those of the paper.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Whether values are shown relative to the best one of the column.
    #[serde(default)]
    pub relative: bool,
    /// Rows.
    pub rows: Vec<PaperRow>,
}

/// The difference of two systems, query by query. Tables and findings refer to it by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperDifference {
    /// Name of the difference.
    pub system: String,
    /// The system that the other one is subtracted from.
    pub of: String,
    /// The system that is subtracted.
    pub minus: String,
}

/// A table of two systems by the part that a fold tests, with one-sided tests of the second system being better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperByPart {
    /// Number and title.
    pub title: String,
    /// The two systems, which are `cv` steps.
    pub systems: [String; 2],
    /// Names of the systems in the paper.
    pub names: [String; 2],
    /// Metrics; empty for those of the paper.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The paper's figures.
    #[serde(default)]
    pub rows: Vec<PaperPartRow>,
}

/// The paper's figures of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPartRow {
    /// Number of the part that is tested, from 1; 0 for all parts together.
    pub part: u32,
    /// By dataset, for each metric: the values of the two systems, and p.
    pub theirs: BTreeMap<String, Vec<Option<f64>>>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// System of the run: a `cv` step, or `STEP:SYSTEM` for a system of an `evaluate` step or a row of a CSV file of an
    /// `sql` step. If a pattern matches several, the row is their mean.
    pub system: String,
    /// Name of the row in the paper; empty for the name of the system.
    #[serde(default)]
    pub name: String,
    /// The paper's figures by dataset, in the order of the metrics.
    #[serde(default)]
    pub theirs: BTreeMap<String, Vec<Option<f64>>>,
}

/// A finding of a paper: an order or a trend of systems.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFinding {
    /// The finding in words.
    pub text: String,
    /// Metrics for which it is checked; empty for those of the paper.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Systems that are better than all of `than`.
    #[serde(default)]
    pub better: Vec<String>,
    /// Systems that those of `better` are compared with.
    #[serde(default)]
    pub than: Vec<String>,
    /// Systems of a trend: the last one is better than the first. The evidence counts the steps in between that improve.
    #[serde(default)]
    pub rising: Vec<String>,
    /// Systems that do not differ.
    #[serde(default)]
    pub alike: Vec<String>,
    /// Largest relative distance of `alike` systems from the best one. By default, a significance test decides.
    #[serde(default)]
    pub within: Option<f64>,
    /// Whether the systems that a pattern matches are averaged, as runs with several seeds are.
    #[serde(default)]
    pub average: bool,
}

impl Paper {
    /// Reads the section of a pipeline, in which parameters are already replaced by their values.
    pub(super) fn read(item: &LocatedValue) -> Result<Self> {
        let remedy = "see [paper] in docs/pipelines.md";
        let paper: Paper = serde_json::from_value(json_of(item))
            .map_err(|error| item.fault(format_args!("invalid [paper]: {error}"), remedy))?;
        for table in &paper.by_part {
            let expected =
                3 * if table.metrics.is_empty() { paper.metrics.len() } else { table.metrics.len() };
            let mut counts = table.rows.iter().flat_map(|row| row.theirs.values().map(Vec::len));
            if let Some(count) = counts.find(|count| *count != expected) {
                return Err(item.fault(
                    format_args!("{:?} has {count} figures for a part instead of {expected}", table.title),
                    "write two values and p for each metric; nan if unknown",
                ));
            }
        }
        for finding in &paper.findings {
            let kinds = [&finding.better, &finding.rising, &finding.alike];
            if kinds.iter().filter(|systems| !systems.is_empty()).count() != 1
                || finding.better.is_empty() != finding.than.is_empty()
            {
                let problem =
                    format_args!("finding {:?} must have one of better, rising and alike", finding.text);
                return Err(item.fault(problem, "write better = [...] and than = [...], or rising = [...]"));
            }
        }
        Ok(paper)
    }
}

/// Converts a value of a pipeline file to JSON. `nan` becomes null, for a figure that the paper does not give.
fn json_of(item: &LocatedValue) -> Value {
    match &item.value {
        PipelineValue::Text(text) => Value::String(text.clone()),
        PipelineValue::Flag(flag) => Value::Bool(*flag),
        PipelineValue::Plain(text) => match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(count), _) => Value::from(count),
            (_, Ok(number)) => Value::from(number),
            _ => Value::String(text.clone()),
        },
        PipelineValue::List(items) => Value::Array(items.iter().map(json_of).collect()),
        PipelineValue::Table(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.clone(), json_of(&entry.item))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::document::PipelineDocument;

    fn read(text: &str) -> Result<Paper> {
        let document = PipelineDocument::parse("p.toml", &format!("{text}\n[step.a]\n")).unwrap();
        Paper::read(&document.paper.unwrap())
    }

    #[test]
    fn figures_and_findings_are_read() {
        let text = "[paper]\nsource = 'S'\nmetrics = ['err', 'ndcg@10']\n[[paper.table]]\ntitle = 'T'\n\
            rows = [{ system = 'rf', theirs = { 'Set 2' = [nan, 0.77] } }]\n[[paper.finding]]\ntext = 'F'\n\
            better = ['rf']\nthan = ['gbrt-*']\n";
        let paper = read(text).unwrap();
        assert_eq!(paper.tables[0].rows[0].theirs["Set 2"], [None, Some(0.77)]);
        assert_eq!(paper.findings[0].than, ["gbrt-*"]);
        let more = format!(
            "{text}[[paper.difference]]\nsystem = 'gain'\nof = 'rf'\nminus = 'gbrt'\n[[paper.by_part]]\n\
             title = 'By part'\nsystems = ['gbrt', 'rf']\nnames = ['GBRT', 'RF']\n\
             rows = [{{ part = 1, theirs = {{ 'Set 2' = [0.45, 0.46, 0.01, 0.76, 0.77, nan] }} }}]\n"
        );
        let paper = read(&more).unwrap();
        assert_eq!(paper.system_differences[0].minus, "gbrt");
        assert_eq!(paper.by_part[0].rows[0].theirs["Set 2"][5], None);
        let error = read(&more.replace(", nan] } }", "] } }")).unwrap_err().to_string();
        assert!(error.contains("\"By part\" has 5 figures for a part instead of 6"), "{error}");
        for (from, to, expected) in [
            ("than", "tham", "p.toml:1:2: invalid [paper]: unknown field `tham`"),
            ("than = ['gbrt-*']", "", "must have one of better, rising and alike"),
            ("source", "sauce", "unknown field `sauce`"),
        ] {
            let error = read(&text.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
