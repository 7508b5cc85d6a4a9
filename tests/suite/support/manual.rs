//! Examples of the manual: found in its pages, run, and compared with what the pages show.

use super::program::{BINARY, ROOT, Ran, command};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A page of the manual.
pub struct Page {
    /// Path in the repository.
    pub path: &'static str,
    /// Shell commands that create what the examples use.
    pub before: &'static [&'static str],
    /// Examples that are not simply run, by their first characters.
    pub exceptions: &'static [(&'static str, Treatment)],
}

/// What happens to an example that is not simply run.
#[derive(Clone, Copy)]
pub enum Treatment {
    /// It is not run, for this reason.
    NotRun(&'static str),
    /// Its command runs with more options, for this reason.
    With(&'static str, &'static str),
    /// It is the content of a file. Then a shell command runs, which may be empty if other examples use the file.
    File(&'static str, &'static str),
}

/// An example of a page.
#[derive(Debug, PartialEq)]
enum Example {
    /// A shell command, and the output that the page shows.
    Command(String, Vec<String>),
    /// A statement for `planetree sql`.
    Sql(String),
    /// A pipeline or a training configuration.
    Toml(String),
    /// Anything else: formulas, code, files.
    Other(String),
}

impl Example {
    fn text(&self) -> &str {
        match self {
            Example::Command(text, _) | Example::Sql(text) | Example::Toml(text) | Example::Other(text) => {
                text
            }
        }
    }
}

/// Programs with which a line of an example can start.
const PROGRAMS: [&str; 7] = ["planetree ", "echo ", "make ", "cargo ", "pip ", "node", "("];
/// Words with which a SQL statement can start.
const STATEMENTS: [&str; 8] =
    ["SELECT ", "WITH ", "COPY ", "FROM ", "DESCRIBE ", "SUMMARIZE ", "SET ", "-- "];

/// Returns the examples of a page: its indented and its fenced blocks.
fn examples_in(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut fence: Option<Vec<&str>> = None;
    let mut may_start = true;
    for line in page.lines().chain([""]) {
        if line.starts_with("```") {
            match fence.take() {
                Some(lines) => examples.extend(fenced(lines)),
                None => fence = Some(vec![line.trim_start_matches('`')]),
            }
        } else if let Some(lines) = &mut fence {
            lines.push(line);
        } else if line.starts_with("    ") && (may_start || !block.is_empty()) {
            block.push(&line[4..]);
            continue;
        } else if line.is_empty() && !block.is_empty() {
            block.push("");
            continue;
        }
        examples.extend(indented(&std::mem::take(&mut block)));
        // As in Markdown, indented text right after a paragraph or a list item belongs to it.
        may_start = line.is_empty() || line.starts_with(['#', '|']);
    }
    examples.extend(indented(&block));
    examples
}

/// Returns the example in a fenced block, whose first line is its language.
fn fenced(lines: Vec<&str>) -> Option<Example> {
    let text = lines[1..].join("\n");
    match lines[0] {
        "toml" => Some(Example::Toml(text)),
        "pycon" => None, // the tests of the Python package run these
        _ => Some(Example::Other(text)),
    }
}

/// Returns the examples in an indented block.
fn indented(lines: &[&str]) -> Vec<Example> {
    let starts_with = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let mut examples = Vec::new();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if line.starts_with("$ ") || starts_with(line, &PROGRAMS) {
            let mut command = line.strip_prefix("$ ").unwrap_or(line).to_owned();
            while command.ends_with('\\') || command.matches('"').count() % 2 == 1 {
                command.push('\n');
                command.push_str(lines.next().expect("the command ends"));
            }
            let mut shown = Vec::new();
            while line.starts_with("$ ") && lines.peek().is_some_and(|line| !line.starts_with("$ ")) {
                shown.extend(lines.next().map(str::to_owned));
            }
            examples.push(Example::Command(command, shown));
            continue;
        }
        let mut paragraph = vec![line];
        while lines.peek().is_some_and(|line| !line.is_empty()) {
            paragraph.extend(lines.next());
        }
        let text = paragraph.join("\n");
        if starts_with(line, &STATEMENTS) {
            // Either one statement per line, or one statement over several lines.
            let is_list = paragraph.len() > 2 && paragraph.iter().all(|line| line.starts_with("SELECT"));
            match is_list {
                true => examples.extend(paragraph.iter().map(|line| Example::Sql((*line).to_owned()))),
                false => examples.push(Example::Sql(text)),
            }
        } else if line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key)) {
            examples.push(Example::Toml(text));
        } else {
            examples.push(Example::Other(text));
        }
    }
    // The tables of a TOML file are separated by blank lines.
    examples.dedup_by(|next, last| match (last, next) {
        (Example::Toml(last), Example::Toml(next)) => {
            last.push_str("\n\n");
            last.push_str(next);
            true
        }
        _ => false,
    });
    examples
}

