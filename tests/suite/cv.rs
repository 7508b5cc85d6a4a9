//! Cross-validation and search: rotations, splits, outputs, and resuming after interruptions.

use crate::support::*;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int32Type};
use planetree::random::Stream;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const QUICK: &str = "--set num_trees=12 --set learning_rate=0.3";

fn cv(directory: &Path, arguments: &str) -> serde_json::Value {
    let ran = run(directory, &format!("--quiet cv {arguments} --json")).ok();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn bytes(file: impl AsRef<Path>) -> Vec<u8> {
    fs::read(file.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", file.as_ref().display()))
}

/// The outputs of a cross-validation by name, without durations.
fn outputs(output: &Path, folds: usize) -> HashMap<String, Vec<u8>> {
    let mut all = HashMap::new();
    for fold in 1..=folds {
        for name in ["model.parquet", "predictions.parquet"] {
            let name = format!("folds/{fold}/{name}");
            all.insert(name.clone(), bytes(output.join(&name)));
        }
        let rounds = rounds_of(&output.join(format!("folds/{fold}/rounds.parquet")));
        all.insert(format!("rounds {fold}"), format!("{rounds:?}").into_bytes());
        let left = names_in(&output.join(format!("folds/{fold}")));
        assert_eq!(left, ["fold.json", "model.parquet", "predictions.parquet", "rounds.parquet"]);
    }
    for name in ["predictions.parquet", "metrics.parquet", "cv.json"] {
        all.insert(name.to_owned(), bytes(output.join(name)));
    }
    all.insert("folds".to_owned(), format!("{:?}", folds_of(&output.join("folds.parquet"))).into_bytes());
    all
}

/// Fold, split, metric, value and best round of every row.
fn folds_of(file: &Path) -> Vec<(i32, String, String, f64, i32)> {
    let table = table_of(file);
    let text = |name: &str, row| table.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned();
    let whole = |name: &str, row| table.column_by_name(name).unwrap().as_primitive::<Int32Type>().value(row);
    let value = |row| table.column_by_name("value").unwrap().as_primitive::<Float64Type>().value(row);
    (0..table.num_rows())
        .map(|row| {
            (
                whole("fold", row),
                text("split", row),
                text("metric", row),
                value(row),
                whole("best_round", row),
            )
        })
        .collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// Datasets S1 to S4 of MQ2008, if available.
fn mq2008(directory: &Path) -> Option<()> {
    let data = shared("data/MQ2008")?;
    (1..=4).for_each(|part| real_dataset(directory, &format!("S{part}"), &data, &format!("S{part}")));
    Some(())
}

#[test]
fn parts_rotate_and_every_fold_equals_train_and_predict() {
    let room = room();
    let Some(()) = mq2008(room.path()) else { return };
    let json = cv(room.path(), &format!("--data S1 S2 S3 S4 --output cv {QUICK}"));
    let parts =
        |fold: usize| (0..4).map(|place| format!("S{}", 1 + (fold - 1 + place) % 4)).collect::<Vec<_>>();
    let mut tested = Vec::new();
    for fold in 1..=4 {
        let parts = parts(fold);
        // As in the papers: train all rounds and keep the best one on the validation part.
        let arguments = format!("--data {} --data {} --valid {}", parts[0], parts[1], parts[2]);
        train(
            room.path(),
            &format!("{arguments} {QUICK} --set early_stopping_rounds=12 --model m --rounds r"),
        );
        let own = room.path().join(format!("cv/folds/{fold}"));
        assert!(bytes(own.join("model.parquet")) == bytes(room.path().join("m")), "fold {fold}");
        let log = rounds_of(&own.join("rounds.parquet"));
        assert_eq!(log, rounds_of(&room.path().join("r")));
        let course = course(&log, "valid", "ndcg@10");
        assert_eq!(course.len(), 12, "all rounds are trained");
        let best = 1 + (0..12).rev().max_by(|one, other| course[*one].total_cmp(&course[*other])).unwrap();
        let scored = predict(room.path(), "m", &parts[3]);
        assert!(scored == predictions_of(&own.join("predictions.parquet")));
        let entry = &json["folds"][fold - 1];
        assert_eq!(entry["best_round"].as_u64(), Some(best as u64), "fold {fold}");
        assert_eq!(entry["trees"].as_u64(), Some(best as u64), "fold {fold}");
        assert_close(entry["valid"]["ndcg@10"].as_f64().unwrap(), course[best - 1], 1e-15, "validation");
        assert_close(entry["test"]["ndcg@10"].as_f64().unwrap(), ndcg(&scored), 1e-12, "test");
        tested.push((parts[3].clone(), ndcg(&scored), scored));
    }
    let (mean, deviation) =
        mean_and_deviation(&tested.iter().map(|(_, value, _)| *value).collect::<Vec<_>>());
    assert_close(json["test"]["ndcg@10"]["mean"].as_f64().unwrap(), mean, 1e-12, "mean");
    assert_close(json["test"]["ndcg@10"]["deviation"].as_f64().unwrap(), deviation, 1e-9, "deviation");
    // Outputs over all folds are in the order of the parts.
    tested.sort_by(|one, other| one.0.cmp(&other.0));
    let all: Vec<ScoredRow> = tested.into_iter().flat_map(|(_, _, scored)| scored).collect();
    assert!(predictions_of(&room.path().join("cv/predictions.parquet")) == all);
    let metrics = table_of(&room.path().join("cv/metrics.parquet"));
    let queries: Vec<&str> =
        metrics.column_by_name("query_id").unwrap().as_string::<i32>().iter().flatten().collect();
    let values = metrics.column_by_name("ndcg@10").unwrap().as_primitive::<Float64Type>();
    let by_query = all.chunk_by(|one, other| one.query == other.query);
    for (row, query) in by_query.enumerate() {
        assert_eq!(queries[row], query[0].query);
        assert_close(values.value(row), ndcg(query), 1e-12, queries[row]);
    }
    // `describe` agrees.
    let described = run(room.path(), "describe cv/folds.parquet --json").ok().stdout;
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    let of_test = described["metrics"].as_array().unwrap().iter();
    let mut of_test = of_test.filter(|entry| entry["split"] == "test" && entry["metric"] == "ndcg@10");
    assert_close(of_test.next().unwrap()["mean"].as_f64().unwrap(), mean, 1e-12, "described");
    for name in ["predictions.parquet", "metrics.parquet"] {
        run(room.path(), &format!("describe cv/{name}")).ok();
    }
    let text = run(room.path(), &format!("--quiet cv --data S1 S2 S3 S4 --output cv {QUICK}")).ok().stdout;
    assert!(text.starts_with("fold ") && text.contains(&format!("{mean:.4}")), "{text}");
}

#[test]
fn one_dataset_is_split_by_whole_queries_regardless_of_its_files() {
    let room = room();
    let examples = graded(71, 53, 12);
    fs::write(room.path().join("rows.csv"), as_csv(&examples)).unwrap();
    run(room.path(), "convert rows.csv --output one").ok();
    run(room.path(), "convert rows.csv --output many --partition-rows 30").ok();
    for data in ["one", "many"] {
        let arguments = format!("--data {data} --folds 4 --output cv-{data} {QUICK} --fold-seed 3");
        let json = cv(room.path(), &arguments);
        assert_eq!(json["folds"].as_array().unwrap().len(), 4);
    }
    let mut part_of = HashMap::new();
    let mut sizes = Vec::new();
    for part in 1..=4 {
        let at = |data: &str| room.path().join(format!("cv-{data}/parts/{part}"));
        assert!(rows_of(&at("one")) == rows_of(&at("many")), "part {part}");
        let queries: HashSet<String> = rows_of(&at("one")).into_iter().map(|row| row.query).collect();
        sizes.push(queries.len());
        for query in queries {
            assert_eq!(part_of.insert(query, part), None, "a query is in one part only");
        }
        run(room.path(), &format!("describe cv-one/parts/{part}")).ok();
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [13, 13, 13, 14]);
    // Every row is in the part of its query, in order and with its weight.
    for row in rows_of(&room.path().join("one")).chunk_by(|one, other| one.query == other.query) {
        let part = rows_of(&room.path().join(format!("cv-one/parts/{}", part_of[&row[0].query])));
        let there: Vec<DatasetRow> = part.into_iter().filter(|other| other.query == row[0].query).collect();
        assert!(there == row, "query {}", row[0].query);
    }
    let weights = |dataset: &str| {
        let described = run(room.path(), &format!("describe {dataset} --json")).ok().stdout;
        serde_json::from_str::<serde_json::Value>(&described).unwrap()["weights"].as_bool().unwrap()
    };
    assert_eq!(weights("one"), weights("cv-one/parts/1"));
    for fold in 1..=4 {
        let model = |data: &str| bytes(room.path().join(format!("cv-{data}/folds/{fold}/model.parquet")));
        assert!(model("one") == model("many"), "fold {fold}");
    }
    let predicted = predictions_of(&room.path().join("cv-one/predictions.parquet"));
    assert_eq!(predicted.len(), 53 * 12);
    assert_eq!(predicted.chunk_by(|one, other| one.query == other.query).count(), 53);
    cv(room.path(), &format!("--data one --folds 4 --output cv-other {QUICK} --fold-seed 4"));
    let part = |output: &str| rows_of(&room.path().join(output).join("parts/1"));
    assert!(part("cv-other") != part("cv-one"), "another seed gives another split");
}

#[test]
fn without_validation_all_other_parts_train_and_all_trees_are_kept() {
    let room = room();
    let examples = graded(72, 30, 10);
    for part in 0..2 {
        dataset(room.path(), &format!("p{part}"), &examples[part * 150..(part + 1) * 150], "");
    }
    let json = cv(room.path(), &format!("--data p0 p1 --no-valid --output cv {QUICK} --metrics rmse,err@5"));
    train(room.path(), &format!("--data p0 {QUICK} --model m"));
    assert!(bytes(room.path().join("m")) == bytes(room.path().join("cv/folds/1/model.parquet")));
    assert!(json["folds"][0]["best_round"].is_null());
    assert_eq!(json["folds"][0]["trees"].as_u64(), Some(12));
    assert_close(
        json["folds"][0]["test"]["rmse"].as_f64().unwrap(),
        rmse(&predict(room.path(), "m", "p1")),
        1e-12,
        "rmse",
    );
    assert_eq!(json["test"].as_object().unwrap().len(), 2, "only the requested metrics");
}

#[test]
fn an_unused_validation_part_neither_trains_nor_validates() {
    let room = room();
    let examples = graded(73, 30, 10);
    for part in 0..3 {
        dataset(room.path(), &format!("p{part}"), &examples[part * 100..(part + 1) * 100], "");
    }
    let json = cv(room.path(), &format!("--data p0 p1 p2 --unused-valid --output cv {QUICK} --metrics rmse"));
    train(room.path(), &format!("--data p0 {QUICK} --model m"));
    assert!(bytes(room.path().join("m")) == bytes(room.path().join("cv/folds/1/model.parquet")));
    assert!(json["folds"][0]["best_round"].is_null());
    assert_close(
        json["folds"][0]["test"]["rmse"].as_f64().unwrap(),
        rmse(&predict(room.path(), "m", "p2")),
        1e-12,
        "rmse",
    );
    let ran = run(room.path(), &format!("cv --data p0 p1 p2 --no-valid --output cv {QUICK}")).failed();
    assert!(ran.stderr.contains("it was run with --unused-valid"), "{}", ran.stderr);
}

#[test]
fn the_convention_is_stored_with_the_metrics() {
    let room = room();
    let mut examples = graded(80, 24, 10);
    examples.iter_mut().filter(|example| example.query % 4 == 0).for_each(|example| example.label = 0.0);
    dataset(room.path(), "data", &examples, "");
    let command = format!("--data data --folds 3 --output cv {QUICK} --metrics ndcg@10,dcg");
    let zero = cv(room.path(), &command);
    let one = cv(room.path(), &format!("{command} --convention lightgbm"));
    let value = |json: &serde_json::Value| {
        let folds = json["folds"].as_array().unwrap().iter();
        folds
            .map(|fold| fold["test"]["ndcg@10"].as_f64().unwrap() * fold["queries"].as_f64().unwrap())
            .sum::<f64>()
    };
    assert_close(value(&one) - value(&zero), 6.0, 1e-9, "an empty query counts as 1");
    let table = room.path().join("cv/metrics.parquet");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        fs::File::open(&table).unwrap(),
    );
    let reader = reader.unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let metadata = |key: &str| pairs.iter().find(|pair| pair.key == key).unwrap().value.clone().unwrap();
    assert_eq!(
        (metadata("planetree.convention").as_str(), metadata("planetree.metrics").as_str()),
        ("lightgbm", "ndcg@10,dcg")
    );
    let table = table_of(&table);
    let names: Vec<String> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["query_id", "documents", "relevant", "ndcg@10", "dcg", "idcg", "fold"]);
    let column = |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().clone();
    let relevant = table.column_by_name("relevant").unwrap().as_primitive::<Int32Type>().clone();
    for row in 0..table.num_rows() {
        let expected = if relevant.value(row) == 0 { 1.0 } else { column("ndcg@10").value(row) };
        assert_eq!(column("ndcg@10").value(row), expected);
        // Queries have ten documents, so the top ten are the whole list.
        let (dcg, ideal) = (column("dcg").value(row), column("idcg").value(row));
        if ideal > 0.0 {
            assert_close(dcg / ideal, column("ndcg@10").value(row), 1e-12, "dcg over idcg");
        }
    }
    let ran = run(room.path(), &format!("cv {command} --convention lihgtgbm"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean lightgbm?"), "{}", ran.stderr);
}

#[test]
fn validation_and_test_parts_use_the_same_convention() {
    let room = room();
    let at = room.path();
    // In LETOR's convention, NDCG@10 of a query with fewer documents is 0.
    for (name, seed) in [("S1", 1), ("S2", 2), ("S3", 3)] {
        let mut examples = graded(90 + seed, 30, 12);
        let mut rows = 0..;
        examples.retain(|example| rows.next().is_some_and(|row| example.query % 2 == 0 || row % 2 == 0));
        examples.iter_mut().for_each(|example| example.query += 100 * seed as usize);
        dataset(at, name, &examples, "");
    }
    let command = format!("--data S1 S2 S3 {QUICK} --metrics ndcg@10");
    let usual = cv(at, &format!("{command} --output usual"));
    let letor = cv(at, &format!("{command} --output letor --convention letor4"));
    assert_eq!((&usual["convention"], &letor["convention"]), (&"planetree".into(), &"letor4".into()));
    let mut differ = 0;
    for (output, json) in [("usual", &usual), ("letor", &letor)] {
        for fold in 1..=3 {
            // The printed validation metric equals that of evaluate under the same convention.
            let (model, part) =
                (format!("{output}/folds/{fold}/model.parquet"), ["S2", "S3", "S1"][fold - 1]);
            run(at, &format!("predict --model {model} --data {part} --output v")).ok();
            let convention = json["convention"].as_str().unwrap();
            let arguments =
                format!("evaluate --predictions v --metrics ndcg@10 --convention {convention} --json");
            let judged: serde_json::Value = serde_json::from_str(&run(at, &arguments).ok().stdout).unwrap();
            let expected = judged["systems"][0]["means"]["ndcg@10"].as_f64().unwrap();
            let entry = &json["folds"][fold - 1];
            assert_close(entry["valid"]["ndcg@10"].as_f64().unwrap(), expected, 1e-12, &model);
            // The best round is the best under this convention.
            let course = course(
                &rounds_of(&at.join(format!("{output}/folds/{fold}/rounds.parquet"))),
                "valid",
                "ndcg@10",
            );
            let best = (0..course.len()).rev().max_by(|one, other| course[*one].total_cmp(&course[*other]));
            assert_eq!(entry["best_round"].as_u64(), best.map(|best| best as u64 + 1), "{model}");
        }
        differ += usize::from(json["valid"] == usual["valid"]);
        for table in ["folds.parquet", "folds/1/rounds.parquet"] {
            let described = run(at, &format!("describe {output}/{table} --json")).ok().stdout;
            let described: serde_json::Value = serde_json::from_str(&described).unwrap();
            assert_eq!(described["convention"], json["convention"], "{output}/{table}");
        }
    }
    assert_eq!(differ, 1, "the conventions differ");
    let text = run(at, &format!("--quiet cv {command} --output letor --convention letor4")).ok().stdout;
    assert!(text.ends_with("\nMetric convention: letor4\n"), "{text}");
    // The parameter has the same effect.
    let set = cv(at, &format!("{command} --output set --set convention=letor4"));
    assert_eq!((&set["valid"], &set["test"]), (&letor["valid"], &letor["test"]));
    for fold in 1..=3 {
        let model = format!("folds/{fold}/model.parquet");
        assert!(bytes(at.join("set").join(&model)) == bytes(at.join("letor").join(&model)), "{fold}");
    }
    run(at, "report letor --output letor.html").ok();
    let page = fs::read_to_string(at.join("letor.html")).unwrap();
    assert!(page.contains("By the convention letor4.") && !page.contains("convention planetree"));
    for (options, expected) in [
        ("--convention trec", "ties=docid is not supported on validation parts"),
        (
            "--convention letor4 --set convention=mslr",
            "--convention is letor4, but the parameter `convention` is mslr",
        ),
    ] {
        let ran = run(at, &format!("cv {command} --output none {options}"));
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{options}: {}", ran.stderr);
        assert!(!at.join("none").exists(), "{options}");
    }
    let trec = cv(at, &format!("{command} --output trec --convention trec,ties=input"));
    assert_eq!(trec["convention"], "trec,ties=input");
}

#[test]
fn early_stopping_and_memory_limits_apply_to_folds() {
    let room = room();
    dataset(room.path(), "data", &graded(73, 60, 20), "--partition-rows 200");
    let set = "--set num_trees=300 --set learning_rate=0.4 --set early_stopping_rounds=3";
    let json = cv(room.path(), &format!("--data data --folds 3 --output cv {set}"));
    let log = rounds_of(&room.path().join("cv/folds/1/rounds.parquet"));
    let rounds = course(&log, "valid", "ndcg@10").len() as u64;
    assert!(rounds < 300);
    assert_eq!(json["folds"][0]["best_round"].as_u64(), Some(rounds - 3));
    let limit = "--memory-limit 80MiB";
    let whole = outputs(&room.path().join("cv"), 3);
    cv(room.path(), &format!("--data data --folds 3 --output limited {set} {limit}"));
    assert!(outputs(&room.path().join("limited"), 3) == whole);
}

#[test]
fn complete_folds_are_not_repeated() {
    let room = room();
    dataset(room.path(), "data", &graded(74, 40, 10), "");
    let command = format!("--data data --folds 3 --output cv {QUICK}");
    cv(room.path(), &command);
    let at = |name: &str| room.path().join("cv").join(name);
    let first = outputs(&room.path().join("cv"), 3);
    let folds = bytes(at("folds.parquet"));
    let made =
        |fold: usize| fs::metadata(at(&format!("folds/{fold}/fold.json"))).unwrap().modified().unwrap();
    let part =
        |part: usize| fs::metadata(at(&format!("parts/{part}/_manifest.json"))).unwrap().modified().unwrap();
    let before = [made(1), made(2), made(3), part(1)];
    let again = |arguments: &str| -> Vec<bool> {
        let times = [made(1), made(2), made(3)];
        run(room.path(), &format!("cv {arguments}")).ok();
        [made(1), made(2), made(3)].iter().zip(times).map(|(now, then)| *now != then).collect()
    };
    assert_eq!(again(&command), [false; 3]);
    assert_eq!([made(1), made(2), made(3), part(1)], before);
    assert!(bytes(at("folds.parquet")) == folds, "including durations");
    // Other metrics need no training.
    assert_eq!(again(&format!("{command} --metrics err")), [false; 3]);
    // Only missing or damaged folds are repeated.
    fs::remove_file(at("folds/2/predictions.parquet")).unwrap();
    assert_eq!(again(&command), [false, true, false]);
    for name in ["model.parquet", "rounds.parquet", "predictions.parquet", "fold.json"] {
        let file = at(&format!("folds/3/{name}"));
        let mut damaged = bytes(&file);
        damaged[10] ^= 1;
        fs::write(&file, damaged).unwrap();
        assert_eq!(again(&command), [false, false, true], "{name}");
    }
    fs::remove_dir_all(at("parts/1")).unwrap();
    assert_eq!(again(&command), [false; 3]);
    assert!(outputs(&room.path().join("cv"), 3) == first);
    // Other parameters repeat all folds.
    assert_eq!(again(&format!("{command} --set max_depth=2")), [true; 3]);
    assert_eq!(again(&command), [true; 3]);
    assert!(outputs(&room.path().join("cv"), 3) == first);
}

/// Kills a command whenever one of these output files appears, and once more at a random moment; then lets it finish.
fn killed(directory: &Path, arguments: &str, output: &str, stages: &[&str]) {
    let spawn = || command(directory, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for stage in stages {
        let file = directory.join(output).join(stage);
        assert!(!file.exists(), "{stage} exists too early");
        let mut child = spawn();
        wait_for(stage, || file.exists());
        child.kill().unwrap(); // SIGKILL
        assert!(!child.wait().unwrap().success(), "{stage}: it had finished already");
    }
    let mut child = spawn();
    std::thread::sleep(Duration::from_millis(Stream::new(&[stages.len() as u64]).bits() % 200));
    child.kill().unwrap();
    child.wait().unwrap();
    run(directory, arguments).ok();
}

#[test]
fn killed_runs_resume_to_the_same_bytes() {
    let room = room();
    dataset(room.path(), "data", &graded(75, 120, 25), "--partition-rows 1000");
    let arguments = "cv --data data --folds 4 --set num_trees=60 --set learning_rate=0.1";
    run(room.path(), &format!("{arguments} --output whole")).ok();
    let stages = [
        "cv.json",
        "parts/2/_manifest.json",
        "folds/1/model.parquet",
        "folds/1/fold.json",
        "folds/2/rounds.parquet",
        "folds/3/predictions.parquet",
    ];
    killed(room.path(), &format!("{arguments} --output killed"), "killed", &stages);
    assert!(outputs(&room.path().join("whole"), 4) == outputs(&room.path().join("killed"), 4));
    for part in 1..=4 {
        let at = |output: &str| room.path().join(format!("{output}/parts/{part}"));
        assert_same_files(&at("whole"), &at("killed"));
    }
    assert_eq!(names_in(&room.path().join("whole")), names_in(&room.path().join("killed")));
    assert_eq!(names_in(&room.path().join("whole/parts")), names_in(&room.path().join("killed/parts")));
}

const SEARCH: &str = "trials = 4\nseed = 2\n[search]\nlearning_rate = { min = 0.02, max = 0.5, log = true }\n\
                      max_depth = [2, 5]\n";

#[test]
fn a_search_ranks_by_validation_metrics_and_extends() {
    let room = room();
    dataset(room.path(), "data", &graded(76, 60, 15), "");
    fs::write(room.path().join("s.toml"), SEARCH).unwrap();
    let command = "--data data --folds 3 --search s.toml --set num_trees=10";
    let json = cv(room.path(), &format!("{command} --output search"));
    let trials = json["trials"].as_array().unwrap();
    assert_eq!((trials.len(), json["metric"].as_str()), (4, Some("ndcg@10")));
    let value = |trial: &serde_json::Value, split: &str| trial[split]["ndcg@10"]["mean"].as_f64().unwrap();
    let ranked: Vec<f64> = trials.iter().map(|trial| value(trial, "valid")).collect();
    assert!(ranked.is_sorted_by(|one, other| one >= other), "{ranked:?}");
    assert_eq!(json["best"], trials[0]["trial"]);
    // Each trial equals the cross-validation with its parameters.
    for trial in trials {
        let number = &trial["trial"];
        let set = format!(
            "--set learning_rate={} --set max_depth={}",
            trial["parameters"]["learning_rate"], trial["parameters"]["max_depth"]
        );
        let alone = cv(
            room.path(),
            &format!("--data data --folds 3 --set num_trees=10 {set} --output alone{number}"),
        );
        assert_eq!(alone["valid"], trial["valid"]);
        assert_eq!(alone["test"], trial["test"]);
        let best: Vec<_> =
            alone["folds"].as_array().unwrap().iter().map(|fold| fold["best_round"].clone()).collect();
        assert_eq!(trial["best_rounds"].as_array().unwrap(), &best);
        let at = |output: String| outputs(&room.path().join(output), 3).remove("predictions.parquet");
        let there = table_of(&room.path().join(format!("search/trials/{number}/predictions.parquet")));
        assert!(there == table_of(&room.path().join(format!("alone{number}/predictions.parquet"))));
        assert!(at(format!("alone{number}")).is_some());
    }
    let table = table_of(&room.path().join("search/trials.parquet"));
    assert_eq!(table.num_rows(), 4);
    for name in [
        "trial",
        "learning_rate",
        "max_depth",
        "valid_ndcg@10",
        "valid_ndcg@10_deviation",
        "valid_rmse",
        "test_ndcg@10",
        "test_err_deviation",
        "best_round",
        "best_rounds",
    ] {
        assert!(table.column_by_name(name).is_some(), "{name}");
    }
    let described = run(room.path(), "describe search/trials.parquet --json").ok().stdout;
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["best"]["trial"], json["best"]);
    // A second run trains nothing; with more trials, only the new ones are trained.
    let stamp = |number: usize, fold: usize| {
        let file = room.path().join(format!("search/trials/{number}/folds/{fold}/fold.json"));
        fs::metadata(file).unwrap().modified().unwrap()
    };
    let before: Vec<_> = (1..=4).map(|number| stamp(number, 1)).collect();
    let again = cv(room.path(), &format!("{command} --output search"));
    assert_eq!(again, json);
    fs::write(room.path().join("s.toml"), SEARCH.replace("trials = 4", "trials = 5")).unwrap();
    let more = cv(room.path(), &format!("{command} --output search"));
    assert_eq!(more["trials"].as_array().unwrap().len(), 5);
    assert_eq!((1..=4).map(|number| stamp(number, 1)).collect::<Vec<_>>(), before);
    let text = run(room.path(), &format!("--quiet cv {command} --output search")).ok().stdout;
    let first = text.lines().nth(1).unwrap();
    assert!(first.split_whitespace().nth(1) == Some(&more["best"].to_string()), "{text}");
}

#[test]
fn a_failed_trial_is_ranked_last_and_does_not_end_the_search() {
    let room = room();
    dataset(room.path(), "data", &graded(81, 30, 10), "");
    fs::write(room.path().join("s.toml"), "[search]\nmin_data_in_leaf = [5000, 5, 10]\n").unwrap();
    let json = cv(room.path(), &format!("--data data --folds 3 --search s.toml --output search {QUICK}"));
    let trials = json["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &trials[2]["trial"]), (3, &serde_json::json!(1)));
    assert!(trials[2]["problem"].as_str().unwrap().contains("no split was possible"), "{}", trials[2]);
    assert!(trials[0]["problem"].is_null() && json["best"] == trials[0]["trial"]);
    let table = table_of(&room.path().join("search/trials.parquet"));
    for (name, nulls) in [("valid_ndcg@10", 1), ("test_map", 1), ("best_round", 1), ("problem", 2)] {
        assert_eq!(table.column_by_name(name).unwrap().null_count(), nulls, "{name}");
    }
    fs::write(room.path().join("s.toml"), "[search]\nmin_data_in_leaf = [5000]\n").unwrap();
    let json = cv(room.path(), &format!("--data data --folds 3 --search s.toml --output none {QUICK}"));
    assert!(json["best"].is_null());
    run(room.path(), "describe none/trials.parquet").ok();
}

#[test]
fn a_killed_search_resumes() {
    let room = room();
    dataset(room.path(), "data", &graded(77, 60, 15), "");
    fs::write(room.path().join("s.toml"), SEARCH).unwrap();
    let arguments = "cv --data data --folds 3 --search s.toml --set num_trees=30 --json";
    let whole = run(room.path(), &format!("{arguments} --output whole")).ok().stdout;
    let arguments = format!("{arguments} --output killed");
    let stages = ["trials/1/folds/2/fold.json", "trials.parquet", "trials/3/folds/1/model.parquet"];
    killed(room.path(), &arguments, "killed", &stages);
    let resumed = run(room.path(), &arguments).ok().stdout;
    assert_eq!(resumed.replace("killed", "whole"), whole);
    for trial in 1..=4 {
        let at = |output: &str| outputs_of_trial(room.path(), output, trial);
        assert!(at("whole") == at("killed"), "trial {trial}");
    }
    let table = |output: &str| bytes(room.path().join(output).join("trials.parquet"));
    assert!(table("whole") == table("killed"));
}

fn outputs_of_trial(directory: &Path, output: &str, trial: usize) -> Vec<Vec<u8>> {
    let at = directory.join(format!("{output}/trials/{trial}"));
    let mut all = vec![bytes(at.join("predictions.parquet")), bytes(at.join("metrics.parquet"))];
    all.extend((1..=3).map(|fold| bytes(at.join(format!("folds/{fold}/model.parquet")))));
    all
}

#[test]
fn misuse_is_reported_before_any_work() {
    let room = room();
    dataset(room.path(), "data", &graded(78, 8, 10), "");
    dataset(room.path(), "other", &graded(79, 9, 5), "");
    let search = |name: &str, text: &str| fs::write(room.path().join(name), text).unwrap();
    search("unknown.toml", "[search]\nlearnig_rate = [0.1]\n");
    search("value.toml", "[search]\nlearning_rate = [0.1, 20]\n");
    search("endless.toml", "[search]\nlearning_rate = { min = 0.1, max = 0.2 }\n");
    search("fine.toml", "[search]\nlearning_rate = [0.1]\n");
    for (arguments, code, expected) in [
        ("--data data --folds 2", 2, &["2 folds are too few", "--no-valid"][..]),
        ("--data data other", 2, &["2 folds are too few"]),
        ("--data data --folds 1 --no-valid", 2, &["1 fold is too few", "at least 2 folds"]),
        ("--data data --folds 0", 2, &["0 folds are too few"]),
        ("--data data --folds 9", 2, &["9 folds, but data has only 8 queries", "lower --folds"]),
        ("--data data other data --folds 5", 2, &["--folds 5, but 3 datasets are given"]),
        ("--data data other data", 1, &["query \"0\" is also in data", "without common queries"]),
        ("--data nowhere", 1, &["nowhere: no such file or directory"]),
        ("--data data --metrics ndgc@10", 2, &["unknown metric \"ndgc@10\"", "did you mean ndcg"]),
        ("--data data --set metric=xyz", 2, &["unknown metric \"xyz\""]),
        ("--data data --set num_treees=3", 2, &["unknown parameter \"num_treees\"", "num_trees"]),
        ("--data data --preset plant", 2, &["unknown preset \"plant\""]),
        ("--data data --no-valid --set early_stopping_rounds=5", 2, &["needs a validation part"]),
        ("--data data --no-valid --search fine.toml", 2, &["--no-valid"]),
        ("--data data --unused-valid --search fine.toml", 2, &["--unused-valid"]),
        ("--data data --unused-valid --no-valid", 2, &["cannot be used with"]),
        ("--data data --folds 2 --unused-valid", 2, &["2 folds are too few", "at least 3"]),
        (
            "--data data --unused-valid --set early_stopping_rounds=5",
            2,
            &["needs a validation part, but --unused-valid is given"],
        ),
        (
            "--data data --search unknown.toml",
            2,
            &["unknown.toml:2:1: unknown parameter \"learnig_rate\"", "did you mean learning_rate?"],
        ),
        (
            "--data data --search value.toml",
            2,
            &["trial 2: value.toml:2:1: learning_rate = 20: expected a number above 0"],
        ),
        (
            "--data data --search endless.toml",
            2,
            &["endless.toml:2:1: the range of learning_rate needs a number of trials", "trials = 20"],
        ),
        ("--data data --search nowhere.toml", 1, &["nowhere.toml"]),
        (
            "--data data --search fine.toml --set learning_rate=0.1",
            2,
            &["--set learning_rate: the search varies learning_rate, too"],
        ),
        ("--data data --search fine.toml --eta 0.1", 2, &["--set eta: the search varies learning_rate, too"]),
    ] {
        let ran = run(room.path(), &format!("cv {arguments} --output out"));
        assert_eq!(ran.code, code, "{arguments}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked") && ran.stdout.is_empty(), "{arguments}: {}", ran.stderr);
        for text in expected {
            assert!(ran.stderr.contains(text), "{arguments}: {text:?} is not in\n{}", ran.stderr);
        }
        assert!(!room.path().join("out").exists(), "{arguments}: left something behind");
    }
    // An error in a fold names the fold.
    let ran = run(room.path(), "cv --data data --folds 4 --output out --set min_data_in_leaf=500").failed();
    assert!(
        ran.stderr.contains("fold 1: ") && ran.stderr.contains("no split was possible"),
        "{}",
        ran.stderr
    );
    // Another cross-validation in the same directory is rejected.
    cv(room.path(), &format!("--data data --folds 4 --output mine {QUICK}"));
    for (arguments, expected) in [
        ("--data data --folds 3", "it has 4 folds, not 3"),
        ("--data other --folds 4", "its data differ"),
        ("--data data --folds 4 --fold-seed 1", "its --fold-seed is 0, not 1"),
        ("--data data --folds 4 --no-valid", "it was run without --no-valid"),
        ("--data data --folds 4 --unused-valid", "it was run without --unused-valid"),
    ] {
        let ran = run(room.path(), &format!("cv {arguments} --output mine {QUICK}")).failed();
        assert!(ran.stderr.contains(expected), "{arguments}: {}", ran.stderr);
    }
    fs::create_dir(room.path().join("theirs")).unwrap();
    fs::write(room.path().join("theirs/folds.parquet"), "mine").unwrap();
    let ran = run(room.path(), "cv --data data --folds 4 --output theirs").failed();
    assert!(ran.stderr.contains("refusing to overwrite: not created by planetree"), "{}", ran.stderr);
}
