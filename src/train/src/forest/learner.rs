//! Connects forests to the training driver. Trees are grown in batches, and each training round adds one of them to the
//! model.

use super::grower::grower;
use super::listwise::{self, NdcgVariant, SplitOrder};
use super::out_of_bag::OutOfBag;
use super::view::CodeLanes;
use super::{OUT_OF_BAG, sample, tree_bytes, trees_in_a_scan, values_of};
use crate::bins::BinnedData;
use crate::config::{ForestCriterion, ForestSettings};
use crate::driver::{
    ForestTree, Learner, LearnerOutputs, LogValue, MemberInput, PartUpdate, RemotePart, RemoteStart, Scores,
    SplitCosts, TrainRequest, TreeGrower, TreeStrength, ValidationSet, misfit, no_split,
};
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_model::model::{PartFamily, Tree};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Learner that grows independent trees.
pub(super) struct ForestLearner<'a> {
    request: &'a TrainRequest,
    parameters: &'a ForestSettings,
    data: &'a BinnedData,
    grower: Box<dyn TreeGrower + 'a>,
    /// Trees that were grown but are not yet in the model.
    grown: VecDeque<ForestTree>,
    /// Tree of the current round; `None` unless the metrics of single trees are logged.
    current: Option<ForestTree>,
    /// Position of each feature's code in a row of codes; `None` if trees are trained on pairs of documents, because
    /// single documents have no codes then.
    lanes: Option<CodeLanes>,
    validation: Vec<ValidationSet>,
    out_of_bag: Option<OutOfBag>,
    /// Whether the metrics of out-of-bag scores are logged.
    logs_out_of_bag: bool,
    /// What features cost the trees of the next batch. `None` if they are free.
    costs: Option<SplitCosts>,
    /// Strength of the trees so far, which is the expected NDCG after each split; `None` if not requested.
    strength: Option<Vec<TreeStrength>>,
}

impl<'a> ForestLearner<'a> {
    /// Creates a forest without trees.
    pub(super) fn new(
        request: &'a TrainRequest,
        parameters: &'a ForestSettings,
        input: &'a MemberInput,
        validation: Vec<ValidationSet>,
        out_of_bag: Option<OutOfBag>,
        costs: Option<SplitCosts>,
    ) -> Result<Self> {
        let data = &*input.data;
        let lanes = match parameters.learner.pairs_per_document {
            None => Some(CodeLanes::of(&data.binning.layout)),
            Some(_) => None,
        };
        let grower = match &request.backend {
            None => grower(parameters, data, request.histogram_bytes())?,
            Some(backend) => backend.grower(&RemotePart {
                parameters,
                data: &input.data,
                at_most: input.at_most,
                coupled: None,
                start: RemoteStart::Constant(0.0),
            })?,
        };
        let strength = request.strength.then(Vec::new);
        let mut grower = grower;
        if let Some(costs) = &costs {
            grower.set_penalties(costs.penalties())?; // rejects growers that do not know costs
        }
        let (grown, current) = (VecDeque::new(), None);
        Ok(ForestLearner {
            request,
            parameters,
            data,
            grower,
            grown,
            current,
            lanes,
            validation,
            out_of_bag,
            logs_out_of_bag: request.out_of_bag,
            costs,
            strength,
        })
    }

    /// Grows the next batch of trees, starting with tree number `first`.
    fn grow_batch(&mut self, first: u32) -> Result<Vec<ForestTree>> {
        let last_priced = match &self.costs {
            Some(costs) => {
                self.grower.set_penalties(costs.penalties())?;
                costs.batch_end(first)
            }
            None => u32::MAX,
        };
        let parameters = self.parameters;
        let batch_size = self.grower.batch_size().unwrap_or_else(|| self.batch_size());
        let last = (first + batch_size - 1).min(parameters.num_trees).min(last_priced);
        let draw = |tree: u32| sample::draw(parameters, &self.data.rows, tree.into());
        self.grower.grow_batch(first..last + 1, &draw)
    }

