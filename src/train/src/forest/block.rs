//! Grows small nodes. The codes (bin numbers) of a node's rows are copied into a contiguous block, which stays in the
//! cache while the whole subtree below the node is grown. The cost of splitting a node is proportional to its number
//! of rows times its number of sampled features; codes that do not occur in the node cost almost nothing.

use super::criterion::Criterion;
use super::cut::{BestForestCut, CodeExtremes, FoundCut, sums_of};
use super::cut_rules::CutRules;
use super::features::{Path, TreeFeatures};
use super::view::{CodeLanes, PartitionView};
use crate::bins::{Binning, MissingBranch};
use crate::driver::ForestTree;
use crate::tree::{ValueBounds, order_of_children};
use std::ops::Range;

/// Number of different codes that fit in one byte.
const CODES: usize = 256;

/// Data and parameters that stay the same while a tree is grown.
pub(super) struct ForestContext<'a, K: Criterion> {
    /// Split criterion.
    pub criterion: K,
    /// Constraints on splits.
    pub rules: CutRules,
    /// Maximum depth of a leaf.
    pub max_depth: u32,
    /// Bins and layout of the features.
    pub binning: &'a Binning,
    /// Position of each feature's code in a row of a block.
    pub lanes: CodeLanes,
}

/// A node whose split is being searched.
#[derive(Debug, Clone)]
pub(super) struct OpenForestNode<S> {
    /// Index of the node in the tree.
    pub node: u32,
    /// Path from the root to the node.
    pub path: Path,
    /// Depth of the node; 0 for the root.
    pub depth: u32,
    /// Sums over the rows of the node.
    pub sums: S,
    /// The node's range in the row list of the tree.
    pub rows: Range<usize>,
    /// The bounds of the values of the node and of all leaves below it.
    pub bounds: ValueBounds,
}

/// The children of a node: left, right and, if there is one, middle.
pub(super) type Children<S> = Vec<OpenForestNode<S>>;

/// The rows of one subtree, copied into contiguous memory.
pub(super) struct BlockRows<K: Criterion> {
    bytes: Vec<u8>,
    codes: Vec<u32>,
    targets: Vec<K::Row>,
}

/// Grows subtrees in blocks. Buffers are reused between subtrees.
pub(super) struct SubtreeGrower<K: Criterion> {
    /// Rows of each node, contiguous and in their original order.
    ids: Vec<u16>,
    spare: Vec<u16>,
    open: Vec<OpenForestNode<K::Sums>>,
    work: NodeBuffers<K>,
}

/// Buffers for one node.
struct NodeBuffers<K: Criterion> {
    /// Targets of the node's rows.
    targets: Vec<K::Row>,
    /// Sums of the node's rows by code. They are reset to zero after each feature.
    cells: Vec<K::Sums>,
    list: Vec<(u32, K::Sums)>,
    keys: Vec<(u32, u32)>,
}

impl<K: Criterion> BlockRows<K> {
    pub(super) fn new() -> Self {
        BlockRows { bytes: Vec::new(), codes: Vec::new(), targets: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.codes.clear();
        self.targets.clear();
    }

    /// Adds rows of one partition. `targets` is indexed by row number.
    pub(super) fn load(
        &mut self,
        lanes: &CodeLanes,
        view: &PartitionView<'_>,
        rows: &[u32],
        targets: &[K::Row],
    ) {
        match lanes.bytes {
            true => view.append_bytes(rows, &mut self.bytes),
            false => view.append_codes(rows, &mut self.codes),
        }
        self.targets.extend(rows.iter().map(|row| targets[*row as usize]));
    }
}

impl<K: Criterion> SubtreeGrower<K> {
    pub(super) fn new() -> Self {
        SubtreeGrower {
            ids: Vec::new(),
            spare: Vec::new(),
            open: Vec::new(),
            work: NodeBuffers {
                targets: Vec::new(),
                cells: vec![K::Sums::default(); CODES],
                list: Vec::new(),
                keys: Vec::new(),
            },
        }
    }

