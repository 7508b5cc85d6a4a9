//! What executors are asked and what they answer. A question travels inside a plan, so it is small: whoever has lost
//! what it builds on says so, and is asked again together with all it takes to build it anew.

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

/// Which planetree this is. Executors of another one may not agree on what a question means.
/// The last number changes with what travels and with what it is computed by: questions, answers, how features are
/// grouped, what objectives pull.
pub const BUILD: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"), " cluster 4");

/// A question to all shares of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The asker's [`BUILD`].
    pub build: String,
    /// The command that asks, told apart from all others.
    pub run: String,
    /// Where the dataset or the table is.
    pub data: String,
    /// Whether the machine's metadata service may be asked for credentials.
    pub instance_credentials: bool,
    /// What tells its content apart.
    pub fingerprint: String,
    /// What to do.
    pub step: TaskStep,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TaskStep {
    /// Say who you are.
    Probe,
    /// Say how features are distributed.
    Survey {
        /// Which features.
        features: Range<usize>,
        /// Whether labels and queries are wanted, too.
        rows: bool,
        /// The training's parameters as TOML.
        parameters: String,
    },
    /// Add a tree to all scores and work out the gradients of the next one.
    Gradients {
        /// The round whose gradients are wanted.
        round: u32,
        /// Trees that scores are made of, the last one included.
        trees: usize,
        /// The last tree, if it was just grown.
        last: Option<Grown>,
    },
    /// Follow a tree down to some nodes and add up their rows.
    Level {
        /// Trees that scores are made of.
        trees: usize,
        /// What the tree starts from.
        start: TreeStart,
        /// All its splits so far.
        splits: Vec<NodeSplit>,
        /// The nodes whose histograms are wanted.
        wanted: Vec<usize>,
        /// The groups of features whose histograms are wanted.
        groups: Vec<usize>,
        /// Blocks that the answer is cut into; see [`super::cells`].
        blocks: usize,
    },
    /// Grow some trees of a forest, as many as fall to each worker.
    Trees {
        /// By their numbers.
        trees: Range<u32>,
        /// Workers that they are dealt to.
        workers: usize,
    },
    /// Score rows with the model that is the snapshot.
    Score,
    /// Judge the queries of predictions.
    Judge(EvaluationRequest),
    /// Forget all that was asked.
    Forget,
}

/// A tree that was grown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// What it started from.
    pub start: TreeStart,
    /// All its splits.
    pub splits: Vec<NodeSplit>,
    /// The tree.
    pub tree: CodedTree,
}

/// Everything that a share can be built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The training's parameters as TOML.
    pub parameters: String,
    /// Whether rows have more than a gradient and a count.
    pub weighted: bool,
    /// The score before the first tree.
    pub base_score: f64,
    bins: Vec<DescribedBins>,
    /// The trees so far.
    pub trees: Vec<CodedTree>,
}

impl Snapshot {
    /// What a training builds on before its first tree.
    pub fn new(parameters: &Parameters, weighted: bool, base_score: f64, binning: &Binning) -> Self {
        let bins = binning.features.iter().map(DescribedBins::of).collect();
        Snapshot { parameters: parameters.to_toml(), weighted, base_score, bins, trees: Vec::new() }
    }

    /// How features are coded.
    pub fn binning(&self, parameters: &Parameters) -> Binning {
        BinOptions::of(parameters).binning(self.bins.iter().map(DescribedBins::bins).collect())
    }
}

/// As bytes, packed.
pub fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    let text = serde_json::to_vec(value).expect("numbers, strings and lists always serialise");
    zstd::encode_all(text.as_slice(), 1).expect("memory takes everything")
}

/// The value behind packed bytes.
pub fn unpack<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T> {
    let text = zstd::decode_all(bytes).map_err(|_| malformed())?;
    serde_json::from_slice(&text).map_err(|_| malformed())
}

/// What a share answers.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// Who it is: name, threads, build.
    Identity(ExecutorIdentity),
    /// What it says of its features and rows.
    Surveyed(Surveyed),
    /// The gradients by partition, and the metrics of the scores before them.
    Gradients {
        /// By partition, or one for all.
        parts: Vec<GradientSummary>,
        /// As bytes.
        metrics: Vec<Vec<u8>>,
    },
    /// Blocks of the totals and histograms of nodes; see [`super::cells`].
    Level(Vec<Vec<u8>>),
    /// One such block of several shares, added up by an executor.
    Merged {
        /// How many shares.
        shares: u64,
        /// The block.
        cells: Vec<u8>,
    },
    /// Trees of a forest.
    Trees(Vec<ForestTree>),
    /// Predictions.
    Scored(ScoredGroups),
    /// The stretches of row groups, judged; see [`super::judge`].
    Evaluated(Vec<Vec<u8>>),
    /// It is being stopped, and somebody else should answer.
    Stopping,
    /// It has forgotten all that was asked.
    Released,
    /// It does not have what the question builds on.
    MissingState,
    /// It cannot answer, and will not be able to.
    Failed {
        /// Why.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

/// Who an executor is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutorIdentity {
    /// Its machine and process.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Its [`BUILD`].
    pub build: String,
}

impl Answer {
    /// An error as an answer.
    pub fn failed(error: &Error) -> Self {
        Answer::Failed { problem: error.to_string(), remedy: error.remedy().unwrap_or_default().to_owned() }
    }

    /// As bytes.
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

    /// From bytes.
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

/// Means as bytes, in the order of their metrics.
pub fn means_to_bytes(means: &[Mean]) -> Vec<Vec<u8>> {
    means.iter().map(Mean::to_bytes).collect()
}

/// Adds means that were written to others of the same metrics.
pub fn add_means(sum: &mut [Mean], bytes: &[Vec<u8>]) -> Result<()> {
    if sum.len() != bytes.len() {
        return Err(malformed());
    }
    for (sum, bytes) in sum.iter_mut().zip(bytes) {
        sum.merge(&Mean::from_bytes(sum.metric(), bytes).ok_or_else(malformed)?);
    }
    Ok(())
}

/// Means of nothing.
pub fn no_means(metrics: &[Metric]) -> Vec<Mean> {
    metrics.iter().map(|metric| Mean::new(*metric)).collect()
}
