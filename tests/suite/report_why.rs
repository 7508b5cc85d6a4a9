//! Reports explain: contributions, movement, display tables, segments, disputed labels, trends and data agree with the
//! other commands.

use crate::support::reports::{assert_close, chart, data_of, json_output, report, sample_run};
use crate::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The query of each drill-down, by its number in the data.
fn queries_of_drills(page: &str) -> BTreeMap<usize, String> {
    let mut queries = BTreeMap::new();
    for part in page.split("data-query=\"").skip(1) {
        let query = part.split('"').next().unwrap();
        for number in part.split("data-drill=\"").skip(1) {
            queries.insert(number.split('"').next().unwrap().parse().unwrap(), query.to_owned());
        }
    }
    queries
}

fn rows(room: &Path, query: &str) -> Vec<Value> {
    let ran = command(room, "sql --format json").args(["-c", query]).output().unwrap();
    let printed = Ran::of(ran).ok().stdout;
    match serde_json::from_str(&printed) {
        Ok(Value::Array(rows)) => rows,
        _ => printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    }
}

#[test]
fn contributions_agree_with_explain_score() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let page = report(room, "run");
    let data = data_of(&page);
    let drills = data["drills"].as_array().unwrap();
    let queries = queries_of_drills(&page);
    assert!(drills.len() > 20 && queries.len() == drills.len(), "{} drills", drills.len());
    for (place, name) in ["lambda", "mart"].into_iter().enumerate() {
        let system = data["explained"].as_array().unwrap().iter().position(|it| it["name"] == name).unwrap();
        let features = data["explained"][system]["features"].as_array().unwrap();
        let mut expected: BTreeMap<(String, String, String), Value> = BTreeMap::new();
        for row in rows(room, &format!("SELECT * FROM explain_score('run/{name}.parquet', 'run/test')")) {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            expected.insert((text("query_id"), text("doc_id"), text("feature")), row);
        }
        let mut compared = 0;
        for (number, drill) in drills.iter().enumerate().filter(|(_, drill)| drill["system"] == json!(system))
        {
            for document in drill["documents"].as_array().unwrap() {
                let mut sum = data["explained"][system]["expected"].as_f64().unwrap();
                for (feature, contribution) in
                    features.iter().zip(document["contributions"].as_array().unwrap())
                {
                    let key = (
                        queries[&number].clone(),
                        document["name"].as_str().unwrap().to_owned(),
                        feature.as_str().unwrap().to_owned(),
                    );
                    let row = &expected[&key];
                    let (found, real) =
                        (contribution.as_f64().unwrap(), row["contribution"].as_f64().unwrap());
                    assert!(
                        (found - real).abs() <= 1e-3 * real.abs().max(1e-9),
                        "{key:?}: {found} is not {real}"
                    );
                    assert_close(&document["score"], &row["score"]);
                    sum += found;
                    compared += 1;
                }
                let score = document["score"].as_f64().unwrap();
                assert!((sum - score).abs() < 5e-3 * (1.0 + score.abs()), "{sum} is not {score}");
            }
        }
        assert!(compared > 1000, "{compared} contributions of system {place}");
    }
    // The summary of contributions is their mean over all rows of the test data.
    let means = rows(
        room,
        "SELECT feature, avg(abs(contribution)) AS mean FROM explain_score('run/lambda.parquet', 'run/test') GROUP BY feature ORDER BY mean DESC LIMIT 3",
    );
    let swarm = &chart(&data, "Contributions to the scores of lambda")["rows"];
    for (row, real) in swarm.as_array().unwrap().iter().zip(&means) {
        assert_eq!(row["name"], real["feature"]);
        assert_eq!(row["tells"][0][1], json!(format!("{:.4}", real["mean"].as_f64().unwrap())));
    }
}

