//! Converts the result of a blend to one JSON object.

use super::Blended;
use planetree_run::blend::{ALPHA, Gain};
use serde_json::{Value, json};

/// Returns the whole result as JSON.
pub(super) fn object(blended: &Blended) -> Value {
    let Blended { inputs, request, outcome, .. } = blended;
    let quality = outcome.quality.as_ref();
    let models: Vec<Value> = inputs
        .iter()
        .zip(&outcome.weights.weights)
        .enumerate()
        .map(|(member, (input, weight))| {
            let alone = quality.map(|quality| &quality.members[member]);
            json!({
                "name": input.name,
                "file": input.file,
                "normalise": input.normalisation.name(),
                "weight": weight,
                "mean": alone.map(|alone| alone.mean),
                "constant": alone.map(|alone| alone.is_constant),
            })
        })
        .collect();
    json!({
        "output": blended.output,
        "kind": if blended.is_model { "model" } else { "predictions" },
        "metric": request.metric.to_string(),
        "higher_is_better": request.metric.higher_is_better(),
        "convention": request.convention.to_string(),
        "label_map": request.label_map.as_ref().map(ToString::to_string),
        "rows": quality.map(|quality| quality.rows),
        "queries": quality.map(|quality| quality.queries),
        "uncounted_queries": quality.map(|quality| quality.queries - quality.counted),
        "weights": request.weights.to_string(),
        "intercept": outcome.weights.intercept,
        "models": models,
        "equal": quality.map(|quality| quality.equal),
        "blend": quality.map(|quality| quality.blend),
        "test": "randomisation",
        "alternative": "two-sided",
        "alpha": ALPHA,
        "seed": request.seed,
        "gains": quality.map(|quality| quality.gains.iter().map(gain_object).collect::<Vec<Value>>()),
        "notes": blended.notes,
    })
}

fn gain_object(gain: &Gain) -> Value {
    let Gain { over, pair } = gain;
    json!({
        "over": if over.is_some() { "best model" } else { "equal weights" },
        "model": over,
        "difference": pair.difference.mean,
        "interval": pair.interval.map(|interval| json!({
            "low": interval.low,
            "high": interval.high,
            "level": interval.level,
        })),
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "p": pair.randomisation.p,
        "significant": pair.differs,
    })
}
