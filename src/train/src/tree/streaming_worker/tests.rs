//! Tests of histograms that are fed in blocks against single insertions.

use super::*;
use proptest::prelude::*;

/// Features with many values in ascending order: evenly spaced, over many orders of magnitude, in clusters, negative or zero.
fn centres() -> impl Strategy<Value = Vec<f32>> {
    let steps = prop::collection::vec((1u32..1000, any::<u16>()), 1..900);
    (steps, 0u32..6).prop_map(|(steps, kind)| {
        let mut values: Vec<f32> = Vec::new();
        for (place, (step, bits)) in steps.iter().enumerate() {
            let noise = 1.0 + f32::from(*bits) / 65536.0;
            values.push(match kind {
                0 => place as f32 / 64.0 - 3.0,
                1 => noise * 2f32.powi((place % 200) as i32 - 130),
                2 => (*step as f32 / 250.0).floor() + noise * 1e-3,
                3 => -noise * *step as f32,
                4 => *step as f32 / 1000.0,
                _ => (noise - 1.5) * 2f32.powi((place % 90) as i32 - 60),
            });
        }
        values.push(0.0);
        values.sort_by(f32::total_cmp);
        values.dedup();
        values
    })
}

fn bins_of(centres: Vec<f32>) -> FeatureBins {
    FeatureBins {
        cuts: centres[1..].to_vec(),
        centres,
        fill: Some(0.0),
        missing_code: None,
        missing_seen: false,
        common_code: 0,
        common_share: 0.0,
    }
}

/// Inserts values one by one. The gradients of a value without weight belong to the bin below it, or to the first bin.
fn single(most: usize, scale: &Scale, values: impl Iterator<Item = (f32, GradientSums)>) -> Vec<Centroid> {
    let (mut all, mut early) = (Vec::<Centroid>::new(), 0.0);
    for (centre, sums) in values {
        let (count, sum) = (sums.weight as f64 / scale.weight, sums.gradient as f64 / scale.gradient);
        match all.last_mut() {
            _ if sums.weight > 0 => {
                all.push(Centroid {
                    centre: f64::from(centre),
                    count,
                    sum: sum + std::mem::take(&mut early),
                });
            }
            Some(last) => last.sum += sum, // the last bin contains the value before
            None => early += sum,
        }
    }
    let mut histogram = StreamingHistogram::new(most);
    all.iter().for_each(|value| histogram.insert(*value));
    histogram.bins()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn blocks_of_values_give_the_bins_of_single_insertions(
        centres in centres(), most in 2usize..40, counts in prop::collection::vec((0i64..4, -900i64..=900), 50),
        weight in prop::sample::select(vec![1.0, 8.0, 65536.0]), kind in 0u32..3,
    ) {
        let scale = Scale { count_bits: 20, gradient: 64.0, weight };
        let sums = |(count, gradient): &(i64, i64)| GradientSums {
            gradient: count * gradient,
            weight: count * match kind {
                0 => 1 + gradient.abs(),
                1 => (1 << 36) + gradient,
                _ => (gradient.abs() - 300).max(0), // many rows without weight
            },
            count: *count,
        };
        let sums: Vec<GradientSums> = (0..centres.len()).map(|place| sums(&counts[place * 7 % counts.len()])).collect();
        let cells: Vec<[i64; 2]> = sums.iter().map(|sums| Cell::of_sums(*sums, scale.count_bits)).collect();
        let single = single(most, &scale, centres.iter().copied().zip(sums.iter().copied()));
        let bins = bins_of(centres);
        prop_assert_eq!(&WorkerHistogram::of_cells(most, &bins, &scale, &cells).bins, &single);
        let list = (0..).zip(&cells).filter(|(_, cell)| cell[0] != 0).map(|(code, cell)| (code, *cell));
        let list: Vec<(u32, [i64; 2])> = list.collect();
        prop_assert_eq!(&WorkerHistogram::of_list(most, &bins, &scale, &list).bins, &single);
    }

    #[test]
    fn rows_without_weights_give_the_bins_of_single_insertions(
        centres in centres(), most in 2usize..40, counts in prop::collection::vec((0i64..4, -900i64..=900), 50),
    ) {
        let scale = Scale { count_bits: 20, gradient: 64.0, weight: 1.0 };
        let sums = |(count, gradient): &(i64, i64)| {
            GradientSums { gradient: count * gradient, weight: *count, count: *count }
        };
        let sums: Vec<GradientSums> = (0..centres.len()).map(|place| sums(&counts[place * 7 % counts.len()])).collect();
        let cells: Vec<i64> = sums.iter().map(|sums| Cell::of_sums(*sums, scale.count_bits)).collect();
        let single = single(most, &scale, centres.iter().copied().zip(sums.iter().copied()));
        let bins = bins_of(centres);
        prop_assert_eq!(&WorkerHistogram::of_cells(most, &bins, &scale, &cells).bins, &single);
    }
}

#[test]
fn moments_within_bounds_are_exact_in_any_order() {
    let values: Vec<f64> =
        (0..2000u32).map(|place| f64::from(0.001 + f32::sqrt(place as f32) / 7.0)).collect();
    let bounds = MomentBounds::of(values[0], values[1999], 1.0);
    let sum = |values: &mut dyn Iterator<Item = &f64>| values.fold(0.0, |sum, value| sum + 3.0 * value);
    assert!(bounds.are_exact(6000.0) && !bounds.are_exact(1e9));
    assert_eq!(sum(&mut values.iter()), sum(&mut values.iter().rev()));
    assert!(!MomentBounds::of(1e-30, 1.0, 1.0).are_exact(3.0));
    assert!(MomentBounds::of(-3.0, -1.5, 0.125).are_exact(2.0));
    assert!(MomentBounds::of(0.0, 0.0, 0.125).are_exact(1e300));
    // The smallest float32 is a multiple of itself only.
    let tiny = f64::from(f32::from_bits(1));
    assert!(
        MomentBounds::of(tiny, tiny, 1.0).are_exact(1e15) && !MomentBounds::of(tiny, 1.0, 1.0).are_exact(1.0)
    );
    for (first, last) in [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0)] {
        assert!(!MomentBounds::of(first, last, 1.0).are_exact(1.0));
    }
}
