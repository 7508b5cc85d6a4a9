//! Commands that read tables directly give the results that they give for the converted dataset.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Documents in a room with a table of them as CSV, Parquet and LETOR text, a dataset of it, and a model.
fn prepare(at: &Path) {
    // The table begins with the last query, so its order is not that of the ids.
    let mut examples = graded(71, 30, 8);
    examples.reverse();
    fs::write(at.join("data.csv"), as_csv(&examples)).unwrap();
    run(at, "convert data.csv --output data").ok();
    let copy = "SELECT * FROM 'data.csv'";
    let ran = Ran::of(command(at, "sql -o data.parquet -c").arg(copy).output().unwrap());
    ran.ok();
    train(at, "--data data --model m --num-trees 5");
    train(at, "--preset lambdamart --data data --model n --num-trees 5");
}

/// Runs a command in a room whose temporary directory must be empty afterwards.
fn run_and_clean(at: &Path, arguments: &str) -> Ran {
    let temporary = at.join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let ran = run_with(at, arguments, &[("TMPDIR".to_owned(), temporary.display().to_string())]);
    assert_eq!(names_in(&temporary), [""; 0], "{arguments}: temporary datasets are removed");
    ran
}

#[test]
fn tables_are_scored_directly_in_the_order_of_their_rows() {
    let room = room();
    let at = room.path();
    prepare(at);
    run(at, "predict --model m --data data --output converted --scores converted.txt").ok();
    let csv = fs::read_to_string(at.join("data.csv")).unwrap();
    let queries: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    let rows = predictions_of(&at.join("converted"));
    assert!(rows.iter().map(|row| row.query.as_str()).eq(queries.iter().copied()), "in input order");
    let renamed = csv.replacen("query_id,label,", "session,grade,", 1);
    fs::write(at.join("renamed.csv"), renamed).unwrap();
    for (data, options) in [
        ("data.csv", ""),
        ("data.parquet", ""),
        ("renamed.csv", "--query-column session --label-column grade"),
        ("data.csv", "--threads 1"),
    ] {
        run(at, &format!("convert {data} {options} --output same --overwrite")).ok();
        run(at, "predict --model m --data same --output converted").ok();
        let ran = run_and_clean(
            at,
            &format!("predict --model m --data {data} {options} --output direct --scores direct.txt"),
        );
        assert!(
            ran.ok().stderr.contains(&format!("{data}: 240 rows, 30 queries, 14 features; to use it again"))
        );
        assert_same_bytes(at, "converted.txt", "direct.txt", data);
        assert_same_bytes(at, "converted", "direct", data);
    }
    let printed = run_and_clean(at, "--quiet predict --model m --data data.csv --scores -").ok();
    assert_eq!(printed.stdout, fs::read_to_string(at.join("converted.txt")).unwrap());
    assert_eq!(printed.stderr, "");
    // Scoring needs no labels.
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let label = names.iter().position(|name| *name == "label").unwrap();
    let bare: String = csv
        .lines()
        .map(|line| {
            let fields = line.split(',').enumerate().filter(|(place, _)| *place != label);
            fields.map(|(_, field)| field).collect::<Vec<_>>().join(",") + "\n"
        })
        .collect();
    fs::write(at.join("bare.csv"), bare).unwrap();
    let printed = run_and_clean(at, "--quiet predict --model m --data bare.csv --scores -").ok();
    assert_eq!(printed.stdout, fs::read_to_string(at.join("converted.txt")).unwrap());
}

