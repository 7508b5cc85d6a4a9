//! Implements `planetree predict`.

use super::columns::ColumnOptions;
use super::execution::ExecutionOptions;
use super::exit_options::{ExitOf, ExitScopeArgument};
use super::import::with_import_remedy;
use super::options::check_is_not_read;
use super::predict_batch::{self, print_scores};
use super::progress::CountProgress;
use super::stats::{StatsOptions, check_stats, write_stats};
use super::tables::InputData;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::process_memory;
use planetree_base::size::counted;
use planetree_base::storage::{Head, Location, SCORES_FORMATS, TextOutput, replaces};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::provenance::TRAINING_ROWS_NOTE;
use planetree_data::table::{TableKind, TableReader};
use planetree_model::model::{CHECKPOINT, Model};
use planetree_model::predict::{
    EarlyExit, GroupPredictor, PredictReport, PredictedGroup, PredictionsTable, part_columns, predict_with,
    predict_with_exits, ranks,
};
use planetree_run::read_start_scores;
use serde_json::json;
use std::io::Write;
use std::time::Instant;

/// Score the documents of a dataset with a model
///
/// The output is a table with the columns query_id, doc_id, label, score and rank, in the order of the dataset's rows:
/// Parquet, or CSV, TSV, JSON or NDJSON by the extension (.csv, .json.gz). Features are matched by name. Categories
/// are matched by their text, whatever codes the dataset uses for them; a category that the model does not know is a
/// missing value. Memory use does not depend on the size of the dataset. --parts adds the values of the model's parts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree predict --model model.parquet --data test --output predictions.parquet
  planetree predict --model model.parquet --data test --output predictions.csv.gz
  planetree predict --model model.parquet --data candidates.csv --query-column session --scores -
  planetree predict --model s3://models/night --data s3://datasets/test --scores scores.txt
  planetree predict --model model.parquet --data s3://datasets/test \\
      --output p.parquet --cluster df://10.0.0.1:50050
  service | planetree predict --model model.parquet --batch | service")]
pub(crate) struct PredictArguments {
    /// Model: a file or a URL
    #[arg(long, value_name = "FILE")]
    model: String,

    /// Dataset: a directory or a URL. CSV, Parquet and LETOR files are converted to a temporary
    /// dataset first
    #[arg(long, value_name = "DATASET", required_unless_present = "batch")]
    data: Option<String>,

    #[command(flatten)]
    columns: ColumnOptions,

    /// Score queries as they arrive on standard input, in LETOR text (LABEL qid:ID INDEX:VALUE ..., where the label may be
    /// left out), and print one score per line. A query ends at an empty line or at a line with another query id; its
    /// scores are printed at once
    #[arg(long, conflicts_with_all = ["data", "output", "scores", "stats", "parts", "cluster", "start_scores", "exit_every", "ColumnOptions"])]
    batch: bool,

    /// Index of the first feature in LETOR text, of --data or --batch
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    index_base: u32,

    /// File or URL to write predictions to; the extension selects the format: .parquet (or none), .csv, .tsv, .json,
    /// .ndjson; text formats also with .gz or .zst
    #[arg(long, short, value_name = "FILE", required_unless_present_any = ["scores", "batch"])]
    output: Option<String>,

    /// Add a column for each part of the model (part.NAME): its normalised value, before it is weighted. A score is the
    /// intercept plus the sum of weight * value
    #[arg(long, requires = "output")]
    parts: bool,

    /// Start scores to add to the value of a model that was trained with --start-scores: predictions of these rows, in any
    /// format that evaluate reads
    #[arg(long, value_name = "FILE")]
    start_scores: Option<String>,

    /// For a model trained with --start-scores: write its value without the start scores, as LightGBM's predict does
    #[arg(long, conflicts_with = "start_scores")]
    without_start_scores: bool,

    /// Number of trees between early exits: the lowest-scored documents keep their scores and are not scored further
    #[arg(long, value_name = "TREES", requires = "exit_percent", conflicts_with_all = ["parts", "cluster", "start_scores"])]
    exit_every: Option<u32>,

    /// Percentage of the documents that exit
    #[arg(long, value_name = "PERCENT", requires = "exit_every")]
    exit_percent: Option<f64>,

