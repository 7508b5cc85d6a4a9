//! Computes the metrics of every query in the test data of a fold, from the predictions for the test data.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::LabelMap;
use planetree_data::table::TableReader;
use planetree_judge::evaluate::{QueryResult, Results};
use planetree_metric::{Convention, Judge, Mean, Metric, QueryRows, Unfit};

/// Number of queries whose results are passed to the sink together.
const BATCH_QUERIES: usize = 1 << 14;

/// A function that receives the results of several queries at a time, in order.
pub(super) type ResultSink<'a> = dyn FnMut(&Results) -> Result<()> + 'a;

/// The rules by which test parts are evaluated.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoldRules<'a> {
    /// Convention by which metrics are computed.
    pub convention: &'a Convention,
    /// Map of labels to others, as in training.
    pub label_map: Option<&'a LabelMap>,
}

/// Computes the metrics of every query and their means over all queries, from the predictions of a fold.
pub(super) struct FoldEvaluator<'a> {
    label_map: Option<&'a LabelMap>,
    /// Number of rows of the queries evaluated so far.
    rows: u64,
    judge: Judge,
    dcg: Judge,
    means: Vec<Mean>,
    /// Results that have not been passed to the sink yet.
    results: Results,
    query: Option<String>,
    labels: Vec<f32>,
    scores: Vec<f64>,
    documents: Vec<Option<String>>,
}

impl<'a> FoldEvaluator<'a> {
    /// Creates an evaluator for these metrics.
    pub(super) fn new(metrics: &[Metric], rules: FoldRules<'a>) -> Self {
        let FoldRules { convention, label_map } = rules;
        FoldEvaluator {
            label_map,
            rows: 0,
            judge: Judge::new(metrics, convention),
            dcg: Judge::new(&[Metric::Dcg(None)], convention),
            means: metrics.iter().map(|metric| Mean::new(*metric)).collect(),
            results: Results::new(metrics.len()),
            query: None,
            labels: Vec::new(),
            scores: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// Evaluates all predictions, passes the results to `sink`, and returns the mean of each metric over all queries.
    pub(super) fn evaluate(mut self, table: &TableReader, sink: &mut ResultSink<'_>) -> Result<Vec<Mean>> {
        for batch in table.batches() {
            interrupt::check()?;
            self.add(&batch?, table)?;
            if self.results.queries() >= BATCH_QUERIES {
                self.flush(sink)?;
            }
        }
        self.end_query(table)?;
        self.flush(sink)?;
        Ok(self.means)
    }

    fn flush(&mut self, sink: &mut ResultSink<'_>) -> Result<()> {
        let results = std::mem::replace(&mut self.results, Results::new(self.means.len()));
        sink(&results)
    }

    fn add(&mut self, batch: &RecordBatch, table: &TableReader) -> Result<()> {
        let invalid =
            || Error::place(table.location(), "not predictions", "remove the file and run the command again");
        let column = |name: &str| batch.column_by_name(name).ok_or_else(invalid);
        let queries = column("query_id")?.as_string_opt::<i32>().ok_or_else(invalid)?;
        let documents = column("doc_id")?.as_string_opt::<i32>().ok_or_else(invalid)?;
        let labels = column("label")?.as_primitive_opt::<Float32Type>().ok_or_else(invalid)?;
        let scores = column("score")?.as_primitive_opt::<Float64Type>().ok_or_else(invalid)?;
        for row in 0..batch.num_rows() {
            let query = queries.value(row);
            if self.query.as_deref() != Some(query) {
                self.end_query(table)?;
                self.query = Some(query.to_owned());
            }
            self.labels.push(if labels.is_valid(row) { labels.value(row) } else { f32::NAN });
            self.scores.push(scores.value(row));
            self.documents.push(documents.is_valid(row).then(|| documents.value(row).to_owned()));
        }
        Ok(())
    }

    fn end_query(&mut self, table: &TableReader) -> Result<()> {
        let Some(query) = self.query.take() else { return Ok(()) };
        if let Some(map) = self.label_map {
            map.apply(&mut self.labels).map_err(|row| {
                map.unlisted(table.location(), self.rows + row as u64 + 1, self.labels[row])
            })?;
        }
        self.rows += self.labels.len() as u64;
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
        self.results.push(&QueryResult {
            name: &query,
            documents: self.labels.len(),
            relevant: self.labels.iter().filter(|label| convention.is_relevant(**label)).count(),
            first_row: 0,
            values: &values,
        });
        self.results.dcg.push(dcg.unwrap_or(0.0));
        self.results.ideal_dcg.push(self.dcg.ideal_dcg(&rows, None));
        self.labels.clear();
        self.scores.clear();
        self.documents.clear();
        Ok(())
    }
}
