//! Reads a search space from a TOML file, which has a list or a range of values for each searched parameter. If there
//! are only lists, every combination of their values is tried once. With the key `trials`, combinations are drawn at
//! random.
//!
//! A random draw depends only on the seed, the number of the trial and the parameter, so that increasing `trials`
//! adds trials without changing the earlier ones.

use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_train::config::{Choice, ValueKind, kind_of, value_text};
use std::collections::HashSet;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of trials. A larger number is assumed to be a mistake.
const MAX_TRIALS: u64 = 100_000;
/// Number of draws without a new combination after which the space counts as exhausted.
const MAX_DRAWS: u64 = 1_000;

/// The parameters to search, and how to draw their values.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSpace {
    keys: Vec<SearchedKey>,
    trials: Option<u64>,
    seed: u64,
}

/// A searched parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedKey {
    /// Canonical name of the parameter.
    pub name: &'static str,
    /// Type of the values.
    pub kind: ValueKind,
    written: String,
    place: String,
    values: SearchValues,
}

#[derive(Debug, Clone, PartialEq)]
enum SearchValues {
    /// A list of values.
    List(Vec<String>),
    /// All values from `min` to `max`, drawn uniformly or, with `log`, uniformly in the logarithm.
    Range { min: f64, max: f64, log: bool },
}

/// A combination of parameter values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Number of the trial, counted from 1.
    pub number: u64,
    /// One value for each searched parameter, in the order of the file.
    pub choices: Vec<Choice>,
}

impl Trial {
    /// Returns the parameter values as one line of text, for messages.
    pub fn shown(&self) -> String {
        let choices: Vec<String> =
            self.choices.iter().map(|choice| format!("{}={}", choice.key, choice.value)).collect();
        choices.join(" ")
    }
}

