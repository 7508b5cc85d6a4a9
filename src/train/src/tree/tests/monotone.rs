//! Tests of monotone constraints.

use super::branch::{finders, max_bin};
use super::*;
use crate::config::{Constraint, Direction};
use crate::tree::monotone::{SplitLimits, ValueBounds};
use crate::tree::{CodedTree, Cover};

const BITS: u32 = 20;
const SIDES: [MissingSides; 4] =
    [MissingSides::Either, MissingSides::Left, MissingSides::Right, MissingSides::Own];
const CONSTRAINTS: [Constraint; 3] = [None, Some(Direction::Increasing), Some(Direction::Decreasing)];

fn sums() -> impl Strategy<Value = GradientSums> {
    (-500i64..500, 0i64..30, 0i64..9).prop_map(|(gradient, weight, count)| match count {
        0 => GradientSums::default(),
        count => GradientSums { gradient, weight, count },
    })
}

fn limits() -> impl Strategy<Value = SplitLimits> {
    let constraint = prop::sample::select(CONSTRAINTS.to_vec());
    (constraint, -30f64..30.0, -30f64..30.0, 0usize..3).prop_map(|(constraint, one, other, kind)| {
        let (left, right) = (one.min(other), one.max(other));
        let order = Some(Direction::Increasing);
        let bounds = match kind {
            0 => ValueBounds::ALL,
            1 => ValueBounds::ALL.of_children(order, left, right)[0],
            // Values above one middle and below another.
            _ => ValueBounds::ALL.of_children(order, left, left)[1].of_children(order, right, right)[0],
        };
        SplitLimits { constraint, bounds }
    })
}

/// The definition of a node's best cut, from the sums of each bin.
struct Definition<'a> {
    rules: SplitRules,
    limits: SplitLimits,
    bins: &'a [GradientSums],
    missing: GradientSums,
}

impl Definition<'_> {
    fn divisor(&self, divisor: Divisor, sums: GradientSums) -> f64 {
        match divisor {
            Divisor::Weight { lambda } => sums.weight as f64 + lambda,
            Divisor::Rows => sums.count as f64,
            Divisor::One => 1.0,
        }
    }

    fn leaf_divisor(&self, sums: GradientSums) -> f64 {
        let LeafRule::Quotient(divisor) = self.rules.leaf else { panic!("no quotient") };
        self.divisor(divisor, sums)
    }

    fn free_value(&self, sums: GradientSums) -> f64 {
        match self.leaf_divisor(sums) {
            0.0 => 0.0,
            divisor => sums.gradient as f64 / divisor,
        }
    }

    fn value(&self, sums: GradientSums) -> f64 {
        self.limits.bounds.nearest(self.free_value(sums))
    }

    /// By how much the loss falls if the rows have the value of a leaf, in the unit of the divisor of splits.
    fn score(&self, sums: GradientSums) -> f64 {
        match self.divisor(self.rules.split, sums) {
            0.0 => 0.0,
            divisor => {
                let gradient = sums.gradient as f64;
                let step = self.value(sums) * self.leaf_divisor(sums) / divisor;
                gradient * gradient / divisor - divisor * (gradient / divisor - step).powi(2)
            }
        }
    }

    /// Returns the gain of a cut. `None` if it is not allowed.
    fn gain(&self, code: usize, branch: MissingBranch) -> Option<f64> {
        let sum = |bins: &[GradientSums]| bins.iter().fold(GradientSums::default(), |sum, bin| sum + *bin);
        let (some, apart) = (self.missing.count > 0, code + 1 == self.bins.len());
        if !is_candidate(self.rules.missing, branch, some, apart) {
            return None;
        }
        let (mut left, mut right) = (sum(&self.bins[..=code]), sum(&self.bins[code + 1..]));
        let mut children = Vec::new();
        match branch {
            MissingBranch::Left => left = left + self.missing,
            MissingBranch::Right => right = right + self.missing,
            MissingBranch::Middle => children.push(self.missing),
            MissingBranch::Unseen => {}
        }
        children.extend([left, right]);
        let is_enough = |sums: &GradientSums| {
            let needs_weight = matches!(self.rules.split, Divisor::Weight { .. });
            let weight = sums.weight as f64;
            sums.count >= LEAST && weight >= self.rules.min_weight && (!needs_weight || sums.weight > 0)
        };
        if !children.iter().all(is_enough) {
            return None;
        }
        let order = match (self.rules.missing, branch, apart && some) {
            // Missing values are smaller than those on the left.
            (MissingSides::Left, MissingBranch::Right, true) => -1.0,
            (MissingSides::Either | MissingSides::Own, _, true) if branch == MissingBranch::Right => 0.0,
            _ => 1.0,
        };
        let sign = [0.0, 1.0, -1.0][CONSTRAINTS.iter().position(|one| *one == self.limits.constraint)?];
        let is_moved = |sums| self.value(sums) != self.free_value(sums);
        let is_useless = (is_moved(left) || is_moved(right)) && self.value(left) == self.value(right);
        if is_useless || order * sign * (self.value(right) - self.value(left)) < 0.0 {
            return None;
        }
        let values = self.score(sum(self.bins));
        if branch == MissingBranch::Middle
            && self.score(left) + self.score(right) <= values + values.abs() * 1e-10
        {
            return None; // the cut must gain something for the rows with a value
        }
        let before = self.score(sum(self.bins) + self.missing);
        let gain = children.iter().map(|child| self.score(*child)).sum::<f64>() - before;
        (gain > before.abs() * 1e-10).then_some(gain)
    }

    fn best(&self) -> Option<f64> {
        let branches =
            [MissingBranch::Right, MissingBranch::Left, MissingBranch::Middle, MissingBranch::Unseen];
        let cuts =
            branches.into_iter().flat_map(|branch| (0..self.bins.len()).map(move |code| (code, branch)));
        cuts.filter_map(|(code, branch)| self.gain(code, branch)).reduce(f64::max)
    }
}

