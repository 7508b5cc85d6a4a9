//! Histograms on their way: gradient, count and, where rows have one, weight of each cell that is not empty. Empty
//! cells are passed over, numbers take as many bytes as they need.

use crate::bins::Binning;
use crate::error::Result;
use crate::tree::{Cell, NodeHistogram, Sums, cells_of_group};
use crate::wire::{Reader, Writer, cut_short};

/// A cell that can travel.
pub trait WireCell: Cell {
    /// Whether it has a weight beside the count.
    const WEIGHTED: bool;

    /// A cell of given sums.
    fn of_sums(sums: Sums, count_bits: u32) -> Self;
}

impl WireCell for i64 {
    const WEIGHTED: bool = false;

    fn of_sums(sums: Sums, count_bits: u32) -> i64 {
        (sums.gradient << count_bits).wrapping_add(sums.count)
    }
}

impl WireCell for [i64; 2] {
    const WEIGHTED: bool = true;

    fn of_sums(sums: Sums, count_bits: u32) -> [i64; 2] {
        [(sums.gradient << count_bits).wrapping_add(sums.count), sums.weight]
    }
}

/// Writes one cell.
pub fn write_cell<C: WireCell>(cell: C, count_bits: u32, writer: &mut Writer) {
    let sums = cell.sums(count_bits);
    writer.count(sums.count as u64);
    writer.signed(sums.gradient);
    if C::WEIGHTED {
        writer.signed(sums.weight);
    }
}

/// Reads one cell.
pub fn read_cell<C: WireCell>(count_bits: u32, reader: &mut Reader<'_>) -> Result<C> {
    let count = reader.count()? as i64;
    let gradient = reader.signed()?;
    let weight = if C::WEIGHTED { reader.signed()? } else { count };
    Ok(C::of_sums(Sums { gradient, weight, count }, count_bits))
}

/// Writes the histogram of a node: some groups.
pub fn write_histogram<C: WireCell>(
    histogram: &NodeHistogram<C>,
    groups: &[usize],
    count_bits: u32,
    writer: &mut Writer,
) {
    for group in groups {
        let mut skipped = 0;
        for cell in &histogram.groups[*group] {
            if cell.sums(count_bits).count == 0 {
                skipped += 1;
            } else {
                writer.count(skipped);
                write_cell(*cell, count_bits, writer);
                skipped = 0;
            }
        }
        writer.count(skipped);
    }
}

/// Adds a histogram that was written to one that has all its cells; see [`empty`].
pub fn add_histogram<C: WireCell>(
    histogram: &mut NodeHistogram<C>,
    groups: &[usize],
    count_bits: u32,
    reader: &mut Reader<'_>,
) -> Result<()> {
    for group in groups {
        let cells = &mut histogram.groups[*group];
        let mut place = reader.count()? as usize;
        while place < cells.len() {
            cells[place].add(read_cell(count_bits, reader)?);
            place = (place + 1).saturating_add(reader.count()? as usize);
        }
        if place != cells.len() {
            return Err(cut_short());
        }
    }
    Ok(())
}

/// A histogram of nothing.
pub fn empty<C: Cell>(binning: &Binning, groups: &[usize]) -> NodeHistogram<C> {
    let mut cells = vec![Vec::new(); binning.layout.groups.len()];
    groups.iter().for_each(|group| cells[*group] = vec![C::default(); cells_of_group(binning, *group)]);
    NodeHistogram { groups: cells }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn returns<C: WireCell + PartialEq + std::fmt::Debug>(rows: &[(usize, i32, i32)]) {
        let bits = 20;
        let mut sent =
            NodeHistogram { groups: vec![Vec::new(), vec![C::default(); 40], vec![C::default(); 7]] };
        for (place, gradient, weight) in rows {
            let group = &mut sent.groups[1 + place % 2];
            let cell = place % group.len();
            group[cell].add(C::of(C::target(*gradient, *weight), bits));
        }
        let mut writer = Writer::default();
        write_histogram(&sent, &[1, 2], bits, &mut writer);
        let bytes = writer.into_bytes();
        let mut sum =
            NodeHistogram { groups: vec![Vec::new(), vec![C::default(); 40], vec![C::default(); 7]] };
        for times in 1..3 {
            let mut reader = Reader::new(&bytes);
            add_histogram(&mut sum, &[1, 2], bits, &mut reader).unwrap();
            assert!(reader.is_empty());
            for (sum, sent) in sum.groups.iter().flatten().zip(sent.groups.iter().flatten()) {
                let mut expected = C::default();
                (0..times).for_each(|_| expected.add(*sent));
                assert_eq!(*sum, expected);
            }
        }
        for cut in 0..bytes.len() {
            let mut sum =
                NodeHistogram { groups: vec![Vec::new(), vec![C::default(); 40], vec![C::default(); 7]] };
            assert!(add_histogram(&mut sum, &[1, 2], bits, &mut Reader::new(&bytes[..cut])).is_err());
        }
    }

    proptest! {
        #[test]
        fn histograms_add_up_after_their_journey(
            rows in prop::collection::vec((0usize..80, -8_000_000i32..8_000_000, 0i32..1000), 0..60),
        ) {
            returns::<i64>(&rows);
            returns::<[i64; 2]>(&rows);
        }
    }
}
