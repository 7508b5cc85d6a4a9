//! Compares every objective with a naive reference: a loop over all pairs in double precision, and finite differences
//! of the loss where there is a loss function.

use super::*;
use crate::config::{BoostSettings, PairwiseParameters, load};
use planetree_metric::{Convention, Metric};
use proptest::prelude::*;

fn parameters(settings: &[&str]) -> BoostSettings {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let plan = load(None, None, &settings).unwrap();
    let parameters = plan.first();
    parameters.with(parameters.boost().unwrap().clone())
}

fn made(parameters: &BoostSettings) -> Option<Box<dyn Objective>> {
    objective(&parameters.learner.objective, parameters.seed)
}

fn pairwise(parameters: &BoostSettings) -> &PairwiseParameters {
    let ObjectiveParameters::Pairwise(pairwise) = &parameters.learner.objective else {
        panic!("not a pairwise objective")
    };
    pairwise
}

fn gradients_of(objective: &dyn Objective, labels: &[f32], scores: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut gradients, mut hessians) = (vec![7.0; labels.len()], vec![7.0; labels.len()]);
    let query = Query {
        number: 3,
        round: 2,
        labels,
        scores,
        positions: None,
        label_constant: objective.label_constant(labels),
    };
    let mut buffers = QueryBuffers::default();
    // Values that an earlier query left in the buffers must not matter.
    let other = Query { labels: &[1.0, 0.0, 2.0], scores: &[0.5, 1.0, 0.0], label_constant: 1.0, ..query };
    objective.gradients(
        &other,
        &mut buffers,
        Gradients { gradients: &mut [0.0; 3], hessians: &mut [0.0; 3] },
    );
    objective.gradients(
        &query,
        &mut buffers,
        Gradients { gradients: &mut gradients, hessians: &mut hessians },
    );
    let doubled = |numbers: Vec<f32>| numbers.into_iter().map(f64::from).collect();
    (doubled(gradients), doubled(hessians))
}

/// Computes gradients and hessians over all pairs in double precision. Deltas are computed by evaluating the metric
/// before and after each swap.
fn naive_gradients(parameters: &PairwiseParameters, labels: &[f32], scores: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let scores: Vec<f64> = {
        let best = scores.iter().copied().fold(f64::MIN, f64::max);
        scores.iter().map(|score| f64::from((score - best) as f32)).collect()
    };
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap());
    let ranked: Vec<f32> = order.iter().map(|place| labels[*place]).collect();
    let convention = Convention { gain: parameters.label_gain.clone(), ..Convention::default() };
    let (mut gradients, mut hessians) = (vec![0.0; labels.len()], vec![0.0; labels.len()]);
    let last = parameters.truncation_level.map_or(usize::MAX, |level| level as usize);
    let spread = order.len() > 1 && scores[order[0]] != scores[order[order.len() - 1]];
    // NDCG without a depth is limited to the truncation level.
    let metric = match parameters.metric {
        Some(Metric::Ndcg(None)) => Some(Metric::Ndcg(parameters.truncation_level)),
        other => other,
    };
    let mut total = 0.0;
    for i in 0..order.len() {
        for j in i + 1..order.len() {
            if i >= last || ranked[i] == ranked[j] {
                continue;
            }
            let (high, low) = if ranked[i] > ranked[j] { (order[i], order[j]) } else { (order[j], order[i]) };
            let x = scores[high] - scores[low];
            let mut weight = metric.map_or(1.0, |metric| metric.swap_delta(&convention, &ranked, i, j).abs());
            if parameters.normalised && spread {
                weight /= 0.01 + x.abs();
            }
            let (first, second) = match parameters.loss {
                PairwiseLoss::Hinge { margin } => ((margin - x).max(0.0), if x < margin { 1.0 } else { 0.0 }),
                PairwiseLoss::Logistic { sigma, .. } => {
                    let wrong = 1.0 / (1.0 + (sigma * x).exp());
                    (sigma * wrong, sigma * sigma * wrong * (1.0 - wrong))
                }
            };
            total += 2.0 * weight * first;
            gradients[high] += weight * first;
            gradients[low] -= weight * first;
            hessians[high] += weight * second;
            hessians[low] += weight * second;
        }
    }
    if parameters.normalised && total > 0.0 {
        let factor = (1.0 + total).log2() / total;
        gradients.iter_mut().chain(&mut hessians).for_each(|value| *value *= factor);
    }
    (gradients, hessians)
}