#[test]
fn importance_and_dependence_agree_with_predictions() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let data = data_of(&report(room, "run"));
    let described = json_output(room, "describe run/lambda.parquet --permutation run/test --json");
    let drops = described["permutation_importance"].as_array().unwrap();
    let bars = chart(&data, "Drop of ndcg@10 of lambda on test")["rows"].as_array().unwrap();
    for bar in bars {
        let real = drops.iter().find(|drop| drop["feature"] == bar["name"]).unwrap();
        assert!((bar["value"].as_f64().unwrap() - real["ndcg@10_drop"].as_f64().unwrap()).abs() < 1e-6);
    }
    assert!(bars[0]["value"].as_f64() >= bars[1]["value"].as_f64());

    // Partial dependence is the mean score of all documents with one value replaced.
    let curve = chart(&data, "Mean score by ");
    let feature = curve["x"]["label"].as_str().unwrap();
    let number = feature.trim_start_matches('f');
    let points = curve["series"][0]["points"].as_array().unwrap();
    let point = &points[points.len() / 2];
    let text = fs::read_to_string(Path::new(ROOT).join("sample_data/test.txt")).unwrap();
    let replaced: Vec<String> = text
        .lines()
        .map(|line| {
            let words = line.split(' ').map(|word| match word.split_once(':') {
                Some((name, _)) if name == number => format!("{number}:{}", point[0]),
                _ => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    fs::write(room.join("same.txt"), replaced.join("\n") + "\n").unwrap();
    run(room, "convert same.txt --output same").ok();
    // The first ranking of the run is that of lambda.
    run(room, "predict --model run/lambda.parquet --data same --output same.parquet").ok();
    let mean = &rows(room, "SELECT avg(score) AS mean FROM 'same.parquet'")[0]["mean"];
    let (found, real) = (point[1].as_f64().unwrap(), mean.as_f64().unwrap());
    assert!((found - real).abs() < 1e-4 * (1.0 + real.abs()), "{feature}: {found} is not {real}");
}

#[test]
fn the_metric_by_trees_is_that_of_smaller_models() {
    let room = room();
    let room = room.path();
    sample_run(room);
    for (preset, name, trees) in [("lambdamart", "lambda", 7), ("mart", "mart", 3)] {
        let settings = format!("--preset {preset} --set num_trees={trees}");
        run(room, &format!("train {settings} --data run/train --model small-{name}.parquet")).ok();
        run(room, &format!("predict --model small-{name}.parquet --data run/test --output {name}.parquet"))
            .ok();
        let small =
            json_output(room, &format!("evaluate --predictions {name}.parquet --metrics ndcg@10 --json"));
        let whole = json_output(
            room,
            &format!("evaluate --predictions run/{name}-scores.parquet --metrics ndcg@10 --json"),
        );
        let data = data_of(&report(room, "run"));
        let lines = chart(&data, "ndcg@10 on test by number of trees")["series"].as_array().unwrap();
        let line = lines.iter().find(|line| line["name"] == json!(format!("{name}-scores"))).unwrap();
        let points = line["points"].as_array().unwrap();
        let point = points.iter().find(|point| point[0].as_f64() == Some(f64::from(trees))).unwrap();
        assert_close(&point[1], &small["systems"][0]["metrics"][0]["mean"]);
        assert_close(&points[points.len() - 1][1], &whole["systems"][0]["metrics"][0]["mean"]);
    }
}

#[test]
fn display_tables_provide_texts_links_and_segments() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let ids: Vec<String> = rows(room, "SELECT DISTINCT query_id FROM 'run/test' ORDER BY query_id")
        .iter()
        .map(|row| row["query_id"].as_str().unwrap().to_owned())
        .collect();
    let mut queries = "query_id,text,market\n".to_owned();
    for (number, id) in ids.iter().enumerate() {
        queries.push_str(&format!("{id},\"words <b>of</b> {id}, quoted\",{}\n", ["de", "<i>fr"][number % 2]));
    }
    fs::write(room.join("queries.csv"), queries).unwrap();
    let mut documents = "doc_id,title,url\n".to_owned();
    for row in rows(room, "SELECT doc_id FROM 'run/test'") {
        let id = row["doc_id"].as_str().unwrap();
        let link = if id.ends_with('1') { "javascript:alert(1)" } else { "https://example.org/?q=1&d=2" };
        documents.push_str(&format!("{id},Title of {id} <script>,{link}\n"));
    }
    fs::write(room.join("documents.csv"), documents).unwrap();
    let page = report(room, "run --display queries.csv --display documents.csv --date 2026-11-18");
    assert!(page.contains("words &lt;b&gt;of&lt;/b&gt;") && page.contains("Title of "));
    assert!(page.contains(
        "<a href=\"https://example.org/?q=1&amp;d=2\" target=\"_blank\" rel=\"noopener noreferrer\">"
    ));
    assert!(!page.contains("javascript:") && !page.contains("<b>of") && !page.contains("<i>fr"));
    assert_eq!(page.matches("2026-11-18").count(), 2, "in the heading and in the footer");
    let mut moves = page.split("class=\"moves\"").skip(1);
    assert!(moves.any(|part| part.contains("<title>Title of ")), "documents that move have titles");
    let data = data_of(&page);
    let found = &data["searches"][0]["queries"];
    assert_eq!(found.as_array().unwrap().len(), ids.len());
    assert_eq!(found[0][1], json!(format!("words <b>of</b> {}, quoted", ids[0])));

    // Segments agree with evaluate --by.
    let sql = "SELECT query_id, market FROM 'queries.csv'";
    let written =
        command(room, "sql --format parquet -o segments.parquet").args(["-c", sql]).output().unwrap();
    Ran::of(written).ok();
    let by = "--by market --join segments.parquet --metrics ndcg@10 --json";
    let evaluated = json_output(room, &format!("evaluate --predictions run/lambda-scores.parquet {by}"));
    let segments = evaluated["systems"][0]["segments"].as_array().unwrap();
    let drawn = chart(&data, "ndcg@10 by market")["rows"].as_array().unwrap();
    assert_eq!((segments.len(), drawn.len()), (2, 4));
    for segment in segments {
        let name = format!("{}: lambda-scores", segment["segment"].as_str().unwrap());
        let row = drawn.iter().find(|row| row["name"] == json!(name)).unwrap();
        assert_close(&row["middle"], &segment["means"]["ndcg@10"]);
    }

    // The same bytes again, and other ones with another date.
    assert!(page == report(room, "run --display queries.csv --display documents.csv --date 2026-11-18"));
    for (table, message) in [("missing.csv", "o such file"), ("run/train", "this is a directory")] {
        let ran = run(room, &format!("report run --output r.html --display {table}")).failed();
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    fs::write(room.join("bad.csv"), "query,title\na,b\n").unwrap();
    let ran = run(room, "report run --output r.html --display bad.csv").failed();
    assert!(ran.stderr.contains("no column query_id or doc_id among query, title"), "{}", ran.stderr);
}

#[test]
fn documents_move_between_rankings() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let page = report(room, "run");
    let compared =
        json_output(room, "compare run/lambda-scores.parquet run/mart-scores.parquet --top 6 --json");
    let pair = &compared["pairs"][0];
    let query = pair["improved"][0]["query_id"].as_str().unwrap();
    let part =
        page.split("class=\"moves\"").find(|part| part.contains(&format!("q{query}-d").to_uppercase()));
    let part = part.unwrap_or_else(|| panic!("no movement of query {query}"));
    let sql = format!(
        "SELECT a.doc_id, a.rank AS was, b.rank AS now FROM 'run/lambda-scores.parquet' a JOIN 'run/mart-scores.parquet' b USING (query_id, doc_id) WHERE a.query_id = '{query}' AND (a.rank <= 10 OR b.rank <= 10)"
    );
    for row in rows(room, &sql) {
        let said =
            format!("<title>{}: {} → {}</title>", row["doc_id"].as_str().unwrap(), row["was"], row["now"]);
        assert!(part.contains(&said), "{said}");
    }
}

#[test]
fn disputed_labels_are_written_as_csv() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let page = report(room, "run --disputed disputed.csv");
    let text = fs::read_to_string(room.join("disputed.csv")).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    assert!(header.starts_with("ranking,query_id,doc_id,label,score,rank,better_labelled,"));
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split(',').collect()).collect();
    // A slow twin: for every document, the better-labelled documents of its query.
    let all = rows(room, "SELECT query_id, doc_id, label, score FROM 'run/lambda-scores.parquet'");
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let mut count = 0;
    for row in &all {
        let same: Vec<&Value> = all.iter().filter(|other| other["query_id"] == row["query_id"]).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let scores: Vec<f64> = same.iter().map(|other| number(other, "score")).collect();
        let deviation =
            mean(&scores.iter().map(|score| (score - mean(&scores)).powi(2)).collect::<Vec<_>>()).sqrt();
        let better: Vec<&&Value> =
            same.iter().filter(|other| number(other, "label") > number(row, "label")).collect();
        let better: Vec<f64> = better.iter().map(|other| number(other, "score")).collect();
        let margin = (number(row, "score") - mean(&better)) / deviation;
        let line = lines.iter().find(|line| line[0] == "lambda-scores" && row["doc_id"] == line[2]);
        if better.is_empty() || deviation == 0.0 || margin <= 1e-9 {
            assert!(line.is_none() || margin.abs() < 1e-9, "{row} is not disputed");
            continue;
        }
        let line = line.unwrap_or_else(|| panic!("{row} is disputed"));
        assert_eq!(line[6], better.len().to_string());
        assert!((line[8].parse::<f64>().unwrap() - margin).abs() < 1e-3, "{line:?}: {margin}");
        count += 1;
    }
    assert!(count > 5, "{count}");
    let strengths: Vec<f64> =
        lines.iter().filter(|line| line[0] == "lambda-scores").map(|line| line[9].parse().unwrap()).collect();
    assert!(strengths.is_sorted_by(|one, other| one >= other));
    let saved = data_of(&page)["downloads"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(saved.lines().nth(1), text.lines().nth(1));
    fs::write(room.join("mine.csv"), "a,b\n1,2\n").unwrap();
    let ran = run(room, "report run --output report.html --disputed mine.csv").failed();
    assert!(ran.stderr.contains("refusing to overwrite"), "{}", ran.stderr);
    assert_eq!(run(room, "report run --output report.html --disputed labels.txt").code, 2);
}

#[test]
fn data_and_trends_are_shown() {
    let room = room();
    let room = room.path();
    sample_run(room);
    let data = data_of(&report(room, "run"));
    let described = json_output(room, "describe run/test --json");
    let charts = data["charts"].as_array().unwrap();
    let labels = charts.iter().find(|chart| chart["label"] == "Labels").unwrap();
    let place = labels["rows"].as_array().unwrap().iter().position(|row| row["name"] == "test").unwrap();
    let counts: u64 =
        labels["rows"][place]["counts"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(json!(counts), described["rows"]);
    let drift = chart(&data, "Population stability index of test against train");
    assert!(drift["rows"].as_array().unwrap().len() == 15);
    // Not a trend yet.
    assert!(
        data["charts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|chart| !chart["label"].as_str().unwrap().ends_with("by run"))
    );

    for (day, name) in [("monday", "mart"), ("tuesday", "lambda"), ("wednesday", "mart")] {
        fs::create_dir(room.join(day)).unwrap();
        fs::copy(room.join(format!("run/{name}-scores.parquet")), room.join(day).join("scores.parquet"))
            .unwrap();
    }
    let page = report(room, "monday tuesday wednesday");
    let data = data_of(&page);
    let trend = chart(&data, "ndcg@10 by run");
    assert_eq!(trend["x"]["names"], json!(["monday", "tuesday", "wednesday"]));
    for (place, name) in ["mart", "lambda", "mart"].into_iter().enumerate() {
        let whole = json_output(
            room,
            &format!("evaluate --predictions run/{name}-scores.parquet --metrics ndcg@10 --json"),
        );
        assert_close(&trend["series"][0]["points"][place][1], &whole["systems"][0]["metrics"][0]["mean"]);
    }
    // The dataset is not in these runs, so nothing is named after a ranking instead, and the reasons are given.
    assert_eq!(chart(&data, "NDCG@k")["label"], "NDCG@k");
    assert!(!page.contains(">best</span>"), "the best one is not significantly better than an equal one");
    assert!(page.contains("highest, may be chance"));
}
