//! Rows written as text are read back unchanged, however the text is split, and arbitrary lines result in a
//! row or an error.

use crate::support::*;
use planetree::ingest::decode::letor::LetorDecoder;
use planetree::ingest::decode::{Decoder, Lines};
use planetree::random::Stream;
use planetree::rows::Block;
use planetree::rows::BlockBuilder;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        (-1000i32..1000).prop_map(|whole| whole as f32),
        (0u32..2_000_000).prop_map(|millionths| millionths as f32 / 1e6),
        prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
    ]
}

/// Label, query, document, and five feature values.
type WrittenRow = (u8, u8, Option<u16>, Vec<Option<f32>>);

fn rows() -> impl Strategy<Value = Vec<WrittenRow>> {
    prop::collection::vec(
        (0u8..5, 0u8..3, prop::option::of(any::<u16>()), prop::collection::vec(prop::option::of(value()), 5)),
        1..40,
    )
}

/// Formats a number in one of several common notations.
fn formatted(value: f32, notation: u64) -> String {
    match notation % 4 {
        0 => format!("{value}"),
        1 => format!("{value:e}"),
        2 => format!("{value:.60}"),
        _ => format!("{:E}", f64::from(value)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_written_as_text_are_read_back_unchanged(rows in rows(), spelling in any::<u64>()) {
        let mut text = String::new();
        let mut expected = Vec::new();
        let mut draw = Stream::new(&[spelling]);
        for (number, (label, query, document, cells)) in rows.iter().enumerate() {
            // Queries come in runs with distinct names.
            let query = format!("q{}-{query}", number / 7 * 3);
            if expected.iter().rev().skip_while(|row: &&DatasetRow| row.query == query).any(|row| row.query == query) {
                continue;
            }
            text.push_str(&format!("{label} qid:{query}"));
            for (feature, cell) in cells.iter().enumerate() {
                if let Some(cell) = cell {
                    text.push_str(&format!(" {}:{}", feature + 1, formatted(*cell, draw.bits())));
                }
            }
            if let Some(document) = document {
                text.push_str(&format!(" #docid = {document}"));
            }
            text.push('\n');
            expected.push(DatasetRow {
                query,
                document: document.map(|id| id.to_string()),
                label: Some(f32::from(*label)),
                features: cells.clone(),
            });
        }
        let temporary = room();
        std::fs::write(temporary.path().join("in.txt"), &text).unwrap();
        run(temporary.path(), "convert in.txt --output out --partition-rows 5").ok();
        let bits = |rows: &[DatasetRow]| -> Vec<_> {
            rows.iter().map(|row| {
                let mut cells: Vec<Option<u32>> = row.features.iter().map(|cell| cell.map(f32::to_bits)).collect();
                cells.resize(5, None);
                (row.query.clone(), row.document.clone(), row.label, cells)
            }).collect()
        };
        prop_assert_eq!(bits(&rows_of(&temporary.path().join("out"))), bits(&expected));
    }
}

fn decoder(lenient: bool) -> LetorDecoder {
    LetorDecoder { index_base: 1, max_features: 10_000, lenient, query_in_line: true, unlabelled: false }
}

fn decode(decoder: &LetorDecoder, text: &[u8]) -> Option<Block> {
    let mut builder = BlockBuilder::default();
    decoder.decode(Lines { text, first_line: 1 }, &mut builder).ok()?;
    Some(builder.finish())
}

/// A million valid lines with some bytes changed, removed, doubled or swapped.
#[test]
fn a_million_mutated_lines_give_a_row_or_an_error() {
    let good: Vec<String> = some_text(40, 5).lines().map(|line| format!("{line}\n")).collect();
    let replacements: [&[u8]; 16] = [
        b"nan",
        b"NULL",
        b"inf",
        b"1e400",
        b"-",
        b":",
        b"#",
        b"qid:",
        b"\t",
        b"\r",
        b"\0",
        b"\xFF\xFE",
        b"99999999999",
        b"0x",
        b".",
        b"  ",
    ];
    let (strict, lenient) = (decoder(false), decoder(true));
    let (mut rows, mut errors) = (0u32, 0u32);
    let mut draw = Stream::new(&[20_261_116]);
    for number in 0..1_000_000u32 {
        let mut line = good[number as usize % good.len()].clone().into_bytes();
        for _ in 0..=draw.bits() % 3 {
            let at = (draw.bits() % line.len() as u64) as usize;
            let other = (draw.bits() % line.len() as u64) as usize;
            match draw.bits() % 6 {
                0 => line[at] = draw.bits() as u8,
                1 => line.truncate(at),
                2 => line.swap(at, other),
                3 => {
                    let word = replacements[(draw.bits() % 16) as usize];
                    line.splice(at..at, word.iter().copied());
                }
                4 => {
                    line.remove(at);
                }
                _ => {
                    let (from, to) = (at.min(other), at.max(other));
                    let copy = line[from..to].to_vec();
                    line.splice(at..at, copy);
                }
            }
            if line.is_empty() {
                break;
            }
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        match decode(&strict, &line) {
            Some(block) => {
                rows += block.rows() as u32;
                assert!(block.labels.iter().all(|label| label.is_nan() || *label >= 0.0));
            }
            None => errors += 1,
        }
        assert!(decode(&lenient, &line).is_some());
    }
    assert!(rows > 100_000 && errors > 100_000, "{rows} rows, {errors} errors");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Rows do not depend on how the text is split into chunks of lines.
    #[test]
    fn rows_do_not_depend_on_chunks(cuts in prop::collection::vec(0usize..200, 0..6)) {
        let text = some_text(20, 10);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let whole = decode(&decoder(false), text.as_bytes()).unwrap();
        let mut cuts = cuts;
        cuts.extend([0, lines.len()]);
        cuts.sort_unstable();
        let mut labels = Vec::new();
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); whole.features.width()];
        for pair in cuts.windows(2) {
            let part = decode(&decoder(false), lines[pair[0]..pair[1]].concat().as_bytes()).unwrap();
            labels.extend_from_slice(&part.labels);
            for (feature, values) in values.iter_mut().enumerate() {
                values.extend_from_slice(part.features.column(feature).values);
            }
        }
        prop_assert_eq!(&labels, &whole.labels);
        for (feature, values) in values.iter().enumerate() {
            prop_assert_eq!(values.as_slice(), whole.features.column(feature).values);
        }
    }
}
