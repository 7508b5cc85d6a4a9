//! What tests of training share: data to learn from, reading what the trainer wrote, and the
//! reference packages of Python.

use crate::support::*;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use planetree::random::Stream;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A row to learn from.
pub struct Example {
    pub query: usize,
    pub label: f64,
    pub weight: f64,
    pub features: Vec<Option<f32>>,
}

/// Grades 0 to 4 that follow from the features: continuous ones, few-valued ones, sparse ones, one
/// that is often missing, and one that is the same everywhere.
pub fn graded(seed: u64, queries: usize, documents: usize) -> Vec<Example> {
    let mut examples = Vec::new();
    for query in 0..queries {
        let mut draw = Stream::new(&[seed, query as u64]);
        let ease = draw.normal();
        for _ in 0..documents {
            let hidden = draw.normal();
            let mut features: Vec<Option<f32>> =
                (0..6).map(|_| Some((hidden + 1.5 * draw.normal()) as f32)).collect();
            features.extend((0..3).map(|_| Some((2.0 * hidden + 3.0 * draw.normal()).round() as f32)));
            features.extend((0..3).map(|_| {
                let there = draw.uniform() < 0.15;
                there.then(|| (1.0 + hidden.abs() * draw.uniform()) as f32)
            }));
            features.push((draw.uniform() < 0.6 + 0.1 * hidden).then_some(draw.uniform() as f32));
            features.push(Some(7.0));
            let grade = (1.5 + hidden + 0.4 * ease + 0.5 * draw.normal()).round().clamp(0.0, 4.0);
            let weight = (1.0 + 7.0 * draw.uniform()).round() / 4.0;
            examples.push(Example { query, label: grade, weight, features });
        }
    }
    examples
}

/// Real-valued labels and features without equal values, so that a best cut is always the only one.
pub fn untied(seed: u64, rows: usize, features: usize) -> Vec<Example> {
    let mut draw = Stream::new(&[seed]);
    let mut columns: Vec<Vec<f32>> = Vec::new();
    for _ in 0..features {
        let mut order: Vec<(u64, usize)> = (0..rows).map(|row| (draw.bits(), row)).collect();
        order.sort_unstable();
        // Neighbours are at least half a step apart, which others might take for equal otherwise.
        let place = |rank: usize| (rank as f64 + 0.5 * draw.uniform()) / rows as f64 * 8.0 - 4.0;
        let mut places: Vec<f64> = (0..rows).map(place).collect();
        let mut column = vec![0.0; rows];
        order.iter().zip(places.drain(..)).for_each(|((_, row), place)| column[*row] = place as f32);
        columns.push(column);
    }
    let example = |row: usize| {
        let value = |feature: usize| f64::from(columns[feature % features][row]);
        let label = 10.0 + value(0) * value(1) / 4.0 + value(2).sin() + 0.5 * value(3) + draw.normal();
        Example {
            query: row / 10,
            label: label.max(0.0),
            weight: 1.0,
            features: columns.iter().map(|column| Some(column[row])).collect(),
        }
    };
    (0..rows).map(example).collect()
}

/// LETOR text.
pub fn as_letor(examples: &[Example]) -> String {
    let mut text = String::new();
    for example in examples {
        write!(text, "{} qid:{}", example.label as f32, example.query).unwrap();
        for (place, value) in example.features.iter().enumerate() {
            if let Some(value) = value {
                write!(text, " {}:{value}", place + 1).unwrap();
            }
        }
        text.push('\n');
    }
    text
}

/// CSV with weights.
pub fn as_csv(examples: &[Example]) -> String {
    let names: Vec<String> = (1..=examples[0].features.len()).map(|place| format!("f{place}")).collect();
    let mut text = format!("query_id,label,weight,{}\n", names.join(","));
    for example in examples {
        write!(text, "{},{},{}", example.query, example.label as f32, example.weight).unwrap();
        for value in &example.features {
            write!(text, ",{}", value.map(|value| value.to_string()).unwrap_or_default()).unwrap();
        }
        text.push('\n');
    }
    text
}

/// Writes examples as text and converts them.
pub fn dataset(directory: &Path, name: &str, examples: &[Example], options: &str) {
    std::fs::write(directory.join(format!("{name}.txt")), as_letor(examples)).unwrap();
    run(directory, &format!("convert {name}.txt --output {name} {options}")).ok();
}

/// The same rows as one partition (`one`), many small ones (`many`) and a few uneven ones (`few`), as
/// text and (`weighted-...`) as CSV with weights; and a validation set.
pub fn same_rows(directory: &Path) {
    let examples = graded(21, 120, 25);
    std::fs::write(directory.join("rows.txt"), as_letor(&examples)).unwrap();
    std::fs::write(directory.join("rows.csv"), as_csv(&examples)).unwrap();
    for (name, options) in
        [("one", ""), ("many", "--partition-rows 60"), ("few", "--partition-rows 1111 --threads 1")]
    {
        run(directory, &format!("convert rows.txt --output {name} {options}")).ok();
        run(directory, &format!("convert rows.csv --output weighted-{name} {options}")).ok();
    }
    dataset(directory, "vali", &graded(22, 40, 15), "--partition-rows 100");
}

