//! Formats a comparison as a table for papers: the mean of each system, with the numbers of the systems that it is
//! significantly better than.

use super::Comparison;
use std::fmt::Write;

/// Formats the table in Markdown.
pub(super) fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("| | system | {} |\n| --- | --- | --- |\n", comparison.read.metric);
    for row in rows(comparison) {
        let marks = if row.beats.is_empty() { String::new() } else { format!(" <sup>{}</sup>", row.beats) };
        let mean = if row.is_best { format!("**{}**", row.mean) } else { row.mean };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {mean}{marks} |", row.number, row.name.replace('|', "\\|"));
    }
    let _ = writeln!(text, "\n{}", caption(comparison));
    text
}

/// Formats the table in LaTeX, with the rules of the package booktabs.
pub(super) fn latex(comparison: &Comparison) -> String {
    let metric = escaped(&comparison.read.metric);
    let mut text = format!("\\begin{{tabular}}{{rll}}\n\\toprule\n & system & {metric} \\\\\n\\midrule\n");
    for row in rows(comparison) {
        let marks = if row.beats.is_empty() { String::new() } else { format!("$^{{{}}}$", row.beats) };
        let mean = if row.is_best { format!("\\textbf{{{}}}", row.mean) } else { row.mean };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} & {} & {mean}{marks} \\\\", row.number, escaped(&row.name));
    }
    let _ = writeln!(text, "\\bottomrule\n\\end{{tabular}}\n% {}", caption(comparison));
    text
}

/// A system in the table.
struct TableRow {
    number: usize,
    name: String,
    mean: String,
    is_best: bool,
    /// Numbers of the systems that this one is significantly better than, separated by commas.
    beats: String,
}

fn rows(comparison: &Comparison) -> Vec<TableRow> {
    let higher = comparison.read.higher_is_better;
    let best = comparison.means.iter().copied().reduce(|a, b| if (b > a) == higher { b } else { a });
    let row = |(index, (system, mean)): (usize, (&planetree_judge::compare::ComparedSystem, &f64))| {
        let beaten = comparison.pairs.iter().filter(|pair| pair.differs).filter_map(|pair| {
            let better =
                if (pair.mean_b > pair.mean_a) == higher { (pair.b, pair.a) } else { (pair.a, pair.b) };
            (better.0 == index).then(|| (better.1 + 1).to_string())
        });
        TableRow {
            number: index + 1,
            name: system.name.clone(),
            mean: format!("{mean:.4}"),
            is_best: best == Some(*mean),
            beats: beaten.collect::<Vec<_>>().join(","),
        }
    };
    comparison.read.systems.iter().zip(&comparison.means).enumerate().map(row).collect()
}

/// Says what the marks mean.
fn caption(comparison: &Comparison) -> String {
    let correction = match comparison.pairs.len() {
        1 => String::new(),
        pairs => format!(", corrected for {pairs} pairs (Holm)"),
    };
    format!(
        "{} queries, convention {}; a superscript lists the systems that are significantly worse ({} {} test at {}{correction})",
        comparison.aligned.queries.len(),
        comparison.read.convention,
        comparison.options.alternative.name(),
        super::test_name(comparison.options.test),
        comparison.options.alpha,
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
