//! Tests of pointwise trees against naive references.

use super::*;
use crate::bins::{BinOptions, MissingBranch, MissingSides, mixed_columns};
use crate::config::{Constraint, Direction, ForestCriterion, MissingPolicy, load};
use crate::driver::ForestNode;
use crate::forest::criterion::ClassCounts;
use proptest::prelude::*;

fn parameters(set: &[&str]) -> ForestSettings {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    let plan = load(Some("rf-point"), None, &set).unwrap();
    let parameters = plan.first();
    parameters.with(parameters.forest().unwrap().clone())
}

fn plain_options(parameters: &ForestSettings) -> BinOptions {
    let max_bin = parameters.learner.candidates.max_bin();
    BinOptions { max_bin, missing: parameters.missing, sparse: false, by_query: false }
}

fn options(parameters: &ForestSettings) -> BinOptions {
    BinOptions { missing: MissingPolicy::Learned, ..plain_options(parameters) }
}

fn criterion(parameters: &ForestSettings) -> PointCriterion {
    match parameters.learner.criterion {
        ForestCriterion::Pointwise(criterion) => criterion,
        _ => panic!("not a pointwise forest"),
    }
}

/// Whether a cut is allowed, by the branch of missing values and the rows of its children.
type IsAllowed<'a> = dyn Fn(MissingBranch, bool, &[Vec<u32>]) -> bool + 'a;

/// Generates columns with many zeros, few or many distinct values, and missing values, and a label per row.
fn examples() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<f32>)> {
    (10usize..120, 1usize..40).prop_flat_map(|(rows, features)| {
        (mixed_columns(rows, features), prop::collection::vec((0u8..5).prop_map(f32::from), rows))
    })
}

/// A naive grower that scans all rows for every candidate.
struct Naive<'a, K: Criterion> {
    grower: &'a PointGrower<'a, K>,
    columns: &'a [Vec<f32>],
    features: TreeFeatures,
}

