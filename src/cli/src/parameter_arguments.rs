//! Accepts every training parameter as an option: `--learning-rate 0.1` means `--set learning_rate=0.1`. Options of RankLib
//! begin with a single dash: `-tree 1000` is a parameter, too, so that it is answered like those of other tools. Negative
//! numbers are values of options.

use planetree_train::config::{self, ListedKind};
use std::ffi::OsString;

/// Commands that take training parameters with `--set`.
const COMMANDS: [&str; 3] = ["train", "cv", "impute"];

/// Checks whether a command takes training parameters.
pub(crate) fn takes_parameters(command: &str) -> bool {
    COMMANDS.contains(&command)
}

/// Replaces options of the form `--learning-rate 0.1` or `--learning-rate=0.1` with `--set learning_rate=0.1` if the
/// command takes training parameters and does not define the option itself. Everything else stays as it is.
pub(crate) fn with_parameters(arguments: Vec<OsString>, program: &clap::Command) -> Vec<OsString> {
    let named = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    // Values of global options, such as `--log-format json`, are not commands.
    let command = named.clone().find_map(|argument| program.find_subcommand(argument));
    let Some(command) = command else { return arguments };
    let arguments = with_negative_numbers(arguments, command);
    if !takes_parameters(command.get_name()) {
        return arguments;
    }
    let is_option = |name: &str| {
        let options = command.get_arguments().chain(program.get_arguments());
        options.into_iter().any(|option| {
            option.get_long() == Some(name) || option.get_all_aliases().is_some_and(|all| all.contains(&name))
        })
    };
    let mut changed = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            changed.push(argument);
            changed.extend(rest);
            break;
        }
        let written = argument.to_str().and_then(option_name).unwrap_or_default();
        let (name, value) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (written, None),
        };
        let key = name.replace('-', "_");
        if name.is_empty() || is_option(name) || !config::is_parameter(&key) {
            changed.push(argument);
            continue;
        }
        let next = rest.peek().and_then(|next| next.to_str()).filter(|next| !next.starts_with("--"));
        let value = match (value, next.map(str::to_owned)) {
            (Some(value), _) => value,
            (None, Some(value)) => {
                rest.next();
                value
            }
            // A flag without a value, such as --bootstrap.
            (None, None) if !needs_value(&key) => "true".to_owned(),
            (None, None) => {
                // The parser of settings says that the value is missing.
                changed.push("--set".into());
                changed.push(key.into());
                continue;
            }
        };
        changed.push("--set".into());
        changed.push(format!("{key}={value}").into());
    }
    changed
}

/// Joins an option and a negative number to one argument, such as `--folds=-2`. The parser would take the number for an
/// option that it does not know; joined, it is answered with the range of the option.
fn with_negative_numbers(arguments: Vec<OsString>, command: &clap::Command) -> Vec<OsString> {
    let takes_value = |word: &str| {
        let name = word.strip_prefix("--");
        name.is_some()
            && command.get_arguments().any(|option| {
                let takes_next = option.get_action().takes_values() && !option.is_require_equals_set();
                option.get_long() == name && takes_next
            })
    };
    let is_negative = |word: &str| {
        let number = word.strip_prefix('-').filter(|number| number.starts_with(|c: char| c.is_ascii_digit()));
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let last = joined.last().and_then(|last| last.to_str());
        let both = match (last, argument.to_str()) {
            (Some(option), Some(number)) if takes_value(option) && is_negative(number) => {
                Some(format!("{option}={number}"))
            }
            _ => None,
        };
        match both {
            Some(both) => {
                joined.pop();
                joined.push(both.into());
            }
            None => joined.push(argument),
        }
    }
    joined
}

/// Returns whether a parameter has values other than `true` and `false`.
fn needs_value(key: &str) -> bool {
    let parameters = config::listed_parameters();
    let named = parameters.iter().find(|listed| listed.name == key || listed.aliases.contains(&key));
    named.is_some_and(|listed| listed.kind != ListedKind::Flag && !matches!(listed.default, "true" | "false"))
}

/// Returns an option without its dashes. A single dash needs several letters, because `-o` is a short option, and a
/// number is a value.
fn option_name(argument: &str) -> Option<&str> {
    let is_word = |name: &&str| name.len() > 1 && name.starts_with(char::is_alphabetic);
    let single = || argument.strip_prefix('-').filter(is_word);
    argument.strip_prefix("--").or_else(single)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let changed = with_parameters(arguments, &crate::command_line());
        changed.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn parameters_are_options() {
        assert_eq!(
            changed(
                "planetree train --data d --num-trees 100 --learning_rate=.1 --eta -1 --bootstrap --model m"
            ),
            "planetree train --data d --set num_trees=100 --set learning_rate=.1 --set eta=-1 --set bootstrap=true --model m"
        );
        assert_eq!(
            changed("planetree -q cv --data d --max-depth 3"),
            "planetree -q cv --data d --set max_depth=3"
        );
    }

    #[test]
    fn only_flags_need_no_value() {
        assert_eq!(
            changed("planetree train --num-trees --bootstrap --learning-rate"),
            "planetree train --set num_trees --set bootstrap=true --set learning_rate"
        );
    }

    #[test]
    fn negative_numbers_are_values() {
        assert_eq!(changed("planetree cv --data d --folds -2"), "planetree cv --data d --folds=-2");
        assert_eq!(changed("planetree describe m --tree -1"), "planetree describe m --tree=-1");
        for line in ["planetree predict -1 --model m", "planetree convert --zero-as-missing -1 x"] {
            assert_eq!(changed(line), line);
        }
    }

    #[test]
    fn options_of_ranklib_have_one_dash() {
        assert_eq!(
            changed("planetree train --data d -tree 10 -metric2t NDCG@10 -om"),
            "planetree train --data d --set tree=10 --set metric2t=NDCG@10 -om"
        );
    }

    #[test]
    fn values_of_global_options_are_not_commands() {
        assert_eq!(
            changed("planetree --log-format json train --max-depth 3"),
            "planetree --log-format json train --set max_depth=3"
        );
    }

    #[test]
    fn own_options_and_other_commands_keep_their_meaning() {
        for line in [
            "planetree train --data d --start-scores s --seeds 3",
            "planetree predict --seed 3",
            "planetree train -- --seed 3",
            "planetree --version",
        ] {
            assert_eq!(changed(line), line);
        }
    }
}
