//! What users of other tools type first: parameters as options, files as arguments, names of other tools.

use crate::support::*;
use serde_json::Value;
use std::fs;

#[test]
fn every_parameter_is_an_option() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(51, 20, 8), "");
    train(at, "--data data --model set --set num_trees=7 --set learning_rate=0.2 --set objective=squared");
    run(at, "train --data data -o option --num-trees 7 --learning-rate=0.2 --objective squared").ok();
    assert_same_bytes(at, "set", "option", "options");
    run(at, "train --data data --output alias --n_estimators 7 --eta .2 --objective squared").ok();
    assert_same_bytes(at, "set", "alias", "aliases");
    let refused = "train --data data --model m --num-trees many";
    assert_refused(refused, &run(at, refused), 2, &["--set num_trees=many", "whole number"]);
    let refused = "train --data data --model m --num-treez 3";
    assert_refused(refused, &run(at, refused), 2, &["unexpected argument '--num-treez'"]);
}

#[test]
fn parameters_of_other_tools_are_answered() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(52, 5, 5), "");
    for (name, answer) in [
        ("num_threads=4", "--threads N"),
        ("interaction_constraints=[[0,1]]", "does not constrain which features"),
        ("drop_rate=0.1", "no dropout"),
        ("use_best_model=true", "early_stopping_rounds"),
        ("metric2t=NDCG@10", "--set metric=ndcg@10"),
    ] {
        let command = format!("train --data data --model m --set {name}");
        assert_refused(&command, &run(at, &command), 2, &["planetree has no parameter", answer]);
    }
}

#[test]
fn a_training_without_a_choice_says_that_it_is_regression() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(53, 10, 6), "");
    let note = "note: regression on the labels";
    let said =
        |options: &str| run(at, &format!("train --data data --num-trees 2 --model m {options}")).ok().stderr;
    assert!(said("").contains(note));
    for options in ["--preset lambdamart", "--objective squared", "--set loss=lambdarank", "--quiet"] {
        assert!(!said(options).contains(note), "{options}");
    }
    assert!(said("").contains("m: 2 trees, "));
    let one = run(at, "train --data data --num-trees 1 --model one").ok().stderr;
    assert!(one.contains("one: 1 tree, "), "{one}");
    run(at, "train --data data --preset ranknet-net --num-trees 1 --set hidden_layers=none --model net").ok();
    let both =
        run(at, "train --data data --start-model net --preset mart --num-trees 2 --model both").ok().stderr;
    assert!(both.contains("both: 2 trees, ") && both.contains(" weights, in "), "{both}");
    let ran = run(at, "--quiet train --data data --num-trees 3 --model json --json").ok();
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&printed["trees"], &printed["model"]), (&3.into(), &"json".into()));
}

#[test]
fn quality_gates_have_an_exit_code_of_their_own() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(54, 60, 12), "");
    for (model, trees) in [("weak", 1), ("strong", 60)] {
        train(at, &format!("--preset lambdamart --data data --model {model} --set num_trees={trees}"));
        run(at, &format!("--quiet predict --model {model} --data data -o {model}.parquet")).ok();
    }
    run(at, "evaluate strong.parquet --fail-below ndcg@10=0.1 --fail-below rmse=1000 --metrics ndcg@10,rmse")
        .ok();
    let failing = "evaluate weak.parquet strong.parquet --fail-below ndcg@10=1.5 --output metrics.parquet";
    let ran = run(at, failing);
    assert_refused(failing, &ran, 3, &["quality gate failed: weak.parquet: ndcg@10 is ", ", below 1.5"]);
    assert!(ran.stdout.contains("ndcg@10") && at.join("metrics.parquet").exists());
    let absent = "evaluate weak.parquet --fail-below auc=0.1";
    assert_refused(absent, &run(at, absent), 2, &["the metric is not computed", "add auc to --metrics"]);
    run(at, "compare weak.parquet strong.parquet --fail-if-worse").ok();
    let worse = "compare strong.parquet weak.parquet --fail-if-worse";
    assert_refused(worse, &run(at, worse), 3, &["quality gate failed: weak is worse than strong by ndcg@10"]);
    // A gate that could never fail is refused.
    for (name, score) in [("near.csv", 1), ("far.csv", 99)] {
        let row = |row: usize| format!("q{},d{row},{},{score}\n", row / 12, row % 3);
        let rows: String = (0..60 * 12).map(row).collect();
        fs::write(at.join(name), format!("query_id,doc_id,label,score\n{rows}")).unwrap();
    }
    for (options, alternative, code) in [
        ("strong.parquet weak.parquet", "greater", 2),
        ("strong.parquet weak.parquet", "less", 3),
        ("near.csv far.csv --metric rmse", "less", 2),
        ("near.csv far.csv --metric rmse", "greater", 3),
    ] {
        let command = format!("compare {options} --fail-if-worse --alternative {alternative} --output d.csv");
        let other = if alternative == "less" { "greater" } else { "less" };
        let refusal = format!("pass --alternative {other}, or two-sided");
        let text = if code == 2 { refusal.as_str() } else { "quality gate failed" };
        assert_refused(&command, &run(at, &command), code, &[text]);
        assert_eq!(at.join("d.csv").exists(), code == 3, "{command}");
        let _ = fs::remove_file(at.join("d.csv")); // there is none if the command was refused
    }
}

