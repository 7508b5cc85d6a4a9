//! Categories have different codes in different datasets; models and datasets are matched by category.

use crate::support::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Categories and their labels. In this order, codes and labels are not correlated.
const COLOURS: [(&str, u32); 6] =
    [("red", 3), ("green", 0), ("blue", 2), ("white", 0), ("black", 1), ("dark grey", 0)];

/// Rows of queries whose documents have the given categories, as indices into [`COLOURS`].
fn rows(prefix: &str, queries: usize, colours: &[usize]) -> Vec<String> {
    let mut rows = Vec::new();
    for query in 0..queries {
        for document in 0..12 {
            let draw = (query * 7919 + document * 104_729 + query * document * 31) % 9973;
            let (word, label) = COLOURS[colours[draw % colours.len()]];
            let size = ["S", "M", "L"][draw / 7 % 3];
            let x = draw as f64 / 9973.0;
            rows.push(format!("{prefix}{query},{prefix}{query}-{document},{label},{x:.4},{word},{size}"));
        }
    }
    rows
}

fn csv(directory: &Path, name: &str, rows: &[String]) {
    let text = format!("query_id,doc_id,label,x,colour,size\n{}\n", rows.join("\n"));
    fs::write(directory.join(format!("{name}.csv")), text).unwrap();
}

/// Creates `train`; `other`, whose categories appear in another order; and `same`, the rows of `other` with
/// the codes of `train`.
fn data(directory: &Path) {
    csv(directory, "train", &rows("t", 40, &[0, 1, 2, 3, 4, 5]));
    csv(directory, "other", &rows("o", 25, &[5, 4, 3, 2, 1, 0]));
    run(directory, "convert train.csv --output train --partition-rows 100").ok();
    run(directory, "convert other.csv --output other --partition-rows 90").ok();
    run(directory, "convert other.csv --output same --partition-rows 90 --categories-from train").ok();
    let codes = |name: &str| rows_of(&directory.join(name)).into_iter().map(|row| row.features[1]).collect();
    let (other, same): (Vec<_>, Vec<_>) = (codes("other"), codes("same"));
    assert_ne!(other, same, "the codes differ");
}

#[test]
fn rankings_do_not_depend_on_codes() {
    let temporary = room();
    data(temporary.path());
    for options in [
        "--preset planet --set learning_rate=0.3",
        "--preset lambdamart --set missing=mean --set min_data_in_leaf=3",
        "--preset pgbrt --set learning_rate=0.3",
        "--preset gbrt --set learning_rate=0.3",
        "--preset rf-point",
        "--preset rf-pair",
        "--preset planet --set learning_rate=0.3 --set base_score=feature:colour",
    ] {
        let trained = |valid: &str| {
            let arguments = format!("--set num_trees=20 {options} --rounds rounds --model m");
            train(temporary.path(), &format!("--data train --valid {valid} {arguments}"));
            rounds_of(&temporary.path().join("rounds"))
        };
        let (same, log) = (trained("same"), trained("other"));
        assert!(same == log, "{options}: validation maps categories");
        let scored = predict(temporary.path(), "m", "other");
        assert!(predict(temporary.path(), "m", "same") == scored, "{options}: predictions map categories");
        if options.starts_with("--preset planet --set learning_rate=0.3") && !options.contains("feature:") {
            assert_eq!(ndcg(&scored), 1.0);
            assert_eq!(course(&log, "valid", "ndcg@10").last(), Some(&1.0));
        }
    }
}

