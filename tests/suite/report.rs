//! Reports: the numbers agree with the other commands, text from data is escaped, and the page works in a browser.

use crate::support::object_stores::{environment, moto, with_client};
use crate::support::reports::{assert_close, chart, data_of, json_output, report, sample_run};
use crate::support::*;
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use planetree::storage::{Access, Location};
use planetree::table::{TableKind, TableWriter};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

#[test]
fn numbers_agree_with_the_other_commands() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let page = report(room, "run");
    let data = data_of(&page);

    let depths: Vec<String> = (1..=20).map(|depth| format!("ndcg@{depth}")).collect();
    let metrics = depths.join(",");
    let evaluated = json_output(
        room,
        &format!(
            "evaluate --predictions lambda=run/lambda-scores.parquet --predictions mart=run/mart-scores.parquet --metrics {metrics} --json"
        ),
    );
    let curves = chart(&data, "NDCG@k");
    for (index, system) in evaluated["systems"].as_array().unwrap().iter().enumerate() {
        for depth in 0..20 {
            let point = &curves["series"][index]["points"][depth];
            assert_eq!(point[0].as_f64(), Some(depth as f64 + 1.0));
            assert_close(&point[1], &system["metrics"][depth]["mean"]);
        }
    }

    let compared =
        json_output(room, "compare run/lambda-scores.parquet run/mart-scores.parquet --top 6 --json");
    let pair = &compared["pairs"][0];
    let row = &chart(&data, "Difference of the mean")["rows"][0];
    assert_close(&row["middle"], &pair["difference"]);
    assert_close(&row["low"], &pair["interval"]["low"]);
    assert_close(&row["high"], &pair["interval"]["high"]);
    let details: Vec<&str> =
        row["tells"].as_array().unwrap().iter().map(|tell| tell[1].as_str().unwrap()).collect();
    assert_eq!(details[3], format!("{:.4}", pair["p_holm"].as_f64().unwrap()));
    let wins = &chart(&data, "Queries that got better")["rows"][0]["counts"];
    assert_eq!(*wins, json!([pair["wins"], pair["ties"], pair["losses"]]));
    for query in pair["improved"].as_array().unwrap() {
        let query = query["query_id"].as_str().unwrap();
        assert!(page.contains(&format!("<span class=\"id\">{query}</span>")), "{query}");
    }

    let described = json_output(room, "describe run/lambda.parquet --json");
    let bars = chart(&data, "Gain of lambda");
    for (bar, feature) in
        bars["rows"].as_array().unwrap().iter().zip(described["importance"].as_array().unwrap())
    {
        assert_eq!(bar["name"], feature["feature"]);
        assert_close(&bar["value"], &feature["gain"]);
    }
    let forest = &data["forests"][0];
    let tree = json_output(room, "describe run/lambda.parquet --tree 3 --json");
    let shown = &forest["trees"][3];
    assert_eq!((&forest["all"], &shown["number"]), (&described["trees"], &json!(3)));
    for (node, real) in tree["nodes"].as_array().unwrap().iter().enumerate() {
        match real["feature"].as_str() {
            None => assert_eq!(shown["feature"][node], json!(-1)),
            Some(feature) => {
                let number = shown["feature"][node].as_u64().unwrap() as usize;
                assert_eq!(forest["features"][number], feature);
                assert_close(&shown["gain"][node], &real["gain"]);
                assert_eq!(shown["left"][node], real["left"]);
            }
        }
        assert_close(&shown["value"][node], &real["value"]);
    }

    let rounds = json_output(room, "describe run/lambda-rounds.parquet --json");
    let valid = rounds["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["split"] == "valid" && metric["metric"] == "ndcg@10");
    let curve = chart(&data, "ndcg@10 of lambda-rounds");
    let line = curve["series"].as_array().unwrap().iter().find(|line| line["name"] == "valid").unwrap();
    assert_eq!(line["mark"]["text"], json!(format!("best: {}", valid.unwrap()["best"]["round"])));

    // The charts by rank and by score contain every document.
    let heat = chart(&data, "Labels by rank, lambda-scores");
    let counts = heat["counts"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
    assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), 600);
    let boxes = chart(&data, "Scores by label, lambda-scores");
    let documents = boxes["rows"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap());
    assert_eq!(documents.sum::<u64>(), 600);
    assert!(
        page.contains("<td class=\"text\">train: 1,800 rows, 104 queries</td>"),
        "what models were trained on"
    );
    assert!(page.contains("planetree run</code> writes one"), "the section explains why there are no times");
}

