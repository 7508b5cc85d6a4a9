//! Tests of fast kernels and split finders against naive references.

use super::cell::{Cell, GradientSums, Scale};
use super::centroids::{Centroid, StreamingHistogram};
use super::features::FeatureChoice;
use super::finder::{GrowContext, SplitFinder};
use super::frontier::Order;
use super::grow::{GrownTree, TreeLimits, grow};
use super::histogram::{HistogramBuilder, NodeHistogram, WantedNode, feature_cells};
use super::row_store::{LocalRows, RowStore};
use super::rows::{NodeId, NodeSplit, RowSets};
use super::split::{Divisor, FoundSplit, LeafRule, SplitRules};
use super::{
    CarriedRoot, ExactSplits, KeptHistograms, NodeHistograms, NodePart, RootShapes, StaticBins,
    StreamingRules, StreamingSplits, WorkerBounds, WorkerRows,
};
use crate::bins::{BinOptions, BinnedData, MissingBranch, MissingSides, middle, mixed_columns};
use crate::config::{MissingPolicy, Parameters};
use planetree_base::error::Result;
use proptest::prelude::*;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

mod branch;
mod deepest;
mod monotone;

const LEAST: i64 = 3;

/// Rows that may send the histograms of their workers, as those of a cluster do.
struct Sender<'a> {
    held: LocalRows<'a, i64>,
    bounds: Arc<WorkerBounds>,
    scale: Scale,
    centroids: usize,
    sends: bool,
}

impl RowStore<i64> for Sender<'_> {
    fn root(&mut self) -> Result<i64> {
        self.held.root()
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<i64>>> {
        self.held.split(splits)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<i64>]) -> Result<Vec<NodeHistogram<i64>>> {
        self.held.histograms(groups, nodes)
    }

    fn merged_histograms(
        &mut self,
        groups: &[usize],
        nodes: &[NodeId],
    ) -> Result<Option<Vec<NodeHistograms>>> {
        let workers = WorkerRows {
            data: self.held.data,
            rows: self.held.sets,
            bounds: &self.bounds,
            workers: 0..self.bounds.workers(),
            scale: self.scale,
            centroids: self.centroids,
        };
        let trees = workers.histograms(groups, nodes)?.into_iter();
        Ok(self.sends.then(|| trees.map(|tree| tree.finish().unwrap()).collect()))
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<i64>> {
        self.held.part_sums(parts)
    }

    fn local(&self) -> Result<&RowSets<i64>> {
        self.held.local()
    }
}

/// Generates columns with many zeros, few or many distinct values, and missing values, and a target per row.
fn data() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<i32>)> {
    (10usize..150, 1usize..90).prop_flat_map(|(rows, features)| {
        (mixed_columns(rows, features), prop::collection::vec(-1000i32..1000, rows))
    })
}

fn binned(columns: &[Vec<f32>], rows: usize, partition_rows: usize, max_bin: Option<usize>) -> BinnedData {
    let options = BinOptions { max_bin, missing: MissingPolicy::Learned, sparse: true, by_query: false };
    BinnedData::of_values(columns, &vec![0.0; rows], partition_rows, &options)
}

fn sets(data: &BinnedData, targets: &[i32]) -> RowSets<i64> {
    let mut sets = RowSets::new(data.partitions());
    for (set, rows) in sets.partitions.iter_mut().zip(&data.rows) {
        set.start(targets[rows.first as usize..][..rows.len()].par_iter().copied(), None);
    }
    sets
}

fn scale(rows: usize) -> Scale {
    Scale { count_bits: Scale::count_bits(rows as u64), gradient: 1.0, weight: 1.0 }
}

fn code(data: &BinnedData, columns: &[Vec<f32>], feature: usize, row: usize) -> u32 {
    data.binning.features[feature].code_of(columns[feature][row])
}

/// Sums rows by code, one row at a time.
fn naive_sums(
    data: &BinnedData,
    columns: &[Vec<f32>],
    targets: &[i32],
    rows: &[usize],
    feature: usize,
) -> Vec<GradientSums> {
    let mut sums = vec![GradientSums::default(); data.binning.features[feature].codes()];
    for row in rows {
        let sum = &mut sums[code(data, columns, feature, *row) as usize];
        sum.gradient += i64::from(targets[*row]);
        sum.weight += 1;
        sum.count += 1;
    }
    sums
}