#[test]
fn sql_and_explanations_map_categories() {
    let temporary = room();
    data(temporary.path());
    train(
        temporary.path(),
        "--data train --model m --preset planet --set num_trees=20 --set learning_rate=0.3",
    );
    let sql = |query: &str| {
        let output = command(temporary.path(), "sql --format csv").args(["-c", query]).output().unwrap();
        Ran::of(output)
    };
    for query in [
        "select query_id, doc_id, score, rank from score('m', 'DATA')",
        "select doc_id, feature, value, contribution from explain_score('m', 'DATA')",
        "select * from explain_difference('m', 'DATA', 'o3', 'o3-1', 'o3-7')",
    ] {
        let (other, same) =
            (sql(&query.replace("DATA", "other")).ok(), sql(&query.replace("DATA", "same")).ok());
        assert!(other.stdout.lines().count() > 1 && other.stdout == same.stdout, "{query}");
        assert_eq!(other.stderr, "");
    }
    let permuted =
        |data: &str| run(temporary.path(), &format!("describe m --permutation {data} --json")).ok().stdout;
    assert_eq!(permuted("other").replace("other", "same"), permuted("same"));
    // Any table with the category names can be scored; for a number, the dataset of the code would be
    // unknown.
    let ours = sql("select doc_id, score from score('m', 'other') order by doc_id").ok().stdout;
    let words =
        "select doc_id, planetree_score('m', x, colour, size) as score from 'other.csv' order by doc_id";
    assert_eq!(sql(words).ok().stdout, ours);
    let rejected = sql("select planetree_score('m', x, colour, size) from other").failed().stderr;
    assert!(
        rejected.contains("colour is of type Float32, but colour is categorical in the model"),
        "{rejected}"
    );
    let bins =
        sql("select bin_of('mauve', 'm', 'colour') is null, bin_of('blue', 'm', 'colour') is null").ok();
    assert_eq!(bins.stdout.lines().last(), Some("true,false"));
}

