//! Tests that a table reads back as it was written, and that a damaged table is rejected.

use super::*;
use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use planetree_base::storage::Location;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn rows(range: std::ops::Range<i32>) -> RecordBatch {
    let names: StringArray =
        range.clone().map(|row| (row % 3 != 0).then(|| format!("q{}", row / 7))).collect();
    let scores = Float64Array::from_iter_values(range.clone().map(|row| f64::from(row).sqrt()));
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("query_id", Arc::new(names), true),
        ("score", Arc::new(scores), false),
        ("rank", Arc::new(Int32Array::from_iter_values(range)), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn write(location: &Location, batches: &[RecordBatch]) -> planetree_base::error::Result<()> {
    let schema: SchemaRef = batches[0].schema();
    let mut writer = TableWriter::create(location, TableKind::Predictions, schema)?;
    writer.set_metadata("key", "zebra".to_owned());
    for batch in batches {
        writer.write(batch)?;
    }
    writer.set_metadata("key", "value".to_owned());
    writer.finish()
}

fn problem(location: &Location, kind: TableKind) -> String {
    TableReader::open(location, kind).err().expect("the file should be rejected").to_string()
}

fn place(root: &Path, name: &str) -> Location {
    Location::Local(root.join(name))
}

#[test]
fn a_table_reads_back_from_any_storage() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(object_store::memory::InMemory::new());
    for location in [place(root.path(), "table"), Location::in_memory(&store, "runs/table")] {
        assert_eq!(TableReader::kind_of(&location).unwrap(), None);
        let written = rows(0..200_000);
        write(&location, std::slice::from_ref(&written)).unwrap();
        assert_eq!(TableReader::kind_of(&location).unwrap(), Some(TableKind::Predictions));
        let table = TableReader::open(&location, TableKind::Predictions).unwrap();
        assert_eq!(table.metadata("key"), Some("value"));
        assert!(table.metadata("planetree.writer").unwrap().starts_with("planetree "));
        assert_eq!((table.rows(), table.schema()), (200_000, &written.schema()));
        let batches: Vec<_> = table.batches().collect::<Result<_, _>>().unwrap();
        assert!(concat_batches(&written.schema(), &batches).unwrap() == written);
        // A table of the same kind is replaced, but a table of another kind is not.
        assert!(TableWriter::create(&location, TableKind::Model, written.schema()).is_err());
        assert!(TableWriter::check(&location, TableKind::Model).is_err());
        TableWriter::create(&location, TableKind::Predictions, written.schema()).unwrap().finish().unwrap();
        let empty = TableReader::open(&location, TableKind::Predictions).unwrap();
        assert_eq!((empty.rows(), empty.batches().count()), (0, 0));
    }
}

#[test]
fn large_tables_have_several_row_groups() {
    let root = tempfile::tempdir().unwrap();
    let location = place(root.path(), "table");
    let total = (1 << 20) + 70_001;
    let written = rows(0..total);
    write(&location, std::slice::from_ref(&written)).unwrap();
    assert!(location.size().unwrap().unwrap() > 8 << 20, "large enough not to be held in memory");
    let table = TableReader::open(&location, TableKind::Predictions).unwrap();
    let batches: Vec<_> = table.batches().collect::<Result<_, _>>().unwrap();
    assert!(concat_batches(&written.schema(), &batches).unwrap() == written);
}

#[test]
fn batching_does_not_change_the_bytes() {
    let root = tempfile::tempdir().unwrap();
    let total = 150_000;
    let mut files = Vec::new();
    for step in [total, 65_536, 7_919] {
        let location = place(root.path(), &step.to_string());
        let batches: Vec<_> =
            (0..total).step_by(step as usize).map(|start| rows(start..(start + step).min(total))).collect();
        write(&location, &batches).unwrap();
        files.push(location.read_all().unwrap().unwrap());
    }
    assert!(files[0] == files[1] && files[0] == files[2]);
}

#[test]
fn any_damaged_byte_and_any_truncation_is_detected() {
    let root = tempfile::tempdir().unwrap();
    let (location, path) = (place(root.path(), "table"), root.path().join("table"));
    write(&location, &[rows(0..20)]).unwrap();
    let bytes = fs::read(&path).unwrap();
    for place in 0..bytes.len() {
        for flip in [0x01, 0x20, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            fs::write(&path, &damaged).unwrap();
            let problem = problem(&location, TableKind::Predictions);
            assert!(problem.contains("damaged: "), "byte {place}: {problem}");
            let _ = TableReader::kind_of(&location).unwrap();
        }
    }
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let problem = problem(&location, TableKind::Predictions);
        let expected = if length < 4 { "not a Parquet file" } else { "damaged: " };
        assert!(problem.contains(expected), "{length} bytes: {problem}");
    }
    fs::write(&path, [bytes.as_slice(), b"x"].concat()).unwrap();
    assert!(problem(&location, TableKind::Predictions).contains("damaged: "));
    fs::write(&path, &bytes).unwrap();
    assert!(TableReader::open(&location, TableKind::Predictions).is_ok());
}

#[test]
fn other_files_are_rejected() {
    let root = tempfile::tempdir().unwrap();
    let location = place(root.path(), "table");
    assert!(problem(&location, TableKind::Model).contains("cannot open"));
    assert!(problem(&place(root.path(), ""), TableKind::Model).ends_with("it is a directory"));
    write(&location, &[rows(0..20)]).unwrap();
    assert!(problem(&location, TableKind::Model).ends_with("this is predictions, not a model"));
    fs::write(root.path().join("text"), "one two three").unwrap();
    let text = place(root.path(), "text");
    assert!(problem(&text, TableKind::Model).ends_with("not a planetree model: it is not a Parquet file"));
    let foreign = place(root.path(), "foreign");
    let file = fs::File::create(root.path().join("foreign")).unwrap();
    let batch = rows(0..20);
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(problem(&foreign, TableKind::Model).contains("not a planetree model: not created by planetree"));
    for stranger in [text, foreign] {
        let before = stranger.read_all().unwrap();
        let error = write(&stranger, &[rows(0..20)]).unwrap_err();
        assert!(
            error.to_string().ends_with("refusing to overwrite: not created by planetree, or damaged"),
            "{error}"
        );
        assert!(stranger.read_all().unwrap() == before);
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3, "nothing is left behind");
    fs::write(root.path().join("table"), "").unwrap();
    write(&location, &[rows(0..20)]).unwrap();
}

#[test]
fn metadata_that_looks_like_a_checksum_is_harmless() {
    let root = tempfile::tempdir().unwrap();
    let location = place(root.path(), "table");
    let batch = rows(0..3);
    let mut writer = TableWriter::create(&location, TableKind::Rounds, batch.schema()).unwrap();
    writer.set_metadata("zzz", format!("planetree.xxh3\u{18} {}", "7".repeat(40)));
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let table = TableReader::open(&location, TableKind::Rounds).unwrap();
    assert!(table.metadata("zzz").unwrap().ends_with("777"));
}

#[test]
fn a_batch_with_different_columns_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    let location = place(root.path(), "table");
    let schema = rows(0..3).schema();
    let mut writer = TableWriter::create(&location, TableKind::Rounds, schema).unwrap();
    assert!(writer.write(&rows(0..3).project(&[0, 2]).unwrap()).is_err());
}
