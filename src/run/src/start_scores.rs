//! Reads scores that training starts from, and that are added to the value of a model trained from them: predictions in
//! any file that can be evaluated, for the rows of some datasets.

use crate::row_match::MatchKeys;
use arrow::array::{Array, AsArray};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use planetree_data::dataset::{DatasetReader, unexpected_columns};
use planetree_judge::evaluate::load_predictions;

/// Returns the scores that a table has for the rows of some datasets, one dataset after the other. Rows are matched by
/// their order if it is the same, otherwise by query and document ids.
pub fn read_start_scores(table: &Location, datasets: &[DatasetReader]) -> Result<Vec<f64>> {
    let scores = load_predictions(table)?;
    let fingerprints = datasets.iter().map(|dataset| Ok(dataset.fingerprint()?.to_string()));
    let fingerprints = fingerprints.collect::<Result<Vec<_>>>()?.join(",");
    let places: Vec<String> = datasets.iter().map(|dataset| dataset.location().to_string()).collect();
    let places = places.join(", ");
    if let Some(scored) = scores.fingerprints[0].as_deref().filter(|scored| *scored != fingerprints) {
        return Err(Error::place(
            table,
            format_args!("start scores of another dataset: {scored}; that of {places} is {fingerprints}"),
            "pass predictions for the rows of this dataset",
        ));
    }
    let (mut queries, mut bounds, mut documents) = (Vec::new(), Vec::new(), Vec::new());
    for dataset in datasets {
        let mut is_first = true; // the queries of a dataset do not continue those of the one before
        for id in dataset.groups() {
            interrupt::check()?;
            let rows = dataset.open_group(id)?.read(0..2)?;
            let text = |column: usize| rows.column(column).as_string_opt::<i32>();
            let (Some(query_ids), Some(doc_ids)) = (text(0), text(1)) else {
                return Err(unexpected_columns(dataset.location()));
            };
            for row in 0..rows.num_rows() {
                let query = query_ids.value(row);
                if std::mem::take(&mut is_first) || queries.last().map(String::as_str) != Some(query) {
                    queries.push(query.to_owned());
                    bounds.push(documents.len() as u32);
                }
                documents.push(doc_ids.is_valid(row).then(|| doc_ids.value(row).to_owned()));
            }
        }
    }
    bounds.push(documents.len() as u32);
    let rows = MatchKeys { place: places, queries: &queries, bounds: &bounds, documents: &documents };
    let order = rows.find_in(&MatchKeys::of(&scores), "pass start scores for the same rows")?;
    Ok(order.into_iter().map(|row| scores.scores[row]).collect())
}