#[test]
fn curves_and_strengths_agree_with_the_other_commands() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let mut files = String::new();
    for (preset, trees) in [("rf-rand", 1), ("rf-rand", 40), ("mart", 40), ("mart", 1)] {
        let model = format!("run/{preset}-{trees}.parquet");
        let settings = format!("--preset {preset} --set num_trees={trees} --set min_data_in_leaf=5");
        run(room, &format!("train {settings} --data run/train --model {model}")).ok();
        let scores = format!("run/scores-{preset}-{trees}.parquet");
        run(room, &format!("predict --model {model} --data run/test --output {scores}")).ok();
        files.push_str(&format!(" --predictions {preset}-{trees}={scores}"));
    }
    let curve = format!("evaluate {files} --metrics ndcg@10,rmse --curve trees");
    let printed = run(room, &format!("{curve} --output run/quality.parquet")).ok().stdout;
    assert!(printed.contains("trees    ndcg@10"), "{printed}");
    let evaluated = json_output(room, &format!("{curve} --json"));
    assert_eq!(evaluated["curve"], "trees");
    let strength = "--preset rf-list --set num_trees=3 --valid test=run/test --strength run/strength.parquet";
    run(room, &format!("train {strength} --data run/train --model run/list.parquet")).ok();
    let described = json_output(room, "describe run/strength.parquet --json");

    let page = report(room, "run");
    let data = data_of(&page);
    for (index, metric) in ["ndcg@10", "rmse"].into_iter().enumerate() {
        let drawn = chart(&data, &format!("{metric} by trees"));
        assert_eq!(drawn["x"]["log"], true, "from 1 to 40");
        for (system, line, point) in [(0, 0, 0), (1, 0, 1), (3, 1, 0), (2, 1, 1)] {
            let expected = &evaluated["systems"][system]["metrics"][index]["mean"];
            assert_close(&drawn["series"][line]["points"][point][1], expected);
        }
        let ends = &drawn["series"][1]["points"];
        assert_eq!((&ends[0][0], &ends[1][0]), (&json!(1.0), &json!(40.0)), "in the order of the numbers");
    }
    // The best value of each curve is bold; for an error this is the lowest.
    let of_mart = [2, 3].map(|system| evaluated["systems"][system]["metrics"][1]["mean"].as_f64().unwrap());
    assert!(page.contains(&format!("<strong>{:.4}</strong>", of_mart[0].min(of_mart[1]))));
    let drawn = chart(&data, "Mean tree of strength");
    for (line, split) in ["train", "test"].into_iter().enumerate() {
        let means = described["means"].as_array().unwrap().iter().filter(|mean| mean["split"] == split);
        let means: Vec<&Value> = means.collect();
        let points = drawn["series"][line]["points"].as_array().unwrap();
        assert_eq!(drawn["series"][line]["name"], split);
        assert_close(&points[0][1], &means[1]["expected_ndcg"]); // after one split
        assert_close(&points[points.len() - 1][1], &means[means.len() - 1]["expected_ndcg"]);
    }
    assert!(page.contains("ndcg@10 of all pairs"), "more than two systems are shown in a matrix");

    for (arguments, message) in [
        ("--predictions a=run/mart-scores.parquet --curve trees", "the name a does not end in a number"),
        ("--predictions 1=run/mart-scores.parquet --curve trees --by x", "cannot be used with"),
    ] {
        let ran = run(room, &format!("evaluate {arguments}"));
        assert!(ran.code == 2 && ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn equal_runs_give_identical_reports_and_a_report_is_replaced() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let first = report(room, "run");
    fs::create_dir(room.join("elsewhere")).unwrap();
    fs::rename(room.join("run"), room.join("elsewhere/run")).unwrap();
    let again = report(room, "elsewhere/run --threads 1");
    assert!(first == again, "the reports differ");
    assert!(first.len() < 1_500_000, "{}", first.len());
    let names = names_in(room);
    assert!(names.iter().all(|name| !name.contains("planetree-")), "{names:?}");
}

#[test]
fn invalid_runs_and_outputs_are_errors() {
    let room = room();
    let room = room.path();
    let fails = |arguments: &str, messages: &[&str]| {
        let ran = run(room, arguments).failed();
        for message in messages {
            assert!(ran.stderr.contains(message), "{message:?} is not in {}", ran.stderr);
        }
        assert!(!room.join("r.html").exists());
    };
    fails("report nowhere --output r.html", &["no such directory"]);
    fs::create_dir(room.join("empty")).unwrap();
    fs::write(room.join("empty/notes.txt"), "nothing").unwrap();
    fails("report empty --output r.html", &["no tables of planetree", "planetree run"]);
    fails("report empty/notes.txt --output r.html", &["this is a file, not a run"]);
    fs::write(room.join("empty/run.json"), "{").unwrap();
    fails("report empty --output r.html", &["invalid run manifest"]);
    assert_eq!(run(room, "report empty --output r.html --metric nonsense").code, 2);
    assert_eq!(run(room, "report --output r.html").code, 2);

    sample_run(room);
    fs::write(room.join("page.html"), "<!doctype html><title>mine</title>").unwrap();
    let ran = run(room, "report run --output page.html").failed();
    assert!(ran.stderr.contains("refusing to overwrite: not created by planetree"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(room.join("page.html")).unwrap(), "<!doctype html><title>mine</title>");
    let ran = run(room, "report run --output run").failed();
    assert!(ran.stderr.contains("directory"), "{}", ran.stderr);
    // Damaged tables are errors.
    let file = room.join("run/mart-scores.parquet");
    let mut bytes = fs::read(&file).unwrap();
    bytes[200] ^= 1;
    fs::write(&file, bytes).unwrap();
    fails("report run --output r.html", &["mart-scores.parquet", "damaged"]);
}

#[test]
fn an_incomplete_run_requires_unfinished() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let manifest = |status: &str, step: &str| {
        json!({
            "format": 1, "pipeline": "nightly <b>", "description": "Judgments of the night.", "program": "planetree 0.1.0",
            "status": status, "parameters": { "trees": "40" },
            "steps": [
                { "name": "convert", "kind": "convert", "status": "done", "seconds": 0.5, "rows": 1800, "bytes": 1000,
                  "peak_memory_bytes": 52428800_u64, "outputs": { "output": "train" }, "arguments": ["convert"] },
                { "name": "model", "kind": "train", "status": step, "seconds": 12.25, "peak_memory_bytes": 104857600_u64,
                  "error": if step == "failed" { json!("it <failed>") } else { Value::Null } },
            ],
        })
        .to_string()
    };
    for (status, step, problem) in
        [("running", "pending", "1 of 2 steps are done"), ("failed", "failed", "step model failed")]
    {
        fs::write(room.join("run/run.json"), manifest(status, step)).unwrap();
        let ran = run(room, "report run --output report.html").failed();
        assert!(ran.stderr.contains("not complete") && ran.stderr.contains(problem), "{}", ran.stderr);
        assert!(ran.stderr.contains("--unfinished"), "{}", ran.stderr);
        let page = report(room, "run --unfinished");
        let notice = page.find("class=\"notice\"").unwrap();
        assert!(
            notice < page.find("<section").unwrap() && page.contains(problem),
            "the report has a notice at the top"
        );
    }
    fs::write(room.join("run/run.json"), manifest("complete", "done")).unwrap();
    let page = report(room, "run");
    assert!(page.contains("<title>nightly &lt;b&gt;</title>") && !page.contains("class=\"notice\""));
    assert!(page.contains("Judgments of the night.") && page.contains("trees=40"));
    let data = data_of(&page);
    let times = &chart(&data, "Time of each step")["rows"];
    assert_eq!((&times[1]["name"], &times[1]["text"]), (&json!("model"), &json!("12.2 s")));
    assert_eq!(chart(&data, "Peak memory")["rows"][0]["text"], "50.0 MiB");
}

#[test]
fn a_pipeline_reports_on_itself() {
    let room = room();
    let room = room.path();
    let data = Path::new(crate::support::ROOT).join("sample_data");
    let pipeline = format!(
        r#"
        [pipeline]
        name = "itself"
        [step.train]
        kind = "convert"
        input = "{0}/train.txt"
        [step.model]
        for_each = {{ preset = ["mart", "lambdamart"] }}
        kind = "train"
        preset = "{{preset}}"
        data = "train"
        set = {{ num_trees = 5 }}
        [step.scores]
        for_each = {{ preset = ["mart", "lambdamart"] }}
        kind = "predict"
        model = "model-{{preset}}"
        data = "train"
        [step.page]
        kind = "report"
        "#,
        data.display()
    );
    fs::write(room.join("itself.toml"), pipeline).unwrap();
    run(room, "run itself.toml --output out").ok();
    let page = fs::read_to_string(room.join("out/page.html")).unwrap();
    let charts = data_of(&page);
    // In the order of the steps, not in alphabetical order.
    let pair = &chart(&charts, "Difference of the mean")["rows"][0]["name"];
    assert_eq!(*pair, "scores-lambdamart against scores-mart");
    let times = chart(&charts, "Time of each step")["rows"].as_array().unwrap().iter();
    let steps: Vec<&str> = times.map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(steps, ["train", "model-mart", "model-lambdamart", "scores-mart", "scores-lambdamart"]);
    assert!(page.contains("<title>itself</title>") && !page.contains("class=\"notice\""));
}

#[test]
fn predictions_without_labels_are_named() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let names: Vec<String> = (1..=46).map(|feature| format!("f{feature}")).collect();
    let row = |query: &str| format!("{query},,{}\n", vec!["0.5"; 46].join(","));
    let text = format!("query_id,label,{}\n{}{}{}", names.join(","), row("q1"), row("q1"), row("q2"));
    fs::write(room.join("new.csv"), text).unwrap();
    run(room, "convert new.csv --output new").ok();
    fs::create_dir(room.join("online")).unwrap();
    run(room, "predict --model run/mart.parquet --data new --output online/scores.parquet").ok();
    let page = report(room, "online");
    assert!(
        page.contains("Labels are missing. scores: its documents have no labels."),
        "the reason is given"
    );
    for section in ["depth", "queries", "grades"] {
        assert!(page.contains(&format!("<section id=\"{section}\"")), "{section}");
    }
    // Next to labelled predictions they are listed, and the others are shown.
    fs::copy(room.join("online/scores.parquet"), room.join("run/online.parquet")).unwrap();
    let page = report(room, "run");
    assert!(page.contains("online: its documents have no labels"), "skipped rankings are listed");
    chart(&data_of(&page), "NDCG@k");
}

