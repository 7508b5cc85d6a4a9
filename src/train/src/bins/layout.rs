//! Grouping of features for the histogram loop.
//!
//! - *Dense*: up to 64 features, one byte each: a row is one cache line, and its blocks of sixteen features are added
//!   one after the other, so that their histograms stay in the L1 cache.
//! - *Joint*: features with few codes share a lane of two bytes, up to 32 lanes per row. Their combined codes are one
//!   number, so that one addition serves them all; the sums of each feature are marginals of the joint sums.
//! - *Sparse*: up to 248 features whose common code most rows have; a row lists the other codes only, so time and memory
//!   are proportional to the entries. The sums of the common code are the node's total minus the rest. If there are few
//!   such features, they are dense or joint instead: a list has overhead.
//! - *Column*: one feature with one code per value, for exact splits; or one of few features that would otherwise need
//!   their own block.
//!
//! Constant features are in no group. The layout depends on the bins only and does not affect results.

use super::cuts::FeatureBins;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes per block of a row: the features of a block in a dense group.
pub const LANES: usize = 16;
/// Maximum blocks per row.
pub const BLOCKS: usize = 4;
/// Lanes per block of a joint group.
pub const JOINT_LANES: usize = LANES / 2;
/// Maximum joint codes per lane: two features of 25 bins and a missing code. More would not fit the L1 cache.
pub const JOINT_CODES: usize = 26 * 26;
/// Up to this many features of a block are faster as columns.
const FEW_COLUMNS: usize = 3;
/// Maximum features of a sparse group: entries have two bytes.
const SPARSE_LANES: usize = u16::MAX as usize / STRIDE;
/// Cells between the starts of two features of a sparse or dense group. Not a power of two, to avoid cache conflicts
/// between equal bins of different features.
pub const STRIDE: usize = 264;
/// Minimum fraction of the common code of a sparse feature.
const SPARSE_SHARE: f32 = 0.75;
/// Overhead of a row of a sparse group, in entries: its offset, and a loop whose end is mispredicted.
const SPARSE_ROW: f32 = 16.0;
/// Cost of a lane of a dense row, in entries.
const DENSE_LANE: f32 = 0.55;

/// Features that the histogram loop processes together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Storage of their codes.
    pub kind: GroupKind,
    /// The features.
    pub features: Vec<u32>,
    /// Joint groups: the features of each lane.
    pub lanes: Vec<Range<usize>>,
    /// The first cell of each feature in a histogram of the group.
    pub starts: Vec<usize>,
}

impl Group {
    fn new(kind: GroupKind, features: Vec<u32>) -> Self {
        Group { kind, features, lanes: Vec::new(), starts: Vec::new() }
    }

    fn joint(lanes: &[Vec<u32>]) -> Self {
        let mut group = Group::new(GroupKind::Joint, Vec::new());
        for lane in lanes {
            let first = group.features.len();
            group.features.extend(lane);
            group.lanes.push(first..group.features.len());
        }
        group
    }

    /// Blocks per row of a dense or joint group.
    pub fn blocks(&self) -> usize {
        self.half_blocks().div_ceil(2)
    }

    /// Approximate cost of adding a row, in lanes.
    pub fn lanes_per_row(&self) -> usize {
        match self.kind {
            GroupKind::Dense => self.half_blocks() * LANES / 2,
            GroupKind::Joint => self.half_blocks() * JOINT_LANES / 2,
            GroupKind::Sparse => self.features.len() / 2,
            GroupKind::Column(_) => 3,
        }
    }

    /// Half blocks with codes.
    pub fn half_blocks(&self) -> usize {
        match self.kind {
            GroupKind::Joint => self.lanes.len().div_ceil(JOINT_LANES / 2),
            _ => self.features.len().div_ceil(LANES / 2),
        }
    }
}

/// Storage of the codes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// One byte per feature, whole blocks of [`LANES`] per row.
    Dense,
    /// Two bytes per lane, whole blocks of [`JOINT_LANES`] per row. Joint codes are mixed-radix numbers with the code of
    /// the first feature as the least significant digit.
    Joint,
    /// One list of entries per row.
    Sparse,
    /// One column of codes of this many bytes.
    Column(u8),
}

/// Location of a feature in the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeaturePlace {
    /// The group.
    pub group: usize,
    /// Index within the group.
    pub lane: usize,
    /// The column of the partition for looking up single rows: that of a dense or joint feature, or that of the group.
    pub column: usize,
}

/// The groups of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct BinLayout {
    /// All groups.
    pub groups: Vec<Group>,
    /// Location of each feature; `None` for constant ones.
    pub places: Vec<Option<FeaturePlace>>,
    /// Features that also have their own column, after the groups: those of dense and joint groups, because looking up
    /// one byte should not load a row of 64.
    pub columns: Vec<u32>,
}

impl BinLayout {
    /// The layout of bins: in groups, with or without sparse ones, or in columns.
    pub fn of_kind(grouped: bool, sparse: bool, features: &[FeatureBins]) -> Self {
        match (grouped, sparse) {
            (true, true) => Self::grouped(features),
            (true, false) => Self::dense(features),
            (false, _) => Self::columns(features),
        }
    }

