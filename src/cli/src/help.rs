//! Parts of `--help` that come from tables, so that they cannot fall behind.

use planetree_metric as metric;
use planetree_train::config;

/// Columns of the names.
const INDENT: usize = 24;

/// What `--preset` takes, in one line.
pub fn preset_names() -> String {
    let names: Vec<&str> = config::presets().iter().map(|preset| preset.name).collect();
    let default = names.first().copied().unwrap_or_default();
    format!("Which kind of training: {} [default: {default}]", names.join(", "))
}

/// All presets.
pub fn presets() -> String {
    table(config::presets().iter().map(|preset| {
        let paper = if preset.paper.is_empty() { String::new() } else { format!(" ({})", preset.paper) };
        (preset.name.to_owned(), format!("{}{paper}", preset.description))
    }))
}

/// All metrics.
pub fn metrics() -> String {
    table(metric::help_table().into_iter().map(|(name, help)| (name, help.to_owned())))
}

/// All conventions.
pub fn conventions() -> String {
    let presets = metric::Convention::presets().iter();
    table(presets.map(|preset| (preset.name.to_owned(), preset.help.to_owned())))
}

/// Names and what they mean, no wider than 100 columns.
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

    /// The long help of a command.
    fn help_of(name: &str) -> String {
        let mut whole = Arguments::command();
        whole.build();
        whole.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    }

    #[test]
    fn every_command_says_what_it_does_and_has_examples() {
        let whole = Arguments::command();
        for command in whole.get_subcommands() {
            let help = help_of(command.get_name());
            let call = format!("  planetree {}", command.get_name());
            assert!(help.contains("Examples:") && help.contains(&call), "{help}");
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{}: {}", command.get_name(), argument.get_id());
            }
        }
        Arguments::command().debug_assert();
    }

    #[test]
    fn tables_are_in_the_help() {
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