fn documents() -> impl Strategy<Value = (Vec<f32>, Vec<f64>)> {
    let document = ((0u8..5).prop_map(f32::from), prop_oneof![(-3i8..3).prop_map(f64::from), -5.0..5.0]);
    proptest::collection::vec(document, 1..70).prop_map(|documents| documents.into_iter().unzip())
}

const PAIRWISE: [&[&str]; 9] = [
    &["objective=ranknet", "truncation_level=0", "lambda_norm=false"],
    &["objective=ranknet", "truncation_level=7", "sigma=2"],
    &["objective=lambdarank"],
    &["objective=lambdarank", "lambda_metric=ndcg@10", "lambda_norm=false", "truncation_level=12"],
    &["objective=lambdarank", "label_gain=0,2,3,4,9"],
    &["objective=lambdarank", "lambda_metric=err", "truncation_level=0"],
    &["objective=lambdarank", "lambda_metric=err@5", "lambda_norm=false"],
    &["objective=lambdarank", "lambda_metric=map"],
    &["objective=gbrank", "margin=1.5", "truncation_level=20"],
];

/// Checks that all gradients equal those of the naive loop.
fn check_pairs(labels: &[f32], scores: &[f64]) -> Result<(), TestCaseError> {
    for settings in PAIRWISE {
        let parameters = parameters(settings);
        let (gradients, hessians) = gradients_of(&*made(&parameters).unwrap(), labels, scores);
        let (slow_gradients, slow_hessians) = naive_gradients(pairwise(&parameters), labels, scores);
        for (fast, slow) in [(&gradients, &slow_gradients), (&hessians, &slow_hessians)] {
            let most = slow.iter().fold(1e-3f64, |most, value| most.max(value.abs()));
            for (one, other) in fast.iter().zip(slow) {
                prop_assert!((one - other).abs() < 2e-5 * most, "{settings:?}: {fast:?} {slow:?}");
            }
        }
        let sum: f64 = gradients.iter().sum();
        let size: f64 = gradients.iter().map(|gradient| gradient.abs()).sum();
        prop_assert!(sum.abs() <= 1e-5 * size.max(1e-3), "{settings:?}: {sum} of {size}");
        prop_assert!(hessians.iter().all(|hessian| *hessian >= 0.0));
    }
    Ok(())
}

#[test]
fn err_deltas_stay_precise_behind_many_relevant_documents() {
    check_pairs(&[4.0, 4.0, 4.0, 4.0, 1.0, 0.0], &[1.0, 3.4, 0.0, 3.9, 0.0, -2.5]).unwrap();
}

