//! A model as a Parquet file: one row per node. Everything else is one JSON value in the file's metadata, so that a
//! model is a single file.

use super::tree::{Branch, Node, Split, Tree};
use super::{DatasetRecord, Ensemble, Model, ModelFeature, Origin};
use arrow::array::{
    Array, ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};

/// Version of the file format.
const FORMAT: u32 = 1;
/// Metadata key of the [`Header`].
const HEADER: &str = "planetree.model";
/// Metadata key of the configuration. It is also in the header; the copy is for people who look at the metadata.
const CONFIGURATION: &str = "planetree.configuration";

/// The schema. Names and types are a contract.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    let optional = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        required("tree", DataType::Int32),
        required("node", DataType::Int32),
        required("depth", DataType::Int32),
        optional("feature", DataType::Utf8),
        optional("threshold", DataType::Float32),
        optional("missing", DataType::Utf8),
        optional("left", DataType::Int32),
        optional("right", DataType::Int32),
        optional("middle", DataType::Int32),
        required("value", DataType::Float64),
        optional("gain", DataType::Float64),
        required("cover", DataType::Float64),
        required("group", DataType::Int32),
    ]))
});

/// Everything but the trees.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    ensemble: Ensemble,
    base_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_feature: Option<u32>,
    features: Vec<ModelFeature>,
    configuration: String,
    data: Vec<DatasetRecord>,
    rounds: u32,
}

impl Model {
    /// Writes the model to a file atomically. An earlier file is replaced only if planetree wrote it.
    pub fn write(&self, location: &Location) -> Result<()> {
        self.write_with(location, &[])
    }

    /// Writes the model with additional metadata.
    pub fn write_with(&self, location: &Location, extra: &[(&str, String)]) -> Result<()> {
        let mut writer = ModelWriter::create(location, &self.features)?;
        for tree in &self.trees {
            writer.write_tree(tree)?;
        }
        writer.finish(self, extra)
    }

    /// Reads and validates a model.
    pub fn read(location: &Location) -> Result<Model> {
        Self::from_table(&TableReader::open(location, TableKind::Model)?)
    }

    /// Reads and validates a model, and returns it with all metadata of its file.
    pub fn read_with(location: &Location) -> Result<(Model, BTreeMap<String, String>)> {
        let table = TableReader::open(location, TableKind::Model)?;
        Ok((Self::from_table(&table)?, table.all_metadata().clone()))
    }

    /// Reads and validates a model from an open table.
    pub fn from_table(table: &TableReader) -> Result<Model> {
        let invalid = |problem: String| {
            Error::place(
                table.location(),
                format_args!("not a valid model: {problem}"),
                "train the model again, or check the program that wrote this file",
            )
        };
        let header = read_header(table, invalid)?;
        let feature_index: FeatureIndex<'_> =
            (0..).zip(&header.features).map(|(index, feature)| (feature.name.as_str(), index)).collect();
        let mut trees: Vec<Tree> = Vec::new();
        for batch in table.batches() {
            let batch = batch?;
            let columns = NodeColumns::of(&batch).map_err(invalid)?;
            for row in 0..batch.num_rows() {
                columns.append(row, &mut trees, &feature_index).map_err(invalid)?;
            }
        }
        let model = Model {
            ensemble: header.ensemble,
            base_score: header.base_score,
            base_feature: header.base_feature,
            features: header.features,
            trees,
            configuration: header.configuration,
            data: header.data,
            rounds: header.rounds,
            origin: Origin::of(table.location()),
        };
        match model.fault() {
            None => Ok(model),
            Some(fault) => Err(invalid(fault)),
        }
    }
}

/// Writes a model tree by tree. The file becomes visible with [`ModelWriter::finish`].
pub struct ModelWriter {
    location: Location,
    table: TableWriter,
    features: Vec<ModelFeature>,
    trees: usize,
}

impl ModelWriter {
    /// Starts writing a model with these features.
    pub fn create(location: &Location, features: &[ModelFeature]) -> Result<Self> {
        Ok(ModelWriter {
            location: location.clone(),
            table: TableWriter::create(location, TableKind::Model, SCHEMA.clone())?,
            features: features.to_vec(),
            trees: 0,
        })
    }

