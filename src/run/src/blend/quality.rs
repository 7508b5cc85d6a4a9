//! Measures a blend: the metric of every member alone, of equal weights and of the found weights, and whether the
//! differences are significant.

use super::{BlendRequest, BlendScores, FoundWeights};
use planetree_base::error::Result;
use planetree_judge::compare::{
    AlignedSystems, Alternative, ComparisonOptions, PairComparison, SignificanceTest, compare,
};
use planetree_metric::{Judge, Mean, QueryRows};
use rayon::prelude::*;

/// Significance level of the reported gains.
pub const ALPHA: f64 = 0.05;

/// The metric of a member alone.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberQuality {
    /// Mean of the metric over all queries.
    pub mean: f64,
    /// Whether the member gives all documents of a query the same score.
    pub is_constant: bool,
}

/// What the blend gains over something else.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Name of the member; `None` for the blend with equal weights.
    pub over: Option<String>,
    /// Comparison of the other ranking with the blend.
    pub pair: PairComparison,
}

/// Metrics of a blend and its members.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Number of rows.
    pub rows: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries that have a value of the metric.
    pub counted: usize,
    /// Every member alone.
    pub members: Vec<MemberQuality>,
    /// Mean of the metric with equal weights.
    pub equal: f64,
    /// Mean of the metric of the blend.
    pub blend: f64,
    /// Gains over the best member and over equal weights.
    pub gains: Vec<Gain>,
}

/// The values of a metric: one per query, and their mean.
struct Measured {
    values: Vec<Option<f64>>,
    mean: f64,
}

impl Quality {
    /// Measures a blend. A difference is tested by randomisation, in both directions.
    pub(super) fn of(scores: &BlendScores, weights: &FoundWeights, request: &BlendRequest) -> Result<Self> {
        let count = scores.values.len();
        let alone: Vec<Measured> =
            scores.values.iter().map(|values| measure(scores, values, request)).collect::<Result<_>>()?;
        let equal = measure(scores, &scores.combined(&vec![1.0 / count as f64; count], 0.0), request)?;
        let combined = scores.combined(&weights.weights, weights.intercept);
        let blend = measure(scores, &combined, request)?;
        let mut best = 0;
        for member in 1..count {
            if request.metric.is_better(alone[member].mean, alone[best].mean) {
                best = member;
            }
        }
        let others = [(Some(scores.members[best].clone()), &alone[best]), (None, &equal)];
        let gains = others.into_iter().map(|(over, other)| gain(over, other, &blend, scores, request));
        Ok(Quality {
            rows: scores.labels.len(),
            queries: scores.queries.len(),
            counted: blend.values.iter().flatten().count(),
            gains: gains.collect::<Result<Vec<Option<Gain>>>>()?.into_iter().flatten().collect(),
            members: alone
                .iter()
                .enumerate()
                .map(|(member, measured)| MemberQuality {
                    mean: measured.mean,
                    is_constant: scores.is_constant(member),
                })
                .collect(),
            equal: equal.mean,
            blend: blend.mean,
        })
    }
}

/// Compares a ranking with the blend. Returns `None` if no query has a value.
fn gain(
    over: Option<String>,
    other: &Measured,
    blend: &Measured,
    scores: &BlendScores,
    request: &BlendRequest,
) -> Result<Option<Gain>> {
    let values = other.values.iter().zip(&blend.values);
    let counted = scores.queries.iter().zip(values);
    let mut counted: Vec<(&String, f64, f64)> =
        counted.filter_map(|(query, (one, two))| Some((query, (*one)?, (*two)?))).collect();
    // Queries are sorted as in `planetree compare`, so that both draw the same signs.
    counted.sort_by_key(|(query, ..)| *query);
    let aligned = AlignedSystems {
        queries: counted.iter().map(|(query, ..)| (*query).clone()).collect(),
        values: vec![
            counted.iter().map(|(_, one, _)| *one).collect(),
            counted.iter().map(|(.., two)| *two).collect(),
        ],
        uncounted: scores.queries.len() - counted.len(),
        notes: Vec::new(),
    };
    // These are the default options of `planetree compare`.
    let options = ComparisonOptions {
        higher_is_better: request.metric.higher_is_better(),
        test: SignificanceTest::Randomisation,
        alternative: Alternative::TwoSided,
        alpha: ALPHA,
        permutations: 100_000,
        resamples: 10_000,
        level: 0.95,
        seed: request.seed,
        top: 0,
    };
    if aligned.queries.is_empty() {
        return Ok(None);
    }
    let pair = compare(&aligned, &options)?.into_iter().next();
    Ok(pair.map(|pair| Gain { over, pair }))
}

/// Computes the metric of every query for some scores.
fn measure(scores: &BlendScores, values: &[f64], request: &BlendRequest) -> Result<Measured> {
    /// Number of queries that are evaluated together.
    const CHUNK: usize = 256;
    let metric = request.metric;
    let chunks = scores.bounds.len().saturating_sub(1).div_ceil(CHUNK);
    let measured = (0..chunks).into_par_iter().map(|chunk| -> Result<(Vec<Option<f64>>, Mean)> {
        let mut judge = Judge::new(&[metric], &request.convention);
        let mut means = [Mean::new(metric)];
        let mut found = Vec::with_capacity(CHUNK);
        let last = (chunk * CHUNK + CHUNK).min(scores.queries.len());
        for query in chunk * CHUNK..last {
            let rows = scores.bounds[query] as usize..scores.bounds[query + 1] as usize;
            let documents: Option<Vec<&str>> = scores
                .documents
                .as_ref()
                .filter(|_| request.convention.needs_documents())
                .map(|documents| documents[rows.clone()].iter().map(String::as_str).collect());
            let rows = QueryRows {
                labels: &scores.labels[rows.clone()],
                scores: &values[rows],
                documents: documents.as_deref(),
                judged: None,
            };
            let unfit = |unfit: planetree_metric::Unfit| {
                unfit.at(format_args!("{}, query {:?}", scores.place, scores.queries[query]))
            };
            found.push(judge.query(&rows).map_err(unfit)?[0]);
            judge.add_to(&mut means, &rows, 1.0);
        }
        let [mean] = means;
        Ok((found, mean))
    });
    let mut all = Vec::with_capacity(scores.queries.len());
    let mut mean = Mean::new(metric);
    for (values, part) in measured.collect::<Result<Vec<_>>>()? {
        all.extend(values);
        mean.merge(&part);
    }
    Ok(Measured { values: all, mean: mean.value() })
}
