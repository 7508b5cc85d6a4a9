//! Tests that rewritten datasets have the rows that a naive loop gives, for all row groups and batches.

use super::*;
use crate::dataset::Categories;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float32Type, Int32Type};
use planetree_base::storage::digest_of;

/// A row of a dataset.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    query: String,
    document: Option<String>,
    label: f32,
    weight: f32,
    position: Option<i32>,
    features: Vec<Option<f32>>,
}

fn example_rows(queries: usize) -> Vec<Row> {
    let row = |query: usize, number: usize| Row {
        query: format!("q{query}"),
        document: (!number.is_multiple_of(3)).then(|| format!("d{number}")),
        label: ((query * 7 + number) % 5) as f32,
        weight: 1.0 + number as f32,
        position: (!number.is_multiple_of(4)).then_some(number as i32),
        features: (0..3)
            .map(|feature| (!number.is_multiple_of(feature + 2)).then(|| (query * feature) as f32))
            .collect(),
    };
    (0..queries).flat_map(|query| (0..1 + query * 5 % 90).map(move |number| row(query, number))).collect()
}

fn write_rows(target: &Location, rows: &[Row], partition_rows: usize) {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let layout = Layout { features: FeatureNames::Given(names), weight: true, position: true };
    let options =
        WriteOptions { partition_rows: Some(partition_rows), overwrite: true, source_format: "csv" };
    let mut writer = DatasetWriter::begin(target, layout.clone(), options).unwrap();
    let mut builder = BlockBuilder::default();
    for row in rows {
        builder.query(row.query.as_bytes(), 0);
        for (feature, value) in (0..).zip(&row.features) {
            value.iter().for_each(|value| builder.push_entry(feature, *value));
        }
        builder.finish_row(row.label, row.document.as_deref().map(str::as_bytes));
        builder.weight(row.weight);
        builder.position(row.position);
    }
    let mut grouper = Grouper::new(partition_rows, usize::MAX);
    let mut append = |group: RowGroup| writer.append(encode_group(&group, &layout).unwrap());
    grouper.push(Arc::new(builder.finish()), &mut |_, _| Ok(true), &mut append).unwrap();
    grouper.finish().map(&mut append).transpose().unwrap();
    let source = ManifestSource { format: "csv".to_owned(), bytes: 1, fingerprint: digest_of(b"x") };
    let words = vec!["w".to_owned()];
    let categories = vec![Categories { feature: "a".to_owned(), words }];
    writer.commit(Manifest { categories, ..Manifest::new(source) }).unwrap();
}

fn read_rows(reader: &DatasetReader) -> Vec<Row> {
    let mut rows = Vec::new();
    for id in reader.groups() {
        let group = reader.open_group(id).unwrap();
        let batch = group.read(0..group.columns()).unwrap();
        let text = |column: usize, row: usize| {
            let values = batch.column(column).as_string::<i32>();
            values.is_valid(row).then(|| values.value(row).to_owned())
        };
        let number = |column: usize, row: usize| {
            let values = batch.column(column).as_primitive::<Float32Type>();
            values.is_valid(row).then(|| values.value(row))
        };
        for row in 0..batch.num_rows() {
            let positions = batch.column(4).as_primitive::<Int32Type>();
            rows.push(Row {
                query: text(0, row).unwrap(),
                document: text(1, row),
                label: number(2, row).unwrap(),
                weight: number(3, row).unwrap(),
                position: positions.is_valid(row).then(|| positions.value(row)),
                features: (5..batch.num_columns()).map(|column| number(column, row)).collect(),
            });
        }
    }
    rows
}

/// Drops every fifth query, writes the first and last row of the others once more, and adds the row's number in the
/// dataset as a feature.
struct Example;

