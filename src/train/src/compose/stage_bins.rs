//! The data of a stage: bins, labels of classes and validation sets.

use super::learners::settings_of;
use super::members::{MemberPlan, PlannedMembers};
use crate::bins::BinnedData;
use crate::config::{Parameters, Target};
use crate::driver::{
    BinKey, CoupledClass, DataSize, LearnerBytes, Observer, Sources, TrainRequest, ValidationData,
    check_labels,
};
use planetree_base::error::Result;
use planetree_metric::Metric;
use std::sync::Arc;

/// The data of a stage. Later stages with the same bins use them, too.
pub(super) struct StageBins {
    pub key: BinKey,
    /// The metrics that the validation sets compute.
    metrics: Vec<Metric>,
    /// The rows with the labels of the data, or those of `target=at_most`.
    pub data: Arc<BinnedData>,
    /// The rows with the labels of each class.
    classes: Vec<Arc<BinnedData>>,
    pub validation: Vec<Arc<ValidationData>>,
}

impl StageBins {
    pub(super) fn read(
        request: &TrainRequest,
        parameters: &Parameters,
        members: &PlannedMembers,
        sources: &mut Sources,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let learner = learner_bytes(request, members, &DataSize::of(&sources.source));
        let data = sources.bin(request, parameters, learner, observer)?;
        let validation = sources.load_validation(request, parameters, &data, observer)?;
        let data = match request.plan.target {
            Target::AtMost(_) => data.with_labels(|label| request.plan.target.label(label)),
            Target::Labels | Target::Ordinal(_) | Target::Classes(_) => data,
        };
        check_labels(&sources.source, &data)?;
        let of_class = |grade: i32| Arc::new(data.with_labels(|label| Target::AtMost(grade).label(label)));
        let of_grade = |class: CoupledClass| Arc::new(data.with_labels(|label| class.label(label)));
        let ordinal = members.classes().map(|class| of_class(class.at_most));
        let classes = ordinal.chain(members.coupled_classes().map(of_grade)).collect();
        let (key, metrics) = (BinKey::of(parameters), parameters.metrics.clone());
        Ok(StageBins { key, metrics, data: Arc::new(data), classes, validation })
    }

    /// Returns the same data with the metrics of a stage.
    pub(super) fn with_metrics(self, parameters: &Parameters) -> Result<Self> {
        if self.metrics == parameters.metrics {
            return Ok(self);
        }
        let set = |set: &Arc<ValidationData>| Ok(Arc::new(set.with_metrics(parameters)?));
        let validation = self.validation.iter().map(set).collect::<Result<_>>()?;
        Ok(StageBins { metrics: parameters.metrics.clone(), validation, ..self })
    }

    /// Returns the rows with the labels that a member learns.
    pub(super) fn of(&self, member: &MemberPlan) -> &Arc<BinnedData> {
        member.class_number.and_then(|class| self.classes.get(class)).unwrap_or(&self.data)
    }
}

/// Returns the size of the rows that a stage is trained on: documents, or pairs of them.
fn trained_size(stage: &Parameters, size: &DataSize) -> DataSize {
    match BinKey::of(stage).pairs {
        Some((pairs, _)) => DataSize { rows: size.rows.saturating_mul(u64::from(pairs)), ..*size },
        None => *size,
    }
}

/// Returns the memory of the stage that needs most of it, with what all stages keep.
fn learner_bytes(request: &TrainRequest, members: &PlannedMembers, size: &DataSize) -> LearnerBytes {
    let count = members.all.len() as u64;
    let of_stage = |stage: &Parameters| settings_of(stage).bytes_per_row(request, count);
    let most = request.plan.stages.iter().map(of_stage).max().unwrap_or(0);
    let stages = || request.plan.stages.iter().map(|stage| (settings_of(stage), trained_size(stage, size)));
    let working = stages().map(|(settings, size)| settings.working_bytes(request, &size)).max().unwrap_or(0);
    let kept: u64 = stages().map(|(settings, size)| settings.kept_bytes(request, &size)).sum();
    /// Label and bounds of queries, which every class has of its own.
    const CLASS_BYTES: u64 = 8;
    // The combined score, while it is evaluated.
    let combined = if count > 1 { 8 } else { 0 };
    // The scores of a model are computed as one list before they are divided by partition. Given scores are a list, too.
    let has_model = request.start.is_some() || request.plan.stages.len() > 1;
    let has_given = request.start_scores.is_some();
    let start = 8 * (u64::from(has_model || has_given) + u64::from(has_given));
    LearnerBytes {
        working: working.saturating_add(kept.saturating_mul(count)),
        training: most
            + CLASS_BYTES * (members.classes().count() + members.coupled_classes().count()) as u64
            + combined
            + start,
        validation: 8 * count + combined + start,
    }
}
