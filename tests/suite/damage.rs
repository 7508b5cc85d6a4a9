//! A flipped byte anywhere in a dataset is an error that names the file, never a wrong value.

use crate::support::*;
use planetree::dataset::DatasetReader;
use planetree::random::Stream;
use planetree::storage::{Access, Location};
use std::fs;

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
