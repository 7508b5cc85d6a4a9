//! Tests of valid and invalid settings from all sources.

use super::keys::{Key, KeyKind, keys};
use super::raw::RawParameters;
use super::*;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_metric::{Convention, Gain, Metric};
use planetree_model::model::FeatureNormalisation;
use proptest::prelude::*;

/// Converts parameters to the flat struct.
fn raw(parameters: &Parameters) -> RawParameters {
    RawParameters::of(parameters)
}

/// Loads the parameters of a plan with a single part.
fn with(set: &[&str]) -> Result<Parameters> {
    load(None, None, &texts(set)).map(only)
}

fn with_preset(preset: &str, set: &[&str]) -> Result<Parameters> {
    load(Some(preset), None, &texts(set)).map(only)
}

fn texts(set: &[&str]) -> Vec<String> {
    set.iter().map(|text| (*text).to_owned()).collect()
}

fn only(plan: TrainingPlan) -> Parameters {
    plan.only().expect("a plan of one part").clone()
}

/// Loads a config file `train.toml` with this content.
fn with_file(text: &str, set: &[&str]) -> Result<Parameters> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.toml");
    std::fs::write(&path, text).unwrap();
    load(None, Some(&Location::Local(path)), &texts(set)).map(only).map_err(|error| {
        let place = format!("{}/", directory.path().display());
        Error::usage(error.to_string().replace(&place, ""), error.remedy().unwrap_or_default())
    })
}

fn refused(outcome: Result<Parameters>, problem: &str, remedy: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.remedy().unwrap_or_default()), (problem, remedy));
    assert_eq!(error.exit_code(), 2);
}

/// Returns a value other than the default, and its printed form.
fn another_value(key: &Key) -> (&'static str, &'static str) {
    match key.name {
        "candidates" => ("streaming", "\"streaming\""),
        "ensemble" => ("RF", "\"bag\""),
        "criterion" => ("log_loss", "\"entropy\""),
        "bootstrap" | "tree_strength" => ("1", "true"),
        "redraw_features" => ("0", "false"),
        "leaf_score" => ("square", "\"square\""),
        "listwise_metric" => ("MAP", "\"map\""),
        "split_by" => ("gradient", "\"gradient\""),
        "leaf" => ("mean", "\"mean\""),
        "bagging_by" => ("queries", "\"queries\""),
        "bagging_per" => ("run", "\"run\""),
        "leaf_order" => ("biggest", "\"biggest\""),
        "listwise_discount" => ("power:0.1", "\"power:0.1\""),
        "features_per_node" => ("0.25", "0.25"),
        "missing" => ("learned", "\"learned\""),
        "normalise_features" => ("zscore", "\"z\""),
        "monotone_constraints" => ("f1=1,f2=-1", "\"f1=1,f2=-1\""),
        "hidden_layers" => ("32,16", "\"32,16\""),
        "activation" => ("sigmoid", "\"logistic\""),
        "optimiser" => ("SGD", "\"sgd\""),
        "svm_c" => ("2", "2.0"),
        "cost_lambda" => ("0.5", "0.5"),
        "train_metric" => ("MAP", "\"map\""),
        "objective" => ("rank:ndcg", "\"lambdarank\""),
        "lambda_metric" => ("ERR", "\"err\""),
        "lambda_norm" => ("no", "false"),
        "unbiased" => ("1", "true"),
        "label_gain" => ("0,1,5", "\"0:1:5\""),
        "label_map" => ("0,1=0;2=1", "\"0,1=0;2=1\""),
        "convention" => ("lightgbm", "\"lightgbm\""),
        "base_score" => ("feature:f3", "\"feature:f3\""),
        "metric" => ("err,NDCG@5", "[\"err\", \"ndcg@5\"]"),
        "value_groups" => ("7", "7"),
        "workers" => ("3", "3"),
        _ if matches!(key.kind, KeyKind::Real { .. }) => ("0.125", "0.125"),
        _ => ("7", "7"),
    }
}

#[test]
fn every_parameter_can_be_set_under_every_name() {
    for key in keys().filter(|key| !matches!(key.kind, KeyKind::Agreed { .. } | KeyKind::QueryFraction)) {
        let (value, printed) = another_value(key);
        let preset = match key.name {
            "criterion" | "tree_strength" | "redraw_features" | "cost_batch" => "rf",
            "bootstrap" | "pairs_per_document" | "listwise_levels" | "leaf_score" => "rf-point",
            "leaf_order"
            | "listwise_discount"
            | "listwise_truncation"
            | "listwise_metric"
            | "queries_per_node" => "rf-list",
            "normalise_features" => "linear",
            "hidden_layers" | "activation" | "optimiser" | "batch_queries" | "restarts" => "ranknet-net",
            "svm_c" | "svm_tolerance" => "ranksvm",
            "undersample" => "svm",
            "train_metric" | "tolerance" | "max_repeats" => "adarank",
            "line_steps" => "coordinate-ascent",
            "value_groups" | "workers" => "pgbrt",
            "margin" => "gbrank",
            "lambda_metric" | "truncation_level" | "sigma" | "lambda_norm" | "label_gain"
            | "relevant_from" | "unbiased" | "bias_norm" => "lambdamart",
            _ => "planet",
        };
        let default = key.print(&raw(&with_preset(preset, &[]).unwrap())).unwrap_or_default();
        assert_ne!(default, printed, "{}", key.name);
        for name in key.names() {
            let parameters = with_preset(preset, &[&format!("{name}={value}")]).unwrap();
            assert_eq!(key.print(&raw(&parameters)).unwrap(), printed, "{name}");
            let in_file = with_file(&format!("preset = \"{preset}\"\n{name} = {printed}\n"), &[]).unwrap();
            assert_eq!(in_file, parameters, "{name}");
        }
    }
}

#[test]
fn fixed_behaviour_may_be_set_explicitly() {
    for key in keys() {
        let KeyKind::Agreed { values, .. } = &key.kind else { continue };
        for name in key.names() {
            for value in *values {
                assert_eq!(with(&[&format!("{name}={value}")]).unwrap(), with(&[]).unwrap());
            }
            assert!(with(&[&format!("{name}=17")]).is_err(), "{name}");
        }
    }
}

