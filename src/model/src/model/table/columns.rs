//! Defines the columns of a model file, and converts rows of a model to columns and back.

use crate::family::{Branch, ModelFeature, ModelRow};
use arrow::array::{
    Array, ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};

/// The schema of a model file. Other programs rely on the column names and types, so these must not change.
pub(super) static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let required = |name: &str, kind: DataType| Field::new(name, kind, false);
    let optional = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        required("part", DataType::Int32),
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
    ]))
});

/// Converts rows of a part to a batch with the schema of a model file.
pub(super) fn rows_as_batch(
    part: usize,
    rows: &mut dyn Iterator<Item = ModelRow>,
    features: &[ModelFeature],
) -> Result<RecordBatch, String> {
    let rows: Vec<ModelRow> = rows.collect();
    let part = i32::try_from(part).map_err(|_| "too many parts".to_owned())?;
    let is_too_large = |number: u32| i32::try_from(number).is_err();
    if rows.last().is_some_and(|last| is_too_large(last.tree) || is_too_large(last.node)) {
        return Err("too many trees or nodes".to_owned());
    }
    let mut names = StringBuilder::new();
    let mut missing = StringBuilder::new();
    for row in &rows {
        names.append_option(row.feature.map(|feature| &features[feature as usize].name));
        missing.append_option(row.missing.map(Branch::name));
    }
    let integers = |of: fn(&ModelRow) -> u32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| of(row) as i32)))
    };
    let children = |of: fn(&ModelRow) -> Option<u32>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(row).map(|child| child as i32)).collect::<Int32Array>())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_value(part, rows.len())),
        integers(|row| row.tree),
        integers(|row| row.node),
        integers(|row| row.depth),
        Arc::new(names.finish()),
        Arc::new(rows.iter().map(|row| row.threshold).collect::<Float32Array>()),
        Arc::new(missing.finish()),
        children(|row| row.left),
        children(|row| row.right),
        children(|row| row.middle),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.value))),
        Arc::new(rows.iter().map(|row| row.gain).collect::<Float64Array>()),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.cover))),
    ];
    RecordBatch::try_new(SCHEMA.clone(), columns).map_err(|error| error.to_string())
}

/// Maps feature names to feature indices. Reading a deep forest looks up millions of names, most of them repeated, so
/// the hash must be fast. A simple hash is enough, because all keys come from the header of the file.
pub(super) type FeaturePlaces<'a> = HashMap<&'a str, u32, BuildHasherDefault<NameHasher>>;

/// The Fowler-Noll-Vo hash (FNV-1a).
pub(super) struct NameHasher(u64);

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

/// The columns of a batch from a model file.
pub(super) struct RowColumns<'a> {
    /// The part number of each row. `None` in files of format version 1, which contain a single part.
    part: Option<&'a Int32Array>,
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
}

impl<'a> RowColumns<'a> {
    /// Finds the columns of a batch and checks their types. The column `part` is required only if `has_parts` is true.
    pub(super) fn of(batch: &'a RecordBatch, has_parts: bool) -> Result<Self, String> {
        Ok(RowColumns {
            part: has_parts.then(|| column(batch, "part")).transpose()?,
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
        })
    }

    /// Returns the number of the part that a row belongs to.
    pub(super) fn part(&self, row: usize) -> Result<usize, String> {
        self.part.map_or(Ok(0), |part| natural(part.value(row), "part").map(|part| part as usize))
    }

    /// Returns a row, with the index of the feature instead of its name.
    pub(super) fn row(&self, row: usize, features: &FeaturePlaces<'_>) -> Result<ModelRow, String> {
        let child = |column: &Int32Array| -> Result<Option<u32>, String> {
            column.is_valid(row).then(|| natural(column.value(row), "child")).transpose()
        };
        let (tree, node) = (natural(self.tree.value(row), "tree")?, natural(self.node.value(row), "node")?);
        let feature = self.feature.is_valid(row).then(|| self.feature.value(row));
        let feature = feature.map(|name| {
            let index = features.get(name).copied();
            index.ok_or_else(|| format!("tree {tree}, node {node}: unknown feature {name:?}"))
        });
        let missing = self.missing.is_valid(row).then(|| self.missing.value(row));
        Ok(ModelRow {
            tree,
            node,
            depth: natural(self.depth.value(row), "depth")?,
            feature: feature.transpose()?,
            threshold: self.threshold.is_valid(row).then(|| self.threshold.value(row)),
            missing: Branch::ALL.into_iter().find(|branch| missing == Some(branch.name())),
            left: child(self.left)?,
            right: child(self.right)?,
            middle: child(self.middle)?,
            value: self.value.value(row),
            gain: self.gain.is_valid(row).then(|| self.gain.value(row)),
            cover: self.cover.value(row),
        })
    }
}

/// Finds a column by name. Checks its type, and that a required column has no nulls.
fn column<'a, T: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a T, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"))?;
    let is_required = SCHEMA.field_with_name(name).is_ok_and(|field| !field.is_nullable());
    if is_required && column.null_count() > 0 {
        return Err(format!("column {name} has nulls"));
    }
    let typed = column.as_any().downcast_ref::<T>();
    typed.ok_or_else(|| format!("column {name} has the unexpected type {}", column.data_type()))
}

fn natural(number: i32, what: &str) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("negative {what}: {number}"))
}
