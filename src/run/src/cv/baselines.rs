//! Evaluates rankings that need no model on the test parts of a cross-validation, beside its models.

use super::CrossValidation;
use super::fold::MetricValue;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_judge::evaluate::{
    Baseline, EvaluateRequest, EvaluationSummary, MetricSummary, MetricsLayout, MetricsTable, Ranking,
    RowOrigin, evaluate,
};

/// A ranking that needs no model, with its metrics on the test part of each fold.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineResult {
    /// Name of the ranking.
    pub name: String,
    /// The metrics by fold, in the order of the folds.
    pub folds: Vec<Vec<MetricValue>>,
}

impl CrossValidation {
    /// Evaluates rankings that need no model on the test part of each fold, and writes their metrics per query to
    /// `baselines.parquet` in the directory `output`. Returns nothing and writes nothing if there are none.
    pub fn baselines(
        &self,
        baselines: &[(String, Baseline)],
        label_map: Option<&LabelMap>,
        output: &Location,
    ) -> Result<Vec<BaselineResult>> {
        if baselines.is_empty() {
            return Ok(Vec::new());
        }
        let (metrics, convention) = (&self.request.metrics, &self.request.convention);
        let layout = MetricsLayout {
            metrics,
            convention,
            label_map,
            segments: false,
            systems: true,
            folds: true,
            curve: None,
        };
        let request = EvaluateRequest {
            label_map: label_map.cloned(),
            gains: true,
            ..EvaluateRequest::new(metrics.clone(), convention.clone())
        };
        let mut table = MetricsTable::create(&output.join("baselines.parquet"), layout)?;
        let mut all = Vec::new();
        for (name, baseline) in baselines {
            let mut folds = Vec::new();
            for (index, rotation) in self.rotations.iter().enumerate() {
                let data = self.parts[rotation.test].location().clone();
                let results = evaluate(&Ranking::Baseline { data, baseline: baseline.clone() }, &request)?;
                table.write(&results, RowOrigin { system: name, fold: index + 1 })?;
                let value = |summary: &MetricSummary| MetricValue {
                    metric: summary.metric.to_string(),
                    value: summary.mean.unwrap_or(f64::NAN),
                };
                let summary = EvaluationSummary::of(&results, metrics, 0);
                folds.push(summary.metrics.iter().map(value).collect());
            }
            all.push(BaselineResult { name: name.clone(), folds });
        }
        table.finish()?;
        Ok(all)
    }
}
