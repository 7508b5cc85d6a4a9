//! Tests of the decoder of LETOR text.

use super::*;
use crate::rows::Block;

fn decoder() -> LetorDecoder {
    LetorDecoder {
        index_base: 1,
        max_features: 10_000,
        lenient: false,
        query_in_line: true,
        unlabelled: false,
    }
}

fn decode(decoder: &LetorDecoder, text: &str) -> Result<Block, Fault> {
    let mut builder = BlockBuilder::default();
    decoder.decode(Lines { text: text.as_bytes(), first_line: 1 }, &mut builder)?;
    Ok(builder.finish())
}

/// The label, query id, document id and entries of a row.
type LetorRow = (f32, String, Option<String>, Vec<(usize, f32)>);

fn rows(block: &Block) -> Vec<LetorRow> {
    let mut rows = Vec::new();
    for run in 0..block.runs.len() {
        for row in block.runs[run].first_row as usize..block.run_end(run) {
            let mut entries = Vec::new();
            for feature in 0..block.features.width() {
                let column = block.features.column(feature);
                let bit = |row: usize| column.present.has(row);
                if bit(row) {
                    entries.push((feature + 1, column.values[(0..row).filter(|row| bit(*row)).count()]));
                }
            }
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            rows.push((
                block.labels[row],
                text(block.run_name(run)),
                block.documents.get(row).map(text),
                entries,
            ));
        }
    }
    rows
}

#[test]
fn equivalent_spellings_give_the_same_row() {
    let plain = rows(&decode(&decoder(), "2 qid:10 1:0.5 3:-7\n").unwrap());
    assert_eq!(plain, vec![(2.0, "10".into(), None, vec![(1, 0.5), (3, -7.0)])]);
    for text in [
        "2\tqid:10\t1:0.5\t3:-7\n",
        "  2  qid:10   1:0.5  3:-7   \r\n",
        "2.0 qid:10 3:-7.000 1:5e-1\n",
        "+2 qid:10 1:.5 2:NULL 3:-7 # two words\n",
        "\n# a comment 1:9\n\n2 qid:10 1:0.50000000000000000000 3:-7#\n\n",
        "2 qid:10 1:0.5 3:-0000000000000007\n",
    ] {
        assert_eq!(rows(&decode(&decoder(), text).unwrap()), plain, "{text:?}");
    }
}

#[test]
fn document_ids_come_from_the_comment() {
    for (comment, id) in [
        ("#docid = GX000-00-0000000 inc = 1 prob = 0.0246906", Some("GX000-00-0000000")),
        ("#docid=7", Some("7")),
        ("# D7", Some("D7")),
        ("# docid7", Some("docid7")),
        ("#", None),
        ("# free words", None),
        ("#docid = ", None),
    ] {
        let block = decode(&decoder(), &format!("0 qid:1 1:1 {comment}\r\n")).unwrap();
        assert_eq!(block.documents.get(0), id.map(str::as_bytes), "{comment}");
    }
}

#[test]
fn faults_report_line_column_and_token() {
    for (line, kind, column, found) in [
        ("", None, 0, ""),
        ("x qid:1 1:1", Some(FaultKind::LabelMalformed), 1, "\"x\""),
        ("nan qid:1 1:1", Some(FaultKind::LabelNotFinite), 1, "\"nan\""),
        ("-2 qid:1 1:1", Some(FaultKind::LabelNegative), 1, "\"-2\""),
        ("1 1:1", Some(FaultKind::QueryMissing), 3, "\"1:1\""),
        ("1", Some(FaultKind::QueryMissing), 2, "the end of the line"),
        ("1 qid: 1:1", Some(FaultKind::QueryEmpty), 3, "\"qid:\""),
        ("1 qid:1 1:1 2", Some(FaultKind::ColonMissing), 13, "\"2\""),
        ("1 qid:1 a:1", Some(FaultKind::IndexMalformed), 9, "\"a:1\""),
        ("1 qid:1 -1:1", Some(FaultKind::IndexMalformed), 9, "\"-1:1\""),
        ("1 qid:1 0:1", Some(FaultKind::IndexZero), 9, "\"0:1\""),
        ("1 qid:1 10001:1", Some(FaultKind::IndexTooLarge), 9, "\"10001:1\""),
        ("1 qid:1 99999999999999999999:1", Some(FaultKind::IndexTooLarge), 9, "\"99999999999999999999:1\""),
        ("1 qid:1 2:1 1:1 2:2", Some(FaultKind::IndexRepeated), 17, "\"2:2\""),
        ("1 qid:1 1: 2:1", Some(FaultKind::ValueEmpty), 9, "\"1:\""),
        ("1 qid:1 1:0.5x", Some(FaultKind::ValueMalformed), 11, "\"0.5x\""),
        ("1 qid:1 1:0x1F", Some(FaultKind::ValueMalformed), 11, "\"0x1F\""),
        ("1 qid:1 1:inf 2:-inf", None, 0, ""),
        ("inf qid:1 1:1", Some(FaultKind::LabelNotFinite), 1, "\"inf\""),
        ("1 qid:1 1:1e39", Some(FaultKind::ValueTooLarge), 11, "\"1e39\""),
        ("\u{0}\u{1} 1:1e39", Some(FaultKind::NotText), 1, "\"\\0\\u{1}\""),
    ] {
        let text = format!("0 qid:1 1:1\n\n{line}\n1 qid:1 2:3\n");
        match (decode(&decoder(), &text), kind) {
            (Ok(_), None) => {}
            (Err(fault), Some(kind)) => {
                assert_eq!(fault, Fault { kind, line: 3, column, found: found.to_owned() }, "{line}")
            }
            (other, _) => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn lenient_repairs_what_it_can_and_skips_the_rest() {
    let lenient = LetorDecoder { lenient: true, ..decoder() };
    let text = "1 qid:1 1:1 2:2 1:3\n-5 qid:1 1:x 2:5\nrubbish\n1 qid:2 a:1\n0 qid:3 1:1\n";
    let block = decode(&lenient, text).unwrap();
    let rows = rows(&block);
    assert_eq!(rows[0].3, vec![(1, 3.0), (2, 2.0)]);
    assert!(rows[1].0.is_nan());
    assert_eq!(rows[1].3, vec![(2, 5.0)]);
    assert_eq!((rows[2].1.as_str(), rows.len()), ("3", 3));
    let counts: Vec<_> = block.repairs.by_kind().map(|(entry, count)| (entry.name, count)).collect();
    assert_eq!(
        counts,
        [
            ("label-malformed", 1),
            ("label-negative", 1),
            ("index-malformed", 1),
            ("index-repeated", 1),
            ("value-malformed", 1)
        ]
    );
}

#[test]
fn a_query_id_is_kept_as_written() {
    for id in ["0.5", "-7", "a#b", "caf\u{e9}", "18446744073709551616"] {
        let block = decode(&decoder(), &format!("1 qid:{id} 1:2 #d\n")).unwrap();
        assert_eq!((block.run_name(0), block.features.entries()), (id.as_bytes(), 1));
    }
}

#[test]
fn index_base_zero_shifts_every_feature() {
    let base0 = LetorDecoder { index_base: 0, ..decoder() };
    let block = decode(&base0, "1 qid:1 0:5 1:6\n").unwrap();
    assert_eq!(rows(&block)[0].3, vec![(1, 5.0), (2, 6.0)]);
}
