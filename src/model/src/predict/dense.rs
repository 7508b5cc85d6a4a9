//! Trees of up to 256 leaves, from the leaves up: every fork of a tree is decided for all rows of a
//! block, whether a row comes by or not, and picks for each row one of two leaf numbers. That is a few
//! instructions for 16 to 64 rows a fork, without a branch and without waiting for memory, and takes as
//! long for a lopsided tree as for a balanced one.

use super::layout::Place;
use super::planes::{BLOCK, Plane, Test};
use std::ops::Range;

/// Leaves are numbered by bytes.
pub const MOST_LEAVES: usize = 256;

/// Leaf numbers of a block's rows: first the constants, then one for every fork of the tree at hand.
pub struct Registers(Box<[[u8; BLOCK]; REGISTERS]>);

/// Every leaf, every fork (one less), rounded up so that a mask keeps within.
const REGISTERS: usize = 2 * MOST_LEAVES;

impl Registers {
    /// The constants, and room.
    pub fn new() -> Self {
        let all: Vec<_> = (0..REGISTERS).map(|number| [number as u8; BLOCK]).collect();
        Registers(all.try_into().expect("as many registers as were asked for"))
    }
}

/// A fork whose two ways end in leaves with numbers that follow each other.
#[derive(Debug)]
struct Pair {
    test: Test,
    first: u8,
}

/// Any other fork: it picks from one of two registers.
#[derive(Debug)]
struct Pick {
    test: Test,
    low: u16,
    high: u16,
}

/// A tree among [`DenseTrees`].
#[derive(Debug)]
pub struct DenseTree {
    pairs: Range<usize>,
    picks: Range<usize>,
    values: usize,
    /// The register of the outcome.
    root: u16,
}

/// Trees of up to [`MOST_LEAVES`] leaves, side by side.
#[derive(Debug)]
pub struct DenseTrees {
    pairs: Vec<Pair>,
    picks: Vec<Pick>,
    /// The leaves' values, tree after tree, and enough behind them that any byte is in bounds.
    values: Vec<f64>,
}

impl DenseTrees {
    /// None.
    pub fn new() -> Self {
        DenseTrees { pairs: Vec::new(), picks: Vec::new(), values: vec![0.0; MOST_LEAVES] }
    }

    /// Adds a tree, which has at most [`MOST_LEAVES`] leaves.
    pub fn add(&mut self, places: &[Place]) -> DenseTree {
        let (first_pair, first_pick) = (self.pairs.len(), self.picks.len());
        let start = self.values.len() - MOST_LEAVES;
        self.values.truncate(start);
        let mut registers = vec![None; places.len()];
        let mut next = MOST_LEAVES as u16;
        let mut take_register = || {
            next += 1;
            Some(next - 1)
        };
        for (place, fork) in places.iter().enumerate() {
            let Place::Fork(test, low) = *fork else { continue };
            let low = low as usize;
            if let (Place::Leaf(left), Place::Leaf(right)) = (places[low], places[low + 1]) {
                let first = (self.values.len() - start) as u16;
                self.values.extend([left, right]);
                (registers[low], registers[low + 1]) = (Some(first), Some(first + 1));
                self.pairs.push(Pair { test, first: first as u8 });
                registers[place] = take_register();
            }
        }
        // From the last to the first, so that what a fork picks from is there before it.
        for (place, what) in places.iter().enumerate().rev() {
            match *what {
                _ if registers[place].is_some() => {}
                Place::Leaf(value) => {
                    registers[place] = Some((self.values.len() - start) as u16);
                    self.values.push(value);
                }
                Place::Fork(test, low) => {
                    let of = |place: u32| registers[place as usize].expect("later places come first");
                    self.picks.push(Pick { test, low: of(low), high: of(low + 1) });
                    registers[place] = take_register();
                }
            }
        }
        self.values.resize(self.values.len() + MOST_LEAVES, 0.0);
        DenseTree {
            pairs: first_pair..self.pairs.len(),
            picks: first_pick..self.picks.len(),
            values: start,
            root: registers[0].expect("the first place was the last to be numbered"),
        }
    }

    /// Adds a tree's values to the sums of a block's rows.
    #[inline(always)]
    pub fn add_values(
        &self,
        tree: &DenseTree,
        planes: &[Plane],
        registers: &mut Registers,
        sums: &mut [f64; BLOCK],
    ) {
        let registers = &mut registers.0;
        let mut next = MOST_LEAVES;
        for Pair { test, first } in &self.pairs[tree.pairs.clone()] {
            let plane = &planes[test.plane as usize];
            let mut picked = [0; BLOCK];
            for row in 0..BLOCK {
                picked[row] = first.wrapping_add(u8::from(plane[row] > test.code));
            }
            registers[next % REGISTERS] = picked;
            next += 1;
        }
        for Pick { test, low, high } in &self.picks[tree.picks.clone()] {
            let plane = &planes[test.plane as usize];
            let (low, high) =
                (registers[usize::from(*low) % REGISTERS], registers[usize::from(*high) % REGISTERS]);
            let mut picked = [0; BLOCK];
            for row in 0..BLOCK {
                // Spelt out, because compilers take `if` here for a choice of what to load.
                let mask = u8::from(plane[row] > test.code).wrapping_neg();
                picked[row] = low[row] ^ ((low[row] ^ high[row]) & mask);
            }
            registers[next % REGISTERS] = picked;
            next += 1;
        }
        let values: &[f64; MOST_LEAVES] =
            self.values[tree.values..].first_chunk().expect("more values follow the last tree's");
        for (sum, leaf) in sums.iter_mut().zip(&registers[usize::from(tree.root) % REGISTERS]) {
            *sum += values[usize::from(*leaf)];
        }
    }
}