    /// Which documents are compared with each other. With pooled, the features of all rows are held in memory
    #[arg(long, value_enum, default_value = "pooled", requires = "exit_every")]
    exit_scope: ExitScopeArgument,

    /// What the percentage refers to
    #[arg(long, value_enum, default_value = "remaining", requires = "exit_every")]
    exit_of: ExitOf,

    /// Also write the scores as text: one per line, in the order of the rows; - for standard output
    #[arg(long, value_name = "FILE")]
    scores: Option<String>,

    #[command(flatten)]
    stats: StatsOptions,

    #[command(flatten)]
    execution: ExecutionOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &PredictArguments, quiet: bool) -> Result<()> {
    InputData::of_execution(&arguments.columns, &arguments.execution, quiet)
        .with_index_base(arguments.index_base)
        .run("predict", |input| predict_data(arguments, input, quiet))
}

fn predict_data(arguments: &PredictArguments, input: &mut InputData<'_>, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let store = &arguments.execution.store;
    let threads = arguments.execution.threads.requested();
    let model_file = store.locate(&arguments.model)?;
    let model = read_model(&model_file, quiet)?;
    arguments.check_start_scores(&model)?;
    let model = model.without_start_scores();
    if arguments.batch {
        return score_input(&model, arguments.index_base, quiet);
    }
    let data = arguments.data.as_deref().unwrap_or_default(); // required without --batch
    arguments.check_outputs(input, data)?;
    let parts = if arguments.parts { part_columns(&model) } else { Vec::new() };
    let output = store.locate_optional(arguments.output.as_ref())?;
    let mut table = output.map(|file| PredictionsTable::with_parts(&file, &parts)).transpose()?;
    let mut text = match arguments.scores.as_deref() {
        None => None,
        Some("-") => Some(ScoresText::to_stdout()),
        Some(file) => Some(ScoresText::create(&store.locate(file)?)?),
    };
    let stats = store.locate_optional(arguments.stats.stats.as_ref())?;
    stats.as_ref().map_or(Ok(()), check_stats)?;
    // A table is converted when the outputs are known to be right.
    let reader = DatasetReader::open(&input.dataset(data)?)?;
    tracing::info!("model: {model_file}, {}", model.size_text());
    tracing::info!("data: {data}, {}", counted(reader.manifest().rows, "row", "rows"));
    let cluster = arguments.execution.cluster(threads)?;
    let mut start_scores = StartScoreOptions::read(arguments, &reader)?;
    let mut progress = CountProgress::start("scoring", Some(reader.manifest().rows), "rows", quiet);
    let mut sink = |mut group: PredictedGroup| {
        progress.step(group.scores.len() as u64);
        start_scores.add_to(&mut group);
        text.as_mut().map_or(Ok(()), |text| text.write(&group.scores))?;
        table.as_mut().map_or(Ok(()), |table| table.write(group))
    };
    let predict_here = |threads, sink: &mut dyn FnMut(PredictedGroup) -> Result<()>| {
        predict_with(&reader, &GroupPredictor::with_parts(&model, &reader, arguments.parts)?, threads, sink)
    };
    let exits = arguments.exits();
    let mut evaluated = None;
    let report = match (&cluster, exits) {
        (None, Some(rule)) => {
            let pool = arguments.execution.threads.pool()?;
            let report = pool.install(|| predict_with_exits(&reader, &model, rule, &mut sink))?;
            evaluated = Some(report.evaluated);
            PredictReport {
                rows: report.rows,
                threads: pool.current_num_threads(),
                load_seconds: report.load.as_secs_f64(),
                predict_seconds: report.score.as_secs_f64(),
                warning: report.warning,
            }
        }
        (Some(cluster), _) => {
            let file = model_file.read_all()?.ok_or_else(|| model_file.absent())?;
            cluster.predict(&reader, &model, &file, arguments.parts, &mut sink)?
        }
        (None, None) => predict_here(threads, &mut sink)?,
    };
    progress.finish();
    table.map_or(Ok(()), |table| table.finish(&model_file, &model, &reader))?;
    text.map_or(Ok(()), ScoresText::commit)?;
    let total = started.elapsed().as_secs_f64();
    if let Some(stats) = stats {
        let mut statistics = json!({
            "load_s": report.load_seconds,
            "predict_s": report.predict_seconds,
            "total_s": total,
            "rows": report.rows,
            "trees": model.trees().count(),
            "thread_count": report.threads,
            "peak_memory_bytes": process_memory::peak_bytes(),
        });
        if let Some(evaluated) = evaluated {
            statistics["evaluated_trees"] = json!(evaluated);
        }
        if let Some(cluster) = &cluster {
            statistics["cluster"] = cluster.traffic();
        }
        write_stats(&stats, &statistics)?;
    }
    if !quiet {
        if is_training_data(&model, &reader)? {
            super::message(format_args!("note: {data}: {TRAINING_ROWS_NOTE}"));
        }
        if let Some(warning) = &report.warning {
            super::message(format_args!("warning: {}", input.as_given(warning)));
        }
        let (rows, size) = (counted(report.rows, "row", "rows"), model.size_text());
        super::message(format_args!("{rows} scored with {size} in {total:.2} s"));
        if let Some(evaluated) = evaluated {
            let all = (report.rows * model.trees().count() as u64).max(1);
            let percent = 100.0 * evaluated as f64 / all as f64;
            super::message(format_args!("early exits: {percent:.1} % of all tree evaluations were needed"));
        }
    }
    Ok(())
}

