//! A training whose rows are in a cluster, as the driver sees it: the same rounds, with questions in place of loops.
//! A level is one question. It carries the splits made since, and its answers the histograms of one child of each.

use super::address::Address;
use super::cells::{WireCell, add_histogram, empty, read_cell};
use super::holding::fingerprint;
use super::link::{Errand, Link, Traffic, run_name};
use super::local::LocalCluster;
use super::security::Security;
use super::share::{check_place, divide, file_groups};
use super::task::{Answer, BUILD, Foundation, Grown, Identity, Step, Task, add_means, no_means, pack};
use super::trees::FleetGrower;
use crate::bins::{BinOptions, BinnedData, Rows, SAMPLED_ROWS, Source, Summary};
use crate::boost::{Crew, GradientSummary, TreeStart};
use crate::config::{BaseScore, Candidates, EnsembleName, Parameters};
use crate::error::{Error, Result};
use crate::forest::TreeGrower;
use crate::metric::Mean;
use crate::storage::Location;
use crate::train::{Fleet, TrainRequest, draw_limit};
use crate::tree::{
    Cell, CodedTree, FoundSplit, Ground, Holder, NodeHistogram, NodeId, NodeSplit, OpenNode, RowSets,
    WantedNode, feature_cells,
};
use crate::wire::{Reader, cut_short};
use datafusion::datasource::physical_plan::FileGroup;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Processes of a cluster that hold the rows of a training, score rows or judge rankings.
pub struct Cluster {
    address: Address,
    security: Security,
    /// Of executors that are started on this machine, all together.
    threads: usize,
    instance_credentials: bool,
    training: Mutex<Option<Training>>,
    /// What went over lines that are closed.
    traffic: Mutex<Traffic>,
}

/// A cluster that is there.
pub struct Reached {
    /// The line to it.
    pub link: Arc<Link>,
    /// Who is there.
    pub executors: Vec<Identity>,
    /// Executors that were started for this command, and end with it.
    _local: Option<LocalCluster>,
}

impl Reached {
    /// The threads of all executors.
    pub fn threads(&self) -> usize {
        self.executors.iter().map(|executor| executor.threads as usize).sum::<usize>().max(1)
    }
}

/// A cluster that trains.
struct Training {
    errands: Arc<Errands>,
    _reached: Reached,
}

/// What every question of a training needs.
pub struct Errands {
    /// The line.
    pub link: Arc<Link>,
    /// All but the step.
    pub task: Task,
    /// The files of each share.
    groups: Vec<FileGroup>,
    /// Executors when the training began.
    pub executors: usize,
    /// Their threads.
    pub threads: usize,
}

impl Errands {
    fn ask(&self, step: Step, is_first: bool, foundation: &dyn Fn() -> Vec<u8>) -> Result<Vec<Answer>> {
        let task = Task { step, ..self.task.clone() };
        self.link.ask(&Errand { task: &task, foundation, is_first, groups: &self.groups })
    }
}

impl Cluster {
    /// A cluster that is reached, or started on this machine with so many threads, when there is something to do.
    pub fn new(address: Address, security: Security, threads: usize, instance_credentials: bool) -> Self {
        Cluster {
            address,
            security,
            threads,
            instance_credentials,
            training: Mutex::default(),
            traffic: Mutex::default(),
        }
    }