fn is_key(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_') && text != "score"
}

/// Runs all examples of a page in order, in a directory with the sample data and the pipelines. Every example must
/// succeed, and print what the page shows. Returns all failures.
pub fn run_page(directory: &Path, page: &Page) -> Vec<String> {
    for folder in ["sample_data", "pipelines"] {
        copy_folder(&Path::new(ROOT).join(folder), &directory.join(folder));
    }
    for line in page.before {
        let ran = shell(directory, line);
        assert_eq!(ran.code, 0, "{}: before the examples: {line}: {}", page.path, ran.stderr);
    }
    let text = fs::read_to_string(Path::new(ROOT).join(page.path)).unwrap();
    let mut unused: Vec<&str> = page.exceptions.iter().map(|(start, _)| *start).collect();
    let (mut failures, mut count) = (Vec::new(), 0);
    for example in examples_in(&text) {
        let exception = page.exceptions.iter().find(|(start, _)| example.text().starts_with(start));
        if let Some((start, _)) = exception {
            unused.retain(|other| other != start);
        }
        let treatment = exception.map(|(_, treatment)| *treatment);
        match treatment {
            Some(Treatment::NotRun(reason)) => {
                assert!(!reason.is_empty(), "an exception needs a reason");
                continue;
            }
            Some(Treatment::File(name, line)) => {
                fs::write(directory.join(name), format!("{}\n", example.text())).unwrap();
                let ran = shell(directory, line);
                if ran.code != 0 {
                    failures.push(format!("{}: {line}\n{}{}", page.path, ran.stdout, ran.stderr));
                }
                continue;
            }
            Some(Treatment::With(_, reason)) => assert!(!reason.is_empty(), "an exception needs a reason"),
            None => {}
        }
        count += 1;
        let more = match treatment {
            Some(Treatment::With(options, _)) => options,
            _ => "",
        };
        if let Err(problem) = run_example(directory, &example, more, count) {
            failures.push(format!("{}:\n{}\n{problem}", page.path, example.text()));
        }
    }
    if !unused.is_empty() {
        failures.push(format!("{}: no example starts with {unused:?}: remove the exception", page.path));
    }
    failures
}

fn run_example(directory: &Path, example: &Example, more: &str, number: usize) -> Result<(), String> {
    let succeeded = |ran: Ran| match ran.code {
        0 => Ok(ran),
        code => Err(format!("exit code {code}: {}{}", ran.stdout, ran.stderr)),
    };
    match example {
        Example::Command(line, shown) => {
            let expects_error = shown.iter().any(|line| line.starts_with("error: "));
            // The options come before a comment.
            let line = match line.split_once(" #") {
                Some((line, _)) => format!("{line} {more}"),
                None => format!("{line} {more}"),
            };
            let ran = shell(directory, &line);
            let ran = if expects_error { ran } else { succeeded(ran)? };
            let everything = format!("{}{}", ran.stdout, ran.stderr);
            let matching = [&ran.stdout, &ran.stderr, &everything];
            if shown.iter().all(String::is_empty) || matching.iter().any(|text| agrees(shown, text)) {
                return Ok(());
            }
            Err(format!("the page shows:\n{}\nit prints:\n{everything}", shown.join("\n")))
        }
        Example::Sql(query) => {
            let named = match directory.join("predictions.parquet").exists() {
                true => "--table predictions=predictions.parquet",
                false => "",
            };
            let mut sql = command(directory, &format!("sql --allow-write . {named} -c"));
            succeeded(Ran::of(sql.arg(query).output().unwrap())).map(drop)
        }
        Example::Toml(text) => {
            let file = format!("example-{number}.toml");
            fs::write(directory.join(&file), text).unwrap();
            let line = match text.contains("[step") {
                true => format!("run {file} --dry-run {more}"),
                false => {
                    format!(
                        "train --config {file} --data train --valid vali --model example-{number}.parquet {more}"
                    )
                }
            };
            succeeded(Ran::of(command(directory, &line).output().unwrap())).map(drop)
        }
        Example::Other(_) => {
            Err("this is no command, SQL or TOML: add an exception with its reason".to_owned())
        }
    }
}

