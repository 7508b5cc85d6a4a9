//! Prepares a net before the first epoch: reads the rows and finds the constants of the features.

use super::jobs::NetTarget;
use super::learner::{EpochResult, NetLearner};
use super::training::NetProblem;
use crate::config::{LearnerParameters, NetSettings, ObjectiveParameters};
use crate::driver::{
    DataSize, Learner, MemberInput, Observer, PartSettings, StageContext, StartScores, TrainRequest, mean_of,
};
use crate::linear::{BYTES_PER_ROW, LinearInput, PreparedRows, RowWeights, prepare, query_bytes};
use crate::objective::{LabelProblem, Objective, objective};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::Mean;
use planetree_model::model::PartFamily;

impl PartSettings for NetSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        start: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let (request, rows) = (context.request, &input.data.rows);
        let objective = objective(&self.learner.objective, self.seed);
        let output =
            start_score(objective.as_deref(), rows).map_err(|problem| problem.at(request.place()))?;
        let output = start.is_none().then_some(output);
        let queries = trained_queries(objective.as_deref(), rows);
        if queries.is_empty() {
            return Err(Error::place(
                request.place(),
                "no query has documents with different labels: there is nothing to rank",
                "train on queries with documents of different labels, or set objective=squared",
            ));
        }
        let parameters = self.with(LearnerParameters::Net(self.learner.clone())).to_toml();
        let trains_output = matches!(
            self.learner.objective,
            ObjectiveParameters::Squared | ObjectiveParameters::Logistic { .. }
        );
        let data = LinearInput {
            member: input,
            weights: RowWeights::Given,
            normalisation: self.learner.normalisation,
            parameters: parameters.clone(),
            start,
            row_bytes: BYTES_PER_ROW,
            is_relative: !trains_output,
        };
        let PreparedRows { plan, jobs, validation } = prepare(context, self, data, observer)?;
        let problem = NetProblem {
            settings: self,
            target: NetTarget { plan, activation: self.learner.activation, parameters },
            jobs,
            queries,
            output,
            trains_output,
            metrics: self.metrics.iter().map(|metric| Mean::new(*metric)).collect(),
        };
        let nets: Vec<_> = (0..self.learner.restarts).map(|restart| problem.start(restart)).collect();
        let layers = nets[0].layers.clone();
        let part = PartFamily::Net(problem.function(&layers));
        let learner = NetLearner {
            problem,
            validation,
            judged_by: request.validation.first().map_or("train".to_owned(), |set| set.name.clone()),
            nets,
            current: EpochResult { layers, log: Vec::new() },
            best: None,
            diverged: None,
            finished: 0,
            before: None,
        };
        Ok((part, Box::new(learner)))
    }

    fn bytes_per_row(&self, _request: &TrainRequest, members: u64) -> u64 {
        members * BYTES_PER_ROW
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        /// Bytes of a weight in each thread: its gradient for a query, and two sums of gradients.
        const WEIGHT: u64 = 8 + 2 * 16;
        /// Bytes of a weight in each net: the weight, two moments, and copies of them for the best round.
        const STATE: u64 = 6 * 8;
        let units: Vec<u64> = self.learner.hidden.iter().map(|units| u64::from(*units)).chain([1]).collect();
        let inputs = [size.features].into_iter().chain(units.iter().copied());
        let weights: u64 = inputs.zip(&units).map(|(inputs, units)| (inputs + 1) * units).sum();
        // The values of hidden units, and their gradients.
        let hidden = size.threads * size.documents * 3 * units.iter().sum::<u64>() * 8;
        let nets = u64::from(self.learner.restarts);
        weights * (WEIGHT * size.threads + STATE * nets) + hidden + query_bytes(size)
    }
}

/// Returns the bias of the output before the first epoch: the best constant of the objective. Returns an error if the
/// objective cannot learn from the labels.
fn start_score(objective: Option<&dyn Objective>, rows: &[LabelledRows]) -> Result<f64, LabelProblem> {
    if let Some(objective) = objective {
        objective.check(rows)?;
    }
    Ok(match objective {
        None => mean_of(rows, |label| label),
        Some(objective) => {
            objective.start(mean_of(rows, |label| if objective.is_relevant(label) { 1.0 } else { 0.0 }))
        }
    })
}

/// Returns the numbers of the queries that can have gradients.
fn trained_queries(objective: Option<&dyn Objective>, rows: &[LabelledRows]) -> Vec<u64> {
    let has_gradient = |labels: &[f32]| {
        !labels.is_empty() && objective.is_none_or(|objective| objective.has_gradient(labels))
    };
    let of_partition = |rows: &LabelledRows| -> Vec<u64> {
        let numbered = (rows.first_query..).zip(rows.queries());
        numbered
            .filter(|(_, query)| has_gradient(&rows.labels[query.clone()]))
            .map(|(number, _)| number)
            .collect()
    };
    rows.iter().flat_map(of_partition).collect()
}
