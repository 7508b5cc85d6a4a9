//! The cost of a pair by the difference of its scores: how strongly it pulls the two apart.

use super::ranked::Lanes;
use fearless_simd::{Bytes, Level, Select, Simd, SimdBase, dispatch, u32x8};

/// A cost of x, the score of the document with the higher label less that of the other. Its derivatives are
/// fractions, whose only division comes later, together with another one.
pub trait Link: Copy {
    /// Minus the first derivative is `first / below`, the second is `second / below^2`.
    fn slopes<S: Simd>(self, x: Lanes<S>) -> Slopes<S>;

    /// Minus the first and the second derivative at one x.
    fn pull(self, x: f32) -> (f32, f32) {
        dispatch!(Level::baseline(), simd => {
            let slopes = self.slopes(Lanes::splat(simd, x));
            let below = slopes.below[0];
            (slopes.first[0] / below, slopes.second[0] / below / below)
        })
    }
}

/// The derivatives of a cost, undivided.
pub struct Slopes<S: Simd> {
    pub first: Lanes<S>,
    pub second: Lanes<S>,
    pub below: Lanes<S>,
}

/// log(1 + e^(-sigma x)), the cost of RankNet (Burges 2010, section 2).
#[derive(Debug, Clone, Copy)]
pub struct Logistic {
    pub sigma: f32,
}

impl Link for Logistic {
    #[inline(always)]
    fn slopes<S: Simd>(self, x: Lanes<S>) -> Slopes<S> {
        // Beyond, the pull is over anyway, and nothing may overflow.
        let power = exp((x * self.sigma).min(60.0).max(-60.0));
        Slopes {
            first: Lanes::splat(x.simd, self.sigma),
            second: power * (self.sigma * self.sigma),
            below: power + 1.0,
        }
    }
}

/// max(0, margin - x)^2 / 2, the cost of GBRANK (Tyree et al. 2011, eq. 2).
#[derive(Debug, Clone, Copy)]
pub struct Hinge {
    pub margin: f32,
}

impl Link for Hinge {
    #[inline(always)]
    fn slopes<S: Simd>(self, x: Lanes<S>) -> Slopes<S> {
        let (none, one) = (Lanes::splat(x.simd, 0.0), Lanes::splat(x.simd, 1.0));
        let short = Lanes::splat(x.simd, self.margin) - x;
        let is_short = short.simd_gt(none);
        Slopes { first: is_short.select(short, none), second: is_short.select(one, none), below: one }
    }
}

/// e^x by additions and multiplications alone, so that it runs on many numbers at a time and is the
/// same on every machine; within 3e-7 of the true value, up to e^80.
#[inline(always)]
pub fn exp<S: Simd>(x: Lanes<S>) -> Lanes<S> {
    /// Adding and subtracting it rounds to a whole number, which is in its lowest bits in between.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first with so few bits that its multiples are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = x.min(80.0).max(-80.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (x - whole * LN_2.0) - whole * LN_2.1;
    // The series of e^rest, |rest| <= ln(2)/2.
    let series = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let series = series.iter().fold(Lanes::splat(x.simd, 1.0 / 720.0), |sum, term| sum * rest + *term);
    // 2^whole, put together from the bits of its exponent.
    let power = (shifted.bitcast::<u32x8<S>>() << 23) + (127 << 23);
    series * power.bitcast::<Lanes<S>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn powers_of_e_are_true(x in -80.0f32..80.0) {
            let (expected, found) = (f64::from(x).exp(), dispatch!(Level::new(), simd => exp(Lanes::splat(simd, x))[3]));
            prop_assert!((f64::from(found) / expected - 1.0).abs() < 3e-7, "{x}");
        }

        #[test]
        fn pulls_are_the_derivatives_of_the_cost(x in -30.0f64..30.0, sigma in 0.1f64..3.0) {
            let step = 1e-4;
            let slopes = |cost: &dyn Fn(f64) -> f64| {
                let (low, at, high) = (cost(x - step), cost(x), cost(x + step));
                (-(high - low) / (2.0 * step), (high - 2.0 * at + low) / (step * step))
            };
            let close = |(first, second): (f32, f32), (one, two): (f64, f64)| {
                (f64::from(first) - one).abs() < 1e-5 * one.abs().max(1.0) && (f64::from(second) - two).abs() < 1e-4
            };
            let logistic = |x: f64| (-sigma * x).exp().ln_1p();
            let link = Logistic { sigma: sigma as f32 };
            prop_assert!(close(link.pull(x as f32), slopes(&logistic)));
            let hinge = |x: f64| (1.0 - x).max(0.0).powi(2) / 2.0;
            prop_assume!((1.0 - x).abs() > 1e-3); // no second derivative there
            let link = Hinge { margin: 1.0 };
            prop_assert!(close(link.pull(x as f32), slopes(&hinge)));
        }
    }

    #[test]
    fn far_apart_nothing_overflows() {
        for x in [1e-3, 0.1, 1.0, 80.0, f32::MAX, -0.1, -80.0] {
            let (first, second) = Logistic { sigma: 1000.0 }.pull(x);
            assert!(first.is_finite() && second.is_finite() && second >= 0.0, "{x}");
        }
        for x in [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY] {
            let (first, second) = Logistic { sigma: 1.0 }.pull(x);
            assert!((0.0..=1.0).contains(&first) && (0.0..=0.25).contains(&second), "{x}");
        }
    }
}
