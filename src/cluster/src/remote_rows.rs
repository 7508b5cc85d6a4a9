//! Trains boosted trees on rows that the executors of a cluster hold, with one request per tree level. The request
//! carries all splits of the tree so far, and the replies carry the histograms of all children of each split but one. A level may
//! be split into several requests by feature, so that executors compute the replies to one request while the replies
//! to another are in transit.

use super::merge::MergePlan;
use super::session::StageSession;
use planetree_base::error::{Error, Result};
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::Mean;
use planetree_train::bins::{BinnedData, Binning};
use planetree_train::boost::streaming_rules;
use planetree_train::config::{BoostCandidates, BoostSettings, LearnerParameters};
use planetree_train::draw_limit;
use planetree_train::jobs::{
    BoostJob, BoostProgress, CellBlock, Grown, Level, LevelBlock, MemberSnapshot, NodeSums, PartSums, Settle,
    StartSnapshot, StreamLevel, SumParts, UpdateGradients, ValueLevel, ValueLists, WireCell, add_block,
    empty,
};
use planetree_train::tree::{
    Cell, CodedTree, FoundSplit, GradientSums, GroupNodes, GrowContext, NodeHistogram, NodeHistograms,
    NodeId, NodePart, NodeSplit, OpenNode, RowSets, RowStore, Scale, StreamingRules, ValueList, WantedNode,
    cells_of_group, feature_cells,
};
use planetree_train::{BoostWorker, GradientSummary, RemotePart, RemoteStart, TreeStart};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// The rows of a training run, held by executors.
pub(crate) struct RemoteRows<C: Cell> {
    stage: Arc<StageSession>,
    /// The index of the part in its stage.
    member: usize,
    parameters: BoostSettings,
    /// Bins and row counts. The bin numbers of the rows are on the executors.
    data: Arc<BinnedData>,
    /// Number of trees so far.
    trees: usize,
    /// Rules of the streaming histograms that workers build, or `None` if workers build no histograms of their own.
    streaming: Option<StreamingRules>,
    /// The start of the tree being grown, and its splits so far.
    tree: Option<(TreeStart, Vec<NodeSplit>)>,
    /// Whether a level of this tree has been recorded that later requests belong to.
    has_level: bool,
    /// The last finished tree. It is kept until all shares have added it to their scores.
    last: Option<Grown>,
    /// For each node with a split, the totals of the children of its best split.
    children: HashMap<NodeId, Vec<C>>,
    root: Option<NodeHistogram<C>>,
    metrics: Vec<Mean>,
}

impl<C: WireCell> RemoteRows<C> {
    /// Creates the driver's side of a training run before its first tree.
    pub(crate) fn new(stage: Arc<StageSession>, part: &RemotePart<'_, BoostSettings>) -> Result<Self> {
        let RemotePart { parameters, data, at_most, coupled, start } = part;
        let all = parameters.with(LearnerParameters::Boost(parameters.learner.clone()));
        let (base_score, start) = match start {
            RemoteStart::Constant(score) => (*score, None),
            RemoteStart::Scores(scores) => (0.0, Some(StartSnapshot::of(scores)?)),
        };
        let member = stage.add_member(MemberSnapshot {
            parameters: all.to_toml(),
            at_most: *at_most,
            coupled: coupled.cloned(),
            weighted: C::WEIGHTED,
            base_score,
            start,
            trees: Vec::new(),
        })?;
        Ok(RemoteRows {
            stage,
            member,
            parameters: (*parameters).clone(),
            data: (*data).clone(),
            trees: 0,
            streaming: worker_rules(parameters.learner.candidates),
            tree: None,
            has_level: false,
            last: None,
            children: HashMap::new(),
            root: None,
            metrics: Vec::new(),
        })
    }

    /// Creates a job for the tree being grown.
    fn tree_job<S>(&self, step: S) -> Result<BoostJob<S>> {
        let Some((start, splits)) = &self.tree else { return Err(malformed()) };
        let start = TreeStart { groups: Vec::new(), ..start.clone() };
        let progress = BoostProgress::Tree { trees: self.trees, start, splits: splits.clone() };
        Ok(BoostJob { member: self.member, progress, step })
    }

