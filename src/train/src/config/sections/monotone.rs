//! Monotone constraints: features whose values may change scores in one direction only.

use super::super::keys::{Key, KeyKind};
use super::super::learners::{BOOST, CriterionName};
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::value::{ValueError, quoted};
use super::{MissingPolicy, ObjectiveName, Section};
use planetree_base::error::Result;
use planetree_base::size::counted;
use planetree_base::suggest;
use std::collections::BTreeMap;
use std::fmt;

/// How scores may change when the values of a feature rise and those of all other features stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Scores never fall.
    Increasing,
    /// Scores never rise.
    Decreasing,
}

impl Direction {
    /// Returns the opposite direction.
    pub fn reversed(self) -> Self {
        match self {
            Direction::Increasing => Direction::Decreasing,
            Direction::Decreasing => Direction::Increasing,
        }
    }

    /// Returns whether scores may be these, given in ascending order of the feature's values.
    pub fn allows(self, lower: f64, upper: f64) -> bool {
        match self {
            Direction::Increasing => lower <= upper,
            Direction::Decreasing => lower >= upper,
        }
    }
}

/// The constraint of a feature; `None` for no constraint.
pub(crate) type Constraint = Option<Direction>;

fn sign(constraint: Constraint) -> &'static str {
    match constraint {
        None => "0",
        Some(Direction::Increasing) => "1",
        Some(Direction::Decreasing) => "-1",
    }
}

/// The monotone constraints of features.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MonotoneConstraints {
    /// There are none.
    #[default]
    None,
    /// The constraint of each feature, in the order of the features.
    ByOrder(Vec<Constraint>),
    /// The constraints of some features.
    ByName(BTreeMap<String, Constraint>),
}

impl MonotoneConstraints {
    /// Returns whether no feature is constrained.
    pub fn are_none(&self) -> bool {
        match self {
            MonotoneConstraints::None => true,
            MonotoneConstraints::ByOrder(all) => all.iter().all(Option::is_none),
            MonotoneConstraints::ByName(all) => all.values().all(Option::is_none),
        }
    }

    /// Returns the constraint of each feature, if they are given in the order of the features and there is any.
    pub fn in_order(&self) -> Option<&[Constraint]> {
        match self {
            MonotoneConstraints::ByOrder(all) if !self.are_none() => Some(all),
            _ => None,
        }
    }

    /// Returns the constraint of each feature, given the names of all. The error is a problem and its remedy.
    pub fn of_features(&self, names: &[&str]) -> std::result::Result<Vec<Constraint>, (String, String)> {
        match self {
            MonotoneConstraints::None => Ok(vec![None; names.len()]),
            MonotoneConstraints::ByOrder(all) if all.len() == names.len() => Ok(all.clone()),
            MonotoneConstraints::ByOrder(all) => Err((
                format!(
                    "{}, but there are {}",
                    counted(all.len() as u64, "number", "numbers"),
                    counted(names.len() as u64, "feature", "features")
                ),
                format!(
                    "list one number per feature (0 for no constraint), or name features: {}=1",
                    names.first().copied().unwrap_or("f1")
                ),
            )),
            MonotoneConstraints::ByName(all) => {
                let mut constraints = vec![None; names.len()];
                for (name, constraint) in all {
                    let Some(place) = names.iter().position(|known| known == name) else {
                        let near = suggest::nearest(name, names.iter().copied());
                        let remedy = suggest::did_you_mean(&near, "planetree describe lists the features");
                        return Err((format!("no such feature: {name}"), remedy));
                    };
                    constraints[place] = *constraint;
                }
                Ok(constraints)
            }
        }
    }

    /// Returns the constraints in the opposite directions.
    pub fn reversed(&self) -> Self {
        let reverse = |constraint: &Constraint| constraint.map(Direction::reversed);
        match self {
            MonotoneConstraints::None => MonotoneConstraints::None,
            MonotoneConstraints::ByOrder(all) => {
                MonotoneConstraints::ByOrder(all.iter().map(reverse).collect())
            }
            MonotoneConstraints::ByName(all) => MonotoneConstraints::ByName(
                all.iter().map(|(name, constraint)| (name.clone(), reverse(constraint))).collect(),
            ),
        }
    }

