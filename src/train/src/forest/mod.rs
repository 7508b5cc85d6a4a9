//! Trains random forests. Every tree is trained on the labels of sampled rows, using sampled features, and scores are
//! means over the trees' predictions. Trees are independent, so they are grown in parallel; they are added to the
//! model in order.
//!
//! Vocabulary: a *code* is the number of the bin that a feature value falls into; a *cut* is a candidate split of a
//! node, which sends the rows with at most a given code left; a *partition* is a contiguous range of rows whose codes
//! are stored together; the *target* of a row is its label in the form that the split criterion needs, such as a
//! class number.

mod block;
mod criterion;
mod cut;
mod cut_rules;
mod features;
mod grower;
mod large;
mod learner;
mod listwise;
mod out_of_bag;
mod point;
mod route;
mod sample;
mod view;

use crate::bins::BinnedData;
use crate::config::{FeatureCount, ForestSettings, LeafScore, MissingPolicy, Sampling, StageStart};
use crate::driver::{
    DataSize, ForestNode, ForestTree, Learner, MemberInput, Observer, PartSettings, Scores, SplitCosts,
    StageContext, StartScores, TrainRequest, ValidationData, ValidationSet, value_of,
};
use crate::objective::check_gains;
use grower::grower;
use learner::ForestLearner;
use out_of_bag::OutOfBag;
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::MOST_GAIN;
use planetree_model::model::{Combine, PartFamily, Tree, TreeEnsemble};
use planetree_model::predict::win_rates;
use route::ForestRouter;
use std::ops::Range;
use std::sync::Arc;
use view::{CodeLanes, PartitionView};

/// Name of the out-of-bag rows in the log, used like the name of a validation set.
const OUT_OF_BAG: &str = "oob";

/// Returns how many trees are grown together on memory-mapped data, so that they share each scan of the data.
fn trees_in_a_scan() -> u32 {
    8.max(rayon::current_num_threads() as u32)
}

/// Returns the memory per row, in bytes, not counting the row's codes. It covers the label, the target, and two row
/// indices for every tree that is being grown. Listwise trees and out-of-bag scores need more.
fn bytes_per_row(request: &TrainRequest, parameters: &ForestSettings) -> u64 {
    let at_a_time = if parameters.learner.criterion.listwise().is_some() {
        listwise::BYTES_PER_ROW * rayon::current_num_threads() as u64
    } else {
        0
    };
    // If every value is kept, the rows of a node are listed by code, for at least one feature of every tree.
    let listed = match parameters.learner.candidates.max_bin() {
        Some(_) => 0,
        None => 12 * u64::from(trees_in_a_scan()),
    };
    let out_of_bag = if wants_out_of_bag(request) { 8 + 4 + 16 } else { 0 };
    4 + 8 + 8 * u64::from(trees_in_a_scan()) + at_a_time + listed + out_of_bag
}

/// Returns the memory of a grown tree in bytes, at most: two nodes per leaf, in a list that may have twice the room that it
/// needs. Trees on all rows down to single ones are much larger than what else is kept of the rows.
fn tree_bytes(parameters: &ForestSettings, rows: u64) -> u64 {
    let tree = &parameters.learner.tree;
    let fraction = if tree.sampling.queries.is_some() { 1.0 } else { tree.sampling.fraction };
    // The share of distinct rows in a sample with replacement.
    let share = if parameters.learner.bootstrap { 1.0 - (-fraction).exp() } else { fraction };
    let leaves = (rows as f64 * share) as u64 / tree.min_data_in_leaf.max(1);
    let most = tree.max_depth.map_or(u64::MAX, |depth| 1u64.checked_shl(depth).unwrap_or(u64::MAX));
    2 * 2 * leaves.clamp(1, most) * size_of::<ForestNode>() as u64
}

/// More bytes than any machine has.
const MOST_BYTES: u64 = 1 << 48;

/// Returns whether out-of-bag scores are computed, as an output or as the start of the next stage.
fn wants_out_of_bag(request: &TrainRequest) -> bool {
    request.out_of_bag || request.plan.stage_start == StageStart::OutOfBag
}

