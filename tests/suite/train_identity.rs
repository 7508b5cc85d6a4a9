//! The model follows from the rows and the parameters alone, to the byte.

use crate::learning::*;
use crate::support::*;
use crate::train_outputs::trees_in;
use std::fs;
use std::path::Path;

/// Every way to draw, weigh and grow; each with every kind of candidates where it is allowed.
const WAYS: [&str; 7] = [
    "",
    "--set bagging_fraction=0.6 --set seed=5",
    "--set query_fraction=0.5 --set seed=6",
    "--set feature_fraction=0.5 --set features_per_node=3 --set seed=7",
    "--set missing=learned",
    "--set missing=mean --set num_leaves=9 --set max_depth=-1",
    "--set missing=learned --set bagging_fraction=0.7 --set feature_fraction=0.8 --set features_per_node=log2",
];

fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    train(directory, &format!("--set num_trees=8 --set learning_rate=0.3 {arguments} --model m"));
    fs::read(directory.join("m")).unwrap()
}

#[test]
fn threads_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for preset in ["planet", "pgbrt", "pgbrt --set workers=3", "gbrt"] {
        for (number, way) in WAYS.iter().enumerate() {
            let data = ["many", "weighted-many"][number % 2];
            let with = |threads: u32| {
                model(room.path(), &format!("--preset {preset} --data {data} {way} --threads {threads}"))
            };
            let expected = with(1);
            for threads in [2, 4] {
                assert!(with(threads) == expected, "{preset} {data} {way}: {threads} threads");
            }
        }
    }
}

/// One partition of so many rows is worked on by several threads, stretch by stretch.
#[test]
fn the_rows_of_one_partition_may_be_divided_among_threads() {
    let room = room();
    let mut examples = untied(43, 40_000, 8);
    examples.iter_mut().enumerate().for_each(|(row, example)| example.weight = 1.0 + (row % 3) as f64);
    fs::write(room.path().join("rows.txt"), as_letor(&examples)).unwrap();
    fs::write(room.path().join("rows.csv"), as_csv(&examples)).unwrap();
    for (name, options) in [("one", "--partition-rows 50000"), ("many", "--partition-rows 3000")] {
        run(room.path(), &format!("convert rows.txt --output {name} {options}")).ok();
        run(room.path(), &format!("convert rows.csv --output weighted-{name} {options}")).ok();
    }
    for (way, data) in [
        ("planet", ""),
        ("planet --set bagging_fraction=0.8", ""),
        ("planet --set num_leaves=12 --set max_depth=-1", "weighted-"),
        ("planet --set query_fraction=0.7", "weighted-"),
        ("ranknet", ""),
    ] {
        let way = format!("--preset {way} --data {data}");
        let expected = model(room.path(), &format!("{way}many --threads 1"));
        for threads in [1, 2, 4] {
            let other = model(room.path(), &format!("{way}one --threads {threads}"));
            assert!(other == expected, "{way}: {threads} threads");
        }
    }
}

/// A tree that goes on from a model goes through all rows; the same tree within a training has its root from the tree
/// before it.
#[test]
fn a_root_from_the_tree_before_changes_nothing() {
    let room = room();
    dataset(room.path(), "data", &untied(41, 20_000, 12), "--partition-rows 3000");
    let ways = [
        ("planet --set max_depth=3", 5),
        ("pgbrt --set max_depth=3", 5),
        ("planet --set num_leaves=6", 5),
        ("planet --set max_depth=3 --set learning_rate=1.5", 5),
        ("planet --set max_depth=3 --set base_score=0.1", 0), // no whole number of any unit
        ("planet --set max_depth=3 --set bagging_fraction=0.9", 0),
    ];
    for (way, carried) in ways {
        let common = format!("--preset {way} --data data --set max_bin=31");
        let lines = |arguments: &str| {
            let ran = run(room.path(), &format!("train --log debug {common} {arguments}")).ok();
            ran.stderr.matches("root histogram derived from the previous tree").count()
        };
        // The scale may change once or twice, and then all rows are gone through.
        let found = lines("--set num_trees=6 --model whole");
        assert!(found <= carried && found + 3 >= carried && (found > 0) == (carried > 0), "{way}: {found}");
        for threads in [1, 3] {
            lines(&format!("--set num_trees=6 --model other --threads {threads}"));
            let [whole, other] = ["whole", "other"].map(|model| fs::read(room.path().join(model)).unwrap());
            assert!(whole == other, "{way}: {threads} threads");
        }
        if way.contains("base_score") || way.contains("bagging") {
            continue; // a start model has its own base, and draws are by the number of the tree
        }
        assert_eq!(lines("--set num_trees=1 --model so-far"), 0);
        for tree in 2..=6 {
            assert_eq!(lines("--set num_trees=1 --start-model so-far --model next"), 0, "{way}");
            fs::rename(room.path().join("next"), room.path().join("so-far")).unwrap();
            assert_eq!(trees_in(&room.path().join("so-far")), tree);
        }
        let [whole, one_by_one] = ["whole", "so-far"].map(|model| table_of(&room.path().join(model)));
        assert!(whole.num_rows() > 6 * 10, "{way}: the trees have splits");
        assert!(whole == one_by_one, "{way}");
    }
}

