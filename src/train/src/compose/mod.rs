//! Trains models that are made of several parts: stages that continue from each other, runs that are averaged, and
//! classes. A model of one part is the plainest case.
//!
//! Vocabulary: a *member* is one class of one run. Every member goes through all *stages*, and each stage adds a part for
//! each member. The members of a stage are trained side by side, and rounds are judged by the scores of all of them
//! together.
//!
//! `members.rs` lists the members, `grades.rs` finds the classes and their weights, and `start.rs` computes the scores that a stage starts from.

mod checks;
mod grades;
mod learners;
mod members;
mod start;

use crate::bins::BinnedData;
use crate::config::{LeastSquaresData, Parameters, StageStart, Target};
use crate::driver::{
    BinKey, ClassFit, Combination, GivenScores, LearnerOutputs, Member, MemberInput, Members, Metrics,
    Observer, Outcome, PhaseSeconds, RowBytes, Scores, SharedValues, Sources, Stage, StageContext,
    StartScores, TrainRequest, Training, TrainingRows, TrainingStart, ValidationData, check_labels,
    fit_labels, open_sources,
};
use learners::settings_of;
use members::{MemberPlan, PlannedMembers};
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use planetree_model::model::{Model, ModelFeature, Origin, Part, PartFamily};
use rayon::prelude::*;
use start::{StartParts, class_scores, values_on};
use std::sync::Arc;

/// Trains the model that `request` describes.
pub(crate) fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    checks::check(request)?;
    let features = start::start_features(request);
    let mut sources = open_sources(request, features.as_deref(), observer)?;
    checks::check_start_scores(request, &sources)?;
    let members = PlannedMembers::of(&request.plan, &sources.source)?;
    let mut training = Training::open(
        request,
        first_model(request, &members, &sources)?,
        PhaseSeconds::default(),
        observer,
    )?;
    let mut bins: Option<StageBins> = None;
    let mut outputs = Vec::new();
    for number in training.next_stage()..=request.plan.stages.len() as u32 {
        let parameters = &request.plan.stages[number as usize - 1];
        let out_of_bag = match (number, request.plan.stage_start) {
            (2, StageStart::OutOfBag) => {
                let first = request.plan.first();
                let binned = match bins.take().filter(|bins| bins.key == BinKey::of(first)) {
                    Some(bins) => bins,
                    None => StageBins::read(request, first, &members, &mut sources, observer)?,
                };
                let binned = &*bins.insert(binned);
                let (parameters, members, sources) = (first, &members, &sources);
                let stage = StageRun { request, number: 1, parameters, members, sources, binned };
                stage.out_of_bag(&training, observer)?
            }
            _ => Vec::new(),
        };
        let binned = match bins.take().filter(|bins| bins.key == BinKey::of(parameters)) {
            Some(bins) => bins.with_metrics(parameters)?,
            None => StageBins::read(request, parameters, &members, &mut sources, observer)?,
        };
        let binned = bins.insert(binned);
        let is_fresh = training.finished_parts().len() == training.model().parts.len();
        if number == 1 && is_fresh && request.start.is_none() {
            training.model_mut().features = sources.model_features(&binned.data);
        }
        checks::check_fills(request, number, training.model(), &binned.data)?;
        let stage = StageRun { request, number, parameters, members: &members, sources: &sources, binned };
        outputs = stage.run(&mut training, out_of_bag, observer)?;
    }
    if let (Target::Ordinal(ordinal), Some(bins)) = (&request.plan.target, &bins)
        && let Some(data) = ordinal.weights.data()
    {
        let fit = FitData { request, data, members: &members, sources: &sources, bins };
        for model in training.models_mut() {
            fit.fit_weights(model, observer)?;
        }
    }
    training.seconds.load += sources.seconds.load;
    training.seconds.bin += sources.seconds.bin;
    let outputs = if request.plan.only().is_some() { outputs.pop() } else { None };
    training.finish(outputs.unwrap_or_default())
}

/// Returns the model before the first round, without the parts to be trained. Its features have no fill values yet,
/// unless they come from a start model.
fn first_model(request: &TrainRequest, members: &PlannedMembers, sources: &Sources) -> Result<Model> {
    let known = || {
        let features = sources.source.known().iter();
        let feature = |known: &planetree_data::dataset::KnownFeature| ModelFeature {
            name: known.name.clone(),
            fill: None,
            words: known.words.clone().unwrap_or_default(),
        };
        features.map(feature).collect()
    };
    let start = request.start.as_ref();
    let parts = match start {
        Some(start) if start::extended(request).is_none() => start::start_parts(start),
        _ => Vec::new(),
    };
    Ok(Model {
        intercept: start.map_or(members.intercept, |start| start.intercept),
        parts,
        features: start.map_or_else(known, |start| start.features.clone()),
        configuration: request.configuration(),
        data: sources.data_used(request)?,
        rounds: 0,
        start_scores: request.start_scores.as_ref().map(GivenScores::digest),
        origin: Origin::default(),
    })
}

