//! ListNet, the query-level softmax: cross entropy between the distribution that the labels make
//! and the one that the scores make (Cao et al. 2007, top one).

use super::softmax::{pull_to, softmax};
use super::{Objective, Pulls, Query, Room};

/// Query-level softmax.
#[derive(Debug)]
pub struct ListNet;

impl Objective for ListNet {
    fn pull(&self, query: &Query<'_>, room: &mut Room, pulls: Pulls<'_>) {
        let mut wanted = std::mem::take(&mut room.wanted);
        softmax(query.labels.iter().map(|label| f64::from(*label)), &mut wanted);
        softmax(query.scores.iter().copied(), &mut room.shares);
        pull_to(&room.shares, |place| wanted[place], pulls);
        room.wanted = wanted;
    }
}