#[test]
fn scores_are_printed_and_trec_eval_names_are_known() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(55, 10, 6), "");
    train(at, "--preset mart --data data --model m --set num_trees=3");
    run(at, "predict --model m --data data --scores scores.txt --output p.parquet").ok();
    let printed = run(at, "predict --model m --data data --scores -").ok();
    assert_eq!(printed.stdout, fs::read_to_string(at.join("scores.txt")).unwrap());
    assert!(!at.join("-").exists());
    let text = as_letor(&graded(55, 10, 6));
    let unlabelled: String =
        text.lines().map(|line| format!("-1 {}\n", line.split_once(' ').unwrap().1)).collect();
    fs::write(at.join("unlabelled.txt"), unlabelled).unwrap();
    for (arguments, remedy) in [
        ("evaluate --scores scores.txt --data unlabelled.txt", "label the rows of --data"),
        ("compare scores.txt p.parquet", "pass TREC runs with --run FILE and --qrels FILE"),
    ] {
        assert_refused(arguments, &run(at, arguments), 1, &[remedy]);
    }
    let feature = run(at, "evaluate --feature f1");
    assert!(feature.stderr.contains("--data <DATASET>") && !feature.stderr.contains("  <[NAME=]FILE>..."));
    let metrics = "--metrics ndcg_cut_10,P_5,recall_10,map_cut_10,recip_rank,Rprec,success_1 --json";
    let ran = run(at, &format!("--quiet evaluate p.parquet {metrics}")).ok();
    let means = &serde_json::from_str::<Value>(&ran.stdout).unwrap()["systems"][0]["means"];
    for name in ["ndcg@10", "p@5", "recall@10", "map@10", "mrr", "rprec", "success@1"] {
        assert!(means[name].is_f64(), "{name}: {means}");
    }
    run(at, "evaluate p.parquet --metrics ndcg_cut.10,P.5,recall.10 --json").ok();
    for (metric, problem) in [
        ("bpref", "bpref is not available"),
        ("ndcg_cut.5,10", "name the metric for each depth, such as ndcg@5,ndcg@10"),
        ("gm_map", "gm_map of trec_eval is not available"),
        ("iprec_at_recall_0.10", "--write-run"),
        ("num_rel_ret", "num_rel_ret of trec_eval is not available"),
    ] {
        let refused = format!("evaluate p.parquet --metrics {metric}");
        assert_refused(&refused, &run(at, &refused), 2, &[problem]);
    }
}

