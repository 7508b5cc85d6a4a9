//! How good a fold's scores are: its predictions read back, query by query.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::table::TableReader;
use planetree_metric::{Convention, Judge, Mean, Metric, QueryRows, Unfit};

/// A query and its metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMetrics {
    /// The query's id.
    pub query: String,
    /// Its documents.
    pub documents: usize,
    /// Those that count as relevant.
    pub relevant: usize,
    /// The value of each metric; `None` where the query does not count.
    pub values: Vec<Option<f64>>,
    /// Its DCG.
    pub dcg: f64,
    /// The DCG of its best order.
    pub ideal_dcg: f64,
}

/// Takes metrics query by query.
pub struct Measure {
    judge: Judge,
    dcg: Judge,
    means: Vec<Mean>,
    query: Option<String>,
    labels: Vec<f32>,
    scores: Vec<f64>,
    documents: Vec<Option<String>>,
}

impl Measure {
    /// Nothing measured yet.
    pub fn new(metrics: &[Metric], convention: &Convention) -> Self {
        Measure {
            judge: Judge::new(metrics, convention),
            dcg: Judge::new(&[Metric::Dcg(None)], convention),
            means: metrics.iter().map(|metric| Mean::new(*metric)).collect(),
            query: None,
            labels: Vec::new(),
            scores: Vec::new(),
            documents: Vec::new(),
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
        self.end_query(table, sink)?;
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
        let documents = column("doc_id")?.as_string_opt::<i32>().ok_or_else(odd)?;
        let labels = column("label")?.as_primitive_opt::<Float32Type>().ok_or_else(odd)?;
        let scores = column("score")?.as_primitive_opt::<Float64Type>().ok_or_else(odd)?;
        for row in 0..batch.num_rows() {
            let query = queries.value(row);
            if self.query.as_deref() != Some(query) {
                self.end_query(table, sink)?;
                self.query = Some(query.to_owned());
            }
            self.labels.push(if labels.is_valid(row) { labels.value(row) } else { f32::NAN });
            self.scores.push(scores.value(row));
            self.documents.push(documents.is_valid(row).then(|| documents.value(row).to_owned()));
        }
        Ok(())
    }

    fn end_query(
        &mut self,
        table: &TableReader,
        sink: &mut dyn FnMut(QueryMetrics) -> Result<()>,
    ) -> Result<()> {
        let Some(query) = self.query.take() else { return Ok(()) };
        let documents: Option<Vec<&str>> = self.documents.iter().map(Option::as_deref).collect();
        let rows = QueryRows {
            labels: &self.labels,
            scores: &self.scores,
            documents: documents.as_deref(),
            judged: None,
        };
        let unfit = |unfit: Unfit| unfit.at(format_args!("{}, query {query:?}", table.location()));
        let values = self.judge.query(&rows).map_err(unfit)?.to_vec();
        self.judge.add_to(&mut self.means, &rows, 1.0);
        let dcg = self.dcg.query(&rows).map_err(unfit)?.first().copied().flatten();
        let convention = self.judge.convention();
        let measured = QueryMetrics {
            documents: self.labels.len(),
            relevant: self.labels.iter().filter(|label| convention.is_relevant(**label)).count(),
            values,
            dcg: dcg.unwrap_or(0.0),
            ideal_dcg: self.dcg.ideal_dcg(&rows, None),
            query,
        };
        self.labels.clear();
        self.scores.clear();
        self.documents.clear();
        sink(measured)
    }
}