#[test]
fn a_run_with_metrics_but_without_predictions_is_reported() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let files = "--predictions a=run/lambda-scores.parquet --predictions b=run/mart-scores.parquet";
    fs::create_dir(room.join("metrics")).unwrap();
    run(
        room,
        &format!("evaluate {files} --metrics ndcg@10,err --convention letor4 --output metrics/m.parquet"),
    )
    .ok();
    let page = report(room, "metrics");
    let data = data_of(&page);
    let expected = json_output(
        room,
        "compare run/lambda-scores.parquet run/mart-scores.parquet --convention letor4 --json",
    );
    assert_close(
        &chart(&data, "Difference of the mean")["rows"][0]["middle"],
        &expected["pairs"][0]["difference"],
    );
    assert!(page.contains("This section needs predictions, but the run has only metrics."));
    // The report uses the convention of the metrics.
    assert!(page.contains(&format!("by the convention {}", expected["convention"].as_str().unwrap())));
}

#[test]
fn several_runs_and_searches_are_reported() {
    let room = room();
    let room = room.path();
    sample_run(room);
    for (day, name) in [("monday", "mart"), ("tuesday", "lambda")] {
        fs::create_dir(room.join(day)).unwrap();
        fs::copy(room.join(format!("run/{name}-scores.parquet")), room.join(day).join("scores.parquet"))
            .unwrap();
    }
    let data = data_of(&report(room, "monday late=tuesday"));
    assert_eq!(chart(&data, "Difference of the mean")["rows"][0]["name"], "late against monday");
    // Equal models of two runs keep their names.
    for day in ["monday", "tuesday"] {
        fs::copy(room.join("run/mart.parquet"), room.join(day).join("mart.parquet")).unwrap();
        fs::copy(room.join("run/mart-scores.parquet"), room.join(day).join("scores.parquet")).unwrap();
    }
    let page = report(room, "monday late=tuesday");
    for name in ["monday", "late"] {
        let cells = format!("{name}</span></td><td class=\"text\">{name}/mart</td>");
        assert!(page.contains(&cells), "{cells}");
    }

    fs::write(room.join("space.toml"), "[search]\nlearning_rate = [0.02, 0.3]\n").unwrap();
    let cv = "cv --data run/train --preset lambdamart --set num_trees=8 --folds 3";
    let folds = json_output(room, &format!("{cv} --output cv --json"));
    let page = report(room, "cv");
    let data = data_of(&page);
    let rows = &chart(&data, "Metrics over 3 folds")["rows"];
    let test = rows.as_array().unwrap().iter().find(|row| row["name"] == "test ndcg@10").unwrap();
    let described = json_output(room, "describe cv/folds.parquet --json");
    let metric = described["metrics"].as_array().unwrap().iter();
    let expected = metric.clone().find(|one| one["split"] == "test" && one["metric"] == "ndcg@10").unwrap();
    assert_close(&test["middle"], &expected["mean"]);
    assert_eq!(test["dots"].as_array().unwrap().len(), 3, "{folds}");

    run(room, &format!("{cv} --search space.toml --output search")).ok();
    let page = report(room, "search");
    let data = data_of(&page);
    let best = json_output(room, "describe search/trials.parquet --json");
    let first = &chart(&data, "ndcg@10 of 2 trials")["rows"][0];
    assert_eq!(first["name"], json!(format!("trial {}", best["best"]["trial"])));
    assert_close(&first["middle"], &best["best"]["valid"]);
}