#[test]
fn rows_without_labels_convert_and_are_scored() {
    let room = room();
    let at = room.path();
    let examples = graded(56, 10, 6);
    dataset(at, "labelled", &examples, "");
    train(at, "--preset mart --data labelled --model m --set num_trees=3");
    let text = as_letor(&examples);
    let bare: String = text.lines().map(|line| format!("{}\n", line.split_once(' ').unwrap().1)).collect();
    fs::write(at.join("bare.txt"), bare).unwrap();
    let csv = as_csv(&examples);
    let keeps: Vec<bool> = csv.lines().next().unwrap().split(',').map(|name| name != "label").collect();
    let bare: String = csv
        .lines()
        .map(|line| {
            let kept: Vec<&str> =
                line.split(',').zip(&keeps).filter(|(_, keep)| **keep).map(|(field, _)| field).collect();
            format!("{}\n", kept.join(","))
        })
        .collect();
    fs::write(at.join("bare.csv"), bare).unwrap();
    let expected = run(at, "--quiet predict --model m --data labelled --scores -").ok().stdout;
    for file in ["bare.txt", "bare.csv"] {
        let ran = run(at, &format!("convert {file} --output unlabelled --overwrite")).ok();
        assert!(
            ran.stderr.contains("note: no labels: the dataset can be scored, but not trained on"),
            "{}",
            ran.stderr
        );
        let found = run(at, "--quiet predict --model m --data unlabelled --scores -").ok().stdout;
        assert_eq!(found, expected, "{file}");
        let refused = "train --data unlabelled --model n";
        assert_refused(
            refused,
            &run(at, refused),
            1,
            &["no row has a label", "name the column of labels with --label-column"],
        );
    }
}

#[test]
fn shipped_pipelines_run_from_any_directory() {
    let room = room();
    let at = room.path();
    let listed = run(at, "run --list").ok().stdout;
    assert!(listed.lines().any(|line| line.starts_with("quickstart ")), "{listed}");
    let shown = run(at, "run --show quickstart").ok().stdout;
    assert!(shown.contains("[step.model]"));
    let ran = run(at, "run quickstart --set trees=3").ok();
    assert!(ran.stderr.contains("generating sample data in ./sample_data"), "{}", ran.stderr);
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample_data/train.txt");
    assert_eq!(fs::read(at.join("sample_data/train.txt")).unwrap(), fs::read(repository).unwrap());
    let described = run(at, "describe runs/quickstart").ok().stdout;
    assert!(described.contains("complete") && described.contains("model-lambdamart"), "{described}");
    let misspelt = "run quikstart";
    assert_refused(
        misspelt,
        &run(at, misspelt),
        2,
        &["unknown pipeline \"quikstart\"", "did you mean quickstart?"],
    );
}

#[test]
fn messages_are_json_on_request() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(57, 10, 6), "");
    let lines = |arguments: &str| -> Vec<Value> {
        let stderr = run(at, &format!("--log-format json {arguments}")).stderr;
        stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    };
    let trained = lines("train --data data --model m --num-trees 2");
    assert!(trained.iter().all(|line| line["level"] == "info" && line["time"].is_f64()), "{trained:?}");
    assert!(trained.last().unwrap()["message"].as_str().unwrap().starts_with("m: 2 trees"));
    let failed = lines("train --data absent --model m");
    let error = failed.last().unwrap();
    assert_eq!(error["level"], "error");
    assert_eq!(error["message"], "absent: no such file or directory; help: check the spelling of the path");
}