fn assert_histogram(
    data: &BinnedData,
    columns: &[Vec<f32>],
    targets: &[i32],
    rows: &[usize],
    histogram: &NodeHistogram<i64>,
) {
    let bits = scale(targets.len()).count_bits;
    for (feature, place) in data.binning.layout.places.iter().enumerate() {
        let Some(place) = place else { continue };
        let cells = &histogram.groups[place.group][feature_cells(&data.binning, place.group, place.lane)];
        let fast: Vec<GradientSums> = cells.iter().map(|cell| cell.sums(bits)).collect();
        assert_eq!(fast, naive_sums(data, columns, targets, rows, feature), "feature {feature}");
    }
}

fn total(targets: &[i32], rows: &[usize], bits: u32) -> i64 {
    rows.iter().fold(0i64, |mut sum, row| {
        sum.add(i64::of(targets[*row], bits));
        sum
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn histograms_match_naive_sums_and_children_add_up_to_the_parent(
        (columns, targets) in data(), partition_rows in 5usize..60, threads in 1usize..4, cut in 0u32..10,
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, Some(20));
        prop_assume!(data.binning.layout.places[0].is_some());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let bits = scale(rows).count_bits;
        let groups: Vec<usize> = (0..data.binning.layout.groups.len()).collect();
        let builder = HistogramBuilder { data: &data, count_bits: bits, groups: &groups };
        let mut sets = sets(&data, &targets);
        let all: Vec<usize> = (0..rows).collect();
        let wanted = |node, of: &[usize]| WantedNode { node, total: total(&targets, of, bits) };
        let mut parent = pool.install(|| builder.build(&sets, &[wanted(0, &all)])).unwrap().remove(0);
        assert_histogram(&data, &columns, &targets, &all, &parent);
        let split = FoundSplit {
            feature: 0, code: cut, threshold: 0.0, missing_code: data.binning.features[0].missing_code,
            missing: MissingBranch::of_side(cut % 2 == 0), gain: 0.0,
        };
        sets.split(&data, &[NodeSplit { node: 0, left: 1, split }]).unwrap();
        let goes_left = |row: &usize| {
            let code = code(&data, &columns, 0, *row);
            code <= cut || (cut % 2 == 0 && Some(code) == data.binning.features[0].missing_code)
        };
        let (left, right): (Vec<usize>, Vec<usize>) = all.iter().copied().partition(goes_left);
        for (node, rows) in [(1, &left), (2, &right)] {
            let places: Vec<usize> = (0..data.partitions()).flat_map(|partition| {
                let first = data.rows[partition].first as usize;
                sets.partitions[partition].places(node, 0..usize::MAX).map(move |row| first + row as usize)
            }).collect();
            prop_assert_eq!(&places, rows);
        }
        let children = pool.install(|| builder.build(&sets, &[wanted(1, &left), wanted(2, &right)])).unwrap();
        assert_histogram(&data, &columns, &targets, &left, &children[0]);
        assert_histogram(&data, &columns, &targets, &right, &children[1]);
        parent.subtract(&children[..1]);
        prop_assert!(parent.groups == children[1].groups);
    }

    #[test]
    fn weights_are_added_beside_gradients((columns, targets) in data(), partition_rows in 5usize..60) {
        let data = binned(&columns, targets.len(), partition_rows, Some(20));
        let bits = scale(targets.len()).count_bits;
        let groups: Vec<usize> = (0..data.binning.layout.groups.len()).collect();
        let builder = HistogramBuilder { data: &data, count_bits: bits, groups: &groups };
        let weighted: Vec<[i32; 2]> = targets.iter().map(|target| [*target, 3 + target % 3]).collect();
        let mut sets = RowSets::<[i64; 2]>::new(data.partitions());
        for (set, rows) in sets.partitions.iter_mut().zip(&data.rows) {
            set.start(weighted[rows.first as usize..][..rows.len()].par_iter().copied(), None);
        }
        let mut total = <[i64; 2]>::default();
        weighted.iter().for_each(|target| total.add(Cell::of(*target, bits)));
        let histogram = builder.build(&sets, &[WantedNode { node: 0, total }]).unwrap().remove(0);
        for (feature, place) in data.binning.layout.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let cells = &histogram.groups[place.group][feature_cells(&data.binning, place.group, place.lane)];
            for (bin, cell) in cells.iter().enumerate() {
                let of_bin = |row: &usize| code(&data, &columns, feature, *row) as usize == bin;
                let rows: Vec<usize> = (0..targets.len()).filter(of_bin).collect();
                let sum = |of: usize| rows.iter().map(|row| i64::from(weighted[*row][of])).sum::<i64>();
                let naive = GradientSums { gradient: sum(0), weight: sum(1), count: rows.len() as i64 };
                prop_assert_eq!(cell.sums(bits), naive, "feature {}, bin {}", feature, bin);
            }
        }
    }

    #[test]
    fn grown_trees_match_exhaustive_search(
        (columns, targets) in data(), partition_rows in 5usize..60, exact in any::<bool>(),
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, (!exact).then_some(30));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let (tree, hessians) = (grown(&data, &targets, exact, 4), vec![1; rows]);
        let check = Exhaustive {
            tree: &tree, data: &data, columns: &columns, targets: &targets, hessians: &hessians, rules: rules_of(rows),
            exact,
            penalties: None,
        };
        check.check(0, (0..rows).collect(), 4);
    }

    #[test]
    fn splits_by_gradient_newton_and_sum_match_exhaustive_search(
        (columns, targets) in data(), partition_rows in 5usize..60, exact in any::<bool>(), divisor in 0usize..3,
        hessians in prop::collection::vec(0i32..40, 150), min_weight in 0u32..60, min_to_split in 2i64..30,
        costs in prop::collection::vec(0u8..5, 40),
        missing in prop::sample::select(
            vec![MissingSides::Either, MissingSides::Left, MissingSides::Right, MissingSides::Own]),
    ) {
        let (rows, hessians) = (targets.len(), &hessians[..targets.len()]);
        let data = binned(&columns, rows, partition_rows, (!exact).then_some(30));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let start = || {
            let mut sets = RowSets::<[i64; 2]>::new(data.partitions());
            for (set, of_partition) in sets.partitions.iter_mut().zip(&data.rows) {
                let range = of_partition.first as usize..of_partition.first as usize + of_partition.len();
                let pairs: Vec<[i32; 2]> = range.map(|row| [targets[row], hessians[row]]).collect();
                set.start(pairs.into_par_iter(), None);
            }
            sets
        };
        let split = [Divisor::Rows, Divisor::Weight { lambda: 0.5 }, Divisor::One][divisor];
        let rules = SplitRules { split, min_weight: f64::from(min_weight), min_to_split, missing, ..rules_of(rows) };
        let costs: Vec<f64> = columns.iter().zip(costs.iter().cycle()).map(|(_, cost)| f64::from(*cost) * 1000.0).collect();
        for penalties in [None, Some(costs.as_slice())] {
            let mut sets = start();
            let tree = match exact {
                true => grown_at_a_price(&data, &mut sets, rules, &mut ExactSplits, 4, penalties),
                false => {
                    let mut finder = StaticBins::new(KeptHistograms::default());
                    grown_at_a_price(&data, &mut sets, rules, &mut finder, 4, penalties)
                }
            };
            let (tree, data, columns, targets) = (&tree, &data, &columns, &targets);
            let check = Exhaustive { tree, data, columns, targets, hessians, rules, exact, penalties };
            check.check(0, (0..rows).collect(), 4);
        }
    }

    #[test]
    fn a_carried_root_equals_the_histogram_of_all_rows(
        (columns, targets) in data(), partition_rows in 5usize..60, order in 0u32..2, room in 0usize..3,
        units in prop::collection::vec(-5000i64..5000, 128), threads in 1usize..4, own in any::<bool>(),
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, Some(20));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let parameters: Parameters = crate::config::load(None, None, &[]).unwrap().first().clone();
        let choice = FeatureChoice::draw(parameters.tree().unwrap(), parameters.seed, &data.binning.layout, 1);
        let missing = if own { MissingSides::Own } else { MissingSides::Either };
        let rules = SplitRules { missing, ..rules_of(rows) };
        // Memory for no, some or all histograms.
        let histogram_bytes = [0, 200_000, 1 << 30][room];
        let context = GrowContext { data: &data, rules, choice: &choice, histogram_bytes, penalties: None, monotone: None };
        let limits = TreeLimits { depth: 4, order: [Order::Levels, Order::BestFirst { leaves: 7 }][order as usize] };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let bits = scale(rows).count_bits;
        let mut sets = sets(&data, &targets);
        let (grown, carried, moved) = pool.install(|| {
            let mut held = LocalRows { data: &data, sets: &mut sets, count_bits: bits };
            let mut finder: Box<dyn SplitFinder<i64>> = Box::new(StaticBins::new(KeptHistograms::for_carry(None)));
            let grown = grow(&context, limits, &mut held, &mut *finder).unwrap();
            let units = &units[..grown.nodes.len()];
            let carried = CarriedRoot::after(&grown, units, finder.kept(), &context, &mut held).unwrap().unwrap();
            let mut moved = targets.clone();
            for (node, units) in units.iter().enumerate().filter(|(node, _)| grown.nodes[*node].split.is_none()) {
                for (partition, set) in held.sets.partitions.iter().enumerate() {
                    let first = data.rows[partition].first as usize;
                    set.places(node, 0..usize::MAX).for_each(|row| moved[first + row as usize] -= *units as i32);
                }
            }
            (grown, carried, moved)
        });
        prop_assert!(grown.nodes.len() == 1 || moved != targets || units.iter().take(grown.nodes.len()).any(|u| *u == 0));
        let all: Vec<usize> = (0..rows).collect();
        assert_histogram(&data, &columns, &moved, &all, &carried.histogram);
        let given = StaticBins::new(KeptHistograms::for_carry(Some(carried.histogram)));
        let fresh = StaticBins::new(KeptHistograms::default());
        let [given, fresh] = [given, fresh]
            .map(|mut finder| grown_with(&data, &mut self::sets(&data, &moved), rules, &mut finder, 4));
        prop_assert!(given == fresh);
    }

    #[test]
    fn streaming_trees_do_not_depend_on_partitions_threads_or_column_layout(
        (columns, targets) in data(), partition_rows in 5usize..60, centroids in 2usize..20, workers in 2usize..9,
        threads in 1usize..4, own in any::<bool>(),
    ) {
        let rows = targets.len();
        let missing = if own { MissingSides::Own } else { MissingSides::Either };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let grow_with = |max_bin: Option<usize>, workers: usize, partition_rows: usize| {
            let data = binned(&columns, rows, partition_rows, max_bin);
            let rules = StreamingRules { centroids, grouped: max_bin.is_some(), workers };
            let bounds = Arc::new(WorkerBounds::divide(&data.rows, workers));
            let mut finder = StreamingSplits::new(rules, bounds, KeptHistograms::default(), None);
            let split_rules = SplitRules { missing, ..rules_of(rows) };
            let mut sets = sets(&data, &targets);
            let tree = pool.install(|| grown_with(&data, &mut sets, split_rules, &mut finder, 3));
            let shape = |node: &super::GrownNode| (node.sums, node.split.map(|(split, left)| (split.feature, left)));
            tree.nodes.iter().map(shape).collect::<Vec<_>>()
        };
        // If all values are distinct in both cases, the histograms are the same.
        for workers in [1, workers] {
            let whole = grow_with(Some(255), workers, rows);
            prop_assert_eq!(&whole, &grow_with(Some(255), workers, partition_rows));
            prop_assert_eq!(&whole, &grow_with(None, workers, rows));
            prop_assert_eq!(&whole, &grow_with(None, workers, partition_rows));
        }
    }

    /// The bins of a root are found once, and later trees only sum their targets.
    #[test]
    fn roots_of_known_shape_have_the_splits_of_new_ones(
        (columns, targets) in data(), partition_rows in 5usize..60, centroids in 2usize..20,
    ) {
        let data = binned(&columns, targets.len(), partition_rows, None);
        let rules = StreamingRules { centroids, grouped: false, workers: 1 };
        let bounds = Arc::new(WorkerBounds::divide(&data.rows, 1));
        let known = Arc::new(RootShapes::new(columns.len()));
        for factor in [1, -3, 2] {
            let targets: Vec<i32> = targets.iter().map(|target| (target * factor) % 700).collect();
            let [fresh, known] = [None, Some(known.clone())].map(|shapes| {
                let kept = KeptHistograms::default();
                let mut finder = StreamingSplits::new(rules, bounds.clone(), kept, shapes);
                grown_by(&data, &targets, &mut finder, 3)
            });
            prop_assert!(fresh == known);
        }
    }

    /// The slow twin inserts the values of each worker one by one, and merges the histograms of all workers level by
    /// level.
    #[test]
    fn workers_build_and_merge_histograms_as_defined(
        (columns, targets) in data(), partition_rows in 5usize..60, centroids in 2usize..20, workers in 1usize..12,
    ) {
        let data = binned(&columns, targets.len(), partition_rows, None);
        let bounds = WorkerBounds::divide(&data.rows, workers);
        let groups: Vec<usize> = (0..data.binning.layout.groups.len()).collect();
        let sets = sets(&data, &targets);
        let all = WorkerRows {
            data: &data, rows: &sets, bounds: &bounds, workers: 0..bounds.workers(), scale: scale(targets.len()), centroids,
        };
        let fast = all.histograms(&groups, &[0]).unwrap();
        for (group, fast) in groups.into_iter().zip(fast) {
            let feature = data.binning.layout.groups[group].features[0] as usize;
            let bins = &data.binning.features[feature];
            let of_worker = |worker: usize| {
                let mut by_code: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
                for row in bounds.rows(worker..worker + 1) {
                    let code = code(&data, &columns, feature, row as usize);
                    let (count, sum) = by_code.entry(code).or_default();
                    *count += 1.0;
                    *sum += f64::from(targets[row as usize]);
                }
                let mut histogram = StreamingHistogram::new(centroids);
                for (code, (count, sum)) in by_code {
                    if Some(code) != bins.missing_code {
                        histogram.insert(Centroid { centre: bins.centres[code as usize].into(), count, sum });
                    }
                }
                histogram.bins()
            };
            let mut level: Vec<Vec<Centroid>> = (0..bounds.workers()).map(of_worker).collect();
            while level.len() > 1 {
                let merged = |pair: &[Vec<Centroid>]| {
                    let mut histogram = StreamingHistogram::of_bins(centroids, &pair[0]);
                    if let Some(other) = pair.get(1) {
                        other.iter().for_each(|bin| histogram.insert(*bin));
                        return histogram.bins();
                    }
                    pair[0].clone()
                };
                level = level.chunks(2).map(merged).collect();
            }
            let fast = fast.finish().unwrap();
            prop_assert_eq!(&fast[0][0].bins, &level[0], "feature {}", feature);
            let is_missing = |row: &usize| Some(code(&data, &columns, feature, *row)) == bins.missing_code;
            let missing = (0..targets.len()).filter(is_missing).count() as i64;
            prop_assert_eq!(fast[0][0].missing.count, missing);
        }
    }

    /// Counting rows for the best candidates only chooses the same splits as counting them for all candidates, also if a
    /// leaf needs many rows; and sums that are kept for children change nothing.
    #[test]
    fn streaming_splits_of_one_worker_are_the_same_from_kept_sums_rows_and_messages(
        (columns, targets) in data(), partition_rows in 5usize..60, centroids in 2usize..20, least in 1i64..40,
        own in any::<bool>(),
    ) {
        let missing = if own { MissingSides::Own } else { MissingSides::Either };
        let data = binned(&columns, targets.len(), partition_rows, None);
        let rules = StreamingRules { centroids, grouped: false, workers: 1 };
        let bounds = Arc::new(WorkerBounds::divide(&data.rows, 1));
        let grow_in = |histogram_bytes: usize, sends: bool| {
            let choice = FeatureChoice::draw(
                crate::config::load(None, None, &[]).unwrap().first().tree().unwrap(), 1, &data.binning.layout, 1);
            let split_rules = SplitRules { min_data: least, missing, ..rules_of(targets.len()) };
            let context = GrowContext { data: &data, rules: split_rules, choice: &choice, histogram_bytes, penalties: None, monotone: None };
            let mut sets = sets(&data, &targets);
            let held = LocalRows { data: &data, sets: &mut sets, count_bits: split_rules.scale.count_bits };
            let mut rows = Sender { held, bounds: bounds.clone(), scale: split_rules.scale, centroids, sends };
            let mut finder = StreamingSplits::new(rules, bounds.clone(), KeptHistograms::default(), None);
            let limits = TreeLimits { depth: 4, order: Order::Levels };
            grow(&context, limits, &mut rows, &mut finder).unwrap()
        };
        let expected = grow_in(1 << 30, false);
        let leaves = expected.nodes.iter().filter(|node| node.split.is_none());
        prop_assert!(leaves.map(|leaf| leaf.sums.count).min().unwrap() >= least.min(targets.len() as i64));
        prop_assert_eq!(&expected, &grow_in(0, false));
        prop_assert_eq!(&expected, &grow_in(1 << 30, true));
    }
}

