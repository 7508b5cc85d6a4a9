//! Parameters of LightGBM, XGBoost, CatBoost and RankLib that planetree does not have, and what to use instead.
//! Parameters that only have another name are aliases of ours, in `sections/` and `learners/`. Parameters that are rarely
//! set are in `rare.rs`, and further names in `aliases.rs`. Values that planetree does not have are in `values.rs`.
//! docs/train.md lists all answers; a test compares it with the tables.

mod aliases;
mod rare;
#[cfg(test)]
mod tests;
mod values;

pub(super) use values::foreign_value_answer;

/// Parameters of other tools with one answer.
struct ForeignParameters {
    names: &'static [&'static str],
    /// What planetree does, and what to do instead.
    answer: &'static str,
}

/// Returns what planetree does instead of a parameter of another tool.
pub(super) fn foreign_answer(name: &str) -> Option<&'static str> {
    let name = aliases::SAME.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let mut entries = FOREIGN.iter().chain(rare::FOREIGN).chain(aliases::FOREIGN);
    entries.find(|entry| entry.names.contains(&name)).map(|entry| entry.answer)
}

const FOREIGN: &[ForeignParameters] = &[
    // The machine and the program
    ForeignParameters {
        names: &["num_threads", "num_thread", "nthread", "nthreads", "n_jobs", "thread_count", "thread"],
        answer: "use the option --threads N; the number of threads does not change the model",
    },
    ForeignParameters {
        names: &[
            "device",
            "device_type",
            "task_type",
            "gpu_id",
            "devices",
            "gpu_platform_id",
            "gpu_device_id",
            "predictor",
        ],
        answer: "planetree runs on the CPU: remove it",
    },
    ForeignParameters {
        names: &[
            "verbose",
            "verbosity",
            "silent",
            "logging_level",
            "metric_period",
            "verbose_eval",
            "log_evaluation",
        ],
        answer: "use --quiet to suppress messages, or --log LEVEL for more of them",
    },
    ForeignParameters {
        names: &[
            "tree_method",
            "grow_policy",
            "tree_learner",
            "updater",
            "grow_method",
            "force_col_wise",
            "force_row_wise",
            "histogram_pool_size",
        ],
        answer: "set num_leaves to grow trees best-first (lossguide, leaf-wise), or max_depth alone to grow them level by level; \
                 histograms need no further setting",
    },
    ForeignParameters {
        names: &[
            "deterministic",
            "feature_fraction_seed",
            "bagging_seed",
            "data_random_seed",
            "extra_seed",
            "objective_seed",
        ],
        answer: "every model is reproducible: seed is the only seed, and threads or partitions change nothing",
    },
    ForeignParameters {
        names: &["snapshot_freq", "save_period", "snapshot_interval", "snapshot_file"],
        answer: "use --checkpoint-every, and --resume to continue",
    },
    ForeignParameters {
        names: &[
            "machines",
            "num_machines",
            "local_listen_port",
            "machine_list_filename",
            "tree_learner_type",
        ],
        answer: "use --cluster URL; see docs/cluster.md",
    },
    ForeignParameters {
        names: &[
            "two_round",
            "use_two_round_loading",
            "used_ram_limit",
            "external_memory",
            "max_cached_hist_node",
        ],
        answer: "use --memory-limit SIZE; data that do not fit are mapped from disk",
    },
    // Data
    ForeignParameters {
        names: &[
            "categorical_feature",
            "cat_feature",
            "cat_features",
            "categorical_column",
            "enable_categorical",
        ],
        answer: "name categorical columns when the data are converted: planetree convert --categorical NAMES",
    },
    ForeignParameters {
        names: &[
            "cat_l2",
            "cat_smooth",
            "max_cat_threshold",
            "max_cat_to_onehot",
            "one_hot_max_size",
            "min_data_per_group",
            "max_ctr_complexity",
        ],
        answer: "categories are codes ordered by convert; splits on them have no parameters of their own",
    },
    ForeignParameters {
        names: &[
            "group",
            "group_column",
            "query",
            "query_column",
            "label_column",
            "weight_column",
            "ignore_column",
            "header",
        ],
        answer: "name the columns with options of train or convert: --query-column, --label-column, --weight-column, --feature-columns, \
                 --ignore-columns",
    },
    ForeignParameters {
        names: &["valid", "valid_data", "test", "test_data", "eval_set", "validate", "tvs"],
        answer: "use --valid DATASET, which may be repeated",
    },
    ForeignParameters {
        names: &["use_missing", "zero_as_missing", "nan_mode", "missing_value"],
        answer: "set missing (zero, mean, learned, ...); zeros become missing values with planetree convert --zero-as-missing",
    },
    ForeignParameters {
        names: &[
            "bin_construct_sample_cnt",
            "subsample_for_bin",
            "min_data_in_bin",
            "sketch_eps",
            "max_bin_by_feature",
            "feature_border_type",
        ],
        answer: "bins have equal depth and are found from at least 262,144 rows; set max_bin",
    },
    ForeignParameters {
        names: &[
            "enable_bundle",
            "is_enable_bundle",
            "bundle",
            "is_enable_sparse",
            "enable_sparse",
            "max_conflict_rate",
            "sparse",
        ],
        answer: "sparse features are detected, and their storage changes no result: remove it",
    },
    // Trees
    ForeignParameters {
        names: &[
            "dart",
            "drop_rate",
            "max_drop",
            "skip_drop",
            "rate_drop",
            "one_drop",
            "uniform_drop",
            "xgboost_dart_mode",
        ],
        answer: "planetree has no dropout of trees; lower learning_rate, or average several runs (runs=10)",
    },
    ForeignParameters {
        names: &[
            "top_rate",
            "other_rate",
            "data_sample_strategy",
            "sampling_method",
            "bootstrap_type",
            "bagging_temperature",
        ],
        answer: "planetree has no gradient-based sampling; set bagging_fraction to sample rows or queries",
    },
    ForeignParameters {
        names: &[
            "pos_bagging_fraction",
            "neg_bagging_fraction",
            "scale_pos_weight",
            "is_unbalance",
            "unbalance",
            "class_weight",
            "auto_class_weights",
        ],
        answer: "give rows weights in the dataset: see planetree convert --help",
    },
    ForeignParameters {
        names: &["colsample_bylevel", "rsm", "extra_trees", "extra_tree"],
        answer: "set features_per_node to sample features at each node; candidates=random draws random thresholds in forests",
    },
    ForeignParameters {
        names: &[
            "interaction_constraints",
            "forcedsplits_filename",
            "forced_splits",
            "feature_contri",
            "feature_weights",
        ],
        answer: "planetree does not constrain which features are split; leave features out of the data instead",
    },
    ForeignParameters {
        names: &[
            "max_delta_step",
            "max_output",
            "path_smooth",
            "linear_lambda",
            "leaf_estimation_iterations",
            "leaf_estimation_method",
        ],
        answer: "leaf values are one Newton step or a mean (leaf); lambda_l2 and learning_rate shrink them",
    },
    ForeignParameters {
        names: &["num_parallel_tree", "bag", "bags"],
        answer: "use --preset rf for a forest, --set runs=N to average boosted models, or --preset bagboost",
    },
    ForeignParameters {
        names: &[
            "refresh_leaf",
            "refit_decay_rate",
            "process_type",
            "input_model",
            "xgb_model",
            "init_model",
            "load",
        ],
        answer: "use --start-model FILE to continue from a model",
    },
    ForeignParameters {
        names: &["max_leaf_values", "symmetric_tree", "score_function", "random_strength", "model_size_reg"],
        answer: "planetree has no symmetric trees and no noise in split scores; set max_depth or num_leaves",
    },
    // Ranking and evaluation
    ForeignParameters {
        names: &["ndcg_eval_at", "eval_at", "ndcg_at", "metric2t", "metric2T"],
        answer: "write the cutoff into the metric: --set metric=ndcg@10, and lambda_metric or train_metric to optimise one",
    },
    ForeignParameters {
        names: &["lambdarank_pair_method", "ndcg_exp_gain", "lambdarank_score_normalization"],
        answer: "set truncation_level for the pairs, label_gain for the gains and lambda_norm for the normalisation",
    },
    ForeignParameters {
        names: &["lambdarank_position_bias_regularization", "positions"],
        answer: "set unbiased=true and bias_norm; the dataset needs a column position",
    },
    ForeignParameters {
        names: &[
            "use_best_model",
            "od_type",
            "od_wait",
            "od_pval",
            "best_model_min_trees",
            "estop",
            "first_metric_only",
        ],
        answer: "set early_stopping_rounds: training keeps the best round of the first metric on the first --valid",
    },
    ForeignParameters {
        names: &["num_class", "n_classes", "classes_count"],
        answer: "set target=ordinal: the grades are found in the labels",
    },
    ForeignParameters {
        names: &["ranker", "mode"],
        answer: "use --preset NAME: `planetree train --help` lists all presets",
    },
    ForeignParameters {
        names: &["norm", "feature_normalization", "zscore"],
        answer: "set normalise_features=query, z or minmax; trees are the same with z, minmax and none",
    },
    ForeignParameters { names: &["kcv", "nfold", "n_folds", "folds"], answer: "use planetree cv --folds K" },
    ForeignParameters {
        names: &["linear_tree"],
        answer: "leaves are constants; --preset linear trains a linear model, and planetree blend adds it to trees",
    },
    // RankLib
    ForeignParameters {
        names: &["tree", "round", "rounds", "epoch"],
        answer: "set num_trees, which is the number of rounds or epochs of all learners",
    },
    ForeignParameters { names: &["shrinkage"], answer: "set learning_rate" },
    ForeignParameters { names: &["tc"], answer: "set max_bin: thresholds of a feature plus 1" },
    ForeignParameters { names: &["mls"], answer: "set min_data_in_leaf" },
    ForeignParameters { names: &["srate"], answer: "set bagging_fraction" },
    ForeignParameters { names: &["frate"], answer: "set feature_fraction, or features_per_node" },
    ForeignParameters {
        names: &["rtype"],
        answer: "use --preset bagboost for bags of boosted trees, or a preset that starts with rf",
    },
    ForeignParameters { names: &["layer", "node"], answer: "set hidden_layers, such as 10 or 32,16" },
    ForeignParameters { names: &["gmax"], answer: "grades need no limit; label_gain sets their gains" },
];
