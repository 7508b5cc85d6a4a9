//! AUC: the probability that a relevant document is scored above an irrelevant one, which equals the area under the
//! ROC curve. Partial AUC is the area between two false-positive rates (Mohan 2010, chapter 6).
//!
//! AUC@[i,j] is not divided by the width of its range, so its maximum is (j - i)/100.

use super::convention::{Convention, Ties};
use super::ranked::spans;

/// Returns the area under the ROC curve between two false-positive rates in percent, or `None` unless there are both
/// relevant and irrelevant documents. `labels` are in descending order of scores; `ends` are the end indices of the
/// runs of equal scores.
pub(crate) fn area(
    labels: &[f32],
    ends: &[u32],
    convention: &Convention,
    percents: (u32, u32),
) -> Option<f64> {
    let relevant = convention.count_relevant(labels);
    let irrelevant = labels.len() - relevant;
    if relevant == 0 || irrelevant == 0 {
        return None;
    }
    // Converts a bound of the horizontal axis from percent to a number of irrelevant documents.
    let within = |percent: u32| f64::from(percent) / 100.0 * irrelevant as f64;
    let (from, to) = (within(percents.0), within(percents.1));
    let (mut wrong, mut right) = (0.0, 0.0);
    let mut sum = 0.0;
    for span in spans(ends) {
        let gained = convention.count_relevant(&labels[span.clone()]) as f64;
        let passed = span.len() as f64 - gained;
        let (low, high) = (f64::max(from, wrong), f64::min(to, wrong + passed));
        if high > low {
            // The ROC curve within this run of equal scores is a straight line, unless ties are ordered best or worst
            // first. `share` is the mean fraction of the run's relevant documents found between `low` and `high`.
            let share = match convention.binary_ties {
                Ties::Worst => 0.0,
                Ties::Best => 1.0,
                Ties::Input | Ties::Document | Ties::Average | Ties::Last => {
                    ((low + high) / 2.0 - wrong) / passed
                }
            };
            sum += (high - low) * (right + share * gained);
        }
        wrong += passed;
        right += gained;
    }
    Some(sum / (relevant as f64 * irrelevant as f64))
}
