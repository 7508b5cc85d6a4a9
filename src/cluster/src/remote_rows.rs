//! Trains boosted trees on rows that the executors of a cluster hold, with one request per tree level. The request
//! carries all splits of the tree so far, and the replies carry the histogram of one child of each split. A level may
//! be split into several requests by feature, so that executors compute the replies to one request while the replies
//! to another are in transit.

use super::session::TrainingSession;
use planetree_base::error::{Error, Result};
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::Mean;
use planetree_train::bins::{BinnedData, Binning};
use planetree_train::boost::streaming_rules;
use planetree_train::config::{BoostCandidates, BoostSettings, LearnerParameters};
use planetree_train::draw_limit;
use planetree_train::jobs::{
    CellBlock, Grown, Level, LevelBlock, NodeSums, PartSums, StreamLevel, SumParts, TrainingSnapshot,
    UpdateGradients, WireCell, add_block, empty,
};
use planetree_train::tree::{
    Cell, CodedTree, FoundSplit, GrowContext, NodeHistogram, NodeHistograms, NodeId, NodePart, NodeSplit,
    OpenNode, RowSets, RowStore, StreamingRules, WantedNode, cells_of_group, feature_cells,
};
use planetree_train::{BoostWorker, GradientSummary, TreeStart};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The rows of a training run, held by executors.
pub(crate) struct RemoteRows<C: Cell> {
    session: Arc<TrainingSession>,
    parameters: BoostSettings,
    /// Bins and row counts. The bin numbers of the rows are on the executors.
    data: Arc<BinnedData>,
    /// The data from which executors rebuild the state of a share, which is a range of row groups.
    snapshot: TrainingSnapshot,
    was_asked: bool,
    /// Rules of the streaming histograms that workers build, or `None` if workers build no histograms of their own.
    streaming: Option<StreamingRules>,
    /// The start of the tree being grown, and its splits so far.
    tree: Option<(TreeStart, Vec<NodeSplit>)>,
    /// The last finished tree. It is kept until all shares have added it to their scores.
    last: Option<Grown>,
    /// For each node with a split, the totals of the two children of its best split.
    children: HashMap<NodeId, [C; 2]>,
    root: Option<NodeHistogram<C>>,
    metrics: Vec<Mean>,
}

