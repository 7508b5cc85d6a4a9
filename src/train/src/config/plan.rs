//! Training plans: models that are trained in stages, averaged over several runs, or made of one part per class.

use super::plan_keys::PLAN_KEYS;
use super::{BaseScore, CostParameters, LearnerParameters, MonotoneConstraints, Parameters};
use planetree_base::error::{Error, Result};
use planetree_metric::{Convention, Metric};
use std::fmt::Write;

/// A training run: its stages, the number of runs to average, and what is learned. Most plans have a single stage and
/// a single run, and learn the labels.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingPlan {
    /// Parameters of the stages. Each stage continues from the scores of those before it. There is at least one.
    pub stages: Vec<Parameters>,
    /// Number of runs with different seeds, whose scores are averaged.
    pub runs: u32,
    /// What is learned.
    pub target: Target,
    /// The scores of the training rows that the second stage starts from.
    pub stage_start: StageStart,
}

/// What a training run learns.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The labels.
    Labels,
    /// Whether a label is at most this grade: 1 if it is, otherwise 0.
    AtMost(i32),
    /// The probability of every grade, by one part per grade below the highest.
    Ordinal(OrdinalTarget),
    /// The probability of every grade, by one part per grade (`objective=softmax_classes`). Has the scores of the grades.
    Classes(ClassScores),
}

/// How a score is computed from the probabilities of the grades.
#[derive(Debug, Clone, PartialEq)]
pub struct OrdinalTarget {
    /// The score of each grade.
    pub scores: ClassScores,
    /// Where the weights of the parts come from.
    pub weights: ClassWeights,
}

/// The score of each grade. The score of a document is its expected value.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassScores {
    /// The grade itself.
    Expected,
    /// The square of the grade.
    Square,
    /// 2 to the power of the grade.
    Exp2,
    /// One number per grade, in ascending order of the grades.
    List(Vec<f64>),
}

/// Where the weights of the parts of an ordinal model come from. A part estimates the probability that a label is at
/// most a grade.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeights {
    /// They follow from the scores of the grades.
    Scores,
    /// One number per part, and the intercept.
    List(Vec<f64>),
    /// Least squares of the labels, after training.
    LeastSquares(LeastSquaresData),
}

/// The rows that least squares are computed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeastSquaresData {
    /// The training data.
    Train,
    /// The first validation set.
    Valid,
    /// The training data and the first validation set.
    Both,
}

/// The scores of the training rows that the second stage starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageStart {
    /// The scores of the first stage.
    InSample,
    /// The out-of-bag scores of the first stage, which is a forest.
    OutOfBag,
}

impl From<Parameters> for TrainingPlan {
    fn from(parameters: Parameters) -> Self {
        TrainingPlan {
            stages: vec![parameters],
            runs: 1,
            target: Target::Labels,
            stage_start: StageStart::InSample,
        }
    }
}

impl TrainingPlan {
    /// Returns the parameters of the first stage.
    pub fn first(&self) -> &Parameters {
        self.stages.first().expect("a plan has at least one stage")
    }

    /// Returns the parameters if the plan trains a single part.
    pub fn only(&self) -> Option<&Parameters> {
        match self.stages.as_slice() {
            [only] if self.runs == 1 && !self.target.has_classes() => Some(only),
            _ => None,
        }
    }

    /// Returns the convention of the metrics, which all stages share.
    pub fn convention(&self) -> &Convention {
        &self.first().convention
    }

    /// Returns the metric that selects the rounds of the last stage.
    pub fn selection_metric(&self) -> Option<Metric> {
        self.stages.last()?.metrics.first().copied()
    }

    /// Returns the plan with the values that `cost_lambda` and `cost_batch` have if they are not set.
    pub(crate) fn with_cost_values(&self) -> Self {
        let mut plan = self.clone();
        for stage in &mut plan.stages {
            match &mut stage.learner {
                LearnerParameters::Boost(boost) => {
                    boost.tree.costs.lambda = Some(boost.tree.costs.lambda());
                }
                LearnerParameters::Forest(forest) => {
                    let costs = forest.tree.costs;
                    forest.tree.costs =
                        CostParameters { lambda: Some(costs.lambda()), batch: Some(costs.batch()) };
                }
                _ => {}
            }
        }
        plan
    }

