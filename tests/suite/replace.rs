//! Replacing a dataset during concurrent reads and writes: readers see either the old or the new dataset, and
//! the result is complete.

use crate::support::object_stores::{environment, moto, seaweed, with_client};
use crate::support::*;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Expected answers for a dataset with one of the two contents.
struct ExpectedAnswers {
    described: String,
    counted: String,
    predictions: Vec<u8>,
}

const READS: [&str; 3] = ["describe", "sql", "predict"];

/// Runs one command that reads the dataset and returns its output.
fn read(temporary: &Path, data: &str, kind: &str, variables: &[(String, String)]) -> Result<Vec<u8>, String> {
    let go = |arguments: Vec<&str>| {
        let mut command = command(temporary, "--quiet");
        let ran = Ran::of(command.args(arguments).envs(variables.iter().cloned()).output().unwrap());
        if ran.code == 0 { Ok(ran.stdout) } else { Err(format!("{kind}: {}", ran.stderr)) }
    };
    match kind {
        "describe" => go(vec!["describe", data]).map(|text| text.replace(data, "DATA").into_bytes()),
        "sql" => {
            let query = format!("SELECT count(*) AS n, sum(label) AS s, sum(f3) AS t FROM '{data}'");
            let mut arguments = vec!["sql", "--format", "csv", "-c", &query];
            if data.contains("://") {
                arguments.extend(["--allow-path", "s3://bucket/"]);
            }
            go(arguments).map(String::into_bytes)
        }
        _ => {
            let output = format!("predictions-{:?}", std::thread::current().id());
            go(vec!["predict", "--model", "model", "--data", data, "--output", &output])?;
            Ok(fs::read(temporary.join(output)).unwrap())
        }
    }
}

