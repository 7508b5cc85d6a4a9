//! One fold: trained, its test part scored, and a record of it. A fold whose record is of the same data
//! and parameters, and whose files are those of the record, is not made again.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location, RunningDigest, digest_of};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::predict::{PredictionsTable, predict};
use planetree_train::config::Parameters;
use planetree_train::{
    CheckpointPlan, Every, LogEntry, NamedData, Observer, Outcome, TrainRequest, train, write_rounds,
};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Changes whenever a fold would come out differently.
const FORMAT: u32 = 1;
/// The validation part's name in the log.
pub const VALID: &str = "valid";
const CHECKPOINT_ENDS: &str = ".checkpoint";

/// A fold to be made.
pub struct Fold<'a> {
    /// Counted from 1.
    pub number: usize,
    /// The parts to train on, in their order.
    pub train: Vec<&'a DatasetReader>,
    /// The part to validate on.
    pub valid: Option<&'a DatasetReader>,
    /// The part to be tested on.
    pub test: &'a DatasetReader,
    /// The parameters; with a validation part, those that keep the best round.
    pub parameters: Parameters,
    /// Where its files go.
    pub directory: Location,
}

/// How a fold is made; none of it changes what comes out.
#[derive(Debug, Clone)]
pub struct Means {
    /// Bytes of memory that trainings stay within.
    pub memory_limit: Option<u64>,
    /// Where binned data are cached when they do not fit.
    pub cache: PathBuf,
}

/// A metric's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// The metric's name.
    pub metric: String,
    /// Its value.
    pub value: f64,
}

/// What is kept of a fold beside its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldRecord {
    /// What it was made from.
    key: Digest,
    /// The best round on the validation part.
    pub best_round: Option<u32>,
    /// The trees of the model.
    pub trees: u32,
    /// Every metric of the validation part at the best round.
    pub valid: Vec<MetricValue>,
    /// Seconds of training and scoring.
    pub seconds: f64,
    model: Digest,
    rounds: Digest,
    predictions: Digest,
}

/// A record as it is in its file: with its checksum.
#[derive(Serialize, Deserialize)]
struct RecordFile {
    planetree_fold: FoldRecord,
    xxh3: Digest,
}

