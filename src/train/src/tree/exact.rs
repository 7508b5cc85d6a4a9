//! Finds splits whose candidate thresholds are the midpoints between neighbouring values in a node, as in CART.

use super::cell::Cell;
use super::finder::{GrowContext, OpenNode, Siblings, SplitFinder};
use super::row_store::RowStore;
use super::rows::RowSets;
use super::sorted_cells::SortedCells;
use super::split::FoundSplit;
use crate::bins::{FeatureBins, middle};
use planetree_base::error::Result;
use rayon::prelude::*;

/// Finds the best of all exact splits. It keeps no state between nodes.
pub struct ExactSplits;

impl<C: Cell> SplitFinder<C> for ExactSplits {
    fn find(
        &mut self,
        context: &GrowContext<'_>,
        rows: &mut dyn RowStore<C>,
        siblings: &[Siblings<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let rows = rows.local()?;
        let open: Vec<OpenNode<C>> = siblings.iter().flat_map(Siblings::nodes).collect();
        let allowed: Vec<Vec<bool>> = open.iter().map(|open| context.choice.of_node(open.node)).collect();
        let groups = context.choice.groups(&context.data.binning.layout);
        let found: Vec<Vec<Option<FoundSplit>>> = groups
            .par_iter()
            .map(|group| {
                let feature = context.data.binning.layout.groups[*group].features[0];
                let mut cells = SortedCells::new();
                let find = |(open, allowed): (&OpenNode<C>, &Vec<bool>)| {
                    if !open.wanted || !allowed[feature as usize] {
                        return Ok(None);
                    }
                    best_of_column(context, rows, open, *group, &mut cells)
                };
                open.iter().zip(&allowed).map(find).collect::<Result<Vec<_>>>()
            })
            .collect::<Result<_>>()?;
        let best = |node: usize| {
            found.iter().map(|splits| splits[node]).fold(None, |one, other| context.better(one, other))
        };
        Ok((0..open.len()).map(best).collect())
    }
}

fn best_of_column<C: Cell>(
    context: &GrowContext<'_>,
    rows: &RowSets<C>,
    open: &OpenNode<C>,
    group: usize,
    cells: &mut SortedCells<C>,
) -> Result<Option<FoundSplit>> {
    let data = context.data;
    for (partition, rows) in rows.partitions.iter().enumerate() {
        cells.collect(data.codes(partition, &[group])?.group(group), rows.node(open.node));
    }
    let feature = data.binning.layout.groups[group].features[0];
    let bins = &data.binning.features[feature as usize];
    let list = cells.drain(bins.codes(), context.rules.scale.count_bits);
    Ok(best_of_list(context, open, feature, bins, list))
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
    let cut = context.rules.best_cut(&values, missing, open.total.sums(context.rules.scale.count_bits))?;
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
        missing_left: cut.missing_left,
        gain: cut.gain,
    })
}
