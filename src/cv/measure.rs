//! How good a fold's scores are: its predictions read back, query by query.

use crate::error::{Error, Result};
use crate::metric::{Mean, Metric, Scratch, evaluate};
use crate::storage::interrupt;
use crate::table::TableReader;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type};

/// A query and its metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMetrics {
    /// The query's id.
    pub query: String,
    /// Its documents.
    pub documents: usize,
    /// Those with a label above 0.
    pub relevant: usize,
    /// The value of each metric.
    pub values: Vec<f64>,
}

/// Takes metrics query by query.
pub struct Measure<'a> {
    metrics: &'a [Metric],
    means: Vec<Mean>,
    scratch: Scratch,
    query: Option<String>,
    labels: Vec<f32>,
    scores: Vec<f64>,
}

impl<'a> Measure<'a> {
    /// Nothing measured yet.
    pub fn new(metrics: &'a [Metric]) -> Self {
        Measure {
            metrics,
            means: metrics.iter().map(|metric| Mean::new(*metric)).collect(),
            scratch: Scratch::default(),
            query: None,
            labels: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Goes through predictions and hands every query on; the means over all queries.
    pub fn all(
        mut self,
        table: &TableReader,
        sink: &mut dyn FnMut(QueryMetrics) -> Result<()>,
    ) -> Result<Vec<Mean>> {
        for batch in table.batches() {
            interrupt::check()?;
            self.add(&batch?, table, sink)?;
        }
        self.end_query(sink)?;
        Ok(self.means)
    }

    fn add(
        &mut self,
        batch: &RecordBatch,
        table: &TableReader,
        sink: &mut dyn FnMut(QueryMetrics) -> Result<()>,
    ) -> Result<()> {
        let odd = || Error::place(table.location(), "these are not predictions", "remove the file");
        let column = |name: &str| batch.column_by_name(name).ok_or_else(odd);
        let queries = column("query_id")?.as_string_opt::<i32>().ok_or_else(odd)?;
        let labels = column("label")?.as_primitive_opt::<Float32Type>().ok_or_else(odd)?;
        let scores = column("score")?.as_primitive_opt::<Float64Type>().ok_or_else(odd)?;
        for row in 0..batch.num_rows() {
            let query = queries.value(row);
            if self.query.as_deref() != Some(query) {
                self.end_query(sink)?;
                self.query = Some(query.to_owned());
            }
            self.labels.push(if labels.is_valid(row) { labels.value(row) } else { 0.0 });
            self.scores.push(scores.value(row));
        }
        Ok(())
    }

    fn end_query(&mut self, sink: &mut dyn FnMut(QueryMetrics) -> Result<()>) -> Result<()> {
        let Some(query) = self.query.take() else { return Ok(()) };
        let bounds = [0, self.labels.len() as u32];
        let prepared: Vec<_> =
            self.metrics.iter().map(|metric| metric.prepare(&self.labels, &bounds)).collect();
        let of_query = evaluate(&prepared, &self.labels, &self.scores, &bounds);
        self.means.iter_mut().zip(&of_query).for_each(|(mean, value)| mean.merge(value));
        let scratch = &mut self.scratch;
        let values =
            prepared.iter().map(|metric| metric.of_query(0, &self.labels, &self.scores, scratch)).collect();
        let relevant = self.labels.iter().filter(|label| **label > 0.0).count();
        let documents = self.labels.len();
        self.labels.clear();
        self.scores.clear();
        sink(QueryMetrics { query, documents, relevant, values })
    }
}
