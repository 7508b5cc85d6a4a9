//! Determines the values of a pipeline's parameters, and replaces `{name}` in the pipeline by the value of the
//! parameter.

use super::document::{LocatedEntry, LocatedValue, PipelineValue, fault};
use super::letor_parts::{FoldRole, letor_parts};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_base::suggest;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The parameters of a run and their values.
#[derive(Debug)]
pub struct PipelineParameters {
    /// Declarations of the parameters, in the order of the file.
    declared: Vec<LocatedEntry>,
    values: BTreeMap<String, LocatedValue>,
    /// Names of the parameters that occur as `{name}` somewhere in the pipeline.
    used: RefCell<BTreeSet<String>>,
}

/// Variables of `for_each`, which are visible only in the step that declares them.
pub(super) type Locals = BTreeMap<String, LocatedValue>;

impl PipelineParameters {
    /// Determines the values. A value set with `--set` has priority over a value from an earlier run, and both have
    /// priority over the default.
    pub fn resolve(
        declared: &[LocatedEntry],
        earlier: &BTreeMap<String, String>,
        set: &[String],
    ) -> Result<Self> {
        let mut parameters = PipelineParameters {
            declared: declared.to_vec(),
            values: BTreeMap::new(),
            used: RefCell::new(BTreeSet::new()),
        };
        let mut chosen: BTreeMap<&str, (String, &str)> = BTreeMap::new();
        for (name, text) in earlier {
            chosen.insert(name, (format!("{name} of the earlier run"), text));
        }
        for argument in set {
            let Some((name, text)) = argument.split_once('=') else {
                return Err(Error::usage(
                    format_args!("--set {argument}: missing value"),
                    "write --set key=value, such as --set trees=100",
                ));
            };
            let name = name.trim();
            if !declared.iter().any(|entry| entry.key == name) {
                let names = declared.iter().map(|entry| entry.key.as_str());
                let all: Vec<&str> = names.clone().collect();
                let remedy = match &all[..] {
                    [] => "the pipeline has no [parameters]".to_owned(),
                    all => format!("available parameters: {}", all.join(", ")),
                };
                return Err(Error::usage(
                    format_args!("--set {name}: unknown parameter"),
                    suggest::did_you_mean(&suggest::nearest(name, names), &remedy),
                ));
            }
            chosen.insert(name, (format!("--set {name}"), text.trim()));
        }
        // A pipeline that runs on its own data is an example, for which some parameters have smaller values.
        let is_example = !chosen.contains_key("data");
        for entry in declared {
            let Defaults { usual, small, files_of } = Defaults::of(entry)?;
            let is_chosen = chosen.contains_key(entry.key.as_str()) || is_example && small.is_some();
            if let Some((role, folder)) = files_of.filter(|_| !is_chosen) {
                let found = parameters.files_in(role, folder)?;
                parameters.values.insert(entry.key.clone(), found);
                continue;
            }
            let list = LocatedValue { value: PipelineValue::List(Vec::new()), place: entry.place.clone() };
            let default = match (chosen.contains_key(entry.key.as_str()), files_of, small) {
                (true, Some(_), _) => Some(&list),
                (false, _, Some(small)) if is_example => Some(small),
                _ => usual,
            };
            let item = match (chosen.get(entry.key.as_str()), default) {
                (Some((place, text)), default) => chosen_value(&entry.key, text, place, default)?,
                (None, Some(default)) => parameters.substitute(default, &Locals::new())?,
                (None, None) => {
                    return Err(fault(
                        &entry.place,
                        format_args!("parameter {} has no value", entry.key),
                        format_args!("pass --set {}=VALUE{}", entry.key, help_of(entry)),
                    ));
                }
            };
            parameters.values.insert(entry.key.clone(), item);
        }
        Ok(parameters)
    }

    /// Returns the names of the parts of a LETOR dataset in a folder, or the files of its first fold.
    fn files_in(&self, role: Option<FoldRole>, folder: &LocatedValue) -> Result<LocatedValue> {
        let folder = self.substitute(folder, &Locals::new())?;
        let text = folder.text().unwrap_or_default();
        let location = Location::parse(text, Access::Explicit)?;
        let found = match role {
            None => letor_parts(&location),
            Some(role) => role.files_in(&location).map(|files| {
                let within = |file| format!("{}/{file}", text.trim_end_matches('/'));
                files.into_iter().map(within).collect()
            }),
        };
        let found = found.map_err(|error| folder.fault(&error, error.remedy().unwrap_or_default()))?;
        let item = |text| LocatedValue { value: PipelineValue::Text(text), place: folder.place.clone() };
        let value = PipelineValue::List(found.into_iter().map(item).collect());
        Ok(LocatedValue { value, place: folder.place.clone() })
    }

