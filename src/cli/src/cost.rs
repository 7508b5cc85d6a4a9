//! Implements `planetree cost`.

use super::columns::ColumnOptions;
use super::exit_options::{ExitOf, ExitScopeArgument};
use super::options::{JsonOptions, StoreOptions, ThreadOptions, check_is_not_read, file_name, split_name};
use super::predict::is_training_data;
use super::tables::InputData;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_count};
use planetree_data::LabelMap;
use planetree_data::dataset::DatasetReader;
use planetree_data::table::provenance::TRAINING_ROWS_NOTE;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_model::cost::CostTable;
use planetree_model::model::Model;
use planetree_model::predict::model_fingerprint;
use planetree_run::cost::{CostPoint, CostRequest, ModelCurves, cost_curves, write_points};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Instant;

/// Measure quality against the cost of scoring a document, with early exits
///
/// Every --exit-every trees, the documents with the lowest scores exit: they keep their scores and are not scored any
/// further. The output has one row per model, percentage and exit: the number of trees, the documents that were scored with
/// the last of them, the mean cost of a document and the metrics. cost is 1 per tree plus the cost of every feature when
/// it is first used; tree_cost is the mean cost of the trees, each with all its features.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree cost --model model.parquet --data test --costs costs.csv --output curve.parquet
  planetree cost --model model.parquet --data test --costs costs.csv --exit-every 100 \\
      --exit-percent 0,5,10,20 --metrics prec@5,pauc@0-5,auc --output curve.parquet
  planetree cost --model plain=a.parquet --model cheap=b.parquet --data test --costs costs.csv \\
      --output frontier.parquet")]
pub(crate) struct CostArguments {
    /// Model: a file or a URL; may be repeated to compare models, such as those of several values of cost_lambda
    #[arg(long, value_name = "[NAME=]FILE", required = true)]
    model: Vec<String>,

    /// Dataset with labels: a directory or a URL. CSV, Parquet and LETOR files are converted to a temporary dataset first
    #[arg(long, value_name = "DATASET")]
    data: String,

    #[command(flatten)]
    columns: ColumnOptions,

    /// Costs of features: CSV with the columns feature, cost and, optionally, group (its cost is paid once), or TOML
    #[arg(long, value_name = "FILE")]
    costs: String,

    /// Number of trees between exits; the output has one row per exit
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
    #[arg(long, short, value_name = "FILE")]
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
    InputData::new(&arguments.columns, &arguments.store, &arguments.threads, quiet)
        .run("cost", |input| compute_costs(arguments, input, quiet))
}

fn compute_costs(arguments: &CostArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.store;
    let request = arguments.request()?;
    let names = arguments.names()?;
    let costs = store.locate(&arguments.costs)?;
    let table = CostTable::read(&costs)?;
    let output = store.locate(&arguments.output)?;
    let mut read = input.files(&arguments.data)?;
    read.push(costs);
    check_is_not_read(&output, "--output", &read)?;
    TableWriter::check(&output, TableKind::Costs)?; // fails before the work, not after it
    let reader = DatasetReader::open(&input.dataset(&arguments.data)?)?;
    tracing::info!("data: {}, {}", arguments.data, counted(reader.manifest().rows, "row", "rows"));
    let pool = arguments.threads.pool()?;
    let (mut curves, mut trained_here) = (Vec::new(), false);
    for (name, file) in names {
        let file = store.locate(file)?;
        let model = Model::read(&file)?;
        tracing::info!("model: {file}, {}", model.size_text());
        let named = (name, model_fingerprint(&file)?, &model);
        curves.push(pool.install(|| cost_curves(&reader, named, &table, &request))?);
        trained_here |= is_training_data(&model, &reader)?;
    }
    write_points(&curves, &request, &reader.fingerprint()?.to_string(), &output)?;
    tracing::info!("wrote {output}");
    arguments.json.print(|| text(&curves, &request), || json_of(&curves, &request))?;
    if !quiet {
        if trained_here {
            super::message(format_args!("note: {}: {TRAINING_ROWS_NOTE}", arguments.data));
        }
        for ModelCurves { name, warning, .. } in &curves {
            if let Some(warning) = warning {
                super::message(format_args!("warning: {name}: {}", input.as_given(warning)));
            }
        }
        let points = || curves.iter().flat_map(|curves| &curves.points);
        for (index, (name, metric)) in request.metrics.iter().enumerate() {
            if points().all(|point| point.values[index].is_none()) {
                super::message(format_args!(
                    "warning: {name} ({metric}) is undefined: {}",
                    metric.why_undefined()
                ));
            }
        }
        let rows = counted(reader.manifest().rows, "row", "rows");
        let points = counted(points().count() as u64, "point", "points");
        let seconds = started.elapsed().as_secs_f64();
        super::message(format_args!("{output}: {points} of {rows}; {seconds:.1} s"));
    }
    Ok(())
}

