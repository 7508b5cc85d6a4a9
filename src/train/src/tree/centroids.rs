//! Streaming histograms, which summarise a stream of values with at most b bins. Each bin has a centre, a count and a
//! sum of targets (gradients). The algorithms are from Ben-Haim and Yom-Tov (JMLR 2010) and section 4.2 of Tyree et
//! al., "Parallel boosted regression trees for web search ranking" (WWW 2011). Equation numbers refer to the latter
//! paper.

mod ascending;

pub(super) use ascending::{MomentBounds, PART, ValueBlock};
use serde::{Deserialize, Serialize};

/// One bin: its centre p, its count m and the sum r of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Centroid {
    /// p: mean of the values.
    pub centre: f64,
    /// m: number of values, or their total weight.
    pub count: f64,
    /// r: sum of the targets.
    pub sum: f64,
}

/// Streaming histogram with at most b bins, in ascending order of their centres.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamingHistogram {
    most: usize,
    bins: Vec<Bin>,
    /// Distances between the centres of neighbouring bins.
    gaps: Vec<f64>,
}

/// A bin while a histogram is built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bin {
    /// p: `moment` divided by `count`.
    centre: f64,
    /// p * m: sum of the values. Bins are merged by adding it, so that the rounding errors of means do not add up.
    pub moment: f64,
    /// m: number of values, or their total weight.
    pub count: f64,
    /// r: sum of the targets.
    pub sum: f64,
}

impl Bin {
    fn of(bin: Centroid) -> Self {
        Self::of_value(bin).with_centre()
    }

    /// Creates a bin whose centre must be recomputed.
    #[inline(always)]
    fn of_value(value: Centroid) -> Self {
        Bin { centre: value.centre, moment: value.centre * value.count, count: value.count, sum: value.sum }
    }

    /// Eq. 11: the union of two bins. The centre must be recomputed.
    #[inline(always)]
    fn and(self, other: Bin) -> Self {
        Bin {
            centre: self.centre,
            moment: self.moment + other.moment,
            count: self.count + other.count,
            sum: self.sum + other.sum,
        }
    }

    #[inline(always)]
    fn with_centre(self) -> Self {
        Bin { centre: self.moment / self.count, ..self }
    }
}

/// Count and sum of targets over all values up to a split point s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cumulative {
    /// m_s: number of values, or their total weight.
    pub count: f64,
    /// l_s: sum of the targets.
    pub sum: f64,
}

impl StreamingHistogram {
    /// Creates an empty histogram with at most `most` bins.
    pub(super) fn new(most: usize) -> Self {
        StreamingHistogram { most, bins: Vec::with_capacity(most + 1), gaps: Vec::with_capacity(most + 1) }
    }

    /// Creates a histogram from bins in ascending order of their centres.
    pub(super) fn of_bins(most: usize, bins: &[Centroid]) -> Self {
        let mut histogram = Self::new(most);
        histogram.bins.extend(bins.iter().map(|bin| Bin::of(*bin)));
        let pairs = histogram.bins.windows(2);
        histogram.gaps.extend(pairs.map(|pair| pair[1].centre - pair[0].centre));
        histogram
    }

    /// Returns the bins in ascending order of their centres.
    pub(super) fn bins(&self) -> Vec<Centroid> {
        let centroid = |bin: &Bin| Centroid { centre: bin.centre, count: bin.count, sum: bin.sum };
        self.bins.iter().map(centroid).collect()
    }

    /// Inserts a bin. If there are then too many bins, the two nearest are merged (eq. 10 and 11).
    pub(super) fn insert(&mut self, bin: Centroid) {
        let bin = Bin::of(bin);
        let place = match self.bins.last() {
            Some(last) if last.centre < bin.centre => self.bins.len(),
            None => 0,
            _ => self.bins.partition_point(|other| other.centre < bin.centre),
        };
        if let Some(other) = self.bins.get_mut(place)
            && other.centre == bin.centre
        {
            *other = other.and(bin);
            return;
        }
        self.bins.insert(place, bin);
        // Gap i lies between bins i and i + 1.
        if place > 0 {
            let gap = bin.centre - self.bins[place - 1].centre;
            if place + 1 == self.bins.len() {
                self.gaps.push(gap);
            } else {
                self.gaps[place - 1] = gap;
            }
        }
        if let Some(next) = self.bins.get(place + 1) {
            self.gaps.insert(place, next.centre - bin.centre);
        }
        if self.bins.len() > self.most {
            self.merge_at(place_of(&self.gaps, least(&self.gaps)));
        }
    }

