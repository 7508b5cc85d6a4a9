//! Compares the fast grower bit by bit with a naive one, and the NDCG measure with the mean over all orders of ties.

use super::grow::{ListwiseContext, ListwiseRules, ListwiseTree, grow};
use super::list_measure::MeasureVariant;
use super::measure::NdcgVariant;
use super::strength::SplitOrder;
use super::sums::LabelUnits;
use super::{lists, measure, twin};
use crate::bins::{BinOptions, BinnedData, Codes, MissingSides};
use crate::config::{LeafOrder, LeafScore, MissingPolicy};
use crate::forest::features::TreeFeatures;
use planetree_metric::{Convention, Discount, Gain, Metric};
use proptest::prelude::*;

/// A dataset: features and labels of its documents, and the bounds of its lists.
#[derive(Debug, Clone)]
struct Case {
    columns: Vec<Vec<f32>>,
    labels: Vec<f32>,
    bounds: Vec<u32>,
    weights: Option<Vec<f32>>,
}

/// Maximum number of documents per list. A list ends at each multiple of this number, so that partitions can end
/// there too.
const BLOCK: usize = 12;

fn case(features: std::ops::Range<usize>, blocks: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    (blocks, features, any::<bool>()).prop_flat_map(|(blocks, features, is_weighted)| {
        let rows = blocks * BLOCK;
        let value = prop_oneof![6 => (0u8..9).prop_map(f32::from), 1 => Just(f32::NAN)];
        let label = prop_oneof![3 => Just(0f32), 2 => Just(1f32), 1 => (0u8..5).prop_map(f32::from)];
        (
            prop::collection::vec(prop::collection::vec(value, rows), features),
            prop::collection::vec(label, rows),
            prop::collection::vec(prop::bool::weighted(0.2), rows),
            prop::collection::vec((1u8..5).prop_map(f32::from), rows),
        )
            .prop_map(move |(columns, labels, ends, weights)| {
                let is_bound = |row: &u32| (*row as usize).is_multiple_of(BLOCK) || ends[*row as usize];
                let bounds = (0..=rows as u32).filter(is_bound).collect();
                Case { columns, labels, bounds, weights: is_weighted.then_some(weights) }
            })
    })
}

fn variant() -> impl Strategy<Value = NdcgVariant> {
    let discount = prop_oneof![
        3 => Just(Discount::Log2),
        1 => Just(Discount::LogPower(0.1)),
        1 => Just(Discount::LogPower(4.0)),
        1 => Just(Discount::Power(0.01)),
        1 => Just(Discount::Power(1.0)),
    ];
    let gain =
        prop_oneof![Just(Gain::Exp2), Just(Gain::Linear), Just(Gain::Table(vec![0.0, 0.3, 1.0, 1.0, 2.7]))];
    (gain, discount, prop::option::of(1u32..6)).prop_map(|(gain, discount, truncation)| NdcgVariant {
        gain,
        discount,
        truncation,
    })
}

fn order() -> impl Strategy<Value = LeafOrder> {
    prop_oneof![
        Just(LeafOrder::Breadth),
        Just(LeafOrder::Random),
        Just(LeafOrder::Biggest),
        Just(LeafOrder::MostRelevant),
        Just(LeafOrder::Depth),
    ]
}

/// NDCG, or the expected value of another metric.
fn measured() -> impl Strategy<Value = MeasureVariant> {
    let metric = prop::sample::select(vec!["err", "map", "mrr", "p@3", "recall@4", "auc", "tau"]);
    prop_oneof![
        2 => variant().prop_map(MeasureVariant::Ndcg),
        1 => metric.prop_map(|name| {
            let metric: Metric = name.parse().unwrap();
            MeasureVariant::averaged(metric, &Convention::default())
        }),
    ]
}