    /// Returns the number of the tree being grown, and the scale of its gradients.
    fn tree_scale(&self) -> Result<(u64, Scale)> {
        self.tree.as_ref().map(|(start, _)| (start.tree, start.scale)).ok_or_else(malformed)
    }

    /// Returns the feature groups of the current tree.
    fn level_groups(&self) -> Vec<usize> {
        self.tree.as_ref().map(|(start, _)| start.groups.clone()).unwrap_or_default()
    }

    /// Requests the totals and histograms of nodes. Without feature groups, only the totals are computed.
    fn level(&mut self, wanted: &[NodeId], groups: &[usize]) -> Result<Vec<NodeSums<C>>> {
        let (tree, scale) = self.tree_scale()?;
        // Totals alone are so small that an additional merge stage would cost more than it saves.
        let merge_plan = self.stage.merge_plan().filter(|_| !groups.is_empty());
        let begun = Instant::now();
        let ask = |groups: &[usize]| {
            let job = self.tree_job(Level { wanted: wanted.to_vec(), groups: groups.to_vec() })?;
            self.stage.run_blocks(&job, merge_plan)
        };
        let parts = in_parts(&self.data.binning, groups, self.stage.session.usage.overlap.unwrap_or(1));
        let answers = side_by_side(&parts, |groups| ask(groups));
        let mut sums: Option<Vec<NodeSums<C>>> = None;
        let (mut bytes, mut most) = (0, 0);
        for (groups, blocks) in parts.iter().zip(answers) {
            let none = || (C::default(), empty(&self.data.binning, groups));
            let mut of_part: Vec<NodeSums<C>> = wanted.iter().map(|_| none()).collect();
            let blocks = blocks?;
            let of = if merge_plan.is_some() { blocks.len() } else { 1 };
            for (place, LevelBlock { weighted, cells }) in blocks.into_iter().enumerate() {
                if weighted != C::WEIGHTED {
                    return Err(malformed());
                }
                bytes += cells.0.len() as u64;
                most = most.max(cells.0.len() as u64);
                let block = CellBlock { number: place % of, of, bytes: cells.0 };
                add_block(&mut of_part, groups, scale.count_bits, &block)?;
            }
            match &mut sums {
                None => sums = Some(of_part),
                Some(sums) => join(sums, of_part, groups, scale.count_bits)?,
            }
        }
        if !groups.is_empty() {
            self.stage.session.client.note_level(tree, wanted.len(), begun.elapsed(), bytes, most);
        }
        Ok(sums.unwrap_or_default())
    }
}

/// Returns the rules of streaming histograms, or `None` if workers need not build histograms of their own.
pub(crate) fn worker_rules(candidates: BoostCandidates) -> Option<StreamingRules> {
    match candidates {
        BoostCandidates::Streaming(streaming) => {
            Some(streaming_rules(streaming)).filter(StreamingRules::need_workers)
        }
        BoostCandidates::Static { .. } | BoostCandidates::Exact => None,
    }
}

/// Divides feature groups into parts with about the same number of histogram cells. There is at least one part.
fn in_parts(binning: &Binning, groups: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let parts = parts.clamp(1, groups.len().max(1));
    let cells = |group: &usize| cells_of_group(binning, *group);
    let all: usize = groups.iter().map(cells).sum();
    let mut cut: Vec<Vec<usize>> = vec![Vec::new(); parts];
    let mut before = 0;
    for group in groups {
        let middle = before + cells(group) / 2;
        cut[middle * parts / all.max(1)].push(*group);
        before += cells(group);
    }
    if !groups.is_empty() {
        cut.retain(|part| !part.is_empty());
    }
    cut
}

/// Runs a function on all items concurrently and returns the results in the order of the items.
fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    match all {
        [one] => vec![work(one)],
        _ => std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = all.iter().map(|one| scope.spawn(move || work(one))).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        }),
    }
}

