//! Runs one fold of a cross-validation: trains a model, scores the test part of the data and writes a record. A
//! finished fold is not run again if its record still matches the data, the parameters and the output files.

use super::memory::scoring_threads;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location, RunningDigest, digest_of};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::Metric;
use planetree_model::model::Model;
use planetree_model::predict::{PredictionsTable, predict};
use planetree_train::config::TrainingPlan;
use planetree_train::{
    CheckpointPlan, Every, LogEntry, NamedData, Observer, Outcome, TrainRequest, train, write_rounds,
};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Version of the results. It must be incremented whenever a change of the code changes the results of folds.
const FORMAT: u32 = 1;
/// Name of the validation part in the log.
pub(crate) const VALID: &str = "valid";
const CHECKPOINT_SUFFIX: &str = ".checkpoint";

/// A fold to run.
pub(super) struct Fold<'a> {
    /// Number of the fold, counted from 1.
    pub number: usize,
    /// Parts of the data to train on, in order.
    pub train: Vec<&'a DatasetReader>,
    /// Part of the data to validate on, if any.
    pub valid: Option<&'a DatasetReader>,
    /// Part of the data to test on.
    pub test: &'a DatasetReader,
    /// Training parameters. If there is a validation part, the model is truncated after the best round on that part.
    pub plan: TrainingPlan,
    /// Metrics whose best rounds are predicted with as well, each by itself.
    pub best_for: Vec<Metric>,
    /// Whether to keep the model.
    pub keep_model: bool,
    /// Directory for the outputs.
    pub directory: Location,
}

/// Resources for training. They do not affect the results.
#[derive(Debug, Clone)]
pub struct FoldResources {
    /// Memory limit in bytes.
    pub memory_limit: Option<u64>,
    /// Directory for binned data that does not fit into memory.
    pub cache: PathBuf,
}

/// A metric and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// Name of the metric.
    pub metric: String,
    /// Value of the metric.
    pub value: f64,
}

/// The record of a finished fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldRecord {
    /// Hash of the data and the parameters.
    key: Digest,
    /// Best round on the validation part; `None` without a validation part.
    pub best_round: Option<u32>,
    /// Number of trees in the model.
    pub trees: u32,
    /// Metrics on the validation part at the best round.
    pub valid: Vec<MetricValue>,
    /// Duration of training and scoring, in seconds.
    pub seconds: f64,
    /// Best rounds of single metrics, if each metric chooses its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_for: Vec<MetricRound>,
    /// Hash of the model file; `None` if models are not kept.
    model: Option<Digest>,
    /// Hash of the table of rounds.
    rounds: Digest,
    /// Hash of the predictions.
    predictions: Digest,
}

/// The best round of a metric on the validation part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricRound {
    /// Name of the metric.
    pub metric: String,
    /// The round.
    pub round: u32,
    /// Number of trees in the model at that round.
    pub trees: u32,
    predictions: Digest,
}

/// The contents of `fold.json`: the record of the fold, and the checksum of the record.
#[derive(Serialize, Deserialize)]
struct RecordFile {
    planetree_fold: FoldRecord,
    xxh3: Digest,
}