impl CostArguments {
    /// Returns the models with their names. A model without a name is called like its file.
    fn names(&self) -> Result<Vec<(String, &str)>> {
        let named = |text: &'_ String| {
            let (name, file) = split_name(text);
            let own = file_name(file);
            let name = name.unwrap_or_else(|| own.strip_suffix(".parquet").unwrap_or(own));
            name.to_owned()
        };
        let names: Vec<(String, &str)> =
            self.model.iter().map(|text| (named(text), split_name(text).1)).collect();
        let repeated = |index: &usize| names[..*index].iter().any(|(name, _)| *name == names[*index].0);
        match (0..names.len()).find(repeated) {
            Some(index) => Err(Error::usage(
                format_args!("two models are called {:?}", names[index].0),
                "give them different names: --model NAME=FILE",
            )),
            None => Ok(names),
        }
    }

    fn request(&self) -> Result<CostRequest> {
        let convention: Convention = self.convention.parse()?;
        let metric = |name: &str| Ok((name.trim().to_owned(), name.parse()?));
        let written: Vec<(String, Metric)> = self.metrics.split(',').map(metric).collect::<Result<_>>()?;
        let all: Vec<Metric> = written.iter().map(|(_, metric)| *metric).collect();
        if let Some((problem, remedy)) = convention.repeated(&all) {
            return Err(Error::usage(problem, remedy));
        }
        let metrics: Vec<(String, Metric)> =
            written.into_iter().map(|(name, metric)| (name, convention.meant(metric))).collect();
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

fn text(curves: &[ModelCurves], request: &CostRequest) -> String {
    let heads: String = request.metrics.iter().map(|(name, _)| format!(" {name:>12}")).collect();
    let width = curves.iter().map(|curves| curves.name.chars().count()).max().unwrap_or(0).max("model".len());
    let mut text = format!("{:<22}{}\n\n", "convention", request.convention);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:<width$} {:>6} {:>7} {:>11} {:>12} {:>12}{heads}",
        "model", "exit %", "trees", "documents", "cost", "tree cost"
    );
    for ModelCurves { name, points, .. } in curves {
        for CostPoint { percent, trees, documents, cost, tree_cost, values } in points {
            let shown = |value: &Option<f64>| {
                value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.6}"))
            };
            let values: String = values.iter().map(|value| format!(" {:>12}", shown(value))).collect();
            let documents = shown_count(*documents);
            let _ = writeln!(
                text,
                "{name:<width$} {percent:>6} {trees:>7} {documents:>11} {cost:>12.2} {tree_cost:>12.2}{values}"
            );
        }
    }
    text
}

fn json_of(curves: &[ModelCurves], request: &CostRequest) -> Value {
    let point = |name: &str, point: &CostPoint| {
        let names = request.metrics.iter().map(|(name, _)| name.clone());
        let values: Map<String, Value> = names.zip(point.values.iter().map(|value| json!(value))).collect();
        json!({
            "model": name,
            "exit_percent": point.percent,
            "trees": point.trees,
            "documents": point.documents,
            "cost": point.cost,
            "tree_cost": point.tree_cost,
            "metrics": values,
        })
    };
    let points = curves.iter().flat_map(|curves| curves.points.iter().map(|at| point(&curves.name, at)));
    json!({
        "convention": request.convention.to_string(),
        "points": points.collect::<Vec<_>>(),
    })
}
