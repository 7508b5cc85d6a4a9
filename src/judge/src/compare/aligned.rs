//! Aligns the metric values of several systems by query. A system is a ranking that is compared with others. A query
//! that one system lacks is an error, because means over different queries are not comparable.

use super::query_value::QueryValue;
use planetree_base::error::{Error, Result};
use std::cmp::Ordering;

/// A system to compare, with a value for every query.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedSystem {
    /// Name of the system in the output.
    pub name: String,
    /// File that the system was read from.
    pub file: String,
    /// Where the system was read from, for messages: the file and, if the file contains several systems, the name of
    /// the system.
    pub place: String,
    /// Values of the queries, sorted by query name.
    pub queries: Vec<QueryValue>,
}

/// The values of all systems, query by query.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedSystems {
    /// Names of the queries that have values, sorted.
    pub queries: Vec<String>,
    /// For each system, its values in the order of `queries`.
    pub values: Vec<Vec<f64>>,
    /// Number of queries without a value in any system, because the rules for the metric exclude them from the mean.
    pub uncounted: usize,
    /// Messages about differences in the input that may make the values incomparable.
    pub notes: Vec<String>,
}

impl AlignedSystems {
    /// Aligns the systems. Returns an error unless all systems have values for the same queries.
    pub fn of(systems: &[ComparedSystem]) -> Result<Self> {
        let [first, others @ ..] = systems else {
            return Ok(AlignedSystems {
                queries: Vec::new(),
                values: Vec::new(),
                uncounted: 0,
                notes: Vec::new(),
            });
        };
        let mut notes = Vec::new();
        for other in others {
            check_names(first, other)?;
            check_counted(first, other)?;
            notes.extend(document_note(first, other));
        }
        let counted = |system: &ComparedSystem| -> Vec<f64> {
            system.queries.iter().filter_map(|query| query.value).collect()
        };
        let names = first.queries.iter().filter(|query| query.value.is_some());
        let aligned = AlignedSystems {
            queries: names.map(|query| query.query.clone()).collect(),
            values: systems.iter().map(counted).collect(),
            uncounted: first.queries.iter().filter(|query| query.value.is_none()).count(),
            notes,
        };
        if aligned.queries.is_empty() {
            return Err(Error::place(
                &first.place,
                "the metric is undefined for every query under this convention",
                "choose a convention that assigns a value to queries without relevant documents",
            ));
        }
        Ok(aligned)
    }
}