impl Fold<'_> {
    /// Returns the location of the model.
    pub(super) fn model(&self) -> Location {
        self.directory.join("model.parquet")
    }

    /// Returns the location of the training log.
    pub(super) fn rounds(&self) -> Location {
        self.directory.join("rounds.parquet")
    }

    /// Returns the location of the predictions for the test part.
    pub(super) fn predictions(&self) -> Location {
        self.directory.join("predictions.parquet")
    }

    /// Returns the location of the predictions for the test part at the best round of a metric.
    pub(super) fn predictions_for(&self, metric: &Metric) -> Location {
        self.directory.join(&format!("predictions-{metric}.parquet"))
    }

    fn record(&self) -> Location {
        self.directory.join("fold.json")
    }

    /// Returns a hash of everything that determines the results.
    fn key(&self) -> Result<Digest> {
        let mut text = format!("{FORMAT} {}\n{}", env!("CARGO_PKG_VERSION"), self.plan.to_toml());
        for metric in &self.best_for {
            text.push_str(&format!("best for {metric}\n"));
        }
        let train = self.train.iter().map(|part| ("train", *part));
        let others = self.valid.map(|part| (VALID, part)).into_iter().chain([("test", self.test)]);
        for (name, part) in train.chain(others) {
            let (files, data) = (part.manifest().files_digest(), part.fingerprint()?);
            text.push_str(&format!("{name} {files} {data}\n"));
        }
        Ok(digest_of(text.as_bytes()))
    }

    /// Returns the record of the fold if it is complete and matches the data, the parameters and the output files.
    pub(super) fn finished(&self) -> Result<Option<FoldRecord>> {
        let Some(bytes) = self.record().read_all()? else { return Ok(None) };
        let Ok(file) = serde_json::from_slice::<RecordFile>(&bytes) else { return Ok(None) };
        let record = file.planetree_fold;
        if file.xxh3 != checksum(&record) || record.key != self.key()? {
            return Ok(None);
        }
        if self.keep_model && record.model.is_none() {
            return Ok(None);
        }
        let mut files = vec![(self.rounds(), record.rounds), (self.predictions(), record.predictions)];
        files.extend(record.model.filter(|_| self.keep_model).map(|model| (self.model(), model)));
        for (metric, best) in self.best_for.iter().zip(&record.best_for) {
            files.push((self.predictions_for(metric), best.predictions));
        }
        for (location, expected) in files {
            if location.size()?.is_none() || digest_of_file(&location)? != expected {
                return Ok(None);
            }
        }
        Ok(Some(record))
    }

    /// Runs the fold. If an interrupted run left a checkpoint, training resumes from it.
    pub(super) fn run(&self, resources: &FoldResources, observer: &mut dyn Observer) -> Result<FoldRecord> {
        let started = Instant::now();
        let key = self.key()?;
        let name = format!("model-{}{CHECKPOINT_SUFFIX}", &key.to_string()[..16]);
        self.remove_other_checkpoints(&name);
        // Apart from checking the file, this removes a partial file that a killed run may have left.
        TableWriter::check(&self.directory.join(&name), TableKind::Model)?;
        let request = TrainRequest {
            data: self.train.iter().map(|part| part.location().clone()).collect(),
            validation: self
                .valid
                .map(|part| NamedData { name: VALID.to_owned(), location: part.location().clone() })
                .into_iter()
                .collect(),
            plan: self.plan.clone(),
            start: None,
            start_scores: None,
            out_of_bag: false,
            strength: false,
            stream_to: None,
            memory_limit: resources.memory_limit,
            compact: false,
            cache: resources.cache.clone(),
            checkpoint: Some(CheckpointPlan {
                location: self.directory.join(&name),
                every: Every::Time(Duration::from_secs(60)),
            }),
            resume: self.directory.join(&name).size()?.is_some(),
            objective: None,
            best_for: self.best_for.clone(),
            costs: None,
            common_features: false,
            backend: None,
        };
        let outcome = train(&request, observer)?;
        let meter = observer.begin("scoring", self.test.manifest().rows, "rows");
        outcome.model.write(&self.model())?;
        write_rounds(&outcome.log, self.plan.convention(), &self.rounds())?;
        let limit = resources.memory_limit;
        let advance = &mut |rows| meter.advance(rows);
        self.predict(&outcome.model, &self.predictions(), limit, advance, observer)?;
        let mut best_for = Vec::new();
        for best in &outcome.best_models {
            let location = self.predictions_for(&best.metric);
            self.predict(&best.model, &location, limit, &mut |_| {}, observer)?;
            best_for.push(MetricRound {
                metric: best.metric.to_string(),
                round: best.best.round,
                trees: best.model.trees().count() as u32,
                predictions: digest_of_file(&location)?,
            });
        }
        let model = if self.keep_model {
            Some(digest_of_file(&self.model())?)
        } else {
            self.model().remove()?;
            None
        };
        let record = FoldRecord {
            key,
            best_round: outcome.best.map(|best| best.round),
            trees: outcome.model.trees().count() as u32,
            valid: at_best_round(&outcome),
            seconds: started.elapsed().as_secs_f64(),
            best_for,
            model,
            rounds: digest_of_file(&self.rounds())?,
            predictions: digest_of_file(&self.predictions())?,
        };
        self.write_record(&record)?; // written last, because it marks the fold as complete
        self.directory.join(&name).remove()?;
        Ok(record)
    }

    /// Scores the test part and writes the predictions.
    fn predict(
        &self,
        model: &Model,
        output: &Location,
        memory_limit: Option<u64>,
        advance: &mut dyn FnMut(u64),
        observer: &mut dyn Observer,
    ) -> Result<()> {
        /// Bytes of a node of a tree in the model, and in the form in which it is evaluated.
        const NODE_BYTES: u64 = 128;
        let mut table = PredictionsTable::create(output)?;
        let nodes: u64 = model.trees().map(|tree| tree.nodes.len() as u64).sum();
        let threads = scoring_threads(self.test, nodes * NODE_BYTES, memory_limit);
        let report = predict(self.test, model, threads, &mut |group| {
            advance(group.scores.len() as u64);
            table.write(group)
        })?;
        if let Some(warning) = report.warning {
            observer.note(&format!("{}: {warning}", self.test.location()));
        }
        table.finish(&self.model(), model, self.test)
    }

    fn write_record(&self, record: &FoldRecord) -> Result<()> {
        let location = self.record();
        let file = RecordFile { xxh3: checksum(record), planetree_fold: record.clone() };
        let text = serde_json::to_string_pretty(&file).expect("numbers and strings always serialise");
        let mut output = FileOutput::create(&location)?;
        writeln!(output, "{text}").map_err(|error| Error::io(&location, "write", error))?;
        output.commit()
    }

    /// Removes checkpoints of training runs with other data or parameters.
    fn remove_other_checkpoints(&self, keep: &str) {
        for name in self.directory.list().unwrap_or_default() {
            if name.starts_with("model-") && name.ends_with(CHECKPOINT_SUFFIX) && name != keep {
                let _ = self.directory.join(&name).remove(); // the file is no longer used, so a failure does not matter
            }
        }
    }
}

/// Returns the metrics on the validation part at the best round.
fn at_best_round(outcome: &Outcome) -> Vec<MetricValue> {
    let Some(best) = outcome.best else { return Vec::new() };
    // The best round is that of the last stage.
    let stage = outcome.log.last().map_or(1, |entry| entry.stage);
    let is_best =
        |entry: &&LogEntry| entry.split == VALID && (entry.stage, entry.round) == (stage, best.round);
    let entries = outcome.log.iter().filter(is_best);
    let value = |entry: &LogEntry| MetricValue { metric: entry.metric.clone(), value: entry.value };
    entries.map(value).collect()
}

fn checksum(record: &FoldRecord) -> Digest {
    let text = serde_json::to_string(record).expect("numbers and strings always serialise");
    digest_of(text.as_bytes())
}

fn digest_of_file(location: &Location) -> Result<Digest> {
    let mut file = location.open()?;
    let mut digest = RunningDigest::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer).map_err(|error| Error::io(location, "read", error))?;
        if count == 0 {
            return Ok(digest.digest());
        }
        digest.update(&buffer[..count]);
    }
}
