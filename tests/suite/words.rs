//! Words have other codes in every dataset; models and datasets are brought together by the words.

use crate::learning::*;
use crate::support::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Words and the label that each stands for. As codes in this order, they are in no order of the labels.
const COLOURS: [(&str, u32); 6] =
    [("red", 3), ("green", 0), ("blue", 2), ("white", 0), ("black", 1), ("dark grey", 0)];

/// Rows of queries, each document with one of some words, by their places in [`COLOURS`].
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

/// `train`; `other`, whose words come in another order; `same`, the rows of `other` with the codes of `train`.
fn data(directory: &Path) {
    csv(directory, "train", &rows("t", 40, &[0, 1, 2, 3, 4, 5]));
    csv(directory, "other", &rows("o", 25, &[5, 4, 3, 2, 1, 0]));
    run(directory, "convert train.csv --output train --partition-rows 100").ok();
    run(directory, "convert other.csv --output other --partition-rows 90").ok();
    run(directory, "convert other.csv --output same --partition-rows 90 --categories-from train").ok();
    let codes = |name: &str| rows_of(&directory.join(name)).into_iter().map(|row| row.features[1]).collect();
    let (other, same): (Vec<_>, Vec<_>) = (codes("other"), codes("same"));
    assert_ne!(other, same, "the words have other codes");
}

#[test]
fn words_under_other_codes_rank_the_same() {
    let room = room();
    data(room.path());
    for way in [
        "--preset planet --set learning_rate=0.3",
        "--preset lambdamart --set missing=mean --set min_data_in_leaf=3",
        "--preset pgbrt --set learning_rate=0.3",
        "--preset gbrt --set learning_rate=0.3",
        "--preset rf-point",
        "--preset rf-pair",
        "--preset planet --set learning_rate=0.3 --set base_score=feature:colour",
    ] {
        let trained = |valid: &str| {
            let arguments = format!("--set num_trees=20 {way} --rounds rounds --model m");
            train(room.path(), &format!("--data train --valid {valid} {arguments}"));
            rounds_of(&room.path().join("rounds"))
        };
        let (same, log) = (trained("same"), trained("other"));
        assert!(same == log, "{way}: validation follows words");
        let scored = predict(room.path(), "m", "other");
        assert!(predict(room.path(), "m", "same") == scored, "{way}: predictions follow words");
        if way.starts_with("--preset planet --set learning_rate=0.3") && !way.contains("feature:") {
            assert_eq!(ndcg(&scored), 1.0);
            assert_eq!(course(&log, "valid", "ndcg@10").last(), Some(&1.0));
        }
    }
}