    /// What went over the line so far.
    pub fn traffic(&self) -> Traffic {
        let training = self.training.lock().unwrap_or_else(PoisonError::into_inner);
        match &*training {
            Some(training) => training.errands.link.traffic(),
            None => self.traffic.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Remembers what went over a line before it is closed.
    pub(super) fn keep_traffic(&self, reached: &Reached) {
        *self.traffic.lock().unwrap_or_else(PoisonError::into_inner) = reached.link.traffic();
    }

    /// Where the cluster is.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// How the line is kept from others.
    pub(super) fn security(&self) -> &Security {
        &self.security
    }

    /// Whether the machine's metadata service may be asked for credentials.
    pub(super) fn instance_credentials(&self) -> bool {
        self.instance_credentials
    }

    /// The line to the cluster, and who is there.
    pub(super) fn reach(&self) -> Result<Reached> {
        let (mut local, link) = match &self.address {
            Address::Scheduler { host, port, .. } => (None, Link::new(host, *port, self.security.clone())),
            Address::Local { executors } => {
                let local = LocalCluster::start(*executors, self.threads)?;
                // It is of this machine alone, and ends with the command.
                let link = Link::new("127.0.0.1", local.port(), Security::default());
                (Some(local), link)
            }
        };
        let executors = match &mut local {
            Some(local) => local.wait_for_executors(&link)?,
            None => link.executors()?,
        };
        for executor in &executors {
            tracing::info!("executor {}: {} threads", executor.name, executor.threads);
        }
        Ok(Reached { link: Arc::new(link), executors, _local: local })
    }

    /// How many shares the data are divided into: one for each executor, unless the user knows better.
    pub(super) fn share_count(&self, executors: usize) -> usize {
        match &self.address {
            Address::Scheduler { shares: Some(shares), .. } => *shares,
            _ => executors,
        }
    }

    fn errands(&self) -> Arc<Errands> {
        let training = self.training.lock().unwrap_or_else(PoisonError::into_inner);
        let training = training.as_ref().expect("a training bins its data before its first round");
        training.errands.clone()
    }

    fn crew<C: WireCell>(
        &self,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<C>> {
        Box::new(ClusterCrew::<C> {
            errands: self.errands(),
            parameters: parameters.clone(),
            data: data.clone(),
            foundation: Foundation::new(parameters, C::WEIGHTED, base_score, &data.binning),
            was_asked: false,
            tree: None,
            last: None,
            children: HashMap::new(),
            root: None,
            metrics: Vec::new(),
        })
    }
}

/// Where executors find the dataset.
pub fn place_of(location: &Location) -> Result<String> {
    match location {
        Location::Local(path) => {
            let path = std::fs::canonicalize(path).map_err(|error| Error::io(location, "open", &error))?;
            Ok(path.to_string_lossy().into_owned())
        }
        Location::Remote(_) => Ok(location.to_string()),
    }
}

impl Fleet for Cluster {
    fn check(&self, request: &TrainRequest) -> Result<()> {
        let parameters = &request.parameters;
        let refuse = |what: &str| {
            Err(Error::usage(
                format_args!("--cluster: {what} is not trained on a cluster"),
                "leave --cluster out, or see docs/cluster.md for what is",
            ))
        };
        if parameters.forest.pairs_per_document.is_some() {
            return refuse("a forest of pairs");
        }
        if request.out_of_bag || request.strength {
            return refuse(
                "a forest with scores out of bag (--oob, or --rounds without --valid) or with --strength",
            );
        }
        match parameters.candidates {
            _ if parameters.ensemble == EnsembleName::Bag => {}
            Candidates::Static => {}
            Candidates::Streaming if parameters.value_groups > 0 && parameters.workers == 1 => {}
            Candidates::Streaming => return refuse("streaming with several workers or without value_groups"),
            _ => return refuse("a model with these candidates"),
        }
        if parameters.unbiased {
            return refuse("an unbiased objective");
        }
        if request.start.is_some() || matches!(parameters.base_score, BaseScore::Feature(_)) {
            return refuse("a model that starts from another one or from a feature");
        }
        if request.data.len() > 1 {
            return refuse("a model of several datasets");
        }
        match &request.data[..] {
            [data] => check_place(data, &self.address),
            _ => Ok(()),
        }
    }

    fn bin(&self, request: &TrainRequest, source: &Source, options: &BinOptions) -> Result<BinnedData> {
        let place = match &request.data[..] {
            [data] => place_of(data)?,
            _ => return Err(cut_short()),
        };
        let Some(reader) = source.readers().next() else { return Err(cut_short()) };
        let rows: Vec<u64> = reader.manifest().rows_of_groups().collect();
        let reached = self.reach()?;
        let shares = divide(&rows, self.share_count(reached.executors.len()));
        tracing::info!("{} shares of {} partitions", shares.len(), rows.len());
        let errands = Arc::new(Errands {
            link: reached.link.clone(),
            groups: file_groups(source, &place, &shares),
            executors: reached.executors.len(),
            threads: reached.threads(),
            task: Task {
                build: BUILD.to_owned(),
                run: run_name(),
                data: place,
                instance_credentials: self.instance_credentials,
                fingerprint: fingerprint(source),
                step: Step::Probe,
            },
        });
        let training = Training { errands: errands.clone(), _reached: reached };
        *self.training.lock().unwrap_or_else(PoisonError::into_inner) = Some(training);
        survey(&errands, request, source, options)
    }

    fn grower(&self, parameters: &Parameters, data: &BinnedData) -> Result<Box<dyn TreeGrower>> {
        let foundation = Foundation::new(parameters, false, 0.0, &data.binning);
        Ok(Box::new(FleetGrower::new(self.errands(), foundation)))
    }

    fn plain_crew(
        &self,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<i64>> {
        self.crew(parameters, data, base_score)
    }

    fn weighted_crew(
        &self,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<[i64; 2]>> {
        self.crew(parameters, data, base_score)
    }
}

/// Bins the features by what all shares say of them, some at a time.
fn survey(
    errands: &Errands,
    request: &TrainRequest,
    source: &Source,
    options: &BinOptions,
) -> Result<BinnedData> {
    /// Bytes of summaries at a time; a run takes 8.
    const BYTES: u64 = 256 << 20;
    let kept =
        if options.max_bin.is_some() { source.row_count().min(SAMPLED_ROWS) } else { source.row_count() };
    let at_a_time = (BYTES / (8 * kept.max(1))).clamp(1, source.features().max(1) as u64) as usize;
    let mut features = Vec::with_capacity(source.features());
    let mut rows: Vec<Rows> = Vec::new();
    for start in (0..source.features()).step_by(at_a_time) {
        let these = start..(start + at_a_time).min(source.features());
        let step = Step::Survey {
            features: these.clone(),
            rows: start == 0,
            parameters: request.parameters.to_toml(),
        };
        let mut summaries: Vec<Vec<Summary>> = these.map(|_| Vec::new()).collect();
        for answer in errands.ask(step, false, &Vec::new)? {
            let Answer::Surveyed(surveyed) = answer else { return Err(cut_short()) };
            rows.extend(surveyed.rows);
            if surveyed.summaries.len() != summaries.len() {
                return Err(cut_short());
            }
            summaries.iter_mut().zip(surveyed.summaries).for_each(|(all, summary)| all.push(summary));
        }
        features.extend(summaries.into_iter().map(|all| options.bins(&Summary::merge_all(all))));
    }
    rows.sort_by_key(|rows| rows.first);
    Ok(BinnedData::elsewhere(options.binning(features), rows))
}

/// The rows of a cluster, boosted.
struct ClusterCrew<C: Cell> {
    errands: Arc<Errands>,
    parameters: Parameters,
    /// Without codes.
    data: Arc<BinnedData>,
    /// All that a share can be built from.
    foundation: Foundation,
    was_asked: bool,
    /// The tree that grows: what it starts from, and its splits so far.
    tree: Option<(TreeStart, Vec<NodeSplit>)>,
    /// The tree that was grown, until everybody has added it.
    last: Option<Grown>,
    /// What the rows of a node's children would add up to.
    children: HashMap<NodeId, [C; 2]>,
    root: Option<NodeHistogram<C>>,
    metrics: Vec<Mean>,
}

impl<C: WireCell> ClusterCrew<C> {
    fn ask(&mut self, step: Step) -> Result<Vec<Answer>> {
        let is_first = !std::mem::replace(&mut self.was_asked, true);
        let foundation = &self.foundation;
        self.errands.ask(step, is_first, &|| pack(foundation))
    }

    /// The totals and histograms of some nodes.
    fn level(&mut self, wanted: &[NodeId]) -> Result<Vec<(C, NodeHistogram<C>)>> {
        let Some((start, splits)) = self.tree.clone() else { return Err(cut_short()) };
        let (bits, groups) = (start.scale.count_bits, start.groups.clone());
        let none = || (C::default(), empty(&self.data.binning, &groups));
        let mut sums: Vec<(C, NodeHistogram<C>)> = wanted.iter().map(|_| none()).collect();
        let trees = self.foundation.trees.len();
        for answer in self.ask(Step::Level { trees, start, splits, wanted: wanted.to_vec() })? {
            let Answer::Level(bytes) = answer else { return Err(cut_short()) };
            let mut reader = Reader::new(&bytes);
            for (total, histogram) in &mut sums {
                total.add(read_cell(bits, &mut reader)?);
                add_histogram(histogram, &groups, bits, &mut reader)?;
            }
            if !reader.is_empty() {
                return Err(cut_short());
            }
        }
        Ok(sums)
    }
}

impl<C: WireCell> Holder<C> for ClusterCrew<C> {
    fn root(&mut self) -> Result<C> {
        let (total, histogram) = self.level(&[0])?.swap_remove(0);
        self.root = Some(histogram);
        Ok(total)
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<[C; 2]>> {
        if let Some((_, made)) = &mut self.tree {
            made.extend_from_slice(splits);
        }
        splits.iter().map(|split| self.children.remove(&split.node).ok_or_else(cut_short)).collect()
    }

    fn histograms(&mut self, _groups: &[usize], nodes: &[WantedNode<C>]) -> Result<Vec<NodeHistogram<C>>> {
        if let (Some(root), [WantedNode { node: 0, .. }]) = (self.root.take(), nodes) {
            return Ok(vec![root]);
        }
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<NodeId> = nodes.iter().map(|wanted| wanted.node).collect();
        let sums = self.level(&wanted)?;
        let bits = self.tree.as_ref().map_or(0, |(start, _)| start.scale.count_bits);
        if sums.iter().zip(nodes).any(|((total, _), node)| total.sums(bits) != node.total.sums(bits)) {
            return Err(cut_short());
        }
        Ok(sums.into_iter().map(|(_, histogram)| histogram).collect())
    }

    fn found(&mut self, ground: &Ground<'_>, open: &OpenNode<C>, split: &FoundSplit, of: &NodeHistogram<C>) {
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

    fn here(&self) -> Result<&RowSets<C>> {
        Err(Error::usage(
            "--cluster: these candidates need every row, and the rows are in the cluster",
            "leave --cluster out, or set candidates=static",
        ))
    }
}

impl<C: WireCell> Crew<C> for ClusterCrew<C> {
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary> {
        let (trees, last) = (self.foundation.trees.len(), self.last.take());
        let mut all = Vec::new();
        let mut means = no_means(&self.parameters.metrics);
        for answer in self.ask(Step::Gradients { round, trees, last })? {
            let Answer::Gradients { parts, metrics } = answer else { return Err(cut_short()) };
            all.extend(parts);
            if !metrics.is_empty() {
                add_means(&mut means, &metrics)?;
            }
        }
        self.metrics = means;
        Ok(GradientSummary::of_parts(&all))
    }

    fn start_tree(&mut self, start: &TreeStart) -> Result<()> {
        let rows = self.data.row_count();
        let queries = self.data.rows.iter().map(|rows| rows.query_bounds.len() as u64 - 1).sum();
        let limit = draw_limit(&self.parameters, rows, queries, start.tree);
        self.tree = Some((TreeStart { limit, ..start.clone() }, Vec::new()));
        self.children.clear();
        self.root = None;
        Ok(())
    }

    fn add_grown(&mut self, tree: &CodedTree) -> Result<()> {
        if let Some((start, splits)) = self.tree.take() {
            self.last = Some(Grown { start, splits, tree: tree.clone() });
        }
        self.foundation.trees.push(tree.clone());
        Ok(())
    }

    fn add_earlier(&mut self, _round: u32, tree: &CodedTree) -> Result<()> {
        self.foundation.trees.push(tree.clone());
        Ok(())
    }

    fn metrics(&mut self) -> Result<Vec<Mean>> {
        Ok(self.metrics.clone())
    }
}

impl<C: Cell> Drop for ClusterCrew<C> {
    /// Lets the executors forget the training. If they do not hear of it, they will in time.
    fn drop(&mut self) {
        if self.was_asked {
            self.errands.link.forget(&self.errands.task, &self.errands.groups);
        }
    }
}
