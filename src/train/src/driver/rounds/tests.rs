//! Tests of the training loop with a learner that trains nothing: every round replaces its part.

use super::*;
use crate::config::load;
use crate::driver::learner::Learner;
use crate::driver::members::Member;
use crate::driver::scores::Scores;
use crate::driver::{CheckpointPlan, Every, NamedData, Silent};
use planetree_base::progress::Meter;
use planetree_base::storage::Location;
use planetree_metric::Metric;
use planetree_model::model::{Combine, Origin, TreeEnsemble};
use std::borrow::Cow;

/// A learner whose part is a constant: the number of the round.
struct Counter {
    /// The logged value of each round, from round 0.
    values: Vec<f64>,
    /// The round in which an interrupt arrives.
    interrupted: Option<u32>,
    replayed: Option<f64>,
}

fn constant(value: f64) -> PartFamily {
    PartFamily::Trees(TreeEnsemble::new(Combine::Sum, value, None, Vec::new()))
}

fn value_of(part: &PartFamily) -> f64 {
    part.trees().unwrap().base_score
}

impl Learner for Counter {
    fn replay(&mut self, part: &PartFamily, _meter: &dyn Meter) -> Result<()> {
        self.replayed = Some(value_of(part));
        Ok(())
    }

    fn start(&mut self, _round: u32) -> Result<()> {
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        match self.interrupted == Some(round) {
            true => Err(Error::Interrupted),
            false => Ok(Some(PartUpdate::Whole(constant(f64::from(round))))),
        }
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        let value = self.values[round as usize];
        Ok(vec![LogValue { split: "valid".to_owned(), metric: Metric::Rmse, value }])
    }

    fn training_scores(&self) -> Option<&Scores> {
        None
    }

    fn validation_scores(&self, _set: usize, _round: u32) -> Result<Cow<'_, Scores>> {
        Ok(Cow::Owned(Scores::of_partitions(Vec::new())))
    }

    fn leaves_threads_idle(&self) -> bool {
        true
    }

    fn can_stream(&self) -> bool {
        false
    }

    fn finish(&mut self, _last: u32) -> LearnerOutputs {
        LearnerOutputs::default()
    }

    fn no_split(&self) -> Error {
        Error::usage("no split", "")
    }
}

fn request(directory: &std::path::Path, resume: bool) -> TrainRequest {
    let set = ["metric=rmse", "early_stopping_rounds=2", "num_trees=6"].map(str::to_owned);
    let place = |name: &str| Location::Local(directory.join(name));
    let mut request = TrainRequest::new(place("data"), load(None, None, &set).unwrap());
    request.validation = vec![NamedData { name: "valid".to_owned(), location: place("valid") }];
    request.checkpoint = Some(CheckpointPlan { location: place("c"), every: Every::Rounds(1) });
    request.resume = resume;
    request
}

/// Runs the loop; returns the content of the part, the best round, and what was replayed.
fn run(
    request: &TrainRequest,
    values: &[f64],
    has_start: bool,
    interrupted: Option<u32>,
) -> Result<(f64, Option<u32>, Option<f64>)> {
    let model = Model {
        intercept: 0.0,
        parts: Vec::new(),
        groups: Vec::new(),
        features: Vec::new(),
        configuration: request.configuration(),
        data: Vec::new(),
        rounds: 0,
        start_scores: None,
        origin: Origin::default(),
    };
    let mut training = Training::open(request, model, PhaseSeconds::default(), &mut Silent)?;
    let mut counter = Counter { values: values.to_vec(), interrupted, replayed: None };
    let part = Part { family: constant(-1.0), ..Part::trees(constant(0.0).trees().unwrap().clone()) };
    let learner: Box<dyn Learner + '_> = Box::new(Borrowed(&mut counter));
    let mut members = Members::new(vec![Member { learner, part }], 0.0, Vec::new(), None);
    let stage = Stage { number: 1, parameters: request.plan.first(), members: &mut members, has_start };
    training.run(stage, &mut Silent)?;
    drop(members);
    let outcome = training.finish(LearnerOutputs::default())?;
    let content = value_of(&outcome.model.parts[0].family);
    Ok((content, outcome.best.map(|best| best.round), counter.replayed))
}

/// Lets a test look at a learner after the training.
struct Borrowed<'a>(&'a mut Counter);

impl Learner for Borrowed<'_> {
    fn replay(&mut self, part: &PartFamily, meter: &dyn Meter) -> Result<()> {
        self.0.replay(part, meter)
    }

    fn start(&mut self, round: u32) -> Result<()> {
        self.0.start(round)
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        self.0.round(round)
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        self.0.evaluate(round)
    }

    fn training_scores(&self) -> Option<&Scores> {
        self.0.training_scores()
    }

    fn validation_scores(&self, set: usize, round: u32) -> Result<Cow<'_, Scores>> {
        self.0.validation_scores(set, round)
    }

    fn leaves_threads_idle(&self) -> bool {
        self.0.leaves_threads_idle()
    }

    fn can_stream(&self) -> bool {
        self.0.can_stream()
    }

    fn finish(&mut self, last: u32) -> LearnerOutputs {
        self.0.finish(last)
    }

    fn no_split(&self) -> Error {
        self.0.no_split()
    }
}

#[test]
fn a_part_that_rounds_replace_has_the_content_of_the_best_round() {
    let directory = tempfile::tempdir().unwrap();
    let request = request(directory.path(), false);
    let rising = [9.0, 5.0, 3.0, 4.0, 4.0, 1.0, 1.0];
    assert_eq!(run(&request, &rising, false, None).unwrap(), (2.0, Some(2), None));
    // Round 0, the start alone, counts if there is a start.
    assert_eq!(run(&request, &[1.0, 5.0, 3.0, 4.0], true, None).unwrap(), (-1.0, Some(0), None));
    assert_eq!(run(&request, &[9.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0], false, None).unwrap().0, 6.0);
}

#[test]
fn a_checkpoint_keeps_the_content_of_the_best_round() {
    let directory = tempfile::tempdir().unwrap();
    let values = [9.0, 5.0, 3.0, 4.0, 4.0, 1.0, 1.0];
    let stopped = run(&request(directory.path(), false), &values, false, Some(4)).unwrap_err();
    assert!(matches!(stopped, Error::Stopped { round: 3, .. }), "{stopped}");
    let resumed = run(&request(directory.path(), true), &values, false, None).unwrap();
    assert_eq!(resumed, (2.0, Some(2), Some(3.0)));
}