    /// Groups features for histograms.
    pub fn grouped(features: &[FeatureBins]) -> Self {
        let share = |feature: &u32| features[*feature as usize].common_share;
        let (sparse, mut others): (Vec<u32>, Vec<u32>) =
            varying(features).partition(|feature| share(feature) >= SPARSE_SHARE);
        let (sparse, too_few): (Vec<&[u32]>, Vec<&[u32]>) = sparse.chunks(SPARSE_LANES).partition(|chunk| {
            let entries: f32 = chunk.iter().map(|feature| 1.0 - share(feature)).sum();
            SPARSE_ROW + entries < DENSE_LANE * chunk.len() as f32
        });
        others.extend(too_few.concat());
        others.sort_unstable();
        let (mut joint, mut dense) = share_lanes(&others, features);
        let few = joint[joint.len() - joint.len() % JOINT_LANES..].concat();
        if few.len() <= FEW_COLUMNS {
            joint.truncate(joint.len() - joint.len() % JOINT_LANES);
            dense.extend(few);
            dense.sort_unstable();
        }
        let few = if dense.len() % LANES <= FEW_COLUMNS { dense.len() % LANES } else { 0 };
        let columns = dense.split_off(dense.len() - few);
        let mut groups: Vec<Group> = joint.chunks(JOINT_LANES * BLOCKS).map(Group::joint).collect();
        groups.extend(dense_groups(&dense));
        groups.extend(columns.into_iter().map(|feature| Group::new(GroupKind::Column(1), vec![feature])));
        groups.extend(sparse.into_iter().map(|features| Group::new(GroupKind::Sparse, features.to_vec())));
        Self::of(groups, features)
    }

    /// Groups features for lookups by row: one byte each.
    pub fn dense(features: &[FeatureBins]) -> Self {
        let all: Vec<u32> = varying(features).collect();
        Self::of(dense_groups(&all).collect(), features)
    }

    /// One column per feature.
    pub fn columns(features: &[FeatureBins]) -> Self {
        let varying = features.iter().enumerate().filter(|(_, bins)| !bins.is_constant());
        let groups = varying.map(|(feature, bins)| {
            let bytes = match bins.codes() {
                0..=0x100 => 1,
                0x101..=0x1_0000 => 2,
                _ => 4,
            };
            Group::new(GroupKind::Column(bytes), vec![feature as u32])
        });
        Self::of(groups.collect(), features)
    }

    fn of(mut groups: Vec<Group>, features: &[FeatureBins]) -> Self {
        let mut places = vec![None; features.len()];
        let mut columns = Vec::new();
        for group in &mut groups {
            let mut start = 0;
            for feature in &group.features {
                group.starts.push(start);
                start += match group.kind {
                    GroupKind::Dense | GroupKind::Sparse => STRIDE,
                    GroupKind::Joint | GroupKind::Column(_) => features[*feature as usize].codes(),
                };
            }
        }
        for (group, members) in groups.iter().enumerate() {
            for (lane, feature) in members.features.iter().enumerate() {
                let column = match members.kind {
                    GroupKind::Dense | GroupKind::Joint => {
                        columns.push(*feature);
                        groups.len() + columns.len() - 1
                    }
                    _ => group,
                };
                places[*feature as usize] = Some(FeaturePlace { group, lane, column });
            }
        }
        BinLayout { groups, places, columns }
    }
}

fn varying(features: &[FeatureBins]) -> impl Iterator<Item = u32> {
    (0..features.len() as u32).filter(|feature| !features[*feature as usize].is_constant())
}

fn dense_groups(features: &[u32]) -> impl Iterator<Item = Group> {
    features.chunks(LANES * BLOCKS).map(|features| Group::new(GroupKind::Dense, features.to_vec()))
}

/// Combines features with few codes into lanes, greedily from the largest; also returns the features that share none.
fn share_lanes(features: &[u32], bins: &[FeatureBins]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let codes = |feature: u32| bins[feature as usize].codes();
    let most = features.iter().map(|feature| codes(*feature)).max().unwrap_or(0);
    let mut by_codes: Vec<VecDeque<u32>> = vec![VecDeque::new(); most + 1];
    features.iter().for_each(|feature| by_codes[codes(*feature)].push_back(*feature));
    let (mut shared, mut alone) = (Vec::new(), Vec::new());
    for most in (0..by_codes.len()).rev() {
        while let Some(first) = by_codes[most].pop_front() {
            let (mut lane, mut room) = (vec![first], JOINT_CODES / most);
            while let Some(next) = by_codes[..=room.min(most)].iter_mut().rev().find_map(VecDeque::pop_front)
            {
                room /= codes(next);
                lane.push(next);
            }
            if lane.len() > 1 { shared.push(lane) } else { alone.push(first) }
        }
    }
    alone.sort_unstable();
    (shared, alone)
}