proptest! {
    #[test]
    fn pairwise_gradients_match_a_naive_loop((labels, scores) in documents()) {
        check_pairs(&labels, &scores)?;
    }

    #[test]
    fn metrics_without_a_closed_form_use_every_swap((labels, scores) in documents()) {
        for metric in ["p@5", "mrr", "map@7", "dcg@10", "recall@3"] {
            let settings = ["objective=lambdarank".to_owned(), format!("lambda_metric={metric}")];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let parameters = parameters(&settings);
            let (gradients, _) = gradients_of(&*made(&parameters).unwrap(), &labels, &scores);
            let (slow, _) = naive_gradients(pairwise(&parameters), &labels, &scores);
            let most = slow.iter().fold(1e-3f64, |most, value| most.max(value.abs()));
            for (one, other) in gradients.iter().zip(&slow) {
                prop_assert!((one - other).abs() < 2e-5 * most, "{metric}: {gradients:?} {slow:?}");
            }
        }
    }

    #[test]
    fn gradients_match_finite_differences((labels, scores) in documents()) {
        type Cost = fn(&[f32], &[f64]) -> f64;
        let costs: [(&[&str], Cost); 5] = [
            (&["objective=ranknet", "truncation_level=0", "lambda_norm=false"], |labels, scores| {
                of_pairs(labels, scores, |x| (-x).exp().ln_1p())
            }),
            (&["objective=gbrank", "truncation_level=0", "lambda_norm=false"], |labels, scores| {
                of_pairs(labels, scores, |x| (1.0 - x).max(0.0).powi(2) / 2.0)
            }),
            (&["objective=logistic", "relevant_from=2"], |labels, scores| {
                let cost = |(label, score): (&f32, &f64)| {
                    (if *label >= 2.0 { -score } else { *score }).exp().ln_1p()
                };
                labels.iter().zip(scores).map(cost).sum()
            }),
            (&["objective=listnet"], |labels, scores| {
                let shares = |numbers: &[f64]| -> Vec<f64> {
                    let sum: f64 = numbers.iter().map(|number| number.exp()).sum();
                    numbers.iter().map(|number| number.exp() / sum).collect()
                };
                let wanted: Vec<f64> = labels.iter().map(|label| f64::from(*label)).collect();
                -shares(&wanted).iter().zip(shares(scores)).map(|(want, share)| want * share.ln()).sum::<f64>()
            }),
            (&["objective=query_rmse"], |labels, scores| {
                let errors = || labels.iter().zip(scores).map(|(label, score)| f64::from(*label) - score);
                let mean = errors().sum::<f64>() / labels.len() as f64;
                errors().map(|error| (error - mean).powi(2) / 2.0).sum()
            }),
        ];
        for (settings, cost) in costs {
            let parameters = parameters(settings);
            let (gradients, hessians) = gradients_of(&*made(&parameters).unwrap(), &labels, &scores);
            for place in 0..labels.len() {
                let at = |step: f64| {
                    let mut scores = scores.clone();
                    scores[place] += step;
                    cost(&labels, &scores)
                };
                let step = 1e-5;
                let slope = -(at(step) - at(-step)) / (2.0 * step);
                prop_assert!((gradients[place] - slope).abs() < 1e-3 * slope.abs().max(1.0),
                    "{settings:?} {place}: {} {slope}", gradients[place]);
                if !settings[0].contains("gbrank") && !settings[0].contains("query_rmse") {
                    let step = 1e-3;
                    let bend = (at(step) - 2.0 * at(0.0) + at(-step)) / (step * step);
                    prop_assert!((hessians[place] - bend).abs() < 1e-3 * bend.abs().max(1.0),
                        "{settings:?} {place}: {} {bend}", hessians[place]);
                }
            }
        }
    }
}

fn of_pairs(labels: &[f32], scores: &[f64], cost: impl Fn(f64) -> f64) -> f64 {
    let mut sum = 0.0;
    for i in 0..labels.len() {
        for j in 0..labels.len() {
            if labels[i] > labels[j] {
                sum += cost(scores[i] - scores[j]);
            }
        }
    }
    sum
}

#[test]
fn a_score_difference_of_a_hundredth_does_not_divide_by_zero() {
    let behind = f64::from(0.01f32);
    for settings in PAIRWISE {
        let parameters = parameters(settings);
        let out = gradients_of(&*made(&parameters).unwrap(), &[1.0, 0.0, 2.0], &[behind, 0.0, 0.0]);
        assert!(out.0.iter().chain(&out.1).all(|value| value.is_finite()), "{settings:?}: {out:?}");
    }
}