#[test]
fn errors_of_direct_tables_name_the_command_that_has_the_remedy() {
    let room = room();
    let at = room.path();
    prepare(at);
    let csv = fs::read_to_string(at.join("data.csv")).unwrap();
    let again: String = csv.lines().skip(1).take(1).map(|line| format!("{line}\n")).collect();
    fs::write(at.join("again.csv"), format!("{csv}{again}")).unwrap();
    let predict = |options: &str| format!("predict --model m --scores - {options}");
    for (options, code, texts) in [
        (
            "--data again.csv",
            1,
            &["again.csv:242:1", "(--sort-queries is an option of planetree convert)"][..],
        ),
        ("--data data.csv --query-column session", 2, &["there is no column \"session\""]),
        ("--data data.csv --cluster df://127.0.0.1:9", 2, &["planetree convert data.csv --output DATASET"]),
        ("--data m", 1, &["m: "]),
        ("--data absent.csv", 1, &["absent.csv: no such file or directory"]),
    ] {
        let command = predict(options);
        assert_refused(&command, &run_and_clean(at, &command), code, texts);
    }
    let command = "predict --model m --batch --ignore-columns a";
    assert_refused(command, &run(at, command), 2, &["--ignore-columns", "--batch"]);
}

#[test]
fn tables_are_cross_validated_directly() {
    let room = room();
    let at = room.path();
    prepare(at);
    let cv = "--folds 3 --preset lambdamart --num-trees 4 --min-data-in-leaf 5 --random";
    for data in ["data.csv", "data.parquet"] {
        run(at, &format!("convert {data} --output same --overwrite")).ok();
        let converted = run(at, &format!("--quiet cv --data same {cv} --output converted")).ok().stdout;
        let direct = run_and_clean(at, &format!("--quiet cv --data {data} {cv} --output direct")).ok().stdout;
        assert_eq!(direct.replace("direct", "converted"), converted);
        for file in ["cv.json", "metrics.parquet", "folds/1/model.parquet", "folds/3/predictions.parquet"] {
            assert_same_bytes(at, &format!("converted/{file}"), &format!("direct/{file}"), data);
        }
        // The table is recognised as the data of the folds that are complete.
        run_and_clean(at, &format!("cv --data same {cv} --output direct")).ok();
        fs::remove_dir_all(at.join("direct")).unwrap();
        fs::remove_dir_all(at.join("converted")).unwrap();
    }
    run(at, "convert data.csv --ignore-columns f1? --output few").ok();
    run(at, &format!("cv --data few {cv} --output few-cv")).ok();
    run_and_clean(at, &format!("cv --data data.csv --ignore-columns f1? {cv} --output direct")).ok();
    assert_same_bytes(at, "few-cv/folds/2/model.parquet", "direct/folds/2/model.parquet", "columns");
    let csv = fs::read_to_string(at.join("data.csv")).unwrap();
    let first = csv.lines().nth(1).unwrap();
    let mut fields: Vec<&str> = first.split(',').collect();
    fields[1] = ""; // the label
    let unjudged = csv.replacen(first, &fields.join(","), 1);
    fs::write(at.join("unjudged.csv"), unjudged).unwrap();
    let refused = format!("cv --data unjudged.csv {cv} --output none");
    let texts = ["unjudged.csv: 1 of 240 rows have no label (-1 or empty)", "--unlabelled drop"];
    assert_refused(&refused, &run_and_clean(at, &refused), 1, &texts);
    // The label -1 means the same.
    fields[1] = "-1";
    fs::write(at.join("unjudged.csv"), csv.replacen(first, &fields.join(","), 1)).unwrap();
    assert_refused(&refused, &run_and_clean(at, &refused), 1, &texts);
    run(at, "convert unjudged.csv --output unjudged").ok();
    let of_dataset = refused.replace("unjudged.csv", "unjudged");
    assert_refused(&of_dataset, &run(at, &of_dataset), 1, &["1 of 240 rows have no label (-1 or empty)"]);
    run_and_clean(at, &format!("cv --data unjudged.csv --unlabelled drop {cv} --output dropped")).ok();
}