/// Grows the trees whose numbers are in the range `trees`. `penalties` are those of
/// [`crate::driver::TreeGrower::set_penalties`].
pub(crate) fn grow_trees(
    parameters: &ForestSettings,
    data: &BinnedData,
    trees: Range<u32>,
    penalties: Option<&[f64]>,
) -> Result<Vec<ForestTree>> {
    /// Memory limit for sums and copied rows, in bytes. The data is already in memory.
    const ROOM: usize = 1 << 30;
    let draw = |tree: u32| sample::draw(parameters, &data.rows, tree.into());
    let mut grower = grower(parameters, data, ROOM)?;
    if let Some(penalties) = penalties {
        grower.set_penalties(penalties.into())?;
    }
    grower.grow_batch(trees, &draw)
}

impl PartSettings for ForestSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        start: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let parameters = self;
        let (request, data) = (context.request, &input.data);
        if start.is_some() {
            return Err(Error::usage(
                "a forest cannot continue from a model: its trees are independent",
                "remove --start-model, or set ensemble=boost",
            ));
        }
        check_strength(request, parameters)?;
        sample::check(parameters, &data.rows, &mut |text| observer.note(text))?;
        check_leaf_scores(parameters, data)?;
        note_clipped(parameters, context.sources.source.features(), observer);
        let set =
            |set: &Arc<ValidationData>| ValidationSet::new(set.clone(), Scores::constant(set.rows(), 0.0));
        let validation: Vec<ValidationSet> = context.validation.iter().map(set).collect();
        if request.strength {
            let check = |rows: &[LabelledRows], name: &str| {
                check_gains(&parameters.learner.label_gain, rows).map_err(|problem| problem.at(name))
            };
            check(&data.rows, "the training data")?;
            validation.iter().try_for_each(|set| check(set.rows(), &set.data.name))?;
        }
        let out_of_bag = match input.out_of_bag {
            true => Some(out_of_bag(context, parameters, data)?),
            false => None,
        };
        let combine = match parameters.learner.pairs_per_document {
            None => Combine::Mean,
            Some(_) => Combine::Wins,
        };
        let part = TreeEnsemble {
            normalisation: parameters.learner.tree.applied_normalisation(),
            ..TreeEnsemble::new(combine, 0.0, None, Vec::new())
        };
        let place = request.place();
        let cost_parameters = parameters.learner.tree.costs;
        let costs = SplitCosts::new(request.costs.as_ref(), cost_parameters, context.features, &place)?;
        let learner = ForestLearner::new(request, parameters, input, validation, out_of_bag, costs)?;
        Ok((PartFamily::Trees(part), Box::new(learner)))
    }

    fn bytes_per_row(&self, request: &TrainRequest, _members: u64) -> u64 {
        bytes_per_row(request, self)
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        (tree_bytes(self, size.rows) * size.threads).min(MOST_BYTES)
    }

    fn kept_bytes(&self, request: &TrainRequest, size: &DataSize) -> u64 {
        /// Trees that are converted, encoded and written at the same time.
        const STREAMED: u64 = 4;
        let kept = match request.keeps_trees(self.early_stopping_rounds) {
            true => u64::from(self.num_trees),
            false => STREAMED,
        };
        // The list of a tree in the model has just the room that it needs.
        (tree_bytes(self, size.rows) / 2).saturating_mul(kept).min(MOST_BYTES)
    }

    fn logs_error(&self, _request: &TrainRequest) -> bool {
        true
    }
}

/// Checks the requirements of `--strength`: trees that rank whole queries, and binned features.
fn check_strength(request: &TrainRequest, parameters: &ForestSettings) -> Result<()> {
    let draws = parameters.learner.tree.sampling.fraction < 1.0 || parameters.learner.bootstrap;
    let problem = match request.strength {
        false => return Ok(()),
        true if parameters.learner.pairs_per_document.is_some() => {
            "--strength: not available for forests trained on document pairs, whose trees score pairs, not documents"
        }
        true if parameters.missing == MissingPolicy::Branch => {
            return Err(Error::usage(
                "--strength: missing=branch is not supported, because its splits have three children",
                "remove --strength, or set missing=learned",
            ));
        }
        true if parameters.learner.candidates.max_bin().is_none() => {
            "--strength: candidates without bins are not supported"
        }
        true if draws && parameters.learner.tree.sampling.unit == Sampling::Rows => {
            "--strength: trees must be trained on whole queries, not on sampled rows"
        }
        true => return Ok(()),
    };
    Err(Error::usage(
        problem,
        "remove --strength, or set candidates=static, pairs_per_document=0 and bagging_by=queries",
    ))
}

