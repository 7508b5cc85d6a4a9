//! Implements `planetree cost`.

use super::exit_options::{ExitOf, ExitScopeArgument};
use super::options::{JsonOptions, StoreOptions, ThreadOptions};
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_data::LabelMap;
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_model::cost::CostTable;
use planetree_model::model::Model;
use planetree_model::predict::model_fingerprint;
use planetree_run::cost::{CostPoint, CostRequest, CostTableMetadata, cost_points, write_points};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Instant;

/// Measure quality against the cost of scoring a document, with early exits
///
/// Every --exit-every trees, the documents with the lowest scores exit: they keep their scores and are not scored any
/// further. The output has one row per percentage and exit: the number of trees, the documents that were scored with
/// the last of them, the mean cost of a document and the metrics. cost is 1 per tree plus the cost of every feature when
/// it is first used; tree_cost is the mean cost of the trees, each with all its features.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree cost --model model.parquet --data test --costs costs.csv --output curve.parquet
  planetree cost --model model.parquet --data test --costs costs.csv --exit-every 100 --exit-percent 0,5,10,20 \\
      --metrics prec@5,pauc@0-5,auc --output curve.parquet")]
pub(crate) struct CostArguments {
    /// Model: a file or a URL
    #[arg(long, value_name = "FILE")]
    model: String,

    /// Dataset with labels: a directory or a URL
    #[arg(long, value_name = "DATASET")]
    data: String,

    /// Costs of features: CSV with the columns feature, cost and, optionally, group (its cost is paid once), or TOML
    #[arg(long, value_name = "FILE")]
    costs: String,

    /// Number of trees between two exits, and two rows of the output
    #[arg(long, value_name = "TREES", default_value_t = 100)]
    exit_every: u32,

    /// Percentages of documents that exit, one curve each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    exit_percent: Vec<f64>,

    /// Which documents are compared with each other
    #[arg(long, value_enum, default_value = "pooled")]
    exit_scope: ExitScopeArgument,

    /// What the percentage refers to
    #[arg(long, value_enum, default_value = "remaining")]
    exit_of: ExitOf,

    /// Metrics, separated by commas; see `planetree evaluate --help`
    #[arg(long, value_name = "LIST", default_value = "prec@5,pauc@0-5,auc")]
    metrics: String,

    /// Metric convention. That of the thesis: relevant from label 3, precision divided by K, AUC of all documents pooled
    #[arg(long, value_name = "NAME[,SWITCH=VALUE]...", default_value = "mohan-cost")]
    convention: String,

    /// Labels that replace those of the data, such as 0,1,2=0;3,4=1
    #[arg(long, value_name = "MAP")]
    label_map: Option<String>,

    /// Table to write: .parquet (or no extension), .csv, .tsv, .json, .ndjson; text formats also with .gz or .zst
    #[arg(long, value_name = "FILE")]
    output: String,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &CostArguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.store;
    let request = arguments.request()?;
    let file = store.locate(&arguments.model)?;
    let model = Model::read(&file)?;
    let reader = DatasetReader::open(&store.locate(&arguments.data)?)?;
    let table = CostTable::read(&store.locate(&arguments.costs)?)?;
    let output = store.locate(&arguments.output)?;
    TableWriter::check(&output, TableKind::Costs)?; // fails before the work, not after it
    let points = arguments.threads.pool()?.install(|| cost_points(&reader, &model, &table, &request))?;
    let (model_id, dataset) = (model_fingerprint(&file)?, reader.fingerprint()?.to_string());
    write_points(&points, &request, CostTableMetadata { model: &model_id, dataset: &dataset }, &output)?;
    arguments.json.print(|| text(&points, &request), || json_of(&points, &request))?;
    if !quiet {
        for (index, (name, metric)) in request.metrics.iter().enumerate() {
            if points.iter().all(|point| point.values[index].is_none()) {
                super::message(format_args!(
                    "warning: {name} ({metric}) is undefined: no document, or every document, is relevant \
                     (see relevant= in --convention)"
                ));
            }
        }
        let (rows, seconds) = (shown_count(reader.manifest().rows), started.elapsed().as_secs_f64());
        super::message(format_args!("{output}: {} points of {rows} rows; {seconds:.1} s", points.len()));
    }
    Ok(())
}

impl CostArguments {
    fn request(&self) -> Result<CostRequest> {
        let convention: Convention = self.convention.parse()?;
        let metric = |name: &str| Ok((name.trim().to_owned(), convention.meant(name.parse()?)));
        let metrics: Vec<(String, Metric)> = self.metrics.split(',').map(metric).collect::<Result<_>>()?;
        let known = ["exit_percent", "trees", "documents", "cost", "tree_cost"];
        if let Some((name, _)) = (0..metrics.len()).find_map(|index| {
            let (name, metric) = &metrics[index];
            let is_repeated = metrics[..index].iter().any(|(other, same)| other == name || same == metric);
            (is_repeated || known.contains(&name.as_str())).then_some(&metrics[index])
        }) {
            return Err(Error::usage(format_args!("metric {name} is given twice"), "pass each metric once"));
        }
        if convention.needs_documents() {
            return Err(Error::usage(
                format_args!("--convention {convention}: ties=docid is not supported here"),
                "choose another rule for ties, such as ties=input",
            ));
        }
        let label_map: Option<LabelMap> = self.label_map.as_deref().map(str::parse).transpose()?;
        Ok(CostRequest {
            metrics,
            convention,
            label_map,
            every: self.exit_every,
            percents: self.exit_percent.clone(),
            scope: self.exit_scope.scope(),
            share: self.exit_of.share(),
        })
    }
}

fn text(points: &[CostPoint], request: &CostRequest) -> String {
    let heads: String = request.metrics.iter().map(|(name, _)| format!(" {name:>12}")).collect();
    let mut text = format!("{:<22}{}\n\n", "convention", request.convention);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:>6} {:>7} {:>11} {:>12} {:>12}{heads}",
        "exit %", "trees", "documents", "cost", "tree cost"
    );
    for point in points {
        let CostPoint { percent, trees, documents, cost, tree_cost, values } = point;
        let shown =
            |value: &Option<f64>| value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.6}"));
        let values: String = values.iter().map(|value| format!(" {:>12}", shown(value))).collect();
        let documents = shown_count(*documents);
        let _ =
            writeln!(text, "{percent:>6} {trees:>7} {documents:>11} {cost:>12.2} {tree_cost:>12.2}{values}");
    }
    text
}

fn json_of(points: &[CostPoint], request: &CostRequest) -> Value {
    let point = |point: &CostPoint| {
        let names = request.metrics.iter().map(|(name, _)| name.clone());
        let values: Map<String, Value> = names.zip(point.values.iter().map(|value| json!(value))).collect();
        json!({
            "exit_percent": point.percent,
            "trees": point.trees,
            "documents": point.documents,
            "cost": point.cost,
            "tree_cost": point.tree_cost,
            "metrics": values,
        })
    };
    json!({
        "convention": request.convention.to_string(),
        "points": points.iter().map(point).collect::<Vec<_>>(),
    })
}
