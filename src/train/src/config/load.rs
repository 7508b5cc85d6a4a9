//! Loads a training plan from a preset, a config file, `key=value` arguments and choices of a program. Later sources
//! override earlier ones.

use super::choice::Choice;
use super::plan::TrainingPlan;
use super::plan_keys::RawPlan;
use super::presets::{self, TrainPreset};
use super::settings::TrainSettings;
use super::source::{self, CommandSettings, ConfigDocument, PlanSetting, Setting, StageDocument};
use super::value::ValueError;
use super::{ObjectiveParameters, Parameters};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// The parameters that apply to all stages if they are set outside of a stage. All others must name their stage.
const SHARED: [&str; 6] = ["seed", "missing", "metric", "convention", "label_map", "monotone_constraints"];

/// Loads a training plan from a preset, then a TOML file, then `key=value` arguments; later sources
/// override earlier ones. The file may name the preset; the argument `preset` takes precedence.
pub fn load(preset: Option<&str>, config: Option<&Location>, set: &[String]) -> Result<TrainingPlan> {
    load_with(preset, config, set, &[])
}

/// Like [`load`], but with `choices` that override all other sources.
pub fn load_with(
    preset: Option<&str>,
    config: Option<&Location>,
    set: &[String],
    choices: &[Choice],
) -> Result<TrainingPlan> {
    let file = match config {
        Some(location) => Some(read_file(location)?),
        None => None,
    };
    let in_file = file.as_ref().and_then(|file| file.others.get("preset"));
    let is_named = preset.is_some() || in_file.is_some();
    let preset = match (preset, in_file) {
        (None, Some(other)) => TrainPreset::named(&other.text).map_err(|error| at(&other.place, &error))?,
        (name, _) => TrainPreset::named(name.unwrap_or(presets::DEFAULT))?,
    };
    let sources = SettingSources {
        preset_name: preset.name,
        is_named,
        preset: preset.document()?,
        file: file.unwrap_or_default(),
        command: source::read_command(set)?,
        choices: choices.iter().map(Choice::setting).collect::<Result<_>>()?,
    };
    sources.plan()
}

/// Loads a plan from the text of a configuration, without a preset.
pub(super) fn plan_of_text(name: &str, text: &str) -> Result<TrainingPlan> {
    let sources = SettingSources {
        preset_name: name,
        is_named: false,
        preset: ConfigDocument::default(),
        file: source::read_toml(name, text, &[])?,
        command: CommandSettings::default(),
        choices: Vec::new(),
    };
    sources.plan()
}

fn read_file(location: &Location) -> Result<ConfigDocument> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::usage(format_args!("{location}: not a text file"), "use a TOML file"))?;
    source::read_toml(&location.to_string(), text.trim_start_matches('\u{feff}'), &["preset"])
}

/// All sources of settings.
struct SettingSources<'a> {
    preset_name: &'a str,
    /// Whether the user named the preset.
    is_named: bool,
    preset: ConfigDocument,
    file: ConfigDocument,
    command: CommandSettings,
    choices: Vec<Setting>,
}

