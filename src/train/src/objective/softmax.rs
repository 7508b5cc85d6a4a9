//! A distribution over the documents of a query, from numbers of any size.

/// e^x of each number, by their sum. Powers come from a Rust library, so that all machines agree.
pub fn softmax(numbers: impl Iterator<Item = f64> + Clone, shares: &mut Vec<f64>) {
    let most = numbers.clone().fold(f64::NEG_INFINITY, f64::max);
    shares.clear();
    shares.extend(numbers.map(|number| libm::exp(number - most)));
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
}

/// How the scores are pulled from the distribution they make to the one that is wanted, under cross
/// entropy. `wanted` is given a document's place.
pub fn pull_to(shares: &[f64], wanted: impl Fn(usize) -> f64, pulls: super::Pulls<'_>) {
    for (place, share) in shares.iter().enumerate() {
        pulls.gradients[place] = (wanted(place) - share) as f32;
        pulls.hessians[place] = (share * (1.0 - share)) as f32;
    }
}
