//! The graph of a pipeline: what every step reads, from which step or from outside, and an order in
//! which they can run.

use super::document::{Entry, Item, Value, fault};
use super::draft::{Draft, StepOutput};
use super::kinds::{InputKey, Kind, MEANS};
use super::names::{Names, Reference};
use super::options::{Commands, Form, plain_words};
use planetree_base::error::Result;
use planetree_base::suggest;
use std::collections::BTreeSet;

/// A step with its command line.
#[derive(Debug)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub place: String,
    /// What it runs.
    pub kind: &'static Kind,
    /// What it reads.
    pub inputs: Vec<StepInput>,
    /// What it writes, the main output first.
    pub outputs: Vec<StepOutput>,
    /// Its command line behind the command.
    pub words: Vec<Word>,
    /// Keys that the pipeline sets, so that a run leaves them alone.
    pub keys: BTreeSet<String>,
    /// The steps it waits for.
    pub needs: BTreeSet<usize>,
}

/// One input of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInput {
    /// `data`, `data.2`, `predictions.mart`.
    pub label: String,
    /// The key that names it.
    pub key: &'static str,
    /// As written, without its name.
    pub text: String,
    /// Where it is written.
    pub place: String,
    /// The step's output that it is; `None` if it comes from outside.
    pub from: Option<Reference>,
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The word.
    pub text: WordText,
    /// Whether it matters for what comes out.
    pub counts: bool,
}

/// What a word is.
#[derive(Debug, Clone, PartialEq)]
pub enum WordText {
    /// Itself.
    Plain(String),
    /// An input, behind its name.
    Input {
        /// `mart=`, or nothing.
        before: String,
        /// Which one.
        input: usize,
    },
    /// An output.
    Output(usize),
    /// The run directory.
    Run,
}

/// Steps in an order in which they can run.
#[derive(Debug)]
pub struct Graph {
    /// Each behind those it waits for.
    pub steps: Vec<Step>,
}

impl Graph {
    /// Wires the steps together.
    pub fn of(drafts: Vec<Draft>, commands: &Commands) -> Result<Self> {
        let names = Names::of(&drafts)?;
        let mut steps =
            drafts.iter().map(|draft| wire(draft, &names, commands)).collect::<Result<Vec<_>>>()?;
        let reads_run: Vec<bool> =
            steps.iter().map(|step| step.words.iter().any(|word| word.text == WordText::Run)).collect();
        for place in 0..steps.len() {
            if reads_run[place] {
                add_whole_run(&mut steps, place, &reads_run);
            }
        }
        refuse_cycle(&steps)?;
        Ok(Graph { steps: in_order(steps) })
    }
}

/// A step that reads the run itself waits for all that do not wait for it, and reads what they write.
fn add_whole_run(steps: &mut [Step], place: usize, reads_run: &[bool]) {
    for other in 0..steps.len() {
        if reads_run[other] || reaches(steps, other, place) {
            continue;
        }
        for output in 0..steps[other].outputs.len() {
            let written = &steps[other].outputs[output];
            let input = StepInput {
                label: format!("run.{}.{}", steps[other].name, written.key),
                key: "runs",
                text: written.text.clone(),
                place: written.place.clone(),
                from: Some(Reference { step: other, output, below: String::new() }),
            };
            steps[place].inputs.push(input);
        }
        steps[place].needs.insert(other);
    }
}

/// Whether a step waits for another, directly or not.
fn reaches(steps: &[Step], from: usize, to: usize) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(step) = open.pop() {
        if step == to {
            return true;
        }
        open.extend(steps[step].needs.iter().filter(|need| seen.insert(**need)));
    }
    false
}

/// An error that names the steps of a cycle, if there is one.
fn refuse_cycle(steps: &[Step]) -> Result<()> {
    for start in 0..steps.len() {
        // Follows needs that lead back to the start.
        let back = |step: usize| steps[step].needs.iter().copied().find(|need| reaches(steps, *need, start));
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
            format_args!("steps wait for each other: {}", path.join(" needs ")),
            "let one of them read something else",
        ));
    }
    Ok(())
}