#[test]
fn presets_have_the_settings_of_their_papers() {
    let planet = with_preset("planet", &[]).unwrap();
    assert_eq!(planet, with(&[]).unwrap());
    assert_eq!(planet, Parameters::from_toml("").unwrap(), "defaults are those of the first preset");
    assert_eq!(
        (raw(&planet).candidates.kind, raw(&planet).shared.num_trees, raw(&planet).tree.max_depth),
        (Candidates::Static, 250, Some(5))
    );
    assert_eq!(
        (raw(&planet).learning_rate, raw(&planet).candidates.max_bin, raw(&planet).tree.min_data_in_leaf),
        (0.06, 255, 20)
    );
    assert_eq!(
        (raw(&planet).candidates.value_groups, raw(&planet).tree.sampling.fraction, raw(&planet).shared.seed),
        (0, 1.0, 0)
    );
    assert_eq!(planet.metrics, [Metric::Ndcg(Some(10)), Metric::Rmse]);
    let pgbrt = with_preset("pgbrt", &[]).unwrap();
    assert_eq!(
        (raw(&pgbrt).candidates.kind, raw(&pgbrt).candidates.max_bin, raw(&pgbrt).candidates.value_groups),
        (Candidates::Streaming, 25, 0)
    );
    assert_eq!(pgbrt.boost().unwrap().base_score, BaseScore::Constant(0.0));
    let grouped = with_preset("pgbrt-grouped", &[]).unwrap();
    assert_eq!((raw(&grouped).candidates.max_bin, raw(&grouped).candidates.value_groups), (50, 255));
    assert_eq!(grouped.boost().unwrap().base_score, BaseScore::Auto);
    assert_eq!(
        (raw(&pgbrt).shared.num_trees, raw(&pgbrt).tree.min_data_in_leaf, raw(&pgbrt).shared.missing),
        (250, 1, MissingPolicy::Zero)
    );
    let gbrt = with_preset("gbrt", &[]).unwrap();
    assert_eq!(
        (raw(&gbrt).candidates.kind, raw(&gbrt).candidates.max_bin, raw(&gbrt).candidates.value_groups),
        (Candidates::Exact, 0, 0)
    );
    assert_eq!(
        (raw(&gbrt).shared.num_trees, raw(&gbrt).tree.max_depth, raw(&gbrt).learning_rate),
        (1000, Some(3), 0.1)
    );
    assert_eq!(raw(&gbrt).boost.base_score, BaseScore::Constant(0.0));
    let mart = with_preset("mart", &[]).unwrap();
    assert_eq!((raw(&mart).boost.num_leaves, raw(&mart).boost.base_score), (Some(7), BaseScore::Auto));
    for (preset, steps) in [
        ("lambdamart", (SplitBy::Newton, LeafStep::Newton)),
        ("lambdamart-paper", (SplitBy::Gradient, LeafStep::Newton)),
        ("ranknet", (SplitBy::Gradient, LeafStep::Newton)),
        ("mart", (SplitBy::Gradient, LeafStep::Newton)),
    ] {
        let parameters = raw(&with_preset(preset, &[]).unwrap());
        assert_eq!((parameters.boost.split_by, parameters.boost.leaf), steps, "{preset}");
    }
    let paper = with_preset("lambdamart-paper", &[]).unwrap();
    assert_eq!((raw(&paper).shared.num_trees, raw(&paper).boost.num_leaves), (500, Some(31)));
    assert_eq!((raw(&paper).objective.lambda_norm, raw(&paper).objective.truncation_level), (false, None));
    for preset in presets() {
        assert!(!preset.description.is_empty() && !preset.paper.is_empty(), "{}", preset.name);
    }
    let point = with_preset("rf-point", &[]).unwrap();
    assert_eq!((raw(&point).learner.name, raw(&point).forest.criterion), ("bag", CriterionName::Entropy));
    assert_eq!(
        (raw(&point).shared.num_trees, raw(&point).tree.sampling.fraction, raw(&point).tree.sampling.unit),
        (500, 0.63, Sampling::Queries)
    );
    assert_eq!(
        (raw(&point).tree.features_per_node, raw(&point).tree.max_depth, raw(&point).tree.min_data_in_leaf),
        (FeatureCount::Log2, None, 1)
    );
    let rand = with_preset("rf-rand", &[]).unwrap();
    assert_eq!(
        (raw(&rand).candidates.kind, raw(&rand).tree.features_per_node),
        (Candidates::Random, FeatureCount::Count(1))
    );
    assert_eq!(raw(&rand).candidates.max_bin, 0, "cuts between values, not between bins");
    for preset in ["rf-point", "rf-rand", "rf-pair", "rf-hybrid"] {
        assert!(!raw(&with_preset(preset, &[]).unwrap()).forest.redraw_features, "{preset}");
    }
    let rf = with_preset("rf", &[]).unwrap();
    assert_eq!(
        (raw(&rf).forest.bootstrap, raw(&rf).tree.sampling.unit, raw(&rf).tree.sampling.fraction),
        (true, Sampling::Rows, 1.0)
    );
    assert_eq!(raw(&rf).tree.features_per_node, FeatureCount::Fraction(0.1));
    refused(with_preset("pgbtr", &[]), "unknown preset \"pgbtr\"", "did you mean pgbrt?");
    refused(
        with_preset("forest", &[]),
        "unknown preset \"forest\"",
        "the presets are planet, pgbrt, pgbrt-grouped, gbrt, sgbrt, ksgbrt, avg-ksgbrt, igbrt, bagboost, mart, mcrank, lambdamart, lambdamart-paper, lambdamart-err, ranknet, gbrank, xendcg, \
         rf-point, rf-rand, rf-pair, rf, rf-list, rf-hybrid, linear, logistic, svm, ranksvm, coordinate-ascent, adarank, adarank-map, rankboost, ranknet-net, lambdarank-net, listnet",
    );
}

#[test]
fn later_sources_replace_earlier_ones() {
    let text = "preset = 'gbrt'\nn_estimators = 7\nmetric = ['err', 'rmse']\nseed = 0x10\n";
    let parameters = with_file(text, &["eta=0.5", "num_trees=8", "num_trees=9"]).unwrap();
    assert_eq!((parameters.num_trees, raw(&parameters).learning_rate, parameters.seed), (9, 0.5, 16));
    assert_eq!(
        (raw(&parameters).candidates.kind, parameters.tree().unwrap().max_depth),
        (Candidates::Exact, Some(3))
    );
    assert_eq!(parameters.metrics, [Metric::Err(None), Metric::Rmse]);
    // User-set candidates override the preset's bins.
    assert_eq!(raw(&with(&["candidates=exact"]).unwrap()).candidates.max_bin, 0);
    assert_eq!(raw(&with_preset("pgbrt", &["candidates=static"]).unwrap()).candidates.value_groups, 0);
}