impl SearchSpace {
    /// Reads a search space from a TOML file.
    pub fn read(location: &Location) -> Result<Self> {
        let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::usage(format_args!("{location}: not valid UTF-8"), "choose a TOML file"))?;
        Self::of_text(&location.to_string(), text)
    }

    fn of_text(name: &str, text: &str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let at = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            let line = before.rsplit('\n').next().unwrap_or_default();
            format!("{name}:{}:{}", 1 + before.matches('\n').count(), 1 + line.len())
        };
        let example = "write a [search] section with lines such as max_depth = [4, 6] or \
                       learning_rate = { min = 0.01, max = 0.3, log = true }";
        let file = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or(name.to_owned(), |span| at(span.start));
            Error::usage(format_args!("{place}: {}", error.message()), example)
        })?;
        let mut space = SearchSpace { keys: Vec::new(), trials: None, seed: 0 };
        let mut searched = None;
        for (key, value) in in_order(file.get_ref()) {
            let place = at(key.span().start);
            let integer = |min: u64, max: u64| {
                let number = value_text(value.get_ref()).and_then(|text| text.parse::<u64>().ok());
                number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
                    Error::usage(
                        format_args!("{place}: {} must be an integer from {min} to {max}", key.get_ref()),
                        "for example: trials = 20",
                    )
                })
            };
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("trials", _) => space.trials = Some(integer(1, MAX_TRIALS)?),
                ("seed", _) => space.seed = integer(0, i64::MAX as u64)?,
                ("search", DeValue::Table(table)) => searched = Some(table),
                (other, _) => {
                    return Err(Error::usage(
                        format_args!("{place}: unknown key {other:?}, expected trials, seed or [search]"),
                        example,
                    ));
                }
            }
        }
        for (key, value) in searched.into_iter().flat_map(in_order) {
            let key = SearchedKey::read(key.get_ref(), value.get_ref(), at(key.span().start))?;
            if let Some(twice) = space.keys.iter().find(|known| known.name == key.name) {
                return Err(Error::usage(
                    format_args!(
                        "{}: duplicate parameter {}, already given as {}",
                        key.place, key.name, twice.written
                    ),
                    "remove one of them",
                ));
            }
            space.keys.push(key);
        }
        space.check(name, example)
    }

    fn check(self, name: &str, example: &str) -> Result<Self> {
        if self.keys.is_empty() {
            return Err(Error::usage(format_args!("{name}: nothing to search"), example));
        }
        let range = self.keys.iter().find(|key| matches!(key.values, SearchValues::Range { .. }));
        if let (Some(range), None) = (range, self.trials) {
            return Err(Error::usage(
                format_args!("{}: the range of {} needs a number of trials", range.place, range.written),
                "write trials = 20 at the top of the file",
            ));
        }
        if self.trials.is_none() && self.grid_size().is_none_or(|size| size > MAX_TRIALS) {
            return Err(Error::usage(
                format_args!("{name}: more than {MAX_TRIALS} combinations"),
                "write trials = 20 at the top of the file",
            ));
        }
        Ok(self)
    }

    /// Returns the searched parameters, in the order of the file.
    pub fn keys(&self) -> &[SearchedKey] {
        &self.keys
    }

    /// Returns the number of combinations of values; `None` if a parameter has a range or if the number overflows.
    fn grid_size(&self) -> Option<u64> {
        self.keys.iter().try_fold(1u64, |size, key| match &key.values {
            SearchValues::List(values) => size.checked_mul(values.len() as u64),
            SearchValues::Range { .. } => None,
        })
    }

    /// Returns the trials: all combinations, or random draws.
    pub fn trials(&self) -> Vec<Trial> {
        let size = self.grid_size();
        match (self.trials, size) {
            (None, Some(size)) => self.whole_grid(size),
            (Some(trials), Some(size)) if trials >= size => self.whole_grid(size),
            (trials, _) => self.drawn(trials.unwrap_or(0)),
        }
    }

    /// Returns every combination of the listed values. The last parameter varies fastest.
    fn whole_grid(&self, size: u64) -> Vec<Trial> {
        let trial = |number: u64| {
            let mut rest = number;
            let mut choices = Vec::new();
            for key in self.keys.iter().rev() {
                let SearchValues::List(values) = &key.values else { continue };
                choices.push(key.choice(values[(rest % values.len() as u64) as usize].clone()));
                rest /= values.len() as u64;
            }
            choices.reverse();
            Trial { number: number + 1, choices }
        };
        (0..size).map(trial).collect()
    }

    /// Draws random combinations without repetition.
    fn drawn(&self, trials: u64) -> Vec<Trial> {
        let mut tried = HashSet::new();
        let mut all = Vec::new();
        for number in 1..=trials {
            let drawn = (0..MAX_DRAWS).find_map(|attempt| {
                let draw = |key: &SearchedKey| key.draw(&[self.seed, number, attempt]);
                let values: Vec<String> = self.keys.iter().map(draw).collect();
                tried.insert(values.clone()).then_some(values)
            });
            let Some(values) = drawn else { break }; // the space is exhausted
            let choices = self.keys.iter().zip(values).map(|(key, value)| key.choice(value)).collect();
            all.push(Trial { number, choices });
        }
        all
    }
}

