//! Metric conventions. Tools compute different metric values from the same scores, so the rules on which they differ
//! are explicit settings.
//!
//! ```text
//! preset ──► switches ──► convention ──► metric values, and the string stored with them
//! ```

mod presets;
mod switches;

pub use presets::ConventionPreset;
pub(crate) use presets::presets;
pub(crate) use switches::switches;

use super::discount::Discount;
use super::gain::{Gain, MOST_GAIN};
use super::{Metric, Unfit, known};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// A convention: all evaluation rules on which tools differ. The string form of a convention is a preset followed by
/// switches: `letor4,gain=linear`.
#[derive(Debug, Clone)]
pub struct Convention {
    /// Name of the preset that the switches modify.
    pub base: &'static str,
    /// How labels are converted to gains, for NDCG and DCG.
    pub gain: Gain,
    /// How gains are discounted by rank, for NDCG and DCG.
    pub discount: Discount,
    /// Depth of NDCG and DCG if the metric names none; `None` for the whole list.
    pub depth: Option<u32>,
    /// Depth of MAP, MRR, precision, recall and success if the metric names none; `None` for the whole list.
    pub binary_depth: Option<u32>,
    /// NDCG of a query without relevant documents. `Skip` also excludes such queries from DCG, ERR, MRR,
    /// precision and success.
    pub empty: Empty,
    /// Average precision of a query without relevant documents.
    pub map_empty: Empty,
    /// Recall of a query without relevant documents.
    pub recall_empty: Empty,
    /// Treatment of queries with fewer documents than the depth.
    pub short: Short,
    /// Order of documents with equal scores, for NDCG, DCG, ERR and inversions.
    pub ties: Ties,
    /// Order of documents with equal scores, for MAP, MRR, precision, recall, success and AUC.
    pub binary_ties: Ties,
    /// Which labels count as relevant, for MAP, MRR, precision, recall, success and AUC.
    pub relevant: Threshold,
    /// Denominator of average precision.
    pub map_normaliser: MapNormaliser,
    /// Whether MAP uses the whole list even if the metric names a depth.
    pub map_whole: bool,
    /// How a label determines the probability that a user stops reading at the document, for ERR.
    pub err_grade: ErrGrade,
    /// Depth of ERR if the metric names none; `None` for the whole list.
    pub err_depth: Option<u32>,
    /// Which documents determine the ideal order and the number of relevant documents.
    pub ideal: Ideal,
    /// Precision with which scores are compared.
    pub scores: Width,
    /// What the names `auc` and `pauc` stand for.
    pub auc: AreaScope,
    /// Scale of partial AUC.
    pub pauc: PartialArea,
}

/// Value of a metric for a query without relevant documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Empty {
    /// A fixed value.
    Value(f64),
    /// The query is excluded from the mean.
    Skip,
}

/// Treatment of queries with fewer documents than the depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// The depth is reduced to the number of documents.
    Truncate,
    /// The list is padded with irrelevant documents, so precision is divided by the depth.
    Pad,
    /// NDCG and DCG are 0, and precision is divided by the depth.
    Zero,
}

/// Order of documents with equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Documents stay in input order.
    Input,
    /// The greater document id comes first.
    Document,
    /// The metric is the mean over all possible orders.
    Average,
    /// The lower label comes first.
    Worst,
    /// The higher label comes first.
    Best,
    /// Every tied document counts as being at the last of the ranks that the ties share.
    Last,
}

/// Which labels count as relevant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// This label and all higher ones.
    From(f32),
    /// All labels higher than this one.
    Above(f32),
}

/// Denominator of average precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapNormaliser {
    /// The number of relevant documents.
    Relevant,
    /// The number of relevant documents, but at most the depth.
    Depth,
    /// The number of relevant documents within the depth.
    Found,
}

/// How a label determines the probability that a user stops reading at the document, for ERR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrGrade {
    /// The probability is (2^label - 1) / 2^g, where g is this highest grade.
    Highest(u32),
    /// The label itself is the probability.
    Label,
}

/// Which documents determine the ideal order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ideal {
    /// The ranked documents.
    List,
    /// All judged documents if they are given, otherwise the ranked documents.
    Judgments,
}

/// Precision with which scores are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Scores are compared exactly.
    Float64,
    /// Scores are rounded to float32 before they are compared.
    Float32,
}

/// What the names `auc` and `pauc` stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaScope {
    /// The mean over queries.
    Query,
    /// The area of all documents of all queries: `auc_pooled` and `pauc_pooled`.
    Pooled,
}

