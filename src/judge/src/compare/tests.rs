use super::*;

fn aligned(values: &[&[f64]]) -> AlignedSystems {
    AlignedSystems {
        queries: (0..values[0].len()).map(|query| format!("q{query}")).collect(),
        values: values.iter().map(|values| values.to_vec()).collect(),
        uncounted: 0,
        notes: Vec::new(),
    }
}

fn options() -> ComparisonOptions {
    ComparisonOptions {
        higher_is_better: true,
        test: SignificanceTest::Randomisation,
        alternative: Alternative::TwoSided,
        alpha: 0.05,
        permutations: 1000,
        resamples: 1000,
        level: 0.95,
        seed: 1,
        top: 2,
    }
}

#[test]
fn a_pair_worked_by_hand() {
    let a = [0.5, 0.25, 0.0, 1.0, 0.5, 0.75];
    let b = [0.75, 0.5, 0.0, 0.5, 1.0, 0.75];
    let pairs = compare(&aligned(&[&a, &b]), &options()).unwrap();
    let [pair] = pairs.as_slice() else { panic!("expected one pair") };
    assert_eq!((pair.a, pair.b, pair.mean_a, pair.mean_b), (0, 1, 0.5, 3.5 / 6.0));
    assert_eq!((pair.wins, pair.ties, pair.losses), (3, 2, 1));
    assert_eq!((pair.improved.as_slice(), pair.worsened.as_slice()), (&[4, 0][..], &[3][..]));
    assert_eq!(pair.difference.mean, 0.5 / 6.0);
    // The differences are 1, 1, -2 and 2 quarters. Of 16 sign assignments, 4 sum to zero, and all others are at least
    // as far from zero as the observed sum.
    assert_eq!((pair.randomisation.p, pair.randomisation.is_exact), (0.75, true));
    assert_eq!((pair.corrected, pair.differs), (0.75, false));
    let interval = pair.interval.unwrap();
    assert!(interval.low < 0.0 && interval.high > pair.difference.mean);
}

#[test]
fn lower_may_be_better() {
    let options = ComparisonOptions { higher_is_better: false, ..options() };
    let pairs = compare(&aligned(&[&[0.5, 0.25, 0.5], &[0.75, 0.0, 0.75]]), &options).unwrap();
    assert_eq!((pairs[0].wins, pairs[0].losses, pairs[0].difference.mean), (1, 2, 0.25 / 3.0));
    assert_eq!((pairs[0].improved.as_slice(), pairs[0].worsened.as_slice()), (&[1][..], &[0, 2][..]));
}

#[test]
fn a_system_does_not_differ_from_itself() {
    let values: Vec<f64> = (0..40).map(|query| f64::from(query) / 40.0).collect();
    for test in [SignificanceTest::Randomisation, SignificanceTest::T, SignificanceTest::Wilcoxon] {
        let pairs = compare(&aligned(&[&values, &values]), &ComparisonOptions { test, ..options() }).unwrap();
        assert_eq!((pairs[0].randomisation.p, pairs[0].wilcoxon.p), (1.0, 1.0));
        assert_eq!((pairs[0].t_test, pairs[0].differs, pairs[0].corrected), (None, false, 1.0));
        assert_eq!((pairs[0].wins, pairs[0].ties, pairs[0].losses), (0, 40, 0));
        assert_eq!(pairs[0].interval.map(|interval| (interval.low, interval.high)), Some((0.0, 0.0)));
        assert!(pairs[0].improved.is_empty() && pairs[0].worsened.is_empty());
    }
}

#[test]
fn all_pairs_are_corrected_together() {
    let mut draw = planetree_base::random::Stream::new(&[1]);
    let base: Vec<f64> = (0..60).map(|_| draw.uniform()).collect();
    let mut shifted =
        |shift: f64| -> Vec<f64> { base.iter().map(|value| value + shift + 0.1 * draw.normal()).collect() };
    let values = [shifted(0.0), shifted(0.04), shifted(0.2), shifted(0.0)];
    let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    for test in [SignificanceTest::Randomisation, SignificanceTest::T, SignificanceTest::Wilcoxon] {
        let pairs = compare(&aligned(&values), &ComparisonOptions { test, ..options() }).unwrap();
        let indices: Vec<(usize, usize)> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        assert_eq!(indices, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        let uncorrected: Vec<f64> = pairs.iter().map(|pair| pair.p(test).unwrap()).collect();
        let corrected: Vec<f64> = pairs.iter().map(|pair| pair.corrected).collect();
        assert_eq!(corrected, holm(&uncorrected));
        for pair in &pairs {
            assert_eq!(pair.differs, pair.corrected <= 0.05);
            assert_eq!(pair.a == 2 || pair.b == 2, pair.corrected < 0.01, "{test:?} {pair:?}");
        }
    }
}
