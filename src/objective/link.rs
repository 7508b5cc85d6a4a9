//! The cost of a pair by the difference of its scores: how strongly it pulls the two apart.

/// A cost of x, the score of the document with the higher label less that of the other.
pub trait Link: Copy {
    /// Minus the first and the second derivative.
    fn pull(self, x: f32) -> (f32, f32);
}

/// log(1 + e^(-sigma x)), the cost of RankNet (Burges 2010, section 2).
#[derive(Debug, Clone, Copy)]
pub struct Logistic {
    pub sigma: f32,
}

impl Link for Logistic {
    #[inline(always)]
    fn pull(self, x: f32) -> (f32, f32) {
        let wrong = 1.0 / (1.0 + exp(self.sigma * x));
        (self.sigma * wrong, self.sigma * self.sigma * wrong * (1.0 - wrong))
    }
}

/// max(0, margin - x)^2 / 2, the cost of GBRANK (Tyree et al. 2011, eq. 2).
#[derive(Debug, Clone, Copy)]
pub struct Hinge {
    pub margin: f32,
}

impl Link for Hinge {
    #[inline(always)]
    fn pull(self, x: f32) -> (f32, f32) {
        let short = self.margin - x;
        (if short > 0.0 { short } else { 0.0 }, if short > 0.0 { 1.0 } else { 0.0 })
    }
}

/// e^x by additions and multiplications alone, so that it runs on many numbers at a time and is the
/// same on every machine; within 3e-7 of the true value, up to e^87.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number, which is in its lowest bits in between.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first with so few bits that its multiples are exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (x - whole * LN_2.0) - whole * LN_2.1;
    // The series of e^rest, |rest| <= ln(2)/2.
    let series = 1.0
        + rest
            * (1.0
                + rest
                    * (0.5
                        + rest
                            * (1.0 / 6.0
                                + rest * (1.0 / 24.0 + rest * (1.0 / 120.0 + rest * (1.0 / 720.0))))));
    // 2^whole, put together from the bits of its exponent.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    series * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn powers_of_e_are_true(x in -87.0f32..87.0) {
            let expected = f64::from(x).exp();
            prop_assert!((f64::from(exp(x)) / expected - 1.0).abs() < 3e-7, "{x}");
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
            prop_assert!(close(Logistic { sigma: sigma as f32 }.pull(x as f32), slopes(&logistic)));
            let hinge = |x: f64| (1.0 - x).max(0.0).powi(2) / 2.0;
            prop_assume!((1.0 - x).abs() > 1e-3); // no second derivative there
            prop_assert!(close(Hinge { margin: 1.0 }.pull(x as f32), slopes(&hinge)));
        }
    }

    #[test]
    fn far_apart_nothing_overflows() {
        for x in [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY] {
            let (first, second) = Logistic { sigma: 1.0 }.pull(x);
            assert!((0.0..=1.0).contains(&first) && (0.0..=0.25).contains(&second), "{x}");
        }
    }
}