#[test]
fn tables_are_trained_on_directly() {
    let room = room();
    let at = room.path();
    let temporary = at.join("temporary");
    fs::create_dir(&temporary).unwrap();
    let variables = [("TMPDIR".to_owned(), temporary.display().to_string())];
    fs::write(at.join("data.csv"), as_csv(&graded(58, 30, 8))).unwrap();
    fs::write(at.join("vali.csv"), as_csv(&graded(59, 10, 8))).unwrap();
    for name in ["data", "vali"] {
        run(at, &format!("convert {name}.csv --output {name}")).ok();
    }
    run(at, "convert data.csv --output few --ignore-columns f1,f2,f3,f10,f11,f12,f13,f14").ok();
    let train = |options: &str| run_with(at, &format!("train --num-trees 5 {options}"), &variables);
    train("--data data --valid vali --model converted").ok();
    let ran = train("--data data.csv --valid vali.csv --model direct").ok();
    assert_same_bytes(at, "converted", "direct", "a table");
    assert!(ran.stderr.contains("data.csv: 240 rows, 30 queries, 14 features"), "{}", ran.stderr);
    train("--data few --model few-model").ok();
    for (model, options) in [
        ("patterns", "--data data.csv --ignore-columns f1?,f[123]"),
        ("features", "--data data --feature-columns f[4-9]"),
        ("names", "--data data.csv --feature-columns f4,f5,f6,f7,f8,f9"),
    ] {
        train(&format!("{options} --model {model}")).ok();
        assert_same_bytes(at, "few-model", model, options);
    }
    assert_eq!(names_in(&temporary), [""; 0], "temporary datasets are removed");
    for (options, problem) in [
        ("--data data.csv --ignore-columns g*", "no column matches \"g*\""),
        ("--data data.csv --query-column session", "there is no column \"session\""),
        ("--data data.csv --cluster df://127.0.0.1:9", "planetree convert data.csv"),
    ] {
        let command = format!("train --model m {options}");
        assert_refused(&command, &run(at, &command), 2, &[problem]);
    }
    let refused = "train --data converted --model m";
    assert_refused(refused, &run(at, refused), 1, &["converted: "]);
}

#[test]
fn validation_sets_have_the_labels_that_the_options_name() {
    let room = room();
    let at = room.path();
    // The grades are the labels in reverse.
    for (name, seed) in [("data", 62), ("vali", 63)] {
        let text = as_csv(&graded(seed, 30, 8));
        let (header, rows) = text.split_once('\n').unwrap();
        let label = header.split(',').position(|name| name == "label").unwrap();
        let with_grade = |row: &str| {
            let grade = 4.0 - row.split(',').nth(label).unwrap().parse::<f64>().unwrap();
            format!("{row},{grade}\n")
        };
        let rows: String = rows.lines().map(with_grade).collect();
        fs::write(at.join(format!("{name}.csv")), format!("{header},grade\n{rows}")).unwrap();
        run(at, &format!("convert {name}.csv --output {name}")).ok();
        run(
            at,
            &format!("convert {name}.csv --output {name}-grades --label-column grade --ignore-columns label"),
        )
        .ok();
    }
    let log = |name: &str, options: &str| -> (String, String) {
        let ran = run(at, &format!("train --num-trees 3 --model {name} --rounds {name}.csv {options}")).ok();
        let log = fs::read_to_string(at.join(format!("{name}.csv"))).unwrap();
        let without_seconds = |line: &str| line.split(',').take(4).collect::<Vec<_>>().join(",") + "\n";
        (log.lines().map(without_seconds).collect(), ran.stderr)
    };
    let (expected, _) = log("m", "--data data-grades --valid vali-grades");
    for (place, valid) in ["vali", "vali.csv"].into_iter().enumerate() {
        let options = format!("--data data --valid {valid} --label-column grade --ignore-columns label");
        assert_eq!(log(&format!("m{place}"), &options).0, expected, "{valid}");
        assert_same_bytes(at, "m", &format!("m{place}"), valid);
    }
    // A dataset that was converted with the option has no such column.
    let options = "--data data --valid vali-grades --label-column grade --ignore-columns label";
    let (found, stderr) = log("noted", options);
    assert_eq!(found, expected);
    assert!(stderr.contains("note: vali-grades has no column grade"), "{stderr}");
    // The same if it is converted, because rows are dropped.
    let options =
        "--data data --label-column grade --ignore-columns label --unlabelled drop --valid vali-grades";
    let (found, stderr) = log("dropped", options);
    assert_eq!(found, expected);
    assert!(stderr.contains("note: vali-grades has no column grade"), "{stderr}");
    // The names of its own columns need no note.
    let (_, stderr) = log("own", "--data data --label-column label --valid vali");
    assert!(!stderr.contains("has no column"), "{stderr}");
    // A validation set needs no weights and no columns to skip, but the training data do.
    let text = fs::read_to_string(at.join("data.csv")).unwrap();
    let with_weight = |line: &str| {
        let weight = line.split(',').nth(2).unwrap();
        format!("{line},{},{weight}\n", if weight == "weight" { "w" } else { weight })
    };
    let weighted: String = text.lines().map(with_weight).collect();
    fs::write(at.join("weighted.csv"), weighted.replacen(",weight\n", ",raw\n", 1)).unwrap();
    let options = "--label-column grade --weight-column w --ignore-columns label,weight,raw,r?w";
    assert_eq!(log("unweighted", &format!("--data weighted.csv --valid vali.csv {options}")).0, expected);
    // A dataset may have the weights, but not the grades, which are its labels.
    run(at, "convert weighted.csv --output vali-w --label-column grade --ignore-columns label,weight,raw")
        .ok();
    let (expected, _) = log("table", &format!("--data weighted.csv --valid weighted.csv {options}"));
    let (found, stderr) = log("dataset", &format!("--data weighted.csv --valid vali-w {options}"));
    assert_eq!(found, expected);
    assert!(stderr.contains("note: vali-w has no column grade"), "{stderr}");
    let refused = format!("train --model x --data data.csv {options}");
    assert_refused(&refused, &run(at, &refused), 2, &["there is no column \"w\""]);
}

