//! `planetree export` and `planetree import`

use super::names::parse_names;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_base::storage::{Access, Location};
use planetree_data::catalog::refuse_ours;
use planetree_data::dataset::Manifest;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::exchange::{self, FORMATS, FeatureNames, Format};
use planetree_model::model::Model;
use std::io::Write;

/// The word for "by the look of the file".
const AUTO: &str = "auto";

/// Write a model for another program
///
/// LightGBM and XGBoost load the file and give the same scores: LightGBM to the last bit, XGBoost, which
/// calculates with 32 bits, to about seven digits. Missing values are NaN there and go the same ways.
#[derive(Debug, Args)]
#[command(after_help = format!("Formats:\n{}
Examples:
  planetree export model.parquet --format lightgbm --output model.txt
  planetree export s3://models/night --format xgboost --output model.json", formats_help()))]
pub struct ExportArguments {
    /// The model: a file or a URL
    #[arg(value_name = "MODEL")]
    model: String,

    /// What to write
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| format.name)))]
    format: String,

    /// The file to write: a path or a URL; an earlier export is replaced, nothing else
    #[arg(long, short, value_name = "FILE")]
    output: String,

    /// Write also what the format cannot express; what is lost is said on stderr
    #[arg(long)]
    lossy: bool,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

/// Read a model of another program
///
/// The result is a model like any other: predict, describe, evaluate, explanations and SQL work on it. Scores are
/// those of the other program before any transformation (LightGBM's raw_score, XGBoost's output_margin). Splits on
/// categories, several scores a row and linear trees are errors.
#[derive(Debug, Args)]
#[command(after_help = format!("Formats:\n  auto      by the look of the file\n{}
Examples:
  planetree import model.txt --output model.parquet
  planetree import model.json --format xgboost --names names.txt --output model.parquet", formats_help()))]
pub struct ImportArguments {
    /// The file to read: a path or a URL
    #[arg(value_name = "FILE")]
    file: String,

    /// What it is
    #[arg(long, value_name = "FORMAT", default_value = AUTO,
        value_parser = PossibleValuesParser::new([AUTO].into_iter().chain(FORMATS.iter().map(|format| format.name))))]
    format: String,

    /// The model to write: a file or a URL
    #[arg(long, short, value_name = "MODEL")]
    output: String,

    /// A file with the features' names, one a line, in the order of the columns it was trained on
    /// [default: those in the file, or f1, f2, ...]
    #[arg(long, value_name = "FILE")]
    names: Option<String>,

    /// The dataset whose codes of words the model was trained on [default: the words in the file]
    #[arg(long, value_name = "DATASET")]
    categories_from: Option<String>,

    /// Where the file has no names: the number of its first feature. Models that were trained from LETOR text by
    /// LightGBM or XGBoost themselves have one feature more, and need 0
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    index_base: u32,

    /// Read also what planetree's models cannot express; what is lost is said on stderr
    #[arg(long)]
    lossy: bool,

    /// Ask the machine's metadata service for credentials of object stores
    #[arg(long)]
    instance_credentials: bool,
}

fn formats_help() -> String {
    FORMATS.iter().map(|format| format!("  {:<9} {}\n", format.name, format.description)).collect()
}

fn access(instance_credentials: bool) -> Access {
    if instance_credentials { Access::InstanceCredentials } else { Access::Explicit }
}

/// Writes a model for another program.
pub fn export(arguments: &ExportArguments, quiet: bool) -> Result<()> {
    let access = access(arguments.instance_credentials);
    let place = Location::parse(&arguments.model, access)?;
    let output = Location::parse(&arguments.output, access)?;
    let format = Format::named(&arguments.format).ok_or_else(|| unknown(&arguments.format))?;
    refuse_ours(&output)?;
    let mut file = format.output(&output)?;
    let model = Model::read(&place)?;
    model.check_single_rows(&place)?;
    let exported = (format.export)(&model);
    say_all(&exported.notes, &exported.losses, quiet, arguments.lossy, &place)?;
    file.write_all(exported.text.as_bytes()).map_err(|error| Error::io(&output, "write", &error))?;
    file.commit()?;
    if !quiet {
        let trees = shown_count(model.trees.len() as u64);
        super::say(format_args!("{output}: {trees} trees, {}", format.description));
    }
    Ok(())
}

/// Reads a model of another program.
pub fn import(arguments: &ImportArguments, quiet: bool) -> Result<()> {
    let access = access(arguments.instance_credentials);
    let file = Location::parse(&arguments.file, access)?;
    let output = Location::parse(&arguments.output, access)?;
    TableWriter::check(&output, TableKind::Model)?;
    let names = match &arguments.names {
        Some(text) => {
            let place = Location::parse(text, access)?;
            let bytes = place.read_all()?.ok_or_else(|| place.absent())?;
            FeatureNames::Given(parse_names(&String::from_utf8_lossy(&bytes), &place.to_string())?)
        }
        None => FeatureNames::Own { first: arguments.index_base },
    };
    let format = match arguments.format.as_str() {
        AUTO => None,
        name => Some(Format::named(name).ok_or_else(|| unknown(name))?),
    };
    let mut imported = exchange::import(&file, format, &names)?;
    if let Some(dataset) = &arguments.categories_from {
        take_words(&mut imported.model, &Location::parse(dataset, access)?)?;
    }
    say_all(&imported.notes, &imported.losses, quiet, arguments.lossy, &file)?;
    imported.model.write(&output)?;
    if !quiet {
        let trees = shown_count(imported.model.trees.len() as u64);
        let features = shown_count(imported.model.features.len() as u64);
        super::say(format_args!("{output}: {trees} trees, {features} features"));
    }
    Ok(())
}

/// Gives the features of a model the words that a dataset has for them.
fn take_words(model: &mut Model, dataset: &Location) -> Result<()> {
    let manifest = Manifest::read(dataset)?;
    let mut found = 0u32;
    for column in manifest.categories {
        let Some(feature) = model.features.iter_mut().find(|feature| feature.name == column.feature) else {
            continue;
        };
        if !feature.words.is_empty() && feature.words != column.words {
            return Err(Error::place(
                dataset,
                format_args!("the model already has other words for {}", feature.name),
                "leave --categories-from out: the file carries the words of its training data",
            ));
        }
        feature.words = column.words;
        found += 1;
    }
    match found {
        1.. => Ok(()),
        0 => Err(Error::place(
            dataset,
            "it has no words of any feature of the model",
            "leave --categories-from out, or name the dataset that the model was trained on",
        )),
    }
}

/// Says what there is to say. What is lost is an error, unless that is wanted.
fn say_all(notes: &[String], losses: &[String], quiet: bool, lossy: bool, place: &Location) -> Result<()> {
    if !losses.is_empty() && !lossy {
        return Err(Error::place(
            place,
            format_args!("scores would be others: {}", losses.join("; ")),
            "pass --lossy to do it all the same",
        ));
    }
    if !quiet {
        notes.iter().for_each(|note| super::say(format_args!("note: {note}")));
        losses.iter().for_each(|loss| super::say(format_args!("warning: scores are others: {loss}")));
    }
    Ok(())
}

fn unknown(name: &str) -> Error {
    Error::usage(format_args!("there is no format {name:?}"), "see --help for those there are")
}