    /// Returns the values as strings.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, item): (&String, &LocatedValue)| (name.clone(), item.joined().unwrap_or_default());
        self.values.iter().map(text).collect()
    }

    /// Replaces every `{name}` in a value by the value of the parameter.
    pub(crate) fn substitute(&self, item: &LocatedValue, locals: &Locals) -> Result<LocatedValue> {
        let place = item.place.clone();
        let value = match &item.value {
            PipelineValue::Text(text) => {
                if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
                    && is_name(name)
                {
                    // A string that consists of a single `{name}` is replaced by the value of the parameter itself,
                    // which may be a list.
                    return Ok(LocatedValue { place, ..self.value(name, &item.place, locals)?.clone() });
                }
                PipelineValue::Text(self.substitute_text(text, &item.place, locals)?)
            }
            PipelineValue::List(items) => {
                let mut filled = Vec::new();
                for item in items {
                    match self.substitute(item, locals)? {
                        LocatedValue { value: PipelineValue::List(inner), .. }
                            if matches!(item.value, PipelineValue::Text(_)) =>
                        {
                            filled.extend(inner);
                        }
                        other => filled.push(other),
                    }
                }
                PipelineValue::List(filled)
            }
            PipelineValue::Table(entries) => PipelineValue::Table(self.substitute_entries(entries, locals)?),
            plain => plain.clone(),
        };
        Ok(LocatedValue { value, place })
    }

    /// Replaces every `{name}` in keys and values.
    pub(crate) fn substitute_entries(
        &self,
        entries: &[LocatedEntry],
        locals: &Locals,
    ) -> Result<Vec<LocatedEntry>> {
        let filled = |entry: &LocatedEntry| {
            let key = self.substitute_text(&entry.key, &entry.place, locals)?;
            Ok(LocatedEntry { key, place: entry.place.clone(), item: self.substitute(&entry.item, locals)? })
        };
        entries.iter().map(filled).collect()
    }

    fn substitute_text(&self, text: &str, place: &str, locals: &Locals) -> Result<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            filled.push_str(&rest[..brace]);
            let from = &rest[brace..];
            if let Some(doubled) = ["{{", "}}"].into_iter().find(|doubled| from.starts_with(doubled)) {
                filled.push_str(&doubled[..1]);
                rest = &from[2..];
                continue;
            }
            let Some((name, after)) = from.strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
                return Err(unmatched_brace(place, text));
            };
            if !is_name(name) {
                return Err(unmatched_brace(place, text));
            }
            let item = self.value(name, place, locals)?;
            filled.push_str(&item.joined().unwrap_or_default());
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value<'s>(&'s self, name: &str, place: &str, locals: &'s Locals) -> Result<&'s LocatedValue> {
        if let Some(item) = locals.get(name) {
            return Ok(item);
        }
        self.used.borrow_mut().insert(name.to_owned());
        self.values.get(name).ok_or_else(|| {
            if self.declared.iter().any(|entry| entry.key == name) {
                let problem = format_args!("parameter {name} is used before its declaration");
                return fault(place, problem, "move its declaration up");
            }
            let names =
                self.declared.iter().map(|entry| entry.key.as_str()).chain(locals.keys().map(String::as_str));
            let near = suggest::nearest(name, names);
            fault(
                place,
                format_args!("unknown parameter {name:?}"),
                suggest::did_you_mean(&near, "declare it in [parameters]; write {{ for a literal brace"),
            )
        })
    }

    /// Checks that every declared parameter is used. An unused parameter usually means that its name is misspelled
    /// somewhere.
    pub(crate) fn check_all_used(&self) -> Result<()> {
        let used = self.used.borrow();
        match self.declared.iter().find(|entry| !used.contains(&entry.key)) {
            Some(entry) => Err(fault(
                &entry.place,
                format_args!("unused parameter {}", entry.key),
                format_args!("write {{{}}} where it is needed, or remove it", entry.key),
            )),
            None => Ok(()),
        }
    }
}

/// The defaults of a parameter.
#[derive(Default)]
struct Defaults<'e> {
    /// The value itself or, for a table, the value of its key `default`.
    usual: Option<&'e LocatedValue>,
    /// Default while the parameter `data` is not set.
    small: Option<&'e LocatedValue>,
    /// Folder of a LETOR dataset, of which the default is the parts, or files of the first fold.
    files_of: Option<(Option<FoldRole>, &'e LocatedValue)>,
}