#[test]
fn two_aliases_of_one_parameter_in_one_source_are_rejected() {
    refused(
        with(&["eta=0.1", "lr=0.2"]),
        "--set lr=0.2: learning_rate is set twice, first as eta",
        "set learning_rate once; its names are learning_rate, eta, shrinkage_rate, lr",
    );
    refused(
        with_file("trees = 5\nnum_trees = 6\n", &[]),
        "train.toml:2:1: num_trees = 6: num_trees is set twice, first as trees",
        "set num_trees once; its names are num_trees, num_iterations, n_estimators, num_boost_round, num_round, \
         num_rounds, n_iter, iterations, num_iteration, nrounds, trees, epochs",
    );
    assert_eq!(with_file("trees = 5\n", &["num_trees=6"]).unwrap().num_trees, 6);
}

#[test]
fn unknown_names_get_suggestions() {
    let otherwise = "`planetree train --help` lists all parameters";
    for (name, remedy) in [
        ("learnig_rate", "did you mean learning_rate?"),
        ("Learning-Rate", "did you mean learning_rate?"),
        ("n_estimator", "did you mean n_estimators?"),
        ("max_leafs", "did you mean max_leaves?"),
        ("num_treees", "did you mean num_trees?"),
        ("frobnicate", otherwise),
        ("", otherwise),
    ] {
        refused(with(&[&format!("{name}=1")]), &format!("unknown parameter {name:?}"), remedy);
    }
    refused(
        with_file("# of today\nlearnig_rate = 0.1\n", &[]),
        "train.toml:2:1: unknown parameter \"learnig_rate\"",
        "did you mean learning_rate?",
    );
}

#[test]
fn invalid_values_report_what_is_expected() {
    for (setting, expected) in [
        ("num_trees=0", "a whole number from 1 to 1000000"),
        ("num_trees=2.5", "a whole number from 1 to 1000000"),
        ("num_trees=-1", "a whole number from 1 to 1000000"),
        ("num_trees=", "a whole number from 1 to 1000000"),
        ("learning_rate=0", "a number above 0, at most 10"),
        ("learning_rate=nan", "a number above 0, at most 10"),
        ("learning_rate=10.5", "a number above 0, at most 10"),
        ("max_depth=65", "a whole number from 1 to 64, or 0 or -1 for none"),
        ("max_depth=-2", "a whole number from 1 to 64, or 0 or -1 for none"),
        ("num_leaves=1", "a whole number from 2 to 1048576, or 0 or -1 for none"),
        ("min_data_in_leaf=x", "a whole number from 0"),
        ("lambda_l2=-1", "a number from 0"),
        ("lambda_l2=inf", "a number from 0"),
        ("subsample=1.1", "a number above 0, at most 1"),
        ("query_fraction=0", "a number above 0, at most 1"),
        ("candidates=quantile", "static, streaming, exact or random"),
        ("early_stopping=true", "a whole number from 1 to 1000000, or 0 or -1 for none"),
        ("max_features=0", "a count such as 10, a fraction with a decimal point such as 0.1, log2 or all"),
        ("max_features=1.5", "a count such as 10, a fraction with a decimal point such as 0.1, log2 or all"),
        ("colsample_bynode=2", "a fraction above 0, at most 1, or log2 or all"),
        ("seed=-1", "a whole number from 0"),
    ] {
        let error = with(&[setting]).unwrap_err();
        assert_eq!(error.to_string(), format!("--set {setting}: expected {expected}"));
        assert!(error.remedy().unwrap().starts_with("the default is "), "{setting}");
    }
    refused(
        with_file("candidates = \"static\"\nlearning_rate = 0\n", &[]),
        "train.toml:2:1: learning_rate = 0: expected a number above 0, at most 10",
        "the default is 0.06",
    );
    let error = with(&["augment_documents=0.5"]).unwrap_err();
    assert!(error.to_string().ends_with("planetree has no parameter \"augment_documents\""), "{error}");
    assert!(error.remedy().unwrap().contains("planetree augment --documents 0.5"));
    let learners = "expected boost, bag, linear, svm, ranksvm, adarank, coordinate-ascent or net";
    for name in ["dart", "goss"] {
        let error = with(&[&format!("booster={name}")]).unwrap_err();
        assert_eq!(error.to_string(), format!("--set booster={name}: {learners}"));
        assert!(error.remedy().unwrap().starts_with("planetree has no "), "{name}");
    }
    refused(
        with(&["metric=ndcg@10,ndgc"]),
        "--set metric=ndcg@10,ndgc: unknown metric \"ndgc\"",
        "did you mean ndcg?",
    );
    refused(with(&["metric=err,ERR"]), "--set metric=err,ERR: err is listed twice", "list it once");
    refused(
        with(&["metric=auc,ndcg@10,auc_pooled", "convention=mohan-cost"]),
        "--set metric=auc,ndcg@10,auc_pooled: auc and auc_pooled are one metric under the convention mohan-cost: the area \
         of all documents pooled",
        "pass one of them; with auc=query in the convention, auc and pauc are means of the queries",
    );
    assert!(with(&["metric=auc,auc_pooled", "convention=mohan-cost,auc=query"]).is_ok());
    assert!(with(&["metric=,"]).is_err());
}

#[test]
fn errors_name_file_line_and_argument() {
    let syntax = "write key = value, with strings in quotes: candidates = \"static\"";
    let error = with_file("num_trees = 5\ncandidates = static\n", &[]).unwrap_err();
    assert!(error.to_string().starts_with("train.toml:2:"), "{error}");
    assert!(error.to_string().ends_with(", in `candidates = static`"), "{error}");
    assert_eq!(error.remedy(), Some(syntax));
    let error = with_file("seed = 1\nseed = 2\n", &[]).unwrap_err();
    assert!(error.to_string().starts_with("train.toml:2:1: duplicate key"), "{error}");
    refused(
        with_file("[train]\nnum_trees = 5\n", &[]),
        "train.toml:1:2: train is a table, not a value",
        "write parameters as key = value, without a [section]",
    );
    refused(
        with_file("preset = 'gbtr'", &[]),
        "train.toml:1:1: unknown preset \"gbtr\"",
        "did you mean gbrt?",
    );
    refused(
        with(&["num_trees"]),
        "--set num_trees: no value given",
        "write --set key=value, such as --set num_trees=100",
    );
    refused(with(&["preset=gbrt"]), "--set preset: a preset is not a parameter", "write --preset gbrt");
    let absent = load(None, Some(&Location::Local("no/such.toml".into())), &[]).unwrap_err();
    assert!(absent.to_string().starts_with("no/such.toml: cannot open"), "{absent}");
}