/// Writes predictions from rows of query, document, label and score.
fn write_predictions(file: &Path, rows: &[(String, String, f32, f64)]) {
    let mut ranks = vec![0; rows.len()];
    for group in rows.chunk_by(|one, other| one.0 == other.0) {
        let start =
            (group.as_ptr() as usize - rows.as_ptr() as usize) / size_of::<(String, String, f32, f64)>();
        let mut order: Vec<usize> = (0..group.len()).collect();
        order.sort_by(|one, other| group[*other].3.total_cmp(&group[*one].3));
        for (rank, place) in (1..).zip(order) {
            ranks[start + place] = rank;
        }
    }
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("query_id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))), false),
        ("doc_id", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1))), true),
        ("label", Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.2))), true),
        ("score", Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.3))), false),
        ("rank", Arc::new(Int32Array::from(ranks)), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let location = Location::parse(file.to_str().unwrap(), Access::Explicit).unwrap();
    let mut table = TableWriter::create(&location, TableKind::Predictions, batch.schema()).unwrap();
    table.write(&batch).unwrap();
    table.finish().unwrap();
}

/// Predictions with markup, scripts and control characters in their names.
fn evil_run(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let evil = [
        "</script><script>window.evil = 1</script>",
        "<img src=x onerror=\"window.evil = 2\">",
        "\"><svg onload='window.evil = 3'>",
        "<!-- {{data}} \\u003c \u{2028} &lt; -->",
        "\u{0}\u{7}\u{202e}evil",
    ];
    for (seed, name) in [(3, "a.parquet"), (5, "<b onclick=alert(1)>.parquet")] {
        let mut rows = Vec::new();
        for (query, text) in evil.iter().enumerate() {
            for (document, id) in evil.iter().enumerate() {
                let score = ((query * 7 + document * seed) % 5) as f64;
                rows.push(((*text).to_owned(), (*id).to_owned(), (document % 3) as f32, score));
            }
        }
        write_predictions(&directory.join(name), &rows);
    }
}

