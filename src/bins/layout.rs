//! How features are grouped for the inner loop.
//!
//! - *Dense*: up to 64 features side by side, a byte each: a row is one line of the cache, and its
//!   blocks of sixteen features are added one after the other, so that their histograms stay in
//!   the first-level cache.
//! - *Sparse*: up to 64 features of which most rows have the common code; a row lists the others
//!   only, so work and memory go by entries and not by cells. The common code's sums are what is
//!   left of the node's.
//! - *Column*: one feature with as many codes as it has values, for exact splits.
//!
//! A constant feature is in no group. The layout follows from the bins alone and changes no result.

use super::cuts::FeatureBins;

/// Features of a block of a dense group.
pub const LANES: usize = 16;
/// Blocks of a dense group at most.
const BLOCKS: usize = 4;
/// Features of a sparse group.
pub const SPARSE_LANES: usize = 64;
/// Cells from one feature of a sparse group to the next. Not a power of two, which would make
/// equal bins of all features compete for the same lines of the cache.
pub const SPARSE_STRIDE: usize = 264;
/// A feature is sparse from this share of its common code on. Measured: an entry of a sparse
/// group costs about twice a cell of a dense one.
const SPARSE_SHARE: f32 = 0.75;

/// Codes of a dense group's features at most, which decides how far apart their cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// Up to 32 codes.
    Narrow,
    /// Up to 256 codes.
    Byte,
}

impl Width {
    /// Cells from one feature to the next; never a power of two, as for sparse groups.
    pub const fn stride(self) -> usize {
        match self {
            Width::Narrow => 40,
            Width::Byte => 264,
        }
    }

    fn of(codes: usize) -> Self {
        if codes <= 32 { Width::Narrow } else { Width::Byte }
    }
}

/// Some features that the inner loop treats together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// How their codes are stored.
    pub kind: GroupKind,
    /// Which features, by lane.
    pub features: Vec<u32>,
}

impl Group {
    /// Blocks of a dense group.
    pub fn blocks(&self) -> usize {
        self.features.len().div_ceil(LANES)
    }
}

/// How a group's codes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// A byte a feature, whole blocks of [`LANES`] a row.
    Dense(Width),
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
        Self::with_sparse_from(SPARSE_SHARE, features)
    }

    /// Groups features to be looked up row by row: none is sparse.
    pub fn dense(features: &[FeatureBins]) -> Self {
        Self::with_sparse_from(f32::INFINITY, features)
    }

    fn with_sparse_from(share: f32, features: &[FeatureBins]) -> Self {
        let varying = || (0..features.len() as u32).filter(|f| !features[*f as usize].is_constant());
        let bins_of = |feature: u32| &features[feature as usize];
        let (sparse, mut dense): (Vec<u32>, Vec<u32>) =
            varying().partition(|feature| bins_of(*feature).common_share >= share);
        // Features of few codes share groups, whose cells then lie closer together.
        dense.sort_by_key(|feature| Width::of(bins_of(*feature).codes()));
        let mut groups = Vec::new();
        for same_width in
            dense.chunk_by(|a, b| Width::of(bins_of(*a).codes()) == Width::of(bins_of(*b).codes()))
        {
            for features in same_width.chunks(LANES * BLOCKS) {
                let kind = GroupKind::Dense(Width::of(bins_of(features[0]).codes()));
                groups.push(Group { kind, features: features.to_vec() });
            }
        }
        let sparse = sparse.chunks(SPARSE_LANES);
        groups.extend(sparse.map(|features| Group { kind: GroupKind::Sparse, features: features.to_vec() }));
        Self::of(groups, features.len())
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
            Group { kind: GroupKind::Column(bytes), features: vec![feature as u32] }
        });
        Self::of(groups.collect(), features.len())
    }

    fn of(groups: Vec<Group>, features: usize) -> Self {
        let mut places = vec![None; features];
        let mut columns = Vec::new();
        for (group, members) in groups.iter().enumerate() {
            for (lane, feature) in members.features.iter().enumerate() {
                let column = match members.kind {
                    GroupKind::Dense(_) => {
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
