//! Parameters of learners that optimise a ranking metric.

use super::super::keys::{Key, KeyKind, NOT_NEGATIVE};
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::words::real;
use super::Section;
use planetree_base::error::Result;
use planetree_metric::Metric;

/// Parameters of learners that optimise a ranking metric, before validation.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRanking {
    /// The metric to optimise.
    pub metric: Metric,
    /// How much the metric must change.
    pub tolerance: f64,
    /// AdaRank: maximum number of rounds in a row that select the same feature.
    pub max_repeats: u32,
    /// Coordinate Ascent: number of steps of a line search in each direction.
    pub line_steps: u32,
}

impl Default for RawRanking {
    fn default() -> Self {
        RawRanking { metric: Metric::Ndcg(None), tolerance: 0.0, max_repeats: 1, line_steps: 1 }
    }
}

/// The metric that training optimises.
pub(crate) static RANKING: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "train_metric",
        kind: KeyKind::Metric {
            set: |raw, metric| raw.ranking.metric = metric,
            get: |raw| raw.ranking.metric,
        },
        default: "ndcg@10",
        help: "AdaRank and Coordinate Ascent: metric to optimise on the training data, such as ndcg@10, map or err",
        ..Key::PLAIN
    },
    Key {
        name: "tolerance",
        kind: real!(ranking.tolerance, NOT_NEGATIVE),
        default: "0.001",
        help: "AdaRank: training ends when a round would lower train_metric by at least this; Coordinate Ascent: a restart ends when a sweep over all features gains less than this",
        ..Key::PLAIN
    },
];

/// Rejects metrics that cannot be optimised.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    match raw.ranking.metric {
        Metric::Ndcg(_)
        | Metric::Err(_)
        | Metric::Map(_)
        | Metric::Mrr(_)
        | Metric::Precision(_)
        | Metric::Recall(_)
        | Metric::RPrecision
        | Metric::Success(_)
        | Metric::Auc
        | Metric::PartialAuc(..) => Ok(()),
        Metric::AucPooled | Metric::PartialAucPooled(..) => Err(settings.fault(
            "train_metric",
            &format!("{} is over the documents of all queries, not per query", raw.ranking.metric),
            "set train_metric=auc or pauc@I-J",
        )),
        Metric::Rmse | Metric::Dcg(_) | Metric::KendallTau | Metric::Inversions | Metric::Custom(_) => {
            Err(settings.fault(
                "train_metric",
                &format!("{} cannot be optimised: its values are not between 0 and 1", raw.ranking.metric),
                "choose ndcg@K, err, map, mrr, p@K, recall@K or auc",
            ))
        }
    }
}
