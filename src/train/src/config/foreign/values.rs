//! Values of parameters that other tools have and planetree does not, under a name that both have.

/// Values of one parameter with one answer.
pub(super) struct ForeignValues {
    /// planetree's name of the parameter.
    pub key: &'static str,
    /// The values, in any case. N stands for any digits.
    pub values: &'static [&'static str],
    /// What planetree does, and what to do instead.
    pub answer: &'static str,
}

/// Returns what planetree does instead of a value that it does not accept for a parameter.
pub(in super::super) fn foreign_value_answer(key: &str, value: &str) -> Option<&'static str> {
    let general = with_n_for_digits(value);
    let is_meant = |known: &&str| known.eq_ignore_ascii_case(value) || known.eq_ignore_ascii_case(&general);
    let entry = FOREIGN.iter().find(|entry| entry.key == key && entry.values.iter().any(is_meant));
    entry.map(|entry| entry.answer)
}

/// Replaces every run of digits by N.
fn with_n_for_digits(value: &str) -> String {
    let mut text = String::new();
    let mut was_digit = false;
    for letter in value.chars() {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            text.push(letter);
        } else if !was_digit {
            text.push('N');
        }
        was_digit = is_digit;
    }
    text
}

pub(super) const FOREIGN: &[ForeignValues] = &[
    ForeignValues {
        key: "objective",
        values: &["rank:map"],
        answer: "set objective=lambdarank and lambda_metric=map",
    },
    ForeignValues {
        key: "objective",
        values: &["yetirank", "yetirankpairwise", "stochasticrank", "stochasticfilter", "lambdaloss"],
        answer: "set objective=lambdarank, with the metric to optimise as lambda_metric, or objective=xendcg",
    },
    ForeignValues {
        key: "objective",
        values: &["pairlogit", "pairlogitpairwise"],
        answer: "set objective=ranknet, the logistic loss of pairs",
    },
    ForeignValues {
        key: "objective",
        values: &["querycrossentropy"],
        answer: "set objective=listnet or objective=xendcg, which are cross entropies of lists",
    },
    ForeignValues {
        key: "objective",
        values: &["rmse", "l2_root", "root_mean_squared_error", "reg:linear"],
        answer: "set objective=squared",
    },
    ForeignValues {
        key: "objective",
        values: &[
            "logloss",
            "cross_entropy",
            "crossentropy",
            "xentropy",
            "reg:logistic",
            "binary:logitraw",
            "binary:hinge",
        ],
        answer: "set objective=logistic, and relevant_from to the least label that is relevant",
    },
    ForeignValues {
        key: "objective",
        values: &["multiclassova", "multiclass_ova", "ova", "ovr", "multiclassonevsall"],
        answer: "set objective=softmax_classes, or target=ordinal for a model of each grade",
    },
    ForeignValues {
        key: "objective",
        values: &[
            "regression_l1",
            "l1",
            "mae",
            "mean_absolute_error",
            "reg:absoluteerror",
            "huber",
            "reg:pseudohubererror",
            "fair",
            "quantile",
            "reg:quantileerror",
            "groupquantile",
            "expectile",
            "mape",
            "mean_absolute_percentage_error",
            "reg:squaredlogerror",
            "poisson",
            "count:poisson",
            "gamma",
            "reg:gamma",
            "tweedie",
            "reg:tweedie",
            "cross_entropy_lambda",
            "xentlambda",
            "survival:cox",
            "survival:aft",
        ],
        answer: "planetree has one regression loss: set objective=squared, or query_rmse, which counts differences within a query",
    },
    ForeignValues { key: "objective", values: &["mart"], answer: "use --preset mart" },
    ForeignValues {
        key: "objective",
        values: &["custom", "none"],
        answer: "objectives of your own are written in Rust: see examples/custom_objective.rs",
    },
    ForeignValues {
        key: "ensemble",
        values: &["plain", "ordered"],
        answer: "set ensemble=boost, which is not ordered: every tree learns from the residuals of all rows",
    },
    ForeignValues {
        key: "leaf",
        values: &["N"],
        answer: "leaf says how values of leaves are computed; RankLib's number of leaves is num_leaves",
    },
    ForeignValues { key: "criterion", values: &["friedman_mse"], answer: "set criterion=variance" },
    ForeignValues {
        key: "criterion",
        values: &["absolute_error", "poisson"],
        answer: "set criterion=variance: forests of planetree have no such loss",
    },
    ForeignValues {
        key: "features_per_node",
        values: &["sqrt", "auto"],
        answer: "write the count, such as features_per_node=12 for the square root of 136 features, or log2 or all",
    },
    ForeignValues {
        key: "ensemble",
        values: &["dart", "goss"],
        answer: "planetree has no dropout of trees and no gradient-based sampling; set ensemble=boost, and bagging_fraction to sample rows or queries",
    },
    ForeignValues {
        key: "missing",
        values: &["min"],
        answer: "set missing=low: missing values count as smaller than all others",
    },
    ForeignValues {
        key: "missing",
        values: &["max"],
        answer: "set missing=high: missing values count as larger than all others",
    },
    ForeignValues {
        key: "missing",
        values: &["nan", "N", "-N", "forbidden"],
        answer: "missing says how missing values are handled; null, empty and NaN are missing, and 0 with planetree convert --zero-as-missing",
    },
    ForeignValues { key: "metric", values: &["l2", "mse"], answer: "set metric=rmse, its square root" },
    ForeignValues {
        key: "metric",
        values: &["ndcg@N-", "map@N-"],
        answer: "write ndcg@10; how queries without relevant documents count is part of the convention: see docs/metrics.md",
    },
    ForeignValues {
        key: "metric",
        values: &["ndcg:top=N", "map:top=N", "precisionat:top=N", "recallat:top=N"],
        answer: "write the cutoff after @, such as metric=ndcg@10, map@10, p@10 or recall@10",
    },
    ForeignValues {
        key: "metric",
        values: &[
            "l1",
            "mae",
            "mape",
            "huber",
            "quantile",
            "logloss",
            "binary_logloss",
            "cross_entropy",
            "binary_error",
            "multi_logloss",
            "multi_error",
            "mlogloss",
            "merror",
            "error",
            "pfound",
        ],
        answer: "metrics are those of rankings, and rmse: see docs/metrics.md; the loss is not logged",
    },
    ForeignValues {
        key: "metric",
        values: &["none", "na"],
        answer: "at least one metric is computed after each round: remove it for the default, metric=ndcg@10,rmse",
    },
];
