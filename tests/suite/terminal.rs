//! Terminal output: progress bars and colours only on terminals; shell completions; manual pages.

use crate::support::*;
use std::path::Path;
use std::process::Command;

/// Everything that a command writes to a terminal; `None` without Python.
fn on_terminal(directory: &Path, settings: &str, arguments: &str) -> Option<String> {
    reference_script(directory, "terminal.py", &format!("{settings} {BINARY} {arguments}"))
}

/// Prepares data large enough for progress bars to appear.
fn prepare(directory: &Path) {
    dataset(directory, "data", &graded(3, 300, 20), "--partition-rows 2000");
    dataset(directory, "vali", &graded(4, 50, 20), "");
    train(directory, "--data data --model m --set num_trees=5");
    run(directory, "--quiet predict --model m --data data --output scores").ok();
}

/// Commands, and words that their progress bars contain.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("convert data.txt --output again --overwrite", &["converting", "/s", "left"]),
    ("describe data", &["describing", "rows", "left"]),
    (
        "train --data data --valid vali --model n --set num_trees=60",
        &["binning", "values", "reading valid", "training", "60 trees", "left", "ndcg"],
    ),
    ("predict --model m --data data --output other", &["scoring", "rows", "left"]),
    ("evaluate --predictions scores", &["evaluating scores", "rows"]),
    (
        "cv --data data --folds 3 --set num_trees=20 --output cv",
        &["fold 1: training", "fold 3: scoring", "trees"],
    ),
];

#[test]
fn long_commands_show_progress_bars_on_a_terminal() {
    let room = room();
    prepare(room.path());
    for (arguments, words) in COMMANDS {
        let Some(shown) = on_terminal(room.path(), "", arguments) else { return };
        assert!(shown.ends_with("exit 0"), "{shown}");
        for word in words {
            assert!(shown.contains(word), "{arguments}: {word} is not in {shown}");
        }
        assert!(!has_colours(&shown), "{shown:?}");
        // A bar wider than the terminal could not be rewritten.
        for line in shown.split(['\r', '\n']).filter(|line| line.contains("left")) {
            assert!(plain(line).chars().count() <= 80, "{line:?}");
        }
        let _ = std::fs::remove_dir_all(room.path().join("cv"));
    }
}

/// Text without escape sequences.
fn plain(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(
            part.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |(_, rest)| rest),
        );
    }
    text
}

/// Whether some text is coloured, bold or underlined.
fn has_colours(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|part| {
        part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';').starts_with('m')
    })
}

#[test]
fn there_are_no_bars_without_a_terminal_or_with_quiet() {
    let room = room();
    prepare(room.path());
    for (arguments, _) in COMMANDS {
        let ran = run(room.path(), arguments).ok();
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(['\r', '\x1b']), "{arguments}: {text:?}");
        }
        let _ = std::fs::remove_dir_all(room.path().join("cv"));
        let Some(shown) = on_terminal(room.path(), "TERM=dumb", arguments) else { continue };
        assert!(!shown.replace("\r\n", "\n").contains(['\r', '\x1b']), "{arguments}: {shown:?}");
        let _ = std::fs::remove_dir_all(room.path().join("cv"));
        let shown = on_terminal(room.path(), "", &format!("--quiet {arguments}")).unwrap();
        // Results are printed despite --quiet; everything else is suppressed.
        let prints = ["describe", "evaluate", "cv"].iter().any(|command| arguments.starts_with(command));
        assert!(!shown.contains('\x1b') && (prints || shown == "exit 0"), "{arguments}: {shown:?}");
        let _ = std::fs::remove_dir_all(room.path().join("cv"));
    }
}

#[test]
fn rounds_without_metrics_are_counted() {
    let room = room();
    dataset(room.path(), "data", &graded(3, 30, 10), "");
    let ran = run(room.path(), "train --preset rf-point --data data --model m --set num_trees=12").ok();
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(lines, ["[1] of 12", "[10] of 12", "[12] of 12"]);
}

