//! Merges settings from several sources. [`TrainSettings::check`] validates them and returns [`Parameters`].

use super::keys::{KEYS, Key};
use super::learner_keys::{ForeignKey, foreign};
use super::raw::{RawParameters, blank};
use super::source::Setting;
use super::value::ValueError;
use super::words::NamedEnum;
use super::{Candidates, EnsembleName, LeafStep, ObjectiveName, Parameters, Sampling, SplitBy};
use planetree_base::error::{Error, Result};
use planetree_metric::Metric;
use std::collections::BTreeMap;

/// Settings from all sources, keyed by the canonical name of the parameter.
#[derive(Default)]
pub struct TrainSettings {
    given: BTreeMap<&'static str, Setting>,
}

impl TrainSettings {
    /// Adds the settings of one source, which override those of earlier sources.
    pub fn add(&mut self, source: Vec<Setting>) -> Result<()> {
        let mut said: BTreeMap<&'static str, Setting> = BTreeMap::new();
        for setting in source {
            let name = setting.key.name;
            if let Some(earlier) = said.get(name).filter(|earlier| earlier.written != setting.written) {
                return Err(setting.fault(ValueError {
                    problem: format!("{name} is set twice, first as {}", earlier.written),
                    remedy: format!("set {name} once; its names are {}", setting.key.names_listed()),
                }));
            }
            said.insert(name, setting);
        }
        if let Some(setting) = said.remove("query_fraction") {
            spell_out(&setting, &mut said)?;
        }
        // A fraction and a number of queries exclude each other, so the later source wins.
        if said.contains_key("bagging_fraction") && !said.contains_key("queries_per_tree") {
            self.given.remove("queries_per_tree");
        }
        self.given.extend(said);
        Ok(())
    }

    /// Parses all values and rejects incompatible combinations.
    pub fn check(&self) -> Result<Parameters> {
        let mut parameters = blank();
        for key in &KEYS {
            match self.given.get(key.name) {
                Some(setting) => key
                    .read(&setting.written, &setting.text, &mut parameters)
                    .map_err(|fault| setting.fault(fault))?,
                None if key.default.is_empty() => {}
                None => key.read(key.name, key.default, &mut parameters).map_err(|fault| {
                    Error::usage(format_args!("{}, by default: {}", key.name, fault.problem), fault.remedy)
                })?,
            }
        }
        self.check_ensemble(&mut parameters)?;
        self.check_listwise(&mut parameters)?;
        self.check_candidates(&mut parameters)?;
        self.check_objective(&mut parameters)?;
        self.check_steps(&mut parameters)?;
        // An explicit number of leaves disables the preset's depth limit.
        if parameters.num_leaves.is_some() && self.is_chosen("num_leaves") && !self.is_chosen("max_depth") {
            parameters.max_depth = None;
        }
        let is_boosted = parameters.ensemble == EnsembleName::Boost;
        if is_boosted && parameters.max_depth.is_none() && parameters.num_leaves.is_none() {
            return Err(self.fault(
                "max_depth",
                "a tree needs a limit: max_depth or num_leaves",
                "set num_leaves=31 or max_depth=5, for example",
            ));
        }
        Ok(parameters.into_parameters())
    }

