//! Connects RankSVM to the training driver. A round minimises the objective for one value of `svm_c`, beginning with the
//! weights of the round before.

use super::active_pairs::pair_count;
use super::jobs::PairPlan;
use super::newton::{PairMinimum, PairProblem};
use crate::config::{LearnerParameters, RankSvmSettings, svm_costs};
use crate::driver::{
    DataSize, Learner, MemberInput, Observer, PartSettings, StageContext, StartScores, TrainRequest,
};
use crate::linear::{
    LinearAlgorithm, LinearInput, LinearLearner, LinearPoint, PreparedRows, RowWeights, costs_tried,
    overflow, prepare, query_bytes, query_weight,
};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_metric::Mean;
use planetree_model::model::{LinearFunction, PartFamily};
use std::borrow::Cow;

/// Maximum number of Newton steps of a round. Usually there are about ten.
const STEPS: u32 = 100;

/// Memory per row besides the values of the features: the label and the score, and at the current point two copies of
/// the scores, the order, the active pairs and the product with a direction.
const BYTES_PER_ROW: u64 = 24 + 48;

/// RankSVM, one value of `svm_c` after the other.
struct RankSvm<'a> {
    request: &'a TrainRequest,
    problem: PairProblem<'a>,
    /// The values of `svm_c`, one per round.
    costs: Vec<f64>,
    /// The function after the last round.
    function: LinearFunction,
    /// The metrics of the training rows after the last round.
    means: Vec<Mean>,
    /// The rounds of this run whose search was ended by the maximum number of steps, with what the last step promised.
    unfinished: Vec<(u32, f64)>,
}

impl PartSettings for RankSvmSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        given: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let pairs = pair_weight(&input.data.rows, &context.sources.source.place())?;
        let data = LinearInput {
            member: input,
            weights: RowWeights::Given,
            normalisation: self.learner.normalisation,
            parameters: self.with(LearnerParameters::RankSvm(self.learner.clone())).to_toml(),
            start: given,
            row_bytes: BYTES_PER_ROW,
            is_relative: true,
        };
        let PreparedRows { plan, jobs, validation } = prepare(context, self, data, observer)?;
        let zero = LinearPoint { intercept: 0.0, weights: vec![0.0; plan.features.len()] };
        let function = plan.function(&zero);
        let problem = PairProblem {
            plan: PairPlan { standard: plan, pairs },
            jobs,
            metrics: self.metrics.clone(),
            tolerance: self.learner.tolerance,
            steps: STEPS,
        };
        let algorithm = RankSvm {
            request: context.request,
            problem,
            costs: svm_costs(self.learner.cost),
            function: function.clone(),
            means: Vec::new(),
            unfinished: Vec::new(),
        };
        Ok((PartFamily::Linear(function), Box::new(LinearLearner { algorithm, validation })))
    }

    fn bytes_per_row(&self, _request: &TrainRequest, members: u64) -> u64 {
        members * BYTES_PER_ROW
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        query_bytes(size)
    }
}

impl LinearAlgorithm for RankSvm<'_> {
    fn resume(&mut self, function: &LinearFunction) {
        self.function = function.clone();
    }

    fn start(&mut self, round: u32) -> Result<()> {
        let pairs = self.problem.plan.pairs;
        let largest = self.costs.iter().fold(0f64, |most, cost| most.max(pairs / cost));
        let penalties = self.problem.penalties(largest);
        if !penalties.iter().all(|penalty| (penalty + pairs).is_finite()) {
            return Err(Error::usage("svm_c is too small: the penalty overflows", "raise svm_c"));
        }
        // The scores that training starts from are logged as round 0.
        if round == 1 && self.problem.plan.standard.offset > 0.0 {
            let zero = vec![0.0; penalties.len()];
            self.means = self.problem.evaluate(&penalties, zero)?.means;
        }
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<bool> {
        let Some(cost) = self.costs.get(round as usize - 1) else { return Ok(false) };
        // The weights follow from the function, so that a resumed training run, which has only the function, continues with
        // the same numbers.
        let weights = self.problem.plan.standard.point(&self.function).weights;
        let PairMinimum { found, unfinished } =
            self.problem.minimise(self.problem.plan.pairs / cost, weights)?;
        if !found.is_finite() {
            return Err(overflow(self.request.place()));
        }
        self.unfinished.extend(unfinished.map(|promised| (round, promised)));
        self.function =
            self.problem.plan.standard.function(&LinearPoint { intercept: 0.0, weights: found.weights });
        self.means = found.means;
        Ok(true)
    }

    fn function(&self) -> Cow<'_, LinearFunction> {
        Cow::Borrowed(&self.function)
    }

    fn means(&self) -> &[Mean] {
        &self.means
    }

    fn end_note(&self, _rounds: u32) -> String {
        costs_tried(self.costs.len())
    }

    fn unfinished_note(&self, kept: u32) -> Option<String> {
        let (round, promised) = self.unfinished.iter().find(|(round, _)| *round == kept)?;
        Some(unfinished_note(self.costs[*round as usize - 1], *promised))
    }
}

/// Returns a message about a search that was ended by the maximum number of steps.
pub(super) fn unfinished_note(cost: f64, promised: f64) -> String {
    format!(
        "svm_c = {cost}: the search ended after {STEPS} steps, and the last one promised to lower the objective by \
         {promised:.1e} of it; raise svm_tolerance, or lower svm_c"
    )
}

/// Returns the number of pairs of documents with different labels, by the weights of their queries. Returns an error if it
/// is 0.
fn pair_weight(rows: &[LabelledRows], place: &str) -> Result<f64> {
    let (mut count, mut weight) = (0.0, 0.0);
    for rows in rows {
        for query in rows.queries() {
            let pairs = pair_count(&rows.labels[query.clone()]);
            count += pairs;
            weight += query_weight(rows, query) * pairs;
        }
    }
    if weight > 0.0 {
        return Ok(weight);
    }
    let (problem, remedy) = match count > 0.0 {
        true => (
            "the weight of every query that has documents with different labels is 0",
            "train on queries with weights above 0, or without a weight column",
        ),
        false => (
            "no query has documents with different labels: there are no pairs to learn from",
            "train on queries with different labels",
        ),
    };
    Err(Error::place(place, problem, remedy))
}