    /// Grows the subtree below a node. `rows` contains exactly the rows of the node.
    pub(super) fn grow(
        &mut self,
        context: &ForestContext<'_, K>,
        rows: &BlockRows<K>,
        features: &mut TreeFeatures,
        tree: &mut ForestTree,
        root: OpenForestNode<K::Sums>,
    ) {
        let count = rows.targets.len();
        self.ids.clear();
        self.ids.extend(0..count as u16);
        self.spare.resize(count.max(self.spare.len()), 0);
        self.open.clear();
        self.open.push(OpenForestNode { rows: 0..count, ..root });
        match context.lanes.bytes {
            true => self.grow_on(context, &rows.bytes, &rows.targets, features, tree),
            false => self.grow_on(context, &rows.codes, &rows.targets, features, tree),
        }
    }

    fn grow_on<T: Code>(
        &mut self,
        context: &ForestContext<'_, K>,
        codes: &[T],
        targets: &[K::Row],
        features: &mut TreeFeatures,
        tree: &mut ForestTree,
    ) {
        let stride = context.lanes.stride;
        while let Some(node) = self.open.pop() {
            let Some((cut, gain)) = self.find(context, codes, targets, features, &node) else { continue };
            let bins = &context.binning.features[cut.feature as usize];
            let (missing, apart) = (cut.missing_goes_left(bins), cut.missing_goes_middle(bins));
            let codes = &codes[context.lanes.of_feature(cut.feature)..];
            let code = |id: u16| -> u32 { codes[id as usize * stride].into() };
            let Range { start, end } = node.rows;
            let lefts = self.divide(start..end, |id| (code(id) <= cut.code) | (code(id) == missing));
            let rights = match apart {
                Some(missing) => self.divide(lefts..end, |id| code(id) != missing),
                None => end,
            };
            let children = context.add_children(tree, &node, &cut);
            tree.nodes[node.node as usize].split = Some(cut.to_split(children[0].node, gain));
            let rows = [start..lefts, lefts..rights, rights..end];
            // The last node is grown first.
            for (child, rows) in children.into_iter().zip(rows).rev() {
                self.open.push(OpenForestNode { rows, ..child });
            }
        }
    }

    /// Returns the best cut of a node and the gain of the cut; `None` if the node cannot be split.
    fn find<T: Code>(
        &mut self,
        context: &ForestContext<'_, K>,
        codes: &[T],
        targets: &[K::Row],
        features: &mut TreeFeatures,
        node: &OpenForestNode<K::Sums>,
    ) -> Option<(FoundCut<K::Sums>, f64)> {
        if !context.may_split(node) {
            return None;
        }
        let ids = &self.ids[node.rows.clone()];
        let work = &mut self.work;
        work.targets.clear();
        work.targets.extend(ids.iter().map(|id| targets[*id as usize]));
        if work.targets.iter().all(|target| K::agree(*target, work.targets[0])) {
            return None;
        }
        let mut best = BestForestCut::new(&context.criterion, &context.rules, node.sums, node.bounds);
        features.start(node.path);
        let mut varies = false;
        while (features.drawn() < features.per_node || (features.redraws && !varies))
            && let Some(drawn) = features.next()
        {
            let (bins, stride) = (&context.binning.features[drawn.feature as usize], context.lanes.stride);
            let codes = &codes[context.lanes.of_feature(drawn.feature)..];
            if context.rules.is_random() {
                // A single cut needs no sums by code.
                let of_rows = || ids.iter().map(|id| -> u32 { codes[*id as usize * stride].into() });
                let extremes = CodeExtremes::of(of_rows(), bins);
                varies |= extremes.vary();
                best.try_at_random(&drawn, bins, &extremes, |goes_left| {
                    sums_of::<K>(of_rows().zip(work.targets.iter().copied()), goes_left)
                });
                continue;
            }
            T::sum_up(codes, stride, ids, work);
            if work.list.len() > 1 {
                varies = true;
                best.consider(&drawn, bins, &work.list);
            }
        }
        best.found.map(|cut| (cut, best.gain(&cut)))
    }