    /// Parses constraints: `1,0,-1`, `(1,0,-1)`, `f1=1,f7=-1` or `{"f1": 1, "f7": -1}`. Returns `None` as the error if the
    /// text is none of these.
    fn parse(text: &str) -> std::result::Result<Self, Option<ValueError>> {
        let inner = without_brackets(text);
        if inner.is_empty() || inner.eq_ignore_ascii_case(NONE) {
            return Ok(MonotoneConstraints::None);
        }
        let entries = entries(inner).ok_or(None)?;
        let (mut in_order, mut by_name) = (Vec::new(), BTreeMap::new());
        for (name, value) in entries {
            let constraint = match value.strip_suffix(".0").unwrap_or(value) {
                "1" | "+1" => Some(Direction::Increasing),
                "-1" => Some(Direction::Decreasing),
                "0" => None,
                _ => {
                    let found = if value.is_empty() { "nothing" } else { value };
                    let of_name = name.map_or_else(String::new, |name| format!(" for {name}"));
                    return Err(fault(
                        format!("found {found}{of_name}"),
                        "write 1 (increasing), -1 (decreasing) or 0 (no constraint)",
                    ));
                }
            };
            match name {
                None => in_order.push(constraint),
                Some(name) => {
                    if by_name.contains_key(&name) {
                        return Err(fault(format!("{name} is named twice"), "name every feature once"));
                    }
                    by_name.insert(name, constraint);
                }
            }
        }
        match (in_order.is_empty(), by_name.is_empty()) {
            (false, true) => Ok(MonotoneConstraints::ByOrder(in_order)),
            (true, false) => Ok(MonotoneConstraints::ByName(by_name)),
            _ => Err(fault(
                "some numbers have names and others have none".to_owned(),
                "name all features, or list one number per feature",
            )),
        }
    }
}

impl fmt::Display for MonotoneConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: Vec<String> = match self {
            MonotoneConstraints::None => return f.write_str(NONE),
            MonotoneConstraints::ByOrder(all) => {
                all.iter().map(|constraint| sign(*constraint).to_owned()).collect()
            }
            MonotoneConstraints::ByName(all) => all
                .iter()
                .map(|(name, constraint)| match is_plain(name) {
                    true => format!("{name}={}", sign(*constraint)),
                    false => format!("{}={}", quoted(name), sign(*constraint)),
                })
                .collect(),
        };
        f.write_str(&listed.join(","))
    }
}

fn fault(problem: String, remedy: &str) -> Option<ValueError> {
    Some(ValueError { problem, remedy: remedy.to_owned() })
}

/// The value for no constraints.
const NONE: &str = "none";

/// Returns whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let is_special = |letter: char| letter.is_whitespace() || ",=:()[]{}\"'\\".contains(letter);
    !name.is_empty() && !name.contains(is_special)
}

/// Removes the brackets around a list.
fn without_brackets(text: &str) -> &str {
    let text = text.trim();
    let pairs = [('(', ')'), ('[', ']'), ('{', '}')];
    let inner = pairs.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    inner.unwrap_or(text).trim()
}

/// Divides a list at its commas into names, if there are any, and values. Returns `None` if it is no such list.
fn entries(text: &str) -> Option<Vec<(Option<String>, &str)>> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = closing_quote(rest, quote)?;
                let name = match quote {
                    '"' => serde_json::from_str(&rest[..end]).ok()?,
                    _ => rest[1..end - 1].to_owned(),
                };
                (Some(name), rest[end..].trim_start().strip_prefix(['=', ':'])?)
            }
            _ => match rest.split(',').next()?.rsplit_once(['=', ':']) {
                Some((name, _)) => (Some(name.trim().to_owned()), &rest[name.len() + 1..]),
                None => (None, rest),
            },
        };
        let (value, others) = after.split_once(',').unwrap_or((after, ""));
        if name.as_ref().is_some_and(String::is_empty) {
            return None;
        }
        all.push((name, value.trim()));
        rest = others.trim_start(); // a comma may follow the last entry
    }
    Some(all)
}

/// Returns the end of a quoted name at the beginning of a text.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            letter if letter == quote => return Some(place + 1),
            _ => {}
        }
    }
    None
}

/// Monotone constraints of trees.
pub(crate) static MONOTONE: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[
    Key {
        name: "monotone_constraints",
        aliases: &["mc", "monotone_constraint", "monotonic_cst"],
        kind: KeyKind::Custom {
            expected: |_| "none, one of 1, -1 and 0 per feature such as 1,0,-1, or by name such as f1=1,f7=-1",
            set: |raw, written| {
                raw.tree.monotone = MonotoneConstraints::parse(written.text)?;
                Ok(())
            },
            get: |raw| quoted(&raw.tree.monotone.to_string()),
        },
        default: NONE,
        omits_default: true,
        accepts_table: true,
        help: "Trees: direction in which scores may change when the values of a feature rise, 1 (they never fall), -1 (they \
               never rise) or 0 (no constraint)",
        ..Key::PLAIN
    },
    Key {
        name: "monotone_constraints_method",
        aliases: &["monotone_constraining_method", "mc_method"],
        kind: KeyKind::Agreed { values: &["basic"], does: "the basic method" },
        ..Key::PLAIN
    },
    Key {
        name: "monotone_penalty",
        aliases: &["monotone_splits_penalty", "ms_penalty", "mc_penalty"],
        kind: KeyKind::Agreed { values: &["0", "0.0"], does: "no penalty on splits of constrained features" },
        ..Key::PLAIN
    },
];