impl<K: Criterion> Naive<'_, K> {
    fn code(&self, feature: u32, row: u32) -> u32 {
        self.grower.data.binning.features[feature as usize]
            .code_of(self.columns[feature as usize][row as usize])
    }

    fn sums(&self, rows: &[u32], is_in: impl Fn(u32) -> bool) -> K::Sums {
        let mut sums = K::Sums::default();
        rows.iter()
            .filter(|row| is_in(**row))
            .for_each(|row| K::add(&mut sums, self.grower.targets[*row as usize]));
        sums
    }

    /// Checks a node of a tree, and its subtree.
    fn check(
        &mut self,
        tree: &ForestTree,
        place: u32,
        rows: &[u32],
        path: Path,
        (lowest_value, highest_value): (f64, f64),
    ) -> std::result::Result<(), TestCaseError> {
        let context = &self.grower.context;
        let node: &ForestNode = &tree.nodes[place as usize];
        let total = self.sums(rows, |_| true);
        let bounded = |value: f64| {
            if value < lowest_value {
                lowest_value
            } else if value > highest_value {
                highest_value
            } else {
                value
            }
        };
        let grower = self.grower;
        let value = |rows: &[u32]| {
            let mut sums = K::Sums::default();
            rows.iter().for_each(|row| K::add(&mut sums, grower.targets[*row as usize]));
            bounded(grower.context.criterion.value(&sums))
        };
        prop_assert_eq!(node.value, value(rows));
        prop_assert_eq!(node.cover, context.criterion.cover(&total));
        let least = context.rules.min_rows as usize;
        let target = |row: &u32| self.grower.targets[*row as usize];
        if rows.len() < (2 * least).max(context.rules.min_to_split as usize)
            || node.depth >= context.max_depth
            || rows.iter().all(|row| K::agree(target(row), target(&rows[0])))
        {
            prop_assert!(node.split.is_none());
            return Ok(());
        }
        let before = context.criterion.score(&total);
        let lowest = before + context.criterion.gain_error(&total).max(before.abs() * 1e-12);
        self.features.start(path);
        // Score, feature, branch of missing values, last code to the left, and worth.
        let mut best: Option<(f64, u32, MissingBranch, u32, f64)> = None;
        let mut varies = false;
        while self.features.drawn() < self.features.per_node || (self.features.redraws && !varies) {
            let Some(drawn) = self.features.next() else { break };
            varies |=
                rows.iter().any(|row| self.code(drawn.feature, *row) != self.code(drawn.feature, rows[0]));
            let is_allowed = |branch, apart, children: &[Vec<u32>]| {
                let sign = self.sign(drawn.feature, branch, apart);
                sign * (value(&children[1]) - value(&children[0])) >= 0.0
            };
            let best_of_feature = self.best_of_feature(rows, drawn.feature, lowest, &is_allowed);
            let Some((score, branch, last)) = best_of_feature else {
                continue;
            };
            let worth = score - drawn.penalty;
            if best.is_none_or(|best| worth > best.4 || (worth == best.4 && drawn.feature < best.1)) {
                best = Some((score, drawn.feature, branch, last, worth));
            }
        }
        let Some((score, feature, branch, last, _)) = best else {
            prop_assert!(node.split.is_none());
            return Ok(());
        };
        let split = node.split.expect("there is a split that gains");
        prop_assert_eq!((split.feature, split.missing), (feature, branch));
        prop_assert_eq!(split.gain, (score - before) * context.criterion.unit());
        // Two different codes describe the same cut if no row of the node has a code between them.
        let children = self.divided(rows, feature, branch, last);
        prop_assert_eq!(&self.divided(rows, feature, branch, split.code), &children);
        for (child, rows) in children.iter().enumerate() {
            for row in rows {
                let value = self.columns[feature as usize][*row as usize];
                let by_value = match branch {
                    MissingBranch::Left if value.is_nan() => 0,
                    MissingBranch::Right if value.is_nan() => 1,
                    MissingBranch::Middle if value.is_nan() => 2,
                    _ => usize::from(value > split.threshold),
                };
                prop_assert_eq!(by_value, child, "thresholds and codes agree");
            }
        }
        let middle = (value(&children[0]) + value(&children[1])) / 2.0;
        let (below, above) = ((lowest_value, middle), (middle, highest_value));
        let all = (lowest_value, highest_value);
        let bounds = match self.sign(feature, branch, split.threshold == f32::MAX) {
            1.0 => [below, above, all],
            -1.0 => [above, below, all],
            _ => [all; 3],
        };
        let paths = [path.left(), path.right(), path.middle()];
        for (((child, rows), path), bounds) in (split.left..).zip(children).zip(paths).zip(bounds) {
            self.check(tree, child, &rows, path, bounds)?;
        }
        Ok(())
    }

    /// Returns 1 if the value of the right child must not be below that of the left one, and -1 if it must not be above.
    fn sign(&self, feature: u32, branch: MissingBranch, apart: bool) -> f64 {
        let rules = &self.grower.context.rules;
        let sign = match rules.monotone.get(feature as usize).copied().flatten() {
            None => 0.0,
            Some(Direction::Increasing) => 1.0,
            Some(Direction::Decreasing) => -1.0,
        };
        match (rules.missing, branch) {
            (MissingSides::Left, MissingBranch::Right) => -sign, // only missing values are on the right
            (MissingSides::Either | MissingSides::Own, MissingBranch::Right) if apart => 0.0,
            _ => sign,
        }
    }

    /// Divides rows among the children of a split: left, right and, if missing values have a child of their own, middle.
    fn divided(&self, rows: &[u32], feature: u32, branch: MissingBranch, last: u32) -> Vec<Vec<u32>> {
        let missing_code = self.grower.data.binning.features[feature as usize].missing_code;
        let mut children = vec![Vec::new(); branch.children()];
        for row in rows {
            let code = self.code(feature, *row);
            let child = match branch {
                MissingBranch::Left if Some(code) == missing_code => 0,
                MissingBranch::Right if Some(code) == missing_code => 1,
                MissingBranch::Middle if Some(code) == missing_code => 2,
                _ => usize::from(code > last),
            };
            children[child].push(*row);
        }
        children
    }

    /// Returns the best cut of a feature: its score, the branch of missing values, and the last code to the left. Of the
    /// cuts with three children, those that gain nothing for the rows with a value are left out.
    fn best_of_feature(
        &self,
        rows: &[u32],
        feature: u32,
        lowest: f64,
        is_allowed: &IsAllowed<'_>,
    ) -> Option<(f64, MissingBranch, u32)> {
        let context = &self.grower.context;
        let bins = &context.binning.features[feature as usize];
        let score = |rows: &Vec<u32>| context.criterion.score(&self.sums(rows, |_| true));
        let is_missing = |row: &u32| Some(self.code(feature, *row)) == bins.missing_code;
        let (missing, values): (Vec<u32>, Vec<u32>) = rows.iter().partition(|row| is_missing(row));
        let alone = context.criterion.score(&self.sums(&values, |_| true));
        let error = context.criterion.gain_error(&self.sums(&values, |_| true)).max(alone.abs() * 1e-12);
        // Score, branch of missing values, last code to the left, and score of the left and right child.
        let mut best: Option<(f64, MissingBranch, u32, f64)> = None;
        for branch in
            [MissingBranch::Right, MissingBranch::Left, MissingBranch::Middle, MissingBranch::Unseen]
        {
            for last in 0..bins.bins() as u32 {
                let occurs = values.iter().any(|row| self.code(feature, *row) == last);
                let apart = !values.iter().any(|row| self.code(feature, *row) > last);
                let some = !missing.is_empty();
                let allowed = match (context.rules.missing, branch) {
                    (MissingSides::Either | MissingSides::Right, MissingBranch::Right) => true,
                    (MissingSides::Either, MissingBranch::Left) => some,
                    (MissingSides::Left, MissingBranch::Left) => true,
                    (MissingSides::Left | MissingSides::Own, MissingBranch::Right) => some && apart,
                    (MissingSides::Own, MissingBranch::Middle) => some && !apart,
                    (MissingSides::Own, MissingBranch::Unseen) => !some,
                    _ => false,
                };
                if !occurs || !allowed || (apart && !some) {
                    continue;
                }
                let children = self.divided(rows, feature, branch, last);
                let too_few = children.iter().any(|rows| rows.len() < context.rules.min_rows as usize);
                if too_few || !is_allowed(branch, apart, &children) {
                    continue;
                }
                let both = score(&children[0]) + score(&children[1]);
                let beside = children.get(2).map_or(0.0, score);
                if branch == MissingBranch::Middle && both <= (lowest - beside).max(alone + error) {
                    continue;
                }
                // Three children are better than two that only separate missing values.
                let is_better = |best: (f64, MissingBranch, u32, f64)| match (best.1, branch) {
                    (MissingBranch::Right, MissingBranch::Middle) => true,
                    _ => both > best.3,
                };
                if both + beside > lowest && best.is_none_or(is_better) {
                    best = Some((both + beside, branch, last, both));
                }
            }
        }
        best.map(|(score, branch, last, _)| (score, branch, last))
    }
}