#[test]
fn unjudged_documents_are_dropped_labelled_or_refused() {
    let room = room();
    let at = room.path();
    let rows = [("a", "1", 7), ("a", "-1", 2), ("b", "-1", 3), ("c", "0", 4), ("c", "-1", 5), ("c", "2", 6)];
    let text = |rows: &[(&str, &str, i32)]| -> String {
        let row = |(query, label, value): &(&str, &str, i32)| format!("{label} qid:{query} 1:{value} 2:1\n");
        rows.iter().map(row).collect()
    };
    let judged: Vec<_> = rows.iter().copied().filter(|(_, label, _)| *label != "-1").collect();
    let zeros = rows.map(|(query, label, value)| (query, if label == "-1" { "0" } else { label }, value));
    for (name, text) in [("all", text(&rows)), ("judged", text(&judged)), ("zeros", text(&zeros))] {
        fs::write(at.join(format!("{name}.txt")), text).unwrap();
        run(at, &format!("convert {name}.txt --output {name}")).ok();
    }
    for (choice, same) in [("drop", "judged"), ("zero", "zeros"), ("keep", "all")] {
        for options in ["", "--sort-queries"] {
            run(at, &format!("convert all.txt --unlabelled {choice} {options} --output out --overwrite"))
                .ok();
            assert_eq!(rows_of(&at.join("out")), rows_of(&at.join(same)), "{choice} {options}");
        }
        run(at, &format!("convert all --unlabelled {choice} --output out --overwrite")).ok();
        assert_eq!(rows_of(&at.join("out")), rows_of(&at.join(same)), "{choice}, from a dataset");
    }
    let refused = "convert all.txt --unlabelled error --output none";
    assert_refused(refused, &run(at, refused), 1, &["all.txt: query a: a row has no label", "drop or zero"]);
    assert!(!at.join("none").exists());
    run(at, "convert judged.txt --unlabelled error --output fine").ok();
    fs::write(at.join("none.txt"), "-1 qid:1 1:1\n").unwrap();
    let refused = "convert none.txt --unlabelled drop --output none";
    assert_refused(refused, &run(at, refused), 1, &["no row has a label"]);
    fs::write(at.join("all.txt.weight"), "1\n1\n1\n1\n1\n1\n").unwrap();
    let refused = "convert all.txt --unlabelled drop --output none";
    assert_refused(refused, &run(at, refused), 1, &["side files", "--unlabelled zero"]);
    let refused = "train --data all --model m";
    assert_refused(refused, &run(at, refused), 1, &["3 of 6 rows have no label", "--unlabelled drop"]);
    let refused = "train --data none.txt --model m";
    assert_refused(refused, &run(at, refused), 1, &["none.txt: no row has a label", "--label-column"]);
    run(at, "train --data all --unlabelled drop --model dropped --num-trees 2 --min-data-in-leaf 1").ok();
    run(at, "train --data judged --model same --num-trees 2 --min-data-in-leaf 1").ok();
    assert_same_bytes(at, "dropped", "same", "unlabelled rows");
}

