//! Reports errors of the command line, with a tip if another form of an argument was probably meant.

use super::parameter_arguments::takes_parameters;
use super::{logging, print_error};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command};
use planetree_base::error::Error;
use planetree_train::config;
use std::ffi::OsString;
use std::path::Path;

/// Prints an error of the parser, or the help that it stands for. Returns the exit code.
pub(crate) fn report(error: clap::Error, arguments: &[OsString], program: &Command) -> u8 {
    if !error.use_stderr() {
        let _ = error.print(); // nowhere left to report a failure
        return 0;
    }
    let error = with_tip(error, arguments, program);
    if asks_for_json(arguments) {
        logging::start(tracing::Level::WARN, logging::LogFormat::Json, false);
        print_error(&as_error(&error));
    } else {
        let _ = error.print();
    }
    2
}

/// Turns an error of the parser into a user error. Its first paragraph is the problem, and a tip is the remedy.
pub(crate) fn as_error(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let problem = paragraphs.next().unwrap_or_default();
    let remedy = paragraphs.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    let problem = problem.strip_prefix("error: ").unwrap_or(&problem).to_owned();
    Error::usage(problem, remedy.unwrap_or_else(|| "`planetree COMMAND --help` lists the options".to_owned()))
}

/// Checks whether messages are to be JSON, if the rest of the command line cannot be parsed.
fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--log-format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json")
}

/// Replaces the tip of an error about an unknown argument, if a better one is known.
pub(crate) fn with_tip(mut error: clap::Error, arguments: &[OsString], program: &Command) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidArg) else { return error };
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let Some(command) = words.iter().find_map(|word| program.find_subcommand(word)) else { return error };
    let tip = match written.strip_prefix("--") {
        Some(name) => {
            let name = name.split('=').next().unwrap_or_default().to_owned();
            tip_for_option(&name, &words, command)
        }
        None if written.starts_with('-') => None,
        None => tip_for_setting(written, &words, command).or_else(|| tip_for_file(written, &words, command)),
    };
    let Some(tip) = tip else {
        // The parser suggests to pass the option as a value, which is never meant.
        error.remove(ContextKind::Suggested);
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

/// Options for what some commands take without an option.
const INPUTS: [&str; 9] =
    ["model", "data", "dataset", "file", "input", "path", "run", "pipeline", "predictions"];

/// Returns whether a command may take without an option what `name` stands for. `sql` takes only a run; its query says
/// what else it reads.
fn is_input(name: &str, command: &Command) -> bool {
    let known = if command.get_name() == "sql" { &["run"][..] } else { &INPUTS };
    known.contains(&name) && command.get_positionals().next().is_some()
}

/// Returns whether an option is on the command line.
fn is_given(name: &str, words: &[&str]) -> bool {
    let is_it = |word: &&str| word.strip_prefix("--").and_then(|word| word.split('=').next()) == Some(name);
    words.iter().any(is_it)
}

/// Returns a word as a shell takes it: in quotes if it has white space.
fn quoted(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("{word:?}") } else { word.to_owned() }
}

/// Options of other commands: the command without it, the option and what to do.
const ELSEWHERE: [(&str, &str, &str); 5] = [
    (
        "evaluate",
        "model",
        "evaluate reads predictions: score the data first with planetree predict --model FILE --data DATASET --output \
         PREDICTIONS, then planetree evaluate PREDICTIONS",
    ),
    (
        "compare",
        "model",
        "compare reads predictions or metrics: score the data first with planetree predict --model FILE --data DATASET \
         --output PREDICTIONS",
    ),
    ("run", "json", "run prints no JSON; the record of a run is run.json in its directory"),
    (
        "compare",
        "scores",
        "text scores become metrics, which compare reads, by planetree evaluate --scores FILE --data DATASET --output METRICS",
    ),
    (
        "compare",
        "labels",
        "compare has judgments with --qrels FILE; with the labels of a dataset, compare the metrics that \
         planetree evaluate FILE --labels DATASET --output METRICS writes",
    ),
];