/// Checks that both systems have the same queries. Otherwise, the error names the missing queries.
fn check_names(first: &ComparedSystem, other: &ComparedSystem) -> Result<()> {
    let (mut only_first, mut only_other) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (first.queries.as_slice(), other.queries.as_slice());
    while !(left.is_empty() && right.is_empty()) {
        let order = match (left.first(), right.first()) {
            (Some(one), Some(two)) => one.query.cmp(&two.query),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => only_first.push(left[0].query.as_str()),
            Ordering::Greater => only_other.push(right[0].query.as_str()),
            Ordering::Equal => {}
        }
        left = &left[usize::from(order.is_le())..];
        right = &right[usize::from(order.is_ge())..];
    }
    let sides = [(&only_first, other), (&only_other, first)];
    let missing: Vec<String> = sides
        .iter()
        .filter(|(queries, _)| !queries.is_empty())
        .map(|(queries, system)| {
            format!("{} missing from {}: {}", queries.len(), system.place, first_few(queries))
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::place(
        format_args!("{} and {}", first.place, other.place),
        format_args!("queries differ; {}", missing.join("; ")),
        "evaluate all systems on the same queries",
    ))
}

/// Checks that every query has a value either in both systems or in neither.
fn check_counted(first: &ComparedSystem, other: &ComparedSystem) -> Result<()> {
    let pairs = first.queries.iter().zip(&other.queries);
    let differing: Vec<&str> = pairs
        .filter(|(one, two)| one.value.is_some() != two.value.is_some())
        .map(|(one, _)| one.query.as_str())
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(Error::place(
        format_args!("{} and {}", first.place, other.place),
        format_args!("only one of the two has a value for {}", first_few(&differing)),
        "evaluate all systems with the same labels and convention",
    ))
}

/// Returns a note if the numbers of documents differ between two systems, because their values may not be comparable.
fn document_note(first: &ComparedSystem, other: &ComparedSystem) -> Option<String> {
    let pairs = first.queries.iter().zip(&other.queries);
    let differing = pairs.filter(|(one, two)| {
        one.documents.zip(two.documents).is_some_and(|(documents, others)| documents != others)
    });
    let queries: Vec<&str> = differing.map(|(one, _)| one.query.as_str()).collect();
    (!queries.is_empty()).then(|| {
        format!(
            "{} and {} have different numbers of documents or relevant documents for {}",
            first.place,
            other.place,
            first_few(&queries)
        )
    })
}

/// Returns the names of the first few queries and the number of the remaining ones.
fn first_few(queries: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = queries[..queries.len().min(SHOWN)].join(", ");
    match queries.len() {
        ..=SHOWN => shown,
        count => format!("{shown} and {} more", count - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(place: &str, values: &[(&str, Option<f64>)]) -> ComparedSystem {
        let query = |(name, value): &(&str, Option<f64>)| QueryValue {
            query: (*name).to_owned(),
            value: *value,
            documents: Some((10, 2)),
        };
        let [name, file, place] = [place; 3].map(str::to_owned);
        ComparedSystem { name, file, place, queries: values.iter().map(query).collect() }
    }

    fn problem(systems: &[ComparedSystem]) -> String {
        AlignedSystems::of(systems).unwrap_err().to_string()
    }

    #[test]
    fn values_are_aligned_and_uncounted_queries_counted() {
        let a = system("a", &[("1", Some(0.5)), ("2", None), ("3", Some(0.0))]);
        let b = system("b", &[("1", Some(0.25)), ("2", None), ("3", Some(1.0))]);
        let aligned = AlignedSystems::of(&[a, b]).unwrap();
        assert_eq!((aligned.queries.join(" "), aligned.uncounted), ("1 3".to_owned(), 1));
        assert_eq!(aligned.values, [[0.5, 0.0], [0.25, 1.0]]);
        assert!(aligned.notes.is_empty());
    }

    #[test]
    fn missing_queries_are_named() {
        let names: Vec<String> = (0..9).map(|number| format!("q{number}")).collect();
        let all: Vec<(&str, Option<f64>)> = names.iter().map(|name| (name.as_str(), Some(0.5))).collect();
        let whole = system("a", &all);
        assert_eq!(
            problem(&[whole.clone(), system("b", &all[1..])]),
            "a and b: queries differ; 1 missing from b: q0"
        );
        assert_eq!(
            problem(&[system("b", &all[7..]), whole.clone()]),
            "b and a: queries differ; 7 missing from b: q0, q1, q2, q3, q4 and 2 more"
        );
        assert_eq!(
            problem(&[whole.clone(), whole.clone(), system("c", &[&all[..8], &[("r", Some(1.0))]].concat())]),
            "a and c: queries differ; 1 missing from c: q8; 1 missing from a: r"
        );
    }

    #[test]
    fn a_query_must_count_for_all_systems_or_none() {
        let a = system("a", &[("1", Some(0.5)), ("2", None)]);
        let b = system("b", &[("1", Some(0.25)), ("2", Some(0.0))]);
        assert_eq!(problem(&[a.clone(), b]), "a and b: only one of the two has a value for 2");
        let nothing = system("n", &[("1", None), ("2", None)]);
        assert_eq!(
            problem(&[nothing.clone(), nothing]),
            "n: the metric is undefined for every query under this convention"
        );
    }

    #[test]
    fn different_documents_cause_a_note() {
        let a = system("a", &[("1", Some(0.5)), ("2", Some(0.5))]);
        let mut b = a.clone();
        b.place = "b".to_owned();
        b.queries[1].documents = Some((10, 3));
        let notes = AlignedSystems::of(&[a, b]).unwrap().notes;
        let expected = "a and b have different numbers of documents or relevant documents for 2";
        assert_eq!(notes, [expected]);
    }
}
