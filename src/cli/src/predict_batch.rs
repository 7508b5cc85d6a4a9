//! Implements `planetree predict --batch`: scores queries as they arrive on standard input.
//!
//! A program keeps the command running and writes one query after the other in LETOR text. A query ends at an empty
//! line, at a line with another query id, or at the end of the input; its scores are printed at once, one per line. The
//! lines are decoded as `planetree convert` does it, so scores are those of `predict --scores` on the converted rows.

use planetree_base::error::{Error, Result};
use planetree_base::size::counted;
use planetree_data::ingest::decode::letor::LetorDecoder;
use planetree_data::ingest::decode::{Decoder, Lines};
use planetree_data::rows::fault::Fault;
use planetree_data::rows::{Block, BlockBuilder};
use planetree_model::model::Model;
use planetree_model::predict::Scorer;
use std::collections::HashSet;
use std::io::{BufRead, Read, Write};
use std::ops::ControlFlow;
use std::time::Instant;

/// Name of the input in messages.
const INPUT: &str = "standard input";
/// The byte order mark of UTF-8, which some programs write before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 16 << 20;
/// Maximum number of features in a line, as in `planetree convert`, unless the model has more.
const MAX_FEATURES: u32 = 10_000;
/// Maximum size of the text of a query, in bytes.
const MAX_QUERY: usize = 1 << 30;
/// Number of latencies that are remembered for the summary.
const MAX_LATENCIES: usize = 1 << 20;

/// What was scored.
#[derive(Debug, Default)]
pub(crate) struct BatchReport {
    pub queries: u64,
    pub rows: u64,
    /// Microseconds from the last line of a query to its scores, of the first queries.
    latencies: Vec<f32>,
}

impl BatchReport {
    fn add(&mut self, rows: usize, begun: Instant) {
        self.queries += 1;
        self.rows += rows as u64;
        if self.latencies.len() < MAX_LATENCIES {
            self.latencies.push(begun.elapsed().as_secs_f32() * 1e6);
        }
    }

    /// Returns the microseconds that a share of the queries took at most.
    pub(crate) fn latency(&self, share: f64) -> f32 {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f32::total_cmp);
        let place = (sorted.len() as f64 * share) as usize;
        sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    /// Returns a sentence for the user.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} of {} scored, each query in {:.0} µs (median), {:.0} µs (99 %)",
            counted(self.rows, "document", "documents"),
            counted(self.queries, "query", "queries"),
            self.latency(0.5),
            self.latency(0.99)
        )
    }
}

/// Scores all queries of the input. `write` prints the scores of one query, and breaks once the reader has closed the
/// output.
pub(crate) fn score_input(
    model: &Model,
    index_base: u32,
    mut input: impl BufRead,
    write: &mut dyn FnMut(&[f64]) -> Result<ControlFlow<()>>,
) -> Result<BatchReport> {
    let mut queries = Queries::new(model, index_base)?;
    let mut report = BatchReport::default();
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = (&mut input).take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let count = read.map_err(|error| Error::io(INPUT, "read", error))?;
        number += 1;
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if count as u64 > MAX_LINE {
            return Err(queries.fault(
                number,
                "the line is longer than 16 MiB",
                "write one document per line",
            ));
        }
        let is_blank = line.trim_ascii().is_empty();
        if is_blank || !queries.has_same_query(&line) {
            let begun = Instant::now();
            let rows = queries.score()?;
            if rows > 0 && write(&queries.scores)?.is_break() {
                return Ok(report);
            }
            if rows > 0 {
                report.add(rows, begun);
            }
        }
        if count == 0 {
            return Ok(report);
        }
        if !is_blank {
            queries.add(&line, number)?;
        }
    }
}

/// Collects the lines of a query and scores them.
struct Queries {
    scorer: Scorer,
    decoder: LetorDecoder,
    builder: BlockBuilder,
    /// Pairs of the place of a feature in the text and its index in the model.
    features: Vec<(usize, usize)>,
    width: usize,
    /// The lines of the query so far.
    text: Vec<u8>,
    first_line: u64,
    query: Vec<u8>,
    /// Values of the rows, row by row.
    values: Vec<f32>,
    scores: Vec<f64>,
}

