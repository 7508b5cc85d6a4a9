//! Builds the streaming histograms of one worker, which has some of the rows; see `streaming.rs`. A worker sums the
//! rows of a node by code (bin number) and inserts the sums into streaming histograms, one per feature. On a cluster,
//! it sends the histograms to the driver.

use super::cell::{Cell, GradientSums, Scale};
use super::centroids::{Centroid, StreamingHistogram};
use super::histogram::{add_rows, feature_cells, finish, lane_cells_of_group};
use super::rows::{NodeId, NodeRows, RowSets};
use super::sorted_cells::SortedCells;
use super::streaming::StreamingRules;
use crate::bins::{BinnedData, Codes, FeatureBins, GroupCodes, GroupKind};
use planetree_base::error::Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The histogram of one feature over the rows of one node on one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerHistogram {
    /// The bins, in ascending order of their centres.
    pub bins: Vec<Centroid>,
    /// The sums of rows whose value is missing.
    pub missing: GradientSums,
    /// The codes that occur among the rows, in ascending order.
    #[serde(with = "planetree_base::compact::ascending")]
    codes: Vec<u32>,
    /// The number of rows with each of these codes, which is needed to check the minimum number of rows per leaf.
    rows: Vec<i64>,
}

impl WorkerHistogram {
    /// Returns the codes that occur and the number of rows with each.
    pub fn counts(&self) -> impl Iterator<Item = (u32, i64)> {
        self.codes.iter().copied().zip(self.rows.iter().copied())
    }
}

/// The histograms of a feature group, indexed by node and then by feature.
pub type NodeHistograms = Vec<Vec<WorkerHistogram>>;

/// Divides partitions among workers. Returns the range of partitions of each worker.
pub fn worker_partitions(partitions: usize, workers: usize) -> Vec<Range<usize>> {
    let workers = workers.min(partitions);
    let bound = |worker: usize| worker * partitions / workers;
    (0..workers).map(|worker| bound(worker)..bound(worker + 1)).collect()
}

/// The rows of one worker.
pub struct WorkerRows<'a, C: Cell> {
    /// The data that contain the worker's partitions. They may contain other partitions too.
    pub data: &'a BinnedData,
    /// The rows of each node, in all partitions of `data`.
    pub rows: &'a RowSets<C>,
    /// The partitions of this worker.
    pub partitions: Range<usize>,
    /// The quantisation scale of gradients and weights.
    pub scale: Scale,
}

impl<C: Cell> WorkerRows<'_, C> {
    /// Computes the histograms of nodes, by feature group.
    pub fn histograms(
        &self,
        rules: &StreamingRules,
        groups: &[usize],
        nodes: &[NodeId],
    ) -> Result<Vec<NodeHistograms>> {
        groups.par_iter().with_max_len(1).map(|group| self.of_group(rules, *group, nodes)).collect()
    }

    fn of_group(&self, rules: &StreamingRules, group: usize, nodes: &[NodeId]) -> Result<NodeHistograms> {
        let binning = &self.data.binning;
        let codes: Vec<Codes> = self
            .partitions
            .clone()
            .map(|partition| self.data.codes(partition, &[group]))
            .collect::<Result<_>>()?;
        let mut worker = StreamingWorker::new(self.data, self.scale.count_bits, group);
        let of_node = |node: &NodeId| {
            for (partition, codes) in self.partitions.clone().zip(&codes) {
                worker.add(codes.group(group), self.rows.partitions[partition].node(*node));
            }
            let mut of_node = Vec::new();
            worker.drain(|lane, list| {
                let feature = binning.layout.groups[group].features[lane];
                let bins = &binning.features[feature as usize];
                let mut histogram = StreamingHistogram::new(rules.centroids);
                let (mut codes, mut rows) = (Vec::new(), Vec::new());
                let missing = insert_cells(list, bins, &self.scale, &mut histogram, |code, count| {
                    codes.push(code);
                    rows.push(count);
                });
                of_node.push(WorkerHistogram { bins: histogram.into_bins(), missing, codes, rows });
            });
            of_node
        };
        Ok(nodes.iter().map(of_node).collect())
    }
}

