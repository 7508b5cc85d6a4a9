//! Kendall's tau-b between scores and labels: the number of concordant pairs minus the number of discordant pairs,
//! normalised for ties (Kendall 1945).

use super::inversions;

/// Returns tau-b, or `None` if all scores or all labels are equal. `labels` are in descending order of scores; `ends`
/// are the end indices of the runs of equal scores.
pub(crate) fn tau(labels: &[f32], ends: &[u32]) -> Option<f64> {
    let pairs = inversions::count(labels, ends);
    let by_score = (pairs.all - pairs.equal_scores) as f64;
    let by_label = (pairs.all - pairs.equal_labels) as f64;
    let right = (pairs.all + pairs.equal - pairs.equal_scores - pairs.equal_labels - pairs.inverted) as f64;
    let apart = by_score.sqrt() * by_label.sqrt();
    (apart > 0.0).then(|| (right - pairs.inverted as f64) / apart)
}
