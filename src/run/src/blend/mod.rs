//! Blends models or tables of predictions: finds the weights of a weighted sum of scores on validation data, and
//! measures what the sum gains over each of its members.
//!
//! ```text
//! models ──score──┐
//!                 ├─► scores by member ─normalise─► values ──► weights ──► model, or predictions
//! predictions ────┘                                   └────► metrics, gains, significance
//! ```
//!
//! `scores.rs` has the values of all members, `weights.rs` the ways to choose weights (`ascent.rs`),
//! `quality.rs` evaluates weighted sums, and `tables.rs` reads predictions and aligns their rows.

mod ascent;
mod quality;
mod scores;
mod tables;
mod weights;

pub use quality::MemberQuality;
pub use quality::{ALPHA, Gain, Quality};
pub(crate) use scores::BlendScores;
pub use tables::BlendedTable;
pub use tables::read_tables;
pub(crate) use weights::FoundWeights;
pub use weights::WeightMethod;

use planetree_base::error::{Error, Result};
use planetree_data::LabelMap;
use planetree_data::dataset::DatasetReader;
use planetree_metric::{Convention, Metric};
use planetree_model::model::{BlendMember, DatasetRecord, Model, blend};

/// Name of the validation data of a blend in the blended model.
const VALIDATION: &str = "blend";

/// How to choose the weights, and how to measure the blend.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendRequest {
    /// How the weights are chosen.
    pub weights: WeightMethod,
    /// Metric of members and blends.
    pub metric: Metric,
    /// Convention by which the metric is computed.
    pub convention: Convention,
    /// Map of labels to others; `None` if labels are used as they are.
    pub label_map: Option<LabelMap>,
    /// Seed of the significance test.
    pub seed: u64,
}

/// The weights of a blend, and its quality if there are labels.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendOutcome {
    /// The weights.
    pub weights: FoundWeights,
    /// Metrics of the members and the blends; `None` without data.
    pub quality: Option<Quality>,
}

/// Finds the weights of a blend and measures it. `scores` has the normalised scores of all members.
pub fn weigh(scores: &mut BlendScores, request: &BlendRequest) -> Result<BlendOutcome> {
    if let Some(map) = &request.label_map {
        let mapped = map.apply(&mut scores.labels);
        mapped.map_err(|row| map.unlisted(&scores.place, row as u64 + 1, scores.labels[row]))?;
    }
    let weights = weights::find(scores, request)?;
    let quality = Quality::of(scores, &weights, request)?;
    Ok(BlendOutcome { weights, quality: Some(quality) })
}

/// Blends models. Without `data`, the weights must be given or equal, and nothing is measured.
pub fn blend_models(
    members: &[BlendMember],
    data: Option<&DatasetReader>,
    request: &BlendRequest,
) -> Result<(Model, BlendOutcome)> {
    let outcome = match data {
        Some(reader) => weigh(&mut BlendScores::of_models(members, reader)?, request)?,
        None => {
            let weights = request.weights.without_data(members.len())?;
            BlendOutcome { weights, quality: None }
        }
    };
    let FoundWeights { weights, intercept, .. } = &outcome.weights;
    let mut model = blend(members, weights, *intercept, configuration(members, request, data.is_some()))?;
    if let Some(reader) = data {
        model.data.push(DatasetRecord {
            name: VALIDATION.to_owned(),
            fingerprint: reader.fingerprint()?,
            rows: reader.manifest().rows,
            queries: reader.manifest().queries,
        });
    }
    Ok((model, outcome))
}

/// Describes a blend as TOML lines, for the configuration of the blended model. How labels were read and measured is part
/// of it only if there were data.
fn configuration(members: &[BlendMember], request: &BlendRequest, has_data: bool) -> String {
    // Strings and lists of strings in JSON are valid TOML.
    let list = |texts: Vec<String>| serde_json::Value::from(texts).to_string();
    let names = list(members.iter().map(|member| member.name.clone()).collect());
    let normalise = list(members.iter().map(|member| member.normalisation.name().to_owned()).collect());
    let quoted = |text: String| serde_json::Value::from(text);
    let mut lines = vec![
        format!("models = {names}"),
        format!("normalise = {normalise}"),
        format!("weights = {}", quoted(request.weights.to_string())),
    ];
    if has_data {
        lines.push(format!("metric = {}", quoted(request.metric.to_string())));
        lines.push(format!("convention = {}", quoted(request.convention.to_string())));
        let label_map = request.label_map.as_ref();
        lines.extend(label_map.map(|map| format!("label_map = {}", quoted(map.to_string()))));
    }
    lines.join("\n") + "\n"
}

/// Creates the error for data without labels.
fn no_labels(place: &str) -> Error {
    Error::place(
        place,
        "no row has a label: a blend is measured by its labels",
        "pass data with labels, or choose --weights equal or a list of weights and omit --data",
    )
}
