//! Implements `planetree blend`.

mod json;
mod text;

use super::columns::ColumnOptions;
use super::options::{
    JsonOptions, StoreOptions, ThreadOptions, check_is_not_read, file_name, parse_whole, split_name,
};
use super::tables::InputData;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_model::model::{BlendMember, Model, Normalisation};
use planetree_model::predict::PredictionsTable;
use planetree_run::blend::{BlendOutcome, BlendRequest, WeightMethod, blend_models, read_tables, weigh};
use std::collections::{HashMap, HashSet};

/// Blend models into one: a weighted sum of their scores
///
/// Writes one model file with the parts of all models, which predicts, explains and exports like any other. Weights are
/// equal, given, or found on validation data. The metric of every model alone, of equal weights and of the blend is
/// printed, with the gain and whether it is significant. With --predictions, tables of predictions of any program are
/// blended into one table of predictions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree blend mart.parquet lambdamart.parquet --data valid --output blend.parquet
  planetree blend a.parquet b.parquet c.parquet --data valid --weights ascent:ndcg@10 -o blend.parquet
  planetree blend a.parquet b.parquet --data valid --normalise none,unit_variance \\
      --weights ols --output blend.parquet
  planetree blend --predictions ours.parquet theirs.csv --normalise z --weights 0.3,0.7 -o blend.csv")]
pub(crate) struct BlendArguments {
    /// Models: two or more files or URLs, optionally with names
    #[arg(value_name = "[NAME=]MODEL", required_unless_present = "predictions")]
    models: Vec<String>,

    /// Tables of predictions to blend in place of models: Parquet, CSV or JSON. Rows are matched by their order, or by
    /// query_id and doc_id. The output is a table of predictions
    #[arg(long, value_name = "[NAME=]FILE", num_args = 1.., conflicts_with_all = ["models", "data"])]
    predictions: Vec<String>,

    /// Validation data with labels: a dataset, or a CSV, Parquet or LETOR file. Required for weights that are found
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    /// Normalisation of scores over the documents of a query: none, unit_variance, z, minmax or rank; one for all models,
    /// or a list with one per model
    #[arg(long, alias = "normalize", value_name = "LIST", value_delimiter = ',', default_value = "none")]
    normalise: Vec<String>,

    /// Weights: equal, a list such as 0.2,0.8, ols (least squares of the labels) or ascent:METRIC (coordinate ascent)
    #[arg(long, value_name = "WEIGHTS", default_value = "equal", allow_hyphen_values = true)]
    weights: String,

    /// Metric to report [default: the metric of ascent, or ndcg@10]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,

    /// Metric convention: a preset such as letor4, optionally followed by switches
    #[arg(long, value_name = "NAME[,SWITCH=VALUE]...", default_value = "planetree")]
    convention: String,

    /// Labels that replace those of the data, such as 0,1,2=0;3,4=1
    #[arg(long, value_name = "OLD,...=NEW;...")]
    label_map: Option<String>,

    /// Random seed of the significance test
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_whole::<u64>)]
    seed: u64,

    /// File or URL to write the model to; with --predictions, the predictions: .parquet (or none), .csv, .tsv, .json,
    /// .ndjson
    #[arg(long, short, value_name = "FILE")]
    output: String,

    #[command(flatten)]
    json: JsonOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// A model or a table of predictions.
struct BlendInput {
    name: String,
    file: String,
    location: Location,
    normalisation: Normalisation,
}

/// Everything that is printed.
struct Blended {
    inputs: Vec<BlendInput>,
    request: BlendRequest,
    outcome: BlendOutcome,
    output: String,
    is_model: bool,
    notes: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &BlendArguments, quiet: bool) -> Result<()> {
    InputData::new(&arguments.columns, &arguments.store, &arguments.threads, quiet)
        .run("blend", |input| blend_inputs(arguments, input, quiet))
}

