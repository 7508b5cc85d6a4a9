//! Training on several datasets gives the model of one dataset with all their rows.

use crate::support::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs;
use std::path::Path;

/// Datasets `a`, `b`, `c`, one of all their rows, `all`, and the same with weights (`weighted-a`, ...). The last two
/// features are always absent in `a`.
fn parts_and_whole(directory: &Path) {
    let mut examples = graded(61, 90, 20);
    examples.iter_mut().filter(|example| example.query < 20).for_each(|example| {
        example.features[12] = None;
        example.features[13] = None;
    });
    let parts = [("a", 0..20), ("b", 20..70), ("c", 70..90)];
    let (mut letor, mut csv) = (Vec::new(), Vec::new());
    for (name, queries) in parts {
        let rows = &examples[queries.start * 20..queries.end * 20];
        fs::write(directory.join(format!("{name}.txt")), as_letor(rows)).unwrap();
        fs::write(directory.join(format!("{name}.csv")), as_csv(rows)).unwrap();
        run(directory, &format!("convert {name}.txt --output {name} --partition-rows 300")).ok();
        run(directory, &format!("convert {name}.csv --output weighted-{name} --partition-rows 170")).ok();
        letor.push(format!("{name}.txt"));
        csv.push(format!("{name}.csv"));
    }
    run(directory, &format!("convert {} --output all", letor.join(" "))).ok();
    run(directory, &format!("convert {} --output weighted-all", csv.join(" "))).ok();
    dataset(directory, "vali", &graded(62, 30, 15), "");
}

/// A model without the names of its data: nodes, other metadata, and the number of training datasets.
fn without_data(model: &Path) -> (arrow::array::RecordBatch, serde_json::Value, usize) {
    let reader = SerializedFileReader::new(fs::File::open(model).unwrap()).unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let header = pairs.iter().find(|pair| pair.key == "planetree.model").unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header.value.as_ref().unwrap()).unwrap();
    let data = header.as_object_mut().unwrap().remove("data").unwrap();
    let trained_on = data.as_array().unwrap().iter().filter(|data| data["name"] == "train").count();
    (table_of(model), header, trained_on)
}

fn trained(directory: &Path, arguments: &str) -> (arrow::array::RecordBatch, serde_json::Value, usize) {
    train(directory, &format!("--set num_trees=8 --set learning_rate=0.3 {arguments} --model m"));
    without_data(&directory.join("m"))
}

#[test]
fn several_datasets_train_the_model_of_one_with_all_rows() {
    let room = room();
    parts_and_whole(room.path());
    for preset in ["planet", "pgbrt", "gbrt"] {
        for variant in [
            "--valid vali",
            "--set bagging_fraction=0.6 --set seed=5",
            "--set query_fraction=0.5 --set features_per_node=4",
            "--set missing=mean --set num_leaves=9",
            "--set missing=learned",
        ] {
            for kind in ["", "weighted-"] {
                let arguments = format!("--preset {preset} {variant}");
                let one = trained(room.path(), &format!("{arguments} --data {kind}all"));
                let data = format!("--data {kind}a --data {kind}b {kind}c");
                let several = trained(room.path(), &format!("{arguments} {data}"));
                assert!(one.0.num_rows() > 8, "{arguments}: the trees have no splits");
                assert!(one.0 == several.0 && one.1 == several.1, "{arguments} {kind}");
                assert_eq!((one.2, several.2), (1, 3), "{arguments}: the model names its training data");
                let reversed = format!("--data {kind}c --data {kind}b --data {kind}a");
                let reversed = trained(room.path(), &format!("{arguments} {reversed}"));
                assert_eq!(reversed.2, 3, "{arguments}");
                if variant.contains("fraction") {
                    assert!(reversed.0 != one.0, "{arguments}: sampling depends on row numbers");
                }
            }
        }
    }
}