#[test]
fn markup_in_names_is_escaped() {
    let room = room();
    let room = room.path();
    evil_run(&room.join("evil"));
    let page = report(room, "evil");
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script>").count(), 3);
    for forbidden in ["<img", "<svg onload", "<b ", "onerror=\"", "\u{0}"] {
        assert!(!page.contains(forbidden), "{forbidden:?}");
    }
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;window.evil = 1"));
}

#[test]
fn omitted_rankings_are_listed() {
    let room = room();
    let room = room.path();
    fs::create_dir(room.join("many")).unwrap();
    let rows = |query: usize, score: f64| -> Vec<(String, String, f32, f64)> {
        let row = |document: usize| {
            (format!("q{query}"), format!("d{document}"), (document % 2) as f32, score * document as f64)
        };
        (0..4).map(row).collect()
    };
    for number in 0..8 {
        write_predictions(&room.join(format!("many/of-{number}.parquet")), &rows(number, 1.0));
    }
    write_predictions(&room.join("many/broken.parquet"), &rows(0, f64::NAN));
    let page = report(room, "many");
    assert!(page.contains("2 rankings of other queries are omitted to keep this file small: of-6, of-7."));
    assert!(page.contains("Some rankings are not evaluated.") && page.contains("the score is NaN"));
    assert!(page.contains("no two of the same queries"), "the reason is given why nothing is compared");
}

