//! Documents for tests.

use crate::config::load;
use crate::{CheckpointPlan, Every, LogEntry, Observer, Silent, TrainRequest, train};
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_data::convert::convert_text;
use planetree_data::ingest::InputFormat;
use planetree_model::model::Model;
use std::path::Path;

/// Number of features.
pub(crate) const FEATURES: usize = 5;

/// A document: query, label, weight and features, of which some are missing.
pub(crate) struct Document {
    pub query: usize,
    pub label: f64,
    pub weight: f64,
    pub features: [Option<f32>; FEATURES],
}

/// Documents whose labels depend on their features. The last feature is constant.
pub(crate) fn documents(seed: u64, queries: usize) -> Vec<Document> {
    let mut stream = Stream::new(&[seed, 77]);
    let mut all = Vec::new();
    for query in 0..queries {
        for _ in 0..1 + stream.bits() as usize % 9 {
            let mut features = [Some(3.0); FEATURES];
            for (place, feature) in features[..FEATURES - 1].iter_mut().enumerate() {
                let value = (stream.normal() * 10f64.powi(place as i32) + 5.0 * place as f64) as f32;
                *feature = (stream.uniform() < 0.9).then_some(value);
            }
            let value =
                |place: usize| f64::from(features[place].unwrap_or_default()) / 10f64.powi(place as i32);
            let label = (1.0 + value(0) - 0.7 * value(2) + stream.normal()).round().clamp(0.0, 4.0);
            all.push(Document { query, label, weight: 0.25 + (stream.bits() % 8) as f64 / 4.0, features });
        }
    }
    all
}

/// Converts documents to a dataset.
pub(crate) fn dataset(room: &Path, name: &str, documents: &[Document], partition_rows: usize) -> Location {
    let mut text = "query_id,label,weight,a,b,c,d,e\n".to_owned();
    for Document { query, label, weight, features } in documents {
        let values = features.map(|value| value.map(|value| value.to_string()).unwrap_or_default());
        text.push_str(&format!("q{query},{label},{weight},{}\n", values.join(",")));
    }
    convert_text(room, name, &text, InputFormat::Csv, partition_rows).unwrap()
}

/// Normalises the features of all documents with plain loops. A missing value is 0 before normalisation.
pub(crate) fn normalised(documents: &[Document], how: &str) -> Vec<[f64; FEATURES]> {
    let raw = |document: &Document, place: usize| f64::from(document.features[place].unwrap_or_default());
    let mut all: Vec<[f64; FEATURES]> =
        documents.iter().map(|document| std::array::from_fn(|place| raw(document, place))).collect();
    for place in 0..FEATURES {
        let scaled = |rows: &[usize], least: f64, most: f64, all: &mut Vec<[f64; FEATURES]>| {
            for row in rows {
                let value = all[*row][place];
                all[*row][place] = if most > least { (value - least) / (most - least) } else { 0.0 };
            }
        };
        let everything: Vec<usize> = (0..documents.len()).collect();
        let extremes = |rows: &[usize], all: &[[f64; FEATURES]]| {
            let values = || rows.iter().map(|row| all[*row][place]);
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
        };
        match how {
            "query" => {
                for query in 0..=documents.last().unwrap().query {
                    let rows: Vec<usize> =
                        (0..documents.len()).filter(|row| documents[*row].query == query).collect();
                    let (least, most) = extremes(&rows, &all);
                    scaled(&rows, least, most, &mut all);
                }
            }
            "minmax" => {
                let (least, most) = extremes(&everything, &all);
                scaled(&everything, least, most, &mut all);
            }
            "z" => {
                let total: f64 = documents.iter().map(|document| document.weight).sum();
                let mean_of = |of: &dyn Fn(f64) -> f64| {
                    let terms =
                        documents.iter().zip(&all).map(|(document, row)| document.weight * of(row[place]));
                    terms.sum::<f64>() / total
                };
                let mean = mean_of(&|value| value);
                let deviation = mean_of(&|value| (value - mean) * (value - mean)).sqrt();
                scaled(&everything, mean, mean + deviation, &mut all);
            }
            _ => {}
        }
    }
    all
}

/// Creates a request for training with a preset and settings.
pub(crate) fn request(data: &Location, preset: &str, set: &[&str]) -> TrainRequest {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    TrainRequest::new(data.clone(), load(Some(preset), None, &set).unwrap())
}

/// Collects the notes of a training run.
#[derive(Default)]
pub(crate) struct Notes(pub Vec<String>);

impl Observer for Notes {
    fn phase(&mut self, _name: &str) {}
    fn round(&mut self, _round: u32, _rounds: u32, _values: &[LogEntry]) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// Trains `stop` rounds with checkpoints, and all rounds in a second run that resumes. Asserts that it does.
pub(crate) fn resumed(room: &Path, data: &Location, preset: &str, set: &[&str], stop: u32) -> Model {
    let location = Location::Local(room.join(format!("{preset}-{stop}.checkpoint")));
    let checkpoint = Some(CheckpointPlan { location, every: Every::Rounds(1) });
    let limit = format!("num_trees={stop}");
    let short: Vec<&str> =
        set.iter().copied().filter(|set| !set.starts_with("num_trees")).chain([limit.as_str()]).collect();
    let first = TrainRequest { checkpoint: checkpoint.clone(), ..request(data, preset, &short) };
    train(&first, &mut Silent).unwrap();
    let (second, mut notes) =
        (TrainRequest { checkpoint, resume: true, ..request(data, preset, set) }, Notes::default());
    let model = train(&second, &mut notes).unwrap().model;
    let expected = format!("resuming from round {stop} ");
    assert!(notes.0.iter().any(|note| note.starts_with(&expected)), "{preset}: {:?}", notes.0);
    model
}
