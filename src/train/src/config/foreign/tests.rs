use super::*;
use crate::config::keys::{Key, is_parameter, keys};
use crate::config::plan_keys::PLAN_KEYS;
use crate::config::raw::RawParameters;
use std::collections::HashSet;

/// The parameters in the documentation of LightGBM 4, but for those of monotone constraints.
const LIGHTGBM: &str = "config task objective boosting data_sample_strategy data valid num_iterations learning_rate num_leaves \
    tree_learner num_threads device_type seed deterministic force_col_wise force_row_wise histogram_pool_size \
    max_depth min_data_in_leaf min_sum_hessian_in_leaf bagging_fraction pos_bagging_fraction neg_bagging_fraction \
    bagging_freq bagging_seed bagging_by_query feature_fraction feature_fraction_bynode feature_fraction_seed \
    extra_trees extra_seed early_stopping_round early_stopping_min_delta first_metric_only max_delta_step \
    lambda_l1 lambda_l2 linear_lambda min_gain_to_split drop_rate max_drop skip_drop xgboost_dart_mode \
    uniform_drop drop_seed top_rate other_rate min_data_per_group max_cat_threshold cat_l2 cat_smooth \
    max_cat_to_onehot top_k feature_contri forcedsplits_filename refit_decay_rate cegb_tradeoff cegb_penalty_split \
    cegb_penalty_feature_lazy cegb_penalty_feature_coupled path_smooth interaction_constraints verbosity \
    input_model output_model saved_feature_importance_type snapshot_freq use_quantized_grad num_grad_quant_bins \
    quant_train_renew_leaf stochastic_rounding linear_tree max_bin max_bin_by_feature min_data_in_bin \
    bin_construct_sample_cnt data_random_seed is_enable_sparse enable_bundle use_missing zero_as_missing \
    feature_pre_filter pre_partition two_round header label_column weight_column group_column ignore_column \
    categorical_feature forcedbins_filename save_binary precise_float_parser parser_config_file \
    start_iteration_predict num_iteration_predict predict_raw_score predict_leaf_index predict_contrib \
    predict_disable_shape_check pred_early_stop pred_early_stop_freq pred_early_stop_margin output_result \
    convert_model_language convert_model objective_seed num_class is_unbalance scale_pos_weight sigmoid \
    boost_from_average reg_sqrt alpha fair_c poisson_max_delta_step tweedie_variance_power \
    lambdarank_truncation_level lambdarank_norm label_gain lambdarank_position_bias_regularization metric \
    metric_freq is_provide_training_metric eval_at multi_error_top_k auc_mu_weights num_machines local_listen_port \
    time_out machine_list_filename machines gpu_platform_id gpu_device_id gpu_use_dp num_gpu";

/// The parameters in the documentation of XGBoost 2 and of its Python package, but for those of monotone constraints.
const XGBOOST: &str = "booster device verbosity validate_parameters nthread disable_default_eval_metric eta gamma max_depth \
    min_child_weight max_delta_step subsample sampling_method colsample_bytree colsample_bylevel colsample_bynode \
    lambda alpha tree_method scale_pos_weight updater refresh_leaf process_type grow_policy max_leaves max_bin \
    num_parallel_tree interaction_constraints multi_strategy max_cached_hist_node extmem_single_page \
    max_cat_to_onehot max_cat_threshold sample_type normalize_type rate_drop one_drop skip_drop feature_selector \
    top_k objective base_score eval_metric seed seed_per_iteration tweedie_variance_power huber_slope \
    quantile_alpha aft_loss_distribution lambdarank_pair_method lambdarank_num_pair_per_sample \
    lambdarank_normalization lambdarank_score_normalization lambdarank_unbiased lambdarank_bias_norm ndcg_exp_gain \
    num_round num_boost_round n_estimators reg_alpha reg_lambda random_state n_jobs early_stopping_rounds \
    enable_categorical missing importance_type max_leaf_nodes";

