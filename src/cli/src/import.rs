//! Implements `planetree import`.

use super::names::parse_names;
use super::options::StoreOptions;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_base::storage::Location;
use planetree_data::dataset::Manifest;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::exchange::{self, MODEL_FORMATS, ModelFormat, NameSource};

/// Value of `--format` that selects the format by the file's content.
const AUTO: &str = "auto";
/// The largest size in bytes of a file that is searched for a model of another program.
const LARGEST_MODEL: u64 = 1 << 30;

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

    /// Dataset that says which features are categorical. Their codes are those of the categories in the file, or of the
    /// dataset if the file has none [default: the categories in the model]
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
        let dataset = store.locate(dataset)?;
        imported.set_categories(&Manifest::read(&dataset)?.categories, &dataset)?;
    }
    print_notes(&imported.notes, &imported.losses, quiet, arguments.lossy, &file)?;
    imported.model.write(&output)?;
    if !quiet {
        let size = imported.model.size_text();
        let features = counted(imported.model.features.len() as u64, "feature", "features");
        super::message(format_args!("wrote {output}: {size}, {features}"));
    }
    Ok(())
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

/// Says how to import a model, if a file that is not a planetree model is one of another program.
pub(crate) fn with_import_remedy(error: Error, location: &Location) -> Error {
    let is_small = |size: Option<u64>| size.is_some_and(|size| size <= LARGEST_MODEL);
    if !location.size().is_ok_and(is_small) {
        return error;
    }
    let Ok(Some(bytes)) = location.read_all() else { return error };
    match MODEL_FORMATS.iter().find(|format| format.is_likely(&bytes)) {
        Some(format) => error.map_remedy(|_| {
            format!(
                "this looks like {}: import it first: planetree import {location} --output MODEL",
                format.noun
            )
        }),
        None => error,
    }
}

pub(crate) fn unknown_format(name: &str) -> Error {
    Error::usage(format_args!("unknown format: {name:?}"), "see --help for the formats")
}