impl<'e> Defaults<'e> {
    fn of(entry: &'e LocatedEntry) -> Result<Self> {
        let mut defaults = Defaults::default();
        let PipelineValue::Table(inner) = &entry.item.value else {
            return Ok(Defaults { usual: Some(&entry.item), ..defaults });
        };
        for LocatedEntry { key, place, item } in inner {
            match key.as_str() {
                "default" => defaults.usual = Some(item),
                "small" => defaults.small = Some(item),
                "parts_of" => defaults.files_of = Some((None, item)),
                "train_of" => defaults.files_of = Some((Some(FoldRole::Train), item)),
                "valid_of" => defaults.files_of = Some((Some(FoldRole::Valid), item)),
                "test_of" => defaults.files_of = Some((Some(FoldRole::Test), item)),
                "help" => {}
                other => {
                    return Err(fault(
                        place,
                        format_args!("unknown key {other:?} in parameter {}", entry.key),
                        "write a value, or a table with default, small, parts_of, train_of, valid_of, test_of and help",
                    ));
                }
            }
        }
        Ok(defaults)
    }
}

fn help_of(entry: &LocatedEntry) -> String {
    let PipelineValue::Table(inner) = &entry.item.value else { return String::new() };
    let help = inner.iter().find(|inner| inner.key == "help").and_then(|inner| inner.item.text());
    help.map(|help| format!(": {help}")).unwrap_or_default()
}

/// Parses a value from the command line or an earlier run. It must have the same type as the default.
fn chosen_value(name: &str, text: &str, place: &str, default: Option<&LocatedValue>) -> Result<LocatedValue> {
    let item = |value: PipelineValue| LocatedValue { value, place: place.to_owned() };
    let expected = |what: &str, example: &str| {
        Error::usage(
            format_args!("{place}={text}: parameter {name} must be {what}"),
            format_args!("for example: --set {name}={example}"),
        )
    };
    Ok(match default.map(|default| &default.value) {
        Some(PipelineValue::Flag(_)) => match text {
            "true" => item(PipelineValue::Flag(true)),
            "false" => item(PipelineValue::Flag(false)),
            _ => return Err(expected("true or false", "true")),
        },
        Some(PipelineValue::Plain(number)) if number.parse::<f64>().is_ok() => {
            let is_integer = number.parse::<i128>().is_ok();
            if is_integer && text.parse::<i128>().is_err() {
                return Err(expected("an integer", number));
            }
            if text.parse::<f64>().is_err() {
                return Err(expected("a number", number));
            }
            item(PipelineValue::Plain(text.to_owned()))
        }
        Some(PipelineValue::List(_)) => {
            let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
            item(PipelineValue::List(
                members.map(|member| item(PipelineValue::Text(member.to_owned()))).collect(),
            ))
        }
        _ => item(PipelineValue::Text(text.to_owned())),
    })
}

