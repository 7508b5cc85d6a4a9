//! Splits XML into tags and text. There is no recursion and no document in memory, so hostile files need little memory.
//! Comments and declarations are skipped; entities are decoded in attributes.

/// A piece of XML.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Markup<'a> {
    /// A start tag: its name and the text of its attributes. `is_empty` if it is also the end tag.
    Start {
        /// Name of the element.
        name: &'a str,
        /// The attributes, as written.
        attributes: &'a str,
        /// Whether the element ends with this tag.
        is_empty: bool,
    },
    /// An end tag.
    End(&'a str),
    /// Text between tags, without surrounding white space. Never empty.
    Text(&'a str),
}

/// Splits XML into pieces.
pub(super) fn markup(text: &str) -> impl Iterator<Item = Result<Markup<'_>, String>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            if !rest.starts_with('<') {
                let (text, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                rest = after;
                if text.trim().is_empty() {
                    continue;
                }
                return Some(Ok(Markup::Text(text.trim())));
            }
            let end = match rest.starts_with("<!--") {
                true => rest.find("-->").map(|end| end + 2),
                false => rest.find('>'),
            };
            let Some(end) = end else {
                rest = "";
                return Some(Err("the text ends within a tag".to_owned()));
            };
            let (tag, after) = (&rest[1..end], &rest[end + 1..]);
            rest = after;
            if tag.starts_with(['!', '?']) {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                return Some(Ok(Markup::End(name.trim())));
            }
            let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            return Some(Ok(Markup::Start { name, attributes, is_empty }));
        }
    })
}

/// Returns the value of an attribute, with entities decoded.
pub(super) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(decoded(value));
        }
        rest = after;
    }
}

fn decoded(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

/// Encodes text for an attribute or an element. Control characters, which XML does not have, become spaces.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => encoded.push_str("&lt;"),
            '>' => encoded.push_str("&gt;"),
            '&' => encoded.push_str("&amp;"),
            '"' => encoded.push_str("&quot;"),
            letter if letter.is_control() => encoded.push(' '),
            letter => encoded.push(letter),
        }
    }
    encoded
}
