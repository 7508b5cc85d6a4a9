//! Brings the documents of a query into ranked order, with ties broken as the convention says. One sort serves all
//! metrics.

use super::convention::{Convention, Ties, Width};
use super::query::{QueryRows, Unfit};
use super::ranking::Scratch;
use super::{Metric, known};
use std::ops::Range;

/// Labels in ranked order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked<'a> {
    /// Labels from the top, at least down to the depth of the metric.
    pub labels: &'a [f32],
    /// Ties that the order of `labels` leaves open, and how a metric treats them.
    pub ties: Spans<'a>,
    /// Number of documents of the query.
    pub documents: usize,
}

/// Spans of ranks that tied documents share, given by their end indices. If there are spans, [`Ranked::labels`] has
/// all labels of the query.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spans<'a> {
    /// All ties are resolved by the order of the labels.
    Settled,
    /// The metric is the mean over all orders within the spans.
    Averaged(&'a [u32]),
    /// Every document counts as being at the last rank of its span.
    Last(&'a [u32]),
}

/// Returns the ranges with these end indices. Each range starts where the one before it ends.
pub(crate) fn spans(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| start as usize..*end as usize)
}

/// A query in the forms that the different families of metrics need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Views<'a> {
    /// For NDCG, DCG and ERR.
    pub graded: Ranked<'a>,
    /// For MAP, MRR, precision and recall.
    pub binary: Ranked<'a>,
    /// For pairwise metrics: all labels in descending order of scores, and the end indices of the runs of equal
    /// scores.
    pub by_score: (&'a [f32], &'a [u32]),
    /// For metrics that do not depend on ranks: the rows in input order.
    pub rows: QueryRows<'a>,
}

/// What several metrics together need from the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankNeeds {
    /// Greatest depth of the metrics: `None` if no metric depends on ranks, `Some(None)` for the whole list.
    depth: Option<Option<u32>>,
    graded: bool,
    binary: bool,
    pairs: bool,
}

impl RankNeeds {
    /// Combines the needs of these metrics.
    pub(crate) fn of<'m>(metrics: impl IntoIterator<Item = &'m Metric>, convention: &Convention) -> Self {
        let mut look = RankNeeds { depth: None, graded: false, binary: false, pairs: false };
        for metric in metrics {
            look.depth = match (look.depth, convention.depth(metric)) {
                (Some(one), Some(other)) => Some(one.zip(other).map(|(one, other)| one.max(other))),
                (one, other) => one.or(other),
            };
            match metric {
                Metric::Rmse | Metric::Custom(_) | Metric::AucPooled | Metric::PartialAucPooled(..) => {}
                Metric::Ndcg(_) | Metric::Dcg(_) | Metric::Err(_) => look.graded = true,
                Metric::Map(_)
                | Metric::Mrr(_)
                | Metric::Precision(_)
                | Metric::Recall(_)
                | Metric::RPrecision
                | Metric::Success(_) => look.binary = true,
                Metric::Auc | Metric::PartialAuc(..) | Metric::KendallTau | Metric::Inversions => {
                    look.pairs = true;
                }
            }
        }
        look
    }
}

/// Ranks one query after another, reusing its buffers.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    scratch: Scratch,
    rounded: Vec<f64>,
    graded: Vec<f32>,
    binary: Vec<f32>,
    by_score: Vec<f32>,
}

impl Sorter {
    /// Ranks a query and returns the forms that the metrics need.
    pub(crate) fn views<'a>(
        &'a mut self,
        rows: &QueryRows<'a>,
        look: &RankNeeds,
        convention: &Convention,
    ) -> Result<Views<'a>, Unfit> {
        let Sorter { scratch, rounded, graded, binary, by_score } = self;
        let Some(depth) = look.depth else { return Ok(unranked(rows)) };
        let scores = match convention.scores {
            Width::Float64 => rows.scores,
            Width::Float32 => {
                rounded.clear();
                rounded.extend(rows.scores.iter().map(|score| f64::from(*score as f32)));
                rounded
            }
        };
        let as_they_came = |needed: bool, ties: Ties| !needed || ties == Ties::Input;
        if !look.pairs
            && as_they_came(look.graded, convention.ties)
            && as_they_came(look.binary, convention.binary_ties)
        {
            gather(scratch.rank(scores, depth), rows, graded);
            let ranked = Ranked { labels: graded, ties: Spans::Settled, documents: rows.labels.len() };
            return Ok(Views { graded: ranked, binary: ranked, ..unranked(rows) });
        }
        let (order, ends) = scratch.rank_groups(scores);
        if look.graded {
            settle(convention.ties, order, ends, rows, graded)?;
        }
        if look.binary {
            settle(convention.binary_ties, order, ends, rows, binary)?;
        }
        if look.pairs {
            gather(order, rows, by_score);
        }
        let ranked = |labels: &'a [f32], ties: Ties| {
            let ties = match ties {
                Ties::Average => Spans::Averaged(ends),
                Ties::Last => Spans::Last(ends),
                Ties::Input | Ties::Document | Ties::Worst | Ties::Best => Spans::Settled,
            };
            Ranked { labels, ties, documents: rows.labels.len() }
        };
        Ok(Views {
            graded: ranked(graded, convention.ties),
            binary: ranked(binary, convention.binary_ties),
            by_score: (by_score, ends),
            rows: *rows,
        })
    }
}

fn unranked<'a>(rows: &QueryRows<'a>) -> Views<'a> {
    let nothing = Ranked { labels: &[], ties: Spans::Settled, documents: rows.labels.len() };
    Views { graded: nothing, binary: nothing, by_score: (&[], &[]), rows: *rows }
}

fn gather(order: &[u32], rows: &QueryRows<'_>, labels: &mut Vec<f32>) {
    labels.clear();
    labels.extend(order.iter().map(|place| known(rows.labels[*place as usize])));
}

/// Writes the labels in score order to `labels`, with ties broken by `ties`.
fn settle(
    ties: Ties,
    order: &mut [u32],
    ends: &[u32],
    rows: &QueryRows<'_>,
    labels: &mut Vec<f32>,
) -> Result<(), Unfit> {
    let tied = || spans(ends).filter(|span| span.len() > 1);
    match ties {
        Ties::Input => tied().for_each(|span| order[span].sort_unstable()),
        Ties::Document => {
            for span in tied() {
                let Some(documents) = rows.documents else {
                    let row = order[span.start] as usize;
                    return Err(Unfit {
                        row: Some(row),
                        problem: format!(
                            "{} documents have the score {}, and there are no document ids to order them by",
                            span.len(),
                            rows.scores[row]
                        ),
                        remedy: "pass document ids, or choose another rule for ties, such as ties=input"
                            .to_owned(),
                    });
                };
                let id = |place: &u32| documents[*place as usize];
                order[span].sort_unstable_by(|one, other| id(other).cmp(id(one)).then(one.cmp(other)));
            }
        }
        Ties::Average | Ties::Last | Ties::Worst | Ties::Best => {}
    }
    gather(order, rows, labels);
    match ties {
        Ties::Worst => tied().for_each(|span| labels[span].sort_unstable_by(f32::total_cmp)),
        Ties::Best => {
            tied().for_each(|span| labels[span].sort_unstable_by(|one, other| other.total_cmp(one)))
        }
        Ties::Input | Ties::Document | Ties::Average | Ties::Last => {}
    }
    Ok(())
}
