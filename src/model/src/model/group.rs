//! Groups of parts: neighbouring parts whose values become one term of the score.
//!
//! ```text
//! value of a group = intercept + sum over its terms of weight * linked value of the term
//! ```
//!
//! The terms of a group are its parts, or groups within it. The value of a term is normalised first; the link then says
//! what becomes of the normalised values of all terms of the group. The group's own value is normalised and weighted like
//! that of a part. So a softmax over the classes of a model is a group, and so is a sum of parts that a blend normalises.

use super::{Model, Normalisation};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Deepest nesting of groups.
const MOST_LEVELS: usize = 64;

/// Neighbouring parts of a model whose values become one term of the score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartGroup {
    /// Name of the group in messages.
    pub name: String,
    /// Number of the first part.
    pub first_part: usize,
    /// Number of parts.
    pub parts: usize,
    /// What becomes of the values of the terms before they are weighted and added.
    pub link: Link,
    /// The constant to which the weighted values of the terms are added.
    pub intercept: f64,
    /// How the values of a query's documents are normalised before they are multiplied by the weight.
    pub normalisation: Normalisation,
    /// The factor of the normalised value in the score, or in the group that contains this one.
    pub weight: f64,
}

/// What becomes of the values of a group's terms before they are weighted and added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The values are not changed.
    Identity,
    /// The values of a document are replaced by their softmax: they are scores of classes, and become probabilities.
    Softmax,
}

impl Link {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Link::Identity => "identity",
            Link::Softmax => "softmax",
        }
    }

    /// Replaces the values of the terms, one column per term.
    pub fn apply<C: AsMut<[f64]>>(self, columns: &mut [C]) {
        match self {
            Link::Identity => {}
            Link::Softmax => softmax(columns),
        }
    }
}

/// Replaces the values of every row by their softmax.
fn softmax<C: AsMut<[f64]>>(columns: &mut [C]) {
    let mut columns: Vec<&mut [f64]> = columns.iter_mut().map(|column| column.as_mut()).collect();
    let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
    for row in 0..rows {
        let most = columns.iter().fold(f64::NEG_INFINITY, |most, column| most.max(column[row]));
        let mut sum = 0.0;
        for column in &mut columns {
            column[row] = libm::exp(column[row] - most);
            sum += column[row];
        }
        columns.iter_mut().for_each(|column| column[row] /= sum);
    }
}

/// A term of the score of a model, or of the value of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Term {
    /// The part with this number.
    Part(usize),
    /// The group with this number, and its terms.
    Group(usize, Vec<Term>),
}

impl PartGroup {
    /// Returns the numbers of the parts.
    pub fn range(&self) -> Range<usize> {
        self.first_part..self.first_part.saturating_add(self.parts)
    }
}

impl Model {
    /// Returns the terms of the score, in the order in which they are added.
    pub(crate) fn terms(&self) -> Vec<Term> {
        terms_of(0..self.parts.len(), &self.groups, &mut 0)
    }

    /// Returns the number and the name of a group, for messages.
    pub(crate) fn group_label(&self, group: usize) -> String {
        format!("group {group} ({})", self.groups[group].name)
    }

    /// Returns what a group does that a plain sum of parts does not, as the continuation of a sentence that begins with
    /// the name of the group. `None` if the model has no groups.
    pub(crate) fn coupling(&self) -> Option<String> {
        let group = self.groups.first()?;
        let label = self.group_label(0);
        Some(match (group.link, group.normalisation) {
            (Link::Softmax, _) => format!("{label} is a softmax over its parts"),
            (Link::Identity, Normalisation::None) => format!("{label} is a sum of parts within the score"),
            (Link::Identity, normalisation) => {
                format!("{label} is normalised over the documents of a query ({})", normalisation.name())
            }
        })
    }

