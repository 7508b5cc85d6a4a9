//! The learners, each with its own parameters in a file of its own. To add a learner, write such a file and list it
//! here.

mod adarank;
mod boost;
mod coordinate_ascent;
mod forest;
mod linear;
mod metric_ranker;
mod net;
mod ranksvm;
mod svm;

pub(super) use boost::{BOOST, RawBoost};
pub(super) use forest::{FOREST, RawForest};
pub(super) use net::RawNet;
pub(super) use svm::{COST, RawSvm};

pub(crate) use adarank::{AdaRankOptions, AdaRankParameters, AdaRankSettings};
pub(crate) use boost::{BaseScore, BoostParameters, LeafStep, SplitBy};
pub use boost::{BoostCandidates, BoostSettings};
pub(crate) use coordinate_ascent::{
    CoordinateAscentOptions, CoordinateAscentParameters, CoordinateAscentSettings,
};
pub use forest::ForestSettings;
pub(crate) use forest::{
    CriterionName, ForestCandidates, ForestCriterion, ForestParameters, LeafScore, PointCriterion,
};
pub use linear::LinearSettings;
pub(crate) use linear::{LinearLoss, LinearParameters, LinearPenalty};
pub(crate) use metric_ranker::{MetricRanker, RankerParameters};
pub(crate) use net::{NetParameters, NetSettings, Optimiser};
pub(crate) use ranksvm::{RankSvmParameters, RankSvmSettings};
pub(crate) use svm::svm_costs;

use super::keys::{Key, section_keys};
use super::raw::RawParameters;
use super::sections::{OBJECTIVE, SHARED, Section};
use super::{ObjectiveName, TreeParameters};

/// All learners. The first one is the default.
pub(super) static LEARNERS: &[&LearnerSpec] = &[
    &boost::BOOST,
    &forest::FOREST,
    &linear::LINEAR,
    &svm::SVM,
    &ranksvm::RANKSVM,
    &adarank::ADARANK,
    &coordinate_ascent::COORDINATE_ASCENT,
    &net::NET,
];

/// A learner and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum LearnerParameters {
    /// Gradient boosting.
    Boost(BoostParameters),
    /// A random forest.
    Forest(ForestParameters),
    /// A linear model.
    Linear(LinearParameters),
    /// A ranking SVM.
    RankSvm(RankSvmParameters),
    /// AdaRank.
    AdaRank(AdaRankParameters),
    /// Coordinate Ascent.
    CoordinateAscent(CoordinateAscentParameters),
    /// A net.
    Net(NetParameters),
}

impl LearnerParameters {
    /// Returns what the rest of the program needs to know about the learner.
    pub fn config(&self) -> &dyn LearnerConfig {
        match self {
            LearnerParameters::Boost(boost) => boost,
            LearnerParameters::Forest(forest) => forest,
            LearnerParameters::Linear(linear) => linear,
            LearnerParameters::RankSvm(ranksvm) => ranksvm,
            LearnerParameters::AdaRank(adarank) => adarank,
            LearnerParameters::CoordinateAscent(ascent) => ascent,
            LearnerParameters::Net(net) => net,
        }
    }
}

/// What is the same for all parameters of a learner.
pub struct LearnerSpec {
    /// The value of `ensemble`.
    pub name: &'static str,
    /// Names that other tools use.
    pub aliases: &'static [&'static str],
    /// What messages call it, such as `a forest`.
    pub noun: &'static str,
    /// A few words for the help.
    pub summary: &'static str,
    /// The section of the parameters that are the learner's own; `None` if it shares all of them with others.
    pub(super) own: Option<&'static Section>,
    /// The other sections that it uses, besides the parameters of all learners.
    pub(super) uses: &'static [&'static Section],
    /// The sections that it does not use, but that its models record with neutral values.
    pub(super) records: &'static [&'static Section],
    /// The sections whose default values are left out of its configurations, because earlier versions of the learner did
    /// not use them. So the configuration of a training that does not use them keeps its text.
    pub(super) omits: &'static [&'static Section],
    /// The objectives that it has; empty if it has all of them or does not use `objective`.
    pub(super) objectives: &'static [ObjectiveName],
    /// Why it takes no objective of another crate; `None` if it does.
    pub no_custom_objective: Option<&'static str>,
    /// Whether each round replaces the content of the part, in place of adding to it.
    pub replaces_rounds: bool,
    /// Returns the learner with its parameters. Validation has rejected combinations that it does not support.
    pub(super) parameters: fn(&RawParameters) -> LearnerParameters,
}