#[test]
fn folders_of_a_partitioned_table_are_one_input() {
    let room = room();
    let at = room.path();
    let csv = as_csv(&graded(60, 12, 4));
    let (header, rows) = csv.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    for (folder, rows) in [("day=1/market=us", &rows[..16]), ("day=2/market=de", &rows[16..])] {
        let folder = at.join("clicks").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("part.csv"), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    }
    fs::write(at.join("clicks/_SUCCESS"), "").unwrap();
    fs::write(at.join("clicks.csv"), &csv).unwrap();
    let ran = run(at, "convert clicks --output partitioned").ok();
    assert!(
        ran.stderr.contains("note: folders by day, market: their values are not columns"),
        "{}",
        ran.stderr
    );
    run(at, "convert clicks.csv --output whole").ok();
    assert_eq!(rows_of(&at.join("partitioned")), rows_of(&at.join("whole")));
    let query = "SELECT day, market, count(*) AS n FROM 'clicks' GROUP BY day, market ORDER BY day";
    let output = command(at, "sql --format csv -c").arg(query).output().unwrap();
    assert_eq!(Ran::of(output).ok().stdout, "day,market,n\n1,us,16\n2,de,32\n");
    let count = "SELECT count(*) AS n FROM 'clicks' WHERE day = '2' AND f1 IS NOT NULL";
    let output = command(at, "sql --format csv -c").arg(count).output().unwrap();
    assert_eq!(Ran::of(output).ok().stdout, "n\n32\n");
}

#[test]
fn hidden_files_of_a_partitioned_table_are_not_read() {
    let room = room();
    let at = room.path().join("room");
    let rows = |query: &str| Ran::of(command(&at, "sql --format csv -c").arg(query).output().unwrap());
    for folder in ["t/day=1", "t/day=__HIVE_DEFAULT_PARTITION__", "t/day=a%20b", "t/day=1/_temporary"] {
        fs::create_dir_all(at.join(folder)).unwrap();
    }
    fs::write(at.join("t/day=1/z.csv"), "a,b\n1,2\n").unwrap();
    fs::write(at.join("t/day=__HIVE_DEFAULT_PARTITION__/z.csv"), "a,b\n3,4\n").unwrap();
    fs::write(at.join("t/day=a%20b/z.csv"), "a,b\n5,6\n").unwrap();
    let secret = room.path().join("secret.csv");
    fs::write(&secret, "a,b\n42,42\n").unwrap();
    for hidden in [".hidden.csv", "_z.csv", "_temporary/z.csv"] {
        std::os::unix::fs::symlink(&secret, at.join("t/day=1").join(hidden)).unwrap();
    }
    fs::write(at.join("t/day=1/.z.csv.crc"), "crc\0\0\0").unwrap();
    let expected = "a,b,day\n1,2,1\n3,4,\n5,6,a b\n";
    assert_eq!(rows("SELECT * FROM 't' ORDER BY a").ok().stdout, expected);
    assert_eq!(rows("SELECT * FROM t ORDER BY a").ok().stdout, expected);
    assert_eq!(rows("SELECT a FROM t WHERE day IS NULL").ok().stdout, "a\n3\n");
    assert_eq!(rows("SELECT a FROM t WHERE day = '1'").ok().stdout, "a\n1\n");
    // A visible file outside is refused, and the error is not hidden.
    std::os::unix::fs::symlink(&secret, at.join("t/day=1/y.csv")).unwrap();
    let refused = rows("SELECT * FROM t");
    assert!(refused.code != 0 && refused.stderr.contains("y.csv"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("no such table"), "{}", refused.stderr);
    fs::remove_file(at.join("t/day=1/y.csv")).unwrap();
    // Files are read by position, so their columns must be the same.
    fs::copy(at.join("t/day=1/z.csv"), at.join("z.csv")).unwrap();
    for (header, row) in [("b,a", "1,2"), ("a,c", "1,2"), ("a", "1")] {
        fs::write(at.join("t/day=1/y.csv"), format!("{header}\n{row}\n")).unwrap();
        fs::copy(at.join("t/day=1/y.csv"), at.join("y.csv")).unwrap();
        for table in ["t", "t/day=1", "?.csv"] {
            let refused = rows(&format!("SELECT * FROM '{table}'"));
            assert!(refused.code == 1 && refused.stderr.contains("the columns are"), "{}", refused.stderr);
        }
    }
    fs::write(at.join("t/day=1/y.csv"), "a,day\n").unwrap();
    fs::remove_file(at.join("t/day=1/z.csv")).unwrap();
    fs::remove_dir_all(at.join("t/day=__HIVE_DEFAULT_PARTITION__")).unwrap();
    fs::remove_dir_all(at.join("t/day=a%20b")).unwrap();
    let refused = rows("SELECT * FROM t");
    assert!(refused.stderr.contains("day is both a column of the files and a key"), "{}", refused.stderr);
}

#[test]
fn a_failed_gate_is_the_exit_code_of_a_pipeline() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(61, 60, 12), "");
    let pipeline = r#"
        [parameters]
        trees = [60, 1]
        [step.model]
        for_each = { trees = "{trees}" }
        kind = "train"
        preset = "lambdamart"
        data = "data"
        set = { num_trees = "{trees}" }
        [step.scores]
        for_each = { trees = "{trees}" }
        kind = "predict"
        model = "model-{trees}"
        data = "data"
        [step.report]
        kind = "report"
        [step.gate]
        kind = "compare"
        files = { champion = "scores-60", challenger = "scores-1" }
        fail_if_worse = true
        after = "report"
    "#;
    fs::write(at.join("p.toml"), pipeline).unwrap();
    let ran = run(at, "run p.toml");
    assert_refused(
        "run p.toml",
        &ran,
        3,
        &["step gate: quality gate failed: challenger is worse than champion"],
    );
    assert!(at.join("runs/p/report.html").exists());
    // The comparison is printed and written nevertheless, and replaced by the next run.
    for _ in 0..2 {
        let written = fs::read_to_string(at.join("runs/p/gate.txt")).unwrap();
        assert!(written.contains("ndcg@10") && ran.stdout.ends_with(&written), "{}", ran.stdout);
        let again = run(at, "run p.toml");
        assert!(again.code == 3 && again.stdout.ends_with(&written), "{}", again.stderr);
    }
    let better = pipeline
        .replace("\"scores-60\", challenger = \"scores-1\"", "\"scores-1\", challenger = \"scores-60\"");
    fs::write(at.join("p.toml"), better).unwrap();
    run(at, "run p.toml").ok();
}