impl Queries {
    fn new(model: &Model, index_base: u32) -> Result<Self> {
        let scorer = Scorer::new(model)?;
        let places = places_of(model);
        let mut features: Vec<(usize, usize)> =
            scorer.used_features().map(|feature| (places[feature as usize], feature as usize)).collect();
        features.sort_unstable();
        for (_, feature) in &features {
            let feature = &model.features[*feature];
            if !feature.words.is_empty() {
                return Err(Error::place(
                    &model.origin,
                    format_args!("feature {} is categorical, and LETOR text has numbers only", feature.name),
                    "convert the rows with `planetree convert`, and pass them with --data",
                ));
            }
        }
        let decoder = LetorDecoder {
            index_base,
            max_features: features.last().map_or(0, |(place, _)| *place as u32 + 1).max(MAX_FEATURES),
            lenient: false,
            query_in_line: true,
            unlabelled: true,
        };
        Ok(Queries {
            scorer,
            decoder,
            builder: BlockBuilder::default(),
            features,
            width: model.features.len(),
            text: Vec::new(),
            first_line: 1,
            query: Vec::new(),
            values: Vec::new(),
            scores: Vec::new(),
        })
    }

    /// Returns whether a line belongs to the current query. Comments do.
    fn has_same_query(&self, line: &[u8]) -> bool {
        self.text.is_empty() || query_of(line).is_none_or(|query| query == self.query.as_slice())
    }

    fn add(&mut self, line: &[u8], number: u64) -> Result<()> {
        if self.text.is_empty() {
            (self.first_line, self.query) = (number, query_of(line).unwrap_or_default().to_vec());
        }
        self.text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.text.push(b'\n');
        }
        match self.text.len() {
            0..=MAX_QUERY => Ok(()),
            _ => {
                Err(self.fault(number, "the query is larger than 1 GiB", "separate queries with empty lines"))
            }
        }
    }

    /// Scores the current query, and begins a new one. Returns the number of rows.
    fn score(&mut self) -> Result<usize> {
        if self.text.is_empty() {
            return Ok(0);
        }
        let lines = Lines { text: &self.text, first_line: self.first_line };
        self.decoder.decode(lines, &mut self.builder).map_err(line_error)?;
        let block = self.builder.finish();
        self.text.clear();
        let rows = block.rows();
        if rows == 0 {
            return Ok(0);
        }
        self.fill_values(&block);
        self.scores.clear();
        self.scores.resize(rows, 0.0);
        self.scorer.score(&self.values, &mut self.scores);
        Ok(rows)
    }

    fn fill_values(&mut self, block: &Block) {
        self.values.clear();
        self.values.resize(block.rows() * self.width, f32::NAN);
        for (place, feature) in &self.features {
            let column = block.features.column(*place);
            let mut values = column.values.iter();
            for row in (0..block.rows()).filter(|row| column.present.has(*row)) {
                self.values[row * self.width + feature] = values.next().copied().unwrap_or(f32::NAN);
            }
        }
    }

    fn fault(&self, line: u64, problem: &str, remedy: &str) -> Error {
        Error::place(format_args!("{INPUT}:{line}"), problem, remedy)
    }
}

/// Returns the error for a line that cannot be read. The options of `planetree convert` that its remedy may name do not
/// exist here.
fn line_error(fault: Fault) -> Error {
    let mut error = fault.in_file(INPUT);
    if let Error::Input(input) = &mut error {
        input.remedy = "write LABEL qid:ID INDEX:VALUE ...; the label may be left out".to_owned();
    }
    error
}

/// Returns the query id of a line: its first or second word. A comment has none.
fn query_of(line: &[u8]) -> Option<&[u8]> {
    if line.trim_ascii_start().starts_with(b"#") {
        return None;
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.by_ref().take(2).find_map(|word| word.strip_prefix(b"qid:"))
}

/// Returns the place of each feature of a model in LETOR text, counted from 0. Features that are called f1, f2 and so on
/// have the place in their name, as in a dataset that was converted from such text. Otherwise the features of the model
/// are in its order.
fn places_of(model: &Model) -> Vec<usize> {
    let number = |name: &str| name.strip_prefix('f')?.parse::<usize>().ok()?.checked_sub(1);
    let is_plain = |place: &usize| *place < 1 << 24;
    let numbers = model.features.iter().map(|feature| number(&feature.name).filter(is_plain));
    let numbered: Option<Vec<usize>> = numbers.collect();
    let are_distinct = |places: &Vec<usize>| places.iter().collect::<HashSet<_>>().len() == places.len();
    numbered.filter(are_distinct).unwrap_or_else(|| (0..model.features.len()).collect())
}

/// Prints the scores of a query at once. Stops if the reader has closed the pipe.
pub(crate) fn print_scores(
    output: &mut impl Write,
    scores: &[f64],
    write_score: impl Fn(&mut Vec<u8>, f64) -> std::io::Result<()>,
) -> Result<ControlFlow<()>> {
    let mut text = Vec::with_capacity(scores.len() * 20);
    let written = scores.iter().try_for_each(|score| write_score(&mut text, *score));
    match written.and_then(|()| output.write_all(&text)).and_then(|()| output.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Error::io("standard output", "write", error)),
    }
}

#[cfg(test)]
mod tests;