fn blend_inputs(arguments: &BlendArguments, data: &mut InputData<'_>, quiet: bool) -> Result<()> {
    arguments.columns.check_data(arguments.data.as_ref())?;
    let is_model = arguments.predictions.is_empty();
    let inputs = arguments.inputs()?;
    let request = arguments.request(inputs.len())?;
    arguments.check_metric(&request)?;
    let output = arguments.store.locate(&arguments.output)?;
    check_is_not_read(&output, "--output", inputs.iter().map(|input| &input.location))?;
    let kind = if is_model { TableKind::Model } else { TableKind::Predictions };
    TableWriter::check(&output, kind)?;
    let dataset = arguments.data.as_ref().map(|path| data.dataset(path)).transpose()?;
    for input in &inputs {
        tracing::info!("input: {} = {}", input.name, input.location);
    }
    if let Some(data) = &arguments.data {
        tracing::info!("data: {data}");
    }
    let blend = || match is_model {
        true => blend_to_model(&inputs, &request, dataset.as_ref(), &output),
        false => blend_to_predictions(&inputs, &request, &output),
    };
    let outcome = arguments.threads.pool()?.install(blend)?;
    tracing::info!("wrote {output}");
    let mut notes = notes(&request, &outcome);
    if let (Some(metric), None) = (&arguments.metric, &outcome.quality) {
        notes.push(format!("{metric} was not measured: no table has labels"));
    }
    if !quiet {
        notes.iter().for_each(|note| super::message(format_args!("note: {note}")));
    }
    let blended = Blended { inputs, request, outcome, output: arguments.output.clone(), is_model, notes };
    arguments.json.print(|| text::text(&blended), || json::object(&blended))
}

fn blend_to_model(
    inputs: &[BlendInput],
    request: &BlendRequest,
    dataset: Option<&Location>,
    output: &Location,
) -> Result<BlendOutcome> {
    let member = |input: &BlendInput| {
        let model = Model::read(&input.location)?;
        Ok(BlendMember { name: input.name.clone(), model, normalisation: input.normalisation })
    };
    let members = inputs.iter().map(member).collect::<Result<Vec<_>>>()?;
    let reader = dataset.map(DatasetReader::open).transpose()?;
    let (model, mut outcome) = blend_models(&members, reader.as_ref(), request)?;
    model.write(output)?;
    if reader.is_none() {
        outcome.weights.notes.extend(strangers_note(&members)); // a dataset has the features of all models
    }
    Ok(outcome)
}

/// Returns a note about models without a feature that another model has, which are probably of other data.
fn strangers_note(members: &[BlendMember]) -> Option<String> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for member in members {
        let names: HashSet<&str> =
            member.model.features.iter().map(|feature| feature.name.as_str()).collect();
        names.into_iter().for_each(|name| *owners.entry(name).or_default() += 1);
    }
    let is_stranger = |member: &&BlendMember| {
        let features = &member.model.features;
        !features.is_empty() && features.iter().all(|feature| owners[feature.name.as_str()] == 1)
    };
    let strangers: Vec<&str> =
        members.iter().filter(is_stranger).map(|member| member.name.as_str()).collect();
    let verb = if strangers.len() == 1 { "has" } else { "have" };
    (!strangers.is_empty()).then(|| {
        format!(
            "{} {verb} no feature in common with any other model, and the blend scores only data with the features of \
             all models; pass --data to check it on such data",
            strangers.join(" and ")
        )
    })
}

fn blend_to_predictions(
    inputs: &[BlendInput],
    request: &BlendRequest,
    output: &Location,
) -> Result<BlendOutcome> {
    let tables: Vec<(String, Location, Normalisation)> = inputs
        .iter()
        .map(|input| (input.name.clone(), input.location.clone(), input.normalisation))
        .collect();
    let mut table = read_tables(&tables)?;
    let labels = table.scores.labels.clone();
    let outcome = match table.is_unlabelled() {
        false => weigh(&mut table.scores, request)?,
        true => BlendOutcome { weights: request.weights.without_labels(&table.scores)?, quality: None },
    };
    table.scores.labels = labels; // the table keeps the original labels
    let mut written = PredictionsTable::create(output)?;
    written.write(table.predictions(&outcome.weights.weights, outcome.weights.intercept))?;
    written.finish_blend(&table.fingerprints)?;
    Ok(outcome)
}

