//! Opens the data of commands: datasets, and tables that are converted to temporary datasets first.

use super::columns::{
    ColumnOptions, FIXED_COLUMNS, UnlabelledOptions, note_of_distinct_text, note_of_unlabelled,
};
use super::execution::ExecutionOptions;
use super::options::{StoreOptions, ThreadOptions};
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_size};
use planetree_base::storage::Location;
use planetree_data::convert::{ConvertOptions, MIN_MEMORY, Unlabelled, convert};
use planetree_data::dataset::{DatasetReader, MANIFEST, Manifest};
use planetree_data::ingest::{Ingest, IngestOptions, InputFormat, RoleOptions, expand};
use planetree_data::table::TableReader;
use tempfile::TempDir;

/// The data of a command. Temporary datasets are removed when this is dropped.
pub(crate) struct InputData<'a> {
    columns: &'a ColumnOptions,
    /// What happens to rows without a label; `None` if the command can use them.
    unlabelled: Option<&'a UnlabelledOptions>,
    store: &'a StoreOptions,
    threads: usize,
    is_remote: bool,
    quiet: bool,
    /// Memory limit in bytes, if the command has one.
    memory_limit: Option<u64>,
    /// Index of the first feature in LETOR text.
    index_base: u32,
    /// Name of the command, whose options remedies may name.
    command: &'static str,
    temporary: Option<TempDir>,
    /// The temporary datasets, each with the table that it was made of.
    converted: Vec<(String, String)>,
}

impl<'a> InputData<'a> {
    /// Describes the data of a command that runs on this machine.
    pub(crate) fn new(
        columns: &'a ColumnOptions,
        store: &'a StoreOptions,
        threads: &ThreadOptions,
        quiet: bool,
    ) -> Self {
        let threads = threads.count();
        InputData {
            columns,
            unlabelled: None,
            store,
            threads,
            is_remote: false,
            quiet,
            memory_limit: None,
            index_base: 1,
            command: "",
            temporary: None,
            converted: Vec::new(),
        }
    }

    /// Describes the data of a command that may run on a cluster.
    pub(crate) fn of_execution(
        columns: &'a ColumnOptions,
        execution: &'a ExecutionOptions,
        quiet: bool,
    ) -> Self {
        let is_remote = execution.is_remote();
        InputData { is_remote, ..Self::new(columns, &execution.store, &execution.threads, quiet) }
    }

    /// Requires a label in every row that remains after `unlabelled` is applied.
    pub(crate) fn with_labels(self, unlabelled: &'a UnlabelledOptions) -> Self {
        InputData { unlabelled: Some(unlabelled), ..self }
    }

    /// Limits the memory that conversions use.
    pub(crate) fn with_memory_limit(self, memory_limit: Option<u64>) -> Self {
        InputData { memory_limit, ..self }
    }

    /// Sets the index of the first feature in LETOR text.
    pub(crate) fn with_index_base(self, index_base: u32) -> Self {
        InputData { index_base, ..self }
    }

    /// Runs the command of this name on the data. Its errors name tables as they were given, not their temporary
    /// datasets.
    pub(crate) fn run<T>(
        mut self,
        name: &'static str,
        command: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.command = name;
        let result = command(&mut self);
        result.map_err(|error| error.map_texts(&|text| self.as_given(text)))
    }

    /// Replaces temporary datasets in a text by the tables that they were made of.
    pub(crate) fn as_given(&self, text: &str) -> String {
        let replace = |text: String, (temporary, table): &(String, String)| text.replace(temporary, table);
        self.converted.iter().fold(text.to_owned(), replace)
    }

    /// Returns the dataset at a path. It is a temporary one if the path is a table, or if the options change the columns
    /// or rows of a dataset.
    pub(crate) fn dataset(&mut self, path: &str) -> Result<Location> {
        let is_changed = !self.columns.are_default() || self.changes_rows();
        self.prepare(path, is_changed, self.columns.roles())
    }

