//! Boosting: parameters, their keys and checks.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind, NOT_NEGATIVE, Written};
use super::super::raw::RawParameters;
use super::super::sections::{
    CANDIDATES, COSTS, Candidates, LEARNING_RATE, LISTWISE, MONOTONE, NORMALISATION, OBJECTIVE,
    ObjectiveName, ObjectiveParameters, PAIRWISE, PairwiseLoss, RELEVANCE, Section, StreamingParameters,
    TREES, TreeParameters,
};
use super::super::settings::TrainSettings;
use super::super::value::{ValueError, quoted};
use super::super::words::{NamedEnum, real, word};
use super::{BinNeeds, LearnerConfig, LearnerParameters, LearnerSpec, Refusal, forest};
use planetree_base::error::Result;

/// How boosting scores a split, with G the sum of gradients, H the sum of hessians and n the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitBy {
    /// G^2 / (H + lambda).
    #[default]
    Newton,
    /// G^2 / n: least squares on the gradients, as in MART (Friedman 2001).
    Gradient,
    /// G^2: the advantage of a weak ranker of RankBoost.
    Sum,
}

impl NamedEnum for SplitBy {
    const ALL: &'static [(&'static str, Self)] =
        &[("newton", SplitBy::Newton), ("gradient", SplitBy::Gradient), ("sum", SplitBy::Sum)];
}

/// How boosting computes leaf values; see [`SplitBy`] for the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeafStep {
    /// G / (H + lambda).
    #[default]
    Newton,
    /// G / n, the mean gradient.
    Mean,
    /// The weight of a weak ranker of RankBoost on the right side, and 0 on the left side.
    WeakRanker,
}

impl NamedEnum for LeafStep {
    const ALL: &'static [(&'static str, Self)] =
        &[("newton", LeafStep::Newton), ("mean", LeafStep::Mean), ("weak_ranker", LeafStep::WeakRanker)];
}

/// Initial score, before the first tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum BaseScore {
    /// The best constant for the objective: the mean label, the log odds, or 0.
    #[default]
    Auto,
    /// A fixed number.
    Constant(f64),
    /// Each row's value of the feature with this name.
    Feature(String),
}

impl BaseScore {
    /// Returns whether scores start at 0 or at a value that the learner chooses.
    fn is_open(&self) -> bool {
        matches!(self, BaseScore::Auto | BaseScore::Constant(0.0))
    }
}

/// How boosting generates candidate splits; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoostCandidates {
    /// Boundaries of bins with about equal numbers of rows.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Quantiles of streaming histograms, which are rebuilt for every node.
    Streaming(StreamingParameters),
    /// Midpoints between all neighbouring values in a node.
    Exact,
}

impl BoostCandidates {
    /// Returns the maximum number of bins per feature; `None` keeps all values distinct.
    pub fn max_bin(self) -> Option<usize> {
        match self {
            BoostCandidates::Static { max_bin } => Some(max_bin as usize),
            BoostCandidates::Streaming(streaming) => {
                Some(streaming.value_groups as usize).filter(|groups| *groups > 0)
            }
            BoostCandidates::Exact => None,
        }
    }
}

/// Parameters of boosting.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostParameters {
    /// Parameters for growing a tree.
    pub tree: TreeParameters,
    /// How candidate splits are generated.
    pub candidates: BoostCandidates,
    /// Training objective.
    pub objective: ObjectiveParameters,
    /// Initial score, before the first tree.
    pub base_score: BaseScore,
    /// Shrinkage factor applied to leaf values.
    pub learning_rate: f64,
    /// Maximum number of leaves per tree. If set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// How splits are scored.
    pub split_by: SplitBy,
    /// How leaf values are computed.
    pub leaf: LeafStep,
    /// L2 regularisation of leaf values and of splits, for Newton steps.
    pub lambda_l2: f64,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
}

/// Training parameters of boosting.
pub type BoostSettings = Parameters<BoostParameters>;

/// Parameters of boosting, before validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawBoost {
    /// Initial score, before the first tree.
    pub base_score: BaseScore,
    /// Maximum number of leaves per tree. If set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// How splits are scored.
    pub split_by: SplitBy,
    /// How leaf values are computed.
    pub leaf: LeafStep,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
}

/// Boosting.
pub(crate) static BOOST: LearnerSpec = LearnerSpec {
    name: "boost",
    aliases: &["gbdt", "gbrt", "gbtree"],
    noun: "boosting",
    summary: "gradient boosting",
    own: Some(&SECTION),
    uses: &[
        &OBJECTIVE,
        &RELEVANCE,
        &PAIRWISE,
        &TREES,
        &COSTS,
        &CANDIDATES,
        &NORMALISATION,
        &LEARNING_RATE,
        &MONOTONE,
    ],
    records: &[&forest::SECTION, &LISTWISE],
    omits: &[&NORMALISATION],
    objectives: &[],
    no_custom_objective: None,
    replaces_rounds: false,
    parameters,
};