#[test]
fn conflicting_settings_are_rejected() {
    refused(
        with(&["max_bin=256"]),
        "--set max_bin=256: static candidates need a whole number from 2 to 255",
        "set max_bin=255; candidates=streaming allows up to 10000",
    );
    refused(
        with(&["b=1", "splits=streaming"]),
        "--set b=1: streaming candidates need a whole number from 2 to 10000",
        "set max_bin=255",
    );
    assert_eq!(raw(&with(&["b=10000", "splits=streaming"]).unwrap()).candidates.max_bin, 10_000);
    refused(
        with_preset("gbrt", &["max_bin=50"]),
        "--set max_bin=50: exact candidates do not use bins",
        "remove it, or set candidates=static or candidates=streaming",
    );
    refused(
        with(&["value_groups=50"]),
        "--set value_groups=50: static candidates do not use value groups",
        "remove it, or set candidates=streaming",
    );
    refused(
        with_preset("pgbrt", &["value_groups=1"]),
        "--set value_groups=1: a single group leaves nothing to split",
        "set it to a number from 2 to 255, or to 0 to keep all values",
    );
    refused(
        with(&["max_depth=-1"]),
        "--set max_depth=-1: a tree needs a limit: max_depth or num_leaves",
        "set num_leaves=31 or max_depth=5, for example",
    );
    let best_first = with(&["max_depth=0", "num_leaves=31"]).unwrap();
    assert_eq!((raw(&best_first).tree.max_depth, raw(&best_first).boost.num_leaves), (None, Some(31)));
    assert_eq!(
        raw(&with(&["num_leaves=1000"]).unwrap()).tree.max_depth,
        None,
        "overrides the preset's depth"
    );
    assert_eq!(raw(&with(&["num_leaves=1000", "max_depth=7"]).unwrap()).tree.max_depth, Some(7));
}

#[test]
fn parameters_of_the_other_ensemble_are_rejected() {
    for (setting, name) in [
        ("eta=0.1", "learning_rate"),
        ("objective=lambdarank", "objective"),
        ("num_leaves=31", "num_leaves"),
        ("lambda_l2=1", "lambda_l2"),
        ("base_score=1", "base_score"),
    ] {
        let problem = format!("--set {setting}: a forest does not use {name}");
        refused(with_preset("rf", &[setting]), &problem, "remove it, or set ensemble=boost");
    }
    for setting in ["criterion=gini", "bootstrap=true", "pairs_per_document=3", "tree_strength=true"] {
        let name = setting.split('=').next().unwrap();
        let problem = format!("--set {setting}: boosting does not use {name}");
        refused(with(&[setting]), &problem, "remove it, or set ensemble=bag");
    }
    let remedy = "set candidates=static or candidates=exact";
    refused(
        with(&["splits=random"]),
        "--set splits=random: boosting does not support random candidates",
        remedy,
    );
    refused(
        with_preset("rf", &["candidates=streaming"]),
        "--set candidates=streaming: a forest does not support streaming candidates",
        remedy,
    );
    // User settings override the preset.
    let bagged = with_preset("pgbrt", &["ensemble=bag"]).unwrap();
    assert_eq!(
        (raw(&bagged).candidates.kind, raw(&bagged).learning_rate, raw(&bagged).candidates.value_groups),
        (Candidates::Static, 1.0, 0)
    );
    assert_eq!(
        raw(&with_preset("rf-rand", &["ensemble=boost", "max_depth=3"]).unwrap()).candidates.kind,
        Candidates::Static
    );
    assert_eq!(raw(&with_preset("rf-rand", &["max_bin=0"]).unwrap()).candidates.max_bin, 0);
    assert!(with_preset("rf-pair", &["candidates=exact"]).is_err());
    assert!(with_preset("rf-pair", &["max_bin=0"]).is_err());
    // Without bins, a forest on static candidates is one on all values. The preset's value is no choice.
    assert_eq!(
        with_preset("rf-point", &["max_bin=0"]).unwrap(),
        with_preset("rf-point", &["candidates=exact"]).unwrap()
    );
    assert_eq!(raw(&with_preset("rf-rand", &["candidates=static"]).unwrap()).candidates.max_bin, 255);
    for (setting, name) in [("redraw_features=false", "redraw_features"), ("leaf_score=square", "leaf_score")]
    {
        let problem = format!("--set {setting}: boosting does not use {name}");
        refused(with(&[setting]), &problem, "remove it, or set ensemble=bag");
    }
    for (setting, name) in [("split_by=gradient", "split_by"), ("leaf=mean", "leaf")] {
        let problem = format!("--set {setting}: a forest does not use {name}");
        refused(with_preset("rf", &[setting]), &problem, "remove it, or set ensemble=boost");
    }
}

#[test]
fn the_rows_of_a_split_and_of_a_leaf_are_two_limits() {
    let parameters = with(&["min_rows=50", "min_data=7"]).unwrap();
    assert_eq!(
        (parameters.tree().unwrap().min_data_to_split, parameters.tree().unwrap().min_data_in_leaf),
        (50, 7)
    );
    assert_eq!(with(&["min_samples_split=0"]).unwrap().tree().unwrap().min_data_to_split, 2);
}

#[test]
fn parameters_at_new_defaults_are_not_printed() {
    for preset in ["planet", "pgbrt", "lambdamart", "rf", "rf-list"] {
        let text = with_preset(preset, &[]).unwrap().to_toml();
        for name in [
            "redraw",
            "leaf_score",
            "listwise_metric",
            "queries_per_node",
            "to_split",
            "split_by",
            "\nleaf =",
            "label_map",
        ] {
            assert!(!text.contains(name), "{preset}: {name}");
        }
    }
    assert!(with_preset("lambdamart-paper", &[]).unwrap().to_toml().contains("split_by = \"gradient\"\n"));
    assert!(with_preset("rf-point", &[]).unwrap().to_toml().contains("redraw_features = false\n"));
}

