//! The models of the learning-to-rank plugins of Elasticsearch and OpenSearch. A file is the definition of a model;
//! `--curl` prints the request that uploads it.
//!
//! | kind | definition |
//! | --- | --- |
//! | `xgboost+json` | nested trees as XGBoost dumps them; left if `t > x`, 32-bit sums |
//! | `xgboost+json+raw` | what XGBoost's save_model writes; leaves are `base_weights` |
//! | `ranklib` | RankLib's text |
//! | `linear` | a weight for each feature; 32-bit sums |

use super::feature_index::FeatureIndex;
use super::json_text::{JsonText, JsonValue, ROOT};
use super::portable::{PortableLinear, PortableTrees, single};
use super::verify::served::{Rules, ServedLinear, ServedModel, ServedTrees, Sum, as_is, below};
use super::xgboost::dump::{START, quoted_names, read_trees, write_tree};
use super::{ExportOptions, ExportedModel, LINEAR, ranklib, xgboost};
use crate::model::{Model, ModelFeature};
use std::collections::BTreeMap;

/// Name of the kind of nested trees.
pub(super) const DUMP: &str = "xgboost+json";
/// Name of the kind of XGBoost's own format.
pub(super) const RAW: &str = "xgboost+json+raw";
/// Name of the kind of RankLib's text.
pub(super) const RANKLIB: &str = "ranklib";

/// The start of a file of nested trees. The plugins take this objective to mean that scores are not transformed.
const SPLITS: &str = "{\"objective\":\"rank:pairwise\",\"splits\":[";

/// Returns whether a file was written by [`export`] and has no other format's form.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    let is_linear = || {
        let weights: Result<BTreeMap<String, f64>, _> = serde_json::from_slice(bytes);
        bytes.starts_with(b"{\"") && bytes.ends_with(b"}\n") && weights.is_ok()
    };
    bytes.strip_prefix(SPLITS.as_bytes()).is_some_and(|rest| rest.starts_with(START.as_bytes()))
        || is_linear()
}

/// Returns the kind of model in a file.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    match () {
        () if bytes.starts_with(b"## ") => RANKLIB,
        () if xgboost::is_likely(bytes) => RAW,
        () if bytes.starts_with(SPLITS.as_bytes()) => DUMP,
        () => LINEAR,
    }
}

/// Writes a model.
pub(super) fn export(model: &Model, options: &ExportOptions) -> ExportedModel {
    match options.kind {
        RANKLIB => ranklib::export(model, options),
        RAW => xgboost::export_for_plugins(model),
        LINEAR => linear(model),
        _ => dump(model),
    }
}

fn dump(model: &Model) -> ExportedModel {
    let portable = PortableTrees::of(model, "the plugin").into_sum().with_base_tree();
    let names = quoted_names(&model.features);
    let mut text = SPLITS.to_owned();
    for (number, nodes) in portable.trees.iter().enumerate() {
        text.push_str(if number > 0 { ",\n" } else { "" });
        write_tree(&mut text, nodes, &names, f32::MAX.into());
    }
    text.push_str("]}\n");
    ExportedModel { bytes: text.into_bytes(), notes: Vec::new(), losses: portable.losses }
}

fn linear(model: &Model) -> ExportedModel {
    let portable = PortableLinear::of(model);
    let names = quoted_names(&model.features);
    let pair = |(feature, weight): &(u32, f64)| format!("{}:{:?}", names[*feature as usize], single(*weight));
    let pairs: Vec<String> = portable.weights.iter().map(pair).collect();
    let text = format!("{{{}}}\n", pairs.join(","));
    let losses = portable.losses(model, "the plugin");
    ExportedModel { bytes: text.into_bytes(), notes: portable.constant_note(), losses }
}

/// Reads a file as the plugins do.
pub(super) fn served(bytes: &[u8], features: &[ModelFeature]) -> Result<ServedModel, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let index = FeatureIndex::new(features);
    match kind(bytes) {
        RANKLIB => ranklib::served(bytes, features),
        RAW => xgboost::served_by_plugins(bytes, features),
        LINEAR => {
            let json = JsonText::parse(text)?;
            let JsonValue::Object(members) = json.value(ROOT) else {
                return Err("the weights are not an object".to_owned());
            };
            let weight = |(name, _): &(String, usize)| {
                Ok((index.of(name)?, f64::from(json.number(ROOT, name)? as f32)))
            };
            let weights = members.iter().map(weight).collect::<Result<_, String>>()?;
            let missing = BTreeMap::new();
            Ok(ServedModel::Linear(ServedLinear { base_score: None, weights, missing, sum: Sum::Single }))
        }
        _ => {
            let json = JsonText::parse(text)?;
            let trees = read_trees(&json, json.required(ROOT, "splits")?, &index)?;
            Ok(ServedModel::Trees(ServedTrees { base_score: 0.0, trees, rules: PLUGIN_RULES }))
        }
    }
}

/// How the Elasticsearch and OpenSearch LTR plugins compare, round and sum.
pub(super) const PLUGIN_RULES: Rules = Rules {
    reads: as_is,
    goes_left: below,
    sum: Sum::Single,
    is_mean: false,
    test: "t > x",
    blind: Some((is_largest, "t > x cannot include the largest float32")),
};

/// Returns whether a value is the largest finite one.
fn is_largest(value: f32) -> bool {
    value == f32::MAX
}
