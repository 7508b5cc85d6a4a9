//! A comparison for programs: one JSON object with everything.

use super::Compared;
use planetree_judge::compare::Pair;
use serde_json::{Value, json};

/// The whole comparison.
pub fn object(compared: &Compared) -> Value {
    let Compared { read, aligned, pairs, options, .. } = compared;
    let systems: Vec<Value> = read
        .systems
        .iter()
        .zip(&compared.means)
        .map(|(system, mean)| json!({ "name": system.name, "file": system.file, "mean": mean }))
        .collect();
    json!({
        "metric": read.metric,
        "higher_is_better": read.higher_is_better,
        "convention": read.convention.to_string(),
        "queries": aligned.queries.len(),
        "uncounted_queries": aligned.uncounted,
        "systems": systems,
        "test": super::name_of(options.test),
        "alpha": options.alpha,
        "correction": "holm",
        "level": options.level,
        "seed": options.seed,
        "pairs": pairs.iter().map(|pair| pair_object(compared, pair)).collect::<Vec<Value>>(),
        "notes": compared.notes,
    })
}

fn pair_object(compared: &Compared, pair: &Pair) -> Value {
    let [a, b] = [pair.a, pair.b].map(|system| compared.read.systems[system].name.as_str());
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
        "p": pair.p(compared.options.test),
        "p_holm": pair.p(compared.options.test).map(|_| pair.corrected),
        "differs": pair.differs,
        "improved": moved(compared, pair, &pair.improved),
        "worsened": moved(compared, pair, &pair.worsened),
    })
}

fn moved(compared: &Compared, pair: &Pair, places: &[usize]) -> Vec<Value> {
    let query = |place: &usize| {
        let [a, b] = [pair.a, pair.b].map(|system| compared.aligned.values[system][*place]);
        json!({ "query_id": compared.aligned.queries[*place], "a": a, "b": b, "difference": b - a })
    };
    places.iter().map(query).collect()
}