    /// Does the same for a validation set. Features are matched by name, so it may have more columns than the training
    /// data. A dataset is converted again only if it has one of the columns that are to be labels, weights and so on.
    /// In place of those that it does not have, its own are used.
    pub(crate) fn validation_set(&mut self, path: &str) -> Result<Location> {
        let mut is_changed = self.changes_rows();
        let location = self.store.locate(path)?;
        let columns = self.columns;
        let (mut not_used, mut kept) = (Vec::new(), Vec::new());
        if columns.role_names().next().is_some() && !is_table(&location)? {
            let dataset = DatasetReader::open(&location)?;
            let present = columns_of(&dataset.manifest().features);
            let (own, named): (Vec<_>, Vec<_>) =
                columns.role_names().partition(|(fixed, name)| fixed == name);
            let (found, absent): (Vec<_>, Vec<_>) = named.into_iter().partition(|(_, name)| present(name));
            is_changed |= !found.is_empty();
            if !absent.is_empty() && !self.quiet {
                let names: Vec<&str> = absent.iter().map(|(_, name)| *name).collect();
                crate::message(format_args!(
                    "note: {location} has no column {}; its own labels, queries, documents, weights and positions are used",
                    names.join(", ")
                ));
            }
            kept.extend(absent.iter().map(|(fixed, _)| *fixed));
            not_used.extend(own.into_iter().chain(absent).map(|(_, name)| name));
        }
        let mut roles = RoleOptions { is_partial: true, ..columns.roles_without(&not_used) };
        roles.ignored.retain(|name| !kept.contains(&name.as_str()));
        self.prepare(path, is_changed, roles)
    }

    /// Returns the files that a path stands for: those in a directory of tables, otherwise the path itself.
    pub(crate) fn files(&self, path: &str) -> Result<Vec<Location>> {
        let location = self.store.locate(path)?;
        match &location {
            Location::Local(directory) if directory.is_dir() && is_table(&location)? => {
                let inputs = expand(&[path.to_owned()], self.store.access())?;
                Ok(inputs.into_iter().filter_map(|input| input.location).collect())
            }
            _ => Ok(vec![location]),
        }
    }

    fn changes_rows(&self) -> bool {
        self.unlabelled.is_some_and(UnlabelledOptions::changes_rows)
    }

    fn prepare(&mut self, path: &str, is_changed: bool, roles: RoleOptions) -> Result<Location> {
        let location = self.store.locate(path)?;
        let is_dataset = !is_table(&location)?;
        if is_dataset && self.index_base != 1 {
            return Err(index_base_of_table(&location));
        }
        if is_dataset && !is_changed {
            return Ok(location);
        }
        if self.is_remote {
            return Err(Error::usage(
                format_args!(
                    "{location}: this table would become a temporary dataset on this machine, which executors cannot read"
                ),
                format_args!("convert it first: planetree convert {path} --output DATASET"),
            ));
        }
        if let Some(limit) = self.memory_limit.filter(|limit| *limit < MIN_MEMORY) {
            return Err(Error::usage(
                format_args!("--memory-limit {} is too small to convert {location}", shown_size(limit)),
                format_args!(
                    "raise it to at least {} MiB, or convert the table first: planetree convert {path} --output DATASET",
                    MIN_MEMORY >> 20
                ),
            ));
        }
        let output = self.temporary_place(&location.name())?;
        let manifest = self.convert(path, &output, roles);
        let manifest = manifest.map_err(|error| options_are_those_of_convert(error, self.command))?;
        self.converted.push((output.to_string(), location.to_string()));
        if self.unlabelled.is_some() && manifest.unlabelled == manifest.rows {
            return Err(Error::place(
                location,
                "no row has a label",
                "name the column of labels with --label-column; in LETOR text, label the rows",
            ));
        }
        if self.unlabelled.is_some() && manifest.unlabelled > 0 {
            return Err(Error::place(
                location,
                format_args!("{} of {} rows have no label (-1 or empty)", manifest.unlabelled, manifest.rows),
                "leave them out with --unlabelled drop, or give them the label 0 with --unlabelled zero; the column of labels \
                 is named with --label-column",
            ));
        }
        if !self.quiet {
            crate::message(format_args!(
                "{location}: {}, {}, {}; to use it again, convert it once with planetree convert",
                counted(manifest.rows, "row", "rows"),
                counted(manifest.queries, "query", "queries"),
                counted(manifest.features.len() as u64, "feature", "features"),
            ));
        }
        Ok(output)
    }