/// Reads a model, even if it was trained from start scores, or is the checkpoint of a training that has not ended.
fn read_model(location: &Location, quiet: bool) -> Result<Model> {
    let table = TableReader::open(location, TableKind::Model);
    let table = table.map_err(|error| with_import_remedy(error, location))?;
    let model = Model::from_table(&table)?;
    if table.metadata(CHECKPOINT).is_some() && !quiet {
        super::message(format_args!(
            "note: {location} is the checkpoint of a training that has not ended: {} so far",
            model.size_text()
        ));
    }
    Ok(model)
}

/// Scores the queries on standard input.
fn score_input(model: &Model, index_base: u32, quiet: bool) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut print = |scores: &[f64]| print_scores(&mut output, scores, write_score);
    let report = predict_batch::score_input(model, index_base, std::io::stdin().lock(), &mut print)?;
    if !quiet {
        super::message(format_args!("{}", report.summary()));
    }
    Ok(())
}

impl PredictArguments {
    /// Returns when documents exit; `None` if they do not.
    fn exits(&self) -> Option<EarlyExit> {
        let (every, percent) = self.exit_every.zip(self.exit_percent)?;
        Some(EarlyExit { every, percent, scope: self.exit_scope.scope(), share: self.exit_of.share() })
    }

    /// Fails if two outputs use the same file, or if an output would replace an input.
    fn check_outputs(&self, input: &InputData<'_>, data: &str) -> Result<()> {
        let store = &self.execution.store;
        let mut read = input.files(data)?;
        read.extend(store.locate_optional(self.start_scores.as_ref())?);
        let outputs =
            [("--output", &self.output), ("--scores", &self.scores), ("--stats", &self.stats.stats)];
        let mut files: Vec<&String> = Vec::new();
        for (option, file) in outputs {
            let Some(file) = file else { continue };
            if files.contains(&file) {
                return Err(Error::usage(
                    format_args!("two outputs use the same file: {file}"),
                    "use a separate file for each of the predictions, scores and stats",
                ));
            }
            if file != "-" {
                check_is_not_read(&store.locate(file)?, option, &read)?;
            }
            files.push(file);
        }
        Ok(())
    }

    /// Returns an error if the value of the model would be taken for a score, or start scores would be added twice.
    fn check_start_scores(&self, model: &Model) -> Result<()> {
        let is_given = self.start_scores.is_some() || self.without_start_scores;
        match (model.start_scores.is_some(), is_given) {
            (true, false) => Err(Error::usage(
                format_args!(
                    "{}: the model was trained from start scores, which are not part of it",
                    self.model
                ),
                "add --start-scores FILE with those of these rows, or --without-start-scores for the value of the model alone",
            )),
            (false, true) => Err(Error::usage(
                format_args!("{}: the model was not trained from start scores", self.model),
                "remove --start-scores and --without-start-scores",
            )),
            _ => Ok(()),
        }
    }
}

