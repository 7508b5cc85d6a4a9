//! Computes the strength of a tree: the expected NDCG of lists (queries) before the first split and after each split
//! (section 6.3 of Ibrahim & Carman 2016). The splits, which may come from any criterion, are replayed on the rows of
//! the tree or on other rows.

use super::list_measure::{ListMeasure, MeasureVariant};
use super::lists::{Lists, MadeSplit, extent_of};
use super::measure::{Extent, NdcgVariant};
use super::sums::LabelUnits;
use crate::bins::{BinnedData, MissingBranch};
use crate::config::LeafScore;
use crate::driver::{ForestSplit, ForestTree};
use planetree_base::error::Result;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Order in which the splits of a tree are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitOrder {
    /// The order in which the splits were made.
    AsGrown,
    /// Level by level.
    Breadth,
}

/// Computes the strength of a tree on rows that consist of whole queries.
pub(crate) fn strength(
    tree: &ForestTree,
    order: SplitOrder,
    (data, rows): (&BinnedData, &[u32]),
    variant: &NdcgVariant,
) -> Result<Vec<f64>> {
    let mut extent = Extent::default();
    let variant = MeasureVariant::Ndcg(variant.clone());
    data.rows.iter().for_each(|partition| extent.merge(&extent_of(partition, rows, &variant)));
    let measure = ListMeasure::new(&variant, &extent);
    let splits = ordered(tree, order);
    let parts = (0..data.partitions()).into_par_iter().map(|partition| {
        let codes = data.all_codes(partition)?;
        // The units of labels do not matter here, because scores come from the tree and not from these rows.
        let units = LabelUnits { label: 1.0, weight: 1.0, leaf_score: LeafScore::Expected };
        let mut lists = Lists::new(&data.rows[partition], rows, &measure, &units);
        let mut worths = vec![lists.worth()];
        for (node, split) in &splits {
            let feature = split.feature as usize;
            let bins = &data.binning.features[feature];
            let column = data.binning.layout.places[feature].map(|place| codes.column(place, bins));
            let made = MadeSplit {
                node: *node,
                left: split.left,
                code: split.code,
                missing_left: bins.missing_code.filter(|_| split.missing == MissingBranch::Left),
                scores: [split.left, split.left + 1].map(|child| tree.nodes[child as usize].value),
            };
            worths.push(lists.split(&made, column.as_ref(), &measure));
        }
        Ok((lists.perfect(), worths))
    });
    let (mut perfect, mut steps) = (0, vec![0; splits.len() + 1]);
    for (of_part, worths) in parts.collect::<Result<Vec<_>>>()? {
        perfect += of_part;
        steps.iter_mut().zip(worths).for_each(|(step, worth)| *step += worth);
    }
    let mut worth = 0i64;
    let share = |step: i64| {
        worth += step;
        if perfect == 0 { 0.0 } else { worth as f64 / perfect as f64 }
    };
    Ok(steps.into_iter().map(share).collect())
}

/// Returns all splits with their nodes, in the given order.
fn ordered(tree: &ForestTree, order: SplitOrder) -> Vec<(u32, ForestSplit)> {
    let mut splits = Vec::new();
    let mut waiting = VecDeque::from([0u32]);
    while let Some(node) = waiting.pop_front() {
        if let Some(split) = tree.nodes[node as usize].split {
            waiting.extend([split.left, split.left + 1]);
            splits.push((node, split));
        }
    }
    if order == SplitOrder::AsGrown {
        // Children are numbered in the order in which splits were made.
        splits.sort_by_key(|(_, split)| split.left);
    }
    splits
}
