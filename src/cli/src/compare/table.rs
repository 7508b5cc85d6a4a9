//! Formats comparisons as a table for papers: the mean of each system by each metric, with the numbers of the systems
//! that it is significantly better than.

use super::ComparedRankings;
use std::fmt::Write;

/// Formats the table in Markdown, with a column for each comparison.
pub(super) fn markdown(comparisons: &[ComparedRankings]) -> String {
    let mut text = "| | system |".to_owned();
    for comparison in comparisons {
        let _ = write!(text, " {} |", comparison.read.metric); // writing to a String cannot fail
    }
    let _ = writeln!(text, "\n| --- | --- |{}", " --- |".repeat(comparisons.len()));
    for (index, name) in systems(comparisons) {
        let _ = write!(text, "| {} | {} |", index + 1, name.replace('|', "\\|"));
        for cell in comparisons.iter().map(|comparison| TableCell::of(comparison, index)) {
            let marks =
                if cell.beats.is_empty() { String::new() } else { format!(" <sup>{}</sup>", cell.beats) };
            let mean = if cell.is_best { format!("**{}**", cell.mean) } else { cell.mean };
            let _ = write!(text, " {mean}{marks} |");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\n{}", caption(comparisons));
    text
}

/// Formats the table in LaTeX, with the rules of the package booktabs.
pub(super) fn latex(comparisons: &[ComparedRankings]) -> String {
    let columns = "l".repeat(comparisons.len());
    let mut text = format!("\\begin{{tabular}}{{rl{columns}}}\n\\toprule\n & system");
    for comparison in comparisons {
        let _ = write!(text, " & {}", escaped(&comparison.read.metric)); // writing to a String cannot fail
    }
    text.push_str(" \\\\\n\\midrule\n");
    for (index, name) in systems(comparisons) {
        let _ = write!(text, "{} & {}", index + 1, escaped(name));
        for cell in comparisons.iter().map(|comparison| TableCell::of(comparison, index)) {
            let marks = if cell.beats.is_empty() { String::new() } else { format!("$^{{{}}}$", cell.beats) };
            let mean = if cell.is_best { format!("\\textbf{{{}}}", cell.mean) } else { cell.mean };
            let _ = write!(text, " & {mean}{marks}");
        }
        text.push_str(" \\\\\n");
    }
    let _ = writeln!(text, "\\bottomrule\n\\end{{tabular}}\n% {}", caption(comparisons));
    text
}

/// Returns the systems, each with its index. They are the same in all comparisons.
fn systems(comparisons: &[ComparedRankings]) -> impl Iterator<Item = (usize, &str)> {
    let systems = comparisons.first().into_iter().flat_map(|comparison| &comparison.read.systems);
    systems.map(|system| system.name.as_str()).enumerate()
}

/// A system by a metric.
struct TableCell {
    mean: String,
    is_best: bool,
    /// Numbers of the systems that this one is significantly better than, separated by commas.
    beats: String,
}

impl TableCell {
    fn of(comparison: &ComparedRankings, index: usize) -> Self {
        let higher = comparison.read.higher_is_better;
        let best = comparison.means.iter().copied().reduce(|a, b| if (b > a) == higher { b } else { a });
        let mean = comparison.means[index];
        let beaten = comparison.pairs.iter().filter(|pair| pair.differs).filter_map(|pair| {
            let better =
                if (pair.mean_b > pair.mean_a) == higher { (pair.b, pair.a) } else { (pair.a, pair.b) };
            (better.0 == index).then(|| (better.1 + 1).to_string())
        });
        TableCell {
            mean: format!("{mean:.4}"),
            is_best: best == Some(mean),
            beats: beaten.collect::<Vec<_>>().join(","),
        }
    }
}

/// Says what the marks mean.
fn caption(comparisons: &[ComparedRankings]) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let by_metric = if comparisons.len() > 1 { " by each metric" } else { "" };
    let correction = match first.pairs.len() {
        1 => String::new(),
        pairs => format!(", corrected for {pairs} pairs{by_metric} (Holm)"),
    };
    // A metric that skips queries, such as under empty=skip, has fewer of them.
    let count = |comparison: &ComparedRankings| comparison.aligned.queries.len();
    let queries = match comparisons.iter().all(|comparison| count(comparison) == count(first)) {
        true => format!("{} queries", count(first)),
        false => {
            let of_metric =
                |comparison: &ComparedRankings| format!("{} ({})", count(comparison), comparison.read.metric);
            format!("queries: {}", comparisons.iter().map(of_metric).collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "{queries}, convention {}; a superscript lists the systems that are significantly worse ({} {} test at {}{correction})",
        first.read.convention,
        first.options.alternative.name(),
        super::test_name(first.options.test),
        first.options.alpha,
    )
}

/// Escapes the special characters of LaTeX.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_latex_are_escaped() {
        assert_eq!(
            escaped("a_b & 50% {x} \\y ^2"),
            "a\\_b \\& 50\\% \\{x\\} \\textbackslash{}y \\textasciicircum{}2"
        );
    }
}
