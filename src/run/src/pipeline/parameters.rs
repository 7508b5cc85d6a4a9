//! Parameters of a pipeline, and `{name}` in its texts.

use super::document::{Entry, Item, Value, fault};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The parameters of a run, each with its value.
#[derive(Debug)]
pub struct Parameters {
    /// In the order of the text.
    declared: Vec<Entry>,
    values: BTreeMap<String, Item>,
    /// Those that some text has asked for.
    used: RefCell<BTreeSet<String>>,
}

/// Names that hold in one step only, besides the parameters: the variables of `for_each`.
pub type Locals = BTreeMap<String, Item>;

impl Parameters {
    /// Settles the parameters: defaults, then those of an earlier run, then `--set`.
    pub fn settle(declared: &[Entry], earlier: &BTreeMap<String, String>, set: &[String]) -> Result<Self> {
        let mut parameters = Parameters {
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
                    format_args!("--set {argument}: there is no value"),
                    "write --set key=value, such as --set trees=100",
                ));
            };
            let name = name.trim();
            if !declared.iter().any(|entry| entry.key == name) {
                let names = declared.iter().map(|entry| entry.key.as_str());
                let all: Vec<&str> = names.clone().collect();
                let remedy = match &all[..] {
                    [] => "the pipeline has no [parameters]".to_owned(),
                    all => format!("its parameters are {}", all.join(", ")),
                };
                return Err(Error::usage(
                    format_args!("--set {name}: the pipeline has no such parameter"),
                    suggest::did_you_mean(&suggest::nearest(name, names), &remedy),
                ));
            }
            chosen.insert(name, (format!("--set {name}"), text.trim()));
        }
        for entry in declared {
            let default = default_of(entry)?;
            let item = match (chosen.get(entry.key.as_str()), default) {
                (Some((place, text)), default) => chosen_value(&entry.key, text, place, default)?,
                (None, Some(default)) => parameters.filled(default, &Locals::new())?,
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

    /// The values as text, for the record.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, item): (&String, &Item)| (name.clone(), item.joined().unwrap_or_default());
        self.values.iter().map(text).collect()
    }

    /// A value in which every `{name}` is replaced.
    pub fn filled(&self, item: &Item, locals: &Locals) -> Result<Item> {
        let place = item.place.clone();
        let value = match &item.value {
            Value::Text(text) => {
                if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
                    && is_name(name)
                {
                    // A text that is one parameter is that parameter, be it a list.
                    return Ok(Item { place, ..self.value(name, &item.place, locals)?.clone() });
                }
                Value::Text(self.filled_text(text, &item.place, locals)?)
            }
            Value::List(items) => {
                let mut filled = Vec::new();
                for item in items {
                    match self.filled(item, locals)? {
                        Item { value: Value::List(inner), .. } if matches!(item.value, Value::Text(_)) => {
                            filled.extend(inner);
                        }
                        other => filled.push(other),
                    }
                }
                Value::List(filled)
            }
            Value::Table(entries) => Value::Table(self.filled_entries(entries, locals)?),
            plain => plain.clone(),
        };
        Ok(Item { value, place })
    }

    /// Entries whose keys and values are filled.
    pub fn filled_entries(&self, entries: &[Entry], locals: &Locals) -> Result<Vec<Entry>> {
        let filled = |entry: &Entry| {
            let key = self.filled_text(&entry.key, &entry.place, locals)?;
            Ok(Entry { key, place: entry.place.clone(), item: self.filled(&entry.item, locals)? })
        };
        entries.iter().map(filled).collect()
    }

    fn filled_text(&self, text: &str, place: &str, locals: &Locals) -> Result<String> {
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
                return Err(lone_brace(place, text));
            };
            if !is_name(name) {
                return Err(lone_brace(place, text));
            }
            let item = self.value(name, place, locals)?;
            filled.push_str(&item.joined().unwrap_or_default());
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value<'s>(&'s self, name: &str, place: &str, locals: &'s Locals) -> Result<&'s Item> {
        if let Some(item) = locals.get(name) {
            return Ok(item);
        }
        self.used.borrow_mut().insert(name.to_owned());
        self.values.get(name).ok_or_else(|| {
            if self.declared.iter().any(|entry| entry.key == name) {
                let problem = format_args!("parameter {name} is used above the line that declares it");
                return fault(place, problem, "move its line further up");
            }
            let names =
                self.declared.iter().map(|entry| entry.key.as_str()).chain(locals.keys().map(String::as_str));
            let near = suggest::nearest(name, names);
            fault(
                place,
                format_args!("there is no parameter {name:?}"),
                suggest::did_you_mean(&near, "declare it under [parameters]; write {{ for a brace"),
            )
        })
    }

    /// An error if a parameter is declared and used nowhere: most often it is misspelt somewhere.
    pub fn refuse_unused(&self) -> Result<()> {
        let used = self.used.borrow();
        match self.declared.iter().find(|entry| !used.contains(&entry.key)) {
            Some(entry) => Err(fault(
                &entry.place,
                format_args!("parameter {} is used nowhere", entry.key),
                format_args!("write {{{}}} where it belongs, or remove it", entry.key),
            )),
            None => Ok(()),
        }
    }
}

