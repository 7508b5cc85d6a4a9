//! The job of a round: the weights of queries, and weighted sums of the metric for each feature.

use crate::jobs::SharedMeans;
use crate::linear::{FixedSums, LinearRows, QueryPlace, RankingRows, RankingTarget, linear_job};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::RankBuffers;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Ranks all queries by an ensemble, and adds up the metric of every feature with the weights of the queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdaRankSums {
    /// The metric and the features.
    pub target: RankingTarget,
    /// The weights of the features in the ensemble.
    pub weights: Vec<f64>,
    /// Whether there is no ensemble yet: all queries have the same weight.
    pub is_first: bool,
}

/// What [`AdaRankSums`] adds up over the queries of a partition or of the whole dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdaRankTotals {
    /// The metric of the ensemble, the weights of the queries, and the weighted metric of each feature.
    pub sums: FixedSums,
    /// Number of queries that count.
    pub counted: u64,
    /// The metrics to log.
    pub means: SharedMeans,
}

/// Number of sums before those of the features.
pub(super) const FIRST_FEATURE: usize = 2;

linear_job!(AdaRankSums, "adarank_sums", AdaRankTotals, |job, rows| job.sums(rows)?);

impl AdaRankSums {
    fn sums(&self, rows: &LinearRows) -> Result<AdaRankTotals> {
        let ranking = RankingRows::new(rows, &self.target)?;
        let (scale, features) = (self.target.scale(), self.target.plan.features.len());
        let of_features = ranking.feature_values();
        let ranked = ranking.ranked(&self.weights);
        let zero = || (FixedSums::zero(FIRST_FEATURE + features), 0u64, RankBuffers::default());
        let numbered: Vec<(usize, &QueryPlace)> = ranking.queries.iter().enumerate().collect();
        let folded =
            numbered.par_iter().fold(zero, |(mut sums, mut counted, mut buffers), (number, query)| {
                let Some(value) = ranking.value(query, &ranked[*number], &mut buffers) else {
                    return (sums, counted, buffers);
                };
                let weight = if self.is_first { 1.0 } else { libm::exp(-value) };
                sums.add(0, value, scale);
                sums.add(1, weight, scale);
                for (feature, value) in of_features[number * features..][..features].iter().enumerate() {
                    sums.add(FIRST_FEATURE + feature, weight * value, scale);
                }
                counted += 1;
                (sums, counted, buffers)
            });
        let (sums, counted, _) = folded.reduce(zero, |(mut sums, counted, buffers), (others, more, _)| {
            sums.add_all(&others);
            (sums, counted + more, buffers)
        });
        Ok(AdaRankTotals { sums, counted, means: SharedMeans::of(&ranking.means(&self.weights)) })
    }
}

impl Partial for AdaRankTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        self.counted += other.counted;
        if self.sums.add_all(&other.sums) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        FixedSums::is_valid(&self.sums)
    }
}