/// The training parameters in the documentation of CatBoost 1.2 and their aliases, but for those of monotone constraints.
const CATBOOST: &str = "loss_function custom_metric eval_metric iterations learning_rate random_seed l2_leaf_reg bootstrap_type \
    bagging_temperature subsample sampling_frequency sampling_unit mvs_reg random_strength use_best_model \
    best_model_min_trees depth grow_policy min_data_in_leaf max_leaves ignored_features one_hot_max_size has_time \
    rsm nan_mode input_borders output_borders fold_permutation_block leaf_estimation_method \
    leaf_estimation_iterations leaf_estimation_backtracking fold_len_multiplier approx_on_full_history \
    class_weights class_names auto_class_weights scale_pos_weight boosting_type boost_from_average langevin \
    diffusion_temperature posterior_sampling allow_const_label score_function feature_weights \
    first_feature_use_penalties fixed_binary_splits penalties_coefficient per_object_feature_penalties \
    model_shrink_rate model_shrink_mode text_features tokenizers dictionaries feature_calcers text_processing \
    embedding_features early_stopping_rounds od_type od_pval od_wait classes_count border_count \
    feature_border_type per_float_feature_quantization thread_count used_ram_limit gpu_ram_part pinned_memory_size \
    gpu_cat_features_storage data_partition task_type devices logging_level metric_period verbose train_dir name \
    allow_writing_files save_snapshot snapshot_file snapshot_interval roc_file simple_ctr combinations_ctr \
    per_feature_ctr ctr_target_border_count counter_calc_method max_ctr_complexity ctr_leaf_count_limit \
    store_all_simple_ctr final_ctr_computation_mode num_trees num_boost_round n_estimators max_depth num_leaves \
    min_child_samples max_bin reg_lambda eta random_state colsample_bylevel cat_features";

/// The options of RankLib 2.18.
const RANKLIB: &str = "train ranker feature metric2t metric2T gmax qrel silent validate tvs tts kcv kcvmd kcvmn test load save score \
    norm noeq max epoch layer node lr tc round tree leaf shrinkage mls estop r i tolerance reg bag srate frate \
    rtype L2 idv rank indri sparse missingZero hr thread";

/// The other names of parameters in the documentation of LightGBM 4, but for those of monotone constraints.
const LIGHTGBM_ALIASES: &str = "config_file task_type objective_type app application loss boosting_type boost train train_data \
    train_data_file data_filename test valid_data valid_data_file test_data test_data_file valid_filenames \
    num_iteration n_iter num_tree num_trees num_round num_rounds nrounds num_boost_round n_estimators max_iter \
    shrinkage_rate eta num_leaf max_leaves max_leaf max_leaf_nodes tree tree_type tree_learner_type num_thread nthread \
    nthreads n_jobs device random_seed random_state hist_pool_size min_data_per_leaf min_data min_child_samples \
    min_samples_leaf min_sum_hessian_per_leaf min_sum_hessian min_hessian min_child_weight sub_row subsample bagging \
    pos_sub_row pos_subsample pos_bagging neg_sub_row neg_subsample neg_bagging subsample_freq bagging_fraction_seed \
    sub_feature colsample_bytree sub_feature_bynode colsample_bynode extra_tree early_stopping_rounds early_stopping \
    n_iter_no_change max_tree_output max_leaf_output reg_alpha l1_regularization reg_lambda lambda l2_regularization \
    min_split_gain rate_drop topk feature_contrib fc fp feature_penalty fs forced_splits_filename forced_splits_file \
    forced_splits verbose model_input model_in model_output model_out save_period linear_trees max_bins \
    subsample_for_bin data_seed is_sparse enable_sparse sparse is_enable_bundle bundle two_round_loading \
    use_two_round_loading has_header label weight group group_id query_column query query_id ignore_feature blacklist \
    cat_feature categorical_column cat_features categorical_features is_save_binary is_save_binary_file \
    is_predict_raw_score predict_rawscore raw_score is_predict_leaf_index leaf_index is_predict_contrib contrib \
    predict_result prediction_result predict_name prediction_name pred_name name_pred num_classes unbalance \
    unbalanced_sets metrics metric_types output_freq training_metric is_training_metric train_metric ndcg_eval_at ndcg_at \
    map_eval_at map_at num_machine local_port port machine_list_file machine_list mlist workers nodes";

/// The parameters of scikit-learn's gradient boosting and random forests that are not names of other tools.
const SCIKIT_LEARN: &str = "max_iter min_impurity_decrease max_features max_samples min_samples_split criterion bootstrap oob_score \
    warm_start ccp_alpha validation_fraction n_iter_no_change class_weight monotonic_cst interaction_cst";

fn foreign() -> impl Iterator<Item = &'static ForeignParameters> {
    FOREIGN.iter().chain(rare::FOREIGN).chain(aliases::FOREIGN)
}

