//! Formats all parameters for `planetree train --help`.

use super::keys::{KeyKind, keys};
use super::learners::LEARNERS;
use super::plan_keys::PLAN_KEYS;

const WIDTH: usize = 100;
const INDENT: usize = 24;

/// Returns the table of parameters with ranges, defaults and aliases, at most 100 columns wide.
pub fn help_table() -> String {
    let mut text = String::new();
    let mut agreed = Vec::new();
    for key in keys() {
        if matches!(key.kind, KeyKind::Agreed { .. }) {
            agreed.push(key.name);
            continue;
        }
        let mut facts = vec![key.expected(key.name)];
        if !key.default.is_empty() {
            facts.push(format!("default {}", key.default));
        }
        if !key.aliases.is_empty() {
            facts.push(format!("also {}", key.aliases.join(", ")));
        }
        let begin = format!("  {:<width$}", key.name, width = INDENT - 2);
        match key.kind {
            KeyKind::Learner => wrap(&mut text, &begin, &format!("{}: {}", key.help, learners())),
            _ => wrap(&mut text, &begin, key.help),
        }
        wrap(&mut text, &" ".repeat(INDENT), &format!("[{}]", facts.join("; ")));
    }
    for key in &PLAN_KEYS {
        wrap(&mut text, &format!("  {:<width$}", key.name, width = INDENT - 2), key.help);
        let facts = format!("[{}; default {}]", key.expected, key.default);
        wrap(&mut text, &" ".repeat(INDENT), &facts);
    }
    let stages = "stage.N.KEY sets a parameter of stage N, such as stage.2.num_trees=500.";
    wrap(&mut text, "  ", stages);
    let rest = format!(
        "{} are accepted if their value matches planetree's fixed behaviour, such as a new sample of rows for every tree.",
        agreed.join(", ")
    );
    wrap(&mut text, "  ", &rest);
    text
}

/// Lists all learners.
fn learners() -> String {
    let all: Vec<String> =
        LEARNERS.iter().map(|learner| format!("{} ({})", learner.name, learner.summary)).collect();
    let (last, others) = all.split_last().expect("there are learners");
    format!("{} or {last}", others.join(", "))
}

/// Appends `begin` and `words` to the text, wrapped. Continuation lines are indented by the length of `begin`.
pub fn wrap(text: &mut String, begin: &str, words: &str) {
    let mut line = begin.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(begin.len());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_name_within_the_line_width() {
        let help = help_table();
        for key in keys() {
            assert!(help.contains(key.name), "{}", key.name);
            if !matches!(key.kind, KeyKind::Agreed { .. }) {
                key.names().for_each(|name| assert!(help.contains(name), "{name}"));
            }
        }
        PLAN_KEYS.iter().for_each(|key| assert!(help.contains(key.name), "{}", key.name));
        assert!(help.lines().all(|line| line.len() <= WIDTH), "{help}");
    }
}
