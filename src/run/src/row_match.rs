//! Matches the rows of tables of predictions: by their order if it is the same, otherwise by query and document ids.

use planetree_base::error::{Error, Result};
use planetree_judge::evaluate::LoadedPredictions;
use std::collections::HashMap;

/// The rows of a table or dataset.
pub(crate) struct MatchKeys<'a> {
    /// Where the rows are, for messages.
    pub place: String,
    /// Query ids, one per query.
    pub queries: &'a [String],
    /// The first row of every query, followed by the number of rows.
    pub bounds: &'a [u32],
    /// Document ids, one per row; `None` for rows without one.
    pub documents: &'a [Option<String>],
}

impl<'a> MatchKeys<'a> {
    /// Returns the rows of a table.
    pub(crate) fn of(table: &'a LoadedPredictions) -> Self {
        let LoadedPredictions { location, queries, bounds, documents, .. } = table;
        MatchKeys { place: location.to_string(), queries, bounds, documents }
    }

    /// Returns the row of `table` for every row. `remedy` says what to do if the rows differ.
    pub(crate) fn find_in(&self, table: &MatchKeys<'_>, remedy: &str) -> Result<Vec<usize>> {
        let rows = self.documents.len();
        let differs = |problem: String, remedy: &str| {
            Error::place(format_args!("{} and {}", self.place, table.place), problem, remedy)
        };
        if rows != table.documents.len() {
            let problem = format!("the numbers of rows differ: {rows} and {}", table.documents.len());
            return Err(differs(problem, remedy));
        }
        let is_same = |row: &usize| match (&self.documents[*row], &table.documents[*row]) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let is_in_order = self.queries == table.queries && self.bounds == table.bounds;
        if is_in_order && (0..rows).all(|row| is_same(&row)) {
            return Ok((0..rows).collect());
        }
        let with_columns = format!("{remedy}, with query_id and doc_id columns");
        let unmatched = || {
            let problem = "the rows differ in order, and not all have a doc_id to match them by";
            differs(problem.to_owned(), &with_columns)
        };
        let found: HashMap<(&str, &str), usize> =
            table.ids().ok_or_else(unmatched)?.into_iter().zip(0..).collect();
        if found.len() < rows {
            let problem = format!("{} has the same document twice in a query", table.place);
            return Err(differs(problem, &with_columns));
        }
        let row_of = |(query, document): &(&str, &str)| {
            found.get(&(*query, *document)).copied().ok_or_else(|| {
                let problem =
                    format!("{} has no row for query {query:?}, document {document:?}", table.place);
                differs(problem, &with_columns)
            })
        };
        self.ids().ok_or_else(unmatched)?.iter().map(row_of).collect()
    }

    /// Returns the query and document ids of all rows; `None` if a row has no document id.
    fn ids(&self) -> Option<Vec<(&str, &str)>> {
        let queries = self.queries.iter().zip(self.bounds.windows(2));
        let queries =
            queries.flat_map(|(query, bounds)| std::iter::repeat_n(query, (bounds[1] - bounds[0]) as usize));
        let ids = queries.zip(self.documents);
        ids.map(|(query, document)| Some((query.as_str(), document.as_deref()?))).collect()
    }
}