/// Start scores that are added to the values of a model, row by row.
struct StartScoreOptions {
    scores: Option<Vec<f64>>,
    /// Number of rows so far.
    rows: usize,
}

impl StartScoreOptions {
    fn read(arguments: &PredictArguments, reader: &DatasetReader) -> Result<Self> {
        let table = arguments.execution.store.locate_optional(arguments.start_scores.as_ref())?;
        let scores =
            table.map(|table| read_start_scores(&table, std::slice::from_ref(reader))).transpose()?;
        Ok(StartScoreOptions { scores, rows: 0 })
    }

    /// Adds the start scores of the next rows.
    fn add_to(&mut self, group: &mut PredictedGroup) {
        let Some(scores) = &self.scores else { return };
        group.scores.iter_mut().zip(&scores[self.rows..]).for_each(|(score, start)| *score += start);
        self.rows += group.scores.len();
        group.ranks = ranks(&group.query_ids, &group.scores);
    }
}

/// Checks whether a model was trained on a dataset.
pub(crate) fn is_training_data(model: &Model, reader: &DatasetReader) -> Result<bool> {
    let fingerprint = reader.fingerprint()?;
    Ok(model.trained_on().any(|training_data| training_data == fingerprint))
}

/// Text of scores, one per line.
enum ScoresText {
    File { output: Box<TextOutput>, location: Location },
    Stdout(std::io::BufWriter<std::io::Stdout>),
}

impl ScoresText {
    fn create(location: &Location) -> Result<Self> {
        let (_, compression) = SCORES_FORMATS.of(location)?;
        let output = TextOutput::create(location, compression, replaces(is_scores))?;
        Ok(ScoresText::File { output: Box::new(output), location: location.clone() })
    }

    fn to_stdout() -> Self {
        ScoresText::Stdout(std::io::BufWriter::new(std::io::stdout()))
    }

    fn write(&mut self, scores: &[f64]) -> Result<()> {
        match self {
            ScoresText::File { output, location } => {
                let written = scores.iter().try_for_each(|score| write_score(output.as_mut(), *score));
                written.map_err(|error| Error::io(location, "write", error))
            }
            ScoresText::Stdout(output) => {
                super::printed(scores.iter().try_for_each(|score| write_score(output, *score)))
            }
        }
    }

    /// Makes the file visible, or prints the rest.
    fn commit(self) -> Result<()> {
        match self {
            ScoresText::File { output, .. } => output.commit(),
            ScoresText::Stdout(mut output) => super::printed(output.flush()),
        }
    }
}

/// Checks whether a file contains only scores, in the form that [`write_score`] writes. A file of whole numbers is not
/// accepted, because it is more likely to contain the user's labels or query sizes.
fn is_scores(head: &Head) -> bool {
    let is_score = |line: &str| {
        let mut written = Vec::new();
        let score = line.parse::<f64>().ok();
        score.is_some_and(|score| write_score(&mut written, score).is_ok())
            && written.strip_suffix(b"\n") == Some(line.as_bytes())
    };
    let has_fraction = |text: std::str::Lines<'_>| text.clone().any(|line| line.contains(['.', 'e']));
    head.lines().is_some_and(|mut lines| has_fraction(lines.clone()) && lines.all(is_score))
}

