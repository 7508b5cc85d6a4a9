//! Small nodes: the codes of their rows are copied side by side, so that the whole subtree below is grown within
//! the cache. A node costs its rows times the features it looks at; what is empty costs nothing.

use super::criterion::Criterion;
use super::cut::{Best, CutRules, FoundCut};
use super::features::{Path, TreeFeatures};
use super::view::{Lanes, View};
use crate::bins::Binning;
use crate::driver::ForestTree;
use std::ops::Range;

/// Codes that a byte tells apart.
const CODES: usize = 256;

/// What does not change while a tree grows.
pub struct Ground<'a, K: Criterion> {
    /// What makes a split a good one.
    pub criterion: K,
    /// What splits must respect.
    pub rules: CutRules,
    /// Splits from the root to a leaf at most.
    pub max_depth: u32,
    /// How features are coded.
    pub binning: &'a Binning,
    /// Where they are in a row of a block.
    pub lanes: Lanes,
}

/// A node that may be split.
#[derive(Debug, Clone)]
pub struct OpenNode<S> {
    /// Its place in the tree.
    pub node: u32,
    /// Its way from the root.
    pub path: Path,
    /// 0 for the root.
    pub depth: u32,
    /// Of its rows.
    pub sums: S,
    /// Its rows, by place in the tree's list.
    pub rows: Range<usize>,
}

/// The rows of one subtree, side by side.
pub struct BlockRows<K: Criterion> {
    bytes: Vec<u8>,
    codes: Vec<u32>,
    said: Vec<K::Row>,
}

/// What is reused from subtree to subtree and from node to node.
pub struct Block<K: Criterion> {
    /// Rows by node, each node's in their order.
    ids: Vec<u16>,
    spare: Vec<u16>,
    open: Vec<OpenNode<K::Sums>>,
    work: Work<K>,
}

/// Room for one node.
struct Work<K: Criterion> {
    /// What the node's rows say.
    said: Vec<K::Row>,
    /// Sums by code, all empty between two features.
    cells: Vec<K::Sums>,
    list: Vec<(u32, K::Sums)>,
    keys: Vec<(u32, u32)>,
}

impl<K: Criterion> BlockRows<K> {
    /// None.
    pub fn new() -> Self {
        BlockRows { bytes: Vec::new(), codes: Vec::new(), said: Vec::new() }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.codes.clear();
        self.said.clear();
    }

    /// Adds rows that lie in one partition; `said` is by number of the row.
    pub fn load(&mut self, lanes: &Lanes, view: &View<'_>, rows: &[u32], said: &[K::Row]) {
        match lanes.bytes {
            true => view.append_bytes(rows, &mut self.bytes),
            false => view.append_codes(rows, &mut self.codes),
        }
        self.said.extend(rows.iter().map(|row| said[*row as usize]));
    }
}

impl<K: Criterion> Block<K> {
    /// Room for any number of subtrees, one after another.
    pub fn new() -> Self {
        Block {
            ids: Vec::new(),
            spare: Vec::new(),
            open: Vec::new(),
            work: Work {
                said: Vec::new(),
                cells: vec![K::Sums::default(); CODES],
                list: Vec::new(),
                keys: Vec::new(),
            },
        }
    }

    /// Grows the subtree below a node, whose rows are all in `rows`.
    pub fn grow(
        &mut self,
        ground: &Ground<'_, K>,
        rows: &BlockRows<K>,
        features: &mut TreeFeatures,
        tree: &mut ForestTree,
        root: OpenNode<K::Sums>,
    ) {
        let count = rows.said.len();
        self.ids.clear();
        self.ids.extend(0..count as u16);
        self.spare.resize(count.max(self.spare.len()), 0);
        self.open.clear();
        self.open.push(OpenNode { rows: 0..count, ..root });
        match ground.lanes.bytes {
            true => self.grow_on(ground, &rows.bytes, &rows.said, features, tree),
            false => self.grow_on(ground, &rows.codes, &rows.said, features, tree),
        }
    }

    fn grow_on<T: Code>(
        &mut self,
        ground: &Ground<'_, K>,
        codes: &[T],
        said: &[K::Row],
        features: &mut TreeFeatures,
        tree: &mut ForestTree,
    ) {
        let stride = ground.lanes.stride;
        while let Some(node) = self.open.pop() {
            let Some((cut, gain)) = self.find(ground, codes, said, features, &node) else { continue };
            let bins = &ground.binning.features[cut.feature as usize];
            let missing = bins.missing_code.filter(|_| cut.missing_left).unwrap_or(u32::MAX);
            let codes = &codes[ground.lanes.of_feature(cut.feature)..];
            let goes_left = |id: u16| {
                let code: u32 = codes[id as usize * stride].into();
                (code <= cut.code) | (code == missing)
            };
            let middle = self.divide(node.rows.clone(), goes_left);
            let right = K::minus(node.sums, &cut.left);
            let (left, right) = ground.add_children(tree, &node, &cut.left, &right);
            tree.nodes[node.node as usize].split = Some(cut.to_split(left.node, gain));
            self.open.push(OpenNode { rows: middle..node.rows.end, ..right });
            self.open.push(OpenNode { rows: node.rows.start..middle, ..left });
        }
    }

