//! Merges settings from several sources. [`TrainSettings::check`] validates them and returns [`Parameters`].

use super::Parameters;
use super::keys::{Key, keys};
use super::learners::LearnerSpec;
use super::raw::RawParameters;
use super::sections::SECTIONS;
use super::source::Setting;
use super::value::ValueError;
use super::words::NamedEnum;
use planetree_base::error::{Error, Result};
use std::collections::BTreeMap;

/// Settings from all sources, keyed by the canonical name of the parameter.
#[derive(Default)]
pub struct TrainSettings {
    given: BTreeMap<&'static str, Setting>,
    /// The values of the preset.
    of_preset: BTreeMap<&'static str, String>,
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
        let of_preset = said.iter().filter(|(_, setting)| !setting.chosen);
        self.of_preset.extend(of_preset.map(|(name, setting)| (*name, setting.text.clone())));
        self.given.extend(said);
        Ok(())
    }

    /// Parses all values and rejects incompatible combinations.
    pub fn check(&self) -> Result<Parameters> {
        let mut raw = RawParameters::default();
        for key in keys() {
            match self.given.get(key.name) {
                Some(setting) => key
                    .read(&setting.written, &setting.text, &mut raw)
                    .map_err(|fault| setting.fault(self.with_value_of_preset(key, fault)))?,
                None if key.default.is_empty() => {}
                None => key.read(key.name, key.default, &mut raw).map_err(|fault| {
                    Error::usage(format_args!("{}, by default: {}", key.name, fault.problem), fault.remedy)
                })?,
            }
        }
        self.check_learner(&mut raw)?;
        self.check_learner_objective(&mut raw)?;
        SECTIONS.iter().try_for_each(|section| (section.check)(self, &mut raw))?;
        if let Some((problem, remedy)) = raw.shared.convention.repeated(&raw.shared.metrics) {
            return Err(self.fault("metric", &problem, &remedy));
        }
        Ok(raw.into_parameters())
    }

    /// Names the value of the preset in place of the default that it replaces.
    fn with_value_of_preset(&self, key: &Key, fault: ValueError) -> ValueError {
        match self.of_preset.get(key.name).filter(|value| *value != key.default) {
            Some(value) if fault.remedy == key.default_remedy() => {
                ValueError { remedy: format!("the preset has {value}"), ..fault }
            }
            _ => fault,
        }
    }

    /// Rejects parameters that belong to other learners if the user set them. Values from presets and defaults
    /// are reset without an error.
    fn check_learner(&self, raw: &mut RawParameters) -> Result<()> {
        // Models of trees record the neutral values of all tree learners, so these are accepted.
        let accepts_neutral = !raw.learner.records.is_empty();
        for key in raw.learner.foreign() {
            let given = key.print(raw);
            key.neutralise(raw);
            let is_neutral = accepts_neutral && given == key.print(raw);
            if self.is_chosen(key.name) && !is_neutral {
                let problem = format!("{} does not use {}", raw.learner.noun, key.name);
                let remedy = format!("remove it, or set ensemble={}", LearnerSpec::user_of(key).name);
                return Err(self.fault(key.name, &problem, &remedy));
            }
        }
        Ok(())
    }

    /// Rejects objectives that the learner does not have if the user set them. The objective of a preset is reset without
    /// an error.
    fn check_learner_objective(&self, raw: &mut RawParameters) -> Result<()> {
        let LearnerSpec { noun, objectives, .. } = raw.learner;
        let Some(first) = objectives.first().filter(|_| !objectives.contains(&raw.objective.name)) else {
            return Ok(());
        };
        if self.is_chosen("objective") {
            let names: Vec<&str> = objectives.iter().map(|objective| objective.name()).collect();
            return Err(self.fault(
                "objective",
                &format!("{noun} has no objective {}", raw.objective.name.name()),
                &format!("set objective={}, or ensemble=boost", names.join(" or objective=")),
            ));
        }
        raw.objective.name = *first;
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