/// Datasets that trainings have their trouble with: `same` (every label 2), `flat` (equal labels within a
/// query), `unlabelled` (every third row), `real` (a label a row), `single` (one query).
pub fn odd_datasets(directory: &Path) {
    let text = |label: fn(usize) -> f64, documents: usize| -> String {
        (0..60).map(|row| format!("{} qid:{} 1:{row}\n", label(row), row / documents)).collect()
    };
    for (name, text) in [
        ("same", text(|_| 2.0, 6)),
        ("flat", text(|row| (row / 6 % 3) as f64, 6)),
        ("unlabelled", text(|row| (row % 3) as f64 - 1.0, 6)),
        ("real", text(|row| row as f64 / 7.0, 6)),
        ("single", text(|row| (row % 3) as f64, 60)),
    ] {
        std::fs::write(directory.join("text"), text).unwrap();
        run(directory, &format!("convert text --output {name}")).ok();
    }
}

/// Trainings that are refused, each with what is said; nothing is left behind.
pub fn are_refused(directory: &Path, cases: &[(&str, &str)]) {
    let before = names_in(directory);
    for (arguments, says) in cases {
        let ran = run(directory, &format!("train {arguments} --model m"));
        assert!(ran.code == 1 || ran.code == 2, "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("\n  help: "),
            "{arguments}: {}",
            ran.stderr
        );
        assert_eq!(names_in(directory), before, "{arguments}: something was left behind");
    }
}

/// The parts of a real set, named by patterns such as `S[12]`, as one dataset.
pub fn real_dataset(directory: &Path, name: &str, folder: &Path, parts: &str) {
    run(directory, &format!("convert {}/{parts}.txt.gz --output {name}", folder.display())).ok();
}

/// Trains quietly and must succeed.
pub fn train(directory: &Path, arguments: &str) -> Ran {
    run(directory, &format!("--quiet train {arguments}")).ok()
}

/// All rows of a Parquet file, without its metadata.
pub fn table_of(file: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file).unwrap()).unwrap();
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let batches: Vec<RecordBatch> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

/// A row of the training log.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub round: i32,
    pub split: String,
    pub metric: String,
    pub value: f64,
}

pub fn rounds_of(file: &Path) -> Vec<Logged> {
    let table = table_of(file);
    let text =
        |name: &str, row: usize| table.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned();
    let rounds = table.column_by_name("round").unwrap().as_primitive::<Int32Type>();
    let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>();
    let row = |row: usize| Logged {
        round: rounds.value(row),
        split: text("split", row),
        metric: text("metric", row),
        value: values.value(row),
    };
    (0..table.num_rows()).map(row).collect()
}

/// The values of one split and metric, round after round.
pub fn course(log: &[Logged], split: &str, metric: &str) -> Vec<f64> {
    let rows: Vec<&Logged> = log.iter().filter(|row| row.split == split && row.metric == metric).collect();
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(row.round as usize, place + 1, "{split} {metric}");
    }
    rows.iter().map(|row| row.value).collect()
}

/// A scored row.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    pub query: String,
    pub label: f32,
    pub score: f64,
}

pub fn predictions_of(file: &Path) -> Vec<Scored> {
    let table = table_of(file);
    let queries = table.column_by_name("query_id").unwrap().as_string::<i32>();
    let labels = table.column_by_name("label").unwrap().as_primitive::<Float32Type>();
    let scores = table.column_by_name("score").unwrap().as_primitive::<Float64Type>();
    assert_eq!(labels.null_count(), 0);
    (0..table.num_rows())
        .map(|row| Scored {
            query: queries.value(row).to_owned(),
            label: labels.value(row),
            score: scores.value(row),
        })
        .collect()
}

/// Scores a dataset and reads the scores.
pub fn predict(directory: &Path, model: &str, dataset: &str) -> Vec<Scored> {
    let output = format!("{model}-of-{dataset}");
    run(directory, &format!("--quiet predict --model {model} --data {dataset} --output {output}")).ok();
    predictions_of(&directory.join(output))
}

pub fn rmse(rows: &[Scored]) -> f64 {
    let squares: f64 = rows.iter().map(|row| (f64::from(row.label) - row.score).powi(2)).sum();
    (squares / rows.len() as f64).sqrt()
}

/// NDCG@10 as it is printed: gain 2^label - 1, discount log2(rank + 1), 0 for a query without gain,
/// equal scores in the order of the rows.
pub fn ndcg(rows: &[Scored]) -> f64 {
    let dcg = |labels: &[f32]| -> f64 {
        let ranked = labels.iter().zip(1..).take(10);
        ranked.map(|(label, rank)| (f64::from(*label).exp2() - 1.0) / f64::from(rank + 1).log2()).sum()
    };
    let mut values = Vec::new();
    for query in rows.chunk_by(|one, other| one.query == other.query) {
        let mut ranked = query.to_vec();
        ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
        let found: Vec<f32> = ranked.iter().map(|row| row.label).collect();
        let mut best = found.clone();
        best.sort_by(|one, other| other.total_cmp(one));
        let ideal = dcg(&best);
        values.push(if ideal > 0.0 { dcg(&found) / ideal } else { 0.0 });
    }
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn assert_close(found: f64, expected: f64, relative: f64, what: &str) {
    let most = relative * expected.abs().max(1e-12);
    assert!((found - expected).abs() <= most, "{what}: {found}, expected {expected}");
}

/// Runs one of the checks of `reference.py` in a directory; what it printed, or `None` without Python.
pub fn reference(directory: &Path, arguments: &str) -> Option<String> {
    reference_script(directory, "reference.py", arguments)
}

/// The same for the checks of another script.
pub fn reference_script(directory: &Path, script: &str, arguments: &str) -> Option<String> {
    let script = Path::new(crate::support::ROOT).join("tests/suite").join(script);
    let output = Command::new(python()?)
        .arg(script)
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("ModuleNotFoundError") {
        skipped(stderr.lines().last().unwrap_or_default());
        return None;
    }
    assert!(output.status.success(), "{arguments}: {stderr}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}
