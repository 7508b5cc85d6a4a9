//! Every export format with every kind of model: the exported file has the scores of the model, or the export is refused
//! with a remedy. The test prints the table of docs/export.md with `--nocapture`.

use crate::support::*;
use std::path::Path;

/// What formats can express of a model.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    /// A sum of trees; `true` if missing values are zeros, the only ones that RankLib knows.
    Trees(bool),
    /// A weighted sum of features.
    Linear,
    /// Trees whose scores are not their sum.
    Coupled,
    /// No trees and no weights.
    Net,
    /// Anything that depends on the other documents of a query.
    PerQuery,
}

/// Kinds of models, and how each is trained.
const MODELS: [(&str, &str, Content); 12] = [
    ("boosted", "--preset lambdamart --set missing=learned", Content::Trees(false)),
    ("boosted, zeros", "--preset lambdamart --set missing=zero", Content::Trees(true)),
    ("three-way", "--preset lambdamart --set missing=branch", Content::Trees(false)),
    ("forest", "--preset rf-point", Content::Trees(true)),
    ("runs", "--preset bagboost --set runs=3", Content::Trees(true)),
    ("stages", "--preset igbrt --set stage.1.num_trees=10 --set stage.2.num_trees=10", Content::Trees(true)),
    ("RankBoost", "--preset rankboost", Content::Trees(true)),
    ("linear", "--preset linear --set normalise_features=minmax --set missing=zero", Content::Linear),
    ("McRank", "--preset mcrank", Content::Coupled),
    ("pairwise", "--preset rf-pair", Content::Coupled),
    ("AdaRank", "--preset adarank", Content::PerQuery),
    ("ListNet", "--preset listnet", Content::Net),
];

/// Formats, their kinds and versions.
const FORMATS: [(&str, &str, &str); 25] = [
    ("lightgbm", "trees", ""),
    ("xgboost", "trees", ""),
    ("json", "trees", ""),
    ("ranklib", "trees", ""),
    ("ranklib", "linear", ""),
    ("solr", "trees", ""),
    ("solr", "linear", ""),
    ("elasticsearch-ltr", "xgboost+json", ""),
    ("elasticsearch-ltr", "xgboost+json+raw", ""),
    ("elasticsearch-ltr", "ranklib", ""),
    ("elasticsearch-ltr", "linear", ""),
    ("opensearch-ltr", "xgboost+json", ""),
    ("opensearch-ltr", "xgboost+json+raw", ""),
    ("opensearch-ltr", "ranklib", ""),
    ("opensearch-ltr", "linear", ""),
    ("elastic", "trees", ""),
    ("vespa", "lightgbm", ""),
    ("vespa", "xgboost", ""),
    ("onnx", "float", ""),
    ("onnx", "float", "3"),
    ("onnx", "double", ""),
    ("treelite", "float", ""),
    ("treelite", "double", ""),
    ("pmml", "trees", ""),
    ("pmml", "linear", ""),
];

/// Returns whether a kind of a format can express a model.
fn can_express(format: &str, kind: &str, content: Content) -> bool {
    let is_ranklib = format == "ranklib" || kind == "ranklib";
    match content {
        Content::Trees(zeros) => kind != "linear" && (zeros || !is_ranklib),
        Content::Linear => kind == "linear",
        Content::Coupled => format == "json",
        Content::Net | Content::PerQuery => false,
    }
}

/// Exports a model and checks the file. Returns the rows that were tried and the mismatches, or the reason of a refusal.
fn cell(
    directory: &Path,
    model: &str,
    (format, kind, opset): (&str, &str, &str),
) -> Result<(u64, u64), String> {
    let opset = if opset.is_empty() { String::new() } else { format!("--opset {opset}") };
    // The check of `export` runs first; a file that it refuses is written with --lossy only.
    let arguments = format!("--format {format} --kind {kind} {opset} --output file --data data");
    let ran = run(directory, &format!("export {model} {arguments}"));
    if ran.code != 0 {
        let ran = ran.failed();
        assert!(ran.stderr.contains("  help: "), "{model} {format} {kind}: {}", ran.stderr);
        return Err(ran.stderr);
    }
    let report =
        run(directory, &format!("verify-export {model} file --format {format} --data data --json")).ok();
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let count = |name: &str| report[name].as_u64().unwrap();
    Ok((count("split_rows") + count("whole_rows") + count("data_rows"), count("mismatches")))
}

#[test]
fn every_format_has_the_scores_of_every_kind_of_model_or_refuses_it() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 40, 20), "");
    for (number, (name, settings, content)) in MODELS.iter().enumerate() {
        let few = match *content {
            Content::Linear | Content::PerQuery => "",
            _ if *name == "stages" => "",
            Content::Net => "--set num_trees=5",
            _ => "--set num_trees=15 --set min_data_in_leaf=5",
        };
        train(room.path(), &format!("--data data --model model{number} {settings} {few}"));
    }
    let names = MODELS.map(|(name, ..)| name).join(" | ");
    let mut table = format!("| format and kind | {names} |\n|{}\n", " --- |".repeat(1 + MODELS.len()));
    for (format, kind, opset) in FORMATS {
        let version = if opset.is_empty() { String::new() } else { format!(" --opset {opset}") };
        table += &format!("| `{format}` `{kind}{version}` |");
        for (number, (name, _, content)) in MODELS.iter().enumerate() {
            let found = cell(room.path(), &format!("model{number}"), (format, kind, opset));
            let expected = can_express(format, kind, *content);
            match found {
                Ok((rows, mismatches)) => {
                    assert!(
                        expected && rows > 0 && mismatches == 0,
                        "{format} {kind} {name}: {rows} {mismatches}"
                    );
                    table += &format!(" {rows} rows, {mismatches} |");
                }
                Err(reason) => {
                    assert!(!expected, "{format} {kind} {name}: {reason}");
                    table += " refused |";
                }
            }
        }
        table += "\n";
    }
    eprintln!("{table}");
}
