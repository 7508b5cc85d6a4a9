//! Computes the value of a metric for one ranked query.

use super::convention::{Convention, Empty, Ideal, Short};
use super::ndcg::BestGains;
use super::query::QueryRows;
use super::ranked::Views;
use super::{
    Metric, auc, dcg, err, inversions, kendall, map, mrr, precision, r_precision, recall, rmse, success,
};

/// Statistics of a query that depend only on labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Number of relevant documents.
    pub relevant: usize,
    /// Whether any document has a gain above 0. Valid only for metrics that need the highest gains.
    pub worthy: bool,
    /// Ideal DCG; 0 for metrics other than NDCG.
    pub ideal: f64,
}

impl Convention {
    /// Returns the labels that determine the ideal order and the number of relevant documents.
    pub fn judged<'a>(&self, rows: &QueryRows<'a>) -> &'a [f32] {
        match (self.ideal, rows.judged) {
            (Ideal::Judgments, Some(judged)) => judged,
            _ => rows.labels,
        }
    }

    /// Returns the number of labels that count as relevant.
    pub fn count_relevant(&self, labels: &[f32]) -> usize {
        labels.iter().filter(|label| self.is_relevant(**label)).count()
    }
}

impl Metric {
    /// Whether the metric needs the highest gains of the query: NDCG for the ideal order, DCG and ERR to recognise
    /// empty queries.
    pub(super) fn needs_best(&self, convention: &Convention) -> bool {
        match self {
            Metric::Ndcg(_) => true,
            Metric::Dcg(_) | Metric::Err(_) => convention.empty == Empty::Skip,
            _ => false,
        }
    }

    /// Whether the metric needs the number of relevant documents.
    pub(super) fn needs_relevant(&self, convention: &Convention) -> bool {
        match self {
            Metric::Map(_) | Metric::Recall(_) | Metric::RPrecision => true,
            Metric::Mrr(_) | Metric::Precision(_) | Metric::Success(_) => convention.empty == Empty::Skip,
            _ => false,
        }
    }

    /// Computes the label statistics of a query. `best` holds the highest gains, at least down to the depth of this
    /// metric.
    pub(super) fn facts(&self, convention: &Convention, relevant: usize, best: &BestGains) -> Facts {
        let ideal = match self {
            Metric::Ndcg(_) => best.ideal(convention, self.places(convention)),
            _ => 0.0,
        };
        Facts { relevant, worthy: best.most() > 0.0, ideal }
    }

    /// Computes the value for a query; `None` if the query is excluded from the mean.
    pub(super) fn value(&self, views: &Views<'_>, facts: &Facts, convention: &Convention) -> Option<f64> {
        let depth = self.places(convention);
        let Views { graded, binary, by_score: (labels, ends), rows } = views;
        let is_short = depth != usize::MAX && depth > graded.documents;
        let skipped = |empty: bool| empty && convention.empty == Empty::Skip;
        match self {
            Metric::Rmse => rmse::rmse(rows.labels, rows.scores),
            Metric::Ndcg(_) if facts.ideal <= 0.0 => convention.empty.value(),
            Metric::Dcg(_) | Metric::Err(_) if skipped(!facts.worthy) => None,
            Metric::Ndcg(_) | Metric::Dcg(_) if is_short && convention.short == Short::Zero => Some(0.0),
            Metric::Ndcg(_) => Some(dcg::dcg(graded, convention, depth) / facts.ideal),
            Metric::Dcg(_) => Some(dcg::dcg(graded, convention, depth)),
            Metric::Err(_) => Some(err::err(graded, convention, depth)),
            Metric::Map(_) if facts.relevant == 0 => convention.map_empty.value(),
            Metric::Map(_) => Some(map::average_precision(binary, convention, depth, facts.relevant)),
            Metric::Recall(_) | Metric::RPrecision if facts.relevant == 0 => convention.recall_empty.value(),
            Metric::Recall(_) => Some(recall::recall(binary, convention, depth, facts.relevant)),
            Metric::RPrecision => Some(r_precision::r_precision(binary, convention, facts.relevant)),
            Metric::Mrr(_) | Metric::Precision(_) | Metric::Success(_) if skipped(facts.relevant == 0) => {
                None
            }
            Metric::Mrr(_) => Some(mrr::reciprocal_rank(binary, convention, depth)),
            Metric::Precision(_) => Some(precision::precision(binary, convention, depth)),
            Metric::Success(_) => Some(success::success(binary, convention, depth)),
            Metric::AucPooled | Metric::PartialAucPooled(..) => None,
            Metric::Auc => auc::area(labels, ends, convention, (0, 100)),
            Metric::PartialAuc(from, to) => auc::area(labels, ends, convention, (*from, *to)),
            Metric::KendallTau => kendall::tau(labels, ends),
            Metric::Inversions => Some(inversions::inversions(labels, ends, convention)),
            Metric::Custom(custom) => custom.value(rows),
        }
    }

    /// Returns the number of ranks that the metric uses; `usize::MAX` for the whole list.
    fn places(&self, convention: &Convention) -> usize {
        convention.depth(self).flatten().map_or(usize::MAX, |depth| depth as usize)
    }
}

impl Empty {
    /// Returns the value of a query without relevant documents; `None` if it is excluded from the mean.
    pub fn value(self) -> Option<f64> {
        match self {
            Empty::Value(value) => Some(value),
            Empty::Skip => None,
        }
    }
}
