//! Requests to executors and their answers. A task travels inside a plan, so it is small: an executor that lacks the
//! state which it builds on reports that, and the task is sent again together with a snapshot.

use super::evaluate::EvaluationRequest;
use super::score::ScoredGroups;
use planetree_base::error::{Error, Result};
use planetree_base::wire::{WireReader, WireWriter, malformed};
use planetree_metric::{Mean, Metric};
use planetree_train::ForestTree;
use planetree_train::bins::{BinOptions, Binning, DescribedBins, Surveyed};
use planetree_train::config::Parameters;
use planetree_train::tree::{CodedTree, NodeSplit};
use planetree_train::{GradientSummary, TreeStart};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Protocol version; driver and executors must agree on it. The last number changes with the messages and with
/// everything that must be computed alike on both sides: feature groups, gradients of objectives.
pub const BUILD: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"), " cluster 5");

/// A task for all shares of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`BUILD`] of the driver.
    pub build: String,
    /// Unique name of the command.
    pub run: String,
    /// Location of the dataset or table.
    pub data: String,
    /// Whether credentials may come from the machine's metadata service.
    pub instance_credentials: bool,
    /// Hash of its content.
    pub fingerprint: String,
    /// The operation.
    pub step: TaskStep,
}

/// The operation of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TaskStep {
    /// Identify the executor.
    Probe,
    /// Summarise the distribution of features.
    Survey {
        /// The features, by index.
        features: Range<usize>,
        /// Whether to include labels and queries.
        rows: bool,
        /// The training's parameters as TOML.
        parameters: String,
    },
    /// Add a tree to all scores and compute the gradients of the next one.
    Gradients {
        /// The round to compute gradients for.
        round: u32,
        /// Number of trees in the scores, including the last one.
        trees: usize,
        /// The last tree, if it was just grown.
        last: Option<Grown>,
    },
    /// Apply the splits of a tree and compute the histograms of some nodes.
    Level {
        /// Number of trees in the scores.
        trees: usize,
        /// State at the root of the tree.
        start: TreeStart,
        /// All its splits so far.
        splits: Vec<NodeSplit>,
        /// The nodes to compute histograms of.
        wanted: Vec<usize>,
        /// The feature groups to compute histograms of.
        groups: Vec<usize>,
        /// Number of blocks of the answer; see [`super::cells`].
        blocks: usize,
    },
    /// Grow some trees of a forest, divided among the workers.
    Trees {
        /// Tree numbers.
        trees: Range<u32>,
        /// Number of workers.
        workers: usize,
    },
    /// Score rows with the model that is sent as the snapshot.
    Score {
        /// Whether the values of the model's parts are part of the answer.
        parts: bool,
    },
    /// Evaluate the queries of predictions.
    Judge(EvaluationRequest),
    /// Release all state of the command.
    Forget,
}

/// A finished tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// State at its root.
    pub start: TreeStart,
    /// All its splits.
    pub splits: Vec<NodeSplit>,
    /// The tree.
    pub tree: CodedTree,
}

/// Everything needed to rebuild a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The training's parameters as TOML.
    pub parameters: String,
    /// Whether cells hold a weight or hessian besides gradient and count.
    pub weighted: bool,
    /// The score before the first tree.
    pub base_score: f64,
    bins: Vec<DescribedBins>,
    /// The trees so far.
    pub trees: Vec<CodedTree>,
}

impl Snapshot {
    /// The state before the first tree.
    pub fn new(parameters: &Parameters, weighted: bool, base_score: f64, binning: &Binning) -> Self {
        let bins = binning.features.iter().map(DescribedBins::of).collect();
        Snapshot { parameters: parameters.to_toml(), weighted, base_score, bins, trees: Vec::new() }
    }

    /// The binning of the features.
    pub fn binning(&self, parameters: &Parameters) -> Binning {
        BinOptions::of(parameters).binning(self.bins.iter().map(DescribedBins::bins).collect())
    }
}

/// Serialises a value to compressed JSON.
pub fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    let text = serde_json::to_vec(value).expect("numbers, strings and lists always serialise");
    zstd::encode_all(text.as_slice(), 1).expect("compressing to memory cannot fail")
}

/// Reads what [`pack`] wrote.
pub fn unpack<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    let text = zstd::decode_all(bytes).map_err(|_| malformed())?;
    serde_json::from_slice(&text).map_err(|_| malformed())
}

/// The answer of a share.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// Name, threads and build of the executor.
    Identity(ExecutorIdentity),
    /// Summaries of features and rows.
    Surveyed(Surveyed),
    /// Summaries of the gradients, and the metrics of the scores that they are based on.
    Gradients {
        /// One per partition, or one for all.
        parts: Vec<GradientSummary>,
        /// Serialised means.
        metrics: Vec<Vec<u8>>,
    },
    /// Blocks of the totals and histograms of nodes; see [`super::cells`].
    Level(Vec<Vec<u8>>),
    /// One such block summed over several shares by an executor.
    Merged {
        /// Number of shares.
        shares: u64,
        /// The block.
        cells: Vec<u8>,
    },
    /// Trees of a forest.
    Trees(Vec<ForestTree>),
    /// Predictions.
    Scored(ScoredGroups),
    /// Evaluation results of row groups; see [`super::evaluate`].
    Evaluated(Vec<Vec<u8>>),
    /// The executor is shutting down; retry elsewhere.
    Stopping,
    /// The state of the command was released.
    Released,
    /// The executor lacks the state that the task builds on.
    MissingState,
    /// A permanent failure.
    Failed {
        /// The cause.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

/// Identity of an executor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutorIdentity {
    /// Host and process id.
    pub name: String,
    /// Number of threads.
    pub threads: u64,
    /// [`BUILD`] of the executor.
    pub build: String,
}

