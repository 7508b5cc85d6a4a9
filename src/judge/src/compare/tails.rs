//! Computes two-sided tail probabilities of the normal distribution and of Student's t distribution, with a small
//! relative error even for tiny probabilities.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Returns the probability that a standard normal variable is at least as far from zero as `z`.
pub fn normal(z: f64) -> f64 {
    libm::erfc(z.abs() * FRAC_1_SQRT_2)
}

/// Returns the probability that a standard normal variable is at least `z`.
pub fn normal_above(z: f64) -> f64 {
    libm::erfc(z * FRAC_1_SQRT_2) / 2.0
}

/// Returns the probability that a variable with Student's t distribution is at least `t`.
pub fn student_above(t: f64, degrees: u64) -> f64 {
    let outer = student(t, degrees) / 2.0;
    if t > 0.0 { outer } else { 1.0 - outer }
}

/// Returns the probability that a variable with Student's t distribution is at least as far from zero as `t`. This is
/// the regularised incomplete beta function with parameters degrees/2 and 1/2 at degrees/(degrees + t²) (Abramowitz
/// and Stegun 26.7.1).
pub fn student(t: f64, degrees: u64) -> f64 {
    let half = degrees as f64 / 2.0;
    let ratio = t * t / degrees as f64;
    if ratio.is_infinite() {
        return 0.0;
    }
    let (inside, outside) = (1.0 / (1.0 + ratio), ratio / (1.0 + ratio));
    // This is x^a (1 - x)^b / B(a, b), where x is `inside`, a = degrees/2, b = 1/2 and B is the beta function. log1p
    // keeps the power accurate if x is near 1.
    let front = libm::exp(-half * libm::log1p(ratio)) * (outside / PI).sqrt() * gamma_ratio(degrees);
    // The continued fraction converges fast only if x is below approximately the mean of the beta distribution. If x
    // is larger, the opposite tail is computed and subtracted from 1.
    if inside < (half + 1.0) / (half + 2.5) {
        front / half * beta_fraction(half, 0.5, inside)
    } else {
        1.0 - front / 0.5 * beta_fraction(0.5, half, outside)
    }
}

/// Returns Γ((n + 1)/2) / Γ(n/2) for an integer n.
fn gamma_ratio(n: u64) -> f64 {
    const LARGE: u64 = 200;
    if n > LARGE {
        let a = n as f64 / 2.0;
        // For such large n, the asymptotic series of the ratio is exact to the last digit.
        let terms = [-399.0 / 262_144.0, -21.0 / 32_768.0, 5.0 / 1024.0, 1.0 / 128.0, -1.0 / 8.0, 1.0];
        return a.sqrt() * terms.iter().fold(0.0, |sum, term| sum / a + term);
    }
    // Because Γ(x + 1) = x Γ(x), the ratio for n + 2 follows from the ratio for n.
    let (first, start) = if n % 2 == 1 { (1, 1.0 / PI.sqrt()) } else { (2, PI.sqrt() / 2.0) };
    (first..n).step_by(2).fold(start, |ratio, n| ratio * (n + 1) as f64 / n as f64)
}