/// A value in place of its option, such as `--latex` for `--format latex`, or a parameter of a pipeline.
fn tip_for_option(name: &str, words: &[&str], command: &Command) -> Option<String> {
    let is_elsewhere = |entry: &&(&str, &str, &str)| (entry.0, entry.1) == (command.get_name(), name);
    if let Some((.., tip)) = ELSEWHERE.iter().find(is_elsewhere) {
        return Some((*tip).to_owned());
    }
    // Options without a value have the possible values true and false, too.
    for option in command.get_arguments().filter(|option| option.get_action().takes_values()) {
        let Some(long) = option.get_long() else { continue };
        if option.get_possible_values().iter().any(|value| value.matches(name, true)) {
            return Some(format!("a similar argument exists: '--{long} {name}'"));
        }
    }
    let is_preset = config::presets().iter().any(|preset| preset.name == name);
    if is_preset && takes_parameters(command.get_name()) {
        return Some(format!("a similar argument exists: '--preset {name}'"));
    }
    let place = words.iter().position(|word| word.trim_start_matches('-').split('=').next() == Some(name))?;
    let value = words[place].split_once('=').map(|(_, value)| value).or(words.get(place + 1).copied());
    let value = value.filter(|value| !value.starts_with('-'));
    if command.get_name() == "sql" && name == "query" {
        return Some(format!("queries are passed with -c {:?}", value.unwrap_or("QUERY")));
    }
    if let Some(value) = value
        && is_input(name, command)
    {
        return Some(format!("it needs no option: planetree {} {}", command.get_name(), quoted(value)));
    }
    // A similar option is more likely to be meant than a parameter.
    let options = command.get_arguments().filter_map(clap::Arg::get_long);
    let is_similar = !planetree_base::suggest::nearest(name, options).is_empty();
    if command.get_name() != "run" || is_similar {
        return None;
    }
    let (name, value) = (name.replace('-', "_"), quoted(value?));
    Some(format!("parameters of the pipeline are set with '--set {name}={value}'"))
}

/// A setting such as `num_trees=3` without an option of its own, or an option without dashes, such as `data=train`.
fn tip_for_setting(written: &str, words: &[&str], command: &Command) -> Option<String> {
    let (name, value) = written.split_once('=')?;
    let long = name.replace('_', "-");
    if command.get_arguments().any(|option| option.get_long() == Some(long.as_str())) {
        return Some(format!("options begin with two dashes: '--{long} {}'", quoted(value)));
    }
    if !command.get_arguments().any(|option| option.get_long() == Some("set")) {
        return None;
    }
    let setting = quoted(written);
    if is_given("set", words) {
        return Some(format!("each setting has an option of its own: '--set {setting}'"));
    }
    match command.get_name() {
        "run" => Some(format!("parameters of the pipeline are set with '--set {setting}'")),
        _ if config::is_parameter(name) => Some(format!("parameters are set with '--set {setting}'")),
        _ => None,
    }
}

/// A file in place of the option that names it: the data or, if they are given, the model.
fn tip_for_file(written: &str, words: &[&str], command: &Command) -> Option<String> {
    if !written.contains(['/', '.']) && !Path::new(written).exists() {
        return None;
    }
    let is_open = |name: &str| {
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        option
            .is_some_and(|option| !is_given(name, words) || matches!(option.get_action(), ArgAction::Append))
    };
    let takes_output = matches!(command.get_name(), "export" | "import");
    if takes_output && !is_given("output", words) && !words.iter().any(|word| word.starts_with("-o")) {
        return Some(format!("the output is named with '--output {}'", quoted(written)));
    }
    if READ_A_MODEL.contains(&command.get_name()) && !is_given("model", words) && !is_given("data", words) {
        let place = words.iter().position(|word| *word == written)?;
        let next = words.get(place + 1).filter(|next| !next.starts_with('-'));
        return Some(match next {
            Some(next) => {
                let (model, data) = if is_data(written) { (*next, written) } else { (written, *next) };
                let name = command.get_name();
                format!("write planetree {name} --model {} --data {}", quoted(model), quoted(data))
            }
            None if is_data(written) => {
                format!("datasets and tables are named with '--data {}'", quoted(written))
            }
            None => format!("a model is named with '--model {}'", quoted(written)),
        });
    }
    let named = [("data", "datasets and tables are"), ("model", "a model is")];
    let (name, are) = named.into_iter().find(|named| is_open(named.0))?;
    Some(format!("{are} named with '--{name} {}'", quoted(written)))
}

/// Commands that read a model and data, both named by options.
const READ_A_MODEL: [&str; 3] = ["predict", "augment", "cost"];

