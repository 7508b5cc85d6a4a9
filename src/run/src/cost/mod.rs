//! Quality against cost, with early exits (Mohan 2010, chapter 6).
//!
//! At each exit, the metrics of all documents and the mean cost of scoring a document are one point of a
//! curve; then the lowest documents exit. There is one curve per percentage of exits.

mod table;

pub use table::write_points;

use arrow::array::{Array, AsArray, Float32Array};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::LabelMap;
use planetree_data::dataset::{DatasetReader, GroupId, unexpected_columns};
use planetree_metric::{Convention, Judge, Mean, Metric, QueryRows};
use planetree_model::cost::{CostTable, TreeCosts};
use planetree_model::model::Model;
use planetree_model::predict::{
    EarlyExit, ExitRows, ExitScope, ExitScorer, ExitShare, GroupColumns, bounds_of, row_identity,
};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What is measured, and how documents exit.
#[derive(Debug, Clone)]
pub struct CostRequest {
    /// The metrics with the names of their columns.
    pub metrics: Vec<(String, Metric)>,
    /// Convention by which the metrics are computed.
    pub convention: Convention,
    /// Map of labels to others, which are evaluated; `None` if labels are used as they are.
    pub label_map: Option<LabelMap>,
    /// Number of trees between two points, and two exits.
    pub every: u32,
    /// Percentages of documents that exit, one per curve.
    pub percents: Vec<f64>,
    /// Which documents are compared with each other.
    pub scope: ExitScope,
    /// What the percentages refer to.
    pub share: ExitShare,
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CostPoint {
    /// Percentage of documents that exit.
    pub percent: f64,
    /// Number of trees so far.
    pub trees: u32,
    /// Number of documents for which the last of these trees were evaluated.
    pub documents: u64,
    /// Mean cost of scoring a document: 1 per tree, and every feature when it is first used.
    pub cost: f64,
    /// Mean over the documents of the mean cost of their trees (eq. 6.4).
    pub tree_cost: f64,
    /// Values of the metrics; `None` if a metric is undefined.
    pub values: Vec<Option<f64>>,
}

/// The curves of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCurves {
    /// Name of the model in the table.
    pub name: String,
    /// Fingerprint of the model.
    pub fingerprint: String,
    /// The points of all curves, one curve after the other.
    pub points: Vec<CostPoint>,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Labels and queries of a row group.
struct JudgedRows {
    labels: Vec<f32>,
    bounds: Vec<usize>,
}

/// Computes the curves of a model on a dataset, one after the other. `name` and `fingerprint` are those of the model.
pub fn cost_curves(
    reader: &DatasetReader,
    (name, fingerprint, model): (String, String, &Model),
    table: &CostTable,
    request: &CostRequest,
) -> Result<ModelCurves> {
    let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
    let costs = table.of_features(&names, &model.origin.to_string())?;
    let costs = TreeCosts::of(TreeCosts::ensemble(model)?, &costs);
    let ids: Vec<GroupId> = reader.groups().into_iter().collect();
    let judged: Vec<JudgedRows> =
        ids.par_iter().map(|id| judged_rows(reader, *id, request)).collect::<Result<_>>()?;
    let columns = GroupColumns::new(model, reader)?;
    let mut points = Vec::new();
    for percent in &request.percents {
        let (every, scope, share) = (request.every, request.scope, request.share);
        let scorer = ExitScorer::new(model, EarlyExit { every, percent: *percent, scope, share })?;
        let mut rows = ExitRows::load(reader, &columns, &scorer, &ids)?;
        loop {
            interrupt::check()?;
            let documents = rows.left() as u64;
            if !rows.advance()? {
                break;
            }
            let (cost, tree_cost) = mean_costs(&rows, &costs);
            let values = values_of(&rows.scores(), &judged, request, reader)?;
            points.push(CostPoint {
                percent: *percent,
                trees: rows.trees(),
                documents,
                cost,
                tree_cost,
                values,
            });
            rows.exit();
        }
    }
    Ok(ModelCurves { name, fingerprint, points, warning: columns.warning() })
}

/// Returns the means of both costs over all documents.
fn mean_costs(rows: &ExitRows<'_>, costs: &TreeCosts) -> (f64, f64) {
    let mut documents: BTreeMap<u32, u64> = BTreeMap::new();
    rows.evaluated().for_each(|trees| *documents.entry(trees).or_default() += 1);
    let (mut all, mut cost, mut tree_cost) = (0.0, 0.0, 0.0);
    for (trees, count) in documents {
        all += count as f64;
        if let Some(last) = (trees as usize).checked_sub(1) {
            cost += count as f64 * costs.trees[last].cumulative;
            tree_cost += count as f64 * costs.trees[last].mean;
        }
    }
    (cost / all, tree_cost / all)
}

fn judged_rows(reader: &DatasetReader, id: GroupId, request: &CostRequest) -> Result<JudgedRows> {
    let group = reader.open_group(id)?;
    let rows = row_identity(reader, &group)?;
    let unexpected = || unexpected_columns(reader.location());
    let queries = rows.column(0).as_string_opt::<i32>().ok_or_else(unexpected)?;
    let labels: &Float32Array = rows.column(2).as_primitive_opt::<Float32Type>().ok_or_else(unexpected)?;
    if let Some(row) = (0..labels.len()).find(|row| labels.is_null(*row) || labels.value(*row).is_nan()) {
        let number = group.first_row() + row as u64 + 1;
        let problem = format!("row {number} (query {:?}) has no label", queries.value(row));
        return Err(Error::place(reader.location(), problem, "use a dataset with labels"));
    }
    let mut labels = labels.values().to_vec();
    if let Some(map) = &request.label_map {
        map.apply(&mut labels).map_err(|row| {
            map.unlisted(reader.location(), group.first_row() + row as u64 + 1, labels[row])
        })?;
    }
    Ok(JudgedRows { labels, bounds: bounds_of(queries) })
}

/// Computes the metrics of scores.
fn values_of(
    scores: &[Vec<f64>],
    judged: &[JudgedRows],
    request: &CostRequest,
    reader: &DatasetReader,
) -> Result<Vec<Option<f64>>> {
    let metrics: Vec<Metric> = request.metrics.iter().map(|(_, metric)| *metric).collect();
    let means = || metrics.iter().map(|metric| Mean::new(*metric)).collect::<Vec<_>>();
    let of_group = |(scores, rows): (&Vec<f64>, &JudgedRows)| {
        let (mut judge, mut means) = (Judge::new(&metrics, &request.convention), means());
        for query in rows.bounds.windows(2) {
            let (labels, scores) = (&rows.labels[query[0]..query[1]], &scores[query[0]..query[1]]);
            let rows = QueryRows { labels, scores, documents: None, judged: None };
            judge.query(&rows).map_err(|unfit| unfit.at(reader.location()))?;
            judge.add_to(&mut means, &rows, 1.0);
        }
        Ok(means)
    };
    let groups: Vec<Vec<Mean>> = scores.par_iter().zip(judged).map(of_group).collect::<Result<_>>()?;
    let mut all = means();
    for group in groups {
        all.iter_mut().zip(&group).for_each(|(mean, part)| mean.merge(part));
    }
    Ok(all.iter().map(|mean| Some(mean.value()).filter(|value| !value.is_nan())).collect())
}
