//! Computes the loss of a document pair, as a function of the score difference, and its derivatives.

use super::ranked::F32Lanes;
use fearless_simd::{Bytes, Level, Select, Simd, SimdBase, dispatch, u32x8};

/// A loss as a function of x, which is the score of the document with the higher label minus the score of the other
/// document. Derivatives are returned as numerators and denominator, so that the caller can combine the division with
/// another one.
pub(super) trait PairLoss: Copy {
    /// Returns the derivatives at x: the negative first derivative is `first / below`, the second is `second /
    /// below^2`.
    fn derivatives<S: Simd>(self, x: F32Lanes<S>) -> Derivatives<S>;

    /// Returns the negative first derivative and the second derivative at a single x.
    fn derivatives_at(self, x: f32) -> (f32, f32) {
        dispatch!(Level::baseline(), simd => {
            let derivatives = self.derivatives(F32Lanes::splat(simd, x));
            let below = derivatives.below[0];
            (derivatives.first[0] / below, derivatives.second[0] / below / below)
        })
    }
}

/// Derivatives of a loss as two numerators and a shared denominator.
pub(super) struct Derivatives<S: Simd> {
    pub first: F32Lanes<S>,
    pub second: F32Lanes<S>,
    pub below: F32Lanes<S>,
}

/// The RankNet loss, log(1 + e^(-sigma x)) (Burges 2010, section 2).
#[derive(Debug, Clone, Copy)]
pub(super) struct LogisticLoss {
    pub sigma: f32,
}

impl PairLoss for LogisticLoss {
    #[inline(always)]
    fn derivatives<S: Simd>(self, x: F32Lanes<S>) -> Derivatives<S> {
        // Beyond these bounds, the gradient vanishes or saturates. Clamping avoids overflow.
        let power = exp((x * self.sigma).min(60.0).max(-60.0));
        Derivatives {
            first: F32Lanes::splat(x.simd, self.sigma),
            second: power * (self.sigma * self.sigma),
            below: power + 1.0,
        }
    }
}

/// The GBRANK loss, max(0, margin - x)^2 / 2 (Tyree et al. 2011, eq. 2).
#[derive(Debug, Clone, Copy)]
pub(super) struct HingeLoss {
    pub margin: f32,
}

impl PairLoss for HingeLoss {
    #[inline(always)]
    fn derivatives<S: Simd>(self, x: F32Lanes<S>) -> Derivatives<S> {
        let (none, one) = (F32Lanes::splat(x.simd, 0.0), F32Lanes::splat(x.simd, 1.0));
        let short = F32Lanes::splat(x.simd, self.margin) - x;
        let is_short = short.simd_gt(none);
        Derivatives { first: is_short.select(short, none), second: is_short.select(one, none), below: one }
    }
}

/// Computes e^x with additions and multiplications only, so that it vectorises and gives the same result on every
/// machine. x is clamped to -80..80, where the relative error is below 3e-7.
#[inline(always)]
pub(super) fn exp<S: Simd>(x: F32Lanes<S>) -> F32Lanes<S> {
    /// Adding this number rounds the sum to an integer, which is then in the lowest bits. Subtracting it again leaves
    /// the rounded number.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 as a sum of two parts. The first part is short enough that its multiples are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = x.min(80.0).max(-80.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (x - whole * LN_2.0) - whole * LN_2.1;
    // The Taylor series of e^rest, where |rest| <= ln(2)/2.
    let series = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let series = series.iter().fold(F32Lanes::splat(x.simd, 1.0 / 720.0), |sum, term| sum * rest + *term);
    // 2^whole, made by writing the exponent bits.
    let power = (shifted.bitcast::<u32x8<S>>() << 23) + (127 << 23);
    series * power.bitcast::<F32Lanes<S>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exp_is_accurate(x in -80.0f32..80.0) {
            let (expected, found) = (f64::from(x).exp(), dispatch!(Level::new(), simd => exp(F32Lanes::splat(simd, x))[3]));
            prop_assert!((f64::from(found) / expected - 1.0).abs() < 3e-7, "{x}");
        }

        #[test]
        fn derivatives_match_finite_differences(x in -30.0f64..30.0, sigma in 0.1f64..3.0) {
            let step = 1e-4;
            let derivatives = |cost: &dyn Fn(f64) -> f64| {
                let (low, at, high) = (cost(x - step), cost(x), cost(x + step));
                (-(high - low) / (2.0 * step), (high - 2.0 * at + low) / (step * step))
            };
            let close = |(first, second): (f32, f32), (one, two): (f64, f64)| {
                (f64::from(first) - one).abs() < 1e-5 * one.abs().max(1.0) && (f64::from(second) - two).abs() < 1e-4
            };
            let logistic = |x: f64| (-sigma * x).exp().ln_1p();
            let loss = LogisticLoss { sigma: sigma as f32 };
            prop_assert!(close(loss.derivatives_at(x as f32), derivatives(&logistic)));
            let hinge = |x: f64| (1.0 - x).max(0.0).powi(2) / 2.0;
            prop_assume!((1.0 - x).abs() > 1e-3); // the second derivative jumps at 1
            let loss = HingeLoss { margin: 1.0 };
            prop_assert!(close(loss.derivatives_at(x as f32), derivatives(&hinge)));
        }
    }

    #[test]
    fn large_differences_do_not_overflow() {
        for x in [1e-3, 0.1, 1.0, 80.0, f32::MAX, -0.1, -80.0] {
            let (first, second) = LogisticLoss { sigma: 1000.0 }.derivatives_at(x);
            assert!(first.is_finite() && second.is_finite() && second >= 0.0, "{x}");
        }
        for x in [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY] {
            let (first, second) = LogisticLoss { sigma: 1.0 }.derivatives_at(x);
            assert!((0.0..=1.0).contains(&first) && (0.0..=0.25).contains(&second), "{x}");
        }
    }
}
