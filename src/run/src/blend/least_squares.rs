//! Fits the labels by least squares: finds the constant and the weights for which the weighted sum of the members'
//! values has the smallest squared error.
//!
//! The columns are made orthogonal one after the other by Householder reflections, with column pivoting (Golub and Van
//! Loan, Matrix Computations, 5.4). Unlike normal equations, this does not square the condition number, and members of
//! a blend are strongly correlated. All sums are over rows in order, so threads and partitions cannot change a bit.

use super::BlendScores;

/// The result of a fit.
pub struct LeastSquaresFit {
    /// The constant.
    pub intercept: f64,
    /// The weights of the fitted members, in order.
    pub weights: Vec<f64>,
    /// Members whose values are a linear function of the constant and other members. Their weight is 0.
    pub dependent: Vec<usize>,
}

/// Fits the labels of all rows that have one on the values of `members` and a constant.
pub fn fit(scores: &BlendScores, members: &[usize]) -> LeastSquaresFit {
    let rows: Vec<usize> = (0..scores.labels.len()).filter(|row| !scores.labels[*row].is_nan()).collect();
    let constant = vec![1.0; rows.len()];
    let column = |member: &usize| rows.iter().map(|row| scores.values[*member][*row]).collect();
    let columns = std::iter::once(constant).chain(members.iter().map(column)).collect();
    let labels = rows.iter().map(|row| f64::from(scores.labels[*row])).collect();
    let (solution, dependent) = solve(columns, labels);
    LeastSquaresFit {
        intercept: solution[0],
        weights: solution[1..].to_vec(),
        dependent: dependent
            .into_iter()
            .filter_map(|column| column.checked_sub(1))
            .map(|column| members[column])
            .collect(),
    }
}

/// Returns the coefficients for which the sum of the columns has the smallest squared distance from `target`. Columns
/// that depend linearly on others have the coefficient 0; their indices are returned, too.
fn solve(mut columns: Vec<Vec<f64>>, mut target: Vec<f64>) -> (Vec<f64>, Vec<usize>) {
    let rows = target.len();
    // Columns are scaled to length 1, so that the scale of a member does not decide whether it counts as dependent.
    let scales: Vec<f64> = columns.iter().map(|column| length(column)).collect();
    for (column, scale) in columns.iter_mut().zip(&scales).filter(|(_, scale)| **scale > 0.0) {
        column.iter_mut().for_each(|value| *value /= scale);
    }
    let mut order: Vec<usize> = (0..columns.len()).collect();
    let mut rank = 0;
    let tolerance = f64::EPSILON * rows.max(columns.len()) as f64;
    while rank < columns.len().min(rows) {
        // The first column stays first, because it is the constant. Of equal lengths, the earlier column is next.
        let rest = |place: usize| length(&columns[order[place]][rank..]);
        let mut next = rank;
        for place in (rank + 1..order.len()).filter(|_| rank > 0) {
            if rest(place) > rest(next) {
                next = place;
            }
        }
        if rest(next) <= tolerance {
            break;
        }
        // Moving the column forward keeps the order of the others.
        let moved = order.remove(next);
        order.insert(rank, moved);
        let reflection = Reflection::of(&columns[order[rank]][rank..]);
        for column in &order[rank..] {
            reflection.apply(&mut columns[*column][rank..]);
        }
        reflection.apply(&mut target[rank..]);
        rank += 1;
    }
    // The columns are a triangle now.
    let mut solution = vec![0.0; columns.len()];
    for row in (0..rank).rev() {
        let known: f64 =
            (row + 1..rank).map(|place| columns[order[place]][row] * solution[order[place]]).sum();
        solution[order[row]] = (target[row] - known) / columns[order[row]][row];
    }
    solution
        .iter_mut()
        .zip(&scales)
        .filter(|(_, scale)| **scale > 0.0)
        .for_each(|(value, scale)| *value /= scale);
    let mut dependent = order.split_off(rank);
    dependent.sort_unstable();
    (solution, dependent)
}

