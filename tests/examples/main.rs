//! The programs in `examples/` run and print the expected results.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::process::Command;

/// The output of an example. `cargo test` builds the examples, too.
fn output(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(program.exists(), "{name} is not built: cargo build -p planetree --examples");
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn number_after(text: &str, label: &str) -> f64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("{label:?} in {text}")).1;
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn train_and_evaluate() {
    let printed = output("train_and_evaluate");
    assert!(printed.starts_with("50 trees on 1800 rows\n"), "{printed}");
    assert!(number_after(&printed, "ndcg@10: ") > 0.5, "{printed}");
    assert!(number_after(&printed, "err: ") > 0.0, "{printed}");
}

#[test]
fn rank_one_query() {
    let printed = output("rank_one_query");
    let scores: Vec<f64> = printed.lines().map(|line| number_after(line, ": ")).collect();
    assert!(scores.len() == 5 && scores.is_sorted_by(|one, other| one >= other), "{printed}");
    assert!(scores[0] > scores[4], "{printed}");
}

#[test]
fn custom_objective() {
    let printed = output("custom_objective");
    assert!(printed.contains("[30] ") && printed.contains("30 trees; # objective: huber"), "{printed}");
}

#[test]
fn custom_metric() {
    let printed = output("custom_metric");
    assert!(printed.starts_with("best round "), "{printed}");
    let share = number_after(&printed, "best_on_top ");
    assert!(share > 0.0 && share <= 1.0, "{printed}");
}
