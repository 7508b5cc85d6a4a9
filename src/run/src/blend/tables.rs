//! Reads tables of predictions whose scores are blended, and aligns their rows.

use super::BlendScores;
use super::scores::normalise;
use crate::row_match::MatchKeys;
use arrow::array::{Float32Array, StringArray};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_judge::evaluate::{LoadedPredictions, load_predictions};
use planetree_model::model::Normalisation;
use planetree_model::predict::{PredictedGroup, ranks};

/// Tables of predictions with the same rows.
pub struct BlendedTable {
    /// The scores of all tables, in the order of the first table's rows.
    pub scores: BlendScores,
    /// Document ids of the rows, where they are known.
    documents: Vec<Option<String>>,
    /// Fingerprints of the predicted datasets and of the training datasets that the tables record, without duplicates.
    pub fingerprints: [Vec<String>; 2],
}

/// Reads tables of predictions. Rows are matched by their order if it is the same in all tables, otherwise by query and
/// document ids. Each table has a name and a normalisation.
pub fn read_tables(tables: &[(String, Location, Normalisation)]) -> Result<BlendedTable> {
    let loaded =
        tables.iter().map(|(_, location, _)| load_predictions(location)).collect::<Result<Vec<_>>>()?;
    let Some(first) = loaded.first() else {
        return Err(Error::usage("there are no predictions to blend", "pass two files or more"));
    };
    let mut labels = first.labels.clone();
    let mut documents = first.documents.clone();
    let mut orders = Vec::new();
    for table in &loaded {
        let order =
            MatchKeys::of(first).find_in(&MatchKeys::of(table), "blend predictions for the same rows")?;
        merge_labels(&mut labels, first, table, &order)?;
        for (document, row) in documents.iter_mut().zip(&order) {
            if document.is_none() {
                document.clone_from(&table.documents[*row]);
            }
        }
        orders.push(order);
    }
    let mut scores = BlendScores {
        place: first.location.to_string(),
        queries: first.queries.clone(),
        bounds: first.bounds.clone(),
        documents: documents.iter().cloned().collect(),
        labels,
        ..BlendScores::default()
    };
    for ((table, order), (name, _, normalisation)) in loaded.iter().zip(&orders).zip(tables) {
        let mut values: Vec<f64> = order.iter().map(|row| table.scores[*row]).collect();
        normalise(&mut values, &scores.bounds, *normalisation);
        scores.members.push(name.clone());
        scores.values.push(values);
    }
    let fingerprints = [0, 1].map(|which| {
        let mut all: Vec<String> = Vec::new();
        for text in loaded.iter().filter_map(|table| table.fingerprints[which].as_deref()) {
            for fingerprint in text.split(',').filter(|text| !text.is_empty()) {
                if !all.iter().any(|known| known == fingerprint) {
                    all.push(fingerprint.to_owned());
                }
            }
        }
        all
    });
    Ok(BlendedTable { scores, documents, fingerprints })
}

impl BlendedTable {
    /// Returns whether no row has a label.
    pub fn is_unlabelled(&self) -> bool {
        self.scores.labels.iter().all(|label| label.is_nan())
    }

    /// Returns the rows with the weighted sum of all scores.
    pub fn predictions(&self, weights: &[f64], intercept: f64) -> PredictedGroup {
        let BlendScores { queries, bounds, labels, .. } = &self.scores;
        let counts = bounds.windows(2).map(|query| (query[1] - query[0]) as usize);
        let of_rows = queries.iter().zip(counts).flat_map(|(query, count)| std::iter::repeat_n(query, count));
        let query_ids: StringArray = of_rows.map(Some).collect();
        let scores = self.scores.combined(weights, intercept);
        PredictedGroup {
            ranks: ranks(&query_ids, &scores),
            query_ids,
            doc_ids: self.documents.iter().map(Option::as_deref).collect(),
            labels: labels.iter().map(|label| (!label.is_nan()).then_some(*label)).collect::<Float32Array>(),
            scores,
            parts: Vec::new(),
        }
    }
}

/// Adds the labels of a table where earlier tables have none. Labels that differ are an error.
fn merge_labels(
    labels: &mut [f32],
    first: &LoadedPredictions,
    table: &LoadedPredictions,
    order: &[usize],
) -> Result<()> {
    for (row, label) in labels.iter_mut().enumerate() {
        let other = table.labels[order[row]];
        if label.is_nan() {
            *label = other;
        } else if !other.is_nan() && other != *label {
            return Err(Error::place(
                format_args!("{} and {}", first.location, table.location),
                format_args!("the labels of row {} differ: {label} and {other}", row + 1),
                "blend predictions for the same rows",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn table(directory: &Path, name: &str, rows: &[&str]) -> (String, Location, Normalisation) {
        let location = directory.join(format!("{name}.csv"));
        std::fs::write(&location, format!("query_id,doc_id,label,score\n{}\n", rows.join("\n"))).unwrap();
        (name.to_owned(), Location::Local(location), Normalisation::None)
    }

    #[test]
    fn rows_are_matched_by_order_or_by_document() {
        let room = tempfile::tempdir().unwrap();
        let a = table(room.path(), "a", &["1,x,2,0.5", "1,y,0,0.25", "2,x,1,3"]);
        let same = table(room.path(), "same", &["1,,2,1", "1,,,2", "2,,,4"]);
        let mixed = table(room.path(), "mixed", &["2,x,1,4", "1,y,0,2", "1,x,2,1"]);
        for other in [same, mixed] {
            let read = read_tables(&[a.clone(), other]).unwrap();
            assert_eq!(read.scores.values, [[0.5, 0.25, 3.0], [1.0, 2.0, 4.0]]);
            let predicted = read.predictions(&[2.0, 1.0], 0.5);
            assert_eq!((predicted.scores, predicted.ranks), (vec![2.5, 3.0, 10.5], vec![2, 1, 1]));
            assert_eq!(read.scores.labels, [2.0, 0.0, 1.0]);
        }
    }

    #[test]
    fn other_rows_are_refused() {
        let room = tempfile::tempdir().unwrap();
        let a = table(room.path(), "a", &["1,x,2,0.5", "1,y,0,0.25", "2,x,1,3"]);
        for (name, rows, expected) in [
            ("fewer", &["1,x,2,1"][..], "the numbers of rows differ: 3 and 1"),
            ("unnamed", &["1,,2,1", "2,,1,2", "2,,1,4"], "not all have a doc_id"),
            ("other", &["1,x,2,1", "1,z,0,2", "2,x,1,4"], "no row for query \"1\", document \"y\""),
            ("twice", &["1,y,0,1", "1,y,0,2", "2,x,1,4"], "the same document twice"),
            ("labels", &["1,x,2,1", "1,y,1,2", "2,x,1,4"], "the labels of row 2 differ: 0 and 1"),
            ("infinite", &["1,x,2,inf", "1,y,1,2", "2,x,1,4"], "row 1 (query \"1\") is inf"),
            ("scattered", &["1,x,2,1", "2,x,1,2", "1,y,0,4"], "query \"1\" are not contiguous"),
        ] {
            let error = read_tables(&[a.clone(), table(room.path(), name, rows)]).err().unwrap().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
