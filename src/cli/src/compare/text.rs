//! Formats a comparison as text: two systems in detail, or a matrix of all pairs.

use super::ComparedRankings;
use crate::options::file_name;
use planetree_base::size::shown_count;
use planetree_judge::compare::{Alternative, PairComparison, SignificanceTest};
use std::fmt::Write;

/// Formats the whole comparison.
pub(super) fn text(comparison: &ComparedRankings) -> String {
    let mut text = String::new();
    let direction = if comparison.read.higher_is_better { "higher" } else { "lower" };
    line(&mut text, "metric", format_args!("{}, {direction} is better", comparison.read.metric));
    line(&mut text, "convention", &comparison.read.convention);
    if let Some(map) = &comparison.read.label_map {
        line(&mut text, "label map", map);
    }
    let queries = shown_count(comparison.aligned.queries.len() as u64);
    match comparison.aligned.uncounted as u64 {
        0 => line(&mut text, "queries", queries),
        uncounted => {
            let uncounted = shown_count(uncounted);
            line(&mut text, "queries", format_args!("{queries}, and {uncounted} without a value"));
        }
    }
    line(&mut text, "alternative", alternative(comparison));
    match comparison.pairs.as_slice() {
        [pair] => add_pair(&mut text, comparison, pair),
        _ => add_matrix(&mut text, comparison),
    }
    text
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<22}{value}"); // writing to a String cannot fail
}

/// Describes the alternative hypothesis of the tests.
fn alternative(comparison: &ComparedRankings) -> String {
    let [first, second] = if comparison.pairs.len() == 1 { ["A", "B"] } else { ["the earlier", "the later"] };
    let name = comparison.options.alternative.name();
    match comparison.options.alternative {
        Alternative::TwoSided => name.to_owned(),
        Alternative::Greater => format!("{name}: {second} has greater values than {first}"),
        Alternative::Less => format!("{name}: {second} has smaller values than {first}"),
    }
}

fn add_pair(text: &mut String, comparison: &ComparedRankings, pair: &PairComparison) {
    for (letter, system) in [("A", pair.a), ("B", pair.b)] {
        let (mean, ranking) = (comparison.means[system], &comparison.read.systems[system]);
        let (name, place) = (&ranking.name, &ranking.place);
        // Unless the user gave the name, it is part of the place.
        let file = file_name(place);
        let is_of_file = file == name || file.split('.').next() == Some(name.as_str());
        let is_given = *place == ranking.file && !is_of_file;
        match is_given {
            true => line(text, letter, format_args!("{mean:.6}  {name}: {place}")),
            false => line(text, letter, format_args!("{mean:.6}  {place}")),
        }
    }
    line(text, "difference, B - A", format_args!("{:+.6}", pair.difference.mean));
    if let Some(interval) = pair.interval {
        let (low, high) = (interval.low, interval.high);
        let resamples = shown_count(interval.resamples);
        let name = format!("{} % interval", percent(interval.level));
        line(text, &name, format_args!("{low:+.6} to {high:+.6} (bootstrap, {resamples} resamples)"));
    }
    match pair.difference.effect_size() {
        Some(effect) => line(text, "effect size", format_args!("{effect:+.4} standard deviations")),
        None => line(text, "effect size", "undefined: all differences are equal"),
    }
    let [wins, ties, losses] = [pair.wins, pair.ties, pair.losses].map(shown_count);
    line(text, "query by query", format_args!("B better {wins}, same {ties}, A better {losses}"));
    let _ = writeln!(text, "\n{:<22}{:>12}  details", "test", "p");
    let assignments = shown_count(pair.randomisation.permutations);
    let details = if pair.randomisation.permutations == 1 {
        "the only sign assignment".to_owned()
    } else if pair.randomisation.is_exact {
        format!("all {assignments} sign assignments")
    } else {
        format!("{assignments} random sign assignments, seed {}", comparison.options.seed)
    };
    add_test(text, comparison, SignificanceTest::Randomisation, pair, &details);
    let details = pair.t_test.map_or_else(
        || "undefined: all differences are equal".to_owned(),
        |test| format!("t = {:.4}, {} degrees of freedom", test.t, shown_count(test.degrees)),
    );
    add_test(text, comparison, SignificanceTest::T, pair, &details);
    let ranks = &pair.wilcoxon;
    let method = ranks.z.map_or_else(|| "exact".to_owned(), |z| format!("z = {z:.4}"));
    let details =
        format!("W = {}, {} queries that differ, {method}", ranks.statistic(), shown_count(ranks.count));
    add_test(text, comparison, SignificanceTest::Wilcoxon, pair, &details);
    let verdict = if pair.differs { "significant" } else { "not significant" };
    let _ = writeln!(text, "\n{verdict} at {} (* = deciding test)", comparison.options.alpha);
    for (title, queries) in [("most improved by B", &pair.improved), ("most worsened by B", &pair.worsened)] {
        add_changed_queries(text, comparison, pair, title, queries);
    }
}

