//! Implements `planetree import`.

use super::names::parse_names;
use super::options::StoreOptions;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_base::storage::Location;
use planetree_data::dataset::Manifest;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::exchange::{self, MODEL_FORMATS, ModelFormat, NameSource};
use planetree_model::model::Model;

/// Value of `--format` that selects the format by the file's content.
const AUTO: &str = "auto";

/// Import a model from another program
///
/// The result is a model like any other: predict, describe and SQL work with it. It computes the scores of the other
/// program before any transformation (LightGBM's raw_score, XGBoost's output_margin). Several scores per row, linear
/// trees and neural networks are not supported.
#[derive(Debug, Args)]
#[command(after_help = format!("Formats:\n  auto               by the content of the file\n{}
Examples:
  planetree import model.txt --output model.parquet
  planetree import model.json --format xgboost --names names.txt --output model.parquet", formats_help(importable())))]
pub(crate) struct ImportArguments {
    /// File to read: a path or a URL
    #[arg(value_name = "FILE")]
    file: String,

    /// Format of the file
    #[arg(long, value_name = "FORMAT", default_value = AUTO,
        value_parser = PossibleValuesParser::new([AUTO].into_iter().chain(importable().map(|format| format.name))))]
    format: String,

    /// Model to write: a file or a URL
    #[arg(long, short, value_name = "MODEL")]
    output: String,

    /// File with the feature names, one per line, in the order of the training data's columns [default: the names in
    /// the model, or f1, f2, ...]
    #[arg(long, value_name = "FILE")]
    names: Option<String>,

    /// Dataset that defines the category codes of the model's training data [default: the categories in the model]
    #[arg(long, value_name = "DATASET")]
    categories_from: Option<String>,

    /// Index of the first feature, if the model has no feature names. Pass 0 for models that LightGBM or XGBoost
    /// trained directly on LETOR text, because their features start with f0
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    index_base: u32,

    /// Import even if planetree cannot express the whole model; warnings list what is lost
    #[arg(long)]
    lossy: bool,

    #[command(flatten)]
    store: StoreOptions,
}

fn importable() -> impl Iterator<Item = &'static ModelFormat> {
    MODEL_FORMATS.iter().filter(|format| format.import.is_some())
}

/// Lists formats for `--help`.
pub(crate) fn formats_help(formats: impl Iterator<Item = &'static ModelFormat>) -> String {
    formats.map(|format| format!("  {:<18} {}\n", format.name, format.description)).collect()
}

/// Runs `planetree import`.
pub(crate) fn run(arguments: &ImportArguments, quiet: bool) -> Result<()> {
    let store = &arguments.store;
    let file = store.locate(&arguments.file)?;
    let output = store.locate(&arguments.output)?;
    TableWriter::check(&output, TableKind::Model)?;
    let names = match &arguments.names {
        Some(text) => {
            let location = store.locate(text)?;
            let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
            NameSource::Given(parse_names(&String::from_utf8_lossy(&bytes), &location.to_string())?)
        }
        None => NameSource::Model { first: arguments.index_base },
    };
    let format = match arguments.format.as_str() {
        AUTO => None,
        name => Some(ModelFormat::named(name).ok_or_else(|| unknown_format(name))?),
    };
    let mut imported = exchange::import(&file, format, &names)?;
    if let Some(dataset) = &arguments.categories_from {
        add_categories(&mut imported.model, &store.locate(dataset)?)?;
    }
    print_notes(&imported.notes, &imported.losses, quiet, arguments.lossy, &file)?;
    imported.model.write(&output)?;
    if !quiet {
        let size = imported.model.size_text();
        let features = shown_count(imported.model.features.len() as u64);
        super::message(format_args!("wrote {output}: {size}, {features} features"));
    }
    Ok(())
}

/// Adds the categories of a dataset's features to the features of a model.
fn add_categories(model: &mut Model, dataset: &Location) -> Result<()> {
    let manifest = Manifest::read(dataset)?;
    let mut found = 0u32;
    for column in manifest.categories {
        let Some(feature) = model.features.iter_mut().find(|feature| feature.name == column.feature) else {
            continue;
        };
        if !feature.words.is_empty() && feature.words != column.words {
            return Err(Error::place(
                dataset,
                format_args!("the model has different categories for {}", feature.name),
                "remove --categories-from: the file contains the categories of its training data",
            ));
        }
        feature.words = column.words;
        found += 1;
    }
    match found {
        1.. => Ok(()),
        0 => Err(Error::place(
            dataset,
            "no feature of the model is categorical in this dataset",
            "remove --categories-from, or pass the dataset that the model was trained on",
        )),
    }
}

/// Prints notes and losses of information. A loss is an error unless `--lossy` is given.
pub(crate) fn print_notes(
    notes: &[String],
    losses: &[String],
    quiet: bool,
    lossy: bool,
    location: &Location,
) -> Result<()> {
    if !losses.is_empty() && !lossy {
        return Err(Error::place(
            location,
            format_args!("scores would differ: {}", losses.join("; ")),
            "pass --lossy to accept this",
        ));
    }
    if !quiet {
        notes.iter().for_each(|note| super::message(format_args!("note: {note}")));
        losses.iter().for_each(|loss| super::message(format_args!("warning: scores differ: {loss}")));
    }
    Ok(())
}

pub(crate) fn unknown_format(name: &str) -> Error {
    Error::usage(format_args!("unknown format: {name:?}"), "see --help for the formats")
}