    /// Returns the number of trees per batch. It does not change the trees.
    fn batch_size(&self) -> u32 {
        let threads = rayon::current_num_threads() as u32;
        let usual = match self.data.is_in_memory() {
            // Each thread grows several trees, so that few threads are idle while the last trees are grown.
            true => 4 * threads,
            false => trees_in_a_scan(),
        };
        // The memory that training needs at least includes a tree for each thread.
        let more = self.data.spare() / tree_bytes(self.parameters, self.data.row_count());
        usual.min(threads.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)))
    }

    fn add_scores(&mut self, number: u32, tree: &ForestTree, as_model: &Tree) -> Result<()> {
        self.add_strength(number, tree)?;
        if let Some(costs) = &mut self.costs {
            costs.add_tree(number, as_model);
        }
        if let Some(out_of_bag) = &mut self.out_of_bag {
            out_of_bag.add(number.into(), tree, self.parameters, self.data)?;
        }
        for set in &mut self.validation {
            let values = values_of(set, tree, as_model, self.lanes.as_ref())?;
            set.add_all(&values);
        }
        Ok(())
    }

    /// Computes the strength of a tree on its own rows and on every validation set.
    fn add_strength(&mut self, number: u32, tree: &ForestTree) -> Result<()> {
        let Some(courses) = &mut self.strength else { return Ok(()) };
        let parameters = self.parameters;
        // Pointwise trees have no prescribed order of splits, so the usual order is used: level by level.
        let order = match parameters.learner.criterion {
            ForestCriterion::Listwise(_) => SplitOrder::AsGrown,
            ForestCriterion::Pointwise(_) | ForestCriterion::Hybrid { .. } => SplitOrder::Breadth,
        };
        let variant = NdcgVariant::of(parameters);
        let mut enter = |split: &str, data: &BinnedData, rows: &[u32]| {
            let values = listwise::strength(tree, order, (data, rows), &variant)?;
            courses.push(TreeStrength { tree: number, split: split.to_owned(), values });
            Ok(())
        };
        enter("train", self.data, &sample::draw(parameters, &self.data.rows, number.into()))?;
        for set in &self.validation {
            if let Some(data) = set.coded() {
                enter(&set.data.name, data, &(0..data.row_count() as u32).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}

impl Learner for ForestLearner<'_> {
    fn replay(&mut self, part: &PartFamily, meter: &dyn Meter) -> Result<()> {
        let trees = part.trees().into_iter().flat_map(|ensemble| &ensemble.trees);
        for (number, tree) in (1..).zip(trees) {
            let grown = ForestTree::of_model(tree, &self.data.binning).ok_or_else(misfit)?;
            self.add_scores(number, &grown, tree)?;
            meter.advance(1);
        }
        Ok(())
    }

    fn start(&mut self, _round: u32) -> Result<()> {
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        if self.grown.is_empty() {
            self.grown = self.grow_batch(round)?.into();
        }
        let grown = self.grown.pop_front().ok_or_else(|| Error::bug("forest", "a batch without trees"))?;
        let tree = grown.to_model();
        self.add_scores(round, &grown, &tree)?;
        self.current = self.parameters.learner.tree_strength.then_some(grown);
        Ok(Some(PartUpdate::Tree(tree)))
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        let mut values = Vec::new();
        if let Some(out_of_bag) = self.out_of_bag.as_ref().filter(|_| self.logs_out_of_bag) {
            let means = out_of_bag.evaluate(self.parameters, out_of_bag.rows(self.data))?;
            values.extend(LogValue::of_means(OUT_OF_BAG, &means));
        }
        for set in &self.validation {
            let name = &set.data.name;
            values.extend(LogValue::of_means(name, &set.data.evaluate(&set.mean_scores(round))));
            if let Some(tree) = &self.current {
                let scores = values_of(set, tree, &tree.to_model(), self.lanes.as_ref())?;
                values.extend(LogValue::of_means(&format!("{name}.tree"), &set.data.evaluate(&scores)));
            }
        }
        Ok(values)
    }

    fn training_scores(&self) -> Option<&Scores> {
        None // a forest is trained on the labels and needs no scores of its rows
    }

    fn validation_scores(&self, set: usize, round: u32) -> Result<Cow<'_, Scores>> {
        Ok(Cow::Owned(self.validation[set].mean_scores(round)))
    }

    fn leaves_threads_idle(&self) -> bool {
        false // trees are independent, so a forest alone uses all threads
    }

    fn can_stream(&self) -> bool {
        true
    }

    fn finish(&mut self, last: u32) -> LearnerOutputs {
        let mut strength = self.strength.take();
        if let Some(courses) = &mut strength {
            courses.retain(|course| course.tree <= last); // only trees that are kept in the model
        }
        LearnerOutputs { out_of_bag: self.out_of_bag.as_ref().map(OutOfBag::scores), strength }
    }

    fn warning(&self) -> Option<String> {
        self.costs.as_ref()?.warning()
    }

    fn no_split(&self) -> Error {
        no_split(self.request, &self.parameters.learner.tree, self.data)
    }
}
