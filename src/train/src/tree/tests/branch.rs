//! Tests of splits with three children.

use super::*;
use crate::tree::{CodedTree, Cover};

fn own(rows: usize) -> SplitRules {
    SplitRules { missing: MissingSides::Own, ..rules_of(rows) }
}

/// The finders of all kinds of candidates, with the bins that they need.
pub(super) fn finders(data: &BinnedData, kind: usize) -> Box<dyn SplitFinder<i64>> {
    let streaming = |grouped, workers| {
        let rules = StreamingRules { centroids: 12, grouped, workers };
        let bounds = Arc::new(WorkerBounds::divide(&data.rows, workers));
        StreamingSplits::new(rules, bounds, KeptHistograms::default(), None)
    };
    match kind {
        0 => Box::new(StaticBins::new(KeptHistograms::default())),
        1 => Box::new(ExactSplits),
        2 => Box::new(streaming(true, 1)),
        3 => Box::new(streaming(false, 1)),
        _ => Box::new(streaming(false, 3)),
    }
}

pub(super) fn max_bin(kind: usize) -> Option<usize> {
    [Some(30), None, Some(255), None, None][kind]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn without_missing_values_trees_are_those_with_two_children(
        (mut columns, targets) in data(), partition_rows in 5usize..60, kind in 0usize..5,
    ) {
        for value in columns.iter_mut().flatten().filter(|value| value.is_nan()) {
            *value = 0.25;
        }
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, max_bin(kind));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let grow_by = |rules| {
            grown_with(&data, &mut sets(&data, &targets), rules, &mut *finders(&data, kind), 4)
        };
        let (mut three, two) = (grow_by(own(rows)), grow_by(rules_of(rows)));
        for node in &mut three.nodes {
            if let Some((split, _)) = &mut node.split {
                prop_assert_eq!(split.missing, MissingBranch::Unseen);
                split.missing = MissingBranch::Right;
            }
        }
        prop_assert_eq!(three, two);
    }

    /// Children of all kinds of candidates have the rows that the splits send there, and enough of them; and rows that
    /// the tree was not grown from are routed like by a naive walk.
    #[test]
    fn rows_end_where_a_naive_walk_ends(
        (columns, targets) in data(), partition_rows in 5usize..60, kind in 0usize..5, in_units in any::<bool>(),
        others in mixed_columns(60, 90),
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, max_bin(kind));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let rules = own(rows);
        let tree = grown_with(&data, &mut sets(&data, &targets), rules, &mut *finders(&data, kind), 5);
        let coded = CodedTree::of_grown(&tree, &rules, 0.5, in_units, Cover::Rows);
        let model = coded.to_model();
        let back = CodedTree::of_model(&model, &data.binning);
        prop_assert_eq!(back.as_ref(), Some(&coded));
        let walk = |values: &[f32]| {
            let mut node = 0;
            while let Some((split, left)) = tree.nodes[node].split {
                let value = values[split.feature as usize];
                node = match split.missing {
                    MissingBranch::Left if value.is_nan() => left,
                    MissingBranch::Right if value.is_nan() => left + 1,
                    MissingBranch::Middle if value.is_nan() => left + 2,
                    MissingBranch::Unseen if value.is_nan() => return node,
                    _ => left + usize::from(value > split.threshold),
                };
            }
            node
        };
        let mut counts = vec![0i64; tree.nodes.len()];
        for row in 0..rows {
            let values: Vec<f32> = columns.iter().map(|column| column[row]).collect();
            let end = walk(&values);
            prop_assert!(tree.nodes[end].split.is_none(), "a training row ends at a leaf");
            counts[end] += 1;
        }
        for (node, count) in tree.nodes.iter().zip(counts) {
            if node.split.is_none() {
                prop_assert_eq!(node.sums.count, count);
                prop_assert!(count >= LEAST || tree.nodes.len() == 1);
            }
        }
        let others: Vec<Vec<f32>> = others.into_iter().take(columns.len()).collect();
        let routed = BinnedData::of_binned_values((*data.binning).clone(), &others, &[0.0; 60], 60);
        let router_codes = routed.all_codes(0).unwrap();
        let router = coded.router(&data.binning, &router_codes);
        for row in 0..others[0].len() {
            // Codes are those of bins, so values between two training values are walked by the value of their bin.
            let values: Vec<f32> = others.iter().enumerate().map(|(feature, column)| {
                let bins = &data.binning.features[feature];
                match column[row] {
                    value if value.is_nan() => value,
                    value => bins.centres[bins.code_of(value) as usize],
                }
            }).collect();
            prop_assert_eq!(router.value(row as u32), model.nodes[walk(&values)].value);
        }
    }

    /// The slow twin scores every candidate of a streaming histogram by its definition.
    #[test]
    fn streaming_candidates_maximise_the_scores_of_three_children(
        (columns, targets) in data(), centroids in 2usize..20,
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, rows, None);
        prop_assume!(!data.binning.layout.groups.is_empty());
        let rules = own(rows);
        let streaming = StreamingRules { centroids, grouped: false, workers: 1 };
        let bounds = Arc::new(WorkerBounds::divide(&data.rows, 1));
        let mut finder = StreamingSplits::new(streaming, bounds.clone(), KeptHistograms::default(), None);
        let sets_of = || sets(&data, &targets);
        let tree = grown_with(&data, &mut sets_of(), rules, &mut finder, 1);
        let all = WorkerRows {
            data: &data, rows: &sets_of(), bounds: &bounds, workers: 0..1, scale: scale(rows), centroids,
        };
        let score = |sum: f64, count: f64| sum * sum / (count + 0.5);
        let total: f64 = targets.iter().map(|target| f64::from(*target)).sum();
        let before = score(total, rows as f64);
        let mut most = before * 1e-10;
        for group in 0..data.binning.layout.groups.len() {
            let feature = data.binning.layout.groups[group].features[0] as usize;
            let histogram = all.of_group(group, &[0]).unwrap().finish().unwrap().remove(0).remove(0);
            let (gradient, count) = (histogram.missing.gradient as f64, histogram.missing.count as f64);
            let (sum, present) = (total - gradient, rows as f64 - count);
            for (value, up_to) in super::super::centroids::quantiles_of(&histogram.bins, centroids) {
                let left = columns[feature].iter().filter(|other| f64::from(**other) <= f64::from(value as f32)).count();
                let enough = |rows: usize| rows as i64 >= LEAST;
                let missing = count as usize;
                if !enough(left) || !enough(rows - missing - left) || (missing > 0 && !enough(missing)) {
                    continue;
                }
                let both = score(up_to.sum, up_to.count) + score(sum - up_to.sum, present - up_to.count);
                let beside = if missing > 0 { score(gradient, count) } else { 0.0 };
                if missing == 0 || both > score(sum, present) * (1.0 + 1e-10) {
                    most = most.max(both + beside - before);
                }
            }
            if enough_apart(count as i64, present as i64) {
                most = most.max(score(gradient, count) + score(sum, present) - before);
            }
        }
        match tree.nodes[0].split {
            Some((split, _)) => {
                prop_assert!((split.gain - most).abs() <= 1e-9 * before.abs().max(most), "{} {most}", split.gain);
            }
            None => prop_assert!(most <= before * 1e-10 + 1e-12 * most),
        }
    }

    #[test]
    fn best_first_trees_count_all_leaves((columns, targets) in data(), most in 2u32..12) {
        let rows = targets.len();
        let data = binned(&columns, rows, rows, Some(30));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let parameters: Parameters = crate::config::load(None, None, &[]).unwrap().first().clone();
        let choice = FeatureChoice::draw(parameters.tree().unwrap(), parameters.seed, &data.binning.layout, 1);
        let context =
            GrowContext { data: &data, rules: own(rows), choice: &choice, histogram_bytes: 1 << 30, penalties: None, monotone: None };
        let grow_to = |leaves| {
            let limits = TreeLimits { depth: 30, order: Order::BestFirst { leaves } };
            let mut sets = sets(&data, &targets);
            let mut held = LocalRows { data: &data, sets: &mut sets, count_bits: scale(rows).count_bits };
            let mut finder = StaticBins::new(KeptHistograms::default());
            grow(&context, limits, &mut held, &mut finder).unwrap()
        };
        let (tree, full) = (grow_to(most), grow_to(u32::MAX));
        let leaves = tree.nodes.iter().filter(|node| node.split.is_none()).count();
        prop_assert!(leaves <= most as usize);
        // The slow twin takes, again and again, the best split that fits.
        let mut open = vec![0];
        let (mut count, mut taken) = (1, Vec::new());
        loop {
            let gain = |node: &usize| full.nodes[*node].split.map_or(f64::NEG_INFINITY, |(split, _)| split.gain);
            let fits = |node: &&usize| full.nodes[**node].split
                .is_some_and(|(split, _)| count + split.missing.children() - 1 <= most as usize);
            let best = open.iter().filter(fits).copied().reduce(|one, other| if gain(&other) > gain(&one) { other } else { one });
            let Some(node) = best else { break };
            let (split, left) = full.nodes[node].split.unwrap();
            open.retain(|other| *other != node);
            open.extend(left..left + split.missing.children());
            count += split.missing.children() - 1;
            taken.push(split);
        }
        let mut splits: Vec<FoundSplit> = tree.nodes.iter().filter_map(|node| Some(node.split?.0)).collect();
        prop_assert_eq!(splits.len(), taken.len());
        prop_assert_eq!(leaves, count);
        for split in taken {
            let place = splits.iter().position(|other| *other == split);
            splits.remove(place.expect("the twin takes the same splits"));
        }
    }
}

fn enough_apart(missing: i64, values: i64) -> bool {
    missing >= LEAST && values >= LEAST
}
