//! The jobs that train nets: the gradient of the weights over the queries of a batch, and the metrics of all rows.

use super::query::{NetContext, NetQuery, gradient_count};
use crate::config::{LearnerParameters, Parameters};
use crate::jobs::SharedMeans;
use crate::linear::{FixedSums, LinearRows, QueryPlace, StandardPlan, SumScale, linear_job};
use crate::objective::objective;
use fearless_simd::{Level, dispatch};
use planetree_base::error::{Error, Result};
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_model::model::{Activation, NetLayer};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Minimum number of queries that a task adds up, so that there are few lists of sums.
const QUERIES_PER_TASK: usize = 4;

/// What does not change during training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetTarget {
    /// The features and how they are normalised.
    pub plan: StandardPlan,
    /// The function of hidden units.
    pub activation: Activation,
    /// All parameters as TOML, of which the rows keep the objective.
    pub parameters: String,
}

/// Sums the gradient of the weights over the queries of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetGradients {
    /// The features and the objective.
    pub target: NetTarget,
    /// The weights.
    pub layers: Vec<NetLayer>,
    /// The numbers of the queries in the training data, in ascending order.
    pub batch: Vec<u64>,
    /// Number of the epoch, starting from 1.
    pub round: u32,
    /// The sums are rounded relative to this bound on them.
    pub bound: f64,
}

/// The result of [`NetGradients`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetTotals {
    /// The sum over the queries, for each weight.
    pub sums: FixedSums,
    /// The largest absolute term of all sums; infinite if a score or a gradient is not finite. If it is larger than the
    /// bound divided by the number of queries, the sums are invalid.
    pub largest: f64,
}

/// Computes the metrics of the scores of all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetMetrics {
    /// The features.
    pub target: NetTarget,
    /// The weights.
    pub layers: Vec<NetLayer>,
}

/// The result of [`NetMetrics`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetMeans {
    /// The metrics.
    pub means: SharedMeans,
    /// Whether all scores are finite.
    pub is_finite: bool,
}

linear_job!(NetGradients, "net_gradients", NetTotals, |job, rows| job.totals(rows)?);
linear_job!(NetMetrics, "net_metrics", NetMeans, |job, rows| job.means(rows));

impl NetTarget {
    fn context<'a>(&'a self, layers: &'a [NetLayer], rows: &'a LinearRows) -> NetContext<'a> {
        NetContext { target: self, normalisers: self.plan.normalisers(), layers, rows }
    }
}

impl NetGradients {
    fn totals(&self, rows: &LinearRows) -> Result<NetTotals> {
        let objective = rows.objective(|| {
            let parameters = Parameters::from_toml(&self.target.parameters)?;
            match &parameters.learner {
                LearnerParameters::Net(net) => Ok(objective(&net.objective, parameters.seed)),
                _ => Err(Error::bug("net", "the parameters are those of another learner")),
            }
        })?;
        let (context, level) = (self.target.context(&self.layers, rows), Level::new());
        let (count, scale) = (gradient_count(&self.layers), SumScale::of_bound(self.bound));
        let most = self.bound / self.batch.len().max(1) as f64;
        let zero = || NetTotals { sums: FixedSums::zero(count), largest: 0.0 };
        let folded = self.queries(rows).into_par_iter().with_min_len(QUERIES_PER_TASK).fold(
            || (zero(), NetQuery::default()),
            |(mut totals, mut buffers), query| {
                dispatch!(level, _ => {
                    buffers.forward(&context, &query);
                    buffers.backward(&context, &query, objective, self.round);
                });
                totals.add(&buffers, most, scale);
                (totals, buffers)
            },
        );
        Ok(folded.map(|(totals, _)| totals).reduce(zero, |mut totals, other| {
            totals.add_all(&other);
            totals
        }))
    }

    /// Returns the queries of the batch that are among some rows.
    fn queries(&self, rows: &LinearRows) -> Vec<QueryPlace> {
        let mut places = Vec::new();
        for (partition, rows) in rows.partitions().iter().enumerate() {
            let bounds = &rows.query_bounds;
            let end = rows.first_query + (bounds.len() - 1) as u64;
            let place = |number: u64| self.batch.partition_point(|query| *query < number);
            for query in &self.batch[place(rows.first_query)..place(end)] {
                let number = (query - rows.first_query) as usize;
                let rows = bounds[number] as usize..bounds[number + 1] as usize;
                places.push(QueryPlace { partition, number, rows });
            }
        }
        places
    }
}

impl NetMetrics {
    fn means(&self, rows: &LinearRows) -> NetMeans {
        let (context, level) = (self.target.context(&self.layers, rows), Level::new());
        let partitions = rows.partitions().iter().enumerate();
        let queries: Vec<QueryPlace> = partitions
            .flat_map(|(partition, rows)| {
                let queries = rows.queries().enumerate();
                queries.map(move |(number, rows)| QueryPlace { partition, number, rows })
            })
            .collect();
        let scores: Vec<Vec<f64>> = queries
            .par_iter()
            .with_min_len(QUERIES_PER_TASK)
            .map_init(NetQuery::default, |buffers, query| {
                dispatch!(level, _ => buffers.forward(&context, query));
                buffers.scores.clone()
            })
            .collect();
        let scores = scores.concat();
        let is_finite = scores.iter().all(|score| score.is_finite());
        NetMeans { means: SharedMeans::of(&rows.evaluate(&scores)), is_finite }
    }
}

impl NetTotals {
    /// Adds the gradient of a query. Terms above `most` are left out, because sums could overflow; they are invalid then.
    fn add(&mut self, query: &NetQuery, most: f64, scale: SumScale) {
        if query.scores.iter().any(|score| !score.is_finite()) {
            self.largest = f64::INFINITY;
        }
        for (place, term) in query.gradient.iter().enumerate() {
            let size = if term.is_finite() { term.abs() } else { f64::INFINITY };
            self.largest = self.largest.max(size);
            if size <= most {
                self.sums.add(place, *term, scale);
            }
        }
    }

    fn add_all(&mut self, other: &NetTotals) -> bool {
        self.largest = self.largest.max(other.largest);
        self.sums.add_all(&other.sums)
    }
}

impl Partial for NetTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.add_all(&other) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        self.sums.is_valid() && !self.largest.is_nan()
    }
}

impl Partial for NetMeans {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        self.is_finite &= other.is_finite;
        Ok(())
    }
}