/// The steps, each behind those it waits for, else in the order of the text.
fn in_order(steps: Vec<Step>) -> Vec<Step> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < steps.len() {
        let is_ready = |place: &usize| {
            !order.contains(place) && steps[*place].needs.iter().all(|need| order.contains(need))
        };
        let Some(next) = (0..steps.len()).find(is_ready) else { break };
        order.push(next);
    }
    let place_of = |old: usize| order.iter().position(|place| *place == old).unwrap_or(old);
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let taken = order.iter().filter_map(|place| steps[*place].take());
    taken
        .map(|mut step| {
            step.needs = step.needs.iter().map(|need| place_of(*need)).collect();
            for input in &mut step.inputs {
                if let Some(from) = &mut input.from {
                    from.step = place_of(from.step);
                }
            }
            step
        })
        .collect()
}

/// A step with its command line and what it waits for.
fn wire(draft: &Draft, names: &Names<'_>, commands: &Commands) -> Result<Step> {
    commands.check_kind(draft)?;
    let mut step = Step {
        name: draft.name.clone(),
        place: draft.place.clone(),
        kind: draft.kind,
        inputs: Vec::new(),
        outputs: draft.outputs.clone(),
        words: Vec::new(),
        keys: draft.entries.iter().map(|entry| entry.key.clone()).collect(),
        needs: BTreeSet::new(),
    };
    let (mut positional, mut rest) = (Vec::new(), Vec::new());
    for entry in &draft.entries {
        let option = commands.option(draft, entry)?;
        let counts = !MEANS.contains(&entry.key.as_str());
        let words = if option.name.is_empty() { &mut positional } else { &mut rest };
        let mut push = |text: WordText| {
            if !option.name.is_empty() {
                words.push(Word { text: WordText::Plain(option.name.clone()), counts });
            }
            words.push(Word { text, counts });
        };
        if let Some(key) = draft.kind.input(&entry.key) {
            for (before, input) in inputs_of(entry, key, draft, names)? {
                if option.form != Form::Many && step.inputs.iter().any(|other| other.key == input.key) {
                    let problem = format_args!("{} takes one value", entry.key);
                    return Err(entry.item.fault(problem, "name one"));
                }
                if let Some(from) = &input.from {
                    step.needs.insert(from.step);
                }
                step.inputs.push(input);
                push(WordText::Input { before, input: step.inputs.len() - 1 });
            }
        } else if !draft.kind.is_output(&entry.key) {
            let texts = plain_words(&option, entry)?;
            words.extend(texts.into_iter().map(|text| Word { text: WordText::Plain(text), counts }));
        }
    }
    if draft.kind.name == "report" && positional.is_empty() {
        positional.push(Word { text: WordText::Run, counts: true });
    }
    if draft.kind.name == "sql" && !["command", "file"].iter().any(|key| step.keys.contains(*key)) {
        let problem = format_args!("step {} has no query", draft.name);
        return Err(fault(&draft.place, problem, "write command = \"SELECT ...\", or file = \"query.sql\""));
    }
    step.words = positional;
    step.words.append(&mut rest);
    let options = draft.kind.outputs.iter().filter_map(|key| {
        let place = step.outputs.iter().position(|output| output.key == key.key)?;
        Some((format!("--{}", key.key.replace('_', "-")), place))
    });
    for (option, place) in options.collect::<Vec<_>>() {
        step.words.push(Word { text: WordText::Plain(option), counts: true });
        step.words.push(Word { text: WordText::Output(place), counts: true });
    }
    for item in &draft.after {
        let name = item.text().unwrap_or_default();
        let mut found: Vec<usize> = names.matching(name).into_iter().map(|(_, found)| found.step).collect();
        found.extend(names.find(name).filter(|found| found.below.is_empty()).map(|found| found.step));
        if found.is_empty() {
            let near = suggest::nearest(name, names.all());
            let remedy = suggest::did_you_mean(&near, "name a step of this pipeline");
            return Err(item.fault(format_args!("there is no step {name:?}"), remedy));
        }
        step.needs.extend(found);
    }
    let shown: Vec<String> = step.command_line(|word| match word {
        WordText::Plain(text) => text.clone(),
        WordText::Input { before, input } => format!("{before}{}", step.inputs[*input].text),
        WordText::Output(place) => step.outputs[*place].text.clone(),
        WordText::Run => "run".to_owned(),
    });
    commands.check(draft, &shown)?;
    Ok(step)
}

