//! Models of several parts, start models and several datasets on a cluster have the bytes of one machine. What the
//! driver receives per level depends neither on rows nor on executors.

use crate::support::cluster::Cluster;
use crate::support::*;

#[test]
fn models_of_several_parts_are_the_same_on_any_number_of_executors() {
    let room = room();
    let at = room.path();
    let examples = graded(31, 90, 20);
    dataset(at, "data", &examples[..1200], "--partition-rows 150");
    dataset(at, "more", &examples[1200..], "--partition-rows 150");
    dataset(at, "vali", &graded(32, 20, 15), "");
    train(at, "--preset rf-point --data data --set num_trees=4 --model forest");
    train(at, "--preset planet --data data --set num_trees=4 --model boosted");
    run(at, "predict --model forest --data data --output start").ok();
    run(at, "predict --model forest --data vali --output start-of-vali").ok();
    for variant in [
        "--preset igbrt --data data --set stage.1.num_trees=5 --set stage.2.num_trees=4",
        "--preset avg-ksgbrt --data data --set runs=3 --set num_trees=4",
        "--preset planet --data data --set target=ordinal --set num_trees=4",
        "--preset planet --data data --set target=ordinal --set label_map=0,1=0;2,3,4=1 --set num_trees=4",
        "--preset mcrank --data data --set num_trees=4 --set num_leaves=5",
        "--preset mcrank --data data --set num_trees=3 --set runs=2 --set bagging_fraction=0.5 --set max_depth=3",
        "--preset planet --data data --start-model forest --set num_trees=4",
        "--preset planet --data data --start-model boosted --set num_trees=4",
        "--preset lambdamart --data data --data more --start-model forest --set num_trees=4",
        "--preset linear --data data --start-model forest",
        "--preset planet --data data --start-scores start --start-scores valid=start-of-vali --set num_trees=4",
        "--preset lambdamart --data data --start-scores start --start-scores valid=start-of-vali --set num_trees=3 --set runs=2 --set bagging_fraction=0.5",
        "--preset lambdarank-net --data data --start-model forest --set num_trees=2",
    ] {
        let expected = trained_with_log(at, &format!("{variant} --threads 1"));
        for executors in 1..=3 {
            let trained = trained_with_log(at, &format!("{variant} --cluster local:{executors}"));
            assert!(trained.0 == expected.0, "{variant}: {executors} executors");
            assert_eq!(trained.1, expected.1, "{variant}: {executors} executors");
        }
    }
}

#[test]
fn the_second_stage_survives_the_loss_of_an_executor() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(7, 120, 25), "--partition-rows 400");
    let arguments = "--preset igbrt --data data --set stage.1.num_trees=6 --set stage.2.candidates=static \
                     --set stage.2.num_trees=40 --model";
    train(at, &format!("{arguments} expected"));
    let mut cluster = Cluster::start(2, &[]);
    let line = format!("train {arguments} m --cluster {} --stats stats.json --quiet", cluster.url());
    let mut training = command(at, &line).spawn().unwrap();
    // The forest takes a few jobs only; every level of a boosted tree is one.
    let jobs = cluster.jobs_of(1) + 40;
    assert!(
        cluster.wait_for_jobs(1, jobs, &mut training),
        "the training ended before an executor was killed"
    );
    cluster.executors[1].kill().unwrap(); // SIGKILL
    cluster.add_executor();
    assert!(training.wait().unwrap().success());
    assert_same_bytes(at, "m", "expected", "an executor was lost in the second stage");
    let stats = json_of(&at.join("stats.json"));
    assert!(stats["cluster"]["rebuilt"].as_u64().unwrap() > 0, "{stats}");
}

/// Executors merge the histograms of workers, so that the driver receives one per feature and node.
#[test]
fn bytes_per_level_of_streaming_histograms_depend_neither_on_rows_nor_on_shares() {
    let room = room();
    let at = room.path();
    run(at, "sample --shape mslr --rows 4000 --seed 3 --output small-text").ok();
    run(at, "sample --shape mslr --rows 16000 --seed 3 --output large-text").ok();
    run(at, "convert small-text/train.txt --output small").ok();
    run(at, "convert large-text/train.txt --output large --partition-rows 2000").ok();
    let bytes = |data: &str, workers: u32, cluster: &str| {
        let set = "--set max_bin=16 --set max_depth=3 --set num_trees=2 --set min_data_in_leaf=100";
        let arguments = format!("--preset pgbrt --data {data} {set} --set workers={workers} --model m");
        train(at, &format!("{arguments} --cluster {cluster} --threads 2 --stats stats.json"));
        let stats = json_of(&at.join("stats.json"));
        stats["cluster"]["level_bytes_p95"].as_f64().unwrap()
    };
    let one = bytes("small", 4, "local:1");
    let cases = [
        ("small", 4, "local:2"),
        ("large", 4, "local:1"),
        ("large", 4, "local:3"),
        ("large", 8, "local:2?shares=6"),
    ];
    for (data, workers, cluster) in cases {
        let several = bytes(data, workers, cluster);
        assert!(
            (several / one - 1.0).abs() < 0.15,
            "{data}, {workers} workers, {cluster}: {several} and {one}"
        );
    }
    // Without merging on executors, every share sends its own.
    let unmerged = bytes("large", 8, "local:2?shares=6&merge=0");
    assert!(unmerged > 2.0 * one, "{unmerged} and {one}");
}
