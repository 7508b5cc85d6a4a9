//! Chooses the weights of a blend.

use super::{BlendRequest, BlendScores, ascent, no_labels};
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use std::fmt;

/// The range of given weights other than 0, without their signs. Scores multiplied by a weight must stay finite, and
/// ratios of weights must not exceed what a sum of doubles can represent.
const LEAST_WEIGHT: f64 = 1e-9;
const MOST_WEIGHT: f64 = 1e9;

/// How the weights of a blend are chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum WeightMethod {
    /// All members have the same weight, and the weights add up to 1.
    Equal,
    /// The weights are given, one per member.
    Given(Vec<f64>),
    /// Least squares of the labels on the values of the members and a constant.
    LeastSquares,
    /// Coordinate ascent on a metric.
    Ascent(Metric),
}

/// The weights of a blend.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundWeights {
    /// One weight per member.
    pub weights: Vec<f64>,
    /// The constant of the least squares; 0 for other methods.
    pub intercept: f64,
    /// Messages about members that were left out.
    pub notes: Vec<String>,
}

impl WeightMethod {
    /// Parses the value of `--weights`. `members` is the number of members.
    pub fn parse(text: &str, members: usize) -> Result<Self> {
        let text = text.trim();
        match text {
            "equal" => return Ok(WeightMethod::Equal),
            "ols" => return Ok(WeightMethod::LeastSquares),
            _ => {}
        }
        if let Some(metric) = text.strip_prefix("ascent:") {
            return Ok(WeightMethod::Ascent(rank_metric(metric.parse()?)?));
        }
        if text == "ascent" {
            return Ok(WeightMethod::Ascent(Metric::Ndcg(Some(10))));
        }
        let weight = |word: &str| {
            let weight: f64 = word.trim().parse().map_err(|_| {
                Error::usage(
                    format_args!("--weights {text}: {:?} is neither a number nor a method", word.trim()),
                    "pass equal, ols, ascent:METRIC or one number per model, such as 0.2,0.8",
                )
            })?;
            if !weight.is_finite() {
                return Err(Error::usage(
                    format_args!("--weights {text}: {} is not finite", word.trim()),
                    "pass finite weights",
                ));
            }
            match weight == 0.0 || (LEAST_WEIGHT..=MOST_WEIGHT).contains(&weight.abs()) {
                true => Ok(weight),
                false => Err(Error::usage(
                    format_args!("--weights {text}: {} is out of range", word.trim()),
                    format_args!(
                        "pass 0, or an absolute value from {LEAST_WEIGHT:e} to {MOST_WEIGHT:e}; only the ratios of weights \
                         matter for a ranking"
                    ),
                )),
            }
        };
        let weights = text.split(',').map(weight).collect::<Result<Vec<f64>>>()?;
        if weights.len() != members {
            return Err(Error::usage(
                format_args!("--weights has {} weights, but there are {members} models", weights.len()),
                "pass one weight per model, in the same order",
            ));
        }
        if weights.iter().all(|weight| *weight == 0.0) {
            return Err(Error::usage(
                "--weights: all weights are 0",
                "pass at least one weight other than 0",
            ));
        }
        Ok(WeightMethod::Given(weights))
    }

    /// Returns the weights for rows without labels. Returns an error if the method needs labels.
    pub fn without_labels(&self, scores: &BlendScores) -> Result<FoundWeights> {
        match self {
            WeightMethod::Equal | WeightMethod::Given(_) => self.without_data(scores.values.len()),
            WeightMethod::LeastSquares | WeightMethod::Ascent(_) => Err(no_labels(&scores.place)),
        }
    }

    /// Returns the weights if they can be chosen without data.
    pub(super) fn without_data(&self, members: usize) -> Result<FoundWeights> {
        let weights = match self {
            WeightMethod::Equal => vec![1.0 / members as f64; members],
            WeightMethod::Given(weights) => weights.clone(),
            WeightMethod::LeastSquares | WeightMethod::Ascent(_) => {
                return Err(Error::usage(
                    format_args!("--weights {self} needs validation data"),
                    "pass --data DATASET, or choose --weights equal or a list of weights",
                ));
            }
        };
        Ok(FoundWeights { weights, intercept: 0.0, notes: Vec::new() })
    }
}

impl fmt::Display for WeightMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightMethod::Equal => f.write_str("equal"),
            WeightMethod::LeastSquares => f.write_str("ols"),
            WeightMethod::Ascent(metric) => write!(f, "ascent:{metric}"),
            WeightMethod::Given(weights) => {
                let weights: Vec<String> = weights.iter().map(f64::to_string).collect();
                f.write_str(&weights.join(","))
            }
        }
    }
}

/// Rejects metrics that depend on the scale of scores, which coordinate ascent ignores.
fn rank_metric(metric: Metric) -> Result<Metric> {
    match metric {
        Metric::Rmse => Err(Error::usage(
            "--weights ascent:rmse: coordinate ascent needs a metric of rankings",
            "choose --weights ols, which minimises the squared error, or a metric such as ndcg@10",
        )),
        metric => Ok(metric),
    }
}

/// Finds the weights on validation data. A member that ranks nothing gets weight 0, unless the weights are given.
pub(super) fn find(scores: &BlendScores, request: &BlendRequest) -> Result<FoundWeights> {
    let members = scores.values.len();
    let is_constant: Vec<bool> = (0..members).map(|member| scores.is_constant(member)).collect();
    let is_given = matches!(request.weights, WeightMethod::Given(_));
    let mut notes: Vec<String> = Vec::new();
    for (name, _) in scores.members.iter().zip(&is_constant).filter(|(_, is_constant)| **is_constant) {
        let effect = if is_given { "it does not change the ranking" } else { "its weight is 0" };
        notes.push(format!("{name} gives all documents of a query the same score: {effect}"));
    }
    let varying: Vec<usize> = (0..members).filter(|member| !is_constant[*member]).collect();
    if varying.is_empty() && !is_given {
        return Err(Error::place(
            &scores.place,
            "every model gives all documents of a query the same score",
            "blend models that rank the documents of this data",
        ));
    }
    let spread = |few: &[f64]| {
        let mut weights = vec![0.0; members];
        varying.iter().zip(few).for_each(|(member, weight)| weights[*member] = *weight);
        weights
    };
    let (weights, intercept) = match &request.weights {
        WeightMethod::Given(weights) => (weights.clone(), 0.0),
        WeightMethod::Equal => (spread(&vec![1.0 / varying.len() as f64; varying.len()]), 0.0),
        WeightMethod::LeastSquares => {
            let fit = scores.least_squares(&varying);
            for (member, _) in varying.iter().zip(&fit.dependent).filter(|(_, dependent)| **dependent) {
                let name = &scores.members[*member];
                notes.push(format!(
                    "the scores of {name} are a linear function of the others': its weight is 0"
                ));
            }
            (spread(&fit.coefficients), fit.intercept)
        }
        WeightMethod::Ascent(metric) => {
            (spread(&ascent::ascend(scores, &varying, *metric, &request.convention)?), 0.0)
        }
    };
    if let Some(weight) = weights.iter().chain([&intercept]).find(|weight| !weight.is_finite()) {
        return Err(Error::place(
            &scores.place,
            format_args!("a weight became {weight}: the scores are too large for least squares"),
            "normalise the models, for example with --normalise z",
        ));
    }
    Ok(FoundWeights { weights, intercept, notes })
}