impl<C: WireCell> RemoteRows<C> {
    /// Creates the driver's side of a training run before its first tree.
    pub(crate) fn new(
        session: Arc<TrainingSession>,
        parameters: &BoostSettings,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Self {
        let all = parameters.with(LearnerParameters::Boost(parameters.learner.clone()));
        let mut snapshot = TrainingSnapshot::new(&all, C::WEIGHTED, base_score, &data.binning);
        snapshot.workers = session.workers.clone();
        RemoteRows {
            session,
            parameters: parameters.clone(),
            data: data.clone(),
            snapshot,
            was_asked: false,
            streaming: worker_rules(parameters.learner.candidates),
            tree: None,
            last: None,
            children: HashMap::new(),
            root: None,
            metrics: Vec::new(),
        }
    }

    /// Returns the feature groups of the current tree.
    fn level_groups(&self) -> Vec<usize> {
        self.tree.as_ref().map(|(start, _)| start.groups.clone()).unwrap_or_default()
    }

    /// Requests the totals and histograms of nodes. Without feature groups, only the totals are computed.
    fn level(&mut self, wanted: &[NodeId], groups: &[usize]) -> Result<Vec<NodeSums<C>>> {
        let Some((start, splits)) = &self.tree else { return Err(malformed()) };
        let is_first = !std::mem::replace(&mut self.was_asked, true);
        // Totals alone are so small that an additional merge stage would cost more than it saves.
        let merge_plan = self.session.merge_plan().filter(|_| !groups.is_empty());
        let begun = Instant::now();
        let ask = |groups: &[usize]| {
            let job = Level {
                trees: self.snapshot.trees.len(),
                start: TreeStart { groups: Vec::new(), ..start.clone() },
                splits: splits.clone(),
                wanted: wanted.to_vec(),
                groups: groups.to_vec(),
            };
            self.session.run_blocks(&job, &self.snapshot, is_first, merge_plan)
        };
        let parts = in_parts(&self.data.binning, groups, self.session.usage.overlap.unwrap_or(1));
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
                add_block(&mut of_part, groups, start.scale.count_bits, &block)?;
            }
            match &mut sums {
                None => sums = Some(of_part),
                Some(sums) => join(sums, of_part, groups, start.scale.count_bits)?,
            }
        }
        if !groups.is_empty() {
            self.session.client.note_level(start.tree, wanted.len(), begun.elapsed(), bytes, most);
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
        let groups = self.level_groups();
        let (total, histogram) = self.level(&[0], &groups)?.swap_remove(0);
        self.root = Some(histogram);
        Ok(total)
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>> {
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
        let (Some(rules), Some((start, splits))) = (self.streaming, &self.tree) else { return Ok(None) };
        if nodes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let begun = Instant::now();
        let job = StreamLevel {
            trees: self.snapshot.trees.len(),
            start: TreeStart { groups: Vec::new(), ..start.clone() },
            splits: splits.clone(),
            wanted: nodes.to_vec(),
            groups: groups.to_vec(),
            centroids: rules.centroids,
        };
        let received = self.session.client.traffic().received;
        let merge_plan = self.session.merge_plan();
        let levels = self.session.run_blocks(&job, &self.snapshot, false, merge_plan)?;
        let bytes = self.session.client.traffic().received - received;
        self.session.client.note_level(start.tree, nodes.len(), begun.elapsed(), bytes, bytes);
        let mut histograms = Vec::with_capacity(groups.len());
        // If executors merge, each block has some of the feature groups.
        let levels = match merge_plan {
            Some(_) => levels,
            None => Partial::merge_all(levels)?.into_iter().collect(),
        };
        for block in levels {
            histograms.extend(block.finish()?);
        }
        Ok(Some(histograms))
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<C>> {
        let Some((start, splits)) = &self.tree else { return Err(malformed()) };
        let is_first = !std::mem::replace(&mut self.was_asked, true);
        let job = SumParts {
            trees: self.snapshot.trees.len(),
            start: TreeStart { groups: Vec::new(), ..start.clone() },
            splits: splits.clone(),
            parts: parts.to_vec(),
        };
        // The sums are so small that an additional merge stage would cost more than it saves.
        let PartSums(sums) = self.session.run(&job, &self.snapshot, is_first)?;
        let bits = start.scale.count_bits;
        Ok(sums.into_iter().map(|sums| C::of_sums(sums, bits)).collect())
    }

    fn chosen(&mut self, node: NodeId, children: [C; 2]) {
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
        let mut left = C::default();
        for (code, cell) in (0..).zip(cells) {
            if code <= split.code || Some(code) == split.missing_goes_left() {
                left.add(*cell);
            }
        }
        let mut right = open.total;
        right.subtract(left);
        self.children.insert(open.node, [left, right]);
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
        let job = UpdateGradients { round, trees: self.snapshot.trees.len(), last: self.last.take() };
        let is_first = !std::mem::replace(&mut self.was_asked, true);
        let gradients = self.session.run(&job, &self.snapshot, is_first)?;
        self.metrics = self.parameters.metrics.iter().map(|metric| Mean::new(*metric)).collect();
        gradients.add_means(&mut self.metrics)?;
        Ok(GradientSummary::of_parts(&gradients.parts))
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
        self.children.clear();
        self.root = None;
        Ok(())
    }

    fn add_grown(&mut self, tree: &CodedTree) -> Result<()> {
        if let Some((mut start, splits)) = self.tree.take() {
            start.groups = Vec::new(); // no longer needed
            self.last = Some(Grown { start, splits, tree: tree.clone() });
        }
        self.snapshot.trees.push(tree.clone());
        Ok(())
    }

    fn add_earlier(&mut self, _round: u32, tree: &CodedTree) -> Result<()> {
        self.snapshot.trees.push(tree.clone());
        Ok(())
    }

    fn metrics(&mut self) -> Result<Vec<Mean>> {
        Ok(self.metrics.clone())
    }
}

impl<C: Cell> Drop for RemoteRows<C> {
    /// Tells executors to release the state of the training run. If the message is lost, they release it after a
    /// timeout.
    fn drop(&mut self) {
        if self.was_asked {
            self.session.client.forget(&self.session.command, &self.session.groups);
        }
    }
}
