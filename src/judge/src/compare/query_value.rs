//! What is known of each query of a system: the value of the metric, and what it was taken from.

use planetree_base::error::{Error, Result};
use std::fmt;

/// One query of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryValue {
    /// The query's name.
    pub query: String,
    /// The metric's value; `None` if the convention does not count the query.
    pub value: Option<f64>,
    /// How many documents were ranked, and how many of them are relevant, where known.
    pub documents: Option<(u64, u64)>,
}

/// Sorts the queries by their names, so that the order of the rows changes no result; an error if one
/// cannot be compared.
pub fn checked(
    place: impl fmt::Display,
    metric: &str,
    mut queries: Vec<QueryValue>,
) -> Result<Vec<QueryValue>> {
    if queries.is_empty() {
        return Err(Error::place(place, "there are no queries in it", "name a file with some queries"));
    }
    queries.sort_by(|one, other| one.query.cmp(&other.query));
    if let Some(twice) = queries.windows(2).find(|pair| pair[0].query == pair[1].query) {
        return Err(Error::place(
            place,
            format_args!("query {:?} is there more than once", twice[0].query),
            "give every query a name of its own, and a value once",
        ));
    }
    let is_faulty = |query: &&QueryValue| query.value.is_some_and(|value| !value.is_finite());
    if let Some(faulty) = queries.iter().find(is_faulty) {
        let value = faulty.value.unwrap_or_default();
        return Err(Error::place(
            place,
            format_args!("query {:?}: {metric} is {value}, which is no number to compare", faulty.query),
            "look at the scores and labels of that query, and evaluate them again",
        ));
    }
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(values: &[(&str, f64)]) -> String {
        let query = |(name, value): &(&str, f64)| QueryValue {
            query: (*name).to_owned(),
            value: Some(*value),
            documents: None,
        };
        match checked("a.parquet", "err", values.iter().map(query).collect()) {
            Ok(queries) => queries.iter().map(|query| query.query.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn queries_are_sorted_or_refused() {
        assert_eq!(problem(&[("b", 0.5), ("a", 0.25), ("10", 1.0), ("9", 0.0)]), "10 9 a b");
        assert_eq!(problem(&[]), "a.parquet: there are no queries in it");
        assert_eq!(
            problem(&[("b", 0.5), ("a", 0.25), ("b", 1.0)]),
            "a.parquet: query \"b\" is there more than once"
        );
        assert_eq!(
            problem(&[("b", f64::NAN), ("a", 0.25)]),
            "a.parquet: query \"b\": err is NaN, which is no number to compare"
        );
        assert!(problem(&[("b", 1.0), ("a", f64::INFINITY)]).contains("\"a\": err is inf"));
    }
}
