//! Implements `planetree verify-export`.

use super::export::{TargetOptions, exportable};
use super::import::{formats_help, unknown_format, with_import_remedy};
use super::options::StoreOptions;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_count};
use planetree_data::dataset::DatasetReader;
use planetree_model::exchange::{ModelFormat, VerifyReport};
use planetree_model::model::Model;
use std::fmt::Write;

/// Check that an exported model gives the same scores as the original
///
/// The file is read as the other program reads it, and rows are scored with its arithmetic: its comparison, its precision
/// and its treatment of missing values. For every split of the model, a row that reaches it is tried with the feature at the
/// threshold, one 32-bit float below and above it, missing, 0, -0 and infinite. With --data, the rows of a dataset are tried
/// and their ranks are compared. Exits with code 1 if a score differs by more than the other program's rounding error.
#[derive(Debug, Args)]
#[command(after_help = format!("Formats:\n{}
Examples:
  planetree verify-export model.parquet model.json --format solr --data test
  planetree verify-export model.parquet model.onnx --format onnx --json", formats_help(exportable())))]
pub(crate) struct VerifyArguments {
    /// Model: a file or a URL
    #[arg(value_name = "MODEL")]
    model: String,

    /// The exported file: a path or a URL
    #[arg(value_name = "FILE")]
    file: String,

    /// Format of the exported file
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(exportable().map(|format| format.name)))]
    format: String,

    /// Dataset whose rows are tried, too
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    target: TargetOptions,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<()> {
    let store = &arguments.store;
    let format = ModelFormat::named(&arguments.format).ok_or_else(|| unknown_format(&arguments.format))?;
    let file = store.locate(&arguments.file)?;
    let data = store.locate_optional(arguments.data.as_ref())?;
    let data = data.map(|data| DatasetReader::open(&data)).transpose()?;
    let location = store.locate(&arguments.model)?;
    let model = Model::read(&location).map_err(|error| with_import_remedy(error, &location))?;
    tracing::info!("model: {location}, {}", model.size_text());
    let prepared = arguments.target.prepare(model, store)?;
    let bytes = file.read_all()?.ok_or_else(|| file.absent())?;
    tracing::info!("export: {file}, {}, as {}", counted(bytes.len() as u64, "byte", "bytes"), format.name);
    let report = format.verify(&prepared, &bytes, &file, data.as_ref())?;
    let text = match arguments.json {
        true => {
            let json = serde_json::to_string(&report).map_err(|error| Error::bug("verify-export", error))?;
            format!("{json}\n")
        }
        false => report_text(&report),
    };
    super::print(&text)?;
    match report.mismatches {
        0 => Ok(()),
        count => Err(Error::place(
            &file,
            format_args!("{} rows have another score than in the model", shown_count(count)),
            "export the model again with this version of planetree, or use a format that can express it",
        )),
    }
}

/// Formats a report as lines.
pub(crate) fn report_text(report: &VerifyReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<20} {value}");
    };
    line("format", format!("{} ({})", report.format, report.kind));
    line("trees", shown_count(report.trees as u64));
    if let Some(base_score) = report.base_leaf {
        line("base score", format!("{base_score:?}, a further tree of one leaf"));
    }
    line(
        "rows tried",
        format!(
            "{} at splits, {} of these and others on the whole model, {} of data",
            shown_count(report.split_rows),
            shown_count(report.whole_rows),
            shown_count(report.data_rows)
        ),
    );
    line("mismatches", shown_count(report.mismatches));
    line("largest difference", report.difference_text());
    if report.data_rows > 0 {
        line(
            "changed ranks",
            format!("{} of {}", shown_count(report.changed_ranks), shown_count(report.data_rows)),
        );
    }
    if report.blind_rows > 0 {
        let reason = report.blind_reason.unwrap_or_default();
        line("not comparable", format!("{} rows: {reason}", shown_count(report.blind_rows)));
    }
    if report.constant != 0.0 {
        line("constant", format!("scores are lower by {:?}: the format has no constant", report.constant));
    }
    if let Some(first) = &report.first {
        line("first difference", format!("{:?} here, {:?} there", first.planetree, first.target));
        line("  row", first.row.clone());
        line("  reason", first.reason.clone());
    }
    text
}
