//! Plans a run of a pipeline: determines the locations of inputs and outputs and the command lines of all steps.
//! Everything that can be checked before a step runs is checked here.

use super::decide::IdentityCache;
use super::document::{PipelineDocument, fault};
use super::draft::{PRINT, StepDraft};
use super::graph::{PipelineStep, StepGraph, StepInput, WordContent};
use super::manifest::{RunManifest, RunStep, StepStatus};
use super::options::Commands;
use super::paper::Paper;
use super::parameters::{Locals, PipelineParameters};
use super::settings::check_step;
use super::shipped::ShippedPipeline;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, redacted, refuse_hidden};
use planetree_base::suggest;
use planetree_metric::{Convention, Metric};
use planetree_train::config;
use std::collections::{BTreeMap, BTreeSet};

/// Which pipeline to run, and how.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// File or URL of the pipeline, or the name of a pipeline that the program contains.
    pub pipeline: String,
    /// Run directory; `None` to use the directory that the pipeline names, or `runs/NAME` if it names none.
    pub output: Option<String>,
    /// Values of parameters, each as `key=value`.
    pub set: Vec<String>,
    /// Names or patterns of steps that run even if nothing has changed.
    pub force: Vec<String>,
    /// Whether to use the parameter values of the earlier run in the same directory.
    pub resume: bool,
    /// Allowed sources of credentials.
    pub access: Access,
}

/// A pipeline that is ready to run.
pub struct PipelinePlan {
    /// Name of the pipeline.
    pub name: String,
    /// Description of the pipeline; may be empty.
    pub description: String,
    /// The run directory.
    pub run: Location,
    /// Run directory as a string, for command lines.
    run_text: String,
    /// Values of the parameters, with secrets removed.
    pub parameters: BTreeMap<String, String>,
    /// The paper whose tables the pipeline re-obtains, if any.
    pub paper: Option<Paper>,
    /// The steps. Every step comes after the steps that it depends on.
    pub steps: Vec<PipelineStep>,
    /// Manifest of an earlier run in the same directory, if any.
    pub earlier: Option<RunManifest>,
    pub(super) forced: BTreeSet<String>,
    pub(super) access: Access,
}

impl PipelinePlan {
    /// Reads a pipeline and plans the run.
    pub fn new(request: &RunRequest, commands: &Commands) -> Result<Self> {
        let access = request.access;
        let file = Location::parse(&request.pipeline, access)?;
        let text = pipeline_text(&file, &request.pipeline)?;
        let document = PipelineDocument::parse(&file.to_string(), &text)?;
        let name = match &document.name {
            Some(item) => item.text().unwrap_or_default().to_owned(),
            None => file.name().trim_end_matches(".toml").to_owned(),
        };
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('.') {
            let place = document.name.as_ref().map_or(file.to_string(), |item| item.place.clone());
            let problem = format_args!("invalid pipeline name {name:?}");
            return Err(fault(&place, problem, "use letters, digits, -, _ and ."));
        }
        // With `--resume`, parameter values come from the earlier run, whose location may in turn depend on
        // parameters. So the parameters are first resolved without the earlier run, to find the run directory.
        let none = BTreeMap::new();
        let mut parameters =
            PipelineParameters::resolve(&document.parameters, &none, &request.set).or_else(|error| {
                if request.resume && request.output.is_some() {
                    PipelineParameters::resolve(&[], &none, &[])
                } else {
                    Err(error)
                }
            })?;
        let run_text = run_text(request, &document, &parameters, &name)?;
        let run = Location::parse(&run_text, access)?;
        let earlier = RunManifest::read(&run)?;
        if let Some(other) = earlier.as_ref().filter(|earlier| earlier.pipeline != name) {
            return Err(Error::place(
                &run,
                format_args!("this is the run directory of another pipeline: {}", other.pipeline),
                "choose another --output",
            ));
        }
        if request.resume {
            let of_earlier = earlier.as_ref().map_or(&none, |earlier| &earlier.parameters);
            parameters = PipelineParameters::resolve(&document.parameters, of_earlier, &request.set)?;
            // This call marks the parameters in the name of the run directory as used.
            run_text_of(&document, &parameters)?;
        }
        let drafts = StepDraft::all(&document, &parameters)?;
        let paper =
            document.paper.as_ref().map(|item| Paper::read(&parameters.substitute(item, &Locals::new())?));
        parameters.check_all_used()?;
        let steps = StepGraph::of(drafts, commands)?.steps;
        let plan = PipelinePlan {
            name,
            description: document.description.clone(),
            run,
            run_text: run_text.trim_end_matches('/').to_owned(),
            parameters: parameters.texts().into_iter().map(|(key, text)| (key, redacted(&text))).collect(),
            forced: forced(&steps, &request.force)?,
            paper: paper.transpose()?,
            steps,
            earlier,
            access,
        };
        plan.check_outputs()?;
        plan.check_settings()?;
        Ok(plan)
    }

