//! Several systems on the same queries. A query that one of them lacks is an error that names it: a mean
//! over other queries is another mean.

use super::query_value::QueryValue;
use planetree_base::error::{Error, Result};
use std::cmp::Ordering;

/// A system to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// What it is called in the results.
    pub name: String,
    /// The file that it was read from.
    pub file: String,
    /// The file, and which of several systems in it.
    pub place: String,
    /// Its queries, sorted by name.
    pub queries: Vec<QueryValue>,
}

/// The values of all systems, query by query.
#[derive(Debug, Clone, PartialEq)]
pub struct Aligned {
    /// The queries that count, sorted by name.
    pub queries: Vec<String>,
    /// For each system the values of those queries.
    pub values: Vec<Vec<f64>>,
    /// How many queries no system has a value for: the convention does not count them.
    pub uncounted: usize,
    /// What is worth a second look.
    pub notes: Vec<String>,
}

impl Aligned {
    /// Brings the systems' queries together.
    pub fn of(systems: &[System]) -> Result<Self> {
        let [first, others @ ..] = systems else {
            return Ok(Aligned { queries: Vec::new(), values: Vec::new(), uncounted: 0, notes: Vec::new() });
        };
        let mut notes = Vec::new();
        for other in others {
            check_names(first, other)?;
            check_counted(first, other)?;
            notes.extend(note_on_documents(first, other));
        }
        let counted =
            |system: &System| -> Vec<f64> { system.queries.iter().filter_map(|query| query.value).collect() };
        let names = first.queries.iter().filter(|query| query.value.is_some());
        let aligned = Aligned {
            queries: names.map(|query| query.query.clone()).collect(),
            values: systems.iter().map(counted).collect(),
            uncounted: first.queries.iter().filter(|query| query.value.is_none()).count(),
            notes,
        };
        if aligned.queries.is_empty() {
            return Err(Error::place(
                &first.place,
                "no query of it counts under its convention",
                "choose a convention that gives queries without relevant documents a value",
            ));
        }
        Ok(aligned)
    }
}

/// An error that names the queries which only one of two systems has.
fn check_names(first: &System, other: &System) -> Result<()> {
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
            let verb = if queries.len() == 1 { "is" } else { "are" };
            format!("{} {verb} missing in {}: {}", queries.len(), system.place, some_of(queries))
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::place(
        format_args!("{} and {}", first.place, other.place),
        format_args!("they do not have the same queries; {}", missing.join("; ")),
        "evaluate all systems on the same queries",
    ))
}

/// An error if one system has a value for a query and another has none.
fn check_counted(first: &System, other: &System) -> Result<()> {
    let pairs = first.queries.iter().zip(&other.queries);
    let apart: Vec<&str> = pairs
        .filter(|(one, two)| one.value.is_some() != two.value.is_some())
        .map(|(one, _)| one.query.as_str())
        .collect();
    if apart.is_empty() {
        return Ok(());
    }
    Err(Error::place(
        format_args!("{} and {}", first.place, other.place),
        format_args!("only one of them has a value for {}", some_of(&apart)),
        "evaluate all systems with the same labels and the same convention",
    ))
}

/// Says where two systems were not given the same documents: their values may not be comparable.
fn note_on_documents(first: &System, other: &System) -> Option<String> {
    let pairs = first.queries.iter().zip(&other.queries);
    let differing = pairs.filter(|(one, two)| {
        one.documents.zip(two.documents).is_some_and(|(documents, others)| documents != others)
    });
    let queries: Vec<&str> = differing.map(|(one, _)| one.query.as_str()).collect();
    (!queries.is_empty()).then(|| {
        format!(
            "{} and {} do not have the same numbers of documents or of relevant ones for {}",
            first.place,
            other.place,
            some_of(&queries)
        )
    })
}

/// The first few of some queries, and how many there are.
fn some_of(queries: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = queries[..queries.len().min(SHOWN)].join(", ");
    match queries.len() {
        ..=SHOWN => shown,
        all => format!("{shown} and {} more", all - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(place: &str, values: &[(&str, Option<f64>)]) -> System {
        let query = |(name, value): &(&str, Option<f64>)| QueryValue {
            query: (*name).to_owned(),
            value: *value,
            documents: Some((10, 2)),
        };
        let [name, file, place] = [place; 3].map(str::to_owned);
        System { name, file, place, queries: values.iter().map(query).collect() }
    }

    fn problem(systems: &[System]) -> String {
        Aligned::of(systems).unwrap_err().to_string()
    }

    #[test]
    fn values_stand_side_by_side_and_uncounted_queries_are_told() {
        let a = system("a", &[("1", Some(0.5)), ("2", None), ("3", Some(0.0))]);
        let b = system("b", &[("1", Some(0.25)), ("2", None), ("3", Some(1.0))]);
        let aligned = Aligned::of(&[a, b]).unwrap();
        assert_eq!((aligned.queries.join(" "), aligned.uncounted), ("1 3".to_owned(), 1));
        assert_eq!(aligned.values, [[0.5, 0.0], [0.25, 1.0]]);
        assert!(aligned.notes.is_empty());
    }

    #[test]
    fn queries_that_one_side_lacks_are_named() {
        let names: Vec<String> = (0..9).map(|number| format!("q{number}")).collect();
        let all: Vec<(&str, Option<f64>)> = names.iter().map(|name| (name.as_str(), Some(0.5))).collect();
        let whole = system("a", &all);
        assert_eq!(
            problem(&[whole.clone(), system("b", &all[1..])]),
            "a and b: they do not have the same queries; 1 is missing in b: q0"
        );
        assert_eq!(
            problem(&[system("b", &all[7..]), whole.clone()]),
            "b and a: they do not have the same queries; 7 are missing in b: q0, q1, q2, q3, q4 and 2 more"
        );
        assert_eq!(
            problem(&[whole.clone(), whole.clone(), system("c", &[&all[..8], &[("r", Some(1.0))]].concat())]),
            "a and c: they do not have the same queries; 1 is missing in c: q8; 1 is missing in a: r"
        );
    }

    #[test]
    fn a_query_counts_for_all_or_for_none() {
        let a = system("a", &[("1", Some(0.5)), ("2", None)]);
        let b = system("b", &[("1", Some(0.25)), ("2", Some(0.0))]);
        assert_eq!(problem(&[a.clone(), b]), "a and b: only one of them has a value for 2");
        let nothing = system("n", &[("1", None), ("2", None)]);
        assert_eq!(problem(&[nothing.clone(), nothing]), "n: no query of it counts under its convention");
    }

    #[test]
    fn other_documents_are_worth_a_note() {
        let a = system("a", &[("1", Some(0.5)), ("2", Some(0.5))]);
        let mut b = a.clone();
        b.place = "b".to_owned();
        b.queries[1].documents = Some((10, 3));
        let notes = Aligned::of(&[a, b]).unwrap().notes;
        let expected = "a and b do not have the same numbers of documents or of relevant ones for 2";
        assert_eq!(notes, [expected]);
    }
}
