//! Grows the trees of a forest with listwise splits, which are chosen by the ranking of whole queries. All levels of
//! a tree are listwise, or only the top levels.

use super::grow::{ListwiseContext, ListwiseRules, grow};
use super::list_measure::MeasureVariant;
use super::sums::LabelUnits;
use crate::bins::{BinnedData, Codes, MissingSides};
use crate::config::{ForestSettings, ListwiseParameters};
use crate::driver::ForestTree;
use crate::driver::{Draw, TreeGrower};
use crate::forest::features::TreeFeatures;
use crate::forest::grower::{GrowBelow, OpenLeaf, Top};
use crate::objective::check_gains;
use planetree_base::error::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Nodes with at least this many rows are processed by several threads.
const WORTH_SHARING: i64 = 16_384;

/// Memory per row of a tree that is being grown, in bytes: the row's document, a copy of the document while documents
/// are moved, a tie (`lists.rs`), and the row's codes for some features.
pub(crate) const BYTES_PER_ROW: u64 = 24 + 24 + 24 + 16;

struct ListGrower<'a> {
    parameters: &'a ForestSettings,
    data: &'a BinnedData,
    codes: Vec<Codes>,
    units: LabelUnits,
    rules: ListwiseRules,
    /// Grower of the levels below the listwise levels; `None` if all levels are listwise.
    below: Option<Box<dyn GrowBelow + 'a>>,
}

/// Creates the grower for these parameters. `below` contains the number of listwise levels and the grower of the
/// levels below them; it is `None` if all levels are listwise.
pub(crate) fn grower<'a>(
    parameters: &'a ForestSettings,
    splits: &ListwiseParameters,
    data: &'a BinnedData,
    below: Option<(u32, Box<dyn GrowBelow + 'a>)>,
) -> Result<Box<dyn TreeGrower + 'a>> {
    check(parameters, data)?;
    let deepest = parameters.learner.tree.max_depth.unwrap_or(u32::MAX);
    let rules = ListwiseRules {
        variant: MeasureVariant::of(parameters),
        order: splits.order,
        depth: below.as_ref().map_or(deepest, |(levels, _)| deepest.min(*levels)),
        min_rows: i64::try_from(parameters.learner.tree.min_data_in_leaf).unwrap_or(i64::MAX),
        min_to_split: i64::try_from(parameters.learner.tree.min_data_to_split).unwrap_or(i64::MAX),
        queries_per_node: splits.queries_per_node,
        every_value: parameters.learner.candidates.max_bin().is_none(),
        min_gain: parameters.learner.tree.min_gain,
        missing: MissingSides::of(parameters.missing),
        worth_sharing: WORTH_SHARING,
        seed: parameters.seed,
    };
    let codes = (0..data.partitions()).map(|partition| data.all_codes(partition)).collect::<Result<_>>()?;
    Ok(Box::new(ListGrower {
        parameters,
        data,
        codes,
        units: units_of(parameters, data),
        rules,
        below: below.map(|(_, grower)| grower),
    }))
}

/// Returns an error if the data has fewer than two queries, or labels without a valid gain.
fn check(parameters: &ForestSettings, data: &BinnedData) -> Result<()> {
    let queries: usize = data.rows.iter().map(|rows| rows.query_bounds.len() - 1).sum();
    if queries < 2 {
        return Err(Error::usage(
            "all rows are of one query: listwise trees need at least two queries",
            "train on more queries, or set criterion=entropy and listwise_levels=0",
        ));
    }
    if let MeasureVariant::Metric(metric, convention) = MeasureVariant::of(parameters) {
        let labels = data.rows.iter().map(|rows| &rows.labels);
        return labels.into_iter().try_for_each(|labels| {
            convention.check_labels(&[metric], labels).map_err(|unfit| {
                Error::usage(format_args!("listwise_metric={metric}: {}", unfit.problem), unfit.remedy)
            })
        });
    }
    check_gains(&parameters.learner.label_gain, &data.rows).map_err(|problem| problem.at("the training data"))
}

fn units_of(parameters: &ForestSettings, data: &BinnedData) -> LabelUnits {
    let leaf_score = parameters.learner.leaf_score;
    let mut most = 0f64;
    let mut heaviest: Option<f64> = None;
    for rows in &data.rows {
        for (row, label) in rows.labels.iter().enumerate() {
            let weight = rows.weights.as_ref().map(|weights| f64::from(weights[row]));
            most = most.max((leaf_score.of(*label) * weight.unwrap_or(1.0)).abs());
            if let Some(weight) = weight {
                heaviest = Some(heaviest.map_or(weight, |heaviest| heaviest.max(weight)));
            }
        }
    }
    LabelUnits::of(leaf_score, most, heaviest)
}

impl ListGrower<'_> {
    fn grow_with(&self, rules: &ListwiseRules, tree: u32, rows: &[u32]) -> Result<ForestTree> {
        let features = TreeFeatures::draw(self.parameters, &self.data.binning.layout, tree.into());
        let context = ListwiseContext { data: self.data, codes: &self.codes, units: self.units };
        let grown = grow(context, rules, (tree.into(), rows), features)?;
        let Some(below) = &self.below else { return Ok(grown.tree) };
        let mut top = Top { tree: grown.tree, rows: Vec::new(), open: Vec::new() };
        for (node, rows) in grown.deepest {
            let first = top.rows.len();
            top.rows.extend(rows);
            let path = grown.paths[node as usize];
            top.open.push(OpenLeaf { node, path, rows: first..top.rows.len() });
        }
        below.grow_below(tree, top)
    }
}

impl TreeGrower for ListGrower<'_> {
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<ForestTree> {
        self.grow_with(&self.rules, tree, &rows)
    }

    fn grow_batch(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        let mut rules = self.rules.clone();
        if trees.len() >= rayon::current_num_threads() {
            // Every thread grows its own tree. If threads shared nodes, a waiting thread would start yet another tree.
            rules.worth_sharing = i64::MAX;
        }
        let trees = trees.into_par_iter().with_max_len(1);
        trees.map(|tree| self.grow_with(&rules, tree, &draw(tree))).collect()
    }
}