/// Fills a lane with the maximum number of joint codes, from two equal features, and from a large and a small feature.
#[test]
fn lanes_may_be_full() {
    for (max_bin, missing, most) in [(25, MissingPolicy::Learned, 676), (255, MissingPolicy::Zero, 510)] {
        let rows = 3000;
        let value = |row: usize, feature: usize| match feature {
            0 | 1 if row.is_multiple_of(97) => f32::NAN,
            0 => (row % max_bin) as f32,
            1 => (row / 7 % max_bin) as f32,
            2 | 4 | 5 => (row / feature % 2) as f32,
            _ => (row * row % 251 % max_bin) as f32,
        };
        let columns: Vec<Vec<f32>> =
            (0..6).map(|feature| (0..rows).map(|row| value(row, feature)).collect()).collect();
        let targets: Vec<i32> = (0..rows).map(|row| (row * 31 % 2001) as i32 - 1000).collect();
        let options = BinOptions { max_bin: Some(max_bin), missing, sparse: true, by_query: false };
        let data = BinnedData::of_values(&columns, &vec![0.0; rows], 700, &options);
        let codes = |feature: &u32| data.binning.features[*feature as usize].codes();
        let joint = data.binning.layout.groups.iter().flat_map(|group| {
            group.lanes.iter().map(|lane| group.features[lane.clone()].iter().map(codes).product::<usize>())
        });
        assert_eq!(joint.max(), Some(most));
        let bits = scale(rows).count_bits;
        let groups: Vec<usize> = (0..data.binning.layout.groups.len()).collect();
        let builder = HistogramBuilder { data: &data, count_bits: bits, groups: &groups };
        let all: Vec<usize> = (0..rows).collect();
        let root = WantedNode { node: 0, total: total(&targets, &all, bits) };
        let histogram = builder.build(&sets(&data, &targets), &[root]).unwrap().remove(0);
        assert_histogram(&data, &columns, &targets, &all, &histogram);
    }
}