/// Returns the entries of a table in the order of the file.
fn in_order<'t, 'd>(table: &'t DeTable<'d>) -> Vec<TomlEntry<'t, 'd>> {
    let mut entries: Vec<TomlEntry<'t, 'd>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

type TomlEntry<'t, 'd> = (&'t Spanned<std::borrow::Cow<'d, str>>, &'t Spanned<DeValue<'d>>);

impl SearchedKey {
    fn read(written: &str, value: &DeValue<'_>, place: String) -> Result<Self> {
        let (name, kind) = kind_of(written, &place)?;
        let fixed = [("metric", "--set metric=ndcg@10"), ("convention", "--convention letor4")];
        if let Some((_, option)) = fixed.iter().find(|(fixed, _)| *fixed == name) {
            return Err(Error::usage(
                format_args!("{place}: {name} cannot be searched: all trials must use the same {name}"),
                format_args!("set it for all trials with {option}"),
            ));
        }
        let invalid = |problem: &str, remedy: &str| {
            Err(Error::usage(format_args!("{place}: {written}: {problem}"), remedy))
        };
        let values = match value {
            DeValue::Array(values) if values.is_empty() => {
                return invalid("empty list", "list the values to try");
            }
            DeValue::Array(values) => {
                let texts: Vec<Option<String>> =
                    values.iter().map(|value| value_text(value.get_ref())).collect();
                let mut seen = HashSet::new();
                match texts.into_iter().collect::<Option<Vec<String>>>() {
                    Some(texts) => SearchValues::List(
                        texts.into_iter().filter(|text| seen.insert(text.clone())).collect(),
                    ),
                    None => return invalid("the list contains a table", "write plain values"),
                }
            }
            DeValue::Table(range) => {
                let number = |key: &str| {
                    range.get(key).and_then(|value| value_text(value.get_ref())?.parse::<f64>().ok())
                };
                let log = range.get("log").is_some_and(|log| matches!(log.get_ref(), DeValue::Boolean(true)));
                let unknown =
                    range.iter().find(|(key, _)| !["min", "max", "log"].contains(&key.get_ref().as_ref()));
                match (number("min"), number("max"), kind) {
                    _ if unknown.is_some() => {
                        return invalid("a range has only min, max and log", "write { min = 1, max = 9 }");
                    }
                    (_, _, ValueKind::Word) => {
                        return invalid("not numeric, so it cannot have a range", "write a list of values");
                    }
                    (Some(min), Some(max), _) => match range_fault(min, max, log, kind) {
                        Some((problem, remedy)) => return invalid(problem, remedy),
                        None => SearchValues::Range { min, max, log },
                    },
                    _ => return invalid("a range needs numeric min and max", "write { min = 1, max = 9 }"),
                }
            }
            other => SearchValues::List(value_text(other).into_iter().collect()),
        };
        Ok(SearchedKey { name, kind, written: written.to_owned(), place, values })
    }

    fn choice(&self, value: String) -> Choice {
        Choice { key: self.written.clone(), value, place: self.place.clone() }
    }

    /// Draws a value of the parameter. The value depends only on the random key and the name of the parameter.
    fn draw(&self, key: &[u64; 3]) -> String {
        let uniform = Stream::new(&[key[0], key[1], key[2], xxh3_64(self.name.as_bytes())]).uniform();
        match &self.values {
            SearchValues::List(values) => {
                let index = (uniform * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            SearchValues::Range { min, max, log } => {
                let is_whole = self.kind == ValueKind::Whole;
                // Integers are drawn as real numbers and rounded down, so the range is extended by 1 to include the
                // maximum.
                let end = if is_whole { max + 1.0 } else { *max };
                let value = match log {
                    true => libm::exp(libm::log(*min) + uniform * (libm::log(end) - libm::log(*min))),
                    false => min + uniform * (end - min),
                };
                if is_whole {
                    format!("{}", value.floor().clamp(*min, *max))
                } else {
                    rounded(value, *min, *max)
                }
            }
        }
    }
}

/// If a range is invalid, returns the problem and the remedy.
fn range_fault(min: f64, max: f64, log: bool, kind: ValueKind) -> Option<(&'static str, &'static str)> {
    if !(min.is_finite() && max.is_finite() && min <= max) {
        Some(("min is greater than max", "swap min and max"))
    } else if log && min <= 0.0 {
        Some(("with log, min must be greater than 0", "raise min, or remove log"))
    } else if kind == ValueKind::Whole && (min.fract() != 0.0 || max.fract() != 0.0) {
        Some(("not an integer range", "write integers as min and max"))
    } else {
        None
    }
}

/// Rounds to six significant digits, so that the value is easy to read and copy.
fn rounded(value: f64, min: f64, max: f64) -> String {
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{:?}", short.clamp(min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(text: &str) -> SearchSpace {
        SearchSpace::of_text("s.toml", text).unwrap()
    }

    fn shown(space: &SearchSpace) -> Vec<String> {
        space.trials().iter().map(Trial::shown).collect()
    }

    #[test]
    fn lists_form_a_grid() {
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
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 3, "no combination twice");
        assert_eq!(shown(&space(&format!("trials = 9\n{text}"))), expected, "the whole grid");
    }

    #[test]
    fn draws_are_within_bounds_and_independent_of_the_number_of_trials() {
        let text = "[search]\nlearning_rate = { min = 0.001, max = 1.0, log = true }\n\
                    num_leaves = { min = 2, max = 5 }\nmin_data_in_leaf = { min = 1, max = 1000, log = true }\n";
        let all = space(&format!("trials = 2000\n{text}")).trials();
        assert_eq!(all.len(), 2000);
        let value = |trial: &Trial, key: usize| trial.choices[key].value.parse::<f64>().unwrap();
        assert!(all.iter().all(|trial| (0.001..=1.0).contains(&value(trial, 0))));
        // About a third of the draws must be in each order of magnitude.
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
    fn a_small_space_is_exhausted() {
        let text = "trials = 50\n[search]\nmax_depth = { min = 3, max = 5 }\n";
        let mut drawn = shown(&space(text));
        drawn.sort();
        assert_eq!(drawn, ["max_depth=3", "max_depth=4", "max_depth=5"]);
    }

    #[test]
    fn errors_name_their_position() {
        for (text, problem) in [
            ("[search]\nlearnig_rate = [1]", "s.toml:2:1: unknown parameter \"learnig_rate\""),
            ("[search]\nmetric = ['err', 'rmse']", "s.toml:2:1: metric cannot be searched"),
            ("[search]\nconvention = ['trec', 'mslr']", "s.toml:2:1: convention cannot be searched"),
            ("", "s.toml: nothing to search"),
            ("[search]", "s.toml: nothing to search"),
            ("[keys]\nlr = [1]", "s.toml:1:2: unknown key \"keys\", expected trials, seed or [search]"),
            ("lr = [0.1]", "s.toml:1:1: unknown key \"lr\""),
            ("trials = 0\n[search]\nlr = [1]", "s.toml:1:1: trials must be an integer from 1"),
            ("trials = 'x'\n[search]\nlr = [1]", "s.toml:1:1: trials must be an integer"),
            ("[search]\nlr = []", "s.toml:2:1: lr: empty list"),
            ("[search]\nlr = { min = 0.1, max = 1 }", "s.toml:2:1: the range of lr needs a number of trials"),
            ("trials = 5\n[search]\nlr = { min = 1, max = 0.1 }", "s.toml:3:1: lr: min is greater than max"),
            ("trials = 5\n[search]\nlr = { min = 1 }", "s.toml:3:1: lr: a range needs numeric min and max"),
            ("trials = 5\n[search]\nlr = { min = 0, max = 1, log = true }", "s.toml:3:1: lr: with log, min"),
            (
                "trials = 5\n[search]\nlr = { min = 1, max = 2, step = 3 }",
                "s.toml:3:1: lr: a range has only min",
            ),
            ("trials = 5\n[search]\nmissing = { min = 1, max = 2 }", "s.toml:3:1: missing: not numeric"),
            (
                "trials = 5\n[search]\ndepth = { min = 1.5, max = 2 }",
                "s.toml:3:1: depth: not an integer range",
            ),
            (
                "[search]\nlr = [0.1]\neta = [0.2]",
                "s.toml:3:1: duplicate parameter learning_rate, already given as lr",
            ),
            ("[search\nlr = 1", "s.toml:1:"),
        ] {
            let error = SearchSpace::of_text("s.toml", text).unwrap_err();
            assert!(error.to_string().starts_with(problem), "{text:?}: {error}");
            assert!(error.remedy().is_some() && error.exit_code() == 2, "{text:?}");
        }
    }
}
