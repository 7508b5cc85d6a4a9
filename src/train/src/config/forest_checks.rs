//! Validates the parameters of forests that treat labels as classes, and of listwise trees.

use super::keys::Key;
use super::raw::RawParameters;
use super::settings::TrainSettings;
use super::{Candidates, CriterionName, LeafScore, Sampling};
use planetree_base::error::Result;
use planetree_metric::Metric;

/// Parameters that only listwise trees use.
pub(super) const OF_LISTS: [&str; 5] =
    ["leaf_order", "listwise_discount", "listwise_truncation", "listwise_metric", "queries_per_node"];

impl TrainSettings {
    /// Rejects leaf scores of classes if the leaves hold mean labels or comparisons of documents.
    pub(super) fn check_leaf_score(&self, parameters: &mut RawParameters) -> Result<()> {
        let forest = &mut parameters.forest;
        let (problem, remedy) = match forest.criterion {
            _ if forest.leaf_score == LeafScore::Expected => return Ok(()),
            CriterionName::Variance => (
                "criterion=variance predicts the mean label",
                "remove it, or set criterion=entropy, gini or ndcg",
            ),
            _ if forest.pairs_per_document.is_some() => (
                "the leaves of a forest trained on pairs hold win rates",
                "remove it, or set pairs_per_document=0",
            ),
            CriterionName::Entropy | CriterionName::Gini | CriterionName::Ndcg => return Ok(()),
        };
        if self.is_chosen("leaf_score") {
            return Err(self.fault("leaf_score", problem, remedy));
        }
        forest.leaf_score = LeafScore::Expected;
        Ok(())
    }

    /// Checks the requirements of listwise trees, and rejects listwise parameters if no level is listwise.
    pub(super) fn check_listwise(&self, parameters: &mut RawParameters) -> Result<()> {
        let forest = &mut parameters.forest;
        if forest.criterion == CriterionName::Ndcg && forest.listwise.levels.is_some() {
            // Settings of the user override the preset.
            match (self.is_chosen("criterion"), self.is_chosen("listwise_levels")) {
                (true, false) => forest.listwise.levels = None,
                (false, true) => forest.criterion = CriterionName::Entropy,
                _ => {
                    return Err(self.fault(
                        "listwise_levels",
                        "with criterion=ndcg all levels are listwise",
                        "remove one of them, or set criterion=entropy for the levels below",
                    ));
                }
            }
        }
        if !forest.is_listwise() {
            for key in OF_LISTS.into_iter().filter_map(Key::named) {
                let given = key.print(parameters);
                let _ = key.read(key.name, key.default, parameters); // a test checks that defaults are valid
                if self.is_chosen(key.name) && given != key.print(parameters) {
                    return Err(self.fault(
                        key.name,
                        "only listwise trees use it",
                        "remove it, or set criterion=ndcg or listwise_levels",
                    ));
                }
            }
            return Ok(());
        }
        if !matches!(parameters.candidates, Candidates::Static | Candidates::Exact) {
            let (problem, remedy) = (
                "listwise trees need static or exact candidates",
                "set candidates=static or candidates=exact",
            );
            return Err(self.fault("candidates", problem, remedy));
        }
        self.check_listwise_metric(parameters)?;
        if parameters.forest.criterion == CriterionName::Ndcg {
            if self.is_chosen("redraw_features") && parameters.forest.redraw_features {
                return Err(self.fault(
                    "redraw_features",
                    "listwise splits consider exactly features_per_node features",
                    "remove it, or set redraw_features=false",
                ));
            }
            parameters.forest.redraw_features = true; // no level uses it
        }
        if parameters.forest.pairs_per_document.is_some() {
            return Err(self.fault(
                "pairs_per_document",
                "listwise trees are trained on whole queries, not on pairs",
                "remove it, or set criterion=entropy and listwise_levels=0",
            ));
        }
        let draws = parameters.bagging_fraction < 1.0 || parameters.forest.bootstrap;
        if draws && parameters.bagging_by == Sampling::Rows {
            return Err(self.fault(
                "bagging_by",
                "listwise trees are trained on whole queries",
                "set bagging_by=queries, or query_fraction instead of bagging_fraction",
            ));
        }
        Ok(())
    }

    /// Rejects metrics that do not measure a ranking on a scale up to 1, and parameters that only NDCG has.
    fn check_listwise_metric(&self, parameters: &mut RawParameters) -> Result<()> {
        let metric = parameters.forest.listwise.metric;
        if let Metric::Ndcg(depth) = metric {
            if depth.is_some() && parameters.forest.listwise.truncation.is_some() {
                return Err(self.fault(
                    "listwise_truncation",
                    &format!("conflicts with the depth of listwise_metric={metric}"),
                    "remove one of them",
                ));
            }
            return Ok(());
        }
        let (problem, remedy) = match metric {
            Metric::Rmse => {
                ("does not depend on the ranking", "set listwise_metric=ndcg, err or map, for example")
            }
            Metric::Dcg(_) => {
                ("has no upper limit, so long queries would outweigh others", "set listwise_metric=ndcg")
            }
            Metric::Inversions => {
                ("has no upper limit, so long queries would outweigh others", "set listwise_metric=tau")
            }
            _ => {
                for name in ["listwise_discount", "listwise_truncation"] {
                    let Some(key) = Key::named(name) else { continue };
                    let given = key.print(parameters);
                    let _ = key.read(name, key.default, parameters); // cannot fail: a test checks all defaults
                    if self.is_chosen(name) && given != key.print(parameters) {
                        let problem = format!("only listwise_metric=ndcg has it, not {metric}");
                        return Err(self.fault(name, &problem, "remove it; other metrics follow convention"));
                    }
                }
                return Ok(());
            }
        };
        Err(self.fault("listwise_metric", &format!("{metric} {problem}"), remedy))
    }
}
