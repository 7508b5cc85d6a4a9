//! Random forests: parameters, their keys and checks.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind};
use super::super::raw::RawParameters;
use super::super::sections::{
    CANDIDATES, COSTS, Candidates, LEARNING_RATE, LISTWISE, ListwiseParameters, MONOTONE, NORMALISATION,
    OBJECTIVE, PAIRWISE, RELEVANCE, RawListwise, Section, TREES, TreeParameters,
};
use super::super::settings::TrainSettings;
use super::super::words::{NamedEnum, word};
use super::{BinNeeds, LearnerConfig, LearnerParameters, LearnerSpec, Refusal, boost};
use planetree_base::error::Result;
use planetree_metric::Gain;

/// Split criterion of forests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CriterionName {
    /// Reduction in the sum of squared deviations of the labels from their mean.
    #[default]
    Variance,
    /// Reduction in the entropy of the labels.
    Entropy,
    /// Reduction in the Gini impurity of the labels.
    Gini,
    /// Increase in the expected NDCG of whole queries.
    Ndcg,
}

impl NamedEnum for CriterionName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("variance", CriterionName::Variance),
        ("entropy", CriterionName::Entropy),
        ("gini", CriterionName::Gini),
        ("ndcg", CriterionName::Ndcg),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("squared_error", CriterionName::Variance),
        ("mse", CriterionName::Variance),
        ("log_loss", CriterionName::Entropy),
        ("listwise", CriterionName::Ndcg),
    ];
}

/// How the leaf value of a forest that treats labels as classes follows from the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeafScore {
    /// The mean label.
    #[default]
    Expected,
    /// The mean of the squared labels.
    Square,
    /// The mean of 2 to the power of the label.
    Exp2,
}

impl NamedEnum for LeafScore {
    const ALL: &'static [(&'static str, Self)] =
        &[("expected", LeafScore::Expected), ("square", LeafScore::Square), ("exp2", LeafScore::Exp2)];
}

impl LeafScore {
    /// Returns the score of a label.
    pub fn of(self, label: f32) -> f64 {
        let label = f64::from(label);
        match self {
            LeafScore::Expected => label,
            LeafScore::Square => label * label,
            LeafScore::Exp2 => libm::exp2(label),
        }
    }
}

/// How forests generate candidate splits; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestCandidates {
    /// Boundaries of bins with about equal numbers of rows.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Midpoints between all neighbouring values in a node.
    Exact,
    /// One random value per feature and node.
    Random {
        /// Maximum bins per feature; 0 keeps all values distinct.
        max_bin: u32,
    },
}

impl ForestCandidates {
    /// Returns the maximum number of bins per feature; `None` keeps all values distinct.
    pub fn max_bin(self) -> Option<usize> {
        match self {
            ForestCandidates::Static { max_bin } => Some(max_bin as usize),
            ForestCandidates::Random { max_bin } => Some(max_bin as usize).filter(|bins| *bins > 0),
            ForestCandidates::Exact => None,
        }
    }
}

/// Split criterion that depends on the labels of single rows, regardless of their queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointCriterion {
    /// Reduction in the sum of squared deviations of the labels from their mean.
    Variance,
    /// Reduction in the entropy of the labels.
    Entropy,
    /// Reduction in the Gini impurity of the labels.
    Gini,
}

/// Split criterion of a forest.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestCriterion {
    /// All levels use the labels of single rows.
    Pointwise(PointCriterion),
    /// All levels use the expected metric of whole queries.
    Listwise(ListwiseParameters),
    /// The top levels are listwise, and the levels below are pointwise.
    Hybrid {
        /// Number of listwise levels.
        levels: u32,
        /// Parameters of the listwise levels.
        listwise: ListwiseParameters,
        /// Criterion of the levels below.
        below: PointCriterion,
    },
}

impl ForestCriterion {
    /// Returns the parameters of listwise splits, if any level has them.
    pub fn listwise(&self) -> Option<&ListwiseParameters> {
        match self {
            ForestCriterion::Pointwise(_) => None,
            ForestCriterion::Listwise(listwise) | ForestCriterion::Hybrid { listwise, .. } => Some(listwise),
        }
    }
}

/// Parameters of forests.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestParameters {
    /// Parameters for growing a tree.
    pub tree: TreeParameters,
    /// How candidate splits are generated.
    pub candidates: ForestCandidates,
    /// Split criterion.
    pub criterion: ForestCriterion,
    /// Whether rows or queries are sampled with replacement.
    pub bootstrap: bool,
    /// Maximum number of pairs per document; `None` trains on single documents instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are also logged.
    pub tree_strength: bool,
    /// Whether more features are sampled if all those of a node are constant in it. Listwise splits never do so.
    pub redraw_features: bool,
    /// How leaf values follow from labels that are classes.
    pub leaf_score: LeafScore,
    /// Gain of each label, used by listwise splits and by the metrics of single trees.
    pub label_gain: Gain,
}

/// Parameters of a forest, validated; [`RawForest`] has them as they were written.
pub type ForestSettings = Parameters<ForestParameters>;