fn rules() -> impl Strategy<Value = ListwiseRules> {
    let depth = prop_oneof![2 => Just(u32::MAX), 1 => 1u32..4];
    let least = (1i64..4, prop_oneof![4 => Just(0.0), 1 => Just(0.01)]);
    let queries_per_node = prop_oneof![3 => Just(1.0), 1 => 0.2f64..1.0];
    let missing = prop::sample::select(vec![MissingSides::Either, MissingSides::Left, MissingSides::Right]);
    let rules = (measured(), order(), depth, least, (queries_per_node, 2i64..12, missing));
    rules.prop_map(
        |(variant, order, depth, (min_rows, min_gain), (queries_per_node, min_to_split, missing))| {
            ListwiseRules {
                variant,
                order,
                depth,
                min_rows,
                min_to_split,
                queries_per_node,
                every_value: false,
                min_gain,
                missing,
                worth_sharing: i64::MAX,
                seed: 7,
            }
        },
    )
}

impl Case {
    /// Returns the data in partitions of `blocks * BLOCK` documents.
    fn data(&self, blocks: usize, missing: MissingPolicy) -> BinnedData {
        self.binned(BinOptions { max_bin: Some(255), missing, sparse: true, by_query: false }, blocks)
    }

    fn binned(&self, options: BinOptions, blocks: usize) -> BinnedData {
        let mut data = BinnedData::of_values(&self.columns, &self.labels, blocks * BLOCK, &options);
        let mut queries = 0;
        for rows in &mut data.rows {
            let all = rows.first as u32..=rows.first as u32 + rows.len() as u32;
            let here = self.bounds.iter().filter(|bound| all.contains(bound));
            rows.query_bounds = here.map(|bound| bound - all.start()).collect();
            rows.first_query = queries;
            queries += rows.query_bounds.len() as u64 - 1;
            let range = *all.start() as usize..*all.end() as usize;
            rows.weights = self.weights.as_ref().map(|weights| weights[range].to_vec());
        }
        data
    }
}

/// Samples all lists except every third. Every fifth list is sampled twice.
fn some_rows(data: &BinnedData) -> Vec<u32> {
    let drawn = |rows: &planetree_data::source::LabelledRows| {
        let mut drawn = Vec::new();
        for (query, number) in rows.query_bounds.windows(2).zip(rows.first_query..) {
            let copies = if number.is_multiple_of(3) { 0 } else { 1 + usize::from(number.is_multiple_of(5)) };
            for row in query[0]..query[1] {
                drawn.extend(std::iter::repeat_n(rows.first as u32 + row, copies));
            }
        }
        drawn
    };
    data.rows.iter().flat_map(drawn).collect()
}

fn all_rows(data: &BinnedData) -> Vec<u32> {
    (0..data.row_count() as u32).collect()
}

fn features_of(data: &BinnedData, per_node: &str) -> TreeFeatures {
    let set = [format!("features_per_node={per_node}")];
    let plan = crate::config::load(Some("rf-list"), None, &set).unwrap();
    let parameters = plan.first();
    TreeFeatures::draw(&parameters.with(parameters.forest().unwrap().clone()), &data.binning.layout, 3)
}

fn context<'a>(data: &'a BinnedData, codes: &'a [Codes]) -> ListwiseContext<'a> {
    context_with(data, codes, LeafScore::Expected)
}

fn context_with<'a>(data: &'a BinnedData, codes: &'a [Codes], leaf_score: LeafScore) -> ListwiseContext<'a> {
    let heaviest = data.rows[0].weights.as_ref().map(|_| 4.0);
    ListwiseContext { data, codes, units: LabelUnits::of(leaf_score, 80.0, heaviest) }
}

fn codes_of(data: &BinnedData) -> Vec<Codes> {
    (0..data.partitions()).map(|partition| data.codes(partition, &[]).unwrap()).collect()
}