#[test]
fn unknown_categories_are_missing_and_counted() {
    let temporary = room();
    data(temporary.path());
    let known = rows("n", 20, &[0, 1, 2, 3, 4, 5]);
    let renamed = |from: &str, to: &str| -> Vec<String> {
        known.iter().map(|row| row.replace(",S", ",XL").replace(from, to)).collect()
    };
    // The first category that occurs is new as well, and all others have different codes.
    csv(temporary.path(), "new", &renamed(",green,", ",mauve,"));
    csv(
        temporary.path(),
        "gone",
        &renamed(",green,", ",,").iter().map(|row| row.replace(",XL", ",")).collect::<Vec<_>>(),
    );
    run(temporary.path(), "convert new.csv --output new").ok();
    run(temporary.path(), "convert gone.csv --output gone").ok();
    let note = |known: &str| {
        format!(
            "2 categories are unknown to {known} and treated as missing: colour (\"mauve\"), size (\"XL\")"
        )
    };
    for missing in ["zero", "mean", "learned"] {
        // Enough depth and splits to use both categorical features.
        let settings = format!("--set missing={missing} --set num_trees=30 --set learning_rate=0.3");
        train(
            temporary.path(),
            &format!("--data train --model m --preset planet --set min_gain=0 {settings}"),
        );
        let scored = predict(temporary.path(), "m", "new");
        assert!(scored == predict(temporary.path(), "m", "gone"), "{missing}: treated as missing");
    }
    let stderr = run(temporary.path(), "predict --model m --data new --output p").ok().stderr;
    let occurs_once = |stderr: &str, note: &str| {
        assert_eq!(stderr.matches(note).count(), 1, "{note} does not occur exactly once in:\n{stderr}")
    };
    let uses = stderr.contains("size");
    occurs_once(&stderr, if uses { "2 categories are unknown to m" } else { "1 category is unknown to m" });
    occurs_once(&stderr, "colour (\"mauve\")");
    let stderr =
        run(temporary.path(), "train --data train --valid new --model v --set num_trees=2").ok().stderr;
    occurs_once(&stderr, &format!("new: {}", note("train")));
    let output =
        command(temporary.path(), "sql").args(["-c", "select count(*) from score('m', 'new')"]).output();
    occurs_once(&Ran::of(output.unwrap()).ok().stderr, "colour (\"mauve\")");
    let stderr = run(
        temporary.path(),
        "train --data new --start-model m --model v --set num_trees=2 --set missing=learned",
    );
    occurs_once(&stderr.ok().stderr, &format!("new: {}", note("m")));
    let quiet = run(temporary.path(), "--quiet predict --model m --data new --output p").ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn categorical_and_numeric_columns_are_not_mixed() {
    let temporary = room();
    data(temporary.path());
    let numbers: Vec<String> = rows("u", 10, &[0, 1, 2])
        .iter()
        .map(|row| row.replace(",red,", ",7,").replace(",green,", ",8,").replace(",blue,", ",9,"))
        .collect();
    csv(temporary.path(), "numbers", &numbers);
    run(temporary.path(), "convert numbers.csv --output numbers").ok();
    train(temporary.path(), "--data train --model words --set num_trees=5 --set learning_rate=0.5");
    train(temporary.path(), "--data numbers --model figures --set num_trees=5 --set learning_rate=0.5");
    let expect_error = |arguments: &str, expected: &[&str]| {
        let stderr = run(temporary.path(), arguments).failed().stderr;
        for text in expected {
            assert!(stderr.contains(text), "{arguments}: {text:?} is not in\n{stderr}");
        }
        assert!(!temporary.path().join("out").exists(), "{arguments}");
    };
    let (to_words, to_numbers) = (
        "numbers: colour is numeric here, but categorical in ",
        "colour is categorical here, but numeric in ",
    );
    let remedy = "--categorical colour";
    expect_error(
        "predict --model words --data numbers --output out",
        &[to_words, "categorical in words\n", remedy],
    );
    expect_error(
        "predict --model figures --data other --output out",
        &["other: ", to_numbers, "numeric in figures\n", remedy],
    );
    expect_error(
        "train --data train --valid numbers --model out",
        &[to_words, "categorical in train\n", remedy],
    );
    expect_error(
        "train --data numbers --valid train --model out",
        &["train: ", to_numbers, "numeric in numbers\n", remedy],
    );
    expect_error("train --data train numbers --model out", &[to_words, "categorical in train\n", remedy]);
    expect_error("train --data numbers train --model out", &[to_words, "categorical in train\n", remedy]);
    expect_error(
        "train --data numbers --start-model words --model out",
        &[to_words, "categorical in words\n"],
    );
    expect_error(
        "train --data train --start-model figures --model out",
        &["train: ", to_numbers, "numeric in figures\n"],
    );
    expect_error("describe words --permutation numbers", &[to_words]);
    let output =
        command(temporary.path(), "sql").args(["-c", "select * from score('figures', 'other')"]).output();
    assert!(Ran::of(output.unwrap()).failed().stderr.contains(to_numbers));
    // The suggested remedy works.
    run(temporary.path(), "convert numbers.csv --output numbers --overwrite --categorical colour").ok();
    run(temporary.path(), "predict --model words --data numbers --output out").ok();
    // A column without values is neither categorical nor numeric.
    let empty: Vec<String> = numbers
        .iter()
        .map(|row| row.replace(",7,", ",,").replace(",8,", ",,").replace(",9,", ",,"))
        .collect();
    csv(temporary.path(), "empty", &empty);
    run(temporary.path(), "convert empty.csv --output empty").ok();
    let stderr = run(temporary.path(), "predict --model words --data empty --output out").ok().stderr;
    assert!(!stderr.contains("warning"), "{stderr}");
}

/// The trees of a model, and its features with their categories.
fn model_of(
    directory: &Path,
    name: &str,
) -> (arrow::array::RecordBatch, Vec<planetree::model::ModelFeature>) {
    let place = directory.join(name);
    let model = planetree::model::Model::read(&planetree::storage::Location::Local(place.clone())).unwrap();
    (table_of(&place), model.features)
}

#[test]
fn several_datasets_share_their_categories() {
    let temporary = room();
    data(temporary.path());
    csv(
        temporary.path(),
        "third",
        &rows("z", 12, &[4, 5]).iter().map(|row| row.replace(",M", ",XXL")).collect::<Vec<_>>(),
    );
    run(temporary.path(), "convert third.csv --output third").ok();
    run(temporary.path(), "convert train.csv other.csv third.csv --output all").ok();
    for options in [
        "--preset planet --set learning_rate=0.3",
        "--preset gbrt --set learning_rate=0.3",
        "--preset rf-point",
    ] {
        train(temporary.path(), &format!("--data all --model one --set num_trees=8 {options}"));
        train(
            temporary.path(),
            &format!("--data train other third --model several --set num_trees=8 {options}"),
        );
        assert!(model_of(temporary.path(), "one") == model_of(temporary.path(), "several"), "{options}");
    }
    // Folds of datasets with different codes.
    let folds = |data: &str, output: &str| {
        run(temporary.path(), &format!("--quiet cv --data {data} --set num_trees=4 --output {output}")).ok();
        predictions_of(&temporary.path().join(output).join("predictions.parquet"))
    };
    csv(temporary.path(), "more", &rows("m", 25, &[3, 2, 4, 0, 5, 1]));
    run(temporary.path(), "convert more.csv --output more").ok();
    run(temporary.path(), "convert more.csv --output more-same --categories-from train").ok();
    assert!(folds("train other more", "cv1") == folds("train same more-same", "cv2"));
}

#[test]
fn start_models_and_checkpoints_have_categories() {
    let temporary = room();
    data(temporary.path());
    train(temporary.path(), "--data train --model start --set num_trees=3 --set learning_rate=0.3");
    for data in ["other", "same"] {
        let more = "--start-model start --set num_trees=3 --set learning_rate=0.3";
        train(temporary.path(), &format!("--data {data} {more} --model from-{data}"));
    }
    assert!(model_of(temporary.path(), "from-other") == model_of(temporary.path(), "from-same"));
    assert_eq!(model_of(temporary.path(), "start").1, model_of(temporary.path(), "from-other").1);
    // The same rows with different codes are a different training.
    run(temporary.path(), "convert train.csv --output recoded --categories-from other").ok();
    let options = "--model m --checkpoint stopped --checkpoint-every 1";
    let stopped = temporary.path().join("stopped");
    let arguments = format!("--data train {options}");
    kill_training_when(temporary.path(), &arguments, "a checkpoint", || stopped.exists());
    let resume = format!("--quiet train --data recoded --set num_trees=100000 {options} --resume");
    let stderr = run(temporary.path(), &resume).failed().stderr;
    assert!(stderr.contains("the checkpoint is from a different training run"), "{stderr}");
}

#[test]
fn exported_models_keep_their_categories() {
    let temporary = room();
    data(temporary.path());
    train(temporary.path(), "--data train --model m --set num_trees=10 --set learning_rate=0.3");
    let scores = predict(temporary.path(), "m", "other");
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json"), ("json", "out.planetree")] {
        let stderr =
            run(temporary.path(), &format!("export m --format {format} --output {name}")).ok().stderr;
        assert_eq!(stderr.contains("note: "), format != "json", "{stderr}");
        run(temporary.path(), &format!("import {name} --output back")).ok();
        let words = |name: &str| {
            let features = model_of(temporary.path(), name).1.into_iter();
            features.map(|feature| (feature.name, feature.words)).collect::<Vec<_>>()
        };
        assert_eq!(words("back"), words("m"), "{format}");
        for (ours, back) in scores.iter().zip(predict(temporary.path(), "back", "other")) {
            assert!((ours.score - back.score).abs() < 1e-6, "{format}");
        }
    }
    // Formats without categories need the codes.
    for format in
        ["solr", "elasticsearch-ltr", "opensearch-ltr", "elastic", "vespa", "onnx", "treelite", "pmml"]
    {
        let stderr = run(
            temporary.path(),
            &format!("export m --format {format} --output {format}.out --no-verify --lossy"),
        )
        .ok()
        .stderr;
        assert!(stderr.contains("note: categorical features: colour, size; "), "{format}: {stderr}");
    }
    // LightGBM maps categories itself; XGBoost uses the codes of the model.
    predict(temporary.path(), "m", "other");
    run(temporary.path(), "--quiet predict --model m --data other --scores scores.txt").ok();
    for check in
        ["words_lightgbm other.csv out.txt scores.txt", "words_xgboost other.csv out.json scores.txt"]
    {
        if let Some(found) = reference_script(temporary.path(), "exchange.py", check) {
            eprintln!("{check}: {found}");
        }
    }
    // A file without categories gets those of the dataset with its codes.
    let text = fs::read_to_string(temporary.path().join("out.txt")).unwrap();
    let bare: Vec<&str> = text.lines().filter(|line| !line.starts_with("planetree_words")).collect();
    fs::write(temporary.path().join("bare.txt"), bare.join("\n")).unwrap();
    let stderr = run(temporary.path(), "import bare.txt --output back").ok().stderr;
    assert!(stderr.contains("note: the model was trained on columns of type category"), "{stderr}");
    let stderr = run(temporary.path(), "predict --model back --data other --output p").failed().stderr;
    assert!(
        stderr.contains("colour is categorical here, but numeric in back")
            && stderr.contains("--categories-from"),
        "{stderr}"
    );
    run(temporary.path(), "import bare.txt --output back --categories-from train").ok();
    assert!(predict(temporary.path(), "back", "other") == scores);
    run(temporary.path(), "sample --shape letor --rows 50 --output text").ok();
    run(temporary.path(), "convert text/train.txt --output plain").ok();
    run(temporary.path(), "import bare.txt --output x --categories-from plain").failed();
    for (line, problem) in
        [("planetree_words=1 9", "does not match"), ("planetree_words=1", "does not match")]
    {
        let spoilt = text.lines().map(|own| if own.starts_with("planetree_words") { line } else { own });
        fs::write(temporary.path().join("bad.txt"), spoilt.collect::<Vec<_>>().join("\n")).unwrap();
        let stderr = run(temporary.path(), "import bad.txt --output x").failed().stderr;
        assert!(stderr.contains(problem), "{stderr}");
    }
}