/// Writes a score on a line, with the fewest digits that parse to the same number.
fn write_score(output: &mut impl Write, score: f64) -> std::io::Result<()> {
    let is_plain = score == 0.0 || (1e-5..1e16).contains(&score.abs());
    if is_plain { writeln!(output, "{score}") } else { writeln!(output, "{score:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array};
    use clap::Parser;
    use planetree_data::dataset::DatasetReader;
    use planetree_model::model::{
        Branch, Combine, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble,
    };
    use planetree_model::predict::{model_fingerprint, predictions_schema};

    #[derive(Parser)]
    struct PredictCommand {
        #[command(flatten)]
        predict: PredictArguments,
    }

    #[derive(Parser)]
    struct ConvertCommand {
        #[command(flatten)]
        convert: crate::convert::ConvertArguments,
    }

    /// Returns a model with one tree on f1 and one on f2. A value of at most 0 scores 0 in both trees. A larger value
    /// scores 1 in the first tree and 10 in the second. A missing value scores 5 and 50.
    fn model() -> Model {
        let leaf = |value| Node { depth: 1, split: None, value, cover: 1.0 };
        let tree = |feature: u32, above: f64| {
            let (missing, middle) = (Branch::Middle, Some(3));
            let split = Split { feature, threshold: 0.0, missing, left: 1, right: 2, middle, gain: 1.0 };
            let root = Node { depth: 0, split: Some(split), value: 0.0, cover: 1.0 };
            Tree { nodes: vec![root, leaf(0.0), leaf(above), leaf(5.0 * above)] }
        };
        let features = ["f1", "f2"].map(ModelFeature::new).to_vec();
        let part = |trees| {
            let (combine, base_score, base_feature) = (Combine::Sum, 0.0, None);
            Part::trees(TreeEnsemble::new(combine, base_score, base_feature, trees))
        };
        Model {
            intercept: 0.0,
            parts: vec![part(vec![tree(0, 1.0), tree(1, 10.0)])],
            groups: Vec::new(),
            rounds: 2,
            features,
            configuration: String::new(),
            data: Vec::new(),
            start_scores: None,
            origin: Origin::default(),
        }
    }

    #[test]
    fn all_outputs_are_written() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name).to_string_lossy().into_owned();
        std::fs::write(at("input"), "1 qid:a 1:1\n0 qid:a 2:3 # d2\n0 qid:b 1:-1\n").unwrap();
        let line = ["convert", &at("input"), "--output", &at("dataset")];
        crate::convert::run(&ConvertCommand::try_parse_from(line).unwrap().convert, true).unwrap();
        let reader = DatasetReader::open(&Location::Local(room.path().join("dataset"))).unwrap();
        let model_file = Location::Local(room.path().join("model"));
        model().write(&model_file).unwrap();
        let words = ["predict", "--threads", "2", "--model", &at("model"), "--data", &at("dataset")];
        let outputs = ["--output", &at("table"), "--scores", &at("text"), "--stats", &at("stats")];
        let line = PredictCommand::try_parse_from(words.iter().chain(&outputs)).unwrap();
        run(&line.predict, true).unwrap();
        assert_eq!(std::fs::read_to_string(at("text")).unwrap(), "51\n15\n50\n");
        let stats: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(at("stats")).unwrap()).unwrap();
        assert_eq!(
            (&stats["rows"], &stats["trees"], &stats["thread_count"]),
            (&json!(3), &json!(2), &json!(2))
        );
        assert!(["load_s", "predict_s", "total_s"].iter().all(|key| stats[key].as_f64() > Some(0.0)));
        let table = TableReader::open(&Location::Local(at("table").into()), TableKind::Predictions).unwrap();
        assert_eq!(table.schema(), &predictions_schema());
        let metadata = |key| table.metadata(key).unwrap().to_owned();
        assert_eq!(metadata("planetree.dataset"), reader.fingerprint().unwrap().to_string());
        assert_eq!(metadata("planetree.model_fingerprint"), model_fingerprint(&model_file).unwrap());
        let batches: Vec<_> = table.batches().collect::<Result<_>>().unwrap();
        assert_eq!(**batches[0].column(3), Float64Array::from(vec![51.0, 15.0, 50.0]));
        assert_eq!(**batches[0].column(4), Int32Array::from(vec![1, 2, 1]));
        assert!(PredictCommand::try_parse_from(words).is_err(), "no output is named");
    }

    #[test]
    fn scores_are_written_in_the_fewest_digits_that_parse_back() {
        let cases: [(f64, &str); 8] = [
            (0.1, "0.1"),
            (-2.0, "-2"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-300, "1e-300"),
            (-1.5e22, "-1.5e22"),
            (0.0, "0"),
            (-0.0, "-0"),
            (5e-324, "5e-324"),
        ];
        for (score, expected) in cases {
            let mut text = Vec::new();
            write_score(&mut text, score).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.trim_end().parse::<f64>().unwrap().to_bits(), score.to_bits());
            assert_eq!(text, format!("{expected}\n"));
        }
    }
}
