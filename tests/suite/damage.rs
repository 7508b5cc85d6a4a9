//! A flipped byte anywhere in a dataset is an error that names the file, never a wrong value.

use crate::support::*;
use planetree::dataset::DatasetReader;
use planetree::random::Stream;
use planetree::storage::{Access, Location, digest_of};
use std::fs;
use std::path::Path;

#[test]
fn flipped_bytes_at_two_thousand_positions_are_detected() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(300, 20)).unwrap();
    run(temporary.path(), "convert in.txt --output out --partition-rows 1000").ok();
    let dataset = temporary.path().join("out");
    let location = Location::parse(dataset.to_str().unwrap(), Access::Explicit).unwrap();
    let files = files_of(&dataset);
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut draw = Stream::new(&[2000]);
    for number in 0..2000u64 {
        // Spread evenly over all files, so that every part of the format is covered.
        let mut place = (number as usize * total / 2000 + (draw.bits() % 97) as usize) % total;
        let (name, bytes) = files
            .iter()
            .find(|(_, bytes)| {
                let here = place < bytes.len();
                place -= if here { 0 } else { bytes.len() };
                here
            })
            .unwrap();
        let mut damaged = bytes.clone();
        damaged[place] ^= (draw.bits() % 255 + 1) as u8;
        fs::write(dataset.join(name), &damaged).unwrap();
        let outcome = DatasetReader::open(&location).and_then(|reader| {
            reader.groups().into_iter().try_for_each(|id| reader.open_group(id)?.read_all().map(drop))
        });
        let error = outcome.expect_err(&format!("byte {place} of {name} went unnoticed"));
        assert!(error.to_string().contains(name.as_str()), "{error}");
        fs::write(dataset.join(name), bytes).unwrap();
    }
    rows_of(&dataset);
}

#[test]
fn damaged_missing_and_truncated_files_are_named() {
    let temporary = room();
    fs::write(temporary.path().join("in.txt"), some_text(300, 20)).unwrap();
    run(temporary.path(), "convert in.txt --output out").ok();
    let dataset = temporary.path().join("out");
    let (name, bytes) = files_of(&dataset).into_iter().find(|(name, _)| name.ends_with(".parquet")).unwrap();
    let expect_error = |arguments: &str, problem: &str| {
        let stderr = run(temporary.path(), arguments).failed().stderr;
        let expected = format!("error: out/{name}: damaged: {problem}");
        assert!(stderr.starts_with(&expected), "{stderr}");
        assert!(
            stderr.ends_with("help: restore the file from a copy, or convert the data again\n"),
            "{stderr}"
        );
    };
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3] ^= 1;
    fs::write(dataset.join(&name), damaged).unwrap();
    expect_error("describe out", "bytes 0..");
    expect_error("convert out --output again", "bytes 0..");
    fs::write(dataset.join(&name), &bytes[..bytes.len() - 1]).unwrap();
    expect_error("describe out", "the file is truncated");
    fs::remove_file(dataset.join(&name)).unwrap();
    expect_error("describe out", "the file is missing");
}

#[test]
fn numbers_of_a_manifest_are_compared_with_the_files() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(30, 10)).unwrap();
    run(room.path(), "convert in.txt --output data").ok();
    let file = room.path().join("data/_manifest.json");
    let intact = fs::read_to_string(&file).unwrap();
    let (body, _) = intact.rsplit_once(",\n  \"xxh3\": \"").unwrap();
    for (rows, problem) in [
        (301, "damaged: its numbers of rows differ from those of the manifest"),
        (1 << 20, "damaged: its numbers of rows differ from those of the manifest"),
        (1 << 32, "invalid manifest: a row group of"),
        (u64::MAX, "invalid manifest: a row group of"),
    ] {
        let body = body.replace("\"rows\": 300,", &format!("\"rows\": {rows},"));
        let digest = digest_of(format!("{body}\n}}").as_bytes());
        fs::write(&file, format!("{body},\n  \"xxh3\": \"{digest}\"\n}}\n")).unwrap();
        for arguments in ["describe data", "train --data data --model m --set num_trees=1"] {
            let (stderr, peak) = peak_of(room.path(), arguments);
            assert!(stderr.contains(problem), "{arguments}: {rows}: {stderr}");
            assert!(peak < 300, "{arguments}: {rows}: {peak} MiB");
        }
    }
}

#[test]
fn counts_of_queries_are_those_of_the_files() {
    let room = room();
    fs::write(room.path().join("in.txt"), some_text(30, 10)).unwrap();
    run(room.path(), "convert in.txt --output data").ok();
    let file = room.path().join("data/_manifest.json");
    let intact = fs::read_to_string(&file).unwrap();
    let (body, _) = intact.rsplit_once(",\n  \"xxh3\": \"").unwrap();
    let body = body.replace("\"rows\": 300,", "\"rows\": 301,");
    let digest = digest_of(format!("{body}\n}}").as_bytes());
    fs::write(&file, format!("{body},\n  \"xxh3\": \"{digest}\"\n}}\n")).unwrap();
    let stderr = sql::sql_in(room.path(), "", "SELECT count(*) FROM 'data'", &[]).failed().stderr;
    assert!(stderr.contains("damaged: its numbers of rows differ from those of the manifest"), "{stderr}");
    fs::write(&file, intact).unwrap();
    let count = sql::sql_in(room.path(), "--format csv", "SELECT count(*) FROM 'data'", &[]).ok().stdout;
    assert_eq!(count.lines().last(), Some("300"));
}