impl SettingSources<'_> {
    fn plan(self) -> Result<TrainingPlan> {
        let mut raw = RawPlan::default();
        for setting in self.preset.plan.iter().chain(&self.file.plan).chain(&self.command.plan) {
            setting.key.read(&setting.text, &mut raw).map_err(|fault| setting.fault(fault))?;
        }
        let stages = self.stages()?;
        let is_softmax = |stage: &Parameters| {
            stage.boost().is_some_and(|boost| boost.objective == ObjectiveParameters::SoftmaxClasses)
        };
        let target = raw.target(stages.iter().any(is_softmax));
        let plan = TrainingPlan {
            runs: raw.runs,
            target: target.map_err(|key| self.needs_classes(key))?,
            stage_start: raw.stage_start,
            stages,
        };
        plan.check()
    }

    /// Returns the error for a key of models of classes that the target does not use.
    fn needs_classes(&self, key: &str) -> Error {
        let mut all = self.file.plan.iter().chain(&self.command.plan);
        let (problem, remedy) = match key {
            "class_weights" => ("only target=ordinal uses it", "set target=ordinal, or remove it"),
            _ => (
                "only models of classes use it",
                "set target=ordinal or objective=softmax_classes, or remove it",
            ),
        };
        match all.rfind(|setting| setting.key.name == key) {
            Some(setting) => {
                setting.fault(ValueError { problem: problem.to_owned(), remedy: remedy.to_owned() })
            }
            None => Error::usage(format_args!("{key}: {problem}"), remedy),
        }
    }

    /// Returns the parameters of all stages.
    fn stages(&self) -> Result<Vec<Parameters>> {
        let stages = match (self.file.stages.as_slice(), self.preset.stages.as_slice()) {
            ([], []) => {
                if let Some((number, setting)) = self.command.stages.iter().find(|(number, _)| *number != 1) {
                    return Err(no_stage(setting, *number, 1));
                }
                let mut settings = TrainSettings::default();
                settings.add(self.preset.settings.clone())?;
                settings.add(self.file.settings.clone())?;
                settings.add(self.command.all.clone())?;
                settings.add(self.command.of_stage(1))?;
                settings.add(self.choices.clone())?;
                return Ok(vec![settings.check()?]);
            }
            ([], stages) => stages,
            ([first, ..], [_, ..]) if self.is_named => {
                return Err(Error::usage(
                    format_args!("{}: preset {} has stages of its own", first.place, self.preset_name),
                    "remove the [[stage]] tables, or the preset",
                ));
            }
            (stages, _) => stages,
        };
        let count = stages.len();
        let unshared = |setting: &&Setting| !SHARED.contains(&setting.key.name);
        let all = self.file.settings.iter().chain(&self.command.all).chain(&self.choices);
        if let Some(setting) = all.into_iter().find(unshared) {
            let name = setting.key.name;
            let forms: Vec<String> = (1..=count).map(|stage| format!("stage.{stage}.{name}")).collect();
            return Err(setting.fault(ValueError {
                problem: format!("the training has {count} stages"),
                remedy: format!(
                    "set {} in place of {name}; only {} apply to all stages",
                    forms.join(" or "),
                    SHARED.join(", ")
                ),
            }));
        }
        if let Some((number, setting)) = self.command.stages.iter().find(|(number, _)| *number > count) {
            return Err(no_stage(setting, *number, count));
        }
        let numbered = (1..).zip(stages);
        numbered
            .map(|(number, stage)| self.stage(number, stage).map_err(|error| in_stage(number, &error)))
            .collect()
    }

    fn stage(&self, number: usize, stage: &StageDocument) -> Result<Parameters> {
        let mut settings = TrainSettings::default();
        match &stage.preset {
            None => settings.add(self.preset.settings.clone())?,
            Some(other) => {
                let preset = TrainPreset::named(&other.text).map_err(|error| at(&other.place, &error))?;
                let document = preset.document()?;
                if !document.stages.is_empty() || !document.plan.is_empty() {
                    return Err(Error::usage(
                        format_args!("{}: preset {} is no single stage", other.place, preset.name),
                        "name the presets of its stages, and set runs and target outside of the stages",
                    ));
                }
                settings.add(document.settings)?;
            }
        }
        // A stage overrides what its own file sets for all stages. A file overrides the stages of a preset.
        let is_of_file = !self.file.stages.is_empty();
        let (before, after) = match is_of_file {
            true => (&self.file.settings, &stage.settings),
            false => (&stage.settings, &self.file.settings),
        };
        for source in [before, after, &self.command.all] {
            settings.add(source.clone())?;
        }
        settings.add(self.command.of_stage(number))?;
        settings.add(self.choices.clone())?;
        settings.check()
    }
}

fn no_stage(setting: &Setting, number: usize, count: usize) -> Error {
    let stages = if count == 1 {
        "the training has a single stage".to_owned()
    } else {
        format!("the stages are 1 to {count}")
    };
    setting.fault(ValueError {
        problem: format!("there is no stage {number}"),
        remedy: format!(
            "{stages}; presets such as igbrt and config files with [[stage]] tables have several"
        ),
    })
}

fn in_stage(number: usize, error: &Error) -> Error {
    at(&format!("stage {number}"), error)
}

fn at(place: &str, error: &Error) -> Error {
    Error::usage(format_args!("{place}: {error}"), error.remedy().unwrap_or_default())
}

impl PlanSetting {
    fn fault(&self, fault: ValueError) -> Error {
        Error::usage(format_args!("{}: {}", self.shown, fault.problem), fault.remedy)
    }
}
