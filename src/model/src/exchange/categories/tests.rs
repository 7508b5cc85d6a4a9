use super::*;
use planetree_base::random::Stream;

/// A random tree whose splits on feature 0 and 1 are tests on sets, and those on feature 2 have thresholds.
struct Sets {
    tree: Tree,
    sets: Vec<Option<CategorySplit>>,
    /// The codes in the set of each node.
    codes: Vec<Vec<u32>>,
    sides: SetSides,
}

fn random(seed: u64, splits: usize, codes: u64, sides: SetSides) -> Sets {
    let mut stream = Stream::new(&[seed]);
    let leaf = |depth| Node { depth, split: None, value: 0.0, cover: 0.0 };
    let mut tree = Tree { nodes: vec![leaf(0)] };
    let mut drawn: Vec<(usize, Vec<u32>)> = Vec::new();
    for _ in 0..splits {
        let leaves: Vec<usize> =
            (0..tree.nodes.len()).filter(|node| tree.nodes[*node].split.is_none()).collect();
        let node = leaves[(stream.bits() % leaves.len() as u64) as usize];
        let feature = (stream.bits() % 3) as u32;
        let next = tree.nodes.len() as u32;
        let (threshold, missing) = ((stream.bits() % 10) as f32 - 3.0, Branch::Right);
        tree.nodes[node].split =
            Some(Split { feature, threshold, missing, left: next, right: next + 1, middle: None, gain: 1.0 });
        if feature < 2 {
            drawn.push((node, (0..codes as u32).filter(|_| stream.bits().is_multiple_of(2)).collect()));
        }
        let depth = tree.nodes[node].depth + 1;
        tree.nodes.extend([leaf(depth), leaf(depth)]);
    }
    for node in (0..tree.nodes.len()).rev() {
        tree.nodes[node].value = node as f64;
        tree.nodes[node].cover = match &tree.nodes[node].split {
            Some(split) => {
                [split.left, split.right].iter().map(|child| tree.nodes[*child as usize].cover).sum()
            }
            None => 1.0 + (stream.bits() % 9) as f64,
        };
    }
    let mut sets = vec![None; tree.nodes.len()];
    let mut of_nodes = vec![Vec::new(); tree.nodes.len()];
    for (node, codes) in drawn {
        sets[node] = Some(CategorySplit::new(codes.iter().copied(), sides).unwrap());
        of_nodes[node] = codes;
    }
    Sets { tree, sets, codes: of_nodes, sides }
}

impl Sets {
    /// The value of a row, by looking its code up in the set.
    fn slow(&self, row: &[f32]) -> f64 {
        let mut node = 0;
        while let Some(split) = &self.tree.nodes[node].split {
            let value = row[split.feature as usize];
            let is_left = match &self.sets[node] {
                None => !value.is_nan() && value <= split.threshold,
                Some(_) if value.is_nan() => self.sides.missing_left,
                Some(_) => {
                    let has_code = value > self.sides.below_zero
                        && self.codes[node].contains(&(value.trunc().max(0.0) as u32));
                    has_code == self.sides.set_left
                }
            };
            node = if is_left { split.left } else { split.right } as usize;
        }
        self.tree.nodes[node].value
    }
}

fn value(tree: &Tree, row: &[f32]) -> f64 {
    let mut node = 0;
    while let Some(split) = &tree.nodes[node].split {
        let value = row[split.feature as usize];
        let is_left = if value.is_nan() { split.missing == Branch::Left } else { value <= split.threshold };
        node = if is_left { split.left } else { split.right } as usize;
    }
    tree.nodes[node].value
}

/// LightGBM's and XGBoost's sides, and each with missing values at the other side.
const SIDES: [SetSides; 4] = [
    SetSides { set_left: true, missing_left: false, below_zero: -1.0 },
    SetSides { set_left: true, missing_left: true, below_zero: -1.0 },
    SetSides { set_left: false, missing_left: true, below_zero: -f32::from_bits(1) },
    SetSides { set_left: false, missing_left: false, below_zero: -f32::from_bits(1) },
];

#[test]
fn every_value_reaches_the_leaf_that_its_set_sends_it_to() {
    let edges = [-2.0, -1.0, -0.5, -1e-45, -0.0, 0.0, 0.99, 1.0, 2.5, 3.0, 6.999, 7.0, 8.0, 100.0, f32::NAN];
    for seed in 0..200 {
        let sides = SIDES[seed as usize % 4];
        let given = random(seed, 1 + seed as usize % 9, 1 + seed % 8, sides);
        let expanded = expand_sets(given.tree.clone(), &given.sets).unwrap();
        assert_eq!(expanded.fault(3), None);
        for one in edges {
            for other in edges {
                let row = [one, other, (one + 1.0) * 0.7];
                assert_eq!(value(&expanded, &row), given.slow(&row), "{seed}: {row:?}");
            }
        }
        // Covers add up.
        for node in &expanded.nodes {
            let Some(split) = &node.split else { continue };
            let sum = expanded.nodes[split.left as usize].cover + expanded.nodes[split.right as usize].cover;
            assert!((sum - node.cover).abs() <= 1e-9 * node.cover, "{seed}: {sum} is not {}", node.cover);
        }
    }
}

#[test]
fn neighbouring_codes_are_one_range() {
    let split = CategorySplit::new([1, 2, 5].into_iter(), SIDES[0]).unwrap();
    let bounds: Vec<(f32, bool)> = split.ranges.iter().map(|range| (range.upto, range.is_left)).collect();
    let below = |number: f32| number.next_down();
    assert_eq!(
        bounds,
        [
            (below(1.0), false),
            (below(3.0), true),
            (below(5.0), false),
            (below(6.0), true),
            (f32::INFINITY, false)
        ]
    );
}

#[test]
fn sets_that_would_need_too_many_splits_are_refused() {
    // Sets of every other code on 40 features, one below the other.
    let leaf = |depth| Node { depth, split: None, value: 1.0, cover: 1.0 };
    let mut tree = Tree { nodes: vec![leaf(0)] };
    for feature in 0..40 {
        let node = tree.nodes.len() - 1;
        let (left, right) = (node as u32 + 1, node as u32 + 2);
        let missing = Branch::Right;
        tree.nodes[node].split =
            Some(Split { feature, threshold: 0.0, missing, left, right, middle: None, gain: 1.0 });
        tree.nodes.extend([leaf(feature + 1), leaf(feature + 1)]);
    }
    let set = |node: &Node| {
        node.split.as_ref().map(|_| CategorySplit::new((0..20).map(|code| 2 * code), SIDES[0]).unwrap())
    };
    let sets: Vec<Option<CategorySplit>> = tree.nodes.iter().map(set).collect();
    let error = expand_sets(tree, &sets).unwrap_err();
    assert!(error.problem.contains("more than 65536 splits"), "{error:?}");
    assert!(error.remedy.contains("max_cat_threshold"), "{error:?}");
    assert!(check_added_nodes(1 << 23).is_err());
    assert!(CategorySplit::new([1 << 24].into_iter(), SIDES[0]).is_err());
}
