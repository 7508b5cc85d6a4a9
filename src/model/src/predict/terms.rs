//! Computes the values of groups of parts from the values of the parts.

use super::scorer::add;
use crate::model::{Link, Model, Normalisation, Term};

/// The terms of a model's score or of a group, prepared for scoring.
#[derive(Debug)]
pub(super) struct PreparedTerms {
    link: Link,
    terms: Vec<TermScorer>,
}

#[derive(Debug)]
struct TermScorer {
    weight: f64,
    content: TermContent,
}

#[derive(Debug)]
enum TermContent {
    /// The part with this number, whose values are already normalised.
    Part(usize),
    Group {
        intercept: f64,
        normalisation: Normalisation,
        terms: PreparedTerms,
    },
}

impl PreparedTerms {
    /// Prepares the terms of a model's score.
    pub(super) fn of(model: &Model) -> Self {
        Self::prepare(model, Link::Identity, model.terms())
    }

    fn prepare(model: &Model, link: Link, terms: Vec<Term>) -> Self {
        let prepared = |term: Term| match term {
            Term::Part(part) => {
                TermScorer { weight: model.parts[part].weight, content: TermContent::Part(part) }
            }
            Term::Group(number, terms) => {
                let group = &model.groups[number];
                let content = TermContent::Group {
                    intercept: group.intercept,
                    normalisation: group.normalisation,
                    terms: Self::prepare(model, group.link, terms),
                };
                TermScorer { weight: group.weight, content }
            }
        };
        PreparedTerms { link, terms: terms.into_iter().map(prepared).collect() }
    }

    /// Adds the weighted values of all terms to `sums`. `values` has the normalised values of every part, and queries
    /// begin and end at `bounds`.
    pub(super) fn add_to(&self, sums: &mut [f64], values: &[Vec<f64>], bounds: &[usize]) {
        if self.link == Link::Identity {
            for term in &self.terms {
                match &term.content {
                    TermContent::Part(part) => add(sums, term.weight, &values[*part]),
                    group @ TermContent::Group { .. } => {
                        add(sums, term.weight, &group.values(values, bounds));
                    }
                }
            }
            return;
        }
        let mut columns: Vec<Vec<f64>> =
            self.terms.iter().map(|term| term.content.values(values, bounds)).collect();
        self.link.apply(&mut columns);
        self.terms.iter().zip(&columns).for_each(|(term, column)| add(sums, term.weight, column));
    }
}

impl TermContent {
    /// Returns the normalised values of the term.
    fn values(&self, values: &[Vec<f64>], bounds: &[usize]) -> Vec<f64> {
        match self {
            TermContent::Part(part) => values[*part].clone(),
            TermContent::Group { intercept, normalisation, terms } => {
                let rows = bounds.last().copied().unwrap_or(0);
                let mut sums = vec![*intercept; rows];
                terms.add_to(&mut sums, values, bounds);
                for query in bounds.windows(2) {
                    normalisation.apply(&mut sums[query[0]..query[1]]);
                }
                sums
            }
        }
    }
}
