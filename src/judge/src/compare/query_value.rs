//! Defines the value of a metric for one query in one system, and checks lists of such values.

use planetree_base::error::{Error, Result};
use std::fmt;

/// The value of a metric for one query in one system.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryValue {
    /// Name of the query.
    pub query: String,
    /// Value of the metric; `None` if the rules for the metric exclude the query from the mean.
    pub value: Option<f64>,
    /// Numbers of ranked and of relevant documents, if known.
    pub documents: Option<(u64, u64)>,
}

/// Sorts the queries by name, so that the order of rows does not affect results. Returns an error if there are no
/// queries, if a query occurs twice, or if a value is not finite.
pub fn sorted_and_checked(
    place: impl fmt::Display,
    metric: &str,
    mut queries: Vec<QueryValue>,
) -> Result<Vec<QueryValue>> {
    if queries.is_empty() {
        return Err(Error::place(place, "no queries", "choose a file that contains queries"));
    }
    queries.sort_by(|one, other| one.query.cmp(&other.query));
    if let Some(twice) = queries.windows(2).find(|pair| pair[0].query == pair[1].query) {
        return Err(Error::place(
            place,
            format_args!("query {:?} appears more than once", twice[0].query),
            "remove the duplicate rows: each query may appear only once per system",
        ));
    }
    let is_not_finite = |query: &&QueryValue| query.value.is_some_and(|value| !value.is_finite());
    if let Some(query) = queries.iter().find(is_not_finite) {
        let value = query.value.unwrap_or_default();
        return Err(Error::place(
            place,
            format_args!("query {:?}: {metric} is {value}, which cannot be compared", query.query),
            "check the scores and labels of the query, and evaluate it again",
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
        match sorted_and_checked("a.parquet", "err", values.iter().map(query).collect()) {
            Ok(queries) => queries.iter().map(|query| query.query.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn queries_are_sorted_or_rejected() {
        assert_eq!(problem(&[("b", 0.5), ("a", 0.25), ("10", 1.0), ("9", 0.0)]), "10 9 a b");
        assert_eq!(problem(&[]), "a.parquet: no queries");
        assert_eq!(
            problem(&[("b", 0.5), ("a", 0.25), ("b", 1.0)]),
            "a.parquet: query \"b\" appears more than once"
        );
        assert_eq!(
            problem(&[("b", f64::NAN), ("a", 0.25)]),
            "a.parquet: query \"b\": err is NaN, which cannot be compared"
        );
        assert!(problem(&[("b", 1.0), ("a", f64::INFINITY)]).contains("\"a\": err is inf"));
    }
}
