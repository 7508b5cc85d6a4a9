//! Several datasets train the model that one dataset with all their rows trains.

use crate::learning::*;
use crate::support::*;
use crate::train_identity::least_memory;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Datasets `a`, `b`, `c` and one of all their rows, `all`: as text, of which `a` never shows the last
/// features, and (`weighted-...`) as CSV with weights.
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

/// Everything that a model file holds but the names of its data: rows, and all metadata.
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
fn several_datasets_train_the_model_of_one() {
    let room = room();
    parts_and_whole(room.path());
    for preset in ["planet", "pgbrt", "gbrt"] {
        for way in [
            "--valid vali",
            "--set bagging_fraction=0.6 --set seed=5",
            "--set query_fraction=0.5 --set features_per_node=4",
            "--set missing=mean --set num_leaves=9",
            "--set missing=learned",
        ] {
            for kind in ["", "weighted-"] {
                let arguments = format!("--preset {preset} {way}");
                let one = trained(room.path(), &format!("{arguments} --data {kind}all"));
                let data = format!("--data {kind}a --data {kind}b {kind}c");
                let several = trained(room.path(), &format!("{arguments} {data}"));
                assert!(one.0.num_rows() > 8, "the trees have splits");
                assert!(one.0 == several.0 && one.1 == several.1, "{arguments} {kind}");
                assert_eq!((one.2, several.2), (1, 3), "{arguments}: the model names what it was trained on");
                let turned = format!("--data {kind}c --data {kind}b --data {kind}a");
                let turned = trained(room.path(), &format!("{arguments} {turned}"));
                if way.contains("fraction") {
                    assert!(turned.0 != one.0, "{arguments}: draws go by the numbers of rows");
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
    fs::remove_dir_all(&cache).unwrap(); // what the search for the limit left
    for use_of in ["written", "found"] {
        let several = trained(room.path(), &format!("{data} --memory-limit {limit}MiB"));
        assert!(several.0 == one.0 && several.1 == one.1, "cache {use_of}");
        assert_eq!(names_in(&cache).len(), 2);
    }
    let turned = trained(room.path(), &format!("--data b --data a --memory-limit {limit}MiB --cache a.bins"));
    assert_eq!((turned.2, names_in(&cache).len()), (2, 4), "a cache is of its data in their order");

    fs::rename(room.path().join("m"), room.path().join("start")).unwrap();
    let more = |data: &str| {
        train(room.path(), &format!("--start-model start --set num_trees=3 {data} --model more"));
        without_data(&room.path().join("more"))
    };
    let (one, several) = (more("--data all"), more(data));
    assert!(one.0 == several.0 && one.1 == several.1);
}

#[test]
fn checkpoints_know_the_order_of_the_datasets() {
    let room = room();
    parts_and_whole(room.path());
    let common = "--set num_trees=4 --checkpoint stopped --checkpoint-every 1";
    let stopped = |data: &str| {
        let mut child =
            command(room.path(), &format!("train {data} --model m {common} --set num_trees=100000 --quiet"))
                .spawn()
                .unwrap();
        let begun = Instant::now();
        while !room.path().join("stopped").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint appears");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    stopped("--data a --data b");
    let resume = |data: &str| run(room.path(), &format!("train {data} --model m {common} --resume"));
    let says = resume("--data b --data a").failed().stderr;
    assert!(says.contains("the training data differ"), "{says}");
    let says = resume("--data a").failed().stderr;
    assert!(says.contains("its start model or data differ"), "{says}");
    let says = run(
        room.path(),
        &format!("train --data a --data b --model m {common} --set num_trees=100001 --resume --valid vali"),
    );
    assert!(says.failed().stderr.contains("the valid data differ"));
}

#[test]
fn datasets_that_do_not_go_together_are_refused() {
    let room = room();
    parts_and_whole(room.path());
    let refused = |data: &str, says: &[&str]| {
        let ran = run(room.path(), &format!("train {data} --model m")).failed();
        for text in says {
            assert!(ran.stderr.contains(text), "{data}: {text:?} is not in\n{}", ran.stderr);
        }
        assert!(!room.path().join("m").exists());
    };
    dataset(room.path(), "again", &graded(63, 21, 5), ""); // queries 0 to 20, as in `a` and `b`
    refused("--data b --data again", &["again: query \"20\" is in b as well", "no query in common"]);
    refused("--data a --data c --data a", &["a: query ", " is in a as well"]);
    refused("--data a --data weighted-b", &["a: it has no weights, but weighted-b has"]);
    fs::write(room.path().join("x.csv"), "query_id,label,weight,x\n900,1,1,2\n901,0,1,3\n").unwrap();
    run(room.path(), "convert x.csv --output x").ok();
    refused("--data weighted-a --data x", &["lacks", "features: x"]);
    for (name, words) in [("one", ["red", "blue"]), ("two", ["blue", "red"])] {
        let query = if name == "one" { 1 } else { 2 };
        let text = format!("query_id,label,colour\n{query},1,{}\n{query},0,{}\n", words[0], words[1]);
        fs::write(room.path().join(format!("{name}.csv")), text).unwrap();
        run(room.path(), &format!("convert {name}.csv --output {name}")).ok();
    }
    refused("--data one --data two", &["two: the words of colour have other codes", "--categories-from one"]);
    refused("--data a --data nowhere", &["nowhere: not a planetree dataset"]);
}
