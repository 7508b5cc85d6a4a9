//! Decides how the codes (bin numbers) of features are laid out in memory. Features are combined into groups, for
//! which the loop that builds histograms is fast. A *lane* is a slot in a row of a group. It holds the code of one
//! feature or, in joint groups, the codes of several features. There are four kinds of groups:
//!
//! - *Dense* groups hold up to 64 features with one byte each, so a row is one cache line. The loop adds one block of
//!   16 features after the other, so that their histograms stay in the L1 cache.
//! - *Joint* groups hold features with few codes. Several features share a lane of two bytes, and a row has up to 32
//!   lanes. The codes of a lane's features are combined into one number, so that one addition serves all of them. The
//!   sums of a single feature are marginals of the joint sums.
//! - *Sparse* groups hold up to 248 features for which most rows have the same, common code. A row lists only its
//!   other codes, so time and memory are proportional to the number of entries. The sums for the common code are the
//!   node's total minus the sums for the other codes. The lists have an overhead per row, so if there are only a few
//!   such features, they go to dense or joint groups instead.
//! - *Column* groups hold one feature each. They are used if every distinct value has its own code, as for exact
//!   splits, and for up to three leftover features, which would not fill a block of 16.
//!
//! Constant features belong to no group. The layout depends only on the bins and does not affect results.

use super::cuts::FeatureBins;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of bytes per block. Rows of dense and joint groups consist of whole blocks. In a dense group, a block holds
/// the codes of this many features.
pub(crate) const LANES: usize = 16;
/// Maximum number of blocks per row.
pub(crate) const BLOCKS: usize = 4;
/// Number of lanes per block of a joint group.
pub(crate) const JOINT_LANES: usize = LANES / 2;
/// Maximum number of joint codes per lane: enough for two features with 25 bins and a missing code each. More would not
/// fit in the L1 cache.
pub(crate) const JOINT_CODES: usize = 26 * 26;
/// Up to this many leftover features are stored as columns, which is faster than a mostly empty block.
const FEW_COLUMNS: usize = 3;
/// Maximum number of features in a sparse group, so that entries fit in two bytes.
const SPARSE_LANES: usize = u16::MAX as usize / STRIDE;
/// Number of histogram cells from the start of one feature to the start of the next, in dense and sparse groups. It is
/// not a power of two, to avoid cache conflicts between equal bins of different features.
pub(crate) const STRIDE: usize = 264;
/// Minimum fraction of rows that must have the common code for a feature to be stored sparsely.
const SPARSE_SHARE: f32 = 0.75;
/// Overhead per row of a sparse group, measured in entries. It covers reading the row's offset and mispredicting the
/// end of the loop.
const SPARSE_ROW: f32 = 16.0;
/// Cost per lane of a dense row, measured in entries of a sparse row.
const DENSE_LANE: f32 = 0.55;

/// Features that the histogram loop processes together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// How the codes are stored.
    pub kind: GroupKind,
    /// Indices of the features.
    pub features: Vec<u32>,
    /// The features of each lane, as ranges of `features`; empty unless the group is joint.
    pub lanes: Vec<Range<usize>>,
    /// Index of each feature's first cell in the group's histogram.
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

    /// Returns the number of blocks per row of a dense or joint group.
    pub fn blocks(&self) -> usize {
        self.half_blocks().div_ceil(2)
    }

    /// Estimates the cost of adding a row to a histogram, in lanes.
    pub fn lanes_per_row(&self) -> usize {
        match self.kind {
            GroupKind::Dense => self.half_blocks() * LANES / 2,
            GroupKind::Joint => self.half_blocks() * JOINT_LANES / 2,
            GroupKind::Sparse => self.features.len() / 2,
            GroupKind::Column(_) => 3,
        }
    }

    /// Returns where the code of a feature is within a row of a dense or joint group; `None` for other groups. `place` is
    /// the index of the feature within the group.
    fn slot(&self, place: usize, features: &[FeatureBins]) -> Option<RowSlot> {
        match self.kind {
            GroupKind::Dense => Some(RowSlot { byte: place as u8, digit: None }),
            GroupKind::Joint => {
                let codes = |place: usize| features[self.features[place] as usize].codes() as u16;
                let lane = self.lanes.iter().position(|members| members.contains(&place))?;
                let unit = (self.lanes[lane].start..place).map(codes).product();
                let digit = Digit { unit, radix: codes(place) };
                Some(RowSlot { byte: 2 * lane as u8, digit: Some(digit) })
            }
            GroupKind::Sparse | GroupKind::Column(_) => None,
        }
    }

    /// Returns the number of half blocks per row that contain codes.
    pub fn half_blocks(&self) -> usize {
        match self.kind {
            GroupKind::Joint => self.lanes.len().div_ceil(JOINT_LANES / 2),
            _ => self.features.len().div_ceil(LANES / 2),
        }
    }
}

