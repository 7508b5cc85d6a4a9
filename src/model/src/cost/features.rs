//! The costs of the features of a model or dataset, by index. Features of a group have one cost together.

use std::collections::BTreeSet;

/// The cost of every feature. What is paid at once is a *unit*: a single feature, or all features of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureCosts {
    /// Unit of each feature.
    pub(super) units: Vec<usize>,
    /// Cost of each unit.
    pub(super) costs: Vec<f64>,
}

impl FeatureCosts {
    /// Returns the number of features.
    pub fn features(&self) -> usize {
        self.units.len()
    }

    /// Returns the cost of a feature, or of its group.
    pub fn of(&self, feature: u32) -> f64 {
        self.costs[self.units[feature as usize]]
    }

    /// Returns the cost of computing these features, none of which is known yet.
    pub fn total(&self, features: impl Iterator<Item = u32>) -> f64 {
        let units: BTreeSet<usize> = features.map(|feature| self.units[feature as usize]).collect();
        units.into_iter().map(|unit| self.costs[unit]).sum()
    }
}

/// The features that have been computed for a document, so that they are free from then on.
#[derive(Debug, Clone)]
pub struct PaidFeatures {
    costs: FeatureCosts,
    paid: Vec<bool>,
}

impl PaidFeatures {
    /// Starts a document for which no feature has been computed yet.
    pub fn new(costs: FeatureCosts) -> Self {
        PaidFeatures { paid: vec![false; costs.costs.len()], costs }
    }

    /// Computes features. Returns the costs of those that were not paid before, added in the order of their units.
    pub fn pay(&mut self, features: impl Iterator<Item = u32>) -> f64 {
        let units: BTreeSet<usize> = features.map(|feature| self.costs.units[feature as usize]).collect();
        let new = units.into_iter().filter(|unit| !std::mem::replace(&mut self.paid[*unit], true));
        new.map(|unit| self.costs.costs[unit]).sum()
    }

    /// Returns the costs of all features, whether or not they are paid.
    pub fn costs(&self) -> &FeatureCosts {
        &self.costs
    }

    /// Returns what a feature still costs.
    pub fn price(&self, feature: u32) -> f64 {
        let unit = self.costs.units[feature as usize];
        if self.paid[unit] { 0.0 } else { self.costs.costs[unit] }
    }
}