#[test]
fn xendcg_noise_differs_by_round_and_query_and_gradients_sum_to_zero() {
    let parameters = parameters(&["objective=xendcg"]);
    let objective = made(&parameters).unwrap();
    let (labels, scores) = ([0.0, 1.0, 4.0, 0.0], [0.3, 0.1, -0.2, 0.5]);
    let compute = |round, number| {
        let (mut gradients, mut hessians) = ([0.0; 4], [0.0; 4]);
        let query =
            Query { number, round, labels: &labels, scores: &scores, positions: None, label_constant: 0.0 };
        let out = Gradients { gradients: &mut gradients, hessians: &mut hessians };
        objective.gradients(&query, &mut QueryBuffers::default(), out);
        gradients
    };
    assert_eq!(compute(1, 1), compute(1, 1));
    assert_ne!(compute(1, 1), compute(2, 1));
    assert_ne!(compute(1, 1), compute(1, 2));
    for round in 0..200 {
        let gradients = compute(round, 5);
        assert!(gradients.iter().sum::<f32>().abs() < 1e-6);
        // The third document's target is at least (2^4 - 1) / (2^0 + 2^1 + 2^4 + 2^0), its softmax below 1/4.
        assert!(gradients[2] > 0.5 && gradients.iter().all(|value| value.abs() < 1.0));
    }
}

#[test]
fn clicks_at_lower_positions_count_more_once_the_bias_is_learned() {
    let parameters = parameters(&["objective=lambdarank", "unbiased=true"]);
    let mut objective = made(&parameters).unwrap();
    // The first document is always clicked, so a click on the last document is informative.
    let (labels, scores) = ([1.0, 0.0, 0.0, 1.0], [0.0; 4]);
    let positions = [0, 1, 2, 3];
    let compute = |objective: &dyn Objective, buffers: &mut QueryBuffers, labels: &[f32]| {
        let (mut gradients, mut hessians) = ([0.0; 4], [0.0; 4]);
        let label_constant = objective.label_constant(labels);
        let query = Query {
            number: 0,
            round: 1,
            labels,
            scores: &scores,
            positions: Some(&positions),
            label_constant,
        };
        objective.gradients(
            &query,
            buffers,
            Gradients { gradients: &mut gradients, hessians: &mut hessians },
        );
        gradients
    };
    let mut buffers = QueryBuffers::default();
    let before = compute(&*objective, &mut buffers, &labels);
    for _ in 0..20 {
        compute(&*objective, &mut buffers, &[1.0, 0.0, 0.0, 0.0]);
    }
    assert!(objective.learns());
    objective.learn(&std::mem::take(&mut buffers.losses));
    let after = compute(&*objective, &mut buffers, &labels);
    assert!(after[3] / after[0] > before[3] / before[0], "{before:?} {after:?}");
    let mut merged = PositionLosses::default();
    merged.merge(&buffers.losses);
    assert_eq!(merged, buffers.losses);
}

proptest! {
    #[test]
    fn rankboost_sums_the_weights_of_all_pairs(
        documents in proptest::collection::vec(((0_u8..4).prop_map(f32::from), -3.0..3.0f64), 1..40), shift in -900.0..900.0f64,
    ) {
        let (labels, scores): (Vec<f32>, Vec<f64>) =
            documents.iter().map(|(label, score)| (*label, score + shift)).unzip();
        let (mut gradients, mut hessians) = (vec![0.0; labels.len()], vec![0.0; labels.len()]);
        let mut pairs = 0.0;
        for better in 0..labels.len() {
            for worse in (0..labels.len()).filter(|worse| labels[better] > labels[*worse]) {
                let weight = (scores[worse] - scores[better]).exp();
                gradients[better] += weight;
                gradients[worse] -= weight;
                hessians[better] += weight / 2.0;
                hessians[worse] += weight / 2.0;
                pairs += weight;
            }
        }
        let found = gradients_of(&rankboost::RankBoost, &labels, &scores);
        let largest = hessians.iter().copied().fold(1.0, f64::max);
        for (found, expected) in found.0.iter().zip(&gradients).chain(found.1.iter().zip(&hessians)) {
            prop_assert!((found - expected).abs() < 1e-5 * largest, "{found} {expected}");
        }
        prop_assert!((found.1.iter().sum::<f64>() - pairs).abs() < 1e-5 * (1.0 + pairs));
    }
}