fn grown(data: &BinnedData, targets: &[i32], exact: bool, depth: u32) -> GrownTree {
    if exact {
        grown_by(data, targets, &mut ExactSplits, depth)
    } else {
        grown_by(data, targets, &mut StaticBins::new(KeptHistograms::default()), depth)
    }
}

fn grown_by(data: &BinnedData, targets: &[i32], finder: &mut dyn SplitFinder<i64>, depth: u32) -> GrownTree {
    grown_with(data, &mut sets(data, targets), rules_of(targets.len()), finder, depth)
}

fn rules_of(rows: usize) -> SplitRules {
    SplitRules {
        min_data: LEAST,
        min_to_split: 2,
        min_weight: 0.0,
        min_gain: 0.0,
        missing: MissingSides::Either,
        split: Divisor::Weight { lambda: 0.5 },
        leaf: LeafRule::Quotient(Divisor::Weight { lambda: 0.5 }),
        scale: scale(rows),
    }
}

fn grown_with<C: Cell>(
    data: &BinnedData,
    sets: &mut RowSets<C>,
    rules: SplitRules,
    finder: &mut dyn SplitFinder<C>,
    depth: u32,
) -> GrownTree {
    grown_at_a_price(data, sets, rules, finder, depth, None)
}

/// Grows a tree whose features have penalties.
fn grown_at_a_price<C: Cell>(
    data: &BinnedData,
    sets: &mut RowSets<C>,
    rules: SplitRules,
    finder: &mut dyn SplitFinder<C>,
    depth: u32,
    penalties: Option<&[f64]>,
) -> GrownTree {
    let parameters: Parameters = crate::config::load(None, None, &[]).unwrap().first().clone();
    let choice = FeatureChoice::draw(parameters.tree().unwrap(), parameters.seed, &data.binning.layout, 1);
    // With this limit, some histograms are kept and others are not.
    let context =
        GrowContext { data, rules, choice: &choice, histogram_bytes: 200_000, penalties, monotone: None };
    let limits = TreeLimits { depth, order: Order::Levels };
    let mut rows = LocalRows { data, sets, count_bits: context.rules.scale.count_bits };
    grow(&context, limits, &mut rows, finder).unwrap()
}

