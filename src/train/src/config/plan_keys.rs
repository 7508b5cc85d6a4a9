//! The table of the keys of a training plan: those that apply to all stages together. The keys of a single stage are in
//! `keys.rs`.

use super::plan::{
    ClassScores, ClassWeights, LeastSquaresData, OrdinalTarget, StageStart, Target, TrainingPlan,
};
use super::value::ValueError;

/// Most runs that can be averaged.
const MOST_RUNS: u32 = 1000;

/// A key of a training plan.
pub(super) struct PlanKey {
    /// The name.
    pub name: &'static str,
    /// Description of the valid values.
    pub expected: &'static str,
    /// The default value, as a user would write it.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Parses a value. Returns `None` if it is invalid.
    read: fn(&mut RawPlan, &str) -> Option<()>,
    /// Formats the value as TOML; returns `None` for the default.
    pub print: fn(&TrainingPlan) -> Option<String>,
}

/// The values of all plan keys, as they were parsed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RawPlan {
    pub runs: u32,
    pub target: RawTarget,
    pub class_scores: Option<ClassScores>,
    pub class_weights: Option<ClassWeights>,
    pub stage_start: StageStart,
}

/// The value of the key `target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawTarget {
    Labels,
    AtMost(i32),
    Ordinal,
}

impl Default for RawPlan {
    fn default() -> Self {
        RawPlan {
            runs: 1,
            target: RawTarget::Labels,
            class_scores: None,
            class_weights: None,
            stage_start: StageStart::InSample,
        }
    }
}

/// All keys of a plan, in the order in which they are printed.
pub(super) static PLAN_KEYS: [PlanKey; 5] = [
    PlanKey {
        name: "target",
        expected: "labels, ordinal or at_most:GRADE",
        default: "labels",
        help: "What is learned: labels, the probability of every grade (ordinal: one part per grade below the highest, \
               squared error on 0 and 1), or of the labels up to one grade (at_most:GRADE)",
        read: |plan, text| {
            plan.target = match text.to_ascii_lowercase().as_str() {
                "labels" => RawTarget::Labels,
                "ordinal" => RawTarget::Ordinal,
                other => RawTarget::AtMost(other.strip_prefix("at_most:")?.parse().ok()?),
            };
            Some(())
        },
        print: |plan| match &plan.target {
            Target::Labels | Target::Classes(_) => None,
            target => Some(format!("\"{}\"", target.name())),
        },
    },
    PlanKey {
        name: "class_scores",
        expected: "expected, square, exp2 or one number per grade such as 0,1,3,7,15",
        default: "expected",
        help: "target=ordinal, objective=softmax_classes: score of each grade; a document's score is its expected value",
        read: |plan, text| {
            plan.class_scores = Some(match text.to_ascii_lowercase().as_str() {
                "expected" => ClassScores::Expected,
                "square" => ClassScores::Square,
                "exp2" => ClassScores::Exp2,
                other => ClassScores::List(numbers(other)?),
            });
            Some(())
        },
        print: |plan| match &plan.target {
            Target::Ordinal(OrdinalTarget { scores, .. }) | Target::Classes(scores) => match scores {
                ClassScores::Expected => None,
                ClassScores::Square => Some("\"square\"".to_owned()),
                ClassScores::Exp2 => Some("\"exp2\"".to_owned()),
                ClassScores::List(list) => Some(format!("{list:?}")),
            },
            Target::Labels | Target::AtMost(_) => None,
        },
    },
    PlanKey {
        name: "class_weights",
        expected: "scores, ols:train, ols:valid, ols:both, or one number per grade below the highest and the intercept",
        default: "scores",
        help: "target=ordinal: weights of the parts, from class_scores, from least squares after training, or as given",
        read: |plan, text| {
            let all = [LeastSquaresData::Train, LeastSquaresData::Valid, LeastSquaresData::Both];
            let text = text.to_ascii_lowercase();
            plan.class_weights = Some(match all.into_iter().find(|data| data.name() == text) {
                Some(data) => ClassWeights::LeastSquares(data),
                None if text == "scores" => ClassWeights::Scores,
                None => ClassWeights::List(numbers(&text)?),
            });
            Some(())
        },
        print: |plan| match &plan.target {
            Target::Ordinal(ordinal) => match &ordinal.weights {
                ClassWeights::Scores => None,
                ClassWeights::List(list) => Some(format!("{list:?}")),
                ClassWeights::LeastSquares(data) => Some(format!("\"{}\"", data.name())),
            },
            _ => None,
        },
    },
    PlanKey {
        name: "runs",
        expected: "a whole number from 1 to 1000",
        default: "1",
        help: "Number of runs with different seeds, grown side by side, whose scores are averaged",
        read: |plan, text| {
            plan.runs = text.parse().ok().filter(|runs| (1..=MOST_RUNS).contains(runs))?;
            Some(())
        },
        print: |plan| (plan.runs > 1).then(|| plan.runs.to_string()),
    },
    PlanKey {
        name: "start_scores",
        expected: "in_sample or oob",
        default: "in_sample",
        help: "Stages: training scores that stage 2 starts from: those of stage 1, or its out-of-bag scores (oob)",
        read: |plan, text| {
            plan.stage_start = match text.to_ascii_lowercase().as_str() {
                "in_sample" => StageStart::InSample,
                "oob" => StageStart::OutOfBag,
                _ => return None,
            };
            Some(())
        },
        print: |plan| (plan.stage_start == StageStart::OutOfBag).then(|| "\"oob\"".to_owned()),
    },
];

impl PlanKey {
    /// Finds a key by name.
    pub(super) fn named(name: &str) -> Option<&'static PlanKey> {
        PLAN_KEYS.iter().find(|key| key.name == name)
    }

    /// Parses `text` and sets the value.
    pub(super) fn read(&self, text: &str, plan: &mut RawPlan) -> Result<(), ValueError> {
        (self.read)(plan, text.trim()).ok_or_else(|| ValueError {
            problem: format!("expected {}", self.expected),
            remedy: format!("the default is {}", self.default),
        })
    }
}

impl RawPlan {
    /// Returns the target. `is_softmax` says whether the objective is a classification of the grades. The error is the
    /// name of a key that the target does not use.
    pub(super) fn target(&self, is_softmax: bool) -> Result<Target, &'static str> {
        match self.target {
            RawTarget::Labels if is_softmax => match self.class_weights {
                Some(_) => Err("class_weights"),
                None => Ok(Target::Classes(self.class_scores.clone().unwrap_or(ClassScores::Expected))),
            },
            RawTarget::Ordinal => Ok(Target::Ordinal(OrdinalTarget {
                scores: self.class_scores.clone().unwrap_or(ClassScores::Expected),
                weights: self.class_weights.clone().unwrap_or(ClassWeights::Scores),
            })),
            _ if self.class_scores.is_some() => Err("class_scores"),
            _ if self.class_weights.is_some() => Err("class_weights"),
            RawTarget::Labels => Ok(Target::Labels),
            RawTarget::AtMost(grade) => Ok(Target::AtMost(grade)),
        }
    }
}

/// Parses at least two finite numbers, separated by commas.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    text.split(',').map(number).collect::<Option<Vec<f64>>>().filter(|numbers| numbers.len() > 1)
}