#[test]
fn tables_are_evaluated_blended_augmented_and_priced_directly() {
    let room = room();
    let at = room.path();
    prepare(at);
    run(at, "--quiet predict --model m --data data --scores scores.txt").ok();
    fs::write(at.join("costs.csv"), "feature,cost\nf1,2\nf3,10\n*,1\n").unwrap();
    fs::copy(at.join("data.csv"), at.join("table_1")).unwrap();
    run(at, "convert data.csv --output table_2").ok();
    for (command, output) in [
        ("evaluate --scores scores.txt --feature f3 --random --metrics ndcg@10 --data", "metrics"),
        ("blend m n --weights ols --data", "blend"),
        ("augment --model m --data", "augmented"),
        ("cost --model m --costs costs.csv --exit-every 2 --data", "costs"),
    ] {
        let of = |data: &str, to: &str| {
            let ran = run_and_clean(at, &format!("--quiet {command} {data} --output {to}-{output}"));
            ran.ok().stdout.replace(data, "DATA").replace(to, "TO")
        };
        assert_eq!(of("table_1", "alpha_1"), of("table_2", "alpha_2"), "{command}");
        let [direct, converted] = ["alpha_1", "alpha_2"].map(|to| at.join(format!("{to}-{output}")));
        match direct.is_dir() {
            true => assert_same_files(&direct, &converted),
            false => assert_eq!(fs::read(direct).unwrap(), fs::read(converted).unwrap(), "{command}"),
        }
    }
}

#[test]
fn options_for_columns_need_data() {
    let room = room();
    let at = room.path();
    prepare(at);
    run(at, "--quiet predict --model m --data data --output p.csv").ok();
    for command in [
        "evaluate p.csv --label-column grade",
        "blend --predictions p.csv p.csv --query-column s --output b.csv",
        "blend m n --weights 0.5,0.5 --ignore-columns f1 --output b",
    ] {
        let texts = ["options for columns", "--data, which is not given"];
        assert_refused(command, &run(at, command), 2, &texts);
    }
    assert!(!at.join("b").exists() && !at.join("b.csv").exists());
}

#[test]
fn augment_does_not_replace_its_input() {
    let room = room();
    let at = room.path();
    prepare(at);
    for options in ["", "--ignore-columns f1"] {
        let command = format!("augment --model m --data data {options} --output data --overwrite");
        let texts = ["data is both the input and the output"];
        assert_refused(&command, &run_and_clean(at, &command), 2, &texts);
    }
}

#[test]
fn outputs_do_not_replace_the_tables_that_are_read() {
    let room = room();
    let at = room.path();
    prepare(at);
    // Predictions, which a second model may have as features, and which predictions may replace.
    run(at, "--quiet predict --model m --data data --output in.csv").ok();
    fs::create_dir(at.join("tables")).unwrap();
    fs::copy(at.join("in.csv"), at.join("tables/in.csv")).unwrap();
    fs::write(at.join("costs.csv"), "feature,cost\nf1,2\n*,1\n").unwrap();
    fs::write(at.join("a.run"), "1 Q0 d1 1 0.5 bm25\n").unwrap();
    fs::write(at.join("qrels"), "1 0 d1 1\n").unwrap();
    let before = fs::read(at.join("in.csv")).unwrap();
    for (command, file, option) in [
        ("predict --model m --data in.csv --output in.csv", "in.csv", "--output"),
        ("predict --model m --data in.csv --output ./in.csv", "./in.csv", "--output"),
        ("predict --model m --data in.csv --output p --scores in.csv", "in.csv", "--scores"),
        ("predict --model m --data tables --output tables/in.csv", "tables/in.csv", "--output"),
        ("evaluate in.csv --output in.csv", "in.csv", "--output"),
        ("evaluate --data in.csv --feature score --output in.csv", "in.csv", "--output"),
        ("evaluate --run a.run --qrels qrels --write-run a.run", "a.run", "--write-run"),
        ("train --preset rf-point --data in.csv --model f --oob in.csv", "in.csv", "--oob"),
        ("train --data data --valid tables --model f --rounds tables/in.csv", "tables/in.csv", "--rounds"),
        ("cost --model m --data in.csv --costs costs.csv --output in.csv", "in.csv", "--output"),
        ("cost --model m --data data --costs costs.csv --output costs.csv", "costs.csv", "--output"),
    ] {
        let problem = format!("error: {file} is both an input and the output");
        let remedy = format!("name another file with {option}");
        assert_refused(command, &run_and_clean(at, command), 2, &[&problem, &remedy]);
    }
    for file in ["in.csv", "tables/in.csv"] {
        assert_eq!(fs::read(at.join(file)).unwrap(), before, "{file}");
    }
}

