//! Checks that evaluated systems ranked the same queries.

use super::report::EvaluatedSystem;
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_count;
use planetree_judge::evaluate::Results;
use std::collections::HashSet;

/// Fails unless two systems ranked the same queries, because otherwise their means are not comparable.
pub(super) fn check_same_queries(first: &EvaluatedSystem, name: &str, results: &Results) -> Result<()> {
    let (ours, theirs): (HashSet<&str>, HashSet<&str>) =
        (first.results.names().collect(), results.names().collect());
    let mut problems = Vec::new();
    for (known, other, system) in [(&theirs, &first.results, name), (&ours, results, first.name.as_str())] {
        const SHOWN: usize = 3;
        let absent: Vec<&str> = other.names().filter(|query| !known.contains(query)).collect();
        if !absent.is_empty() {
            let more = if absent.len() > SHOWN { ", ..." } else { "" };
            let first = absent[..absent.len().min(SHOWN)].join(", ");
            problems.push(format!("{system} lacks {} ({first}{more})", shown_count(absent.len() as u64)));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::usage(
        format_args!("the systems ranked different queries: {}", problems.join("; ")),
        "evaluate them separately, or restrict them to the queries that all have",
    ))
}