/// The parameters that only boosting uses.
pub(super) static SECTION: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "base_score",
        aliases: &["init_score", "start_score"],
        kind: KeyKind::Custom {
            expected: |_| "auto, a number, or feature:NAME",
            set: set_base_score,
            get: |raw| match &raw.boost.base_score {
                BaseScore::Auto => "\"auto\"".to_owned(),
                BaseScore::Constant(score) => format!("{score:?}"),
                BaseScore::Feature(name) => quoted(&format!("feature:{name}")),
            },
        },
        default: "auto",
        help: "Initial score: auto (the best constant), a number, or feature:NAME for the values of that feature",
        ..Key::PLAIN
    },
    Key {
        name: "num_leaves",
        aliases: &["max_leaves", "max_leaf_nodes", "num_leaf", "leaves"],
        kind: KeyKind::Limit {
            range: 2..=1_048_576,
            set: |raw, value| raw.boost.num_leaves = value,
            get: |raw| raw.boost.num_leaves,
        },
        default: "0",
        help: "Maximum leaves per tree; if set, trees grow best-first, otherwise level by level",
        ..Key::PLAIN
    },
    Key {
        name: "split_by",
        kind: word!(boost.split_by),
        default: "newton",
        omits_default: true,
        help: "Boosting: score of splits, newton (G^2 / (H + lambda_l2)), gradient (least squares on the gradients, G^2 / n) or sum (G^2, for RankBoost)",
        ..Key::PLAIN
    },
    Key {
        name: "leaf",
        kind: word!(boost.leaf),
        default: "newton",
        omits_default: true,
        help: "Boosting: value of leaves, newton (G / (H + lambda_l2)), mean (the mean gradient, G / n) or weak_ranker (the weight of a weak ranker of RankBoost on the right side)",
        ..Key::PLAIN
    },
    Key {
        name: "min_sum_hessian",
        aliases: &["min_sum_hessian_in_leaf", "min_child_weight", "min_sum_hessian_per_leaf"],
        kind: real!(boost.min_sum_hessian, NOT_NEGATIVE),
        default: "0.0",
        help: "Minimum sum of hessians per leaf; with squared error, the hessian of a row is its weight",
        ..Key::PLAIN
    },
    Key {
        name: "bagging_per",
        kind: KeyKind::Word {
            words: || vec!["tree", "run"],
            set: |raw, text| {
                raw.tree.sampling.per_run = text.eq_ignore_ascii_case("run");
                raw.tree.sampling.per_run || text.eq_ignore_ascii_case("tree")
            },
            get: |raw| if raw.tree.sampling.per_run { "run" } else { "tree" },
        },
        default: "tree",
        omits_default: true,
        help: "Boosting: draw a new sample of rows or queries for every tree, or one for the whole run (bagged boosting)",
        ..Key::PLAIN
    },
];

fn set_base_score(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    raw.boost.base_score = base_score(written.text).ok_or(None)?;
    Ok(())
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

/// Rejects splits by gradient for which no candidates exist, regularisation that no Newton step uses, and trees without
/// a limit.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.boost.split_by == SplitBy::Gradient
        && raw.candidates.kind == Candidates::Streaming
        && raw.objective.name != ObjectiveName::Squared
    {
        if settings.is_chosen("split_by") {
            return Err(settings.fault(
                "split_by",
                "streaming candidates sum hessians, not rows, unless objective=squared",
                "set split_by=newton, or candidates=static",
            ));
        }
        raw.boost.split_by = SplitBy::Newton;
    }
    // An explicit number of leaves disables the preset's depth limit.
    if raw.boost.num_leaves.is_some() && settings.is_chosen("num_leaves") && !settings.is_chosen("max_depth")
    {
        raw.tree.max_depth = None;
    }
    check_rankboost(settings, raw)?;
    let steps = (raw.boost.split_by, raw.boost.leaf);
    let is_unregularised =
        matches!(steps, (SplitBy::Gradient, LeafStep::Mean) | (SplitBy::Sum, LeafStep::WeakRanker));
    if is_unregularised && raw.objective.lambda_l2 > 0.0 {
        return Err(settings.fault(
            "lambda_l2",
            &format!("split_by={} with leaf={} has no regularisation", steps.0.name(), steps.1.name()),
            "remove it, or set split_by=newton or leaf=newton",
        ));
    }
    if raw.learner == &BOOST && raw.tree.max_depth.is_none() && raw.boost.num_leaves.is_none() {
        return Err(settings.fault(
            "max_depth",
            "a tree needs a limit: max_depth or num_leaves",
            "set num_leaves=31 or max_depth=5, for example",
        ));
    }
    Ok(())
}