#[test]
fn logs_say_what_is_done() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), as_letor(&graded(62, 10, 6))).unwrap();
    let quiet = run(at, "--log info --quiet convert data.txt --output quiet").ok();
    assert_eq!(quiet.stderr, "");
    let converted = run(at, "--log debug convert data.txt --output data").ok().stderr;
    for text in ["info: reading data.txt: letor", "debug: writing a row group: 60 rows, 10 queries"] {
        assert!(converted.contains(text), "{converted}");
    }
    let trained = run(at, "--log debug train --data data --model m --num-trees 3").ok().stderr;
    for text in ["info: training data: data", "debug: round 3 of 3: "] {
        assert!(trained.contains(text), "{trained}");
    }
    let predicted = run(at, "--log info predict --model m --data data --output p.parquet").ok().stderr;
    for text in ["info: model: m, 3 trees", "info: data: data, 60 rows"] {
        assert!(predicted.contains(text), "{predicted}");
    }
    let evaluated = run(at, "--log info evaluate p.parquet").ok().stderr;
    assert!(evaluated.contains("info: evaluating p.parquet: p.parquet"), "{evaluated}");
    for (arguments, text) in [
        ("compare a=p.parquet b=p.parquet --output d.parquet", "info: comparing 2 systems by ndcg@10"),
        ("compare a=p.parquet b=p.parquet --output d.parquet", "info: wrote d.parquet"),
        ("describe m", "info: reading m: a model"),
        ("describe data", "info: reading data: a dataset"),
        ("export m --format lightgbm --output m.txt", "info: wrote m.txt, "),
        ("verify-export m m.txt --format lightgbm", "info: export: m.txt, "),
        ("blend m=m n=m --output b", "info: wrote b"),
        ("impute --data data --output filled", "info: data: data, 60 rows, 10 queries"),
    ] {
        let logged = run(at, &format!("--log info {arguments}")).ok().stderr;
        assert!(logged.contains(text), "{arguments}: {logged}");
    }
}

