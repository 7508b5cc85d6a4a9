//! How features are grouped for the inner loop.
//!
//! - *Dense*: up to 64 features side by side, a byte each: a row is one line of the cache, and its
//!   blocks of sixteen features are added one after the other, so that their histograms stay in
//!   the first-level cache.
//! - *Joint*: features of few codes share a lane of two bytes, up to 32 lanes a row. Their codes together are one
//!   number, so that one addition serves them all; each one's sums are made of the joint ones afterwards.
//! - *Sparse*: up to 248 features of which most rows have the common code; a row lists the others
//!   only, so work and memory go by entries and not by cells. The common code's sums are what is
//!   left of the node's. Few such features are dense or joint all the same: a list has a price of its own.
//! - *Column*: one feature with as many codes as it has values, for exact splits; or one of the few that would need
//!   a block of their own.
//!
//! A constant feature is in no group. The layout follows from the bins alone and changes no result.

use super::cuts::FeatureBins;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a block of a row, which are features of a dense group.
pub const LANES: usize = 16;
/// Blocks of a row at most.
pub const BLOCKS: usize = 4;
/// Lanes of a block of a joint group.
pub const JOINT_LANES: usize = LANES / 2;
/// Joint codes of a lane at most: two features of 25 bins and a code for missing values. More would leave the
/// first-level cache.
pub const JOINT_CODES: usize = 26 * 26;
/// So few features of a block are quicker as columns.
const FEW_COLUMNS: usize = 3;
/// Features of a sparse group: entries have two bytes.
const SPARSE_LANES: usize = u16::MAX as usize / STRIDE;
/// Cells from one feature of a sparse or dense group to the next. Not a power of two, which would make
/// equal bins of all features compete for the same lines of the cache.
pub const STRIDE: usize = 264;
/// A feature may be sparse from this share of its common code on.
const SPARSE_SHARE: f32 = 0.75;
/// What a row of a sparse group takes beside its entries, measured in entries: where it is, and a loop whose end cannot
/// be guessed.
const SPARSE_ROW: f32 = 16.0;
/// What a lane of a dense row takes, measured in entries.
const DENSE_LANE: f32 = 0.55;

/// Some features that the inner loop treats together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// How their codes are stored.
    pub kind: GroupKind,
    /// Which features.
    pub features: Vec<u32>,
    /// Of a joint group, which of the features share each lane.
    pub lanes: Vec<Range<usize>>,
    /// Where the cells of each feature start in a histogram of the group.
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

    /// Blocks of a row of a dense or joint group.
    pub fn blocks(&self) -> usize {
        self.half_blocks().div_ceil(2)
    }

    /// About how long it takes to add a row, measured in lanes.
    pub fn lanes_per_row(&self) -> usize {
        match self.kind {
            GroupKind::Dense => self.half_blocks() * LANES / 2,
            GroupKind::Joint => self.half_blocks() * JOINT_LANES / 2,
            GroupKind::Sparse => self.features.len() / 2,
            GroupKind::Column(_) => 3,
        }
    }

    /// Halves of blocks that hold codes.
    pub fn half_blocks(&self) -> usize {
        match self.kind {
            GroupKind::Joint => self.lanes.len().div_ceil(JOINT_LANES / 2),
            _ => self.features.len().div_ceil(LANES / 2),
        }
    }
}

/// How a group's codes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// A byte a feature, whole blocks of [`LANES`] a row.
    Dense,
    /// Two bytes for the features of a lane, whole blocks of [`JOINT_LANES`] a row. The first feature's code counts
    /// once, the next one's as often as the first has codes, and so on.
    Joint,
    /// A list of entries a row.
    Sparse,
    /// One column of codes of so many bytes.
    Column(u8),
}

/// Where a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which group.
    pub group: usize,
    /// Which of its features.
    pub lane: usize,
    /// Where to look up single rows, by column of the partition: a dense feature's own column, or
    /// the group's.
    pub column: usize,
}

/// The groups of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// All groups.
    pub groups: Vec<Group>,
    /// Where each feature is; `None` for constant ones.
    pub places: Vec<Option<Place>>,
    /// Features that also have a column of their own, behind the groups: those of dense groups,
    /// since looking up one byte should not fetch a row of 64.
    pub columns: Vec<u32>,
}

impl Layout {
    /// The layout of bins: in groups, some of them sparse or none, or every feature for itself.
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

    /// Groups features to be looked up row by row: each is a byte.
    pub fn dense(features: &[FeatureBins]) -> Self {
        let all: Vec<u32> = varying(features).collect();
        Self::of(dense_groups(&all).collect(), features)
    }

    /// Every feature for itself.
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
                places[*feature as usize] = Some(Place { group, lane, column });
            }
        }
        Layout { groups, places, columns }
    }
}

fn varying(features: &[FeatureBins]) -> impl Iterator<Item = u32> {
    (0..features.len() as u32).filter(|feature| !features[*feature as usize].is_constant())
}

fn dense_groups(features: &[u32]) -> impl Iterator<Item = Group> {
    features.chunks(LANES * BLOCKS).map(|features| Group::new(GroupKind::Dense, features.to_vec()))
}

/// Puts features of few codes together, and says which are left alone: the largest takes the largest that still fits,
/// and so on.
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