#[test]
fn foreign_names_are_unique_and_not_our_own() {
    let own: HashSet<&str> =
        keys().flat_map(|key| key.names()).chain(PLAN_KEYS.iter().map(|key| key.name)).collect();
    let mut seen = HashSet::new();
    for name in foreign().flat_map(|entry| entry.names) {
        assert!(!own.contains(name), "{name} is a parameter of planetree");
        assert!(seen.insert(name), "{name} is listed twice");
    }
    assert!(seen.len() > 240);
    for (alias, name) in aliases::SAME {
        assert!(!own.contains(alias) && !seen.contains(alias), "{alias} is listed twice");
        assert!(seen.contains(name), "{alias}: {name} is not listed");
    }
}

#[test]
fn every_parameter_of_other_tools_is_ours_or_answered() {
    for (tool, names) in [
        ("LightGBM", LIGHTGBM),
        ("LightGBM", LIGHTGBM_ALIASES),
        ("XGBoost", XGBOOST),
        ("CatBoost", CATBOOST),
        ("RankLib", RANKLIB),
        ("scikit-learn", SCIKIT_LEARN),
    ] {
        let unknown: Vec<&str> = names.split_whitespace().filter(|name| !is_parameter(name)).collect();
        assert!(unknown.is_empty(), "{tool}: {unknown:?}");
    }
}

#[test]
fn answers_name_parameters_that_exist() {
    // Whatever is set to a value, or follows the word set, is a parameter.
    let answers = foreign().map(|entry| entry.answer);
    for answer in answers.chain(values::FOREIGN.iter().map(|entry| entry.answer)) {
        let words: Vec<&str> =
            answer.split(|letter: char| letter.is_whitespace() || ",;:()".contains(letter)).collect();
        for (place, word) in words.iter().enumerate() {
            let is_set = place > 0 && words[place - 1] == "set" && *word != "by";
            let assigned = word.split_once('=').map(|(name, _)| name);
            if let Some(name) = assigned.or(is_set.then_some(*word)) {
                let is_known = Key::named(name).is_some() || PLAN_KEYS.iter().any(|key| key.name == name);
                assert!(is_known, "{name} in {answer:?}");
            }
        }
    }
}

#[test]
fn values_of_other_tools_are_errors_with_an_answer() {
    for entry in values::FOREIGN {
        let key = Key::named(entry.key).unwrap();
        for value in entry.values {
            let value = value.replace('N', "10");
            for written in [value.clone(), value.to_ascii_uppercase()] {
                let fault = key.read(key.name, &written, &mut RawParameters::default()).unwrap_err();
                assert_eq!(fault.remedy, entry.answer, "{}={written}", entry.key);
            }
        }
        // Whatever an answer assigns is a value.
        for assigned in entry.answer.split_whitespace().filter_map(|word| word.split_once('=')) {
            let (name, value) = (assigned.0, assigned.1.trim_end_matches([',', ':', ';']));
            if let Some(key) = Key::named(name) {
                assert!(key.read(name, value, &mut RawParameters::default()).is_ok(), "{name}={value}");
            }
        }
    }
    let listed =
        Key::named("metric").unwrap().read("metric", "ndcg@5, logloss", &mut RawParameters::default());
    assert!(listed.unwrap_err().remedy.starts_with("metrics are those of rankings"));
}

/// The section of docs/train.md that lists all answers: a row per answer, in the order of the tables.
fn section() -> String {
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let names = foreign().flat_map(|entry| entry.names).copied();
    let names = names.chain(aliases::SAME.iter().map(|(alias, _)| *alias));
    let names = names.map(|name| (foreign_answer(name).unwrap(), format!("`{name}`")));
    let values = values::FOREIGN.iter().flat_map(|entry| {
        entry.values.iter().map(|value| (entry.answer, format!("`{}={value}`", entry.key)))
    });
    for (answer, written) in names.chain(values) {
        match rows.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, all)) => all.push(written),
            None => rows.push((answer, vec![written])),
        }
    }
    let rows = rows.iter().map(|(answer, all)| format!("| {} | {answer} |\n", all.join(", ")));
    format!("| written | answer |\n| --- | --- |\n{}", rows.collect::<String>())
}

#[test]
fn the_manual_lists_all_answers() {
    let page = include_str!("../../../../../docs/train.md");
    let section = section();
    assert!(
        page.contains(&format!("\n{section}\n## ")),
        "docs/train.md, parameters of other tools: replace the table by\n{section}"
    );
}