/// Checks trees by exhaustive search.
struct Exhaustive<'a> {
    tree: &'a GrownTree,
    data: &'a BinnedData,
    columns: &'a [Vec<f32>],
    targets: &'a [i32],
    /// Hessian of each row.
    hessians: &'a [i32],
    /// The rules by which the tree was grown.
    rules: SplitRules,
    exact: bool,
    /// Penalty of each feature.
    penalties: Option<&'a [f64]>,
}

impl Exhaustive<'_> {
    fn penalty(&self, feature: usize) -> f64 {
        self.penalties.map_or(0.0, |penalties| penalties[feature])
    }

    /// Returns the score of some rows, by its definition.
    fn score(&self, rows: &[usize]) -> f64 {
        let sum: i64 = rows.iter().map(|row| i64::from(self.targets[*row])).sum();
        let divisor = match self.rules.split {
            Divisor::Rows => rows.len() as f64,
            Divisor::Weight { lambda } => self.hessian(rows) as f64 + lambda,
            Divisor::One => 1.0,
        };
        (sum * sum) as f64 / divisor
    }

    /// Returns whether rows are enough for one side of a split. A Newton step needs a hessian.
    fn may_be_a_side(&self, rows: &[usize]) -> bool {
        let hessian = self.hessian(rows);
        let needs_hessian = matches!(self.rules.split, Divisor::Weight { .. });
        rows.len() as i64 >= LEAST
            && hessian as f64 >= self.rules.min_weight
            && (hessian > 0 || !needs_hessian)
    }

    fn hessian(&self, rows: &[usize]) -> i64 {
        rows.iter().map(|row| i64::from(self.hessians[*row])).sum()
    }

    /// Checks that the split of a node is the first of the best splits, then checks the node's children.
    fn check(&self, node: usize, rows: Vec<usize>, depth: u32) {
        let Exhaustive { tree, data, columns, exact, .. } = self;
        let before = self.score(&rows);
        let mut best: Option<(f64, usize, u32, MissingBranch)> = None; // the gain minus the penalty comes first
        let may_split = rows.len() as i64 >= self.rules.min_to_split;
        for feature in (0..columns.len()).filter(|_| may_split) {
            let bins = &data.binning.features[feature];
            let missing = |row: &usize| Some(code(data, columns, feature, *row)) == bins.missing_code;
            for branch in
                [MissingBranch::Right, MissingBranch::Left, MissingBranch::Middle, MissingBranch::Unseen]
            {
                for cut in 0..bins.bins() as u32 {
                    let above = |row: &usize| !missing(row) && code(data, columns, feature, *row) > cut;
                    let (some, apart) = (rows.iter().any(missing), !rows.iter().any(above));
                    if !is_candidate(self.rules.missing, branch, some, apart) {
                        continue;
                    }
                    let children =
                        divided(&rows, branch, missing, |row| code(data, columns, feature, row) <= cut);
                    if !children.iter().all(|rows| self.may_be_a_side(rows)) {
                        continue;
                    }
                    // A cut of three must gain something for the rows with a value.
                    let values: Vec<usize> = rows.iter().copied().filter(|row| !missing(row)).collect();
                    let of_values = self.score(&children[0]) + self.score(&children[1]);
                    let alone = self.score(&values);
                    if branch == MissingBranch::Middle && of_values <= alone + alone * 1e-10 {
                        continue;
                    }
                    let gain = children.iter().map(|rows| self.score(rows)).sum::<f64>() - before;
                    let worth = gain > before * 1e-10;
                    let net = gain - self.penalty(feature);
                    if worth && best.is_none_or(|(most, ..)| net > most + most.abs() * 1e-12) {
                        best = Some((net, feature, cut, branch));
                    }
                }
            }
        }
        let grown = &tree.nodes[node];
        assert_eq!(grown.sums.count, rows.len() as i64);
        assert_eq!(grown.sums.weight, self.hessian(&rows));
        let found = grown.split.filter(|_| depth > 0);
        let Some((gain, ..)) = best.filter(|_| depth > 0) else {
            assert!(grown.split.is_none(), "node {node} has a split, {best:?}");
            return;
        };
        let (split, left_node) = found.unwrap_or_else(|| panic!("node {node} has no split, {best:?}"));
        let net = split.gain - self.penalty(split.feature as usize);
        assert!((net - gain).abs() <= 1e-9 * gain.abs().max(before), "{net} instead of {gain}");
        let feature = split.feature as usize;
        let some = rows.iter().any(|row| columns[feature][*row].is_nan());
        assert!(is_candidate(self.rules.missing, split.missing, some, split.threshold == f32::MAX));
        let is_missing = |row: &usize| columns[feature][*row].is_nan();
        let children =
            divided(&rows, split.missing, is_missing, |row| columns[feature][row] <= split.threshold);
        let (left, right) = (&children[0], &children[1]);
        if *exact {
            let present = |rows: &[usize]| -> Vec<f32> {
                rows.iter().map(|row| columns[feature][*row]).filter(|value| !value.is_nan()).collect()
            };
            let below = present(left).into_iter().fold(f32::MIN, f32::max);
            let above = present(right).into_iter().fold(f32::MAX, f32::min);
            if above < f32::MAX {
                assert_eq!(
                    split.threshold,
                    middle(below, above),
                    "the middle between two values of the node"
                );
            }
        }
        for (child, rows) in (left_node..).zip(children) {
            self.check(child, rows, depth - 1);
        }
    }
}

