//! Solves symmetric positive definite systems of equations by Cholesky decomposition.

/// A symmetric matrix, stored as its lower triangle: row after row, up to the diagonal.
#[derive(Debug, Clone, PartialEq)]
pub struct Symmetric {
    size: usize,
    values: Vec<f64>,
}

/// Returns the index of an entry in the lower triangle of a symmetric matrix. The column must not exceed the row.
pub fn entry(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

/// Returns the number of entries in the lower triangle of a symmetric matrix.
pub fn entries(size: usize) -> usize {
    entry(size, 0)
}

impl Symmetric {
    /// Creates a matrix from its lower triangle.
    pub fn new(size: usize, values: Vec<f64>) -> Self {
        assert_eq!(values.len(), entries(size), "a lower triangle has this many entries");
        Symmetric { size, values }
    }

    /// Adds a number to an entry of the diagonal.
    pub fn add_to_diagonal(&mut self, row: usize, number: f64) {
        self.values[entry(row, row)] += number;
    }

    /// Factors the matrix into a lower triangle times its transpose.
    pub fn factor(mut self) -> Factored {
        /// A row is dependent if elimination leaves less than this fraction of its diagonal. The entries have about 15
        /// digits, and elimination loses some of them.
        const LEAST: f64 = 1e-12;
        let mut is_dependent = vec![false; self.size];
        for row in 0..self.size {
            let (done, rest) = self.values.split_at_mut(entry(row, 0));
            let this = &mut rest[..=row];
            let diagonal = this[row];
            for column in 0..row {
                if is_dependent[column] {
                    this[column] = 0.0;
                    continue;
                }
                let other = &done[entry(column, 0)..][..=column];
                let known: f64 = this[..column].iter().zip(other).map(|(one, other)| one * other).sum();
                this[column] = (this[column] - known) / other[column];
            }
            let known: f64 = this[..row].iter().map(|one| one * one).sum();
            let pivot = this[row] - known;
            if pivot.is_nan() || pivot <= LEAST * diagonal {
                is_dependent[row] = true;
            } else {
                this[row] = pivot.sqrt();
            }
        }
        Factored { triangle: self, is_dependent }
    }

    /// Solves the system of equations with this matrix and the right-hand side `right`; see [`Factored::solve`].
    pub fn solve(self, right: &[f64]) -> Vec<f64> {
        self.factor().solve(right)
    }
}

/// A factored symmetric matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Factored {
    triangle: Symmetric,
    is_dependent: Vec<bool>,
}

impl Factored {
    /// Returns whether each row depends linearly on earlier rows, within the precision of the numbers.
    pub fn dependent(&self) -> &[bool] {
        &self.is_dependent
    }

    /// Solves the system of equations with the right-hand side `right`. The unknowns of dependent rows are set to 0 and
    /// the others are solved for, so the matrix may be singular.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let Factored { triangle: Symmetric { size, values }, is_dependent } = self;
        let mut solution = right.to_vec();
        for row in 0..*size {
            if is_dependent[row] {
                solution[row] = 0.0;
                continue;
            }
            let this = &values[entry(row, 0)..][..=row];
            let known: f64 = this[..row].iter().zip(&solution).map(|(one, other)| one * other).sum();
            solution[row] = (solution[row] - known) / this[row];
        }
        for row in (0..*size).rev() {
            if is_dependent[row] {
                continue;
            }
            let this = &values[entry(row, 0)..][..=row];
            let value = solution[row] / this[row];
            solution[row] = value;
            for (column, known) in this[..row].iter().enumerate() {
                if !is_dependent[column] {
                    solution[column] -= known * value;
                }
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the product of a matrix, given by its columns, with its transpose.
    fn gram(columns: &[Vec<f64>]) -> Symmetric {
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum();
        let rows = (0..columns.len()).flat_map(|row| (0..=row).map(move |column| (row, column)));
        let values = rows.map(|(row, column)| dot(&columns[row], &columns[column])).collect();
        Symmetric::new(columns.len(), values)
    }

    fn product(matrix: &Symmetric, vector: &[f64]) -> Vec<f64> {
        let at = |row: usize, column: usize| matrix.values[entry(row.max(column), row.min(column))];
        let row = |row: usize| (0..matrix.size).map(|column| at(row, column) * vector[column]).sum();
        (0..matrix.size).map(row).collect()
    }

    proptest! {
        #[test]
        fn the_solution_solves_the_equations(
            size in 1..9usize, numbers in prop::collection::vec(-3.0..3.0f64, 9 * 30), copies in any::<bool>(),
        ) {
            let mut columns: Vec<Vec<f64>> = numbers.chunks(30).take(size).map(<[f64]>::to_vec).collect();
            if copies && size > 2 {
                // Column 1 depends on column 0, and column 2 is 0.
                columns[1] = columns[0].iter().map(|value| value * -2.0).collect();
                columns[2] = vec![0.0; 30];
            }
            let matrix = gram(&columns);
            let wanted: Vec<f64> = numbers.iter().rev().take(size).copied().collect();
            let right = product(&matrix, &wanted);
            let solution = matrix.clone().solve(&right);
            for (one, other) in product(&matrix, &solution).iter().zip(&right) {
                prop_assert!((one - other).abs() <= 1e-8 * (1.0 + other.abs()), "{one} is not {other}");
            }
            if copies && size > 2 {
                prop_assert_eq!((solution[1], solution[2]), (0.0, 0.0));
            }
        }
    }
}
