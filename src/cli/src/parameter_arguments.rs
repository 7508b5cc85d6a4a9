//! Accepts every training parameter as an option: `--learning-rate 0.1` means `--set learning_rate=0.1`. Options of RankLib
//! begin with a single dash: `-tree 1000` is a parameter, too, so that it is answered like those of other tools.

use planetree_train::config;
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
    let Some(command) = command.filter(|command| takes_parameters(command.get_name())) else {
        return arguments;
    };
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
            (None, None) => "true".to_owned(),
        };
        changed.push("--set".into());
        changed.push(format!("{key}={value}").into());
    }
    changed
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
