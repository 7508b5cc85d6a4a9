//! Reads JSON of any depth. `serde_json` refuses more than 128 levels, which nested trees can have; this reader keeps
//! the open levels in a list instead of on the stack.

/// Maximum number of levels. A level may take a hundred times the memory of its bracket.
pub(super) const MOST_LEVELS: usize = 1 << 19;
/// Maximum number of characters of a message that repeat the text.
const SHOWN: usize = 40;

/// A JSON value. Members refer to other values of the same [`JsonText`] by index.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonValue {
    /// null, true or false.
    Word(Option<bool>),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<usize>),
    /// An object.
    Object(Vec<(String, usize)>),
}

/// A parsed JSON text.
pub(super) struct JsonText {
    values: Vec<JsonValue>,
}

/// Index of the outermost value.
pub(super) const ROOT: usize = 0;

impl JsonText {
    /// Parses a text with one value.
    pub(super) fn parse(text: &str) -> Result<JsonText, String> {
        let mut values: Vec<JsonValue> = Vec::new();
        // The open lists and objects, each with the key of the member that comes next.
        let mut open: Vec<(usize, Option<String>)> = Vec::new();
        let mut rest = text.trim_start();
        // Whether a value may follow: at the beginning, and after a bracket, comma or colon.
        loop {
            let first = rest.chars().next().ok_or("the text ends within a value")?;
            if let Some((container, key)) = open.last_mut()
                && key.is_none()
                && matches!(values[*container], JsonValue::Object(_))
                && first == '"'
            {
                let (name, after) = string(rest)?;
                *key = Some(name);
                rest = after.trim_start().strip_prefix(':').ok_or("a key has no value")?.trim_start();
                continue;
            }
            if !matches!(first, ']' | '}') {
                let index = values.len();
                let (value, after) = scalar_or_open(rest)?;
                let opens = matches!(value, JsonValue::List(_) | JsonValue::Object(_));
                values.push(value);
                attach(&mut values, &mut open, index)?;
                if opens {
                    if open.len() == MOST_LEVELS {
                        return Err(format!("more than {MOST_LEVELS} lists and objects are nested"));
                    }
                    open.push((index, None));
                    rest = after.trim_start();
                    continue;
                }
                rest = after.trim_start();
            }
            // After a value: closing brackets, then a comma or the end.
            loop {
                let Some((container, key)) = open.last() else {
                    return match rest.is_empty() {
                        true => Ok(JsonText { values }),
                        false => Err("there is text after the value".to_owned()),
                    };
                };
                let close = if matches!(values[*container], JsonValue::List(_)) { ']' } else { '}' };
                if let Some(after) = rest.strip_prefix(close) {
                    if key.is_some() {
                        return Err("a key has no value".to_owned());
                    }
                    open.pop();
                    rest = after.trim_start();
                    continue;
                }
                rest = rest.strip_prefix(',').ok_or("a comma or bracket is missing")?.trim_start();
                break;
            }
        }
    }

    /// Returns the value with an index.
    pub(super) fn value(&self, index: usize) -> &JsonValue {
        &self.values[index]
    }

    /// Returns the index of a member of an object.
    pub(super) fn member(&self, object: usize, key: &str) -> Option<usize> {
        match &self.values[object] {
            JsonValue::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
            }
            _ => None,
        }
    }

    /// Returns a member of an object that must be there.
    pub(super) fn required(&self, object: usize, key: &str) -> Result<usize, String> {
        self.member(object, key).ok_or_else(|| format!("{key} is missing"))
    }

    /// Returns a number, also if it is written as a string.
    pub(super) fn number(&self, object: usize, key: &str) -> Result<f64, String> {
        let found = match &self.values[self.required(object, key)?] {
            JsonValue::Number(number) => Some(*number),
            JsonValue::Text(text) => text.parse().ok(),
            _ => None,
        };
        found.ok_or_else(|| format!("{key} is not a number"))
    }

    /// Returns a string.
    pub(super) fn text(&self, object: usize, key: &str) -> Result<&str, String> {
        match &self.values[self.required(object, key)?] {
            JsonValue::Text(text) => Ok(text),
            _ => Err(format!("{key} is not a string")),
        }
    }

    /// Returns the values of a list.
    pub(super) fn list(&self, object: usize, key: &str) -> Result<&[usize], String> {
        match &self.values[self.required(object, key)?] {
            JsonValue::List(list) => Ok(list),
            _ => Err(format!("{key} is not a list")),
        }
    }
}

/// Adds a value to the innermost open list or object.
fn attach(
    values: &mut [JsonValue],
    open: &mut [(usize, Option<String>)],
    index: usize,
) -> Result<(), String> {
    let Some((container, key)) = open.last_mut() else { return Ok(()) };
    match &mut values[*container] {
        JsonValue::List(list) => list.push(index),
        JsonValue::Object(members) => {
            members.push((key.take().ok_or("a member of an object has no key")?, index));
        }
        _ => return Err("a value is inside of another that has no members".to_owned()),
    }
    Ok(())
}

/// Reads a value without members, or the opening bracket of one.
fn scalar_or_open(text: &str) -> Result<(JsonValue, &str), String> {
    if let Some(after) = text.strip_prefix('[') {
        return Ok((JsonValue::List(Vec::new()), after));
    }
    if let Some(after) = text.strip_prefix('{') {
        return Ok((JsonValue::Object(Vec::new()), after));
    }
    if text.starts_with('"') {
        let (found, after) = string(text)?;
        return Ok((JsonValue::Text(found), after));
    }
    let end = text.find(|letter: char| letter.is_whitespace() || ",]}:".contains(letter));
    let (word, after) = text.split_at(end.unwrap_or(text.len()));
    let value = match word {
        "null" => JsonValue::Word(None),
        "true" => JsonValue::Word(Some(true)),
        "false" => JsonValue::Word(Some(false)),
        word => {
            JsonValue::Number(word.parse().map_err(|_| format!("{:?} is not a JSON value", shown(word)))?)
        }
    };
    Ok((value, after))
}

/// Returns the beginning of a text, for messages.
fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

/// Reads a string. Returns what follows it, too.
fn string(text: &str) -> Result<(String, &str), String> {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => {
                let (quoted, after) = text.split_at(place + 1);
                let found =
                    serde_json::from_str(quoted).map_err(|error| format!("{}: {error}", shown(quoted)))?;
                return Ok((found, after));
            }
            _ => {}
        }
    }
    Err("a string is not closed".to_owned())
}