#[test]
fn gradient_splits_are_checked() {
    refused(
        with_preset("lambdamart", &["split_by=gradient", "candidates=streaming"]),
        "--set split_by=gradient: streaming candidates sum hessians, not rows, unless objective=squared",
        "set split_by=newton, or candidates=static",
    );
    assert_eq!(
        raw(&with_preset("ranknet", &["candidates=streaming"]).unwrap()).boost.split_by,
        SplitBy::Newton
    );
    assert!(with_preset("pgbrt", &["split_by=gradient"]).is_ok());
    refused(
        with_preset("lambdamart", &["split_by=gradient", "leaf=mean", "lambda_l2=1"]),
        "--set lambda_l2=1: split_by=gradient with leaf=mean has no regularisation",
        "remove it, or set split_by=newton or leaf=newton",
    );
}

#[test]
fn listwise_metrics_and_leaf_scores_are_checked() {
    for metric in ["err", "map", "mrr", "p@5", "ndcg@10", "auc", "tau"] {
        assert!(with_preset("rf-list", &[&format!("listwise_metric={metric}")]).is_ok(), "{metric}");
    }
    for (set, text) in [
        (&["listwise_metric=rmse"][..], "rmse does not depend on the ranking"),
        (&["listwise_metric=dcg"], "dcg has no upper limit, so long queries would outweigh others"),
        (&["listwise_metric=err", "listwise_truncation=5"], "only listwise_metric=ndcg has it, not err"),
        (&["listwise_metric=err", "label_gain=linear"], "only listwise_metric=ndcg has it, not err"),
        (
            &["listwise_metric=ndcg@5", "listwise_truncation=5"],
            "conflicts with the depth of listwise_metric=ndcg@5",
        ),
        (&["redraw_features=true"], "listwise splits consider exactly features_per_node features"),
        (&["queries_per_node=0"], "expected a number above 0, at most 1"),
    ] {
        let error = with_preset("rf-list", set).unwrap_err();
        assert!(error.to_string().ends_with(text), "{error}");
    }
    let error = with_preset("rf", &["leaf_score=square"]).unwrap_err();
    assert!(error.to_string().ends_with("criterion=variance predicts the mean label"), "{error}");
    assert!(with_preset("rf-pair", &["leaf_score=exp2"]).is_err());
    assert!(with_preset("rf-list", &["leaf_score=exp2", "max_bin=0"]).is_ok());
    assert!(with_preset("rf-point", &["queries_per_node=0.5"]).is_err());
}

#[test]
fn parameters_of_linear_models_are_checked() {
    let linear = with_preset("linear", &[]).unwrap();
    let expected = LinearParameters {
        loss: LinearLoss::Squared,
        normalisation: FeatureNormalisation::Query,
        penalty: LinearPenalty::Lambda(1e-10),
    };
    assert_eq!((&linear.learner, linear.num_trees), (&LearnerParameters::Linear(expected), 1));
    assert!(linear.tree().is_none() && linear.boost().is_none() && linear.forest().is_none());
    assert_eq!(
        linear.to_toml(),
        "ensemble = \"linear\"\nobjective = \"squared\"\nrelevant_from = 1.0\nnum_trees = 1\n\
         lambda_l2 = 1e-10\nnormalise_features = \"query\"\nmissing = \"zero\"\nseed = 0\n\
         early_stopping_rounds = 0\nmetric = [\"ndcg@10\", \"rmse\"]\nconvention = \"planetree\"\n"
    );
    assert_eq!(Parameters::from_toml(&linear.to_toml()).unwrap(), linear);
    let logistic = with_preset("logistic", &["relevant_from=2", "lambda_l2=0.5"]).unwrap();
    let LearnerParameters::Linear(parameters) = &logistic.learner else { panic!("the learner is linear") };
    assert_eq!(parameters.loss, LinearLoss::Logistic { relevant_from: 2.0 });
    assert_eq!(Parameters::from_toml(&logistic.to_toml()).unwrap(), logistic);
    for setting in
        ["max_depth=5", "eta=0.1", "max_bin=255", "criterion=gini", "subsample=1.0", "num_leaves=31"]
    {
        let error = with_preset("linear", &[setting]).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("--set {setting}: a linear model does not use ")),
            "{error}"
        );
    }
    refused(
        with_preset("linear", &["objective=lambdarank"]),
        "--set objective=lambdarank: a linear model has no objective lambdarank",
        "set objective=squared or objective=logistic, or ensemble=boost",
    );
    // User settings override the preset.
    let ranked = with_preset("lambdamart", &["ensemble=linear"]).unwrap();
    let LearnerParameters::Linear(parameters) = &ranked.learner else { panic!("the learner is linear") };
    assert_eq!(parameters.loss, LinearLoss::Squared);
    assert!(with_preset("linear", &["ensemble=boost"]).unwrap().boost().is_some());
}

#[test]
fn trees_normalise_features_by_query() {
    for preset in ["mart", "rf", "lambdamart", "pgbrt"] {
        let plain = with_preset(preset, &[]).unwrap();
        assert!(!plain.to_toml().contains("normalise_features"), "the text of earlier versions is kept");
        assert_eq!(plain.tree().unwrap().normalisation, FeatureNormalisation::None);
        for normalisation in FeatureNormalisation::ALL {
            let setting = format!("normalise_features={}", normalisation.name());
            let parameters = with_preset(preset, &[&setting]).unwrap();
            let tree = parameters.tree().unwrap();
            assert_eq!(tree.normalisation, normalisation);
            let is_query = normalisation == FeatureNormalisation::Query;
            assert_eq!(tree.applied_normalisation() == FeatureNormalisation::Query, is_query);
            assert_eq!(Parameters::from_toml(&parameters.to_toml()).unwrap(), parameters);
        }
        refused(
            with_preset(preset, &["normalise_features=query", "missing=mean"]),
            "--set normalise_features=query: missing=mean: trees on features normalised by query cannot replace missing values by \
             those of other rows",
            "set missing to zero, one, learned, low, high or branch",
        );
        assert!(with_preset(preset, &["normalise_features=z", "missing=mean"]).is_ok());
    }
    refused(
        with_preset("mart", &["normalise_features=minmax", "base_score=feature:f1"]),
        "--set normalise_features=minmax: base_score is a feature, which normalise_features=minmax would not change: it applies \
         to splits only",
        "set normalise_features=none or query, or remove base_score",
    );
    assert!(with_preset("mart", &["normalise_features=query", "base_score=feature:f1"]).is_ok());
    // The normalisation of a preset of linear models is not that of trees.
    let boosted = with_preset("linear", &["ensemble=boost"]).unwrap();
    assert_eq!(boosted.tree().unwrap().normalisation, FeatureNormalisation::None);
}

