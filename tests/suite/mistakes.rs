//! Typical mistakes are answered with the form that was meant.

use crate::support::reports::{chart, data_of, json_output, report, sample_run};
use crate::support::*;
use serde_json::{Value, json};
use std::fs;

#[test]
fn the_command_line_names_the_form_that_was_meant() {
    let room = room();
    let at = room.path();
    fs::write(at.join("j.csv"), "qid,label,a\n1,1,2\n1,0,3\n").unwrap();
    for (arguments, tip) in [
        ("train j.csv --model m", "'--data j.csv'"),
        ("compare a.parquet b.parquet --latex", "'--format latex'"),
        ("cv --data d --output cv --lambdamart", "'--preset lambdamart'"),
        ("run quickstart --trees 30", "'--set trees=30'"),
        ("train --data d --model m -tree 100", "set num_trees"),
        ("train --data d --model m --label relevance", "--label-column"),
        ("evaluate p.parquet --metrics ndcg@10 ndcg@5", "--metrics ndcg@10,ndcg@5"),
        ("evaluate p.parquet --convention trec_eval", "did you mean trec?"),
        ("train --data j.csv --model m --memory-limit 10", "--memory-limit 10 B is too small"),
        ("compare --scores a b", "planetree evaluate --scores FILE --data DATASET"),
        ("compare --labels d a b", "planetree evaluate FILE --labels DATASET"),
        (
            "train --data j.csv --model m --set objective=rank:map",
            "objective=lambdarank and lambda_metric=map",
        ),
        ("train --data j.csv --model m --set leaf=10", "RankLib's number of leaves is num_leaves"),
        ("train --data j.csv --model m --num-trees", "--set num_trees: no value given"),
        ("cv --data j.csv --folds -2 --output c", "'-2' for '--folds <K>': expected a whole number"),
        ("evaluate p.parquet --seed -1", "expected a whole number, 0 or greater"),
        ("describe m --tree -1", "expected a whole number, 0 or greater"),
        ("sample --shape letor --rows 0 --output s", "expected a whole number of at least 5"),
        ("compare a b --level 0", "expected a number between 0 and 1, such as 0.95"),
        ("evaluate --data j.csv --model m", "planetree predict --model FILE --data DATASET"),
    ] {
        assert_refused(arguments, &run(at, arguments), 2, &[tip]);
    }
    // With --log-format json, the errors of the command line are JSON, too.
    let ran = run(at, "--log-format json run quickstart --trees 30");
    let line: Value = serde_json::from_str(ran.stderr.trim_end()).unwrap();
    assert_eq!((ran.code, &line["level"]), (2, &json!("error")));
    assert!(line["message"].as_str().unwrap().contains("unexpected argument '--trees' found; help: "));
}

#[test]
fn files_that_are_not_predictions_are_recognised() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(71, 36, 8), "");
    run(at, "cv --data data --folds 3 --num-trees 2 --output cv").ok();
    fs::write(at.join("a.run"), "1 Q0 d1 1 0.5 bm25\n").unwrap();
    fs::write(at.join("qrels"), "1 0 d1 1\n").unwrap();
    fs::write(at.join("letor"), "1 qid:1 1:0.5\n").unwrap();
    run(at, "train --data data --num-trees 2 --model lm.parquet").ok();
    run(at, "export lm.parquet --format lightgbm --output lightgbm.txt").ok();
    fs::write(at.join("j.csv"), "qid,label,a\n1,1,2\n1,0,3\n").unwrap();
    fs::write(at.join("search.toml"), "[search]\nmax_depth = [1, 2]\n").unwrap();
    run(at, "cv --data data --folds 3 --num-trees 2 --search search.toml --output search").ok();
    assert!(run(at, "describe search").ok().stdout.contains("best trial"));
    for (arguments, remedy) in [
        ("evaluate a.run --qrels qrels", "pass it with --run a.run and --qrels FILE"),
        ("compare a.run a.run --qrels qrels", "pass it with --run a.run"),
        ("evaluate qrels", "pass them with --qrels qrels"),
        ("evaluate cv", "name the table in it: cv/predictions.parquet"),
        ("describe qrels", "planetree evaluate --run FILE --qrels qrels"),
        ("describe a.run", "planetree evaluate --run a.run --qrels FILE"),
        ("describe lightgbm.txt", "planetree import lightgbm.txt --output MODEL"),
        ("describe letor", "planetree convert letor --output DATASET"),
        ("describe letor", "SUMMARIZE SELECT * FROM read_csv('letor')"),
        ("describe j.csv", "SUMMARIZE 'j.csv'"),
        ("train --data cv/predictions.parquet --model m", "pass the dataset that was scored"),
        (
            "convert j.csv --output cv/predictions.parquet",
            "refusing to overwrite: this is predictions, not a dataset",
        ),
        ("describe .", "not a dataset, run or cross-validation"),
    ] {
        assert_refused(arguments, &run(at, arguments), 1, &[remedy]);
    }
    run(at, "--quiet evaluate cv/predictions.parquet --metric ndcg@5,map").ok();
    let scored = "evaluate lm.parquet --data data";
    let remedy = "planetree predict --model lm.parquet --data data --output PREDICTIONS";
    assert_refused(scored, &run(at, scored), 2, &["lm.parquet is a model", remedy]);
}

