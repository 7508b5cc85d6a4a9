//! Tests that a dataset does not depend on how its input is split into chunks.

use super::*;
use crate::ingest::{IngestOptions, Input};

/// Converts text in chunks of about `chunk_bytes` bytes. Returns the bytes of the manifest, or the error message.
fn converted(text: &str, chunk_bytes: usize) -> Result<Vec<u8>, String> {
    let temporary = tempfile::tempdir().unwrap();
    let (input, output) = (temporary.path().join("in"), Location::Local(temporary.path().join("out")));
    std::fs::write(&input, text).unwrap();
    let ingest = IngestOptions { chunk_bytes, ..IngestOptions::default() };
    let options = ConvertOptions { threads: 1, memory_limit: MIN_MEMORY, ..ConvertOptions::new(output) };
    let named = Input { name: "in".to_owned(), ..Input::at(Location::Local(input)) };
    let converted =
        Ingest::open(vec![named], ingest).and_then(|ingest| convert(ingest, &options, &mut |_| {}));
    converted.map(|manifest| manifest.to_bytes()).map_err(|error| error.to_string())
}

#[test]
fn chunking_does_not_change_the_dataset() {
    for text in [
        "qid,label,a,b\n1,0,x,0.5\n1,1,y,0.25\n2,0,x,-3\n2,1,z,0.934",
        "qid;label;a;b\n1;0;\"x\n;y\";0,5\n1;1;\"say \"\"z\"\"\";0,25\n2;0;x;7",
        "2 qid:1 1:0.5 2:1\n0 qid:1 3:2 #d = 1\n\n1 qid:2 1:0.934",
        "qid,label,a\n1,0,x\n1,1,0.934",
        "qid,label,a\n1,0,0.5\n1,1,x",
    ] {
        for end in ["", "\n", "\r\n"] {
            let text = format!("{text}{end}");
            let whole = converted(&text, 1 << 20);
            for chunk_bytes in 1..=text.len() + 1 {
                assert_eq!(converted(&text, chunk_bytes), whole, "{text:?} in chunks of {chunk_bytes}");
            }
        }
        // A final newline does not change the rows.
        let rows = |end: &str| {
            converted(&format!("{text}{end}"), 1 << 20).map(|manifest| {
                let manifest = Manifest::from_bytes(&manifest, &Location::Local("m".into())).unwrap();
                (manifest.fingerprint, manifest.categories)
            })
        };
        assert_eq!(rows(""), rows("\n"), "{text:?}");
    }
}

#[test]
fn a_number_in_a_categorical_column_is_an_error_on_any_line() {
    // The file is larger than 1 MiB, and the detection of categorical columns examines only the first MiB.
    let words: String = (0..100_000).map(|row| format!("{},0,word{}\n", row / 100, row % 7)).collect();
    let text = format!("qid,label,a\n{words}");
    assert!(text.len() > 1 << 20);
    assert!(converted(&text, 1 << 16).is_ok());
    let problem = converted(&format!("{text}9999,1,0.934"), 1 << 16).unwrap_err();
    assert_eq!(problem, "in:100002:8: found \"0.934\", expected text, as in the previous lines");
}
