//! Formats the result of a blend as text.

use super::Blended;
use planetree_base::size::{counted, shown_count};
use planetree_run::blend::{ALPHA, Gain, Quality};
use std::fmt::Write;

/// Formats the weights and, if there is data, the metrics and gains.
pub(super) fn text(blended: &Blended) -> String {
    let Blended { inputs, request, outcome, .. } = blended;
    let quality = outcome.quality.as_ref();
    let mut text = String::new();
    if let Some(quality) = quality {
        let direction = if request.metric.higher_is_better() { "higher" } else { "lower" };
        line(&mut text, "metric", format_args!("{}, {direction} is better", request.metric));
        line(&mut text, "convention", &request.convention);
        if let Some(map) = &request.label_map {
            line(&mut text, "label map", map);
        }
        let queries = counted(quality.queries as u64, "query", "queries");
        let rows = counted(quality.rows as u64, "row", "rows");
        line(&mut text, "data", format_args!("{queries}, {rows}"));
    }
    line(&mut text, "weights", &request.weights);
    if outcome.weights.intercept != 0.0 {
        line(&mut text, "intercept", outcome.weights.intercept);
    }
    let names = inputs.iter().map(|input| input.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(13, 60);
    let metric = quality.map_or(String::new(), |_| request.metric.to_string());
    let header = format!("{:<width$} {:<14} {:>12} {metric:>12}", "model", "normalisation", "weight");
    let _ = writeln!(text, "\n{}", header.trim_end());
    for (member, (input, weight)) in inputs.iter().zip(&outcome.weights.weights).enumerate() {
        let (name, normalisation) = (&input.name, input.normalisation.name());
        let mean =
            quality.map_or(String::new(), |quality| format!(" {:>12.6}", quality.members[member].mean));
        let _ = writeln!(text, "{name:<width$} {normalisation:<14} {weight:>12.6}{mean}");
    }
    if let Some(quality) = quality {
        add_blends(&mut text, quality, width);
    }
    let kind = if blended.is_model { "model" } else { "predictions" };
    let _ = writeln!(text, "\n{kind} written to {}", blended.output);
    text
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<22}{value}"); // writing to a String cannot fail
}

fn add_blends(text: &mut String, quality: &Quality, width: usize) {
    for (name, mean) in [("equal weights", quality.equal), ("blend", quality.blend)] {
        let _ = writeln!(text, "{name:<width$} {:<14} {:>12} {mean:>12.6}", "", "");
    }
    if !quality.gains.is_empty() {
        text.push('\n');
    }
    for Gain { over, pair } in &quality.gains {
        let over =
            over.as_deref().map_or("equal weights".to_owned(), |name| format!("{name}, the best model"));
        let verdict = if pair.differs { "significant" } else { "not significant" };
        let [wins, ties, losses] = [pair.wins, pair.ties, pair.losses].map(shown_count);
        let _ = writeln!(
            text,
            "difference from {over}: {:+.6}, {verdict} at {ALPHA} (randomisation, p {:.4}); better {wins}, same {ties}, \
             worse {losses}",
            pair.difference.mean, pair.randomisation.p
        );
    }
}
