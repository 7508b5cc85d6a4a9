//! Student's paired t-test (Student 1908), which assumes that the mean of the differences is normally distributed.

use super::alternative::Alternative;
use super::moments::Moments;
use super::tails;

/// The result of the t-test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// The t statistic: the mean difference divided by its standard error.
    pub t: f64,
    /// Degrees of freedom.
    pub degrees: u64,
    /// The p-value.
    pub p: f64,
}

/// Runs the test. Returns `None` if there are fewer than two differences or if all differences are equal.
pub fn t_test(moments: &Moments, alternative: Alternative) -> Option<TTest> {
    let t = moments.effect_size()? * (moments.count as f64).sqrt();
    let degrees = moments.count - 1;
    let p = match alternative {
        Alternative::TwoSided => tails::student(t, degrees),
        Alternative::Greater => tails::student_above(t, degrees),
        Alternative::Less => tails::student_above(-t, degrees),
    };
    Some(TTest { t, degrees, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests with Student's own data: the additional hours of sleep of ten patients under two drugs.
    #[test]
    fn matches_students_sleep_data() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let test = t_test(&Moments::of(&differences), Alternative::TwoSided).unwrap();
        assert_eq!(test.degrees, 9);
        assert!((test.t - 4.062_127_683_382_037).abs() < 1e-12, "{}", test.t);
        assert!((test.p - 0.002_832_890_197_384_259).abs() < 1e-14, "{}", test.p);
        let [greater, less] = [Alternative::Greater, Alternative::Less]
            .map(|alternative| t_test(&Moments::of(&differences), alternative).unwrap().p);
        assert_eq!((greater, less), (test.p / 2.0, 1.0 - test.p / 2.0));
    }

    #[test]
    fn constant_differences_have_no_t_test() {
        for differences in [&[][..], &[0.3], &[0.0, 0.0], &[0.25, 0.25, 0.25]] {
            assert_eq!(t_test(&Moments::of(differences), Alternative::TwoSided), None, "{differences:?}");
        }
    }

    #[test]
    fn the_p_value_is_symmetric() {
        let differences = [0.3, -0.1, 0.2, 0.05];
        let negated = differences.map(|difference| -difference);
        let test = |values: &[f64], alternative| t_test(&Moments::of(values), alternative).unwrap();
        let [one, other] = [differences, negated].map(|values| test(&values, Alternative::TwoSided));
        assert_eq!((one.t, one.p), (-other.t, other.p));
        assert_eq!(test(&differences, Alternative::Greater).p, test(&negated, Alternative::Less).p);
    }
}
