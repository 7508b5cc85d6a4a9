//! Writes and reads the header of a model file: a JSON value with everything except the rows.

use crate::family::{ModelFeature, PartFamily, TreeEnsemble};
use crate::model::{DatasetRecord, Model, Normalisation, OldEnsemble, Origin, Part, PartGroup, PartRole};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Digest;
use planetree_data::table::TableReader;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The version of the file format.
const FORMAT: u32 = 2;
/// The version of models that were trained from start scores. Earlier versions of planetree, which do not know such
/// models, refuse them.
const WITH_START_SCORES: u32 = 3;
/// The version of models with groups of parts, which earlier versions of planetree do not know either.
const WITH_GROUPS: u32 = 4;
/// The version of models with trees on normalised features, which earlier versions of planetree do not know either.
const WITH_NORMALISED_FEATURES: u32 = 5;
/// The last format version in which a model is a single ensemble without parts.
const WITHOUT_PARTS: u32 = 1;
/// Metadata key of the header.
pub(super) const HEADER: &str = "planetree.model";

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    intercept: f64,
    #[serde(deserialize_with = "numbered_parts")]
    parts: Vec<PartHeader>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<PartGroup>,
    features: Vec<ModelFeature>,
    configuration: String,
    data: Vec<DatasetRecord>,
    rounds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_scores: Option<Digest>,
}

#[derive(Serialize, Deserialize)]
struct PartHeader {
    name: String,
    kind: String,
    #[serde(deserialize_with = "finite_weight")]
    weight: f64,
    normalisation: Normalisation,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    configuration: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<PartRole>,
    /// Number of rows of this part in the file.
    rows: u64,
    /// Further settings, which depend on the family of the part.
    #[serde(flatten)]
    settings: Map<String, Value>,
}

/// Reads the parts. An error has the number of its part.
fn numbered_parts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<PartHeader>, D::Error> {
    struct Parts;

    impl<'de> Visitor<'de> for Parts {
        type Value = Vec<PartHeader>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of parts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Self::Value, A::Error> {
            let mut parts = Vec::new();
            loop {
                let next = list.next_element();
                match next.map_err(|error| A::Error::custom(format_args!("part {}: {error}", parts.len())))? {
                    Some(part) => parts.push(part),
                    None => return Ok(parts),
                }
            }
        }
    }

    deserializer.deserialize_seq(Parts)
}

/// Reads a weight. JSON has no infinite numbers and no NaN, so programs write `null` in their place.
fn finite_weight<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    let weight: Option<f64> = Option::deserialize(deserializer)?;
    weight.ok_or_else(|| D::Error::custom("the weight is null, but it must be a finite number"))
}

/// The header of a file in format version 1.
#[derive(Deserialize)]
struct HeaderWithoutParts {
    ensemble: OldEnsemble,
    base_score: f64,
    #[serde(default)]
    base_feature: Option<u32>,
    features: Vec<ModelFeature>,
    configuration: String,
    data: Vec<DatasetRecord>,
    rounds: u32,
}

/// The content of a header after parsing.
pub(super) struct ReadHeader {
    /// The model. Its parts have no rows yet.
    pub model: Model,
    /// The expected number of rows in each part. `None` in format version 1, which does not store it.
    pub rows: Option<Vec<u64>>,
    /// Whether the table has the column `part`.
    pub has_parts: bool,
}

/// Returns the header of a model as JSON. `rows` is the number of rows in each part.
pub(super) fn header_text(
    model: &Model,
    features: &[ModelFeature],
    rows: &[u64],
) -> std::result::Result<String, serde_json::Error> {
    let part = |(part, rows): (&Part, &u64)| PartHeader {
        name: part.name.clone(),
        kind: part.family.kind().to_owned(),
        weight: part.weight,
        normalisation: part.normalisation,
        configuration: part.configuration.clone(),
        role: part.role,
        rows: *rows,
        settings: part.family.settings(),
    };
    serde_json::to_string(&Header {
        format: match (model.groups.is_empty(), model.start_scores) {
            _ if model.normalised_trees().is_some() => WITH_NORMALISED_FEATURES,
            (false, _) => WITH_GROUPS,
            (true, Some(_)) => WITH_START_SCORES,
            (true, None) => FORMAT,
        },
        intercept: model.intercept,
        parts: model.parts.iter().zip(rows).map(part).collect(),
        groups: model.groups.clone(),
        features: features.to_vec(),
        configuration: model.configuration.clone(),
        data: model.data.clone(),
        rounds: model.rounds,
        start_scores: model.start_scores,
    })
}

/// Reads the header of a model file in any supported format version.
pub(super) fn read_header(table: &TableReader, invalid: &dyn Fn(String) -> Error) -> Result<ReadHeader> {
    /// The version is parsed first, because everything else may differ in a newer format.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let text =
        table.metadata(HEADER).ok_or_else(|| invalid(format!("the metadata key {HEADER} is missing")))?;
    let version: Version = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    match version.format {
        ..=WITHOUT_PARTS => {
            let header = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
            Ok(ReadHeader { model: without_parts(header), rows: None, has_parts: false })
        }
        FORMAT | WITH_START_SCORES | WITH_GROUPS | WITH_NORMALISED_FEATURES => {
            let header = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
            with_parts(header, table, invalid)
        }
        newer => Err(Error::place(
            table.location(),
            format_args!("written by a newer planetree (model format {newer})"),
            "use a newer version of planetree",
        )),
    }
}

fn with_parts(header: Header, table: &TableReader, invalid: &dyn Fn(String) -> Error) -> Result<ReadHeader> {
    let rows = header.parts.iter().map(|part| part.rows).collect();
    let mut parts = Vec::with_capacity(header.parts.len());
    for (number, part) in header.parts.into_iter().enumerate() {
        let PartHeader { name, kind, weight, normalisation, configuration, role, settings, .. } = part;
        let family = PartFamily::new(&kind, settings).ok_or_else(|| {
            Error::place(
                table.location(),
                format_args!("part {number} ({name}) is of an unknown kind: {kind:?}"),
                format_args!(
                    "use a newer version of planetree; this version supports only {}",
                    PartFamily::KINDS.join(", ")
                ),
            )
        })?;
        let family = family.map_err(|error| invalid(format!("part {number} ({name}): {error}")))?;
        parts.push(Part { name, weight, normalisation, configuration, role, family });
    }
    let model = Model {
        intercept: header.intercept,
        parts,
        groups: header.groups,
        features: header.features,
        configuration: header.configuration,
        data: header.data,
        rounds: header.rounds,
        start_scores: header.start_scores,
        origin: Origin::default(),
    };
    Ok(ReadHeader { model, rows: Some(rows), has_parts: true })
}

fn without_parts(header: HeaderWithoutParts) -> Model {
    let combine = header.ensemble.combine();
    let HeaderWithoutParts { base_score, base_feature, .. } = header;
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(TreeEnsemble::new(combine, base_score, base_feature, Vec::new()))],
        groups: Vec::new(),
        features: header.features,
        configuration: header.configuration,
        data: header.data,
        rounds: header.rounds,
        start_scores: None,
        origin: Origin::default(),
    }
}