fn unmatched_brace(place: &str, text: &str) -> Error {
    fault(
        place,
        format_args!("brace without a parameter name in {text:?}"),
        "write {name} for a parameter, {{ and }} for literal braces",
    )
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::document::PipelineDocument;

    fn declared(text: &str) -> Vec<LocatedEntry> {
        PipelineDocument::parse("p.toml", &format!("[parameters]\n{text}\n[step.a]\n")).unwrap().parameters
    }

    fn resolve(text: &str, set: &[&str]) -> Result<PipelineParameters> {
        let set: Vec<String> = set.iter().map(|&argument| argument.to_owned()).collect();
        PipelineParameters::resolve(&declared(text), &BTreeMap::new(), &set)
    }

    fn fill(parameters: &PipelineParameters, text: &str) -> Result<String> {
        let item =
            LocatedValue { value: PipelineValue::Text(text.to_owned()), place: "p.toml:9:1".to_owned() };
        Ok(parameters.substitute(&item, &Locals::new())?.joined().unwrap())
    }

    #[test]
    fn names_in_braces_are_substituted() {
        let parameters =
            resolve("a = 3\nb = \"x{a}\"\nc = [1, \"{b}\"]\nd = { default = \"{c}\" }", &[]).unwrap();
        for (text, filled) in [
            ("{a}", "3"),
            ("s3://{b}/{a}.txt", "s3://x3/3.txt"),
            ("{c}", "1,x3"),
            ("in {c}", "in 1,x3"),
            ("{d}", "1,x3"),
            ("{{a}} {{{a}}}", "{a} {3}"),
            ("", ""),
        ] {
            assert_eq!(fill(&parameters, text).unwrap(), filled, "{text}");
        }
        let list = LocatedValue {
            value: PipelineValue::List(vec![
                LocatedValue { value: PipelineValue::Text("{c}".into()), place: String::new() },
                LocatedValue { value: PipelineValue::Text("y".into()), place: String::new() },
            ]),
            place: String::new(),
        };
        assert_eq!(parameters.substitute(&list, &Locals::new()).unwrap().joined().unwrap(), "1,x3,y");
    }

    #[test]
    fn the_command_line_overrides_and_keeps_the_type() {
        let text = "n = 3\nx = 0.5\nf = true\nl = [1, 2]\nw = \"w\"";
        let set = ["n=4", "x=1", "f=false", "l=7, 8,9", "w={n}", "n=5"];
        let parameters = resolve(text, &set).unwrap();
        for (name, value) in [("n", "5"), ("x", "1"), ("f", "false"), ("l", "7,8,9"), ("w", "{n}")] {
            assert_eq!(parameters.texts()[name], value);
        }
        for (set, expected) in [
            ("n=1.5", "--set n=1.5: parameter n must be an integer"),
            ("x=much", "--set x=much: parameter x must be a number"),
            ("f=1", "--set f=1: parameter f must be true or false"),
            ("n", "--set n: missing value"),
            ("m=3", "--set m: unknown parameter"),
        ] {
            let error = resolve(text, &[set]).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.exit_code()), (expected, 2));
        }
        let earlier = [("n".to_owned(), "6".to_owned()), ("gone".to_owned(), "1".to_owned())].into();
        let parameters = PipelineParameters::resolve(&declared(text), &earlier, &["x=2".to_owned()]).unwrap();
        assert_eq!((parameters.texts()["n"].as_str(), parameters.texts()["x"].as_str()), ("6", "2"));
    }

    #[test]
    fn an_example_has_small_values_and_the_parts_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["S2.txt", "S1.txt.gz"] {
            std::fs::write(folder.path().join(part), "").unwrap();
        }
        let folder = folder.path().display();
        let text = format!(
            "data = \"{folder}\"\nparts = {{ parts_of = \"{{data}}\" }}\ntrees = {{ default = 500, small = 3 }}"
        );
        let values = |set: &[&str]| {
            let texts = resolve(&text, set).unwrap().texts();
            (texts["parts"].clone(), texts["trees"].clone())
        };
        let pair = |parts: &str, trees: &str| (parts.to_owned(), trees.to_owned());
        assert_eq!(values(&[]), pair("S1,S2", "3"));
        assert_eq!(values(&[&format!("data={folder}")]), pair("S1,S2", "500"));
        assert_eq!(values(&["trees=7", "parts=a, b"]), pair("a,b", "7"));
        let error = resolve(&text, &["data=/nowhere"]).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }

    #[test]
    fn files_of_the_first_fold_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for part in ["S2.txt", "S1.txt.gz", "S3.txt", "S4.txt"] {
            std::fs::write(folder.path().join(part), "").unwrap();
        }
        let folder = folder.path().display().to_string();
        let text = format!(
            "data = \"{folder}/\"\ntrain = {{ train_of = \"{{data}}\" }}\n\
             test = {{ test_of = \"{{data}}\", small = \"{{data}}small.txt\" }}"
        );
        let values = |set: &[&str]| {
            let texts = resolve(&text, set).unwrap().texts();
            (texts["train"].replace(&folder, "D"), texts["test"].replace(&folder, "D"))
        };
        let pair = |train: &str, test: &str| (train.to_owned(), test.to_owned());
        assert_eq!(values(&[]), pair("D/S1.txt.gz,D/S2.txt", "D/small.txt"));
        assert_eq!(values(&[&format!("data={folder}")]), pair("D/S1.txt.gz,D/S2.txt", "D/S4.txt"));
        assert_eq!(values(&["train=a, b", "test=c"]), pair("a,b", "c"));
    }

    #[test]
    fn errors_name_their_position() {
        let remedy = |error: &Error| error.remedy().unwrap_or_default().to_owned();
        let error = resolve("date = { help = \"the day, such as 2026-11-07\" }", &[]).unwrap_err();
        assert_eq!(error.to_string(), "p.toml:2:1: parameter date has no value");
        assert_eq!(remedy(&error), "pass --set date=VALUE: the day, such as 2026-11-07");
        let error = resolve("a = { defualt = 3 }", &[]).unwrap_err();
        assert!(error.to_string().contains("unknown key \"defualt\" in parameter a"), "{error}");
        let error = resolve("a = \"{b}\"\nb = 3", &[]).unwrap_err();
        assert!(error.to_string().contains("used before its declaration"), "{error}");
        let parameters = resolve("trees = 3\nother = 4", &[]).unwrap();
        let error = fill(&parameters, "{tree}").unwrap_err();
        assert_eq!(error.to_string(), "p.toml:9:1: unknown parameter \"tree\"");
        assert_eq!(remedy(&error), "did you mean trees?");
        for text in ["{", "}", "a{b c}", "{}"] {
            let error = fill(&parameters, text).unwrap_err();
            assert!(error.to_string().contains("brace without a parameter name"), "{error}");
        }
        fill(&parameters, "{trees}").unwrap();
        let error = parameters.check_all_used().unwrap_err();
        assert_eq!(error.to_string(), "p.toml:3:1: unused parameter other");
    }
}
