//! Log loss of one of several classes that are coupled by a softmax (Li, Burges, Wu: McRank, 2007).
//!
//! With the scores s_1 ... s_K of the classes of a document, the probability of class k is
//!
//! ```text
//! p_k = e^(s_k) / sum over j of e^(s_j) = 1 / (1 + e^(-o_k)),   o_k = s_k - log(sum over j != k of e^(s_j))
//! ```
//!
//! So the gradient of a class is that of a logistic loss at the log odds `o_k`, which the driver computes from the scores
//! of all classes ([`log_odds`]). Labels are 1 for documents of the class and 0 for all others.

use super::{Gradients, Objective, Query, QueryBuffers};

/// Log loss of a class. Scores are log odds against all other classes.
#[derive(Debug)]
pub(super) struct SoftmaxClass {
    /// Factor of the hessian: K / (K - 1), by which Friedman's Newton steps for K classes differ from the diagonal of the
    /// hessian, because all classes move at the same time.
    factor: f64,
}

impl SoftmaxClass {
    /// Creates the objective of one of `classes` classes.
    pub(super) fn new(classes: usize) -> Self {
        let classes = classes.max(2) as f64;
        SoftmaxClass { factor: classes / (classes - 1.0) }
    }
}

impl Objective for SoftmaxClass {
    fn gradients(&self, query: &Query<'_>, _buffers: &mut QueryBuffers, out: Gradients<'_>) {
        for (place, (label, odds)) in query.labels.iter().zip(query.scores).enumerate() {
            let probability = 1.0 / (1.0 + libm::exp(-odds));
            out.gradients[place] = (f64::from(*label) - probability) as f32;
            out.hessians[place] = (self.factor * probability * (1.0 - probability)) as f32;
        }
    }

    fn has_gradient(&self, _labels: &[f32]) -> bool {
        true
    }

    fn weights_rows(&self) -> bool {
        true
    }

    /// Returns the logarithm of the share of the class, so that the softmax of all classes is the distribution of labels.
    fn start(&self, positive: f64) -> f64 {
        libm::log(positive.clamp(1e-12, 1.0)) // weights of 0 may leave a class empty
    }
}

/// Replaces the scores of a document's classes by the log odds of each class against all others.
pub(crate) fn log_odds(scores: &mut [f64]) {
    let (mut first, mut second) = (0, f64::NEG_INFINITY);
    for place in 1..scores.len() {
        if scores[place] > scores[first] {
            second = scores[first];
            first = place;
        } else {
            second = second.max(scores[place]);
        }
    }
    let most = scores[first];
    // The largest score is among the others of every class but its own, so no sum underflows to 0.
    let others = |class: usize, most: f64| -> f64 {
        let others = scores.iter().enumerate().filter(|(other, _)| *other != class);
        most + libm::log(others.map(|(_, score)| libm::exp(score - most)).sum())
    };
    let odds: Vec<f64> = (0..scores.len())
        .map(|class| scores[class] - others(class, if class == first { second } else { most }))
        .collect();
    scores.copy_from_slice(&odds);
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;

    /// Multinomial log loss of a document.
    fn loss(scores: &[f64], class: usize) -> f64 {
        scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[class]
    }

    fn gradient(scores: &[f64], class: usize, label: f32) -> (f64, f64) {
        let mut odds = scores.to_vec();
        log_odds(&mut odds);
        let query = Query {
            number: 0,
            round: 1,
            labels: &[label],
            scores: &odds[class..=class],
            positions: None,
            label_constant: 0.0,
        };
        let (mut gradients, mut hessians) = ([0.0], [0.0]);
        let out = Gradients { gradients: &mut gradients, hessians: &mut hessians };
        SoftmaxClass::new(scores.len()).gradients(&query, &mut QueryBuffers::default(), out);
        (f64::from(gradients[0]), f64::from(hessians[0]))
    }

    #[test]
    fn gradients_are_finite_differences_of_the_multinomial_log_loss() {
        let mut draw = Stream::new(&[7]);
        for classes in 2..7 {
            for _ in 0..50 {
                let scores: Vec<f64> = (0..classes).map(|_| 2.0 * draw.normal()).collect();
                let label = draw.bits() as usize % classes;
                for class in 0..classes {
                    let moved = |step: f64| {
                        let mut scores = scores.clone();
                        scores[class] += step;
                        loss(&scores, label)
                    };
                    const STEP: f64 = 1e-4;
                    let first = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                    let second = (moved(STEP) - 2.0 * moved(0.0) + moved(-STEP)) / (STEP * STEP);
                    let (gradient, hessian) =
                        gradient(&scores, class, if class == label { 1.0 } else { 0.0 });
                    let factor = classes as f64 / (classes as f64 - 1.0);
                    assert!((gradient + first).abs() < 1e-6, "{gradient} {first}");
                    assert!((hessian - factor * second).abs() < 1e-5, "{hessian} {second}");
                }
            }
        }
    }

    #[test]
    fn log_odds_are_finite_for_all_finite_scores() {
        for scores in [[0.0, 0.0, 0.0], [900.0, -900.0, 0.0], [-2000.0, -2000.0, -4000.0], [5.0, 5.0, -1e4]] {
            let mut odds = scores;
            log_odds(&mut odds);
            assert!(odds.iter().all(|odds| odds.is_finite()), "{odds:?}");
            let sum: f64 = odds.iter().map(|odds| 1.0 / (1.0 + (-odds).exp())).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        }
        let mut two = [0.5, -0.75];
        log_odds(&mut two);
        assert_eq!(two, [1.25, -1.25]);
    }
}
