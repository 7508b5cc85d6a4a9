//! Computes the contributions of the features to the scores of rows.

use super::linear::LinearExplainer;
use super::net::NetExplainer;
use super::trees::TreesExplainer;
use crate::family::RowValues;
use crate::model::{Combine, Model, Normalisation, Part, PartFamily};
use crate::predict::bounds_of;
use arrow::array::{Array, Float32Array, StringArray};
use planetree_base::error::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

/// A part of a model, prepared for explaining. The score is a sum over the parts, so the contributions to the parts
/// are added up.
pub(super) trait PartExplainer: Debug + Send + Sync {
    /// Returns the expected value of the part, multiplied by its weight.
    fn expected(&self) -> f64;

    /// Returns the indices of the features that contributions depend on.
    fn used_features(&self) -> BTreeSet<u32>;

    /// Adds the contributions of rows, multiplied by the weight of the part, to `out`, which is in row-major order with
    /// `features` numbers per row. If the part compares documents, the rows must be all documents of one query.
    fn add(&self, rows: RowValues<'_>, features: usize, out: &mut [f64]);
}

/// A model prepared for explaining many rows.
#[derive(Debug)]
pub struct Explainer {
    /// Number of features of the model, including those that no part uses.
    features: usize,
    expected: f64,
    parts: Vec<Box<dyn PartExplainer>>,
    needs_queries: bool,
}

impl Explainer {
    /// Prepares a model. Returns an error if the model has groups of parts, or if a part is a pairwise model, is
    /// normalised, or consists of trees that lack the number of training rows per node (`cover`).
    pub fn new(model: &Model) -> Result<Self> {
        if let Some(coupling) = model.coupling() {
            return Err(Error::usage(
                format_args!("cannot explain scores: {coupling}, so they are not sums of contributions"),
                "use `planetree describe --permutation`; the models of a blend can be explained one by one",
            ));
        }
        let mut parts: Vec<Box<dyn PartExplainer>> = Vec::with_capacity(model.parts.len());
        for (number, part) in model.parts.iter().enumerate() {
            check_part(model, number, part)?;
            parts.push(match &part.family {
                PartFamily::Trees(ensemble) => Box::new(TreesExplainer::new(model, number, ensemble)?),
                PartFamily::Linear(function) => {
                    Box::new(LinearExplainer::new(function, part.weight, &model.features))
                }
                PartFamily::Net(net) => Box::new(NetExplainer::new(net, part.weight, &model.features)),
            });
        }
        Ok(Explainer {
            features: model.features.len(),
            expected: parts.iter().fold(model.intercept, |sum, part| sum + part.expected()),
            parts,
            needs_queries: model.parts.iter().any(Part::needs_queries),
        })
    }

    /// Returns the expected score of a row whose features are all unknown: the intercept and the expected values of
    /// the parts. For trees, it has the mean of each tree's leaf values, weighted by `cover`, in place of the tree's
    /// prediction; the value of `base_feature` is not included. For a linear function, it is the mean over the training
    /// rows; for a net, the value of a row whose features have their means.
    pub fn expected_value(&self) -> f64 {
        self.expected
    }

    /// Returns the number of features of the model, which is also the number of contributions per row.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Returns whether the contributions of a row depend on the other rows of its query. The rows that are explained
    /// together must then be all documents of one query.
    pub fn needs_queries(&self) -> bool {
        self.needs_queries
    }

    /// Divides rows into ranges that can be explained independently of each other: whole queries if contributions depend
    /// on the other rows of a query, and otherwise `most` rows each. `queries` has the query id of every row.
    pub fn independent_rows(&self, queries: &StringArray, most: usize) -> Vec<Range<usize>> {
        if self.needs_queries {
            return bounds_of(queries).windows(2).map(|query| query[0]..query[1]).collect();
        }
        let starts = (0..queries.len()).step_by(most.max(1));
        starts.map(|start| start..(start + most.max(1)).min(queries.len())).collect()
    }

    /// Returns the indices of the features that contributions depend on, in ascending order. Other features contribute
    /// 0.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flat_map(|part| part.used_features()).collect::<BTreeSet<u32>>().into_iter()
    }

    /// Computes the contributions of one row, which has a value for every feature of the model. Missing values are
    /// NaN; values beyond the end of `row` count as missing. `out` has one element per feature. The contributions and
    /// the expected value add up to the score. For many rows, [`Explainer::explain_rows`] is faster.
    pub fn contributions(&self, row: &[f32], out: &mut [f64]) {
        self.explain(RowValues::Matrix { values: row, width: self.features }, &mut out[..self.features]);
    }

    /// Computes the contributions of several rows. Both `rows` and `out` are in row-major order, with one number per
    /// feature of the model.
    pub fn explain_rows(&self, rows: &[f32], out: &mut [f64]) {
        let count = rows.len() / self.features.max(1);
        let values = RowValues::Matrix { values: rows, width: self.features };
        self.explain(values, &mut out[..count * self.features]);
    }

    /// Computes the contributions of a range of rows. `columns` has one entry per feature of the model. Nulls, NaN and
    /// all values of a feature without a column count as missing. `out` is in row-major order.
    pub fn explain_columns(&self, columns: &[Option<&Float32Array>], rows: Range<usize>, out: &mut [f64]) {
        let values = RowValues::Columns { columns, first: rows.start };
        self.explain(values, &mut out[..rows.len() * self.features]);
    }

    fn explain(&self, rows: RowValues<'_>, out: &mut [f64]) {
        out.fill(0.0);
        self.parts.iter().for_each(|part| part.add(rows, self.features, out));
    }
}

/// Returns an error if the values of a part cannot be divided among the features.
fn check_part(model: &Model, number: usize, part: &Part) -> Result<()> {
    let is_pairwise = part.family.trees().is_some_and(|ensemble| ensemble.combine == Combine::Wins);
    let (problem, remedy) = match part.normalisation {
        _ if is_pairwise => (
            "is a pairwise model, which compares the documents of a query".to_owned(),
            "explain a model of another preset, such as rf-point",
        ),
        Normalisation::None => return Ok(()),
        normalisation => (
            format!("is normalised over the documents of a query ({})", normalisation.name()),
            "explain a model without normalisation",
        ),
    };
    Err(Error::usage(format_args!("cannot explain scores: {} {problem}", model.part_label(number)), remedy))
}
