//! Kendall's tau-b between scores and labels: concordant minus discordant pairs, normalised for ties (Kendall 1945).

use super::inversions;

/// Tau-b; `None` if all scores or all labels are equal. Labels are in score order; `ends` are the ends of runs of equal
/// scores.
pub fn tau(labels: &[f32], ends: &[u32]) -> Option<f64> {
    let pairs = inversions::count(labels, ends);
    let by_score = (pairs.all - pairs.equal_scores) as f64;
    let by_label = (pairs.all - pairs.equal_labels) as f64;
    let right = (pairs.all + pairs.equal - pairs.equal_scores - pairs.equal_labels - pairs.inverted) as f64;
    let apart = by_score.sqrt() * by_label.sqrt();
    (apart > 0.0).then(|| (right - pairs.inverted as f64) / apart)
}
