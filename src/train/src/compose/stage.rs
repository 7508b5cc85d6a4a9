//! Runs a stage: creates a learner for each member, with the scores that it starts from, and lets the driver run the
//! rounds.

use super::learners::settings_of;
use super::members::{MemberPlan, PlannedMembers};
use super::monotone;
use super::stage_bins::StageBins;
use super::start::{self, StartParts};
use crate::config::{LeastSquaresData, Parameters, Target};
use crate::driver::{
    ClassFit, Combination, LearnerOutputs, Member, MemberInput, Members, Metrics, Observer, RemoteScores,
    Scores, SharedValues, SoftmaxGroup, Sources, Stage, StageContext, StartScores, TrainRequest, Training,
    TrainingRows, TrainingStart, ValidationData,
};
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use planetree_model::model::{ModelFeature, Part, PartFamily};
use rayon::prelude::*;
use std::sync::Arc;

/// A stage with its data.
pub(super) struct StageRun<'a> {
    pub request: &'a TrainRequest,
    pub number: u32,
    pub parameters: &'a Parameters,
    pub members: &'a PlannedMembers,
    pub sources: &'a Sources,
    pub binned: &'a StageBins,
}

impl StageRun<'_> {
    /// Runs the stage. `out_of_bag` are scores of the training rows that replace those of earlier stages, by member.
    pub(super) fn run(
        &self,
        training: &mut Training<'_>,
        out_of_bag: Vec<Vec<f64>>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<LearnerOutputs>> {
        let features = training.model().features.clone();
        let context = self.context(&features, &self.binned.validation);
        let inputs = self.inputs()?;
        if let Some(backend) = &self.request.backend {
            backend.begin_stage(self.parameters, &self.binned.data);
        }
        let has_start =
            self.number > 1 || self.request.start.is_some() || self.request.start_scores.is_some();
        let starts = match has_start {
            true => {
                // A forest can be larger than everything else in memory, so it is not copied to be scored.
                let start = StartParts::of(self.request, training.take_finished_parts(), &features);
                let starts = self.start(&start, out_of_bag, &inputs)?;
                training.return_finished_parts(start.into_finished());
                starts
            }
            false => Vec::new(),
        };
        let all = self.create(&context, &inputs, starts, observer)?;
        let intercept = if self.request.start.is_some() { 0.0 } else { self.members.intercept };
        let training_rows = match &self.request.backend {
            // Its score is that of the model, unlike the probability of a class.
            _ if matches!(self.members.all.as_slice(), [member] if member.class.is_none()) => None,
            None => Some(TrainingRows::Here(
                Metrics::new(&self.training_metrics(), &self.binned.data.rows)?,
                &self.binned.data.rows[..],
            )),
            Some(backend) => Some(TrainingRows::Remote(&**backend, Box::new(self.combination(intercept)))),
        };
        let validation = self.binned.validation.clone();
        let members = Members::new(all, intercept, validation, training_rows);
        let mut members = members.with_fit(self.class_fit()).with_groups(self.groups());
        if members.judges_by_other_weights() {
            observer.note(
                "the log has the metrics of the weights from class_scores: class_weights are fitted on the training data, \
                 whose scores are known only after training",
            );
        }
        let (number, parameters) = (self.number, self.parameters);
        training.run(Stage { number, parameters, members: &mut members, has_start }, observer)
    }

    /// Creates the members. Those that leave threads idle are created at the same time.
    fn create<'c>(
        &self,
        context: &StageContext<'c>,
        inputs: &'c [MemberInput],
        starts: Vec<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Member<'c>>> {
        type Planned<'p, 'c> = ((&'p MemberPlan, &'c MemberInput), Option<StartScores>);
        let member = |((member, input), start): Planned<'_, 'c>, observer: &mut dyn Observer| {
            let (family, learner) = input.settings.learner(context, input, start, observer)?;
            Ok(Member { part: self.part(member, family), learner })
        };
        let starts = starts.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        let mut all = self.members.all.iter().zip(inputs).zip(starts);
        let Some(first) = all.next() else { return Ok(Vec::new()) };
        let first = member(first, observer)?;
        // What is told to the user is the same for all members.
        let others: Vec<Planned<'_, 'c>> = all.collect();
        let others: Vec<Member<'c>> = match first.learner.leaves_threads_idle() {
            true => others
                .into_par_iter()
                .map(|planned| member(planned, &mut crate::Silent))
                .collect::<Result<_>>()?,
            false => others
                .into_iter()
                .map(|planned| member(planned, &mut crate::Silent))
                .collect::<Result<_>>()?,
        };
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// Returns how the weights of classes are fitted after every round. `None` if they are fixed.
    fn class_fit(&self) -> Option<ClassFit<'_>> {
        let Target::Ordinal(ordinal) = &self.request.plan.target else { return None };
        let data = ordinal.weights.data()?;
        let classes = self.members.all.iter().map(|member| member.class_number).collect::<Option<_>>()?;
        Some(ClassFit {
            classes,
            runs: self.request.plan.runs,
            training: (data != LeastSquaresData::Valid).then_some(&self.binned.data.rows[..]),
            on_validation: data != LeastSquaresData::Train,
        })
    }

    fn context<'c>(
        &'c self,
        features: &'c [ModelFeature],
        validation: &'c [Arc<ValidationData>],
    ) -> StageContext<'c> {
        StageContext {
            request: self.request,
            sources: self.sources,
            validation,
            features,
            members: self.members.all.len(),
            values: SharedValues::default(),
        }
    }

    /// Returns what each member is trained on, without scores to start from.
    fn inputs(&self) -> Result<Vec<MemberInput>> {
        let input = |(number, member): (usize, &MemberPlan)| {
            let parameters = monotone::in_order(member.parameters(self.parameters), &self.sources.source)?;
            Ok(MemberInput {
                number,
                settings: settings_of(&parameters),
                data: self.binned.of(member).clone(),
                at_most: member.class.map(|class| class.at_most).or(at_most(&self.request.plan.target)),
                coupled: self.members.coupled(number),
                extended: start::extended(self.request).filter(|_| self.number == 1).cloned(),
                out_of_bag: self.request.out_of_bag,
            })
        };
        self.members.all.iter().enumerate().map(input).collect()
    }

    /// Computes the scores that each member starts from: the given ones, and those of the start model and of its own
    /// earlier stages.
    fn start(
        &self,
        start: &StartParts,
        out_of_bag: Vec<Vec<f64>>,
        inputs: &[MemberInput],
    ) -> Result<Vec<StartScores>> {
        let given = self.request.start_scores.as_ref();
        // The data are read once, whatever the number of members. A backend scores its own rows.
        let is_here = self.request.backend.is_none();
        let needs_training = is_here && out_of_bag.len() < inputs.len();
        let training = needs_training.then(|| start.values(&self.sources.source)).transpose()?;
        let sets = self.sources.validation.iter();
        let validation = sets.map(|source| start.values(source)).collect::<Result<Vec<_>>>()?;
        let mut out_of_bag = out_of_bag.into_iter();
        let mut all = Vec::with_capacity(inputs.len());
        for (member, input) in self.members.all.iter().zip(inputs) {
            let rows = &input.data.rows;
            let training = match (out_of_bag.next(), &training) {
                (Some(scores), _) => TrainingStart::Here(Scores::given(rows, &scores)),
                (None, Some(values)) => {
                    let given = given.map(|given| &given.training[..]);
                    TrainingStart::Here(Scores::given(rows, &start.scores(member, values, given)))
                }
                (None, None) if !is_here => TrainingStart::Remote(RemoteScores {
                    model: start.model_of(member).map(Box::new),
                    given: given.map(|given| given.training.clone()),
                }),
                (None, None) => return Err(Error::bug("compose", "a member has no scores to start from")),
            };
            let of_set = |(number, (values, set)): (usize, (&Vec<Vec<f64>>, &Arc<ValidationData>))| {
                let given = given.map(|given| &given.validation[number][..]);
                Scores::given(set.rows(), &start.scores(member, values, given))
            };
            let sets = validation.iter().zip(&self.binned.validation).enumerate();
            all.push(StartScores { training, validation: sets.map(of_set).collect() });
        }
        Ok(all)
    }

    /// Returns the members that are coupled by a softmax. They are all parts of the model.
    fn groups(&self) -> Vec<SoftmaxGroup> {
        SoftmaxGroup::of_parts(&self.members.groups, 0)
    }

    /// Returns how the scores of all members are combined and evaluated by a backend.
    fn combination(&self, intercept: f64) -> Combination {
        Combination {
            parameters: self.training_metrics(),
            at_most: at_most(&self.request.plan.target),
            intercept,
            weights: self.members.all.iter().map(|member| member.weight).collect(),
            groups: self.groups(),
        }
    }

    /// Returns the out-of-bag scores of the forests that this stage, the first one, has trained, by member. A row that
    /// every tree was trained on has the score of all trees.
    pub(super) fn out_of_bag(
        &self,
        training: &Training<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Vec<f64>>> {
        let (finished, features) = (training.finished_parts(), &training.model().features);
        let context = self.context(features, &[]);
        let mut all = Vec::new();
        let mut seen = 0;
        for (member, mut input) in self.members.all.iter().zip(self.inputs()?) {
            let Some(part) = finished.iter().find(|part| member.is_of(part)) else { continue };
            input.out_of_bag = true;
            let (_, mut learner) = input.settings.learner(&context, &input, None, &mut crate::Silent)?;
            let trees = part.family.trees().map_or(0, |ensemble| ensemble.trees.len());
            learner.replay(&part.family, &*observer.begin("out-of-bag scores", trees as u64, "trees"))?;
            let mut scores = learner.finish(trees as u32).out_of_bag.unwrap_or_default();
            if scores.iter().any(|score| score.is_nan()) {
                let start = StartParts::of(self.request, finished.to_vec(), features);
                let in_sample = start.scores(member, &start.values(&self.sources.source)?, None);
                for (score, in_sample) in scores.iter_mut().zip(in_sample).filter(|(score, _)| score.is_nan())
                {
                    *score = in_sample;
                    seen += 1;
                }
            }
            all.push(scores);
        }
        if seen > 0 {
            observer.note(&format!(
                "{seen} out-of-bag scores are those of all trees, because every tree was trained on the row"
            ));
        }
        Ok(all)
    }

    /// Returns the part of a member before its first round.
    fn part(&self, member: &MemberPlan, family: PartFamily) -> Part {
        let is_only = self.request.plan.only().is_some();
        let plain = Part {
            name: String::new(),
            weight: 1.0,
            normalisation: planetree_model::model::Normalisation::None,
            configuration: String::new(),
            role: None,
            family,
        };
        if is_only {
            let has_own_part = self.request.start.is_some() && start::extended(self.request).is_none();
            let is_boosted = self.parameters.boost().is_some();
            let name = if has_own_part && is_boosted { "boosting" } else { plain.family.kind() };
            return Part { name: name.to_owned(), ..plain };
        }
        Part {
            name: member.name(self.number, &self.request.plan),
            weight: member.weight,
            configuration: member.configuration(self.parameters, &self.request.plan),
            role: Some(member.role(self.number)),
            ..plain
        }
    }

    /// Returns the metrics of the training rows that are logged: those that one part alone would have.
    fn training_metrics(&self) -> Parameters {
        let logs_error = settings_of(self.parameters).logs_error(self.request);
        let metrics = if logs_error { vec![Metric::Rmse] } else { self.parameters.metrics.clone() };
        Parameters { metrics, ..self.parameters.clone() }
    }
}

/// Returns the grade of a target that learns whether labels are at most a grade.
fn at_most(target: &Target) -> Option<i32> {
    match target {
        Target::AtMost(grade) => Some(*grade),
        Target::Labels | Target::Ordinal(_) | Target::Classes(_) => None,
    }
}
