//! Generates parts of `--help` from the tables of presets, metrics and conventions, so that they stay up to date.

use planetree_metric as metric;
use planetree_train::config;

/// Column at which the descriptions start.
const INDENT: usize = 24;

/// Returns the help of `--preset`, which lists the names of all presets in one line.
pub(crate) fn preset_names() -> String {
    let names: Vec<&str> = config::presets().iter().map(|preset| preset.name).collect();
    let default = names.first().copied().unwrap_or_default();
    format!("Training preset: {} [default: {default}]", names.join(", "))
}

/// Returns the list of presets with their papers.
pub(crate) fn presets() -> String {
    table(config::presets().iter().map(|preset| {
        let paper = if preset.paper.is_empty() { String::new() } else { format!(" ({})", preset.paper) };
        (preset.name.to_owned(), format!("{}{paper}", preset.description))
    }))
}

/// Returns the list of metrics with their meanings.
pub(crate) fn metrics() -> String {
    table(metric::help_table().into_iter().map(|(name, help)| (name, help.to_owned())))
}

/// Returns the list of metric conventions.
pub(crate) fn conventions() -> String {
    let presets = metric::Convention::presets().iter();
    table(presets.map(|preset| (preset.name.to_owned(), preset.help.to_owned())))
}

/// Formats names and their descriptions as lines of at most 100 columns.
fn table(rows: impl Iterator<Item = (String, String)>) -> String {
    let mut text = String::new();
    for (name, help) in rows {
        config::wrap(&mut text, &format!("  {name:<width$}", width = INDENT - 2), &help);
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::Arguments;
    use clap::CommandFactory;

    /// Returns the long help of a command.
    fn help_of(name: &str) -> String {
        help_from(Arguments::command(), name)
    }

    fn help_from(mut root: clap::Command, name: &str) -> String {
        root.build();
        root.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    }

    #[test]
    fn every_command_and_option_has_help_and_every_command_has_examples() {
        let root = Arguments::command();
        for command in root.get_subcommands() {
            let help = help_of(command.get_name());
            let example = format!("  planetree {}", command.get_name());
            assert!(help.contains("Examples:") && help.contains(&example), "{help}");
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{}: {}", command.get_name(), argument.get_id());
            }
        }
        Arguments::command().debug_assert();
    }

    /// Splits a line at spaces outside of quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for letter in line.chars() {
            match (quote, letter) {
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), _) if open == letter => quote = None,
                (None, ' ') => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn examples_are_valid_command_lines() {
        let root = crate::command_line();
        let mut count = 0;
        for command in root.get_subcommands() {
            // Long examples are not wrapped.
            let help = help_from(Arguments::command().term_width(0), command.get_name());
            let help = help.replace(" \\\n", "");
            let start = format!("planetree {} ", command.get_name());
            for line in help.lines().map(str::trim).filter(|line| line.contains(&start)) {
                let Some(place) = line.find(&start) else { continue };
                if line.starts_with("Usage: ") || line.contains("...") || line.contains('`') {
                    continue; // the syntax of the command, or a sentence
                }
                let line = line[place..].split(" | ").next().unwrap_or_default();
                let line = line.split(" > ").next().unwrap_or_default();
                let line = words(line).into_iter().map(Into::into).collect();
                let line = crate::parameter_arguments::with_parameters(line, &root);
                let parsed = root.clone().try_get_matches_from(&line);
                assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn help_lists_all_presets_metrics_and_conventions() {
        for preset in planetree_train::config::presets() {
            assert!(help_of("train").contains(preset.name) && help_of("cv").contains(preset.name));
        }
        for preset in planetree_metric::Convention::presets() {
            assert!(help_of("evaluate").contains(preset.name));
        }
        for (name, _) in planetree_metric::help_table() {
            assert!(help_of("evaluate").contains(&name));
        }
    }
}