/// Returns whether a path is more likely a dataset or a table than a model.
fn is_data(path: &str) -> bool {
    const TEXTS: [&str; 8] = [".csv", ".tsv", ".txt", ".json", ".ndjson", ".gz", ".zst", ".letor"];
    Path::new(path).is_dir() || TEXTS.iter().any(|extension| path.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(line: &str) -> Option<String> {
        tip_for(&line.split(' ').collect::<Vec<_>>())
    }

    fn tip_for(words: &[&str]) -> Option<String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let program = crate::command_line();
        let error = program.clone().try_get_matches_from(arguments.clone()).unwrap_err();
        let error = with_tip(error, &arguments, &program);
        as_error(&error).remedy().map(str::to_owned).filter(|tip| !tip.starts_with('`'))
    }

    #[test]
    fn the_form_that_was_meant_is_named() {
        for (line, expected) in [
            ("planetree train j.csv --model m", "datasets and tables are named with '--data j.csv'"),
            ("planetree compare a b --latex", "a similar argument exists: '--format latex'"),
            (
                "planetree train --data d --model m --lambdamart",
                "a similar argument exists: '--preset lambdamart'",
            ),
            ("planetree run p.toml --trees 30", "parameters of the pipeline are set with '--set trees=30'"),
            ("planetree run p.toml --rate=0.1", "parameters of the pipeline are set with '--set rate=0.1'"),
            ("planetree describe --model m.parquet", "it needs no option: planetree describe m.parquet"),
            ("planetree export --model=m --format onnx -o f", "it needs no option: planetree export m"),
            ("planetree run p.toml --job 2", "a similar argument exists: '--jobs'"),
            ("planetree train --data d --modell m", "a similar argument exists: '--model'"),
            ("planetree predict m.parquet --data te", "a model is named with '--model m.parquet'"),
            ("planetree predict te.csv --model m", "datasets and tables are named with '--data te.csv'"),
            ("planetree sql --run runs/a", "it needs no option: planetree sql runs/a"),
            ("planetree predict m.parquet test", "write planetree predict --model m.parquet --data test"),
            ("planetree predict te.csv m.parquet", "write planetree predict --model m.parquet --data te.csv"),
            ("planetree predict m.parquet --output p", "a model is named with '--model m.parquet'"),
            ("planetree augment te.csv -o d", "datasets and tables are named with '--data te.csv'"),
            ("planetree export m.parquet m.onnx", "the output is named with '--output m.onnx'"),
            ("planetree import m.txt m.parquet", "the output is named with '--output m.parquet'"),
            ("planetree train data=d num_trees=3", "options begin with two dashes: '--data d'"),
            ("planetree train --model m num_trees=3", "parameters are set with '--set num_trees=3'"),
            ("planetree train --data d --set a=1 b=2", "each setting has an option of its own: '--set b=2'"),
            ("planetree run quickstart trees=5", "parameters of the pipeline are set with '--set trees=5'"),
            (
                "planetree run --list --json",
                "run prints no JSON; the record of a run is run.json in its directory",
            ),
        ] {
            assert_eq!(tip(line).as_deref(), Some(expected), "{line}");
        }
        for line in
            ["planetree train --data d --model m --feature-columns a price", "planetree compare a b --by m"]
        {
            assert_eq!(tip(line), None, "{line}");
        }
        // The only data are given, and `sql` takes none; options without a value are no tip.
        for line in [
            "planetree predict --model m --data te x.csv --scores s",
            "planetree sql --data te",
            "planetree train --data d --model m --true",
        ] {
            let tip = tip(line).unwrap_or_default();
            assert!(
                !["named with", "needs no option", "true"].iter().any(|part| tip.contains(part)),
                "{tip}"
            );
        }
        let tip = |words: &[&str]| tip_for(words).unwrap();
        assert_eq!(
            tip(&["planetree", "sql", "--query", "SELECT 1"]),
            "queries are passed with -c \"SELECT 1\""
        );
        assert_eq!(
            tip(&["planetree", "describe", "--model", "m x"]),
            "it needs no option: planetree describe \"m x\""
        );
        assert_eq!(
            tip(&["planetree", "run", "p.toml", "--note=a b"]),
            "parameters of the pipeline are set with '--set note=\"a b\"'"
        );
    }

    #[test]
    fn messages_are_json_if_the_command_line_says_so() {
        let asks = |line: &str| asks_for_json(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("planetree --log-format json trian") && asks("planetree trian --log-format=json"));
        assert!(!asks("planetree --log-format text trian"));
    }
}