#[test]
fn mistakes_are_found_before_tables_are_converted() {
    let room = room();
    let at = room.path();
    prepare(at);
    // This table cannot be converted, so the mistakes below are found only if they come first.
    fs::write(at.join("broken.csv"), "query_id,label,f1\nq1,x,2\n").unwrap();
    fs::write(at.join("costs.csv"), "feature,cost\nf1,2\n*,1\n").unwrap();
    for (command, code, text) in [
        ("evaluate --feature f1", 1, "broken.csv:2"),
        ("evaluate --feature f1 --metrics foo", 2, "foo"),
        ("evaluate --feature f1 --output m.txt", 2, "m.txt: cannot write"),
        ("evaluate --feature f1 --write-run m.csv", 2, "m.csv: cannot write a run as .csv"),
        ("cost --model m --costs nope.csv --output c", 1, "nope.csv: cannot open: No such file"),
        ("cost --model m --costs costs.csv --output c.txt", 2, "c.txt: cannot write"),
        ("predict --model m --output p.txt", 2, "p.txt: cannot write predictions as .txt"),
        ("predict --model m --scores s.parquet", 2, "s.parquet: cannot write scores as .parquet"),
        ("augment --model m --output data", 1, "data: output already exists"),
        ("augment --model m --columns score,score --output more", 2, "--columns lists score twice"),
        ("cv --folds 2 --output cv", 2, "2 folds are too few"),
    ] {
        let command = format!("{command} --data broken.csv");
        assert_refused(&command, &run_and_clean(at, &command), code, &[text]);
    }
    for output in ["more", "cv", "c", "p.txt"] {
        assert!(!at.join(output).exists(), "{output}");
    }
}

#[test]
fn errors_of_direct_tables_name_the_table_as_given() {
    let room = room();
    let at = room.path();
    prepare(at);
    fs::write(at.join("short.txt"), "1\n2\n").unwrap();
    let csv = fs::read_to_string(at.join("data.csv")).unwrap();
    let (header, rows) = csv.split_once('\n').unwrap();
    fs::write(at.join("no-label.csv"), format!("{}\n{rows}", header.replace("label", "f0"))).unwrap();
    fs::write(at.join("costs.csv"), "feature,cost\nf1,2\n*,1\n").unwrap();
    for (command, texts) in [
        (
            "evaluate --scores short.txt --data data.csv",
            &["short.txt: only 2 scores, but data.csv has 240 rows"][..],
        ),
        ("cost --model m --costs costs.csv --output c --data no-label.csv", &["no-label.csv: row 1 "]),
        (
            "cv --data data.csv data.parquet data --preset mart --num-trees 2 --output cv",
            &["data.csv", "data.parquet"],
        ),
    ] {
        let ran = run_and_clean(at, command);
        assert_refused(command, &ran, 1, texts);
        assert!(!ran.stderr.contains("planetree-"), "{command}: {}", ran.stderr);
    }
}

#[test]
fn tables_are_converted_within_the_memory_limit() {
    let room = room();
    let at = room.path();
    prepare(at);
    run(at, "--quiet predict --model m --data data --scores scores.txt").ok();
    for (command, code) in [
        ("evaluate --scores scores.txt --memory-limit 128MiB --data data", 0),
        ("evaluate --scores scores.txt --memory-limit 256MiB --data data.csv", 0),
        ("evaluate --scores scores.txt --memory-limit 128MiB --data data.csv", 2),
        ("train --num-trees 2 --model n --memory-limit 128MiB --data data.csv", 2),
        ("cv --folds 3 --preset mart --num-trees 2 --output cv --memory-limit 128MiB --data data.csv", 2),
    ] {
        let ran = run_and_clean(at, command);
        match code {
            0 => drop(ran.ok()),
            _ => assert_refused(command, &ran, code, &["too small to convert data.csv", "at least 192 MiB"]),
        }
    }
}