/// Returns notes on the weights and on what the metrics show.
fn notes(request: &BlendRequest, outcome: &BlendOutcome) -> Vec<String> {
    let mut notes = outcome.weights.notes.clone();
    let is_found = matches!(request.weights, WeightMethod::LeastSquares | WeightMethod::Ascent(_));
    if is_found && outcome.quality.is_some() {
        notes.push("the weights were found on these rows: measure the gain on other data".to_owned());
    }
    notes
}

impl BlendArguments {
    /// Fails if a metric is given, but there are no data to measure it on.
    fn check_metric(&self, request: &BlendRequest) -> Result<()> {
        let is_measured = self.data.is_some() || !self.predictions.is_empty();
        let needs_data = matches!(request.weights, WeightMethod::LeastSquares | WeightMethod::Ascent(_));
        match &self.metric {
            // The other error names the weights, which need data in any case.
            Some(metric) if !is_measured && !needs_data => Err(Error::usage(
                format_args!("--metric {metric}: nothing is measured without data"),
                "pass --data DATASET, or remove --metric",
            )),
            _ => Ok(()),
        }
    }

    fn inputs(&self) -> Result<Vec<BlendInput>> {
        let files = if self.predictions.is_empty() { &self.models } else { &self.predictions };
        if files.len() < 2 {
            return Err(Error::usage("there is nothing to blend: only one input", "pass two or more"));
        }
        let normalisations = self.normalisations(files.len())?;
        let input = |(text, normalisation): (&String, Normalisation)| {
            let (name, path) = split_name(text);
            let stem = file_name(path).trim_end_matches(".parquet").to_owned();
            Ok(BlendInput {
                name: name.map_or(stem, str::to_owned),
                file: path.to_owned(),
                location: self.store.locate(path)?,
                normalisation,
            })
        };
        let mut inputs = files.iter().zip(normalisations).map(input).collect::<Result<Vec<BlendInput>>>()?;
        // Inputs with equal names are named by their paths.
        let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
        for input in &mut inputs {
            if names.iter().filter(|name| **name == input.name).count() > 1 {
                input.name.clone_from(&input.file);
            }
        }
        Ok(inputs)
    }

    /// Returns one normalisation per input.
    fn normalisations(&self, inputs: usize) -> Result<Vec<Normalisation>> {
        let all = Normalisation::ALL.map(Normalisation::name);
        let named = |name: &String| {
            Normalisation::named(name.trim()).ok_or_else(|| {
                let near = suggest::nearest(name, all);
                Error::usage(
                    format_args!("unknown normalisation {name:?}"),
                    suggest::did_you_mean(&near, &format!("choose one of {}", all.join(", "))),
                )
            })
        };
        match self.normalise.iter().map(named).collect::<Result<Vec<_>>>()?.as_slice() {
            [one] => Ok(vec![*one; inputs]),
            list if list.len() == inputs => Ok(list.to_vec()),
            list => Err(Error::usage(
                format_args!("--normalise has {} values, but there are {inputs} models", list.len()),
                "pass one value for all models, or one per model, in the same order",
            )),
        }
    }

    fn request(&self, inputs: usize) -> Result<BlendRequest> {
        let weights = WeightMethod::parse(&self.weights, inputs)?;
        let metric: Option<Metric> = self.metric.as_deref().map(str::parse).transpose()?;
        let metric = match (metric, &weights) {
            (Some(metric), _) => metric,
            (None, WeightMethod::Ascent(metric)) => *metric,
            (None, _) => Metric::Ndcg(Some(10)),
        };
        let convention: Convention = self.convention.parse()?;
        let label_map = self.label_map.as_deref().map(str::parse).transpose()?;
        Ok(BlendRequest { weights, metric, convention, label_map, seed: self.seed })
    }
}
