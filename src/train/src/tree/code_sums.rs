//! Sums rows of a node by code for one feature, at a cost that depends on the rows and hardly on the number of codes.

use super::cell::Cell;
use super::rows::NodeRows;
use crate::bins::GroupCodes;

/// Sums of some rows for each code that occurs.
pub(super) struct CodeSums<C: Cell> {
    /// One cell per code. All cells are zero between uses.
    cells: Vec<C>,
    /// One bit per code: whether it occurs.
    marks: Vec<u64>,
    list: Vec<(u32, C)>,
}

impl<C: Cell> CodeSums<C> {
    /// Creates sums without any rows.
    pub(super) fn new() -> Self {
        CodeSums { cells: Vec::new(), marks: Vec::new(), list: Vec::new() }
    }

    /// Adds rows of a node in one partition, for a feature with this many codes.
    pub(super) fn add(
        &mut self,
        count: usize,
        codes: GroupCodes<'_>,
        node: NodeRows<'_, C>,
        count_bits: u32,
    ) {
        if self.cells.len() < count {
            self.cells.resize(count, C::default());
            self.marks.resize(count.div_ceil(64), 0);
        }
        match codes {
            GroupCodes::Bytes(codes) => self.add_by(|row| usize::from(codes[row]), node, count_bits),
            GroupCodes::Words(codes) => self.add_by(|row| usize::from(codes[row]), node, count_bits),
            GroupCodes::Longs(codes) => self.add_by(|row| codes[row] as usize, node, count_bits),
            _ => unreachable!("the features of blocks are summed together"),
        }
    }

    fn add_by(&mut self, code: impl Fn(usize) -> usize, node: NodeRows<'_, C>, count_bits: u32) {
        for entry in node.entries {
            let code = code(entry.row as usize);
            self.cells[code].add(C::of(entry.target, count_bits));
            self.marks[code / 64] |= 1 << (code % 64);
        }
    }

    /// Returns the sums of the codes that occur, in ascending order, and resets them.
    pub(super) fn drain(&mut self) -> &[(u32, C)] {
        self.list.clear();
        for (place, marks) in self.marks.iter_mut().enumerate() {
            let mut left = std::mem::take(marks);
            while left != 0 {
                let code = 64 * place + left.trailing_zeros() as usize;
                left &= left - 1;
                self.list.push((code as u32, std::mem::take(&mut self.cells[code])));
            }
        }
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::rows::RowEntry;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn codes_are_summed_in_ascending_order(
            nodes in prop::collection::vec(prop::collection::vec((0u16..700, -50i32..50), 0..60), 1..5),
        ) {
            let mut sums = CodeSums::<i64>::new();
            for rows in nodes {
                let codes: Vec<u16> = rows.iter().map(|(code, _)| *code).collect();
                let entries: Vec<RowEntry<i32>> =
                    (0..).zip(&rows).map(|(row, (_, target))| RowEntry { row, target: *target }).collect();
                let (first, second) = entries.split_at(entries.len() / 2);
                for entries in [first, second] {
                    sums.add(700, GroupCodes::Words(&codes), NodeRows { entries, follow: false }, 20);
                }
                let mut naive: BTreeMap<u32, i64> = BTreeMap::new();
                rows.iter().for_each(|(code, target)| naive.entry((*code).into()).or_default().add(i64::of(*target, 20)));
                prop_assert_eq!(sums.drain(), naive.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
