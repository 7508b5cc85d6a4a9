//! Data for tests: text, examples with labels that follow from their features, and the datasets made of them.

use super::program::run;
use planetree::dataset::DatasetReader;
use planetree::random::Stream;
use planetree::storage::{Access, Location};
use std::fmt::Write;
use std::path::Path;

/// A row of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetRow {
    pub query: String,
    pub document: Option<String>,
    pub label: Option<f32>,
    pub features: Vec<Option<f32>>,
}

/// Reads a whole local dataset and verifies its checksums.
pub fn rows_of(dataset: &Path) -> Vec<DatasetRow> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Float32Type;
    let location = Location::parse(dataset.to_str().unwrap(), Access::Explicit).unwrap();
    let reader = DatasetReader::open(&location).unwrap();
    let mut rows = Vec::new();
    for id in reader.groups() {
        let batch = reader.open_group(id).unwrap().read_all().unwrap();
        let text = |name: &str, row: usize| {
            let column = batch.column_by_name(name).unwrap().as_string::<i32>();
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let number = |name: &str, row: usize| {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Float32Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            rows.push(DatasetRow {
                query: text("query_id", row).unwrap(),
                document: text("doc_id", row),
                label: number("label", row),
                features: reader.manifest().features.iter().map(|name| number(name, row)).collect(),
            });
        }
    }
    rows
}

/// LETOR text with absent values, negative numbers and exponents, for tests that need no particular content.
pub fn some_text(queries: usize, documents: usize) -> String {
    let mut text = String::new();
    for query in 0..queries {
        for document in 0..documents {
            let value = (query * 31 + document * 17) % 101;
            text.push_str(&format!(
                "{} qid:{query} 1:{value} 2:{:.6} {}5:{} #docid = D{query}-{document}\n",
                value % 5,
                value as f64 / 7.0,
                if value % 3 == 0 { "3:-1.5e-3 " } else { "" },
                value % 2
            ));
        }
    }
    text
}

/// A row to learn from.
#[derive(Clone)]
pub struct Example {
    pub query: usize,
    pub label: f64,
    pub weight: f64,
    pub features: Vec<Option<f32>>,
}

/// Grades 0 to 4 that follow from the features: continuous, few-valued and sparse ones, one that is often missing, and
/// one that is constant.
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

/// Real-valued labels and features without equal values, so that the best split is unique.
pub fn untied(seed: u64, rows: usize, features: usize) -> Vec<Example> {
    let mut draw = Stream::new(&[seed]);
    let mut columns: Vec<Vec<f32>> = Vec::new();
    for _ in 0..features {
        let mut order: Vec<(u64, usize)> = (0..rows).map(|row| (draw.bits(), row)).collect();
        order.sort_unstable();
        // Neighbours are at least half a step apart: other tools may treat closer values as equal.
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

/// Examples as LETOR text, without weights.
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

/// Examples as CSV with weights.
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

/// Writes examples as LETOR text and converts it.
pub fn dataset(directory: &Path, name: &str, examples: &[Example], options: &str) {
    std::fs::write(directory.join(format!("{name}.txt")), as_letor(examples)).unwrap();
    run(directory, &format!("convert {name}.txt --output {name} {options}")).ok();
}

/// Writes examples as CSV with weights and converts it.
pub fn weighted_dataset(directory: &Path, name: &str, examples: &[Example], options: &str) {
    std::fs::write(directory.join(format!("{name}.csv")), as_csv(examples)).unwrap();
    run(directory, &format!("convert {name}.csv --output {name} {options}")).ok();
}

/// The same rows as one partition (`one`), many small ones (`many`) and a few uneven ones (`few`), each also with
/// weights (`weighted-one`, ...), and a validation set `vali`.
pub fn same_rows(directory: &Path) {
    let examples = graded(21, 120, 25);
    for (name, options) in
        [("one", ""), ("many", "--partition-rows 60"), ("few", "--partition-rows 1111 --threads 1")]
    {
        dataset(directory, name, &examples, options);
        weighted_dataset(directory, &format!("weighted-{name}"), &examples, options);
    }
    dataset(directory, "vali", &graded(22, 40, 15), "--partition-rows 100");
}

/// Datasets that training refuses or treats specially: `same` (every label 2), `flat` (equal labels within a query),
/// `unlabelled` (no label in every third row), `real` (60 different labels), `single` (one query).
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

/// A dataset `data` of 9,000 generated rows with the features of MSLR, in partitions of 1,000 rows.
pub fn mslr_dataset(directory: &Path) {
    run(directory, "sample --shape mslr --rows 15000 --output text").ok();
    run(directory, "convert text/train.txt --output data --partition-rows 1000").ok();
}

/// Parts of a real dataset, selected by a pattern such as `S[12]`, as one dataset.
pub fn real_dataset(directory: &Path, name: &str, folder: &Path, parts: &str) {
    run(directory, &format!("convert {}/{parts}.txt.gz --output {name}", folder.display())).ok();
}

/// Flips a bit in the first file of a dataset.
#[cfg(feature = "cluster")]
pub fn damage_dataset(dataset: &Path) {
    let manifest = std::fs::read_to_string(dataset.join("_manifest.json")).unwrap();
    let file = dataset.join(manifest.split('"').find(|word| word.ends_with(".parquet")).unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
}