    /// Returns a description of the first problem in the groups, or `None` if they are valid.
    pub(super) fn group_fault(&self) -> Option<String> {
        let mut open: Vec<Range<usize>> = Vec::new();
        let mut last = 0;
        for (number, group) in self.groups.iter().enumerate() {
            let range = group.range();
            let problem = if !group.weight.is_finite() || !group.intercept.is_finite() {
                Some("the weight and the intercept must be finite".to_owned())
            } else if range.is_empty() || range.end > self.parts.len() {
                Some(format!("it has the parts {range:?}, but the number of parts is {}", self.parts.len()))
            } else {
                open.retain(|outer| range.start < outer.end);
                let is_within = open.last().is_none_or(|outer| range.end <= outer.end);
                open.push(range.clone());
                match is_within && range.start >= last {
                    false => Some("groups overlap or are out of order".to_owned()),
                    true if open.len() > MOST_LEVELS => {
                        Some(format!("groups are nested more than {MOST_LEVELS} levels deep"))
                    }
                    true => None,
                }
            };
            if let Some(problem) = problem {
                return Some(format!("{}: {problem}", self.group_label(number)));
            }
            last = range.start;
        }
        None
    }
}

/// Returns the terms of some parts. `next` is the first group that has not been placed yet; groups are ordered by their
/// first part, outer ones first.
fn terms_of(parts: Range<usize>, groups: &[PartGroup], next: &mut usize) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut part = parts.start;
    while part < parts.end {
        match groups.get(*next).map(PartGroup::range).filter(|range| range.start == part) {
            Some(range) => {
                let group = *next;
                *next += 1;
                part = range.end;
                terms.push(Term::Group(group, terms_of(range, groups, next)));
            }
            None => {
                terms.push(Term::Part(part));
                part += 1;
            }
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn group(first_part: usize, parts: usize) -> PartGroup {
        PartGroup {
            name: "g".to_owned(),
            first_part,
            parts,
            link: Link::Identity,
            intercept: 0.0,
            normalisation: Normalisation::None,
            weight: 1.0,
        }
    }

    fn grouped(parts: usize, groups: Vec<PartGroup>) -> Model {
        let part = example().parts[0].clone();
        Model { parts: vec![part; parts], groups, ..example() }
    }

    #[test]
    fn groups_nest() {
        let model = grouped(6, vec![group(1, 4), group(1, 2), group(3, 1), group(5, 1)]);
        assert_eq!(model.group_fault(), None);
        let inner = vec![
            Term::Group(1, vec![Term::Part(1), Term::Part(2)]),
            Term::Group(2, vec![Term::Part(3)]),
            Term::Part(4),
        ];
        let all = [Term::Part(0), Term::Group(0, inner), Term::Group(3, vec![Term::Part(5)])];
        assert_eq!(model.terms(), all);
        assert_eq!(grouped(2, Vec::new()).terms(), [Term::Part(0), Term::Part(1)]);
    }

    #[test]
    fn invalid_groups_are_refused_by_name() {
        for (groups, expected) in [
            (vec![group(0, 2), group(1, 2)], "group 1 (g): groups overlap"),
            (vec![group(1, 1), group(0, 1)], "out of order"),
            (vec![group(0, 1), group(0, 2)], "overlap"),
            (vec![group(0, 4)], "the number of parts is 3"),
            (vec![group(1, 0)], "the number of parts is 3"),
            (vec![group(usize::MAX, 2)], "the number of parts is 3"),
            (vec![PartGroup { weight: f64::NAN, ..group(0, 1) }], "must be finite"),
            (vec![group(0, 1); MOST_LEVELS + 1], "nested more than 64"),
        ] {
            let fault = grouped(3, groups).fault().unwrap();
            assert!(fault.contains(expected), "{fault}");
        }
        assert_eq!(grouped(3, vec![group(0, 1); MOST_LEVELS]).fault(), None);
    }

    #[test]
    fn a_softmax_is_a_distribution_and_large_values_do_not_overflow() {
        let mut columns = [vec![0.0, 1000.0, -3.0], vec![0.0, 1001.0, 2.0], vec![0.0, 0.0, 2.0]];
        let rows: Vec<Vec<f64>> =
            (0..3).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
        Link::Softmax.apply(&mut columns);
        for (row, values) in rows.iter().enumerate() {
            // The slow definition, relative to the first class.
            let sum: f64 = values.iter().map(|value| (value - values[0]).exp()).sum();
            for (class, column) in columns.iter().enumerate() {
                let expected = (values[class] - values[0]).exp() / sum;
                assert!((column[row] - expected).abs() < 1e-12, "{row} {class}: {} {expected}", column[row]);
            }
        }
    }
}
