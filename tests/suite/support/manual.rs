//! Running the examples of the manual.

use super::program::{Ran, command};
use std::fs;
use std::path::Path;

/// Runs every `planetree` command of a page of the manual, in order. An example whose output is shown must print it.
/// Returns the number of examples.
pub fn run_manual(directory: &Path, page: &str) -> usize {
    let manual = fs::read_to_string(Path::new(super::ROOT).join("docs").join(page)).unwrap();
    let lines: Vec<&str> = manual.lines().collect();
    let mut examples = 0;
    for (place, line) in lines.iter().enumerate() {
        let Some(text) = line.strip_prefix("    ").map(|line| line.trim_start_matches("$ ")) else {
            continue;
        };
        let Some(arguments) = text.strip_prefix("planetree ") else { continue };
        // Text in double quotes is one argument.
        let mut run = command(directory, "--quiet");
        for (part, text) in arguments.split('"').enumerate() {
            match part % 2 {
                0 => run.args(text.split_whitespace()),
                _ => run.arg(text),
            };
        }
        let ran = Ran::of(run.output().unwrap());
        assert_eq!(ran.code, 0, "{text}: {}", ran.stderr);
        examples += 1;
        if line.starts_with("    $") {
            let shown =
                lines[place + 1..].iter().take_while(|line| line.is_empty() || line.starts_with("    "));
            let shown: Vec<&str> = shown.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
            assert_eq!(ran.stdout.trim(), shown.join("\n").trim(), "{text}");
        }
    }
    examples
}
