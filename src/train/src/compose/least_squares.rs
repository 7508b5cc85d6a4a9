//! Ordinary least squares of the labels on the scores of the classes and a constant.
//!
//! The normal equations are sums over all rows in their order, so they do not depend on the partitioning. Columns are
//! centred first, which keeps the equations well conditioned; sums are compensated, and the solution is refined once.

/// The fitted weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The weight of each column.
    pub weights: Vec<f64>,
    /// The constant.
    pub intercept: f64,
    /// Whether each column is a linear function of the columns before it. Its weight is 0.
    pub dropped: Vec<bool>,
}

/// A column whose part that other columns do not explain has at most this share of its variance counts as dependent.
const DEPENDENT: f64 = 1e-13;

/// Fits `labels` by a weighted sum of `columns` and a constant.
pub fn fit(columns: &[Vec<f64>], labels: &[f64]) -> Fit {
    let count = labels.len().max(1) as f64;
    let mean = |values: &[f64]| Sum::of(values.iter().copied()) / count;
    let means: Vec<f64> = columns.iter().map(|column| mean(column)).collect();
    let label_mean = mean(labels);
    let product = |one: &[f64], mean: f64, other: &[f64], other_mean: f64| {
        Sum::of(one.iter().zip(other).map(|(one, other)| (one - mean) * (other - other_mean)))
    };
    let width = columns.len();
    let mut matrix = vec![vec![0.0; width]; width];
    for row in 0..width {
        for column in 0..=row {
            let sum = product(&columns[row], means[row], &columns[column], means[column]);
            (matrix[row][column], matrix[column][row]) = (sum, sum);
        }
    }
    let right: Vec<f64> =
        columns.iter().zip(&means).map(|(column, mean)| product(column, *mean, labels, label_mean)).collect();
    let (factor, dropped) = cholesky(&matrix);
    let mut weights = solve(&factor, &dropped, &right);
    let residual: Vec<f64> = (0..width)
        .map(|row| {
            Sum::of(
                [right[row]]
                    .into_iter()
                    .chain((0..width).map(|column| -matrix[row][column] * weights[column])),
            )
        })
        .collect();
    let correction = solve(&factor, &dropped, &residual);
    weights.iter_mut().zip(correction).for_each(|(weight, correction)| *weight += correction);
    let explained = Sum::of(weights.iter().zip(&means).map(|(weight, mean)| weight * mean));
    Fit { weights, intercept: label_mean - explained, dropped }
}

/// A sum with Neumaier's compensation of rounding errors.
struct Sum;

impl Sum {
    fn of(values: impl Iterator<Item = f64>) -> f64 {
        let (mut sum, mut lost) = (0.0f64, 0.0);
        for value in values {
            let next = sum + value;
            lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
            sum = next;
        }
        sum + lost
    }
}

/// Factors a symmetric matrix into a lower triangle times its transpose. Returns the triangle and which rows depend on
/// those before them; these are zero.
fn cholesky(matrix: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<bool>) {
    let width = matrix.len();
    let mut factor = vec![vec![0.0; width]; width];
    let mut dropped = vec![false; width];
    for row in 0..width {
        for column in 0..row {
            if !dropped[column] {
                let inner: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
                factor[row][column] = (matrix[row][column] - inner) / factor[column][column];
            }
        }
        let rest = matrix[row][row] - factor[row][..row].iter().map(|value| value * value).sum::<f64>();
        if rest > DEPENDENT * matrix[row][row] {
            factor[row][row] = rest.sqrt();
        } else {
            dropped[row] = true;
            factor[row] = vec![0.0; width];
        }
    }
    (factor, dropped)
}

/// Solves the equations of a factored matrix. Dropped unknowns are 0.
fn solve(factor: &[Vec<f64>], dropped: &[bool], right: &[f64]) -> Vec<f64> {
    let width = right.len();
    let mut half = vec![0.0; width];
    for row in (0..width).filter(|row| !dropped[*row]) {
        let inner: f64 = (0..row).map(|column| factor[row][column] * half[column]).sum();
        half[row] = (right[row] - inner) / factor[row][row];
    }
    let mut solution = vec![0.0; width];
    for row in (0..width).rev().filter(|row| !dropped[*row]) {
        let inner: f64 = (row + 1..width).map(|column| factor[column][row] * solution[column]).sum();
        solution[row] = (half[row] - inner) / factor[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;

    fn columns(rows: usize, width: usize) -> Vec<Vec<f64>> {
        let mut stream = Stream::new(&[4]);
        let base: Vec<f64> = (0..rows).map(|_| stream.uniform()).collect();
        (0..width).map(|_| base.iter().map(|base| base + 0.3 * stream.uniform()).collect()).collect()
    }

    #[test]
    fn an_exact_linear_function_is_found() {
        let columns = columns(500, 4);
        let weights = [-1.0, 0.25, -3.0, 2.0];
        let label = |row: usize| {
            1.5 + columns.iter().zip(weights).map(|(column, weight)| weight * column[row]).sum::<f64>()
        };
        let fit = fit(&columns, &(0..500).map(label).collect::<Vec<_>>());
        assert_eq!(fit.dropped, [false; 4]);
        for (found, expected) in fit.weights.iter().zip(weights).chain([(&fit.intercept, 1.5)]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    /// At the minimum, the residuals are orthogonal to every column and to the constant.
    #[test]
    fn residuals_are_orthogonal() {
        let columns = columns(300, 5);
        let mut stream = Stream::new(&[5]);
        let labels: Vec<f64> = (0..300).map(|_| (stream.uniform() * 5.0).floor()).collect();
        let fit = fit(&columns, &labels);
        let residual = |row: usize| {
            labels[row]
                - fit.intercept
                - columns.iter().zip(&fit.weights).map(|(column, weight)| weight * column[row]).sum::<f64>()
        };
        assert!((0..300).map(residual).sum::<f64>().abs() < 1e-9);
        for column in &columns {
            assert!((0..300).map(|row| residual(row) * column[row]).sum::<f64>().abs() < 1e-9);
        }
    }

    #[test]
    fn dependent_and_constant_columns_have_no_weight() {
        let mut columns = columns(100, 2);
        columns.push(columns[0].iter().zip(&columns[1]).map(|(one, other)| 2.0 * one - other).collect());
        columns.push(vec![0.7; 100]);
        let labels: Vec<f64> = columns[0].iter().map(|value| 3.0 * value).collect();
        let fit = fit(&columns, &labels);
        assert_eq!(fit.dropped, [false, false, true, true]);
        assert_eq!(fit.weights[2..], [0.0, 0.0]);
        assert!((fit.weights[0] - 3.0).abs() < 1e-9 && fit.weights[1].abs() < 1e-9);
    }
}
