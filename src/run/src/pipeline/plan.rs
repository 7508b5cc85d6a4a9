//! What a run has to do: a pipeline, its parameters and a run directory become steps with their places and
//! command lines, checked as far as that can be done before anything runs.

use super::decide::Known;
use super::document::{Document, fault};
use super::draft::{Draft, PRINT};
use super::graph::{Graph, Step, StepInput, WordText};
use super::manifest::{RunManifest, RunStep, StepStatus};
use super::options::Commands;
use super::parameters::{Locals, Parameters};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, refuse_hidden};
use planetree_base::suggest;
use planetree_train::config;
use std::collections::{BTreeMap, BTreeSet};

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The pipeline's file or URL.
    pub pipeline: String,
    /// The run directory, if not the pipeline's own.
    pub output: Option<String>,
    /// `key=value`s.
    pub set: Vec<String>,
    /// Steps that run in any case.
    pub force: Vec<String>,
    /// Whether the parameters of an earlier run hold.
    pub resume: bool,
    /// Where credentials may come from.
    pub access: Access,
}

/// A pipeline that is ready to run.
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The run directory.
    pub run: Location,
    /// The same as text, for command lines.
    run_text: String,
    /// The parameters, for the record.
    pub parameters: BTreeMap<String, String>,
    /// The steps, each behind those it waits for.
    pub steps: Vec<Step>,
    /// The earlier run in the same directory.
    pub earlier: Option<RunManifest>,
    pub(super) forced: BTreeSet<String>,
    pub(super) access: Access,
}

impl Plan {
    /// Reads a pipeline and makes a plan of it.
    pub fn make(request: &RunRequest, commands: &Commands) -> Result<Self> {
        let access = request.access;
        let file = Location::parse(&request.pipeline, access)?;
        let bytes = file.read_all()?.ok_or_else(|| file.absent())?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            Error::usage(format_args!("{file}: this is no text"), "name a pipeline, a TOML file")
        })?;
        let document = Document::parse(&file.to_string(), text)?;
        let name = match &document.name {
            Some(item) => item.text().unwrap_or_default().to_owned(),
            None => file.name().trim_end_matches(".toml").to_owned(),
        };
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('.') {
            let place = document.name.as_ref().map_or(file.to_string(), |item| item.place.clone());
            let problem = format_args!("{name:?} is no name of a pipeline");
            return Err(fault(&place, problem, "use letters, digits, -, _ and ."));
        }
        // Where the run is may depend on parameters, and they on the run that is there.
        let none = BTreeMap::new();
        let mut parameters =
            Parameters::settle(&document.parameters, &none, &request.set).or_else(|error| {
                if request.resume && request.output.is_some() {
                    Parameters::settle(&[], &none, &[])
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
                format_args!("this is the run directory of another pipeline, {}", other.pipeline),
                "choose another --output",
            ));
        }
        if request.resume {
            let of_earlier = earlier.as_ref().map_or(&none, |earlier| &earlier.parameters);
            parameters = Parameters::settle(&document.parameters, of_earlier, &request.set)?;
            // Marks the run directory's parameters as used, too.
            run_text_of(&document, &parameters)?;
        }
        let drafts = Draft::all(&document, &parameters)?;
        parameters.refuse_unused()?;
        let steps = Graph::of(drafts, commands)?.steps;
        let plan = Plan {
            name,
            description: document.description.clone(),
            run,
            run_text: run_text.trim_end_matches('/').to_owned(),
            parameters: parameters.texts().into_iter().map(|(key, text)| (key, public(&text))).collect(),
            forced: forced(&steps, &request.force)?,
            steps,
            earlier,
            access,
        };
        plan.check_outputs()?;
        plan.check_settings()?;
        Ok(plan)
    }

    /// Every output must be a place.
    fn check_outputs(&self) -> Result<()> {
        for step in &self.steps {
            for place in 0..step.outputs.len() {
                let checked = self.output(step, place).and_then(|output| refuse_hidden(&output));
                checked.map_err(|error| at_place(&step.outputs[place].place, &error))?;
            }
        }
        Ok(())
    }

    /// Parameters of trainings are checked before anything runs.
    fn check_settings(&self) -> Result<()> {
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
                continue; // a missing input, which is told as one
            }
            let preset = values("--preset").pop();
            // What a search tries may be needed to make sense of the rest.
            if step.inputs.iter().all(|input| input.key != "search") {
                config::load(preset.as_deref(), file.as_ref(), &values("--set"))
                    .map_err(|error| at_place(&format!("{}: step {}", step.place, step.name), &error))?;
            }
        }
        Ok(())
    }

    /// An error for the first input from outside that is not there.
    pub fn check_inputs(&self, known: &mut Known) -> Result<()> {
        for step in &self.steps {
            for input in step.inputs.iter().filter(|input| input.from.is_none()) {
                let found = self.identify_input(step, input, known);
                if found.map_err(|error| at_place(&input.place, &error))?.is_none() {
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
                            "step {}: {} = {shown}: there is no such file, and no step writes it",
                            step.name, input.key
                        ),
                        suggest::did_you_mean(&near, remedy),
                    ));
                }
            }
        }
        Ok(())
    }

    /// An output's place.
    pub fn output(&self, step: &Step, place: usize) -> Result<Location> {
        Location::parse(&self.output_text(step, place), self.access)
    }

    /// An output's path or URL, as the command line has it.
    pub fn output_text(&self, step: &Step, place: usize) -> String {
        let text = &step.outputs[place].text;
        if text.contains("://") || text.starts_with('/') {
            text.clone()
        } else {
            format!("{}/{text}", self.run_text)
        }
    }

    /// An input's path or URL, as the command line has it.
    pub fn input_text(&self, input: &StepInput) -> String {
        match &input.from {
            None => input.text.clone(),
            Some(from) => {
                format!("{}{}", self.output_text(&self.steps[from.step], from.output), from.below)
            }
        }
    }

    /// The step's whole command line.
    pub fn arguments(&self, step: &Step) -> Vec<String> {
        step.command_line(|word| match word {
            WordText::Plain(text) => text.clone(),
            WordText::Input { before, input } => format!("{before}{}", self.input_text(&step.inputs[*input])),
            WordText::Output(place) => self.output_text(step, *place),
            WordText::Run => self.run_text.clone(),
        })
    }

    /// Which of a step's outputs is what it prints.
    pub fn printed(step: &Step) -> Option<usize> {
        step.outputs.iter().position(|output| output.key == PRINT)
    }

    /// A step's record before it runs, with what an earlier run knows of it.
    pub fn record(&self, step: &Step) -> RunStep {
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
        let inputs = step.inputs.iter().map(|input| (input.label.clone(), public(&self.input_text(input))));
        let outputs = step.outputs.iter().map(|output| (output.key.clone(), public(&output.text)));
        let outputs: BTreeMap<String, String> = outputs.collect();
        // What a cross-validation wrote elsewhere says nothing of the one that is here.
        let is_known = |earlier: &&RunStep| {
            earlier.kind == step.kind.name && (earlier.kind != "cv" || earlier.outputs == outputs)
        };
        let known = earlier.filter(is_known).cloned().unwrap_or(blank);
        RunStep { status: StepStatus::Pending, error: None, inputs: inputs.collect(), outputs, ..known }
    }
}