/// Returns the value of the leaf that a row reaches.
fn walk(tree: &planetree_model::model::Tree, values: &[f32]) -> f64 {
    let mut node = &tree.nodes[0];
    while let Some(split) = &node.split {
        use planetree_model::model::Branch;
        let value = values[split.feature as usize];
        let child = match (value.is_nan(), split.missing) {
            (true, Branch::Left) => split.left,
            (true, Branch::Right) => split.right,
            (true, Branch::Middle) => match split.middle {
                Some(middle) => middle,
                None => return node.value,
            },
            (false, _) if value <= split.threshold => split.left,
            (false, _) => split.right,
        };
        node = &tree.nodes[child as usize];
    }
    node.value
}

/// A row and a feature whose values are not ordered as the constraint demands.
fn violation(
    tree: &planetree_model::model::Tree,
    columns: &[Vec<f32>],
    constraints: &[Constraint],
    sides: MissingSides,
) -> Option<(usize, usize)> {
    let constrained = (0..columns.len()).filter_map(|feature| Some((feature, constraints[feature]?)));
    constrained
        .flat_map(|(feature, direction)| (0..columns[0].len()).map(move |row| (feature, direction, row)))
        .find_map(|(feature, direction, row)| {
            let mut all: Vec<f32> =
                columns[feature].iter().copied().filter(|value| !value.is_nan()).collect();
            all.sort_by(f32::total_cmp);
            match sides {
                MissingSides::Left => all.insert(0, f32::NAN),
                MissingSides::Right => all.push(f32::NAN),
                MissingSides::Either | MissingSides::Own => {}
            }
            let mut values: Vec<f32> = columns.iter().map(|column| column[row]).collect();
            let mut value_with = |value: f32| {
                values[feature] = value;
                walk(tree, &values)
            };
            let scores: Vec<f64> = all.iter().map(|value| value_with(*value)).collect();
            let ordered = scores.windows(2).all(|pair| direction.allows(pair[0], pair[1]));
            (!ordered).then_some((row, feature))
        })
}

