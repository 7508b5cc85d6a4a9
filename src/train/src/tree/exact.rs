//! Finds splits whose candidate thresholds are the midpoints between neighbouring values in a node, as in CART.
//!
//! For every node and feature, rows are summed by code. Rows in other processes are summed there, and the sums are added
//! up: they are integers, so they are those of all rows.

use super::cell::{Cell, GradientSums};
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder};
use super::row_store::RowStore;
use super::rows::{NodeId, RowSets};
use super::sorted_cells::SortedCells;
use super::split::FoundSplit;
use crate::bins::{BinnedData, FeatureBins, middle};
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A feature group of one feature, and the nodes in which it is a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupNodes {
    /// The feature group.
    pub group: usize,
    /// The nodes.
    pub nodes: Vec<NodeId>,
}

/// The sums of a node by code, for the codes that occur, in ascending order.
pub type ValueList<C> = Vec<(u32, C)>;

/// Finds the best of all exact splits. It keeps no state between nodes.
pub(crate) struct ExactSplits;

impl<C: Cell> SplitFinder<C> for ExactSplits {
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
        let allowed: Vec<Vec<bool>> = open.iter().map(|open| context.choice.of_node(open.node)).collect();
        let layout = &context.data.binning.layout;
        let groups = context.choice.groups(layout);
        // The places of the nodes in which a feature is a candidate.
        let candidates = |group: &usize| -> Vec<usize> {
            let feature = layout.groups[*group].features[0] as usize;
            (0..open.len()).filter(|place| open[*place].wanted && allowed[*place][feature]).collect()
        };
        let places: Vec<Vec<usize>> = groups.iter().map(candidates).collect();
        let wanted: Vec<GroupNodes> = groups
            .iter()
            .zip(&places)
            .map(|(group, places)| GroupNodes {
                group: *group,
                nodes: places.iter().map(|place| open[*place].node).collect(),
            })
            .collect();
        let sent = rows.value_sums(&wanted)?;
        let found = {
            let local = match sent {
                Some(_) => None,
                None => Some(LocalSums {
                    data: context.data,
                    rows: rows.local()?,
                    count_bits: context.rules.scale.count_bits,
                }),
            };
            let best_of_group = |number: usize| {
                let places = &places[number];
                let feature = layout.groups[groups[number]].features[0];
                let bins = &context.data.binning.features[feature as usize];
                let mut found = vec![None; open.len()];
                let mut take = |at: usize, list: &[(u32, C)]| {
                    found[places[at]] = best_of_list(context, &open[places[at]], feature, bins, list);
                };
                match (&local, sent.as_ref().and_then(|sent| sent.get(number))) {
                    (Some(local), _) => local.each(&wanted[number], take)?,
                    (None, Some(lists)) if lists.len() == places.len() => {
                        lists.iter().enumerate().for_each(|(at, list)| take(at, list));
                    }
                    (None, _) => return Err(malformed()),
                }
                Ok(found)
            };
            let found = (0..groups.len()).into_par_iter().with_max_len(1).map(best_of_group);
            found.collect::<Result<Vec<Vec<Option<FoundSplit>>>>>()?
        };
        let best: Vec<Option<FoundSplit>> = (0..open.len())
            .map(|node| {
                found.iter().map(|splits| splits[node]).fold(None, |one, other| context.better(one, other))
            })
            .collect();
        for (number, lists) in sent.iter().flatten().enumerate() {
            let feature = layout.groups[groups[number]].features[0];
            for (place, list) in places[number].iter().zip(lists) {
                if let Some(split) = best[*place].filter(|split| split.feature == feature) {
                    rows.chosen(open[*place].node, split.children(list.iter().copied(), open[*place].total));
                }
            }
        }
        Ok(best)
    }
}

/// The sums of nodes by code over rows in this process.
pub struct LocalSums<'a, C: Cell> {
    /// The training data.
    pub data: &'a BinnedData,
    /// The rows of each node.
    pub rows: &'a RowSets<C>,
    /// Number of bits for the count in packed cells.
    pub count_bits: u32,
}

impl<C: Cell> LocalSums<'_, C> {
    /// Passes the sums of each node to `take`, with the index of the node.
    fn each(&self, wanted: &GroupNodes, mut take: impl FnMut(usize, &[(u32, C)])) -> Result<()> {
        let GroupNodes { group, nodes } = wanted;
        let binning = &self.data.binning;
        let [feature] = binning.layout.groups.get(*group).ok_or_else(malformed)?.features[..] else {
            return Err(malformed());
        };
        let codes = binning.features[feature as usize].codes();
        let mut cells = SortedCells::new();
        for (place, node) in nodes.iter().enumerate() {
            for (partition, rows) in self.rows.partitions.iter().enumerate() {
                cells.collect(self.data.codes(partition, &[*group])?.group(*group), rows.node(*node));
            }
            take(place, cells.drain(codes, self.count_bits));
        }
        Ok(())
    }

    /// Returns the sums of all wanted groups and nodes.
    pub fn lists(&self, wanted: &[GroupNodes]) -> Result<Vec<Vec<ValueList<GradientSums>>>> {
        let unpack = |(code, cell): &(u32, C)| (*code, cell.sums(self.count_bits));
        let of_group = |wanted: &GroupNodes| {
            let mut lists = Vec::with_capacity(wanted.nodes.len());
            self.each(wanted, |_, list| lists.push(list.iter().map(unpack).collect()))?;
            Ok(lists)
        };
        wanted.par_iter().with_max_len(1).map(of_group).collect()
    }
}

fn best_of_list<C: Cell>(
    context: &GrowContext<'_>,
    open: &OpenNode<C>,
    feature: u32,
    bins: &FeatureBins,
    list: &[(u32, C)],
) -> Option<FoundSplit> {
    let (missing, list) = match list.split_last() {
        Some(((code, cell), values)) if Some(*code) == bins.missing_code => (Some(*cell), values),
        _ => (None, list),
    };
    let values: Vec<C> = list.iter().map(|(_, cell)| *cell).collect();
    let cut = context.best_cut(open, feature, &values, missing)?;
    let place = cut.code as usize;
    let centre = |place: usize| list.get(place).map(|(code, _)| bins.centres[*code as usize]);
    let threshold = match (centre(place), centre(place + 1)) {
        (Some(below), Some(above)) => middle(below, above),
        _ => f32::MAX, // the other side has only missing values
    };
    Some(FoundSplit {
        feature,
        // Rows outside the node may have values between those of the node's rows, so the code is derived from the
        // threshold.
        code: bins.code_up_to(threshold),
        threshold,
        missing_code: bins.missing_code,
        missing: cut.missing,
        gain: cut.gain,
    })
}
