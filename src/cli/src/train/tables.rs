//! Trains on tables that are not datasets yet: they are converted to temporary datasets first.

use super::TrainArguments;
use crate::options::split_name;
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_base::storage::Location;
use planetree_data::convert::{ConvertOptions, convert};
use planetree_data::dataset::MANIFEST;
use planetree_data::ingest::{Ingest, IngestOptions, expand};
use planetree_data::table::TableReader;
use tempfile::TempDir;

/// The datasets of a training: those given, and temporary ones of the tables given.
pub(super) struct TrainingTables {
    /// One dataset for each `--data`.
    pub data: Vec<Location>,
    /// One dataset for each `--valid`.
    pub validation: Vec<Location>,
    /// Contains the temporary datasets, and removes them when it is dropped.
    _temporary: Option<TempDir>,
}

impl TrainingTables {
    /// Locates the datasets, and converts what is not a dataset.
    pub(super) fn prepare(arguments: &TrainArguments, quiet: bool) -> Result<Self> {
        let mut conversion = TableConversion { arguments, temporary: None, quiet };
        let is_changed = !arguments.columns.are_default();
        let data = arguments.data.iter().map(|path| conversion.dataset(path, is_changed));
        let data = data.collect::<Result<Vec<_>>>()?;
        // Features are matched by name, so a validation set may have more columns than the training data.
        let is_changed = arguments.columns.changes_unlabelled();
        let validation =
            arguments.valid.iter().map(|text| conversion.dataset(split_name(text).1, is_changed));
        let validation = validation.collect::<Result<_>>()?;
        Ok(TrainingTables { data, validation, _temporary: conversion.temporary })
    }
}

/// Converts tables to temporary datasets.
struct TableConversion<'a> {
    arguments: &'a TrainArguments,
    temporary: Option<TempDir>,
    quiet: bool,
}

impl TableConversion<'_> {
    /// Returns the dataset at a path. It is a temporary one if the path is a table, or if its columns or rows change.
    fn dataset(&mut self, path: &str, is_changed: bool) -> Result<Location> {
        let arguments = self.arguments;
        let store = &arguments.execution.store;
        let location = store.locate(path)?;
        if !is_changed && !is_table(&location)? {
            return Ok(location);
        }
        if arguments.execution.is_remote() {
            return Err(Error::usage(
                format_args!(
                    "{location}: a cluster trains on datasets, and this would be a temporary one here"
                ),
                format_args!("convert it first: planetree convert {path} --output DATASET"),
            ));
        }
        let output = self.temporary_place(&location.name())?;
        let inputs = expand(&[path.to_owned()], store.access())?;
        let mut options = ConvertOptions {
            threads: arguments.execution.threads.count(),
            unlabelled: arguments.columns.unlabelled(),
            ..ConvertOptions::new(output.clone())
        };
        if let Some(first) = inputs.first() {
            options.categories.clone_from(&first.categories);
        }
        let ingest_options = IngestOptions { roles: arguments.columns.roles(), ..IngestOptions::default() };
        let ingest = Ingest::open(inputs, ingest_options)?;
        if !self.quiet {
            ingest.notes().iter().for_each(|note| crate::message(format_args!("note: {note}")));
        }
        let manifest = convert(ingest, &options, &mut |_| {})?;
        if manifest.unlabelled > 0 {
            return Err(Error::place(
                location,
                format_args!("{} of {} rows have no label", manifest.unlabelled, manifest.rows),
                "leave them out with --unlabelled drop, or give them the label 0 with --unlabelled zero; the column of labels \
                 is named with --label-column",
            ));
        }
        if !self.quiet {
            crate::message(format_args!(
                "{location}: {}, {}, {}; to train on it again, convert it once with planetree convert",
                counted(manifest.rows, "row", "rows"),
                counted(manifest.queries, "query", "queries"),
                counted(manifest.features.len() as u64, "feature", "features"),
            ));
        }
        Ok(output)
    }

    /// Returns the place of the next temporary dataset. Its name is part of messages.
    fn temporary_place(&mut self, name: &str) -> Result<Location> {
        let directory = match self.temporary.take() {
            Some(directory) => directory,
            None => TempDir::with_prefix("planetree-")
                .map_err(|error| Error::io(std::env::temp_dir().display(), "create a directory in", error))?,
        };
        let count = std::fs::read_dir(directory.path()).map_or(0, Iterator::count);
        let place = Location::Local(directory.path().join(format!("{count}-{name}")));
        self.temporary = Some(directory);
        Ok(place)
    }
}

/// Checks whether a location is a file or a directory of files that is not a dataset. Tables of planetree are not
/// training data; an error says what they are.
fn is_table(location: &Location) -> Result<bool> {
    if location.size()?.is_some() {
        return Ok(TableReader::kind_of(location)?.is_none());
    }
    match location {
        Location::Local(path) => Ok(path.is_dir() && location.join(MANIFEST).size()?.is_none()),
        Location::Remote(_) => Ok(false),
    }
}