/// Parameters of forests, before validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawForest {
    /// Split criterion.
    pub criterion: CriterionName,
    /// Whether rows or queries are sampled with replacement.
    pub bootstrap: bool,
    /// Maximum number of pairs per document; `None` trains on single documents instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are also logged.
    pub tree_strength: bool,
    /// Whether more features are sampled if all those of a node are constant in it.
    pub redraw_features: bool,
    /// How leaf values follow from labels that are classes.
    pub leaf_score: LeafScore,
}

/// Random forests.
pub(crate) static FOREST: LearnerSpec = LearnerSpec {
    name: "bag",
    aliases: &["rf", "random_forest"],
    noun: "a forest",
    summary: "random forest",
    own: Some(&SECTION),
    uses: &[&TREES, &COSTS, &CANDIDATES, &NORMALISATION, &LISTWISE, &MONOTONE],
    records: &[&OBJECTIVE, &RELEVANCE, &PAIRWISE, &LEARNING_RATE, &boost::SECTION],
    omits: &[&NORMALISATION],
    objectives: &[],
    no_custom_objective: Some("forests are trained directly on the labels and do not take an objective"),
    replaces_rounds: false,
    parameters,
};

/// The parameters that only forests use.
pub(super) static SECTION: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "criterion",
        aliases: &["split_criterion"],
        kind: word!(forest.criterion),
        default: "variance",
        help: "Forests: split criterion; entropy and gini treat labels as classes, ndcg scores the ranking of whole queries",
        ..Key::PLAIN
    },
    Key {
        name: "redraw_features",
        kind: KeyKind::Flag {
            set: |raw, value| raw.forest.redraw_features = value,
            get: |raw| raw.forest.redraw_features,
        },
        default: "true",
        omits_default: true,
        help: "Forests: if all features sampled for a node are constant in it, sample more; false makes the node a leaf",
        ..Key::PLAIN
    },
    Key {
        name: "leaf_score",
        kind: word!(forest.leaf_score),
        default: "expected",
        omits_default: true,
        help: "Forests that treat labels as classes: leaf value, the mean of the labels c (expected), of c^2 (square) or of 2^c (exp2)",
        ..Key::PLAIN
    },
    Key {
        name: "listwise_levels",
        kind: KeyKind::Limit {
            range: 1..=1000,
            set: |raw, value| raw.listwise.levels = value,
            get: |raw| raw.listwise.levels,
        },
        default: "0",
        help: "Forests: number of top levels split by the expected NDCG of whole queries; deeper levels use criterion",
        ..Key::PLAIN
    },
    Key {
        name: "pairs_per_document",
        kind: KeyKind::Limit {
            range: 1..=10_000,
            set: |raw, value| raw.forest.pairs_per_document = value,
            get: |raw| raw.forest.pairs_per_document,
        },
        default: "0",
        help: "Forests: train on the feature differences of document pairs, with at most this many pairs per document; 0 trains on single documents",
        ..Key::PLAIN
    },
    Key {
        name: "bootstrap",
        aliases: &["with_replacement"],
        kind: KeyKind::Flag {
            set: |raw, value| raw.forest.bootstrap = value,
            get: |raw| raw.forest.bootstrap,
        },
        default: "false",
        help: "Forests: sample rows or queries with replacement",
        ..Key::PLAIN
    },
    Key {
        name: "tree_strength",
        kind: KeyKind::Flag {
            set: |raw, value| raw.forest.tree_strength = value,
            get: |raw| raw.forest.tree_strength,
        },
        default: "false",
        help: "Forests: also log the metrics of each single tree, under NAME.tree for each validation set NAME",
        ..Key::PLAIN
    },
];

/// Rejects candidates and leaf scores that do not fit the criterion.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    let is_static = raw.candidates.kind == Candidates::Static;
    if raw.learner == &FOREST && is_static && raw.candidates.max_bin == 0 {
        raw.candidates.kind = Candidates::Exact; // every value is a bin
    }
    let candidates = raw.candidates.kind;
    if raw.forest.pairs_per_document.is_some() && candidates != Candidates::Static {
        return Err(settings.fault(
            "pairs_per_document",
            &format!("training on pairs does not support {} candidates", candidates.name()),
            "set candidates=static and max_bin=255",
        ));
    }
    check_leaf_score(settings, &mut raw.forest)
}

/// Rejects leaf scores of classes if the leaves hold mean labels or comparisons of documents.
fn check_leaf_score(settings: &TrainSettings, forest: &mut RawForest) -> Result<()> {
    let (problem, remedy) = match forest.criterion {
        _ if forest.leaf_score == LeafScore::Expected => return Ok(()),
        CriterionName::Variance => (
            "criterion=variance predicts the mean label",
            "remove it, or set criterion=entropy, gini or ndcg",
        ),
        _ if forest.pairs_per_document.is_some() => (
            "the leaves of a forest trained on pairs hold win rates",
            "remove it, or set pairs_per_document=0",
        ),
        CriterionName::Entropy | CriterionName::Gini | CriterionName::Ndcg => return Ok(()),
    };
    if settings.is_chosen("leaf_score") {
        return Err(settings.fault("leaf_score", problem, remedy));
    }
    forest.leaf_score = LeafScore::Expected;
    Ok(())
}