/// Why something cannot be done, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The problem.
    pub problem: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

/// What a learner needs its rows binned like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinNeeds {
    /// Maximum bins per feature; `None` keeps all values distinct.
    pub max_bin: Option<usize>,
    /// Whether features that have the same code in most rows may be stored sparsely.
    pub sparse: bool,
}

/// What the rest of the program needs to know about the parameters of a learner.
pub trait LearnerConfig {
    /// Returns what is the same for all parameters of the learner.
    fn spec(&self) -> &'static LearnerSpec;

    /// Sets the values of the parameters that the learner uses.
    fn write(&self, raw: &mut RawParameters);

    /// Returns the parameters for growing a tree; `None` if the learner grows no trees.
    fn tree(&self) -> Option<&TreeParameters> {
        None
    }

    /// Returns whether a training run with another seed gives another model.
    fn draws(&self) -> bool {
        false
    }

    /// Returns how the rows are binned. Learners that grow no trees use only the fill values and the constant features.
    fn bins(&self) -> BinNeeds {
        BinNeeds { max_bin: Some(255), sparse: true }
    }

    /// Returns why the learner cannot be trained without a validation set.
    fn needs_validation(&self) -> Option<Refusal> {
        None
    }

    /// Returns why the learner cannot be a later stage.
    fn refuses_to_follow(&self) -> Option<Refusal> {
        None
    }

    /// Returns why the learner cannot continue from a model.
    fn refuses_start_model(&self) -> Option<Refusal> {
        None
    }

    /// Returns why the learner cannot learn whether a label is at most a grade.
    fn refuses_classes(&self) -> Option<Refusal> {
        None
    }

    /// Returns what cannot be trained on a cluster. `has_extras` says whether out-of-bag scores or the strength of trees
    /// are wanted.
    fn refuses_cluster(&self, has_extras: bool) -> Option<&'static str> {
        let _ = has_extras;
        None
    }
}

impl PartialEq for LearnerSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for LearnerSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl LearnerSpec {
    /// Finds a learner by name or alias, ignoring case.
    pub(super) fn named(text: &str) -> Option<&'static LearnerSpec> {
        let is_named = |learner: &LearnerSpec| {
            std::iter::once(&learner.name).chain(learner.aliases).any(|name| name.eq_ignore_ascii_case(text))
        };
        LEARNERS.iter().copied().find(|learner| is_named(learner))
    }

    /// Returns whether the learner uses a parameter by itself, whatever the objective.
    pub(super) fn has_own(&self, name: &str) -> bool {
        let entry = section_keys().find(|entry| entry.key.name == name);
        entry.is_some_and(|entry| self.uses(entry.section)) && !self.uses(&OBJECTIVE)
    }

    fn uses(&self, section: &'static Section) -> bool {
        std::ptr::eq(section, &SHARED)
            || self.own.is_some_and(|own| std::ptr::eq(own, section))
            || section.is_in(self.uses)
    }

    /// Returns the parameters that the learner does not use.
    pub(super) fn foreign(&'static self) -> impl Iterator<Item = &'static Key> {
        let is_foreign = |section: &'static Section| !section.depends && !self.uses(section);
        section_keys().filter(move |entry| is_foreign(entry.section)).map(|entry| entry.key)
    }

    /// Returns the parameters that the models of the learner record.
    pub(super) fn recorded(&'static self) -> impl Iterator<Item = &'static Key> {
        let is_recorded = |section: &'static Section| self.uses(section) || section.is_in(self.records);
        section_keys().filter(move |entry| is_recorded(entry.section)).map(|entry| entry.key)
    }

    /// Returns whether configurations of the learner leave out the default value of a parameter.
    pub(super) fn omits_default(&self, key: &Key) -> bool {
        let has_key = |section: &&Section| section.keys.iter().any(|own| own.name == key.name);
        key.omits_default || self.omits.iter().any(has_key)
    }

    /// Returns the first learner that uses a parameter.
    pub(super) fn user_of(key: &Key) -> &'static LearnerSpec {
        let section = section_keys().find(|entry| std::ptr::eq(entry.key, key)).map(|entry| entry.section);
        let user = section.and_then(|section| LEARNERS.iter().find(|learner| learner.uses(section)));
        user.unwrap_or(&LEARNERS[0])
    }
}