/// Evaluates the continued fraction of the incomplete beta function (Press et al., Numerical Recipes, 6.4) by Lentz's
/// method. The number of steps grows with the square root of the larger parameter.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const MAX_STEPS: u32 = 1_000_000;
    const TINY: f64 = 1e-300; // replaces zero in divisions
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=MAX_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / nonzero(1.0 + numerator * d);
            c = nonzero(1.0 + numerator / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 4e-16 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64, relative: f64, what: &str) {
        assert!((found - expected).abs() <= relative * expected, "{what}: {found:e}, expected {expected:e}");
    }

    /// Expected values are `2 * scipy.stats.t.sf(t, degrees)`.
    #[test]
    fn student_matches_scipy() {
        for (t, degrees, expected) in SCIPY_STUDENT {
            assert_close(student(t, degrees), expected, 1e-11, &format!("t {t}, {degrees} degrees"));
            assert_eq!(student(-t, degrees), student(t, degrees));
            assert_close(student_above(t, degrees), expected / 2.0, 1e-11, &format!("above {t}"));
            assert_close(student_above(-t, degrees), 1.0 - expected / 2.0, 1e-11, &format!("above -{t}"));
        }
    }

    /// Expected values are `2 * scipy.stats.norm.sf(z)`.
    #[test]
    fn normal_matches_scipy() {
        for (z, expected) in SCIPY_NORMAL {
            assert_close(normal(z), expected, 1e-13, &format!("z {z}"));
            assert_eq!(normal(-z), normal(z));
            assert_close(normal_above(z), expected / 2.0, 1e-13, &format!("above {z}"));
            assert_close(normal_above(-z), 1.0 - expected / 2.0, 1e-13, &format!("above -{z}"));
        }
    }

    /// Compares the tail probability with numerical integration of the density.
    #[test]
    fn student_is_the_integral_of_its_density() {
        for degrees in [1, 2, 3, 7, 30, 199, 200, 201, 202, 1000] {
            let n = degrees as f64;
            let norm = libm::exp(libm::lgamma((n + 1.0) / 2.0) - libm::lgamma(n / 2.0)) / (n * PI).sqrt();
            let density = |x: f64| norm * (1.0 + x * x / n).powf(-(n + 1.0) / 2.0);
            for t in [0.0, 0.3, 1.0, 1.7, 1.75, 2.5, 6.0] {
                let steps = 20_000;
                let width = t / f64::from(steps);
                let simpson: f64 = (0..steps)
                    .map(|step| {
                        let x = f64::from(step) * width;
                        width / 6.0 * (density(x) + 4.0 * density(x + width / 2.0) + density(x + width))
                    })
                    .sum();
                let (found, expected) = (student(t, degrees), 1.0 - 2.0 * simpson);
                assert!((found - expected).abs() < 1e-11, "t {t}, {n} degrees: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn extreme_statistics_give_finite_probabilities() {
        assert_eq!((student(0.0, 1), student(0.0, 5_000_000)), (1.0, 1.0));
        assert_eq!(
            (student(f64::INFINITY, 3), student(1e200, 10), student(-1e300, 1_000_000)),
            (0.0, 0.0, 0.0)
        );
        assert!(student(1e-300, 4) <= 1.0 && student(1e100, 1) > 0.0);
    }

    const SCIPY_STUDENT: [(f64, u64, f64); 18] = [
        (0.5, 1, 0.7048327646991335),
        (12.7, 1, 0.050024327689344165),
        (2.0, 2, 0.18350341907227397),
        (0.001, 3, 0.9992648949694609),
        (4.5, 5, 0.0063995363463242964),
        (1.2, 10, 0.25779630072430565),
        (30.0, 10, 3.961792342031325e-11),
        (0.7, 49, 0.4872375895498387),
        (1.731, 49, 0.08974500417111689),
        (3.3, 156, 0.0011981378862004715),
        (2.2, 200, 0.028952309207328747),
        (2.2, 201, 0.028946581487668627),
        (9.5, 783, 2.4834880535451308e-20),
        (0.01, 1000, 0.9920232819321873),
        (1.96, 29_999, 0.050005033680133634),
        (1.73, 29_999, 0.08364056031052423),
        (35.0, 29_999, 4.45135481538535e-263),
        (5.0, 1_000_000, 5.733997870890745e-07),
    ];

    const SCIPY_NORMAL: [(f64, f64); 8] = [
        (0.1, 0.920344325445942),
        (0.7, 0.48392730444614607),
        (1.0, 0.31731050786291415),
        (1.96, 0.04999579029644087),
        (3.5, 0.00046525815807105003),
        (6.0, 1.973175290075389e-09),
        (12.0, 3.552964224155306e-33),
        (37.0, 1.1451142445047853e-299),
    ];
}