/// Returns whether missing values may take a branch, by the definition of the policies. `apart` says whether all other
/// values are on the left.
fn is_candidate(sides: MissingSides, branch: MissingBranch, some: bool, apart: bool) -> bool {
    match (sides, branch) {
        (MissingSides::Either, MissingBranch::Right) | (MissingSides::Right, MissingBranch::Right) => true,
        (MissingSides::Either, MissingBranch::Left) => some,
        (MissingSides::Left, MissingBranch::Left) => true,
        (MissingSides::Left | MissingSides::Own, MissingBranch::Right) => some && apart,
        (MissingSides::Own, MissingBranch::Middle) => some && !apart,
        (MissingSides::Own, MissingBranch::Unseen) => !some,
        _ => false,
    }
}

/// Divides rows among the children of a split: left, right and, if missing values have a child of their own, middle.
fn divided(
    rows: &[usize],
    branch: MissingBranch,
    is_missing: impl Fn(&usize) -> bool,
    is_left: impl Fn(usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); branch.children()];
    for row in rows {
        let child = match branch {
            MissingBranch::Left if is_missing(row) => 0,
            MissingBranch::Right if is_missing(row) => 1,
            MissingBranch::Middle if is_missing(row) => 2,
            MissingBranch::Unseen if is_missing(row) => panic!("a missing value that was not seen"),
            _ => usize::from(!is_left(*row)),
        };
        children[child].push(*row);
    }
    children
}

