//! Ranking objectives: each learns an order, gives the same bytes on any number of threads and partitions, and reports
//! data without anything to learn.

use crate::support::*;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Every ranking preset, and the ranking objectives without a preset.
const KINDS: [&str; 11] = [
    "--preset lambdamart",
    "--preset lambdamart --set lambda_metric=map --set relevant_from=2",
    "--preset lambdamart --set label_gain=linear --set truncation_level=5 --set query_fraction=0.7",
    "--preset lambdamart-err",
    "--preset ranknet",
    "--preset gbrank",
    "--preset xendcg",
    "--set objective=listnet",
    "--set objective=query_rmse",
    "--set objective=logistic --set relevant_from=2",
    "--preset lambdamart --set base_score=feature:f1 --set candidates=exact --set max_bin=0",
];

fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    trained_bytes(directory, &format!("{arguments} --set num_trees=6"))
}

#[test]
fn every_objective_learns_an_order() {
    let room = room();
    dataset(room.path(), "train", &graded(31, 120, 25), "");
    dataset(room.path(), "test", &graded(32, 60, 25), "");
    let one_feature = {
        train(room.path(), "--data train --set num_trees=1 --set max_depth=1 --model stump");
        ndcg(&predict(room.path(), "stump", "test"))
    };
    for kind in KINDS {
        train(
            room.path(),
            &format!("--data train {kind} --set num_trees=60 --set learning_rate=0.1 --model m"),
        );
        let found = ndcg(&predict(room.path(), "m", "test"));
        assert!(found > one_feature + 0.1, "{kind}: {found}, a single split {one_feature}");
    }
}

#[test]
fn threads_partitions_and_mapped_data_do_not_change_a_byte() {
    let room = room();
    let examples = graded(33, 90, 21);
    for (name, options) in [("one", ""), ("many", "--partition-rows 70")] {
        dataset(room.path(), name, &examples, options);
        weighted_dataset(room.path(), &format!("weighted-{name}"), &examples, options);
    }
    for kind in KINDS {
        for weights in ["", "weighted-"] {
            let expected = model(room.path(), &format!("{kind} --data {weights}one --threads 1"));
            let limit = least_memory(room.path(), &format!("{kind} --data {weights}many"));
            let mapped = format!("many --memory-limit {limit}MiB");
            for other in ["one --threads 4", "many --threads 2", &mapped] {
                let found = model(room.path(), &format!("{kind} --data {weights}{other}"));
                assert!(found == expected, "{kind}: {weights}{other}");
            }
        }
    }
}

#[test]
fn metrics_of_training_and_validation_rows_are_computed_alike() {
    let room = room();
    dataset(room.path(), "train", &graded(34, 60, 20), "");
    let outputs = "--valid train --rounds rounds --set metric=ndcg@10,err,map,rmse --set num_trees=5";
    train(room.path(), &format!("--preset lambdamart --data train {outputs} --model m"));
    let log = rounds_of(&room.path().join("rounds"));
    for metric in ["ndcg@10", "err", "map", "rmse"] {
        let of_training = course(&log, "train", metric);
        assert_eq!(of_training.len(), 5);
        assert_eq!(of_training, course(&log, "valid", metric), "{metric}");
    }
    let found = ndcg(&predict(room.path(), "m", "train"));
    assert_close(course(&log, "train", "ndcg@10")[4], found, 1e-12, "ndcg@10 of the last round");
}

/// A dataset of clicks that depend on the position more than on the features.
fn clicks(directory: &Path) {
    let mut text = "query_id,label,position,f1,f2\n".to_owned();
    for query in 0..200 {
        for position in 1..=8 {
            let hidden = (query * 7 + position * 3) % 11;
            let click = (query + position * position) % (position + 1) == 0 && hidden > 3;
            writeln!(text, "{query},{},{position},{hidden},{}", u8::from(click), (query + position) % 5)
                .unwrap();
        }
    }
    fs::write(directory.join("clicks.csv"), text).unwrap();
    run(directory, "convert clicks.csv --output clicks --partition-rows 300").ok();
}

#[test]
fn position_biases_survive_an_interruption() {
    let room = room();
    clicks(room.path());
    let base = "--preset lambdamart --set unbiased=true --data clicks --set min_data_in_leaf=5";
    train(room.path(), &format!("{base} --set num_trees=12 --model whole"));
    train(room.path(), &format!("{base} --set num_trees=12 --set unbiased=false --model biased"));
    let bytes = |name: &str| fs::read(room.path().join(name)).unwrap();
    assert!(bytes("whole") != bytes("biased"));
    let rounds = stop_at_checkpoint(room.path(), base);
    let trees = rounds + 5;
    let resume = format!("train {base} --set num_trees={trees} --model resumed --checkpoint c --resume");
    assert!(run(room.path(), &resume).ok().stderr.contains("resuming from round"));
    train(room.path(), &format!("{base} --set num_trees={trees} --model straight"));
    assert!(bytes("resumed") == bytes("straight"), "{rounds} rounds, then 5");
    for threads in [1, 4] {
        train(room.path(), &format!("{base} --set num_trees=12 --model again --threads {threads}"));
        assert!(bytes("whole") == bytes("again"), "{threads}");
    }
}

