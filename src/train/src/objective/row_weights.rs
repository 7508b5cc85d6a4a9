//! Applies the weights of rows to gradients.

/// Multiplies gradients and hessians by the weight of each row, or by the mean weight of the query.
pub(crate) fn weigh(by_rows: bool, weights: &[f32], gradients: &mut [f32], hessians: &mut [f32]) {
    let mean = (weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / weights.len() as f64) as f32;
    for (row, (gradient, hessian)) in gradients.iter_mut().zip(hessians).enumerate() {
        let weight = if by_rows { weights[row] } else { mean };
        *gradient *= weight;
        *hessian *= weight;
    }
}
