//! Builds the dependency graph of a pipeline: resolves the inputs of every step, and sorts the steps by their
//! dependencies.

use super::document::{LocatedEntry, LocatedValue, PipelineValue, fault};
use super::draft::{StepDraft, StepOutput};
use super::kinds::{InputKey, RESOURCE_KEYS, StepKind};
use super::names::{OutputNames, OutputReference};
use super::options::{Commands, OptionArity, plain_words};
use planetree_base::error::Result;
use planetree_base::suggest;
use std::collections::BTreeSet;

/// A step with its inputs, outputs and command line.
#[derive(Debug)]
pub struct PipelineStep {
    /// Name of the step.
    pub name: String,
    /// Position in the pipeline file of the section that defines the step.
    pub place: String,
    /// Command to run.
    pub kind: &'static StepKind,
    /// Inputs, in the order of the command line.
    pub inputs: Vec<StepInput>,
    /// Outputs, the main one first.
    pub outputs: Vec<StepOutput>,
    /// Command-line arguments after the command.
    pub words: Vec<CommandWord>,
    /// Keys that the pipeline file sets for the step. The run does not override them.
    pub keys: BTreeSet<String>,
    /// Positions of the keys whose values are checked before the run, those of `set` first.
    pub places: Vec<(String, String)>,
    /// Indices of the steps that must finish first.
    pub needs: BTreeSet<usize>,
}

/// One input of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInput {
    /// Name of the input in the record of the step, such as `data`, `data.2` or `predictions.mart`.
    pub label: String,
    /// Option that names the input.
    pub key: &'static str,
    /// Path, URL or reference to an output of another step, as written in the pipeline file, without `NAME=`.
    pub text: String,
    /// Position in the file.
    pub place: String,
    /// Output of another step that this input refers to; `None` for an external input.
    pub from: Option<OutputReference>,
}

/// A command-line argument.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandWord {
    /// The content of the argument.
    pub text: WordContent,
    /// Whether the argument affects the outputs.
    pub affects_output: bool,
}

/// The content of a command-line argument.
#[derive(Debug, Clone, PartialEq)]
pub enum WordContent {
    /// A literal string.
    Plain(String),
    /// The path or URL of an input, preceded by `NAME=` if the input has a name.
    Input {
        /// `NAME=`; empty if there is no name.
        prefix: String,
        /// Index of the input in the step.
        input: usize,
    },
    /// The path or URL of an output, preceded by `NAME=` if the output has a name.
    Output {
        /// `NAME=`; empty if there is no name.
        prefix: String,
        /// Index of the output in the step.
        output: usize,
    },
    /// The run directory.
    Run,
}

/// The steps of a pipeline, sorted by dependencies.
#[derive(Debug)]
pub(super) struct StepGraph {
    /// The steps. Every step comes after the steps that it depends on.
    pub steps: Vec<PipelineStep>,
}

impl StepGraph {
    /// Resolves all inputs and sorts the steps.
    pub(super) fn of(drafts: Vec<StepDraft>, commands: &Commands) -> Result<Self> {
        let names = OutputNames::of(&drafts)?;
        let mut steps =
            drafts.iter().map(|draft| resolve(draft, &names, commands)).collect::<Result<Vec<_>>>()?;
        let reads_run: Vec<bool> =
            steps.iter().map(|step| step.words.iter().any(|word| word.text == WordContent::Run)).collect();
        for index in 0..steps.len() {
            if reads_run[index] {
                add_run_inputs(&mut steps, index, &reads_run);
            }
        }
        check_acyclic(&steps)?;
        Ok(StepGraph { steps: sorted(steps) })
    }
}

/// Adds the inputs of a step that reads the whole run, such as a report. Such a step depends on all other steps that
/// neither depend on it nor read the whole run themselves, and reads their outputs.
fn add_run_inputs(steps: &mut [PipelineStep], index: usize, reads_run: &[bool]) {
    for other in 0..steps.len() {
        if reads_run[other] || depends_on(steps, other, index) {
            continue;
        }
        for output in 0..steps[other].outputs.len() {
            let written = &steps[other].outputs[output];
            let input = StepInput {
                label: format!("run.{}.{}", steps[other].name, written.key),
                key: "runs",
                text: written.text.clone(),
                place: written.place.clone(),
                from: Some(OutputReference { step: other, output, below: String::new() }),
            };
            steps[index].inputs.push(input);
        }
        steps[index].needs.insert(other);
    }
}

/// Whether the step `from` is the step `to` or depends on it, directly or indirectly.
fn depends_on(steps: &[PipelineStep], from: usize, to: usize) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(step) = open.pop() {
        if step == to {
            return true;
        }
        open.extend(steps[step].needs.iter().filter(|need| seen.insert(**need)));
    }
    false
}