#[test]
fn a_score_can_start_from_a_feature() {
    let room = room();
    dataset(room.path(), "data", &graded(35, 40, 20), "");
    let kind = "--preset lambdamart --data data --set base_score=feature:f2";
    train(room.path(), &format!("{kind} --set num_trees=1 --set learning_rate=0.000001 --model m"));
    let scores = predict(room.path(), "m", "data");
    assert_eq!(scores.len(), 40 * 20);
    for (row, example) in scores.iter().zip(graded(35, 40, 20)) {
        assert!((row.score - f64::from(example.features[1].unwrap())).abs() < 1e-4);
    }
    let ran = run(room.path(), &format!("train {kind}x --model none"));
    assert!(ran.code == 1 && ran.stderr.contains("no such feature"), "{}", ran.stderr);
}

#[test]
fn data_without_an_order_to_learn_are_refused() {
    let room = room();
    let mut text = String::new();
    for query in 0..30 {
        for document in 0..10 {
            writeln!(text, "{} qid:{query} 1:{} 2:{}", query % 3, document, (query * document) % 7).unwrap();
        }
    }
    fs::write(room.path().join("equal.txt"), text).unwrap();
    run(room.path(), "convert equal.txt --output equal").ok();
    dataset(room.path(), "data", &graded(36, 10, 10), "");
    let refused = [
        ("--preset lambdamart --data equal", "no query has documents with different labels"),
        ("--preset xendcg --data equal", "no query has documents with different labels"),
        ("--set objective=logistic --set relevant_from=9 --data data", "no label is at least relevant_from"),
        ("--preset lambdamart --set unbiased=true --data data", "not every row has a position"),
        ("--preset lambdamart --set label_gain=0,1 --data data", "has no gain in label_gain"),
        ("--preset lambdamart --set convention=trec --valid data --data data", "ties=docid"),
    ];
    assert_trainings_refused(room.path(), &refused);
}

#[test]
fn gains_too_large_to_distinguish_are_refused_by_objectives_and_metrics() {
    let room = room();
    let mut text = String::new();
    for query in 0..20 {
        for document in 0..10 {
            let label = [0, 512, 513][(query + document) % 3];
            writeln!(text, "{label} qid:{query} 1:{} 2:{}", label + document, query * document % 7).unwrap();
        }
    }
    fs::write(room.path().join("large.txt"), text).unwrap();
    run(room.path(), "convert large.txt --output large").ok();
    let of_log = "the gain of label 512 in gain=exp2 is larger than 1e30";
    let cases = [
        (
            "--preset lambdamart",
            "the label 512 has no gain in label_gain = exp2, or its gain is below 0 or above 1e30",
        ),
        ("--preset lambdamart --set label_gain=linear", of_log),
        ("--preset xendcg --set metric=rmse", "the label 512 has a gain 2^label - 1 above 1e30"),
        ("--preset mart --valid large", of_log),
        ("--preset rf-point --valid large", of_log),
        ("--preset rf-point --set metric=rmse --strength s", "has no gain in label_gain = exp2"),
        ("--preset rf-list --set metric=rmse", "the label 512 has no gain in label_gain = exp2"),
    ];
    let cases =
        cases.map(|(arguments, message)| (format!("--data large --set num_trees=3 {arguments}"), message));
    let cases = cases.each_ref().map(|(arguments, message)| (arguments.as_str(), *message));
    assert_trainings_refused(room.path(), &cases);
    for arguments in [
        "--preset lambdamart --set label_gain=linear --set convention=planetree,gain=linear",
        "--preset mart --set metric=rmse,map",
    ] {
        train(room.path(), &format!("--data large --valid large --set num_trees=3 {arguments} --model m"));
    }
    let cv = "cv --data large --folds 3 --output cv --preset mart --set num_trees=3 --set metric=rmse";
    let ran = run(room.path(), cv).failed();
    assert!(ran.stderr.contains("label_gain") && ran.stderr.contains("512"), "{}", ran.stderr);
    run(room.path(), &format!("{cv} --convention planetree,gain=linear")).ok();
}

#[test]
fn a_query_of_a_hundred_thousand_documents_trains() {
    let room = room();
    let mut text = String::new();
    for document in 0..100_000u64 {
        let worth = document * 2_654_435_761 % 1000;
        writeln!(text, "{} qid:1 1:{} 2:{}", worth / 250, worth % 97, worth + document % 13 * 20).unwrap();
    }
    text.push_str("1 qid:2 1:3 2:5\n");
    fs::write(room.path().join("wide.txt"), text).unwrap();
    run(room.path(), "convert wide.txt --output wide").ok();
    let outputs = "--rounds rounds --set metric=ndcg --set num_trees=10 --model m";
    train(room.path(), &format!("--preset lambdamart --data wide {outputs}"));
    let course = course(&rounds_of(&room.path().join("rounds")), "train", "ndcg");
    assert!(course[9] > course[0], "{course:?}");
}
