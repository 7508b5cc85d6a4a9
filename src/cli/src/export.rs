//! Implements `planetree export`.

use super::import::{formats_help, print_notes, unknown_format, with_import_remedy};
use super::options::StoreOptions;
use super::verify_export::report_text;
use clap::Args;
use clap::builder::PossibleValuesParser;
use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_base::storage::Location;
use planetree_data::catalog::refuse_planetree_files;
use planetree_data::dataset::DatasetReader;
use planetree_model::exchange::{
    ExportRequest, MODEL_FORMATS, ModelFormat, PreparedModel, TargetFeatures, Upload,
};
use planetree_model::model::Model;
use std::io::Write;

/// Export a model to another program
///
/// Sums, means and weights of tree parts become one ensemble; linear models are written in the linear form of a format.
/// Parts that a format cannot express are refused by name. The written model is checked: it is read as the other program
/// reads it, and scored with its arithmetic on rows at the thresholds of all splits. See `planetree verify-export`.
#[derive(Debug, Args)]
#[command(after_help = format!("Formats:\n{}
Kinds:
  elasticsearch-ltr  xgboost+json, xgboost+json+raw, ranklib, linear (also opensearch-ltr)
  vespa              lightgbm, xgboost
  onnx, treelite     float, double
  ranklib, solr, pmml  trees, linear

Examples:
  planetree export model.parquet --format lightgbm --output model.txt
  planetree export model.parquet --format solr --features features.txt --output model.json --curl
  planetree export s3://models/night --format onnx --output model.onnx", formats_help(exportable())))]
pub(crate) struct ExportArguments {
    /// Model: a file or a URL
    #[arg(value_name = "MODEL")]
    model: String,

    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(exportable().map(|format| format.name)))]
    format: String,

    /// File or URL to write; an existing file is replaced only if it is an earlier export
    #[arg(long, short, value_name = "FILE")]
    output: String,

    /// Kind of model within the format [default: the first that can carry the model]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Version of ai.onnx.ml: 5 (TreeEnsemble) or 3 (TreeEnsembleRegressor) [default: 5]
    #[arg(long, value_name = "VERSION")]
    opset: Option<u32>,

    #[command(flatten)]
    target: TargetOptions,

    /// Name of the model at the server [default: the name of the file without extension]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Print the commands that upload the model to the server
    #[arg(long)]
    curl: bool,

    /// Name of the feature set (Elasticsearch, OpenSearch) or collection (Solr) in the commands
    #[arg(long, value_name = "NAME", default_value = "features", requires = "curl")]
    feature_set: String,

    /// Also check the scores of this dataset's rows
    #[arg(long, value_name = "DATASET", conflicts_with = "no_verify")]
    data: Option<String>,

    /// Do not check the scores of the exported model
    #[arg(long)]
    no_verify: bool,

    /// Export even if scores differ, because the format cannot express the whole model; warnings list what is lost
    #[arg(long)]
    lossy: bool,

    #[command(flatten)]
    store: StoreOptions,
}

/// Options that change what the target sees. An export and its check need the same ones.
#[derive(Debug, Args)]
pub(crate) struct TargetOptions {
    /// File with the features of the target, in its order: one per line, the name in the model and, after a tab, the name
    /// at the target if it differs [default: the features of the model]
    #[arg(long, value_name = "FILE")]
    features: Option<String>,

    /// Add a constant to all scores so that none is negative, as Lucene requires
    #[arg(long)]
    shift_nonnegative: bool,
}

impl TargetOptions {
    /// Prepares a model for the target.
    pub(crate) fn prepare(&self, model: Model, store: &StoreOptions) -> Result<PreparedModel> {
        let features = match &self.features {
            None => None,
            Some(text) => {
                let location = store.locate(text)?;
                let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
                Some(TargetFeatures::parse(&String::from_utf8_lossy(&bytes), &location.to_string())?)
            }
        };
        PreparedModel::new(model, features.as_ref(), self.shift_nonnegative)
    }
}

/// Returns the formats that can be exported.
pub(crate) fn exportable() -> impl Iterator<Item = &'static ModelFormat> {
    MODEL_FORMATS.iter().filter(|format| format.export.is_some())
}

/// Runs the command.
pub(crate) fn run(arguments: &ExportArguments, quiet: bool) -> Result<()> {
    let store = &arguments.store;
    let location = store.locate(&arguments.model)?;
    let output = store.locate(&arguments.output)?;
    let format = ModelFormat::named(&arguments.format).ok_or_else(|| unknown_format(&arguments.format))?;
    refuse_planetree_files(&output)?;
    let mut file = format.output(&output)?;
    let data = store.locate_optional(arguments.data.as_ref())?;
    let data = data.map(|data| DatasetReader::open(&data)).transpose()?;
    let model = Model::read(&location).map_err(|error| with_import_remedy(error, &location))?;
    tracing::info!("model: {location}, {}", model.size_text());
    let prepared = arguments.target.prepare(model, store)?;
    let name = arguments.name.clone().unwrap_or_else(|| stem(&output));
    let request = ExportRequest { kind: arguments.kind.clone(), opset: arguments.opset, name: name.clone() };
    let exported = format.export(&prepared.model, &request)?;
    print_notes(&exported.notes, &exported.losses, quiet, arguments.lossy, &location)?;
    let commands = match arguments.curl {
        false => None,
        true => {
            let features: Vec<&str> =
                prepared.model.features.iter().map(|feature| feature.name.as_str()).collect();
            Some(format.upload_commands(&Upload {
                name: &name,
                feature_set: &arguments.feature_set,
                file: &arguments.output,
                kind: format.kind_of(&exported.bytes),
                features: &features,
                content: &exported.bytes,
            })?)
        }
    };
    if !arguments.no_verify {
        check(arguments, format, &prepared, &exported.bytes, data.as_ref(), quiet)?;
    }
    file.write_all(&exported.bytes).map_err(|error| Error::io(&output, "write", error))?;
    file.commit()?;
    tracing::info!("wrote {output}, {}", counted(exported.bytes.len() as u64, "byte", "bytes"));
    if !quiet {
        let size = prepared.model.size_text();
        if prepared.shift > 0.0 {
            super::message(format_args!("note: {:?} is added to all scores", prepared.shift));
        }
        super::message(format_args!("{output}: {size}, {}", format.description));
    }
    commands.map_or(Ok(()), |commands| super::print(&commands))
}

/// Checks the scores of an exported model. A mismatch is an error unless `--lossy` is given, and is always reported.
fn check(
    arguments: &ExportArguments,
    format: &ModelFormat,
    prepared: &PreparedModel,
    bytes: &[u8],
    data: Option<&DatasetReader>,
    quiet: bool,
) -> Result<()> {
    let report = format.verify(prepared, bytes, &arguments.output, data)?;
    if report.mismatches == 0 {
        if !quiet {
            let rows = report.split_rows + report.whole_rows + report.data_rows;
            super::message(format_args!(
                "checked on {rows} rows: no mismatch, largest difference {}",
                report.difference_text()
            ));
        }
        return Ok(());
    }
    let text = report_text(&report);
    match arguments.lossy {
        true => {
            super::message(format_args!("warning: scores differ\n{text}"));
            Ok(())
        }
        false => Err(Error::place(
            &arguments.output,
            format_args!("scores would differ, so nothing was written\n{text}"),
            "pass --lossy to write the model nevertheless",
        )),
    }
}

/// Returns the name of a file without its extension.
fn stem(location: &Location) -> String {
    let name = location.name();
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name,
    }
}
