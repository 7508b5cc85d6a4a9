//! Compact binned data have the same codes and the same row hashes, in less memory.

use super::{BinOptions, BinnedData, GroupKind};
use crate::config::MissingPolicy;
use planetree_base::error::Result;
use planetree_base::random::Stream;
use planetree_data::convert::convert_text;
use planetree_data::ingest::InputFormat;
use planetree_data::source::LabelledData;
use std::fmt::Write;

/// Features with many values, then features with few values.
const FEATURES: [usize; 2] = [48, 22];

/// Rows of all features; every tenth value is missing.
fn text(rows: usize) -> String {
    let mut stream = Stream::new(&[5]);
    let mut text = "query_id,label".to_owned();
    (0..FEATURES[0] + FEATURES[1]).for_each(|feature| write!(text, ",x{feature}").unwrap());
    for row in 0..rows {
        write!(text, "\nq{},{}", row / 10, row % 4).unwrap();
        for feature in 0..FEATURES[0] + FEATURES[1] {
            text.push(',');
            let value = if feature < FEATURES[0] { stream.normal() } else { (stream.bits() % 9) as f64 };
            if stream.uniform() < 0.9 {
                write!(text, "{value}").unwrap();
            }
        }
    }
    text + "\n"
}

#[test]
fn compact_bins_have_the_same_codes_in_less_memory() {
    let room = tempfile::tempdir().unwrap();
    let data = convert_text(room.path(), "data", &text(2_000), InputFormat::Csv, 500).unwrap();
    let mut source = LabelledData::open(&data, None).unwrap();
    let options =
        BinOptions { max_bin: Some(255), missing: MissingPolicy::Learned, sparse: true, by_query: false };
    assert!(options.may_be_compact());
    let mut binned = |bin: fn(&LabelledData, &BinOptions) -> Result<BinnedData>| {
        source.hash_rows();
        let data = bin(&source, &options).unwrap();
        (data, source.take_row_hashes())
    };
    let (twice, expected) = binned(BinnedData::in_memory);
    let (once, found) = binned(BinnedData::in_memory_compact);
    assert!(found == expected && found.is_some());
    assert_eq!(once.rows, twice.rows);
    assert_eq!(once.binning.features, twice.binning.features);
    for kind in [GroupKind::Dense, GroupKind::Joint] {
        assert!(twice.binning.layout.groups.iter().any(|group| group.kind == kind), "{kind:?}");
    }
    let mut bytes = [0, 0];
    for partition in 0..twice.partitions() {
        let codes = [&twice, &once].map(|data| data.all_codes(partition).unwrap());
        for (feature, bins) in twice.binning.features.iter().enumerate() {
            let place = |data: &BinnedData| data.binning.layout.places[feature].unwrap();
            let (column, compact) =
                (codes[0].column(place(&twice), bins), codes[1].column(place(&once), bins));
            for row in 0..twice.rows[partition].len() as u32 {
                assert_eq!(compact.code(row), column.code(row), "feature {feature}, row {row}");
            }
        }
        for (bytes, codes) in bytes.iter_mut().zip(&codes) {
            *bytes += codes.batch().get_array_memory_size();
        }
    }
    assert!(bytes[1] * 3 < bytes[0] * 2, "{bytes:?}");
}
