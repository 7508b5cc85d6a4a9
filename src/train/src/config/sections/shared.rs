//! The parameters of all learners.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind, Written};
use super::super::raw::RawParameters;
use super::super::value::ValueError;
use super::super::words::{NamedEnum, word};
use super::Section;
use planetree_data::LabelMap;
use planetree_metric::{Convention, Metric};

/// How missing values are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingPolicy {
    /// They are replaced by 0.
    Zero,
    /// They are replaced by 1.
    One,
    /// They are replaced by the feature's mean over the training rows that have a value.
    Mean,
    /// They are replaced by the feature's median over the training rows that have a value.
    Median,
    /// They are smaller than all other values, so every split sends them left or separates them from all others.
    Low,
    /// They are larger than all other values, so every split sends them right.
    High,
    /// They are kept, and each split sends them to the side with the higher gain.
    Learned,
    /// They are kept, and each split sends them to a third child.
    Branch,
}

impl NamedEnum for MissingPolicy {
    const ALL: &'static [(&'static str, Self)] = &[
        ("zero", MissingPolicy::Zero),
        ("one", MissingPolicy::One),
        ("mean", MissingPolicy::Mean),
        ("median", MissingPolicy::Median),
        ("low", MissingPolicy::Low),
        ("high", MissingPolicy::High),
        ("learned", MissingPolicy::Learned),
        ("branch", MissingPolicy::Branch),
    ];
}

/// Returns placeholder values, all of which are overwritten from the table of parameters.
pub(crate) fn blank_shared() -> Parameters<()> {
    Parameters {
        num_trees: 0,
        seed: 0,
        missing: MissingPolicy::Zero,
        metrics: Vec::new(),
        convention: Convention::default(),
        label_map: None,
        early_stopping_rounds: None,
        learner: (),
    }
}

/// The parameters of all learners.
pub(crate) static SHARED: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "ensemble",
        aliases: &["boosting", "boosting_type", "booster"],
        kind: KeyKind::Learner,
        default: "boost",
        help: "Model type",
        ..Key::PLAIN
    },
    Key {
        name: "num_trees",
        aliases: &[
            "num_iterations",
            "n_estimators",
            "num_boost_round",
            "num_round",
            "num_rounds",
            "n_iter",
            "iterations",
            "num_iteration",
            "nrounds",
            "trees",
            "epochs",
        ],
        kind: KeyKind::Whole {
            range: 1..=1_000_000,
            set: |raw, value| raw.shared.num_trees = value as u32,
            get: |raw| raw.shared.num_trees.into(),
        },
        default: "250",
        help: "Maximum number of trees, of rounds of a linear model, or of epochs of a net",
        ..Key::PLAIN
    },
    Key {
        name: "missing",
        kind: word!(shared.missing),
        default: "zero",
        help: "Replacement of missing values. low and high keep them, smaller or larger than all others: every split sends them left or right. learned keeps them, too: each split sends them to the side with the higher gain, and linear models and nets give them the normalised value 0. branch gives them a branch of their own: a split has three children if rows of its node have missing values",
        ..Key::PLAIN
    },
    Key {
        name: "seed",
        aliases: &["random_seed", "random_state"],
        kind: KeyKind::Whole {
            // The largest integer that TOML can represent.
            range: 0..=i64::MAX as u64,
            set: |raw, value| raw.shared.seed = value,
            get: |raw| raw.shared.seed,
        },
        default: "0",
        help: "Random seed",
        ..Key::PLAIN
    },
    Key {
        name: "early_stopping_rounds",
        aliases: &["early_stopping", "early_stopping_round"],
        kind: KeyKind::Limit {
            range: 1..=1_000_000,
            set: |raw, value| raw.shared.early_stopping_rounds = value,
            get: |raw| raw.shared.early_stopping_rounds,
        },
        default: "0",
        help: "Stop after this many rounds without improvement of the first metric on the first validation set",
        ..Key::PLAIN
    },
    Key {
        name: "metric",
        aliases: &["metrics", "eval_metric"],
        kind: KeyKind::Custom {
            expected: |_| "metrics such as ndcg@10,err,rmse",
            set: |raw, written| {
                raw.shared.metrics = metrics(written.text)?;
                Ok(())
            },
            get: |raw| {
                let names: Vec<String> =
                    raw.shared.metrics.iter().map(|metric| format!("\"{metric}\"")).collect();
                format!("[{}]", names.join(", "))
            },
        },
        default: "ndcg@10,rmse",
        help: "Metrics computed after each round; the first one drives early stopping",
        ..Key::PLAIN
    },
    Key {
        name: "convention",
        kind: KeyKind::Custom {
            expected: |_| "the name of a tool such as lightgbm or letor4, and switches",
            set: |raw, written| {
                raw.shared.convention = written.text.parse().map_err(ValueError::of)?;
                Ok(())
            },
            get: |raw| format!("\"{}\"", raw.shared.convention),
        },
        default: "planetree",
        help: "Rules by which metrics are computed: the name of a tool (lightgbm, xgboost, trec, letor4, ...), and switches; see planetree evaluate --help",
        ..Key::PLAIN
    },
    Key {
        name: "label_map",
        kind: KeyKind::Custom {
            expected: |_| "none, or a map such as 0,1,2=0;3,4=1",
            set: set_label_map,
            get: |raw| match &raw.shared.label_map {
                Some(map) => format!("\"{map}\""),
                None => "\"none\"".to_owned(),
            },
        },
        default: "none",
        omits_default: true,
        help: "Labels that replace those of training and validation data, such as 0,1,2=0;3,4=1; a label that is not listed is an error",
        ..Key::PLAIN
    },
    Key {
        name: "lambda_l1",
        aliases: &["reg_alpha", "l1_regularization", "alpha"],
        kind: KeyKind::Agreed { values: &["0", "0.0"], does: "no L1 regularisation" },
        ..Key::PLAIN
    },
    Key {
        name: "bagging_freq",
        aliases: &["subsample_freq"],
        kind: KeyKind::Agreed { values: &["1"], does: "a new sample for every tree" },
        ..Key::PLAIN
    },
];

fn set_label_map(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    raw.shared.label_map = match written.text {
        "none" => None,
        text => Some(text.parse::<LabelMap>().map_err(ValueError::of)?),
    };
    Ok(())
}

fn metrics(text: &str) -> Result<Vec<Metric>, ValueError> {
    let mut metrics = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let metric: Metric = name.parse().map_err(ValueError::of)?;
        if metrics.contains(&metric) {
            return Err(ValueError {
                problem: format!("{metric} is listed twice"),
                remedy: "list it once".to_owned(),
            });
        }
        metrics.push(metric);
    }
    if metrics.is_empty() {
        return Err(ValueError {
            problem: "no metric given".to_owned(),
            remedy: "list at least one metric, such as ndcg@10".to_owned(),
        });
    }
    Ok(metrics)
}
