//! Integrals of polynomials from 0 to 1, exactly, as sums over a few points (Gauss-Legendre).

/// A place where the polynomial is evaluated, and how much its value counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Within 0 and 1, never at an end.
    pub at: f64,
    /// All weights add up to 1.
    pub weight: f64,
}

/// As many points as asked for; they are exact for polynomials up to the degree of twice their number
/// minus one.
pub fn points(count: usize) -> Vec<Point> {
    (1..=count).map(|place| point(place, count)).collect()
}

/// The zeros of the Legendre polynomial by Newton's method, from where they nearly are.
fn point(place: usize, count: usize) -> Point {
    let guess = (place as f64 - 0.25) / (count as f64 + 0.5);
    let mut zero = libm::cos(std::f64::consts::PI * guess);
    let mut slope = 1.0;
    // Every step doubles the digits that are right; the guess has three.
    for _ in 0..8 {
        let (value, slope_there) = legendre(count, zero);
        zero -= value / slope_there;
        slope = slope_there;
    }
    Point { at: (1.0 + zero) / 2.0, weight: 1.0 / ((1.0 - zero * zero) * slope * slope) }
}

/// The Legendre polynomial of a degree, and its slope.
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
