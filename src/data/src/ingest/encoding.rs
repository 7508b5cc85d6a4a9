//! Recognises text that is not UTF-8 or whose lines end in carriage returns only.

use planetree_base::error::{Error, Result};
use std::fmt::Display;

/// Bytes at the start of a text that are examined.
const EXAMINED: usize = 64;

/// Fails if a text starts as one in another encoding than UTF-8. `place` is the file.
pub fn refuse_other_encodings(place: impl Display, start: &[u8]) -> Result<()> {
    encoding_of(start).map_or(Ok(()), |encoding| Err(wrong_encoding(place, encoding)))
}

/// Returns the name of the encoding of a text if it is UTF-16 or UTF-32: the text starts with a byte order mark, or
/// consists of pairs of a character and a zero.
pub(super) fn encoding_of(text: &[u8]) -> Option<&'static str> {
    const MARKS: [(&[u8], &str); 4] = [
        (b"\xFF\xFE\0\0", "UTF-32"),
        (b"\0\0\xFE\xFF", "UTF-32"),
        (b"\xFF\xFE", "UTF-16"),
        (b"\xFE\xFF", "UTF-16"),
    ];
    if let Some((_, encoding)) = MARKS.iter().find(|(mark, _)| text.starts_with(mark)) {
        return Some(encoding);
    }
    let zeros = |odd: bool| {
        let pairs = text.as_chunks::<2>().0.iter().take(EXAMINED / 2);
        pairs.clone().count() >= 4
            && pairs.clone().all(|pair| pair[usize::from(odd)] == 0 && pair[usize::from(!odd)] != 0)
    };
    (zeros(true) || zeros(false)).then_some("UTF-16")
}

/// Returns whether a text has carriage returns between its lines and no newlines.
pub fn has_only_carriage_returns(text: &[u8]) -> bool {
    let within = text.trim_ascii_end();
    memchr::memchr(b'\n', text).is_none() && memchr::memchr(b'\r', within).is_some()
}

/// Returns the error for a text in another encoding than UTF-8.
pub(super) fn wrong_encoding(place: impl Display, encoding: &str) -> Error {
    Error::place(
        place,
        format_args!("the text is encoded as {encoding}"),
        format_args!("convert it to UTF-8, for example with: iconv -f {encoding} -t UTF-8 FILE"),
    )
}

/// Returns the error for a text without newlines.
pub fn only_carriage_returns(place: impl Display) -> Error {
    Error::place(
        place,
        "the lines end in carriage returns (CR) only",
        "end lines in LF or CRLF, for example with: tr '\\r' '\\n' < FILE",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_recognised_with_and_without_a_byte_order_mark() {
        for (text, expected) in [
            (&b"a,b,c,d\n"[..], None),
            (b"\xFF\xFEa\0,\0", Some("UTF-16")),
            (b"\xFE\xFF\0a\0,", Some("UTF-16")),
            (b"a\0,\0b\0\n\0", Some("UTF-16")),
            (b"\0a\0,\0b\0\n", Some("UTF-16")),
            (b"\xFF\xFE\0\0a\0\0\0", Some("UTF-32")),
            (b"\0\0\xFE\xFF\0\0\0a", Some("UTF-32")),
            (b"\xEF\xBB\xBFa", None),
            (b"", None),
        ] {
            assert_eq!(encoding_of(text), expected, "{text:?}");
        }
    }
}