impl Fold<'_> {
    /// The model.
    pub fn model(&self) -> Location {
        self.directory.join("model.parquet")
    }

    /// The training log.
    pub fn rounds(&self) -> Location {
        self.directory.join("rounds.parquet")
    }

    /// The scores of the test part.
    pub fn predictions(&self) -> Location {
        self.directory.join("predictions.parquet")
    }

    fn record(&self) -> Location {
        self.directory.join("fold.json")
    }

    /// What the fold is made from.
    fn key(&self) -> Result<Digest> {
        let mut text = format!("{FORMAT} {}\n{}", env!("CARGO_PKG_VERSION"), self.parameters.to_toml());
        let train = self.train.iter().map(|part| ("train", *part));
        let others = self.valid.map(|part| (VALID, part)).into_iter().chain([("test", self.test)]);
        for (name, part) in train.chain(others) {
            let (files, data) = (part.manifest().files_digest(), part.fingerprint()?);
            text.push_str(&format!("{name} {files} {data}\n"));
        }
        Ok(digest_of(text.as_bytes()))
    }

    /// The record of the fold, if it is complete and of this data and these parameters.
    pub fn find(&self) -> Result<Option<FoldRecord>> {
        let Some(bytes) = self.record().read_all()? else { return Ok(None) };
        let Ok(file) = serde_json::from_slice::<RecordFile>(&bytes) else { return Ok(None) };
        let record = file.planetree_fold;
        if file.xxh3 != checksum(&record) || record.key != self.key()? {
            return Ok(None);
        }
        let files = [
            (self.model(), record.model),
            (self.rounds(), record.rounds),
            (self.predictions(), record.predictions),
        ];
        for (location, expected) in files {
            if location.size()?.is_none() || digest_of_file(&location)? != expected {
                return Ok(None);
            }
        }
        Ok(Some(record))
    }

    /// Makes the fold. What an earlier run left of its training is gone on from.
    pub fn make(&self, means: &Means, observer: &mut dyn Observer) -> Result<FoldRecord> {
        let begun = Instant::now();
        let key = self.key()?;
        let name = format!("model-{}{CHECKPOINT_ENDS}", &key.to_string()[..16]);
        self.remove_checkpoints(&name);
        TableWriter::check(&self.directory.join(&name), TableKind::Model)?; // half of one that was killed goes
        let request = TrainRequest {
            data: self.train.iter().map(|part| part.location().clone()).collect(),
            validation: self
                .valid
                .map(|part| NamedData { name: VALID.to_owned(), location: part.location().clone() })
                .into_iter()
                .collect(),
            parameters: self.parameters.clone(),
            start: None,
            out_of_bag: false,
            strength: false,
            stream_to: None,
            memory_limit: means.memory_limit,
            cache: means.cache.clone(),
            checkpoint: Some(CheckpointPlan {
                location: self.directory.join(&name),
                every: Every::Time(Duration::from_secs(60)),
            }),
            resume: self.directory.join(&name).size()?.is_some(),
            objective: None,
            backend: None,
        };
        let outcome = train(&request, observer)?;
        let meter = observer.begin("scoring", self.test.manifest().rows, "rows");
        outcome.model.write(&self.model())?;
        write_rounds(&outcome.log, &self.parameters.convention, &self.rounds())?;
        let mut table = PredictionsTable::create(&self.predictions())?;
        let report = predict(self.test, &outcome.model, rayon::current_num_threads(), &mut |group| {
            meter.advance(group.scores.len() as u64);
            table.write(group)
        })?;
        if let Some(warning) = report.warning {
            observer.note(&format!("{}: {warning}", self.test.location()));
        }
        table.finish(&self.model(), &outcome.model, self.test)?;
        let record = FoldRecord {
            key,
            best_round: outcome.best.map(|best| best.round),
            trees: outcome.model.trees.len() as u32,
            valid: at_best_round(&outcome),
            seconds: begun.elapsed().as_secs_f64(),
            model: digest_of_file(&self.model())?,
            rounds: digest_of_file(&self.rounds())?,
            predictions: digest_of_file(&self.predictions())?,
        };
        self.write_record(&record)?; // last: it says that the rest is there
        self.directory.join(&name).remove()?;
        Ok(record)
    }

    fn write_record(&self, record: &FoldRecord) -> Result<()> {
        let location = self.record();
        let file = RecordFile { xxh3: checksum(record), planetree_fold: record.clone() };
        let text = serde_json::to_string_pretty(&file).expect("numbers and strings always serialise");
        let mut output = FileOutput::create(&location)?;
        writeln!(output, "{text}").map_err(|error| Error::io(&location, "write", &error))?;
        output.commit()
    }

    /// Removes checkpoints of trainings with other data or parameters.
    fn remove_checkpoints(&self, but: &str) {
        for name in self.directory.list().unwrap_or_default() {
            if name.starts_with("model-") && name.ends_with(CHECKPOINT_ENDS) && name != but {
                let _ = self.directory.join(&name).remove(); // nobody reads it any more
            }
        }
    }
}

/// Every metric of the validation part at the best round.
fn at_best_round(outcome: &Outcome) -> Vec<MetricValue> {
    let Some(best) = outcome.best else { return Vec::new() };
    let entries = outcome.log.iter().filter(|entry| entry.split == VALID && entry.round == best.round);
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
        let count = file.read(&mut buffer).map_err(|error| Error::io(location, "read", &error))?;
        if count == 0 {
            return Ok(digest.digest());
        }
        digest.update(&buffer[..count]);
    }
}
