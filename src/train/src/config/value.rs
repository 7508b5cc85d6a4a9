//! Parses and prints parameter values.

use super::keys::{ALWAYS_FRACTIONS, Key, KeyKind, Reals};
use super::raw::RawParameters;
use super::{BaseScore, FeatureCount};
use planetree_data::LabelMap;
use planetree_metric::{Discount, Gain, Metric};
use std::ops::RangeInclusive;

/// Parameters that are printed only if they differ from the default.
const OMITTED_DEFAULTS: [&str; 8] = [
    "redraw_features",
    "leaf_score",
    "listwise_metric",
    "queries_per_node",
    "min_data_to_split",
    "split_by",
    "leaf",
    "label_map",
];

/// Why a value is invalid, and what to write instead.
pub struct ValueError {
    pub problem: String,
    pub remedy: String,
}

impl ValueError {
    fn of(error: planetree_base::error::Error) -> Self {
        ValueError { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }
}

impl Key {
    /// Parses `text` and sets the parameter to its value. `written` is the name or alias that was used.
    pub fn read(
        &'static self,
        written: &str,
        text: &str,
        parameters: &mut RawParameters,
    ) -> Result<(), ValueError> {
        let text = text.trim();
        let read = match &self.kind {
            KeyKind::Whole { range, set, .. } => {
                text.parse().ok().filter(|value| range.contains(value)).map(|value| set(parameters, value))
            }
            KeyKind::Limit { range, set, .. } => limit(text, range).map(|value| set(parameters, value)),
            KeyKind::Real { range, set, .. } => {
                text.parse().ok().filter(|value| range.contains(*value)).map(|value| set(parameters, value))
            }
            KeyKind::Word { set, .. } => set(parameters, text).then_some(()),
            KeyKind::Features => {
                feature_count(written, text).map(|count| parameters.features_per_node = count)
            }
            KeyKind::Metrics => return metrics(text).map(|metrics| parameters.metrics = metrics),
            KeyKind::Metric { set, .. } => {
                let metric: Metric = text.parse().map_err(ValueError::of)?;
                if metric.is_pooled() {
                    return Err(ValueError {
                        problem: format!("{metric} has no value for a single query"),
                        remedy: "choose a metric that has one, such as auc".to_owned(),
                    });
                }
                set(parameters, metric);
                return Ok(());
            }
            KeyKind::LabelGain => {
                // Lists from TOML are separated by commas, but gain tables by colons.
                return Gain::parse(&text.replace(',', ":"))
                    .map(|gain| parameters.label_gain = gain)
                    .map_err(|problem| ValueError {
                        problem,
                        remedy:
                            "write exp2, linear, a table such as 0,1,3,7,15, or an expression such as 3^l-1"
                                .to_owned(),
                    });
            }
            KeyKind::LabelMap => {
                let map = match text {
                    "none" => Ok(None),
                    text => text.parse::<LabelMap>().map(Some),
                };
                return map.map(|map| parameters.label_map = map).map_err(ValueError::of);
            }
            KeyKind::Discount => {
                Discount::parse(text).map(|discount| parameters.forest.listwise.discount = discount)
            }
            KeyKind::Convention => {
                return text
                    .parse()
                    .map(|convention| parameters.convention = convention)
                    .map_err(ValueError::of);
            }
            KeyKind::BaseScore => base_score(text).map(|score| parameters.base_score = score),
            KeyKind::Flag { set, .. } => flag(text).map(|value| set(parameters, value)),
            KeyKind::BaggingPer => match text.to_ascii_lowercase().as_str() {
                "tree" => Some(false),
                "run" => Some(true),
                _ => None,
            }
            .map(|per_run| parameters.bagging_per_run = per_run),
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
            remedy: format!("the default is {}", self.default),
        })
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
            KeyKind::Features if ALWAYS_FRACTIONS.contains(&written) => {
                "a fraction above 0, at most 1, or log2 or all".to_owned()
            }
            KeyKind::Features => {
                "a count such as 10, a fraction with a decimal point such as 0.1, log2 or all".to_owned()
            }
            KeyKind::Metrics => "metrics such as ndcg@10,err,rmse".to_owned(),
            KeyKind::Metric { .. } => "a metric such as ndcg, err or map".to_owned(),
            KeyKind::LabelGain => "exp2, linear, a table such as 0,1,3,7,15, or an expression".to_owned(),
            KeyKind::LabelMap => "none, or a map such as 0,1,2=0;3,4=1".to_owned(),
            KeyKind::Discount => "log2, log2^ALPHA, power:BETA or letor".to_owned(),
            KeyKind::Convention => "the name of a tool such as lightgbm or letor4, and switches".to_owned(),
            KeyKind::BaseScore => "auto, a number, or feature:NAME".to_owned(),
            KeyKind::Flag { .. } => "true or false".to_owned(),
            KeyKind::BaggingPer => "tree or run".to_owned(),
            KeyKind::QueryFraction => "a number above 0, at most 1".to_owned(),
            KeyKind::Agreed { values, .. } => one_of(values),
        }
    }

    /// Returns whether a printed value is left out of configurations because it is the default of a parameter that
    /// earlier versions did not have. So the configuration of a training that does not use the parameter keeps its text.
    pub fn is_omitted(&self, printed: &str) -> bool {
        OMITTED_DEFAULTS.contains(&self.name) && printed.trim_matches('"') == self.default
    }

    /// Formats the current value as TOML; returns `None` for shorthands and for keys that are not parameters.
    pub fn print(&self, parameters: &RawParameters) -> Option<String> {
        Some(match &self.kind {
            KeyKind::Whole { get, .. } => get(parameters).to_string(),
            KeyKind::Limit { get, .. } => get(parameters).unwrap_or(0).to_string(),
            // The shortest string that parses to the same number.
            KeyKind::Real { get, .. } => format!("{:?}", get(parameters)),
            KeyKind::Word { get, .. } => format!("{:?}", get(parameters)),
            KeyKind::Features => match parameters.features_per_node {
                FeatureCount::All => "\"all\"".to_owned(),
                FeatureCount::Log2 => "\"log2\"".to_owned(),
                FeatureCount::Count(count) => count.to_string(),
                FeatureCount::Fraction(fraction) => format!("{fraction:?}"),
            },
            KeyKind::Metrics => {
                let names: Vec<String> =
                    parameters.metrics.iter().map(|metric| format!("\"{metric}\"")).collect();
                format!("[{}]", names.join(", "))
            }
            KeyKind::Metric { get, .. } => format!("\"{}\"", get(parameters)),
            KeyKind::LabelGain => format!("\"{}\"", parameters.label_gain),
            KeyKind::LabelMap => match &parameters.label_map {
                Some(map) => format!("\"{map}\""),
                None => "\"none\"".to_owned(),
            },
            KeyKind::Discount => format!("\"{}\"", parameters.forest.listwise.discount),
            KeyKind::Convention => format!("\"{}\"", parameters.convention),
            KeyKind::BaseScore => match &parameters.base_score {
                BaseScore::Auto => "\"auto\"".to_owned(),
                BaseScore::Constant(score) => format!("{score:?}"),
                BaseScore::Feature(name) => quoted(&format!("feature:{name}")),
            },
            KeyKind::Flag { get, .. } => get(parameters).to_string(),
            KeyKind::BaggingPer => return parameters.bagging_per_run.then(|| "\"run\"".to_owned()),
            KeyKind::QueryFraction | KeyKind::Agreed { .. } => return None,
        })
    }
}