#[test]
fn leaves_are_newton_steps_or_means() {
    let sums = GradientSums { gradient: 12, weight: 3, count: 8 };
    let newton = rules_of(8);
    let root = GradientSums::default();
    let value = |leaf: LeafRule, sums| SplitRules { leaf, ..newton }.value(sums, root, false);
    assert_eq!(value(newton.leaf, sums), 12.0 / 3.5);
    assert_eq!(value(LeafRule::Quotient(Divisor::Rows), sums), 1.5);
    assert_eq!(newton.score(sums), 144.0 / 3.5);
    assert_eq!(SplitRules { split: Divisor::Rows, ..newton }.score(sums), 18.0);
    let without = GradientSums { weight: 0, ..sums };
    let no_lambda = LeafRule::Quotient(Divisor::Weight { lambda: 0.0 });
    assert_eq!(value(no_lambda, without), 0.0, "no step without hessians");
}

#[test]
fn weak_rankers_have_the_weight_of_their_advantage() {
    let rules = SplitRules { leaf: LeafRule::WeakRanker, ..rules_of(8) };
    let root = GradientSums { gradient: 0, weight: 8, count: 8 };
    let value = |gradient, root, is_right| rules.value(GradientSums { gradient, ..root }, root, is_right);
    assert_eq!(value(4, root, false), 0.0, "documents that the weak ranker does not select");
    assert!((value(4, root, true) - 0.5 * 3f64.ln()).abs() < 1e-15);
    assert!((value(-4, root, true) + value(4, root, true)).abs() < 1e-15);
    assert!((5.0..20.0).contains(&value(8, root, true)), "a weak ranker without errors has a finite weight");
    assert_eq!(value(0, GradientSums::default(), true), 0.0);
}
