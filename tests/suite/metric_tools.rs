//! Every preset agrees with its tool (LightGBM, XGBoost, CatBoost, YDF, scikit-learn, pytrec_eval, ir_measures, ranx and
//! SciPy) on real data and on edge cases.

use crate::support::*;
use planetree::metric::{Convention, Judge, Mean, Metric, QueryRows};
use planetree::random::Stream;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const METRICS: [&str; 29] = [
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "ndcg@5",
    "ndcg@10",
    "dcg",
    "dcg@5",
    "err",
    "err@5",
    "err@10",
    "map",
    "map@3",
    "map@10",
    "mrr",
    "mrr@3",
    "p",
    "p@1",
    "p@5",
    "p@10",
    "recall@5",
    "recall@10",
    "auc",
    "pauc@0-30",
    "auc_pooled",
    "pauc_pooled@0-30",
    "pauc_pooled@0-5",
    "tau",
    "inversions",
    "rmse",
];

/// Conventions other than presets that match options of a tool.
const OTHERS: [&str; 4] = [
    "xgboost,empty=0",
    "catboost,gain=exp2",
    "catboost,gain=exp2,discount=power:1",
    "sklearn,pauc=standardised",
];

#[derive(Default)]
struct Query {
    labels: Vec<f32>,
    scores: Vec<f64>,
    documents: Vec<String>,
    weight: f64,
}

/// A set of queries.
struct Case {
    name: String,
    queries: Vec<Query>,
}

impl Case {
    fn named(name: &str, queries: Vec<Query>) -> Self {
        Case { name: name.to_owned(), queries }
    }

    /// The same queries with other labels.
    fn relabelled(&self, name: &str, label: fn(f32) -> f32) -> Self {
        let query = |query: &Query| Query {
            labels: query.labels.iter().map(|old| label(*old)).collect(),
            scores: query.scores.clone(),
            documents: query.documents.clone(),
            weight: query.weight,
        };
        Case::named(&format!("{}, {name}", self.name), self.queries.iter().map(query).collect())
    }

    /// The case and its metrics under every convention, as JSON.
    fn judged(&self) -> Value {
        let conventions = Convention::presets().iter().map(|preset| preset.name).chain(OTHERS);
        let ours: serde_json::Map<String, Value> =
            conventions.map(|name| (name.to_owned(), self.judged_under(name))).collect();
        let queries: Vec<Value> = self
            .queries
            .iter()
            .map(|query| {
                json!({"labels": query.labels, "scores": query.scores, "documents": query.documents,
                       "weight": query.weight})
            })
            .collect();
        json!({"name": self.name, "queries": queries, "ours": ours})
    }

    fn judged_under(&self, convention: &str) -> Value {
        let metrics: Vec<Metric> = METRICS.iter().map(|name| name.parse().unwrap()).collect();
        let mut judge = Judge::new(&metrics, &convention.parse().unwrap());
        let new_means = || metrics.iter().map(|metric| Mean::new(*metric)).collect::<Vec<Mean>>();
        let (mut means, mut weighted) = (new_means(), new_means());
        let mut values = vec![Vec::new(); metrics.len()];
        for query in &self.queries {
            let documents: Vec<&str> = query.documents.iter().map(String::as_str).collect();
            let rows = QueryRows {
                labels: &query.labels,
                scores: &query.scores,
                documents: Some(&documents),
                judged: None,
            };
            let found = judge.query(&rows).unwrap();
            values.iter_mut().zip(found).for_each(|(values, value)| values.push(*value));
            judge.add_to(&mut means, &rows, 1.0);
            judge.add_to(&mut weighted, &rows, query.weight);
        }
        let of_metric = |index: usize| {
            let values = json!({"values": values[index], "mean": means[index].value(),
                                "weighted": weighted[index].value()});
            (METRICS[index].to_owned(), values)
        };
        Value::Object((0..metrics.len()).map(of_metric).collect())
    }
}

