//! Least squares of a target on several columns and a constant, with or without weights of rows.
//!
//! The normal equations are sums over the rows in their order, so neither threads nor partitions change a bit. Columns
//! are centred and scaled first, and sums are compensated. Normal equations square the condition number, and the columns
//! are often strongly correlated, such as the scores of several models; therefore the solution is corrected by the
//! residuals of the rows until it is as exact as that of an orthogonal factorisation (Björck, Numerical Methods for
//! Least Squares Problems, 2.9.3).

use crate::symmetric::{Symmetric, entries, entry};

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastSquares {
    /// The constant.
    pub intercept: f64,
    /// The coefficient of each column.
    pub coefficients: Vec<f64>,
    /// Whether each column is a linear function of the constant and the columns before it. Its coefficient is 0.
    pub dependent: Vec<bool>,
}

/// Number of corrections. Each one adds at least three digits, unless a column counts as dependent.
const CORRECTIONS: usize = 4;

impl LeastSquares {
    /// Fits `target` by a constant and `columns`, which all have the same length. A row with the weight w counts like w
    /// rows; `None` weights all rows equally.
    pub fn fit(columns: &[&[f64]], target: &[f64], weights: Option<&[f64]>) -> Self {
        let rows =
            Rows { weights, standard: columns.iter().map(|column| Standard::of(column, weights)).collect() };
        let width = columns.len();
        let mean = Standard::of(target, weights).mean;
        let mut products = vec![CompensatedSum::default(); entries(width)];
        let mut values = vec![0.0; width];
        for row in 0..target.len() {
            rows.read(columns, row, &mut values);
            for (number, one) in values.iter().enumerate() {
                let weighted = rows.weight(row) * one;
                for (other, product) in values[..=number].iter().zip(&mut products[entry(number, 0)..]) {
                    product.add(weighted * other);
                }
            }
        }
        let matrix = Symmetric::new(width, products.iter().map(CompensatedSum::value).collect());
        let factored = matrix.factor();
        let mut solution = vec![0.0; width];
        let mut constant = mean;
        for _ in 0..=CORRECTIONS {
            let mut right = vec![CompensatedSum::default(); width];
            let mut errors = CompensatedSum::default();
            for (row, target) in target.iter().enumerate() {
                rows.read(columns, row, &mut values);
                let fitted: f64 = values.iter().zip(&solution).map(|(value, factor)| value * factor).sum();
                let error = rows.weight(row) * ((target - constant) - fitted);
                errors.add(error);
                right.iter_mut().zip(&values).for_each(|(sum, value)| sum.add(error * value));
            }
            let right: Vec<f64> = right.iter().map(CompensatedSum::value).collect();
            solution.iter_mut().zip(factored.solve(&right)).for_each(|(factor, step)| *factor += step);
            constant += errors.value() / rows.total(target.len());
        }
        let coefficients: Vec<f64> =
            solution.iter().zip(&rows.standard).map(|(factor, standard)| factor / standard.scale).collect();
        let mut intercept = CompensatedSum::default();
        intercept.add(constant);
        for (coefficient, standard) in coefficients.iter().zip(&rows.standard) {
            intercept.add(-coefficient * standard.mean);
        }
        let dependent = factored.dependent().to_vec();
        LeastSquares { intercept: intercept.value(), coefficients, dependent }
    }
}

/// The rows of a fit.
struct Rows<'a> {
    weights: Option<&'a [f64]>,
    standard: Vec<Standard>,
}

impl Rows<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    fn total(&self, rows: usize) -> f64 {
        self.weights
            .map_or(rows as f64, |weights| CompensatedSum::of(weights.iter().copied()))
            .max(f64::MIN_POSITIVE)
    }

    /// Reads the centred and scaled values of a row.
    fn read(&self, columns: &[&[f64]], row: usize, values: &mut [f64]) {
        for ((value, column), standard) in values.iter_mut().zip(columns).zip(&self.standard) {
            *value = (column[row] - standard.mean) / standard.scale;
        }
    }
}