/// The default of a parameter: the value itself, or that of a table that also explains it.
fn default_of(entry: &Entry) -> Result<Option<&Item>> {
    let Value::Table(inner) = &entry.item.value else { return Ok(Some(&entry.item)) };
    let mut default = None;
    for Entry { key, place, item } in inner {
        match key.as_str() {
            "default" => default = Some(item),
            "help" => {}
            other => {
                return Err(fault(
                    place,
                    format_args!("unknown key {other:?} of parameter {}", entry.key),
                    "it has a value, or a table of default and help",
                ));
            }
        }
    }
    Ok(default)
}

fn help_of(entry: &Entry) -> String {
    let Value::Table(inner) = &entry.item.value else { return String::new() };
    let help = inner.iter().find(|inner| inner.key == "help").and_then(|inner| inner.item.text());
    help.map(|help| format!(": {help}")).unwrap_or_default()
}

/// A value from the command line, of the same form as the default.
fn chosen_value(name: &str, text: &str, place: &str, default: Option<&Item>) -> Result<Item> {
    let item = |value: Value| Item { value, place: place.to_owned() };
    let expected = |what: &str, such: &str| {
        Error::usage(
            format_args!("{place}={text}: parameter {name} is {what}"),
            format_args!("write for example --set {name}={such}"),
        )
    };
    Ok(match default.map(|default| &default.value) {
        Some(Value::Flag(_)) => match text {
            "true" => item(Value::Flag(true)),
            "false" => item(Value::Flag(false)),
            _ => return Err(expected("true or false", "true")),
        },
        Some(Value::Plain(number)) if number.parse::<f64>().is_ok() => {
            let whole = number.parse::<i128>().is_ok();
            if whole && text.parse::<i128>().is_err() {
                return Err(expected("a whole number", number));
            }
            if text.parse::<f64>().is_err() {
                return Err(expected("a number", number));
            }
            item(Value::Plain(text.to_owned()))
        }
        Some(Value::List(_)) => {
            let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
            item(Value::List(members.map(|member| item(Value::Text(member.to_owned()))).collect()))
        }
        _ => item(Value::Text(text.to_owned())),
    })
}