    fn convert(&self, path: &str, output: &Location, roles: RoleOptions) -> Result<Manifest> {
        let inputs = expand(&[path.to_owned()], self.store.access())?;
        let mut options = ConvertOptions {
            threads: self.threads,
            unlabelled: self.unlabelled.map_or(Unlabelled::Keep, UnlabelledOptions::rule),
            ..ConvertOptions::new(output.clone())
        };
        if let Some(limit) = self.memory_limit {
            options.memory_limit = limit;
        }
        if let Some(first) = inputs.first() {
            options.categories.clone_from(&first.categories);
        }
        let ingest_options = IngestOptions { roles, index_base: self.index_base, ..IngestOptions::default() };
        let ingest = Ingest::open(inputs, ingest_options)?;
        if self.index_base != 1 && ingest.format() != InputFormat::Letor {
            return Err(index_base_of_table(path));
        }
        if !self.quiet {
            ingest.notes().iter().for_each(|note| crate::message(format_args!("note: {note}")));
        }
        let mut changed = 0; // rows without a label that are left out or labelled
        let manifest = convert(ingest, &options, &mut |step| changed += step.unlabelled as u64)?;
        if !self.quiet {
            super::convert::print_repairs(&manifest);
        }
        let unlabelled = note_of_unlabelled(&manifest, options.unlabelled, changed);
        if let Some(note) = unlabelled.filter(|_| !self.quiet) {
            crate::message(format_args!("note: {note}"));
        }
        if let Some(note) = note_of_distinct_text(&manifest, &options).filter(|_| !self.quiet) {
            crate::message(format_args!("note: {note}"));
        }
        Ok(manifest)
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

/// Returns a function that checks whether a dataset with these features has a column.
fn columns_of(features: &[String]) -> impl Fn(&str) -> bool {
    |name| FIXED_COLUMNS.contains(&name) || features.iter().any(|feature| feature == name)
}

/// Checks whether a location is a file or a directory of files that is not a dataset. Tables of planetree are not
/// input data; an error says what they are.
fn is_table(location: &Location) -> Result<bool> {
    if location.size()?.is_some() {
        return Ok(TableReader::kind_of(location)?.is_none());
    }
    match location {
        Location::Local(path) => Ok(path.is_dir() && location.join(MANIFEST).size()?.is_none()),
        Location::Remote(_) => Ok(false),
    }
}

fn index_base_of_table(path: impl std::fmt::Display) -> Error {
    Error::usage(
        format_args!("{path}: --index-base applies to LETOR text, and this is a table with names of columns"),
        "remove --index-base",
    )
}

/// Returns the options of a command.
fn options_of(command: &str) -> Vec<String> {
    let program = super::command_line();
    let options = program.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    options.filter_map(|option| option.get_long().map(str::to_owned)).collect()
}

/// Says which options in the remedy of an error `command` does not have, but `convert` does.
fn options_are_those_of_convert(error: Error, command: &str) -> Error {
    error.map_remedy(|remedy| {
        if remedy.contains("convert") {
            return remedy.to_owned(); // it says that the options are those of another command
        }
        let own = options_of(command);
        let is_foreign = |name: &str| !name.is_empty() && own.iter().all(|option| option != name);
        let is_option = |word: &&str| word.strip_prefix("--").is_some_and(is_foreign);
        let words = remedy.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
        let mut options: Vec<&str> = words.filter(is_option).collect();
        options.dedup();
        match &options[..] {
            [] => remedy.to_owned(),
            [option] => format!("{remedy} ({option} is an option of planetree convert)"),
            several => format!("{remedy} ({} are options of planetree convert)", several.join(" and ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_name_the_command_that_has_the_option() {
        let remedy = |text: &str, command: &str| {
            let error = options_are_those_of_convert(Error::usage("bad", text), command);
            error.remedy().unwrap_or_default().to_owned()
        };
        let of_convert = |option: &str| format!("pass {option} ({option} is an option of planetree convert)");
        for command in ["train", "cv", "evaluate", "predict", "cost", "blend", "augment"] {
            for text in ["pass --ignore-columns a", "sort the input -- by query", "pass --threads"] {
                assert_eq!(remedy(text, command), text, "{command}");
            }
            assert_eq!(remedy("pass --sort-queries", command), of_convert("--sort-queries"), "{command}");
        }
        assert_eq!(
            remedy("pass --lenient, or --names", "cv"),
            "pass --lenient, or --names (--lenient and --names are options of planetree convert)"
        );
        for (option, command, is_own) in [
            ("--memory-limit", "train", true),
            ("--memory-limit", "evaluate", true),
            ("--memory-limit", "predict", false),
            ("--unlabelled", "cv", true),
            ("--unlabelled", "cost", false),
        ] {
            let text = format!("pass {option}");
            let expected = if is_own { text.clone() } else { of_convert(option) };
            assert_eq!(remedy(&text, command), expected, "{command}");
        }
        let text = "convert this dataset again with --categorical colour";
        assert_eq!(remedy(text, "predict"), text);
    }
}
