//! Streaming histograms, which summarise a stream of values with at most b bins. Each bin has a centre, a count and a
//! sum of targets (gradients). The algorithms are from Ben-Haim and Yom-Tov (JMLR 2010) and section 4.2 of Tyree et
//! al., "Parallel boosted regression trees for web search ranking" (WWW 2011). Equation numbers refer to the latter
//! paper.

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
pub struct StreamingHistogram {
    most: usize,
    bins: Vec<Centroid>,
    /// Distances between the centres of neighbouring bins.
    gaps: Vec<f64>,
}

/// Count and sum of targets over all values up to a split point s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cumulative {
    /// m_s: number of values, or their total weight.
    pub count: f64,
    /// l_s: sum of the targets.
    pub sum: f64,
}

impl StreamingHistogram {
    /// Creates an empty histogram with at most `most` bins.
    pub fn new(most: usize) -> Self {
        StreamingHistogram { most, bins: Vec::with_capacity(most + 1), gaps: Vec::with_capacity(most + 1) }
    }

    /// Creates a histogram from bins in ascending order of their centres.
    pub fn of_bins(most: usize, bins: Vec<Centroid>) -> Self {
        let gaps = bins.windows(2).map(|pair| pair[1].centre - pair[0].centre).collect();
        StreamingHistogram { most, bins, gaps }
    }

    /// Returns the bins in ascending order of their centres.
    pub fn into_bins(self) -> Vec<Centroid> {
        self.bins
    }

    /// Returns the bins in ascending order of their centres.
    pub fn bins(&self) -> &[Centroid] {
        &self.bins
    }

    /// Inserts a bin. If there are then too many bins, the two nearest are merged (eq. 10 and 11).
    pub fn insert(&mut self, bin: Centroid) {
        let place = match self.bins.last() {
            Some(last) if last.centre < bin.centre => self.bins.len(),
            None => 0,
            _ => self.bins.partition_point(|other| other.centre < bin.centre),
        };
        if let Some(other) = self.bins.get_mut(place)
            && other.centre == bin.centre
        {
            other.count += bin.count;
            other.sum += bin.sum;
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
            self.merge_nearest();
        }
    }

    fn merge_nearest(&mut self) {
        // If gaps are equal, the first one is chosen.
        let least =
            self.gaps.iter().fold(f64::INFINITY, |least, gap| if *gap < least { *gap } else { least });
        let Some(place) = self.gaps.iter().position(|gap| *gap == least) else { return };
        let (left, right) = (self.bins[place], self.bins[place + 1]);
        let count = left.count + right.count;
        let centre = (left.centre * left.count + right.centre * right.count) / count;
        // Rounding must not move the mean outside the range of the two merged bins.
        let centre = centre.clamp(left.centre, right.centre);
        self.bins[place] = Centroid { centre, count, sum: left.sum + right.sum };
        self.bins.remove(place + 1);
        self.gaps.remove(place);
        if place > 0 {
            self.gaps[place - 1] = centre - self.bins[place - 1].centre;
        }
        if let Some(next) = self.bins.get(place + 1) {
            self.gaps[place] = next.centre - centre;
        }
    }

    /// Inserts the bins of another histogram one by one.
    pub fn merge(&mut self, other: &StreamingHistogram) {
        other.bins.iter().for_each(|bin| self.insert(*bin));
    }

    /// Returns the count and sum over all bins.
    pub fn total(&self) -> Cumulative {
        self.bins.iter().fold(Cumulative::default(), |total, bin| Cumulative {
            count: total.count + bin.count,
            sum: total.sum + bin.sum,
        })
    }