fn lone_brace(place: &str, text: &str) -> Error {
    fault(
        place,
        format_args!("a brace in {text:?} encloses no name"),
        "write {name} for a parameter, {{ and }} for braces themselves",
    )
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::document::Document;

    fn declared(text: &str) -> Vec<Entry> {
        Document::parse("p.toml", &format!("[parameters]\n{text}\n[step.a]\n")).unwrap().parameters
    }

    fn settle(text: &str, set: &[&str]) -> Result<Parameters> {
        let set: Vec<String> = set.iter().map(|&argument| argument.to_owned()).collect();
        Parameters::settle(&declared(text), &BTreeMap::new(), &set)
    }

    fn fill(parameters: &Parameters, text: &str) -> Result<String> {
        let item = Item { value: Value::Text(text.to_owned()), place: "p.toml:9:1".to_owned() };
        Ok(parameters.filled(&item, &Locals::new())?.joined().unwrap())
    }

    #[test]
    fn names_in_braces_are_replaced_everywhere() {
        let parameters =
            settle("a = 3\nb = \"x{a}\"\nc = [1, \"{b}\"]\nd = { default = \"{c}\" }", &[]).unwrap();
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
        let list = Item {
            value: Value::List(vec![
                Item { value: Value::Text("{c}".into()), place: String::new() },
                Item { value: Value::Text("y".into()), place: String::new() },
            ]),
            place: String::new(),
        };
        assert_eq!(parameters.filled(&list, &Locals::new()).unwrap().joined().unwrap(), "1,x3,y");
    }

    #[test]
    fn the_command_line_is_last_and_keeps_the_form() {
        let text = "n = 3\nx = 0.5\nf = true\nl = [1, 2]\nw = \"w\"";
        let set = ["n=4", "x=1", "f=false", "l=7, 8,9", "w={n}", "n=5"];
        let parameters = settle(text, &set).unwrap();
        for (name, value) in [("n", "5"), ("x", "1"), ("f", "false"), ("l", "7,8,9"), ("w", "{n}")] {
            assert_eq!(parameters.texts()[name], value);
        }
        for (set, says) in [
            ("n=1.5", "--set n=1.5: parameter n is a whole number"),
            ("x=much", "--set x=much: parameter x is a number"),
            ("f=1", "--set f=1: parameter f is true or false"),
            ("n", "--set n: there is no value"),
            ("m=3", "--set m: the pipeline has no such parameter"),
        ] {
            let error = settle(text, &[set]).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.exit_code()), (says, 2));
        }
        let earlier = [("n".to_owned(), "6".to_owned()), ("gone".to_owned(), "1".to_owned())].into();
        let parameters = Parameters::settle(&declared(text), &earlier, &["x=2".to_owned()]).unwrap();
        assert_eq!((parameters.texts()["n"].as_str(), parameters.texts()["x"].as_str()), ("6", "2"));
    }

    #[test]
    fn what_is_missing_is_named_with_its_place() {
        let remedy = |error: &Error| error.remedy().unwrap_or_default().to_owned();
        let error = settle("date = { help = \"the day, such as 2026-11-07\" }", &[]).unwrap_err();
        assert_eq!(error.to_string(), "p.toml:2:1: parameter date has no value");
        assert_eq!(remedy(&error), "pass --set date=VALUE: the day, such as 2026-11-07");
        let error = settle("a = { defualt = 3 }", &[]).unwrap_err();
        assert!(error.to_string().contains("unknown key \"defualt\" of parameter a"), "{error}");
        let error = settle("a = \"{b}\"\nb = 3", &[]).unwrap_err();
        assert!(error.to_string().contains("used above the line"), "{error}");
        let parameters = settle("trees = 3\nother = 4", &[]).unwrap();
        let error = fill(&parameters, "{tree}").unwrap_err();
        assert_eq!(error.to_string(), "p.toml:9:1: there is no parameter \"tree\"");
        assert_eq!(remedy(&error), "did you mean trees?");
        for text in ["{", "}", "a{b c}", "{}"] {
            let error = fill(&parameters, text).unwrap_err();
            assert!(error.to_string().contains("encloses no name"), "{error}");
        }
        fill(&parameters, "{trees}").unwrap();
        let error = parameters.refuse_unused().unwrap_err();
        assert_eq!(error.to_string(), "p.toml:3:1: parameter other is used nowhere");
    }
}
