//! Computes the points of Gauss-Legendre quadrature, with which integrals of polynomials from 0 to 1 are exact
//! weighted sums over a few points.

/// A point of the quadrature and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuadraturePoint {
    /// Position of the point, strictly between 0 and 1.
    pub at: f64,
    /// Weight of the point. The weights of all points add up to 1.
    pub weight: f64,
}

/// Returns `count` points. The weighted sum over them is exact for polynomials of degree up to `2 * count - 1`.
pub(super) fn points(count: usize) -> Vec<QuadraturePoint> {
    (1..=count).map(|number| point(number, count)).collect()
}

/// Computes a point from a zero of the Legendre polynomial of degree `count`. Newton's method finds the zero, starting
/// from the usual approximation.
fn point(number: usize, count: usize) -> QuadraturePoint {
    let guess = (number as f64 - 0.25) / (count as f64 + 0.5);
    let mut zero = libm::cos(std::f64::consts::PI * guess);
    let mut slope = 1.0;
    // The approximation has three correct digits, and every step doubles the number of correct digits.
    for _ in 0..8 {
        let (value, slope_at_zero) = legendre(count, zero);
        zero -= value / slope_at_zero;
        slope = slope_at_zero;
    }
    QuadraturePoint { at: (1.0 + zero) / 2.0, weight: 1.0 / ((1.0 - zero * zero) * slope * slope) }
}

/// Returns the value and the slope of the Legendre polynomial of the given degree at `x`.
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for step in 1..=degree {
        let step = step as f64;
        (before, value) = (value, ((2.0 * step - 1.0) * x * value - (step - 1.0) * before) / step);
    }
    (value, degree as f64 * (x * value - before) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_integrated_exactly() {
        for count in 1..=40 {
            let points = points(count);
            assert!(points.iter().all(|point| point.at > 0.0 && point.at < 1.0 && point.weight > 0.0));
            for power in 0..2 * count as i32 {
                let sum: f64 = points.iter().map(|point| point.weight * point.at.powi(power)).sum();
                let truth = 1.0 / f64::from(power + 1);
                assert!((sum / truth - 1.0).abs() < 1e-12, "{count} points, power {power}: {sum}");
            }
        }
    }
}
