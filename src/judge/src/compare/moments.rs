//! Computes the mean and standard deviation of differences.

/// Count, mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Mean; 0 if there are no values.
    pub mean: f64,
    /// Sample standard deviation (divided by `count - 1`); `None` for fewer than two values.
    pub deviation: Option<f64>,
}

impl Moments {
    /// Computes the moments in two passes, because the one-pass formula loses digits by cancellation.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Moments { count: values.len() as u64, mean, deviation }
    }

    /// Returns Cohen's d of paired values: the mean divided by the standard deviation. `None` if the values do not
    /// vary.
    pub fn effect_size(&self) -> Option<f64> {
        self.deviation.filter(|deviation| *deviation > 0.0).map(|deviation| self.mean / deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_worked_case() {
        let moments = Moments::of(&[1.0, 2.0, 4.0, 5.0]);
        assert_eq!((moments.count, moments.mean), (4, 3.0));
        assert_eq!(moments.deviation, Some((10.0_f64 / 3.0).sqrt()));
        assert_eq!(moments.effect_size(), Some(3.0 / (10.0_f64 / 3.0).sqrt()));
    }

    #[test]
    fn constant_values_have_no_effect_size() {
        assert_eq!(Moments::of(&[]), Moments { count: 0, mean: 0.0, deviation: None });
        assert_eq!(Moments::of(&[0.5]).effect_size(), None);
        assert_eq!(Moments::of(&[0.5, 0.5]).deviation, Some(0.0));
        assert_eq!(Moments::of(&[0.5, 0.5]).effect_size(), None);
    }
}