fn parameters(raw: &RawParameters) -> LearnerParameters {
    let max_bin = raw.candidates.max_bin;
    let RawForest { bootstrap, pairs_per_document, tree_strength, redraw_features, leaf_score, .. } =
        raw.forest;
    LearnerParameters::Forest(ForestParameters {
        tree: raw.of_tree(),
        candidates: match raw.candidates.kind {
            Candidates::Static | Candidates::Streaming => ForestCandidates::Static { max_bin },
            Candidates::Exact => ForestCandidates::Exact,
            Candidates::Random => ForestCandidates::Random { max_bin },
        },
        criterion: criterion(raw.forest.criterion, &raw.listwise),
        bootstrap,
        pairs_per_document,
        tree_strength,
        redraw_features,
        leaf_score,
        label_gain: raw.objective.label_gain.clone(),
    })
}

fn criterion(name: CriterionName, listwise: &RawListwise) -> ForestCriterion {
    let RawListwise { levels, splits } = listwise.clone();
    let below = match name {
        CriterionName::Ndcg => return ForestCriterion::Listwise(splits),
        CriterionName::Variance => PointCriterion::Variance,
        CriterionName::Entropy => PointCriterion::Entropy,
        CriterionName::Gini => PointCriterion::Gini,
    };
    match levels {
        None => ForestCriterion::Pointwise(below),
        Some(levels) => ForestCriterion::Hybrid { levels, listwise: splits, below },
    }
}

impl PointCriterion {
    fn name(self) -> CriterionName {
        match self {
            PointCriterion::Variance => CriterionName::Variance,
            PointCriterion::Entropy => CriterionName::Entropy,
            PointCriterion::Gini => CriterionName::Gini,
        }
    }
}

impl LearnerConfig for ForestParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &FOREST
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.set_tree(&self.tree);
        raw.objective.label_gain = self.label_gain.clone();
        let candidates = &mut raw.candidates;
        (candidates.value_groups, candidates.workers) = (0, 0);
        (candidates.kind, candidates.max_bin) = match self.candidates {
            ForestCandidates::Static { max_bin } => (Candidates::Static, max_bin),
            ForestCandidates::Exact => (Candidates::Exact, 0),
            ForestCandidates::Random { max_bin } => (Candidates::Random, max_bin),
        };
        let (criterion, levels) = match &self.criterion {
            ForestCriterion::Pointwise(criterion) => (criterion.name(), None),
            ForestCriterion::Listwise(_) => (CriterionName::Ndcg, None),
            ForestCriterion::Hybrid { levels, below, .. } => (below.name(), Some(*levels)),
        };
        raw.listwise.levels = levels;
        if let Some(splits) = self.criterion.listwise() {
            raw.listwise.splits = splits.clone();
        }
        raw.forest = RawForest {
            criterion,
            bootstrap: self.bootstrap,
            pairs_per_document: self.pairs_per_document,
            tree_strength: self.tree_strength,
            redraw_features: self.redraw_features,
            leaf_score: self.leaf_score,
        };
    }

    fn tree(&self) -> Option<&TreeParameters> {
        Some(&self.tree)
    }

    fn draws(&self) -> bool {
        self.bootstrap
            || self.pairs_per_document.is_some()
            || matches!(self.candidates, ForestCandidates::Random { .. })
            || self.tree.draws()
    }

    fn bins(&self) -> BinNeeds {
        // Forests look up the codes of single rows for a few features per node, so they do not use sparse groups.
        BinNeeds { max_bin: self.candidates.max_bin(), sparse: false }
    }

    fn refuses_to_follow(&self) -> Option<Refusal> {
        Some(Refusal {
            problem: "a forest cannot follow another stage: its trees are trained on the labels, not on what \
                      earlier stages leave unexplained",
            remedy: "make the forest stage 1, or set ensemble=boost",
        })
    }

    fn refuses_start_model(&self) -> Option<Refusal> {
        Some(Refusal {
            problem: "a forest cannot continue from a model: its trees are independent",
            remedy: "remove --start-model, or set ensemble=boost",
        })
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        let (problem, remedy) = match &self.criterion {
            _ if self.pairs_per_document.is_some() => {
                ("a pairwise forest has no classes", "set pairs_per_document=0")
            }
            ForestCriterion::Listwise(_) | ForestCriterion::Hybrid { .. } => {
                ("a listwise forest has no classes", "set criterion=variance and listwise_levels=0")
            }
            ForestCriterion::Pointwise(_) if self.leaf_score != LeafScore::Expected => {
                ("class_scores is the score of a grade, not leaf_score", "set leaf_score=expected")
            }
            ForestCriterion::Pointwise(_) => return None,
        };
        Some(Refusal { problem, remedy })
    }

    fn refuses_cluster(&self, has_extras: bool) -> Option<&'static str> {
        match has_extras {
            _ if self.pairs_per_document.is_some() => Some("a pairwise forest"),
            true => Some(
                "a forest with out-of-bag scores (--oob, or --rounds without --valid) or with --strength",
            ),
            false => None,
        }
    }
}