#[test]
fn a_query_in_place_of_a_run_directory_is_recognised() {
    let room = room();
    for query in ["SELECT 1", "from 'a.csv'"] {
        let ran = Ran::of(command(room.path(), "sql").arg(query).output().unwrap());
        assert_refused(query, &ran, 2, &["found a query", &format!("planetree sql -c \"{query}\"")]);
    }
    let ran = Ran::of(command(room.path(), "sql").args(["select", "-c", "SELECT 1"]).output().unwrap());
    assert!(ran.code == 1 && !ran.stderr.contains("found a query"), "{}", ran.stderr);
}

#[test]
fn judgments_of_other_queries_or_documents_are_errors() {
    let room = room();
    let at = room.path();
    fs::write(at.join("a.run"), "1 Q0 d1 1 2 t\n1 Q0 d2 2 1 t\n2 Q0 d1 1 1 t\n").unwrap();
    fs::write(at.join("queries"), "q1 0 d1 1\n").unwrap();
    fs::write(at.join("documents"), "1 0 D-1 1\n").unwrap();
    fs::write(at.join("others"), "1 0 d1 1\n7 0 d1 1\n8 0 d1 0\n").unwrap();
    for command in ["evaluate --run a.run", "compare --run a=a.run --run b=a.run"] {
        let refused = |qrels: &str, problem: &str, remedy: &str| {
            let arguments = format!("{command} --qrels {qrels}");
            assert_refused(&arguments, &run(at, &arguments), 1, &[problem, remedy]);
        };
        refused(
            "queries",
            "no query has judgments: the ranking has 2 queries, such as \"1\", and queries judges 1 query, such as \"q1\"",
            "the same query ids",
        );
        refused(
            "documents",
            "no ranked document has a judgment: of the queries in both files, the ranking has 2 documents, such as \"d1\", \
             and documents judges 1, such as \"D-1\"",
            "the same document ids",
        );
        let ran = run(at, &format!("{command} --qrels others")).ok();
        assert!(ran.stderr.contains("only 1 of 3 judged queries have ranked documents"), "{}", ran.stderr);
    }
    let kept = "evaluate --run a.run --qrels documents --write-run b.run";
    assert_refused(kept, &run(at, kept), 1, &["no ranked document"]);
    assert!(!at.join("b.run").exists());
}

#[test]
fn tables_that_are_something_else_are_recognised() {
    let room = room();
    let at = room.path();
    fs::write(at.join("letor.txt"), as_letor(&graded(75, 3, 5))).unwrap();
    fs::write(at.join("numbers.tsv"), "1\t1\t0.5\t1\n0\t1\t0.2\t3\n").unwrap();
    for (arguments, code, texts) in [
        ("convert letor.txt --format csv --output d", 2, ["no query column found", "looks like LETOR text"]),
        (
            "convert numbers.tsv --output d",
            1,
            ["\"1\" is used twice", "no header: convert it with --no-header"],
        ),
    ] {
        let ran = run(at, arguments);
        assert_refused(arguments, &ran, code, &texts);
        assert!(ran.stderr.len() < 400, "{}", ran.stderr);
    }
    run(at, "convert numbers.tsv --no-header --query-column 1 --label-column 0 --output d").ok();
    fs::write(at.join("y.csv"), "qid,y,a\n1,1,2\n1,0,3\n").unwrap();
    let noted =
        |arguments: &str| run(at, arguments).ok().stderr.contains("the column y is read as the label");
    assert!(noted("convert y.csv --output y"));
    assert!(!noted("convert y.csv --label-column y --output z"));
}