#[test]
fn parameters_of_svms_are_checked() {
    let auto = with_preset("ranksvm", &[]).unwrap();
    assert_eq!((auto.num_trees, auto.early_stopping_rounds), (5, Some(5)));
    let given = with_preset("svm", &["svm_c=0.5", "relevant_from=2"]).unwrap();
    assert_eq!((given.num_trees, given.early_stopping_rounds), (1, None));
    let expected = LinearParameters {
        loss: LinearLoss::Hinge { relevant_from: 2.0, undersample: None },
        normalisation: FeatureNormalisation::Query,
        penalty: LinearPenalty::Cost(Some(0.5)),
    };
    assert_eq!(given.learner, LearnerParameters::Linear(expected));
    for parameters in [&auto, &given] {
        assert_eq!(&Parameters::from_toml(&parameters.to_toml()).unwrap(), parameters);
    }
    assert!(auto.to_toml().starts_with("ensemble = \"ranksvm\"\nnum_trees = 5\nnormalise_features"));
    for value in ["0", "-1", "nan", "1e13", "x"] {
        refused(
            with_preset("ranksvm", &[&format!("svm_c={value}")]),
            &format!("--set svm_c={value}: expected auto, or a number above 0, at most 1000000000000"),
            "the default is auto",
        );
    }
    refused(
        with_preset("ranksvm", &["early_stopping=0"]),
        "--set early_stopping=0: svm_c=auto keeps the best of its rounds",
        "remove it, or set svm_c=1, for example",
    );
    refused(
        with_preset("ranksvm", &["lambda_l2=1"]),
        "--set lambda_l2=1: a ranking SVM does not use lambda_l2",
        "remove it, or set ensemble=boost",
    );
    refused(
        with_preset("linear", &["svm_c=1"]),
        "--set svm_c=1: a linear model does not use svm_c",
        "remove it, or set ensemble=svm",
    );
    assert!(with_preset("ranksvm", &["relevant_from=2"]).is_err(), "pairs are of all labels");
    refused(
        with_preset("ranksvm", &["undersample=1"]),
        "--set undersample=1: a ranking SVM does not use undersample",
        "remove it, or set ensemble=svm",
    );
    refused(
        with_preset("svm", &["svm_tolerance=0.1"]),
        "--set svm_tolerance=0.1: an SVM does not use svm_tolerance",
        "remove it, or set ensemble=ranksvm",
    );
    let sampled = with_preset("svm", &["svm_c=1", "undersample=2.5"]).unwrap();
    let LearnerParameters::Linear(parameters) = &sampled.learner else { panic!("the learner is linear") };
    assert_eq!(parameters.loss, LinearLoss::Hinge { relevant_from: 1.0, undersample: Some(2.5) });
    assert!(sampled.learner.config().draws() && !given.learner.config().draws());
    assert_eq!(Parameters::from_toml(&sampled.to_toml()).unwrap(), sampled);
    let plan = TrainingPlan::from(auto.clone());
    refused(
        plan.check_validation(false).map(|()| auto),
        "svm_c = auto: there is no validation set to choose it on",
        "add one with --valid, or set svm_c=1, for example",
    );
    assert!(plan.check_validation(true).is_ok());
}

#[test]
fn parameters_of_nets_are_checked() {
    let net = with_preset("lambdarank-net", &["hidden_layers=32,16", "batch_queries=0", "epochs=7"]).unwrap();
    let LearnerParameters::Net(parameters) = &net.learner else { panic!("the learner is a net") };
    assert_eq!((net.num_trees, &parameters.hidden[..], parameters.batch_queries), (7, &[32, 16][..], None));
    assert!(net.tree().is_none() && net.boost().is_none() && net.forest().is_none());
    for preset in ["ranknet-net", "lambdarank-net", "listnet"] {
        let parameters = with_preset(preset, &["lambda_l2=0.5"]).unwrap();
        assert_eq!(Parameters::from_toml(&parameters.to_toml()).unwrap(), parameters);
    }
    let linear = with_preset("ranknet-net", &["hidden_layers=none"]).unwrap();
    assert!(raw(&linear).net.hidden.is_empty());
    let expected = "none, or the sizes of at most 8 layers such as 10 or 32,16, each from 1 to 4096";
    for value in ["0", "0,3", "4097", "-1", "3,,4", "x", "1,1,1,1,1,1,1,1,1"] {
        refused(
            with_preset("ranknet-net", &[&format!("hidden_layers={value}")]),
            &format!("--set hidden_layers={value}: expected {expected}"),
            "the default is 10",
        );
    }
    for (preset, remedy) in [
        ("ranknet-net", "the preset has 0.005"),
        ("lambdamart", "the preset has 0.05"),
        ("planet", "the default is 0.06"),
    ] {
        refused(
            with_preset(preset, &["eta=x"]),
            "--set eta=x: expected a number above 0, at most 10",
            remedy,
        );
    }
    refused(
        with_preset("ranknet-net", &["objective=rankboost"]),
        "--set objective=rankboost: a net has no objective rankboost",
        "set objective=ranknet or objective=lambdarank or objective=listnet or objective=xendcg or objective=gbrank or \
         objective=squared or objective=logistic or objective=query_rmse, or ensemble=boost",
    );
    refused(
        with_preset("ranknet-net", &["unbiased=true"]),
        "--set unbiased=true: a net does not correct for position bias",
        "remove it, or set ensemble=boost",
    );
}

#[test]
fn a_number_of_queries_overrides_a_fraction() {
    let counted = with_preset("rf-point", &["queries_per_tree=50"]).unwrap();
    assert_eq!((raw(&counted).tree.sampling.queries, raw(&counted).tree.sampling.fraction), (Some(50), 1.0));
    assert_eq!(raw(&counted).tree.sampling.unit, Sampling::Queries);
    let shared = with_file("queries_per_tree = 50\n", &["query_fraction=0.5"]).unwrap();
    assert_eq!((raw(&shared).tree.sampling.queries, raw(&shared).tree.sampling.fraction), (None, 0.5));
    assert!(with(&["queries_per_tree=50", "query_fraction=0.5"]).is_err());
    assert!(with(&["queries_per_tree=50", "bagging_by=rows"]).is_err());
}