/// Returns the length of a vector, without overflow.
fn length(vector: &[f64]) -> f64 {
    let most = vector.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if most == 0.0 || !most.is_finite() {
        return most;
    }
    most * vector.iter().map(|value| (value / most) * (value / most)).sum::<f64>().sqrt()
}

/// A Householder reflection that turns a vector into a multiple of the first unit vector.
struct Reflection {
    vector: Vec<f64>,
    factor: f64,
}

impl Reflection {
    fn of(column: &[f64]) -> Self {
        let mut vector = column.to_vec();
        vector[0] += length(column).copysign(column[0]);
        let square: f64 = vector.iter().map(|value| value * value).sum();
        Reflection { vector, factor: if square > 0.0 { 2.0 / square } else { 0.0 } }
    }

    fn apply(&self, column: &mut [f64]) {
        let product: f64 = self.vector.iter().zip(column.iter()).map(|(one, other)| one * other).sum();
        let times = self.factor * product;
        column.iter_mut().zip(&self.vector).for_each(|(value, direction)| *value -= times * direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;

    /// Solves the normal equations by Gaussian elimination with pivoting.
    fn naive(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
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

    fn random_columns(seed: u64, rows: usize, count: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut draw = Stream::new(&[seed]);
        let common: Vec<f64> = (0..rows).map(|_| draw.normal()).collect();
        let mut columns = vec![vec![1.0; rows]];
        for number in 0..count {
            let scale = 10_f64.powi(number as i32 - 1);
            columns.push(common.iter().map(|value| scale * (value + 0.3 * draw.normal()) + 2.0).collect());
        }
        let target = common.iter().map(|value| (value + draw.normal()).round()).collect();
        (columns, target)
    }

    #[test]
    fn a_fit_solves_the_normal_equations() {
        for (seed, rows, count) in [(1, 3, 1), (2, 10, 2), (3, 200, 5), (4, 5000, 4)] {
            let (columns, target) = random_columns(seed, rows, count);
            let expected = naive(&columns, &target);
            let (found, dependent) = solve(columns, target);
            assert!(dependent.is_empty());
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
                    "{found}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn dependent_columns_get_weight_0() {
        let (mut columns, target) = random_columns(5, 300, 3);
        let expected = naive(&columns, &target);
        columns.push(columns[2].clone());
        columns.push(columns[1].iter().zip(&columns[3]).map(|(a, b)| a - 2.0 * b + 1.0).collect());
        columns.push(vec![7.0; 300]);
        columns.push(vec![0.0; 300]);
        let residual = |solution: &[f64]| -> f64 {
            (0..300)
                .map(|row| {
                    let sum: f64 =
                        columns.iter().zip(solution).map(|(column, weight)| column[row] * weight).sum();
                    (target[row] - sum).powi(2)
                })
                .sum()
        };
        let (found, dependent) = solve(columns.clone(), target.clone());
        assert_eq!(dependent.len(), 4, "{dependent:?}");
        assert!(dependent.iter().all(|column| found[*column] == 0.0));
        assert!(!dependent.contains(&0), "the constant stays");
        let mut padded = expected;
        padded.resize(found.len(), 0.0);
        assert!((residual(&found) - residual(&padded)).abs() < 1e-9 * residual(&padded));
        // Of two equal columns, the later one is dropped.
        let (columns, target) = random_columns(6, 100, 1);
        let doubled = vec![columns[0].clone(), columns[1].clone(), columns[1].clone()];
        assert_eq!(solve(doubled, target).1, [2]);
    }

    #[test]
    fn fewer_rows_than_columns() {
        let (columns, target) = random_columns(7, 2, 4);
        let (found, dependent) = solve(columns.clone(), target.clone());
        assert_eq!(dependent.len(), 3);
        for row in 0..2 {
            let sum: f64 = columns.iter().zip(&found).map(|(column, weight)| column[row] * weight).sum();
            assert!((sum - target[row]).abs() < 1e-9);
        }
    }
}
