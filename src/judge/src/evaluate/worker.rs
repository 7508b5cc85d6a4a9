//! Judging the queries of one stretch of rows. A stretch may begin and end within a query: its first and
//! last queries are handed back as rows, to be put together with those of its neighbours.

use super::documents::DocumentTable;
use super::judgments::Judgments;
use super::results::{QueryResult, Results};
use super::rows::{JUDGMENTS, RowView};
use super::trec::{self, RankedQuery};
use arrow::array::{Array, RecordBatch};
use arrow::compute::concat_batches;
use planetree_base::error::{Error, Result};
use planetree_metric::{Convention, Judge, Metric, QueryRows, Unfit};
use std::ops::Range;

/// What is to be found out about every query.
pub struct Settings {
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// By which rules.
    pub convention: Convention,
    /// Where labels come from, if not from the rows themselves.
    pub judgments: Option<Judgments>,
    /// Whether queries that have judgments but no ranked document count, with an empty ranking.
    pub complete: bool,
    /// Whether DCG and its ideal are wanted.
    pub gains: bool,
    /// Whether queries are counted under a column of the rows.
    pub segments: bool,
    /// The tag of the run that is to be written.
    pub tag: Option<String>,
    /// What the rows are called in messages.
    pub input: String,
}

/// One stretch, judged.
pub struct Stretch {
    /// The rows of the first query.
    pub head: Vec<RecordBatch>,
    /// The queries between.
    pub between: Results,
    /// The rows of the last query; `None` if there is only one.
    pub tail: Option<Vec<RecordBatch>>,
}

/// What judges.
pub struct Worker<'s> {
    settings: &'s Settings,
    judge: Judge,
    /// Takes DCG, where that is asked for.
    dcg: Option<Judge>,
    /// Whether ties are settled by document ids.
    needs_documents: bool,
    documents: DocumentTable,
    results: Results,
}

impl<'s> Worker<'s> {
    /// A worker without results yet.
    pub fn new(settings: &'s Settings) -> Self {
        let Settings { metrics, convention, gains, .. } = settings;
        Worker {
            settings,
            judge: Judge::new(metrics, convention),
            dcg: gains.then(|| Judge::new(&[Metric::Dcg(None)], convention)),
            needs_documents: convention.needs_documents(),
            documents: DocumentTable::default(),
            results: Results::new(metrics.len()),
        }
    }

    /// The results so far.
    pub fn take_results(&mut self) -> Results {
        std::mem::replace(&mut self.results, Results::new(self.settings.metrics.len()))
    }