/// Scale of partial AUC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialArea {
    /// The area itself.
    Area,
    /// 0.5 for random scores, 1 for perfect ones (McClish 1989).
    Standardised,
}

impl Convention {
    /// Metadata key under which a table stores its convention.
    pub const KEY: &'static str = "planetree.convention";

    /// Returns a shared instance of the default convention.
    pub fn standard() -> Arc<Convention> {
        static STANDARD: LazyLock<Arc<Convention>> = LazyLock::new(Arc::default);
        Arc::clone(&STANDARD)
    }

    /// Returns all presets, the default first.
    pub fn presets() -> &'static [ConventionPreset] {
        presets()
    }

    /// Returns the name and value of every switch, in the order of the switch table.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        switches().iter().map(|switch| (switch.name, (switch.print)(self))).collect()
    }

    /// Whether ties are broken by document ids, which are not available in training.
    pub fn needs_documents(&self) -> bool {
        [self.ties, self.binary_ties].contains(&Ties::Document)
    }

    /// Whether a document with this label counts as relevant. NaN is a missing label and counts as label 0.
    #[inline]
    pub fn is_relevant(&self, label: f32) -> bool {
        let label = known(label);
        match self.relevant {
            Threshold::From(least) => label >= least,
            Threshold::Above(most) => label > most,
        }
    }

    /// Returns the gain of a label. NaN is a missing label and counts as label 0.
    #[inline]
    pub fn gain(&self, label: f32) -> f64 {
        self.gain.of(known(label))
    }

    /// Returns the discount at a rank, counted from 0.
    #[inline]
    pub fn discount(&self, rank: usize) -> f64 {
        self.discount.at(rank)
    }

    /// Returns the depth of a metric: `None` if the metric does not depend on ranks, `Some(None)` for the whole list.
    pub fn depth(&self, metric: &Metric) -> Option<Option<u32>> {
        match metric {
            Metric::Rmse | Metric::Custom(_) | Metric::AucPooled | Metric::PartialAucPooled(..) => None,
            Metric::Ndcg(depth) | Metric::Dcg(depth) => Some(depth.or(self.depth)),
            Metric::Err(depth) => Some(depth.or(self.err_depth)),
            Metric::Map(_) if self.map_whole => Some(None),
            Metric::Map(depth)
            | Metric::Mrr(depth)
            | Metric::Precision(depth)
            | Metric::Recall(depth)
            | Metric::Success(depth) => Some(depth.or(self.binary_depth)),
            Metric::RPrecision
            | Metric::Auc
            | Metric::PartialAuc(..)
            | Metric::KendallTau
            | Metric::Inversions => Some(None),
        }
    }

    /// Returns the metric that a name stands for: under `auc=pooled`, `auc` and `pauc` are the pooled metrics.
    pub fn meant(&self, metric: Metric) -> Metric {
        match (self.auc, metric) {
            (AreaScope::Pooled, Metric::Auc) => Metric::AucPooled,
            (AreaScope::Pooled, Metric::PartialAuc(from, to)) => Metric::PartialAucPooled(from, to),
            (_, metric) => metric,
        }
    }

    /// Finds two metrics of a list that are the same one under this convention. Returns the problem and the remedy.
    pub fn repeated(&self, metrics: &[Metric]) -> Option<(String, String)> {
        let same = |first: &Metric, second: &Metric| self.meant(*first) == self.meant(*second);
        let (first, second) = metrics.iter().enumerate().find_map(|(index, second)| {
            metrics[..index].iter().find(|first| same(first, second)).map(|first| (first, second))
        })?;
        Some(match first == second {
            true => (format!("metric {second} is given twice"), "pass each metric once".to_owned()),
            false => (
                format!(
                    "{first} and {second} are one metric under the convention {self}: the area of all documents pooled"
                ),
                "pass one of them; with auc=query in the convention, auc and pauc are means of the queries"
                    .to_owned(),
            ),
        })
    }

    /// Rejects labels without a gain: labels missing from a gain table, or for which a gain formula has no finite
    /// value. If a metric adds up gains, labels with gains larger than 1e30 are rejected too.
    pub fn check_labels(&self, metrics: &[Metric], labels: &[f32]) -> Result<(), Unfit> {
        let lacks = |label: f32| !label.is_nan() && !self.gain.has(label);
        let exceeds = |label: f32| !label.is_nan() && !self.gain.fits(label);
        let adds_gains = metrics.iter().any(Metric::adds_gains);
        let unfit = |label: &f32| if adds_gains { exceeds(*label) } else { lacks(*label) };
        let Some(row) = labels.iter().position(unfit) else { return Ok(()) };
        let (label, gain) = (labels[row], &self.gain);
        Err(match lacks(label) {
            true => Unfit {
                row: Some(row),
                problem: format!("gain={gain} defines no gain for label {label}"),
                remedy: "choose a gain that is defined for every label".to_owned(),
            },
            false => Unfit {
                row: Some(row),
                problem: format!("the gain of label {label} in gain={gain} is larger than {MOST_GAIN:e}"),
                remedy:
                    "choose smaller gains: gain=linear in the convention, and label_gain=linear in training"
                        .to_owned(),
            },
        })
    }

    /// Rejects conflicting switches.
    fn check(self, text: &str) -> Result<Self> {
        if self.map_normaliser == MapNormaliser::Found && self.binary_ties == Ties::Average {
            return Err(Error::usage(
                format_args!(
                    "convention {text:?}: map_normaliser=found cannot be combined with binary_ties=average"
                ),
                "choose another value, such as binary_ties=worst or map_normaliser=depth",
            ));
        }
        Ok(self)
    }

    fn set(&mut self, text: &str, setting: &str) -> Result<()> {
        let Some((name, value)) = setting.split_once('=') else {
            let names = presets().iter().map(|preset| preset.name);
            let nearest = suggest::nearest(setting, names.chain(switches().iter().map(|switch| switch.name)));
            return Err(Error::usage(
                format_args!("convention {text:?}: {setting:?} is not of the form switch=value"),
                suggest::did_you_mean(&nearest, "name a preset first, then switches: letor4,gain=linear"),
            ));
        };
        let (name, value) = (name.trim(), value.trim());
        let Some(switch) = switches().iter().find(|switch| switch.name.eq_ignore_ascii_case(name)) else {
            let names: Vec<&str> = switches().iter().map(|switch| switch.name).collect();
            return Err(Error::usage(
                format_args!("convention {text:?}: unknown switch {name:?}"),
                suggest::did_you_mean(
                    &suggest::nearest(name, names.iter().copied()),
                    &format!("the switches are {}", names.join(", ")),
                ),
            ));
        };
        (switch.read)(self, value).map_err(|problem| {
            let nearest = suggest::nearest(value, switch.values.split(", "));
            Error::usage(
                format_args!("convention {text:?}: {}={value}: {problem}", switch.name),
                suggest::did_you_mean(
                    &nearest,
                    &format!("valid values of {}: {}", switch.name, switch.values),
                ),
            )
        })
    }
}

