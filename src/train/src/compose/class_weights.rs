//! Fits the weights of classes on the model that is written.

use super::members::PlannedMembers;
use super::stage_bins::StageBins;
use super::start::{class_scores, values_on};
use crate::config::LeastSquaresData;
use crate::driver::{Observer, Sources, TrainRequest, fit_labels};
use planetree_base::error::Result;
use planetree_model::model::{Model, Part};

/// What the weights of classes are fitted on.
pub(super) struct FitData<'a> {
    pub request: &'a TrainRequest,
    pub data: LeastSquaresData,
    pub members: &'a PlannedMembers,
    pub sources: &'a Sources,
    pub bins: &'a StageBins,
}

impl FitData<'_> {
    /// Sets the weights of classes and the intercept to the least squares of the labels.
    pub(super) fn fit_weights(&self, model: &mut Model, observer: &mut dyn Observer) -> Result<()> {
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