/// Runs a line of shell, in which `planetree` is the program under test.
fn shell(directory: &Path, line: &str) -> Ran {
    let program = Path::new(BINARY).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let clean = command(directory, "");
    let mut bash = Command::new("bash");
    for (name, value) in clean.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.args(["-e", "-o", "pipefail", "-c", line]).current_dir(directory).stdin(Stdio::null());
    Ran::of(bash.env("PATH", format!("{}:{path}", program.display())).output().unwrap())
}

/// Whether a text is what a page shows. A line `...` stands for any number of lines; times, sizes and versions may
/// differ.
fn agrees(shown: &[String], printed: &str) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| normalised(line)).collect();
    let printed: Vec<String> = printed.lines().map(normalised).collect();
    let trimmed = |lines: &[String]| -> Vec<String> {
        let from = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        let to = lines.iter().rposition(|line| !line.is_empty()).map_or(from, |last| last + 1);
        lines[from..to].to_vec()
    };
    matches(&trimmed(&shown), &trimmed(&printed))
}

fn matches(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=printed.len()).any(|skip| matches(rest, &printed[skip..]))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(own, others)| own == first && matches(rest, others))
        }
    }
}

/// Units of numbers that differ from run to run or from version to version.
const UNITS: [&str; 8] = ["s", "ms", "B", "KiB", "MiB", "GiB", "MiB/s", "%"];

/// A line whose times, sizes and versions are replaced. Other lines stay as they are, but for spaces at the end.
fn normalised(line: &str) -> String {
    let line = line.trim_end();
    let words: Vec<&str> = line.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(['(', ')', ';', ',', '.']).to_owned();
    let is_number = |word: &str| bare(word).parse::<f64>().is_ok();
    let varies = |place: usize| {
        let unit = words.get(place + 1).map(|word| bare(word)).unwrap_or_default();
        let is_share_of_features = unit == "%" && !line.contains("of the input");
        is_number(words[place]) && UNITS.contains(&unit.as_str()) && !is_share_of_features
    };
    let is_version =
        |place: usize| place > 0 && words[place - 1] == "planetree" && words[place].contains('.');
    if !(0..words.len()).any(|place| varies(place) || is_version(place)) {
        return line.to_owned();
    }
    let masked = |(place, word): (usize, &&str)| match varies(place) || is_version(place) {
        true => "#".to_owned(),
        false => (*word).to_owned(),
    };
    words.iter().enumerate().map(masked).collect::<Vec<_>>().join(" ")
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn examples_are_found_and_compared() {
    let page = "text\n\n    $ planetree a \\\n      --b\n    shown 0.1 s\n    ...\n\n    end\n    $ planetree c\n\ntext\n    no\n\n    \
                SELECT 1\n    FROM a\n\n    SELECT 2\n\n```toml\n[a]\n\n[b]\n```\n\n    a = b + c\n\n    [step.a]\n\n    [step.b]\n";
    let shown: Vec<String> = ["shown 0.1 s", "...", "", "end"].map(str::to_owned).to_vec();
    let expected = [
        Example::Command("planetree a \\\n  --b".to_owned(), shown.clone()),
        Example::Command("planetree c".to_owned(), vec![String::new()]),
        Example::Sql("SELECT 1\nFROM a".to_owned()),
        Example::Sql("SELECT 2".to_owned()),
        Example::Toml("[a]\n\n[b]".to_owned()),
        Example::Toml("a = b + c\n\n[step.a]\n\n[step.b]".to_owned()),
    ];
    assert_eq!(examples_in(page), expected);
    assert!(agrees(&shown, "shown 99 s\nmore\nand more\n\nend\n"));
    assert!(!agrees(&shown, "shown 99 s\nmore\nends\n"));
    assert!(!agrees(&["a  1".to_owned()], "a 1\n"));
}