/// Where the run is to be.
fn run_text(
    request: &RunRequest,
    document: &Document,
    parameters: &Parameters,
    name: &str,
) -> Result<String> {
    let own = run_text_of(document, parameters);
    match &request.output {
        Some(text) if text.is_empty() => {
            Err(Error::usage("--output names no place", "name a directory or a URL"))
        }
        Some(text) => Ok(text.clone()), // its own may lack parameters then
        None => Ok(own?.unwrap_or_else(|| format!("runs/{name}"))),
    }
}

/// The run directory that the pipeline names, if it names one.
fn run_text_of(document: &Document, parameters: &Parameters) -> Result<Option<String>> {
    let Some(item) = &document.output else { return Ok(None) };
    let filled = parameters.filled(item, &Locals::new())?;
    match filled.joined().filter(|text| !text.is_empty()) {
        Some(text) => Ok(Some(text)),
        None => Err(item.fault("output names no place", "name a directory or a URL")),
    }
}

/// The steps that --force names.
fn forced(steps: &[Step], names: &[String]) -> Result<BTreeSet<String>> {
    let mut forced = BTreeSet::new();
    for name in names {
        let pattern = glob::Pattern::new(name).ok();
        let fits = |step: &&Step| {
            step.name == *name || pattern.as_ref().is_some_and(|pattern| pattern.matches(&step.name))
        };
        let found: Vec<String> = steps.iter().filter(fits).map(|step| step.name.clone()).collect();
        if found.is_empty() {
            let near = suggest::nearest(name, steps.iter().map(|step| step.name.as_str()));
            let all: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            return Err(Error::usage(
                format_args!("--force {name}: the pipeline has no such step"),
                suggest::did_you_mean(&near, &format!("its steps are {}", all.join(", "))),
            ));
        }
        forced.extend(found);
    }
    Ok(forced)
}

/// An error of something else, with its place in the pipeline before it.
fn at_place(place: &str, error: &Error) -> Error {
    let remedy = error.remedy().unwrap_or_default().to_owned();
    match error {
        Error::Interrupted => Error::Interrupted,
        Error::Usage { .. } => fault(place, error, remedy),
        _ => Error::place(place, error, remedy),
    }
}

/// A text without what may be secret in its URLs, which may be several with commas between them.
pub fn public(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    text.split(',').map(public_url).collect::<Vec<_>>().join(",")
}

fn public_url(text: &str) -> String {
    let Some(start) = text.find("://") else { return text.to_owned() };
    let scheme = text[..start].rfind(|letter: char| !letter.is_ascii_alphanumeric()).map_or(0, |end| end + 1);
    let (before, url) = text.split_at(scheme);
    match url::Url::parse(url) {
        Ok(parsed)
            if parsed.has_host()
                && (parsed.password().is_some()
                    || !parsed.username().is_empty()
                    || parsed.query().is_some()) =>
        {
            let mut plain = parsed;
            let _ = plain.set_username(""); // both fail only for URLs that cannot have them
            let _ = plain.set_password(None);
            plain.set_query(None);
            plain.set_fragment(None);
            format!("{before}{plain}")
        }
        _ => text.to_owned(),
    }
}