impl Step {
    /// The command line, the command first.
    pub fn command_line(&self, word: impl Fn(&WordText) -> String) -> Vec<String> {
        let words = self.words.iter().map(|each| word(&each.text));
        std::iter::once(self.kind.name.to_owned()).chain(words).collect()
    }
}

/// The inputs that an entry names, each with what stands before it on the command line.
fn inputs_of(
    entry: &Entry,
    key: &'static InputKey,
    draft: &Draft,
    names: &Names<'_>,
) -> Result<Vec<(String, StepInput)>> {
    let mut written: Vec<(Option<String>, &Item)> = Vec::new();
    match &entry.item.value {
        Value::Table(entries) if key.named => {
            written.extend(entries.iter().map(|entry| (Some(entry.key.clone()), &entry.item)));
        }
        Value::Table(_) => {
            let problem = format_args!("{} takes no names", entry.key);
            return Err(entry.item.fault(problem, "write a path, a step's name, or a list of them"));
        }
        Value::List(items) => written.extend(items.iter().map(|item| (None, item))),
        _ => written.push((None, &entry.item)),
    }
    let mut found: Vec<(Option<String>, String, String, Option<Reference>)> = Vec::new();
    for (name, item) in written {
        let Some(text) = item.text().filter(|text| !text.is_empty()) else {
            let problem = format_args!("{} is no path", entry.key);
            return Err(item.fault(problem, "name a file, a URL or a step"));
        };
        let (name, text) = match text.split_once('=') {
            // As on the command line: a name has no separators; s3://bucket/a=b is all path.
            Some((name, path)) if key.named && !name.is_empty() && !name.contains(['/', ':', '.']) => {
                (Some(name.to_owned()), path)
            }
            _ => (name, text),
        };
        if text == "-" {
            let remedy = "write it to a file first";
            return Err(item.fault("a step of a pipeline has no standard input", remedy));
        }
        let several = names.matching(text);
        if several.is_empty() {
            found.push((name, text.to_owned(), item.place.clone(), names.find(text)));
        }
        for (inner, reference) in several {
            // A name before a path has no points: one with them would be taken for a path.
            let name = key.named.then(|| inner.replace('.', "_"));
            found.push((name, text.to_owned(), item.place.clone(), Some(reference)));
        }
    }
    let count = found.len();
    let mut inputs = Vec::new();
    for (place_in_list, (name, text, place, from)) in found.into_iter().enumerate() {
        let label = match &name {
            Some(name) => format!("{}.{name}", key.key),
            None if count > 1 => format!("{}.{}", key.key, place_in_list + 1),
            None => key.key.to_owned(),
        };
        let before = name.map(|name| format!("{name}=")).unwrap_or_default();
        if from.as_ref().is_some_and(|from| std::ptr::eq(names.draft(from.step), draft)) {
            let problem = format_args!("step {} reads what it writes, {text}", draft.name);
            return Err(fault(&place, problem, "let it read something else; ./NAME is a path, never a step"));
        }
        inputs.push((before, StepInput { label, key: key.key, text, place, from }));
    }
    Ok(inputs)
}
