//! Computes the softmax over the documents of a query, and the gradients of its cross entropy.

/// Computes the softmax of `numbers`. It uses `exp` from a Rust library, so that results are the same on all machines.
pub(super) fn softmax(numbers: impl Iterator<Item = f64> + Clone, shares: &mut Vec<f64>) {
    let most = numbers.clone().fold(f64::NEG_INFINITY, f64::max);
    shares.clear();
    shares.extend(numbers.map(|number| libm::exp(number - most)));
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
}

/// Computes the gradients of the cross entropy between the softmax of the scores and a target distribution. `wanted`
/// returns the target probability of a document by its index.
pub(super) fn cross_entropy_gradients(
    shares: &[f64],
    wanted: impl Fn(usize) -> f64,
    out: super::Gradients<'_>,
) {
    for (place, share) in shares.iter().enumerate() {
        out.gradients[place] = (wanted(place) - share) as f32;
        out.hessians[place] = (share * (1.0 - share)) as f32;
    }
}
