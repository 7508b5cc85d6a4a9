//! Implements `planetree completions` and `planetree man`: prints shell completions and manual pages, which are
//! generated from the definition of the command line.

use super::parameter_arguments::takes_parameters;
use clap::builder::{PossibleValuesParser, Resettable};
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, FileOutput, Head, Location, replaces};
use planetree_metric as metric;
use planetree_run::pipeline::{SHIPPED, ShippedPipeline};
use planetree_train::config;
use std::io::Write;

/// Print shell completions for commands and options
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree completions bash > ~/.local/share/bash-completion/completions/planetree
  planetree completions zsh > \"${fpath[1]}/_planetree\"
  planetree completions fish > ~/.config/fish/completions/planetree.fish")]
pub(crate) struct CompletionsArguments {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a manual page, or write all of them to a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree man train | man -l -
  planetree man --output ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Command whose page is printed [default: the page of planetree itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Option<String>,

    /// Write all pages to this directory, one file per command
    #[arg(long, short, value_name = "DIR")]
    output: Option<String>,
}

/// Prints completions.
pub(crate) fn completions(arguments: &CompletionsArguments, root: Command) -> Result<()> {
    let mut root = with_values(root);
    // Bash completes files where no name fits. Zsh would complete no files, and fish no names.
    if arguments.shell == Shell::Bash {
        root = root.mut_subcommand("run", |run| {
            run.mut_arg("pipeline", |argument| argument.value_parser(pipeline_names()))
        });
    }
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut root, "planetree", &mut text);
    super::print(&String::from_utf8_lossy(&text))
}

fn pipeline_names() -> PossibleValuesParser {
    PossibleValuesParser::new(SHIPPED.iter().map(ShippedPipeline::name))
}

/// Adds what shells can complete but help does not list: training parameters as options and after --set, and the names of
/// presets, metrics, conventions and pipelines as values.
fn with_values(mut root: Command) -> Command {
    root = root
        .mut_subcommand("run", |run| run.mut_arg("show", |argument| argument.value_parser(pipeline_names())));
    let names: Vec<String> = root.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        root = root.mut_subcommand(&name, |command| {
            let command = with_names(command);
            if takes_parameters(&name) { with_parameters(command) } else { command }
        });
    }
    root
}

/// Adds the names of presets, metrics and conventions as values of the options that take them.
fn with_names(mut command: Command) -> Command {
    // In the table, a depth is a letter.
    let metrics = metric::help_table().into_iter().map(|(name, _)| name.replace("@K", "@10"));
    let metrics: Vec<&'static str> =
        metrics.filter(|name| name.parse::<metric::Metric>().is_ok()).map(leaked).collect();
    let presets = config::presets().iter().map(|preset| preset.name).collect();
    let conventions = metric::Convention::presets().iter().map(|preset| preset.name).collect();
    for (option, values) in
        [("preset", presets), ("convention", conventions), ("metric", metrics.clone()), ("metrics", metrics)]
    {
        let found = command.get_arguments().find(|argument| argument.get_long() == Some(option));
        let Some(id) = found.map(|argument| argument.get_id().clone()) else { continue };
        // A default that is a list would not be one of the values.
        command = command.mut_arg(id, |argument| {
            argument.default_value(Resettable::Reset).value_parser(PossibleValuesParser::new(values))
        });
    }
    command
}

/// Adds the training parameters as options, and as the beginnings of values of --set.
fn with_parameters(mut command: Command) -> Command {
    let names =
        config::listed_parameters().into_iter().map(|parameter| leaked(format!("{}=", parameter.name)));
    // With this hint, bash adds no space after the equals sign.
    command = command.mut_arg("set", |argument| {
        argument.value_hint(ValueHint::Other).value_parser(PossibleValuesParser::new(names))
    });
    for parameter in config::listed_parameters() {
        let option = parameter.name.replace('_', "-");
        if command.get_arguments().any(|argument| argument.get_long() == Some(option.as_str())) {
            continue;
        }
        let argument = Arg::new(parameter.name).long(leaked(option)).help(parameter.help);
        command = command.arg(match parameter.kind {
            config::ListedKind::Word(words) => argument.value_parser(PossibleValuesParser::new(words)),
            config::ListedKind::Flag => argument.value_parser(PossibleValuesParser::new(["true", "false"])),
            _ => argument,
        });
    }
    command
}

/// Returns a text that lives as long as the process, which ends when the completions are printed.
fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Prints or writes manual pages.
pub(crate) fn man(arguments: &ManArguments, root: Command) -> Result<()> {
    let pages = pages(root)?;
    let Some(directory) = &arguments.output else {
        let name = arguments
            .command
            .as_ref()
            .map_or_else(|| "planetree".to_owned(), |name| format!("planetree-{name}"));
        let page = pages.iter().find(|(page, _)| *page == name).ok_or_else(|| {
            let names: Vec<&str> =
                pages.iter().filter_map(|(page, _)| page.strip_prefix("planetree-")).collect();
            Error::usage(
                format_args!("unknown command: {:?}", arguments.command.as_deref().unwrap_or_default()),
                format_args!("the commands are {}", names.join(", ")),
            )
        })?;
        return super::print(&page.1);
    };
    let directory = Location::parse(directory, Access::Explicit)?;
    for (name, text) in &pages {
        let location = directory.join(&format!("{name}.1"));
        let mut file = FileOutput::guarded(&location, replaces(is_page))?;
        file.write_all(text.as_bytes()).map_err(|error| Error::io(&location, "write", error))?;
        file.commit()?;
    }
    Ok(())
}

/// Checks whether a file is a manual page of planetree, which may be replaced.
fn is_page(head: &Head) -> bool {
    head.lines().is_some_and(|mut lines| lines.any(|line| line.starts_with(".TH planetree")))
}

/// Returns the names and texts of all pages: first the page of planetree itself, then one page per command.
fn pages(mut root: Command) -> Result<Vec<(String, String)>> {
    root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = vec![("planetree".to_owned(), page(root.clone())?)];
    for command in root.get_subcommands() {
        let name = format!("planetree-{}", command.get_name());
        pages.push((name, page(command.clone())?));
    }
    Ok(pages)
}

fn page(command: Command) -> Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|error| Error::io("manual page", "write", error))?;
    Ok(with_examples(&String::from_utf8_lossy(&text)))
}

/// Moves the examples and tables to a section of their own, with line breaks preserved.
fn with_examples(page: &str) -> String {
    let Some((before, rest)) = page.split_once("\n.SH EXTRA\n") else { return page.to_owned() };
    let (lines, after) = rest.split_once("\n.SH ").unwrap_or((rest, ""));
    let after = if after.is_empty() { String::new() } else { format!(".SH {after}") };
    format!("{before}\n.SH EXAMPLES\n.nf\n{}\n.fi\n{after}", lines.trim_end())
}