#[test]
fn several_datasets_train_within_a_memory_limit_and_from_a_start_model() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 15000 --output text").ok();
    let text = fs::read_to_string(room.path().join("text/train.txt")).unwrap();
    let query = |line: &str| line.split_whitespace().nth(1).unwrap().to_owned();
    let lines: Vec<&str> = text.lines().collect();
    let half = (lines.len() / 2..).find(|line| query(lines[*line]) != query(lines[line - 1])).unwrap();
    fs::write(room.path().join("a.txt"), lines[..half].join("\n")).unwrap();
    fs::write(room.path().join("b.txt"), lines[half..].join("\n")).unwrap();
    for (inputs, output) in [("a.txt", "a"), ("b.txt", "b"), ("a.txt b.txt", "all")] {
        run(room.path(), &format!("convert {inputs} --output {output} --partition-rows 1000")).ok();
    }
    let data = "--data a --data b";
    let one = trained(room.path(), "--data all");
    let limit = least_memory(room.path(), &format!("{data} --set num_trees=8 --set learning_rate=0.3"));
    let cache = room.path().join("a.bins");
    fs::remove_dir_all(&cache).unwrap(); // from the search for the limit
    for cache_is in ["written", "reused"] {
        let several = trained(room.path(), &format!("{data} --memory-limit {limit}MiB"));
        assert!(several.0 == one.0 && several.1 == one.1, "cache {cache_is}");
        assert_eq!(names_in(&cache).len(), 2);
    }
    let reversed = format!("--data b --data a --memory-limit {limit}MiB --cache a.bins");
    let reversed = trained(room.path(), &reversed);
    assert_eq!((reversed.2, names_in(&cache).len()), (2, 4), "a cache depends on the order of its datasets");

    fs::rename(room.path().join("m"), room.path().join("start")).unwrap();
    let more = |data: &str| {
        train(room.path(), &format!("--start-model start --set num_trees=3 {data} --model more"));
        without_data(&room.path().join("more"))
    };
    let (one, several) = (more("--data all"), more(data));
    assert!(one.0 == several.0 && one.1 == several.1);
}

#[test]
fn checkpoints_depend_on_the_order_of_the_datasets() {
    let room = room();
    parts_and_whole(room.path());
    let common = "--checkpoint stopped --checkpoint-every 1";
    let arguments = format!("--data a --data b --model m {common}");
    kill_training_when(room.path(), &arguments, "a checkpoint", || room.path().join("stopped").exists());
    let refused = |arguments: &str, message: &str| {
        let ran = run(room.path(), &format!("train {arguments} --model m {common} --resume"));
        assert_refused(arguments, &ran, 1, &[message]);
    };
    refused("--set num_trees=4 --data b --data a", "the training data differ: it has ");
    refused("--set num_trees=4 --data a", "the training data differ: it has 2 datasets, this one 1");
    refused("--set num_trees=100001 --data a --data b --valid vali", "it has no validation set valid");
}

#[test]
fn incompatible_datasets_are_refused() {
    let room = room();
    parts_and_whole(room.path());
    let refused = |data: &str, messages: &[&str]| {
        let ran = run(room.path(), &format!("train {data} --model m"));
        assert_refused(data, &ran, 1, messages);
        assert!(!room.path().join("m").exists(), "{data}: a model was written");
    };
    dataset(room.path(), "again", &graded(63, 21, 5), ""); // queries 0 to 20, as in `a` and `b`
    refused("--data b --data again", &["again: query \"20\" is also in b", "without common queries"]);
    refused("--data a --data c --data a", &["a: query ", " is also in a"]);
    refused("--data a --data weighted-b", &["a: no weights, but weighted-b has weights"]);
    fs::write(room.path().join("x.csv"), "query_id,label,weight,x\n900,1,1,2\n901,0,1,3\n").unwrap();
    run(room.path(), "convert x.csv --output x").ok();
    refused(
        "--data weighted-a --data x",
        &["lacks 1 of the 15 features of all datasets together: x", "--common-features"],
    );
    for (name, words) in [("one", ["red", "blue"]), ("two", ["3", "4"])] {
        let query = if name == "one" { 1 } else { 2 };
        let text = format!("query_id,label,colour\n{query},1,{}\n{query},0,{}\n", words[0], words[1]);
        fs::write(room.path().join(format!("{name}.csv")), text).unwrap();
        run(room.path(), &format!("convert {name}.csv --output {name}")).ok();
    }
    refused(
        "--data one --data two",
        &["two: colour is numeric here, but categorical in one", "--categorical colour"],
    );
    refused("--data a --data nowhere", &["nowhere: no such file or directory"]);
}
