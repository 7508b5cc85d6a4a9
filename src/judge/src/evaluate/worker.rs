//! Evaluates the queries in a sequence of rows. The sequence may begin and end in the middle of a query, so its first
//! and last query are not evaluated. Their rows are returned, so that the caller can join them with the rows before
//! and after the sequence.

use super::documents::DocumentTable;
use super::judgments::Judgments;
use super::overlap::QueryOverlap;
use super::results::{QueryResult, Results, SeenQueries};
use super::rows::{FIRST_JUDGMENT_ROW, RowView};
use super::trec::{self, RankedQuery};
use arrow::array::{Array, RecordBatch};
use arrow::compute::concat_batches;
use planetree_base::error::{Error, Result};
use planetree_metric::{Convention, Judge, Metric, QueryRows, Unfit};
use std::ops::Range;

/// Metrics and options of an evaluation.
pub struct EvaluationSettings {
    /// Metrics to compute.
    pub metrics: Vec<Metric>,
    /// Convention, which is the set of rules by which all metrics are computed.
    pub convention: Convention,
    /// Source of the labels; `None` if the rows themselves have labels.
    pub judgments: Option<Judgments>,
    /// Whether queries with judgments but without ranked documents count as queries with an empty ranking.
    pub complete: bool,
    /// Whether to compute DCG and ideal DCG in addition to the metrics.
    pub gains: bool,
    /// Whether to record the segment (group of queries) to which each query belongs.
    pub segments: bool,
    /// Tag of the TREC run to write; `None` if no run is written.
    pub tag: Option<String>,
    /// Name of the input, for messages.
    pub input: String,
    /// Whether values are expectations over all orders of the documents of a query.
    pub random_order: bool,
    /// Whether the labels are those of the dataset whose rows are ranked, for messages.
    pub has_labels_of_data: bool,
}

impl EvaluationSettings {
    fn judge(&self, metrics: &[Metric]) -> Result<Judge> {
        match self.random_order {
            true => Judge::of_random_order(metrics, &self.convention),
            false => Ok(Judge::new(metrics, &self.convention)),
        }
    }
}

/// The results of all queries in a sequence of rows except the first and the last query, whose rows are not
/// evaluated.
pub struct PartialEvaluation {
    /// Rows of the first query.
    pub head: Vec<RecordBatch>,
    /// Results of the queries between the first and the last.
    pub between: Results,
    /// Rows of the last query; `None` if there is only one query.
    pub tail: Option<Vec<RecordBatch>>,
    /// Why a query after the first could not be evaluated. The rows before it may be invalid, too.
    pub failure: Option<Error>,
}

/// Evaluates queries and collects their results.
pub struct QueryJudge<'s> {
    settings: &'s EvaluationSettings,
    judge: Judge,
    /// Computes DCG, if requested.
    dcg: Option<Judge>,
    /// Whether documents with equal scores are ordered by their ids, so that the ids are needed.
    needs_documents: bool,
    documents: DocumentTable,
    results: Results,
}

impl<'s> QueryJudge<'s> {
    /// Creates an evaluator without results. Returns an error if the expectation of a metric is needed but has no closed
    /// form.
    pub fn new(settings: &'s EvaluationSettings) -> Result<Self> {
        let EvaluationSettings { metrics, convention, gains, .. } = settings;
        Ok(QueryJudge {
            settings,
            judge: settings.judge(metrics)?,
            dcg: gains.then(|| settings.judge(&[Metric::Dcg(None)])).transpose()?,
            needs_documents: convention.needs_documents(),
            documents: DocumentTable::default(),
            results: Results::new(metrics.len()),
        })
    }

    /// Returns the results so far, and starts again without results.
    pub fn take_results(&mut self) -> Results {
        std::mem::replace(&mut self.results, Results::new(self.settings.metrics.len()))
    }

