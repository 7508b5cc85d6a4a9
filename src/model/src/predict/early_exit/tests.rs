use super::rows::ExitGroup;
use super::*;
use crate::family::RowValues;
use crate::model::{Branch, Combine, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble};
use crate::predict::Scorer;
use arrow::array::Float32Array;
use planetree_base::random::Stream;

const FEATURES: usize = 4;

/// Returns a model of random stumps.
fn model(combine: Combine, trees: usize, draw: &mut Stream) -> Model {
    let leaf = |value| Node { depth: 1, split: None, value, cover: 1.0 };
    let mut tree = || {
        let (feature, threshold) = ((draw.bits() % FEATURES as u64) as u32, draw.uniform() as f32);
        let missing = if draw.bits() & 1 == 1 { Branch::Left } else { Branch::Right };
        let split = Split { feature, threshold, missing, left: 1, right: 2, middle: None, gain: 1.0 };
        let root = Node { depth: 0, split: Some(split), value: 0.0, cover: 1.0 };
        Tree { nodes: vec![root, leaf(draw.uniform() - 0.5), leaf((draw.bits() % 3) as f64 / 3.0)] }
    };
    let trees = (0..trees).map(|_| tree()).collect();
    let part = Part::trees(TreeEnsemble::new(combine, 0.3, Some(1), trees));
    Model {
        intercept: 0.0,
        parts: vec![part],
        groups: Vec::new(),
        rounds: 1,
        features: ["f1", "f2", "f3", "f4"].map(ModelFeature::new).to_vec(),
        configuration: String::new(),
        data: Vec::new(),
        origin: Origin::default(),
        start_scores: None,
    }
}

struct Rows {
    columns: Vec<Option<Float32Array>>,
    bounds: Vec<usize>,
}

fn rows(queries: usize, draw: &mut Stream) -> Rows {
    let mut bounds = vec![0];
    for _ in 0..queries {
        bounds.push(bounds[bounds.len() - 1] + (draw.bits() % 9) as usize);
    }
    let count = bounds[bounds.len() - 1];
    let mut value = || (!draw.bits().is_multiple_of(5)).then(|| (draw.bits() % 16) as f32 / 16.0);
    let columns = (0..FEATURES).map(|_| Some((0..count).map(|_| value()).collect::<Float32Array>()));
    Rows { columns: columns.collect(), bounds }
}

/// Scores of all rows with the first `trees` trees.
fn scores_with(model: &Model, trees: usize, rows: &Rows) -> Vec<f64> {
    let mut model = model.clone();
    model.only_trees_mut().unwrap().trees.truncate(trees);
    let columns: Vec<_> = rows.columns.iter().map(Option::as_ref).collect();
    let mut scores = vec![0.0; rows.bounds[rows.bounds.len() - 1]];
    Scorer::new(&model).unwrap().score_columns(&columns, &mut scores);
    scores
}

/// Scores all rows with every number of trees, and looks up each document at the tree where it exits.
fn naively(model: &Model, rule: &EarlyExit, groups: &[Rows]) -> (Vec<f64>, Vec<u32>) {
    let trees = model.only_trees().unwrap().trees.len();
    let mut queries = Vec::new();
    let mut start = 0;
    for group in groups {
        queries.extend(group.bounds.windows(2).map(|query| start + query[0]..start + query[1]));
        start += group.bounds[group.bounds.len() - 1];
    }
    let scopes = match rule.scope {
        ExitScope::Query => queries,
        ExitScope::Pooled => std::iter::once(0..start).collect(),
    };
    let all = |trees| groups.iter().flat_map(|rows| scores_with(model, trees, rows)).collect::<Vec<f64>>();
    let mut exits = vec![trees as u32; start];
    for at in (1..).map(|step| step * rule.every as usize).take_while(|at| *at < trees) {
        let scores = all(at);
        for scope in &scopes {
            let mut active: Vec<usize> = scope.clone().filter(|row| exits[*row] == trees as u32).collect();
            active.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a)));
            let of = if rule.share == ExitShare::All { scope.len() } else { active.len() };
            let count = (of as f64 * rule.percent / 100.0).floor() as usize;
            active.iter().take(count).for_each(|row| exits[*row] = at as u32);
        }
    }
    let by_trees: Vec<Vec<f64>> = (0..=trees).map(all).collect();
    ((0..start).map(|row| by_trees[exits[row] as usize][row]).collect(), exits)
}

/// Loads rows batch by batch.
fn loaded(scorer: &ExitScorer, rows: &Rows, batch: usize) -> ExitGroup {
    let mut group = ExitGroup::new(scorer, rows.bounds.clone());
    let count = rows.bounds[rows.bounds.len() - 1];
    for first in (0..count).step_by(batch) {
        let rows_left = batch.min(count - first);
        let batch: Vec<Option<Float32Array>> =
            rows.columns.iter().map(|column| column.as_ref().map(|it| it.slice(first, rows_left))).collect();
        let columns: Vec<_> = batch.iter().map(Option::as_ref).collect();
        group.append(scorer, first, rows_left, RowValues::Columns { columns: &columns, first: 0 });
    }
    group
}

#[test]
fn exits_match_scoring_everything_and_looking_up() {
    let mut draw = Stream::new(&[11]);
    for case in 0..120 {
        let combine = if case % 2 == 0 { Combine::Sum } else { Combine::Mean };
        let model = model(combine, 1 + (draw.bits() % 12) as usize, &mut draw);
        let groups: Vec<Rows> = (0..3).map(|_| rows((draw.bits() % 100) as usize, &mut draw)).collect();
        let rule = EarlyExit {
            every: 1 + (draw.bits() % 5) as u32,
            percent: [0.0, 5.0, 20.0, 33.3, 60.0, 100.0][(draw.bits() % 6) as usize],
            scope: if draw.bits() & 1 == 0 { ExitScope::Pooled } else { ExitScope::Query },
            share: if draw.bits() & 1 == 0 { ExitShare::All } else { ExitShare::Remaining },
        };
        let (scores, trees) = naively(&model, &rule, &groups);
        let batch = 1 + (draw.bits() % 200) as usize;
        // With values encoded once, and by every segment.
        for planes in [4, 0] {
            let scorer = ExitScorer::with_planes(&model, rule, planes).unwrap();
            let mut exiting =
                ExitRows::new(&scorer, groups.iter().map(|rows| loaded(&scorer, rows, batch)).collect());
            exiting.finish().unwrap();
            assert_eq!(exiting.scores().concat(), scores, "{rule:?}");
            assert_eq!(exiting.evaluated().collect::<Vec<_>>(), trees, "{rule:?}");
        }
        if rule.percent == 0.0 {
            let plain = groups.iter().flat_map(|rows| scores_with(&model, usize::MAX, rows));
            assert_eq!(scores, plain.collect::<Vec<_>>());
        }
    }
}

#[test]
fn numbers_that_make_no_sense_are_rejected() {
    let rule = EarlyExit { every: 10, percent: 5.0, scope: ExitScope::Pooled, share: ExitShare::All };
    assert!(rule.check().is_ok());
    assert!(EarlyExit { every: 0, ..rule }.check().is_err());
    assert!(EarlyExit { percent: 101.0, ..rule }.check().is_err());
    assert!(EarlyExit { percent: f64::NAN, ..rule }.check().is_err());
}
