//! Kendall's tau-b of scores and labels: pairs in the right order minus pairs in the wrong one, over all
//! pairs that are not tied (Kendall 1945).

use super::inversions;

/// Tau-b, `None` if all scores or all labels are equal. Labels are in the order of the scores, and equal
/// scores end where `ends` says.
pub fn tau(labels: &[f32], ends: &[u32]) -> Option<f64> {
    let pairs = inversions::count(labels, ends);
    let by_score = (pairs.all - pairs.equal_scores) as f64;
    let by_label = (pairs.all - pairs.equal_labels) as f64;
    let right = (pairs.all + pairs.equal - pairs.equal_scores - pairs.equal_labels - pairs.inverted) as f64;
    let apart = by_score.sqrt() * by_label.sqrt();
    (apart > 0.0).then(|| (right - pairs.inverted as f64) / apart)
}
