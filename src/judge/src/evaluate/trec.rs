//! Reads and writes TREC runs, which are rankings with lines of the form `query Q0 document rank score tag`, and
//! reads relevance judgments (qrels) with lines of the form `query iteration document relevance`. As in trec_eval,
//! the rank in a run is ignored and the order is determined by the scores.

use super::lines::TextLines;
use super::rows::{FIRST_JUDGMENT_ROW, RankingColumns};
use crate::plan::{BatchIterator, OpenReader, SORT_ROWS};
use arrow::array::{Array, Float32Array, Float64Array, RecordBatch, StringArray, StringBuilder, UInt64Array};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, RUN_FORMATS, TextOutput, replaces};
use std::io::Write;
use std::sync::Arc;

/// Returns a reader of a run. Its rows have scores but no labels.
pub(crate) fn run_reader(location: &Location) -> OpenReader {
    reader(location, TrecFormat::Run)
}

/// Returns a reader of relevance judgments. Its rows have labels but no scores.
pub(crate) fn qrels_reader(location: &Location) -> OpenReader {
    reader(location, TrecFormat::Qrels)
}

#[derive(Clone, Copy)]
enum TrecFormat {
    Run,
    Qrels,
}

fn reader(location: &Location, format: TrecFormat) -> OpenReader {
    let location = location.clone();
    Arc::new(move || {
        let mut lines = TextLines::open(&location)?;
        let mut is_done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch = (!is_done).then(|| next_batch(&mut lines, format)).transpose();
            let batch = batch.map(Option::flatten).transpose();
            is_done = !matches!(batch, Some(Ok(_)));
            batch
        })) as BatchIterator)
    })
}

fn next_batch(lines: &mut TextLines, format: TrecFormat) -> Result<Option<RecordBatch>> {
    let (mut queries, mut documents) = (StringBuilder::new(), StringBuilder::new());
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    while values.len() < SORT_ROWS {
        if !lines.advance()? {
            break;
        }
        let line = lines.text();
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next();
        let found = match format {
            TrecFormat::Run => (next(), next(), next(), next(), next(), next().map(|_| next())),
            TrecFormat::Qrels => (next(), next(), next(), Some(""), next(), Some(next())),
        };
        let (Some(query), Some(_), Some(document), Some(_), Some(value), Some(None)) = found else {
            let (what, expected) = match format {
                TrecFormat::Run => ("a run", "query Q0 document rank score tag"),
                TrecFormat::Qrels => ("qrels", "query iteration document relevance"),
            };
            let count = line.split_ascii_whitespace().count();
            return Err(lines.fault(
                format_args!("expected a line of {what} ({expected}), found {count} words"),
                "check that this is the right file, and that no name contains white space",
            ));
        };
        let parsed = fast_float2::parse::<f64, _>(value).ok().filter(|value| !value.is_nan());
        let Some(parsed) = parsed else {
            let what = if matches!(format, TrecFormat::Run) { "score" } else { "relevance" };
            return Err(lines.fault(format_args!("invalid {what} {value:?}"), "write a number"));
        };
        queries.append_value(query);
        documents.append_value(document);
        values.push(parsed);
        numbers.push(lines.number() - 1);
    }
    if values.is_empty() {
        return Ok(None);
    }
    let rows = values.len();
    let (labels, scores, numbers) = match format {
        TrecFormat::Run => (Float32Array::new_null(rows), Float64Array::from(values), numbers),
        TrecFormat::Qrels => (
            Float32Array::from_iter_values(values.iter().map(|value| *value as f32)),
            Float64Array::new_null(rows),
            numbers.iter().map(|number| FIRST_JUDGMENT_ROW + number).collect(),
        ),
    };
    RankingColumns {
        query_ids: queries.finish(),
        doc_ids: documents.finish(),
        labels,
        scores,
        first_row: 0,
        segments: None,
    }
    .with_numbers(UInt64Array::from(numbers))
    .map(Some)
}

/// Creates a run file. An existing file is replaced only if it is a run with the same tag.
pub(crate) fn run_output(location: &Location, tag: String) -> Result<TextOutput> {
    let (_, compression) = RUN_FORMATS.of(location)?;
    let is_ours = move |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], [_, "Q0", _, rank, score, last]
            if last == tag && rank.parse::<u64>().is_ok() && score.parse::<f64>().is_ok())
    };
    let guard = replaces(move |head| head.lines().is_some_and(|mut lines| lines.all(&is_ours)));
    TextOutput::create(location, compression, guard)
}

/// The documents of a query with their scores, in input order.
pub struct RankedQuery<'a> {
    /// Name of the query.
    pub query: &'a str,
    /// Document ids.
    pub documents: &'a StringArray,
    /// Scores of the documents.
    pub scores: &'a [f64],
}

/// Appends a query to a run, in descending order of scores. Documents with equal scores stay in input order.
pub fn write_run(text: &mut Vec<u8>, ranked: &RankedQuery<'_>, tag: &str) -> Result<()> {
    let RankedQuery { query, documents, scores } = ranked;
    let invalid = |what: &str, name: &str| {
        Error::place(
            format_args!("query {query:?}"),
            format_args!(
                "{what} {name:?} is empty or contains white space, which the TREC run format does not allow"
            ),
            "omit --write-run, or choose a name without white space",
        )
    };
    let is_invalid =
        |name: &str| name.is_empty() || name.contains(|letter: char| letter.is_ascii_whitespace());
    if is_invalid(query) {
        return Err(invalid("query", query));
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Adding zero turns -0.0 into 0.0, so that both count as equal scores.
    order.sort_by(|one, other| (scores[*other] + 0.0).total_cmp(&(scores[*one] + 0.0)));
    for (rank, row) in (1..).zip(order) {
        if documents.is_null(row) {
            return Err(Error::place(
                format_args!("query {query:?}"),
                "a document has no doc_id, which a TREC run requires",
                "omit --write-run, or evaluate predictions with doc_id",
            ));
        }
        let document = documents.value(row);
        if is_invalid(document) {
            return Err(invalid("document", document));
        }
        let _ = writeln!(text, "{query} Q0 {document} {rank} {} {tag}", scores[row]); // writing to memory cannot fail
    }
    Ok(())
}
