//! Feature votes: the weight of a feature is the mean over the queries of the metric of a ranking by that feature alone.
//! A test adds this learner to a copy of the workspace. It is not part of the product.

use crate::config::{LearnerParameters, MetricRanker, VotesOptions, VotesSettings};
use crate::driver::TrainRequest;
use crate::jobs::SharedMeans;
use crate::linear::{
    FixedSums, LinearAlgorithm, LinearRows, MetricAlgorithm, RankingProblem, RankingRows, RankingTarget,
    linear_job, undefined,
};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::Mean;
use planetree_model::model::LinearFunction;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Adds up the metric of every feature, and logs the metrics of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoteSums {
    target: RankingTarget,
    weights: Vec<f64>,
}

/// The result of [`VoteSums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoteTotals {
    sums: FixedSums,
    counted: u64,
    means: SharedMeans,
}

linear_job!(VoteSums, "vote_sums", VoteTotals, |job, rows| job.sums(rows)?);

impl VoteSums {
    fn sums(&self, rows: &LinearRows) -> Result<VoteTotals> {
        let ranking = RankingRows::new(rows, &self.target)?;
        let features = self.target.plan.features.len();
        let (mut sums, mut counted) = (FixedSums::zero(features), 0);
        for query in ranking.feature_values().chunks(features).filter(|query| !query[0].is_nan()) {
            query.iter().enumerate().for_each(|(feature, value)| sums.add(feature, *value, self.target.scale()));
            counted += 1;
        }
        Ok(VoteTotals { sums, counted, means: SharedMeans::of(&ranking.means(&self.weights)) })
    }
}

impl Partial for VoteTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        self.counted += other.counted;
        if self.sums.add_all(&other.sums) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        self.sums.is_valid()
    }
}

/// Connects feature votes to the training driver.
pub(crate) struct Votes<'a> {
    request: &'a TrainRequest,
    problem: RankingProblem<'a>,
    weights: Vec<f64>,
    means: Vec<Mean>,
}

impl MetricAlgorithm for VotesOptions {
    type Algorithm<'a> = Votes<'a>;

    fn parameters(settings: MetricRanker<Self>) -> LearnerParameters {
        LearnerParameters::Votes(settings)
    }

    fn algorithm<'a>(
        _settings: &'a VotesSettings,
        request: &'a TrainRequest,
        problem: RankingProblem<'a>,
    ) -> Votes<'a> {
        let weights = vec![0.0; problem.features()];
        Votes { request, problem, weights, means: Vec::new() }
    }
}

impl Votes<'_> {
    fn totals(&self) -> Result<VoteTotals> {
        let job = VoteSums { target: self.problem.target.clone(), weights: self.weights.clone() };
        self.problem.jobs.run(&job)
    }
}

impl LinearAlgorithm for Votes<'_> {
    fn resume(&mut self, _function: &LinearFunction) {}

    fn start(&mut self, _round: u32) -> Result<()> {
        self.means = self.totals()?.means.total(&self.problem.metrics)?;
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<bool> {
        if round > 1 {
            return Ok(false);
        }
        let VoteTotals { sums, counted, .. } = self.totals()?;
        if counted == 0 {
            return Err(undefined(&self.problem.target, self.request.place()));
        }
        let scale = self.problem.target.scale();
        self.weights = (0..sums.count()).map(|sum| sums.value(sum, scale) / counted as f64).collect();
        self.means = self.totals()?.means.total(&self.problem.metrics)?;
        Ok(true)
    }

    fn function(&self) -> Cow<'_, LinearFunction> {
        Cow::Owned(self.problem.function(&self.weights))
    }

    fn means(&self) -> &[Mean] {
        &self.means
    }

    fn end_note(&self, _rounds: u32) -> String {
        "every feature has its weight".to_owned()
    }
}