#[test]
fn messages_name_what_is_allowed() {
    let room = room();
    let at = room.path();
    for (arguments, problem) in [
        ("train --data d --model m --threads 0", "must be at least 1"),
        ("run p.toml --jobs none", "expected a whole number"),
        ("compare a b --metric map,ndcg@10", "run it once for each, such as --metric map"),
        ("compare a b --bootstrap 0", "must be at least 1"),
        ("convert a --output b --partition-rows 0", "must be at least 1"),
    ] {
        assert_refused(arguments, &run(at, arguments), 2, &[problem]);
    }
    // Every step in the help of `run` exists, and its example names a step of the pipeline.
    let help = run(at, "run --help").ok().stdout;
    assert!(help.contains("--force 'model-*'"), "{help}");
    run(at, "run quickstart --dry-run --force model-*").ok();
    fs::write(at.join("a.csv"), "qid,label,colour\nq,1,red\nq,0,blue\n").unwrap();
    fs::write(at.join("b.csv"), "qid,label,colour\nq,1,blue\nq,0,green\n").unwrap();
    let first = run(at, "convert a.csv --output a").ok().stderr;
    assert!(first.contains("in order of appearance"), "{first}");
    let second = run(at, "convert b.csv --categories-from a --output b").ok().stderr;
    assert!(second.contains("colour coded as in the dataset of --categories-from"), "{second}");
    assert!(!second.contains("in order of appearance"), "{second}");
}

#[test]
fn errors_of_pipelines_name_the_line() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), as_letor(&graded(63, 5, 5))).unwrap();
    let before =
        "[step.a]\nkind = \"convert\"\ninput = \"data.txt\"\n\n[step.b]\nkind = \"train\"\ndata = \"a\"\n";
    for (text, place) in [
        ("set = { num_trees = 3, num_treez = 3 }\n", "8:24: step b: unknown parameter \"num_treez\""),
        ("[step.b.set]\nlearning_rate = 0.1\nnum_trees = \"many\"\n", "10:1: step b: --set num_trees=many"),
        ("preset = \"lambdamrt\"\n", "8:1: step b: unknown preset \"lambdamrt\""),
        (
            "[step.c]\nkind = \"evaluate\"\npredictions = \"p.csv\"\nmetrics = [\"ndgc@10\"]\n",
            "11:1: step c: unknown metric",
        ),
        (
            "[step.c]\nkind = \"evaluate\"\npredictions = \"p.csv\"\nconvention = \"letor\"\n",
            "11:1: step c: unknown convention",
        ),
    ] {
        fs::write(at.join("p.toml"), format!("{before}{text}")).unwrap();
        assert_refused(text, &run(at, "run p.toml --dry-run"), 2, &[&format!("p.toml:{place}")]);
    }
}

#[test]
fn commands_of_the_shell_are_named_in_pipes() {
    let room = room();
    for (text, line, otherwise) in [
        (".mode csv\nSELECT 1;\n", ".mode csv", "--format csv"),
        ("SELECT 1;\nexit\n", "exit", "remove it: files and pipes end by themselves"),
        ("SELECT 1;\n.timer on\n", ".timer on", "--timing"),
        ("SELECT 1\n.mode csv\nSELECT 2;\n", ".mode csv", "--format csv"),
    ] {
        let ran = run_stdin(room.path(), "sql", text.as_bytes());
        assert_refused(
            text,
            &ran,
            1,
            &[&format!("{line} is a command of the interactive shell; "), otherwise],
        );
    }
    // The error is elsewhere.
    for text in ["SELECT *\nFROM\nhelp\nWHERE WHERE 1;\n", "SELEC 1;\nquit\n"] {
        let ran = run_stdin(room.path(), "sql", text.as_bytes());
        assert_refused(text, &ran, 1, &["syntax error", "help: correct the query"]);
    }
}