impl Reals {
    fn contains(&self, value: f64) -> bool {
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

fn feature_count(written: &str, text: &str) -> Option<FeatureCount> {
    if text.eq_ignore_ascii_case("all") {
        return Some(FeatureCount::All);
    }
    if text.eq_ignore_ascii_case("log2") {
        return Some(FeatureCount::Log2);
    }
    // The decimal point decides: 1 means one feature, 1.0 means all features.
    if ALWAYS_FRACTIONS.contains(&written) || text.contains(['.', 'e', 'E']) {
        let fraction = text.parse().ok()?;
        (Reals { zero: false, most: 1.0 }).contains(fraction).then_some(FeatureCount::Fraction(fraction))
    } else {
        let count: u32 = text.parse().ok()?;
        (count > 0).then_some(FeatureCount::Count(count as usize))
    }
}

fn quoted(text: &str) -> String {
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

fn base_score(text: &str) -> Option<BaseScore> {
    if text.eq_ignore_ascii_case("auto") {
        return Some(BaseScore::Auto);
    }
    match text.strip_prefix("feature:") {
        Some(name) => (!name.is_empty()).then(|| BaseScore::Feature(name.to_owned())),
        None => text.parse().ok().filter(|score: &f64| score.is_finite()).map(BaseScore::Constant),
    }
}

fn metrics(text: &str) -> Result<Vec<Metric>, ValueError> {
    let mut metrics = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let metric: Metric = name.parse().map_err(ValueError::of)?;
        if metrics.contains(&metric) {
            return Err(ValueError {
                problem: format!("{metric} is listed twice"),
                remedy: "list it once".to_owned(),
            });
        }
        metrics.push(metric);
    }
    if metrics.is_empty() {
        return Err(ValueError {
            problem: "no metric given".to_owned(),
            remedy: "list at least one metric, such as ndcg@10".to_owned(),
        });
    }
    Ok(metrics)
}
