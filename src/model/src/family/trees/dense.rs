//! Evaluates trees with up to 256 leaves, from the leaves up. Every split is evaluated for all rows of a block, whether
//! or not a row reaches it, and selects one of two leaf numbers for each row. This takes a few instructions per split
//! for 16 to 64 rows, without branches or cache misses, and an unbalanced tree takes no longer than a balanced one.

use super::layout::FlatNode;
use super::planes::{BLOCK, Plane, PlaneTest};
use std::ops::Range;

/// Maximum number of leaves of a tree. Leaf numbers must fit in a byte.
pub(super) const MAX_LEAVES: usize = 256;

/// Registers, each of which contains one leaf number per row of a block. The first registers are constants, one for
/// each leaf number. They are followed by one register for each split of the current tree.
pub(super) struct Registers(Box<[[u8; BLOCK]; REGISTERS]>);

/// Number of registers: one per leaf and one per split. A tree has one split fewer than leaves, so this is rounded up
/// to a power of two, which lets a bit mask keep indices in range.
const REGISTERS: usize = 2 * MAX_LEAVES;

impl Registers {
    /// Creates the registers and fills in the constants.
    pub(super) fn new() -> Self {
        let all: Vec<_> = (0..REGISTERS).map(|number| [number as u8; BLOCK]).collect();
        Registers(all.try_into().expect("the vector has exactly REGISTERS elements"))
    }
}

/// A split whose two children are leaves with consecutive numbers.
#[derive(Debug)]
struct LeafPair {
    test: PlaneTest,
    first: u8,
}

/// Any other split: it selects the leaf number from one of two registers.
#[derive(Debug)]
struct RegisterSelect {
    test: PlaneTest,
    low: u16,
    high: u16,
}

/// A tree stored in [`DenseTrees`].
#[derive(Debug)]
pub(super) struct DenseTree {
    pairs: Range<usize>,
    selects: Range<usize>,
    values: usize,
    /// The register that contains the leaf number of each row after all splits are evaluated.
    root: u16,
}

/// Storage for trees with up to [`MAX_LEAVES`] leaves.
#[derive(Debug)]
pub(super) struct DenseTrees {
    pairs: Vec<LeafPair>,
    selects: Vec<RegisterSelect>,
    /// Leaf values, tree by tree, padded at the end so that any byte is a valid leaf number of the last tree.
    values: Vec<f64>,
}

impl DenseTrees {
    /// Creates empty storage.
    pub(super) fn new() -> Self {
        DenseTrees { pairs: Vec::new(), selects: Vec::new(), values: vec![0.0; MAX_LEAVES] }
    }

    /// Adds a tree with at most [`MAX_LEAVES`] leaves.
    pub(super) fn add(&mut self, nodes: &[FlatNode]) -> DenseTree {
        let (first_pair, first_select) = (self.pairs.len(), self.selects.len());
        let start = self.values.len() - MAX_LEAVES;
        self.values.truncate(start);
        let mut registers = vec![None; nodes.len()];
        let mut next = MAX_LEAVES as u16;
        let mut take_register = || {
            next += 1;
            Some(next - 1)
        };
        for (index, node) in nodes.iter().enumerate() {
            let FlatNode::Split(test, low) = *node else { continue };
            let low = low as usize;
            if let (FlatNode::Leaf(left), FlatNode::Leaf(right)) = (nodes[low], nodes[low + 1]) {
                let first = (self.values.len() - start) as u16;
                self.values.extend([left, right]);
                (registers[low], registers[low + 1]) = (Some(first), Some(first + 1));
                self.pairs.push(LeafPair { test, first: first as u8 });
                registers[index] = take_register();
            }
        }
        // Nodes are visited in reverse order, so that the registers of both children of a split are known when the
        // split is reached.
        for (index, node) in nodes.iter().enumerate().rev() {
            match *node {
                _ if registers[index].is_some() => {}
                FlatNode::Leaf(value) => {
                    registers[index] = Some((self.values.len() - start) as u16);
                    self.values.push(value);
                }
                FlatNode::Split(test, low) => {
                    let of = |child: u32| registers[child as usize].expect("children have registers already");
                    self.selects.push(RegisterSelect { test, low: of(low), high: of(low + 1) });
                    registers[index] = take_register();
                }
            }
        }
        self.values.resize(self.values.len() + MAX_LEAVES, 0.0);
        DenseTree {
            pairs: first_pair..self.pairs.len(),
            selects: first_select..self.selects.len(),
            values: start,
            root: registers[0].expect("the loop ends with the root"),
        }
    }

    /// Adds a tree's values to the score sums of a block.
    #[inline(always)]
    pub(super) fn add_values(
        &self,
        tree: &DenseTree,
        planes: &[Plane],
        registers: &mut Registers,
        sums: &mut [f64; BLOCK],
    ) {
        let registers = &mut registers.0;
        let mut next = MAX_LEAVES;
        for LeafPair { test, first } in &self.pairs[tree.pairs.clone()] {
            let plane = &planes[test.plane as usize];
            let mut selected = [0; BLOCK];
            for row in 0..BLOCK {
                selected[row] = first.wrapping_add(u8::from(plane[row] > test.code));
            }
            registers[next % REGISTERS] = selected;
            next += 1;
        }
        for RegisterSelect { test, low, high } in &self.selects[tree.selects.clone()] {
            let plane = &planes[test.plane as usize];
            let (low, high) =
                (registers[usize::from(*low) % REGISTERS], registers[usize::from(*high) % REGISTERS]);
            let mut selected = [0; BLOCK];
            for row in 0..BLOCK {
                // The selection uses a bit mask, because compilers turn an `if` into conditional loads here.
                let mask = u8::from(plane[row] > test.code).wrapping_neg();
                selected[row] = low[row] ^ ((low[row] ^ high[row]) & mask);
            }
            registers[next % REGISTERS] = selected;
            next += 1;
        }
        let values: &[f64; MAX_LEAVES] =
            self.values[tree.values..].first_chunk().expect("the values are padded by MAX_LEAVES");
        for (sum, leaf) in sums.iter_mut().zip(&registers[usize::from(tree.root) % REGISTERS]) {
            *sum += values[usize::from(*leaf)];
        }
    }
}
