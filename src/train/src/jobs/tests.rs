use super::member_share::MemberShare;
use super::*;
use crate::bins::{BinOptions, BinnedData};
use crate::boost::{LocalWorker, RowGradients, WorkerState};
use crate::config;
use crate::driver::{GradientSummary, Scores, TreeStart};
use crate::tree::{FoundSplit, NodeSplit};
use planetree_data::source::LabelledRows;
use std::sync::Arc;

/// A share that lost its state produces the same sums as one that followed from the start.
#[test]
fn a_share_built_anew_says_what_the_one_before_said() {
    let plan = config::load(Some("planet"), None, &["max_bin=20".to_owned()]).unwrap();
    let parameters = plan.first();
    let boost = parameters.with(parameters.boost().unwrap().clone());
    let options = BinOptions::of(parameters);
    let values: Vec<Vec<f32>> =
        (0..3u32).map(|f| (0..200u32).map(|row| ((row * (7 + f)) % 41) as f32).collect()).collect();
    let labels: Vec<f32> = (0..200u32).map(|row| (row % 5) as f32).collect();
    let data = || Arc::new(BinnedData::of_values(&values, &labels, 64, &options));
    let state = |rows: &[LabelledRows]| WorkerState {
        odds: None,
        scores: Scores::constant(rows, 2.0),
        metrics: None,
        gradients: RowGradients::new(None, rows),
    };
    let following = || {
        let data = data();
        let state = state(&data.rows);
        MemberShare::plain(LocalWorker::new(&boost, data, state))
    };
    let mut first = following();
    let round = |trees| BoostProgress::Round { trees, last: None };
    assert!(first.reach(&round(0)).unwrap());
    let (parts, _) = first.gradients(1).unwrap();
    assert_eq!(parts.len(), 4);
    let scale = GradientSummary::of_parts(&parts).scale(200);
    let start =
        TreeStart { tree: 1, scale, groups: (0..data().binning.layout.groups.len()).collect(), limit: None };
    let split = |node, left, code| NodeSplit {
        node,
        left,
        split: FoundSplit {
            feature: 1,
            code,
            threshold: 0.0,
            missing_code: None,
            missing: crate::bins::MissingBranch::Right,
            gain: 1.0,
        },
    };
    let all = [split(0, 1, 9), split(1, 3, 4)];
    let tree = |trees, splits: &[NodeSplit]| BoostProgress::Tree {
        trees,
        start: start.clone(),
        splits: splits.to_vec(),
    };
    let level = |share: &mut MemberShare, splits: &[NodeSplit], wanted: &[usize]| {
        let is_current = share.reach(&tree(0, splits)).unwrap();
        is_current.then(|| share.level(wanted, &start.groups, 1).unwrap())
    };
    let root = level(&mut first, &[], &[0]);
    let second = level(&mut first, &all[..1], &[1]);
    let third = level(&mut first, &all, &[3, 4]);
    assert!(root.is_some() && third.is_some());
    // The result is the same if the request is repeated, if the share has applied more or fewer splits, and if it was
    // rebuilt.
    assert_eq!(level(&mut first, &all, &[3, 4]), third);
    assert_eq!(level(&mut first, &all[..1], &[1]), second);
    assert_eq!(level(&mut following(), &all, &[3, 4]), third);
    assert_eq!(level(&mut following(), &[], &[0]), root);
    // A request that builds on missing trees is not executed.
    assert!(!following().reach(&round(2)).unwrap());
    assert!(!following().reach(&tree(2, &[])).unwrap());
}
