//! Scores that were made elsewhere, beside the rows they are of.

use super::stream::{PredictedGroup, identity, put_together};
use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;

/// Hands on the rows of a dataset with given scores, in their order; rows whose score is no number are left
/// out. How many those are.
pub fn with_scores(
    reader: &DatasetReader,
    scores: &[f64],
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<u64> {
    let (mut rest, mut left_out) = (scores, 0);
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let (these, others) = rest.split_at(group.rows().min(rest.len()));
        rest = others;
        let is_known: BooleanArray = these.iter().map(|score| Some(!score.is_nan())).collect();
        let known: Vec<f64> = these.iter().copied().filter(|score| !score.is_nan()).collect();
        left_out += (these.len() - known.len()) as u64;
        let rows = filter_record_batch(&identity(reader, &group)?, &is_known)
            .map_err(|error| Error::place(reader.location(), error, "convert the data again"))?;
        sink(put_together(reader, &rows, known)?)?;
    }
    Ok(left_out)
}