/// Formats a tree as a string that differs if any bit of the tree differs.
fn told(tree: &ListwiseTree) -> String {
    format!("{:?} {:?} {:?}", tree.tree, tree.paths, tree.strength)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_fast_tree_is_the_slow_one(
        case in case(1..4, 1..7), rules in rules(), sampled in any::<bool>(), learned in any::<bool>(),
    ) {
        let data = case.data(2, if learned { MissingPolicy::Learned } else { MissingPolicy::Zero });
        let codes = codes_of(&data);
        let rows = if sampled { some_rows(&data) } else { all_rows(&data) };
        let fast = grow(context(&data, &codes), &rules, (3, &rows), features_of(&data, "2")).unwrap();
        let slow = twin::grow(context(&data, &codes), &rules, (3, &rows), features_of(&data, "2"));
        prop_assert_eq!(told(&fast), told(&slow));
    }

    #[test]
    fn every_value_and_every_leaf_score_have_the_slow_tree(
        case in case(1..4, 1..7), rules in rules(), learned in any::<bool>(),
        leaf_score in prop_oneof![Just(LeafScore::Expected), Just(LeafScore::Square), Just(LeafScore::Exp2)],
    ) {
        let missing = if learned { MissingPolicy::Learned } else { MissingPolicy::Zero };
        let data = case.binned(BinOptions { max_bin: None, missing, sparse: false, by_query: false }, 2);
        let codes = codes_of(&data);
        let rules = ListwiseRules { every_value: true, ..rules };
        let rows = some_rows(&data);
        let context = || context_with(&data, &codes, leaf_score);
        let fast = grow(context(), &rules, (3, &rows), features_of(&data, "2")).unwrap();
        let slow = twin::grow(context(), &rules, (3, &rows), features_of(&data, "2"));
        prop_assert_eq!(told(&fast), told(&slow));
        // Thresholds are midpoints between values that occur.
        for split in fast.tree.nodes.iter().filter_map(|node| node.split).filter(|split| split.threshold < f32::MAX) {
            let values = &case.columns[split.feature as usize];
            let value = |value: &f32| if value.is_nan() { 0.0 } else { *value };
            let below = values.iter().map(value).filter(|value| *value <= split.threshold).fold(f32::MIN, f32::max);
            let above = values.iter().map(value).filter(|value| *value > split.threshold).fold(f32::MAX, f32::min);
            prop_assert!(below <= split.threshold && split.threshold < above, "{:?}", split);
        }
    }

    #[test]
    fn no_partitioning_and_no_sharing_among_threads_changes_a_tree(case in case(2..4, 2..9), rules in rules()) {
        let tree_of = |blocks: usize, worth_sharing: i64| {
            let data = case.data(blocks, MissingPolicy::Learned);
            let codes = codes_of(&data);
            let rules = ListwiseRules { worth_sharing, ..rules.clone() };
            let rows = some_rows(&data);
            told(&grow(context(&data, &codes), &rules, (3, &rows), features_of(&data, "all")).unwrap())
        };
        let one = tree_of(1, i64::MAX);
        for (blocks, worth_sharing) in [(1, 0), (2, i64::MAX), (3, 20), (100, 0)] {
            prop_assert_eq!(&one, &tree_of(blocks, worth_sharing));
        }
    }

    #[test]
    fn growing_a_tree_again_is_as_good_as_the_first_time(
        case in case(2..4, 2..9), rules in rules(), variant in variant(),
    ) {
        let rules = ListwiseRules {
            variant: MeasureVariant::Ndcg(variant.clone()), queries_per_node: 1.0, ..rules
        };
        let data = case.data(2, MissingPolicy::Learned);
        let codes = codes_of(&data);
        let rows = some_rows(&data);
        let grown = grow(context(&data, &codes), &rules, (3, &rows), features_of(&data, "all")).unwrap();
        let again =
            super::strength(&grown.tree, SplitOrder::AsGrown, (&data, &rows), &variant).unwrap();
        prop_assert_eq!(&grown.strength, &again);
        if rules.order == LeafOrder::Breadth {
            let by_levels =
                super::strength(&grown.tree, SplitOrder::Breadth, (&data, &rows), &variant).unwrap();
            prop_assert_eq!(&grown.strength, &by_levels);
        }
        // The gain of every split equals the increase in strength.
        let mut splits: Vec<_> = grown.tree.nodes.iter().filter_map(|node| node.split).collect();
        splits.sort_by_key(|split| split.left);
        for (split, pair) in splits.iter().zip(grown.strength.windows(2)) {
            prop_assert!((pair[1] - pair[0] - split.gain).abs() < 1e-12);
            prop_assert!(split.gain > 0.0);
        }
    }

    #[test]
    fn a_tie_is_worth_the_mean_over_all_orders(
        labels in prop::collection::vec(0u8..5, 1..7), scores in prop::collection::vec(0u8..3, 6), variant in variant(),
    ) {
        let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
        let documents: Vec<(u8, f32)> = scores.iter().copied().zip(labels.iter().copied()).collect();
        let extent = measure::Extent {
            longest: labels.len() as u32,
            lists: 1,
            most_gain: labels.iter().map(|label| variant.gain.of(*label)).fold(0.0, f64::max),
            most_weight: 1.0,
        };
        let measure = measure::NdcgMeasure::new(&variant, &extent);
        let mut gains: Vec<i32> = labels.iter().map(|label| measure.gain_of(*label)).collect();
        let factor = measure.factor_of(&mut gains, 1.0);
        let mut ties: Vec<lists::Tie> = Vec::new();
        for score in (0u8..3).rev() {
            let here = documents.iter().filter(|document| document.0 == score);
            let gains: Vec<i64> = here.map(|document| measure.gain_of(document.1).into()).collect();
            if !gains.is_empty() {
                let count = gains.len() as u32;
                ties.push(lists::Tie { score: score.into(), gains: gains.iter().sum(), count, leaf: score.into() });
            }
        }
        let worth = lists::worth_of(&ties, factor, &measure) as f64 / measure.perfect(1.0) as f64;
        prop_assert!((worth - mean_over_orders(&documents, &variant)).abs() < 1e-8, "{}", worth);
    }
}