#[test]
fn threads_do_not_change_the_log() {
    let room = room();
    same_rows(room.path());
    for preset in ["planet", "pgbrt", "gbrt"] {
        let log = |threads: u32| {
            let outputs = format!("--valid vali --rounds rounds --threads {threads}");
            model(room.path(), &format!("--preset {preset} --data many {outputs}"));
            rounds_of(&room.path().join("rounds"))
        };
        assert_eq!(log(1), log(4), "{preset}");
    }
}

#[test]
fn partitions_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for preset in ["planet", "pgbrt", "gbrt"] {
        for way in WAYS {
            for kind in ["", "weighted-"] {
                let with = |partitions: &str| {
                    model(room.path(), &format!("--preset {preset} --data {kind}{partitions} {way}"))
                };
                let expected = with("one");
                let nodes = table_of(&room.path().join("m")).num_rows();
                assert!(nodes > 8, "{preset} {way}: the trees have splits");
                for partitions in ["many", "few"] {
                    assert!(with(partitions) == expected, "{preset} {way}: {kind}{partitions}");
                }
            }
        }
    }
}

/// The memory in MiB that a training says it needs when it has so much, if that is too little.
pub fn wanted_memory(directory: &Path, arguments: &str, limit: u64) -> Option<u64> {
    let ran = run(directory, &format!("train {arguments} --model refused --memory-limit {limit}MiB"));
    if ran.code == 0 {
        fs::remove_file(directory.join("refused")).unwrap();
        return None;
    }
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let words: Vec<&str> = ran.stderr.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "about").unwrap();
    assert_eq!(words[place + 2], "MiB", "{}", ran.stderr);
    words[place + 1].parse().ok()
}

/// The least memory in MiB that a training takes.
pub fn least_memory(directory: &Path, arguments: &str) -> u64 {
    let mut limit = 1;
    while let Some(wanted) = wanted_memory(directory, arguments, limit) {
        assert!(wanted > limit, "{wanted} MiB are wanted, {limit} MiB were given");
        limit = wanted;
    }
    limit
}

#[test]
fn binned_data_on_disk_do_not_change_a_byte() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 15000 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 1000").ok();
    let cache = room.path().join("data.bins");
    for (preset, way) in [
        ("planet", ""),
        ("planet", "--set missing=learned --set bagging_fraction=0.5 --set features_per_node=0.3"),
        ("pgbrt", "--set max_bin=20"),
        ("pgbrt", "--set value_groups=0 --set max_bin=20 --set max_depth=3"),
        ("gbrt", "--set max_depth=3"),
    ] {
        let arguments = format!("--preset {preset} --data data {way} --set num_trees=3");
        let train_with = |options: &str| {
            train(room.path(), &format!("{arguments} --model m {options}"));
            fs::read(room.path().join("m")).unwrap()
        };
        let expected = train_with("");
        assert!(!cache.exists(), "what fits into memory needs no cache");
        let limit = least_memory(room.path(), &arguments);
        fs::remove_dir_all(&cache).unwrap();
        for (use_of, threads) in [("written", 1), ("found", 2)] {
            let found = train_with(&format!("--memory-limit {limit}MiB --threads {threads}"));
            assert!(found == expected, "{preset} {way}: cache {use_of}, {limit} MiB");
            assert_eq!(names_in(&cache).len(), 2, "{:?}", names_in(&cache));
        }
        // A damaged cache is no other model: it is noticed, or made anew.
        let codes = names_in(&cache).into_iter().find(|name| name.ends_with(".arrow")).unwrap();
        let mut bytes = fs::read(cache.join(&codes)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(cache.join(&codes), bytes).unwrap();
        fs::remove_file(room.path().join("m")).unwrap();
        let ran = run(room.path(), &format!("train {arguments} --model m --memory-limit {limit}MiB"));
        match ran.code {
            0 => {
                assert!(fs::read(room.path().join("m")).unwrap() == expected, "{preset} {way}: damaged cache")
            }
            _ => assert!(ran.failed().stderr.contains(&codes)),
        }
        fs::remove_dir_all(&cache).unwrap();
    }
}

#[test]
fn a_training_that_is_repeated_has_the_same_bytes_and_another_seed_another_model() {
    let room = room();
    same_rows(room.path());
    let with =
        |seed: u32| model(room.path(), &format!("--data one --set bagging_fraction=0.5 --set seed={seed}"));
    assert!(with(1) == with(1));
    let seeded = |seed: u32| {
        with(seed);
        table_of(&room.path().join("m"))
    };
    assert!(seeded(1) != seeded(2));
}