#[test]
fn columns_that_are_found_by_name_are_noted() {
    let room = room();
    let at = room.path();
    let rows: String = (0..40)
        .map(|row| format!("q{},{},{},{},{}\n", row / 8, row % 3, row % 2 + 1, row % 8, row % 5))
        .collect();
    fs::write(at.join("w.csv"), format!("qid,label,weight,position,a\n{rows}")).unwrap();
    let weights = "column weight is used as row weights; pass --ignore-columns weight";
    let positions =
        "column position is used as positions at which documents were shown; pass --ignore-columns position";
    let described = |dataset: &str| -> (Vec<String>, Value) {
        let text = run(at, &format!("describe {dataset}")).ok().stdout;
        let lines =
            text.lines().filter(|line| line.starts_with("weights ") || line.starts_with("positions "));
        let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        (lines, json_output(at, &format!("describe {dataset} --json")))
    };
    for command in
        ["convert w.csv --output w", "train --data w.csv --model m --num-trees 2 --min-data-in-leaf 1"]
    {
        let stderr = run(at, command).ok().stderr;
        assert!(stderr.contains(weights) && stderr.contains(positions), "{command}: {stderr}");
    }
    let (lines, json) = described("w");
    assert_eq!(lines, ["weights yes", "positions yes"]);
    assert_eq!((&json["weights"], &json["positions"]), (&json!(true), &json!(true)));
    let named = "--weight-column weight --position-column position";
    let noted = |command: &str| run(at, command).ok().stderr.contains(" is used as ");
    assert!(!noted(&format!("convert w.csv {named} --output named")));
    assert!(!noted("train --data w --feature-columns weight,a --model m --num-trees 2 --min-data-in-leaf 1"));
    // A column that is listed is a feature, whatever its name.
    let listed = "--feature-columns weight,position,a";
    let stderr = run(at, &format!("convert w.csv {listed} --output listed")).ok().stderr;
    assert!(stderr.contains("column weight is the feature feature_weight"), "{stderr}");
    let (lines, json) = described("listed");
    assert_eq!(lines, ["weights no", "positions no"]);
    let features: Vec<&Value> =
        json["features"].as_array().unwrap().iter().map(|feature| &feature["name"]).collect();
    assert_eq!(features, ["feature_weight", "feature_position", "a"]);
    run(
        at,
        &format!("train --data w.csv --valid w.csv {listed} --model n --num-trees 2 --min-data-in-leaf 1"),
    )
    .ok();
    run(at, &format!("predict --model n --data w.csv {listed} --output p.parquet")).ok();
}

#[test]
fn a_second_column_of_labels_is_warned_of() {
    let room = room();
    let at = room.path();
    let rows: String =
        (0..40).map(|row| format!("q{},{},{},{}\n", row / 8, row % 3, row % 3, row % 5)).collect();
    fs::write(at.join("two.csv"), format!("qid,grade,relevance,a\n{rows}")).unwrap();
    let warning = "warning: two.csv: column relevance is the label, but grade, by its name, may be one, too";
    for command in
        ["convert two.csv --output two", "train --data two.csv --model m --num-trees 2 --min-data-in-leaf 1"]
    {
        let stderr = run(at, command).ok().stderr;
        assert!(stderr.contains(warning) && stderr.contains("--label-column"), "{command}: {stderr}");
    }
    for options in ["--label-column relevance", "--label-column grade", "--ignore-columns grade"] {
        let stderr = run(at, &format!("convert two.csv {options} --output chosen --overwrite")).ok().stderr;
        assert!(!stderr.contains("warning"), "{options}: {stderr}");
    }
}

#[test]
fn an_index_without_a_name_is_skipped() {
    let room = room();
    let at = room.path();
    fs::write(at.join("index.csv"), ",qid,label,a\n0,q,1,5\n1,q,0,6\n2,r,1,5\n").unwrap();
    let stderr = run(at, "convert index.csv --output index").ok().stderr;
    assert!(stderr.contains("note: skipping the first column, which has no name"), "{stderr}");
    fs::write(at.join("plain.csv"), "qid,label,a\nq,1,5\nq,0,6\nr,1,5\n").unwrap();
    run(at, "convert plain.csv --output plain").ok();
    assert_eq!(rows_of(&at.join("index")), rows_of(&at.join("plain")));
    for text in
        [",qid,label,a\n0,q,1,5\n2,q,0,6\n", ",qid,label,a,\n0,q,1,5,1\n1,q,0,6,1\n", "qid,,label\nq,0,1\n"]
    {
        fs::write(at.join("index.csv"), text).unwrap();
        let refused = "convert index.csv --output none";
        assert_refused(refused, &run(at, refused), 1, &["has no name", "--ignore-columns \"\""]);
    }
}

