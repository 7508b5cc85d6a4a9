//! A comparison for people: two systems in detail, or all pairs of several at a glance.

use super::Compared;
use planetree_base::size::shown_count;
use planetree_judge::compare::{Pair, Test};
use std::fmt::Write;

/// The whole comparison.
pub fn text(compared: &Compared) -> String {
    let mut text = String::new();
    let direction = if compared.read.higher_is_better { "higher" } else { "lower" };
    line(&mut text, "metric", format_args!("{}, {direction} is better", compared.read.metric));
    line(&mut text, "convention", &compared.read.convention);
    let queries = shown_count(compared.aligned.queries.len() as u64);
    match compared.aligned.uncounted as u64 {
        0 => line(&mut text, "queries", queries),
        uncounted => {
            let uncounted = shown_count(uncounted);
            line(&mut text, "queries", format_args!("{queries}, and {uncounted} that do not count"));
        }
    }
    match compared.pairs.as_slice() {
        [pair] => add_pair(&mut text, compared, pair),
        _ => add_matrix(&mut text, compared),
    }
    text
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<22}{value}"); // a String takes everything
}

fn add_pair(text: &mut String, compared: &Compared, pair: &Pair) {
    for (letter, system) in [("A", pair.a), ("B", pair.b)] {
        let (mean, place) = (compared.means[system], &compared.read.systems[system].place);
        line(text, letter, format_args!("{mean:.6}  {place}"));
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
        None => line(text, "effect size", "none: the differences do not vary"),
    }
    let [wins, ties, losses] = [pair.wins, pair.ties, pair.losses].map(shown_count);
    line(text, "query by query", format_args!("B better {wins}, same {ties}, A better {losses}"));
    let _ = writeln!(text, "\n{:<22}{:>12}  how", "test", "p");
    let dealt = shown_count(pair.randomisation.permutations);
    let how = if pair.randomisation.is_exact {
        format!("all {dealt} ways to deal out signs")
    } else {
        format!("{dealt} random ways to deal out signs, seed {}", compared.options.seed)
    };
    add_test(text, compared, Test::Randomisation, pair, &how);
    let how = pair.t_test.map_or_else(
        || "not taken: the differences do not vary".to_owned(),
        |test| format!("t = {:.4}, {} degrees of freedom", test.t, shown_count(test.degrees)),
    );
    add_test(text, compared, Test::T, pair, &how);
    let ranks = &pair.wilcoxon;
    let way = ranks.z.map_or_else(|| "exact".to_owned(), |z| format!("z = {z:.4}"));
    let how = format!("W = {}, {} queries that differ, {way}", ranks.statistic(), shown_count(ranks.count));
    add_test(text, compared, Test::Wilcoxon, pair, &how);
    let verdict = if pair.differs { "the systems differ" } else { "no difference shown" };
    let _ = writeln!(text, "\n{verdict} at {} (* decides)", compared.options.alpha);
    for (title, places) in [("most improved by B", &pair.improved), ("most worsened by B", &pair.worsened)] {
        add_moved(text, compared, pair, title, places);
    }
}

fn add_test(text: &mut String, compared: &Compared, test: Test, pair: &Pair, how: &str) {
    let mark = if test == compared.options.test { "*" } else { " " };
    let name = super::name_of(test);
    let p = pair.p(test).map_or_else(|| "-".to_owned(), probability);
    let _ = writeln!(text, "{:<22}{p:>12}  {how}", format!("{name} {mark}"));
}

fn add_moved(text: &mut String, compared: &Compared, pair: &Pair, title: &str, places: &[usize]) {
    if places.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title:<22}{:>12}{:>12}{:>12}", "A", "B", "B - A");
    for place in places {
        let [a, b] = [pair.a, pair.b].map(|system| compared.aligned.values[system][*place]);
        let query = &compared.aligned.queries[*place];
        let _ = writeln!(text, "{query:<22}{a:>12.6}{b:>12.6}{:>+12.6}", b - a);
    }
}

fn add_matrix(text: &mut String, compared: &Compared) {
    let (systems, pairs) = (&compared.read.systems, &compared.pairs);
    let widest = systems.iter().map(|system| system.name.chars().count()).max().unwrap_or(0).max(6);
    let _ = writeln!(text, "\n{:>4}  {:<widest$} {:>10}  file", "", "system", "mean");
    for (place, (system, mean)) in systems.iter().zip(&compared.means).enumerate() {
        let _ = writeln!(text, "{:>4}  {:<widest$} {mean:>10.6}  {}", place + 1, system.name, system.place);
    }
    let test = super::name_of(compared.options.test);
    let alpha = compared.options.alpha;
    let _ = writeln!(
        text,
        "\nrow less column; * differ at {alpha} by the {test} test, corrected for {} pairs (Holm)",
        pairs.len()
    );
    let numbers: String = (1..=systems.len()).map(|number| format!("{number:>11}")).collect();
    let _ = writeln!(text, "    {numbers}");
    for row in 0..systems.len() {
        let cells: String = (0..systems.len()).map(|column| cell(pairs, row, column)).collect();
        let _ = writeln!(text, "{:>4}{}", row + 1, cells.trim_end());
    }
    let level = format!("{} % interval", percent(compared.options.level));
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
        let p = pair.p(compared.options.test);
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

/// The mean difference of two systems, with a star if they differ.
fn cell(pairs: &[Pair], row: usize, column: usize) -> String {
    let found = pairs.iter().find(|pair| [pair.a, pair.b] == [row.min(column), row.max(column)]);
    let Some(pair) = found else { return format!("{:>11}", "-  ") };
    let difference = if row > column { pair.difference.mean } else { -pair.difference.mean };
    format!("{difference:>+10.6}{}", if pair.differs { "*" } else { " " })
}

/// A probability in few characters, without losing small ones.
fn probability(p: f64) -> String {
    if p >= 0.001 { format!("{p:.4}") } else { format!("{p:.2e}") }
}

/// A share of one as a percentage, without digits that say nothing.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