/// The data of a stage. Later stages with the same bins use them, too.
struct StageBins {
    key: BinKey,
    /// The metrics that the validation sets compute.
    metrics: Vec<Metric>,
    /// The rows with the labels of the data, or those of `target=at_most`.
    data: Arc<BinnedData>,
    /// The rows with the labels of each class.
    classes: Vec<Arc<BinnedData>>,
    validation: Vec<Arc<ValidationData>>,
}

impl StageBins {
    fn read(
        request: &TrainRequest,
        parameters: &Parameters,
        members: &PlannedMembers,
        sources: &mut Sources,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let row_bytes = row_bytes(request, members);
        let data = sources.bin(request, parameters, row_bytes, observer)?;
        let validation = sources.load_validation(request, parameters, &data, observer)?;
        let data = match request.plan.target {
            Target::AtMost(_) => data.with_labels(|label| request.plan.target.label(label)),
            Target::Labels | Target::Ordinal(_) => data,
        };
        check_labels(&sources.source, &data)?;
        let of_class = |grade: i32| Arc::new(data.with_labels(|label| Target::AtMost(grade).label(label)));
        let classes = members.classes().map(|class| of_class(class.at_most)).collect();
        let (key, metrics) = (BinKey::of(parameters), parameters.metrics.clone());
        Ok(StageBins { key, metrics, data: Arc::new(data), classes, validation })
    }

    /// Returns the same data with the metrics of a stage.
    fn with_metrics(self, parameters: &Parameters) -> Result<Self> {
        if self.metrics == parameters.metrics {
            return Ok(self);
        }
        let set = |set: &Arc<ValidationData>| Ok(Arc::new(set.with_metrics(parameters)?));
        let validation = self.validation.iter().map(set).collect::<Result<_>>()?;
        Ok(StageBins { metrics: parameters.metrics.clone(), validation, ..self })
    }

    /// Returns the rows with the labels that a member learns.
    fn of(&self, member: &MemberPlan) -> &Arc<BinnedData> {
        member.class_number.and_then(|class| self.classes.get(class)).unwrap_or(&self.data)
    }
}

/// Returns the memory per row of the stage that needs most of it.
fn row_bytes(request: &TrainRequest, members: &PlannedMembers) -> RowBytes {
    let count = members.all.len() as u64;
    let of_stage = |stage: &Parameters| settings_of(stage).bytes_per_row(request, count);
    let most = request.plan.stages.iter().map(of_stage).max().unwrap_or(0);
    /// Label and bounds of queries, which every class has of its own.
    const CLASS_BYTES: u64 = 8;
    // The combined score, while it is evaluated.
    let combined = if count > 1 { 8 } else { 0 };
    // The scores of a model are computed as one list before they are divided by partition. Given scores are a list, too.
    let has_model = request.start.is_some() || request.plan.stages.len() > 1;
    let has_given = request.start_scores.is_some();
    let start = 8 * (u64::from(has_model || has_given) + u64::from(has_given));
    RowBytes {
        training: most + CLASS_BYTES * members.classes().count() as u64 + combined + start,
        validation: 8 * count + combined + start,
    }
}

/// A stage with its data.
struct StageRun<'a> {
    request: &'a TrainRequest,
    number: u32,
    parameters: &'a Parameters,
    members: &'a PlannedMembers,
    sources: &'a Sources,
    binned: &'a StageBins,
}