    /// Appends a tree.
    pub fn write_tree(&mut self, tree: &Tree) -> Result<()> {
        if let Some((node, problem)) = tree.fault(self.features.len()) {
            return Err(self.failed(&format!("tree {}, node {node}: {problem}", self.trees)));
        }
        let rows = self.tree_as_rows(tree).map_err(|error| self.failed(&error.to_string()))?;
        self.trees += 1;
        self.table.write(&rows)
    }

    /// Completes the file: writes everything but the trees of `model`, and additional metadata.
    pub fn finish(mut self, model: &Model, extra: &[(&str, String)]) -> Result<()> {
        if let Some(fault) = model.fault() {
            return Err(self.failed(&fault));
        }
        let header = Header {
            format: FORMAT,
            ensemble: model.ensemble,
            base_score: model.base_score,
            base_feature: model.base_feature,
            features: std::mem::take(&mut self.features),
            configuration: model.configuration.clone(),
            data: model.data.clone(),
            rounds: model.rounds,
        };
        let header = serde_json::to_string(&header).map_err(|error| self.failed(&error.to_string()))?;
        for (key, value) in extra {
            self.table.set_metadata(key, value.clone());
        }
        self.table.set_metadata(HEADER, header);
        self.table.set_metadata(CONFIGURATION, model.configuration.clone());
        self.table.finish()
    }

    fn failed(&self, problem: &str) -> Error {
        Error::bug(&self.location, format_args!("cannot write the model: {problem}"))
    }

    fn tree_as_rows(&self, tree: &Tree) -> std::result::Result<RecordBatch, ArrowError> {
        let (nodes, number) = (&tree.nodes, self.trees);
        if [number, nodes.len(), tree.group as usize].iter().any(|number| i32::try_from(*number).is_err()) {
            return Err(ArrowError::InvalidArgumentError("too many trees, nodes or groups".to_owned()));
        }
        let splits = || nodes.iter().map(|node| node.split.as_ref());
        let mut features = StringBuilder::new();
        let mut missing = StringBuilder::new();
        for split in splits() {
            features.append_option(split.map(|split| &self.features[split.feature as usize].name));
            missing.append_option(split.map(|split| split.missing.name()));
        }
        let integers = |of: &dyn Fn(usize, &Node) -> i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(
                nodes.iter().enumerate().map(|(index, node)| of(index, node)),
            ))
        };
        let children = |of: fn(&Split) -> Option<u32>| -> ArrayRef {
            let children = splits().map(|split| split.and_then(of).map(|child| child as i32));
            Arc::new(children.collect::<Int32Array>())
        };
        let columns: Vec<ArrayRef> = vec![
            integers(&|_, _| number as i32),
            integers(&|index, _| index as i32),
            integers(&|_, node| node.depth as i32),
            Arc::new(features.finish()),
            Arc::new(splits().map(|split| split.map(|split| split.threshold)).collect::<Float32Array>()),
            Arc::new(missing.finish()),
            children(|split| Some(split.left)),
            children(|split| Some(split.right)),
            children(|split| split.middle),
            Arc::new(Float64Array::from_iter_values(nodes.iter().map(|node| node.value))),
            Arc::new(splits().map(|split| split.map(|split| split.gain)).collect::<Float64Array>()),
            Arc::new(Float64Array::from_iter_values(nodes.iter().map(|node| node.cover))),
            integers(&|_, _| tree.group as i32),
        ];
        RecordBatch::try_new(SCHEMA.clone(), columns)
    }
}

fn read_header(table: &TableReader, invalid: impl Fn(String) -> Error) -> Result<Header> {
    /// Read first: a later format may differ in everything else.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let text = table.metadata(HEADER).ok_or_else(|| invalid(format!("no metadata {HEADER}")))?;
    let version: Version = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if version.format > FORMAT {
        return Err(Error::place(
            table.location(),
            format_args!("written by a newer planetree (model format {})", version.format),
            "use a newer version of planetree",
        ));
    }
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}

/// Feature indices by name. A deep forest looks up millions of names, but few distinct ones, and all keys come from
/// the file's own header: a simple, fast hash is enough.
type FeatureIndex<'a> = HashMap<&'a str, u32, BuildHasherDefault<NameHasher>>;