impl RowChange for Example {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        let first = group.first_row();
        let new = vec![(0..group.rows()).map(|row| (first + row as u64) as f32).collect()];
        Ok(RowValues { new, ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        if query.ends_with(['0', '5']) {
            return Ok(Vec::new());
        }
        let rows = (rows.end - rows.start) as usize;
        let again = RewrittenQuery { id: format!("{query}:again"), rows: vec![0, rows - 1] };
        Ok(vec![RewrittenQuery { id: query.to_owned(), rows: (0..rows).collect() }, again])
    }
}

fn expected(rows: &[Row]) -> Vec<Row> {
    let mut changed = Vec::new();
    let numbered: Vec<Row> = rows
        .iter()
        .enumerate()
        .map(|(number, row)| {
            let mut row = row.clone();
            row.features.push(Some(number as f32));
            row
        })
        .collect();
    for query in numbered.chunk_by(|one, other| one.query == other.query) {
        if query[0].query.ends_with(['0', '5']) {
            continue;
        }
        changed.extend_from_slice(query);
        for row in [&query[0], &query[query.len() - 1]] {
            changed.push(Row { query: format!("{}:again", row.query), ..row.clone() });
        }
    }
    changed
}

#[test]
fn rows_are_changed_query_by_query() {
    let room = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| Location::Local(room.path().join(name)));
    let rows = example_rows(60);
    let mut fingerprints = Vec::new();
    for partition_rows in [1, 100, 1 << 20] {
        write_rows(&from, &rows, partition_rows);
        let reader = DatasetReader::open(&from).unwrap();
        assert_eq!(read_rows(&reader), rows);
        let request = RewriteRequest {
            target: &to,
            overwrite: true,
            partition_rows: None,
            features: None,
            new_features: &["number".to_owned()],
            weights: WeightColumn::AsBefore,
            origin: digest_of(b"y"),
        };
        let manifest = rewrite(&reader, &request, &Example).unwrap();
        assert_eq!(manifest.features, ["a", "b", "c", "number"]);
        assert_eq!(manifest.categories, reader.manifest().categories);
        assert_eq!(manifest.source.fingerprint, digest_of(b"y"));
        let written = DatasetReader::open(&to).unwrap();
        assert_eq!(read_rows(&written), expected(&rows), "{partition_rows}");
        fingerprints.push(written.fingerprint().unwrap());
    }
    assert!(fingerprints.iter().all(|fingerprint| *fingerprint == fingerprints[0]), "{fingerprints:?}");
}

/// Writes the rows with an even number in the dataset, and changes their values.
struct Replacing;

impl RowChange for Replacing {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        let numbers = || (0..group.rows()).map(|row| group.first_row() + row as u64);
        let some = |number: u64| if number.is_multiple_of(6) { number as f32 } else { f32::NAN };
        Ok(RowValues {
            new: Vec::new(),
            replaced: vec![(2, numbers().map(some).collect()), (1, vec![9.0; group.rows()])],
            labels: Some(numbers().map(|number| (number % 3) as f32).collect()),
            weights: Some(numbers().map(|number| number as f32).collect()),
        })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let even = (0..).zip(rows).filter(|(_, row)| row % 2 == 0).map(|(place, _)| place).collect();
        Ok(vec![RewrittenQuery { id: query.to_owned(), rows: even }])
    }
}

#[test]
fn features_labels_and_weights_are_replaced() {
    let room = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| Location::Local(room.path().join(name)));
    let rows = example_rows(40);
    let even = || (0..).zip(&rows).filter(|(number, _)| number % 2 == 0);
    for (partition_rows, weights) in [(1, WeightColumn::Always), (70, WeightColumn::AsBefore)] {
        write_rows(&from, &rows, partition_rows);
        let reader = DatasetReader::open(&from).unwrap();
        let request = RewriteRequest {
            target: &to,
            overwrite: true,
            partition_rows: None,
            features: Some(&[1, 2]),
            new_features: &[],
            weights,
            origin: digest_of(b"z"),
        };
        let manifest = rewrite(&reader, &request, &Replacing).unwrap();
        assert_eq!(manifest.features, ["b", "c"]);
        assert!(manifest.categories.is_empty(), "the categorical feature was not kept");
        let expected = even().map(|(number, row)| Row {
            label: (number % 3) as f32,
            weight: number as f32,
            features: vec![Some(9.0), if number % 6 == 0 { Some(number as f32) } else { row.features[2] }],
            ..row.clone()
        });
        assert_eq!(read_rows(&DatasetReader::open(&to).unwrap()), expected.collect::<Vec<_>>());
    }
    let reader = DatasetReader::open(&from).unwrap();
    let request = RewriteRequest {
        target: &to,
        overwrite: true,
        partition_rows: None,
        features: None,
        new_features: &[],
        weights: WeightColumn::Never,
        origin: digest_of(b"z"),
    };
    assert!(!rewrite(&reader, &request, &Replacing).unwrap().weight);
}
