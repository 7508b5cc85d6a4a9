//! The classes of an ordinal model: the probabilities that its parts estimate.

use super::{ClassBounds, Model, Normalisation};
use std::collections::{BTreeMap, HashSet};

/// The grades of an ordinal model, with the parts that estimate the probability of each.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelClasses {
    /// The boundaries between neighbouring grades in ascending order, each with the numbers of its parts.
    bounds: Vec<(ClassBounds, Vec<usize>)>,
    /// Number of averaged runs.
    runs: usize,
}

impl Model {
    /// Returns the classes of an ordinal model. `None` for all other models, also for sums of several ordinal models.
    pub fn classes(&self) -> Option<ModelClasses> {
        let mut bounds: BTreeMap<ClassBounds, Vec<usize>> = BTreeMap::new();
        let (mut roles, mut runs) = (HashSet::new(), HashSet::new());
        for (number, part) in self.parts.iter().enumerate() {
            let role = part.role.filter(|_| part.normalisation == Normalisation::None)?;
            if !roles.insert((role.stage, role.class, role.run)) {
                return None;
            }
            runs.insert(role.run);
            bounds.entry(role.class?).or_default().push(number);
        }
        let bounds: Vec<_> = bounds.into_iter().collect();
        let is_chain = bounds.windows(2).all(|pair| pair[0].0.next == pair[1].0.at_most);
        (is_chain && !bounds.is_empty()).then_some(ModelClasses { bounds, runs: runs.len() })
    }
}

impl ModelClasses {
    /// Returns the names of the probabilities: `cumulative.G`, the probability of a label of at most G, for every grade
    /// below the highest, and `class.G`, the probability of the label G, for every grade.
    pub fn columns(&self) -> Vec<String> {
        let below = self.bounds.iter().map(|(bounds, _)| format!("cumulative.{}", bounds.at_most));
        let highest = self.bounds.last().map(|(bounds, _)| bounds.next);
        let grades = self.bounds.iter().map(|(bounds, _)| bounds.at_most).chain(highest);
        below.chain(grades.map(|grade| format!("class.{grade}"))).collect()
    }

    /// Computes the probabilities from the values of the parts, in the order of [`ModelClasses::columns`]. Probabilities
    /// of classes are differences of cumulative ones and are not clipped.
    pub fn probabilities(&self, values: &[Vec<f64>], rows: usize) -> Vec<Vec<f64>> {
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for (_, parts) in &self.bounds {
            let mut column = vec![0.0; rows];
            for part in parts {
                column.iter_mut().zip(&values[*part]).for_each(|(sum, value)| *sum += value);
            }
            column.iter_mut().for_each(|sum| *sum /= self.runs as f64);
            columns.push(column);
        }
        for grade in 0..=self.bounds.len() {
            let at_most = |grade: usize, row: usize| columns.get(grade).map_or(1.0, |column| column[row]);
            let below = |row: usize| grade.checked_sub(1).map_or(0.0, |grade| at_most(grade, row));
            // Only the cumulative columns are read, which precede those of the classes.
            let class = (0..rows).map(|row| match grade == self.bounds.len() {
                true => 1.0 - below(row),
                false => at_most(grade, row) - below(row),
            });
            let class = class.collect();
            columns.push(class);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PartRole, example};
    use super::*;

    fn ordinal(runs: u32) -> Model {
        let mut model = example();
        let part = model.parts[0].clone();
        model.parts.clear();
        for (at_most, next) in [(0, 2), (2, 3)] {
            for run in 1..=runs {
                let class = Some(ClassBounds { at_most, next });
                let role = Some(PartRole { stage: 1, run, class });
                model.parts.push(super::super::Part { role, ..part.clone() });
            }
        }
        model
    }

    #[test]
    fn probabilities_of_classes_are_differences() {
        let classes = ordinal(2).classes().unwrap();
        assert_eq!(classes.columns(), ["cumulative.0", "cumulative.2", "class.0", "class.2", "class.3"]);
        let values = [vec![0.25], vec![0.5], vec![1.0], vec![0.75]];
        let columns = classes.probabilities(&values, 1);
        assert_eq!(columns, [vec![0.375], vec![0.875], vec![0.375], vec![0.5], vec![0.125]]);
    }

    #[test]
    fn other_models_have_no_classes() {
        assert_eq!(example().classes(), None);
        let mut twice = ordinal(1);
        twice.parts.extend(ordinal(1).parts);
        assert_eq!(twice.classes(), None);
        let mut gap = ordinal(1);
        gap.parts[1].role.as_mut().unwrap().class = Some(ClassBounds { at_most: 3, next: 4 });
        assert_eq!(gap.classes(), None);
    }
}
