//! Metric conventions: tools compute different values from the same scores, so the rules are data.
//!
//! ```text
//! preset ──► switches ──► convention ──► every value, and the text stored with it
//! ```

mod presets;
mod switches;

pub use presets::{ConventionPreset, presets};
pub use switches::{Switch, switches};

use super::discount::Discount;
use super::gain::{Gain, MOST_GAIN};
use super::{Metric, Unfit, known};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// All rules of evaluation. Its text form is a preset and then switches: `letor4,gain=linear`.
#[derive(Debug, Clone)]
pub struct Convention {
    /// The preset it is based on.
    pub base: &'static str,
    /// Gain of a label, for NDCG and DCG.
    pub gain: Gain,
    /// Rank discount.
    pub discount: Discount,
    /// Default depth of NDCG and DCG.
    pub depth: Option<u32>,
    /// Default depth of MAP, MRR, precision and recall.
    pub binary_depth: Option<u32>,
    /// NDCG of an empty query.
    pub empty: Empty,
    /// MAP of an empty query.
    pub map_empty: Empty,
    /// Recall of an empty query.
    pub recall_empty: Empty,
    /// Treatment of queries with fewer documents than the depth.
    pub short: Short,
    /// Order of ties, for NDCG, DCG, ERR and inversions.
    pub ties: Ties,
    /// Order of ties, for MAP, MRR, precision, recall and AUC.
    pub binary_ties: Ties,
    /// Relevance threshold, for MAP, MRR, precision, recall and AUC.
    pub relevant: Threshold,
    /// Denominator of average precision.
    pub map_normaliser: MapNormaliser,
    /// Whether MAP uses the whole list, whatever its depth.
    pub map_whole: bool,
    /// Stopping probability of a label, for ERR.
    pub err_grade: ErrGrade,
    /// Default depth of ERR.
    pub err_depth: Option<u32>,
    /// Source of the ideal order and of the number of relevant documents.
    pub ideal: Ideal,
    /// Precision of score comparison.
    pub scores: Width,
}

/// Value of an empty query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Empty {
    /// A fixed value.
    Value(f64),
    /// Excluded from the mean.
    Skip,
}

/// Treatment of queries with fewer documents than the depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// The depth is reduced to the number of documents.
    Truncate,
    /// The list is padded with irrelevant documents: precision is divided by the depth.
    Pad,
    /// NDCG and DCG are 0, precision is divided by the depth.
    Zero,
}

/// Order of documents with equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Input order.
    Input,
    /// Greater document id first.
    Document,
    /// The metric is the mean over all orders.
    Average,
    /// Lower label first.
    Worst,
    /// Higher label first.
    Best,
    /// All at the last of their ranks.
    Last,
}

/// Relevance threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// This label and higher ones.
    From(f32),
    /// Higher labels only.
    Above(f32),
}

/// Denominator of average precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapNormaliser {
    /// The number of relevant documents.
    Relevant,
    /// The number of relevant documents, at most the depth.
    Depth,
    /// The number of relevant documents within the depth.
    Found,
}

/// Stopping probability of a label, for ERR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrGrade {
    /// (2^label - 1) / 2^this.
    Highest(u32),
    /// The label is the probability.
    Label,
}

/// Source of the ideal order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ideal {
    /// The ranked documents.
    List,
    /// All judged documents, if given.
    Judgments,
}

/// Precision of score comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Exact.
    Float64,
    /// Rounded to float32.
    Float32,
}

impl Convention {
    /// The metadata key of tables under which their convention is stored.
    pub const KEY: &'static str = "planetree.convention";

    /// The default, shared.
    pub fn standard() -> Arc<Convention> {
        static STANDARD: LazyLock<Arc<Convention>> = LazyLock::new(Arc::default);
        Arc::clone(&STANDARD)
    }

    /// All presets, the default first.
    pub fn presets() -> &'static [ConventionPreset] {
        presets()
    }

    /// Every switch and its value, in the order of the table.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        switches().iter().map(|switch| (switch.name, (switch.print)(self))).collect()
    }

    /// Whether ties are settled by document ids, which training does not know.
    pub fn needs_documents(&self) -> bool {
        [self.ties, self.binary_ties].contains(&Ties::Document)
    }

    /// Whether a document of this label counts as relevant.
    #[inline]
    pub fn is_relevant(&self, label: f32) -> bool {
        let label = known(label);
        match self.relevant {
            Threshold::From(least) => label >= least,
            Threshold::Above(most) => label > most,
        }
    }

    /// Gain of a label.
    #[inline]
    pub fn gain(&self, label: f32) -> f64 {
        self.gain.of(known(label))
    }

    /// Discount at a rank, from 0.
    #[inline]
    pub fn discount(&self, rank: usize) -> f64 {
        self.discount.at(rank)
    }

    /// Depth of a metric: `None` if it does not depend on ranks, `Some(None)` for the whole list.
    pub fn depth(&self, metric: &Metric) -> Option<Option<u32>> {
        match metric {
            Metric::Rmse | Metric::Custom(_) => None,
            Metric::Ndcg(depth) | Metric::Dcg(depth) => Some(depth.or(self.depth)),
            Metric::Err(depth) => Some(depth.or(self.err_depth)),
            Metric::Map(_) if self.map_whole => Some(None),
            Metric::Map(depth) | Metric::Mrr(depth) | Metric::Precision(depth) | Metric::Recall(depth) => {
                Some(depth.or(self.binary_depth))
            }
            Metric::Auc | Metric::PartialAuc(..) | Metric::KendallTau | Metric::Inversions => Some(None),
        }
    }

    /// Refuses labels that have no gain: those beyond a table, or without a value in a formula; and, if one of the
    /// metrics adds gains up, labels whose gains are too large to be told apart.
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
                problem: format!("the label {label} has no gain in gain={gain}"),
                remedy: "choose a gain that has a value for every label".to_owned(),
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
                format_args!("convention {text:?}: map_normaliser=found conflicts with averaged ties"),
                "choose other binary_ties, such as worst, or map_normaliser=depth",
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
                    &format!("there are {}", names.join(", ")),
                ),
            ));
        };
        (switch.read)(self, value).map_err(|problem| {
            let nearest = suggest::nearest(value, switch.values.split(", "));
            Error::usage(
                format_args!("convention {text:?}: {}={value}: {problem}", switch.name),
                suggest::did_you_mean(&nearest, &format!("{} may be {}", switch.name, switch.values)),
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

/// The preset and every switch that differs from it; reads back as the same convention.
impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        // As it will be read: a switch may set others, which follow it in the table.
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

/// Equal rules, whatever preset they began with.
impl PartialEq for Convention {
    fn eq(&self, other: &Self) -> bool {
        switches().iter().all(|switch| (switch.print)(self) == (switch.print)(other))
    }
}

/// The convention of planetree: what most learners do, with nothing for a query without anything to find.
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
        }
    }
}

#[cfg(test)]
mod tests;
