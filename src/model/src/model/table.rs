//! Reads and writes models as Parquet files with one row per node of a tree, or per feature of a linear function.
//! Everything else is stored as a JSON value in the file's metadata, so that a model is a single file.
//!
//! `header.rs` defines the JSON value, and `columns.rs` defines the columns. Files of format version 1 contain a single
//! part and have the column `group` instead of `part`.

mod columns;
mod header;

use super::{Model, ModelFeature, Origin, Tree};
use crate::family::ModelRow;
use crate::family::trees::tree_rows;
use columns::{FeaturePlaces, RowColumns, SCHEMA, rows_as_batch};
use header::{HEADER, ReadHeader, header_text, read_header};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use std::collections::BTreeMap;
use std::io::Write;

/// Metadata key of the configuration. The header contains the configuration, too, but this copy is easier to read for
/// people who inspect the metadata.
const CONFIGURATION: &str = "planetree.configuration";
/// Rows that are converted to columns at a time. The columns of a whole tree would be large blocks of memory, of other
/// sizes for each tree, between which freed memory cannot be used.
const STEP_ROWS: usize = 1 << 13;

impl Model {
    /// Writes the model to a file atomically. An existing file is replaced only if planetree wrote it.
    pub fn write(&self, location: &Location) -> Result<()> {
        self.write_with(location, &[])
    }

    /// Writes the model like [`Model::write`], with additional metadata entries.
    pub fn write_with(&self, location: &Location, extra: &[(&str, String)]) -> Result<()> {
        let mut writer = ModelWriter::create(location, &self.features)?;
        writer.check(self)?;
        for (number, part) in self.parts.iter().enumerate() {
            part.family.write_rows(&mut |rows| writer.write_rows(number, rows))?;
        }
        writer.finish(self, extra)
    }

    /// Returns the content of the file of the model, which another process can read.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let failed = |error| Error::io("temporary file of a model", "write", error);
        let directory = tempfile::tempdir().map_err(failed)?;
        let path = directory.path().join("model");
        self.write(&Location::Local(path.clone()))?;
        std::fs::read(path).map_err(failed)
    }

    /// Reads and validates the content of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        let failed = |error| Error::io("temporary file of a model", "write", error);
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        Self::read_unfinished(&Location::Local(file.path().to_owned()))
    }

    /// Reads and validates a model. Returns an error if the model was trained from start scores, because its value
    /// alone is not a score.
    pub fn read(location: &Location) -> Result<Model> {
        let model = Self::read_unfinished(location)?;
        model.check_complete(location)?;
        Ok(model)
    }

    /// Reads and validates a model, even if it was trained from start scores, to which its value must be added.
    pub fn read_unfinished(location: &Location) -> Result<Model> {
        Self::from_table(&TableReader::open(location, TableKind::Model)?)
    }

    /// Reads and validates a model. Returns the model and all metadata of the file.
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
        let ReadHeader { mut model, rows, has_parts } = read_header(table, &invalid)?;
        let features = std::mem::take(&mut model.features);
        read_rows(&mut model, &features, has_parts, table, &invalid)?;
        model.features = features;
        model.origin = Origin::of(table.location());
        for (number, expected) in rows.unwrap_or_default().into_iter().enumerate() {
            let label = model.part_label(number);
            match model.parts[number].family.row_count() {
                found if found == expected => {}
                0 => return Err(invalid(format!("{label}: the part has no rows, expected {expected}"))),
                found => {
                    return Err(invalid(format!("{label}: the part has {found} rows, expected {expected}")));
                }
            }
        }
        match model.fault() {
            None => Ok(model),
            Some(fault) => Err(invalid(fault)),
        }
    }
}