    /// Judges a stretch.
    pub fn judge_stretch(mut self, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<Stretch> {
        let (mut head, mut open): (Option<Vec<RecordBatch>>, Vec<RecordBatch>) = (None, Vec::new());
        for batch in batches {
            let batch = batch?;
            let rows = RowView::of(&batch);
            let mut start = 0;
            if batch.num_rows() == 0 {
                continue;
            }
            if let Some(last) = open.last() {
                let before = RowView::of(last).query_ids;
                if before.value(before.len() - 1) == rows.query_ids.value(0) {
                    start = rows.run_end(0);
                    open.push(batch.slice(0, start));
                    if start == batch.num_rows() {
                        continue;
                    }
                }
                let ended = std::mem::take(&mut open);
                if head.is_none() {
                    head = Some(ended);
                } else {
                    self.judge_rows(&ended)?;
                }
            }
            loop {
                let end = rows.run_end(start);
                if end == batch.num_rows() {
                    open.push(batch.slice(start, end - start));
                    break;
                }
                if head.is_none() {
                    head = Some(vec![batch.slice(start, end - start)]);
                } else {
                    self.judge_query(&rows, start..end)?;
                }
                start = end;
            }
        }
        let (head, tail) = match head {
            Some(head) => (head, Some(open)),
            None => (open, None),
        };
        Ok(Stretch { head, between: self.results, tail })
    }

    /// Judges the queries of some rows, which are all of theirs.
    pub fn judge_rows(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let Some(first) = batches.first() else { return Ok(()) };
        let joined = concat_batches(first.schema_ref(), batches).map_err(|error| {
            Error::place(&self.settings.input, error, "a query may have 2 GiB of names at most")
        })?;
        let rows = RowView::of(&joined);
        let mut start = 0;
        while start < joined.num_rows() {
            let end = rows.run_end(start);
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

    /// A query whose rows have their labels.
    fn judge_labelled(&mut self, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        let labels = &rows.labels.values()[range.clone()];
        let is_missing = |row: &usize| rows.labels.is_null(*row) || rows.labels.value(*row).is_nan();
        if (rows.labels.null_count() > 0 || labels.iter().any(|label| label.is_nan()))
            && let Some(row) = range.clone().find(is_missing)
        {
            return Err(Error::place(
                &self.settings.input,
                format_args!("{} has no label", self.shown_row(rows, row)),
                "name the labels: --labels DATASET, or --qrels FILE",
            ));
        }
        let scores = &rows.scores.values()[range.clone()];
        self.check_documents(rows, range.clone())?;
        let query = QueryInput { rows, range, labels, scores, judged: None };
        self.judge_complete(&query)
    }

    /// A query whose rows are both ranked documents and judgments.
    fn judge_with(&mut self, judgments: &Judgments, rows: &RowView<'_>, range: Range<usize>) -> Result<()> {
        // Judgments have the higher numbers, so they come last.
        let ranked = range.start..range.clone().find(|row| rows.scores.is_null(*row)).unwrap_or(range.end);
        let judged = ranked.end..range.end;
        let name = rows.query_ids.value(range.start);
        if judged.is_empty() {
            if let Judgments::Dataset(location) = judgments {
                return Err(Error::place(
                    location,
                    format_args!("there is no query {name:?}, which {} has", self.settings.input),
                    "name the dataset that the predictions were made for",
                ));
            }
            self.results.unjudged += 1;
            return Ok(());
        }
        if ranked.is_empty() {
            self.results.unranked += 1;
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
                        "document {:?} of query {name:?} has two labels, {} and {}",
                        rows.doc_ids.value(row),
                        rows.labels.value(before),
                        rows.labels.value(row)
                    ),
                    "leave one of them out",
                ));
            }
        }
        let mut labels = Vec::with_capacity(ranked.len());
        for row in ranked.clone() {
            if rows.doc_ids.is_null(row) {
                return Err(Error::place(
                    &self.settings.input,
                    format_args!(
                        "{} has no doc_id, by which its label would be found",
                        self.shown_row(rows, row)
                    ),
                    "evaluate predictions that have a doc_id, or scores with --scores and --data",
                ));
            }
            let found = self.documents.get(rows.doc_ids, rows.doc_ids.value(row));
            labels.push(match (found, judgments) {
                (Some(found), _) if rows.labels.is_valid(found) => rows.labels.value(found),
                (None, Judgments::Qrels(_)) => 0.0, // nobody looked at it
                _ => {
                    return Err(Error::place(
                        judgments.location(),
                        format_args!(
                            "there is no label of document {:?} of query {name:?}",
                            rows.doc_ids.value(row)
                        ),
                        "name the dataset that the predictions were made for",
                    ));
                }
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

    /// A query whose labels are all known.
    fn judge_complete(&mut self, query: &QueryInput<'_>) -> Result<()> {
        let QueryInput { rows, range, labels, scores, judged } = query;
        let (settings, name) = (self.settings, rows.query_ids.value(range.start));
        if let Some(row) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::place(
                &settings.input,
                format_args!("{}: the score is not a number", self.shown_row(rows, range.start + row)),
                "score the documents again: a ranking needs scores that can be compared",
            ));
        }
        let has_documents = self.needs_documents && rows.doc_ids.null_count() == 0;
        let documents: Option<Vec<&str>> = has_documents
            .then(|| range.clone().take(scores.len()).map(|row| rows.doc_ids.value(row)).collect());
        let input = QueryRows { labels, scores, documents: documents.as_deref(), judged: *judged };
        let unfit = |unfit: Unfit| {
            let row = unfit.row.map(|row| rows.rows.value(range.start + row) % JUDGMENTS + 1);
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
                    "query {:?} has {} and {} in the column of --by",
                    rows.query_ids.value(range.start),
                    first.unwrap_or("nothing"),
                    segment(row).unwrap_or("nothing")
                ),
                "count queries by a column that is the same for all documents of a query",
            ));
        }
        self.results.segments.push(first.map(str::to_owned));
        Ok(())
    }

    /// An error if a query has a document twice.
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
                    "leave one of them out",
                ));
            }
        }
        Ok(())
    }

    fn shown_row(&self, rows: &RowView<'_>, row: usize) -> String {
        let number = rows.rows.value(row) % JUDGMENTS + 1;
        format!("row {number} (query {:?})", rows.query_ids.value(row))
    }
}

/// A query whose labels are all known.
struct QueryInput<'a> {
    rows: &'a RowView<'a>,
    range: Range<usize>,
    labels: &'a [f32],
    scores: &'a [f64],
    judged: Option<&'a [f32]>,
}