/// Rejects labels whose leaf scores are too large for sums.
fn check_leaf_scores(parameters: &ForestSettings, data: &BinnedData) -> Result<()> {
    let leaf_score = parameters.learner.leaf_score;
    let mut labels = data.rows.iter().flat_map(|rows| &rows.labels);
    match labels.find(|label| leaf_score != LeafScore::Expected && leaf_score.of(**label).abs() > MOST_GAIN) {
        None => Ok(()),
        Some(label) => Err(Error::usage(
            format_args!("leaf_score: the score of label {label} is above {MOST_GAIN:e}"),
            "set leaf_score=expected, or train on smaller labels",
        )),
    }
}

/// Adds a note if `features_per_node` exceeds the number of features.
fn note_clipped(parameters: &ForestSettings, features: usize, observer: &mut dyn Observer) {
    if let FeatureCount::Count(count) = parameters.learner.tree.features_per_node
        && count > features
    {
        let text = format!(
            "features_per_node = {count}: there are only {features} features, so every node uses all of them"
        );
        observer.note(&text);
    }
}

/// Creates empty out-of-bag scores.
fn out_of_bag(
    context: &StageContext<'_>,
    parameters: &ForestSettings,
    data: &BinnedData,
) -> Result<OutOfBag> {
    if !parameters.learner.tree.sampling.leaves_out() && !parameters.learner.bootstrap {
        return Err(Error::usage(
            "every tree uses all rows: there are no out-of-bag rows",
            "set query_fraction, bagging_fraction or bootstrap, or remove --oob",
        ));
    }
    let documents = match parameters.learner.pairs_per_document {
        None => None,
        Some(_) if parameters.learner.tree.sampling.unit == Sampling::Rows => {
            return Err(Error::usage(
                "out-of-bag scores of a forest trained on pairs need whole queries, not sampled rows",
                "set bagging_by=queries, or remove --oob",
            ));
        }
        Some(_) => {
            let source = &context.sources.source;
            let set =
                ValidationData::load(OUT_OF_BAG, source, &data.binning, false, parameters, |label| label)?;
            let scores = Scores::constant(set.rows(), 0.0);
            Some(ValidationSet::new(Arc::new(set), scores))
        }
    };
    OutOfBag::new(parameters, &data.rows, documents)
}

/// Returns the predictions of a tree for a validation set. They are leaf values, which are looked up by codes. If
/// `lanes` is `None`, the tree compares pairs of documents, and the predictions are win rates.
fn values_of(
    set: &ValidationSet,
    tree: &ForestTree,
    as_model: &Tree,
    lanes: Option<&CodeLanes>,
) -> Result<Scores> {
    let Some(lanes) = lanes else { return wins_of(set, as_model) };
    set.values(as_model, |data, partition| {
        let codes = data.all_codes(partition)?;
        let view = PartitionView::of(data, partition, &codes, lanes);
        let rows: Vec<u32> = (view.first..view.first + view.rows).collect();
        let mut values = Vec::with_capacity(rows.len());
        ForestRouter::new(tree, &data.binning, lanes).each_value(&view, &rows, |_, value| values.push(value));
        Ok(values)
    })
}

/// Returns, for every document, the fraction of other documents in its query that it beats according to one tree.
fn wins_of(set: &ValidationSet, tree: &Tree) -> Result<Scores> {
    set.by_query(|documents, width| {
        win_rates(documents, width, |rows, chances| {
            let rows = rows.chunks_exact(width).zip(chances);
            rows.for_each(|(row, chance)| *chance = value_of(tree, row));
        })
    })
}
