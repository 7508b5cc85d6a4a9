//! Forests: the same to the byte however they are grown, good out of bag, clear about what cannot be.

use crate::learning::*;
use crate::support::*;
use crate::train_crash::{killed_and_resumed, stopped};
use crate::train_identity::least_memory;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every way to draw, weigh, cut and judge.
const WAYS: [&str; 9] = [
    "--preset rf-point",
    "--preset rf-point --set criterion=gini --set missing=learned --set feature_fraction=0.7",
    "--preset rf-point --set criterion=variance --set bagging_by=rows --set max_depth=6",
    "--preset rf-point --set candidates=exact --set queries_per_tree=20",
    "--preset rf-rand --set missing=learned",
    "--preset rf-rand --set features_per_node=4 --set max_bin=0",
    "--preset rf --set features_per_node=0.3",
    "--preset rf --set bagging_by=queries --set candidates=exact --set min_data_in_leaf=3",
    "--preset rf-pair --set pairs_per_document=4",
];

/// The same rows as one partition, many small ones and a few uneven ones, with and without weights.
pub fn same_rows(directory: &Path) {
    let examples = graded(21, 120, 25);
    fs::write(directory.join("rows.txt"), as_letor(&examples)).unwrap();
    fs::write(directory.join("rows.csv"), as_csv(&examples)).unwrap();
    for (name, options) in
        [("one", ""), ("many", "--partition-rows 60"), ("few", "--partition-rows 1111 --threads 1")]
    {
        run(directory, &format!("convert rows.txt --output {name} {options}")).ok();
        run(directory, &format!("convert rows.csv --output weighted-{name} {options}")).ok();
    }
    dataset(directory, "vali", &graded(22, 40, 15), "--partition-rows 100");
}

pub fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    train(directory, &format!("{arguments} --set num_trees=5 --set seed=3 --model m"));
    fs::read(directory.join("m")).unwrap()
}