/// Grows a tree with constraints from candidates of any kind.
fn grown_within(
    data: &BinnedData,
    targets: &[i32],
    kind: usize,
    rules: SplitRules,
    constraints: &[Constraint],
) -> planetree_model::model::Tree {
    let parameters: Parameters = crate::config::load(None, None, &[]).unwrap().first().clone();
    let choice = FeatureChoice::draw(parameters.tree().unwrap(), parameters.seed, &data.binning.layout, 1);
    let monotone = constraints.iter().any(Option::is_some).then_some(constraints);
    let context =
        GrowContext { data, rules, choice: &choice, histogram_bytes: 200_000, penalties: None, monotone };
    let mut sets = super::sets(data, targets);
    let mut rows = LocalRows { data, sets: &mut sets, count_bits: rules.scale.count_bits };
    let limits = TreeLimits { depth: 6, order: Order::Levels };
    let tree = grow(&context, limits, &mut rows, &mut *finders(data, kind)).unwrap();
    CodedTree::of_grown(&tree, &rules, 0.3, false, Cover::Rows).to_model()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_best_cut_within_limits_is_that_of_the_definition(
        bins in prop::collection::vec(sums(), 1..90), missing in sums(), limits in limits(), divisors in 0usize..4,
        sides in prop::sample::select(SIDES.to_vec()), min_weight in 0u32..20,
    ) {
        let newton = Divisor::Weight { lambda: 0.5 };
        let (split, leaf) = [
            (newton, newton), (Divisor::Rows, newton), (Divisor::Rows, Divisor::Rows), (newton, Divisor::Rows),
        ][divisors];
        let scale = Scale { count_bits: BITS, gradient: 1.0, weight: 1.0 };
        let rules = SplitRules {
            split, leaf: LeafRule::Quotient(leaf), missing: sides, min_weight: f64::from(min_weight), scale,
            ..rules_of(10)
        };
        let total = bins.iter().fold(missing, |sum, bin| sum + *bin);
        let cells: Vec<[i64; 2]> = bins.iter().map(|bin| Cell::of_sums(*bin, BITS)).collect();
        let cell = (missing.count > 0).then(|| <[i64; 2]>::of_sums(missing, BITS));
        let definition = Definition { rules, limits, bins: &bins, missing };
        let (found, best) = (rules.best_cut_within(limits, &cells, cell, total), definition.best());
        // Gains are differences of scores of this size.
        let size = total.gradient.abs().max(500) as f64 * 60.0;
        match (found, best) {
            (Some(cut), Some(best)) => {
                prop_assert!((cut.gain - best).abs() <= 1e-9 * size, "{cut:?} instead of {best}");
                let own = definition.gain(cut.code as usize, cut.missing);
                prop_assert!(own.is_some_and(|gain| (gain - cut.gain).abs() <= 1e-9 * size), "{cut:?} {own:?}");
            }
            (found, best) => {
                let gain = found.map(|cut| cut.gain).or(best).unwrap_or(0.0);
                prop_assert!(gain <= 1e-9 * size, "{found:?} instead of {best:?}");
            }
        }
        let free = SplitLimits { constraint: None, bounds: ValueBounds::ALL };
        let gain = |cut: Option<super::super::split::Cut>| cut.map_or(0.0, |cut| cut.gain);
        let (slow, fast) =
            (gain(rules.best_cut_within(free, &cells, cell, total)), gain(rules.best_cut(&cells, cell, total)));
        prop_assert!((slow - fast).abs() <= 1e-9 * size, "without limits: {slow} instead of {fast}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn trees_of_all_candidates_keep_constraints(
        (columns, targets) in data(), partition_rows in 5usize..60, kind in 0usize..5,
        sides in prop::sample::select(SIDES.to_vec()), constraints in prop::collection::vec(0usize..3, 90),
        mean in any::<bool>(),
    ) {
        let data = binned(&columns, targets.len(), partition_rows, max_bin(kind));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let constraints: Vec<Constraint> = constraints.iter().take(columns.len()).map(|one| CONSTRAINTS[*one]).collect();
        let leaf = if mean { LeafRule::Quotient(Divisor::Rows) } else { rules_of(targets.len()).leaf };
        let rules = SplitRules { missing: sides, leaf, ..rules_of(targets.len()) };
        let tree = grown_within(&data, &targets, kind, rules, &constraints);
        prop_assert_eq!(violation(&tree, &columns, &constraints, sides), None);
    }
}

/// Targets rise with the first feature and fall with the second one, apart from waves that only a constraint smooths.
#[test]
fn constraints_are_what_orders_values() {
    let rows = 2000;
    let columns: Vec<Vec<f32>> = (0..3usize)
        .map(|feature| (0..rows).map(|row| (row * (7 + 4 * feature) * (row / 50 + 1) % 97) as f32).collect())
        .collect();
    let target = |row: usize| {
        let [x, y, z] = [0, 1, 2].map(|feature| f64::from(columns[feature][row]));
        (6.0 * x - 4.0 * y + 200.0 * (x / 6.0).sin() + 150.0 * (y / 5.0).cos() + 3.0 * z) as i32
    };
    let targets: Vec<i32> = (0..rows).map(target).collect();
    let constraints = [Some(Direction::Increasing), Some(Direction::Decreasing), None];
    for kind in 0..5 {
        let data = binned(&columns, rows, 300, max_bin(kind));
        let rules = rules_of(rows);
        let free = grown_within(&data, &targets, kind, rules, &[None; 3]);
        assert!(violation(&free, &columns, &constraints, rules.missing).is_some(), "{kind}");
        let kept = grown_within(&data, &targets, kind, rules, &constraints);
        assert_eq!(violation(&kept, &columns, &constraints, rules.missing), None, "{kind}");
        let splits = |feature: u32| {
            let all = kept.nodes.iter().filter_map(|node| node.split.as_ref());
            all.filter(|split| split.feature == feature).count()
        };
        assert!(splits(0) > 5 && splits(1) > 5, "{kind}: constrained features are used");
    }
}

#[test]
fn middles_lie_between_the_values_of_children() {
    let [below, above, beside] = ValueBounds::ALL.of_children(Some(Direction::Decreasing), 3.0, 1.0);
    assert_eq!((below.nearest(0.0), below.nearest(5.0)), (2.0, 5.0));
    assert_eq!((above.nearest(0.0), above.nearest(5.0)), (0.0, 2.0));
    assert_eq!(beside, ValueBounds::ALL);
    assert_eq!(below.of_children(None, 3.0, 4.0), [below; 3]);
}