#[test]
fn a_numeric_model_has_no_categories() {
    let temporary = room();
    dataset(temporary.path(), "data", &graded(71, 20, 10), "");
    train(temporary.path(), "--data data --model m --set num_trees=2");
    data(temporary.path());
    train(temporary.path(), "--data train --model with-words --set num_trees=2");
    let has_words = |name: &str| {
        String::from_utf8_lossy(&fs::read(temporary.path().join(name)).unwrap()).contains("words")
    };
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json"), ("json", "out.planetree")] {
        run(temporary.path(), &format!("--quiet export m --format {format} --output {name}")).ok();
        assert!(!has_words(name), "{format}");
    }
    assert!(!has_words("m"));
    assert!(has_words("with-words"));
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_maps_categories() {
    let temporary = room();
    data(temporary.path());
    let outcome = |valid: &str, cluster: &str| {
        let settings = "--set num_trees=6 --set learning_rate=0.4 --rounds rounds --model m";
        train(temporary.path(), &format!("--data train --valid {valid} {settings} {cluster}"));
        let read = |name: &str| fs::read(temporary.path().join(name)).unwrap();
        (read("m"), rounds_of(&temporary.path().join("rounds")))
    };
    let here = outcome("other", "");
    assert!(outcome("other", "--cluster local:2") == here);
    assert!(outcome("same", "").1 == here.1);
    let scored = |data: &str, cluster: &str| {
        let ran = run(temporary.path(), &format!("predict --model m --data {data} --output p {cluster}"));
        let stderr = ran.ok().stderr;
        let lines: BTreeMap<usize, String> = stderr.lines().map(str::to_owned).enumerate().collect();
        let notes: Vec<String> = lines.into_values().filter(|line| line.starts_with("warning")).collect();
        (fs::read(temporary.path().join("p")).unwrap(), notes)
    };
    assert!(scored("other", "--cluster local:2") == scored("other", ""));
    csv(
        temporary.path(),
        "new",
        &rows("n", 20, &[2, 1, 0]).iter().map(|row| row.replace(",red,", ",mauve,")).collect::<Vec<_>>(),
    );
    run(temporary.path(), "convert new.csv --output new --partition-rows 60").ok();
    let (bytes, notes) = scored("new", "--cluster local:2");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!((bytes, notes) == scored("new", ""));
    let numbers: Vec<String> = rows("u", 5, &[0]).iter().map(|row| row.replace(",red,", ",1,")).collect();
    csv(temporary.path(), "numbers", &numbers);
    run(temporary.path(), "convert numbers.csv --output numbers").ok();
    let stderr = run(temporary.path(), "predict --model m --data numbers --output q --cluster local:2")
        .failed()
        .stderr;
    assert!(stderr.contains("colour is numeric here, but categorical in"), "{stderr}");
}