/// Rejects the splits and leaves of RankBoost without its objective, and with trees of more than two leaves.
fn check_rankboost(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    let (is_sum, is_weak) = (raw.boost.split_by == SplitBy::Sum, raw.boost.leaf == LeafStep::WeakRanker);
    if (is_sum || is_weak) && raw.objective.name != ObjectiveName::RankBoost {
        let name = if is_sum { "split_by" } else { "leaf" };
        if settings.is_chosen(name) {
            return Err(settings.fault(
                name,
                &format!(
                    "{name} = {} is only for objective = rankboost",
                    if is_sum { "sum" } else { "weak_ranker" }
                ),
                "set objective=rankboost, or use the preset rankboost",
            ));
        }
        // The values of a preset do not apply to the objective that the user chose.
        if is_sum {
            raw.boost.split_by = SplitBy::Newton;
        }
        if is_weak {
            raw.boost.leaf = LeafStep::Newton;
        }
        return Ok(());
    }
    if is_weak && raw.tree.max_depth != Some(1) {
        return Err(settings.fault(
            "max_depth",
            "leaf=weak_ranker needs trees with two leaves: max_depth = 1",
            "set max_depth=1, or leaf=newton",
        ));
    }
    if is_sum && raw.candidates.kind == Candidates::Streaming {
        return Err(settings.fault(
            "split_by",
            "streaming candidates cannot be scored by split_by = sum",
            "set split_by=newton, or candidates=static",
        ));
    }
    Ok(())
}

fn parameters(raw: &RawParameters) -> LearnerParameters {
    let max_bin = raw.candidates.max_bin;
    let RawBoost { base_score, num_leaves, split_by, leaf, min_sum_hessian } = raw.boost.clone();
    LearnerParameters::Boost(BoostParameters {
        tree: raw.of_tree(),
        candidates: match raw.candidates.kind {
            Candidates::Static | Candidates::Random => BoostCandidates::Static { max_bin },
            Candidates::Streaming => BoostCandidates::Streaming(StreamingParameters {
                max_bin,
                value_groups: raw.candidates.value_groups,
                workers: raw.candidates.workers,
            }),
            Candidates::Exact => BoostCandidates::Exact,
        },
        objective: raw.objective.parameters(),
        base_score,
        learning_rate: raw.learning_rate,
        num_leaves,
        split_by,
        leaf,
        lambda_l2: raw.objective.lambda_l2,
        min_sum_hessian,
    })
}

impl LearnerConfig for BoostParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &BOOST
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.set_tree(&self.tree);
        raw.learning_rate = self.learning_rate;
        raw.boost = RawBoost {
            base_score: self.base_score.clone(),
            num_leaves: self.num_leaves,
            split_by: self.split_by,
            leaf: self.leaf,
            min_sum_hessian: self.min_sum_hessian,
        };
        raw.objective.write(&self.objective);
        raw.objective.lambda_l2 = self.lambda_l2;
        let candidates = &mut raw.candidates;
        (candidates.value_groups, candidates.workers) = (0, 0);
        (candidates.kind, candidates.max_bin) = match &self.candidates {
            BoostCandidates::Static { max_bin } => (Candidates::Static, *max_bin),
            BoostCandidates::Exact => (Candidates::Exact, 0),
            BoostCandidates::Streaming(streaming) => {
                (candidates.value_groups, candidates.workers) = (streaming.value_groups, streaming.workers);
                (Candidates::Streaming, streaming.max_bin)
            }
        };
    }

    fn tree(&self) -> Option<&TreeParameters> {
        Some(&self.tree)
    }

    fn draws(&self) -> bool {
        self.objective == ObjectiveParameters::XeNdcg || self.tree.draws()
    }

    fn bins(&self) -> BinNeeds {
        BinNeeds { max_bin: self.candidates.max_bin(), sparse: true }
    }

    fn refuses_to_follow(&self) -> Option<Refusal> {
        (!self.base_score.is_open()).then_some(Refusal {
            problem: "base_score conflicts with the scores of the stage before it",
            remedy: "remove base_score",
        })
    }

    fn refuses_start_model(&self) -> Option<Refusal> {
        (!self.base_score.is_open()).then_some(Refusal {
            problem: "base_score conflicts with --start-model, which has its own base score",
            remedy: "remove base_score or --start-model",
        })
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        if self.objective != ObjectiveParameters::Squared {
            return Some(Refusal {
                problem: "classes are learned by squared error on 0 and 1",
                remedy: "set objective=squared",
            });
        }
        matches!(self.base_score, BaseScore::Feature(_)).then_some(Refusal {
            problem: "base_score is a feature, but classes are learned on 0 and 1",
            remedy: "remove base_score",
        })
    }

    fn refuses_cluster(&self, _has_extras: bool) -> Option<&'static str> {
        match &self.objective {
            ObjectiveParameters::Pairwise(pairwise)
                if matches!(pairwise.loss, PairwiseLoss::Logistic { unbiased: true, .. }) =>
            {
                Some("an unbiased objective")
            }
            _ => None,
        }
    }
}