impl FromStr for Convention {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut settings: Vec<&str> =
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let mut convention = match settings.first() {
            Some(name) if !name.contains('=') => {
                let preset = ConventionPreset::named(name)?;
                settings.remove(0);
                preset.convention()?
            }
            _ => Convention::default(),
        };
        for setting in settings {
            convention.set(text, setting)?;
        }
        convention.check(text)
    }
}

/// Prints the preset and every switch that differs from it. Parsing the output gives an equal convention.
impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        // The convention that parsing the output so far would give. A switch may also set switches that follow it in
        // the table, which then need not be printed.
        let mut read = ConventionPreset::named(self.base)
            .and_then(|preset| preset.convention())
            .map_err(|_| fmt::Error)?;
        for switch in switches() {
            let value = (switch.print)(self);
            if value != (switch.print)(&read) {
                write!(f, ",{}={value}", switch.name)?;
                (switch.read)(&mut read, &value).map_err(|_| fmt::Error)?;
            }
        }
        Ok(())
    }
}

/// Conventions are equal if all their rules are equal, whatever preset they are based on.
impl PartialEq for Convention {
    fn eq(&self, other: &Self) -> bool {
        switches().iter().all(|switch| (switch.print)(self) == (switch.print)(other))
    }
}

/// planetree's own convention: the rules that most learners use, and 0 for queries without relevant documents.
impl Default for Convention {
    fn default() -> Self {
        Convention {
            base: presets::DEFAULT,
            gain: Gain::Exp2,
            discount: Discount::Log2,
            depth: None,
            binary_depth: None,
            empty: Empty::Value(0.0),
            map_empty: Empty::Value(0.0),
            recall_empty: Empty::Value(0.0),
            short: Short::Truncate,
            ties: Ties::Input,
            binary_ties: Ties::Input,
            relevant: Threshold::From(1.0),
            map_normaliser: MapNormaliser::Relevant,
            map_whole: false,
            err_grade: ErrGrade::Highest(4),
            err_depth: None,
            ideal: Ideal::List,
            scores: Width::Float64,
            auc: AreaScope::Query,
            pauc: PartialArea::Area,
        }
    }
}

#[cfg(test)]
mod tests;
