//! The text files of trec_eval: runs (`query Q0 document rank score tag`) and judgments, called qrels
//! (`query iteration document relevance`). As in trec_eval, the rank of a run is not looked at: the scores
//! make the order.

use super::lines::Lines;
use super::rows::{JUDGMENTS, RowColumns};
use crate::plan::{Batches, Open, SORT_ROWS};
use arrow::array::{Array, Float32Array, Float64Array, RecordBatch, StringArray, StringBuilder, UInt64Array};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, RUN_FORMATS, TextOutput, replaces};
use std::io::Write;
use std::sync::Arc;

/// The rows of a run. Their labels are to be found in judgments.
pub fn run_reader(location: &Location) -> Open {
    reader(location, Kind::Run)
}

/// The judgments of qrels.
pub fn qrels_reader(location: &Location) -> Open {
    reader(location, Kind::Qrels)
}

#[derive(Clone, Copy)]
enum Kind {
    Run,
    Qrels,
}

fn reader(location: &Location, kind: Kind) -> Open {
    let location = location.clone();
    Arc::new(move || {
        let mut lines = Lines::open(&location)?;
        let mut is_done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch = (!is_done).then(|| next_batch(&mut lines, kind)).transpose();
            let batch = batch.map(Option::flatten).transpose();
            is_done = !matches!(batch, Some(Ok(_)));
            batch
        })) as Batches)
    })
}

fn next_batch(lines: &mut Lines, kind: Kind) -> Result<Option<RecordBatch>> {
    let (mut queries, mut documents) = (StringBuilder::new(), StringBuilder::new());
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    while values.len() < SORT_ROWS {
        if !lines.advance()? {
            break;
        }
        let line = lines.text();
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next();
        let found = match kind {
            Kind::Run => (next(), next(), next(), next(), next(), next().map(|_| next())),
            Kind::Qrels => (next(), next(), next(), Some(""), next(), Some(next())),
        };
        let (Some(query), Some(_), Some(document), Some(_), Some(value), Some(None)) = found else {
            let (what, form) = match kind {
                Kind::Run => ("a run", "query Q0 document rank score tag"),
                Kind::Qrels => ("judgments", "query iteration document relevance"),
            };
            let count = line.split_ascii_whitespace().count();
            return Err(lines.fault(
                format_args!("found {count} words, expected a line of {what}: {form}"),
                "check that the right file is named, and for white space within names",
            ));
        };
        let parsed = fast_float2::parse::<f64, _>(value).ok().filter(|value| !value.is_nan());
        let Some(parsed) = parsed else {
            let what = if matches!(kind, Kind::Run) { "score" } else { "relevance" };
            return Err(lines.fault(format_args!("{value:?} is no {what}"), "write a number"));
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
    let (labels, scores, numbers) = match kind {
        Kind::Run => (Float32Array::new_null(rows), Float64Array::from(values), numbers),
        Kind::Qrels => (
            Float32Array::from_iter_values(values.iter().map(|value| *value as f32)),
            Float64Array::new_null(rows),
            numbers.iter().map(|number| JUDGMENTS + number).collect(),
        ),
    };
    RowColumns {
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

/// Prepares to write a run, in the place of one with the same tag at most.
pub fn run_output(location: &Location, tag: String) -> Result<TextOutput> {
    let (_, compression) = RUN_FORMATS.of(location)?;
    let is_ours = move |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words[..], [_, "Q0", _, rank, score, last]
            if last == tag && rank.parse::<u64>().is_ok() && score.parse::<f64>().is_ok())
    };
    let guard = replaces(move |head| head.lines().is_some_and(|mut lines| lines.all(&is_ours)));
    TextOutput::create(location, compression, guard)
}

/// A query's documents and their scores.
pub struct RankedQuery<'a> {
    /// Its name.
    pub query: &'a str,
    /// The documents.
    pub documents: &'a StringArray,
    /// Their scores.
    pub scores: &'a [f64],
}

/// A query's documents as lines of a run, the highest score first, equal ones in the order given.
pub fn write_run(text: &mut Vec<u8>, ranked: &RankedQuery<'_>, tag: &str) -> Result<()> {
    let RankedQuery { query, documents, scores } = ranked;
    let faulty = |what: &str, name: &str| {
        Error::place(
            format_args!("query {query:?}"),
            format_args!("{what} {name:?} has white space, which a run cannot hold"),
            "leave --write-run out, or rename it",
        )
    };
    let splits = |name: &str| name.is_empty() || name.contains(|letter: char| letter.is_ascii_whitespace());
    if splits(query) {
        return Err(faulty("the query's name", query));
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Adding zero makes the two zeros one score.
    order.sort_by(|one, other| (scores[*other] + 0.0).total_cmp(&(scores[*one] + 0.0)));
    for (rank, row) in (1..).zip(order) {
        if documents.is_null(row) {
            return Err(Error::place(
                format_args!("query {query:?}"),
                "there is a document without a doc_id, which a run needs",
                "leave --write-run out, or evaluate predictions with a doc_id",
            ));
        }
        let document = documents.value(row);
        if splits(document) {
            return Err(faulty("document", document));
        }
        let _ = writeln!(text, "{query} Q0 {document} {rank} {} {tag}", scores[row]); // memory takes everything
    }
    Ok(())
}