#[test]
fn texts_that_differ_in_most_rows_are_noted() {
    let room = room();
    let at = room.path();
    let rows: String = (0..40)
        .map(|row| format!("q{},{},title {},{}\n", row / 8, row % 3, row % 30, ["red", "blue"][row % 2]))
        .collect();
    fs::write(at.join("t.csv"), format!("qid,label,title,colour\n{rows}")).unwrap();
    let note = "note: title: more than half of the rows have different values";
    for command in
        ["convert t.csv --output t", "train --data t.csv --model m --num-trees 2 --min-data-in-leaf 1"]
    {
        let stderr = run(at, command).ok().stderr;
        assert!(stderr.contains(note) && stderr.contains("--ignore-columns title\n"), "{command}: {stderr}");
    }
    let stderr = run(at, "convert t.csv --ignore-columns title --output u").ok().stderr;
    assert!(!stderr.contains("different values"), "{stderr}");
}

#[test]
fn memory_limits_have_the_units_of_kubernetes() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(76, 10, 6), "");
    run(at, "train --data data --model m --num-trees 2 --memory-limit 2Gi").ok();
    // Smaller partitions would not help a dataset that is small already.
    let refused = "train --data data --model m --num-trees 2 --memory-limit 10Mi";
    let ran = run(at, refused);
    assert_refused(
        refused,
        &ran,
        2,
        &["--memory-limit 10.0 MiB is too small", "help: raise --memory-limit\n"],
    );
}

#[test]
fn the_parts_of_a_letor_dataset_are_found_in_its_folder() {
    let room = room();
    let at = room.path();
    fs::create_dir(at.join("four")).unwrap();
    for part in 1..=4 {
        let text = as_letor(&graded(80 + part, 20, 10)).replace("qid:", &format!("qid:{part}-"));
        fs::write(at.join(format!("four/S{part}.txt")), text).unwrap();
    }
    let ran = run(at, "run letor_cv --set data=four --set trees=2").ok();
    assert!(ran.stdout.contains("ndcg@10"), "{}", ran.stdout);
}

#[test]
fn built_in_pipelines_are_found_by_their_paths() {
    let room = room();
    let at = room.path();
    for path in ["pipelines/quickstart.toml", "quickstart.toml"] {
        let arguments = format!("run {path}");
        assert_refused(&arguments, &run(at, &arguments), 1, &["no such file", "planetree run quickstart"]);
    }
    let ran = run(at, "run pipelines/mine.toml");
    assert!(ran.code == 1 && !ran.stderr.contains("planetree run mine"), "{}", ran.stderr);
    let listed = run(at, "run --list").ok().stdout;
    let place = |name: &str| listed.lines().position(|line| line.starts_with(name)).unwrap();
    assert!(place("quickstart") < place("results of papers") && place("results") < place("thesis_cost"));
}

#[test]
fn warnings_of_steps_keep_their_level() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(72, 12, 6), "");
    let step =
        "[step.m]\nkind = \"train\"\ndata = \"data\"\nvalid = { same = \"data\" }\nset = { num_trees = 2 }\n";
    fs::write(at.join("p.toml"), step).unwrap();
    let ran = run(at, "--log-format json run p.toml").ok();
    let lines: Vec<Value> = ran
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let warning =
        lines.iter().find(|line| line["level"] == "warning").expect("validation data are training data");
    assert!(warning["message"].as_str().unwrap().starts_with("m | same: "), "{warning}");
}

