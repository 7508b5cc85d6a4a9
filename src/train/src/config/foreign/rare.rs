//! Parameters of other tools that are rarely set: of their files, hardware and special methods.

use super::ForeignParameters;

pub(super) const FOREIGN: &[ForeignParameters] = &[
    // Commands, files and columns
    ForeignParameters { names: &["config"], answer: "use the option --config FILE.toml" },
    ForeignParameters {
        names: &["task"],
        answer: "commands take the place of tasks: planetree train, predict, export",
    },
    ForeignParameters { names: &["data", "train"], answer: "use --data DATASET" },
    ForeignParameters { names: &["output_model", "save"], answer: "use --model FILE" },
    // Not of another tool, but documents are added to a dataset by a command of their own.
    ForeignParameters {
        names: &["augment_documents"],
        answer: "train on a dataset with more documents, which planetree augment --documents 0.5 writes",
    },
    ForeignParameters {
        names: &[
            "output_result",
            "predict_raw_score",
            "predict_disable_shape_check",
            "start_iteration_predict",
            "num_iteration_predict",
            "score",
            "rank",
            "indri",
        ],
        answer: "planetree predict writes scores and ranks: --output FILE, --scores FILE",
    },
    ForeignParameters {
        names: &["predict_contrib", "predict_leaf_index"],
        answer: "scores are explained in SQL, by explain_score, and in the report",
    },
    ForeignParameters {
        names: &["pred_early_stop", "pred_early_stop_freq", "pred_early_stop_margin"],
        answer: "use planetree predict --exit-every TREES --exit-percent PERCENT",
    },
    ForeignParameters {
        names: &["convert_model", "convert_model_language"],
        answer: "use planetree export MODEL --format NAME",
    },
    ForeignParameters {
        names: &["saved_feature_importance_type", "importance_type"],
        answer: "planetree describe MODEL lists the features by gain, with their numbers of splits",
    },
    ForeignParameters {
        names: &["idv"],
        answer: "planetree evaluate --output FILE writes the metrics of every query",
    },
    ForeignParameters {
        names: &["qrel"],
        answer: "labels are those of the data; planetree evaluate --qrels FILE takes others",
    },
    ForeignParameters {
        names: &["tts", "kcvmd", "kcvmn"],
        answer: "planetree cv splits the data by query and keeps the models of all folds in --output DIR",
    },
    ForeignParameters {
        names: &["train_dir", "allow_writing_files", "roc_file", "name"],
        answer: "planetree writes only the files that options name: remove it",
    },
    ForeignParameters {
        names: &["save_snapshot"],
        answer: "use --checkpoint-every, and --resume to continue",
    },
    ForeignParameters {
        names: &["save_binary", "precise_float_parser", "parser_config_file"],
        answer: "convert the data once with planetree convert, which keeps them in binary form",
    },
    ForeignParameters {
        names: &["ignored_features", "feature"],
        answer: "use --feature-columns or --ignore-columns, with names or patterns",
    },
    ForeignParameters {
        names: &[
            "text_features",
            "tokenizers",
            "dictionaries",
            "feature_calcers",
            "text_processing",
            "embedding_features",
        ],
        answer: "features are numbers and categories: compute those of texts before the data are converted",
    },
    ForeignParameters {
        names: &["missingZero"],
        answer: "zeros become missing values with planetree convert --zero-as-missing; missing=zero does the opposite",
    },
    ForeignParameters {
        names: &["hr"],
        answer: "how metrics count queries without a relevant document is part of the convention: see docs/metrics.md",
    },
    // The machine and the program
    ForeignParameters {
        names: &[
            "gpu_use_dp",
            "num_gpu",
            "gpu_ram_part",
            "gpu_cat_features_storage",
            "pinned_memory_size",
            "data_partition",
        ],
        answer: "planetree runs on the CPU: remove it",
    },
    ForeignParameters {
        names: &["pre_partition", "time_out"],
        answer: "use --cluster URL; see docs/cluster.md",
    },
    ForeignParameters {
        names: &["extmem_single_page"],
        answer: "use --memory-limit SIZE; data that do not fit are mapped from disk",
    },
    ForeignParameters {
        names: &["drop_seed", "seed_per_iteration"],
        answer: "every model is reproducible: seed is the only seed, and threads or partitions change nothing",
    },
    ForeignParameters {
        names: &["validate_parameters"],
        answer: "unknown parameters are always errors: remove it",
    },
    // Objectives and metrics
    ForeignParameters {
        names: &["loss_function"],
        answer: "set objective, such as lambdarank, xendcg, query_rmse or squared",
    },
    ForeignParameters {
        names: &[
            "reg_sqrt",
            "fair_c",
            "poisson_max_delta_step",
            "tweedie_variance_power",
            "huber_slope",
            "quantile_alpha",
            "aft_loss_distribution",
            "multi_strategy",
        ],
        answer: "planetree has no such objective: `planetree train --help` lists those of the parameter objective",
    },
    ForeignParameters {
        names: &["boost_from_average"],
        answer: "set base_score: auto starts from the best constant, and a number from that number",
    },
    ForeignParameters {
        names: &["custom_metric", "disable_default_eval_metric", "multi_error_top_k", "auc_mu_weights"],
        answer: "set metric: the metrics listed are logged, and the first one chooses the round",
    },
    ForeignParameters {
        names: &["metric_freq", "is_provide_training_metric"],
        answer: "all metrics are logged in every round, for the training data, too: --rounds FILE writes them",
    },
    ForeignParameters {
        names: &["early_stopping_min_delta"],
        answer: "set early_stopping_rounds: every improvement of the metric counts",
    },
    ForeignParameters {
        names: &["class_names"],
        answer: "set target=ordinal: the grades are found in the labels",
    },
    // Trees
    ForeignParameters { names: &["l2_leaf_reg", "L2"], answer: "set lambda_l2" },
    ForeignParameters {
        names: &["bagging_by_query", "sampling_unit", "sampling_frequency", "mvs_reg"],
        answer: "set bagging_fraction, with bagging_by=queries for whole queries; every tree has its own sample",
    },
    ForeignParameters {
        names: &[
            "cegb_tradeoff",
            "cegb_penalty_split",
            "cegb_penalty_feature_lazy",
            "cegb_penalty_feature_coupled",
            "first_feature_use_penalties",
            "per_object_feature_penalties",
            "penalties_coefficient",
        ],
        answer: "use --costs FILE and --cost-lambda NUMBER: features that earlier trees use are free",
    },
    ForeignParameters {
        names: &[
            "use_quantized_grad",
            "num_grad_quant_bins",
            "quant_train_renew_leaf",
            "stochastic_rounding",
        ],
        answer: "gradients are always whole numbers, as precise as their sums allow: remove it",
    },
    ForeignParameters {
        names: &["forcedbins_filename", "input_borders", "output_borders", "per_float_feature_quantization"],
        answer: "bins have equal depth and are found from at least 262,144 rows; set max_bin",
    },
    ForeignParameters {
        names: &["feature_pre_filter"],
        answer: "features without a split change nothing: remove it",
    },
    ForeignParameters {
        names: &["top_k", "feature_selector"],
        answer: "all features are candidates of every split; feature_fraction and features_per_node sample them",
    },
    ForeignParameters {
        names: &["sample_type", "normalize_type", "goss"],
        answer: "planetree has no dropout of trees and no gradient-based sampling; set bagging_fraction to sample rows or queries",
    },
    ForeignParameters {
        names: &["fixed_binary_splits"],
        answer: "planetree does not constrain which features are split; leave features out of the data instead",
    },
    ForeignParameters {
        names: &[
            "simple_ctr",
            "combinations_ctr",
            "per_feature_ctr",
            "ctr_target_border_count",
            "counter_calc_method",
            "ctr_leaf_count_limit",
            "store_all_simple_ctr",
            "final_ctr_computation_mode",
        ],
        answer: "categories are codes ordered by convert; splits on them have no parameters of their own",
    },
    ForeignParameters {
        names: &[
            "leaf_estimation_backtracking",
            "model_shrink_rate",
            "model_shrink_mode",
            "langevin",
            "diffusion_temperature",
            "posterior_sampling",
        ],
        answer: "leaf values are one Newton step or a mean (leaf); lambda_l2 and learning_rate shrink them",
    },
    ForeignParameters {
        names: &["has_time", "fold_permutation_block", "fold_len_multiplier", "approx_on_full_history"],
        answer: "planetree has no ordered boosting: every tree learns from the residuals of all rows; remove it",
    },
    ForeignParameters {
        names: &["allow_const_label"],
        answer: "labels that are all equal cannot be learned from: train on other data",
    },
    // Other rankers of RankLib
    ForeignParameters { names: &["r"], answer: "set num_trees: a round of coordinate-ascent is a restart" },
    ForeignParameters { names: &["i"], answer: "set line_steps for coordinate-ascent" },
    ForeignParameters { names: &["reg"], answer: "coordinate-ascent has no penalty of weights: remove it" },
    ForeignParameters { names: &["max"], answer: "set max_repeats for adarank" },
    ForeignParameters {
        names: &["noeq"],
        answer: "adarank considers every feature in every round; max_repeats limits how often one is chosen in a row",
    },
];
