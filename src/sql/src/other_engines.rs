//! Functions and clauses of DuckDB and other engines, and names of metrics, that this engine has under another name.

/// The name elsewhere, or of a metric in `evaluate`, and the call here.
const FUNCTIONS: [(&str, &str); 54] = [
    ("arg_max", "first_value(x ORDER BY y DESC NULLS LAST)"),
    ("arg_min", "first_value(x ORDER BY y)"),
    ("argmax", "first_value(x ORDER BY y DESC NULLS LAST)"),
    ("argmin", "first_value(x ORDER BY y)"),
    ("count_if", "count(*) FILTER (WHERE condition)"),
    ("countif", "count(*) FILTER (WHERE condition)"),
    (
        "date_diff",
        "date_part('epoch', b) - date_part('epoch', a) for seconds; b - a is the number of days between dates",
    ),
    (
        "datediff",
        "date_part('epoch', b) - date_part('epoch', a) for seconds; b - a is the number of days between dates",
    ),
    ("day", "date_part('day', x)"),
    ("dayofweek", "date_part('dow', x)"),
    ("dayofyear", "date_part('doy', x)"),
    ("epoch", "date_part('epoch', time)"),
    ("expected_reciprocal_rank", "err(label, score)"),
    ("first", "first_value(x ORDER BY y)"),
    ("group_concat", "string_agg(x, ',')"),
    ("hit", "success_at(label, score, 10)"),
    ("hit_rate", "success_at(label, score, 10)"),
    ("hour", "date_part('hour', x)"),
    ("if", "CASE WHEN condition THEN a ELSE b END"),
    ("last", "last_value(x ORDER BY y)"),
    ("len", "length(text), or array_length(list)"),
    ("list", "array_agg(x)"),
    ("listagg", "string_agg(x, ',')"),
    ("max_by", "first_value(x ORDER BY y DESC NULLS LAST)"),
    ("mean_average_precision", "average_precision(label, score)"),
    ("mean_reciprocal_rank", "reciprocal_rank(label, score)"),
    ("min_by", "first_value(x ORDER BY y)"),
    ("minute", "date_part('minute', x)"),
    ("mode", "SELECT x FROM t GROUP BY x ORDER BY count(*) DESC LIMIT 1, because mode is not available"),
    ("month", "date_part('month', x)"),
    ("mrr", "reciprocal_rank(label, score)"),
    ("normalized_dcg", "ndcg(label, score)"),
    ("p", "precision_at(label, score, 10)"),
    ("partial_auc", "pauc(label, score, '0-5')"),
    ("prec", "precision_at(label, score, 10)"),
    ("precision", "precision_at(label, score, 10)"),
    ("quantile", "quantile_cont(x, 0.9)"),
    ("quarter", "date_part('quarter', x)"),
    ("read_csv_auto", "read_csv('file.csv')"),
    ("read_json_auto", "read_json('file.json')"),
    ("recall", "recall_at(label, score, 10)"),
    ("recip_rank", "reciprocal_rank(label, score)"),
    ("regexp_extract", "regexp_match(text, pattern)[1]"),
    ("regexp_matches", "regexp_like(text, pattern)"),
    ("roc_auc", "auc(label, score)"),
    ("root_mean_squared_error", "rmse(label, score)"),
    ("rr", "reciprocal_rank(label, score)"),
    ("second", "date_part('second', x)"),
    ("string_split", "string_to_array(text, ',')"),
    ("strptime", "to_timestamp(text, format)"),
    ("success", "success_at(label, score, 10)"),
    ("week", "date_part('week', x)"),
    ("weekday", "date_part('dow', x)"),
    ("year", "date_part('year', x)"),
];

/// Returns what to call in place of a function.
pub(crate) fn call_in_place_of(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, call)| *call)
}

/// A clause of another engine: the problem and the remedy.
pub(crate) type Clause = (&'static str, &'static str);

/// The engine would ignore this clause.
pub(crate) const SAMPLE: Clause = (
    "TABLESAMPLE and USING SAMPLE are not supported",
    "write ORDER BY random() LIMIT 100 for a number of rows, or WHERE random() < 0.1 for a tenth of them",
);

pub(crate) const PIVOT: Clause = (
    "PIVOT is not supported",
    "write an aggregate for each column: SELECT query_id, count(*) FILTER (WHERE label = 0) AS label_0, ... GROUP BY query_id",
);

pub(crate) const UNPIVOT: Clause = (
    "UNPIVOT is not supported",
    "write a SELECT for each column: SELECT 'f1' AS name, f1 AS value FROM t UNION ALL SELECT 'f2', f2 FROM t",
);

/// Returns the clause of another engine that causes a syntax error. `before` and `after` are the texts of the query
/// before and from the error.
pub(crate) fn clause_of_other_engine(before: &str, after: &str) -> Option<Clause> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let next = after.split(|letter: char| !is_part(letter)).filter(|word| !word.is_empty());
    let count = if after.starts_with(is_part) { 2 } else { 0 };
    let next: Vec<String> = next.take(count).map(str::to_ascii_lowercase).collect();
    let next: Vec<&str> = next.iter().map(String::as_str).collect();
    // The error may be within the clause: TABLESAMPLE reservoir(10 ROWS), TABLESAMPLE 10%.
    let mut previous = before.rsplit(|letter: char| !is_part(letter)).filter(|word| !word.is_empty()).take(3);
    match next.as_slice() {
        ["pivot", ..] => Some(PIVOT),
        ["unpivot", ..] => Some(UNPIVOT),
        ["using", "sample"] | ["tablesample", ..] => Some(SAMPLE),
        _ if previous.any(|word| word.eq_ignore_ascii_case("tablesample")) => Some(SAMPLE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_recognised_at_the_error() {
        for (before, after, expected) in [
            ("", "pivot t ON label", Some(PIVOT)),
            ("", "UNPIVOT t ON f1", Some(UNPIVOT)),
            ("SELECT * FROM t ", "USING SAMPLE 10", Some(SAMPLE)),
            ("SELECT * FROM t TABLESAMPLE reservoir", "(10 ROWS)", Some(SAMPLE)),
            ("SELECT * FROM t tablesample 10", "%", Some(SAMPLE)),
            ("SELECT * FROM t ", "USING x", None),
            ("SELECT pivot", "", None),
            ("SELECT f", ", pivot", None),
        ] {
            assert_eq!(clause_of_other_engine(before, after), expected, "{before}{after}");
        }
    }

    #[test]
    fn functions_are_sorted_by_name() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