/// Queries with ties, without relevant documents, with one document, with only relevant documents, shorter and longer than
/// every depth; with weights of 1 to 3.
fn edge_cases() -> Vec<Query> {
    let made = [
        (vec![0.0, 1.0, 2.0], vec![3.0, 2.0, 1.0]),
        (vec![0.0, 0.0, 0.0], vec![3.0, 2.0, 1.0]),
        (vec![1.0, 1.0], vec![3.0, 2.0]),
        (vec![0.0, 1.0, 0.0, 2.0], vec![1.0, 1.0, 1.0, 1.0]),
        (vec![2.0, 0.0, 1.0, 0.0, 1.0], vec![2.0, 2.0, 1.0, 1.0, 0.0]),
        (vec![1.0], vec![0.25]),
        (vec![0.0], vec![0.25]),
        (vec![0.0, 2.0], vec![0.0, -0.0]),
        (vec![2.0, 0.0, 1.0], vec![-1e30, 1e-30, -1e-30]),
    ];
    let mut queries: Vec<Query> =
        made.into_iter().map(|(labels, scores)| Query { labels, scores, ..Query::default() }).collect();
    for number in 0..300 {
        let mut draw = Stream::new(&[77, number]);
        let documents = 1 + (draw.uniform() * if number % 3 == 0 { 60.0 } else { 14.0 }) as usize;
        let levels = [2.0, 5.0, 1000.0][number as usize % 3];
        let rare = draw.uniform();
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        for _ in 0..documents {
            let relevant = draw.uniform() < rare * rare;
            labels.push(if relevant { 1.0 + (draw.uniform() * 2.0).floor() as f32 } else { 0.0 });
            scores.push((draw.uniform() * levels).floor() / 8.0);
        }
        queries.push(Query { labels, scores, ..Query::default() });
    }
    for (number, query) in queries.iter_mut().enumerate() {
        query.documents = (0..query.labels.len()).map(|place| format!("d{:02}", place * 37 % 61)).collect();
        query.weight = (1 + number % 3) as f64;
    }
    queries
}

/// MQ2008 ranked by a feature, by a feature with few values, at random, and by a constant.
fn real_cases(data: &Path) -> Vec<Case> {
    let room = room();
    real_dataset(room.path(), "mq2008", data, "S*");
    let rows = rows_of(&room.path().join("mq2008"));
    let mut draw = Stream::new(&[2008]);
    let chance: Vec<f64> = rows.iter().map(|_| f64::from(draw.uniform() as f32)).collect();
    let feature = |row: usize, number: usize| f64::from(rows[row].features[number - 1].unwrap_or(0.0));
    let score = |name: &str, row: usize| match name {
        "f39" => feature(row, 39),
        "f18" => feature(row, 18),
        "random" => chance[row],
        _ => 1.0,
    };
    let case = |name: &str| {
        let mut queries: Vec<Query> = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number == 0 || rows[number - 1].query != row.query {
                queries.push(Query { weight: 1.0 + (queries.len() % 3) as f64, ..Query::default() });
            }
            let query = queries.last_mut().unwrap();
            query.labels.push(row.label.unwrap());
            query.scores.push(score(name, number));
            query.documents.push(row.document.clone().unwrap());
        }
        Case::named(&format!("MQ2008 by {name}"), queries)
    };
    ["f39", "f18", "random", "constant"].map(case).into()
}

/// Compares the cases with the tools, and prints the table of docs/metrics.md.
fn compare(cases: &[Case]) {
    let room = room();
    let file = room.path().join("cases.json");
    let judged: Vec<Value> = cases.iter().map(Case::judged).collect();
    std::fs::write(&file, serde_json::to_vec(&judged).unwrap()).unwrap();
    let Some(python) = python() else { return };
    let script = Path::new(crate::support::ROOT).join("tests/suite/metric_tools.py");
    let output = Command::new(python).arg(script).arg(&file).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    println!("{stdout}");
    stderr.lines().filter(|line| line.starts_with("SKIPPED")).for_each(skipped);
}

/// Adds cases with binary labels and with probabilities; not every tool supports all of them.
fn with_other_labels(cases: Vec<Case>) -> Vec<Case> {
    let binary: Vec<Case> =
        cases.iter().map(|case| case.relabelled("binary", |label| label.min(1.0))).collect();
    let halved: Vec<Case> = cases.iter().map(|case| case.relabelled("halved", |label| label / 2.0)).collect();
    cases.into_iter().chain(binary).chain(halved).collect()
}

#[test]
fn every_preset_agrees_with_its_tool_on_edge_cases() {
    compare(&with_other_labels(vec![Case::named("edge cases", edge_cases())]));
}

#[test]
fn every_preset_agrees_with_its_tool_on_mq2008() {
    let Some(data) = shared("data/MQ2008") else { return };
    compare(&with_other_labels(real_cases(&data)));
}