#[test]
fn tables_for_papers_have_a_column_for_each_metric() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(73, 60, 12), "");
    for (model, trees) in [("weak", 1), ("strong", 60)] {
        train(at, &format!("--preset lambdamart --data data --model {model} --set num_trees={trees}"));
        run(at, &format!("--quiet predict --model {model} --data data -o {model}.parquet")).ok();
    }
    let table = |metric: &str, format: &str| {
        let command = format!("compare weak.parquet strong.parquet --metric {metric} --format {format}");
        run(at, &command).ok().stdout
    };
    let cells = |text: &str, system: &str, column: usize| -> String {
        let line = text.lines().find(|line| line.contains(&format!("| {system} |"))).unwrap();
        line.split('|').nth(column).unwrap().trim().to_owned()
    };
    let both = table("ndcg@10,err", "markdown");
    assert!(both.starts_with("| | system | ndcg@10 | err |\n| --- | --- | --- | --- |\n"), "{both}");
    for (column, metric) in [(3, "ndcg@10"), (4, "err")] {
        let one = table(metric, "markdown");
        for system in ["weak", "strong"] {
            assert_eq!(cells(&both, system, column), cells(&one, system, 3), "{metric} of {system}");
        }
    }
    assert!(cells(&both, "strong", 3).contains("**") && cells(&both, "strong", 3).contains("<sup>1</sup>"));
    let latex = table("ndcg@10,err", "latex");
    assert!(latex.contains("\\begin{tabular}{rlll}\n\\toprule\n & system & ndcg@10 & err \\\\"), "{latex}");
    let several = "compare weak.parquet strong.parquet --metrics ndcg@10,err";
    assert_refused(several, &run(at, several), 2, &["--format markdown or latex"]);
    let twice = "compare weak.parquet strong.parquet --metrics ndcg@10,err,ndcg@10 --format latex";
    assert_refused(twice, &run(at, twice), 2, &["metric ndcg@10 is given twice"]);
    let output = format!("{several} --format latex --output d.parquet");
    assert_refused(&output, &run(at, &output), 2, &["--output has the differences by one metric"]);
    let redirected = "compare weak.parquet strong.parquet --format latex --output table.tex";
    assert_refused(
        redirected,
        &run(at, redirected),
        2,
        &["cannot write differences as .tex", "add > table.tex"],
    );
    let gate = "compare strong.parquet weak.parquet --metric ndcg@10,err --format latex --fail-if-worse";
    assert_refused(gate, &run(at, gate), 3, &["weak is worse than strong by ndcg@10"]);
}

#[test]
fn reports_map_labels_as_the_evaluations_of_the_run() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let files = "run/lambda-scores.parquet run/mart-scores.parquet";
    let map = "--label-map 0,1=0;2=1";
    let evaluate =
        format!("evaluate {files} --metrics ndcg@10,map {map} --output run/quality.parquet --json");
    let evaluated = json_output(room, &evaluate);
    let agrees = |page: &str| {
        assert!(page.contains("by the convention planetree with the label map 0,1=0;2=1"));
        let data = data_of(page);
        let lines = chart(&data, "ndcg@10 on test by number of trees")["series"].as_array().unwrap();
        for (place, name) in ["lambda-scores", "mart-scores"].into_iter().enumerate() {
            let mean = evaluated["systems"][place]["means"]["ndcg@10"].as_f64().unwrap();
            assert!(page.contains(&format!("<div class=\"value\">{mean:.4}")), "{mean}");
            let line = lines.iter().find(|line| line["name"] == name).unwrap();
            let last = line["points"].as_array().unwrap().last().unwrap()[1].as_f64().unwrap();
            assert!((last - mean).abs() < 1e-4, "{name}: {last} is not {mean}");
        }
    };
    agrees(&report(room, "run"));
    // Without such a table, the option decides.
    fs::remove_file(room.join("run/quality.parquet")).unwrap();
    assert!(!report(room, "run").contains("label map"));
    agrees(&report(room, &format!("run {map}")));
}

#[test]
fn show_tables_lists_the_tables_of_the_user() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), as_letor(&graded(74, 5, 5))).unwrap();
    run(at, "convert data.txt --output run/data").ok();
    let queries = ["-c", "CREATE VIEW v AS SELECT 1 AS a; SHOW TABLES"];
    let output = command(at, "sql run --format csv").args(queries).output().unwrap();
    assert_eq!(Ran::of(output).ok().stdout, "table_name,table_type\ndata,BASE TABLE\nv,VIEW\n");
}

#[test]
fn a_display_table_of_other_queries_is_noted() {
    let room = room();
    let room = room.path();
    sample_run(room);
    fs::write(room.join("queries.csv"), "qid,text\nQ140,cats\n").unwrap();
    let ran = run(room, "report run --output r.html --display queries.csv").ok();
    assert!(ran.stderr.contains("note: queries.csv has none of the queries"), "{}", ran.stderr);
    fs::write(room.join("queries.csv"), "qid,text\n140,about cats\n").unwrap();
    let ran = run(room, "report run --output r.html --display queries.csv").ok();
    assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
    assert!(fs::read_to_string(room.join("r.html")).unwrap().contains("about cats"));
}
