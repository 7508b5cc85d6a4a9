//! Implements `planetree completions` and `planetree man`: prints shell completions and manual pages, which are
//! generated from the definition of the command line.

use clap::{Args, Command};
use clap_complete::Shell;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, FileOutput, Head, Location, replaces};
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
pub(crate) fn completions(arguments: &CompletionsArguments, mut root: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut root, "planetree", &mut text);
    super::print(&String::from_utf8_lossy(&text))
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
