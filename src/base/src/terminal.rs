//! Makes text safe to print on a terminal. Names, ids and messages of other programs may contain control characters,
//! which would move the cursor, change colours or set the title of the window.

use std::borrow::Cow;

/// Replaces control characters other than line breaks and tabs by escapes such as `\u001b`, which are also valid in
/// JSON strings.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_safe = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_safe(letter) {
            true => shown.push(letter),
            false => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("plain text\n\tä│"), "plain text\n\tä│");
        assert_eq!(printable("\u{1b}[31mred\u{7f}\u{9b}0m\r"), "\\u001b[31mred\\u007f\\u009b0m\\u000d");
    }
}