const ALL_VALUES: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Grows a tree in blocks of few or many rows, and checks all its nodes.
fn check_tree<K: Criterion>(
    parameters: &ForestSettings,
    data: &BinnedData,
    columns: &[Vec<f32>],
    criterion: K,
    targets: Vec<K::Row>,
    penalties: Option<Arc<[f64]>>,
) -> std::result::Result<(), TestCaseError> {
    let rows: Vec<u32> = (0..targets.len() as u32).filter(|row| row % 5 != 3).collect();
    let inputs = GrowerInputs { parameters, data, memory: 1 << 20 };
    let mut grower = PointGrower::new(&inputs, criterion, targets).unwrap();
    if let Some(penalties) = penalties {
        grower.set_penalties(penalties).unwrap();
    }
    let features =
        || TreeFeatures::draw(parameters, &data.binning.layout, 7).with_penalties(grower.penalties.clone());
    let features = [features(), features()];
    let [of_whole, of_mixed] = features;
    let whole = grower.grow(7, rows.clone()).unwrap();
    Naive { grower: &grower, columns, features: of_whole }.check(&whole, 0, &rows, Path::ROOT, ALL_VALUES)?;
    grower.block_rows = 9;
    let mixed = grower.grow(7, rows.clone()).unwrap();
    Naive { grower: &grower, columns, features: of_mixed }.check(&mixed, 0, &rows, Path::ROOT, ALL_VALUES)?;
    // Memory-mapped data is handled by other code, which must grow the same tree.
    grower.codes.clear();
    let mapped = grower.grow_batch(7..9, &|_| rows.clone()).unwrap();
    prop_assert_eq!(&mapped[0], &mixed);
    grower.memory = 1;
    prop_assert_eq!(&grower.grow_batch(7..9, &|_| rows.clone()).unwrap(), &mapped);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_split_is_the_best_of_the_sampled_features(
        (columns, labels) in examples(),
        candidates in prop_oneof![Just("static"), Just("exact")],
        per_node in 1usize..6,
        least in 1u64..4,
        partition_rows in 1usize..200,
        weight in 1u32..4,
        redraws in any::<bool>(),
        to_split in 2u64..12,
        costs in prop::collection::vec(0u8..4, 40),
        missing in prop::sample::select(vec!["learned", "low", "high", "branch", "branch"]),
        constraints in prop::collection::vec(prop::sample::select(vec!["0", "1", "-1"]), 40), is_free in any::<bool>(),
    ) {
        let constraints = if is_free { "none".to_owned() } else { constraints[..columns.len()].join(",") };
        let set = [format!("candidates={candidates}"), format!("features_per_node={per_node}"),
            format!("min_data_in_leaf={least}"), format!("missing={missing}"),
            format!("monotone_constraints={constraints}"),
            format!("redraw_features={redraws}"), format!("min_data_to_split={to_split}")];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let parameters = parameters(&set);
        let data = BinnedData::of_values(&columns, &labels, partition_rows, &options(&parameters));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let classes: Vec<u8> = labels.iter().map(|label| *label as u8).collect();
        let table = |class: usize| class as f64;
        let entropy = Classes::<8> { purity: Purity::entropy(), labels: std::array::from_fn(table) };
        let penalties = |unit: f64| -> Option<Arc<[f64]>> {
            Some(columns.iter().zip(costs.iter().cycle()).map(|(_, cost)| f64::from(*cost) * unit).collect())
        };
        check_tree(&parameters, &data, &columns, entropy.clone(), classes.clone(), None)?;
        check_tree(&parameters, &data, &columns, entropy, classes.clone(), penalties(0.3))?;
        let gini = Classes::<32> { purity: Purity::Gini, labels: std::array::from_fn(table) };
        check_tree(&parameters, &data, &columns, gini, classes.clone(), None)?;
        let variance = Variance { label_units: 8.0, weight_units: 1.0 };
        let targets = labels.iter().map(|label| ((*label * 8.0) as i32, 1)).collect();
        check_tree(&parameters, &data, &columns, variance, targets, penalties(2.0))?;
        let variance = Variance { label_units: 8.0, weight_units: 1.0 };
        let targets = labels.iter().map(|label| ((*label * 8.0) as i32, 1)).collect();
        check_tree(&parameters, &data, &columns, variance, targets, None)?;
        let weighted = WeightedClasses { purity: Purity::Gini, labels: std::array::from_fn(table), weight_units: 1.0 };
        let targets = classes.iter().enumerate().map(|(row, class)| (*class, 1 + row as u32 % weight)).collect();
        check_tree(&parameters, &data, &columns, weighted, targets, penalties(0.7))?;
    }

    #[test]
    fn equal_weights_match_no_weights(counts in prop::collection::vec(0u32..50, 8), weight in 1u32..9) {
        prop_assume!(counts.iter().sum::<u32>() > 0);
        let labels: [f64; 8] = std::array::from_fn(|class| class as f64);
        for purity in [Purity::entropy(), Purity::Gini] {
            let plain = Classes::<8> { purity: purity.clone(), labels };
            let mut table = [0.0; MOST_CLASSES];
            table[..8].copy_from_slice(&labels);
            let weighted = WeightedClasses { purity, labels: table, weight_units: f64::from(weight) };
            let mut sums = <WeightedClasses as Criterion>::Sums::default();
            for (class, count) in counts.iter().enumerate() {
                (0..*count).for_each(|_| WeightedClasses::add(&mut sums, (class as u8, weight)));
            }
            let counts = ClassCounts::<8>(counts.clone().try_into().unwrap());
            let (one, other) = (plain.score(&counts) * plain.unit(), weighted.score(&sums) * weighted.unit());
            prop_assert!((one - other).abs() <= 1e-4 * (1.0 + one.abs()), "{one} {other}");
            prop_assert!((plain.value(&counts) - weighted.value(&sums)).abs() < 1e-12);
            prop_assert_eq!(plain.cover(&counts), weighted.cover(&sums));
        }
    }
}

