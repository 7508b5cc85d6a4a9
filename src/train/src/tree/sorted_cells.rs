//! Sparse histograms: the sums of a node for each code that occurs, in ascending order of the codes. They are used for
//! features with too many codes for a dense histogram.

use super::cell::Cell;
use super::rows::NodeRows;
use crate::bins::GroupCodes;

/// Collects the rows of a node and returns their sums by code.
pub(super) struct SortedCells<C: Cell> {
    /// One cell per code. All cells are zero between uses.
    cells: Vec<C>,
    keys: Vec<u64>,
    targets: Vec<C::Target>,
    list: Vec<(u32, C)>,
}

impl<C: Cell> SortedCells<C> {
    pub(super) fn new() -> Self {
        SortedCells { cells: Vec::new(), keys: Vec::new(), targets: Vec::new(), list: Vec::new() }
    }

    /// Adds the rows of a node in one partition.
    pub(super) fn collect(&mut self, codes: GroupCodes<'_>, node: NodeRows<'_, C>) {
        match codes {
            GroupCodes::Bytes(codes) => self.extend(|row| u32::from(codes[row]), node),
            GroupCodes::Words(codes) => self.extend(|row| u32::from(codes[row]), node),
            GroupCodes::Longs(codes) => self.extend(|row| codes[row], node),
            _ => unreachable!("only columns have codes wider than a byte"),
        }
    }

    fn extend(&mut self, code: impl Fn(usize) -> u32, node: NodeRows<'_, C>) {
        let first = self.targets.len() as u64;
        let rows = node.entries.iter().map(|entry| entry.row as usize);
        self.keys.extend((first..).zip(rows).map(|(place, row)| u64::from(code(row)) << 32 | place));
        self.targets.extend(node.entries.iter().map(|entry| entry.target));
    }

    /// Returns the sums of the collected rows for a feature with this many codes, and removes the rows.
    pub(super) fn drain(&mut self, codes: usize, count_bits: u32) -> &[(u32, C)] {
        self.list.clear();
        let cell = |key: &u64| C::of(self.targets[*key as u32 as usize], count_bits);
        // A dense histogram is faster than sorting unless there are many more codes than rows.
        if codes <= 4 * self.keys.len() {
            self.cells.resize(codes.max(self.cells.len()), C::default());
            for key in &self.keys {
                self.cells[(key >> 32) as usize].add(cell(key));
            }
            for (code, cell) in self.cells[..codes].iter_mut().enumerate() {
                if cell.sums(count_bits).count > 0 {
                    self.list.push((code as u32, *cell));
                    *cell = C::default();
                }
            }
        } else {
            self.keys.sort_unstable();
            for key in &self.keys {
                let code = (key >> 32) as u32;
                match self.list.last_mut() {
                    Some((last, sum)) if *last == code => sum.add(cell(key)),
                    _ => self.list.push((code, cell(key))),
                }
            }
        }
        self.keys.clear();
        self.targets.clear();
        &self.list
    }
}
