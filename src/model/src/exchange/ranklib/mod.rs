//! RankLib's text format, which the learning-to-rank plugins of Elasticsearch and OpenSearch read, too.
//!
//! The first line names the ranker. Trees are XML without attributes other than `id`, `weight` and `pos`, one tag per
//! line. Linear models are pairs `feature:weight`. Features are numbered from 1, and absent features are 0. RankLib
//! compares 32-bit floats (`x <= t`) and rounds the sum of the trees to 32 bits after every tree.

mod parse;
mod read;
mod serve;
mod write;

pub(super) use read::{import, is_likely};
pub(super) use serve::{kind, served};
pub(super) use write::{export, is_ours};

/// Name of the ranker of boosted trees.
const LAMBDAMART: &str = "LambdaMART";
/// Name of the ranker that is a mean of ensembles.
const FORESTS: &str = "Random Forests";
/// Name of the ranker that is a sum of weighted features.
const ASCENT: &str = "Coordinate Ascent";
/// Name of the ranker that is a sum of weighted features and a constant.
const REGRESSION: &str = "Linear Regression";
