//! The classes of a model: the probabilities of grades that its parts estimate.

use super::{ClassBounds, Link, Model, Normalisation, Part, PartGroup};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The grades of a model of classes, with the parts that estimate the probability of each.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelClasses {
    /// Each part estimates the probability of the labels up to a grade.
    Ordinal {
        /// The boundaries between neighbouring grades in ascending order, each with the numbers of its parts.
        bounds: Vec<(ClassBounds, Vec<usize>)>,
        /// Number of averaged runs.
        runs: usize,
    },
    /// Each part computes the score of a grade, and the probabilities are their softmax.
    Softmax {
        /// The grades in ascending order.
        grades: Vec<i32>,
        /// The parts of every averaged run, in the order of the grades.
        runs: Vec<Range<usize>>,
    },
}

impl Model {
    /// Returns the classes of a model of classes. `None` for all other models, also for sums of several such models.
    pub fn classes(&self) -> Option<ModelClasses> {
        if self.groups.is_empty() { self.ordinal_classes() } else { self.softmax_classes() }
    }

    fn ordinal_classes(&self) -> Option<ModelClasses> {
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
        (is_chain && !bounds.is_empty()).then_some(ModelClasses::Ordinal { bounds, runs: runs.len() })
    }

    fn softmax_classes(&self) -> Option<ModelClasses> {
        let mut all: Option<Vec<i32>> = None;
        let mut end = 0;
        for group in &self.groups {
            let is_classes = group.link == Link::Softmax && group.normalisation == Normalisation::None;
            if !is_classes || group.first_part != end {
                return None;
            }
            end = group.range().end;
            let grade = |part: &Part| part.role.filter(|_| part.normalisation == Normalisation::None)?.grade;
            let grades: Vec<i32> = self.parts[group.range()].iter().map(grade).collect::<Option<_>>()?;
            let is_ascending = grades.windows(2).all(|pair| pair[0] < pair[1]);
            if !is_ascending || all.as_ref().is_some_and(|all| *all != grades) {
                return None;
            }
            all = Some(grades);
        }
        let runs = self.groups.iter().map(PartGroup::range).collect();
        all.filter(|_| end == self.parts.len()).map(|grades| ModelClasses::Softmax { grades, runs })
    }
}

impl ModelClasses {
    /// Returns the grades in ascending order.
    fn grades(&self) -> Vec<i32> {
        match self {
            ModelClasses::Softmax { grades, .. } => grades.clone(),
            ModelClasses::Ordinal { bounds, .. } => {
                let highest = bounds.last().map(|(bounds, _)| bounds.next);
                bounds.iter().map(|(bounds, _)| bounds.at_most).chain(highest).collect()
            }
        }
    }

    /// Returns the names of the probabilities: `cumulative.G`, the probability of a label of at most G, for every grade
    /// below the highest, and `class.G`, the probability of the label G, for every grade.
    pub fn columns(&self) -> Vec<String> {
        let grades = self.grades();
        let below =
            grades[..grades.len().saturating_sub(1)].iter().map(|grade| format!("cumulative.{grade}"));
        below.chain(grades.iter().map(|grade| format!("class.{grade}"))).collect()
    }

    /// Computes the probabilities from the values of the parts, in the order of [`ModelClasses::columns`].
    pub fn probabilities(&self, values: &[Vec<f64>], rows: usize) -> Vec<Vec<f64>> {
        match self {
            ModelClasses::Ordinal { bounds, runs } => ordinal(bounds, *runs, values, rows),
            ModelClasses::Softmax { grades, runs } => softmax(grades.len(), runs, values, rows),
        }
    }
}

/// Computes the probabilities of an ordinal model. Those of classes are differences of cumulative ones and are not
/// clipped.
fn ordinal(
    bounds: &[(ClassBounds, Vec<usize>)],
    runs: usize,
    values: &[Vec<f64>],
    rows: usize,
) -> Vec<Vec<f64>> {
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (_, parts) in bounds {
        let mut column = vec![0.0; rows];
        for part in parts {
            column.iter_mut().zip(&values[*part]).for_each(|(sum, value)| *sum += value);
        }
        column.iter_mut().for_each(|sum| *sum /= runs as f64);
        columns.push(column);
    }
    for grade in 0..=bounds.len() {
        let at_most = |grade: usize, row: usize| columns.get(grade).map_or(1.0, |column| column[row]);
        let below = |row: usize| grade.checked_sub(1).map_or(0.0, |grade| at_most(grade, row));
        // Only the cumulative columns are read, which precede those of the classes.
        let class = (0..rows).map(|row| match grade == bounds.len() {
            true => 1.0 - below(row),
            false => at_most(grade, row) - below(row),
        });
        let class = class.collect();
        columns.push(class);
    }
    columns
}

/// Computes the probabilities of classes that are coupled by a softmax, averaged over the runs, and their sums.
fn softmax(grades: usize, runs: &[Range<usize>], values: &[Vec<f64>], rows: usize) -> Vec<Vec<f64>> {
    let mut classes = vec![vec![0.0; rows]; grades];
    for run in runs {
        let mut columns = values[run.clone()].to_vec();
        Link::Softmax.apply(&mut columns);
        for (sums, column) in classes.iter_mut().zip(&columns) {
            sums.iter_mut().zip(column).for_each(|(sum, value)| *sum += value / runs.len() as f64);
        }
    }
    let mut sum = vec![0.0; rows];
    let mut columns = Vec::new();
    for class in &classes[..grades.saturating_sub(1)] {
        sum.iter_mut().zip(class).for_each(|(sum, value)| *sum += value);
        columns.push(sum.clone());
    }
    columns.extend(classes);
    columns
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
                let role = Some(PartRole { stage: 1, run, class, grade: None });
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

    #[test]
    fn probabilities_of_a_softmax_are_means_over_runs() {
        let mut model = example();
        let part = model.parts[0].clone();
        model.parts.clear();
        for run in 1..=2 {
            for grade in [0, 1, 4] {
                let role = Some(PartRole { stage: 1, run, class: None, grade: Some(grade) });
                model.parts.push(Part { role, ..part.clone() });
            }
            model.groups.push(PartGroup {
                name: format!("run_{run}"),
                first_part: model.parts.len() - 3,
                parts: 3,
                link: Link::Softmax,
                intercept: 0.0,
                normalisation: Normalisation::None,
                weight: 0.5,
            });
        }
        let classes = model.classes().unwrap();
        assert_eq!(classes.columns(), ["cumulative.0", "cumulative.1", "class.0", "class.1", "class.4"]);
        let two = std::f64::consts::LN_2;
        let values = [vec![0.0], vec![0.0], vec![two], vec![-3.0], vec![-3.0], vec![-3.0]];
        let columns = classes.probabilities(&values, 1);
        let third = 1.0 / 3.0;
        let (low, high) = ((0.25 + third) / 2.0, (0.5 + third) / 2.0);
        for (column, expected) in columns.iter().zip([low, 2.0 * low, low, low, high]) {
            assert!((column[0] - expected).abs() < 1e-15, "{columns:?}");
        }
        let changed = |change: &dyn Fn(&mut Model)| {
            let mut other = model.clone();
            change(&mut other);
            other.classes()
        };
        assert_eq!(changed(&|model| model.groups[0].link = Link::Identity), None);
        assert_eq!(changed(&|model| model.groups[1].normalisation = Normalisation::Z), None);
        assert_eq!(changed(&|model| model.parts[4].role = None), None);
        assert_eq!(changed(&|model| drop(model.groups.pop())), None);
    }
}
