//! Scores and ranks the documents of single queries in memory.

use planetree_base::error::{Error, Result};
use planetree_model::model::Model;
use planetree_model::predict::Scorer;

/// Scores and ranks the documents of one query in memory, for use in a service.
///
/// A ranker prepares the model once, when it is created. Pass all documents of a query together, because some models
/// normalise values over the documents of a query, so that a score depends on the other documents.
pub struct Ranker {
    scorer: Scorer,
    features: Vec<String>,
}

impl Ranker {
    /// Creates a ranker for a model. Returns an error if the model was trained from start scores, which are not part of it.
    pub fn new(model: &Model) -> Result<Self> {
        let features = model.features.iter().map(|feature| feature.name.clone()).collect();
        Ok(Ranker { scorer: Scorer::new(model)?, features })
    }

    /// Returns the names of the features, in the order that [`Ranker::scores`] expects their values.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Returns the score of each document. A document is a slice of feature values, with NaN for missing values.
    pub fn scores<D: AsRef<[f32]>>(&self, documents: &[D]) -> Result<Vec<f64>> {
        let mut rows = Vec::with_capacity(documents.len() * self.features.len());
        for (index, document) in documents.iter().map(AsRef::as_ref).enumerate() {
            if document.len() != self.features.len() {
                return Err(Error::usage(
                    format_args!(
                        "document {index} has {} values, but the model has {} features",
                        document.len(),
                        self.features.len()
                    ),
                    "pass one value per feature, NaN where it is missing",
                ));
            }
            rows.extend_from_slice(document);
        }
        let mut scores = vec![0.0; documents.len()];
        self.scorer.score(&rows, &mut scores);
        Ok(scores)
    }

    /// Returns the indices of the documents in descending order of scores. Documents with equal scores stay in the
    /// order in which they were given.
    pub fn rank<D: AsRef<[f32]>>(&self, documents: &[D]) -> Result<Vec<usize>> {
        let scores = self.scores(documents)?;
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // Adding 0.0 turns -0.0 into 0.0, so that the two compare equal.
        let key = |document: &usize| scores[*document] + 0.0;
        order.sort_by(|one, other| key(other).total_cmp(&key(one)));
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_model::model::{Combine, ModelFeature, Origin, Part, TreeEnsemble};

    #[test]
    fn zero_and_negative_zero_are_equal_scores() {
        let ensemble = TreeEnsemble::new(Combine::Sum, -0.0, Some(0), Vec::new());
        let model = Model {
            intercept: 0.0,
            parts: vec![Part::trees(ensemble)],
            groups: Vec::new(),
            features: vec![ModelFeature::new("f1")],
            configuration: String::new(),
            data: Vec::new(),
            rounds: 0,
            start_scores: None,
            origin: Origin::default(),
        };
        let unfinished =
            Model { start_scores: Some(planetree_base::storage::digest_of(b"x")), ..model.clone() };
        let error = Ranker::new(&unfinished).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("trained from start scores"), "{error}");
        let ranker = Ranker::new(&model).unwrap();
        let documents = [[-0.0], [0.0], [1.0], [-0.0]];
        let scores = ranker.scores(&documents).unwrap();
        assert!(scores[0].is_sign_negative() && scores[1].is_sign_positive(), "{scores:?}");
        assert_eq!(ranker.rank(&documents).unwrap(), [2, 0, 1, 3]);
    }
}