#[test]
fn query_fraction_is_bagging_by_queries() {
    let parameters = with(&["query_fraction=0.63"]).unwrap();
    assert_eq!(
        (parameters.tree().unwrap().sampling.fraction, parameters.tree().unwrap().sampling.unit),
        (0.63, Sampling::Queries)
    );
    assert_eq!(with(&["query_fraction=0.63", "sampling=queries"]).unwrap(), parameters);
    let remedy = "set query_fraction alone, or bagging_fraction and bagging_by";
    for (other, shown) in [("subsample=0.5", "subsample = 0.5"), ("bagging_by=rows", "bagging_by = rows")] {
        refused(
            with(&["query_fraction=0.63", other]),
            &format!("--set query_fraction=0.63: conflicts with {shown}"),
            remedy,
        );
    }
    let later = with_file("subsample = 0.5\n", &["query_fraction=0.63"]).unwrap();
    assert_eq!(later, parameters);
}

#[test]
fn early_stopping_needs_a_validation_set() {
    let parameters = with(&["early_stopping=10"]).unwrap();
    assert!(parameters.check_validation(true).is_ok() && with(&[]).unwrap().check_validation(false).is_ok());
    refused(
        parameters.check_validation(false).map(|()| parameters),
        "early_stopping_rounds = 10: there is no validation set",
        "add one with --valid, or set early_stopping_rounds=0",
    );
}

#[test]
fn feature_counts_are_at_least_one_and_at_most_all() {
    let count =
        |text: &str| raw(&with(&[&format!("features_per_node={text}")]).unwrap()).tree.features_per_node;
    assert_eq!((count("all").of(46), count("10").of(46), count("10").of(4)), (46, 10, 4));
    assert_eq!((count("0.1").of(46), count("0.1").of(3), count("1.0").of(46)), (5, 1, 46));
    assert_eq!((count("log2").of(46), count("LOG2").of(64), count("log2").of(1)), (6, 7, 1));
    assert_eq!((count("1").of(46), count("all").of(0), count("log2").of(0)), (1, 1, 1));
    assert_eq!(
        raw(&with(&["colsample_bynode=1"]).unwrap()).tree.features_per_node,
        FeatureCount::Fraction(1.0)
    );
    assert_eq!(raw(&with(&["max_features=1"]).unwrap()).tree.features_per_node, FeatureCount::Count(1));
}

#[test]
fn printed_parameters_are_complete() {
    let text = with_preset("gbrt", &[]).unwrap().to_toml();
    assert_eq!(
        text,
        "ensemble = \"boost\"\nobjective = \"squared\"\nlambda_metric = \"ndcg\"\ntruncation_level = 30\nsigma = 1.0\nlambda_norm = true\n\
         margin = 1.0\nlabel_gain = \"exp2\"\nrelevant_from = 1.0\nunbiased = false\nbias_norm = 1.0\n\
         base_score = 0.0\ncandidates = \"exact\"\ncriterion = \"variance\"\nlistwise_levels = 0\nleaf_order = \"breadth\"\nlistwise_discount = \"log2\"\nlistwise_truncation = 0\npairs_per_document = 0\nnum_trees = 1000\nlearning_rate = 0.1\nmax_depth = 3\nnum_leaves = 0\n\
         min_data_in_leaf = 1\nmin_gain = 0.0\nlambda_l2 = 0.0\nmin_sum_hessian = 0.0\nmax_bin = 0\nvalue_groups = 0\nworkers = 0\n\
         bagging_fraction = 1.0\nbagging_by = \"rows\"\nqueries_per_tree = 0\nbootstrap = false\nfeature_fraction = 1.0\nfeatures_per_node = \"all\"\n\
         missing = \"zero\"\nseed = 0\nearly_stopping_rounds = 0\ntree_strength = false\nmetric = [\"ndcg@10\", \"rmse\"]\n\
         convention = \"planetree\"\n"
    );
    assert_eq!(with_file(&text, &[]).unwrap(), with_preset("gbrt", &[]).unwrap());
}

#[test]
fn listwise_parameters_are_checked() {
    let list = with_preset("rf-list", &[]).unwrap();
    assert_eq!((raw(&list).forest.criterion, raw(&list).listwise.levels), (CriterionName::Ndcg, None));
    let hybrid = with_preset("rf-hybrid", &[]).unwrap();
    assert_eq!(
        (raw(&hybrid).forest.criterion, raw(&hybrid).listwise.levels),
        (CriterionName::Entropy, Some(6))
    );
    // User settings override the preset.
    let chosen = raw(&with_preset("rf-list", &["listwise_levels=4"]).unwrap());
    assert_eq!((chosen.forest.criterion, chosen.listwise.levels), (CriterionName::Entropy, Some(4)));
    let chosen = raw(&with_preset("rf-hybrid", &["criterion=ndcg"]).unwrap());
    assert_eq!((chosen.forest.criterion, chosen.listwise.levels), (CriterionName::Ndcg, None));
    assert_eq!(
        raw(&with_preset("rf-list", &["label_gain=linear"]).unwrap()).objective.label_gain,
        Gain::Linear
    );
    for (preset, set, text) in [
        ("rf-point", &["leaf_order=random"][..], "only listwise trees use it"),
        ("rf-point", &["listwise_truncation=10"], "only listwise trees use it"),
        ("rf-list", &["candidates=random"], "listwise trees need static or exact candidates"),
        ("rf-list", &["bagging_by=rows"], "whole queries"),
        ("rf-list", &["pairs_per_document=3"], "whole queries"),
        ("rf-list", &["listwise_discount=power:-1"], "expected log2"),
        ("rf-list", &["criterion=ndcg", "listwise_levels=3"], "all levels are listwise"),
        ("mart", &["listwise_levels=3"], "boosting does not use listwise_levels"),
    ] {
        let error = with_preset(preset, set).unwrap_err();
        assert!(error.to_string().contains(text), "{set:?}: {error}");
        assert!(error.remedy().is_some(), "{set:?}");
    }
}

