//! What is in a table of tree strengths: how the mean tree comes to rank well.

use super::column::{numbers, texts};
use super::{Described, line};
use crate::cli::size::shown_count;
use crate::error::Result;
use crate::table::TableReader;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Numbers of splits whose mean is shown, beside the last.
const SHOWN: [usize; 6] = [0, 1, 10, 100, 1000, 10_000];

/// Describes a table of tree strengths.
pub fn describe(table: &TableReader) -> Result<Described> {
    let mut courses: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
    for batch in table.batches() {
        let batch = batch?;
        let (tree, value) = (numbers(table, &batch, "tree")?, numbers(table, &batch, "expected_ndcg")?);
        let split = texts(table, &batch, "split")?;
        for row in 0..batch.num_rows() {
            let key = (split.value(row).to_owned(), tree.value(row) as u64);
            courses.entry(key).or_default().push(value.value(row));
        }
    }
    let trees = courses.keys().map(|(_, tree)| *tree).max().unwrap_or(0);
    let longest = courses.values().map(Vec::len).max().unwrap_or(1) - 1;
    let mut text = String::new();
    line(&mut text, "strength of trees", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "trees", shown_count(trees));
    line(&mut text, "splits at most", shown_count(longest as u64));
    let _ = writeln!(text, "\n{:<12} {:>10} {:>14}", "split", "splits", "expected ndcg"); // a String takes everything
    let mut splits: Vec<&str> = courses.keys().map(|(split, _)| split.as_str()).collect();
    splits.dedup();
    let mut means = Vec::new();
    for split in splits {
        let of_split = || courses.iter().filter(|((name, _), _)| name == split).map(|(_, values)| values);
        let mut shown: Vec<usize> = SHOWN.into_iter().filter(|count| *count < longest).collect();
        shown.push(longest);
        for count in shown {
            // A tree that ended earlier stays what it is.
            let at = |values: &Vec<f64>| values[count.min(values.len() - 1)];
            let mean = of_split().map(at).sum::<f64>() / of_split().count() as f64;
            let _ = writeln!(text, "{split:<12} {:>10} {mean:>14.6}", shown_count(count as u64));
            means.push(json!({ "split": split, "splits": count, "expected_ndcg": mean }));
        }
    }
    let json = json!({
        "strength": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "trees": trees,
        "splits": longest,
        "means": means,
    });
    Ok(Described { text, json })
}
