//! Counts the queries and documents that rankings and relevance judgments have in common. If there are none, the files
//! do not belong together, and all metrics would be 0.

use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_count};
use planetree_base::storage::Location;

/// What a ranking and judgments from another file have in common.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlap {
    /// Number of queries with ranked documents and judgments.
    queries: u64,
    /// Number of ranked documents of these queries.
    ranked: u64,
    /// Number of judgments of these queries.
    judgments: u64,
    /// Number of ranked documents of these queries that have a judgment.
    documents: u64,
    /// The first query without judgments.
    unjudged_query: Option<String>,
    /// The first query without ranked documents.
    unranked_query: Option<String>,
    /// The first ranked document, and the first judged one of its query.
    first_documents: Option<[String; 2]>,
}

/// The documents of a query with ranked documents and judgments.
pub(super) struct QueryOverlap<'a> {
    /// Number of ranked documents.
    pub ranked: usize,
    /// Number of judgments.
    pub judgments: usize,
    /// Number of ranked documents that have a judgment.
    pub documents: u64,
    /// The first ranked and the first judged document.
    pub first: [&'a str; 2],
}

impl Overlap {
    pub(super) fn add(&mut self, query: &QueryOverlap<'_>) {
        self.queries += 1;
        self.ranked += query.ranked as u64;
        self.judgments += query.judgments as u64;
        self.documents += query.documents;
        self.first_documents.get_or_insert_with(|| query.first.map(str::to_owned));
    }

    pub(super) fn add_unjudged(&mut self, query: &str) {
        self.unjudged_query.get_or_insert_with(|| query.to_owned());
    }

    pub(super) fn add_unranked(&mut self, query: &str) {
        self.unranked_query.get_or_insert_with(|| query.to_owned());
    }

    /// Adds the next part of the input.
    pub(super) fn append(&mut self, other: Overlap) {
        self.queries += other.queries;
        self.ranked += other.ranked;
        self.judgments += other.judgments;
        self.documents += other.documents;
        self.unjudged_query = self.unjudged_query.take().or(other.unjudged_query);
        self.unranked_query = self.unranked_query.take().or(other.unranked_query);
        self.first_documents = self.first_documents.take().or(other.first_documents);
    }

    /// Returns an error if no query or no document is in both files. `unjudged` and `unranked` are the numbers of queries
    /// that only the ranking and only the judgments have.
    pub(super) fn check(
        &self,
        ranking: &str,
        judgments: &Location,
        [unjudged, unranked]: [u64; 2],
    ) -> Result<()> {
        if let Some(query) = self.unjudged_query.as_ref().filter(|_| self.queries == 0) {
            let judged = match &self.unranked_query {
                Some(query) => format!("{}, such as {query:?}", counted(unranked, "query", "queries")),
                None => "none".to_owned(),
            };
            return Err(Error::place(
                ranking,
                format_args!(
                    "no query has judgments: the ranking has {}, such as {query:?}, and {judgments} judges {judged}",
                    counted(unjudged, "query", "queries")
                ),
                "check that ranking and judgments use the same query ids",
            ));
        }
        if let Some([ranked, judged]) = self.first_documents.as_ref().filter(|_| self.documents == 0) {
            return Err(Error::place(
                ranking,
                format_args!(
                    "no ranked document has a judgment: of the queries in both files, the ranking has {}, such as {ranked:?}, \
                     and {judgments} judges {}, such as {judged:?}",
                    counted(self.ranked, "document", "documents"),
                    shown_count(self.judgments)
                ),
                "check that ranking and judgments use the same document ids",
            ));
        }
        Ok(())
    }

    /// Returns a warning if most of the judged queries have no ranked documents. `unranked` is their number.
    pub fn warning(&self, unranked: u64) -> Option<String> {
        let judged = self.queries + unranked;
        (self.queries > 0 && 2 * self.queries < judged).then(|| {
            format!(
                "only {} of {} have ranked documents",
                shown_count(self.queries),
                counted(judged, "judged query", "judged queries")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::storage::Access;

    fn query(documents: u64) -> QueryOverlap<'static> {
        QueryOverlap { ranked: 3, judgments: 2, documents, first: ["d1", "D-1"] }
    }

    fn message(overlap: &Overlap, counts: [u64; 2]) -> String {
        let judgments = Location::parse("qrels", Access::Explicit).unwrap();
        overlap.check("a.run", &judgments, counts).unwrap_err().to_string()
    }

    #[test]
    fn files_without_a_common_query_or_document_are_errors() {
        let mut overlap = Overlap::default();
        overlap.add_unjudged("q1");
        overlap.add_unjudged("q2");
        assert_eq!(
            message(&overlap, [2, 0]),
            "a.run: no query has judgments: the ranking has 2 queries, such as \"q1\", and qrels judges none"
        );
        overlap.add_unranked("x");
        assert!(message(&overlap, [2, 1]).ends_with("and qrels judges 1 query, such as \"x\""));
        overlap.add(&query(0));
        assert_eq!(
            message(&overlap, [2, 1]),
            "a.run: no ranked document has a judgment: of the queries in both files, the ranking has 3 documents, such as \
             \"d1\", and qrels judges 2, such as \"D-1\""
        );
        let judgments = Location::parse("qrels", Access::Explicit).unwrap();
        let mut both = Overlap::default();
        both.add(&query(1));
        overlap.append(both);
        assert!(overlap.check("a.run", &judgments, [2, 1]).is_ok());
        assert!(Overlap::default().check("a.run", &judgments, [0, 0]).is_ok());
    }

    #[test]
    fn a_small_part_of_the_judged_queries_is_a_warning() {
        let mut overlap = Overlap::default();
        assert_eq!(overlap.warning(5), None);
        overlap.add(&query(1));
        assert_eq!(overlap.warning(1), None);
        assert_eq!(overlap.warning(2).as_deref(), Some("only 1 of 3 judged queries have ranked documents"));
    }
}