    /// Formats the plan as TOML, in a fixed order. A plan with one stage has no `[[stage]]` table.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for key in &PLAN_KEYS {
            if let Some(value) = (key.print)(self) {
                let _ = writeln!(text, "{} = {value}", key.name); // writing to a String cannot fail
            }
        }
        match self.stages.as_slice() {
            [only] => text.push_str(&only.to_toml()),
            stages => stages.iter().for_each(|stage| {
                let _ = write!(text, "\n[[stage]]\n{}", stage.to_toml());
            }),
        }
        text
    }

    /// Parses and validates the output of [`TrainingPlan::to_toml`]. Missing keys get their defaults.
    pub fn from_toml(text: &str) -> Result<Self> {
        super::load::plan_of_text("configuration", text)
    }

    /// Returns an error if early stopping or the weights of classes need a validation set and there is none.
    pub fn check_validation(&self, has_validation: bool) -> Result<()> {
        for stage in &self.stages {
            if let Some(refusal) = stage.learner.config().needs_validation().filter(|_| !has_validation) {
                return Err(Error::usage(refusal.problem, refusal.remedy));
            }
            stage.check_validation(has_validation)?;
        }
        match &self.target {
            Target::Ordinal(OrdinalTarget { weights: ClassWeights::LeastSquares(data), .. })
                if *data != LeastSquaresData::Train && !has_validation =>
            {
                Err(Error::usage(
                    format_args!("class_weights = {}: there is no validation set", data.name()),
                    "add one with --valid, or set class_weights=ols:train",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Rejects stages that cannot follow each other, and targets and runs that the learners do not support.
    pub(super) fn check(self) -> Result<Self> {
        let first = self.first();
        for (number, stage) in (2..).zip(&self.stages[1..]) {
            let refuse = |problem: &str, remedy: &str| {
                Err(Error::usage(format_args!("stage {number}: {problem}"), remedy))
            };
            if let Some(refusal) = stage.learner.config().refuses_to_follow() {
                return refuse(refusal.problem, refusal.remedy);
            }
            if stage.missing != first.missing {
                return refuse(
                    "missing values must be replaced in the same way in all stages",
                    "set missing once, for all stages",
                );
            }
            if stage.label_map != first.label_map {
                return refuse(
                    "all stages must have the same label_map",
                    "set label_map once, for all stages",
                );
            }
            if monotone_of(stage) != monotone_of(first) {
                return refuse(
                    "all stages must have the same monotone_constraints, because their scores are added up",
                    "set monotone_constraints once, for all stages",
                );
            }
            if stage.convention != first.convention {
                return refuse(
                    "all stages must have the same convention",
                    "set convention once, for all stages",
                );
            }
        }
        let is_fixed = |stage: &Parameters| stage.tree().is_none() && !stage.learner.config().draws();
        if self.runs > 1 && self.stages.iter().all(is_fixed) {
            return Err(Error::usage(
                format_args!(
                    "runs = {}: a linear model does not depend on the seed, so all runs would be the same",
                    self.runs
                ),
                "set runs=1",
            ));
        }
        if self.runs > 1 && !self.stages.iter().any(|stage| stage.learner.config().draws()) {
            return Err(Error::usage(
                format_args!(
                    "runs = {}: no stage draws random numbers, so all runs would be the same",
                    self.runs
                ),
                "sample rows or features, such as with bagging_fraction=0.5 or features_per_node=0.1, or set runs=1",
            ));
        }
        self.check_start()?;
        self.check_target()?;
        Ok(self)
    }

    fn check_start(&self) -> Result<()> {
        if self.stage_start == StageStart::InSample {
            return Ok(());
        }
        let leaves_out = |stage: &Parameters| {
            stage.forest().is_some_and(|forest| {
                (forest.bootstrap || forest.tree.sampling.leaves_out()) && forest.pairs_per_document.is_none()
            })
        };
        match self.stages.as_slice() {
            [first, _] if leaves_out(first) => Ok(()),
            _ => Err(Error::usage(
                "start_scores = oob: out-of-bag scores need a forest as stage 1, on samples of the rows or queries, and \
                 one more stage",
                "remove start_scores",
            )),
        }
    }

    fn check_target(&self) -> Result<()> {
        match self.target {
            Target::Labels => return Ok(()),
            Target::Classes(_) => return self.check_softmax(),
            Target::Ordinal(OrdinalTarget { weights: ClassWeights::LeastSquares(data), .. })
                if self.stages.iter().any(|stage| monotone_of(stage).is_some()) =>
            {
                return Err(Error::usage(
                    format_args!(
                        "class_weights = {}: the signs of the weights, which decide in which direction the trees of a class \
                         are constrained, are known only after training",
                        data.name()
                    ),
                    "set class_weights=scores, or remove monotone_constraints",
                ));
            }
            Target::AtMost(_) | Target::Ordinal(_) => {}
        }
        for (number, stage) in (1..).zip(&self.stages) {
            let Some(refusal) = stage.learner.config().refuses_classes() else { continue };
            let stage = if self.stages.len() > 1 { format!(" in stage {number}") } else { String::new() };
            return Err(Error::usage(
                format_args!("{}{stage}: {}", self.target.setting(), refusal.problem),
                format_args!("{}, or remove target", refusal.remedy),
            ));
        }
        Ok(())
    }

    /// Rejects what the classes of a softmax cannot be trained with.
    fn check_softmax(&self) -> Result<()> {
        let (problem, remedy) = match self.stages.as_slice() {
            [only] if only.boost().is_some_and(|boost| matches!(boost.base_score, BaseScore::Feature(_))) => {
                ("base_score is a feature, but every class has a score of its own", "remove base_score")
            }
            [_] => return Ok(()),
            _ => (
                "the classes are trained together, in a single stage",
                "train one stage, or set another objective; target=ordinal has classes in all stages",
            ),
        };
        Err(Error::usage(format_args!("{}: {problem}", self.target.setting()), remedy))
    }
}

/// Returns the monotone constraints of a stage, if it has any.
fn monotone_of(stage: &Parameters) -> Option<&MonotoneConstraints> {
    stage.tree().map(|tree| &tree.monotone).filter(|monotone| !monotone.are_none())
}

impl Target {
    /// Returns whether there is a part per class.
    pub fn has_classes(&self) -> bool {
        matches!(self, Target::Ordinal(_) | Target::Classes(_))
    }

    /// Returns the setting that chooses the target, for messages.
    pub fn setting(&self) -> String {
        match self {
            Target::Classes(_) => "objective = softmax_classes".to_owned(),
            _ => format!("target = {}", self.name()),
        }
    }

    /// Returns the value of the key `target`.
    pub fn name(&self) -> String {
        match self {
            Target::Labels | Target::Classes(_) => "labels".to_owned(),
            Target::AtMost(grade) => format!("at_most:{grade}"),
            Target::Ordinal(_) => "ordinal".to_owned(),
        }
    }

    /// Returns the label that is learned in place of a label of the data.
    pub fn label(&self, label: f32) -> f32 {
        match self {
            Target::AtMost(grade) => f32::from(u8::from(f64::from(label) <= f64::from(*grade))),
            Target::Labels | Target::Ordinal(_) | Target::Classes(_) => label,
        }
    }
}

impl ClassWeights {
    /// Returns the rows that the weights are fitted on; `None` if they are not fitted.
    pub fn data(&self) -> Option<LeastSquaresData> {
        match self {
            ClassWeights::LeastSquares(data) => Some(*data),
            ClassWeights::Scores | ClassWeights::List(_) => None,
        }
    }
}

impl LeastSquaresData {
    /// Returns the value of the key `class_weights`.
    pub fn name(self) -> &'static str {
        match self {
            LeastSquaresData::Train => "ols:train",
            LeastSquaresData::Valid => "ols:valid",
            LeastSquaresData::Both => "ols:both",
        }
    }
}