/// Computes expected NDCG by its definition: the mean over all orders that the scores allow.
fn mean_over_orders(documents: &[(u8, f32)], variant: &NdcgVariant) -> f64 {
    let dcg = |order: &[(u8, f32)]| -> f64 {
        let ranks = order.iter().enumerate();
        let counted = ranks.filter(|(rank, _)| variant.truncation.is_none_or(|most| (*rank as u32) < most));
        counted.map(|(rank, document)| variant.gain.of(document.1) * variant.discount.at(rank)).sum()
    };
    let mut best = documents.to_vec();
    best.sort_by(|one, other| variant.gain.of(other.1).total_cmp(&variant.gain.of(one.1)));
    if dcg(&best) == 0.0 {
        return 0.0;
    }
    let mut orders = vec![Vec::new()];
    for _ in documents {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                let next = (0..documents.len()).filter(|place| !order.contains(place));
                next.map(|place| [order.as_slice(), &[place]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    let allowed: Vec<Vec<(u8, f32)>> = orders
        .iter()
        .map(|order| order.iter().map(|place| documents[*place]).collect::<Vec<_>>())
        .filter(|order| order.is_sorted_by(|one, other| one.0 >= other.0))
        .collect();
    allowed.iter().map(|order| dcg(order) / dcg(&best)).sum::<f64>() / allowed.len() as f64
}

#[test]
fn trees_optimise_every_metric() {
    // The feature equals the label, so that a split improves every metric.
    let labels = [0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 0.0].to_vec();
    let case = Case { columns: vec![labels.clone()], labels, bounds: vec![0, 6, 12], weights: None };
    let data = case.data(1, MissingPolicy::Zero);
    let (codes, rows) = (codes_of(&data), all_rows(&data));
    for name in ["err", "map", "mrr", "p@1", "recall@2", "auc", "tau"] {
        let rules = ListwiseRules {
            variant: MeasureVariant::averaged(name.parse().unwrap(), &Convention::default()),
            order: LeafOrder::Breadth,
            depth: u32::MAX,
            min_rows: 1,
            min_to_split: 2,
            queries_per_node: 1.0,
            every_value: false,
            min_gain: 0.0,
            missing: MissingSides::Either,
            worth_sharing: i64::MAX,
            seed: 7,
        };
        let tree = grow(context(&data, &codes), &rules, (3, &rows), features_of(&data, "all")).unwrap();
        assert!(tree.tree.nodes[0].split.is_some(), "{name}");
    }
}