    /// Returns the values that divide the distribution into `parts` parts of equal count, each with the count and sum
    /// below it. The values are estimated by the `uniform` procedure of Ben-Haim and Yom-Tov, the sums by eq. 12 at a
    /// centre and eq. 13 between two centres.
    pub fn candidates(&self, parts: usize) -> Vec<(f64, Cumulative)> {
        let total = self.total().count;
        let mut candidates: Vec<(f64, Cumulative)> = Vec::with_capacity(parts);
        let mut before = Cumulative::default();
        let mut wanted = 1;
        for pair in self.bins.windows(2) {
            let (left, right) = (pair[0], pair[1]);
            let start =
                Cumulative { count: before.count + left.count / 2.0, sum: before.sum + left.sum / 2.0 };
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
                if candidates.last().is_none_or(|(last, _)| *last < value) {
                    candidates.push((value, up_to));
                }
            }
            before = Cumulative { count: before.count + left.count, sum: before.sum + left.sum };
        }
        candidates
    }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bin(centre: f64, count: f64, sum: f64) -> Centroid {
        Centroid { centre, count, sum }
    }

    fn built(most: usize, points: &[(f64, f64)]) -> StreamingHistogram {
        let mut histogram = StreamingHistogram::new(most);
        points.iter().for_each(|(value, target)| histogram.insert(bin(*value, 1.0, *target)));
        histogram
    }

    #[test]
    fn the_example_of_ben_haim_and_yom_tov() {
        // Example from the appendix of Ben-Haim and Yom-Tov: 23, 19, 10, 16, 36, 2, 9 with five bins, then 32, 30, 45.
        let points = [23.0, 19.0, 10.0, 16.0, 36.0, 2.0, 9.0].map(|value| (value, 0.0));
        let mut histogram = built(5, &points);
        let shown = |histogram: &StreamingHistogram| -> Vec<(f64, f64)> {
            histogram.bins().iter().map(|bin| ((bin.centre * 100.0).round() / 100.0, bin.count)).collect()
        };
        assert_eq!(shown(&histogram), [(2.0, 1.0), (9.5, 2.0), (17.5, 2.0), (23.0, 1.0), (36.0, 1.0)]);
        histogram.merge(&built(5, &[(32.0, 0.0), (30.0, 0.0), (45.0, 0.0)]));
        assert_eq!(shown(&histogram), [(2.0, 1.0), (9.5, 2.0), (19.33, 3.0), (32.67, 3.0), (45.0, 1.0)]);
        // The sum procedure in the same example: the count up to 15 is 3.28.
        let (left, right) = (histogram.bins()[1], histogram.bins()[2]);
        let way = (15.0 - left.centre) / (right.centre - left.centre);
        let up_to = between(&left, &right, Cumulative { count: 2.0, sum: 0.0 }, way);
        assert!((up_to.count - 3.28).abs() < 0.01, "{up_to:?}");
        // The uniform procedure in the same example, with three parts: 15.21 and 28.98, computed from rounded centres.
        let cuts: Vec<f64> = histogram.candidates(3).iter().map(|(value, _)| *value).collect();
        assert!((cuts[0] - 15.21).abs() < 0.02 && (cuts[1] - 28.98).abs() < 0.02, "{cuts:?}");
    }

    #[test]
    fn targets_are_interpolated_by_equation_13() {
        // Between (0, 2, 4) and (10, 6, 8), three tenths of the way: r_s = 4 + 0.3 * 4 = 5.2,
        // l_s = 4/2 + 0.3 * (4 + 5.2)/2 = 3.38; m_s = 2/2 + 0.3 * (2 + 3.2)/2 = 1.78.
        let (left, right) = (bin(0.0, 2.0, 4.0), bin(10.0, 6.0, 8.0));
        let up_to = between(&left, &right, Cumulative { count: 1.0, sum: 2.0 }, 0.3);
        assert!((up_to.sum - 3.38).abs() < 1e-12 && (up_to.count - 1.78).abs() < 1e-12, "{up_to:?}");
        // At the right centre, all of the left bin and half of the right bin lie to the left (eq. 12).
        let up_to = between(&left, &right, Cumulative { count: 1.0, sum: 2.0 }, 1.0);
        assert_eq!((up_to.count, up_to.sum), (2.0 + 3.0, 4.0 + 4.0));
    }

    /// Implements eq. 10 and 11 literally: compares all pairs and rebuilds the list.
    fn naive_insert(bins: &mut Vec<Centroid>, new: Centroid, most: usize) {
        match bins.iter_mut().find(|bin| bin.centre == new.centre) {
            Some(bin) => {
                bin.count += new.count;
                bin.sum += new.sum;
            }
            None => bins.push(new),
        }
        bins.sort_by(|a, b| a.centre.total_cmp(&b.centre));
        if bins.len() > most {
            let mut nearest = (0, 1);
            for i in 0..bins.len() {
                for j in i + 1..bins.len() {
                    if bins[j].centre - bins[i].centre < bins[nearest.1].centre - bins[nearest.0].centre {
                        nearest = (i, j);
                    }
                }
            }
            let (a, b) = (bins[nearest.0], bins[nearest.1]);
            let count = a.count + b.count;
            bins.remove(nearest.1);
            bins[nearest.0] = bin((a.centre * a.count + b.centre * b.count) / count, count, a.sum + b.sum);
        }
    }

    proptest! {
        #[test]
        fn fast_insertion_matches_the_paper(
            points in prop::collection::vec((0i32..400, -3i32..3), 1..200), most in 2usize..12,
        ) {
            let points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (f64::from(*x) / 8.0, f64::from(*y))).collect();
            let mut naive = Vec::new();
            for (x, y) in &points {
                naive_insert(&mut naive, bin(*x, 1.0, *y), most);
            }
            let fast = built(most, &points);
            prop_assert_eq!(fast.bins().len(), naive.len());
            for (fast, naive) in fast.bins().iter().zip(&naive) {
                prop_assert!((fast.centre - naive.centre).abs() < 1e-9 && fast.count == naive.count && fast.sum == naive.sum);
            }
            prop_assert_eq!(&StreamingHistogram::of_bins(most, fast.bins().to_vec()), &fast);
            let total = fast.total();
            prop_assert_eq!(total.count, points.len() as f64);
            prop_assert_eq!(total.sum, points.iter().map(|(_, y)| y).sum::<f64>());
        }

        #[test]
        fn equal_values_in_ascending_order_may_be_inserted_together(
            points in prop::collection::vec((0i32..60, -3i32..3), 1..300), most in 2usize..12,
        ) {
            // Square roots make all gaps different. With equal gaps, rounding would decide which bins are merged first.
            let mut points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (f64::from(*x).sqrt(), f64::from(*y))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let single = built(most, &points);
            let mut grouped = StreamingHistogram::new(most);
            for group in points.chunk_by(|a, b| a.0 == b.0) {
                grouped.insert(bin(group[0].0, group.len() as f64, group.iter().map(|point| point.1).sum()));
            }
            prop_assert_eq!(single.bins().len(), grouped.bins().len());
            for (single, grouped) in single.bins().iter().zip(grouped.bins()) {
                prop_assert!((single.centre - grouped.centre).abs() < 1e-9);
                prop_assert_eq!((single.count, single.sum), (grouped.count, grouped.sum));
            }
        }

        #[test]
        fn candidates_divide_the_counts_evenly(points in prop::collection::vec(0f64..1.0, 30..300)) {
            let histogram = built(20, &points.iter().map(|x| (*x, 1.0)).collect::<Vec<_>>());
            let total = histogram.total().count;
            for (value, up_to) in histogram.candidates(10) {
                // All targets are 1, so the sum of targets equals the count. Each part has a tenth of the total.
                prop_assert!((up_to.count - up_to.sum).abs() < 1e-6);
                let tenths = up_to.count / total * 10.0;
                prop_assert!((tenths - tenths.round()).abs() < 1e-6, "{} at {}", tenths, value);
            }
        }
    }
}