#[test]
fn a_missing_category_is_not_the_first_category() {
    let temporary = room();
    let mut text = "qid,label,colour\n".to_owned();
    for query in 0..30 {
        text.push_str(&format!("q{query},3,red\nq{query},0,\nq{query},1,blue\n"));
    }
    std::fs::write(temporary.path().join("t.csv"), text).unwrap();
    run(temporary.path(), "convert t.csv --output t").ok();
    for preset in ["planet", "lambdamart", "pgbrt", "rf-point"] {
        let settings = "--set num_trees=20 --set min_data_in_leaf=1";
        run(
            temporary.path(),
            &format!("train --preset {preset} {settings} --data t --model {preset} --quiet"),
        )
        .ok();
        run(temporary.path(), &format!("predict --model {preset} --data t --scores {preset}.txt --quiet"))
            .ok();
        let scores = std::fs::read_to_string(temporary.path().join(format!("{preset}.txt"))).unwrap();
        let scores: Vec<f64> = scores.lines().take(3).map(|line| line.parse().unwrap()).collect();
        assert!(scores[0] > scores[2] && scores[2] > scores[1], "{preset}: {scores:?}");
    }
}

#[test]
fn categories_of_an_imported_model_are_not_replaced() {
    let temporary = room();
    let rows = |words: [&str; 2]| {
        let row = |query: usize| format!("q{query},1,{}\nq{query},0,{}\n", words[0], words[1]);
        format!("qid,label,colour\n{}", (0..20).map(row).collect::<String>())
    };
    for (name, words) in [("one", ["red", "blue"]), ("other", ["blue", "red"])] {
        std::fs::write(temporary.path().join(format!("{name}.csv")), rows(words)).unwrap();
        run(temporary.path(), &format!("convert {name}.csv --output {name}")).ok();
    }
    run(temporary.path(), "train --data one --model m --set num_trees=2 --set min_data_in_leaf=1").ok();
    run(temporary.path(), "export m --format lightgbm --output m.txt").ok();
    run(temporary.path(), "import m.txt --output same --categories-from one").ok();
    let stderr = run(temporary.path(), "import m.txt --output wrong --categories-from other").failed().stderr;
    assert!(stderr.contains("the model has different categories for colour"), "{stderr}");
}

