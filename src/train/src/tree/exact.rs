//! Candidates are the middles between neighbouring values of a node (CART).

use super::cell::Cell;
use super::finder::{Family, Ground, OpenNode, SplitFinder, better};
use super::holder::Holder;
use super::rows::RowSets;
use super::sorted_cells::SortedCells;
use super::split::FoundSplit;
use crate::bins::{FeatureBins, middle};
use planetree_base::error::Result;
use rayon::prelude::*;

/// Finds exact splits; keeps nothing.
pub struct ExactSplits;

impl<C: Cell> SplitFinder<C> for ExactSplits {
    fn find(
        &mut self,
        ground: &Ground<'_>,
        rows: &mut dyn Holder<C>,
        families: &[Family<C>],
    ) -> Result<Vec<Option<FoundSplit>>> {
        let rows = rows.here()?;
        let open: Vec<OpenNode<C>> = families.iter().flat_map(Family::nodes).collect();
        let allowed: Vec<Vec<bool>> = open.iter().map(|open| ground.choice.of_node(open.node)).collect();
        let groups = ground.choice.groups(&ground.data.binning.layout);
        let found: Vec<Vec<Option<FoundSplit>>> = groups
            .par_iter()
            .map(|group| {
                let feature = ground.data.binning.layout.groups[*group].features[0];
                let mut cells = SortedCells::new();
                let find = |(open, allowed): (&OpenNode<C>, &Vec<bool>)| {
                    if !open.wanted || !allowed[feature as usize] {
                        return Ok(None);
                    }
                    best_of_column(ground, rows, open, *group, &mut cells)
                };
                open.iter().zip(&allowed).map(find).collect::<Result<Vec<_>>>()
            })
            .collect::<Result<_>>()?;
        let best = |node: usize| found.iter().map(|splits| splits[node]).fold(None, better);
        Ok((0..open.len()).map(best).collect())
    }
}

fn best_of_column<C: Cell>(
    ground: &Ground<'_>,
    rows: &RowSets<C>,
    open: &OpenNode<C>,
    group: usize,
    cells: &mut SortedCells<C>,
) -> Result<Option<FoundSplit>> {
    let data = ground.data;
    for (partition, rows) in rows.partitions.iter().enumerate() {
        cells.collect(data.codes(partition, &[group])?.group(group), rows.node(open.node));
    }
    let feature = data.binning.layout.groups[group].features[0];
    let bins = &data.binning.features[feature as usize];
    let list = cells.drain(bins.codes(), ground.rules.scale.count_bits);
    Ok(best_of_list(ground, open, feature, bins, list))
}

fn best_of_list<C: Cell>(
    ground: &Ground<'_>,
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
    let cut = ground.rules.best_cut(&values, missing, open.total.sums(ground.rules.scale.count_bits))?;
    let place = cut.code as usize;
    let centre = |place: usize| list.get(place).map(|(code, _)| bins.centres[*code as usize]);
    let threshold = match (centre(place), centre(place + 1)) {
        (Some(below), Some(above)) => middle(below, above),
        _ => f32::MAX, // only missing values are on the other side
    };
    Some(FoundSplit {
        feature,
        // Rows that are not in the node may lie between its values: the threshold decides for them.
        code: bins.code_up_to(threshold),
        threshold,
        missing_code: bins.missing_code,
        missing_left: cut.missing_left,
        gain: cut.gain,
    })
}