/// Checks that no steps depend on each other in a cycle. Otherwise, the error names the steps of the cycle.
fn check_acyclic(steps: &[PipelineStep]) -> Result<()> {
    for start in 0..steps.len() {
        // Find a dependency of the step that leads back to the start of the cycle.
        let back =
            |step: usize| steps[step].needs.iter().copied().find(|need| depends_on(steps, *need, start));
        let Some(mut step) = back(start) else { continue };
        let mut path = vec![steps[start].name.as_str()];
        while step != start && path.len() <= steps.len() {
            path.push(&steps[step].name);
            let Some(next) = back(step) else { break };
            step = next;
        }
        path.push(&steps[start].name);
        return Err(fault(
            &steps[start].place,
            format_args!("steps depend on each other: {}", path.join(" needs ")),
            "break the cycle: change an input of one of these steps",
        ));
    }
    Ok(())
}

/// Sorts the steps such that every step comes after its dependencies. Otherwise, steps stay in the order of the file.
fn sorted(steps: Vec<PipelineStep>) -> Vec<PipelineStep> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < steps.len() {
        let is_ready = |index: &usize| {
            !order.contains(index) && steps[*index].needs.iter().all(|need| order.contains(need))
        };
        let Some(next) = (0..steps.len()).find(is_ready) else { break };
        order.push(next);
    }
    let new_index = |old: usize| order.iter().position(|index| *index == old).unwrap_or(old);
    let mut steps: Vec<Option<PipelineStep>> = steps.into_iter().map(Some).collect();
    let taken = order.iter().filter_map(|index| steps[*index].take());
    taken
        .map(|mut step| {
            step.needs = step.needs.iter().map(|need| new_index(*need)).collect();
            for input in &mut step.inputs {
                if let Some(from) = &mut input.from {
                    from.step = new_index(from.step);
                }
            }
            step
        })
        .collect()
}

/// Returns the positions of the keys of a step whose values are checked before the run, those of `set` first.
fn places_of(entries: &[LocatedEntry]) -> Vec<(String, String)> {
    let place = |entry: &LocatedEntry| (entry.key.clone(), entry.place.clone());
    let settings =
        entries.iter().filter(|entry| entry.key == "set").flat_map(|entry| match &entry.item.value {
            PipelineValue::Table(settings) => settings.as_slice(),
            _ => &[],
        });
    const OTHERS: [&str; 6] = ["preset", "metrics", "metric", "convention", "fail_below", "folds"];
    let others = entries.iter().filter(|entry| OTHERS.contains(&entry.key.as_str()));
    settings.chain(others).map(place).collect()
}

/// Resolves the inputs, the command line and the dependencies of a step.
fn resolve(draft: &StepDraft, names: &OutputNames<'_>, commands: &Commands) -> Result<PipelineStep> {
    commands.check_kind(draft)?;
    let mut step = PipelineStep {
        name: draft.name.clone(),
        place: draft.place.clone(),
        kind: draft.kind,
        inputs: Vec::new(),
        outputs: draft.outputs.clone(),
        words: Vec::new(),
        keys: draft.entries.iter().map(|entry| entry.key.clone()).collect(),
        places: places_of(&draft.entries),
        needs: BTreeSet::new(),
    };
    let (mut positional, mut rest) = (Vec::new(), Vec::new());
    // A comparison depends on the order of its files and runs, so they stay in the order of the pipeline file.
    let mixes_runs = draft.kind.name == "compare" && step.keys.contains("files") && step.keys.contains("run");
    for entry in &draft.entries {
        let option = commands.option(draft, entry)?;
        let affects_output = !RESOURCE_KEYS.contains(&entry.key.as_str());
        let comes_first = option.name.is_empty() || (mixes_runs && entry.key == "run");
        let words = if comes_first { &mut positional } else { &mut rest };
        let mut push = |text: WordContent| {
            if !option.name.is_empty() {
                words.push(CommandWord { text: WordContent::Plain(option.name.clone()), affects_output });
            }
            words.push(CommandWord { text, affects_output });
        };
        if let Some(key) = draft.kind.input(&entry.key) {
            for (prefix, input) in inputs_of(entry, key, draft, names)? {
                if option.arity != OptionArity::Many && step.inputs.iter().any(|other| other.key == input.key)
                {
                    let problem = format_args!("{} accepts only one value", entry.key);
                    return Err(entry.item.fault(problem, "write one value"));
                }
                if let Some(from) = &input.from {
                    step.needs.insert(from.step);
                }
                step.inputs.push(input);
                push(WordContent::Input { prefix, input: step.inputs.len() - 1 });
            }
        } else if !draft.kind.is_output(&entry.key) {
            let texts = plain_words(&option, entry)?;
            words.extend(
                texts.into_iter().map(|text| CommandWord { text: WordContent::Plain(text), affects_output }),
            );
        }
    }
    if draft.kind.name == "report" && positional.is_empty() {
        positional.push(CommandWord { text: WordContent::Run, affects_output: true });
    }
    if draft.kind.name == "sql" && !["command", "file"].iter().any(|key| step.keys.contains(*key)) {
        let problem = format_args!("step {} has no query", draft.name);
        return Err(fault(&draft.place, problem, "write command = \"SELECT ...\", or file = \"query.sql\""));
    }
    step.words = positional;
    step.words.append(&mut rest);
    for key in draft.kind.outputs {
        for (output, written) in step.outputs.iter().enumerate() {
            let prefix = match written.key.strip_prefix(key.key) {
                Some("") => String::new(),
                Some(name) if key.named => format!("{}=", name.trim_start_matches('.')),
                _ => continue,
            };
            let option = format!("--{}", key.key.replace('_', "-"));
            step.words.push(CommandWord { text: WordContent::Plain(option), affects_output: true });
            step.words
                .push(CommandWord { text: WordContent::Output { prefix, output }, affects_output: true });
        }
    }
    for item in &draft.after {
        let name = item.text().unwrap_or_default();
        let mut found: Vec<usize> = names.matching(name).into_iter().map(|(_, found)| found.step).collect();
        found.extend(names.find(name).filter(|found| found.below.is_empty()).map(|found| found.step));
        if found.is_empty() {
            let near = suggest::nearest(name, names.all());
            let remedy = suggest::did_you_mean(&near, "use the name of a step in this pipeline");
            return Err(item.fault(format_args!("no step {name:?}"), remedy));
        }
        step.needs.extend(found);
    }
    let words: Vec<String> = step.command_line(|word| match word {
        WordContent::Plain(text) => text.clone(),
        WordContent::Input { prefix, input } => format!("{prefix}{}", step.inputs[*input].text),
        WordContent::Output { prefix, output } => format!("{prefix}{}", step.outputs[*output].text),
        WordContent::Run => "run".to_owned(),
    });
    commands.check(draft, &words)?;
    Ok(step)
}