/// A model of LightGBM, trained on a pandas frame with these categories: code 0 of `stock` scores 1, other values 2; code
/// 0 of `brand` scores 10, other values 20. `size` may have codes, too, so the file does not say which columns have them.
fn pandas_model(lists: &str) -> String {
    let tree = |number: u32, values: &str| {
        format!(
            "Tree={number}\nnum_leaves=2\nnum_cat=1\nsplit_feature={number}\nsplit_gain=1\nthreshold=0\ndecision_type=1\n\
             left_child=-1\nright_child=-2\nleaf_value={values}\nleaf_count=1 1\ncat_boundaries=0 1\ncat_threshold=1\n\n"
        )
    };
    format!(
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=2\nobjective=regression\n\
         feature_names=stock brand size\nfeature_infos=0:1 0:1:2 [0:1]\n\n{}{}end of trees\n\npandas_categorical:{lists}\n",
        tree(0, "1 2"),
        tree(1, "10 20")
    )
}

#[test]
fn categories_of_a_pandas_frame_keep_their_codes() {
    let temporary = room();
    let at = temporary.path();
    let data = |name: &str, rows: [&str; 3]| {
        let text = format!("query_id,label,stock,brand,size\n{}\n", rows.join("\n"));
        fs::write(at.join(format!("{name}.csv")), text).unwrap();
        run(at, &format!("convert {name}.csv --output {name}")).ok();
    };
    // The codes of the dataset are in the order of appearance, those of pandas in alphabetical order.
    data("t", ["a,1,yes,b,0", "a,0,no,c,1", "a,0,yes,a,0"]);
    fs::write(at.join("m.txt"), pandas_model(r#"[["no", "yes"], ["a", "b", "c"]]"#)).unwrap();
    let stderr = run(at, "import m.txt --output m").ok().stderr;
    assert!(stderr.contains("the imported model has no categories"), "{stderr}");
    let stderr = run(at, "import m.txt --output m --categories-from t").ok().stderr;
    assert!(!stderr.contains("note"), "{stderr}");
    run(at, "--quiet predict --model m --data t --scores scores.txt").ok();
    assert_eq!(fs::read_to_string(at.join("scores.txt")).unwrap(), "22\n21\n12\n");
    let words = model_of(at, "m").1.into_iter().map(|feature| feature.words.join(" "));
    assert_eq!(words.collect::<Vec<_>>(), ["no yes", "a b c", ""]);

    data("other", ["a,1,yes,b,0", "a,0,no,c,1", "a,0,yes,b,0"]);
    data("twins", ["a,1,yes,no,0", "a,0,no,yes,1", "a,0,yes,no,0"]);
    let both = r#"[["no", "yes"], ["no", "yes"]]"#;
    let one = r#"[["no", "yes"]]"#;
    for (lists, dataset, problem) in [
        (
            r#"[["no", "yes"], ["a", "b", "c"]]"#,
            "other",
            r#"has the categories ["a", "b", "c"] of the model: stock has ["yes", "no"]; brand has ["b", "c"]"#,
        ),
        (
            one,
            "twins",
            r#"has the categories ["no", "yes"], and these columns here have the same: stock, brand;"#,
        ),
        (both, "t", r#"["no", "yes"] and ["no", "yes"], and these columns here have the same: stock;"#),
        (
            r#"[["no", "yes"], ["yes", "no"]]"#,
            "twins",
            r#"["no", "yes"] and ["yes", "no"], and these columns here have the same: stock, brand;"#,
        ),
        (
            one,
            "t",
            r#"without a list of categories in the file of the model: brand; the file has ["no", "yes"]"#,
        ),
        (r#"[["no", "yes"], [0.5, 1.5]]"#, "t", "neither texts nor whole numbers"),
    ] {
        fs::write(at.join("bad.txt"), pandas_model(lists)).unwrap();
        let stderr =
            run(at, &format!("import bad.txt --output x --categories-from {dataset}")).failed().stderr;
        assert!(stderr.contains(problem), "{lists}: {stderr}");
        assert!(!at.join("x").exists(), "{lists}");
    }
    // Equal lists need no decision.
    fs::write(at.join("twins.txt"), pandas_model(both)).unwrap();
    run(at, "import twins.txt --output x --categories-from twins").ok();
    run(at, "--quiet predict --model x --data twins --scores twins-scores.txt").ok();
    assert_eq!(fs::read_to_string(at.join("twins-scores.txt")).unwrap(), "12\n21\n12\n");
    // Columns of whole numbers that are the codes of a dataset have its categories.
    fs::write(at.join("codes.txt"), pandas_model("[[0, 1], [0, 1, 2]]")).unwrap();
    run(at, "import codes.txt --output y --categories-from t").ok();
    run(at, "--quiet predict --model y --data t --scores codes-scores.txt").ok();
    assert_eq!(fs::read_to_string(at.join("codes-scores.txt")).unwrap(), "11\n22\n21\n");
}

#[test]
fn a_model_of_another_program_is_to_be_imported() {
    let temporary = room();
    data(temporary.path());
    fs::write(temporary.path().join("m.txt"), pandas_model("null")).unwrap();
    for command in ["predict --model m.txt --data train --output p", "export m.txt --format json --output x"]
    {
        let stderr = run(temporary.path(), command).failed().stderr;
        assert!(stderr.contains("import it first: planetree import m.txt --output MODEL"), "{stderr}");
    }
}