impl Answer {
    /// Turns an error into an answer.
    pub fn failed(error: &Error) -> Self {
        Answer::Failed { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }

    /// Serialises the answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::default();
        match self {
            Answer::Identity(identity) => {
                writer.count(0);
                writer.text(&identity.name);
                writer.count(identity.threads);
                writer.text(&identity.build);
            }
            Answer::Surveyed(surveyed) => {
                writer.count(1);
                surveyed.write(&mut writer);
            }
            Answer::Gradients { parts, metrics } => {
                writer.count(2);
                writer.count(parts.len() as u64);
                for part in parts {
                    [part.most, part.heaviest, part.squares, part.weight, part.farthest]
                        .into_iter()
                        .for_each(|number| writer.float(number));
                }
                write_lists(metrics, &mut writer);
            }
            Answer::Level(blocks) => {
                writer.count(3);
                write_lists(blocks, &mut writer);
            }
            Answer::Released => writer.count(4),
            Answer::MissingState => writer.count(5),
            Answer::Failed { problem, remedy } => {
                writer.count(6);
                writer.text(problem);
                writer.text(remedy);
            }
            Answer::Trees(trees) => {
                writer.count(7);
                super::trees::write(trees, &mut writer);
            }
            Answer::Scored(scored) => {
                writer.count(8);
                writer.float(scored.load_seconds);
                writer.float(scored.predict_seconds);
                write_lists(&scored.groups, &mut writer);
            }
            Answer::Evaluated(stretches) => {
                writer.count(9);
                write_lists(stretches, &mut writer);
            }
            Answer::Stopping => writer.count(10),
            Answer::Merged { shares, cells } => {
                writer.count(11);
                writer.count(*shares);
                writer.list(cells);
            }
        }
        writer.into_bytes()
    }

    /// Reads what [`Answer::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = WireReader::new(bytes);
        let answer = match reader.count()? {
            0 => Answer::Identity(ExecutorIdentity {
                name: reader.text()?,
                threads: reader.count()?,
                build: reader.text()?,
            }),
            1 => Answer::Surveyed(Surveyed::read(&mut reader)?),
            2 => {
                let count = reader.length(40)?;
                let mut part = || {
                    Ok(GradientSummary {
                        most: reader.float()?,
                        heaviest: reader.float()?,
                        squares: reader.float()?,
                        weight: reader.float()?,
                        farthest: reader.float()?,
                    })
                };
                let parts = (0..count).map(|_| part()).collect::<Result<_>>()?;
                Answer::Gradients { parts, metrics: read_lists(&mut reader)? }
            }
            3 => Answer::Level(read_lists(&mut reader)?),
            4 => Answer::Released,
            5 => Answer::MissingState,
            6 => Answer::Failed { problem: reader.text()?, remedy: reader.text()? },
            7 => Answer::Trees(super::trees::read(&mut reader)?),
            8 => {
                let (load_seconds, predict_seconds) = (reader.float()?, reader.float()?);
                Answer::Scored(ScoredGroups {
                    load_seconds,
                    predict_seconds,
                    groups: read_lists(&mut reader)?,
                })
            }
            9 => Answer::Evaluated(read_lists(&mut reader)?),
            10 => Answer::Stopping,
            11 => Answer::Merged { shares: reader.count()?, cells: reader.list()?.to_vec() },
            _ => return Err(malformed()),
        };
        if reader.is_empty() { Ok(answer) } else { Err(malformed()) }
    }
}

fn write_lists(lists: &[Vec<u8>], writer: &mut WireWriter) {
    writer.count(lists.len() as u64);
    lists.iter().for_each(|list| writer.list(list));
}

fn read_lists(reader: &mut WireReader<'_>) -> Result<Vec<Vec<u8>>> {
    let count = reader.length(1)?;
    (0..count).map(|_| Ok(reader.list()?.to_vec())).collect()
}

/// Serialises means, in the order of their metrics.
pub fn means_to_bytes(means: &[Mean]) -> Vec<Vec<u8>> {
    means.iter().map(Mean::to_bytes).collect()
}

/// Adds serialised means to others of the same metrics.
pub fn add_means(sum: &mut [Mean], bytes: &[Vec<u8>]) -> Result<()> {
    if sum.len() != bytes.len() {
        return Err(malformed());
    }
    for (sum, bytes) in sum.iter_mut().zip(bytes) {
        sum.merge(&Mean::from_bytes(sum.metric(), bytes).ok_or_else(malformed)?);
    }
    Ok(())
}

/// Empty means, one per metric.
pub fn no_means(metrics: &[Metric]) -> Vec<Mean> {
    metrics.iter().map(|metric| Mean::new(*metric)).collect()
}