/// Checks the random cuts of a node and its subtree by their definition: a feature, and a value that is uniform
/// between the feature's minimum and maximum in the node. `absent` is where splits send missing values if there are none.
fn check_random_cuts(
    tree: &ForestTree,
    place: u32,
    (columns, labels, absent): (&[Vec<f32>], &[f32], MissingBranch),
    (features, path): (&mut TreeFeatures, Path),
    rows: &[usize],
) -> std::result::Result<(), TestCaseError> {
    let node = &tree.nodes[place as usize];
    prop_assert_eq!(node.cover, rows.len() as f64);
    features.start(path);
    let mut drawn = features.next();
    let differs = |feature: u32| {
        let column = &columns[feature as usize];
        let first = column[rows[0]];
        rows.iter().any(|row| column[*row] != first && !(column[*row].is_nan() && first.is_nan()))
    };
    while features.redraws && drawn.is_some_and(|drawn| !differs(drawn.feature)) {
        drawn = features.next();
    }
    let is_pure = rows.iter().all(|row| labels[*row] == labels[rows[0]]);
    let Some(drawn) = drawn.filter(|drawn| !is_pure && differs(drawn.feature)) else {
        prop_assert!(node.split.is_none());
        return Ok(());
    };
    let column = &columns[drawn.feature as usize];
    let values = || rows.iter().map(|row| column[*row]).filter(|value| !value.is_nan());
    let some_missing = rows.iter().any(|row| column[*row].is_nan());
    let (least, most) = (values().fold(f32::MAX, f32::min), values().fold(f32::MIN, f32::max));
    let at = (f64::from(least) + drawn.cut * (f64::from(most) - f64::from(least))) as f32;
    let split = node.split.expect("a feature that varies is split");
    // If all values are equal, the cut separates missing values from them.
    let (at, branch) = match (least < most, some_missing) {
        (true, true) => (at, MissingBranch::Middle),
        (true, false) => (at, absent),
        (false, _) => (f32::MAX, MissingBranch::Right),
    };
    prop_assert_eq!((split.feature, split.threshold, split.missing), (drawn.feature, at, branch));
    let mut children = vec![Vec::new(); branch.children()];
    for row in rows {
        let child = match column[*row] {
            value if value.is_nan() => branch.children() - 1,
            value => usize::from(value > at),
        };
        children[child].push(*row);
    }
    for ((child, rows), path) in (split.left..).zip(children).zip([path.left(), path.right(), path.middle()])
    {
        check_random_cuts(tree, child, (columns, labels, absent), (features, path), &rows)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_cuts_are_uniform_between_the_extremes_of_the_node(
        values in prop::collection::vec(prop::collection::vec(-1000i32..1000, 80), 1..6),
        labels in prop::collection::vec(0u8..4, 80), divisor in 1i32..300, redraws in any::<bool>(),
        partition_rows in 5usize..100, gaps in 2i32..20, own in any::<bool>(),
    ) {
        let (missing, absent) = match own {
            true => ("missing=branch", MissingBranch::Unseen),
            false => ("missing=zero", MissingBranch::Right),
        };
        let value = |value: i32| match own && value % gaps == 1 {
            true => f32::NAN,
            false => (value / divisor) as f32 * 0.37,
        };
        let column = |values: &Vec<i32>| values.iter().map(|number| value(*number)).collect();
        let columns: Vec<Vec<f32>> = values.iter().map(column).collect();
        let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
        let redraw = format!("redraw_features={redraws}");
        let parameters = parameters(
            &["candidates=random", "features_per_node=1", "max_bin=0", missing, &redraw]);
        let data = BinnedData::of_values(&columns, &labels, partition_rows, &plain_options(&parameters));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let inputs = GrowerInputs { parameters: &parameters, data: &data, memory: 1 << 20 };
        let classes: Vec<u8> = labels.iter().map(|label| *label as u8).collect();
        let entropy = Classes::<8> { purity: Purity::entropy(), labels: std::array::from_fn(|class| class as f64) };
        let mut grower = PointGrower::new(&inputs, entropy, classes).unwrap();
        let rows: Vec<usize> = (0..80).collect();
        for block_rows in [100, 7] {
            grower.block_rows = block_rows;
            let tree = grower.grow(5, (0..80).collect()).unwrap();
            let mut features = TreeFeatures::draw(&parameters, &data.binning.layout, 5);
            check_random_cuts(&tree, 0, (&columns, &labels, absent), (&mut features, Path::ROOT), &rows)?;
        }
    }
}

#[test]
fn leaf_scores_are_means_of_powers() {
    let labels: Vec<f32> = (0..60).map(|row| (row % 4) as f32).collect();
    let constant: Vec<f32> = (0..60).map(|row| (row / 59) as f32).collect();
    for (name, expected) in [("expected", 1.5), ("square", 3.5), ("exp2", 3.75)] {
        let parameters = parameters(&[&format!("leaf_score={name}"), "max_depth=1"]);
        let data =
            BinnedData::of_values(std::slice::from_ref(&constant), &labels, 60, &plain_options(&parameters));
        let grower = grower(&parameters, criterion(&parameters), &data, 1 << 20).unwrap();
        assert_eq!(grower.grow(1, (0..60).collect()).unwrap().nodes[0].value, expected, "{name}");
    }
}

#[test]
fn scores_match_the_textbook() {
    let labels = [0.0, 1.0, 2.0, 4.0];
    let counts = ClassCounts([3, 0, 5, 8]);
    let shares = [3.0 / 16.0, 5.0 / 16.0, 8.0 / 16.0f64];
    let entropy: f64 = -shares.iter().map(|p| p * p.log2()).sum::<f64>();
    let criterion = Classes { purity: Purity::entropy(), labels };
    assert!((criterion.score(&counts) * criterion.unit() + 16.0 * entropy).abs() < 1e-5);
    let gini = 1.0 - shares.iter().map(|p| p * p).sum::<f64>();
    let criterion = Classes { purity: Purity::Gini, labels };
    assert!((criterion.score(&counts) - 16.0 * (1.0 - gini)).abs() < 1e-12);
    assert_eq!(criterion.value(&counts), (2.0 * 5.0 + 4.0 * 8.0) / 16.0, "the expected relevance");
    // The same holds for counts beyond the table.
    let criterion = Classes { purity: Purity::entropy(), labels };
    let large = ClassCounts([3 << 20, 0, 5 << 20, 8 << 20]);
    let bits = criterion.score(&large) * criterion.unit();
    assert!((bits / f64::from(1 << 20) + 16.0 * entropy).abs() < 1e-6, "{bits}");
}

#[test]
fn a_random_cut_lies_between_the_extremes_and_is_uniform() {
    let values: Vec<f32> = (0..1000).map(|row| row as f32 / 10.0).collect();
    let labels: Vec<f32> = (0..1000).map(|row| (row % 2) as f32).collect();
    for bins in ["max_bin=0", "max_bin=200"] {
        let set = ["candidates=random", "features_per_node=1", bins, "max_depth=1"];
        let parameters = parameters(&set);
        let data =
            BinnedData::of_values(std::slice::from_ref(&values), &labels, 300, &plain_options(&parameters));
        let grower = grower(&parameters, criterion(&parameters), &data, 1 << 20).unwrap();
        let rows: Vec<u32> = (100..900).collect(); // values from 10 to 89.9
        let cuts: Vec<f64> = (1..=400)
            .map(|tree| f64::from(grower.grow(tree, rows.clone()).unwrap().nodes[0].split.unwrap().threshold))
            .collect();
        assert!(cuts.iter().all(|cut| (10.0..89.9).contains(cut)), "{bins}");
        let mean = cuts.iter().sum::<f64>() / cuts.len() as f64;
        let variance = cuts.iter().map(|cut| (cut - mean) * (cut - mean)).sum::<f64>() / cuts.len() as f64;
        assert!((mean - 50.0).abs() < 4.0, "{bins}: {mean}");
        assert!((variance - 79.9 * 79.9 / 12.0).abs() < 90.0, "{bins}: {variance}");
    }
}

#[test]
fn a_forest_of_random_cuts_is_grown_until_labels_agree() {
    let columns: Vec<Vec<f32>> = (0..4u32)
        .map(|f| (0..300u32).map(|row| (row.wrapping_mul(2_654_435_761 + 97 * f) >> 16) as f32).collect())
        .collect();
    let labels: Vec<f32> = (0..300).map(|row| (row * 7 % 5) as f32).collect();
    let parameters =
        parameters(&["candidates=random", "features_per_node=1", "max_bin=0", "redraw_features=true"]);
    let data = BinnedData::of_values(&columns, &labels, 100, &plain_options(&parameters));
    let grower = grower(&parameters, criterion(&parameters), &data, 1 << 20).unwrap();
    let tree = grower.grow(1, (0..300).collect()).unwrap();
    for node in tree.nodes.iter().filter(|node| node.split.is_none()) {
        assert_eq!(node.value, node.value.round(), "a leaf has one label");
    }
}

#[test]
fn too_many_classes_are_rejected() {
    let labels: Vec<f32> = (0..40).map(|row| row as f32).collect();
    let parameters = parameters(&[]);
    let data = BinnedData::of_values(std::slice::from_ref(&labels), &labels, 40, &plain_options(&parameters));
    let error = grower(&parameters, criterion(&parameters), &data, 1 << 20).err().unwrap();
    assert_eq!(error.to_string(), "there are 40 different labels; entropy and gini support at most 32");
    assert!(error.remedy().unwrap().contains("criterion=variance"));
}

/// Lists the splits and leaves of a tree in depth-first order, without node numbers.
fn walk(tree: &ForestTree, place: u32, to: &mut Vec<String>) {
    let node = &tree.nodes[place as usize];
    to.push(format!(
        "{} {} {:?}",
        node.depth,
        node.value,
        node.split.map(|split| (split.feature, split.code, split.gain))
    ));
    if let Some(split) = &node.split {
        (0..split.missing.children() as u32).for_each(|child| walk(tree, split.left + child, to));
    }
}

#[test]
fn large_nodes_and_blocks_grow_the_same_tree() {
    let all = [Some(Direction::Increasing), None, Some(Direction::Decreasing)];
    let constraints: Vec<Constraint> = all.into_iter().cycle().take(70).collect();
    for missing in ["zero", "branch"] {
        large_nodes_and_blocks_agree(missing, Vec::new());
        large_nodes_and_blocks_agree(missing, constraints.clone());
    }
}

fn large_nodes_and_blocks_agree(missing: &str, constraints: Vec<Constraint>) {
    // There are so many rows that the rows of a node are far apart, so their codes are copied row by row.
    let value =
        |row: u32, feature: u32| (row.wrapping_mul(2_654_435_761).wrapping_add(feature * 97_777) >> 20) % 300;
    let columns: Vec<Vec<f32>> =
        (0..70).map(|feature| (0..20_000).map(|row| value(row, feature) as f32).collect()).collect();
    let columns: Vec<Vec<f32>> = match missing {
        "branch" => {
            let gap = |value: f32| if value as u32 % 7 == 3 { f32::NAN } else { value };
            columns.into_iter().map(|column| column.into_iter().map(gap).collect()).collect()
        }
        _ => columns,
    };
    let labels: Vec<f32> = (0..20_000).map(|row| (value(row, 3) / 70 + row % 2) as f32).collect();
    let missing = format!("missing={missing}");
    let parameters = parameters(&["features_per_node=10", "min_data_in_leaf=3", &missing]);
    let data = BinnedData::of_values(&columns, &labels, 15_000, &plain_options(&parameters));
    let classes = labels.iter().map(|label| *label as u8).collect();
    let criterion =
        Classes::<8> { purity: Purity::entropy(), labels: std::array::from_fn(|class| class as f64) };
    let inputs = GrowerInputs { parameters: &parameters, data: &data, memory: 1 << 20 };
    let mut grower = PointGrower::new(&inputs, criterion, classes).unwrap();
    let rows: Vec<u32> = (0..20_000).filter(|row| row % 3 > 0).collect();
    grower.context.rules.monotone = constraints;
    let walks = [20_000, 2_000, 50].map(|block_rows| {
        grower.block_rows = block_rows;
        let mut nodes = Vec::new();
        walk(&grower.grow(1, rows.clone()).unwrap(), 0, &mut nodes);
        nodes
    });
    assert!(walks[0].len() > 1000, "{} nodes", walks[0].len());
    assert!(walks[0] == walks[1] && walks[0] == walks[2]);
}
