//! Attaches existing scores to the rows of a dataset.

use super::group::{PredictedGroup, ranked_rows, row_identity};
use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;

/// Passes the rows of a dataset with their scores and ranks to `sink`, in row order. Rows whose score is NaN are
/// skipped. Returns the number of skipped rows.
pub fn attach_scores(
    reader: &DatasetReader,
    scores: &[f64],
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<u64> {
    let (mut rest, mut skipped) = (scores, 0);
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let (these, following) = rest.split_at(group.rows().min(rest.len()));
        rest = following;
        let is_known: BooleanArray = these.iter().map(|score| Some(!score.is_nan())).collect();
        let known: Vec<f64> = these.iter().copied().filter(|score| !score.is_nan()).collect();
        skipped += (these.len() - known.len()) as u64;
        let rows = filter_record_batch(&row_identity(reader, &group)?, &is_known).map_err(|error| {
            Error::place(reader.location(), &error, "convert the data again").caused_by(error)
        })?;
        sink(ranked_rows(reader, &rows, known)?)?;
    }
    Ok(skipped)
}