    /// The best cut of a node and its gain, if there is any.
    fn find<T: Code>(
        &mut self,
        ground: &Ground<'_, K>,
        codes: &[T],
        said: &[K::Row],
        features: &mut TreeFeatures,
        node: &OpenNode<K::Sums>,
    ) -> Option<(FoundCut<K::Sums>, f64)> {
        if !ground.may_split(node) {
            return None;
        }
        let ids = &self.ids[node.rows.clone()];
        let work = &mut self.work;
        work.said.clear();
        work.said.extend(ids.iter().map(|id| said[*id as usize]));
        if work.said.iter().all(|said| K::agree(*said, work.said[0])) {
            return None;
        }
        let mut best = Best::new(&ground.criterion, &ground.rules, node.sums);
        features.start(node.path);
        let mut varies = false;
        while (features.drawn() < features.per_node || !varies)
            && let Some(drawn) = features.next()
        {
            let lane = ground.lanes.of_feature(drawn.feature);
            T::sum_up(&codes[lane..], ground.lanes.stride, ids, work);
            if work.list.len() > 1 {
                varies = true;
                best.look(&drawn, &ground.binning.features[drawn.feature as usize], &work.list);
            }
        }
        best.found.map(|cut| (cut, best.gain(&cut)))
    }

    /// Moves the rows that go left to the front, keeping the order on both sides; where the others start.
    #[inline(always)]
    fn divide(&mut self, range: Range<usize>, goes_left: impl Fn(u16) -> bool) -> usize {
        let (mut left, mut right) = (range.start, 0);
        for place in range.clone() {
            let id = self.ids[place];
            let is_left = goes_left(id);
            // Both are written and one is kept: there is no branch to guess wrongly.
            self.ids[left] = id;
            self.spare[right] = id;
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
        self.ids[left..range.end].copy_from_slice(&self.spare[..right]);
        left
    }
}

impl<K: Criterion> Ground<'_, K> {
    /// Whether a node is large and high enough to be split.
    pub fn may_split(&self, node: &OpenNode<K::Sums>) -> bool {
        node.depth < self.max_depth && self.rules.may_split(K::rows(&node.sums))
    }

    /// Adds the children of a node to the tree; their rows are for the caller to say.
    pub fn add_children(
        &self,
        tree: &mut ForestTree,
        node: &OpenNode<K::Sums>,
        left: &K::Sums,
        right: &K::Sums,
    ) -> (OpenNode<K::Sums>, OpenNode<K::Sums>) {
        let mut child = |sums: &K::Sums, path: Path| OpenNode {
            node: self.add_node(tree, node.depth + 1, sums),
            path,
            depth: node.depth + 1,
            sums: *sums,
            rows: 0..0,
        };
        (child(left, node.path.left()), child(right, node.path.right()))
    }

    /// Adds a node to the tree.
    pub fn add_node(&self, tree: &mut ForestTree, depth: u32, sums: &K::Sums) -> u32 {
        tree.add(depth, self.criterion.value(sums), self.criterion.cover(sums))
    }
}

/// A code in a block.
trait Code: Copy + Into<u32> {
    /// Lists the sums of a node's rows by code, ascending. `codes` starts with the feature of row 0.
    fn sum_up<K: Criterion>(codes: &[Self], stride: usize, ids: &[u16], work: &mut Work<K>);
}

impl Code for u8 {
    #[inline(always)]
    fn sum_up<K: Criterion>(codes: &[u8], stride: usize, ids: &[u16], work: &mut Work<K>) {
        let cells: &mut [K::Sums; CODES] =
            work.cells.first_chunk_mut().expect("there is a cell for every byte");
        // Which codes occur: written only, so that no row waits for the one before it.
        let mut seen = [0u8; CODES];
        for (id, said) in ids.iter().zip(&work.said) {
            let code = codes[*id as usize * stride];
            K::add(&mut cells[code as usize], *said);
            seen[code as usize] = 1;
        }
        work.list.clear();
        for (word, bytes) in seen.as_chunks::<8>().0.iter().enumerate() {
            let mut marks = u64::from_le_bytes(*bytes);
            while marks != 0 {
                let code = word * 8 + marks.trailing_zeros() as usize / 8;
                marks &= marks - 1;
                work.list.push((code as u32, std::mem::take(&mut cells[code])));
            }
        }
    }
}

impl Code for u32 {
    fn sum_up<K: Criterion>(codes: &[u32], stride: usize, ids: &[u16], work: &mut Work<K>) {
        work.keys.clear();
        work.keys.extend((0..).zip(ids).map(|(place, id)| (codes[*id as usize * stride], place)));
        work.keys.sort_unstable();
        work.list.clear();
        for (code, place) in &work.keys {
            let said = work.said[*place as usize];
            match work.list.last_mut() {
                Some((last, sums)) if last == code => K::add(sums, said),
                _ => {
                    let mut sums = K::Sums::default();
                    K::add(&mut sums, said);
                    work.list.push((*code, sums));
                }
            }
        }
    }
}