#[test]
fn reports_of_large_runs_stay_small() {
    let room = room();
    let room = room.path();
    fs::create_dir(room.join("large")).unwrap();
    let long = "x".repeat(300);
    for system in 0..9 {
        let mut rows = Vec::new();
        for query in 0..2000_usize {
            for document in 0..25_usize {
                let mixed = (query * 7919 + document * 104_729 + system * 15_485_863) % 100_003;
                let label = (query + document * 3) % 40;
                rows.push((
                    format!("query-{query}-{long}"),
                    format!("document-{document}-{long}"),
                    label as f32 / 8.0,
                    mixed as f64 / 1000.0 + label as f64,
                ));
            }
        }
        write_predictions(&room.join(format!("large/system-{system}.parquet")), &rows);
    }
    sample_run(room);
    for (name, preset) in [("one", "lambdamart"), ("two", "mart")] {
        let settings = "--set num_trees=600 --set min_data_in_leaf=1";
        let files = format!("--model large/{name}.parquet --rounds large/{name}-rounds.parquet");
        run(room, &format!("train --preset {preset} --data run/train --valid run/vali {files} {settings}"))
            .ok();
    }
    let page = report(room, "large");
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    for note in [
        "1 more ranking of these queries is not shown",
        "trees are in this file to keep it small",
        "Neighbouring labels are merged",
        "Some rounds are omitted from the chart",
        "Per-query details are shown for the first",
        "One in 2 queries is drawn",
    ] {
        assert!(page.contains(note), "{note:?} is missing");
    }
}