#[test]
fn colours_are_used_on_terminals_unless_no_color_is_set() {
    let room = room();
    for arguments in ["--help", "train --help", "train --no-such-option", "describe nothing"] {
        let ran = run(room.path(), arguments);
        assert!(!has_colours(&ran.stdout) && !has_colours(&ran.stderr), "{arguments}");
        let Some(shown) = on_terminal(room.path(), "NO_COLOR=1", arguments) else { return };
        assert!(!has_colours(&shown), "{arguments}: {shown:?}");
    }
    for arguments in ["--help", "train --help", "train --no-such-option"] {
        let Some(shown) = on_terminal(room.path(), "", arguments) else { return };
        assert!(has_colours(&shown), "{arguments}: {shown:?}");
    }
}

#[test]
fn shells_accept_the_completions() {
    let room = room();
    for (shell, check) in [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish --no-execute")] {
        let script = run(room.path(), &format!("completions {shell}")).ok().stdout;
        for word in
            ["train", "early-stopping-rounds", "evaluate", "checkpoint-every", "lightgbm", "lambdamart"]
        {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let file = room.path().join(shell);
        std::fs::write(&file, script).unwrap();
        let mut words = check.split(' ');
        match Command::new(words.next().unwrap()).args(words).arg(&file).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {:?}", output),
            Err(_) => skipped(&format!("{shell} is missing: install it (Debian: apt-get install {shell})")),
        }
    }
    assert_eq!(run(room.path(), "completions csh").code, 2);
    // Bash completes commands, options and values of an option.
    let script = "source ./bash; complete_for() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
                  _planetree planetree \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                  echo \"${COMPREPLY[@]}\"; }; complete_for planetree tr; complete_for planetree train --pre; \
                  complete_for planetree export --format ''; complete_for planetree train --preset lambdam; \
                  complete_for planetree cv --num-t; complete_for planetree train --objective lambda; \
                  complete_for planetree evaluate --metrics nd; complete_for planetree evaluate --convention xg; \
                  complete_for planetree train --set lear; complete_for planetree run qu";
    let output = Command::new("bash").args(["-c", script]).current_dir(room.path()).output().unwrap();
    let replies = String::from_utf8(output.stdout).unwrap();
    let replies: Vec<&str> = replies.lines().collect();
    assert_eq!(
        replies,
        [
            "train",
            "--preset",
            "lightgbm xgboost json ranklib solr elasticsearch-ltr opensearch-ltr elastic vespa onnx treelite pmml",
            "lambdamart lambdamart-paper lambdamart-err",
            "--num-trees",
            "lambdarank",
            "ndcg@10",
            "xgboost",
            "learning_rate=",
            "quickstart"
        ],
        "{:?}",
        output.stderr
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let room = room();
    run(room.path(), "man --output pages").ok();
    let names = names_in(&room.path().join("pages"));
    let help = run(room.path(), "--help").ok().stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Continuation lines are indented deeper.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in &commands {
        assert!(names.contains(&format!("planetree-{command}.1")), "{command} is not among {names:?}");
    }
    assert_eq!(names.len(), commands.len() + 1);
    let page = std::fs::read_to_string(room.path().join("pages/planetree-train.1")).unwrap();
    for word in [".TH planetree-train 1", "learning_rate", "lambdamart", "Examples", ".nf"] {
        assert!(page.contains(word), "{word} is not in {page}");
    }
    assert_eq!(run(room.path(), "man train").ok().stdout, page);
    assert!(run(room.path(), "man").ok().stdout.contains(".TH planetree 1"));
    assert_eq!(run(room.path(), "man no-such-command").code, 2);
    if let Ok(output) = Command::new("man")
        .args(["--warnings", "-l", "pages/planetree-train.1"])
        .current_dir(room.path())
        .output()
    {
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    } else {
        skipped("man is missing: install it (Debian: apt-get install man-db)");
    }
}
