//! Computes means and standard deviations over the folds of a cross-validation.

/// Mean and standard deviation of a value over the folds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean over the folds.
    pub mean: f64,
    /// Sample standard deviation (divided by the number of folds minus one).
    pub deviation: f64,
}

impl Spread {
    /// Computes the mean and standard deviation. If there are no values, the mean is NaN. The standard deviation of a
    /// single value is 0.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Spread { mean, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(spread.mean, 5.0);
        assert!((spread.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
        assert_eq!(Spread::of(&[0.5]), Spread { mean: 0.5, deviation: 0.0 });
        assert!(Spread::of(&[]).mean.is_nan());
    }
}
