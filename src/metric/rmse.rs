//! RMSE: the root of the mean squared difference between score and label. Its mean is over rows,
//! not over queries.

/// The squared error of one row.
#[inline]
pub fn squared_error(label: f32, score: f64) -> f64 {
    let error = score - f64::from(label);
    error * error
}

/// The root mean squared error of the rows of one query; 0 when there are none.
pub fn rmse(labels: &[f32], scores: &[f64]) -> f64 {
    let sum: f64 = labels.iter().zip(scores).map(|(label, score)| squared_error(*label, *score)).sum();
    (sum / labels.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        assert_eq!(rmse(&[1.0, 2.0, 3.0, 0.0], &[1.0, 4.0, 3.0, 0.0]), 1.0);
        assert_eq!(rmse(&[], &[]), 0.0);
    }
}
