//! Encodes and decodes the histograms that the processes of a cluster exchange. Each non-empty cell is written as its
//! count, gradient and (if weighted) weight, in variable-length integers. Encoded blocks of cells can be added up
//! without knowing the bins.

use crate::bins::Binning;
use crate::tree::{Cell, GradientSums, NodeHistogram, cells_of_group};
use planetree_base::error::Result;
use planetree_base::wire::{WireReader, WireWriter, malformed};
use std::ops::Range;

/// A histogram cell with a wire format.
pub trait WireCell: Cell {
    /// Whether cells have a weight besides the count.
    const WEIGHTED: bool;
}

impl WireCell for i64 {
    const WEIGHTED: bool = false;
}

impl WireCell for [i64; 2] {
    const WEIGHTED: bool = true;
}

/// Writes one cell.
fn write_sums(sums: GradientSums, weighted: bool, writer: &mut WireWriter) {
    writer.count(sums.count as u64);
    writer.signed(sums.gradient);
    if weighted {
        writer.signed(sums.weight);
    }
}

/// Reads one cell.
fn read_sums(weighted: bool, reader: &mut WireReader<'_>) -> Result<GradientSums> {
    let count = reader.count()? as i64;
    let gradient = reader.signed()?;
    let weight = if weighted { reader.signed()? } else { count };
    Ok(GradientSums { gradient, weight, count })
}

/// The total and the histogram of a node.
pub type NodeSums<C> = (C, NodeHistogram<C>);

/// An encoded block of cells.
pub struct CellBlock {
    /// The number of the block, starting at 0.
    pub number: usize,
    /// Total number of blocks.
    pub of: usize,
    /// The encoded cells.
    pub bytes: Vec<u8>,
}

/// Encodes the sums of nodes, for some feature groups, as blocks with about the same number of cells. Each block
/// covers all nodes and can be added to the block with the same number from other executors.
pub(super) fn write_blocks<C: WireCell>(
    nodes: &[NodeSums<C>],
    groups: &[usize],
    count_bits: u32,
    blocks: usize,
) -> Vec<Vec<u8>> {
    let cells = nodes.first().map_or(0, |(_, histogram)| cells_in(histogram, groups));
    let block = |block: usize| {
        let range = block_range(cells, block, blocks);
        let mut writer = WireWriter::default();
        writer.count(nodes.len() as u64);
        writer.count(range.len() as u64);
        for (total, histogram) in nodes {
            write_sums(total.sums(count_bits), C::WEIGHTED, &mut writer);
            let pieces = pieces_of(histogram, groups, &range).into_iter();
            let cells = pieces.flat_map(|(group, piece)| &histogram.groups[group][piece]);
            write_list(cells.map(|cell| cell.sums(count_bits)), C::WEIGHTED, &mut writer);
        }
        writer.into_bytes()
    };
    (0..blocks).map(block).collect()
}

/// Adds an encoded block to the sums of nodes. The histograms must have all their cells, as created by [`empty`].
pub fn add_block<C: WireCell>(
    nodes: &mut [NodeSums<C>],
    groups: &[usize],
    count_bits: u32,
    block: &CellBlock,
) -> Result<()> {
    let cells = nodes.first().map_or(0, |(_, histogram)| cells_in(histogram, groups));
    let range = block_range(cells, block.number, block.of);
    let mut reader = WireReader::new(&block.bytes);
    if (reader.count()?, reader.count()?) != (nodes.len() as u64, range.len() as u64) {
        return Err(malformed());
    }
    for (total, histogram) in nodes {
        let sums = read_sums(C::WEIGHTED, &mut reader)?;
        if block.number == 0 {
            total.add(C::of_sums(sums, count_bits));
        }
        let pieces = pieces_of(histogram, groups, &range);
        let (mut at, mut passed) = (0, 0);
        read_list(range.len(), C::WEIGHTED, &mut reader, |place, sums| {
            while place >= passed + pieces[at].1.len() {
                passed += pieces[at].1.len();
                at += 1;
            }
            let (group, piece) = &pieces[at];
            histogram.groups[*group][piece.start + place - passed].add(C::of_sums(sums, count_bits));
        })?;
    }
    if reader.is_empty() { Ok(()) } else { Err(malformed()) }
}

/// Maximum number of cells per block. It prevents a damaged count from exhausting the memory.
const MOST_CELLS: usize = 1 << 26;

/// Adds up blocks with the same number from several executors.
pub(super) fn merge_blocks(blocks: &[&[u8]], weighted: bool) -> Result<Vec<u8>> {
    let mut readers: Vec<WireReader<'_>> = blocks.iter().map(|bytes| WireReader::new(bytes)).collect();
    let mut shape = None;
    for reader in &mut readers {
        let this = (reader.count()?, reader.length(0)?);
        if *shape.get_or_insert(this) != this || this.1 > MOST_CELLS {
            return Err(malformed());
        }
    }
    let (nodes, cells) = shape.unwrap_or_default();
    let mut writer = WireWriter::default();
    writer.count(nodes);
    writer.count(cells as u64);
    let mut all = vec![GradientSums::default(); cells];
    for _ in 0..nodes {
        let mut total = GradientSums::default();
        for reader in &mut readers {
            total = total + read_sums(weighted, reader)?;
            read_list(cells, weighted, reader, |place, sums| all[place] = all[place] + sums)?;
        }
        write_sums(total, weighted, &mut writer);
        write_list(all.iter().copied(), weighted, &mut writer);
        all.fill(GradientSums::default());
    }
    if readers.iter().all(WireReader::is_empty) { Ok(writer.into_bytes()) } else { Err(malformed()) }
}