    /// Evaluates all queries except the first and the last. Unless the rows are `sorted` by query, ends after a query that
    /// occurs again, whose second result tells that the rows must be sorted. Every row of scattered queries could be a query
    /// with a result of its own, and all results together take more memory than the rows.
    pub(crate) fn judge_batches(
        mut self,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        sorted: bool,
    ) -> Result<PartialEvaluation> {
        let (mut head, mut open): (Option<Vec<RecordBatch>>, Vec<RecordBatch>) = (None, Vec::new());
        let mut seen = (!sorted).then(SeenQueries::default);
        let mut is_repeated = |rows: &RowView<'_>, row: usize| {
            seen.as_mut().is_some_and(|seen| !seen.is_new(rows.query_ids.value(row)))
        };
        let (mut is_scattered, mut failure) = (false, None);
        'batches: for batch in batches {
            let batch = batch?;
            let rows = RowView::of(&batch);
            let mut start = 0;
            if batch.num_rows() == 0 {
                continue;
            }
            if let Some(last) = open.last() {
                let before = RowView::of(last).query_ids;
                if before.value(before.len() - 1) == rows.query_ids.value(0) {
                    start = rows.query_end(0);
                    open.push(batch.slice(0, start));
                    if start == batch.num_rows() {
                        continue;
                    }
                }
                is_scattered = open.first().is_some_and(|first| is_repeated(&RowView::of(first), 0));
                let ended = std::mem::take(&mut open);
                if head.is_none() {
                    head = Some(ended);
                } else if let Err(error) = self.judge_rows(&ended) {
                    failure = Some(error);
                    break 'batches;
                }
            }
            loop {
                if is_scattered {
                    break 'batches;
                }
                let end = rows.query_end(start);
                if end == batch.num_rows() {
                    open.push(batch.slice(start, end - start));
                    break;
                }
                is_scattered = is_repeated(&rows, start);
                if head.is_none() {
                    head = Some(vec![batch.slice(start, end - start)]);
                } else if let Err(error) = self.judge_query(&rows, start..end) {
                    failure = Some(error);
                    break 'batches;
                }
                start = end;
            }
        }
        let (head, tail) = match head {
            Some(head) => (head, Some(open)),
            None => (open, None),
        };
        Ok(PartialEvaluation { head, between: self.results, tail, failure })
    }

    /// Evaluates all queries in these batches. No query may continue before or after them.
    pub(crate) fn judge_rows(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let Some(first) = batches.first() else { return Ok(()) };
        let joined = concat_batches(first.schema_ref(), batches).map_err(|error| {
            Error::place(
                &self.settings.input,
                &error,
                "shorten the document ids: a query may have at most 2 GiB of them",
            )
            .caused_by(error)
        })?;
        let rows = RowView::of(&joined);
        let mut start = 0;
        while start < joined.num_rows() {
            let end = rows.query_end(start);
            self.judge_query(&rows, start..end)?;
            start = end;
        }
        Ok(())
    }

    fn judge_query(&mut self, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        match &self.settings.judgments {
            None => self.judge_labelled(rows, range),
            Some(judgments) => self.judge_with(judgments, rows, range),
        }
    }

    /// Evaluates a query whose rows have labels.
    fn judge_labelled(&mut self, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        let labels = &rows.labels.values()[range.clone()];
        let is_missing = |row: &usize| rows.labels.is_null(*row) || rows.labels.value(*row).is_nan();
        if (rows.labels.null_count() > 0 || labels.iter().any(|label| label.is_nan()))
            && let Some(row) = range.clone().find(is_missing)
        {
            return Err(Error::place(
                &self.settings.input,
                format_args!("{} has no label", self.describe_row(rows, row)),
                match self.settings.has_labels_of_data {
                    true => "label the rows of --data, from which the labels come",
                    false => {
                        "label the documents, or evaluate the predictions with --labels DATASET or --qrels FILE"
                    }
                },
            ));
        }
        let scores = &rows.scores.values()[range.clone()];
        self.check_documents(rows, range.clone())?;
        let query = QueryInput { rows, range, labels, scores, judged: None };
        self.judge_complete(&query)
    }

    /// Evaluates a query whose rows are ranked documents followed by judgments.
    fn judge_with(&mut self, judgments: &Judgments, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        // Judgments have higher row numbers than ranked documents, so they come last.
        let ranked = range.start..range.clone().find(|row| rows.scores.is_null(*row)).unwrap_or(range.end);
        let judged = ranked.end..range.end;
        let name = rows.query_ids.value(range.start);
        if judged.is_empty() {
            if let Judgments::Dataset(location) = judgments {
                return Err(Error::place(
                    location,
                    format_args!("no query {name:?}, which {} contains", self.settings.input),
                    "use the dataset that was scored",
                ));
            }
            self.results.unjudged += 1;
            self.results.overlap.add_unjudged(name);
            return Ok(());
        }
        if ranked.is_empty() {
            self.results.unranked += 1;
            self.results.overlap.add_unranked(name);
            if !self.settings.complete {
                return Ok(());
            }
        }
        self.documents.clear(judged.len());
        for row in judged.clone() {
            if let Some(before) = self.documents.insert(rows.doc_ids, row)
                && rows.labels.value(before) != rows.labels.value(row)
            {
                return Err(Error::place(
                    judgments.location(),
                    format_args!(
                        "document {:?} of query {name:?} has two labels: {} and {}",
                        rows.doc_ids.value(row),
                        rows.labels.value(before),
                        rows.labels.value(row)
                    ),
                    "remove one of them",
                ));
            }
        }
        let mut labels = Vec::with_capacity(ranked.len());
        let mut found_documents = 0;
        for row in ranked.clone() {
            if rows.doc_ids.is_null(row) {
                return Err(Error::place(
                    &self.settings.input,
                    format_args!(
                        "{} has no doc_id, which is needed to look up labels",
                        self.describe_row(rows, row)
                    ),
                    "evaluate predictions with doc_id, or scores with --scores and --data",
                ));
            }
            let found = self.documents.get(rows.doc_ids, rows.doc_ids.value(row));
            found_documents += u64::from(found.is_some());
            labels.push(match (found, judgments) {
                (Some(found), _) if rows.labels.is_valid(found) => rows.labels.value(found),
                (None, Judgments::Qrels(_)) => 0.0, // not judged
                _ => {
                    return Err(Error::place(
                        judgments.location(),
                        format_args!("no label for document {:?} of query {name:?}", rows.doc_ids.value(row)),
                        "use the dataset that was scored",
                    ));
                }
            });
        }
        if !ranked.is_empty() {
            self.results.overlap.add(&QueryOverlap {
                ranked: ranked.len(),
                judgments: judged.len(),
                documents: found_documents,
                first: [ranked.start, judged.start].map(|row| rows.doc_ids.value(row)),
            });
        }
        let judged: Vec<f32> =
            judged.filter(|row| rows.labels.is_valid(*row)).map(|row| rows.labels.value(row)).collect();
        self.check_documents(rows, ranked.clone())?;
        let scores = &rows.scores.values()[ranked.clone()];
        let range = if ranked.is_empty() { range } else { ranked };
        let query = QueryInput { rows, range, labels: &labels, scores, judged: Some(&judged) };
        self.judge_complete(&query)
    }

    /// Computes the metrics of a query, once the labels of its documents are known.
    fn judge_complete(&mut self, query: &QueryInput<'_>) -> Result<()> {
        let QueryInput { rows, range, labels, scores, judged } = query;
        let (settings, name) = (self.settings, rows.query_ids.value(range.start));
        if let Some(row) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::place(
                &settings.input,
                format_args!("{}: the score is NaN", self.describe_row(rows, range.start + row)),
                "score the documents again: NaN cannot be ranked",
            ));
        }
        let has_documents = self.needs_documents && rows.doc_ids.null_count() == 0;
        let documents: Option<Vec<&str>> = has_documents
            .then(|| range.clone().take(scores.len()).map(|row| rows.doc_ids.value(row)).collect());
        let input = QueryRows { labels, scores, documents: documents.as_deref(), judged: *judged };
        let unfit = |unfit: Unfit| {
            let row = unfit.row.map(|row| rows.rows.value(range.start + row) % FIRST_JUDGMENT_ROW + 1);
            let row = row.map_or(String::new(), |row| format!(", row {row}"));
            let problem = format!("query {name:?}{row}: {}", unfit.problem);
            Error::place(&settings.input, problem, unfit.remedy)
        };
        let convention = &settings.convention;
        let (relevant, first_row) =
            (convention.count_relevant(convention.judged(&input)), rows.rows.value(range.start));
        let values = self.judge.query(&input).map_err(unfit)?;
        let result = QueryResult { name, documents: scores.len(), relevant, first_row, values };
        self.results.push(&result);
        if settings.metrics.iter().any(Metric::is_pooled) {
            // The convention of the evaluator averages over ties if the order is random.
            self.results.pool.add(&input, self.judge.convention(), 1.0);
        }
        if let Some(judge) = &mut self.dcg {
            let values = judge.query(&input).map_err(unfit)?;
            self.results.dcg.push(values.first().copied().flatten().unwrap_or(0.0));
            self.results.ideal_dcg.push(judge.ideal_dcg(&input, None));
        }
        if settings.segments {
            self.push_segment(rows, range.clone())?;
        }
        if let Some(tag) = &settings.tag {
            let documents = rows.doc_ids.slice(range.start, scores.len());
            let ranked = RankedQuery { query: name, documents: &documents, scores };
            trec::write_run(&mut self.results.run, &ranked, tag)?;
        }
        Ok(())
    }

    fn push_segment(&mut self, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        let segment = |row: usize| rows.segments.is_valid(row).then(|| rows.segments.value(row));
        let first = segment(range.start);
        if let Some(row) = range.clone().find(|row| segment(*row) != first) {
            return Err(Error::place(
                &self.settings.input,
                format_args!(
                    "query {:?} has both {} and {} in the column of --by",
                    rows.query_ids.value(range.start),
                    first.unwrap_or("null"),
                    segment(row).unwrap_or("null")
                ),
                "group by a column that is the same for all documents of a query",
            ));
        }
        self.results.segments.push(first.map(str::to_owned));
        Ok(())
    }

    /// Checks that no document occurs twice in a query.
    fn check_documents(&mut self, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        if rows.doc_ids.null_count() == rows.doc_ids.len() {
            return Ok(());
        }
        self.documents.clear(range.len());
        for row in range {
            if rows.doc_ids.is_valid(row)
                && let Some(before) = self.documents.insert(rows.doc_ids, row)
            {
                return Err(Error::place(
                    &self.settings.input,
                    format_args!(
                        "query {:?} has document {:?} twice, in rows {} and {}",
                        rows.query_ids.value(row),
                        rows.doc_ids.value(row),
                        rows.rows.value(before) + 1,
                        rows.rows.value(row) + 1
                    ),
                    "remove one of them",
                ));
            }
        }
        Ok(())
    }

    fn describe_row(&self, rows: &RowView<'_>, row: usize) -> String {
        let number = rows.rows.value(row) % FIRST_JUDGMENT_ROW + 1;
        format!("row {number} (query {:?})", rows.query_ids.value(row))
    }
}

/// The rows of one query, with their labels.
struct QueryInput<'a> {
    rows: &'a RowView<'a>,
    range: Range<usize>,
    labels: &'a [f32],
    scores: &'a [f64],
    judged: Option<&'a [f32]>,
}