    /// Moves the rows that go left to the front, keeping the order on both sides. Returns the index of the first row
    /// that goes right.
    #[inline(always)]
    fn divide(&mut self, range: Range<usize>, goes_left: impl Fn(u16) -> bool) -> usize {
        let (mut left, mut right) = (range.start, 0);
        for place in range.clone() {
            let id = self.ids[place];
            let is_left = goes_left(id);
            // Avoid branches: write the row to both sides, but advance only one.
            self.ids[left] = id;
            self.spare[right] = id;
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
        self.ids[left..range.end].copy_from_slice(&self.spare[..right]);
        left
    }
}

impl<K: Criterion> ForestContext<'_, K> {
    /// Returns whether a node has enough rows and is above the maximum depth.
    pub(super) fn may_split(&self, node: &OpenForestNode<K::Sums>) -> bool {
        node.depth < self.max_depth && self.rules.may_split(K::rows(&node.sums))
    }

    /// Adds the children of a node to the tree. The caller sets their rows.
    pub(super) fn add_children(
        &self,
        tree: &mut ForestTree,
        node: &OpenForestNode<K::Sums>,
        cut: &FoundCut<K::Sums>,
    ) -> Children<K::Sums> {
        let mut child = |sums: &K::Sums, path: Path, bounds: ValueBounds| OpenForestNode {
            node: self.add_node(tree, node.depth + 1, sums, bounds),
            path,
            depth: node.depth + 1,
            sums: *sums,
            rows: 0..0,
            bounds,
        };
        let right = K::minus(K::minus(node.sums, &cut.left), &cut.middle);
        let [of_left, of_right, of_middle] = self.bounds_of_children(node.bounds, cut, &right);
        let mut children = Children::new();
        children.push(child(&cut.left, node.path.left(), of_left));
        children.push(child(&right, node.path.right(), of_right));
        if cut.missing == MissingBranch::Middle {
            children.push(child(&cut.middle, node.path.middle(), of_middle));
        }
        children
    }

    /// Returns the bounds of the children of a node, given the sums of the right child.
    fn bounds_of_children(
        &self,
        bounds: ValueBounds,
        cut: &FoundCut<K::Sums>,
        right: &K::Sums,
    ) -> [ValueBounds; 3] {
        let constraint = self.rules.constraint(cut.feature);
        if constraint.is_none() {
            return [bounds; 3];
        }
        let order = order_of_children(constraint, self.rules.missing, cut.is_apart());
        let [left, right] = [&cut.left, right].map(|sums| bounds.nearest(self.criterion.value(sums)));
        bounds.of_children(order, left, right)
    }

    /// Adds a node to the tree.
    pub(super) fn add_node(
        &self,
        tree: &mut ForestTree,
        depth: u32,
        sums: &K::Sums,
        bounds: ValueBounds,
    ) -> u32 {
        tree.add(depth, bounds.nearest(self.criterion.value(sums)), self.criterion.cover(sums))
    }
}

/// Integer type of the codes in a block.
trait Code: Copy + Into<u32> {
    /// Writes the sums of a node's rows for each code of a feature to `work.list`, in ascending order of the codes.
    /// `codes[0]` is the code of row 0, and the codes of consecutive rows are `stride` elements apart.
    fn sum_up<K: Criterion>(codes: &[Self], stride: usize, ids: &[u16], work: &mut NodeBuffers<K>);
}

impl Code for u8 {
    #[inline(always)]
    fn sum_up<K: Criterion>(codes: &[u8], stride: usize, ids: &[u16], work: &mut NodeBuffers<K>) {
        let cells: &mut [K::Sums; CODES] =
            work.cells.first_chunk_mut().expect("there is a cell for every byte");
        // Marks the codes that occur. The loop writes marks but never reads them, so no iteration waits for another
        // one.
        let mut seen = [0u8; CODES];
        for (id, target) in ids.iter().zip(&work.targets) {
            let code = codes[*id as usize * stride];
            K::add(&mut cells[code as usize], *target);
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
    fn sum_up<K: Criterion>(codes: &[u32], stride: usize, ids: &[u16], work: &mut NodeBuffers<K>) {
        work.keys.clear();
        work.keys.extend((0..).zip(ids).map(|(place, id)| (codes[*id as usize * stride], place)));
        work.keys.sort_unstable();
        work.list.clear();
        for (code, place) in &work.keys {
            let target = work.targets[*place as usize];
            match work.list.last_mut() {
                Some((last, sums)) if last == code => K::add(sums, target),
                _ => {
                    let mut sums = K::Sums::default();
                    K::add(&mut sums, target);
                    work.list.push((*code, sums));
                }
            }
        }
    }
}