/// The Fowler-Noll-Vo hash (FNV-1a).
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        NameHasher(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// The columns of a batch of nodes.
struct NodeColumns<'a> {
    tree: &'a Int32Array,
    node: &'a Int32Array,
    depth: &'a Int32Array,
    feature: &'a StringArray,
    threshold: &'a Float32Array,
    missing: &'a StringArray,
    left: &'a Int32Array,
    right: &'a Int32Array,
    middle: &'a Int32Array,
    value: &'a Float64Array,
    gain: &'a Float64Array,
    cover: &'a Float64Array,
    group: &'a Int32Array,
}

impl<'a> NodeColumns<'a> {
    fn of(batch: &'a RecordBatch) -> std::result::Result<Self, String> {
        Ok(NodeColumns {
            tree: column(batch, "tree")?,
            node: column(batch, "node")?,
            depth: column(batch, "depth")?,
            feature: column(batch, "feature")?,
            threshold: column(batch, "threshold")?,
            missing: column(batch, "missing")?,
            left: column(batch, "left")?,
            right: column(batch, "right")?,
            middle: column(batch, "middle")?,
            value: column(batch, "value")?,
            gain: column(batch, "gain")?,
            cover: column(batch, "cover")?,
            group: column(batch, "group")?,
        })
    }

    /// Appends a row to the trees: as the next node of the last tree, or as the root of a new one.
    fn append(
        &self,
        row: usize,
        trees: &mut Vec<Tree>,
        features: &FeatureIndex<'_>,
    ) -> std::result::Result<(), String> {
        let (tree_number, node_number) = (self.tree.value(row), self.node.value(row));
        let group = natural(self.group.value(row), "group")?;
        if node_number == 0 && usize::try_from(tree_number) == Ok(trees.len()) {
            trees.push(Tree { group, nodes: Vec::new() });
        }
        let context = || format!("tree {tree_number}, node {node_number}");
        let expected = trees.len().wrapping_sub(1);
        let Some(tree) = trees.last_mut().filter(|_| usize::try_from(tree_number) == Ok(expected)) else {
            return Err(format!("{}: trees are out of order", context()));
        };
        if usize::try_from(node_number) != Ok(tree.nodes.len()) {
            return Err(format!("{}: nodes are out of order", context()));
        }
        if group != tree.group {
            return Err(format!("{}: the nodes of a tree have different groups", context()));
        }
        tree.nodes.push(Node {
            depth: natural(self.depth.value(row), "depth")?,
            split: self.split(row, features).map_err(|problem| format!("{}: {problem}", context()))?,
            value: self.value.value(row),
            cover: self.cover.value(row),
        });
        Ok(())
    }

    fn split(&self, row: usize, features: &FeatureIndex<'_>) -> std::result::Result<Option<Split>, String> {
        let child = |column: &Int32Array| -> std::result::Result<Option<u32>, String> {
            column.is_valid(row).then(|| natural(column.value(row), "child")).transpose()
        };
        let children = (child(self.left)?, child(self.right)?, child(self.middle)?);
        if self.feature.is_null(row) {
            return match children {
                (None, None, None) => Ok(None),
                _ => Err("children without a feature".to_owned()),
            };
        }
        let (Some(left), Some(right), middle) = children else {
            return Err("a feature without two children".to_owned());
        };
        let name = self.feature.value(row);
        let missing = self.missing.is_valid(row).then(|| self.missing.value(row));
        if self.threshold.is_null(row) || self.gain.is_null(row) {
            return Err("a feature without a threshold or gain".to_owned());
        }
        Ok(Some(Split {
            feature: *features.get(name).ok_or_else(|| format!("unknown feature {name:?}"))?,
            threshold: self.threshold.value(row),
            missing: Branch::ALL
                .into_iter()
                .find(|branch| missing == Some(branch.name()))
                .ok_or("`missing` is not left, right or middle")?,
            left,
            right,
            middle,
            gain: self.gain.value(row),
        }))
    }
}

/// Finds a column by name and checks its type and nulls.
fn column<'a, T: Array + 'static>(batch: &'a RecordBatch, name: &str) -> std::result::Result<&'a T, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("no column {name}"))?;
    let is_required = SCHEMA.field_with_name(name).is_ok_and(|field| !field.is_nullable());
    if is_required && column.null_count() > 0 {
        return Err(format!("column {name} has nulls"));
    }
    let typed = column.as_any().downcast_ref::<T>();
    typed.ok_or_else(|| format!("column {name} has type {}", column.data_type()))
}

fn natural(number: i32, what: &str) -> std::result::Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("negative {what}: {number}"))
}

#[cfg(test)]
pub(super) mod tests;
