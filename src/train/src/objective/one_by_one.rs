//! Pairs one after another, for what the fast loop cannot do: metrics without a closed form, and pairs
//! that somebody wants to look at.

use super::link::Link;
use super::ranked::Ranked;
use super::weighs::Weighs;
use super::{Pulls, Query, Room};

/// Two documents of a query, by rank.
pub struct Pair {
    /// The one with the higher label.
    pub high: usize,
    /// The other.
    pub low: usize,
    /// The difference of their scores.
    pub x: f32,
    /// How much the pair counts.
    pub weight: f32,
}

/// Sets gradients and hessians; `weigh` is shown every pair and says how much it counts.
pub fn pull_one_by_one<L: Link>(
    weighs: &Weighs,
    link: L,
    query: &Query<'_>,
    room: &mut Room,
    pulls: Pulls<'_>,
    mut weigh: impl FnMut(&Ranked, &Pair) -> f32,
) {
    let Room { ranked, columns, .. } = room;
    ranked.rank(query.labels, query.scores);
    weighs.fill(query.of_labels, ranked, columns);
    let distance = weighs.distance(ranked);
    let count = ranked.len();
    let mut total = 0.0;
    for i in 0..weighs.truncation.min(count) {
        for j in i + 1..count {
            let (one, other) = (ranked.labels[i], ranked.labels[j]);
            if one == other {
                continue;
            }
            let (high, low) = if one > other { (i, j) } else { (j, i) };
            let x = ranked.scores[high] - ranked.scores[low];
            let delta = weighs.delta(columns, ranked, i, j);
            let pair = Pair { high, low, x, weight: delta / distance.map_or(1.0, |offset| offset + x.abs()) };
            let weight = weigh(ranked, &pair);
            let (first, second) = link.pull(x);
            total += weight * first;
            ranked.gradients[high] += weight * first;
            ranked.gradients[low] -= weight * first;
            ranked.hessians[high] += weight * second;
            ranked.hessians[low] += weight * second;
        }
    }
    ranked.hand_out(weighs.factor(2.0 * total), pulls);
}