    /// Rejects parameters that belong to other learners if the user set them. Values from presets and defaults
    /// are reset without an error.
    fn check_ensemble(&self, parameters: &mut RawParameters) -> Result<()> {
        let is_bag = parameters.ensemble == EnsembleName::Bag;
        let kind = match parameters.ensemble {
            EnsembleName::Boost => "boosting",
            EnsembleName::Bag => "a forest",
            EnsembleName::Linear => "a linear model",
        };
        for ForeignKey { name, neutral, remedy } in foreign(parameters.ensemble) {
            let Some(key) = Key::named(name) else { continue };
            let given = key.print(parameters);
            let _ = key.read(name, neutral, parameters); // cannot fail: a test checks all neutral values
            // Models of trees record the neutral values of all tree learners, so these are accepted.
            let is_neutral = given == key.print(parameters) && parameters.ensemble != EnsembleName::Linear;
            if self.is_chosen(name) && !is_neutral {
                let problem = format!("{kind} does not use {name}");
                return Err(self.fault(name, &problem, &format!("remove it, or set {remedy}")));
            }
        }
        self.check_linear_objective(parameters)?;
        let unfit = if is_bag { Candidates::Streaming } else { Candidates::Random };
        if parameters.candidates == unfit {
            if self.is_chosen("candidates") || !self.is_chosen("ensemble") {
                return Err(self.fault(
                    "candidates",
                    &format!("{kind} does not support {} candidates", unfit.name()),
                    "set candidates=static or candidates=exact",
                ));
            }
            parameters.candidates = Candidates::Static;
        }
        if parameters.queries_per_tree.is_some() {
            if self.is_chosen("bagging_by") && parameters.bagging_by == Sampling::Rows {
                return Err(self.fault(
                    "bagging_by",
                    "conflicts with queries_per_tree",
                    "remove one of them",
                ));
            }
            let both = self.is_chosen("queries_per_tree") && self.is_chosen("bagging_fraction");
            if both && parameters.bagging_fraction < 1.0 {
                return Err(self.fault(
                    "queries_per_tree",
                    "conflicts with bagging_fraction or query_fraction",
                    "set a number of queries or a fraction, not both",
                ));
            }
            parameters.bagging_by = Sampling::Queries;
            parameters.bagging_fraction = 1.0;
        }
        if parameters.max_bin == 0
            && parameters.candidates != Candidates::Random
            && !self.is_chosen("max_bin")
        {
            let _ = Key::named("max_bin").map(|key| key.read(key.name, key.default, parameters)); // a preset's value
        }
        if is_bag && parameters.candidates == Candidates::Static && parameters.max_bin == 0 {
            parameters.candidates = Candidates::Exact; // every value is a bin
        }
        if parameters.forest.pairs_per_document.is_some() && parameters.candidates != Candidates::Static {
            return Err(self.fault(
                "pairs_per_document",
                &format!("training on pairs does not support {} candidates", parameters.candidates.name()),
                "set candidates=static and max_bin=255",
            ));
        }
        self.check_leaf_score(parameters)?;
        Ok(())
    }

    /// Rejects objectives that linear models do not have if the user set them. The objective of a preset is reset without
    /// an error.
    fn check_linear_objective(&self, parameters: &mut RawParameters) -> Result<()> {
        let is_supported = matches!(parameters.objective, ObjectiveName::Squared | ObjectiveName::Logistic);
        if parameters.ensemble != EnsembleName::Linear || is_supported {
            return Ok(());
        }
        if self.is_chosen("objective") {
            return Err(self.fault(
                "objective",
                &format!("a linear model has no objective {}", parameters.objective.name()),
                "set objective=squared or objective=logistic, or ensemble=boost",
            ));
        }
        parameters.objective = ObjectiveName::Squared;
        Ok(())
    }

    /// Rejects parameters that belong to other types of candidates if the user set them. Values from presets and
    /// defaults are reset without an error.
    fn check_candidates(&self, parameters: &mut RawParameters) -> Result<()> {
        let (kind, most) = match parameters.candidates {
            Candidates::Static => ("static", 255),
            Candidates::Streaming => ("streaming", 10_000),
            Candidates::Exact => ("exact", 0),
            Candidates::Random => ("random", 255),
        };
        if parameters.candidates == Candidates::Exact {
            if parameters.max_bin != 0 && self.is_chosen("max_bin") {
                return Err(self.fault(
                    "max_bin",
                    "exact candidates do not use bins",
                    "remove it, or set candidates=static or candidates=streaming",
                ));
            }
            parameters.max_bin = 0;
        } else if parameters.candidates == Candidates::Random && parameters.max_bin == 0 {
            // 0 is valid here and keeps all values distinct.
        } else if !(2..=most).contains(&parameters.max_bin) {
            let more = if kind == "static" && parameters.max_bin > most {
                "; candidates=streaming allows up to 10000"
            } else {
                ""
            };
            return Err(self.fault(
                "max_bin",
                &format!("{kind} candidates need a whole number from 2 to {most}"),
                &format!("set max_bin={}{more}", most.min(255)),
            ));
        }
        if parameters.candidates != Candidates::Streaming {
            if parameters.value_groups != 0 && self.is_chosen("value_groups") {
                return Err(self.fault(
                    "value_groups",
                    &format!("{kind} candidates do not use value groups"),
                    "remove it, or set candidates=streaming",
                ));
            }
            if parameters.workers > 1 && self.is_chosen("workers") {
                return Err(self.fault(
                    "workers",
                    &format!("{kind} candidates do not depend on the number of workers"),
                    "remove it, or set candidates=streaming",
                ));
            }
            parameters.value_groups = 0;
            parameters.workers = 0;
        } else if parameters.workers == 0 {
            return Err(self.fault("workers", "workers must be at least 1", "set it to 1 or more"));
        } else if parameters.value_groups == 1 {
            return Err(self.fault(
                "value_groups",
                "a single group leaves nothing to split",
                "set it to a number from 2 to 255, or to 0 to keep all values",
            ));
        }
        Ok(())
    }

