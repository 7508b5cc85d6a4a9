//! Tests of streaming histograms against the examples and definitions of their papers.

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
    histogram.merge(&built(5, &[(32.0, 0.0), (30.0, 0.0), (45.0, 0.0)]).bins());
    assert_eq!(shown(&histogram), [(2.0, 1.0), (9.5, 2.0), (19.33, 3.0), (32.67, 3.0), (45.0, 1.0)]);
    // The sum procedure in the same example: the count up to 15 is 3.28.
    let (left, right) = (histogram.bins()[1], histogram.bins()[2]);
    let way = (15.0 - left.centre) / (right.centre - left.centre);
    let up_to = between(&left, &right, Cumulative { count: 2.0, sum: 0.0 }, way);
    assert!((up_to.count - 3.28).abs() < 0.01, "{up_to:?}");
    // The uniform procedure in the same example, with three parts: 15.21 and 28.98, computed from rounded centres.
    let cuts: Vec<f64> = quantiles_of(&histogram.bins(), 3).iter().map(|(value, _)| *value).collect();
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
        let total = total_of(&fast.bins());
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
        for (single, grouped) in single.bins().iter().zip(&grouped.bins()) {
            prop_assert!((single.centre - grouped.centre).abs() < 1e-9);
            prop_assert_eq!((single.count, single.sum), (grouped.count, grouped.sum));
        }
    }

    #[test]
    fn candidates_divide_the_counts_evenly(points in prop::collection::vec(0f64..1.0, 30..300)) {
        let histogram = built(20, &points.iter().map(|x| (*x, 1.0)).collect::<Vec<_>>());
        let bins = histogram.bins();
        let total = total_of(&bins).count;
        for (value, up_to) in quantiles_of(&bins, 10) {
            // All targets are 1, so the sum of targets equals the count. Each part has a tenth of the total.
            prop_assert!((up_to.count - up_to.sum).abs() < 1e-6);
            let tenths = up_to.count / total * 10.0;
            prop_assert!((tenths - tenths.round()).abs() < 1e-6, "{} at {}", tenths, value);
        }
    }
}

/// Values in ascending order, with counts and sums: evenly spaced, dense at one end, in clusters, or at random.
fn ascending() -> impl Strategy<Value = Vec<Centroid>> {
    let steps = prop::collection::vec((0u32..1000, 1u32..9, -50i32..50), 1..600);
    (steps, 0u32..6, -1000i32..1000).prop_map(|(steps, kind, start)| {
        let mut value = start as f32 / 8.0;
        let mut all: Vec<Centroid> = Vec::new();
        for (place, (step, count, sum)) in steps.into_iter().enumerate() {
            value += match kind {
                0 => 1.0,
                1 => (1 + step) as f32,
                2 => 1.5f32.powi((place % 60) as i32 - 30),
                3 => 1.0 / (1 + place) as f32,
                4 if step % 40 == 0 => 500.0,
                4 => 1e-4 * (1 + step) as f32,
                _ => (1 + step) as f32 * 0.001,
            };
            let last = all.last().map_or(f64::NEG_INFINITY, |last| last.centre);
            if f64::from(value) > last {
                all.push(bin(value.into(), count.into(), f64::from(sum) / 4.0));
            }
        }
        all
    })
}

struct Values<'a>(&'a [Centroid]);

impl ValueBlock for Values<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn at(&self, place: usize) -> f64 {
        self.0[place].centre
    }

    fn split_at(&self, count: usize) -> (Self, Self) {
        let (first, others) = self.0.split_at(count);
        (Values(first), Values(others))
    }

    fn values(&self) -> impl Iterator<Item = Centroid> {
        self.0.iter().copied()
    }

    fn add_to(&self, bin: Bin, _bounds: MomentBounds) -> Bin {
        self.0.iter().fold(bin, |bin, value| bin.and(Bin::of_value(*value)))
    }
}

/// Eq. 10 and 11 literally, with sums of values: compares all pairs, and keeps nothing between insertions.
fn naive_bins(values: &[Centroid], most: usize) -> Vec<Centroid> {
    let mut bins: Vec<(f64, f64, f64)> = Vec::new();
    let centre = |bin: &(f64, f64, f64)| bin.0 / bin.1;
    for value in values {
        bins.push((value.centre * value.count, value.count, value.sum));
        if bins.len() > most {
            let gap = |place: &usize| centre(&bins[place + 1]) - centre(&bins[*place]);
            let nearest = (0..most).reduce(|best, place| if gap(&place) < gap(&best) { place } else { best });
            let place = nearest.unwrap();
            let removed = bins.remove(place + 1);
            let kept = &mut bins[place];
            *kept = (kept.0 + removed.0, kept.1 + removed.1, kept.2 + removed.2);
        }
    }
    bins.iter().map(|own| bin(centre(own), own.1, own.2)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ascending_values_give_the_bins_of_single_insertions(
        values in ascending(), most in 1usize..40, size in 1usize..20,
    ) {
        let reach = values.iter().map(|value| value.centre.abs()).fold(0.0, f64::max);
        let mut fast = StreamingHistogram::new(most);
        fast.insert_ascending(values.chunks(size).map(Values), reach, 1.0);
        let mut single = StreamingHistogram::new(most);
        values.iter().for_each(|value| single.insert(*value));
        prop_assert_eq!(&fast, &single);
        prop_assert_eq!(fast.bins(), naive_bins(&values, most));
        // A larger bound than necessary changes nothing.
        let mut far = StreamingHistogram::new(most);
        far.insert_ascending(values.chunks(size).map(Values), 1e6 * reach, 1.0);
        prop_assert_eq!(&far, &single);
    }
}