#[test]
fn runs_and_reports_can_be_in_a_bucket() {
    let Some(server) = moto() else { return };
    let room = room();
    let room = room.path();
    sample_run(room);
    let local = report(room, "run");
    let environment = environment(server.port);
    for file in ["lambda-scores", "mart-scores"] {
        let model = file.strip_suffix("-scores").unwrap();
        let arguments = format!(
            "predict --model run/{model}.parquet --data run/test --output s3://bucket/run/{file}.parquet"
        );
        run_with(room, &arguments, &environment).ok();
    }
    run_with(room, "report s3://bucket/run --output s3://bucket/report.html", &environment).ok();
    let ran =
        run_with(room, "report s3://bucket/nothing --output s3://bucket/none.html", &environment).failed();
    assert!(ran.stderr.contains("no tables of planetree"), "{}", ran.stderr);
    // A report replaces a report, and nothing else.
    run_with(room, "report s3://bucket/run --output s3://bucket/report.html", &environment).ok();
    let other = "report s3://bucket/run --output s3://bucket/run/mart-scores.parquet";
    let ran = run_with(room, other, &environment);
    assert!(ran.code == 2 && ran.stderr.contains("cannot write a report as .parquet"), "{}", ran.stderr);
    let curves = |page: &str| chart(&data_of(page), "NDCG@k")["series"].clone();
    let body = "s3.get_object(Bucket='bucket', Key='report.html')['Body'].read().decode()";
    let remote = with_client(server.port, &format!("sys.stdout.write({body})"));
    assert_eq!(curves(&remote), curves(&local));
}

/// The browser, at its usual paths.
fn chromium() -> Option<PathBuf> {
    let found = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    if found.is_none() {
        skipped("chromium is missing: install it (Debian: apt-get install chromium)");
    }
    found
}

#[test]
fn a_report_works_in_a_browser() {
    let (Some(python), Some(chromium)) = (python(), chromium()) else { return };
    let room = room();
    let room = room.path();
    sample_run(room);
    fs::write(
        room.join("run/run.json"),
        json!({
            "format": 1, "pipeline": "sample", "program": "planetree 0.1.0", "status": "complete",
            "steps": [
                { "name": "train", "kind": "convert", "status": "done", "seconds": 0.05, "peak_memory_bytes": 20_000_000 },
                { "name": "lambda", "kind": "train", "status": "done", "seconds": 0.7, "peak_memory_bytes": 50_000_000 },
            ],
        })
        .to_string(),
    )
    .unwrap();
    let cv = "cv --data run/train --preset lambdamart --set num_trees=8 --folds 3 --output run/cv";
    run(room, cv).ok();
    let strength = "--set num_trees=3 --valid test=run/test --strength run/strength.parquet";
    run(room, &format!("train --preset rf-list {strength} --data run/train --model list.parquet")).ok();
    let points = "--predictions 1=run/mart-scores.parquet --predictions 40=run/lambda-scores.parquet";
    run(room, &format!("evaluate {points} --curve trees --output run/quality.parquet")).ok();
    report(room, "run");
    evil_run(&room.join("evil"));
    run(room, "report evil --output evil.html").ok();
    let source = Path::new(crate::support::ROOT);
    let output = Command::new(python)
        .arg(source.join("tests/suite/report.py"))
        .arg(chromium)
        .arg("report.html")
        .arg(source.join("src/report/src/assets/report.css"))
        .arg("evil.html")
        .current_dir(room)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if stderr.contains("ModuleNotFoundError") {
        return skipped(stderr.lines().last().unwrap_or_default());
    }
    assert!(output.status.success(), "after {stdout}: {stderr}");
    eprintln!("{}", stdout.trim());
}