    /// Merges the bin at a place with the next one.
    fn merge_at(&mut self, place: usize) {
        let merged = self.bins[place].and(self.bins[place + 1]).with_centre();
        self.bins[place] = merged;
        self.bins.remove(place + 1);
        self.gaps.remove(place);
        if place > 0 {
            self.gaps[place - 1] = merged.centre - self.bins[place - 1].centre;
        }
        if let Some(next) = self.bins.get(place + 1) {
            self.gaps[place] = next.centre - merged.centre;
        }
    }

    /// Inserts the bins of another histogram one by one.
    pub(super) fn merge(&mut self, bins: &[Centroid]) {
        bins.iter().for_each(|bin| self.insert(*bin));
    }
}

/// Number of gaps that are compared independently of each other, so that the compiler can use vectors.
const LANES: usize = 8;

/// Returns the smallest gap, or infinity if there is none.
#[inline(always)]
fn least(gaps: &[f64]) -> f64 {
    let smaller = |one: f64, other: f64| if other < one { other } else { one };
    let mut lanes = [f64::INFINITY; LANES];
    let (chunks, others) = gaps.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, gap)| *lane = smaller(*lane, *gap));
    }
    lanes.iter_mut().zip(others).for_each(|(lane, gap)| *lane = smaller(*lane, *gap));
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        let (first, second) = lanes.split_at_mut(count);
        first.iter_mut().zip(second).for_each(|(one, other)| *one = smaller(*one, *other));
    }
    lanes[0]
}

/// Returns the place of the first gap of this size. There must be one.
#[inline(always)]
fn place_of(gaps: &[f64], size: f64) -> usize {
    let is_in = |chunk: &&[f64]| chunk.iter().fold(false, |found, gap| found | (*gap == size));
    let chunk = gaps.chunks(LANES).position(|chunk| is_in(&chunk)).unwrap_or(0);
    let within = gaps[chunk * LANES..].iter().position(|gap| *gap == size);
    chunk * LANES + within.unwrap_or(0)
}

/// Returns the count and sum over all bins.
pub(super) fn total_of(bins: &[Centroid]) -> Cumulative {
    bins.iter().fold(Cumulative::default(), |total, bin| Cumulative {
        count: total.count + bin.count,
        sum: total.sum + bin.sum,
    })
}

/// Returns the values that divide the distribution into `parts` parts of equal count, each with the count and sum
/// below it. The values are estimated by the `uniform` procedure of Ben-Haim and Yom-Tov, the sums by eq. 12 at a
/// centre and eq. 13 between two centres.
pub(super) fn quantiles_of(bins: &[Centroid], parts: usize) -> Vec<(f64, Cumulative)> {
    let total = total_of(bins).count;
    let mut quantiles: Vec<(f64, Cumulative)> = Vec::with_capacity(parts);
    let mut before = Cumulative::default();
    let mut wanted = 1;
    for pair in bins.windows(2) {
        let (left, right) = (pair[0], pair[1]);
        let start = Cumulative { count: before.count + left.count / 2.0, sum: before.sum + left.sum / 2.0 };
        let end = start.count + (left.count + right.count) / 2.0;
        while wanted < parts {
            let depth = total * wanted as f64 / parts as f64;
            if depth >= end {
                break;
            }
            wanted += 1;
            if depth < start.count {
                continue; // no interpolation within the first half of the first bin
            }
            let way = solve(left.count, right.count, depth - start.count);
            let value = left.centre + way * (right.centre - left.centre);
            let up_to = between(&left, &right, start, way);
            if quantiles.last().is_none_or(|(last, _)| *last < value) {
                quantiles.push((value, up_to));
            }
        }
        before = Cumulative { count: before.count + left.count, sum: before.sum + left.sum };
    }
    quantiles
}

/// Returns the position between two centres, from 0 to 1, up to which the trapezoid under their counts has this area.
fn solve(left: f64, right: f64, area: f64) -> f64 {
    let slope = right - left;
    let way = if slope.abs() < 1e-12 * left {
        area / left
    } else {
        ((left * left + 2.0 * slope * area).max(0.0).sqrt() - left) / slope
    };
    way.clamp(0.0, 1.0)
}

/// Eq. 13: adds the part of the trapezoid between two bins up to position `way` to the count and sum `start`.
fn between(left: &Centroid, right: &Centroid, start: Cumulative, way: f64) -> Cumulative {
    let area = |left: f64, right: f64| {
        let here = left + (right - left) * way;
        (left + here) / 2.0 * way
    };
    Cumulative {
        count: start.count + area(left.count, right.count),
        sum: start.sum + area(left.sum, right.sum),
    }
}

#[cfg(test)]
mod tests;