fn add_test(
    text: &mut String,
    comparison: &ComparedRankings,
    test: SignificanceTest,
    pair: &PairComparison,
    details: &str,
) {
    let mark = if test == comparison.options.test { "*" } else { " " };
    let name = super::test_name(test);
    let p = pair.p(test).map_or_else(|| "-".to_owned(), probability);
    let _ = writeln!(text, "{:<22}{p:>12}  {details}", format!("{name} {mark}"));
}

fn add_changed_queries(
    text: &mut String,
    comparison: &ComparedRankings,
    pair: &PairComparison,
    title: &str,
    queries: &[usize],
) {
    if queries.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title:<22}{:>12}{:>12}{:>12}", "A", "B", "B - A");
    for index in queries {
        let [a, b] = [pair.a, pair.b].map(|system| comparison.aligned.values[system][*index]);
        let query = &comparison.aligned.queries[*index];
        let _ = writeln!(text, "{query:<22}{a:>12.6}{b:>12.6}{:>+12.6}", b - a);
    }
}

fn add_matrix(text: &mut String, comparison: &ComparedRankings) {
    let (systems, pairs) = (&comparison.read.systems, &comparison.pairs);
    let widest = systems.iter().map(|system| system.name.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(text, "\n{:>4}  {:<widest$} {:>10}  file", "", "system", "mean");
    for (index, (system, mean)) in systems.iter().zip(&comparison.means).enumerate() {
        let _ = writeln!(text, "{:>4}  {:<widest$} {mean:>10.6}  {}", index + 1, system.name, system.place);
    }
    let test = super::test_name(comparison.options.test);
    let alpha = comparison.options.alpha;
    let _ = writeln!(
        text,
        "\nrow minus column; * = significant at {alpha} by the {test} test, corrected for {} pairs (Holm)",
        pairs.len()
    );
    let numbers: String = (1..=systems.len()).map(|number| format!("{number:>11}")).collect();
    let _ = writeln!(text, "    {numbers}");
    for row in 0..systems.len() {
        let cells: String = (0..systems.len()).map(|column| cell(pairs, row, column)).collect();
        let _ = writeln!(text, "{:>4}{}", row + 1, cells.trim_end());
    }
    let level = format!("{} % interval", percent(comparison.options.level));
    let _ = writeln!(
        text,
        "\n{:<9} {:>10} {level:>24} {:>8} {:>8} {:>8} {:>10} {:>10}",
        "pair", "difference", "better", "same", "worse", "p", "p (Holm)"
    );
    for pair in pairs {
        let interval = pair.interval.map_or_else(
            || "-".to_owned(),
            |interval| format!("{:+.6} to {:+.6}", interval.low, interval.high),
        );
        let p = pair.p(comparison.options.test);
        let corrected = p.map_or_else(|| "-".to_owned(), |_| probability(pair.corrected));
        let _ = writeln!(
            text,
            "{:<9} {:>+10.6} {interval:>24} {:>8} {:>8} {:>8} {:>10} {corrected:>10}{}",
            format!("{} - {}", pair.b + 1, pair.a + 1),
            pair.difference.mean,
            shown_count(pair.wins),
            shown_count(pair.ties),
            shown_count(pair.losses),
            p.map_or_else(|| "-".to_owned(), probability),
            if pair.differs { " *" } else { "" },
        );
    }
}

/// Formats the mean difference between two systems, with a star if it is significant.
fn cell(pairs: &[PairComparison], row: usize, column: usize) -> String {
    let found = pairs.iter().find(|pair| [pair.a, pair.b] == [row.min(column), row.max(column)]);
    let Some(pair) = found else { return format!("{:>11}", "-  ") };
    let difference = if row > column { pair.difference.mean } else { -pair.difference.mean };
    format!("{difference:>+10.6}{}", if pair.differs { "*" } else { " " })
}

/// Formats a probability, in scientific notation if it is small.
fn probability(p: f64) -> String {
    if p >= 0.001 { format!("{p:.4}") } else { format!("{p:.2e}") }
}

/// Converts a fraction to a percentage, rounded so that no floating-point error is visible.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