/// Writes cells. Runs of empty cells are written as their length.
fn write_list(cells: impl Iterator<Item = GradientSums>, weighted: bool, writer: &mut WireWriter) {
    let mut skipped = 0;
    for sums in cells {
        if sums.count == 0 {
            skipped += 1;
        } else {
            writer.count(skipped);
            write_sums(sums, weighted, writer);
            skipped = 0;
        }
    }
    writer.count(skipped);
}

/// Reads the output of [`write_list`] and passes each non-empty cell to `found`.
fn read_list(
    cells: usize,
    weighted: bool,
    reader: &mut WireReader<'_>,
    mut found: impl FnMut(usize, GradientSums),
) -> Result<()> {
    let mut place = reader.count()? as usize;
    while place < cells {
        found(place, read_sums(weighted, reader)?);
        place = (place + 1).saturating_add(reader.count()? as usize);
    }
    if place == cells { Ok(()) } else { Err(malformed()) }
}

fn cells_in<C>(histogram: &NodeHistogram<C>, groups: &[usize]) -> usize {
    groups.iter().map(|group| histogram.groups[*group].len()).sum()
}

/// Returns the range of cells in a block. Cells are numbered across all groups.
fn block_range(cells: usize, block: usize, blocks: usize) -> Range<usize> {
    cells * block / blocks..cells * (block + 1) / blocks
}

/// Splits a range of cells, which are numbered across all groups, into one range per group.
fn pieces_of<C>(
    histogram: &NodeHistogram<C>,
    groups: &[usize],
    range: &Range<usize>,
) -> Vec<(usize, Range<usize>)> {
    let mut start = 0;
    let mut pieces = Vec::new();
    for group in groups {
        let cells = histogram.groups[*group].len();
        let within = |bound: usize| bound.clamp(start, start + cells) - start;
        pieces.push((*group, within(range.start)..within(range.end)));
        start += cells;
    }
    pieces.retain(|(_, piece)| !piece.is_empty());
    pieces
}

/// Creates a histogram with all cells of the given groups, all of them empty.
pub fn empty<C: Cell>(binning: &Binning, groups: &[usize]) -> NodeHistogram<C> {
    let mut cells = vec![Vec::new(); binning.layout.groups.len()];
    groups.iter().for_each(|group| cells[*group] = vec![C::default(); cells_of_group(binning, *group)]);
    NodeHistogram { groups: cells }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUPS: [usize; 2] = [1, 2];

    fn nothing<C: WireCell>() -> Vec<NodeSums<C>> {
        let groups = vec![Vec::new(), vec![C::default(); 40], vec![C::default(); 7], vec![C::default(); 3]];
        vec![(C::default(), NodeHistogram { groups }); 2]
    }

    fn of_rows<C: WireCell>(rows: &[(usize, i32, i32)], bits: u32) -> Vec<NodeSums<C>> {
        let mut nodes = nothing::<C>();
        for (place, gradient, weight) in rows {
            let (total, histogram) = &mut nodes[place % 2];
            let cell = C::of(C::target(*gradient, *weight), bits);
            total.add(cell);
            for group in GROUPS {
                let cells = &mut histogram.groups[group];
                let place = place * 7 % cells.len();
                cells[place].add(cell);
            }
        }
        nodes
    }

    /// Returns all cells, followed by the totals.
    fn flat<C: WireCell>(nodes: &[NodeSums<C>]) -> Vec<C> {
        let cells = nodes.iter().flat_map(|(_, histogram)| histogram.groups.iter().flatten());
        cells.chain(nodes.iter().map(|(total, _)| total)).copied().collect()
    }

    fn returns<C: WireCell + PartialEq + std::fmt::Debug>(shares: &[Vec<(usize, i32, i32)>], blocks: usize) {
        let bits = 20;
        let expected = of_rows::<C>(&shares.concat(), bits);
        let sent: Vec<Vec<Vec<u8>>> = shares
            .iter()
            .map(|rows| write_blocks(&of_rows::<C>(rows, bits), &GROUPS, bits, blocks))
            .collect();
        // Blocks are added one by one, or merged first and then added.
        let (mut added, mut merged) = (nothing::<C>(), nothing::<C>());
        for block in 0..blocks {
            let of_shares: Vec<&[u8]> = sent.iter().map(|share| &share[block][..]).collect();
            let received = |bytes: &[u8]| CellBlock { number: block, of: blocks, bytes: bytes.to_vec() };
            for bytes in &of_shares {
                add_block(&mut added, &GROUPS, bits, &received(bytes)).unwrap();
            }
            let sum = merge_blocks(&of_shares, C::WEIGHTED).unwrap();
            add_block(&mut merged, &GROUPS, bits, &received(&sum)).unwrap();
            for cut in 0..sum.len() {
                assert!(add_block(&mut nothing::<C>(), &GROUPS, bits, &received(&sum[..cut])).is_err());
                assert!(merge_blocks(&[&sum, &sum[..cut]], C::WEIGHTED).is_err());
            }
        }
        assert_eq!(flat(&added), flat(&expected));
        assert_eq!(flat(&merged), flat(&expected));
    }

    proptest! {
        #[test]
        fn histograms_add_up_after_a_round_trip(
            shares in prop::collection::vec(
                prop::collection::vec((0usize..80, -8_000_000i32..8_000_000, 0i32..1000), 0..30), 1..4),
            blocks in 1usize..6,
        ) {
            returns::<i64>(&shares, blocks);
            returns::<[i64; 2]>(&shares, blocks);
        }
    }
}