#[test]
fn sql_and_explanations_map_words() {
    let room = room();
    data(room.path());
    train(room.path(), "--data train --model m --preset planet --set num_trees=20 --set learning_rate=0.3");
    let sql = |query: &str| {
        let output = command(room.path(), "sql --format csv").args(["-c", query]).output().unwrap();
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
        |data: &str| run(room.path(), &format!("describe m --permutation {data} --json")).ok().stdout;
    assert_eq!(permuted("other").replace("other", "same"), permuted("same"));
    // Any table with the words themselves is scored by them; a number would be a code of nobody knows which dataset.
    let ours = sql("select doc_id, score from score('m', 'other') order by doc_id").ok().stdout;
    let words =
        "select doc_id, planetree_score('m', x, colour, size) as score from 'other.csv' order by doc_id";
    assert_eq!(sql(words).ok().stdout, ours);
    let refused = sql("select planetree_score('m', x, colour, size) from other").failed().stderr;
    assert!(refused.contains("colour is of type Float32, but colour has words in the model"), "{refused}");
    let bins =
        sql("select bin_of('mauve', 'm', 'colour') is null, bin_of('blue', 'm', 'colour') is null").ok();
    assert_eq!(bins.stdout.lines().last(), Some("true,false"));
}

#[test]
fn a_word_that_the_model_has_not_seen_is_missing_and_counted() {
    let room = room();
    data(room.path());
    let known = rows("n", 20, &[0, 1, 2, 3, 4, 5]);
    let renamed = |from: &str, to: &str| -> Vec<String> {
        known.iter().map(|row| row.replace(",S", ",XL").replace(from, to)).collect()
    };
    // The first word that is met is new, too, and all others have other codes.
    csv(room.path(), "new", &renamed(",green,", ",mauve,"));
    csv(
        room.path(),
        "gone",
        &renamed(",green,", ",,").iter().map(|row| row.replace(",XL", ",")).collect::<Vec<_>>(),
    );
    run(room.path(), "convert new.csv --output new").ok();
    run(room.path(), "convert gone.csv --output gone").ok();
    let note = |known: &str| {
        format!("2 words are not known to {known} and taken as missing: colour (\"mauve\"), size (\"XL\")")
    };
    for missing in ["zero", "mean", "learned"] {
        // Depth and splits enough for both features of words.
        let settings = format!("--set missing={missing} --set num_trees=30 --set learning_rate=0.3");
        train(room.path(), &format!("--data train --model m --preset planet --set min_gain=0 {settings}"));
        let scored = predict(room.path(), "m", "new");
        assert!(scored == predict(room.path(), "m", "gone"), "{missing}: as if there was nothing");
    }
    let said = run(room.path(), "predict --model m --data new --output p").ok().stderr;
    let once =
        |said: &str, note: &str| assert_eq!(said.matches(note).count(), 1, "{note} is not once in:\n{said}");
    let uses = said.contains("size");
    once(&said, if uses { "2 words are not known to m" } else { "1 word is not known to m" });
    once(&said, "colour (\"mauve\")");
    let said = run(room.path(), "train --data train --valid new --model v --set num_trees=2").ok().stderr;
    once(&said, &format!("new: {}", note("train")));
    let output = command(room.path(), "sql").args(["-c", "select count(*) from score('m', 'new')"]).output();
    once(&Ran::of(output.unwrap()).ok().stderr, "colour (\"mauve\")");
    let said = run(
        room.path(),
        "train --data new --start-model m --model v --set num_trees=2 --set missing=learned",
    );
    once(&said.ok().stderr, &format!("new: {}", note("m")));
    let quiet = run(room.path(), "--quiet predict --model m --data new --output p").ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn words_against_numbers_are_refused() {
    let room = room();
    data(room.path());
    let numbers: Vec<String> = rows("u", 10, &[0, 1, 2])
        .iter()
        .map(|row| row.replace(",red,", ",7,").replace(",green,", ",8,").replace(",blue,", ",9,"))
        .collect();
    csv(room.path(), "numbers", &numbers);
    run(room.path(), "convert numbers.csv --output numbers").ok();
    train(room.path(), "--data train --model words --set num_trees=5 --set learning_rate=0.5");
    train(room.path(), "--data numbers --model figures --set num_trees=5 --set learning_rate=0.5");
    let refused = |arguments: &str, says: &[&str]| {
        let said = run(room.path(), arguments).failed().stderr;
        for text in says {
            assert!(said.contains(text), "{arguments}: {text:?} is not in\n{said}");
        }
        assert!(!room.path().join("out").exists(), "{arguments}");
    };
    let (to_words, to_numbers) =
        ("numbers: colour has numbers here and words in ", "colour has words here and numbers in ");
    let remedy = "--categorical colour";
    refused("predict --model words --data numbers --output out", &[to_words, "words in words\n", remedy]);
    refused(
        "predict --model figures --data other --output out",
        &["other: ", to_numbers, "numbers in figures\n", remedy],
    );
    refused("train --data train --valid numbers --model out", &[to_words, "words in train\n", remedy]);
    refused(
        "train --data numbers --valid train --model out",
        &["train: ", to_numbers, "numbers in numbers\n", remedy],
    );
    refused("train --data train numbers --model out", &[to_words, "words in train\n", remedy]);
    refused("train --data numbers train --model out", &[to_words, "words in train\n", remedy]);
    refused("train --data numbers --start-model words --model out", &[to_words, "words in words\n"]);
    refused(
        "train --data train --start-model figures --model out",
        &["train: ", to_numbers, "numbers in figures\n"],
    );
    refused("describe words --permutation numbers", &[to_words]);
    let output = command(room.path(), "sql").args(["-c", "select * from score('figures', 'other')"]).output();
    assert!(Ran::of(output.unwrap()).failed().stderr.contains(to_numbers));
    // The remedy is one.
    run(room.path(), "convert numbers.csv --output numbers --overwrite --categorical colour").ok();
    run(room.path(), "predict --model words --data numbers --output out").ok();
    // A column without a single value has neither words nor numbers.
    let empty: Vec<String> = numbers
        .iter()
        .map(|row| row.replace(",7,", ",,").replace(",8,", ",,").replace(",9,", ",,"))
        .collect();
    csv(room.path(), "empty", &empty);
    run(room.path(), "convert empty.csv --output empty").ok();
    let said = run(room.path(), "predict --model words --data empty --output out").ok().stderr;
    assert!(!said.contains("warning"), "{said}");
}

/// The trees of a model, and its features with their words.
fn model_of(
    directory: &Path,
    name: &str,
) -> (arrow::array::RecordBatch, Vec<planetree::model::ModelFeature>) {
    let place = directory.join(name);
    let model = planetree::model::Model::read(&planetree::storage::Location::Local(place.clone())).unwrap();
    (table_of(&place), model.features)
}

#[test]
fn several_datasets_share_their_words() {
    let room = room();
    data(room.path());
    csv(
        room.path(),
        "third",
        &rows("z", 12, &[4, 5]).iter().map(|row| row.replace(",M", ",XXL")).collect::<Vec<_>>(),
    );
    run(room.path(), "convert third.csv --output third").ok();
    run(room.path(), "convert train.csv other.csv third.csv --output all").ok();
    for way in [
        "--preset planet --set learning_rate=0.3",
        "--preset gbrt --set learning_rate=0.3",
        "--preset rf-point",
    ] {
        train(room.path(), &format!("--data all --model one --set num_trees=8 {way}"));
        train(room.path(), &format!("--data train other third --model several --set num_trees=8 {way}"));
        assert!(model_of(room.path(), "one") == model_of(room.path(), "several"), "{way}");
    }
    // Folds of datasets that code their words differently.
    let folds = |data: &str, output: &str| {
        run(room.path(), &format!("--quiet cv --data {data} --set num_trees=4 --output {output}")).ok();
        predictions_of(&room.path().join(output).join("predictions.parquet"))
    };
    csv(room.path(), "more", &rows("m", 25, &[3, 2, 4, 0, 5, 1]));
    run(room.path(), "convert more.csv --output more").ok();
    run(room.path(), "convert more.csv --output more-same --categories-from train").ok();
    assert!(folds("train other more", "cv1") == folds("train same more-same", "cv2"));
}

#[test]
fn a_start_model_and_a_checkpoint_know_their_words() {
    let room = room();
    data(room.path());
    train(room.path(), "--data train --model start --set num_trees=3 --set learning_rate=0.3");
    for data in ["other", "same"] {
        let more = "--start-model start --set num_trees=3 --set learning_rate=0.3";
        train(room.path(), &format!("--data {data} {more} --model from-{data}"));
    }
    assert!(model_of(room.path(), "from-other") == model_of(room.path(), "from-same"));
    assert_eq!(model_of(room.path(), "start").1, model_of(room.path(), "from-other").1);
    // The same rows with other codes of their words are another training.
    run(room.path(), "convert train.csv --output recoded --categories-from other").ok();
    let arguments = |data: &str| {
        format!(
            "--quiet train --data {data} --model m --set num_trees=100000 --checkpoint stopped --checkpoint-every 1"
        )
    };
    let mut child = command(room.path(), &arguments("train")).spawn().unwrap();
    let begun = Instant::now();
    while !room.path().join("stopped").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint appears");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = run(room.path(), &format!("{} --resume", arguments("recoded"))).failed().stderr;
    assert!(said.contains("the checkpoint is of a different training"), "{said}");
}

#[test]
fn words_travel_with_models_to_other_programs() {
    let room = room();
    data(room.path());
    train(room.path(), "--data train --model m --set num_trees=10 --set learning_rate=0.3");
    let scores = predict(room.path(), "m", "other");
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json"), ("json", "out.planetree")] {
        let said = run(room.path(), &format!("export m --format {format} --output {name}")).ok().stderr;
        assert_eq!(said.contains("note: "), format != "json", "{said}");
        run(room.path(), &format!("import {name} --output back")).ok();
        let words = |name: &str| {
            let features = model_of(room.path(), name).1.into_iter();
            features.map(|feature| (feature.name, feature.words)).collect::<Vec<_>>()
        };
        assert_eq!(words("back"), words("m"), "{format}");
        for (ours, back) in scores.iter().zip(predict(room.path(), "back", "other")) {
            assert!((ours.score - back.score).abs() < 1e-6, "{format}");
        }
    }
    // LightGBM maps words itself, XGBoost takes the codes that come with the model.
    predict(room.path(), "m", "other");
    run(room.path(), "--quiet predict --model m --data other --scores scores.txt").ok();
    for check in
        ["words_lightgbm other.csv out.txt scores.txt", "words_xgboost other.csv out.json scores.txt"]
    {
        if let Some(found) = reference_script(room.path(), "exchange.py", check) {
            eprintln!("{check}: {found}");
        }
    }
    // A file without words gets those of the dataset that its codes are of.
    let text = fs::read_to_string(room.path().join("out.txt")).unwrap();
    let bare: Vec<&str> = text.lines().filter(|line| !line.starts_with("planetree_words")).collect();
    fs::write(room.path().join("bare.txt"), bare.join("\n")).unwrap();
    let said = run(room.path(), "import bare.txt --output back").ok().stderr;
    assert!(said.contains("note: it was trained on columns of type category"), "{said}");
    let said = run(room.path(), "predict --model back --data other --output p").failed().stderr;
    assert!(
        said.contains("colour has words here and numbers in back") && said.contains("--categories-from"),
        "{said}"
    );
    run(room.path(), "import bare.txt --output back --categories-from train").ok();
    assert!(predict(room.path(), "back", "other") == scores);
    run(room.path(), "sample --shape letor --rows 50 --output text").ok();
    run(room.path(), "convert text/train.txt --output plain").ok();
    run(room.path(), "import bare.txt --output x --categories-from plain").failed();
    for (line, problem) in
        [("planetree_words=1 9", "does not match"), ("planetree_words=1", "does not match")]
    {
        let spoilt = text.lines().map(|own| if own.starts_with("planetree_words") { line } else { own });
        fs::write(room.path().join("bad.txt"), spoilt.collect::<Vec<_>>().join("\n")).unwrap();
        let said = run(room.path(), "import bad.txt --output x").failed().stderr;
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn a_model_of_numbers_says_nothing_of_words() {
    let room = room();
    dataset(room.path(), "data", &graded(71, 20, 10), "");
    train(room.path(), "--data data --model m --set num_trees=2");
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json"), ("json", "out.planetree")] {
        run(room.path(), &format!("--quiet export m --format {format} --output {name}")).ok();
        assert!(!fs::read_to_string(room.path().join(name)).unwrap().contains("words"), "{format}");
    }
    assert!(!String::from_utf8_lossy(&fs::read(room.path().join("m")).unwrap()).contains("words"));
}

#[cfg(feature = "cluster")]
#[test]
fn a_cluster_maps_words() {
    let room = room();
    data(room.path());
    let outcome = |valid: &str, cluster: &str| {
        let settings = "--set num_trees=6 --set learning_rate=0.4 --rounds rounds --model m";
        train(room.path(), &format!("--data train --valid {valid} {settings} {cluster}"));
        let read = |name: &str| fs::read(room.path().join(name)).unwrap();
        (read("m"), rounds_of(&room.path().join("rounds")))
    };
    let here = outcome("other", "");
    assert!(outcome("other", "--cluster local:2") == here);
    assert!(outcome("same", "").1 == here.1);
    let scored = |data: &str, cluster: &str| {
        let ran = run(room.path(), &format!("predict --model m --data {data} --output p {cluster}"));
        let said = ran.ok().stderr;
        let lines: BTreeMap<usize, String> = said.lines().map(str::to_owned).enumerate().collect();
        let notes: Vec<String> = lines.into_values().filter(|line| line.starts_with("warning")).collect();
        (fs::read(room.path().join("p")).unwrap(), notes)
    };
    assert!(scored("other", "--cluster local:2") == scored("other", ""));
    csv(
        room.path(),
        "new",
        &rows("n", 20, &[2, 1, 0]).iter().map(|row| row.replace(",red,", ",mauve,")).collect::<Vec<_>>(),
    );
    run(room.path(), "convert new.csv --output new --partition-rows 60").ok();
    let (bytes, notes) = scored("new", "--cluster local:2");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!((bytes, notes) == scored("new", ""));
    let numbers: Vec<String> = rows("u", 5, &[0]).iter().map(|row| row.replace(",red,", ",1,")).collect();
    csv(room.path(), "numbers", &numbers);
    run(room.path(), "convert numbers.csv --output numbers").ok();
    let said =
        run(room.path(), "predict --model m --data numbers --output q --cluster local:2").failed().stderr;
    assert!(said.contains("colour has numbers here and words in"), "{said}");
}

#[test]
fn a_missing_word_is_not_the_first_word() {
    let room = room();
    let mut text = "qid,label,colour\n".to_owned();
    for query in 0..30 {
        text.push_str(&format!("q{query},3,red\nq{query},0,\nq{query},1,blue\n"));
    }
    std::fs::write(room.path().join("t.csv"), text).unwrap();
    run(room.path(), "convert t.csv --output t").ok();
    for preset in ["planet", "lambdamart", "pgbrt", "rf-point"] {
        let settings = "--set num_trees=20 --set min_data_in_leaf=1";
        run(room.path(), &format!("train --preset {preset} {settings} --data t --model {preset} --quiet"))
            .ok();
        run(room.path(), &format!("predict --model {preset} --data t --scores {preset}.txt --quiet")).ok();
        let scores = std::fs::read_to_string(room.path().join(format!("{preset}.txt"))).unwrap();
        let scores: Vec<f64> = scores.lines().take(3).map(|line| line.parse().unwrap()).collect();
        assert!(scores[0] > scores[2] && scores[2] > scores[1], "{preset}: {scores:?}");
    }
}

#[test]
fn words_of_an_imported_model_are_not_replaced() {
    let room = room();
    let rows = |words: [&str; 2]| {
        let row = |query: usize| format!("q{query},1,{}\nq{query},0,{}\n", words[0], words[1]);
        format!("qid,label,colour\n{}", (0..20).map(row).collect::<String>())
    };
    for (name, words) in [("one", ["red", "blue"]), ("other", ["blue", "red"])] {
        std::fs::write(room.path().join(format!("{name}.csv")), rows(words)).unwrap();
        run(room.path(), &format!("convert {name}.csv --output {name}")).ok();
    }
    run(room.path(), "train --data one --model m --set num_trees=2 --set min_data_in_leaf=1").ok();
    run(room.path(), "export m --format lightgbm --output m.txt").ok();
    run(room.path(), "import m.txt --output same --categories-from one").ok();
    let said = run(room.path(), "import m.txt --output wrong --categories-from other").failed().stderr;
    assert!(said.contains("already has other words for colour"), "{said}");
}