/// Mean of a column, and its largest distance from the mean among rows with a weight above 0.
struct Standard {
    mean: f64,
    scale: f64,
}

impl Standard {
    fn of(column: &[f64], weights: Option<&[f64]>) -> Self {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let total = CompensatedSum::of((0..column.len()).map(weight)).max(f64::MIN_POSITIVE);
        let mean =
            CompensatedSum::of(column.iter().enumerate().map(|(row, value)| weight(row) * value)) / total;
        let counted = column.iter().enumerate().filter(|(row, _)| weight(*row) > 0.0);
        let scale = counted.fold(0.0_f64, |most, (_, value)| most.max((value - mean).abs()));
        // A constant column differs from its mean by rounding errors only.
        let is_constant = scale <= f64::EPSILON * 4.0 * mean.abs();
        Standard { mean, scale: if is_constant { f64::INFINITY } else { scale } }
    }
}

/// A sum with Neumaier's compensation of rounding errors.
#[derive(Debug, Clone, Default)]
struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    fn of(values: impl Iterator<Item = f64>) -> f64 {
        let mut sum = CompensatedSum::default();
        values.for_each(|value| sum.add(value));
        sum.value()
    }

    fn add(&mut self, value: f64) {
        let next = self.sum + value;
        let larger_first = self.sum.abs() >= value.abs();
        self.lost += if larger_first { (self.sum - next) + value } else { (value - next) + self.sum };
        self.sum = next;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn fit(columns: &[Vec<f64>], target: &[f64], weights: Option<&[f64]>) -> LeastSquares {
        LeastSquares::fit(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>(), target, weights)
    }

    /// Solves the normal equations by Gaussian elimination with pivoting. The first coefficient is the constant.
    fn naive(columns: &[Vec<f64>], target: &[f64], weights: Option<&[f64]>) -> Vec<f64> {
        let columns: Vec<Vec<f64>> =
            std::iter::once(vec![1.0; target.len()]).chain(columns.iter().cloned()).collect();
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let dot = |one: &[f64], other: &[f64]| -> f64 {
            one.iter().zip(other).enumerate().map(|(row, (a, b))| weight(row) * a * b).sum()
        };
        let mut rows: Vec<Vec<f64>> = columns
            .iter()
            .map(|one| columns.iter().map(|other| dot(one, other)).chain([dot(one, target)]).collect())
            .collect();
        let count = columns.len();
        for pivot in 0..count {
            let best = (pivot..count).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()));
            rows.swap(pivot, best.unwrap());
            for row in (0..count).filter(|row| *row != pivot) {
                let factor = rows[row][pivot] / rows[pivot][pivot];
                let subtracted = rows[pivot].clone();
                rows[row].iter_mut().zip(subtracted).for_each(|(cell, value)| *cell -= factor * value);
            }
        }
        (0..count).map(|row| rows[row][count] / rows[row][row]).collect()
    }

    /// Correlated columns of different scales, and a target of whole numbers.
    fn random_columns(seed: u64, rows: usize, count: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut draw = Stream::new(&[seed]);
        let common: Vec<f64> = (0..rows).map(|_| draw.normal()).collect();
        let column = |number: usize, draw: &mut Stream| {
            let scale = 10_f64.powi(number as i32 - 1);
            common.iter().map(|value| scale * (value + 0.3 * draw.normal()) + 2.0).collect()
        };
        let columns = (0..count).map(|number| column(number, &mut draw)).collect();
        let target = common.iter().map(|value| (value + draw.normal()).round()).collect();
        (columns, target)
    }

    fn all(fit: &LeastSquares) -> Vec<f64> {
        std::iter::once(fit.intercept).chain(fit.coefficients.iter().copied()).collect()
    }

    #[test]
    fn a_fit_solves_the_normal_equations() {
        for (seed, rows, count) in [(1, 3, 1), (2, 10, 2), (3, 200, 5), (4, 5000, 4)] {
            let (columns, target) = random_columns(seed, rows, count);
            let mut draw = Stream::new(&[seed, 1]);
            let weights: Vec<f64> = (0..rows).map(|_| (draw.uniform() * 4.0).floor() + 0.5).collect();
            for weights in [None, Some(weights.as_slice())] {
                let found = fit(&columns, &target, weights);
                assert_eq!(found.dependent, vec![false; count]);
                for (found, expected) in all(&found).iter().zip(naive(&columns, &target, weights)) {
                    let bound = 1e-9 * (1.0 + expected.abs());
                    assert!((found - expected).abs() <= bound, "{found}, expected {expected}");
                }
            }
        }
    }

    #[test]
    fn a_whole_weight_repeats_the_row() {
        let (columns, target) = random_columns(5, 60, 3);
        let times: Vec<usize> = (0..60).map(|row| row % 4).collect();
        let repeat = |column: &[f64]| -> Vec<f64> {
            column.iter().zip(&times).flat_map(|(value, times)| vec![*value; *times]).collect()
        };
        let weights: Vec<f64> = times.iter().map(|times| *times as f64).collect();
        let weighted = fit(&columns, &target, Some(&weights));
        let repeated =
            fit(&columns.iter().map(|column| repeat(column)).collect::<Vec<_>>(), &repeat(&target), None);
        for (one, other) in all(&weighted).iter().zip(all(&repeated)) {
            assert!((one - other).abs() <= 1e-12 * (1.0 + other.abs()), "{one} {other}");
        }
    }

    /// Scores of similar models: the columns differ by a part in ten thousand. Elimination alone would lose eight digits.
    #[test]
    fn strongly_correlated_columns_are_exact() {
        let mut draw = Stream::new(&[6]);
        let common: Vec<f64> = (0..2000).map(|_| draw.normal()).collect();
        let near = |draw: &mut Stream| common.iter().map(|value| value + 1e-4 * draw.normal()).collect();
        let columns: Vec<Vec<f64>> = (0..3).map(|_| near(&mut draw)).collect();
        let wanted = [0.25, -3.0, 2.0];
        let sum =
            |row: usize| columns.iter().zip(wanted).map(|(column, factor)| factor * column[row]).sum::<f64>();
        let target: Vec<f64> = (0..2000).map(|row| 1.5 + sum(row)).collect();
        let found = fit(&columns, &target, None);
        for (found, wanted) in found.coefficients.iter().zip(wanted).chain([(&found.intercept, 1.5)]) {
            assert!((found - wanted).abs() < 1e-10, "{found} {wanted}");
        }
    }

    #[test]
    fn dependent_columns_get_coefficient_0() {
        let (mut columns, target) = random_columns(7, 300, 3);
        let expected = fit(&columns, &target, None);
        columns.push(columns[1].clone());
        columns.push(columns[0].iter().zip(&columns[2]).map(|(a, b)| a - 2.0 * b + 1.0).collect());
        columns.push(vec![0.7; 300]);
        columns.push(vec![0.0; 300]);
        let found = fit(&columns, &target, None);
        assert_eq!(found.dependent, [false, false, false, true, true, true, true]);
        assert_eq!(found.coefficients[3..], [0.0; 4]);
        for (found, expected) in all(&found).iter().zip(all(&expected)) {
            assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()));
        }
    }

    #[test]
    fn fewer_rows_than_columns() {
        let (columns, target) = random_columns(8, 2, 4);
        let found = fit(&columns, &target, None);
        assert_eq!(found.dependent, [false, true, true, true]);
        for row in 0..2 {
            let sum: f64 =
                columns.iter().zip(&found.coefficients).map(|(column, factor)| column[row] * factor).sum();
            assert!((found.intercept + sum - target[row]).abs() < 1e-9);
        }
    }
}
