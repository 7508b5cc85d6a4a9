//! Parses and prints parameter values.

use super::foreign::foreign_value_answer;
use super::keys::{Key, KeyKind, Reals, Written};
use super::learners::{LEARNERS, LearnerSpec};
use super::raw::RawParameters;
use std::ops::RangeInclusive;

/// Why a value is invalid, and what to write instead.
pub struct ValueError {
    pub problem: String,
    pub remedy: String,
}

impl ValueError {
    pub fn of(error: planetree_base::error::Error) -> Self {
        ValueError { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }
}

impl Key {
    /// Parses `text` and sets the parameter to its value. `written` is the name or alias that was used. The remedy for a
    /// value of another tool says what planetree has instead.
    pub fn read(&'static self, written: &str, text: &str, raw: &mut RawParameters) -> Result<(), ValueError> {
        let text = text.trim();
        self.parse(written, text, raw).map_err(|fault| {
            // The first member of a list that is refused by itself is the fault.
            let is_refused =
                |value: &&str| self.parse(written, value, &mut RawParameters::default()).is_err();
            let refused = text.split(',').map(str::trim).find(is_refused).unwrap_or(text);
            match foreign_value_answer(self.name, refused) {
                Some(answer) => ValueError { remedy: answer.to_owned(), ..fault },
                None => fault,
            }
        })
    }

    fn parse(&'static self, written: &str, text: &str, raw: &mut RawParameters) -> Result<(), ValueError> {
        let read = match &self.kind {
            KeyKind::Whole { range, set, .. } => {
                text.parse().ok().filter(|value| range.contains(value)).map(|value| set(raw, value))
            }
            KeyKind::Limit { range, set, .. } => limit(text, range).map(|value| set(raw, value)),
            KeyKind::Real { range, set, .. } => {
                text.parse().ok().filter(|value| range.contains(*value)).map(|value| set(raw, value))
            }
            KeyKind::Word { set, .. } => set(raw, text).then_some(()),
            KeyKind::Metric { set, .. } => {
                let metric: planetree_metric::Metric = text.parse().map_err(ValueError::of)?;
                if metric.is_pooled() {
                    return Err(ValueError {
                        problem: format!("{metric} has no value for a single query"),
                        remedy: "choose a metric that has one, such as auc".to_owned(),
                    });
                }
                set(raw, metric);
                return Ok(());
            }
            KeyKind::Custom { set, .. } => match set(raw, Written { name: written, text }) {
                Ok(()) => Some(()),
                Err(None) => None,
                Err(Some(fault)) => return Err(fault),
            },
            KeyKind::Learner => LearnerSpec::named(text).map(|learner| raw.learner = learner),
            KeyKind::Flag { set, .. } => flag(text).map(|value| set(raw, value)),
            KeyKind::QueryFraction => Some(()),
            KeyKind::Agreed { values, does } => {
                return if values.iter().any(|value| value.eq_ignore_ascii_case(text)) {
                    Ok(())
                } else {
                    Err(ValueError {
                        problem: "not supported".to_owned(),
                        remedy: format!("planetree uses {does}: set {written}={}, or remove it", values[0]),
                    })
                };
            }
        };
        read.ok_or_else(|| ValueError {
            problem: format!("expected {}", self.expected(written)),
            remedy: self.default_remedy(),
        })
    }

    /// Names the default, for error messages.
    pub fn default_remedy(&self) -> String {
        format!("the default is {}", self.default)
    }

    /// Describes the valid values, for error messages.
    pub fn expected(&self, written: &str) -> String {
        match &self.kind {
            KeyKind::Whole { range, .. } if *range.end() == i64::MAX as u64 => {
                format!("a whole number from {}", range.start())
            }
            KeyKind::Whole { range, .. } => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            KeyKind::Limit { range, .. } => {
                format!("a whole number from {} to {}, or 0 or -1 for none", range.start(), range.end())
            }
            KeyKind::Real { range, .. } => range.expected(),
            KeyKind::Word { words, .. } => one_of(&words()),
            KeyKind::Metric { .. } => "a metric such as ndcg, err or map".to_owned(),
            KeyKind::Custom { expected, .. } => expected(written).to_owned(),
            KeyKind::Learner => one_of(&LEARNERS.iter().map(|learner| learner.name).collect::<Vec<_>>()),
            KeyKind::Flag { .. } => "true or false".to_owned(),
            KeyKind::QueryFraction => "a number above 0, at most 1".to_owned(),
            KeyKind::Agreed { values, .. } => one_of(values),
        }
    }

    /// Returns whether a printed value is the default.
    pub fn is_default(&self, printed: &str) -> bool {
        printed.trim_matches('"') == self.default
    }

    /// Formats the current value as TOML; returns `None` for shorthands and for keys that are not parameters.
    pub fn print(&self, raw: &RawParameters) -> Option<String> {
        Some(match &self.kind {
            KeyKind::Whole { get, .. } => get(raw).to_string(),
            KeyKind::Limit { get, .. } => get(raw).unwrap_or(0).to_string(),
            // The shortest string that parses to the same number.
            KeyKind::Real { get, .. } => format!("{:?}", get(raw)),
            KeyKind::Word { get, .. } => format!("{:?}", get(raw)),
            KeyKind::Metric { get, .. } => format!("\"{}\"", get(raw)),
            KeyKind::Custom { get, .. } => get(raw),
            KeyKind::Learner => format!("\"{}\"", raw.learner.name),
            KeyKind::Flag { get, .. } => get(raw).to_string(),
            KeyKind::QueryFraction | KeyKind::Agreed { .. } => return None,
        })
    }
}

impl Reals {
    /// Returns whether a number is in the range.
    pub fn contains(&self, value: f64) -> bool {
        value.is_finite() && value <= self.most && if self.zero { value >= 0.0 } else { value > 0.0 }
    }

    fn expected(&self) -> String {
        let from = if self.zero { "a number from 0" } else { "a number above 0" };
        if self.most.is_finite() { format!("{from}, at most {}", self.most) } else { from.to_owned() }
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => words.concat(),
    }
}

/// Parses a limit. Returns `Some(None)` for no limit, and `None` if the text is invalid.
fn limit(text: &str, range: &RangeInclusive<u32>) -> Option<Option<u32>> {
    match text.parse::<i64>().ok()? {
        0 | -1 => Some(None),
        value => u32::try_from(value).ok().filter(|value| range.contains(value)).map(Some),
    }
}

/// Formats a string as TOML.
pub(super) fn quoted(text: &str) -> String {
    // JSON and TOML escape strings in the same way.
    serde_json::Value::from(text).to_string()
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
