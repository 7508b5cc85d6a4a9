//! What a search tries. A TOML file says for some parameters which values: a list, or a range. Lists
//! alone make a grid, every combination once; with `trials` given, combinations are drawn.
//!
//! A draw is keyed by the seed, the trial's number and the parameter, so that more trials later leave
//! the first ones as they were.

use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_train::config::{Choice, ValueKind, kind_of, value_text};
use std::collections::HashSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use xxhash_rust::xxh3::xxh3_64;

/// More combinations than that are nobody's intention.
const MOST_TRIALS: u64 = 100_000;
/// Draws of a combination before it is taken that all were tried.
const MOST_DRAWS: u64 = 1_000;

/// The parameters to try, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    keys: Vec<SearchedKey>,
    trials: Option<u64>,
    seed: u64,
}

/// A parameter that is searched.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedKey {
    /// The name under which it is printed.
    pub name: &'static str,
    /// What its values are.
    pub kind: ValueKind,
    written: String,
    place: String,
    values: Values,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// One of these.
    List(Vec<String>),
    /// Anything from here to there; with `log`, each order of magnitude is as likely as another.
    Range { min: f64, max: f64, log: bool },
}

/// A combination to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Counted from 1.
    pub number: u64,
    /// A value for every parameter that is searched, in their order.
    pub choices: Vec<Choice>,
}

impl Trial {
    /// The choices in one line.
    pub fn shown(&self) -> String {
        let choices: Vec<String> =
            self.choices.iter().map(|choice| format!("{}={}", choice.key, choice.value)).collect();
        choices.join(" ")
    }
}

impl Space {
    /// Reads a file.
    pub fn read(location: &Location) -> Result<Self> {
        let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::usage(format_args!("{location}: this is no text"), "name a TOML file"))?;
        Self::of_text(&location.to_string(), text)
    }

    fn of_text(name: &str, text: &str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let at = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            let line = before.rsplit('\n').next().unwrap_or_default();
            format!("{name}:{}:{}", 1 + before.matches('\n').count(), 1 + line.len())
        };
        let example = "write [search] and below it lines such as max_depth = [4, 6] or \
                       learning_rate = { min = 0.01, max = 0.3, log = true }";
        let file = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or(name.to_owned(), |span| at(span.start));
            Error::usage(format_args!("{place}: {}", error.message()), example)
        })?;
        let mut space = Space { keys: Vec::new(), trials: None, seed: 0 };
        let mut searched = None;
        for (key, value) in in_order(file.get_ref()) {
            let place = at(key.span().start);
            let whole = |least: u64, most: u64| {
                let number = value_text(value.get_ref()).and_then(|text| text.parse::<u64>().ok());
                number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
                    Error::usage(
                        format_args!("{place}: {} is no whole number from {least} to {most}", key.get_ref()),
                        "write trials = 20 and seed = 1, for example",
                    )
                })
            };
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("trials", _) => space.trials = Some(whole(1, MOST_TRIALS)?),
                ("seed", _) => space.seed = whole(0, i64::MAX as u64)?,
                ("search", DeValue::Table(table)) => searched = Some(table),
                (other, _) => {
                    return Err(Error::usage(
                        format_args!("{place}: {other:?} is none of trials, seed and [search]"),
                        example,
                    ));
                }
            }
        }
        for (key, value) in searched.into_iter().flat_map(in_order) {
            let key = SearchedKey::read(key.get_ref(), value.get_ref(), at(key.span().start))?;
            if let Some(twice) = space.keys.iter().find(|known| known.name == key.name) {
                return Err(Error::usage(
                    format_args!("{}: {} is given twice, before as {}", key.place, key.name, twice.written),
                    "write it once",
                ));
            }
            space.keys.push(key);
        }
        space.check(name, example)
    }

    fn check(self, name: &str, example: &str) -> Result<Self> {
        if self.keys.is_empty() {
            return Err(Error::usage(format_args!("{name}: there is nothing to search"), example));
        }
        let range = self.keys.iter().find(|key| matches!(key.values, Values::Range { .. }));
        if let (Some(range), None) = (range, self.trials) {
            return Err(Error::usage(
                format_args!("{}: a range of {} has no end of values", range.place, range.written),
                "say how many to draw: trials = 20 at the top of the file",
            ));
        }
        if self.trials.is_none() && self.grid().is_none_or(|size| size > MOST_TRIALS) {
            return Err(Error::usage(
                format_args!("{name}: the lists have more than {MOST_TRIALS} combinations"),
                "say how many to draw: trials = 20 at the top of the file",
            ));
        }
        Ok(self)
    }

    /// The parameters that are searched.
    pub fn keys(&self) -> &[SearchedKey] {
        &self.keys
    }

    /// How many combinations there are, if there is an end of them.
    fn grid(&self) -> Option<u64> {
        self.keys.iter().try_fold(1u64, |size, key| match &key.values {
            Values::List(values) => size.checked_mul(values.len() as u64),
            Values::Range { .. } => None,
        })
    }

    /// All trials.
    pub fn trials(&self) -> Vec<Trial> {
        let size = self.grid();
        match (self.trials, size) {
            (None, Some(size)) => self.whole_grid(size),
            (Some(trials), Some(size)) if trials >= size => self.whole_grid(size),
            (trials, _) => self.drawn(trials.unwrap_or(0)),
        }
    }

    /// Every combination, the last parameter changing first.
    fn whole_grid(&self, size: u64) -> Vec<Trial> {
        let trial = |number: u64| {
            let mut rest = number;
            let mut choices = Vec::new();
            for key in self.keys.iter().rev() {
                let Values::List(values) = &key.values else { continue };
                choices.push(key.choice(values[(rest % values.len() as u64) as usize].clone()));
                rest /= values.len() as u64;
            }
            choices.reverse();
            Trial { number: number + 1, choices }
        };
        (0..size).map(trial).collect()
    }

    /// Combinations drawn at random, none of them twice.
    fn drawn(&self, trials: u64) -> Vec<Trial> {
        let mut tried = HashSet::new();
        let mut all = Vec::new();
        for number in 1..=trials {
            let another = (0..MOST_DRAWS).find_map(|attempt| {
                let draw = |key: &SearchedKey| key.draw(&[self.seed, number, attempt]);
                let values: Vec<String> = self.keys.iter().map(draw).collect();
                tried.insert(values.clone()).then_some(values)
            });
            let Some(values) = another else { break }; // all that there are were drawn
            let choices = self.keys.iter().zip(values).map(|(key, value)| key.choice(value)).collect();
            all.push(Trial { number, choices });
        }
        all
    }
}

