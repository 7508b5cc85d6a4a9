//! Describes a dataset: size, queries, labels and features.

use super::short;
use crate::options::JsonOptions;
use crate::progress::CountProgress;
use planetree_base::error::Result;
use planetree_base::size::{shown_count, shown_size};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, Manifest};
use planetree_data::describe::{Description, FeatureSummary, describe};
use rayon::ThreadPool;
use serde_json::json;
use std::fmt::Write;

const PERCENTILES: [(&str, f64); 7] =
    [("min", 0.0), ("p10", 0.1), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p90", 0.9), ("max", 1.0)];

/// Describes a dataset.
pub(super) fn run(
    reader: &DatasetReader,
    location: &Location,
    json: &JsonOptions,
    pool: &ThreadPool,
    quiet: bool,
) -> Result<()> {
    let mut progress = CountProgress::start("describing", Some(reader.manifest().rows), "rows", quiet);
    let description = pool.install(|| describe(reader, &mut |rows| progress.step(rows)))?;
    progress.finish();
    let fingerprint = Some(pool.install(|| reader.fingerprint())?);
    let manifest = &Manifest { fingerprint, ..reader.manifest().clone() };
    json.print(|| as_text(location, manifest, &description), || as_json(location, manifest, &description))
}

fn as_json(location: &Location, manifest: &Manifest, description: &Description) -> serde_json::Value {
    let queries = &description.queries;
    let features: Vec<serde_json::Value> = manifest
        .features
        .iter()
        .zip(&description.features)
        .map(|(name, feature)| {
            json!({
                "name": name,
                "type": feature.kind(),
                "missing": feature.missing_share(),
                "min": (feature.present > 0).then_some(feature.least),
                "max": (feature.present > 0).then_some(feature.most),
                "mean": feature.mean(),
                "distinct": feature.distinct().0,
                "distinct_exact": feature.distinct().1,
            })
        })
        .collect();
    let sizes: serde_json::Map<String, serde_json::Value> = PERCENTILES
        .iter()
        .map(|(name, share)| ((*name).to_owned(), queries.size_percentile(*share).into()))
        .collect();
    json!({
        "dataset": location.to_string(),
        "writer": manifest.writer,
        "source": manifest.source,
        "fingerprint": manifest.fingerprint,
        "rows": manifest.rows,
        "queries": queries.queries(),
        "weights": manifest.weight,
        "positions": manifest.position,
        "files": manifest.files.len(),
        "row_groups": manifest.files.iter().map(|file| file.row_groups.len()).sum::<usize>(),
        "bytes": manifest.files.iter().map(|file| file.bytes).sum::<u64>(),
        "documents_per_query": sizes,
        "labels": queries.labels().iter().map(|(label, rows)| json!({"label": label, "rows": rows})).collect::<Vec<_>>(),
        "unlabelled": queries.unlabelled,
        "empty_queries": queries.empty,
        "one_label_queries": queries.one_label,
        "features": features,
        "warnings": description.warnings(manifest),
    })
}

fn as_text(location: &Location, manifest: &Manifest, description: &Description) -> String {
    let mut text = String::new();
    let queries = &description.queries;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let groups: usize = manifest.files.iter().map(|file| file.row_groups.len()).sum();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<22}{value}"); // writing to a String cannot fail
    };
    line("dataset", location.to_string());
    line(
        "written by",
        format!(
            "{} from {} of {}",
            manifest.writer,
            shown_size(manifest.source.bytes),
            manifest.source.format
        ),
    );
    line("fingerprint", manifest.fingerprint.map_or_else(String::new, |print| print.to_string()));
    line("rows", shown_count(manifest.rows));
    line("queries", shown_count(queries.queries()));
    line("features", shown_count(manifest.features.len() as u64));
    let yes_or_no = |is_there: bool| if is_there { "yes" } else { "no" }.to_owned();
    line("weights", yes_or_no(manifest.weight));
    line("positions", yes_or_no(manifest.position));
    line(
        "files",
        format!(
            "{} ({groups} row group{}, {})",
            manifest.files.len(),
            if groups == 1 { "" } else { "s" },
            shown_size(bytes)
        ),
    );
    let sizes: Vec<String> = PERCENTILES
        .iter()
        .map(|(name, share)| format!("{name} {}", queries.size_percentile(*share)))
        .collect();
    line("documents per query", sizes.join("  "));
    text.push('\n');
    text.push_str(&labels_as_text(description));
    text.push('\n');
    text.push_str(&features_as_text(manifest, &description.features));
    let warnings = description.warnings(manifest);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn labels_as_text(description: &Description) -> String {
    const MAX_LABELS: usize = 20;
    const BAR_WIDTH: f64 = 40.0;
    let labels = description.queries.labels();
    let total: u64 = labels.iter().map(|(_, rows)| rows).sum::<u64>() + description.queries.unlabelled;
    let mut text = format!("{:>12} {:>14} {:>8}\n", "label", "rows", "share");
    if labels.len() > MAX_LABELS {
        let (first, last) = (labels[0].0, labels[labels.len() - 1].0);
        let _ = writeln!(
            text,
            "{:>12} {:>14}   {} distinct labels from {first} to {last}",
            "real-valued",
            shown_count(total),
            labels.len()
        );
        return text;
    }
    let unlabelled =
        (description.queries.unlabelled > 0).then_some(("none".to_owned(), description.queries.unlabelled));
    for (label, rows) in labels.iter().map(|(label, rows)| (label.to_string(), *rows)).chain(unlabelled) {
        let share = rows as f64 / total.max(1) as f64;
        let bar = "#".repeat((share * BAR_WIDTH).round() as usize);
        let row = format!("{label:>12} {:>14} {:>6.2} %  {bar}", shown_count(rows), 100.0 * share);
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

fn features_as_text(manifest: &Manifest, features: &[FeatureSummary]) -> String {
    let width = manifest.features.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(7, 40);
    let mut text = format!(
        "{:<width$} {:<8} {:>9} {:>12} {:>12} {:>12} {:>10}\n",
        "feature", "type", "missing", "min", "max", "mean", "distinct"
    );
    for (name, feature) in manifest.features.iter().zip(features) {
        let kind = serde_json::to_value(feature.kind()).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
        let number = |value: f64| if feature.present > 0 { short(value) } else { "-".to_owned() };
        let (distinct, exact) = feature.distinct();
        let _ = writeln!(
            text,
            "{name:<width$} {kind:<8} {:>7.2} % {:>12} {:>12} {:>12} {:>10}",
            100.0 * feature.missing_share(),
            number(f64::from(feature.least)),
            number(f64::from(feature.most)),
            number(feature.mean().unwrap_or_default()),
            format!("{}{}", if exact { "" } else { "~" }, shown_count(distinct)),
        );
    }
    text
}