impl StageRun<'_> {
    /// Runs the stage. `out_of_bag` are scores of the training rows that replace those of earlier stages, by member.
    fn run(
        &self,
        training: &mut Training<'_>,
        out_of_bag: Vec<Vec<f64>>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<LearnerOutputs>> {
        let features = training.model().features.clone();
        let context = self.context(&features, &self.binned.validation);
        let inputs = self.inputs();
        if let Some(backend) = &self.request.backend {
            backend.begin_stage(self.parameters, &self.binned.data);
        }
        let has_start =
            self.number > 1 || self.request.start.is_some() || self.request.start_scores.is_some();
        let starts = match has_start {
            true => self.start(training.finished_parts(), out_of_bag, &features, &inputs)?,
            false => Vec::new(),
        };
        let all = self.create(&context, &inputs, starts, observer)?;
        let intercept = if self.request.start.is_some() { 0.0 } else { self.members.intercept };
        let training_rows = match (all.len(), &self.request.backend) {
            (1, _) => None,
            (_, None) => Some(TrainingRows::Here(
                Metrics::new(&self.training_metrics(), &self.binned.data.rows)?,
                &self.binned.data.rows[..],
            )),
            (_, Some(backend)) => {
                Some(TrainingRows::Remote(&**backend, Box::new(self.combination(intercept))))
            }
        };
        let validation = self.binned.validation.clone();
        let mut members = Members::new(all, intercept, validation, training_rows).with_fit(self.class_fit());
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
    fn inputs(&self) -> Vec<MemberInput> {
        let input = |(number, member): (usize, &MemberPlan)| MemberInput {
            number,
            settings: settings_of(&member.parameters(self.parameters)),
            data: self.binned.of(member).clone(),
            at_most: member.class.map(|class| class.at_most).or(at_most(&self.request.plan.target)),
            extended: start::extended(self.request).filter(|_| self.number == 1).cloned(),
            out_of_bag: self.request.out_of_bag,
        };
        self.members.all.iter().enumerate().map(input).collect()
    }

    /// Computes the scores that each member starts from: the given ones, and those of the start model and of its own
    /// earlier stages.
    fn start(
        &self,
        finished: &[Part],
        out_of_bag: Vec<Vec<f64>>,
        features: &[ModelFeature],
        inputs: &[MemberInput],
    ) -> Result<Vec<StartScores>> {
        let start = StartParts::of(self.request, finished, features);
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
                (None, None) if !is_here => TrainingStart::Remote(Box::new(start.model_of(member))),
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

    /// Returns how the scores of all members are combined and evaluated by a backend.
    fn combination(&self, intercept: f64) -> Combination {
        Combination {
            parameters: self.training_metrics(),
            at_most: at_most(&self.request.plan.target),
            intercept,
            weights: self.members.all.iter().map(|member| member.weight).collect(),
        }
    }

    /// Returns the out-of-bag scores of the forests that this stage, the first one, has trained, by member. A row that
    /// every tree was trained on has the score of all trees.
    fn out_of_bag(&self, training: &Training<'_>, observer: &mut dyn Observer) -> Result<Vec<Vec<f64>>> {
        let (finished, features) = (training.finished_parts(), &training.model().features);
        let context = self.context(features, &[]);
        let mut all = Vec::new();
        let mut seen = 0;
        for (member, mut input) in self.members.all.iter().zip(self.inputs()) {
            let Some(part) = finished.iter().find(|part| member.is_of(part)) else { continue };
            input.out_of_bag = true;
            let (_, mut learner) = input.settings.learner(&context, &input, None, &mut crate::Silent)?;
            let trees = part.family.trees().map_or(0, |ensemble| ensemble.trees.len());
            learner.replay(&part.family, &*observer.begin("out-of-bag scores", trees as u64, "trees"))?;
            let mut scores = learner.finish(trees as u32).out_of_bag.unwrap_or_default();
            if scores.iter().any(|score| score.is_nan()) {
                let start = StartParts::of(self.request, finished, features);
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
        Target::Labels | Target::Ordinal(_) => None,
    }
}

/// What the weights of classes are fitted on.
struct FitData<'a> {
    request: &'a TrainRequest,
    data: LeastSquaresData,
    members: &'a PlannedMembers,
    sources: &'a Sources,
    bins: &'a StageBins,
}

impl FitData<'_> {
    /// Sets the weights of classes and the intercept to the least squares of the labels.
    fn fit_weights(&self, model: &mut Model, observer: &mut dyn Observer) -> Result<()> {
        let FitData { request, data, members, sources, bins } = *self;
        let mut columns: Vec<Vec<f64>> = members.classes().map(|_| Vec::new()).collect();
        let train = (data != LeastSquaresData::Valid).then_some((&sources.source, &bins.data.rows[..]));
        let first = sources.validation.first().zip(bins.validation.first());
        let valid =
            first.filter(|_| data != LeastSquaresData::Train).map(|(source, set)| (source, set.rows()));
        let splits: Vec<_> = train.into_iter().chain(valid).collect();
        for (source, _) in &splits {
            let values = values_on(source, model)?;
            for (class, column) in members.classes().zip(&mut columns) {
                column.extend(class_scores(model, class, request.plan.runs, &values));
            }
        }
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let fit = fit_labels(&columns, &splits.iter().map(|(_, rows)| *rows).collect::<Vec<_>>());
        for (class, weight) in members.classes().zip(&fit.coefficients) {
            let of_class = |part: &&mut Part| part.role.is_some_and(|role| role.class == Some(class));
            let parts = model.parts.iter_mut().filter(of_class);
            parts.for_each(|part| part.weight = weight / f64::from(request.plan.runs));
        }
        model.intercept = fit.intercept;
        let weights: Vec<String> =
            fit.coefficients.iter().chain([&fit.intercept]).map(|weight| format!("{weight:.4}")).collect();
        observer.note(&format!("class_weights {}: {}", data.name(), weights.join(", ")));
        for class in
            members.classes().zip(&fit.dependent).filter(|(_, dependent)| **dependent).map(|(class, _)| class)
        {
            observer.note(&format!(
                "the scores of class {} follow from those of other classes, so their weight is 0",
                class.at_most
            ));
        }
        Ok(())
    }
}
