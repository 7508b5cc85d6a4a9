//! ERR: the expected reciprocal rank at which a user who reads from the top stops (Chapelle et al. 2009). The
//! probability of stopping at a document with label l is (2^l - 1)/2^4, unless the convention sets another formula.

use super::convention::{Convention, ErrGrade};
use super::gain::gain;
use super::ranked::{Ranked, Spans, spans};

/// Returns the ERR of the first `depth` documents.
pub(crate) fn err(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let unsatisfied_by = |label: &f32| 1.0 - satisfies(*label, convention.err_grade);
    // Probability that the user is still reading before the current rank or span.
    let mut reading = 1.0;
    let mut sum = 0.0;
    match ranked.ties {
        Spans::Settled => {
            for (rank, label) in ranked.labels.iter().take(depth).enumerate() {
                let satisfied = satisfies(*label, convention.err_grade);
                sum += reading * satisfied / (rank as f64 + 1.0);
                reading *= 1.0 - satisfied;
            }
        }
        Spans::Averaged(ends) => {
            for span in spans(ends).take_while(|span| span.start < depth) {
                let labels = &ranked.labels[span.clone()];
                let on: f64 = labels.iter().map(unsatisfied_by).product();
                if labels.len() == 1 {
                    sum += reading * (1.0 - on) / span.end as f64;
                } else {
                    let unsatisfied: Vec<f64> = labels.iter().map(unsatisfied_by).collect();
                    let reading_on = mean_products(&unsatisfied, span.len().min(depth - span.start));
                    for (pair, rank) in reading_on.windows(2).zip(span.start + 1..) {
                        sum += reading * (pair[0] - pair[1]) / rank as f64;
                    }
                }
                reading *= on;
            }
        }
        Spans::Last(ends) => {
            for span in spans(ends).take_while(|span| span.end <= depth) {
                let on: f64 = ranked.labels[span.clone()].iter().map(unsatisfied_by).product();
                sum += reading * (1.0 - on) / span.end as f64;
                reading *= on;
            }
        }
    }
    sum
}

/// Returns the probability that a user stops at a document with this label. Labels above the highest grade count as
/// the highest grade, and negative labels count as 0.
#[inline]
pub fn satisfies(label: f32, grade: ErrGrade) -> f64 {
    match grade {
        ErrGrade::Highest(4) => gain(label.clamp(0.0, 4.0)) / 16.0,
        ErrGrade::Highest(most) => gain(label.clamp(0.0, most as f32)) / libm::exp2(f64::from(most)),
        ErrGrade::Label => f64::from(label.clamp(0.0, 1.0)),
    }
}

/// Returns the mean product of the first n factors over all orders of the factors, for each n from 0 to `most`. These
/// means are elementary symmetric polynomials, each divided by its number of terms.
fn mean_products(factors: &[f64], most: usize) -> Vec<f64> {
    let mut means = vec![0.0; most + 1];
    means[0] = 1.0;
    for (count, factor) in (1..).zip(factors) {
        for taken in (1..=most.min(count)).rev() {
            // Probability that the new factor is among the first `taken` of `count` factors in a random order.
            let among = taken as f64 / count as f64;
            means[taken] = (1.0 - among) * means[taken] + among * factor * means[taken - 1];
        }
    }
    means
}