/// Inserts the sums of the codes that occur into a histogram and passes the number of rows with each code to `count`.
/// Returns the sums of missing values, which are not part of the histogram.
pub fn insert_cells<C: Cell>(
    list: &[(u32, C)],
    bins: &FeatureBins,
    scale: &Scale,
    histogram: &mut StreamingHistogram,
    mut count: impl FnMut(u32, i64),
) -> GradientSums {
    let mut missing = GradientSums::default();
    for (code, cell) in list {
        let sums = cell.sums(scale.count_bits);
        if Some(*code) == bins.missing_code {
            missing = missing + sums;
            continue;
        }
        count(*code, sums.count);
        if sums.weight == 0 {
            continue; // rows without weight have no effect on centroids
        }
        histogram.insert(Centroid {
            centre: f64::from(bins.centres[*code as usize]),
            count: sums.weight as f64 / scale.weight,
            sum: sums.gradient as f64 / scale.gradient,
        });
    }
    missing
}

/// Lists the codes that occur, in ascending order and with their sums.
pub fn list_present<C: Cell>(cells: &[C], count_bits: u32, list: &mut Vec<(u32, C)>) {
    list.clear();
    let present = cells.iter().enumerate().filter(|(_, cell)| cell.sums(count_bits).count > 0);
    list.extend(present.map(|(code, cell)| (code as u32, *cell)));
}

/// Sums the rows of one node on one worker by code, for all features of a group.
pub struct StreamingWorker<'a, C: Cell> {
    data: &'a BinnedData,
    count_bits: u32,
    group: usize,
    cells: Vec<C>,
    total: C,
    sorted: SortedCells<C>,
    list: Vec<(u32, C)>,
}

impl<'a, C: Cell> StreamingWorker<'a, C> {
    /// Creates a worker that has no rows yet.
    pub fn new(data: &'a BinnedData, count_bits: u32, group: usize) -> Self {
        let binning = &data.binning;
        let cells = match binning.layout.groups[group].kind {
            GroupKind::Column(_) => Vec::new(),
            _ => vec![C::default(); lane_cells_of_group::<C>(binning, group)],
        };
        let (total, sorted, list) = (C::default(), SortedCells::new(), Vec::new());
        StreamingWorker { data, count_bits, group, cells, total, sorted, list }
    }

    /// Adds the rows of the node in one partition.
    pub fn add(&mut self, codes: GroupCodes<'_>, node: NodeRows<'_, C>) {
        let group = &self.data.binning.layout.groups[self.group];
        if let GroupKind::Column(_) = group.kind {
            self.sorted.collect(codes, node);
            return;
        }
        node.entries.iter().for_each(|entry| self.total.add(C::of(entry.target, self.count_bits)));
        add_rows(codes, group, node, self.count_bits, &mut self.cells);
    }

    /// Passes the sums of each feature to `take`, and resets them.
    pub fn drain(&mut self, mut take: impl FnMut(usize, &[(u32, C)])) {
        let binning = &self.data.binning;
        let members = &binning.layout.groups[self.group];
        if let GroupKind::Column(_) = members.kind {
            let codes = binning.features[members.features[0] as usize].codes();
            take(0, self.sorted.drain(codes, self.count_bits));
            return;
        }
        let empty = vec![C::default(); self.cells.len()];
        let cells = std::mem::replace(&mut self.cells, empty);
        let cells = finish(binning, self.group, cells, std::mem::take(&mut self.total));
        for lane in 0..members.features.len() {
            list_present(&cells[feature_cells(binning, self.group, lane)], self.count_bits, &mut self.list);
            take(lane, &self.list);
        }
    }
}