#[test]
fn neither_threads_nor_partitions_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for way in WAYS {
        for kind in ["", "weighted-"] {
            let with = |partitions: &str, threads: u32| {
                model(room.path(), &format!("{way} --data {kind}{partitions} --threads {threads}"))
            };
            let expected = with("one", 1);
            let nodes = table_of(&room.path().join("m")).num_rows();
            assert!(nodes > 50, "{way}: the trees have splits");
            for (partitions, threads) in [("one", 2), ("one", 4), ("many", 2), ("few", 1), ("few", 4)] {
                assert!(
                    with(partitions, threads) == expected,
                    "{way}: {kind}{partitions}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn neither_threads_nor_partitions_change_the_log_or_what_is_out_of_bag() {
    let room = room();
    same_rows(room.path());
    for way in ["--preset rf-point", "--preset rf", "--preset rf-pair", "--preset rf-rand --set max_bin=0"] {
        let outputs = |data: &str, threads: u32| {
            let valid = format!("--valid vali=vali --rounds rounds --oob oob --threads {threads}");
            model(room.path(), &format!("{way} --data {data} {valid} --set tree_strength=true"));
            let scores: Vec<u64> =
                predictions_of(&room.path().join("oob")).iter().map(|row| row.score.to_bits()).collect();
            (rounds_of(&room.path().join("rounds")), scores)
        };
        let (log, scores) = outputs("one", 1);
        for split in ["oob", "vali", "vali.tree"] {
            assert_eq!(course(&log, split, &log[0].metric).len(), 5, "{way}");
        }
        for (data, threads) in [("one", 4), ("many", 2)] {
            // A metric of no query is no number, and that is not equal to itself.
            let (other, other_scores) = outputs(data, threads);
            assert_eq!(format!("{other:?}"), format!("{log:?}"), "{way} {data}");
            assert_eq!(other_scores, scores, "{way} {data}");
        }
    }
}

#[test]
fn binned_data_on_disk_do_not_change_a_byte() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 15000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 1000").ok();
    let cache = room.path().join("data.bins");
    for way in [
        "--preset rf-point",
        "--preset rf --set missing=learned --set min_data_in_leaf=2",
        "--preset rf-rand --set max_bin=0",
        "--preset rf-point --set candidates=exact --set max_depth=5",
    ] {
        let arguments = format!("{way} --data data --set num_trees=3");
        let train_with = |options: &str| {
            train(room.path(), &format!("{arguments} --model m --oob o {options}"));
            let outputs = ["m", "o"].map(|name| fs::read(room.path().join(name)).unwrap());
            fs::remove_file(room.path().join("o")).unwrap();
            outputs
        };
        let expected = train_with("");
        assert!(!cache.exists(), "what fits into memory needs no cache");
        let limit = least_memory(room.path(), &format!("{arguments} --oob o"));
        let _ = fs::remove_file(room.path().join("o"));
        let _ = fs::remove_dir_all(&cache);
        for (use_of, threads) in [("written", 1), ("found", 2)] {
            let found = train_with(&format!("--memory-limit {limit}MiB --threads {threads}"));
            assert!(found == expected, "{way}: cache {use_of}, {limit} MiB");
            assert_eq!(names_in(&cache).len(), 2, "{way}: {:?}", names_in(&cache));
        }
        fs::remove_dir_all(&cache).unwrap();
    }
}

#[test]
fn killed_and_resumed_a_forest_has_the_same_bytes() {
    let room = room();
    dataset(room.path(), "data", &graded(31, 150, 30), "--partition-rows 2000");
    dataset(room.path(), "vali", &graded(32, 40, 20), "");
    for arguments in [
        "--preset rf-point --data data --valid vali --set num_trees=60",
        "--preset rf --data data --set num_trees=60 --oob oob --rounds rounds",
    ] {
        let resumed = killed_and_resumed(room.path(), arguments, 4);
        assert!(resumed > 0, "{arguments}: no run went on from a checkpoint");
        for name in ["whole", "killed"] {
            fs::remove_file(room.path().join(name)).unwrap();
        }
    }
    let common = "--preset rf-point --data data --valid vali --set min_data_in_leaf=200";
    let trees = stopped(room.path(), common) + 3;
    let settings = format!("{common} --set num_trees={trees}");
    train(room.path(), &format!("{settings} --model whole --rounds whole-rounds"));
    train(room.path(), &format!("{settings} --model m --rounds rounds --checkpoint c --resume"));
    assert_eq!(rounds_of(&room.path().join("rounds")), rounds_of(&room.path().join("whole-rounds")));
    assert!(fs::read(room.path().join("m")).unwrap() == fs::read(room.path().join("whole")).unwrap());
}

#[test]
fn scores_are_means_of_trees_that_learn_and_out_of_bag_is_honest() {
    let room = room();
    dataset(room.path(), "data", &graded(51, 150, 25), "");
    dataset(room.path(), "test", &graded(52, 60, 25), "");
    for preset in ["rf-point", "rf-rand", "rf", "rf-pair --set num_trees=40"] {
        let outputs = "--valid test=test --rounds rounds --oob oob --model m";
        train(room.path(), &format!("--set num_trees=60 --preset {preset} --data data {outputs}"));
        let scored = predict(room.path(), "m", "test");
        let log = rounds_of(&room.path().join("rounds"));
        let last = *course(&log, "test", "ndcg@10").last().unwrap();
        assert_close(last, ndcg(&scored), 1e-9, preset);
        let trivial =
            ndcg(&scored.iter().map(|row| Scored { score: 0.0, ..row.clone() }).collect::<Vec<_>>());
        assert!(last > trivial + 0.3, "{preset}: {last}, without order {trivial}");
        // Out of bag the forest is about as good as on data it never saw; on those it saw it is much better.
        let outside = predictions_of(&room.path().join("oob"));
        assert_eq!(outside.len(), 150 * 25);
        let honest = *course(&log, "oob", "ndcg@10").last().unwrap();
        assert_close(honest, ndcg(&outside), 1e-9, preset);
        assert!((honest - last).abs() < 0.05, "{preset}: {honest} out of bag, {last} on other queries");
        assert!(ndcg(&predict(room.path(), "m", "data")) > honest + 0.02, "{preset}");
        let described = run(room.path(), "describe m").ok().stdout;
        assert!(
            described.contains(if preset.starts_with("rf-pair") { "wins: " } else { "bag: " }),
            "{described}"
        );
        run(room.path(), "evaluate --predictions oob").ok();
    }
}

#[test]
fn out_of_bag_scores_are_those_of_trees_that_did_not_see_the_query() {
    let room = room();
    dataset(room.path(), "data", &graded(53, 30, 20), "--partition-rows 100");
    train(room.path(), "--preset rf-point --set num_trees=1 --data data --model one --oob oob-one");
    let all = predict(room.path(), "one", "data");
    let outside = predictions_of(&room.path().join("oob-one"));
    let mut queries: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    outside.iter().for_each(|row| queries.entry(&row.query).or_default().push(row.score));
    assert_eq!(queries.len(), 30 - 19, "63 % of 30 queries are 19");
    for (query, scores) in &queries {
        let expected: Vec<f64> = all.iter().filter(|row| row.query == *query).map(|row| row.score).collect();
        assert_eq!(scores, &expected, "{query}: whole queries are out of bag");
    }
    let rows = outside.len();
    let ran =
        run(room.path(), "train --preset rf-point --set num_trees=1 --data data --model one --oob oob-one")
            .ok();
    assert!(ran.stderr.contains(&format!("{} rows were seen by every tree", 600 - rows)), "{}", ran.stderr);
}

#[test]
fn every_way_to_draw_draws_what_it_says() {
    let room = room();
    dataset(room.path(), "data", &graded(54, 40, 20), "");
    let cover = |arguments: &str| {
        train(room.path(), &format!("--preset rf-point --data data --set num_trees=1 --model m {arguments}"));
        let table = table_of(&room.path().join("m"));
        let cover = table.column_by_name("cover").unwrap();
        arrow::array::AsArray::as_primitive::<arrow::datatypes::Float64Type>(cover).value(0)
    };
    assert_eq!(cover(""), 25.0 * 20.0, "63 % of 40 queries are 25");
    assert_eq!(cover("--set queries_per_tree=7"), 140.0);
    assert_eq!(cover("--set queries_per_tree=700"), 800.0);
    assert_eq!(cover("--set query_fraction=1.0"), 800.0);
    assert_eq!(cover("--set bagging_by=rows --set bagging_fraction=0.5"), 400.0);
    assert_eq!(cover("--set bootstrap=true --set bagging_by=rows --set bagging_fraction=1.0"), 800.0);
    assert_eq!(cover("--set bootstrap=true --set query_fraction=0.5"), 400.0);
    let ran = run(
        room.path(),
        "train --preset rf-point --data data --set num_trees=1 --model m --set queries_per_tree=700",
    );
    assert!(ran.ok().stderr.contains("there are 40 queries, and every tree sees all of them"));
}

#[test]
fn early_stopping_keeps_the_best_trees() {
    let room = room();
    dataset(room.path(), "data", &graded(55, 40, 20), "");
    dataset(room.path(), "vali", &graded(56, 20, 20), "");
    let settings = "--set num_trees=300 --set early_stopping_rounds=5 --set metric=ndcg@10";
    train(room.path(), &format!("--preset rf-rand --data data --valid vali {settings} --model m --rounds r"));
    let course = course(&rounds_of(&room.path().join("r")), "valid", "ndcg@10");
    let best =
        (0..course.len()).fold(0, |best, round| if course[round] > course[best] { round } else { best });
    assert_eq!(course.len(), best + 1 + 5, "five rounds after the best one");
    let described = run(room.path(), "describe m --json").ok().stdout;
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["trees"].as_u64(), Some(best as u64 + 1));
    assert_close(ndcg(&predict(room.path(), "m", "vali")), course[best], 1e-9, "the best round");
}

#[test]
fn what_no_forest_can_be_grown_from_is_refused() {
    let room = room();
    dataset(room.path(), "data", &graded(57, 30, 10), "");
    let same: String = (0..60).map(|row| format!("2 qid:{} 1:{row}\n", row / 6)).collect();
    let flat: String = (0..60).map(|row| format!("{} qid:{} 1:{row}\n", row / 6 % 3, row / 6)).collect();
    let unlabelled: String =
        (0..60).map(|row| format!("{} qid:{} 1:{row}\n", row % 3 - 1, row / 6)).collect();
    let real: String = (0..60).map(|row| format!("{} qid:{} 1:{row}\n", row as f64 / 7.0, row / 6)).collect();
    for (name, text) in [("same", same), ("flat", flat), ("unlabelled", unlabelled), ("real", real)] {
        fs::write(room.path().join("text"), text).unwrap();
        run(room.path(), &format!("convert text --output {name}")).ok();
    }
    let before = names_in(room.path());
    for (arguments, says) in [
        ("--preset rf-point --data same", "every label is 2: there is nothing to learn"),
        ("--preset rf-point --data unlabelled", "20 of 60 rows have no label"),
        ("--preset rf-pair --data flat", "no query has documents of different labels"),
        ("--preset rf-point --data real", "there are 60 different labels; entropy and gini take at most 32"),
        (
            "--preset rf-point --data data --set query_fraction=0.01",
            "bagging_fraction = 0.01 of 30 queries is none",
        ),
        ("--preset rf-point --data data --set min_data_in_leaf=200", "no split was possible"),
        ("--preset rf-point --data data --set query_fraction=1.0 --oob o", "nothing out of bag"),
        ("--preset planet --data data --oob o", "boosting has nothing out of bag"),
        ("--preset rf-point --data data --set early_stopping_rounds=3", "there is no validation set"),
        ("--preset rf-point --data data --oob m", "m is named for two outputs"),
        ("--preset rf-pair --data data --set bagging_by=rows --oob o", "only with its whole query"),
        ("--preset rf-point --data data --set learning_rate=0.1", "a forest has no learning_rate"),
    ] {
        let ran = run(room.path(), &format!("train {arguments} --model m"));
        assert!(ran.code == 1 || ran.code == 2, "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("\n  help: "),
            "{arguments}: {}",
            ran.stderr
        );
        assert_eq!(names_in(room.path()), before, "{arguments}: something was left behind");
    }
    train(room.path(), "--preset rf-point --data real --set criterion=variance --set num_trees=3 --model m");
    let ran = run(room.path(), "train --preset rf-point --data data --start-model m --model n");
    assert!(ran.code == 2 && ran.stderr.contains("a forest starts from nothing"), "{}", ran.stderr);
    let ran = run(room.path(), "train --data data --start-model m --model n");
    assert!(ran.stderr.contains("the start model is a mean of trees"), "{}", ran.stderr);
}

#[test]
fn more_features_than_there_are_is_said_once() {
    let room = room();
    dataset(room.path(), "data", &graded(58, 20, 10), "");
    let ran = run(
        room.path(),
        "train --preset rf-point --data data --set features_per_node=99 --set num_trees=4 --model m",
    );
    let said = ran.ok().stderr;
    assert_eq!(said.matches("features_per_node = 99: there are 14").count(), 1, "{said}");
}

/// NDCG@10 of forests of several seeds: ours and scikit-learn's.
fn quality(
    directory: &Path,
    kind: &str,
    ours: &str,
    folder: &Path,
    seeds: usize,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let part = |number: u32| format!("{}/S{number}.txt.gz", folder.display());
    let files = format!("{},{} {}", part(1), part(2), part(4));
    let theirs = reference_script(directory, "forest.py", &format!("{kind} {files} 100 {seeds}"))?;
    let theirs = theirs.lines().map(|line| line.parse().unwrap()).collect();
    let ours = (0..seeds).map(|seed| {
        train(directory, &format!("{ours} --data train --model m --set num_trees=100 --set seed={seed}"));
        ndcg(&predict(directory, "m", "test"))
    });
    Some((ours.collect(), theirs))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The spread of one value among seeds.
fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[test]
fn forests_are_as_good_as_those_of_scikit_learn() {
    for set in ["data/MQ2008", "data/OHSUMED/QueryLevelNorm"] {
        let Some(folder) = shared(set) else { return };
        let room = room();
        real_dataset(room.path(), "train", &folder, "S[12]");
        real_dataset(room.path(), "test", &folder, "S4");
        for (kind, ours) in [
            ("point", "--preset rf-point"),
            ("gini", "--preset rf-point --set criterion=gini"),
            ("rand", "--preset rf-rand"),
            ("variance", "--preset rf"),
        ] {
            let Some((ours, theirs)) = quality(room.path(), kind, ours, &folder, 5) else { return };
            // Seeds scatter; the mean of five should be no further below than that, and 0.01 for another way to draw.
            let noise = 2.0 * (spread(&ours).powi(2) / 5.0 + spread(&theirs).powi(2) / 5.0).sqrt();
            let (ours, theirs) = (mean(&ours), mean(&theirs));
            eprintln!("{set} {kind}: {ours:.4} here, {theirs:.4} there, noise {noise:.4}");
            assert!(ours > theirs - noise - 0.01, "{set} {kind}: {ours} here, {theirs} there, noise {noise}");
        }
    }
}