impl PipelineStep {
    /// Returns the position of the first key that a message names; that of the step if it names none.
    pub(super) fn place_of(&self, message: &str) -> &str {
        let words = || message.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let named = self.places.iter().find(|(key, _)| words().any(|word| word == key));
        named.map_or(&self.place, |(_, place)| place)
    }

    /// Returns the command line, which begins with the command. `word` converts each argument to a string.
    pub fn command_line(&self, word: impl Fn(&WordContent) -> String) -> Vec<String> {
        let words = self.words.iter().map(|each| word(&each.text));
        std::iter::once(self.kind.name.to_owned()).chain(words).collect()
    }
}

/// Returns the inputs that an entry names, each with its command-line prefix, which is `NAME=` or empty.
fn inputs_of(
    entry: &LocatedEntry,
    key: &'static InputKey,
    draft: &StepDraft,
    names: &OutputNames<'_>,
) -> Result<Vec<(String, StepInput)>> {
    let mut written: Vec<(Option<String>, &LocatedValue)> = Vec::new();
    match &entry.item.value {
        PipelineValue::Table(entries) if key.named => {
            written.extend(entries.iter().map(|entry| (Some(entry.key.clone()), &entry.item)));
        }
        PipelineValue::Table(_) => {
            let problem = format_args!("{} does not accept names", entry.key);
            return Err(entry.item.fault(problem, "write a path, the name of a step, or a list of them"));
        }
        PipelineValue::List(items) => written.extend(items.iter().map(|item| (None, item))),
        _ => written.push((None, &entry.item)),
    }
    let mut found: Vec<(Option<String>, String, String, Option<OutputReference>)> = Vec::new();
    for (name, item) in written {
        let Some(text) = item.text().filter(|text| !text.is_empty()) else {
            let problem = format_args!("{} must be a path", entry.key);
            return Err(item.fault(problem, "write a file name, a URL or the name of a step"));
        };
        let (name, text) = match text.split_once('=') {
            // As on the command line, a name contains no slash, colon or dot, so `s3://bucket/a=b` is a path.
            Some((name, path)) if key.named && !name.is_empty() && !name.contains(['/', ':', '.']) => {
                (Some(name.to_owned()), path)
            }
            _ => (name, text),
        };
        if text == "-" {
            let remedy = "read from a file";
            return Err(item.fault("steps have no standard input", remedy));
        }
        let several = names.matching(text);
        if several.is_empty() {
            found.push((name, text.to_owned(), item.place.clone(), names.find(text)));
        }
        for (inner, reference) in several {
            // On the command line, a name with a dot would be read as a path.
            let name = key.named.then(|| inner.replace('.', "_"));
            found.push((name, text.to_owned(), item.place.clone(), Some(reference)));
        }
    }
    let count = found.len();
    let mut inputs = Vec::new();
    for (index, (name, text, place, from)) in found.into_iter().enumerate() {
        let label = match &name {
            Some(name) => format!("{}.{name}", key.key),
            None if count > 1 => format!("{}.{}", key.key, index + 1),
            None => key.key.to_owned(),
        };
        let prefix = name.map(|name| format!("{name}=")).unwrap_or_default();
        if from.as_ref().is_some_and(|from| std::ptr::eq(names.draft(from.step), draft)) {
            let problem = format_args!("step {} reads its own output {text}", draft.name);
            return Err(fault(
                &place,
                problem,
                "change the input, or write ./NAME to read a file with this name",
            ));
        }
        inputs.push((prefix, StepInput { label, key: key.key, text, place, from }));
    }
    Ok(inputs)
}