    /// Checks that all outputs are valid locations.
    fn check_outputs(&self) -> Result<()> {
        for step in &self.steps {
            for index in 0..step.outputs.len() {
                let checked = self.output(step, index).and_then(|output| refuse_hidden(&output));
                checked.map_err(|error| at_position(&step.outputs[index].place, &error))?;
            }
        }
        Ok(())
    }

    /// Checks the training parameters, metrics and conventions of all steps before any step runs.
    fn check_settings(&self) -> Result<()> {
        for step in &self.steps {
            let words = self.arguments(step);
            for pair in words.windows(2) {
                let checked = match pair[0].as_str() {
                    // A comparison may name a column of metrics tables; see `check_step`.
                    "--metric" if step.kind.name == "compare" => Ok(()),
                    "--metrics" | "--metric" => {
                        pair[1].split(',').try_for_each(|name| name.parse::<Metric>().map(drop))
                    }
                    "--convention" => pair[1].parse::<Convention>().map(drop),
                    _ => Ok(()),
                };
                let key = pair[0].trim_start_matches('-');
                checked.map_err(|error| {
                    at_position(&format!("{}: step {}", step.place_of(key), step.name), &error)
                })?;
            }
            check_step(step, &self.steps, &words)?;
        }
        for step in self.steps.iter().filter(|step| matches!(step.kind.name, "train" | "cv")) {
            let words = self.arguments(step);
            let values = |name: &str| {
                let pairs = words.windows(2).filter(move |pair| pair[0] == name);
                pairs.map(|pair| pair[1].clone()).collect::<Vec<String>>()
            };
            let config = step.inputs.iter().find(|input| input.key == "config");
            let file = match config {
                Some(input) if input.from.is_none() => Some(Location::parse(&input.text, self.access)?),
                Some(_) => continue,
                None => None,
            };
            if let Some(file) = &file
                && file.found()?.is_none()
            {
                continue; // reported later as a missing input
            }
            let preset = values("--preset").pop();
            // In a search, the settings may be valid only together with the searched values.
            if step.inputs.iter().all(|input| input.key != "search") {
                config::load(preset.as_deref(), file.as_ref(), &values("--set")).map_err(|error| {
                    let place = step.place_of(&error.to_string());
                    at_position(&format!("{place}: step {}", step.name), &error)
                })?;
            }
        }
        Ok(())
    }

