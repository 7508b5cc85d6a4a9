//! Implements `planetree impute`.

use super::options::{DatasetOutputOptions, JsonOptions, StoreOptions, ThreadOptions};
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_count};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, Manifest};
use planetree_data::table::{TableKind, TableWriter};
use planetree_run::impute::{
    FilledFeature, ImputeRequest, ImputeStep, Imputed, forest_parameters, impute, write_filled,
};
use serde_json::json;
use std::fmt::Write;

/// Fill missing values with the predictions of forests
///
/// For every feature with missing values, a forest learns the feature from the rows that have it and predicts it for the
/// others. In the first sweep, forests use the features that all rows have and those filled before; in further sweeps all
/// features, until the filled values hardly change. Prints what was filled and how well it can be predicted: the error
/// on rows that have a value, each predicted by the trees that did not see it. With --like, forests learn from another
/// dataset: fill validation and test data like the training data. The output is byte-identical for any number of threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree impute --data train --output train-filled
  planetree impute --data test --like train --output test-filled
  planetree impute --data train --set num_trees=200 --sweeps 5 --filled f.csv --output train-filled")]
pub(crate) struct ImputeArguments {
    /// Dataset: a directory or a URL
    #[arg(long, value_name = "DATASET")]
    data: String,

    /// Dataset to learn from, such as the training data [default: the dataset itself]
    #[arg(long, value_name = "DATASET")]
    like: Option<String>,

    /// Maximum number of sweeps over all features
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    sweeps: u32,

    /// Stop when no feature's filled values change by more than this, in standard deviations of the feature
    #[arg(long, value_name = "X", default_value_t = 0.05)]
    tolerance: f64,

    /// Set one parameter of the forests, such as num_trees; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Write the table of filled features: .parquet (or no extension), .csv, .tsv, .json, .ndjson
    #[arg(long, value_name = "FILE")]
    filled: Option<String>,

    /// Dataset to write: a directory or a URL
    #[arg(long, short, value_name = "DATASET")]
    output: String,

    #[command(flatten)]
    dataset: DatasetOutputOptions,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &ImputeArguments, quiet: bool) -> Result<()> {
    let store = &arguments.store;
    let plan = forest_parameters(&arguments.set)?;
    if !(arguments.tolerance >= 0.0 && arguments.tolerance.is_finite()) {
        return Err(Error::usage(
            format_args!("--tolerance {}: expected a number from 0", arguments.tolerance),
            "pass a number such as 0.05",
        ));
    }
    let reader = DatasetReader::open(&store.locate(&arguments.data)?)?;
    let train =
        store.locate_optional(arguments.like.as_ref())?.map(|like| DatasetReader::open(&like)).transpose()?;
    let inputs: Vec<&Location> =
        std::iter::once(&reader).chain(&train).map(DatasetReader::location).collect();
    let output = store.locate_output(&arguments.output, &inputs)?;
    let filled = store.locate_optional(arguments.filled.as_ref())?;
    if let Some(filled) = &filled {
        TableWriter::check(filled, TableKind::Filled)?;
    }
    let request = ImputeRequest {
        output: &output,
        overwrite: arguments.dataset.overwrite(),
        partition_rows: arguments.dataset.partition_rows(),
        sweeps: arguments.sweeps,
        tolerance: arguments.tolerance,
        plan: &plan,
    };
    request.check()?; // before the sweeps, which may take long
    for reader in std::iter::once(&reader).chain(&train) {
        let Manifest { rows, queries, .. } = reader.manifest();
        tracing::info!(
            "data: {}, {}, {}",
            reader.location(),
            counted(*rows, "row", "rows"),
            counted(*queries, "query", "queries")
        );
    }
    let mut progress = |step: &ImputeStep<'_>| {
        let ImputeStep { sweep, feature, filled, features, change } = step;
        if quiet {
            return;
        }
        if filled == features && change.is_finite() {
            super::message(format_args!(
                "sweep {sweep}: {}, change {change:.4}",
                counted(*features as u64, "feature", "features")
            ));
        } else if filled == features {
            super::message(format_args!(
                "sweep {sweep}: {}",
                counted(*features as u64, "feature", "features")
            ));
        } else {
            tracing::info!("sweep {sweep}: {feature}, {filled} of {features}");
        }
    };
    let pool = arguments.threads.pool()?;
    let imputed = pool.install(|| impute(&reader, train.as_ref(), &request, &mut progress))?;
    tracing::info!("wrote {output}");
    if let Some(filled) = &filled {
        write_filled(&imputed, filled)?;
        tracing::info!("wrote {filled}");
    }
    if !quiet {
        imputed.warnings.iter().for_each(|warning| super::message(format_args!("warning: {warning}")));
    }
    arguments.json.print(|| text(&output, &imputed), || object(&output, &imputed))
}

fn text(output: &Location, imputed: &Imputed) -> String {
    let rows = counted(imputed.manifest.rows, "row", "rows");
    let cells: u64 = imputed.features.iter().map(|feature| feature.missing).sum();
    let mut text = format!(
        "{output}: {rows}; {} of {} filled in {}\n",
        counted(cells, "value", "values"),
        counted(imputed.features.len() as u64, "feature", "features"),
        counted(imputed.sweeps.into(), "sweep", "sweeps"),
    );
    if imputed.features.is_empty() {
        return text;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\n{:<20} {:>10} {:>10} {:>12} {:>12} {:>12} {:>7}",
        "feature", "missing", "present", "mean", "filled mean", "error", "r2"
    );
    for feature in &imputed.features {
        let FilledFeature { name, present, missing, mean, filled_mean, error, r2 } = feature;
        let [present, missing] = [*present, *missing].map(shown_count);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.5}"));
        let r2 = r2.map_or("-".to_owned(), |r2| format!("{r2:.3}"));
        let _ = writeln!(
            text,
            "{name:<20} {missing:>10} {present:>10} {:>12} {:>12} {:>12} {r2:>7}",
            number(Some(*mean)),
            number(*filled_mean),
            number(*error)
        );
    }
    text
}

fn object(output: &Location, imputed: &Imputed) -> serde_json::Value {
    let feature = |feature: &FilledFeature| {
        json!({
            "feature": feature.name,
            "present": feature.present,
            "missing": feature.missing,
            "mean": feature.mean,
            "filled_mean": feature.filled_mean,
            "error": feature.error,
            "r2": feature.r2,
        })
    };
    json!({
        "dataset": output.to_string(),
        "rows": imputed.manifest.rows,
        "queries": imputed.manifest.queries,
        "sweeps": imputed.sweeps,
        "change": imputed.change.is_finite().then_some(imputed.change),
        "converged": imputed.converged,
        "features": imputed.features.iter().map(feature).collect::<Vec<_>>(),
        "fingerprint": imputed.manifest.fingerprint,
    })
}