/// A table's entries in the order of the text.
fn in_order<'t, 'd>(table: &'t DeTable<'d>) -> Vec<Entry<'t, 'd>> {
    let mut entries: Vec<Entry<'t, 'd>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

type Entry<'t, 'd> = (&'t Spanned<std::borrow::Cow<'d, str>>, &'t Spanned<DeValue<'d>>);

impl SearchedKey {
    fn read(written: &str, value: &DeValue<'_>, place: String) -> Result<Self> {
        let (name, kind) = kind_of(written, &place)?;
        let fixed = [("metric", "--set metric=ndcg@10"), ("convention", "--convention letor4")];
        if let Some((_, option)) = fixed.iter().find(|(fixed, _)| *fixed == name) {
            return Err(Error::usage(
                format_args!("{place}: trials are compared by one {name}, so it cannot be searched"),
                format_args!("set it for all trials: {option}"),
            ));
        }
        let refuse = |problem: &str, remedy: &str| {
            Err(Error::usage(format_args!("{place}: {written}: {problem}"), remedy))
        };
        let values = match value {
            DeValue::Array(values) if values.is_empty() => {
                return refuse("the list is empty", "write the values to try");
            }
            DeValue::Array(values) => {
                let texts: Vec<Option<String>> =
                    values.iter().map(|value| value_text(value.get_ref())).collect();
                let mut met = HashSet::new();
                match texts.into_iter().collect::<Option<Vec<String>>>() {
                    Some(texts) => {
                        Values::List(texts.into_iter().filter(|text| met.insert(text.clone())).collect())
                    }
                    None => return refuse("a value of the list is a table", "write plain values"),
                }
            }
            DeValue::Table(range) => {
                let number = |key: &str| {
                    range.get(key).and_then(|value| value_text(value.get_ref())?.parse::<f64>().ok())
                };
                let log = range.get("log").is_some_and(|log| matches!(log.get_ref(), DeValue::Boolean(true)));
                let odd =
                    range.iter().find(|(key, _)| !["min", "max", "log"].contains(&key.get_ref().as_ref()));
                match (number("min"), number("max"), kind) {
                    _ if odd.is_some() => {
                        return refuse("a range has min, max and log only", "write { min = 1, max = 9 }");
                    }
                    (_, _, ValueKind::Word) => {
                        return refuse("its values are no numbers of a range", "write a list of values");
                    }
                    (Some(min), Some(max), _) => match range_fault(min, max, log, kind) {
                        Some((problem, remedy)) => return refuse(problem, remedy),
                        None => Values::Range { min, max, log },
                    },
                    _ => return refuse("a range needs numbers min and max", "write { min = 1, max = 9 }"),
                }
            }
            other => Values::List(value_text(other).into_iter().collect()),
        };
        Ok(SearchedKey { name, kind, written: written.to_owned(), place, values })
    }

    fn choice(&self, value: String) -> Choice {
        Choice { key: self.written.clone(), value, place: self.place.clone() }
    }

    /// A value, drawn by a key.
    fn draw(&self, key: &[u64; 3]) -> String {
        let uniform = Stream::new(&[key[0], key[1], key[2], xxh3_64(self.name.as_bytes())]).uniform();
        match &self.values {
            Values::List(values) => {
                let place = (uniform * values.len() as f64) as usize;
                values[place.min(values.len() - 1)].clone()
            }
            Values::Range { min, max, log } => {
                let whole = self.kind == ValueKind::Whole;
                // Every whole number is as wide as the others.
                let end = if whole { max + 1.0 } else { *max };
                let value = match log {
                    true => libm::exp(libm::log(*min) + uniform * (libm::log(end) - libm::log(*min))),
                    false => min + uniform * (end - min),
                };
                if whole {
                    format!("{}", value.floor().clamp(*min, *max))
                } else {
                    rounded(value, *min, *max)
                }
            }
        }
    }
}

/// What is wrong with a range, and what to do about it.
fn range_fault(min: f64, max: f64, log: bool, kind: ValueKind) -> Option<(&'static str, &'static str)> {
    if !(min.is_finite() && max.is_finite() && min <= max) {
        Some(("min is above max", "write the lower number as min"))
    } else if log && min <= 0.0 {
        Some(("with log, min must be above 0", "raise min, or leave out log"))
    } else if kind == ValueKind::Whole && (min.fract() != 0.0 || max.fract() != 0.0) {
        Some(("its values are whole numbers", "write whole numbers as min and max"))
    } else {
        None
    }
}

/// A number in six digits that matter, which people can read and write again.
fn rounded(value: f64, min: f64, max: f64) -> String {
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{:?}", short.clamp(min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(text: &str) -> Space {
        Space::of_text("s.toml", text).unwrap()
    }

    fn shown(space: &Space) -> Vec<String> {
        space.trials().iter().map(Trial::shown).collect()
    }

    #[test]
    fn lists_make_a_grid() {
        let text = "[search]\nmax_depth = [4, 6]\nlr = [0.1, 0.2, 0.1]\nmissing = 'zero'\n";
        let expected = [
            "max_depth=4 lr=0.1 missing=zero",
            "max_depth=4 lr=0.2 missing=zero",
            "max_depth=6 lr=0.1 missing=zero",
            "max_depth=6 lr=0.2 missing=zero",
        ];
        assert_eq!(shown(&space(text)), expected);
        let drawn = shown(&space(&format!("trials = 3\nseed = 5\n{text}")));
        assert_eq!(drawn.len(), 3);
        assert!(drawn.iter().all(|trial| expected.contains(&trial.as_str())), "{drawn:?}");
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 3, "none is drawn twice");
        assert_eq!(shown(&space(&format!("trials = 9\n{text}"))), expected, "all that there are");
    }

    #[test]
    fn ranges_are_drawn_within_their_bounds_and_more_trials_keep_the_first() {
        let text = "[search]\nlearning_rate = { min = 0.001, max = 1.0, log = true }\n\
                    num_leaves = { min = 2, max = 5 }\nmin_data_in_leaf = { min = 1, max = 1000, log = true }\n";
        let all = space(&format!("trials = 2000\n{text}")).trials();
        assert_eq!(all.len(), 2000);
        let value = |trial: &Trial, key: usize| trial.choices[key].value.parse::<f64>().unwrap();
        assert!(all.iter().all(|trial| (0.001..=1.0).contains(&value(trial, 0))));
        // A third of them in each order of magnitude.
        for (low, high) in [(0.001, 0.01), (0.01, 0.1), (0.1, 1.0)] {
            let share = all.iter().filter(|trial| (low..high).contains(&value(trial, 0))).count();
            assert!((560..770).contains(&share), "{low}: {share}");
        }
        for leaves in 2..=5 {
            let share = all.iter().filter(|trial| trial.choices[1].value == leaves.to_string()).count();
            assert!((430..570).contains(&share), "{leaves}: {share}");
        }
        assert!(all.iter().all(|trial| (1.0..=1000.0).contains(&value(trial, 2))));
        assert_eq!(space(&format!("trials = 7\n{text}")).trials(), all[..7]);
        assert_ne!(space(&format!("trials = 7\nseed = 1\n{text}")).trials(), all[..7]);
    }

    #[test]
    fn a_small_space_is_drawn_to_its_end() {
        let text = "trials = 50\n[search]\nmax_depth = { min = 3, max = 5 }\n";
        let mut drawn = shown(&space(text));
        drawn.sort();
        assert_eq!(drawn, ["max_depth=3", "max_depth=4", "max_depth=5"]);
    }

    #[test]
    fn faults_are_pointed_at() {
        for (text, problem) in [
            ("[search]\nlearnig_rate = [1]", "s.toml:2:1: unknown parameter \"learnig_rate\""),
            ("[search]\nmetric = ['err', 'rmse']", "s.toml:2:1: trials are compared by one metric"),
            ("[search]\nconvention = ['trec', 'mslr']", "s.toml:2:1: trials are compared by one convention"),
            ("", "s.toml: there is nothing to search"),
            ("[search]", "s.toml: there is nothing to search"),
            ("[keys]\nlr = [1]", "s.toml:1:2: \"keys\" is none of trials, seed and [search]"),
            ("lr = [0.1]", "s.toml:1:1: \"lr\" is none of"),
            ("trials = 0\n[search]\nlr = [1]", "s.toml:1:1: trials is no whole number from 1"),
            ("trials = 'x'\n[search]\nlr = [1]", "s.toml:1:1: trials is no whole number"),
            ("[search]\nlr = []", "s.toml:2:1: lr: the list is empty"),
            ("[search]\nlr = { min = 0.1, max = 1 }", "s.toml:2:1: a range of lr has no end"),
            ("trials = 5\n[search]\nlr = { min = 1, max = 0.1 }", "s.toml:3:1: lr: min is above max"),
            ("trials = 5\n[search]\nlr = { min = 1 }", "s.toml:3:1: lr: a range needs numbers min and max"),
            ("trials = 5\n[search]\nlr = { min = 0, max = 1, log = true }", "s.toml:3:1: lr: with log, min"),
            ("trials = 5\n[search]\nlr = { min = 1, max = 2, step = 3 }", "s.toml:3:1: lr: a range has min"),
            (
                "trials = 5\n[search]\nmissing = { min = 1, max = 2 }",
                "s.toml:3:1: missing: its values are no",
            ),
            (
                "trials = 5\n[search]\ndepth = { min = 1.5, max = 2 }",
                "s.toml:3:1: depth: its values are whole",
            ),
            ("[search]\nlr = [0.1]\neta = [0.2]", "s.toml:3:1: learning_rate is given twice, before as lr"),
            ("[search\nlr = 1", "s.toml:1:"),
        ] {
            let error = Space::of_text("s.toml", text).unwrap_err();
            assert!(error.to_string().starts_with(problem), "{text:?}: {error}");
            assert!(error.remedy().is_some() && error.exit_code() == 2, "{text:?}");
        }
    }
}