    /// Checks that all external inputs exist. Otherwise, the error names the first missing input.
    pub fn check_inputs(&self, identities: &mut IdentityCache) -> Result<()> {
        for step in &self.steps {
            for input in step.inputs.iter().filter(|input| input.from.is_none()) {
                let found = self.identify_input(step, input, identities);
                if found.map_err(|error| at_position(&input.place, &error))?.is_none() {
                    let names = self.steps.iter().flat_map(|step| {
                        let outputs = step.outputs.iter().map(|output| output.text.as_str());
                        std::iter::once(step.name.as_str()).chain(outputs)
                    });
                    let near = suggest::nearest(&input.text, names.filter(|name| *name != step.name));
                    let remedy = "check the spelling; paths are relative to the current directory";
                    let shown = Location::parse(&input.text, self.access)?;
                    return Err(Error::place(
                        &input.place,
                        format_args!(
                            "step {}: {} = {shown}: no such file, and no step writes it",
                            step.name, input.key
                        ),
                        suggest::did_you_mean(&near, remedy),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the location of an output.
    pub fn output(&self, step: &PipelineStep, index: usize) -> Result<Location> {
        Location::parse(&self.output_text(step, index), self.access)
    }

    /// Returns the path or URL of an output for the command line.
    pub fn output_text(&self, step: &PipelineStep, index: usize) -> String {
        let text = &step.outputs[index].text;
        if text.contains("://") || text.starts_with('/') {
            text.clone()
        } else {
            format!("{}/{text}", self.run_text)
        }
    }

    /// Returns the path or URL of an input for the command line.
    pub(crate) fn input_text(&self, input: &StepInput) -> String {
        match &input.from {
            None => input.text.clone(),
            Some(from) => {
                format!("{}{}", self.output_text(&self.steps[from.step], from.output), from.below)
            }
        }
    }

    /// Returns the command line of a step.
    pub fn arguments(&self, step: &PipelineStep) -> Vec<String> {
        step.command_line(|word| match word {
            WordContent::Plain(text) => text.clone(),
            WordContent::Input { prefix, input } => {
                format!("{prefix}{}", self.input_text(&step.inputs[*input]))
            }
            WordContent::Output { prefix, output } => format!("{prefix}{}", self.output_text(step, *output)),
            WordContent::Run => self.run_text.clone(),
        })
    }

    /// Returns the index of the output to which the standard output of the step is written, if there is one.
    pub fn printed(step: &PipelineStep) -> Option<usize> {
        step.outputs.iter().position(|output| output.key == PRINT)
    }

    /// Returns the record of a step before it runs. It keeps what an earlier run recorded about the step.
    pub fn record(&self, step: &PipelineStep) -> RunStep {
        let earlier = self.earlier.as_ref().and_then(|earlier| earlier.step(&step.name));
        let blank = RunStep {
            name: step.name.clone(),
            kind: step.kind.name.to_owned(),
            status: StepStatus::Pending,
            fingerprint: String::new(),
            seconds: None,
            rows: None,
            bytes: None,
            peak_memory_bytes: None,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            arguments: Vec::new(),
            error: None,
            input_checksums: BTreeMap::new(),
            output_checksums: BTreeMap::new(),
        };
        let inputs = step.inputs.iter().map(|input| (input.label.clone(), redacted(&self.input_text(input))));
        let outputs = step.outputs.iter().map(|output| (output.key.clone(), redacted(&output.text)));
        let outputs: BTreeMap<String, String> = outputs.collect();
        // The record of a cross-validation does not apply if its output directory has changed.
        let is_known = |earlier: &&RunStep| {
            earlier.kind == step.kind.name && (earlier.kind != "cv" || earlier.outputs == outputs)
        };
        let known = earlier.filter(is_known).cloned().unwrap_or(blank);
        RunStep { status: StepStatus::Pending, error: None, inputs: inputs.collect(), outputs, ..known }
    }
}

/// Returns the run directory as a path or URL.
fn run_text(
    request: &RunRequest,
    document: &PipelineDocument,
    parameters: &PipelineParameters,
    name: &str,
) -> Result<String> {
    let own = run_text_of(document, parameters);
    match &request.output {
        Some(text) if text.is_empty() => Err(Error::usage("--output is empty", "pass a directory or a URL")),
        Some(text) => Ok(text.clone()), // so an error in the pipeline's own directory does not matter
        None => Ok(own?.unwrap_or_else(|| format!("runs/{name}"))),
    }
}

/// Returns the run directory that the pipeline names, if any.
fn run_text_of(document: &PipelineDocument, parameters: &PipelineParameters) -> Result<Option<String>> {
    let Some(item) = &document.output else { return Ok(None) };
    let filled = parameters.substitute(item, &Locals::new())?;
    match filled.joined().filter(|text| !text.is_empty()) {
        Some(text) => Ok(Some(text)),
        None => Err(item.fault("output is empty", "write a directory or a URL")),
    }
}

/// Returns the names of the steps that match `--force`.
fn forced(steps: &[PipelineStep], names: &[String]) -> Result<BTreeSet<String>> {
    let mut forced = BTreeSet::new();
    for name in names {
        let pattern = glob::Pattern::new(name).ok();
        let matches = |step: &&PipelineStep| {
            step.name == *name || pattern.as_ref().is_some_and(|pattern| pattern.matches(&step.name))
        };
        let found: Vec<String> = steps.iter().filter(matches).map(|step| step.name.clone()).collect();
        if found.is_empty() {
            let near = suggest::nearest(name, steps.iter().map(|step| step.name.as_str()));
            let all: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            return Err(Error::usage(
                format_args!("--force {name}: unknown step"),
                suggest::did_you_mean(&near, &format!("available steps: {}", all.join(", "))),
            ));
        }
        forced.extend(found);
    }
    Ok(forced)
}

/// Adds a position in the pipeline file to the beginning of an error.
pub(super) fn at_position(place: &str, error: &Error) -> Error {
    let remedy = error.remedy().unwrap_or_default().to_owned();
    match error {
        Error::Interrupted => Error::Interrupted,
        Error::Usage { .. } => fault(place, error, remedy),
        _ => Error::place(place, error, remedy),
    }
}

/// Reads a pipeline. A name that is not a file may be that of a pipeline that the program contains.
fn pipeline_text(file: &Location, written: &str) -> Result<String> {
    let Some(bytes) = file.read_all()? else {
        return match ShippedPipeline::named(written) {
            Some(shipped) => Ok(shipped.text.to_owned()),
            None if written.contains(['/', '.', ':']) => Err(match ShippedPipeline::at(written) {
                Some(shipped) => Error::place(
                    file,
                    "no such file",
                    format_args!(
                        "check the spelling of the path, or run the built-in pipeline: planetree run {}",
                        shipped.name()
                    ),
                ),
                None => file.absent(),
            }),
            None => ShippedPipeline::find(written).map(|shipped| shipped.text.to_owned()),
        };
    };
    String::from_utf8(bytes.into())
        .map_err(|_| Error::usage(format_args!("{file}: not valid UTF-8"), "choose a pipeline in TOML"))
}
