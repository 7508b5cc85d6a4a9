//! Converts a comparison to one JSON object.

use super::ComparedRankings;
use planetree_judge::compare::PairComparison;
use serde_json::{Value, json};

/// Returns the whole comparison as JSON.
pub(super) fn object(comparison: &ComparedRankings) -> Value {
    let ComparedRankings { read, aligned, pairs, options, .. } = comparison;
    let systems: Vec<Value> = read
        .systems
        .iter()
        .zip(&comparison.means)
        .map(|(system, mean)| json!({ "name": system.name, "file": system.file, "mean": mean }))
        .collect();
    json!({
        "metric": read.metric,
        "higher_is_better": read.higher_is_better,
        "convention": read.convention.to_string(),
        "label_map": read.label_map.as_ref().map(ToString::to_string),
        "queries": aligned.queries.len(),
        "uncounted_queries": aligned.uncounted,
        "systems": systems,
        "test": super::test_name(options.test),
        "alternative": options.alternative.name(),
        "alpha": options.alpha,
        "correction": "holm",
        "level": options.level,
        "seed": options.seed,
        "pairs": pairs.iter().map(|pair| pair_object(comparison, pair)).collect::<Vec<Value>>(),
        "notes": comparison.notes,
    })
}

fn pair_object(comparison: &ComparedRankings, pair: &PairComparison) -> Value {
    let [a, b] = [pair.a, pair.b].map(|system| comparison.read.systems[system].name.as_str());
    json!({
        "a": a,
        "b": b,
        "mean_a": pair.mean_a,
        "mean_b": pair.mean_b,
        "difference": pair.difference.mean,
        "standard_deviation": pair.difference.deviation,
        "effect_size": pair.difference.effect_size(),
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "interval": pair.interval.map(|interval| json!({
            "low": interval.low,
            "high": interval.high,
            "level": interval.level,
            "resamples": interval.resamples,
        })),
        "t_test": pair.t_test.map(|test| json!({
            "t": test.t,
            "degrees_of_freedom": test.degrees,
            "p": test.p,
        })),
        "randomisation": {
            "p": pair.randomisation.p,
            "permutations": pair.randomisation.permutations,
            "exact": pair.randomisation.is_exact,
        },
        "wilcoxon": {
            "statistic": pair.wilcoxon.statistic(),
            "positive": pair.wilcoxon.positive,
            "negative": pair.wilcoxon.negative,
            "queries": pair.wilcoxon.count,
            "z": pair.wilcoxon.z,
            "p": pair.wilcoxon.p,
            "exact": pair.wilcoxon.z.is_none(),
        },
        "p": pair.p(comparison.options.test),
        "p_holm": pair.p(comparison.options.test).map(|_| pair.corrected),
        "differs": pair.differs,
        "improved": changed_queries(comparison, pair, &pair.improved),
        "worsened": changed_queries(comparison, pair, &pair.worsened),
    })
}

fn changed_queries(comparison: &ComparedRankings, pair: &PairComparison, queries: &[usize]) -> Vec<Value> {
    let query = |index: &usize| {
        let [a, b] = [pair.a, pair.b].map(|system| comparison.aligned.values[system][*index]);
        json!({ "query_id": comparison.aligned.queries[*index], "a": a, "b": b, "difference": b - a })
    };
    queries.iter().map(query).collect()
}