/// Rejects constraints that the trees would not keep.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.tree.monotone.are_none() {
        return Ok(());
    }
    let is_boosted = raw.learner == &BOOST;
    let (problem, remedy) = if is_boosted && raw.objective.name == ObjectiveName::SoftmaxClasses {
        (
            "objective=softmax_classes: the score follows from the trees of all classes together, which constraints of \
             single trees do not order",
            "remove it, or set target=ordinal in place of the objective",
        )
    } else if !is_boosted && (raw.forest.criterion == CriterionName::Ndcg || raw.listwise.levels.is_some()) {
        (
            "listwise splits do not support constraints",
            "remove it, or set criterion=variance and listwise_levels=0",
        )
    } else if !is_boosted
        && raw.forest.pairs_per_document.is_some()
        && matches!(raw.shared.missing, MissingPolicy::Low | MissingPolicy::High)
    {
        (
            "missing=low and missing=high give missing values no place in the order of pairs: a difference is missing \
             whichever of its two values is",
            "set missing=learned or missing=zero, or remove it",
        )
    } else {
        return Ok(());
    };
    Err(settings.fault("monotone_constraints", problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Decreasing, Increasing};
    use proptest::prelude::*;

    fn parsed(text: &str) -> MonotoneConstraints {
        MonotoneConstraints::parse(text).unwrap_or_else(|_| panic!("{text}"))
    }

    fn problem(text: &str) -> Option<String> {
        MonotoneConstraints::parse(text).err().unwrap().map(|fault| fault.problem)
    }

    #[test]
    fn constraints_have_the_forms_of_other_tools() {
        let by_order = MonotoneConstraints::ByOrder(vec![Some(Increasing), None, Some(Decreasing)]);
        for text in ["1,0,-1", "(1,0,-1)", " [ +1 , 0 , -1 ] ", "1.0,0.0,-1.0", "(1,0,-1,)"] {
            assert_eq!(parsed(text), by_order, "{text}");
        }
        let names = [("f1".to_owned(), Some(Increasing)), ("f7".to_owned(), Some(Decreasing))];
        let by_name = MonotoneConstraints::ByName(names.into_iter().collect());
        for text in ["f1=1,f7=-1", "f7:-1, f1:1", "{\"f1\": 1, \"f7\": -1}", "{'f1': 1, 'f7': -1}"] {
            assert_eq!(parsed(text), by_name, "{text}");
        }
        for text in ["none", "", "()", "{}"] {
            assert_eq!(parsed(text), MonotoneConstraints::None, "{text}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for (text, expected) in [
            ("1,2,0", "found 2"),
            ("f1=1,f2=up", "found up for f2"),
            ("f1=1,f1=-1", "f1 is named twice"),
            ("1,f2=1", "some numbers have names"),
            ("1,,0", "found nothing"),
            ("f1=", "found nothing for f1"),
        ] {
            assert!(problem(text).unwrap().starts_with(expected), "{text}: {:?}", problem(text));
        }
        assert_eq!((problem("\"f1=1"), problem("=1")), (None, None));
    }

    #[test]
    fn constraints_are_those_of_the_named_features() {
        let names = ["clicks", "spam score", "age"];
        let of = |text: &str| parsed(text).of_features(&names);
        let expected = vec![Some(Increasing), Some(Decreasing), None];
        assert_eq!(of("spam score=-1,clicks=1").unwrap(), expected);
        assert_eq!(of("1,-1,0").unwrap(), expected);
        let (problem, remedy) = of("click=1").unwrap_err();
        assert!(problem.contains("no such feature: click") && remedy.contains("clicks"), "{remedy}");
        assert!(of("1,-1").unwrap_err().0.contains("2 numbers, but there are 3 features"));
        let reversed = parsed("1,-1,0").reversed();
        assert_eq!(reversed, parsed("-1,1,0"));
        assert_eq!(parsed("clicks=1").reversed(), parsed("clicks=-1"));
        assert!(parsed("0,0").are_none() && parsed("0,0").in_order().is_none());
    }

    proptest! {
        #[test]
        fn constraints_are_parsed_as_printed(
            names in prop::collection::btree_map("[a-c,=: \"'\\\\(){}\\[\\]é]{1,6}", 0usize..3, 0..4),
            signs in prop::collection::vec(0usize..3, 1..5),
        ) {
            let constraint = |sign: usize| [None, Some(Increasing), Some(Decreasing)][sign];
            let named = names.into_iter().map(|(name, sign)| (name, constraint(sign))).collect::<BTreeMap<_, _>>();
            let by_name = match named.is_empty() {
                true => MonotoneConstraints::None,
                false => MonotoneConstraints::ByName(named),
            };
            let by_order = MonotoneConstraints::ByOrder(signs.into_iter().map(constraint).collect());
            for constraints in [by_name, by_order] {
                prop_assert_eq!(&parsed(&constraints.to_string()), &constraints);
            }
        }
    }
}