/// Writes `in.parquet` with checksums of its pages, and returns its bytes.
fn write_with_checksums(room: &Path) -> Option<Vec<u8>> {
    let python = python()?;
    let script = "import pyarrow as pa, pyarrow.parquet as pq\n\
                  rows = range(3000)\n\
                  table = pa.table({'query_id': [f'q{row // 10}' for row in rows], 'label': [row % 3 for row in rows], 'f1': [row * 0.5 for row in rows]})\n\
                  pq.write_table(table, 'in.parquet', write_page_checksum=True, data_page_size=4096, compression='zstd')\n";
    let mut command = std::process::Command::new(python);
    assert!(command.current_dir(room).args(["-c", script]).status().unwrap().success());
    Some(fs::read(room.join("in.parquet")).unwrap())
}

/// Changes one byte of the pages.
fn with_a_flip(intact: &[u8], draw: &mut Stream) -> (usize, Vec<u8>) {
    let mut bytes = intact.to_vec();
    let place = 4 + (draw.bits() % (intact.len() as u64 * 3 / 4)) as usize;
    bytes[place] ^= (draw.bits() % 255 + 1) as u8;
    (place, bytes)
}

#[test]
fn checksums_of_pages_in_parquet_files_of_others_are_verified() {
    let room = room();
    let Some(intact) = write_with_checksums(room.path()) else { return };
    run(room.path(), "convert in.parquet --output whole").ok();
    let mut draw = Stream::new(&[77]);
    let mut refused = 0;
    for case in 0..60 {
        let (place, bytes) = with_a_flip(&intact, &mut draw);
        fs::write(room.path().join("in.parquet"), &bytes).unwrap();
        let ran = run(room.path(), &format!("convert in.parquet --output out{case}"));
        if ran.code == 0 {
            // Bytes of a header that mean nothing to a reader, such as statistics.
            assert!(
                rows_of(&room.path().join(format!("out{case}"))) == rows_of(&room.path().join("whole")),
                "byte {place}"
            );
            continue;
        }
        let stderr = ran.failed().stderr;
        refused += usize::from(stderr.contains("does not match its checksum"));
    }
    assert!(refused > 30, "{refused} of 60 were refused by their checksum");
}

#[test]
fn queries_verify_checksums_of_pages_in_parquet_files_of_others() {
    let room = room();
    let Some(intact) = write_with_checksums(room.path()) else { return };
    let query = |text: &str| sql::sql_in(room.path(), "--format csv", text, &[]);
    let all = "SELECT * FROM 'in.parquet'";
    let expected = query(all).ok().stdout;
    let mut draw = Stream::new(&[78]);
    let mut refused = 0;
    for _ in 0..40 {
        let (place, bytes) = with_a_flip(&intact, &mut draw);
        fs::write(room.path().join("in.parquet"), &bytes).unwrap();
        let ran = query(all);
        if ran.code == 0 {
            assert!(ran.stdout == expected, "byte {place}");
            continue;
        }
        let stderr = ran.failed().stderr;
        assert!(stderr.contains("error: ") && stderr.contains("help: "), "{stderr}");
        refused += usize::from(stderr.contains("CRC"));
    }
    assert!(refused > 20, "{refused} of 40 were refused by their checksum");
}

#[test]
fn panics_of_the_decoder_are_errors_without_the_text_of_rust() {
    let room = room();
    // Files of pyarrow in which single bytes were changed.
    fs::write(room.path().join("type.parquet"), include_bytes!("../fixtures/parquet/unknown_type.parquet"))
        .unwrap();
    let lengths = include_bytes!("../fixtures/parquet/contradicting_lengths.parquet");
    fs::write(room.path().join("lengths.parquet"), lengths).unwrap();
    for (arguments, problem) in [
        ("convert type.parquet --output out", "invalid Parquet file"),
        ("convert lengths.parquet --output out", "invalid Parquet file"),
        ("train --data lengths.parquet --model m --set num_trees=1", "invalid Parquet file"),
        ("sql -c SELECT*FROM'type.parquet'", "a file of the query is damaged"),
        ("sql -c SELECT*FROM'lengths.parquet'", "a file of the query is damaged"),
    ] {
        let stderr = run(room.path(), &format!("--log debug {arguments}")).failed().stderr;
        assert!(stderr.contains("debug: caught a panic at "), "{arguments}: the decoder no longer panics");
        assert!(stderr.contains(problem) && stderr.contains("\n  help: "), "{arguments}: {stderr}");
        let stderr = run(room.path(), arguments).failed().stderr;
        assert!(stderr.starts_with("error: ") && !stderr.contains("panicked at"), "{arguments}: {stderr}");
        assert!(!stderr.contains("index"), "{arguments}: the cause belongs to the log: {stderr}");
        assert_eq!(names_in(room.path()), ["lengths.parquet", "type.parquet"], "{arguments}");
    }
}