/// Reads all rows of the table and appends each row to the part that it belongs to.
fn read_rows(
    model: &mut Model,
    features: &[ModelFeature],
    has_parts: bool,
    table: &TableReader,
    invalid: &dyn Fn(String) -> Error,
) -> Result<()> {
    let index: FeaturePlaces<'_> =
        (0..).zip(features).map(|(index, feature)| (feature.name.as_str(), index)).collect();
    let mut last = 0;
    for batch in table.batches() {
        let batch = batch?;
        let columns = RowColumns::of(&batch, has_parts).map_err(invalid)?;
        for row in 0..batch.num_rows() {
            let part = columns.part(row).map_err(invalid)?;
            if part >= model.parts.len() {
                let problem =
                    format!("a row belongs to part {part}, but the number of parts is {}", model.parts.len());
                return Err(invalid(problem));
            }
            if part < last {
                return Err(invalid(format!("{}: parts are out of order", model.part_label(part))));
            }
            last = part;
            let read = columns.row(row, &index).and_then(|row| model.parts[part].family.read_row(row));
            read.map_err(|problem| invalid(format!("{}: {problem}", model.part_label(part))))?;
        }
    }
    Ok(())
}

/// Writes a model tree by tree. The file becomes visible when [`ModelWriter::finish`] is called.
pub struct ModelWriter {
    location: Location,
    table: TableWriter,
    features: Vec<ModelFeature>,
    /// Number of trees written by [`ModelWriter::write_tree`].
    trees: u32,
    /// Number of rows written so far, with one entry per part.
    rows: Vec<u64>,
}

impl ModelWriter {
    /// Starts writing a model with these features.
    pub fn create(location: &Location, features: &[ModelFeature]) -> Result<Self> {
        Ok(ModelWriter {
            location: location.clone(),
            table: TableWriter::create(location, TableKind::Model, SCHEMA.clone())?,
            features: features.to_vec(),
            trees: 0,
            rows: Vec::new(),
        })
    }

    /// Appends a tree to the first part of the model.
    pub fn write_tree(&mut self, tree: &Tree) -> Result<()> {
        if let Some((node, problem)) = tree.fault(self.features.len()) {
            return Err(self.failed(&format!("tree {}, node {node}: {problem}", self.trees)));
        }
        self.write_rows(0, &mut tree_rows(self.trees, tree))?;
        self.trees += 1;
        Ok(())
    }

    /// Appends rows to the part with the given number.
    fn write_rows(&mut self, part: usize, rows: &mut dyn Iterator<Item = ModelRow>) -> Result<()> {
        self.rows.resize(self.rows.len().max(part + 1), 0);
        loop {
            let mut step = Iterator::take(&mut *rows, STEP_ROWS);
            let batch = rows_as_batch(part, &mut step, &self.features);
            let batch = batch.map_err(|problem| self.failed(&problem))?;
            self.rows[part] += batch.num_rows() as u64;
            self.table.write(&batch)?;
            if batch.num_rows() < STEP_ROWS {
                return Ok(());
            }
        }
    }

    /// Completes the file: writes the header of `model` and the additional metadata entries. The rows must already be
    /// written.
    pub fn finish(mut self, model: &Model, extra: &[(&str, String)]) -> Result<()> {
        self.check(model)?;
        self.rows.resize(model.parts.len(), 0);
        let header = header_text(model, &self.features, &self.rows);
        let header = header.map_err(|error| self.failed(&error.to_string()))?;
        for (key, value) in extra {
            self.table.set_metadata(key, value.clone());
        }
        self.table.set_metadata(HEADER, header);
        self.table.set_metadata(CONFIGURATION, model.configuration.clone());
        self.table.finish()
    }

    /// Returns an error if the model is invalid, so that invalid models are never written.
    fn check(&self, model: &Model) -> Result<()> {
        model.fault().map_or(Ok(()), |fault| Err(self.failed(&fault)))
    }

    fn failed(&self, problem: &str) -> Error {
        Error::bug(&self.location, format_args!("cannot write the model: {problem}"))
    }
}

#[cfg(test)]
pub(super) mod tests;
