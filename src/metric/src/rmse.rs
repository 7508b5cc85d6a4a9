//! RMSE: the root mean squared error of scores against labels. It is averaged over rows, not over queries.

/// Returns the squared error of every row that has a label.
pub(crate) fn squared_errors(labels: &[f32], scores: &[f64]) -> impl Iterator<Item = f64> {
    let labelled = labels.iter().zip(scores).filter(|(label, _)| !label.is_nan());
    labelled.map(|(label, score)| {
        let error = score - f64::from(*label);
        error * error
    })
}

/// Returns the root mean squared error over the rows of one query; `None` if no row has a label.
pub(crate) fn rmse(labels: &[f32], scores: &[f64]) -> Option<f64> {
    let (sum, count) =
        squared_errors(labels, scores).fold((0.0, 0_u32), |(sum, count), error| (sum + error, count + 1));
    (count > 0).then(|| (sum / f64::from(count)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        assert_eq!(rmse(&[1.0, 2.0, 3.0, 0.0], &[1.0, 4.0, 3.0, 0.0]), Some(1.0));
        assert_eq!(rmse(&[1.0, f32::NAN], &[3.0, 9.0]), Some(2.0));
        assert_eq!(rmse(&[], &[]), None);
        assert_eq!(rmse(&[f32::NAN], &[1.0]), None);
    }
}