fn any_parameters() -> impl Strategy<Value = Parameters> {
    let numbers = (1..=1_000_000_u32, 1e-9..10.0, 0_u32..=64, 2..=1_048_576_u32, 1..1_000_000_u64);
    let reals = (0.0..1e9, 0.0..1e-7, 1e-12..=1.0, 1e-3..=1.0);
    let features = prop_oneof![
        Just(FeatureCount::All),
        Just(FeatureCount::Log2),
        (1_usize..1000).prop_map(FeatureCount::Count),
        (1e-9..=1.0).prop_map(FeatureCount::Fraction),
        Just(FeatureCount::Fraction(1.0)),
    ];
    let kinds = prop_oneof![
        (2..=255_u32).prop_map(|bins| (Candidates::Static, bins, 0)),
        (2..=10_000_u32, prop_oneof![Just(0), 2..=255_u32]).prop_map(|(bins, groups)| (
            Candidates::Streaming,
            bins,
            groups
        )),
        Just((Candidates::Exact, 0, 0)),
    ];
    let missing = prop_oneof![
        Just(MissingPolicy::Zero),
        Just(MissingPolicy::One),
        Just(MissingPolicy::Mean),
        Just(MissingPolicy::Median),
        Just(MissingPolicy::Low),
        Just(MissingPolicy::High),
        Just(MissingPolicy::Learned),
        Just(MissingPolicy::Branch),
    ];
    let metrics = Just(vec![Metric::Err(Some(5)), Metric::Ndcg(None), Metric::Rmse]).prop_shuffle();
    let rest = (missing, metrics, 0..=i64::MAX as u64, proptest::option::of(1_u32..100));
    (numbers, reals, features, kinds, rest).prop_map(|(numbers, reals, features_per_node, kinds, rest)| {
        let ranks = numbers.0 % 3 == 0;
        let counts = numbers.4 % 3 == 0;
        let bags = !ranks && kinds.0 != Candidates::Streaming && numbers.4 % 2 == 0;
        let mut raw = RawParameters::with_defaults();
        raw.learner = learners::LearnerSpec::named(if bags { "bag" } else { "boost" }).unwrap();
        raw.forest.criterion = if bags { CriterionName::Gini } else { CriterionName::Variance };
        raw.forest.bootstrap = bags;
        raw.forest.pairs_per_document = (bags && kinds.0 == Candidates::Static).then_some(3);
        raw.forest.tree_strength = bags;
        raw.forest.redraw_features = !bags || numbers.0 % 2 == 0;
        raw.forest.leaf_score =
            if bags && kinds.0 != Candidates::Static { LeafScore::Square } else { LeafScore::Expected };
        raw.objective.name = if ranks { ObjectiveName::LambdaRank } else { ObjectiveName::Squared };
        raw.objective.lambda_metric = if ranks { Metric::Err(Some(7)) } else { Metric::Ndcg(None) };
        raw.objective.truncation_level = if ranks { None } else { Some(30) };
        raw.objective.sigma = if ranks { reals.2 } else { 1.0 };
        raw.objective.lambda_norm = !ranks;
        raw.objective.margin = 1.0;
        raw.objective.label_gain = if ranks { Gain::Table(vec![0.0, reals.0]) } else { Gain::Exp2 };
        raw.objective.relevant_from = if ranks { 2.5 } else { 1.0 };
        raw.objective.unbiased = ranks;
        raw.objective.bias_norm = if ranks { reals.1 } else { 1.0 };
        raw.boost.base_score = match numbers.0 % 5 {
            _ if bags => BaseScore::Auto,
            0 => BaseScore::Feature("a \"b\" c".to_owned()),
            1 => BaseScore::Constant(-reals.0),
            _ => BaseScore::Auto,
        };
        raw.shared.label_map = ranks.then(|| "0,1=0;2,3,4=1".parse().unwrap());
        raw.shared.convention =
            if ranks { "letor4,ties=worst".parse().unwrap() } else { Convention::default() };
        raw.boost.min_sum_hessian = if bags { 0.0 } else { reals.1 };
        raw.candidates.kind = kinds.0;
        raw.shared.num_trees = numbers.0;
        raw.learning_rate = if bags { 1.0 } else { numbers.1 };
        raw.tree.max_depth = (numbers.2 > 0).then_some(numbers.2);
        raw.boost.num_leaves = (!bags && numbers.2 % 2 == 0).then_some(numbers.3);
        raw.tree.min_data_in_leaf = numbers.4;
        raw.tree.min_data_to_split = numbers.4.max(2);
        raw.tree.min_gain = reals.0;
        raw.boost.split_by =
            if ranks && kinds.0 != Candidates::Streaming { SplitBy::Gradient } else { SplitBy::Newton };
        raw.boost.leaf = if ranks || bags { LeafStep::Newton } else { LeafStep::Mean };
        raw.objective.lambda_l2 = if bags { 0.0 } else { reals.1 };
        raw.candidates.max_bin = kinds.1;
        raw.candidates.value_groups = kinds.2;
        raw.candidates.workers = u32::from(kinds.0 == Candidates::Streaming);
        raw.tree.sampling.fraction = if counts { 1.0 } else { reals.2 };
        raw.tree.sampling.unit =
            if !counts && numbers.0 % 2 == 0 { Sampling::Rows } else { Sampling::Queries };
        raw.tree.sampling.per_run = !bags && numbers.4 % 5 == 0;
        raw.tree.sampling.queries = counts.then_some(numbers.3);
        raw.tree.feature_fraction = reals.3;
        raw.tree.features_per_node = features_per_node;
        raw.shared.missing = rest.0;
        raw.shared.seed = rest.2;
        raw.shared.early_stopping_rounds = rest.3;
        raw.shared.metrics = rest.1;
        raw.into_parameters()
    })
}

proptest! {
    #[test]
    fn printed_parameters_parse_to_the_same(parameters in any_parameters()) {
        let text = parameters.to_toml();
        prop_assert_eq!(&Parameters::from_toml(&text).unwrap(), &parameters);
        prop_assert_eq!(Parameters::from_toml(&text).unwrap().to_toml(), text);
    }

    #[test]
    fn no_text_panics(text in "\\PC*", name in "[a-z_0-9=@.\n\"\\[\\]]{0,40}") {
        let _ = Parameters::from_toml(&text);
        let _ = Parameters::from_toml(&name);
        let _ = TrainingPlan::from_toml(&text);
        let _ = load(None, None, &[text, name]);
    }
}