/// How the codes of a group are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// One byte per feature, in whole blocks of [`LANES`] bytes per row.
    Dense,
    /// Two bytes per lane, in whole blocks of [`JOINT_LANES`] lanes per row. A joint code is a mixed-radix number whose
    /// least significant digit is the code of the lane's first feature.
    Joint,
    /// A list of entries per row.
    Sparse,
    /// One column with this many bytes per code.
    Column(u8),
}

/// Location of a feature in the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeaturePlace {
    /// Index of the group.
    pub group: usize,
    /// Index of the feature within the group.
    pub lane: usize,
    /// Index of the column, among the columns of a partition, from which the codes of single rows are read. For dense
    /// and joint groups, this is the extra column of the feature, if it has one; otherwise it is the column of the group.
    pub column: usize,
    /// Where the code is within a row of the group, if the feature is in a dense or joint group and has no extra column.
    pub slot: Option<RowSlot>,
}

/// Location of a feature's code within a row of a dense or joint group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSlot {
    /// The first byte of the feature's lane. A row has up to 64 bytes.
    pub byte: u8,
    /// The digit of the joint code; `None` in dense groups.
    pub digit: Option<Digit>,
}

/// A digit of a mixed-radix number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digit {
    /// Value of the digit 1.
    pub unit: u16,
    /// Number of values of the digit.
    pub radix: u16,
}

/// Assignment of a dataset's features to groups.
#[derive(Debug, Clone, PartialEq)]
pub struct BinLayout {
    /// All groups.
    pub groups: Vec<Group>,
    /// Location of each feature; `None` for constant features.
    pub places: Vec<Option<FeaturePlace>>,
    /// Features that have an extra column besides the column of their group. The extra columns are in this order and
    /// come after the columns of the groups. The features of dense and joint groups have one, because looking up one
    /// byte should not load a row of 64 bytes. There are none in a [compact](BinLayout::compact) layout.
    pub columns: Vec<u32>,
}

impl BinLayout {
    /// Creates a layout with all kinds of groups (`grouped` and `sparse`), with dense groups only (`grouped` alone),
    /// or with one column per feature (without `grouped`).
    pub fn of_kind(grouped: bool, sparse: bool, features: &[FeatureBins]) -> Self {
        match (grouped, sparse) {
            (true, true) => Self::grouped(features),
            (true, false) => Self::dense(features),
            (false, _) => Self::columns(features),
        }
    }

    /// Groups features for building histograms.
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

    /// Puts all features into dense groups, with one byte per feature, for lookups by row.
    pub fn dense(features: &[FeatureBins]) -> Self {
        let all: Vec<u32> = varying(features).collect();
        Self::of(dense_groups(&all).collect(), features)
    }

    /// Stores each feature in a column of its own.
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

    /// Returns the same layout without extra columns: codes are stored once and take half the memory, and looking up the
    /// code of a row takes longer.
    pub fn compact(mut self, features: &[FeatureBins]) -> Self {
        for place in self.places.iter_mut().flatten() {
            let group = &self.groups[place.group];
            place.slot = group.slot(place.lane, features);
            place.column = place.group;
        }
        self.columns.clear();
        self
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
                places[*feature as usize] = Some(FeaturePlace { group, lane, column, slot: None });
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

/// Combines features with few codes into shared lanes. The greedy algorithm starts with the features that have the
/// most codes. Returns the shared lanes, and the features that share no lane.
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