/// Several writers repeatedly replace a dataset with one of two contents while readers read it continuously.
/// Returns the number of successful reads by kind.
fn race(temporary: &Path, data: &str, rounds: usize, variables: &[(String, String)]) -> [usize; 3] {
    let texts =
        [some_text(60, 10), format!("{}{}", some_text(30, 10), some_text(80, 7).replace("qid:", "qid:b"))];
    let mut truths = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        fs::write(temporary.join(format!("in{number}.txt")), text).unwrap();
        let local = format!("whole{number}");
        run(temporary, &format!("--quiet convert in{number}.txt --output {local} --partition-rows 300")).ok();
        if number == 0 {
            run(
                temporary,
                "--quiet train --data whole0 --model model --set num_trees=2 --set min_data_in_leaf=5",
            )
            .ok();
        }
        let answer = |kind: &str| read(temporary, &local, kind, &[]).unwrap();
        truths.push(ExpectedAnswers {
            described: String::from_utf8(answer("describe")).unwrap(),
            counted: String::from_utf8(answer("sql")).unwrap(),
            predictions: answer("predict"),
        });
    }
    let is_true = |kind: &str, answer: &[u8]| {
        truths.iter().any(|truth| match kind {
            "describe" => truth.described.as_bytes() == answer,
            "sql" => truth.counted.as_bytes() == answer,
            _ => truth.predictions == answer,
        })
    };
    let convert = |number: usize| {
        let arguments = format!(
            "--quiet convert in{number}.txt --output {data} --partition-rows 300 --overwrite --threads 1"
        );
        let mut command = command(temporary, &arguments);
        command.envs(variables.iter().cloned()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    assert!(convert(0).wait().unwrap().success());
    let (ended, came) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 3]);
    std::thread::scope(|scope| {
        let readers: Vec<_> = READS
            .iter()
            .zip(&came)
            .map(|(kind, came)| {
                let (ended, is_true) = (&ended, &is_true);
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        let answer =
                            read(temporary, data, kind, variables).unwrap_or_else(|error| panic!("{error}"));
                        assert!(is_true(kind, &answer), "{kind} has rows of both, or lacks some");
                        came.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for round in 0..rounds {
            // The old content again, the other one, and both once more.
            let writers: Vec<_> =
                [round, round + 1, round, round + 1].map(|number| convert(number % 2)).into();
            for writer in writers {
                let output = writer.wait_with_output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "round {round}: {stderr}");
            }
            for kind in READS {
                let answer = read(temporary, data, kind, variables);
                let answer = answer.unwrap_or_else(|error| panic!("after round {round}: {error}"));
                assert!(is_true(kind, &answer), "after round {round}: {kind}");
            }
            if readers.iter().any(|reader| reader.is_finished()) {
                break; // it has failed and reports the reason
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    let came = came.map(AtomicUsize::into_inner);
    eprintln!("{data}: {rounds} rounds of 4 writers, 0 broken; readings, 0 failed: {READS:?} {came:?}");
    came
}

fn local_race(rounds: usize) {
    let temporary = room();
    let came = race(temporary.path(), "out", rounds, &[]);
    assert!(came.iter().all(|came| *came > 0), "{came:?}");
    // There are no readers, so the next writer removes the renamed directories.
    run(temporary.path(), "convert in0.txt --output out --partition-rows 300 --overwrite").ok();
    assert_same_files(&temporary.path().join("out"), &temporary.path().join("whole0"));
    let is_aside = |name: &String| name.starts_with(".out");
    assert!(!names_in(temporary.path()).iter().any(is_aside), "{:?}", names_in(temporary.path()));
}

fn bucket_race(server: &Server, rounds: usize) {
    let temporary = room();
    let variables = environment(server.port);
    let came = race(temporary.path(), "s3://bucket/out", rounds, &variables);
    assert!(came.iter().all(|came| *came > 0), "{came:?}");
    run_with(
        temporary.path(),
        "convert in0.txt --output s3://bucket/out --partition-rows 300 --overwrite",
        &variables,
    )
    .ok();
    let listed = with_client(
        server.port,
        "print(' '.join(o['Key'][4:] for o in s3.list_objects_v2(Bucket='bucket', Prefix='out/')['Contents']))",
    );
    let names: Vec<&str> = listed.split_whitespace().collect();
    let whole = |number: usize| names_in(&temporary.path().join(format!("whole{number}")));
    for name in whole(0).iter().chain(&whole(1)) {
        assert!(names.contains(&name.as_str()), "{name} is gone too early: {names:?}");
    }
    let others: Vec<_> = names
        .iter()
        .filter(|name| !whole(0).contains(&name.to_string()) && !whole(1).contains(&name.to_string()))
        .collect();
    assert!(others.len() == 1 && others[0].starts_with("_manifest-"), "the replaced manifest: {others:?}");
}

#[test]
fn readers_of_a_repeatedly_replaced_directory_never_fail() {
    local_race(12);
}

#[test]
fn readers_of_a_repeatedly_replaced_bucket_never_fail() {
    let Some(server) = moto() else { return };
    bucket_race(&server, 6);
}

#[test]
#[ignore = "two hundred rounds: make test-all"]
fn two_hundred_rounds_of_writers_keep_a_directory_intact() {
    local_race(200);
}

#[test]
#[ignore = "two hundred rounds: make test-all"]
fn two_hundred_rounds_of_writers_keep_a_bucket_intact_with_moto() {
    let Some(server) = moto() else { return };
    bucket_race(&server, 200);
}

#[test]
#[ignore = "two hundred rounds: make test-all"]
fn two_hundred_rounds_of_writers_keep_a_bucket_intact_with_seaweedfs() {
    let temporary = room();
    let Some(server) = seaweed(temporary.path()) else { return };
    bucket_race(&server, 200);
}

/// Deletes all objects that the current manifest does not list, as a later conversion does after a day.
#[test]
fn a_late_reader_reports_that_the_dataset_was_replaced() {
    use planetree::dataset::DatasetReader;
    use planetree::storage::{Access, Location};
    let temporary = room();
    for number in 0..2 {
        fs::write(temporary.path().join("in.txt"), some_text(20 + number, 10)).unwrap();
        run(temporary.path(), &format!("convert in.txt --output d{number}")).ok();
    }
    // Without the lock, as on a file system without locks.
    let place = temporary.path().join("d0");
    let location = Location::parse(place.to_str().unwrap(), Access::Explicit).unwrap();
    let reader = DatasetReader::open(&location).unwrap();
    let part = names_in(&place).into_iter().find(|name| name.ends_with(".parquet")).unwrap();
    fs::remove_file(place.join(part)).unwrap();
    let problem = |reader: &DatasetReader| {
        let error = reader.open_group(reader.groups()[0]).err().unwrap();
        format!("{error} / {}", error.remedy().unwrap_or_default())
    };
    assert!(problem(&reader).contains("damaged: the file is missing / restore"), "{}", problem(&reader));
    fs::copy(temporary.path().join("d1/_manifest.json"), place.join("_manifest.json")).unwrap();
    assert!(
        problem(&reader)
            .ends_with("the dataset was replaced while it was being read / run the command again"),
        "{}",
        problem(&reader)
    );
}