    /// Rejects parameters that belong to other objectives if the user set them. Values from presets are reset to the
    /// default without an error.
    fn check_objective(&self, parameters: &mut RawParameters) -> Result<()> {
        use ObjectiveName::{GbRank, LambdaRank, Logistic, RankNet};
        let objective = parameters.objective;
        let belongs: [(&str, &[ObjectiveName]); 9] = [
            ("lambda_metric", &[LambdaRank]),
            ("truncation_level", &[LambdaRank, RankNet, GbRank]),
            ("sigma", &[LambdaRank, RankNet]),
            ("lambda_norm", &[LambdaRank, RankNet, GbRank]),
            ("margin", &[GbRank]),
            ("label_gain", &[LambdaRank]),
            ("relevant_from", &[LambdaRank, Logistic]),
            ("unbiased", &[LambdaRank, RankNet]),
            ("bias_norm", &[LambdaRank, RankNet]),
        ];
        for (name, objectives) in belongs {
            let Some(key) = Key::named(name).filter(|_| !objectives.contains(&objective)) else { continue };
            if name == "label_gain" && parameters.forest.is_listwise() {
                continue;
            }
            let given = key.print(parameters);
            let _ = key.read(name, key.default, parameters); // cannot fail: a test checks all defaults
            if self.is_chosen(name) && given != key.print(parameters) {
                let names: Vec<&str> = objectives.iter().map(|objective| objective.name()).collect();
                return Err(self.fault(
                    name,
                    &format!("objective {} does not use {name}", objective.name()),
                    &format!("remove it, or set objective={}", names.join(" or objective=")),
                ));
            }
        }
        if objective == LambdaRank && parameters.lambda_metric == Metric::Rmse {
            return Err(self.fault(
                "lambda_metric",
                &format!("{} does not depend on the ranking", parameters.lambda_metric),
                "set lambda_metric=ndcg, err or map, for example",
            ));
        }
        Ok(())
    }

    /// Rejects splits by gradient for which no candidates exist, and regularisation that no Newton step uses.
    fn check_steps(&self, parameters: &mut RawParameters) -> Result<()> {
        if parameters.split_by == SplitBy::Gradient
            && parameters.candidates == Candidates::Streaming
            && parameters.objective != ObjectiveName::Squared
        {
            if self.is_chosen("split_by") {
                return Err(self.fault(
                    "split_by",
                    "streaming candidates sum hessians, not rows, unless objective=squared",
                    "set split_by=newton, or candidates=static",
                ));
            }
            parameters.split_by = SplitBy::Newton;
        }
        let steps = (parameters.split_by, parameters.leaf);
        if steps == (SplitBy::Gradient, LeafStep::Mean) && parameters.lambda_l2 > 0.0 {
            return Err(self.fault(
                "lambda_l2",
                "split_by=gradient with leaf=mean has no regularisation",
                "remove it, or set split_by=newton or leaf=newton",
            ));
        }
        Ok(())
    }

    pub(super) fn is_chosen(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|setting| setting.chosen)
    }

    /// Creates an error about a parameter, with its location if the user set it.
    pub(super) fn fault(&self, name: &str, problem: &str, remedy: &str) -> Error {
        match self.given.get(name).filter(|setting| setting.chosen) {
            Some(setting) => {
                setting.fault(ValueError { problem: problem.to_owned(), remedy: remedy.to_owned() })
            }
            None => Error::usage(problem, remedy),
        }
    }
}

/// Returns parameters with every value at its default.
pub fn defaults() -> RawParameters {
    let mut parameters = blank();
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        let _ = key.read(key.name, key.default, &mut parameters); // cannot fail: a test checks all defaults
    }
    parameters
}

/// Replaces `query_fraction` with the two parameters that it stands for.
fn spell_out(shorthand: &Setting, said: &mut BTreeMap<&'static str, Setting>) -> Result<()> {
    for (name, text) in [("bagging_fraction", shorthand.text.as_str()), ("bagging_by", "queries")] {
        match said.get(name) {
            Some(other) if name == "bagging_by" && other.text.eq_ignore_ascii_case(text) => {}
            Some(other) => {
                return Err(shorthand.fault(ValueError {
                    problem: format!("conflicts with {} = {}", other.written, other.text),
                    remedy: "set query_fraction alone, or bagging_fraction and bagging_by".to_owned(),
                }));
            }
            None => {
                let Some(key) = Key::named(name) else { continue };
                said.insert(key.name, Setting { key, text: text.to_owned(), ..shorthand.clone() });
            }
        }
    }
    Ok(())
}