/// Returns the blocks of a level, each of which has some of the feature groups. If executors did not merge, there is only
/// one.
fn in_blocks<P: Partial>(partials: Vec<P>, merge_plan: Option<MergePlan>) -> Result<Vec<P>> {
    match merge_plan {
        Some(_) => Ok(partials),
        None => Ok(Partial::merge_all(partials)?.into_iter().collect()),
    }
}

/// Moves the histograms of the given feature groups from `others` into `sums`. Both are for the same nodes.
fn join<C: WireCell>(
    sums: &mut [NodeSums<C>],
    others: Vec<NodeSums<C>>,
    groups: &[usize],
    count_bits: u32,
) -> Result<()> {
    for ((total, histogram), (other_total, mut other)) in sums.iter_mut().zip(others) {
        if total.sums(count_bits) != other_total.sums(count_bits) {
            return Err(malformed());
        }
        for group in groups {
            histogram.groups[*group] = std::mem::take(&mut other.groups[*group]);
        }
    }
    Ok(())
}

impl<C: WireCell> RowStore<C> for RemoteRows<C> {
    fn root(&mut self) -> Result<C> {
        if self.streaming.is_some() {
            let root = self.part_sums(&[NodePart { node: 0, left_of: None }])?.pop();
            return root.ok_or_else(malformed);
        }
        if self.parameters.learner.candidates == BoostCandidates::Exact {
            return Ok(self.level(&[0], &[])?.swap_remove(0).0);
        }
        let groups = self.level_groups();
        let (total, histogram) = self.level(&[0], &groups)?.swap_remove(0);
        self.root = Some(histogram);
        Ok(total)
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<C>>> {
        if let Some((_, made)) = &mut self.tree {
            made.extend_from_slice(splits);
        }
        splits.iter().map(|split| self.children.remove(&split.node).ok_or_else(malformed)).collect()
    }

    fn merged_histograms(
        &mut self,
        groups: &[usize],
        nodes: &[NodeId],
    ) -> Result<Option<Vec<NodeHistograms>>> {
        let Some(rules) = self.streaming else { return Ok(None) };
        let (tree, _) = self.tree_scale()?;
        if nodes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let begun = Instant::now();
        let (wanted, groups) = (nodes.to_vec(), groups.to_vec());
        let job = self.tree_job(StreamLevel { wanted, groups, centroids: rules.centroids })?;
        let client = &self.stage.session.client;
        let received = client.traffic().received;
        let merge_plan = self.stage.streaming_merge_plan();
        let levels = self.stage.run_blocks(&job, merge_plan)?;
        let bytes = client.traffic().received - received;
        client.note_level(tree, nodes.len(), begun.elapsed(), bytes, bytes);
        self.has_level = true;
        let mut histograms = Vec::with_capacity(job.step.groups.len());
        for block in in_blocks(levels, merge_plan)? {
            histograms.extend(block.finish()?);
        }
        Ok(Some(histograms))
    }

    fn value_sums(&mut self, wanted: &[GroupNodes]) -> Result<Option<Vec<Vec<ValueList<C>>>>> {
        let begun = Instant::now();
        let (tree, scale) = self.tree_scale()?;
        let job = self.tree_job(ValueLevel { wanted: wanted.to_vec() })?;
        let merge_plan = self.stage.merge_plan();
        let client = &self.stage.session.client;
        let received = client.traffic().received;
        let blocks = self.stage.run_blocks(&job, merge_plan)?;
        let bytes = client.traffic().received - received;
        let nodes: BTreeSet<NodeId> = wanted.iter().flat_map(|wanted| &wanted.nodes).copied().collect();
        client.note_level(tree, nodes.len(), begun.elapsed(), bytes, bytes);
        let pack = |list: Vec<(u32, GradientSums)>| -> ValueList<C> {
            list.into_iter().map(|(code, sums)| (code, C::of_sums(sums, scale.count_bits))).collect()
        };
        let lists = |block: &ValueLists| -> Vec<Vec<ValueList<C>>> {
            block.lists().map(|nodes| nodes.into_iter().map(pack).collect()).collect()
        };
        Ok(Some(in_blocks(blocks, merge_plan)?.iter().flat_map(lists).collect()))
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<C>> {
        // The sums are so small that an additional merge stage would cost more than it saves.
        let begun = Instant::now();
        let client = &self.stage.session.client;
        let received = client.traffic().received;
        let PartSums(sums) = self.stage.run(&self.tree_job(SumParts { parts: parts.to_vec() })?)?;
        if self.has_level {
            client.extend_level(begun.elapsed(), client.traffic().received - received);
        }
        let bits = self.tree_scale()?.1.count_bits;
        Ok(sums.into_iter().map(|sums| C::of_sums(sums, bits)).collect())
    }

    fn chosen(&mut self, node: NodeId, children: Vec<C>) {
        self.children.insert(node, children);
    }

    fn histograms(&mut self, _groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        if let (Some(root), [WantedNode { node: 0, .. }]) = (self.root.take(), nodes) {
            return Ok(vec![root]);
        }
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<NodeId> = nodes.iter().map(|wanted| wanted.node).collect();
        let sums = self.level(&wanted, &self.level_groups())?;
        let bits = self.tree.as_ref().map_or(0, |(start, _)| start.scale.count_bits);
        if sums.iter().zip(nodes).any(|((total, _), node)| total.sums(bits) != node.total.sums(bits)) {
            return Err(malformed());
        }
        Ok(sums.into_iter().map(|(_, histogram)| histogram).collect())
    }

    fn found(
        &mut self,
        ground: &GrowContext<'_>,
        open: &OpenNode<C>,
        split: &FoundSplit,
        of: &NodeHistogram<C>,
    ) {
        let binning = &ground.data.binning;
        let Some(place) = binning.layout.places[split.feature as usize] else { return };
        let cells = &of.groups[place.group][feature_cells(binning, place.group, place.lane)];
        self.children.insert(open.node, split.children((0..).zip(cells.iter().copied()), open.total));
    }

    fn local(&self) -> Result<&RowSets<C>> {
        Err(Error::usage(
            "--cluster: these candidates need local rows",
            "remove --cluster, or set candidates=static",
        ))
    }
}

impl<C: WireCell> BoostWorker<C> for RemoteRows<C> {
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary> {
        let progress = BoostProgress::Round { trees: self.trees, last: self.last.take() };
        let step = UpdateGradients { round };
        let gradients = self.stage.run(&BoostJob { member: self.member, progress, step })?;
        self.metrics = gradients.means.total(&self.parameters.metrics)?;
        Ok(GradientSummary::of_parts(&gradients.parts))
    }

    fn settle(&mut self) -> Result<()> {
        let progress = BoostProgress::Round { trees: self.trees, last: self.last.take() };
        self.stage.run(&BoostJob { member: self.member, progress, step: Settle }).map(drop)
    }

    fn start_tree(&mut self, start: &TreeStart) -> Result<()> {
        let rows = self.data.row_count();
        let queries = self.data.rows.iter().map(|rows| rows.query_bounds.len() as u64 - 1).sum();
        let limit = draw_limit(
            &self.parameters.learner.tree.sampling,
            self.parameters.seed,
            rows,
            queries,
            start.tree,
        );
        self.tree = Some((TreeStart { limit, ..start.clone() }, Vec::new()));
        self.has_level = false;
        self.children.clear();
        self.root = None;
        Ok(())
    }

    fn add_grown(&mut self, tree: &CodedTree) -> Result<()> {
        if let Some((mut start, splits)) = self.tree.take() {
            start.groups = Vec::new(); // no longer needed
            self.last = Some(Grown { start, splits, tree: tree.clone() });
        }
        self.trees = self.stage.add_tree(self.member, tree.clone());
        Ok(())
    }

    fn add_earlier(&mut self, _round: u32, tree: &CodedTree) -> Result<()> {
        self.trees = self.stage.add_tree(self.member, tree.clone());
        Ok(())
    }

    fn metrics(&mut self) -> Result<Vec<Mean>> {
        Ok(self.metrics.clone())
    }
}
