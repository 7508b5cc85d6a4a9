//! Detects features that look like identifiers. A model can memorise identifiers, but they do not help with new data.

use crate::dataset::FeatureNames;
use crate::rows::{Block, PresentRows};

/// Minimum number of rows for the detection. With fewer rows, the values are not sufficient evidence.
const MIN_ROWS: usize = 20;
/// Minimum number of rows that have an earlier row in the same query. With fewer such rows, all values in a query may
/// be distinct by chance.
const MIN_REPEATS: usize = 10;

/// Returns the names of the features that look like identifiers. These are columns with a typical name such as `id`
/// whose values are whole numbers or categories that never repeat within a query, and columns that number the rows.
pub(super) fn identifiers(block: &Block, names: &FeatureNames) -> Vec<String> {
    let repeats = block.rows().saturating_sub(block.runs.len());
    // The features of LETOR text have no names, and none of them are identifiers.
    if block.rows() < MIN_ROWS || !matches!(names, FeatureNames::Given(_)) {
        return Vec::new();
    }
    let looks_like_identifier = |feature: &usize| {
        let column = block.features.column(*feature);
        let is_whole = |value: &f32| value.fract() == 0.0;
        if !matches!(column.present, PresentRows::All) || !column.values.iter().all(is_whole) {
            return false;
        }
        let counts_rows = column.values.windows(2).all(|pair| pair[1] == pair[0] + 1.0);
        let is_named = is_identifier_name(&names.name(*feature));
        counts_rows || (is_named && repeats >= MIN_REPEATS && differ_within_queries(block, column.values))
    };
    let width = block.features.width();
    (0..width).filter(looks_like_identifier).map(|feature| names.name(feature)).collect()
}

fn differ_within_queries(block: &Block, values: &[f32]) -> bool {
    (0..block.runs.len()).all(|run| {
        let mut values = values[block.runs[run].first_row as usize..block.run_end(run)].to_vec();
        values.sort_unstable_by(f32::total_cmp);
        values.windows(2).all(|pair| pair[0] != pair[1])
    })
}

/// Checks whether a column has a name that is typical of identifiers, such as `id`, `product_id`, `productId`, `url`
/// or `Unnamed: 0`.
fn is_identifier_name(name: &str) -> bool {
    const NAMES: [&str; 12] =
        ["id", "index", "idx", "key", "row", "rowid", "rownum", "row_number", "url", "uri", "uuid", "guid"];
    let lower = name.to_ascii_lowercase();
    let ending = |ending: &str| NAMES.contains(&ending);
    ending(&lower)
        || lower.starts_with("unnamed: ")
        || lower.starts_with("level_")
        || lower.rsplit_once(['_', '.', '-', ' ']).is_some_and(|(_, last)| ending(last))
        || ["Id", "ID", "Url", "URL"].iter().any(|end| {
            name.strip_suffix(end)
                .is_some_and(|start| start.ends_with(|last: char| last.is_ascii_lowercase()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::BlockBuilder;

    /// Checks whether a feature is detected as an identifier, given thirty rows in three queries.
    fn found(name: &str, value: impl Fn(usize) -> f32) -> bool {
        let mut builder = BlockBuilder::default();
        for row in 0..30 {
            builder.query(format!("q{}", row / 10).as_bytes(), row as u64 + 1);
            builder.push_entry(0, value(row));
            builder.finish_row(0.0, None);
        }
        let names = FeatureNames::Given(vec![name.to_owned()]);
        identifiers(&builder.finish(), &names) == [name]
    }

    #[test]
    fn identifiers_are_detected_by_name_and_values() {
        let scattered = |row: usize| (row * 7919 % 1009) as f32;
        for name in ["id", "product_id", "productId", "URL", "page-url", "Unnamed: 0", "index", "level_0"] {
            assert!(found(name, scattered), "{name}");
            assert!(!found(name, |row| scattered(row) + 0.5), "{name} with fractions");
            assert!(!found(name, |row| (row % 4) as f32), "{name} with few values");
        }
        for name in ["clicks", "paid", "bid", "valid", "width", "grid", "f1", "bm25"] {
            assert!(!found(name, scattered), "{name}");
        }
        assert!(found("document_id", |row| (row % 10 * 3) as f32), "the same values in every query");
        assert!(found("n", |row| row as f32 + 5.0), "row numbers are detected under any name");
    }
}
